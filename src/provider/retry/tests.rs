use proptest::prelude::*;

use super::*;

fn error(kind: ErrorKind) -> ProviderError {
    ProviderError::new(kind, "x")
}

#[test]
fn which_errors_are_tried_again() {
    use ErrorKind::*;
    let again = [
        Connect,
        Timeout,
        RateLimit,
        Overloaded,
        Server,
        IncompleteStream,
    ];
    let never = [
        Protocol,
        InvalidRequest,
        Authentication,
        Permission,
        Quota,
        NotFound,
        TooLarge,
        ContextLength,
        ContentFilter,
        Conflict,
        NoTools,
        NotConfigured,
        Unknown,
    ];
    let policy = Policy::new(4);
    for kind in again {
        assert!(
            policy.next_delay(&error(kind), 1, 0.5).is_some(),
            "{kind:?}"
        );
    }
    for kind in never {
        assert_eq!(policy.next_delay(&error(kind), 1, 0.5), None, "{kind:?}");
    }
}

#[test]
fn a_mistake_of_the_model_is_no_reason_to_give_up() {
    let mistake = ProviderError {
        code: Some("tool_use_failed".to_owned()),
        ..error(ErrorKind::InvalidRequest)
    };
    assert!(Policy::new(1).next_delay(&mistake, 1, 0.5).is_some());
}

#[test]
fn the_providers_word_counts_except_for_money() {
    let policy = Policy::new(1);
    let cases = [
        (ErrorKind::RateLimit, Some(false), None, false),
        (ErrorKind::RateLimit, Some(true), None, true),
        (ErrorKind::Conflict, Some(true), None, true),
        (ErrorKind::Quota, Some(true), None, false),
        (ErrorKind::Authentication, Some(true), None, false),
        (ErrorKind::Server, None, Some(501), false),
        (ErrorKind::Server, None, Some(502), true),
    ];
    for (kind, should_retry, status, expected) in cases {
        let error = ProviderError {
            should_retry,
            status,
            ..error(kind)
        };
        assert_eq!(
            policy.next_delay(&error, 1, 0.0).is_some(),
            expected,
            "{kind:?}"
        );
    }
}

#[test]
fn delays_double_up_to_a_limit_and_then_end() {
    let policy = Policy::new(10);
    let delays: Vec<u128> = (0..12)
        .map(|attempt| {
            let delay = policy.next_delay(&error(ErrorKind::Server), attempt, 1.0);
            delay.map_or(0, |delay| delay.as_millis())
        })
        .collect();
    assert_eq!(
        delays,
        [
            0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000, 0
        ]
    );
    let overloaded = policy.next_delay(&error(ErrorKind::Overloaded), 1, 1.0);
    assert_eq!(overloaded, Some(Duration::from_secs(1)));
}

#[test]
fn what_the_provider_asks_for_is_given_up_to_two_minutes() {
    let policy = Policy::new(4);
    for (asked, expected) in [(7, Some(7)), (120, Some(120)), (121, None), (7999, None)] {
        let error = ProviderError {
            retry_after: Some(Duration::from_secs(asked)),
            ..error(ErrorKind::RateLimit)
        };
        let delay = policy.next_delay(&error, 1, 0.0);
        assert_eq!(delay, expected.map(Duration::from_secs), "{asked}");
    }
}

proptest! {
    #[test]
    fn any_attempt_and_jitter_give_a_bounded_delay(
        attempt: u32,
        max_retries: u32,
        jitter: f64,
        asked in proptest::option::of(0u64..300),
    ) {
        let error = ProviderError {
            retry_after: asked.map(Duration::from_secs),
            ..error(ErrorKind::Overloaded)
        };
        if let Some(delay) = Policy::new(max_retries).next_delay(&error, attempt, jitter) {
            prop_assert!(attempt >= 1 && attempt <= max_retries);
            prop_assert!(delay >= FIRST_DELAY / 2 && delay <= MAX_HONOURED.mul_f64(1.0 + SPREAD));
            prop_assert!(delay >= Duration::from_secs(asked.unwrap_or(0)));
        }
    }
}

#[test]
fn those_told_the_same_time_come_back_apart() {
    let error = ProviderError {
        retry_after: Some(Duration::from_secs(10)),
        ..error(ErrorKind::RateLimit)
    };
    let delay = |jitter| Policy::new(4).next_delay(&error, 1, jitter).unwrap();
    assert_eq!(
        (delay(0.0), delay(1.0)),
        (Duration::from_secs(10), Duration::from_secs(11))
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_passes_a_closed_gate_until_its_time() {
    let asks = |kind, seconds| ProviderError {
        retry_after: Some(Duration::from_secs(seconds)),
        ..error(kind)
    };
    let gate = Gate::default();
    gate.penalise(&error(ErrorKind::RateLimit));
    gate.penalise(&asks(ErrorKind::Quota, 60));
    assert_eq!(gate.pass(), Ok(()));

    gate.penalise(&asks(ErrorKind::Overloaded, 5));
    gate.penalise(&asks(ErrorKind::RateLimit, 1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let refused = gate.pass().unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Overloaded);
    assert_eq!(refused.retry_after, Some(Duration::from_secs(3)));
    assert!(Policy::new(1).next_delay(&refused, 1, 0.0).is_some());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(gate.pass(), Ok(()));

    gate.penalise(&asks(ErrorKind::RateLimit, 120));
    assert_eq!(gate.pass().unwrap_err().retry_after, Some(MAX_HONOURED));
    tokio::time::sleep(MAX_HONOURED).await;

    // Nobody waits so long, so everybody may ask and be told.
    gate.penalise(&asks(ErrorKind::RateLimit, 7999));
    assert_eq!(gate.pass(), Ok(()));
}

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
    let most = 4;
    for kind in again {
        assert!(next_delay(most, &error(kind), 1, 0.5).is_some(), "{kind:?}");
    }
    for kind in never {
        assert_eq!(next_delay(most, &error(kind), 1, 0.5), None, "{kind:?}");
    }
}

#[test]
fn a_mistake_of_the_model_is_no_reason_to_give_up() {
    let mistake = ProviderError {
        code: Some("tool_use_failed".to_owned()),
        ..error(ErrorKind::InvalidRequest)
    };
    assert!(next_delay(1, &mistake, 1, 0.5).is_some());
}

#[test]
fn the_providers_word_counts_except_for_money() {
    let most = 1;
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
            next_delay(most, &error, 1, 0.0).is_some(),
            expected,
            "{kind:?}"
        );
    }
}

#[test]
fn delays_double_up_to_a_limit_and_then_end() {
    let most = 10;
    let delays: Vec<u128> = (0..12)
        .map(|attempt| {
            let delay = next_delay(most, &error(ErrorKind::Server), attempt, 1.0);
            delay.map_or(0, |delay| delay.as_millis())
        })
        .collect();
    assert_eq!(
        delays,
        [
            0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000, 0
        ]
    );
    let overloaded = next_delay(most, &error(ErrorKind::Overloaded), 1, 1.0);
    assert_eq!(overloaded, Some(Duration::from_secs(1)));
}

#[test]
fn what_the_provider_asks_for_is_given_up_to_two_minutes() {
    let most = 4;
    for (asked, expected) in [(7, Some(7)), (120, Some(120)), (121, None), (7999, None)] {
        let error = ProviderError {
            retry_after: Some(Duration::from_secs(asked)),
            ..error(ErrorKind::RateLimit)
        };
        let delay = next_delay(most, &error, 1, 0.0);
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
        if let Some(delay) = next_delay(max_retries, &error, attempt, jitter) {
            prop_assert!(attempt >= 1 && attempt <= max_retries);
            prop_assert!(delay >= FIRST_DELAY / 2 && delay <= MAX_HONOURED.mul_f64(1.0 + SPREAD));
            prop_assert!(delay >= Duration::from_secs(asked.unwrap_or(0)));
        }
    }
}

#[test]
fn those_given_the_same_time_come_back_apart() {
    let error = ProviderError {
        retry_after: Some(Duration::from_secs(10)),
        ..error(ErrorKind::RateLimit)
    };
    let delay = |jitter| next_delay(4, &error, 1, jitter).unwrap();
    assert_eq!(
        (delay(0.0), delay(1.0)),
        (Duration::from_secs(10), Duration::from_secs(11))
    );
}

#[test]
fn waiting_for_others_costs_nothing_while_some_of_them_get_through() {
    let failure = |not_sent, consecutive_failures| ProviderError {
        not_sent,
        consecutive_failures,
        ..error(ErrorKind::RateLimit)
    };
    // Whether it was this turn's own, failures in a row of anybody, failures counted.
    let cases: [&[(bool, Option<u32>, u32)]; 2] = [
        &[
            (true, Some(1), 0),
            (true, Some(1), 0),
            (false, Some(1), 1),
            (true, Some(0), 1),
            (true, Some(1), 1),
            (true, Some(3), 3),
            (false, Some(4), 4),
            (false, None, 3),
        ],
        // The provider was busy before this turn, which now fails for another reason.
        &[(false, None, 1), (true, Some(5), 1), (false, Some(6), 2)],
    ];
    for (case, steps) in cases.into_iter().enumerate() {
        let mut failures = Failures::default();
        for (place, (not_sent, consecutive_failures, counted)) in steps.iter().enumerate() {
            let failure = failure(*not_sent, *consecutive_failures);
            assert_eq!(failures.add(&failure), *counted, "{case} {place}");
        }
    }
    let waiting = ProviderError {
        retry_after: Some(Duration::from_secs(3)),
        ..failure(true, Some(1))
    };
    assert_eq!(
        next_delay(0, &waiting, 0, 1.0),
        Some(Duration::from_secs(3))
    );
    assert_eq!(next_delay(1, &waiting, 2, 1.0), None);
}

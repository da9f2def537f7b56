use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::join_all;

use super::*;
use crate::provider::retry::{Failures, next_delay};

fn error(kind: ErrorKind, seconds: Option<u64>) -> ProviderError {
    ProviderError {
        retry_after: seconds.map(Duration::from_secs),
        ..ProviderError::new(kind, "busy")
    }
}

/// A server that has time for one request in a while, or never.
struct Server {
    every: Option<Duration>,
    /// How long an answer takes.
    takes: Duration,
    /// Before it, all are refused.
    back: Instant,
    refusal: ProviderError,
    free: Mutex<Option<Instant>>,
    asked: AtomicU32,
}

impl Server {
    fn new(every: Option<Duration>, refusal: ProviderError) -> Self {
        Self {
            every,
            takes: Duration::from_millis(5),
            back: Instant::now(),
            refusal,
            free: Mutex::default(),
            asked: AtomicU32::new(0),
        }
    }

    async fn ask(&self) -> Result<(), ProviderError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let came = Instant::now();
        if came < self.back {
            return Err(self.refusal.clone());
        }
        tokio::time::sleep(self.takes).await;
        let now = Instant::now();
        let mut free = self.free.lock();
        match self.every {
            Some(every) if free.is_none_or(|free| free <= now) => {
                *free = Some(now + every);
                Ok(())
            }
            _ => Err(self.refusal.clone()),
        }
    }
}

/// A turn as the exchange runs it.
async fn converse(gate: &Arc<Gate>, server: &Server, number: u32) -> Result<(), ProviderError> {
    let most = 4;
    let mut failures = Failures::default();
    loop {
        let error = match gate.permit("m") {
            Ok(mut permit) => match server.ask().await {
                Ok(()) => {
                    permit.answered();
                    return Ok(());
                }
                Err(mut error) => {
                    permit.failed(&mut error);
                    error
                }
            },
            Err(error) => error,
        };
        let count = failures.add(&error);
        let jitter = f64::from(number * 37 % 100) / 100.0;
        match next_delay(most, &error, count, jitter) {
            Some(delay) => error.wait(delay).await,
            None => return Err(error),
        }
    }
}

async fn crowd(size: u32, server: &Server) -> Vec<Result<(), ProviderError>> {
    let gate = Arc::new(Gate::default());
    join_all((0..size).map(|number| converse(&gate, server, number))).await
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_one_after_the_other_serves_all() {
    for retry_after in [Some(1), None] {
        for every in [50, 400, 1000] {
            let refusal = error(ErrorKind::RateLimit, retry_after);
            let server = Server::new(Some(Duration::from_millis(every)), refusal);
            let failed = crowd(30, &server).await.into_iter().filter_map(Result::err);
            assert_eq!(failed.count(), 0, "{retry_after:?} {every}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_goes_on_soon_after_a_hiccup() {
    for (kind, retry_after, takes, limit) in [
        (ErrorKind::RateLimit, Some(1), 5, 1_500),
        (ErrorKind::RateLimit, Some(1), 700, 3_500),
        // Without a word of how long: the back-off finds out, refused again on the way.
        (ErrorKind::RateLimit, None, 5, 6_000),
        (ErrorKind::Overloaded, None, 5, 6_000),
    ] {
        let refusal = error(kind, retry_after);
        let mut server = Server::new(Some(Duration::ZERO), refusal);
        server.takes = Duration::from_millis(takes);
        let refuses = if retry_after.is_some() { 500 } else { 1_000 };
        server.back = Instant::now() + Duration::from_millis(refuses);
        let began = Instant::now();
        assert!(crowd(30, &server).await.iter().all(Result::is_ok));
        let last = began.elapsed();
        assert!(
            last < Duration::from_millis(limit),
            "{kind:?} {takes} {last:?}"
        );
        let asked = server.asked.load(Ordering::SeqCst);
        if retry_after.is_some() {
            assert_eq!(asked, 31, "one was refused, and each was answered");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_answer_halves_the_wait_and_the_second_ends_it() {
    let gate = Arc::new(Gate::default());
    let mut refused = error(ErrorKind::Overloaded, Some(4));
    gate.permit("m").unwrap().failed(&mut refused);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut first = gate.permit("m").unwrap();
    let began = Instant::now();
    let waiting: Vec<_> = (0..3).map(|_| gate.permit("m").err().unwrap()).collect();
    let waits: Vec<Duration> = waiting.iter().filter_map(|it| it.retry_after).collect();
    assert_eq!(waits, [FIRST_PACE, FIRST_PACE * 2, FIRST_PACE * 3]);
    let waiting = waiting
        .into_iter()
        .zip(waits)
        .map(|(position, delay)| async move {
            position.wait(delay).await;
            began.elapsed()
        });
    let answers = async {
        first.answered();
        tokio::time::sleep(FIRST_PACE / 2).await;
        let mut second = gate.permit("m").unwrap();
        tokio::time::sleep(FIRST_PACE / 4).await;
        second.answered();
    };
    let (woken, ()) = tokio::join!(join_all(waiting), answers);
    // Timers tick in milliseconds.
    assert_eq!(woken, [125, 188, 188].map(Duration::from_millis));
    for _ in 0..9 {
        assert!(gate.permit("m").is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_refusal_after_the_row_has_ended_begins_another() {
    let gate = Arc::new(Gate::default());
    let mut late = gate.permit("m").unwrap();
    gate.permit("m")
        .unwrap()
        .failed(&mut error(ErrorKind::Overloaded, Some(1)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..ENOUGH_ANSWERS {
        tokio::time::sleep(FIRST_PACE).await;
        gate.permit("m").unwrap().answered();
    }
    late.failed(&mut error(ErrorKind::Overloaded, Some(3)));
    let refused = gate.permit("m").err().unwrap();
    let began = Instant::now();
    refused.wait(refused.retry_after.unwrap()).await;
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_is_not_knocked_at_by_all() {
    for kind in [
        ErrorKind::RateLimit,
        ErrorKind::Overloaded,
        ErrorKind::Connect,
    ] {
        let server = Server::new(None, error(kind, None));
        let began = Instant::now();
        let ended = crowd(50, &server).await;
        assert!(ended.iter().all(Result::is_err));
        let asked = server.asked.load(Ordering::SeqCst);
        assert!(asked <= 60, "{kind:?} {asked}");
        assert!(began.elapsed() < Duration::from_secs(150), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_alone_is_never_held_up() {
    for kind in [ErrorKind::Overloaded, ErrorKind::Connect] {
        let gate = Arc::new(Gate::default());
        for attempt in 1..5 {
            let mut refused = error(kind, None);
            gate.permit("m")
                .map(|mut permit| permit.failed(&mut refused))
                .unwrap();
            assert_eq!(refused.consecutive_failures, Some(attempt));
            let delay = next_delay(9, &refused, attempt, 0.0).unwrap();
            tokio::time::sleep(delay).await;
        }
        gate.permit("m").unwrap().answered();
        for _ in 0..9 {
            gate.permit("m").unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_waited_in_vain_is_not_held_up_in_the_turns_after() {
    for kind in [ErrorKind::Connect, ErrorKind::RateLimit] {
        let gate = Arc::new(Gate::default());
        for _ in 0..4 {
            let mut refused = error(kind, None);
            gate.permit("m").unwrap().failed(&mut refused);
            // Sent anew while the gate is closed, and sent when its position has come.
            let wait = gate.permit("m").err().unwrap().retry_after.unwrap();
            tokio::time::sleep(wait).await;
        }
        let began = Instant::now();
        for _ in 0..13 {
            gate.permit("m")
                .map_err(|error| error.message)
                .unwrap()
                .answered();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(began.elapsed() < FIRST_PACE, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_failure_does_not_make_the_refusals_before_it_count() {
    let gate = Arc::new(Gate::default());
    for _ in 0..5 {
        let mut refused = error(ErrorKind::Overloaded, None);
        gate.permit("m")
            .map(|mut permit| permit.failed(&mut refused))
            .unwrap();
        tokio::time::sleep(shortest_delay(ErrorKind::Overloaded, 5)).await;
    }
    // Another turn, while the gate still knows of them.
    let mut failures = Failures::default();
    let mut broken = error(ErrorKind::Server, None);
    let mut permit = gate.permit("m").unwrap();
    permit.failed(&mut broken);
    assert_eq!(failures.add(&broken), 1);
    let waits = gate.permit("m").map(drop).unwrap_err();
    assert!(waits.not_sent);
    let retries = failures.add(&waits);
    assert!(next_delay(4, &waits, retries, 0.0).is_some());
}

#[tokio::test(start_paused = true)]
async fn one_goes_first_and_the_others_wait_for_it() {
    let gate = Arc::new(Gate::default());
    gate.permit("m")
        .unwrap()
        .failed(&mut error(ErrorKind::Overloaded, Some(5)));
    let refused = gate.permit("m").map(drop).unwrap_err();
    assert!(refused.not_sent && refused.kind == ErrorKind::Overloaded);
    assert_eq!(refused.retry_after, Some(Duration::from_secs(5)));
    let next = gate.permit("m").map(drop).unwrap_err();
    assert_eq!(next.retry_after, Some(Duration::from_secs(5) + FIRST_PACE));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut first = gate.permit("m").unwrap();
    assert!(gate.permit("m").is_err());
    first.answered();
    assert!(gate.permit("m").is_err());
    // The answer has halved the distance.
    tokio::time::sleep(FIRST_PACE / 2).await;
    assert!(gate.permit("m").is_ok());
    assert!(gate.permit("m").is_err());
    // One that went first and was cancelled makes room.
    let gate = Arc::new(Gate::default());
    let refuse = |gate: &Arc<Gate>| {
        let mut permit = gate.permit("m").unwrap();
        permit.failed(&mut error(ErrorKind::RateLimit, Some(1)));
    };
    refuse(&gate);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let probe = gate.permit("m").unwrap();
    assert!(gate.permit("m").is_err());
    drop(probe);
    tokio::time::sleep(FIRST_PACE).await;
    assert!(gate.permit("m").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_long_delay_is_remembered_for_its_model() {
    let gate = Arc::new(Gate::default());
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    gate.permit("large")
        .unwrap()
        .failed(&mut error(ErrorKind::RateLimit, Some(7200)));
    assert!(gate.permit("small").is_ok());
    tokio::time::sleep(hours(1)).await;
    let delayed = gate.permit("large").map(drop).unwrap_err();
    assert_eq!(delayed.retry_after, Some(hours(1)));
    assert_eq!(next_delay(4, &delayed, 0, 0.0), None);
    tokio::time::sleep(hours(1)).await;
    assert!(gate.permit("large").is_ok());
    // Without end is no time.
    gate.permit("large")
        .unwrap()
        .failed(&mut error(ErrorKind::RateLimit, Some(u64::MAX)));
    let delayed = gate.permit("large").map(drop).unwrap_err();
    assert_eq!(delayed.retry_after, Some(MAX_DELAY));
}

#[tokio::test(start_paused = true)]
async fn only_what_is_about_load_closes_it() {
    for kind in [
        ErrorKind::Server,
        ErrorKind::Timeout,
        ErrorKind::Quota,
        ErrorKind::InvalidRequest,
    ] {
        let gate = Arc::new(Gate::default());
        gate.permit("m").unwrap().failed(&mut error(kind, Some(60)));
        assert!(gate.permit("m").is_ok(), "{kind:?}");
    }
}

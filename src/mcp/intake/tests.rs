use tokio::time::timeout;

use super::*;

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PROGRESS: &[u8] = br#"{"method":"notifications/progress","params":{"progressToken":1}}"#;
const LOG: &[u8] = br#"{"method":"notifications/message","params":{"data":"x"}}"#;

/// What is taken in of a server that never stops, until it has failed, and why it has.
async fn flooded(intake: &Intake, message: &[u8]) -> (u128, String) {
    let mut taken = 0;
    let flood = async {
        loop {
            intake.admit(message).await;
            taken += 1;
        }
    };
    let why = tokio::select! {
        why = intake.failed() => why,
        () = flood => unreachable!(),
    };
    (taken, why)
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_taken_in_without_a_wait() {
    let intake = Intake::of("s");
    let began = Instant::now();
    for _ in 0..1_000 {
        assert!(intake.admit(PROGRESS).await);
    }
    let list = vec![b'x'; 15 * 1024 * 1024];
    assert!(intake.admit(&list).await);
    for _ in 0..5 {
        drop(intake.request());
    }
    assert!(intake.admit(PING).await);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_flood_has_failed_after_what_its_allowance_and_the_patience_let_in() {
    for (message, price) in [(PING, MESSAGE), (LOG, SKIPPED)] {
        let intake = Intake::of("s");
        let began = Instant::now();
        let (taken, why) = flooded(&intake, message).await;
        assert!(
            why.starts_with("it sends too much: more than 2000 messages, 10 requests"),
            "{why}"
        );
        let most = (began.elapsed() + ALLOWANCE).as_nanos() / price.as_nanos();
        assert!(taken <= most && taken > most / 2, "{taken} of {most}");
        // Nothing more is taken in.
        let more = timeout(Duration::from_secs(3_600), intake.admit(message)).await;
        assert!(more.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_pauses_is_not_given_up() {
    let intake = Intake::of("s");
    let bursts = async {
        for _ in 0..10 {
            for _ in 0..8_000 {
                intake.admit(PING).await;
            }
            tokio::time::sleep(ALLOWANCE).await;
        }
    };
    tokio::select! {
        () = bursts => {}
        why = intake.failed() => panic!("{why}"),
    }
}

#[tokio::test]
async fn between_two_messages_everybody_else_has_a_turn() {
    let intake = Intake::of("s");
    let mut turns = 0;
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    let flood = async {
        for _ in 0..100 {
            intake.admit(PING).await;
        }
    };
    tokio::select! {
        () = others => {}
        () = flood => {}
    }
    assert!(turns >= 100, "{turns}");
}

#[tokio::test(start_paused = true)]
async fn progress_is_left_out_where_it_comes_too_fast_and_nothing_else_is() {
    let intake = Intake::of("s");
    assert!(intake.admit(PROGRESS).await);
    assert!(intake.admit(LOG).await);
    for _ in 0..3_000 {
        assert!(intake.admit(PING).await);
    }
    assert!(!intake.admit(PROGRESS).await);
    assert!(!intake.admit(LOG).await);
    let changed = br#"{"method":"notifications/tools/list_changed"}"#;
    for other in [PING, changed, b"{", b"", br#"{"method":5}"#] {
        assert!(intake.admit(other).await);
    }
    tokio::time::sleep(ALLOWANCE).await;
    assert!(intake.admit(PROGRESS).await);
}

#[tokio::test(start_paused = true)]
async fn a_request_costs_what_two_hundred_messages_do() {
    let intake = Intake::of("s");
    let began = Instant::now();
    for _ in 0..30 {
        drop(intake.request());
        intake.admit(PING).await;
    }
    let waited = began.elapsed();
    assert!(waited >= REQUEST * 30 - ALLOWANCE, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_stay_open_are_bounded() {
    let intake = Intake::of("s");
    let mut open: Vec<Open> = (0..MAX_OPEN).map(|_| intake.request()).collect();
    open.pop();
    open.push(intake.answer());
    assert!(!intake.failed.initialized());
    open.push(intake.request());
    let why = intake.failed().await;
    assert!(why.contains("more than 128 requests"), "{why}");
}

//! Caps together: of several owners, over days, and begun anew with what was spent before.

use futures::FutureExt as _;

use super::*;

fn micros(micros: i64) -> Money {
    Money::from_micros(micros)
}

fn config() -> BudgetConfig {
    BudgetConfig {
        user_day: None,
        daemon_day: Some(micros(100)),
        ..crate::config::for_tests().budget
    }
}

/// Returns the daemon's accounts with a clock that is set, and what was spent before.
fn at(
    time: &str,
    config: &BudgetConfig,
    before: Vec<(String, Money)>,
) -> (Spend, Arc<Mutex<Timestamp>>) {
    let now = Arc::new(Mutex::new(time.parse().unwrap()));
    let clock = Arc::clone(&now);
    let since: Since = Arc::new(move |_, _| std::future::ready(Some(before.clone())).boxed());
    let spend = Spend::new(config, Arc::new(move || *clock.lock()), since, false);
    (spend, now)
}

fn owners<'a>(session: &'a Arc<Account>, exchange: &'a Arc<Account>) -> Owners<'a> {
    Owners {
        task: None,
        exchange: Some(exchange),
        conversation: None,
        session,
        provider: "p",
    }
}

#[test]
fn a_day_ends_at_midnight_and_what_runs_then_is_paid_in_the_new_one() {
    let (spend, now) = at("2026-11-25T23:59:00Z", &config(), Vec::new());
    let (session, exchange) = (Arc::default(), Arc::default());
    let caps = spend.caps(owners(&session, &exchange), |_| false);
    assert_eq!(caps.add(micros(90)).len(), 1);
    let reached = caps.reserve(micros(20)).unwrap_err();
    assert_eq!(reached.cap.scope, BudgetScope::Daemon);
    assert!(!reached.cap.may_raise);
    let running = caps.reserve(micros(10)).unwrap();
    *now.lock() = "2026-11-26T00:00:00Z".parse().unwrap();
    // What runs is still reserved.
    let reached = caps.reserve(micros(91)).unwrap_err();
    assert_eq!(reached.stand.spent, Money::ZERO);
    running.spend(micros(30));
    let (_, stand) = caps.tightest().unwrap();
    assert_eq!((stand.spent, stand.reserved), (micros(30), Money::ZERO));
    assert_eq!(session.spent(), micros(120));
}

#[tokio::test]
async fn what_was_spent_today_counts_after_a_restart() {
    let mut config = config();
    config.provider = [(
        "p".to_owned(),
        crate::config::ProviderBudget {
            day: Some(micros(50)),
        },
    )]
    .into();
    let before = vec![("p".to_owned(), micros(45)), ("q".to_owned(), micros(30))];
    let (spend, _now) = at("2026-11-25T12:00:00Z", &config, before);
    let (session, exchange) = (Arc::default(), Arc::default());
    let caps = spend.caps(owners(&session, &exchange), |_| false);
    spend.known().await;
    spend.known().await;
    let (scope, stand) = caps.tightest().unwrap();
    assert_eq!((scope, stand.spent), (BudgetScope::Provider, micros(45)));
    let reached = caps.reserve(micros(6)).unwrap_err();
    assert_eq!(reached.cap.scope, BudgetScope::Provider);
    drop(caps.reserve(micros(5)).unwrap());
    // Nobody counts this one's day but the daemon.
    let other = Owners {
        provider: "q",
        ..owners(&session, &exchange)
    };
    let other = spend.caps(other, |_| false);
    assert_eq!(other.tightest().unwrap().1.spent, micros(75));
}

#[tokio::test(start_paused = true)]
async fn what_is_spent_at_other_daemons_counts_a_few_seconds_later() {
    let config = BudgetConfig {
        user_day: Some(micros(50)),
        ..config()
    };
    let kept = Arc::new(Mutex::new(10));
    let reads = Arc::clone(&kept);
    let since: Since = Arc::new(move |user, _| {
        let kept = *reads.lock();
        // Others have spent as much as this user.
        let spent = micros(if user.is_some() { kept } else { 2 * kept });
        std::future::ready(Some(vec![("p".to_owned(), spent)])).boxed()
    });
    let now: Timestamp = "2026-11-25T12:00:00Z".parse().unwrap();
    let spend = Spend::new(&config, Arc::new(move || now), since, true);
    let (session, exchange) = (Arc::default(), Arc::default());
    let caps = spend.caps(owners(&session, &exchange), |_| false);
    let stands = || (spend.user.account.spent(), spend.shared.daemon.spent());
    spend.known().await;
    assert_eq!(stands(), (micros(10), micros(20)));
    // What is spent here is not written yet.
    caps.add(micros(5));
    tokio::time::sleep(FRESH).await;
    spend.known().await;
    assert_eq!(stands(), (micros(15), micros(25)));
    *kept.lock() = 45;
    spend.known().await;
    assert_eq!(stands(), (micros(15), micros(25)), "it was read just now");
    tokio::time::sleep(FRESH).await;
    spend.known().await;
    assert_eq!(stands(), (micros(45), micros(90)));
    let reached = caps.reserve(micros(6)).unwrap_err();
    assert_eq!(reached.cap.scope, BudgetScope::User);
}

#[test]
fn all_caps_are_reserved_with_or_none_and_one_that_may_be_raised_comes_last() {
    let (spend, _now) = at("2026-11-25T12:00:00Z", &config(), Vec::new());
    let session = Arc::new(Account::limited(Some(micros(40))));
    let exchange = Arc::new(Account::limited(Some(micros(30))));
    let is_locked = |key: &str| key == "budget.session";
    let caps = spend.caps(owners(&session, &exchange), is_locked);
    for (amount, expected) in [
        (30, None),
        (31, Some((BudgetScope::Exchange, true))),
        (41, Some((BudgetScope::Session, false))),
        (101, Some((BudgetScope::Session, false))),
    ] {
        let reached = caps.reserve(micros(amount)).err();
        let reached = reached.map(|it| (it.cap.scope, it.cap.may_raise));
        assert_eq!(reached, expected, "{amount}");
        assert_eq!(exchange.stand().unwrap().reserved, Money::ZERO);
    }
    let reached = caps.reserve(micros(31)).unwrap_err();
    reached.cap.raise(Raise::By(micros(5)));
    assert_eq!(reached.cap.limit(), Some(micros(35)));
    drop(caps.reserve(micros(31)).unwrap());
    reached.cap.raise(Raise::Unlimited);
    assert_eq!(reached.cap.limit(), None);
    drop(caps.reserve(micros(40)).unwrap());
    assert!(caps.exhausted().is_none());
    caps.add(micros(40));
    assert_eq!(caps.exhausted().unwrap().cap.scope, BudgetScope::Session);
    drop(caps.reserve_anyway(micros(500)));
}

#[tokio::test]
async fn each_user_has_a_day_of_its_own() {
    let config = BudgetConfig {
        user_day: Some(micros(100)),
        daemon_day: None,
        ..config()
    };
    let clock: Clock = Arc::new(|| "2026-11-25T12:00:00Z".parse().unwrap());
    let since: Since = Arc::new(|user, _| {
        let spent = match user.as_ref().map(User::as_str) {
            Some("anna") => 90,
            _ => 0,
        };
        std::future::ready(Some(vec![("p".to_owned(), micros(spent))])).boxed()
    });
    let spend = Spend::new(&config, clock, since, false);
    let (session, exchange) = (Arc::default(), Arc::default());
    let left = async |spend: &Spend| {
        spend.known().await;
        let caps = spend.caps(owners(&session, &exchange), |_| false);
        let (scope, stand) = caps.tightest().unwrap();
        assert_eq!(scope, BudgetScope::User);
        stand.left()
    };
    let [anna, ben] = ["anna", "ben"].map(User::new);
    assert_eq!(left(&spend.of(&anna, None)).await, micros(10));
    assert_eq!(left(&spend.of(&ben, None)).await, micros(100));
    // What a token says only narrows, and what was spent is known once.
    let (less, more) = (Arc::new(micros(30)), Arc::new(micros(500)));
    assert_eq!(left(&spend.of(&ben, Some(&less))).await, micros(30));
    assert_eq!(left(&spend.of(&anna, Some(&more))).await, micros(10));
    drop(less);
    let caps = spend
        .of(&anna, None)
        .caps(owners(&session, &exchange), |_| false);
    caps.add(micros(5));
    assert_eq!(left(&spend.of(&anna, None)).await, micros(5));
    assert_eq!(left(&spend.of(&ben, None)).await, micros(100));
}

#[tokio::test]
async fn of_what_was_granted_to_a_user_the_least_counts_as_long_as_anybody_has_it() {
    let config = BudgetConfig {
        daemon_day: None,
        warn_at: 0.5,
        ..config()
    };
    let (spend, _now) = at("2026-11-25T12:00:00Z", &config, Vec::new());
    let (session, exchange) = (Arc::default(), Arc::default());
    let anna = User::new("anna");
    let of_anna = spend.of(&anna, None);
    let left = |spend: &Spend| {
        let caps = spend.caps(owners(&session, &exchange), |_| false);
        let tightest = caps.tightest();
        tightest.map(|(_, stand)| stand.left())
    };
    let warnings = |amount| {
        let caps = of_anna.caps(owners(&session, &exchange), |_| false);
        caps.add(micros(amount)).len()
    };
    assert_eq!(left(&of_anna), None);
    let [little, much] = [30, 100].map(|it| Arc::new(micros(it)));
    for granted in [Some(&little), Some(&much), None, Some(&much), Some(&little)] {
        let other = spend.of(&anna, granted);
        assert_eq!(
            (left(&other), left(&of_anna)),
            (Some(micros(30)), Some(micros(30)))
        );
    }
    assert_eq!(left(&spend.of(&User::new("ben"), None)), None);
    assert_eq!(warnings(20), 1);
    // Who comes again is no reason to say it again.
    of_anna.grant_day(Some(&little));
    assert_eq!(warnings(1), 0);
    drop(little);
    assert_eq!(left(&of_anna), Some(micros(79)));
    drop(much);
    assert_eq!(left(&of_anna), None);
}

#[tokio::test]
async fn a_user_who_is_there_is_not_forgotten_for_others() {
    let config = BudgetConfig {
        user_day: Some(micros(100)),
        daemon_day: None,
        ..config()
    };
    let (spend, _now) = at("2026-11-25T12:00:00Z", &config, Vec::new());
    let (session, exchange) = (Arc::default(), Arc::default());
    let anna = spend.of(&User::new("anna"), None);
    anna.known().await;
    let caps = anna.caps(owners(&session, &exchange), |_| false);
    caps.add(micros(60));
    for other in 0..=MAX_USERS {
        drop(spend.of(&User::new(&other.to_string()), None));
    }
    assert!(spend.shared.users.lock().len() < MAX_USERS);
    let again = spend.of(&User::new("anna"), None);
    let again = again.caps(owners(&session, &exchange), |_| false);
    assert_eq!(again.tightest().unwrap().1.spent, micros(60));
}

#[test]
fn what_others_spend_is_not_told_to_a_user() {
    let config = BudgetConfig {
        user_day: Some(micros(1_000)),
        ..config()
    };
    let (spend, _now) = at("2026-11-25T12:00:00Z", &config, Vec::new());
    let (session, exchange) = (Arc::default(), Arc::default());
    let of_anna = spend.of(&User::new("anna"), None);
    for (spend, expected) in [(&spend, BudgetScope::Daemon), (&of_anna, BudgetScope::User)] {
        let caps = spend.caps(owners(&session, &exchange), |_| false);
        assert_eq!(caps.tightest().unwrap().0, BudgetScope::Daemon);
        assert_eq!(caps.tightest_own().unwrap().0, expected);
    }
}

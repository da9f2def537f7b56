use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::*;

fn claims(of: &str) -> Vec<Claim> {
    of.split_whitespace()
        .map(|word| Claim {
            file: word.trim_end_matches('!').to_owned(),
            exclusive: word.ends_with('!'),
        })
        .collect()
}

/// Starts to acquire and returns the future, polled once.
fn start<'a>(locks: &'a Locks, of: &str) -> (BoxFuture<'a, Guard>, Option<Guard>) {
    let claims = claims(of);
    let holder = of.to_owned();
    let mut future: Pin<Box<dyn Future<Output = Guard> + Send + 'a>> =
        Box::pin(async move { locks.acquire(&holder, claims).await });
    let granted = future.as_mut().now_or_never();
    (future, granted)
}

#[test]
fn who_waits_for_whom() {
    // The first claims are held; the second's holders are what it waits for.
    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["a"], "a", &[]),
        (&["a!"], "b!", &[]),
        (&["a"], "a!", &["a"]),
        (&["a!"], "a", &["a!"]),
        (&["a!", "b"], "a b!", &["a!", "b"]),
        (&["a b c!"], "x c", &["a b c!"]),
        (&[""], "a!", &[]),
        (&["a a!"], "b", &[]),
    ];
    for (held, wanted, blockers) in cases {
        let locks = Locks::default();
        let guards: Vec<_> = held.iter().map(|of| start(&locks, of).1.unwrap()).collect();
        assert_eq!(
            locks.blockers(&claims(wanted)),
            *blockers,
            "{held:?} {wanted}"
        );
        let (mut waiting, granted) = start(&locks, wanted);
        assert_eq!(granted.is_some(), blockers.is_empty(), "{held:?} {wanted}");
        if granted.is_none() {
            drop(guards);
            assert!(
                waiting.as_mut().now_or_never().is_some(),
                "{held:?} {wanted}"
            );
        }
    }
}

#[test]
fn a_writer_that_waits_goes_before_later_readers() {
    let locks = Locks::default();
    let reader = start(&locks, "a").1.unwrap();
    let (mut writer, granted) = start(&locks, "a!");
    assert!(granted.is_none());
    let (mut later, granted) = start(&locks, "a");
    assert!(granted.is_none());
    drop(reader);
    assert!(later.as_mut().now_or_never().is_none());
    drop(writer.as_mut().now_or_never().unwrap());
    assert!(later.as_mut().now_or_never().is_some());
}

#[test]
fn giving_up_lets_those_behind_go_on() {
    let locks = Locks::default();
    let _reader = start(&locks, "a").1.unwrap();
    let (writer, granted) = start(&locks, "a!");
    assert!(granted.is_none());
    let (mut later, granted) = start(&locks, "a");
    assert!(granted.is_none());
    drop(writer);
    assert!(later.as_mut().now_or_never().is_some());
    assert!(locks.blockers(&claims("b!")).is_empty());
}

/// Tasks that claim random sets of files, some giving up, never meet and all come to an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_neither_meet_nor_hang() {
    let locks = Locks::default();
    let users: Arc<[AtomicI64; 5]> = Arc::default();
    let tasks: Vec<_> = (0..64_usize)
        .map(|task| {
            let (locks, users) = (locks.clone(), Arc::clone(&users));
            tokio::spawn(async move {
                for round in 0..50 {
                    let seed = task * 31 + round * 17;
                    let files: Vec<usize> = (0..5).filter(|file| (seed >> file) & 1 == 1).collect();
                    let exclusive = seed % 3 == 0;
                    let claims = files.iter().map(|file| Claim {
                        file: file.to_string(),
                        exclusive,
                    });
                    let acquiring = locks.acquire("x", claims.collect());
                    if seed % 7 == 0 {
                        tokio::pin!(acquiring);
                        drop(futures::poll!(acquiring.as_mut()));
                        continue;
                    }
                    let _guard = acquiring.await;
                    let step = if exclusive { -1_000 } else { 1 };
                    for file in &files {
                        let before = users[*file].fetch_add(step, Ordering::SeqCst);
                        assert!(if exclusive { before == 0 } else { before >= 0 });
                    }
                    tokio::task::yield_now().await;
                    for file in &files {
                        users[*file].fetch_sub(step, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(locks.table.lock().tickets.is_empty());
}

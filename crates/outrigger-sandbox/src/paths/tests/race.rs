//! Others exchange good entries with links to the outside while files are read and written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// How many reads and a quarter as many writes are tried; `OUTRIGGER_RACE_READS` asks for more.
const READS: u64 = 20_000;

fn attempts() -> u64 {
    std::env::var("OUTRIGGER_RACE_READS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(READS)
}

/// Exchanges two entries until told to stop; returns how often.
fn flip(a: &Path, b: &Path, stop: &AtomicBool) -> u64 {
    let mut flips = 0;
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
        flips += 1;
    }
    flips
}

/// Runs `work` while the entry `name` of the project and a link to the outside change places.
fn under_attack(world: &World, name: &str, target: &str, work: impl FnOnce()) {
    world.link(world.at(target), "proj/evil");
    let (good, evil) = (world.at("proj").join(name), world.at("proj/evil"));
    let stop = AtomicBool::new(false);
    let flips = thread::scope(|scope| {
        let attacker = scope.spawn(|| flip(&good, &evil, &stop));
        work();
        stop.store(true, Ordering::Relaxed);
        attacker.join().unwrap()
    });
    println!("{name} and a link to {target} changed places {flips} times");
    assert!(flips > 0, "the attacker never ran");
}

#[test]
fn reads_never_escape_through_a_flipping_folder() {
    let world = World::new();
    fs::write(world.at("outside/file"), "OUTSIDE").unwrap();
    let (mut good, mut refused) = (0_u64, 0_u64);
    under_attack(&world, "sub", "outside", || {
        // The attack is only one where both states are met; it goes on until they were.
        while good + refused < attempts() || good == 0 || refused == 0 {
            match world.read("sub/file") {
                Ok(content) => {
                    assert_eq!(content, "in sub");
                    good += 1;
                }
                Err(PathError::Forbidden(_) | PathError::Failed(_)) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        println!("{good} went through, {refused} were refused");
    });
}

#[test]
fn reads_never_escape_through_a_flipping_file() {
    let world = World::new();
    let (mut good, mut refused) = (0_u64, 0_u64);
    under_attack(&world, "file", "outside/secret", || {
        while good + refused < attempts() || good == 0 || refused == 0 {
            match world.read("file") {
                Ok(content) => {
                    assert_eq!(content, "inside");
                    good += 1;
                }
                Err(PathError::Forbidden(_) | PathError::Failed(_)) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        println!("{good} went through, {refused} were refused");
    });
}

#[test]
fn writes_never_escape_through_a_flipping_parent() {
    let world = World::new();
    let (mut written, mut refused) = (0_u64, 0_u64);
    under_attack(&world, "sub", "outside", || {
        while written + refused < attempts() / 4 || written == 0 || refused == 0 {
            match world.write("sub/new", "content") {
                Ok(_) => written += 1,
                Err(PathError::Forbidden(_) | PathError::Failed(_)) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        println!("{written} went through, {refused} were refused");
    });
    let outside: Vec<_> = fs::read_dir(world.at("outside")).unwrap().collect();
    assert_eq!(outside.len(), 1, "{outside:?}");
}

#[test]
fn a_denied_file_is_never_read_through_a_flipping_link() {
    let world = World::new();
    let mut read = 0_u64;
    under_attack(&world, "file", "proj/.env", || {
        for _ in 0..attempts() {
            if let Ok(content) = world.read("file") {
                assert_eq!(content, "inside");
                read += 1;
            }
        }
    });
    assert!(read > 0, "the good file was never met");
}

//! Roots that lie in what another command may change: the project of one session in that of another, central storage in
//! the project.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use outrigger_sandbox::{Command, Held, Mode, SpawnError};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{World, finish, run};

const MODES: [Mode; 4] = [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None];

/// How many commands run while two folders are exchanged for each other.
const RACES: usize = 40;

/// A line that works in the project as the daemon holds it, and is given it for reading only where `reads` says so, as a
/// server is.
fn held(world: &World, line: &str, reads: bool) -> Command {
    let mut command = world.bash(line);
    let dir = Dir::open_ambient_dir(world.project(), ambient_authority()).unwrap();
    command.held = vec![Held::new(world.project(), Arc::new(dir))];
    if reads {
        command.read_only = std::mem::take(&mut command.read_write);
    }
    command
}

/// Makes a folder beside the project, each with a file that says which it is.
fn other(world: &World) -> std::path::PathBuf {
    let other = world.home().join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("mark"), "another").unwrap();
    fs::write(world.project().join("mark"), "the project").unwrap();
    other
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// The file tools work in the folder that was opened; nothing runs in another one of its name.
#[tokio::test]
async fn no_command_runs_once_the_project_was_exchanged() {
    for mode in MODES {
        for reads in [false, true] {
            let world = World::new();
            let other = other(&world);
            let sandbox = world.sandbox(mode);
            let command = held(&world, "cat mark", reads);
            let output = run(&sandbox, &command).await;
            assert_eq!(output.stdout.text, "the project", "{mode} {output:?}");
            exchange(&world.project(), &other);
            let error = sandbox.spawn(&command).await.unwrap_err();
            assert!(matches!(error, SpawnError::Moved(_)), "{mode} {error}");
            let told = error.to_string();
            assert!(told.contains(world.project().to_str().unwrap()), "{told}");
            exchange(&world.project(), &other);
            let output = run(&sandbox, &command).await;
            assert_eq!(output.stdout.text, "the project", "{mode} {output:?}");
        }
    }
}

/// The same while somebody exchanges it all the time, between a look at it and the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_runs_in_a_folder_that_takes_the_projects_place_meanwhile() {
    for mode in MODES {
        let world = World::new();
        let other = other(&world);
        let sandbox = world.sandbox(mode);
        let end = Arc::new(AtomicBool::new(false));
        let (project, ended) = (world.project(), Arc::clone(&end));
        let command = held(&world, "cat mark", false);
        let exchanging = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                exchange(&project, &other);
            }
        });
        for _ in 0..RACES {
            if let Ok(mut process) = sandbox.spawn(&command).await {
                let output = finish(&mut process).await;
                assert_eq!(output.stdout.text, "the project", "{mode} {output:?}");
            }
        }
        end.store(true, Ordering::Relaxed);
        exchanging.join().unwrap();
    }
}

/// What a command exchanged for a link is not handed out to the next one.
#[tokio::test]
async fn no_link_in_the_place_of_a_root_is_followed() {
    for mode in [Mode::Full, Mode::Fallback] {
        for (root, swap) in [
            ("inner", "mv inner old; ln -s {outside} inner"),
            ("inner/data", "mv inner old; ln -s {outside} inner"),
        ] {
            let world = World::new();
            fs::create_dir_all(world.project().join("inner/data")).unwrap();
            fs::create_dir(world.outside().join("data")).unwrap();
            let sandbox = world.sandbox(mode);
            let swap = swap.replace("{outside}", &world.outside().display().to_string());
            run(&sandbox, &world.bash(&swap)).await;
            assert!(world.project().join("inner").is_symlink());
            let root = world.project().join(root);
            let mut command = world.bash(&format!("echo x > {}/planted", root.display()));
            command.read_write.push(root.clone());
            let planted = [world.outside(), world.outside().join("data")]
                .map(|folder| folder.join("planted"));
            let error = sandbox.spawn(&command).await.unwrap_err();
            assert!(matches!(error, SpawnError::Refused(_)), "{error}");
            let error = error.to_string();
            assert!(error.contains(root.to_str().unwrap()), "{error}");
            assert!(error.contains("inner is a link"), "{error}");
            assert!(!planted.iter().any(|path| path.exists()), "{mode} {root:?}");
        }
    }
}

//! File systems that somebody mounted below a root.

use std::process::Command;

use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use super::*;

/// Set in this test as a process of its own, whose mounts nobody else sees.
const CHILD: &str = "OUTRIGGER_TEST_MOUNTS";

#[test]
fn the_kernels_files_are_none_of_the_projects_and_a_full_disk_is_not_filled() {
    if std::env::var_os(CHILD).is_some() {
        return look_at_mounts();
    }
    let name = "the_kernels_files_are_none_of_the_projects_and_a_full_disk_is_not_filled";
    let test = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let mut unshare = Command::new("unshare");
    unshare.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    if !unshare
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("*** SKIPPED: {name}: no namespace of mounts ***");
        return;
    }
    let arguments: Vec<_> = unshare.get_args().map(ToOwned::to_owned).collect();
    let output = Command::new("unshare")
        .args(&arguments[..arguments.len() - 1])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn look_at_mounts() {
    let world = World::new();
    for folder in ["kernel", "small"] {
        fs::create_dir(world.at("proj").join(folder)).unwrap();
    }
    mount_bind_recursive("/proc", world.at("proj/kernel")).unwrap();
    let small = world.at("proj/small");
    mount("none", small, "tmpfs", MountFlags::empty(), c"size=1m").unwrap();
    for path in [
        "kernel/cpuinfo",
        "kernel/self/environ",
        "kernel/self/../cmdline",
    ] {
        let text = world.read(path).unwrap_err().to_string();
        assert!(text.contains("file system of the kernel"), "{path}: {text}");
    }
    let target = world.roots.map(".", Access::Read).unwrap();
    let located = world.roots.locate(&target, Access::Read).unwrap();
    let mut seen = Vec::new();
    let see = &mut |entry: &Entry<'_>| {
        seen.push(entry.relative.to_owned());
        Step::Enter
    };
    assert_eq!(located.visit(see), Ok(Visited::All));
    let below: Vec<_> = seen
        .iter()
        .filter(|path| path.starts_with("kernel"))
        .collect();
    assert_eq!(below, ["kernel"]);
    // What a process shows there is not the project's to hide; its own secret is.
    let base = world.roots.path(RootName::Project);
    let hidden = world.roots.hidden();
    assert_eq!(
        (hidden.paths, hidden.complete),
        (vec![base.join(".env")], true)
    );

    let error = world
        .write("small/file", &"x".repeat(1_000_000))
        .unwrap_err();
    assert!(error.to_string().contains("are kept free"), "{error}");
    assert!(world.write("small/file", &"x".repeat(900_000)).is_ok());
}

use super::*;

const MOUNTS: &str = "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
                      30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

#[test]
fn the_group_is_found_where_the_tree_is_mounted() {
    let unified = "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    let in_container = "40 1 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    for (own, mounts, expected) in [
        (
            "0::/user.slice/app.service\n",
            MOUNTS,
            Some("/sys/fs/cgroup/user.slice/app.service"),
        ),
        (
            "4:memory:/x\n0::/a\n",
            unified,
            Some("/sys/fs/cgroup/unified/a"),
        ),
        ("0::/docker/abc/x\n", in_container, Some("/sys/fs/cgroup/x")),
        ("0::/elsewhere\n", in_container, None),
        ("4:memory:/x\n", MOUNTS, None),
        ("0::/a\n", "24 1 0:22 / /sys rw - sysfs sysfs rw\n", None),
        ("0::/a\n", "30 24 cgroup2\n", None),
        ("", "", None),
    ] {
        assert_eq!(
            directory(own, mounts),
            expected.map(PathBuf::from),
            "{own:?}"
        );
    }
}

/// A directory that looks like a group; the kernel's part, files that appear by themselves, is played by the test.
fn group(controllers: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("cgroup.controllers"), controllers).unwrap();
    place
}

#[test]
fn the_daemon_moves_to_a_leaf_before_controllers_are_handed_out() {
    let place = group("cpu memory pids\n");
    prepare(place.path(), 4711).unwrap();
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(read("outrigger-daemon/cgroup.procs"), "4711");
    assert_eq!(read("cgroup.subtree_control"), "+memory +pids");
}

#[test]
fn a_group_that_lacks_a_controller_is_left_alone() {
    let place = group("cpu memory\n");
    let error = prepare(place.path(), 4711).unwrap_err();
    assert!(error.to_string().contains("pids"));
    assert!(!place.path().join(OWN_LEAF).exists());
}

#[test]
fn a_group_that_hands_out_nothing_gets_the_daemon_back() {
    let place = group("memory pids\n");
    fs::create_dir(place.path().join("cgroup.subtree_control")).unwrap();
    prepare(place.path(), 4711).unwrap_err();
    assert_eq!(
        fs::read_to_string(place.path().join("cgroup.procs")).unwrap(),
        "4711"
    );
}

#[test]
fn a_command_gets_its_limits() {
    let place = group("memory pids\n");
    let delegated = Delegated {
        directory: place.path().to_owned(),
    };
    let limits = Limits {
        memory: Some(1000),
        processes: Some(7),
        ..Limits::default()
    };
    let made = delegated.make(&limits).unwrap();
    for (name, value) in [
        ("pids.max", "7"),
        ("memory.max", "1000"),
        ("memory.swap.max", "0"),
    ] {
        assert_eq!(fs::read_to_string(made.join(name)).unwrap(), value);
    }
}

#[test]
fn a_plain_directory_was_not_handed_over() {
    let place = group("memory pids\n");
    assert!(!is_marked(place.path()));
}

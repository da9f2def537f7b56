use super::*;

const UNIFIED: &str = "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
                       30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

#[test]
fn groups_are_found_where_their_trees_are_mounted() {
    let hybrid = "31 24 0:27 / /cg/unified rw - cgroup2 cgroup2 rw\n\
                  32 24 0:28 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  33 24 0:29 / /cg/memory rw - cgroup cgroup rw,memory\n\
                  34 24 0:30 / /cg/systemd rw - cgroup cgroup rw,name=systemd\n";
    let in_container = "40 1 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n\
                        41 1 0:27 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
    for (own, mounts, expected) in [
        (
            "0::/user.slice/app.service\n",
            UNIFIED,
            &["/sys/fs/cgroup/user.slice/app.service"][..],
        ),
        ("0::/a/outrigger-daemon\n", UNIFIED, &["/sys/fs/cgroup/a"]),
        (
            "6:name=systemd:/x\n5:cpu,cpuacct:/\n4:memory:/x\n3:freezer:/\n0::/a\n",
            hybrid,
            &["/cg/unified/a", "/cg/cpu,cpuacct", "/cg/memory/x"],
        ),
        (
            "1:pids:/docker/abc\n0::/docker/abc/x\n",
            in_container,
            &["/sys/fs/cgroup/x", "/sys/fs/cgroup/pids"],
        ),
        ("0::/elsewhere\n", in_container, &[]),
        ("4:memory:/x\n", UNIFIED, &[]),
        ("0::/a\n", "24 1 0:22 / /sys rw - sysfs sysfs rw\n", &[]),
        ("0::/a\n", "30 24 cgroup2\n", &[]),
        ("x\n", UNIFIED, &[]),
        ("", "", &[]),
    ] {
        let found = places(own, mounts);
        let found: Vec<_> = found
            .iter()
            .map(|it| it.directory.to_str().unwrap())
            .collect();
        assert_eq!(found, expected, "{own:?}");
    }
    assert!(places("0::/\n", UNIFIED).iter().all(|it| it.is_top));
    assert!(places("0::/a\n", UNIFIED).iter().all(|it| !it.is_top));
}

fn place(version: Version, directory: &Path, controllers: &[Controller]) -> Place {
    Place {
        version,
        directory: directory.to_owned(),
        controllers: controllers.to_vec(),
        is_top: true,
    }
}

/// A directory that looks like a group of version 2 that holds one process. The kernel's part is played by the test: the
/// files are there, and no process leaves one of them.
fn group() -> tempfile::TempDir {
    let group = tempfile::tempdir().unwrap();
    fs::create_dir(group.path().join(LEAF)).unwrap();
    for (file, text) in [
        ("cgroup.events", "populated 1\n"),
        ("cgroup.procs", "815\n"),
        ("cgroup.subtree_control", ""),
        ("outrigger-daemon/cgroup.procs", ""),
    ] {
        fs::write(group.path().join(file), text).unwrap();
    }
    group
}

fn text(group: &tempfile::TempDir, file: &str) -> String {
    fs::read_to_string(group.path().join(file)).unwrap()
}

#[test]
fn processes_move_to_a_leaf_before_controllers_are_handed_out() {
    let group = group();
    let place = place(Version::Two, group.path(), &Controller::ALL);
    hand_out(&place, 4711).unwrap();
    let moved = text(&group, "outrigger-daemon/cgroup.procs");
    // Each is written by itself, here over the one before.
    assert_eq!(moved, "8151");
    assert_eq!(text(&group, "cgroup.subtree_control"), "+memory +pids +cpu");
}

#[test]
fn at_the_root_of_the_tree_nobody_is_moved() {
    let group = group();
    fs::remove_file(group.path().join("cgroup.events")).unwrap();
    let place = place(Version::Two, group.path(), &[Controller::Pids]);
    hand_out(&place, 4711).unwrap();
    assert_eq!(text(&group, "outrigger-daemon/cgroup.procs"), "");
    assert_eq!(text(&group, "cgroup.subtree_control"), "+pids");
}

#[test]
fn a_group_that_hands_out_nothing_gets_its_processes_back() {
    let group = group();
    fs::remove_file(group.path().join("cgroup.subtree_control")).unwrap();
    fs::write(group.path().join("cgroup.procs"), "").unwrap();
    let place = place(Version::Two, group.path(), &Controller::ALL);
    let reason = hand_out(&place, 4711).unwrap_err();
    assert!(matches!(reason, Ungrouped::Failed(_)), "{reason}");
    assert_eq!(text(&group, "cgroup.procs"), "4711");
}

#[test]
fn a_group_that_was_not_handed_over_is_left_alone() {
    let group = group();
    let place = Place {
        is_top: false,
        ..place(Version::Two, group.path(), &Controller::ALL)
    };
    assert_eq!(hand_out(&place, 4711), Err(Ungrouped::NotDelegated));
    assert_eq!(text(&group, "outrigger-daemon/cgroup.procs"), "");
}

#[test]
fn a_command_is_given_what_each_version_understands() {
    let all = Limits {
        memory: Some(1000),
        processes: Some(7),
        cpu_percent: Some(150),
        ..Limits::default()
    };
    let least = Limits {
        processes: None,
        ..Limits::default()
    };
    for (version, controllers, limits, expected) in [
        (
            Version::Two,
            &Controller::ALL[..],
            &all,
            &[
                ("memory.max", "1000"),
                ("memory.swap.max", "0"),
                ("pids.max", "7"),
                ("cpu.max", "150000 100000"),
            ][..],
        ),
        (
            Version::One,
            &Controller::ALL,
            &all,
            &[
                ("memory.limit_in_bytes", "1000"),
                ("memory.memsw.limit_in_bytes", "1000"),
                ("pids.max", "7"),
                ("cpu.cfs_quota_us", "150000"),
            ],
        ),
        (
            Version::Two,
            &[Controller::Pids],
            &all,
            &[("pids.max", "7")],
        ),
        (
            Version::One,
            &[Controller::Pids, Controller::Cpu],
            &least,
            &[],
        ),
    ] {
        let place = place(version, Path::new("/"), controllers);
        let group = tempfile::tempdir().unwrap();
        for (file, _) in expected {
            fs::write(group.path().join(file), "").unwrap();
        }
        let settings = place.settings(limits);
        assert_eq!(settings.len(), expected.len(), "{settings:?}");
        for setting in settings {
            setting.apply(group.path()).unwrap();
        }
        for (file, value) in expected {
            assert_eq!(text(&group, file), *value, "{version:?} {file}");
        }
    }
}

#[test]
fn a_file_for_swap_need_not_be_there_and_one_for_memory_must() {
    for version in [Version::One, Version::Two] {
        let group = tempfile::tempdir().unwrap();
        let place = place(version, group.path(), &[Controller::Memory]);
        let [memory, swap] = &place.settings(&Limits::default())[..] else {
            panic!("two settings");
        };
        swap.apply(group.path()).unwrap();
        memory.apply(group.path()).unwrap_err();
    }
}

#[test]
fn what_the_kernel_counted_says_which_limit_was_reached() {
    let (memory, processes) = (true, true);
    for (file, content, expected) in [
        ("memory.events", "oom 2\noom_kill 1\n", (memory, false)),
        ("memory.events", "max 9\noom_kill 0\n", (false, false)),
        (
            "memory.oom_control",
            "under_oom 0\noom_kill 3\n",
            (memory, false),
        ),
        (
            "memory.oom_control",
            "under_oom 0\noom_kill 0\n",
            (false, false),
        ),
        ("memory.failcnt", "12\n", (memory, false)),
        ("memory.failcnt", "0\n", (false, false)),
        ("pids.events", "max 4\n", (false, processes)),
        ("pids.events", "max 0\n", (false, false)),
        ("memory.events", "nonsense", (false, false)),
    ] {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join(file), content).unwrap();
        let found = reached(&[group.path().to_owned(), PathBuf::from("/nonexistent")]);
        assert_eq!(
            (found.memory, found.processes),
            expected,
            "{file} {content:?}"
        );
    }
}

#[test]
fn groups_of_daemons_that_are_gone_are_removed_and_no_others() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in [
        "outrigger-0123456789abcdef/command-0",
        "outrigger-fedcba9876543210/command-0",
        "outrigger-daemon",
        "outrigger-app.slice",
        "other",
    ] {
        fs::create_dir_all(path(name)).unwrap();
    }
    let lives = lock(&path("outrigger-fedcba9876543210")).unwrap();
    sweep(place.path());
    assert!(!path("outrigger-0123456789abcdef").exists());
    for name in [
        "outrigger-fedcba9876543210/command-0",
        "outrigger-daemon",
        "outrigger-app.slice",
        "other",
    ] {
        assert!(path(name).exists(), "{name}");
    }
    // Closing it would not do: a process that another test is starting may have it open for a moment.
    flock(&lives, FlockOperation::Unlock).unwrap();
    sweep(place.path());
    assert!(!path("outrigger-fedcba9876543210").exists());
}

#[test]
fn the_groups_of_a_command_go_unless_somebody_takes_them() {
    let place = tempfile::tempdir().unwrap();
    let group = place.path().join("group");
    let made = || {
        fs::create_dir(&group).unwrap();
        Made {
            paths: vec![group.clone()],
            bounds_memory: true,
        }
    };
    drop(made());
    assert!(!group.exists());
    let kept = made().keep();
    assert!(group.exists());
    remove(&kept);
    assert!(!group.exists());
}

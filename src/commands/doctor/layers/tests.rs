use super::*;
use crate::commands::doctor::finding;
use crate::sandbox::LandlockReport;

const HELD: LimitsReport = LimitsReport {
    cgroup: Some(2),
    memory: HeldBy::Cgroup,
    cpu: HeldBy::Cgroup,
    processes: HeldBy::Cgroup,
    file_size: HeldBy::Rlimit,
    ungrouped: None,
};

/// A machine on which everything works.
fn whole() -> (SandboxReport, Facts) {
    let report = SandboxReport {
        mode: Mode::Full,
        commands: vec!["namespaces", "landlock", "seccomp", "rlimits", "cgroup"],
        landlock: Some(LandlockReport {
            abi: 7,
            missing: Vec::new(),
        }),
        network: "off",
        loopback: "own",
        limits: HELD,
        caches: Vec::new(),
        refused: Vec::new(),
    };
    let facts = Facts {
        has_namespaces: true,
        has_filters: true,
        program: Some("/usr/local/bin/outrigger".into()),
        modules: Some("capability,landlock,apparmor".to_owned()),
        ..Facts::default()
    };
    (report, facts)
}

/// The same without namespaces, for the reason that the kernel gives.
fn fallback() -> (SandboxReport, Facts) {
    let (mut report, facts) = whole();
    report.mode = Mode::Fallback;
    report.loopback = "none";
    report.commands.retain(|layer| *layer != "namespaces");
    let reason = "cannot confine the command (Namespaces): unshare: not permitted";
    report.refused.push((Mode::Full, reason.to_owned()));
    (report, facts)
}

/// The same without Landlock.
fn limits() -> (SandboxReport, Facts) {
    let (mut report, facts) = fallback();
    report.mode = Mode::Limits;
    report.commands.retain(|layer| *layer != "landlock");
    report.landlock = None;
    let reason = "cannot confine the command (Landlock): not supported";
    report.refused = vec![
        (Mode::Full, reason.to_owned()),
        (Mode::Fallback, reason.to_owned()),
    ];
    (report, facts)
}

fn line(report: &SandboxReport, facts: &Facts, layer: &str) -> String {
    let text = finding::text(&layers(report, facts));
    let mut lines = text.lines();
    let line = lines.find(|line| line.split_whitespace().nth(1) == Some(layer));
    line.expect("a line for each layer").to_owned()
}

#[test]
fn each_layer_that_is_there_is_a_line() {
    let (report, facts) = whole();
    let text = finding::text(&layers(&report, &facts));
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.lines().all(|line| line.starts_with("ok")), "{text}");
    assert!(!text.contains("->"), "{text}");
    assert!(text.contains("version 2 bounds memory, processes, processor time\n"));
}

#[test]
fn why_there_are_no_namespaces_and_what_brings_them() {
    type Change = fn(&mut Facts);
    let cases: [(Change, &[&str]); 9] = [
        (
            |facts| facts.restricted = Some(1),
            &[
                "AppArmor",
                "(config/apparmor/outrigger)",
                "`outrigger doctor --apparmor-profile | sudo tee /etc/apparmor.d/outrigger`",
                "`sudo apparmor_parser -r /etc/apparmor.d/outrigger`",
            ],
        ),
        (
            |facts| {
                facts.restricted = Some(1);
                facts.program = Some("/home/u/.cargo/bin/outrigger".into());
            },
            &["not for /home/u/.cargo/bin/outrigger; then load"],
        ),
        (
            |facts| {
                facts.restricted = Some(1);
                facts.is_root = true;
            },
            &["refused here"],
        ),
        (|facts| facts.restricted = Some(0), &["refused here"]),
        (
            |facts| facts.allowed = Some(0),
            &[
                "unprivileged_userns_clone is 0",
                "unprivileged_userns_clone=1",
            ],
        ),
        (
            |facts| facts.most_namespaces = Some(0),
            &["max_user_namespaces is 0", "max_user_namespaces=10000"],
        ),
        (|facts| facts.has_namespaces = false, &["CONFIG_USER_NS"]),
        (
            |facts| {
                facts.is_container = true;
                facts.restricted = Some(1);
            },
            &[
                "seccomp",
                "systempaths",
                "on the machine itself `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
            ],
        ),
        (
            |_| {},
            &["refused here", "RestrictNamespaces", "not permitted)"],
        ),
    ];
    for (change, words) in cases {
        let (report, mut facts) = fallback();
        change(&mut facts);
        let line = line(&report, &facts, "namespaces");
        assert!(
            line.starts_with("warning") && line.contains(" -> "),
            "{line}"
        );
        for word in words {
            assert!(line.contains(word), "{word}: {line}");
        }
    }
}

#[test]
fn why_there_is_no_landlock_and_what_brings_it() {
    type Change = fn(&mut Facts);
    let cases: [(Change, &str); 3] = [
        (
            |facts| facts.modules = Some("capability,yama".to_owned()),
            "`lsm=landlock,capability,yama`",
        ),
        (|facts| facts.is_container = true, "landlock_restrict_self"),
        (|facts| facts.modules = None, "CONFIG_SECURITY_LANDLOCK"),
    ];
    for (change, words) in cases {
        let (report, mut facts) = limits();
        change(&mut facts);
        let landlock = line(&report, &facts, "landlock");
        assert!(landlock.starts_with("warning"), "{landlock}");
        assert!(landlock.contains(words), "{words}: {landlock}");
        // What does not work without it is no fault of the namespaces.
        let namespaces = line(&report, &facts, "namespaces");
        assert!(
            namespaces.contains("another layer is missing"),
            "{namespaces}"
        );
    }
    let (mut report, facts) = whole();
    report.landlock = Some(LandlockReport {
        abi: 3,
        missing: vec!["ports", "devices"],
    });
    let old = line(&report, &facts, "landlock");
    assert!(
        old.starts_with("ok")
            && old.contains("version 3, which leaves open: ports, devices -> a newer kernel"),
        "{old}"
    );
}

#[test]
fn why_there_is_no_filter_for_system_calls() {
    for (mode, has_filters, words) in [
        (Mode::Limits, true, "no filter for"),
        (Mode::None, false, "CONFIG_SECCOMP_FILTER"),
        (Mode::None, true, "(because)"),
    ] {
        let (mut report, mut facts) = limits();
        report.mode = mode;
        report.commands.clear();
        report.refused.push((Mode::Limits, "because".to_owned()));
        facts.has_filters = has_filters;
        let line = line(&report, &facts, "seccomp");
        assert!(
            line.starts_with("warning") && line.contains(words),
            "{line}"
        );
    }
}

#[test]
fn why_control_groups_do_not_hold_commands_and_what_brings_them() {
    let none = |processes| LimitsReport {
        cgroup: None,
        memory: HeldBy::Rlimit,
        cpu: HeldBy::None,
        processes,
        ..HELD
    };
    let some = LimitsReport {
        cpu: HeldBy::None,
        ..HELD
    };
    let not_writable = Ungrouped::NotWritable("/sys/fs/cgroup/pids".into());
    for (limits, reason, state, words) in [
        (
            none(HeldBy::Rlimit),
            Ungrouped::NotDelegated,
            "absent",
            &[
                "none",
                "each process by itself: memory, processes",
                "-p Delegate=yes",
            ][..],
        ),
        (
            none(HeldBy::None),
            not_writable,
            "warning",
            &[
                "not bounded: processes, processor time",
                "/sys/fs/cgroup/pids",
                "takes root",
            ],
        ),
        (
            some,
            Ungrouped::Lacks(vec!["cpu"]),
            "absent",
            &[
                "version 2 bounds memory, processes;",
                "lacks cpu",
                "user@.service",
            ],
        ),
        (
            none(HeldBy::Rlimit),
            Ungrouped::Absent,
            "absent",
            &["mount -t cgroup2"],
        ),
        (
            none(HeldBy::Rlimit),
            Ungrouped::Failed("a: b".to_owned()),
            "absent",
            &["a: b"],
        ),
    ] {
        let (mut report, mut facts) = whole();
        report.limits = LimitsReport {
            ungrouped: Some(reason),
            ..limits
        };
        let line = |facts: &Facts| line(&report, facts, "cgroup");
        let outside = line(&facts);
        assert!(outside.starts_with(state), "{outside}");
        for word in words {
            assert!(outside.contains(word), "{word}: {outside}");
        }
        facts.is_container = true;
        assert!(line(&facts).contains("pids_limit"));
    }
}

/// The profile is for where the advice says that it is for.
#[test]
fn the_profile_names_the_program_where_the_advice_has_it() {
    let places = PROFILED.map(|path| {
        let folder = path.strip_suffix("/outrigger").unwrap();
        folder.trim_start_matches('/')
    });
    let line = format!(
        "profile outrigger /{{{}}}/outrigger flags=(unconfined) {{",
        places.join(",")
    );
    assert!(PROFILE.contains(&line), "{line}");
    assert!(PROFILE.contains("\n  userns,\n"));
    for command in [
        "outrigger doctor --apparmor-profile | sudo tee /etc/apparmor.d/outrigger",
        "sudo apparmor_parser -r /etc/apparmor.d/outrigger",
    ] {
        assert!(PROFILE.contains(command) && profile(None).contains(command));
    }
}

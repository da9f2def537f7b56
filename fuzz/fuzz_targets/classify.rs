#![no_main]

use std::path::Path;

use outrigger_shell::{Classification, Secrets, Surroundings, classify};

fn judge(line: &str) -> Classification {
    let secrets = Secrets::default();
    let surroundings = Surroundings {
        project_root: Path::new("/home/ada/project"),
        central_root: Path::new("/home/ada/outrigger/projects/project"),
        home: Some(Path::new("/home/ada")),
        trusted_program: &|_| true,
        unhidden: None,
        secrets: &secrets,
    };
    classify(line, &surroundings)
}

// The same properties as `the_level_only_rises` in `crates/outrigger-shell/src/tests/properties.rs`.
libfuzzer_sys::fuzz_target!(|line: &str| {
    let alone = judge(line);
    assert_eq!(alone, judge(line), "the verdict depends on more than the line");
    // What cannot be read to its end may go on in what is added: an open quote, a backslash.
    if alone.findings.iter().any(|finding| finding.rule == "syntax") {
        return;
    }
    for more in ["; sudo x", "\nsudo x"] {
        let both = judge(&format!("{line}{more}"));
        assert!(both.level >= alone.level, "{line:?} is milder with {more:?}");
    }
});

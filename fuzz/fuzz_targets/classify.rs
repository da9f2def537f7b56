#![no_main]

use std::path::Path;

use outrigger::classifier::{Classification, Surroundings, classify};

fn judge(line: &str) -> Classification {
    let surroundings = Surroundings {
        project_root: Path::new("/home/ada/project"),
        central_root: Path::new("/home/ada/outrigger/projects/project"),
        home: Some(Path::new("/home/ada")),
        trusted_program: &|_| true,
    };
    classify(line, &surroundings)
}

// The same properties as `the_level_only_rises` in `src/classifier/tests/properties.rs`.
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

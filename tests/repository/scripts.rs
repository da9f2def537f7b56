//! Scripts remove nothing but what they made.

use std::io::ErrorKind;
use std::process::Command;

use super::support::root;

#[test]
fn a_folder_with_something_of_others_in_it_is_left_alone() {
    let page = "clients/typescript/build.mjs";
    for (program, script, more) in [
        ("bash", ".ci/pypi", &["nothing==0"][..]),
        ("node", page, &[][..]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine");
        std::fs::write(&file, "mine").unwrap();
        let run = Command::new(program)
            .arg(root().join(script))
            .arg(folder.path())
            .args(more)
            .output();
        let run = match run {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                println!("*** SKIPPED: {script}: there is no {program} ***");
                continue;
            }
            run => run.unwrap(),
        };
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success(), "{script}");
        assert!(said.contains("not empty"), "{script}: {said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine", "{script}");
    }
}

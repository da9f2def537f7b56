use std::fs;

use super::*;

fn names() -> Vec<String> {
    vec!["AGENTS.md".to_owned(), "CLAUDE.md".to_owned()]
}

struct Place {
    folder: tempfile::TempDir,
    roots: Roots,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = crate::sandbox::canonicalize(folder.path()).unwrap();
        let project = real.join("project");
        fs::create_dir(&project).unwrap();
        let roots = Roots::open(&project, &real.join("central"), None).unwrap();
        Self { folder, roots }
    }

    fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder.path().join("project").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn read(&self, folder: &str) -> Option<Result<Words, String>> {
        of_folder(&self.roots, folder, &names(), &Redactor::default())
    }
}

#[test]
fn the_first_name_of_a_folder_counts_and_bytes_make_the_hash() {
    let place = Place::new();
    assert_eq!(place.read(""), None);
    place.file("CLAUDE.md", "second");
    assert_eq!(place.read("").unwrap().unwrap().path, "CLAUDE.md");
    place.file("AGENTS.md", "\u{feff}first\r\nline\u{200b}");
    let words = place.read("").unwrap().unwrap();
    assert_eq!((words.path.as_str(), words.bytes), ("AGENTS.md", 17));
    assert_eq!(words.text, "first\nline\\u{200b}");
    assert!(words.absolute.ends_with("project/AGENTS.md"));
    place.file("a/b/AGENTS.md", "first\nline");
    let below = place.read("a/b").unwrap().unwrap();
    assert_eq!(below.path, "a/b/AGENTS.md");
    assert_ne!(below.sha256, words.sha256);
    assert_eq!(place.read("a"), None);
    place.file("a/AGENTS.md", " \n");
    assert_eq!(place.read("a"), None);
}

#[test]
fn what_is_too_large_or_no_text_is_not_taken() {
    let place = Place::new();
    for (bytes, expected) in [
        (vec![b'x'; MAX_BYTES], Ok(MAX_BYTES)),
        (vec![b'x'; MAX_BYTES + 1], Err("larger than 32 KiB")),
        (vec![0xff, 0xfe], Err("no UTF-8")),
    ] {
        place.file("AGENTS.md", bytes);
        match (place.read("").unwrap(), expected) {
            (Ok(words), Ok(bytes)) => assert_eq!(words.bytes, bytes),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (read, expected) => panic!("{read:?} {expected:?}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn nothing_outside_is_read_and_nothing_is_waited_for() {
    let place = Place::new();
    let project = place.folder.path().join("project");
    fs::write(place.folder.path().join("secret"), "outside").unwrap();
    std::os::unix::fs::symlink("../secret", project.join("AGENTS.md")).unwrap();
    assert!(place.read("").unwrap().is_err());
    // A link that stays inside is no way out.
    fs::remove_file(project.join("AGENTS.md")).unwrap();
    place.file("docs/rules.md", "inside");
    std::os::unix::fs::symlink("docs/rules.md", project.join("AGENTS.md")).unwrap();
    assert_eq!(place.read("").unwrap().unwrap().text, "inside");
    fs::remove_file(project.join("AGENTS.md")).unwrap();
    let pipe = project.join("AGENTS.md");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(place.read("").unwrap().is_err());
    assert!(place.read("../elsewhere").unwrap().is_err());
}

#[test]
fn the_users_own_are_read_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let read = || of_user(folder.path(), &names(), None, &Redactor::default());
    assert_eq!(read(), None);
    fs::write(folder.path().join("AGENTS.md"), "mine").unwrap();
    let words = read().unwrap().unwrap();
    assert!(words.is_users && words.text == "mine");
}

#[cfg(unix)]
#[test]
fn what_is_named_as_the_users_own_and_lies_in_the_project_is_the_projects() {
    let place = Place::new();
    let settings = place.folder.path().join("settings");
    fs::create_dir(&settings).unwrap();
    place.file("docs/AGENTS.md", "of the project");
    std::os::unix::fs::symlink("../project/docs/AGENTS.md", settings.join("AGENTS.md")).unwrap();
    let read = || {
        let own = of_user(
            &settings,
            &names(),
            Some(&place.roots),
            &Redactor::default(),
        );
        own.unwrap()
    };
    let words = read().unwrap();
    assert_eq!(
        (words.path.as_str(), words.is_users),
        ("docs/AGENTS.md", false)
    );
    assert_eq!(place.read("docs").unwrap().unwrap(), words);
    // Where a link of the project leads is the project's to say, and no file of the project.
    let project = place.folder.path().join("project");
    fs::remove_file(project.join("docs/AGENTS.md")).unwrap();
    fs::write(place.folder.path().join("secret"), "outside").unwrap();
    std::os::unix::fs::symlink("../../secret", project.join("docs/AGENTS.md")).unwrap();
    assert!(read().unwrap_err().contains("a link in the project"));
}

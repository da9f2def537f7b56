use std::fs;

use super::*;
use crate::sandbox::paths::Reach;

fn redactor() -> Redactor {
    let redactor = Redactor::default();
    redactor.add("hunter2-hunter2");
    redactor
}

fn read(name: &str, text: &str) -> Result<Skill, String> {
    let words = Words {
        path: format!("skills/{name}/SKILL.md"),
        absolute: String::new(),
        is_users: false,
        sha256: String::new(),
        bytes: text.len(),
        text: text.to_owned(),
    };
    skill(name, format!("skills/{name}"), words, &redactor())
}

#[test]
fn a_skill_says_its_name_and_what_it_is_for() {
    let skill = read(
        "pdf",
        "---\nname: pdf\ndescription: >\n  Reads PDFs.\n  Use it for forms.\nallowed-tools: Bash(pdftotext:*) Read\nlicense: MIT\nmetadata:\n  a: [1, 2]\n---\n# PDF\n---\n",
    )
    .unwrap();
    assert_eq!(skill.name, "pdf");
    assert_eq!(skill.description, "Reads PDFs. Use it for forms.");
    assert_eq!(
        skill.allowed_tools.as_deref(),
        Some("Bash(pdftotext:*) Read")
    );
    let list = read(
        "a-1",
        "---\nname: a-1\ndescription: d\nallowed-tools: [Read, Bash]\n---",
    )
    .unwrap();
    assert_eq!(list.allowed_tools.as_deref(), Some("Read, Bash"));
}

#[test]
fn what_is_no_skill_is_said() {
    let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1_025));
    for (name, text, why) in [
        ("a", "# no front\n", "begins with"),
        ("a", "---\nname: a\ndescription: d\n", "begins with"),
        (
            "a",
            "---\nname: b\ndescription: d\n---\n",
            "that of its folder",
        ),
        ("A", "---\nname: A\ndescription: d\n---\n", "small letters"),
        (
            "a",
            "---\nname: ../a\ndescription: d\n---\n",
            "small letters",
        ),
        (
            "a",
            "---\nname: a\ndescription: \"\"\n---\n",
            "needs a description",
        ),
        ("a", long.as_str(), "needs a description"),
        ("a", "---\nname: a\n---\n", "skills/a/SKILL.md"),
        ("a", "---\nname: [\n---\n", "skills/a/SKILL.md"),
    ] {
        let problem = read(name, text).unwrap_err();
        assert!(problem.contains(why), "{text}: {problem}");
    }
}

#[test]
fn skills_of_a_project_and_of_the_user_are_found_in_order() {
    let place = tempfile::tempdir().unwrap();
    let real = crate::sandbox::canonicalize(place.path()).unwrap();
    let lay = |path: &str, text: &str| {
        let path = real.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let text = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nbody\n");
    for name in ["b", "a"] {
        lay(
            &format!("project/.agents/skills/{name}/SKILL.md"),
            &text(name),
        );
        lay(&format!("settings/skills/{name}/SKILL.md"), &text(name));
    }
    lay("project/.agents/skills/empty/README.md", "none");
    lay("settings/skills/a/more/x.txt", "beside");
    lay("settings/secret", "outside");
    for denied in [".env", "more/credentials.json", "a.pem", "my_secrets.py"] {
        lay(&format!("settings/skills/a/{denied}"), "TOKEN");
    }
    let roots = Roots::open(&real.join("project"), &real.join("central"), None).unwrap();
    let redactor = Redactor::default();
    let folders = [".agents/skills".to_owned(), ".claude/skills".to_owned()];
    let found = of_the_project(&roots, &folders, &redactor);
    let names: Vec<String> = found.into_iter().map(|it| it.unwrap().folder).collect();
    assert_eq!(names, [".agents/skills/a", ".agents/skills/b"]);
    let given = [(real.join("settings/skills"), Reach::ReadOnly)];
    let with_skills = Roots::open(&real.join("project"), &real.join("central"), None);
    let with_skills = with_skills.unwrap().with_further(&given).unwrap();
    // Where the folder was made later, commands do not have it.
    for (roots, expected) in [(&roots, false), (&with_skills, true)] {
        let own = of_the_user(&real.join("settings"), Some(roots), &redactor);
        assert!(
            own.iter()
                .all(|it| it.as_ref().unwrap().is_given == expected)
        );
    }
    let own = of_the_user(&real.join("settings"), Some(&roots), &redactor);
    let own: Vec<Skill> = own.into_iter().map(Result::unwrap).collect();
    assert!(own.len() == 2 && own[0].words.is_users);
    assert_eq!(
        beside(&own[0], "more/x.txt", &redactor).unwrap().text,
        "beside"
    );
    for path in ["../../secret", "/etc/passwd", "", "more", "none"] {
        assert!(beside(&own[0], path, &redactor).is_err(), "{path}");
    }
    for path in [".env", "more/credentials.json", "./a.pem", "my_secrets.py"] {
        let why = beside(&own[0], path, &redactor).unwrap_err();
        assert!(why.contains("may not be read"), "{why}");
    }
    #[cfg(unix)]
    {
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(to, real.join("settings/skills").join(at)).unwrap();
        };
        link("../../secret", "a/out");
        link(".env", "a/innocent");
        assert!(beside(&own[0], "out", &redactor).is_err());
        assert!(beside(&own[0], "innocent", &redactor).is_err());
        // A skill that lies in the project is one of the project's.
        lay("project/lent/c/SKILL.md", &text("c"));
        link("../../project/lent/c", "c");
        let own = of_the_user(&real.join("settings"), Some(&roots), &redactor);
        let lent = own.last().unwrap().as_ref().unwrap();
        assert!(!lent.words.is_users);
        assert_eq!(lent.folder, "lent/c");
    }
}

#[test]
fn what_yaml_makes_of_its_escapes_is_neither_hidden_nor_a_secret() {
    let text = r#"---
name: pdf
description: "Reads\u200b PDFs.\U000E0049 \e[2K \x68unter2-hunter2"
allowed-tools: ["Read\u202e", "a\nb"]
---
"#;
    let skill = read("pdf", text).unwrap();
    assert_eq!(
        skill.description,
        r"Reads\u{200b} PDFs.\u{e0049} \u{1b}[2K [redacted]"
    );
    assert_eq!(skill.allowed_tools.as_deref(), Some(r"Read\u{202e}, a b"));
    let problem = read("pdf", "---\nname: \"\\u200b\"\ndescription: d\n---\n").unwrap_err();
    assert!(!problem.contains('\u{200b}'), "{problem}");
}

#[test]
fn so_many_skills_are_read_and_so_much_of_them() {
    let place = tempfile::tempdir().unwrap();
    let real = crate::sandbox::canonicalize(place.path()).unwrap();
    let roots = || Roots::open(&real.join("project"), &real.join("central"), None).unwrap();
    let lay = |name: &str, more: usize| {
        let folder = real.join("project/skills").join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "---\nname: {name}\ndescription: d\n---\n{}",
            "x".repeat(more)
        );
        fs::write(folder.join(FILE), text).unwrap();
    };
    let found = || {
        let mut found = of_the_project(&roots(), &["skills".to_owned()], &redactor());
        let last = found.pop().unwrap();
        (found.iter().filter(|it| it.is_ok()).count(), last)
    };
    for number in 0..=MAX_SKILLS {
        lay(&format!("s{number}"), 0);
    }
    let (count, last) = found();
    assert_eq!(count, MAX_SKILLS);
    assert!(last.unwrap_err().contains("more than 64 skills"));
    for number in 0..=MAX_SKILLS {
        lay(&format!("s{number}"), 30_000);
    }
    let (count, last) = found();
    assert_eq!(count, MAX_BYTES / 30_050);
    assert!(last.unwrap_err().contains("more than 1024 KiB"));
    for number in 0..=MAX_ENTRIES {
        fs::create_dir_all(real.join(format!("project/skills/empty{number}"))).unwrap();
    }
    let found = of_the_project(&roots(), &["skills".to_owned()], &redactor());
    let first = found.into_iter().next().unwrap();
    assert!(first.unwrap_err().contains("more than 1024 entries"));
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let deep = format!(
        "---\nname: a\ndescription: d\nmetadata: {}\n---\n",
        "[".repeat(20_000)
    );
    assert!(read("a", &deep).is_err());
}

use std::fs;

use super::*;

fn read(name: &str, text: &str) -> Result<Skill, String> {
    let words = Words {
        path: format!("skills/{name}/SKILL.md"),
        absolute: String::new(),
        is_users: false,
        sha256: String::new(),
        bytes: text.len(),
        text: text.to_owned(),
    };
    skill(name, format!("skills/{name}"), words)
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
    let roots = Roots::open(&real.join("project"), &real.join("central"), None).unwrap();
    let redactor = Redactor::default();
    let folders = [".agents/skills".to_owned(), ".claude/skills".to_owned()];
    let found = of_the_project(&roots, &folders, &redactor);
    let names: Vec<String> = found.into_iter().map(|it| it.unwrap().folder).collect();
    assert_eq!(names, [".agents/skills/a", ".agents/skills/b"]);
    let own = of_the_user(&real.join("settings"), &redactor);
    let own: Vec<Skill> = own.into_iter().map(Result::unwrap).collect();
    assert!(own.len() == 2 && own[0].words.is_users);
    assert_eq!(
        beside(&own[0], "more/x.txt", &redactor).unwrap().text,
        "beside"
    );
    for path in ["../../secret", "/etc/passwd", "", "more", "none"] {
        assert!(beside(&own[0], path, &redactor).is_err(), "{path}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../../secret", real.join("settings/skills/a/out")).unwrap();
        assert!(beside(&own[0], "out", &redactor).is_err());
    }
}

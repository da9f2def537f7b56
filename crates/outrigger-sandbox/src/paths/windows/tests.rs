#[cfg(windows)]
mod real;

use super::*;

/// What a path comes to with a root at `C:\Users\me\proj`: the path below it, or a word for why not.
fn resolve(path: &str) -> String {
    let root = read(r"C:\Users\me\proj").unwrap();
    let below = read(path).and_then(|written| {
        let names = match written.drive {
            None => Some(written.names),
            Some(_) => below(&written, &root),
        };
        let names = names.ok_or(Refused::Outside)?;
        check(&names)?;
        Ok(names.join("/"))
    });
    match below {
        Ok(below) => below,
        Err(Refused::Outside) => "OUTSIDE".to_owned(),
        Err(Refused::Name { name, .. }) => format!("NAME {name}"),
    }
}

#[test]
fn each_way_to_write_a_path_has_one_meaning_or_none() {
    for (path, meaning) in [
        ("src/main.rs", "src/main.rs"),
        (r"src\main.rs", "src/main.rs"),
        (r".\src/\main.rs", "./src/main.rs"),
        (r"..\x", "../x"),
        (r"C:\Users\me\proj\src", "src"),
        ("C:/Users/me/proj/src", "src"),
        (r"c:\users\ME\Proj\Src", "Src"),
        ("/c/Users/me/proj/src", "src"),
        ("/C/users/me/proj", ""),
        (r"C:\Users\me\proj", ""),
        (r"C:\Users\me\proj\..\other", "../other"),
        (r"C:\Users\me\proj-evil\x", "OUTSIDE"),
        (r"C:\Users\me", "OUTSIDE"),
        (r"D:\Users\me\proj\src", "OUTSIDE"),
        ("/d/Users/me/proj/src", "OUTSIDE"),
        (r"C:\Windows\System32", "OUTSIDE"),
        ("/etc/passwd", "OUTSIDE"),
        (r"\Users\me\proj\src", "OUTSIDE"),
        ("/Users/me/proj/src", "OUTSIDE"),
        // In the folder that the process has on a drive.
        ("C:src", "OUTSIDE"),
        ("C:", "OUTSIDE"),
        ("D:..\\x", "OUTSIDE"),
        // Another machine, in each spelling.
        (r"\\server\share\x", "OUTSIDE"),
        ("//server/share/x", "OUTSIDE"),
        (r"\/server\share\x", "OUTSIDE"),
        (r"/\server\share\x", "OUTSIDE"),
        (r"\\localhost\C$\Users\me\proj\x", "OUTSIDE"),
        (r"\\?\UNC\server\share\x", "OUTSIDE"),
        // Past the rules of names, and devices.
        (r"\\?\C:\Users\me\proj\src", "OUTSIDE"),
        ("//?/C:/Users/me/proj/src", "OUTSIDE"),
        (r"\??\C:\Users\me\proj\src", "OUTSIDE"),
        (r"\\.\C:\Users\me\proj\src", "OUTSIDE"),
        (r"\\.\PhysicalDrive0", "OUTSIDE"),
        (r"\\.\pipe\x", "OUTSIDE"),
        (r"\\.\NUL", "OUTSIDE"),
        (r"\Device\HarddiskVolume1\x", "OUTSIDE"),
        ("GLOBALROOT", "GLOBALROOT"),
    ] {
        assert_eq!(resolve(path), meaning, "{path}");
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        // Devices, in any case, with any ending, in any folder.
        "CON",
        "con",
        "NUL",
        "nul.txt",
        "con.tar.gz",
        "Aux.c",
        "PRN",
        "COM1",
        "com9.log",
        "COM0",
        "LPT1",
        "lpt3.x",
        "COM\u{b9}",
        "LPT\u{b3}.txt",
        "CONIN$",
        "conout$",
        "CLOCK$",
        "con .txt",
        "nul  .x",
        // Streams.
        "a.txt:b",
        "a.txt::$DATA",
        ".env:",
        ":x",
        "a:b:c",
        ".env::$data",
        // Dots and blanks at the end.
        "a.",
        "a ",
        ".env.",
        ".env ",
        ".env. .",
        "...",
        ". .",
        "a..",
        // Patterns, and what no name has.
        "a*",
        "a?",
        "a<b",
        "a>b",
        "a|b",
        "a\"b",
        "a\u{1}b",
        "a\tb",
        // Short names.
        "ENV~1",
        "env~1",
        "PROGRA~1",
        "SECRET~1.TXT",
        "a~1",
        "ID_RSA~1",
        "CREDEN~2.JSO",
        "~1",
    ] {
        assert!(refused(name).is_some(), "{name:?}");
        assert_eq!(
            resolve(&format!("sub/{name}")),
            format!("NAME {name}"),
            "{name}"
        );
        let absolute = format!(r"C:\Users\me\proj\{name}\file");
        assert_eq!(resolve(&absolute), format!("NAME {name}"), "{name}");
    }
}

#[test]
fn ordinary_names_are_not() {
    for name in [
        "a",
        ".",
        "..",
        ".env",
        ".gitignore",
        "a b",
        " a",
        "console",
        "CONSOLE.txt",
        "nullable",
        "com",
        "COM",
        "COM10",
        "com1x",
        "lptx",
        "aux_",
        "prn2.txt",
        "a.con",
        "~",
        "a~",
        "~a",
        "file.~1~",
        "a~b.txt",
        "longername~1",
        "name~1.json",
        "a.b~1",
        "x\u{e9}",
        "caf\u{e9}~",
        "a&b",
        "a%b",
        "a;b",
        "a'b",
        "#x",
        "$x",
        "[id]",
    ] {
        assert_eq!(refused(name), None, "{name:?}");
    }
    assert!(refused(&"x".repeat(MAX_NAME)).is_none());
    assert!(refused(&"x".repeat(MAX_NAME + 1)).is_some());
    // Two units each.
    assert!(refused(&"\u{1f600}".repeat(128)).is_some());
}

#[test]
fn a_path_is_written_in_one_form() {
    for (path, text) in [
        ("c:/a//b/", r"C:\a\b"),
        ("/c/a", r"C:\a"),
        (r"a/b\c", r"a\b\c"),
        ("c:/", r"C:\"),
    ] {
        assert_eq!(read(path).unwrap().text(), text, "{path}");
    }
}

#[test]
fn folders_of_the_system_are_no_roots() {
    for (folder, refused) in [
        (r"C:\", true),
        (r"D:\", true),
        (r"C:\Windows", true),
        (r"c:\WINDOWS\Temp\x", true),
        (r"D:\Program Files\x", true),
        (r"C:\Program Files (x86)", true),
        (r"C:\ProgramData\x", true),
        (r"C:\Users", true),
        (r"C:\Users\Public", true),
        (r"C:\Users\me\proj", false),
        (r"C:\Users\Public\proj", false),
        (r"C:\work", false),
        (r"D:\src\Windows", false),
        (r"C:\windows-app", false),
    ] {
        let folder = read(folder).unwrap();
        assert_eq!(of_the_system(&folder).is_some(), refused, "{folder:?}");
    }
    for (folder, refused) in [
        (r"AppData\Roaming\Code", true),
        ("appdata", true),
        (r"AppData\Local\Temp", true),
        (r"AppData\Local\Temp\work", false),
        (r"AppData\Local\Programs", true),
        ("src", false),
        ("", false),
    ] {
        let names = read(folder).unwrap().names;
        assert_eq!(of_programs(&names), refused, "{folder}");
    }
}

use std::fs;
use std::sync::Arc;

use super::*;
use crate::config::NamedValue;
use crate::sandbox;
use crate::sandbox::paths::Roots;

/// A launcher in folders of the test's own.
fn launcher(folder: &Path) -> Launcher {
    let (project, central) = (folder.join("project"), folder.join("state/central"));
    fs::create_dir_all(&project).unwrap();
    let home = folder.join("home");
    fs::create_dir_all(&home).unwrap();
    let roots = Arc::new(Roots::open(&project, &central, None).unwrap());
    let sandbox = Sandbox::new(sandbox::Settings::new(None));
    let parent = [
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
        ("API_KEY".to_owned(), "not passed on".to_owned()),
    ];
    let exec = Exec::new(sandbox.clone(), roots, parent, &[], 1_000);
    Launcher::new(exec, sandbox, Some(home))
}

fn server(args: &[&Path]) -> StdioServer {
    StdioServer {
        command: "server".to_owned(),
        args: args.iter().map(|path| path.display().to_string()).collect(),
        ..StdioServer::default()
    }
}

#[test]
fn a_server_reaches_what_its_configuration_names_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let launcher = launcher(&root);
    let data = root.join("data");
    let modules = root.join("app/node_modules");
    fs::create_dir_all(modules.join("pkg/dist")).unwrap();
    fs::create_dir(&data).unwrap();
    let script = modules.join("pkg/dist/index.js");
    fs::write(&script, "").unwrap();
    let command = launcher.command("s", &server(&[&script, &data, Path::new("/etc"), &root]));
    assert!(command.read_write.contains(&data));
    assert!(command.read_only.contains(&script) && command.read_only.contains(&modules));
    // Neither the system nor a directory that holds the home and the model's storage.
    let all = command.read_write.iter().chain(&command.read_only);
    for path in all {
        assert!(path != Path::new("/etc") && *path != root, "{path:?}");
    }
    assert!(command.read_only.contains(&root.join("project")));
    assert!(!command.read_write.contains(&root.join("project")));
    assert_eq!(command.network, Network::Off);
    assert_eq!(command.stdin, Stdin::Piped);
}

#[test]
fn its_environment_is_the_listed_one_and_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let launcher = launcher(&root);
    let mut config = server(&[]);
    config.env.insert("TOKEN".to_owned(), "mine".into());
    let command = launcher.command("my server", &config);
    assert_eq!(command.env["TOKEN"], "mine");
    assert!(!command.env.contains_key("API_KEY"));
    let home = Path::new(&command.env["HOME"]);
    assert!(home.starts_with(root.join("state/.mcp")) && home.is_dir());
    assert!(command.read_write.iter().any(|path| path == home));
    config.env.insert("HOME".to_owned(), "/elsewhere".into());
    assert_eq!(
        launcher.command("my server", &config).env["HOME"],
        "/elsewhere"
    );
}

#[test]
fn it_works_in_a_folder_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let launcher = launcher(&root);
    let package = root.join("node_modules/@modelcontextprotocol/server-memory/dist/index.js");
    let mut config = server(&[&package]);
    let command = launcher.command("memory", &config);
    assert_eq!(command.cwd, Path::new(&command.env["HOME"]));
    assert!(command.read_write.contains(&command.cwd));
    assert_ne!(launcher.command("other", &config).cwd, command.cwd);
    // It would write beside its package.
    let store = Path::new(&command.env["MEMORY_FILE_PATH"]);
    assert_eq!(store, command.cwd.join("memory.jsonl"));

    let notes = root.join("notes");
    fs::create_dir(&notes).unwrap();
    let named = notes.join("mine.jsonl").display().to_string();
    config.env.insert(
        "MEMORY_FILE_PATH".to_owned(),
        NamedValue::from(named.clone()),
    );
    let command = launcher.command("memory", &config);
    assert_eq!(command.env["MEMORY_FILE_PATH"], named);
    assert!(command.read_write.contains(&notes));
    // A file in the home would open all of it.
    let home = root.join("home");
    let named = home.join("mine.jsonl").display().to_string();
    config
        .env
        .insert("MEMORY_FILE_PATH".to_owned(), NamedValue::from(named));
    assert!(
        !launcher
            .command("memory", &config)
            .read_write
            .contains(&home)
    );

    config.cwd = Some(notes.clone());
    assert_eq!(launcher.command("memory", &config).cwd, notes);
    let other = launcher.command("time", &server(&[]));
    assert!(!other.env.contains_key("MEMORY_FILE_PATH"));
}

#[test]
fn a_link_that_the_model_may_have_made_gives_nothing_away() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let launcher = launcher(&root);
    let (private, project) = (root.join("private"), root.join("project"));
    fs::create_dir_all(private.join("deep")).unwrap();
    fs::create_dir(project.join("data")).unwrap();
    std::os::unix::fs::symlink(&private, project.join("link")).unwrap();
    std::os::unix::fs::symlink(&project, root.join("alias")).unwrap();
    for path in ["project/link", "project/link/deep", "alias/link/deep"] {
        assert_eq!(launcher.resolved(&root.join(path)), None, "{path}");
        let command = launcher.command("s", &server(&[&root.join(path)]));
        assert!(
            !command
                .read_write
                .iter()
                .any(|path| path.starts_with(&private))
        );
    }
    for (path, real) in [
        ("project/data", "project/data"),
        ("alias/data", "project/data"),
        ("private/deep", "private/deep"),
    ] {
        assert_eq!(
            launcher.resolved(&root.join(path)),
            Some(root.join(real)),
            "{path}"
        );
    }
}

#[test]
fn paths_are_found_in_options_too() {
    for (argument, path) in [
        ("/a/b", Some("/a/b")),
        ("--dir=/a/b", Some("/a/b")),
        ("relative/path", None),
        ("x=/usr", None),
        ("--dir", None),
    ] {
        assert_eq!(named_path(argument), path.map(Path::new), "{argument}");
    }
}

#[test]
fn the_python_of_an_environment_is_followed_to_where_it_lies() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let launcher = launcher(&root);
    let real = root.join("home/.local/share/uv/python/cpython-3.12.3");
    let alias = root.join("home/.local/share/uv/python/cpython-3.12");
    fs::create_dir_all(real.join("bin")).unwrap();
    fs::create_dir_all(real.join("lib/python3.12")).unwrap();
    fs::write(real.join("lib/python3.12/os.py"), "").unwrap();
    fs::write(real.join("bin/python3.12"), "").unwrap();
    symlink(&real, &alias).unwrap();
    let environment = root.join("home/venv");
    fs::create_dir_all(environment.join("bin")).unwrap();
    let settings = |home: &Path| format!("home = {}\nversion = 3.12.3\n", home.display());
    fs::write(environment.join("pyvenv.cfg"), settings(&alias.join("bin"))).unwrap();
    symlink(alias.join("bin/python3.12"), environment.join("bin/python")).unwrap();
    let script = environment.join("bin/mcp-server");
    fs::write(&script, "").unwrap();
    let secrets = root.join("home/.ssh");
    fs::create_dir_all(secrets.join("bin")).unwrap();
    for command in [environment.join("bin/python"), script] {
        let config = StdioServer {
            command: command.display().to_string(),
            ..server(&[])
        };
        let command = launcher.command("s", &config);
        for path in [&environment, &alias, &real] {
            assert!(command.read_only.contains(path), "{path:?}");
        }
        assert!(!command.read_only.contains(&root.join("home")));
    }
    // What is no Python is not followed to.
    fs::write(
        environment.join("pyvenv.cfg"),
        settings(&secrets.join("bin")),
    )
    .unwrap();
    let command = launcher.command("s", &server(&[&environment.join("bin/mcp-server")]));
    assert!(!command.read_only.contains(&secrets));
}

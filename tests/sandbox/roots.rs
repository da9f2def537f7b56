//! Roots that lie in what another command may change: the project of one session in that of another, central storage in
//! the project.

use std::fs;

use outrigger::sandbox::{Mode, SpawnError};

use crate::support::{World, run};

/// What a command exchanged for a link is not handed out to the next one.
#[tokio::test]
async fn no_link_in_the_place_of_a_root_is_followed() {
    for mode in [Mode::Full, Mode::Fallback] {
        for (root, swap) in [
            ("inner", "mv inner old; ln -s {outside} inner"),
            ("inner/data", "mv inner old; ln -s {outside} inner"),
        ] {
            let world = World::new();
            fs::create_dir_all(world.project().join("inner/data")).unwrap();
            fs::create_dir(world.outside().join("data")).unwrap();
            let sandbox = world.sandbox(mode);
            let swap = swap.replace("{outside}", &world.outside().display().to_string());
            run(&sandbox, &world.bash(&swap)).await;
            assert!(world.project().join("inner").is_symlink());
            let root = world.project().join(root);
            let mut command = world.bash(&format!("echo x > {}/planted", root.display()));
            command.read_write.push(root.clone());
            let planted = [world.outside(), world.outside().join("data")]
                .map(|folder| folder.join("planted"));
            let error = sandbox.spawn(&command).await.unwrap_err();
            assert!(matches!(error, SpawnError::Refused { .. }), "{error}");
            let error = error.to_string();
            assert!(error.contains(root.to_str().unwrap()), "{error}");
            assert!(error.contains("inner is a link"), "{error}");
            assert!(!planted.iter().any(|path| path.exists()), "{mode} {root:?}");
        }
    }
}

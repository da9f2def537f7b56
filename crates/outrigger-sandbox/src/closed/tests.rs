use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

#[test]
fn what_is_not_for_everybody_is_found_by_its_mode() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path();
    for (path, mode) in [
        ("shared", 0o644),
        ("secret", 0o600),
        ("of-a-group", 0o640),
        ("nobody", 0o000),
        ("open/deep/key", 0o400),
        ("open/deep/plain", 0o444),
        ("closed/plain", 0o644),
        ("unlisted/key", 0o600),
        ("unlisted/plain", 0o644),
    ] {
        let path = base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(base.join("closed"), Permissions::from_mode(0o710 & !0o001)).unwrap();
    fs::set_permissions(base.join("unlisted"), Permissions::from_mode(0o711)).unwrap();
    symlink("secret", base.join("link")).unwrap();
    let found = |most: usize| {
        let (mut left, mut found) = (most, Vec::new());
        closed_below(base, 0, &mut left, &mut found);
        let below = |path: &PathBuf| path.strip_prefix(base).unwrap().display().to_string();
        let mut found: Vec<String> = found.iter().map(below).collect();
        found.sort();
        found
    };
    assert_eq!(
        found(100),
        [
            "closed",
            "nobody",
            "of-a-group",
            "open/deep/key",
            "secret",
            "unlisted/key"
        ]
    );
    // What there was no time for is hidden with its folder.
    assert!(found(3).contains(&String::new()));
}

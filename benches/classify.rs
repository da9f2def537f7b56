//! What a call costs besides what it runs: reading a command line, resolving a path, finding what is to be hidden from
//! commands and what they changed.
//!
//!     cargo bench --bench classify

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use criterion::{Criterion, criterion_group, criterion_main};
use outrigger::classifier::{Classification, Secrets, Surroundings, classify};
use outrigger::sandbox::deny::Access;
use outrigger::sandbox::paths::{RootName, Roots};

static SECRETS: LazyLock<Secrets> = LazyLock::new(Secrets::default);

fn judge(line: &str) -> Classification {
    classify(
        line,
        &Surroundings {
            project_root: Path::new("/home/ada/project"),
            central_root: Path::new("/home/ada/outrigger/projects/project"),
            home: Some(Path::new("/home/ada")),
            trusted_program: &|_| true,
            unhidden: None,
            secrets: &SECRETS,
        },
    )
}

fn lines(criterion: &mut Criterion) {
    let nested = format!("{}ls{}", "$(echo ".repeat(30), ")".repeat(30));
    let many = "cargo test --lib && ".repeat(60) + "ls";
    let long = format!("echo {}", "word ".repeat(3_000));
    let longest = format!("cat <<'E'\n{}E\n", "a line of text\n".repeat(6_500));
    for (name, line) in [
        ("safe", "git log --oneline -5 | head -3"),
        (
            "warning",
            "cd src && cargo test --lib -- --nocapture 2>&1 | tail -40",
        ),
        (
            "dangerous",
            "for f in $(ls build); do rm -rf \"build/$f\"; done",
        ),
        ("nested 30 deep", &nested),
        ("61 commands", &many),
        ("15 KB of words", &long),
        ("97 KB of text", &longest),
    ] {
        criterion.bench_function(&format!("classify: {name}"), |bencher| {
            bencher.iter(|| judge(black_box(line)));
        });
    }
}

fn paths(criterion: &mut Criterion) {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().join("project");
    fs::create_dir_all(project.join("a/b/c/d")).unwrap();
    fs::write(project.join("a/b/c/d/file.rs"), "x").unwrap();
    std::os::unix::fs::symlink("a/b", project.join("way")).unwrap();
    let roots = Roots::open(&project, &place.path().join("central"), None).unwrap();
    for path in ["a/b/c/d/file.rs", "way/c/d/file.rs", "a/../a/b/missing"] {
        criterion.bench_function(&format!("resolve: {path}"), |bencher| {
            bencher.iter(|| {
                let target = roots.map(black_box(path), Access::Read).unwrap();
                roots.locate(&target, Access::Read).is_ok()
            });
        });
    }
}

/// A project of so many files, ten to a folder, none of them touched for an hour.
fn project(place: &Path, files: usize) -> Roots {
    let project = place.join("project");
    let long_ago = SystemTime::now() - Duration::from_secs(3_600);
    for folder in 0..files / 10 {
        let folder = project.join(format!("{}/{folder}", folder % 50));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..10 {
            fs::write(folder.join(format!("module_{file}.rs")), "").unwrap();
        }
        fs::File::open(&folder)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
    }
    for folder in fs::read_dir(&project).unwrap().flatten() {
        fs::File::open(folder.path())
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
    }
    Roots::open(&project, &place.join("central"), None).unwrap()
}

fn hidden(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hidden");
    group.sample_size(10);
    for files in [10_000, 100_000] {
        let place = tempfile::tempdir().unwrap();
        let roots = project(place.path(), files);
        group.bench_function(format!("{files} files, known"), |bencher| {
            bencher.iter(|| roots.hidden());
        });
        group.bench_function(format!("{files} files, at first"), |bencher| {
            bencher.iter_with_setup(
                || {
                    Roots::open(
                        roots.path(RootName::Project),
                        roots.path(RootName::Central),
                        None,
                    )
                    .unwrap()
                },
                |fresh| fresh.hidden(),
            );
        });
    }
}

/// What the files changed by a command cost: a look at all of them before it, and one after it.
fn changed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("changed");
    group.sample_size(10);
    for files in [10_000, 100_000] {
        let place = tempfile::tempdir().unwrap();
        let roots = project(place.path(), files);
        let rules = "/target/\n*.log\n.venv/\ndist/\n*.tmp\n";
        fs::write(roots.path(RootName::Project).join(".gitignore"), rules).unwrap();
        group.bench_function(format!("{files} files, one look"), |bencher| {
            bencher.iter(|| assert!(roots.tree().is_complete()));
        });
        group.bench_function(format!("{files} files, both looks"), |bencher| {
            bencher.iter(|| {
                let before = roots.tree();
                let changes = roots.tree().changed_since(&before);
                assert!(changes.complete && changes.named.is_empty());
            });
        });
    }
}

criterion_group!(benches, lines, paths, hidden, changed);
criterion_main!(benches);

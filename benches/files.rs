//! How long the file tools take for a tree of 10,000 files, and the look at all of them that is made before and after a command.
//!
//! `cargo bench --bench files`. What is asked for: each below 100 ms. A figure is the whole call, from
//! the model's input to the text that it reads.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use outrigger::sandbox::paths::Roots;
use outrigger::tool::file_list::file_list;
use outrigger::tool::file_search::file_search;
use outrigger::tool::seen::SeenFiles;
use outrigger::tool::{Output, Run, Tool};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A hundred folders of a hundred files of about a kilobyte.
fn tree(root: &Path) {
    for folder in 0..100 {
        let path = root.join(format!("src/module_{folder}"));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            let line = format!("fn function_{folder}_{file}() {{ let needle_{file} = 1; }}\n");
            std::fs::write(path.join(format!("file_{file}.rs")), line.repeat(20)).unwrap();
        }
    }
    std::fs::write(root.join(".gitignore"), "target/\n*.log\n").unwrap();
}

async fn call(tool: &dyn Tool, input: &Value) -> Output {
    let input = input.as_object().expect("an object");
    let seen = Arc::<SeenFiles>::default();
    let prepared = tool.prepare(input).expect("a fitting input");
    // As the exchange does before it decides.
    let _facts = prepared.facts();
    let run = Run {
        emit: &|_, _| {},
        cancel: CancellationToken::new(),
        timeout: Duration::from_secs(60),
        known: &(),
        seen: &seen,
        redactor: &outrigger::telemetry::Redactor::default(),
        quota: &Arc::default(),
        keep: &(Arc::new(()) as Arc<dyn outrigger::tool::undo::Keep>),
        pod: &std::sync::OnceLock::new(),
        background: None,
        visible: Arc::new(|_| true),
        user: None,
        owner: "",
        tasks: None,
    };
    prepared.run(run).await.expect("no violation")
}

fn files(criterion: &mut Criterion) {
    let place = tempfile::tempdir().unwrap();
    let (project, central) = (place.path().join("project"), place.path().join("central"));
    std::fs::create_dir(&project).unwrap();
    tree(&project);
    let roots = Arc::new(Roots::open(&project, &central, None).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let list = file_list(Arc::clone(&roots));
    let before = roots.tree();
    criterion.bench_function("look which of 10,000 files changed", |bencher| {
        bencher.iter(|| roots.tree().changed_since(&before));
    });
    let search = file_search(roots, 100 * 1024);
    let cases: [(&str, &dyn Tool, Value); 4] = [
        ("list 10,000 files", &list, json!({"maxResults": 10_000})),
        (
            "list by a pattern",
            &list,
            json!({"pattern": "**/file_7.rs"}),
        ),
        (
            "search 10,000 files for one line",
            &search,
            json!({"pattern": "function_57_99\\("}),
        ),
        (
            "search 10,000 files in vain",
            &search,
            json!({"pattern": "no such word anywhere"}),
        ),
    ];
    for (name, tool, input) in cases {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| runtime.block_on(call(tool, &input)));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = files
}
criterion_main!(benches);

//! A project on disk and a conversation that calls tools on it, for the tests of the file tools.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::super::testing::Surroundings;
use super::super::{Output, Prepared, Refusal, Run, Tool, Violation};
use super::*;
use crate::message::{Part, Undo};
use crate::sandbox::paths::PathError;
use crate::telemetry::Redactor;

/// A project, central storage beside it, and what one conversation has seen.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) roots: Arc<Roots>,
    pub(crate) seen: Arc<SeenFiles>,
    pub(crate) redactor: Redactor,
    pub(crate) cancel: CancellationToken,
    pub(crate) kept: Arc<Kept>,
}

/// What was kept of changes, in order, as far as they were made.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) changes: Mutex<Vec<Undo>>,
    /// Runs in the middle of a change, when it is kept.
    pub(crate) then: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Keep for Kept {
    fn keep(&self, undo: Undo) -> Result<(), PathError> {
        self.changes.lock().push(undo);
        if let Some(then) = &*self.then.lock() {
            then();
        }
        Ok(())
    }

    fn unmade(&self, root: &str, path: &str) {
        let unmade = self.changes.lock().pop().unwrap();
        assert_eq!((&*unmade.root, &*unmade.path), (root, path));
    }
}

impl World {
    /// Makes a project with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("proj")).unwrap();
        let (project, central) = (dir.path().join("proj"), dir.path().join("central"));
        let roots = Arc::new(Roots::open(&project, &central, None).unwrap());
        let world = Self {
            dir,
            roots,
            seen: Arc::default(),
            redactor: Redactor::default(),
            cancel: CancellationToken::new(),
            kept: Arc::default(),
        };
        for (path, content) in files {
            world.put(path, content);
        }
        world
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("proj").join(path)
    }

    /// Writes a file as someone else.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn content(&self, path: &str) -> Vec<u8> {
        fs::read(self.at(path)).unwrap()
    }

    /// Prepares a call.
    pub(crate) fn prepare(
        &self,
        tool: &dyn Tool,
        input: &Value,
    ) -> Result<Box<dyn Prepared>, Refusal> {
        tool.prepare(input.as_object().unwrap())
    }

    /// Runs a prepared call.
    pub(crate) async fn run(&self, call: Box<dyn Prepared>) -> Result<Output, Violation> {
        let surroundings = Surroundings::default();
        call.run(Run {
            cancel: self.cancel.clone(),
            timeout: Duration::from_secs(60),
            seen: &self.seen,
            redactor: &self.redactor,
            keep: &(Arc::clone(&self.kept) as Arc<dyn Keep>),
            ..surroundings.run()
        })
        .await
    }

    /// Makes a call and returns its output; a refusal of the input is an error output.
    pub(crate) async fn call(&self, tool: &dyn Tool, input: Value) -> Output {
        match self.prepare(tool, &input) {
            Ok(call) => self.run(call).await.unwrap(),
            Err(Refusal::Invalid(text)) => Output::error(text),
            Err(Refusal::Violation(violation)) => panic!("{violation}"),
        }
    }
}

/// Returns the text of an output.
pub(crate) fn text(output: &Output) -> &str {
    match output.content.as_slice() {
        [Part::Text { text }] => text,
        other => panic!("{other:?}"),
    }
}

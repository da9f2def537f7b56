//! What several changes of files come to when they are undone. Pure.

use crate::message::{ContentHash, NotReverted};
use crate::store::files::{KnownBefore, KnownFile};

/// What is to be done about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub root: String,
    pub path: String,
    /// What each of the changes has left that are undone.
    pub left: Vec<Option<ContentHash>>,
    /// What was there before them: its content and its mode bits; `None` for no file. An error says why nothing is
    /// undone.
    pub before: Result<Option<(ContentHash, Option<u32>)>, Why>,
    /// Why the changes before them are not undone, where there are any.
    pub stopped: Option<Why>,
}

pub(super) type Why = (NotReverted, String);

/// Returns what is to be done about each file; `changes` are the newest first.
pub(super) fn plan(changes: Vec<KnownFile>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for change in changes {
        let is_its = |step: &&mut Step| step.root == change.root && step.path == change.path;
        match steps.iter_mut().find(is_its) {
            Some(step) => step.go_back(&change),
            None => steps.push(Step::first(change)),
        }
    }
    steps
}

impl Step {
    fn first(change: KnownFile) -> Self {
        Self {
            before: before(&change.before),
            left: vec![change.after],
            root: change.root,
            path: change.path,
            stopped: None,
        }
    }

    /// Undoes the change before, too, where nobody else changed the file between the two.
    fn go_back(&mut self, change: &KnownFile) {
        let Ok(reached) = &self.before else {
            return;
        };
        if self.stopped.is_some() {
            return;
        }
        if change.after != reached.map(|(hash, _)| hash) {
            let text = "someone else changed it between two of these changes";
            self.stopped = Some((NotReverted::Changed, text.to_owned()));
            return;
        }
        match before(&change.before) {
            Ok(before) => {
                self.left.push(change.after);
                self.before = Ok(before);
            }
            Err(why) => self.stopped = Some(why),
        }
    }
}

fn before(before: &KnownBefore) -> Result<Option<(ContentHash, Option<u32>)>, Why> {
    match before {
        KnownBefore::Missing => Ok(None),
        KnownBefore::Kept(hash, mode) => Ok(Some((*hash, *mode))),
        KnownBefore::NotKept(why) => {
            let text = format!("its old content is not kept: {why}");
            Err((NotReverted::NotKept, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn state(number: u8) -> ContentHash {
        [number; 32]
    }

    /// A change of `f` from one state to another; 0 is no file, 9 content that is not kept.
    fn change(from: u8, to: u8) -> KnownFile {
        KnownFile {
            root: "/p".to_owned(),
            path: "f".to_owned(),
            before: match from {
                0 => KnownBefore::Missing,
                9 => KnownBefore::NotKept("x".to_owned()),
                from => KnownBefore::Kept(state(from), None),
            },
            after: (to > 0).then_some(state(to)),
        }
    }

    /// Returns the states that may be there, the one that is put back, and why not further.
    fn shown(step: &Step) -> (Vec<u8>, Option<u8>, Option<NotReverted>) {
        let number = |hash: &Option<ContentHash>| hash.map_or(0, |hash| hash[0]);
        let before = step.before.as_ref().ok();
        (
            step.left.iter().map(number).collect(),
            before.map(|it| it.map_or(0, |(hash, _)| hash[0])),
            step.stopped.as_ref().map(|(reason, _)| *reason),
        )
    }

    #[test]
    fn changes_of_a_file_are_undone_as_far_as_they_join() {
        let (changed, not_kept) = (NotReverted::Changed, NotReverted::NotKept);
        // The newest first.
        for (changes, left, before, stopped) in [
            (vec![(1, 2)], vec![2], Some(1), None),
            (vec![(0, 2)], vec![2], Some(0), None),
            (vec![(1, 0)], vec![0], Some(1), None),
            (vec![(2, 3), (1, 2), (0, 1)], vec![3, 2, 1], Some(0), None),
            (
                vec![(4, 5), (1, 2), (0, 1)],
                vec![5],
                Some(4),
                Some(changed),
            ),
            (
                vec![(2, 3), (9, 2), (0, 1)],
                vec![3],
                Some(2),
                Some(not_kept),
            ),
            (vec![(9, 3), (1, 2)], vec![3], None, None),
            // Made, put back and made again.
            (vec![(0, 3), (1, 0), (0, 1)], vec![3, 0, 1], Some(0), None),
        ] {
            let changes = changes.iter().map(|(from, to)| change(*from, *to));
            let steps = plan(changes.collect());
            let steps: Vec<_> = steps.iter().map(shown).collect();
            assert_eq!(steps, [(left, before, stopped)]);
        }
    }

    #[test]
    fn each_file_has_its_own_step() {
        let elsewhere = |root: &str, path: &str| KnownFile {
            root: root.to_owned(),
            path: path.to_owned(),
            ..change(1, 2)
        };
        let steps = plan(vec![
            elsewhere("/p", "f"),
            elsewhere("/c", "f"),
            elsewhere("/p", "g"),
        ]);
        let names: Vec<_> = steps.iter().map(|it| (&*it.root, &*it.path)).collect();
        assert_eq!(names, [("/p", "f"), ("/c", "f"), ("/p", "g")]);
    }
}

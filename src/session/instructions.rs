//! What a session says at its begin of the files whose words its model is told as the user's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::approvals::PendingRules;
use super::daemon::Daemon;
use super::{Session, projects};
use crate::config::InstructionsTrust;
use crate::exchange::instructions::{find_skills, find_words, key_of, shown};
use crate::instructions::Words;
use crate::instructions::skills::Skill;
use crate::permission::rule::Key;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::trust::{InstructionFile, SkillListed, SkillsListed};
use crate::protocol::{RequestId, SessionCode};
use crate::tool::workspace::Workspace;
use crate::users::User;

/// How long a session that begins waits for these files: a file system on a network may never answer. They are read again
/// before each exchange.
const PATIENCE: Duration = Duration::from_secs(2);

impl Session {
    /// Lists the skills there are now, once they are read.
    pub(super) fn list_skills(&self, id: Option<&RequestId>) {
        let (config, redactor) = (self.services.config(), self.services.redactor.clone());
        let workspace = Arc::clone(&self.shared.workspace);
        let user = self.shared.user.clone();
        let said = self.shared.memory.list().into_iter();
        let said = said.filter(|it| it.in_force && it.rule.allows);
        let said: Vec<Key> = said.map(|it| it.rule.key).collect();
        self.answer_later(id, async move {
            let read = tokio::task::spawn_blocking(move || {
                let settings = &config.project.instructions;
                let found = find_skills(settings, settings.trust, &workspace, &user, &redactor);
                let is_trusted = |words: &Words| {
                    words.is_users
                        || settings.trust == InstructionsTrust::On
                        || said.contains(&key_of(words))
                };
                listed(found, is_trusted)
            });
            match read.await {
                Ok(listed) => Event::SkillListResult(listed),
                Err(error) => {
                    tracing::error!(%error, "reading skills ended early");
                    let problem = "skills could not be read; see the log";
                    Event::SessionError(SessionError::new(SessionCode::Internal, problem))
                }
            }
        });
    }
}

fn listed(found: Vec<Result<Skill, String>>, is_trusted: impl Fn(&Words) -> bool) -> SkillsListed {
    let mut listed = SkillsListed {
        skills: Vec::new(),
        problems: Vec::new(),
    };
    for skill in found {
        match skill {
            Ok(skill) => {
                let file = shown(&skill.words, is_trusted(&skill.words));
                listed.skills.push(SkillListed {
                    name: skill.name,
                    description: skill.description,
                    folder: skill.words.folder(),
                    sha256: file.sha256,
                    bytes: file.bytes,
                    source: file.source,
                    trusted: file.trusted,
                    allowed_tools: skill.allowed_tools,
                });
            }
            Err(why) => listed.problems.push(why),
        }
    }
    listed
}

impl Daemon {
    /// Returns the user's own file and that of the project's folder, where they are read at all.
    pub(super) async fn instructions(
        &self,
        workspace: &Arc<Workspace>,
        user: &User,
        rules: &PendingRules,
    ) -> Vec<InstructionFile> {
        let config = self.services.config();
        let redactor = self.services.redactor.clone();
        let folder = projects::folder(workspace);
        let read = {
            let (workspace, user, config) = (Arc::clone(workspace), user.clone(), config.clone());
            tokio::task::spawn_blocking(move || {
                let settings = &config.project.instructions;
                let folders = (&user, &BTreeSet::new());
                find_words(settings, settings.trust, &workspace, folders, &redactor)
            })
        };
        let found = match tokio::time::timeout(PATIENCE, read).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::error!(%error, "reading instructions ended early");
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        // Why one cannot be taken is said before an exchange that would be told of it.
        let found: Vec<Words> = found.into_iter().flatten().collect();
        let trusts_all = config.project.instructions.trust == InstructionsTrust::On;
        let needs_answer = |words: &Words| !words.is_users && !trusts_all;
        if found.iter().any(needs_answer) {
            rules.are_read.clone().await;
        }
        let most = config.approval.remember;
        let is_trusted = |words: &Words| {
            !needs_answer(words)
                || rules
                    .rules
                    .trust_words(folder.as_deref(), &key_of(words), most)
        };
        found
            .iter()
            .map(|words| shown(words, is_trusted(words)))
            .collect()
    }
}

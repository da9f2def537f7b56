//! Whether the sessions that are kept can be read, and written: in the file, or in the database.

use std::path::Path;

use secrecy::ExposeSecret as _;

use super::Machine;
use super::finding::{Finding, State};
use super::place::{is_writable, nearest, runs_here};
use crate::config::StorePlace;
use crate::store::{Checkup, Error, check_up, postgres};

/// Free bytes are worth a word where they are as many, and half of the file.
const MUCH: u64 = 64 * 1024 * 1024;

const STORE: &str = "store";

/// Looks at what sessions are kept in, beside a daemon that has it too.
pub(super) async fn store(machine: &Machine) -> Vec<Finding> {
    let Some(config) = &machine.loaded.config.store else {
        let none =
            "sessions are not kept (store.enabled is false, or there is no folder for state)";
        return vec![Finding::new(STORE, State::Absent, none)];
    };
    let place = config.place.clone();
    let auth = &machine.loaded.config.auth;
    let has_users = auth.has_users();
    let is_own = runs_here(machine).await;
    let looked = tokio::task::spawn_blocking(move || match place {
        StorePlace::File(path) => found(&path, check_up(&path), is_own),
        StorePlace::Database(url) => {
            found_there(postgres::check_up(url.expose_secret()), has_users)
        }
    });
    let failed = |error| {
        Finding::new(
            STORE,
            State::Failed,
            format!("it was not looked at: {error}"),
        )
    };
    vec![looked.await.unwrap_or_else(failed)]
}

/// Says how a file is; whoever has it is no other daemon than the one of this configuration where that is known (`is_own`).
fn found(path: &Path, looked: Result<Checkup, Error>, is_own: bool) -> Finding {
    let shown = path.display();
    let finding = |state, text: String| Finding::new(STORE, state, format!("{shown}: {text}"));
    let own = "change its owner or mode, or store.path";
    let checkup = match looked {
        Ok(checkup) => checkup,
        Err(Error::Missing { .. }) => {
            return match nearest(path).is_some_and(|it| is_writable(&it)) {
                true => finding(State::Ok, "no session was kept there yet".to_owned()),
                false => finding(State::Failed, "it cannot be made".to_owned()).advise(own),
            };
        }
        // It names the file.
        Err(problem) => return Finding::new(STORE, State::Failed, problem.to_string()),
    };
    let whose = match &checkup.holder {
        Some(process) => format!("the process {process} has it"),
        None => "no process has it".to_owned(),
    };
    if let Some(first) = checkup.problems.first() {
        let more = match checkup.problems.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        return finding(State::Failed, format!("it is damaged: {first}{more}; {whose}")).advise(format!(
            "end the daemon; `sqlite3 {shown} .recover` prints what can be read, as SQL for a new file; or put a backup in its place, or move it away to begin anew"
        ));
    }
    if !checkup.is_writable {
        return finding(State::Failed, "it cannot be written".to_owned()).advise(own);
    }
    let (bytes, free) = (checkup.bytes, checkup.free_bytes);
    let text = format!(
        "sound, schema {}, {} KiB ({} % of them free), log of changes {} KiB; {whose}",
        checkup.schema,
        bytes >> 10,
        free.saturating_mul(100) / bytes.max(1),
        checkup.log_bytes >> 10
    );
    if checkup.is_on_a_network {
        return finding(State::Warning, text).advise(
            "it is on a file system of another machine, where it works without a log of changes, and slower; set store.path to a disk of this one",
        );
    }
    if free >= MUCH && free > bytes / 2 {
        let advice = "a daemon gives it back by and by; `outrigger sessions vacuum` at once, while none runs";
        return finding(State::Warning, text).advise(advice);
    }
    if checkup.holder.is_some() && !is_own {
        let advice = "a daemon that is started now keeps no sessions; where store.path is set it is refused (state_in_use): end that process first, or give the new one a store.path of its own; where that process is the daemon that you mean, all is well";
        return finding(State::Warning, text).advise(advice);
    }
    finding(State::Ok, text)
}

/// Says how a database is, in which there are several users where it `has_users`.
fn found_there(looked: Result<postgres::Checkup, Error>, has_users: bool) -> Finding {
    let finding = |state, text: String| Finding::new(STORE, state, text);
    let postgres::Checkup {
        shown,
        server,
        schema,
        nodes,
        is_above,
        bytes,
    } = match looked {
        Ok(checkup) => checkup,
        // It names the database.
        Err(problem) => {
            let advice = "see that the server runs and lets in who store.url names";
            return finding(State::Failed, problem.to_string()).advise(advice);
        }
    };
    let schema = match schema {
        Some(schema) => format!("schema {schema}"),
        None => "no session was kept there yet".to_owned(),
    };
    let whose = match nodes.as_slice() {
        [] => "no process keeps sessions there now".to_owned(),
        nodes => format!("sessions are kept there by {}", nodes.join(", ")),
    };
    let text = format!(
        "{shown}: PostgreSQL {server}, {schema}, {} KiB; {whose}",
        bytes >> 10
    );
    if is_above && has_users {
        let text = format!("{text}; row-level security does not count for the user of store.url");
        return finding(State::Warning, text).advise(
            "give the daemon a role that is no superuser and has no BYPASSRLS (docs/store.md): until then its statements alone keep users apart",
        );
    }
    finding(State::Ok, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Checkup {
        Checkup {
            holder: None,
            schema: 1,
            bytes: 200 << 20,
            log_bytes: 5 << 10,
            free_bytes: 1 << 20,
            is_on_a_network: false,
            is_writable: true,
            problems: Vec::new(),
        }
    }

    #[test]
    fn what_is_found_says_what_to_do() {
        let path = Path::new("/state/outrigger.db");
        let held = Checkup {
            holder: Some("7".to_owned()),
            ..sound()
        };
        let damaged = Checkup {
            problems: vec!["row 3 missing".to_owned(), "another".to_owned()],
            ..held.clone()
        };
        let foreign = Checkup {
            is_on_a_network: true,
            ..sound()
        };
        let free = Checkup {
            free_bytes: 150 << 20,
            ..sound()
        };
        let locked = Checkup {
            is_writable: false,
            ..sound()
        };
        let newer = Error::Newer {
            path: "/state/outrigger.db".to_owned(),
            found: 9,
            known: 1,
        };
        for (looked, state, part) in [
            (
                Ok(sound()),
                "ok",
                "sound, schema 1, 204800 KiB (0 % of them free), log of changes 5 KiB; no process has it",
            ),
            (
                Ok(held.clone()),
                "warning",
                "the process 7 has it -> a daemon that is started now keeps no sessions",
            ),
            (
                Ok(damaged),
                "failed",
                "it is damaged: row 3 missing (and 1 more); the process 7 has it -> end the daemon",
            ),
            (Ok(foreign), "warning", "another machine"),
            (Ok(free), "warning", "(75 % of them free)"),
            (
                Ok(locked),
                "failed",
                "cannot be written -> change its owner",
            ),
            (Err(newer), "failed", "has schema 9"),
        ] {
            let text = super::super::finding::text(&[found(path, looked, false)]);
            assert!(text.starts_with(state) && text.contains(part), "{text}");
        }
        assert_eq!(found(path, Ok(held), true).state, State::Ok);
    }

    #[test]
    fn a_role_for_which_the_second_wall_is_none_is_said_where_there_are_users() {
        for (is_above, has_users, expected) in [
            (false, true, State::Ok),
            (true, false, State::Ok),
            (true, true, State::Warning),
        ] {
            let looked = postgres::Checkup {
                shown: "db".to_owned(),
                server: "16".to_owned(),
                schema: Some(2),
                nodes: Vec::new(),
                is_above,
                bytes: 0,
            };
            let finding = found_there(Ok(looked), has_users);
            assert_eq!(finding.state, expected, "{is_above} {has_users}");
        }
    }
}

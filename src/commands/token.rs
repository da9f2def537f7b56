//! `outrigger token`: keys and tokens of users, without a daemon.

use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::json;

use super::{complain, exit_code, print};
use crate::arguments::{CreateArguments, KeyArguments, TokenCommand};
use crate::message::SessionId;
use crate::token::{Claims, Rights, public_keys, signed, written_key};

/// Does it. What goes wrong is said on stderr.
pub fn token(command: &TokenCommand) -> ExitCode {
    let done = match command {
        TokenCommand::Key(wanted) => key(wanted),
        TokenCommand::Create(wanted) => create(wanted),
    };
    match done {
        Ok(text) => exit_code(print(&text).is_ok()),
        Err(problem) => {
            complain(&problem);
            ExitCode::FAILURE
        }
    }
}

fn key(wanted: &KeyArguments) -> Result<String, String> {
    if wanted.file.symlink_metadata().is_err() {
        written_key(&wanted.file).map_err(|error| error.to_string())?;
    }
    let keys = public_keys(&wanted.file).map_err(|error| error.to_string())?;
    Ok(format!("{keys:#}\n"))
}

fn create(wanted: &CreateArguments) -> Result<String, String> {
    let now = Timestamp::now();
    let random = || SessionId::random().map(|id| id.to_string());
    let jti = wanted.jti.clone().or_else(random);
    let jti = jti.ok_or_else(|| "there are no random numbers for a name (jti)".to_owned())?;
    #[expect(clippy::cast_precision_loss, reason = "seconds are few enough")]
    let seconds = now.as_second() as f64;
    let claims = Claims {
        iss: wanted.iss.clone(),
        sub: wanted.sub.clone(),
        exp: (seconds + wanted.ttl.as_secs_f64()).floor(),
        iat: Some(seconds),
        jti: Some(jti),
        aud: wanted.aud.as_ref().map(|aud| json!(aud)),
        outrigger: Rights {
            role: wanted.role,
            roots: Some(wanted.roots.clone()).filter(|roots| !roots.is_empty()),
            trust: wanted.trust,
            budget: wanted.budget,
            disk: wanted.disk,
        },
    };
    claims.check()?;
    let token = signed(&wanted.key, &claims).map_err(|error| error.to_string())?;
    Ok(format!("{token}\n"))
}

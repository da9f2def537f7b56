//! `outrigger chat`: a client of the protocol in the terminal, with a daemon of its own unless told of another.
//!
//! It is the living example of a client: whatever it does goes through the WebSocket.

use std::io::Write as _;
use std::process::ExitCode;

use crate::arguments::ChatArguments;
use crate::ready::exit;

/// Chats, or asks one thing and ends; 0 where that went well.
pub fn main(arguments: &ChatArguments) -> ExitCode {
    let _ = arguments;
    drop(writeln!(
        std::io::stderr(),
        "outrigger chat: not in this build"
    ));
    ExitCode::from(exit::FAILED)
}

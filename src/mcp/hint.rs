//! What to do about a program that could not reach a file: it is confined, and its own words do not say so. Pure.

use crate::config::{McpTransport, SandboxPolicy};

/// How programs say that a file cannot be written or is not there: Node's and libc's words.
const SIGNS: [&str; 9] = [
    "EROFS",
    "EACCES",
    "EPERM",
    "ENOENT",
    "EBUSY",
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "No such file or directory",
];

/// Returns what to do where a text of a server says that it could not reach a file; `None` for other texts, and for
/// servers that are not confined.
pub(super) fn hint(name: &str, transport: &McpTransport, text: &str) -> Option<String> {
    let McpTransport::Stdio(server) = transport else {
        return None;
    };
    let is_meant =
        server.sandbox != SandboxPolicy::Off && SIGNS.iter().any(|sign| text.contains(sign));
    is_meant.then(|| {
        format!(
            "[in the sandbox this server writes only to its own folder, which is its HOME and working directory, and to \
             folders among its arguments; `mcp.servers.{name}.read_write` names more that are there]"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HttpServer, StdioServer};

    #[test]
    fn a_program_that_cannot_write_is_explained() {
        let confined = McpTransport::Stdio(StdioServer::default());
        let free = McpTransport::Stdio(StdioServer {
            sandbox: SandboxPolicy::Off,
            ..StdioServer::default()
        });
        let remote = McpTransport::Http(HttpServer::default());
        let text = "Error: EROFS: read-only file system, open '/x/memory.jsonl'";
        let advice = hint("memory", &confined, text).unwrap();
        assert!(advice.contains("mcp.servers.memory.read_write"), "{advice}");
        for (transport, text) in [(&confined, "no such city"), (&free, text), (&remote, text)] {
            assert_eq!(hint("memory", transport, text), None, "{text}");
        }
    }
}

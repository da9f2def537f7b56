//! A provider made of recordings: an HTTP server whose paths begin with the number of a recording
//! and the way to cut it.

use std::fmt::Write as _;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::manifest::Recording;

/// How the bytes of a body are cut; each piece is a chunk of its own and so a read of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Not at all.
    Whole,
    /// Between any two bytes; every five in the middle of a long body, which repeats itself.
    Bytes,
    /// Anywhere, the same for the same seed.
    Random(u64),
}

impl Cut {
    fn pieces(self, body: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::Whole => body.chunks(body.len().max(1)).collect(),
            Self::Bytes => single_pieces(body),
            Self::Random(seed) => random_pieces(seed, body),
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "whole" => Self::Whole,
            "bytes" => Self::Bytes,
            seed => Self::Random(seed.parse().expect("a seed")),
        }
    }
}

fn single_pieces(body: &[u8]) -> Vec<&[u8]> {
    /// Bytes cut singly at each end: five times as many would take as many seconds.
    const SINGLY: usize = 4096;
    let (head, rest) = body.split_at(body.len().min(SINGLY));
    let (middle, tail) = rest.split_at(rest.len().saturating_sub(SINGLY));
    let ends = [head.chunks(1), middle.chunks(5), tail.chunks(1)];
    ends.into_iter().flatten().collect()
}

fn random_pieces(seed: u64, mut rest: &[u8]) -> Vec<&[u8]> {
    const LONGEST: [usize; 5] = [2, 5, 40, 300, 3000];
    let mut pieces = Vec::new();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while !rest.is_empty() {
        // Xorshift: spread is all that is asked of it.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let random = (state >> 16) as usize;
        let longest = LONGEST[random % LONGEST.len()];
        let (piece, after) = rest.split_at((1 + (random >> 8) % longest).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

pub(crate) struct Server {
    root: String,
}

impl Server {
    pub(crate) async fn start(recordings: &'static [Recording]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, recordings));
            }
        });
        Self { root }
    }

    /// The base URL at which a recording is given out, cut in a certain way.
    pub(crate) fn url(&self, recording: usize, cut: Cut) -> String {
        let cut = match cut {
            Cut::Whole => "whole".to_owned(),
            Cut::Bytes => "bytes".to_owned(),
            Cut::Random(seed) => seed.to_string(),
        };
        format!("{}/{recording}/{cut}", self.root)
    }
}

async fn serve(socket: TcpStream, recordings: &'static [Recording]) -> std::io::Result<()> {
    let mut socket = BufReader::new(socket);
    while let Some(path) = read_request(&mut socket).await? {
        let answer = answer(&path, recordings);
        socket.get_mut().write_all(&answer).await?;
    }
    Ok(())
}

/// Reads a request and returns its path; `None` when the client is gone.
async fn read_request(socket: &mut BufReader<TcpStream>) -> std::io::Result<Option<String>> {
    let mut path = None;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if path.is_none() {
            path = line.split(' ').nth(1).map(str::to_owned);
        } else if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    Ok(path)
}

/// What a server of recorded lists tells of its models: its list, and the same of each.
fn about_models<'r>(path: &str, index: usize, recordings: &'r [Recording]) -> Option<&'r [u8]> {
    let listed = &recordings[index];
    if listed.api != "ollama-tags" {
        return None;
    }
    if path.ends_with("/api/tags") {
        return Some(&listed.body);
    }
    let show = recordings.iter().find(|one| one.api == "ollama-show")?;
    path.ends_with("/api/show").then_some(show.body.as_slice())
}

fn answer(path: &str, recordings: &[Recording]) -> Vec<u8> {
    let mut parts = path.split('/').skip(1);
    let index: usize = parts.next().expect("a number").parse().expect("a number");
    let cut = Cut::parse(parts.next().expect("a cut"));
    if let Some(body) = about_models(path, index, recordings) {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 Recorded\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        return [head.as_bytes(), body].concat();
    }
    // What else is asked besides the turn itself is not recorded.
    if ["/api/show", "/api/ps", "/api/tags", "/models"]
        .iter()
        .any(|end| path.ends_with(end))
    {
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    }
    let recording = &recordings[index];
    let mut head = format!(
        "HTTP/1.1 {} Recorded\r\ntransfer-encoding: chunked\r\n",
        recording.status
    );
    for (name, value) in &recording.headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    let mut bytes = (head + "\r\n").into_bytes();
    for piece in cut.pieces(&recording.body) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

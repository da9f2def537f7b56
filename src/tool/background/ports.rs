//! Ports on which a command in the background listens, and what leads to them from the machine's own loopback.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Job;
use crate::sandbox::Pod;

/// Most connections to one exposed port at a time; further ones wait.
const MAX_CONNECTIONS: usize = 64;

/// How long a server in the sandbox may take to take up a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pause after the system refused to accept a connection, for want of descriptors: they come back.
const PAUSE: Duration = Duration::from_millis(100);

/// The first port that any user may listen on.
const FIRST_FREE: u16 = 1024;

/// A port on which a command in the background of a conversation listens.
pub struct OpenPort {
    pub(super) job: Arc<Job>,
    pub(super) port: u16,
}

/// Why nothing leads to a port.
#[derive(Debug)]
pub enum NotExposed {
    /// It cannot be asked for now: the command has ended or stopped listening, or has too many ports exposed.
    Unavailable(String),
    /// The system gave no port of the machine's loopback.
    System(String),
}

impl OpenPort {
    /// Has the machine's loopback lead to it, until the command ends or [`close`](Self::close) is called; returns the URL. The
    /// port has another number there if its own is taken or among `reserved`.
    ///
    /// # Errors
    /// [`NotExposed`], with a text for the user.
    pub async fn expose(&self, reserved: &BTreeSet<u16>) -> Result<String, NotExposed> {
        if let Some(url) = self.job.url(self.port) {
            return Ok(url);
        }
        let failed = |error: io::Error| {
            let port = self.port;
            NotExposed::System(format!(
                "no port of 127.0.0.1 can lead to port {port}: {error}"
            ))
        };
        let exposed = Exposed::open(self.job.pod.clone(), self.port, reserved).await;
        let taken = self.job.expose(self.port, exposed.map_err(failed)?);
        taken.map_err(NotExposed::Unavailable)
    }

    /// Has nothing lead to it any more.
    pub fn close(&self) {
        self.job.close(self.port);
    }
}

/// A port of the machine's loopback that leads to one in a pod, until this is dropped. Its connections end then, too.
#[derive(Debug)]
pub(super) struct Exposed {
    at: SocketAddr,
    _end: DropGuard,
}

impl Exposed {
    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.at)
    }

    async fn open(pod: Pod, port: u16, reserved: &BTreeSet<u16>) -> io::Result<Self> {
        let listener = listen(port, reserved).await?;
        let at = listener.local_addr()?;
        let end = CancellationToken::new();
        let serving = end
            .clone()
            .run_until_cancelled_owned(serve(listener, pod, port));
        tokio::spawn(serving);
        Ok(Self {
            at,
            _end: end.drop_guard(),
        })
    }
}

/// Listens on the port of the same number where that can be had: pages name themselves by it.
async fn listen(port: u16, reserved: &BTreeSet<u16>) -> io::Result<TcpListener> {
    if port >= FIRST_FREE
        && !reserved.contains(&port)
        && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
    {
        return Ok(listener);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
}

async fn serve(listener: TcpListener, pod: Pod, port: u16) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Dropped with this, and the connections with it.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let pod = pod.clone();
        connections.spawn(async move {
            if let Err(error) = join(stream, &pod, port).await {
                tracing::debug!(%error, port, "a connection to an exposed port failed");
            }
            drop(place);
        });
    }
}

async fn join(mut outside: TcpStream, pod: &Pod, port: u16) -> io::Result<()> {
    let mut inside = timeout(PATIENCE, pod.connect(port)).await??;
    copy_bidirectional(&mut outside, &mut inside).await?;
    Ok(())
}

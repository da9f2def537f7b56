//! What a model reads of an output, whatever its length.

use super::*;
use crate::message::BackgroundId;
use crate::sandbox::output::Stream;
use crate::sandbox::{RefusedPorts, Sandbox, Settings};

/// An output of which everything from `oldest` on is kept.
struct Kept {
    text: &'static str,
    oldest: u64,
}

impl Outlet for Kept {
    fn describe(&self, line: &str) -> BackgroundCommand {
        BackgroundCommand {
            id: BackgroundId::new(line),
            tool_id: ToolId::new("t1"),
            command: line.to_owned(),
            started_at: String::new(),
            status: BackgroundStatus::Running,
            ports: Vec::new(),
            exit_code: None,
            signal: None,
        }
    }

    fn push(&self, _: OutputStream, _: &str) {}

    fn finish(&self) {}

    fn announce(&self, _: &BackgroundCommand) {}

    fn announce_port(&self, _: &BackgroundCommand, _: u16) {}

    fn read(&self, offset: u64, limit: usize) -> Result<Range, Gone> {
        let total = self.text.len() as u64;
        let offset = offset.clamp(self.oldest, total);
        let rest = self.text.get(usize::try_from(offset).unwrap()..).unwrap();
        Ok(Range {
            stream: Stream::Stdout,
            text: rest.chars().take(limit).collect(),
            offset,
            next: None,
            total,
        })
    }
}

const DIGITS: &str = "0123456789abcdefghij";

fn job(id: &str, text: &'static str, oldest: u64) -> Arc<Job> {
    let pod = Sandbox::new(Settings::new(None)).pod();
    Arc::new(Job::new(
        id,
        pod,
        Arc::new(Kept { text, oldest }),
        RefusedPorts::default(),
    ))
}

fn read(output: &Output) -> &str {
    match output.content.as_slice() {
        [crate::message::Part::Text { text }] => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_new_is_read_and_what_is_left_out_is_said() {
    for (text, oldest, since, cap, expected, next, omitted) in [
        ("one\n", 0, None, 100, "one\n", 4, 0),
        ("one\r\u{1b}[31mtwo\n", 0, None, 100, "two\n", 13, 0),
        ("one\ntwo\n", 0, Some(4), 100, "two\n", 8, 0),
        ("one\n", 0, Some(4), 100, "[no new output]\n", 4, 0),
        ("", 0, None, 100, "[no new output]\n", 0, 0),
        (
            DIGITS,
            0,
            None,
            8,
            "0123\n… 12 bytes left out …\nghij\n",
            20,
            12,
        ),
        (
            DIGITS,
            10,
            None,
            100,
            "… 10 older bytes are no longer kept …\nabcdefghij\n",
            20,
            10,
        ),
        (
            DIGITS,
            4,
            Some(2),
            4,
            "… 2 older bytes are no longer kept …\n45\n… 12 bytes left out …\nij\n",
            20,
            14,
        ),
    ] {
        let job = job("b1", text, oldest);
        let (_, output) = job.look(since, cap).await;
        let expected = format!("{expected}[b1 is running; next: {next}]");
        assert_eq!(read(&output), expected, "{text:?}");
        assert_eq!(output.metadata.omitted_bytes.unwrap_or(0), omitted);
        let (_, again) = job.look(None, cap).await;
        let nothing = format!("[no new output]\n[b1 is running; next: {next}]");
        assert_eq!(read(&again), nothing);
    }
    let (_, beyond) = job("b1", "one\n", 0).look(Some(5), 100).await;
    assert!(beyond.is_error, "{beyond:?}");
}

#[tokio::test]
async fn those_that_have_ended_are_kept_up_to_a_bound_and_those_that_run_always() {
    let exit = Exit {
        code: Some(0),
        signal: None,
        cpu_ms: 0,
        max_rss_bytes: 0,
    };
    let jobs = Jobs::default();
    let running = job("runs", "", 0);
    jobs.add(Arc::clone(&running));
    for number in 0..MAX_ENDED + 3 {
        let job = job(&format!("b{number}"), "", 0);
        jobs.add(Arc::clone(&job));
        job.end(BackgroundStatus::Exited, &exit, Remarks::default());
    }
    jobs.add(job("last", "", 0));
    let ids: Vec<String> = jobs.list().iter().map(|it| it.id.to_string()).collect();
    assert_eq!(ids.len(), MAX_ENDED + 2, "{ids:?}");
    assert_eq!(
        (ids[0].as_str(), ids[1].as_str()),
        ("runs", "b3"),
        "{ids:?}"
    );
    assert!(jobs.get("b2").is_err() && jobs.get("b3").is_ok());
    drop(jobs);
    // Dropping the table asks what runs to end.
    running.killed().await;
}

/// Counts what is announced to clients.
#[derive(Default)]
struct Announced(AtomicU64);

impl Outlet for Arc<Announced> {
    fn describe(&self, line: &str) -> BackgroundCommand {
        Kept {
            text: "",
            oldest: 0,
        }
        .describe(line)
    }

    fn push(&self, _: OutputStream, _: &str) {}

    fn finish(&self) {}

    fn announce(&self, _: &BackgroundCommand) {}

    fn announce_port(&self, _: &BackgroundCommand, _: u16) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self, _: u64, _: usize) -> Result<Range, Gone> {
        Err(Gone)
    }
}

#[tokio::test(start_paused = true)]
async fn ports_that_come_and_go_are_known_up_to_a_bound_and_so_many_are_announced_in_a_second() {
    let pod = Sandbox::new(Settings::new(None)).pod();
    let announced = Arc::new(Announced::default());
    let job = Arc::new(Job::new(
        "b1",
        pod,
        Arc::new(Arc::clone(&announced)),
        RefusedPorts::default(),
    ));
    let exposed = |port| {
        let job = Arc::clone(&job);
        async move { OpenPort { job, port }.expose(&BTreeSet::new()).await }
    };
    job.note_port(1);
    exposed(1).await.unwrap();
    for port in 2..200 {
        job.note_port(port);
    }
    assert_eq!(announced.0.load(Ordering::Relaxed), MAX_ANNOUNCED as u64);
    let ports: Vec<u16> = job.known().ports.iter().map(|it| it.port).collect();
    // That which is exposed stays, and the last.
    let expected: Vec<u16> = std::iter::once(1).chain(169..200).collect();
    assert_eq!(ports, expected);
    tokio::time::advance(ANNOUNCED_PERIOD).await;
    job.note_port(200);
    assert_eq!(
        announced.0.load(Ordering::Relaxed),
        MAX_ANNOUNCED as u64 + 1
    );
    let unavailable = |it| match it {
        NotExposed::Unavailable(text) => text,
        NotExposed::System(text) => panic!("{text}"),
    };
    let gone = unavailable(exposed(2).await.unwrap_err());
    assert!(gone.contains("not known to listen on port 2"), "{gone}");
    let last = |number: u16| 200 - number;
    let wanted = u16::try_from(MAX_EXPOSED).unwrap() - 1;
    for number in 0..wanted {
        exposed(last(number)).await.unwrap();
    }
    let many = unavailable(exposed(last(wanted)).await.unwrap_err());
    assert!(many.contains("close one first"), "{many}");
    // What is exposed already has its URL still.
    exposed(1).await.unwrap();
}

#[tokio::test]
async fn a_port_that_the_configuration_names_is_not_taken() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let job = job("b1", "", 0);
    job.note_port(port);
    let open = OpenPort {
        job: Arc::clone(&job),
        port,
    };
    let url = open.expose(&BTreeSet::from([port])).await.unwrap();
    assert_ne!(url, format!("http://127.0.0.1:{port}/"));
}

//! The hot pure parts of a relayed delta: bytes of a provider to chunks, an event to a frame, the log.
//!
//!     cargo bench --bench stream
//!
//! Everything in memory: no socket, no clock, no task. Throughput is in deltas, so that the parts can
//! be added up and compared with what `benches/daemon.py` sees from outside.

use std::fmt::Write as _;
use std::hint::black_box;

use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::executor::block_on;
use futures::stream::{self, StreamExt};
use outrigger::message::{ConversationId, MessageId};
use outrigger::protocol::command::Layer;
use outrigger::protocol::envelope::{self, Stamp, Timestamp};
use outrigger::protocol::event::{Delta, Event};
use outrigger::provider::replay::Wire;
use outrigger::session::log::Log;

/// Deltas of one answer.
const DELTAS: u64 = 2_000;

/// Bytes of one read from a socket, about what loopback and TLS records bring.
const READ: usize = 16 * 1024;

/// An answer of [`DELTAS`] deltas as each wire format has it.
fn answer(wire: Wire) -> String {
    let mut body = String::new();
    let mut line = |text: &str| body.push_str(text);
    match wire {
        Wire::Anthropic => {
            line(concat!(
                "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",",
                "\"role\":\"assistant\",\"content\":[],\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n",
                "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
                "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            ));
            for _ in 0..DELTAS {
                line(concat!(
                    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
                    "\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n",
                ));
            }
            line(concat!(
                "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
                "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},",
                "\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            ));
        }
        Wire::Chat => {
            for _ in 0..DELTAS {
                line(concat!(
                    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",",
                    "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n",
                ));
            }
            line(concat!(
                "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
                "data: [DONE]\n\n",
            ));
        }
        Wire::Responses => {
            for number in 0..DELTAS {
                let _ = write!(
                    body,
                    "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\
                     \"sequence_number\":{number},\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\
                     \"delta\":\" word\"}}\n\n",
                );
            }
            body.push_str(concat!(
                "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",",
                "\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":9}}}\n\n",
            ));
        }
        Wire::Ollama => {
            for _ in 0..DELTAS {
                line(concat!(
                    "{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",",
                    "\"message\":{\"role\":\"assistant\",\"content\":\" word\"},\"done\":false}\n",
                ));
            }
            line(
                "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
            );
        }
    }
    body
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bytes to chunks");
    group.throughput(Throughput::Elements(DELTAS));
    for wire in Wire::ALL {
        let body = Bytes::from(answer(wire));
        let reads: Vec<Bytes> = (0..body.len())
            .step_by(READ)
            .map(|at| body.slice(at..body.len().min(at + READ)))
            .collect();
        let heard = block_on(play(wire, &reads).count());
        assert!(heard as u64 > DELTAS, "{}: {heard} chunks", wire.name());
        group.bench_function(BenchmarkId::from_parameter(wire.name()), |bench| {
            bench.iter(|| {
                block_on(play(wire, &reads).for_each(|chunk| async { drop(black_box(chunk)) }));
            });
        });
    }
    group.finish();
}

fn play(wire: Wire, reads: &[Bytes]) -> outrigger::provider::ChunkStream {
    let reads = stream::iter(reads.to_vec()).map(Ok);
    wire.play(reads, "text/event-stream", "p", "m")
}

fn delta(index: u64) -> Event {
    Event::ChatTextDelta(Delta {
        conversation_id: ConversationId::new("c_0123456789abcdef"),
        message_id: MessageId::new("m_0123456789abcdef"),
        turn: 0,
        index,
        content: " word".to_owned(),
    })
}

fn frame(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("delta to frame");
    group.throughput(Throughput::Elements(1));
    let event = delta(7);
    let stamp = Stamp {
        seq: Some(12_345),
        reply_to: None,
        timestamp: Timestamp::now(),
        task: None,
    };
    group.bench_function("write", |bench| {
        bench.iter(|| envelope::write(black_box(&event), &stamp));
    });
    group.bench_function("timestamp", |bench| {
        bench.iter(|| Timestamp::now().to_string());
    });
    group.finish();
}

/// Bytes that a session's log keeps, as configured by default.
const KEPT: usize = 8 * 1024 * 1024;

fn log(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("log");
    group.throughput(Throughput::Elements(DELTAS));
    let now = Timestamp::now();
    let fill = |every: u64, frames: &mut Vec<Utf8Bytes>| {
        let mut log = Log::new(KEPT, vec![Layer::Stream, Layer::Message]);
        let mut read = 0;
        for index in 0..DELTAS {
            log.append(delta(index), None, now);
            if index % every == 0 {
                log.read(read, usize::MAX, 0, None, frames);
                read = log.last();
                frames.clear();
            }
        }
        log
    };
    group.bench_function("append, read at once", |bench| {
        bench.iter(|| fill(1, &mut Vec::new()));
    });
    group.bench_function("append, read late", |bench| {
        bench.iter(|| fill(DELTAS, &mut Vec::new()));
    });
    let mut log = fill(1, &mut Vec::new());
    group.bench_function("replay", |bench| {
        let mut frames = Vec::new();
        bench.iter(|| {
            frames.clear();
            log.read(0, usize::MAX, 0, None, &mut frames)
        });
    });
    group.finish();
}

criterion_group!(benches, parse, frame, log);
criterion_main!(benches);

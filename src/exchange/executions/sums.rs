//! Records summed up, by tool and by provider. Pure.

use std::collections::HashMap;

use super::Call;
use crate::protocol::record::{ExecutionStatus, Sums, ToolMetrics};

/// The sums of one name, and of the calls that ran how many there are and for how many milliseconds they did.
#[derive(Default)]
struct Sum {
    sums: Sums,
    ran: u64,
    ran_ms: u64,
}

pub(super) fn of<'c>(calls: impl Iterator<Item = &'c Call>) -> ToolMetrics {
    let mut tools = HashMap::new();
    let mut providers = HashMap::new();
    let mut metrics = ToolMetrics::default();
    for call in calls {
        match call.record.status {
            ExecutionStatus::Running => metrics.running += 1,
            ExecutionStatus::Queued => metrics.queued += 1,
            _ => {
                add(&mut tools, &call.record.tool_name, call);
                add(&mut providers, &call.record.provider, call);
            }
        }
    }
    metrics.tools = sorted(tools);
    metrics.providers = sorted(providers);
    metrics
}

fn add(sums: &mut HashMap<String, Sum>, name: &str, call: &Call) {
    let record = &call.record;
    let sum = sums.entry(name.to_owned()).or_default();
    sum.sums.count += 1;
    match record.status {
        ExecutionStatus::Error => sum.sums.failed += 1,
        ExecutionStatus::Denied => sum.sums.denied += 1,
        ExecutionStatus::Cancelled => sum.sums.cancelled += 1,
        ExecutionStatus::Success | ExecutionStatus::Running | ExecutionStatus::Queued => {}
    }
    sum.ran += u64::from(call.output.is_some());
    sum.ran_ms += record.duration_ms;
    sum.sums.max_duration_ms = sum.sums.max_duration_ms.max(record.duration_ms);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of at most a thousand records and milliseconds of a session"
)]
fn sorted(sums: HashMap<String, Sum>) -> Vec<Sums> {
    let mut all: Vec<Sums> = sums
        .into_iter()
        .map(|(name, sum)| Sums {
            name,
            failure_rate: sum.sums.failed as f64 / sum.sums.count.max(1) as f64,
            mean_duration_ms: sum.ran_ms as f64 / sum.ran.max(1) as f64,
            ..sum.sums
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

//! Tools as a wire format accepts them.

mod names;

pub(crate) use names::ToolNames;

//! A tool whose input is a Rust type: what models read is made of the type, and a call gets a value of it.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Prepared, Refusal, Tool, input};
use crate::message::{DangerLevel, ToolCategory, ToolSpec};

type Prepare<I> = Box<dyn Fn(I) -> Result<Box<dyn Prepared>, Refusal> + Send + Sync>;

pub(super) struct Typed<I> {
    pub(super) spec: ToolSpec,
    pub(super) looks_at_files: bool,
    pub(super) prepare: Prepare<I>,
}

impl<I: JsonSchema> Typed<I> {
    /// Makes the tool; its description is that of `I`.
    pub(super) fn new<P: Prepared>(
        name: &str,
        category: ToolCategory,
        danger_level: DangerLevel,
        prepare: impl Fn(I) -> Result<P, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self::with(input::spec_of::<I>(name, category, danger_level), prepare)
    }
}

impl<I> Typed<I> {
    pub(super) fn with<P: Prepared>(
        spec: ToolSpec,
        prepare: impl Fn(I) -> Result<P, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self {
            spec,
            looks_at_files: true,
            prepare: Box::new(move |input| Ok(Box::new(prepare(input)?))),
        }
    }
}

impl<I: DeserializeOwned> Tool for Typed<I> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn looks_at_files(&self) -> bool {
        self.looks_at_files
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        (self.prepare)(input::parse(&self.spec, input)?)
    }
}

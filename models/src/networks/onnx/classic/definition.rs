//! The definition of a node: its attributes and the version of its operator.

use std::sync::Arc;

use candle_core::Result;

use super::constant::{constant, text, texts};
use super::value::Value;
use crate::networks::onnx::proto::{AttributeProto, NodeProto};

/// A node, and the version of `ai.onnx` that its graph imports.
#[derive(Clone, Copy)]
pub(super) struct Definition<'a> {
    pub(super) node: &'a NodeProto,
    pub(super) opset: i64,
}

// === impl Definition ===

impl<'a> Definition<'a> {
    pub(super) fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.node.attribute.iter().find(|one| one.name == name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |one| one.i)
    }

    pub(super) fn float(&self, name: &str, default: f32) -> f32 {
        self.attribute(name).map_or(default, |one| one.f)
    }

    pub(super) fn text(&self, name: &str, default: &'static str) -> Result<&'a str> {
        self.attribute(name).map_or(Ok(default), |one| text(&one.s))
    }

    /// Integers; none if the attribute is left out.
    pub(super) fn ints(&self, name: &str) -> &'a [i64] {
        self.attribute(name).map_or(&[], |one| &one.ints)
    }

    pub(super) fn floats(&self, name: &str) -> &'a [f32] {
        self.attribute(name).map_or(&[], |one| &one.floats)
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<Arc<str>>> {
        self.attribute(name)
            .map_or(Ok(Vec::new()), |one| texts(&one.strings))
    }

    pub(super) fn tensor(&self, name: &str) -> Result<Option<Value>> {
        let tensor = self.attribute(name).and_then(|one| one.t.as_ref());
        tensor.map(constant).transpose()
    }

    /// # Errors
    /// The attribute is left out, and has no default.
    pub(super) fn required(&self, name: &str) -> Result<&'a AttributeProto> {
        match self.attribute(name) {
            Some(attribute) => Ok(attribute),
            None => candle_core::bail!("attribute `{name}` is missing"),
        }
    }
}

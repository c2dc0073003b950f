//! A bound on that which phases hold more than once: nodes that make constants, and constants.

use std::collections::HashSet;

use prost::Message;

use super::map::Constants;
use crate::networks::onnx::proto::{GraphProto, NodeProto, TensorProto};

/// Bytes that may always be copied.
const FREE: u64 = 64 << 20;

/// Bytes of a node in memory, next to those of its message.
const NODE: u64 = 64;

/// Bytes that phases may still take.
pub(super) struct Copies {
    left: u64,
    nodes: Vec<u64>,
}

// === impl Copies ===

impl Copies {
    /// As much as the graph itself, and a fourth of it.
    pub(super) fn of(graph: &GraphProto) -> Self {
        let nodes: Vec<u64> = graph.node.iter().map(node_bytes).collect();
        let constants = graph.initializer.iter().map(constant_bytes);
        let all = nodes.iter().copied().chain(constants);
        let all = all.fold(0, u64::saturating_add);
        Self {
            left: FREE.saturating_add(all).saturating_add(all / 4),
            nodes,
        }
    }

    /// A node is in a phase; none if there are too many.
    pub(super) fn node(&mut self, at: usize) -> Option<()> {
        self.take(*self.nodes.get(at)?)
    }

    /// Nodes of one phase read these values; none if their constants are too large.
    pub(super) fn constants<'a>(
        &mut self,
        constants: &Constants<'_>,
        read: impl Iterator<Item = &'a str>,
    ) -> Option<()> {
        let mut seen = HashSet::new();
        for name in read.filter(|name| seen.insert(*name)) {
            if let Some(constant) = constants.get(name) {
                self.take(constant_bytes(constant))?;
            }
        }
        Some(())
    }

    fn take(&mut self, bytes: u64) -> Option<()> {
        self.left = self.left.checked_sub(bytes)?;
        Some(())
    }
}

fn node_bytes(node: &NodeProto) -> u64 {
    (node.encoded_len() as u64).saturating_add(NODE)
}

/// The bytes of a constant, of which a sketch has the shape only.
fn constant_bytes(constant: &TensorProto) -> u64 {
    let sizes = constant.dims.iter().map(|&size| u64::try_from(size));
    sizes.fold(8, |all: u64, size| all.saturating_mul(size.unwrap_or(0)))
}

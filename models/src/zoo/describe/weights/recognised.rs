//! A network that a file's tensors are those of.

use std::collections::BTreeMap;

use crate::networks::architecture::Architecture;

/// Shapes of a file's tensors by name.
pub(super) type Shapes = BTreeMap<String, Vec<usize>>;

/// A network that the tensors are those of.
pub(super) struct Recognised {
    /// Such as `efficientnet b0`.
    pub(super) name: String,
    /// The publisher of the names.
    pub(super) naming: &'static str,
    /// With a size by default.
    pub(super) architecture: Architecture,
    /// Whether the file says the size.
    pub(super) is_size_known: bool,
    /// Names of the publisher's networks that pad images on every side, and as TensorFlow does.
    pub(super) paddings: Option<[String; 2]>,
    pub(super) notes: Vec<String>,
}

/// Whether a file has exactly these tensors.
pub(super) fn has_exactly(shapes: &Shapes, tensors: &[(String, Vec<usize>)]) -> bool {
    let is_there = |(name, shape): &(String, Vec<usize>)| shapes.get(name) == Some(shape);
    tensors.len() == shapes.len() && tensors.iter().all(is_there)
}

//! The values that inputs of a node may be: constants of the file, and images that a plan makes.

use std::collections::HashMap;

use super::node::{Extent, Node};
use crate::networks::onnx::elements;
use crate::networks::onnx::proto::{GraphProto, TensorProto, ValueInfoProto};

/// Most values of one image: 1 GiB.
const IMAGE_MAX: usize = 1 << 28;

const FLOAT: i32 = 1;
const INT64: i32 = 7;

/// Images in the order in which they are made, and constants, by name.
pub(super) struct Known<'a> {
    constants: HashMap<&'a str, &'a TensorProto>,
    images: HashMap<&'a str, usize>,
    pub(super) extents: Vec<Extent>,
    /// That of the graph's input: 4, or 3 for sequences.
    pub(super) rank: usize,
}

// === impl Known ===

impl<'a> Known<'a> {
    /// With the graph's only input; none if it is no batch of images or sequences of one size.
    pub(super) fn new(graph: &'a GraphProto) -> Option<Self> {
        let mut constants = HashMap::new();
        for constant in &graph.initializer {
            if constants.insert(&*constant.name, constant).is_some() {
                return None;
            }
        }
        // Before version 4 of the format, constants are listed among the inputs too.
        let inputs = graph.input.iter();
        let mut inputs = inputs.filter(|input| !constants.contains_key(&*input.name));
        let (Some(input), None) = (inputs.next(), inputs.next()) else {
            return None;
        };
        let (extent, rank) = extent(input).filter(|(extent, _)| is_bounded(*extent))?;
        Some(Self {
            images: HashMap::from([(&*input.name, 0)]),
            extents: vec![extent],
            rank,
            constants,
        })
    }

    /// The number of an image, and its extent.
    pub(super) fn image(&self, node: Node<'_>, at: usize) -> Option<(usize, Extent)> {
        let image = *self.images.get(node.input(at)?)?;
        Some((image, self.extents[image]))
    }

    pub(super) fn constant(&self, node: Node<'_>, at: usize) -> Option<&'a TensorProto> {
        let constant = *self.constants.get(node.input(at)?)?;
        (constant.data_location == 0).then_some(constant)
    }

    /// A constant of real numbers.
    pub(super) fn weight(&self, node: Node<'_>, at: usize) -> Option<&'a TensorProto> {
        self.constant(node, at)
            .filter(|weight| weight.data_type == FLOAT)
    }

    /// The integers of a small constant.
    pub(super) fn ints(&self, node: Node<'_>, at: usize) -> Option<Vec<i64>> {
        let of = self.constant(node, at).filter(|of| of.data_type == INT64)?;
        elements::constants(&of.raw_data, &of.int64_data).ok()
    }

    /// The real numbers of a small constant.
    pub(super) fn floats(&self, node: Node<'_>, at: usize) -> Option<Vec<f32>> {
        elements::weights(self.weight(node, at)?).ok()
    }

    /// The number of the image of this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.images.get(name).copied()
    }

    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.constants.contains_key(name)
    }

    /// Adds an image; none if its name is taken or it is too large.
    pub(super) fn add(&mut self, name: &'a str, extent: Extent) -> Option<usize> {
        if !is_bounded(extent) {
            return None;
        }
        let at = self.extents.len();
        self.name(name, at)?;
        self.extents.push(extent);
        Some(at)
    }

    /// Another name of an image.
    pub(super) fn name(&mut self, name: &'a str, image: usize) -> Option<()> {
        if name.is_empty() || self.is_constant(name) || self.images.contains_key(name) {
            return None;
        }
        self.images.insert(name, image);
        Some(())
    }

    /// A constant that a node makes; none if its name is taken.
    pub(super) fn add_constant(&mut self, name: &'a str, value: &'a TensorProto) -> Option<()> {
        if self.images.contains_key(name) || self.constants.insert(name, value).is_some() {
            return None;
        }
        Some(())
    }
}

fn is_bounded(extent: Extent) -> bool {
    let values = extent
        .iter()
        .fold(1usize, |all, &size| all.saturating_mul(size));
    (1..=IMAGE_MAX).contains(&values)
}

/// The extent of an input of real numbers, and its rank.
fn extent(input: &ValueInfoProto) -> Option<(Extent, usize)> {
    let kind = input.r#type.as_ref()?.tensor_type.as_ref()?;
    let sizes = kind.shape.as_ref()?.dim.iter();
    let sizes = sizes.map(|size| usize::try_from(size.value.unwrap_or(0)).ok());
    let sizes: Vec<usize> = sizes.collect::<Option<_>>()?;
    match (kind.elem_type, sizes.as_slice()) {
        (FLOAT, &[_, channels, height, width]) => Some(([channels, height, width], 4)),
        (FLOAT, &[_, channels, length]) => Some(([channels, 1, length], 3)),
        _ => None,
    }
}

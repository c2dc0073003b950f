//! A node of a graph, and its attributes.

use switchyard_kernels::{Padding, Window2d};

use crate::networks::onnx::proto::{AttributeProto, NodeProto};

/// `[channels, height, width]` of images; the batch is open. A sequence has one line.
pub(super) type Extent = [usize; 3];

/// Largest size of a window, of its stride and of its padding.
const WINDOW_MAX: i64 = 4096;

/// A node; `rank` is that of the graph's images (4) or sequences (3).
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) proto: &'a NodeProto,
    pub(super) rank: usize,
}

// === impl Node ===

impl<'a> Node<'a> {
    pub(super) fn input(&self, at: usize) -> Option<&'a str> {
        let name = self.proto.input.get(at)?;
        (!name.is_empty()).then_some(name.as_str())
    }

    /// Its only output; none if it has others that something may read.
    pub(super) fn output(&self) -> Option<&'a str> {
        match self.proto.output.as_slice() {
            [only, rest @ ..] if rest.iter().all(String::is_empty) => Some(only),
            _ => None,
        }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.proto.attribute.iter().find(|one| one.name == name)
    }

    pub(super) fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |one| one.i)
    }

    pub(super) fn float(&self, name: &str, default: f32) -> f32 {
        self.attribute(name).map_or(default, |one| one.f)
    }

    pub(super) fn text(&self, name: &str, default: &'static str) -> &'a [u8] {
        self.attribute(name)
            .map_or(default.as_bytes(), |one| &one.s)
    }

    /// An attribute with a number per axis of an image; a sequence has one line.
    pub(super) fn sizes(&self, name: &str, default: i64) -> Option<[usize; 2]> {
        let given = self.attribute(name).map_or(&[][..], |one| &one.ints);
        let bounded = |size: i64| {
            let size = Some(size).filter(|size| (1..=WINDOW_MAX).contains(size))?;
            usize::try_from(size).ok()
        };
        match (given, self.rank) {
            ([], _) => Some([bounded(default)?; 2]).map(|[a, b]| match self.rank {
                3 => [1, b],
                _ => [a, b],
            }),
            (&[columns], 3) => Some([1, bounded(columns)?]),
            (&[lines, columns], 4) => Some([bounded(lines)?, bounded(columns)?]),
            _ => None,
        }
    }

    /// The window over images of an extent, for weights or an attribute that say its size.
    pub(super) fn window(&self, kernel: [usize; 2], of: Extent) -> Option<Window2d> {
        if self.sizes("dilations", 1)? != [1, 1] {
            return None;
        }
        let stride = self.sizes("strides", 1)?;
        let padding = self.padding(kernel, stride, of)?;
        let most = [
            padding.top.max(padding.bottom),
            padding.left.max(padding.right),
        ];
        if most[0] > kernel[0] || most[1] > kernel[1] {
            return None;
        }
        Some(Window2d {
            kernel,
            stride,
            padding,
        })
    }

    fn padding(&self, kernel: [usize; 2], stride: [usize; 2], of: Extent) -> Option<Padding> {
        let [_, height, width] = of;
        let around = |axis: usize, size: usize| {
            let windows = size.div_ceil(stride[axis]);
            ((windows - 1) * stride[axis] + kernel[axis]).saturating_sub(size)
        };
        let [lines, columns] = match self.text("auto_pad", "NOTSET") {
            b"NOTSET" | b"" => return self.pads(),
            b"VALID" => return Some(Padding::default()),
            b"SAME_UPPER" | b"SAME_LOWER" => [around(0, height), around(1, width)],
            _ => return None,
        };
        let is_upper = self.text("auto_pad", "") == b"SAME_UPPER";
        // The odd zero is behind the image, or before it.
        let before = |zeros: usize| match is_upper {
            true => zeros / 2,
            false => zeros.div_ceil(2),
        };
        Some(Padding {
            top: before(lines),
            left: before(columns),
            bottom: lines - before(lines),
            right: columns - before(columns),
        })
    }

    fn pads(&self) -> Option<Padding> {
        let given = self.attribute("pads").map_or(&[][..], |one| &one.ints);
        let bounded = |size: i64| {
            let size = Some(size).filter(|size| (0..=WINDOW_MAX).contains(size))?;
            usize::try_from(size).ok()
        };
        let [top, left, bottom, right] = match (given, self.rank) {
            ([], _) => [0; 4],
            (&[left, right], 3) => [0, left, 0, right],
            (&[top, left, bottom, right], 4) => [top, left, bottom, right],
            _ => return None,
        };
        Some(Padding {
            top: bounded(top)?,
            left: bounded(left)?,
            bottom: bounded(bottom)?,
            right: bounded(right)?,
        })
    }
}

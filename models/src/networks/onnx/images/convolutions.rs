//! Convolutions from nodes.

use switchyard_kernels::Padding;

use super::convolution::{Convolution, Form, Weight};
use super::known::Known;
use super::node::Node;
use super::operation::{Found, Kind};
use crate::networks::onnx::proto::TensorProto;

/// Most values of a weight: those of a file of the format's largest size.
const WEIGHT_MAX: usize = 1 << 29;

/// Most positions and channels of a mean over windows.
const MEAN_MAX: usize = 1 << 22;

/// A `Conv`: dense or depthwise.
pub(super) fn conv<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let (image, of) = known.image(node, 0)?;
    let weight = known.weight(node, 1)?;
    let (output, per_group, kernel) = shape(weight, node.rank)?;
    let window = node.window(kernel, of)?;
    let form = match node.int("group", 1) {
        1 if per_group == of[0] => Form::Dense,
        groups if per_group == 1 && groups == of[0] as i64 && output == of[0] => Form::Depthwise,
        _ => return None,
    };
    let [height, width] = window.output(of[1], of[2]).ok()?;
    let (weight, bias) = (Weight::Given(weight), bias(node, known, output)?);
    let conv = Convolution::new(form, weight, bias, window, [of[0], output]);
    Some((Kind::Conv(conv), vec![image], [output, height, width]))
}

/// A `ConvTranspose` whose windows lie next to each other.
pub(super) fn transposed<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let (image, of) = known.image(node, 0)?;
    let weight = known.weight(node, 1)?;
    let (input, output, kernel) = shape(weight, node.rank)?;
    let window = node.window(kernel, of)?;
    let added = node.attribute("output_padding");
    let adds = added.is_some_and(|added| added.ints.iter().any(|&size| size != 0));
    let is_plain = window.stride == kernel && window.padding == Padding::default() && !adds;
    if !is_plain
        || input != of[0]
        || node.int("group", 1) != 1
        || node.attribute("output_shape").is_some()
    {
        return None;
    }
    let (weight, bias) = (Weight::Given(weight), bias(node, known, output)?);
    let conv = Convolution::new(Form::Spread, weight, bias, window, [input, output]);
    let extent = [output, of[1] * kernel[0], of[2] * kernel[1]];
    Some((Kind::Conv(conv), vec![image], extent))
}

/// An `AveragePool` that divides by all positions of a window.
pub(super) fn average<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let (image, of) = known.image(node, 0)?;
    let window = node.window(node.sizes("kernel_shape", 0)?, of)?;
    let values = window.positions().saturating_mul(of[0]);
    let counts_all = window.padding == Padding::default() || node.int("count_include_pad", 0) == 1;
    if !counts_all || node.int("ceil_mode", 0) != 0 || values > MEAN_MAX {
        return None;
    }
    let [height, width] = window.output(of[1], of[2]).ok()?;
    let conv = Convolution::new(Form::Depthwise, Weight::Mean, None, window, [of[0]; 2]);
    Some((Kind::Conv(conv), vec![image], [of[0], height, width]))
}

/// The first two sizes of a weight, and those of its window.
fn shape(weight: &TensorProto, rank: usize) -> Option<(usize, usize, [usize; 2])> {
    let sizes = weight.dims.iter().map(|&size| usize::try_from(size).ok());
    let sizes: Vec<usize> = sizes.collect::<Option<_>>()?;
    // A file may say more than it has.
    let count = sizes
        .iter()
        .try_fold(1usize, |all, &size| all.checked_mul(size));
    let fits = count.is_some_and(|count| (1..=WEIGHT_MAX).contains(&count));
    match (sizes.as_slice(), rank) {
        (&[first, second, columns], 3) if fits => Some((first, second, [1, columns])),
        (&[first, second, lines, columns], 4) if fits => Some((first, second, [lines, columns])),
        _ => None,
    }
}

/// The bias, if the node has one; none if it does not fit.
fn bias<'a>(node: Node<'a>, known: &Known<'a>, output: usize) -> Option<Option<&'a TensorProto>> {
    if node.input(2).is_none() {
        return Some(None);
    }
    let bias = known.weight(node, 2)?;
    (bias.dims == [output as i64]).then_some(Some(bias))
}

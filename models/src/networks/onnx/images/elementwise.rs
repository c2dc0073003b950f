//! Operations on each value on its own, from nodes.

use super::function::{Affine, Function};
use super::known::{Known, numbers};
use super::node::{Extent, Node};
use super::operation::Kind;

/// The function of an operator.
pub(super) fn function(node: Node<'_>, known: &Known<'_>) -> Option<Function> {
    let bound = |at: usize, name: &str, default: f32| match node.input(at) {
        Some(_) => match known.floats(node, at)?.as_slice() {
            &[bound] => Some(bound),
            _ => None,
        },
        None => Some(node.float(name, default)),
    };
    known.image(node, 0)?;
    Some(match &*node.proto.op_type {
        "Relu" => Function::Relu,
        "Sigmoid" => Function::Sigmoid,
        "HardSwish" => Function::HardSwish,
        "HardSigmoid" => Function::HardSigmoid {
            alpha: node.float("alpha", 0.2),
            beta: node.float("beta", 0.5),
        },
        "LeakyRelu" => Function::LeakyRelu {
            alpha: node.float("alpha", 0.01),
        },
        "Clip" => Function::Clip {
            low: bound(1, "min", f32::MIN)?,
            high: bound(2, "max", f32::MAX)?,
        },
        _ => return None,
    })
}

/// The normalisation of a node with the statistics of its training.
pub(super) fn norm<'a>(node: Node<'a>, known: &Known<'a>, channels: usize) -> Option<Affine<'a>> {
    let weight = |at| {
        let weight = known.weight(node, at)?;
        (weight.dims == [channels as i64]).then_some(weight)
    };
    if node.int("training_mode", 0) != 0 || node.int("spatial", 1) != 1 {
        return None;
    }
    known.image(node, 0)?;
    Some(Affine::Norm {
        weights: [weight(1)?, weight(2)?, weight(3)?, weight(4)?],
        epsilon: node.float("epsilon", 1e-5),
    })
}

/// Two images, or an image and a constant per channel.
pub(super) fn pair<'a>(
    node: Node<'a>,
    known: &Known<'a>,
) -> Option<(Kind<'a>, Vec<usize>, Extent)> {
    let operator = &*node.proto.op_type;
    let [left, right] = [0, 1].map(|at| known.image(node, at));
    if let (Some((a, of_a)), Some((b, of_b))) = (left, right) {
        let is_gate = |gate: Extent, of: Extent| gate == [of[0], 1, 1];
        return match operator {
            "Add" if of_a == of_b => Some((Kind::Plus, vec![a, b], of_a)),
            "Mul" if of_a == of_b => Some((Kind::Times, vec![a, b], of_a)),
            "Mul" if is_gate(of_b, of_a) => Some((Kind::Scale, vec![a, b], of_a)),
            "Mul" if is_gate(of_a, of_b) => Some((Kind::Scale, vec![b, a], of_b)),
            _ => None,
        };
    }
    let (at, (image, of)) = match (left, right) {
        (Some(image), None) => (1, image),
        (None, Some(image)) => (0, image),
        _ => return None,
    };
    let constant = of_channels(node, known, at, of)?;
    let ones = || vec![1.0; of[0]];
    let (factors, summands) = match (operator, at) {
        ("Add", _) => (ones(), constant),
        ("Sub", 1) => (ones(), constant.iter().map(|value| -value).collect()),
        ("Mul", _) => (constant, vec![0.0; of[0]]),
        ("Div", 1) => (
            constant.iter().map(|value| value.recip()).collect(),
            vec![0.0; of[0]],
        ),
        _ => return None,
    };
    let affine = Affine::Given { factors, summands };
    Some((Kind::Affine(affine), vec![image], of))
}

/// A constant that is one number, or one per channel.
fn of_channels(node: Node<'_>, known: &Known<'_>, at: usize, of: Extent) -> Option<Vec<f32>> {
    let weight = known.weight(node, at)?;
    let before = weight.dims.len().checked_sub(node.rank - 1);
    let is_each = weight.dims.iter().all(|&size| size == 1);
    let mut sizes = weight.dims.iter().skip(before.unwrap_or(0));
    let is_channels = before.is_some_and(|before| weight.dims[..before].iter().all(|&s| s == 1))
        && sizes.next() == Some(&(of[0] as i64))
        && sizes.all(|&size| size == 1);
    if !is_each && !is_channels || weight.dims.len() > node.rank {
        return None;
    }
    // Large weights have no values in a sketch.
    let count = weight.dims.iter().product::<i64>();
    let values = match weight.raw_data.is_empty() && weight.float_data.is_empty() {
        true => vec![0.0; usize::try_from(count).ok()?],
        false => numbers(weight).ok()?,
    };
    match values.as_slice() {
        &[value] => Some(vec![value; of[0]]),
        _ => Some(values),
    }
}

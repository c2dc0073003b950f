//! Operations on each value on its own, from nodes.

use super::function::{Affine, AffineForm, Function};
use super::known::Known;
use super::node::{Extent, Node};
use super::operation::{Found, Kind, Unweighted};
use crate::networks::onnx::proto::TensorProto;

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
pub(super) fn pair<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let operator = &*node.proto.op_type;
    let [left, right] = [0, 1].map(|at| known.image(node, at));
    if let (Some((a, of_a)), Some((b, of_b))) = (left, right) {
        let is_gate = |gate: Extent, of: Extent| gate == [of[0], 1, 1];
        let both =
            |kind, images: [usize; 2], of| Some((Kind::Unweighted(kind), images.to_vec(), of));
        return match operator {
            "Add" if of_a == of_b => both(Unweighted::Plus, [a, b], of_a),
            "Mul" if of_a == of_b => both(Unweighted::Times, [a, b], of_a),
            "Mul" if is_gate(of_b, of_a) => both(Unweighted::Scale, [a, b], of_a),
            "Mul" if is_gate(of_a, of_b) => both(Unweighted::Scale, [b, a], of_b),
            _ => None,
        };
    }
    let (at, (image, of)) = match (left, right) {
        (Some(image), None) => (1, image),
        (None, Some(image)) => (0, image),
        _ => return None,
    };
    let form = match (operator, at) {
        ("Add", _) => AffineForm::Plus,
        ("Sub", 1) => AffineForm::Minus,
        ("Mul", _) => AffineForm::Times,
        ("Div", 1) => AffineForm::Over,
        _ => return None,
    };
    let affine = Affine::Constant {
        form,
        weight: of_channels(node, known, at, of)?,
        channels: of[0],
    };
    Some((Kind::Affine(affine), vec![image], of))
}

/// A constant that is one number, or one per channel.
fn of_channels<'a>(
    node: Node<'a>,
    known: &Known<'a>,
    at: usize,
    of: Extent,
) -> Option<&'a TensorProto> {
    let weight = known.weight(node, at)?;
    let ones = |sizes: &[i64]| sizes.iter().all(|&size| size == 1);
    let channels = weight.dims.len().checked_sub(node.rank - 1);
    let is_each = channels.is_some_and(|at| {
        let (before, after) = (&weight.dims[..at], &weight.dims[at + 1..]);
        ones(before) && weight.dims[at] == of[0] as i64 && ones(after)
    });
    let fits = weight.dims.len() <= node.rank && (is_each || ones(&weight.dims));
    fits.then_some(weight)
}

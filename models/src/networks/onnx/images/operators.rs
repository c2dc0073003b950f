//! Operations of images, by the operators of nodes.

use super::known::Known;
use super::node::{Extent, Node};
use super::operation::{Kind, Made, Unweighted};
use super::{convolutions, elementwise, pools};

/// The operations of a node that makes images; none if this engine does not know it.
pub(super) fn operations<'a>(node: Node<'a>, known: &Known<'a>) -> Option<Vec<Made<'a>>> {
    if !matches!(&*node.proto.domain, "" | "ai.onnx") {
        return None;
    }
    let one = |(kind, images, extent): (Kind<'a>, Vec<usize>, Extent)| {
        Some(vec![(kind, images, extent, node.output()?)])
    };
    let (first, extent) = known.image(node, 0).or_else(|| known.image(node, 1))?;
    match &*node.proto.op_type {
        "Conv" => one(convolutions::conv(node, known)?),
        "ConvTranspose" => one(convolutions::transposed(node, known)?),
        "AveragePool" => one(convolutions::average(node, known)?),
        "BatchNormalization" => {
            let affine = elementwise::norm(node, known, extent[0])?;
            one((Kind::Affine(affine), vec![first], extent))
        }
        "Add" | "Mul" | "Sub" | "Div" => one(elementwise::pair(node, known)?),
        "MaxPool" => one(pools::max(node, known)?),
        "GlobalAveragePool" => one((
            Kind::Unweighted(Unweighted::Mean),
            vec![first],
            [extent[0], 1, 1],
        )),
        "ReduceMean" => one(pools::reduced_mean(node, known)?),
        "Concat" => one(pools::join(node, known)?),
        "Split" => pools::split(node, known),
        "Resize" | "Upsample" => one(pools::enlarge(node, known)?),
        _ => {
            let each = Unweighted::Each(elementwise::function(node, known)?);
            one((Kind::Unweighted(each), vec![first], extent))
        }
    }
}

/// The image that a node only names anew.
pub(super) fn renamed(node: Node<'_>, known: &Known<'_>) -> Option<usize> {
    let names = ["Identity", "Dropout"].contains(&&*node.proto.op_type);
    let (image, _) = known.image(node, 0).filter(|_| names)?;
    Some(image)
}

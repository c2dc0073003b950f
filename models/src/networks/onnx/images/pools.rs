//! Operations over positions and channels: pools, and images put together, taken apart and enlarged.

use super::known::Known;
use super::node::{Extent, Node};
use super::operation::{Found, Kind, Made, Unweighted};

/// Largest factor by which an image is enlarged.
const TIMES_MAX: f32 = 64.0;

pub(super) fn max<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let (image, of) = known.image(node, 0)?;
    let window = node.window(node.sizes("kernel_shape", 0)?, of)?;
    let padding = window.padding;
    // Otherwise a window may have no position of the image.
    let meets = padding.top.max(padding.bottom) < window.kernel[0]
        && padding.left.max(padding.right) < window.kernel[1];
    if !meets || node.int("ceil_mode", 0) != 0 || node.int("storage_order", 0) != 0 {
        return None;
    }
    let [height, width] = window.output(of[1], of[2]).ok()?;
    let max = Kind::Unweighted(Unweighted::Max(window));
    Some((max, vec![image], [of[0], height, width]))
}

/// A `ReduceMean` over all positions that keeps their axes.
pub(super) fn reduced_mean<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let (image, of) = known.image(node, 0)?;
    let mut axes = match (node.input(1), node.attribute("axes")) {
        (Some(_), _) => known.ints(node, 1)?,
        (None, Some(axes)) => axes.ints.clone(),
        (None, None) => return None,
    };
    let rank = node.rank as i64;
    for axis in &mut axes {
        *axis = positive(*axis, rank);
    }
    axes.sort_unstable();
    let positions: Vec<i64> = (2..rank).collect();
    if axes != positions || node.int("keepdims", 1) != 1 {
        return None;
    }
    let mean = Kind::Unweighted(Unweighted::Mean);
    Some((mean, vec![image], [of[0], 1, 1]))
}

fn positive(axis: i64, rank: i64) -> i64 {
    if axis < 0 {
        axis.saturating_add(rank)
    } else {
        axis
    }
}

/// A `Concat` of channels.
pub(super) fn join<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let axis = node.attribute("axis")?.i;
    if positive(axis, node.rank as i64) != 1 {
        return None;
    }
    let images = (0..node.proto.input.len()).map(|at| known.image(node, at));
    let images: Vec<(usize, Extent)> = images.collect::<Option<_>>()?;
    let [_, height, width] = images.first()?.1;
    if images.iter().any(|(_, of)| of[1..] != [height, width]) {
        return None;
    }
    let channels = images.iter().map(|(_, of)| of[0]).sum();
    let images = images.into_iter().map(|(image, _)| image).collect();
    let join = Kind::Unweighted(Unweighted::Join);
    Some((join, images, [channels, height, width]))
}

/// A `Split` of channels.
pub(super) fn split<'a>(node: Node<'a>, known: &Known<'a>) -> Option<Vec<Made<'a>>> {
    let (image, of) = known.image(node, 0)?;
    let outputs = &node.proto.output;
    if positive(node.int("axis", 0), node.rank as i64) != 1 || outputs.is_empty() {
        return None;
    }
    let given = match (node.input(1), node.attribute("split")) {
        (Some(_), _) => known.ints(node, 1)?,
        (None, Some(split)) => split.ints.clone(),
        (None, None) => {
            let each = of[0].div_ceil(outputs.len());
            let starts = (0..outputs.len()).map(|at| (at * each).min(of[0]));
            starts.map(|from| (of[0] - from).min(each) as i64).collect()
        }
    };
    let sizes = given.iter().map(|&size| usize::try_from(size).ok());
    let sizes: Vec<usize> = sizes.collect::<Option<_>>()?;
    let whole = sizes
        .iter()
        .try_fold(0usize, |all, &size| all.checked_add(size));
    if sizes.len() != outputs.len() || whole != Some(of[0]) || sizes.contains(&0) {
        return None;
    }
    let mut from = 0;
    let parts = outputs.iter().zip(sizes).map(|(name, len)| {
        let part = Kind::Unweighted(Unweighted::Part { from, len });
        from += len;
        (part, vec![image], [len, of[1], of[2]], name.as_str())
    });
    Some(parts.collect())
}

/// A `Resize` or `Upsample` that repeats positions.
pub(super) fn enlarge<'a>(node: Node<'a>, known: &Known<'a>) -> Found<'a> {
    let (image, of) = known.image(node, 0)?;
    let scales = match &*node.proto.op_type {
        "Upsample" => 1,
        _ => {
            let repeats = node.text("coordinate_transformation_mode", "half_pixel")
                == b"asymmetric"
                && node.text("nearest_mode", "round_prefer_floor") == b"floor";
            if !repeats || node.input(1).is_some() || node.attribute("axes").is_some() {
                return None;
            }
            2
        }
    };
    if node.text("mode", "nearest") != b"nearest" {
        return None;
    }
    let scales = known.floats(node, scales)?;
    let is_whole = |&scale: &f32| scale.fract() == 0.0 && (1.0..=TIMES_MAX).contains(&scale);
    let times = match scales.as_slice() {
        [1.0, 1.0, columns] if node.rank == 3 && is_whole(columns) => [1, *columns as usize],
        [1.0, 1.0, lines, columns] if node.rank == 4 && is_whole(lines) && is_whole(columns) => {
            [*lines as usize, *columns as usize]
        }
        _ => return None,
    };
    let extent = [of[0], of[1] * times[0], of[2] * times[1]];
    let enlarge = Kind::Unweighted(Unweighted::Enlarge(times));
    Some((enlarge, vec![image], extent))
}

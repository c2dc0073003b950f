//! Shapes: sizes, axes and broadcasting.

use candle_core::Result;

/// The most elements that a value may have. A file cannot ask for more.
pub(super) const MAX_ELEMENTS: usize = 64 << 20;

/// The elements of a shape. Products of any of its dimensions are bounded too.
///
/// # Errors
/// There are more than [`MAX_ELEMENTS`], not counting dimensions of 0.
pub(super) fn count(shape: &[usize]) -> Result<usize> {
    let all = shape
        .iter()
        .try_fold(1, |all: usize, &size| all.checked_mul(size.max(1)));
    match all {
        Some(_) if shape.contains(&0) && all <= Some(MAX_ELEMENTS) => Ok(0),
        Some(all) if all <= MAX_ELEMENTS => Ok(all),
        _ => candle_core::bail!("shape {shape:?} has more than {MAX_ELEMENTS} elements"),
    }
}

/// An axis of `rank` axes; negative values count from the last.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    match axis {
        0.. if axis < rank => Ok(axis as usize),
        ..0 if axis >= -rank => Ok((axis + rank) as usize),
        _ => candle_core::bail!("axis {axis} of a value of {rank} axes"),
    }
}

/// For each of `rank` axes whether it is among `axes`; all if `axes` is empty.
pub(super) fn selected(axes: &[i64], rank: usize) -> Result<Vec<bool>> {
    let mut selected = vec![axes.is_empty(); rank];
    for &one in axes {
        selected[axis(one, rank)?] = true;
    }
    Ok(selected)
}

/// Elements between neighbours, for each axis.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(shape[at]);
    }
    strides
}

/// The shape that two shapes broadcast to.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |shape: &[usize], at: usize| match (at + shape.len()).checked_sub(rank) {
        Some(at) => shape[at],
        None => 1,
    };
    let mut wide = Vec::with_capacity(rank);
    for at in 0..rank {
        match (size(a, at), size(b, at)) {
            (1, other) | (other, 1) => wide.push(other),
            (one, other) if one == other => wide.push(one),
            _ => candle_core::bail!("{a:?} and {b:?} do not broadcast"),
        }
    }
    count(&wide)?;
    Ok(wide)
}

/// Sizes from a file or another value.
pub(super) fn sizes(numbers: &[i64]) -> Result<Vec<usize>> {
    let size = |&number: &i64| {
        let size = usize::try_from(number);
        size.map_err(|_| candle_core::Error::msg(format!("size {number} in a shape")))
    };
    numbers.iter().map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_last_axis() {
        assert_eq!(broadcast(&[3, 1], &[4]).unwrap(), [3, 4]);
        assert_eq!(broadcast(&[], &[2, 0]).unwrap(), [2, 0]);
        assert!(broadcast(&[2], &[3]).is_err());
    }

    #[test]
    fn shapes_that_overflow_are_errors() {
        assert!(count(&[usize::MAX, 2]).is_err());
        assert!(count(&[MAX_ELEMENTS, 2]).is_err());
        assert!(count(&[usize::MAX, 0]).is_err());
        assert_eq!(count(&[MAX_ELEMENTS, 0]).unwrap(), 0);
        assert!(sizes(&[-1]).is_err());
        assert!(axis(-3, 2).is_err() && axis(i64::MIN, 2).is_err());
    }
}

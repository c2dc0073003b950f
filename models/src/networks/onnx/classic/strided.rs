//! Elements picked along each axis: the data movement of most shape operators.

use candle_core::Result;

use super::shape;
use super::value::Tensor;

/// For each axis of the result, the offsets that its positions add.
pub(super) type Offsets = Vec<Vec<usize>>;

/// The tensor whose element at `[i, j, ...]` is at `axes[0][i] + axes[1][j] + ...` in `from`.
///
/// # Errors
/// The result is too large, or an offset is outside of `from`.
pub(super) fn picked<T: Clone>(from: &Tensor<T>, axes: &Offsets) -> Result<Tensor<T>> {
    let shape: Vec<usize> = axes.iter().map(Vec::len).collect();
    let mut data = Vec::with_capacity(shape::count(&shape)?);
    if !shape.contains(&0) {
        let furthest: usize = axes.iter().filter_map(|axis| axis.iter().max()).sum();
        if furthest >= from.data().len() {
            candle_core::bail!("position {furthest} of {} elements", from.data().len());
        }
        for_each(axes, |at| data.push(from.data()[at].clone()));
    }
    Tensor::new(shape, data)
}

/// Calls `visit` with the offset of every element, row-major.
pub(super) fn for_each(axes: &Offsets, mut visit: impl FnMut(usize)) {
    let Some((last, outer)) = axes.split_last() else {
        visit(0);
        return;
    };
    if axes.iter().any(Vec::is_empty) {
        return;
    }
    let mut at = vec![0; outer.len()];
    loop {
        let base: usize = at.iter().zip(outer).map(|(&at, axis)| axis[at]).sum();
        for offset in last {
            visit(base + offset);
        }
        // The next position, like an odometer.
        let mut axis = outer.len();
        loop {
            let Some(before) = axis.checked_sub(1) else {
                return;
            };
            axis = before;
            at[axis] += 1;
            if at[axis] < outer[axis].len() {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// The offsets of all elements of a shape.
pub(super) fn all(shape: &[usize]) -> Offsets {
    let axes = shape.iter().zip(shape::strides(shape));
    axes.map(|(&size, stride)| (0..size).map(|at| at * stride).collect())
        .collect()
}

/// The offsets of a shape's elements where it is broadcast to `wide`.
pub(super) fn broadcast(shape: &[usize], wide: &[usize]) -> Offsets {
    let mut axes: Offsets = wide.iter().map(|&size| vec![0; size]).collect();
    let skipped = wide.len().saturating_sub(shape.len());
    for ((axis, &size), stride) in axes
        .iter_mut()
        .skip(skipped)
        .zip(shape)
        .zip(shape::strides(shape))
    {
        if size != 1 {
            *axis = (0..size).map(|at| at * stride).collect();
        }
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_picked_in_any_order() {
        let matrix = Tensor::new(vec![2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let mut axes = all(matrix.shape());
        assert_eq!(picked(&matrix, &axes).unwrap(), matrix);
        axes.reverse();
        assert_eq!(picked(&matrix, &axes).unwrap().data(), [1, 4, 2, 5, 3, 6]);
        axes[0] = vec![6];
        assert!(picked(&matrix, &axes).is_err());
    }
}

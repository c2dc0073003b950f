//! Operators that give elements another shape: `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`,
//! `Transpose`, `Concat`, `Split` and `Shape`.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Inputs, Operator, single};
use super::shape;
use super::strided;
use super::value::{Element, Value, each};

fn reshaped(x: &Value, shape: Vec<usize>) -> Result<Value> {
    each!(x, x => Ok(Element::value(x.reshaped(shape)?)))
}

/// `Reshape`: 0 keeps a dimension, -1 is computed. Before version 5 the shape is an attribute.
pub(super) fn reshape(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let attribute = definition.ints("shape").to_vec();
    let zero_is_kept = definition.int("allowzero", 0) == 0;
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let wanted = match inputs.optional(1) {
            Some(wanted) => wanted.integers()?,
            None => attribute.clone(),
        };
        let mut open = None;
        let mut sizes = Vec::with_capacity(wanted.len());
        for (at, &size) in wanted.iter().enumerate() {
            match size {
                -1 if open.is_none() => {
                    open = Some(at);
                    sizes.push(1);
                }
                0 if zero_is_kept => match x.shape().get(at) {
                    Some(&size) => sizes.push(size),
                    None => candle_core::bail!("Reshape of {:?} to {wanted:?}", x.shape()),
                },
                size => sizes.extend(shape::sizes(&[size])?),
            }
        }
        if let Some(at) = open {
            let (all, known) = (shape::count(x.shape())?, shape::count(&sizes)?);
            sizes[at] = all.checked_div(known).unwrap_or_default();
        }
        reshaped(x, sizes)
    }))
}

/// `Flatten`: `[all before the axis, all from it]`.
pub(super) fn flatten(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", 1);
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let rank = x.shape().len();
        let axis = match usize::try_from(axis) {
            Ok(axis) if axis == rank => axis,
            _ => shape::axis(axis, rank)?,
        };
        let (outer, inner) = x.shape().split_at(axis);
        reshaped(x, vec![outer.iter().product(), inner.iter().product()])
    }))
}

/// Axes from the second input, or before version 13 from the attribute.
fn axes(inputs: Inputs<'_>, attribute: &[i64]) -> Result<Vec<i64>> {
    match inputs.optional(1) {
        Some(axes) => axes.integers(),
        None => Ok(attribute.to_vec()),
    }
}

/// `Squeeze`: drops axes of size 1, all of them if none are named.
pub(super) fn squeeze(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let attribute = definition.ints("axes").to_vec();
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let axes = axes(inputs, &attribute)?;
        let is_dropped = shape::selected(&axes, x.shape().len())?;
        let mut sizes = Vec::new();
        for (&size, is_dropped) in x.shape().iter().zip(is_dropped) {
            match (is_dropped, size) {
                (true, 1) => {}
                (true, _) if !axes.is_empty() => {
                    candle_core::bail!("Squeeze of axes {axes:?} of {:?}", x.shape())
                }
                _ => sizes.push(size),
            }
        }
        reshaped(x, sizes)
    }))
}

/// `Unsqueeze`: adds axes of size 1, which are numbered in the result.
pub(super) fn unsqueeze(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let attribute = definition.ints("axes").to_vec();
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let axes = axes(inputs, &attribute)?;
        let rank = x.shape().len() + axes.len();
        let mut is_added = vec![false; rank];
        for &axis in &axes {
            let axis = shape::axis(axis, rank)?;
            if std::mem::replace(&mut is_added[axis], true) {
                candle_core::bail!("Unsqueeze adds axis {axis} twice");
            }
        }
        let mut sizes = x.shape().iter();
        let size = |is_added: &bool| match is_added {
            true => 1,
            false => sizes.next().copied().unwrap_or(1),
        };
        let sizes = is_added.iter().map(size).collect();
        reshaped(x, sizes)
    }))
}

/// `Transpose`: the order of axes is reversed unless `perm` has it.
pub(super) fn transpose(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let order = definition.ints("perm").to_vec();
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let all = strided::all(x.shape());
        let axes: strided::Offsets = if order.is_empty() {
            all.into_iter().rev().collect()
        } else {
            let mut axes = Vec::with_capacity(order.len());
            let mut left: Vec<Option<Vec<usize>>> = all.into_iter().map(Some).collect();
            for &axis in &order {
                match left[shape::axis(axis, x.shape().len())?].take() {
                    Some(offsets) => axes.push(offsets),
                    None => candle_core::bail!("perm {order:?} has axis {axis} twice"),
                }
            }
            if left.iter().any(Option::is_some) {
                candle_core::bail!("perm {order:?} of {:?}", x.shape());
            }
            axes
        };
        each!(x, x => Ok(Element::value(strided::picked(x, &axes)?)))
    }))
}

/// `Concat`: inputs that differ only in the size of an axis.
pub(super) fn concat(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", 1);
    Ok(single(move |inputs| {
        let all = inputs.all()?;
        let Some(first) = all.first() else {
            candle_core::bail!("no inputs");
        };
        let axis = shape::axis(axis, first.shape().len())?;
        each!(first, _first => concatenated(_first, &all, axis))
    }))
}

fn concatenated<T: Element>(
    first: &super::value::Tensor<T>,
    all: &[&Value],
    axis: usize,
) -> Result<Value> {
    let parts: Result<Vec<_>> = all.iter().map(|part| part.tensor::<T>()).collect();
    let parts = parts?;
    let (before, after) = (&first.shape()[..axis], &first.shape()[axis + 1..]);
    let mut size = 0;
    for part in &parts {
        match part.shape().get(axis) {
            Some(more) if part.shape()[..axis] == *before && part.shape()[axis + 1..] == *after => {
                size += more;
            }
            _ => candle_core::bail!("Concat of {:?} and {:?}", first.shape(), part.shape()),
        }
    }
    let mut shape = first.shape().to_vec();
    shape[axis] = size;
    let mut data = Vec::with_capacity(shape::count(&shape)?);
    for row in 0..before.iter().product() {
        for part in &parts {
            let length = part.shape()[axis..].iter().product::<usize>();
            data.extend_from_slice(&part.data()[row * length..(row + 1) * length]);
        }
    }
    Value::new(shape, data)
}

/// `Split`: along an axis, into parts of given sizes or as many equal ones as the node has outputs.
pub(super) fn split(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", 0);
    let attribute = definition.ints("split").to_vec();
    let outputs = definition.node.output.len();
    Ok(Box::new(move |inputs: Inputs<'_>| {
        let x = inputs.at(0)?;
        let axis = shape::axis(axis, x.shape().len())?;
        let size = x.shape()[axis];
        let given = shape::sizes(&axes(inputs, &attribute)?)?;
        let parts = if given.is_empty() {
            let part = size.div_ceil(outputs.max(1));
            (0..outputs)
                .map(|at| part.min(size.saturating_sub(at * part)))
                .collect()
        } else {
            given
        };
        let total = parts
            .iter()
            .try_fold(0usize, |sum, &one| sum.checked_add(one));
        if total != Some(size) {
            candle_core::bail!("Split of {size} into {parts:?}");
        }
        let mut first = 0;
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            let mut offsets = strided::all(x.shape());
            offsets[axis] = offsets[axis][first..first + part].to_vec();
            first += part;
            values.push(each!(x, x => Element::value(strided::picked(x, &offsets)?)));
        }
        Ok(values)
    }))
}

/// `Shape`: the dimensions, or some of them, as INT64.
pub(super) fn shape(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let (start, end) = (definition.int("start", 0), definition.int("end", i64::MAX));
    Ok(single(move |inputs| {
        let sizes: Vec<i64> = inputs
            .at(0)?
            .shape()
            .iter()
            .map(|&size| size as i64)
            .collect();
        let rank = sizes.len() as i64;
        let place = |at: i64| {
            let at = if at < 0 { at.saturating_add(rank) } else { at };
            at.clamp(0, rank) as usize
        };
        let sizes = sizes.get(place(start)..place(end)).unwrap_or_default();
        Value::new(vec![sizes.len()], sizes.to_vec())
    }))
}

//! Operators that pick or repeat elements: `Gather`, `GatherElements`, `Slice`, `Expand`, `Tile`,
//! `Constant` and `ConstantOfShape`.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::shape;
use super::strided::{self, Offsets};
use super::value::{Element, Tensor, Value, each};

fn picked(x: &Value, axes: &Offsets) -> Result<Value> {
    each!(x, x => Ok(Element::value(strided::picked(x, axes)?)))
}

/// A position along an axis; negative values count from the end.
fn position(at: i64, size: usize) -> Result<usize> {
    let from_end = if at < 0 {
        at.saturating_add(size as i64)
    } else {
        at
    };
    match usize::try_from(from_end) {
        Ok(at) if at < size => Ok(at),
        _ => candle_core::bail!("position {at} of {size}"),
    }
}

/// `Gather`: positions along an axis; their shape takes the axis's place.
pub(super) fn gather(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", 0);
    Ok(single(move |inputs| {
        let (x, positions) = (inputs.at(0)?, inputs.at(1)?);
        let axis = shape::axis(axis, x.shape().len())?;
        let mut axes = strided::all(x.shape());
        let offsets = positions.integers()?;
        let offset = |&at: &i64| Ok(axes[axis][position(at, x.shape()[axis])?]);
        let offsets: Result<Vec<usize>> = offsets.iter().map(offset).collect();
        axes[axis] = offsets?;
        let shape = [
            &x.shape()[..axis],
            positions.shape(),
            &x.shape()[axis + 1..],
        ]
        .concat();
        each!(picked(x, &axes)?, x => Value::new(shape, x.into_parts().1))
    }))
}

/// `GatherElements`: each position is along an axis, at the other axes of its own place.
pub(super) fn gather_elements(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", 0);
    Ok(single(move |inputs| {
        let (x, positions) = (inputs.at(0)?, inputs.at(1)?);
        let axis = shape::axis(axis, x.shape().len())?;
        let shape = positions.shape().to_vec();
        let mut sizes = x.shape().iter().zip(&shape).enumerate();
        if shape.len() != x.shape().len() || !sizes.all(|(at, (x, of))| at == axis || of <= x) {
            candle_core::bail!("GatherElements of {:?} at {shape:?}", x.shape());
        }
        // The offset of a place without the axis, to which the position is added.
        let mut axes = strided::all(x.shape());
        let along = std::mem::take(&mut axes[axis]);
        for (axis, &size) in axes.iter_mut().zip(&shape) {
            axis.truncate(size);
        }
        axes[axis] = vec![0; shape[axis]];
        let mut bases = Vec::new();
        strided::for_each(&axes, |at| bases.push(at));
        let positions = positions.integers()?;
        let offsets = positions.iter().zip(bases);
        let offsets = offsets.map(|(&at, base)| Ok(base + along[position(at, along.len())?]));
        let offsets = offsets.collect::<Result<Vec<usize>>>()?;
        each!(x, x => at_offsets(x, &offsets, shape))
    }))
}

fn at_offsets<T: Element>(x: &Tensor<T>, offsets: &[usize], shape: Vec<usize>) -> Result<Value> {
    let data = offsets.iter().map(|&at| x.data()[at].clone());
    Value::new(shape, data.collect())
}

/// `Slice`: before version 10 starts, ends and axes are attributes, then inputs.
pub(super) fn slice(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let attributes = ["starts", "ends", "axes", "steps"].map(|name| definition.ints(name).to_vec());
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let given = |at: usize| match inputs.optional(at + 1) {
            Some(given) => given.integers(),
            None => Ok(attributes[at].clone()),
        };
        let (starts, ends, mut axes, mut steps) = (given(0)?, given(1)?, given(2)?, given(3)?);
        if axes.is_empty() {
            axes = (0..starts.len() as i64).collect();
        }
        if steps.is_empty() {
            steps = vec![1; starts.len()];
        }
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
            candle_core::bail!("Slice of {starts:?} to {ends:?} by {steps:?} along {axes:?}");
        }
        let mut offsets = strided::all(x.shape());
        for (((start, end), axis), step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
            let axis = shape::axis(*axis, x.shape().len())?;
            offsets[axis] = stepped(&offsets[axis], *start, *end, *step)?;
        }
        picked(x, &offsets)
    }))
}

fn stepped(from: &[usize], start: i64, end: i64, step: i64) -> Result<Vec<usize>> {
    let size = from.len() as i64;
    let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(if step > 0 {
        let (start, end) = (from_end(start).clamp(0, size), from_end(end).clamp(0, size));
        let range = from.get(start as usize..end as usize).unwrap_or_default();
        range.iter().copied().step_by(stride).collect()
    } else if step < 0 {
        let start = from_end(start).clamp(-1, size - 1);
        let end = from_end(end).clamp(-1, size - 1);
        let range = from.get((end + 1) as usize..(start + 1) as usize);
        let range = range.unwrap_or_default();
        range.iter().rev().copied().step_by(stride).collect()
    } else {
        candle_core::bail!("Slice by steps of 0")
    })
}

/// `Expand`: broadcasts to a shape.
pub(super) fn expand(_: Definition<'_>) -> Result<Box<dyn Operator>> {
    Ok(single(|inputs| {
        let x = inputs.at(0)?;
        let wanted = shape::sizes(&inputs.at(1)?.integers()?)?;
        let shape = shape::broadcast(x.shape(), &wanted)?;
        picked(x, &strided::broadcast(x.shape(), &shape))
    }))
}

/// `Tile`: repeats each axis.
pub(super) fn tile(_: Definition<'_>) -> Result<Box<dyn Operator>> {
    Ok(single(|inputs| {
        let x = inputs.at(0)?;
        let repeats = shape::sizes(&inputs.at(1)?.integers()?)?;
        if repeats.len() != x.shape().len() {
            candle_core::bail!("Tile of {:?} by {repeats:?}", x.shape());
        }
        let sizes = x.shape().iter().zip(&repeats);
        let sizes: Vec<usize> = sizes.map(|(size, by)| size.saturating_mul(*by)).collect();
        if shape::count(&sizes)? == 0 {
            return each!(x, x => Ok(Element::value(emptied(x, sizes)?)));
        }
        let axes = strided::all(x.shape()).into_iter().zip(repeats);
        picked(x, &axes.map(|(axis, by)| axis.repeat(by)).collect())
    }))
}

fn emptied<T>(_: &Tensor<T>, shape: Vec<usize>) -> Result<Tensor<T>> {
    Tensor::new(shape, Vec::new())
}

/// `Constant`: the value of the attribute that is there.
pub(super) fn constant(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let value = if let Some(value) = definition.tensor("value")? {
        value
    } else if definition.has("value_float") {
        Value::new(Vec::new(), vec![definition.float("value_float", 0.0)])?
    } else if definition.has("value_int") {
        Value::new(Vec::new(), vec![definition.int("value_int", 0)])?
    } else if definition.has("value_string") {
        let text: std::sync::Arc<str> = definition.text("value_string", "")?.into();
        Value::new(Vec::new(), vec![text])?
    } else if definition.has("value_floats") {
        let floats = definition.floats("value_floats").to_vec();
        Value::new(vec![floats.len()], floats)?
    } else if definition.has("value_ints") {
        let ints = definition.ints("value_ints").to_vec();
        Value::new(vec![ints.len()], ints)?
    } else if definition.has("value_strings") {
        let texts = definition.texts("value_strings")?;
        Value::new(vec![texts.len()], texts)?
    } else {
        candle_core::bail!("has no value that the engine knows")
    };
    Ok(single(move |_| Ok(value.clone())))
}

/// `ConstantOfShape`: one value everywhere, by default 0 of FLOAT.
pub(super) fn constant_of_shape(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let value = match definition.tensor("value")? {
        Some(value) => value,
        None => Value::new(vec![1], vec![0.0f32])?,
    };
    Ok(single(move |inputs| {
        let shape = shape::sizes(&inputs.at(0)?.integers()?)?;
        each!(&value, value => filled(value, shape))
    }))
}

fn filled<T: Element>(value: &Tensor<T>, shape: Vec<usize>) -> Result<Value> {
    match value.data() {
        [value] => {
            let count = shape::count(&shape)?;
            Value::new(shape, vec![value.clone(); count])
        }
        _ => candle_core::bail!("`value` has shape {:?}", value.shape()),
    }
}

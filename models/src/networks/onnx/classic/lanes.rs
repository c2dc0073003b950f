//! Operators along one axis: `ArgMax`, `ArgMin`, `Softmax`, `LogSoftmax`, `LpNormalization`,
//! `CumSum` and `TopK`.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Inputs, Operator, single};
use super::reduce::left;
use super::shape;
use super::value::{Element, Tensor, Value, each_number};

/// A tensor as `[outer, axis, inner]`.
fn lanes(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    let outer = shape[..axis].iter().product();
    (outer, shape[axis], shape[axis + 1..].iter().product())
}

/// `ArgMax` and `ArgMin`: the position along an axis, as INT64.
pub(super) fn position(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", 0);
    let keeps = definition.int("keepdims", 1) != 0;
    let takes_last = definition.int("select_last_index", 0) != 0;
    let wanted = match definition.node.op_type.as_str() {
        "ArgMin" => std::cmp::Ordering::Less,
        _ => std::cmp::Ordering::Greater,
    };
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let axis = shape::axis(axis, x.shape().len())?;
        let (outer, size, inner) = lanes(x.shape(), axis);
        if size == 0 {
            candle_core::bail!("no elements along axis {axis}");
        }
        let mut positions = Vec::with_capacity(outer * inner);
        each_number!(x, x => {
            let x = x.data();
            for lane in 0..outer * inner {
                let first = lane / inner * size * inner + lane % inner;
                let mut best = 0;
                for at in 1..size {
                    let order = x[first + at * inner].partial_cmp(&x[first + best * inner]);
                    let ties = takes_last && order == Some(std::cmp::Ordering::Equal);
                    if order == Some(wanted) || ties {
                        best = at;
                    }
                }
                positions.push(best as i64);
            }
        });
        let mut axes = vec![false; x.shape().len()];
        axes[axis] = true;
        Value::new(left(x.shape(), &axes, keeps), positions)
    }))
}

/// `Softmax` and `LogSoftmax`: along an axis, before version 13 along it and all after it.
pub(super) fn softmax(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let is_old = definition.opset < 13;
    let axis = definition.int("axis", if is_old { 1 } else { -1 });
    let is_log = definition.node.op_type == "LogSoftmax";
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let axis = shape::axis(axis, x.shape().len())?;
        let lanes = match is_old {
            true => {
                let (outer, inner) = x.shape().split_at(axis);
                (outer.iter().product(), inner.iter().product(), 1)
            }
            false => lanes(x.shape(), axis),
        };
        if !matches!(x, Value::F32(_) | Value::F64(_)) {
            candle_core::bail!("is not defined for {}", x.name());
        }
        along(x, lanes, |lane| {
            let most = lane.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = lane.iter().map(|one| (one - most).exp()).sum();
            for one in lane {
                let shifted = *one - most;
                *one = if is_log {
                    shifted - sum.ln()
                } else {
                    shifted.exp() / sum
                };
            }
        })
    }))
}

/// `LpNormalization`: divided by the norm along an axis; a norm of 0 leaves 0.
pub(super) fn normalization(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", -1);
    let p = definition.int("p", 2);
    if !(1..=2).contains(&p) {
        candle_core::bail!("norm {p} is unknown");
    }
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let axis = shape::axis(axis, x.shape().len())?;
        let lanes = lanes(x.shape(), axis);
        let norm = |lane: &[f64]| match p {
            1 => lane.iter().map(|one| one.abs()).sum::<f64>(),
            _ => lane.iter().map(|one| one * one).sum::<f64>().sqrt(),
        };
        along(x, lanes, |lane| {
            let norm = norm(lane);
            if norm != 0.0 {
                lane.iter_mut().for_each(|one| *one /= norm);
            }
        })
    }))
}

/// `CumSum`: sums of the elements up to each, or before it, from either end.
pub(super) fn cumulative_sum(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let is_exclusive = definition.int("exclusive", 0) != 0;
    let is_reversed = definition.int("reverse", 0) != 0;
    Ok(single(move |inputs| {
        let (x, axis) = (inputs.at(0)?, inputs.at(1)?.integers()?);
        let [axis] = axis[..] else {
            candle_core::bail!("axes {axis:?} where one was expected");
        };
        let lanes = lanes(x.shape(), shape::axis(axis, x.shape().len())?);
        along(x, lanes, |lane| {
            if is_reversed {
                lane.reverse();
            }
            let mut sum = 0.0;
            for one in lane.iter_mut() {
                let before = sum;
                sum += *one;
                *one = if is_exclusive { before } else { sum };
            }
            if is_reversed {
                lane.reverse();
            }
        })
    }))
}

/// Changes the elements along an axis, in 64 bits; the type stays.
fn along(
    x: &Value,
    (outer, size, inner): (usize, usize, usize),
    change: impl Fn(&mut [f64]),
) -> Result<Value> {
    let mut data = super::scale::doubles(x)?.into_owned();
    let mut lane = Vec::with_capacity(size);
    for at in 0..outer * inner {
        let first = at / inner * size * inner + at % inner;
        lane.clear();
        lane.extend((0..size).map(|at| data[first + at * inner]));
        change(&mut lane);
        for (at, one) in lane.iter().enumerate() {
            data[first + at * inner] = *one;
        }
    }
    let shape = x.shape().to_vec();
    let data = data.into_iter();
    match x {
        Value::F32(_) => Value::new(shape, data.map(|one| one as f32).collect()),
        Value::I64(_) => Value::new(shape, data.map(|one| one as i64).collect()),
        Value::I32(_) => Value::new(shape, data.map(|one| one as i32).collect()),
        _ => Value::new(shape, data.collect()),
    }
}

/// `TopK`: values and INT64 positions, sorted; equal values by position.
pub(super) fn top_k(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let axis = definition.int("axis", -1);
    let largest = definition.int("largest", 1) != 0;
    let attribute = definition.has("k").then(|| definition.int("k", 0));
    Ok(Box::new(move |inputs: Inputs<'_>| {
        let x = inputs.at(0)?;
        let k = match (attribute, inputs.optional(1)) {
            (None, Some(k)) => k.integers()?.first().copied(),
            (k, _) => k,
        };
        let axis = shape::axis(axis, x.shape().len())?;
        let k = match k.and_then(|k| usize::try_from(k).ok()) {
            Some(k) if k <= x.shape()[axis] => k,
            _ => candle_core::bail!("k {k:?} of {:?}", x.shape()),
        };
        each_number!(x, x => top(x, axis, k, largest))
    }))
}

fn top<T: Element + PartialOrd>(
    x: &Tensor<T>,
    axis: usize,
    k: usize,
    largest: bool,
) -> Result<Vec<Value>> {
    let (outer, size, inner) = lanes(x.shape(), axis);
    let mut shape = x.shape().to_vec();
    shape[axis] = k;
    let mut from = vec![0; shape::count(&shape)?];
    let mut positions = vec![0; from.len()];
    let mut order: Vec<usize> = Vec::with_capacity(size);
    for lane in 0..outer * inner {
        let place = |size: usize, at: usize| (lane / inner * size + at) * inner + lane % inner;
        order.clear();
        order.extend(0..size);
        order.sort_by(|&a, &b| {
            let (a, b) = (&x.data()[place(size, a)], &x.data()[place(size, b)]);
            // NaN comes after all numbers: an order that is not total would be a panic.
            let is_nan = |x: &T| x.partial_cmp(x).is_none();
            let ordered = a
                .partial_cmp(b)
                .unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)));
            if largest { ordered.reverse() } else { ordered }
        });
        for (at, &best) in order.iter().take(k).enumerate() {
            from[place(k, at)] = place(size, best);
            positions[place(k, at)] = best as i64;
        }
    }
    let values = from.into_iter().map(|at| x.data()[at].clone()).collect();
    Ok(vec![
        Value::new(shape.clone(), values)?,
        Value::new(shape, positions)?,
    ])
}

//! Reductions along axes.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::shape;
use super::strided;
use super::value::{Element, Tensor, Value, each_number};

/// Axes are an attribute at first, then an input; without axes all are reduced.
pub(super) fn reduce(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let keeps = definition.int("keepdims", 1) != 0;
    let nothing = definition.int("noop_with_empty_axes", 0) != 0;
    let attribute = definition.ints("axes").to_vec();
    let reduce: fn(&Value, &[bool], bool) -> Result<Value> = match definition.node.op_type.as_str()
    {
        "ReduceSum" => |x, axes, keeps| match x {
            Value::I64(x) => folded(
                x,
                axes,
                keeps,
                0i64,
                |sum, &x| sum.wrapping_add(x),
                |a, _| a,
            ),
            Value::I32(x) => folded(
                x,
                axes,
                keeps,
                0i32,
                |sum, &x| sum.wrapping_add(x),
                |a, _| a,
            ),
            x => float(x, axes, keeps, 0.0, |sum, x| sum + x, |sum, _| sum),
        },
        "ReduceMean" => {
            |x, axes, keeps| float(x, axes, keeps, 0.0, |sum, x| sum + x, |sum, n| sum / n)
        }
        "ReduceSumSquare" => {
            |x, axes, keeps| float(x, axes, keeps, 0.0, |sum, x| sum + x * x, |sum, _| sum)
        }
        "ReduceL1" => {
            |x, axes, keeps| float(x, axes, keeps, 0.0, |sum, x| sum + x.abs(), |sum, _| sum)
        }
        "ReduceL2" => |x, axes, keeps| {
            float(
                x,
                axes,
                keeps,
                0.0,
                |sum, x| sum + x * x,
                |sum, _| sum.sqrt(),
            )
        },
        "ReduceProd" => |x, axes, keeps| float(x, axes, keeps, 1.0, |all, x| all * x, |all, _| all),
        "ReduceLogSumExp" => log_sum_exp,
        "ReduceMax" => |x, axes, keeps| most(x, axes, keeps, std::cmp::Ordering::Greater),
        "ReduceMin" => |x, axes, keeps| most(x, axes, keeps, std::cmp::Ordering::Less),
        other => candle_core::bail!("`{other}` reduces nothing"),
    };
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let axes = match inputs.optional(1) {
            Some(axes) => axes.integers()?,
            None => attribute.clone(),
        };
        if axes.is_empty() && nothing {
            return Ok(x.clone());
        }
        reduce(x, &shape::selected(&axes, x.shape().len())?, keeps)
    }))
}

/// The shape after a reduction.
pub(super) fn left(shape: &[usize], axes: &[bool], keeps: bool) -> Vec<usize> {
    let sizes = shape.iter().zip(axes);
    sizes
        .filter(|(_, is_reduced)| keeps || !**is_reduced)
        .map(|(&size, &is_reduced)| if is_reduced { 1 } else { size })
        .collect()
}

/// Folds elements along axes; `finish` has the number of those that were folded.
fn folded<T: Element, A: Clone, R: Element>(
    x: &Tensor<T>,
    axes: &[bool],
    keeps: bool,
    first: A,
    join: impl Fn(A, &T) -> A,
    finish: impl Fn(A, f64) -> R,
) -> Result<Value> {
    let kept = left(x.shape(), axes, true);
    let mut all = vec![first; shape::count(&kept)?];
    let count = x.data().len() as f64 / all.len() as f64;
    let mut elements = x.data().iter();
    strided::for_each(&strided::broadcast(&kept, x.shape()), |at| {
        if let Some(element) = elements.next() {
            all[at] = join(all[at].clone(), element);
        }
    });
    let data = all.into_iter().map(|one| finish(one, count)).collect();
    Value::new(left(x.shape(), axes, keeps), data)
}

/// Folds floats in 64 bits.
fn float(
    x: &Value,
    axes: &[bool],
    keeps: bool,
    first: f64,
    join: fn(f64, f64) -> f64,
    finish: fn(f64, f64) -> f64,
) -> Result<Value> {
    match x {
        Value::F32(x) => folded(
            x,
            axes,
            keeps,
            first,
            |all, &x| join(all, x.into()),
            |all, count| finish(all, count) as f32,
        ),
        Value::F64(x) => folded(x, axes, keeps, first, |all, &x| join(all, x), finish),
        Value::I64(x) => folded(
            x,
            axes,
            keeps,
            first,
            |all, &x| join(all, x as f64),
            |all, count| finish(all, count) as i64,
        ),
        Value::I32(x) => folded(
            x,
            axes,
            keeps,
            first,
            |all, &x| join(all, x.into()),
            |all, count| finish(all, count) as i32,
        ),
        other => candle_core::bail!("is not defined for {}", other.name()),
    }
}

/// Relative to the largest element, so that no exponential overflows.
fn log_sum_exp(x: &Value, axes: &[bool], keeps: bool) -> Result<Value> {
    let join = |(most, sum): (f64, f64), x: f64| {
        if x > most {
            (x, sum * (most - x).exp() + 1.0)
        } else if x == f64::NEG_INFINITY {
            (most, sum)
        } else {
            (most, sum + (x - most).exp())
        }
    };
    let finish = |(most, sum): (f64, f64), _| most + f64::ln(sum);
    let first = (f64::NEG_INFINITY, 0.0);
    match x {
        Value::F32(x) => folded(
            x,
            axes,
            keeps,
            first,
            |all, &x| join(all, x.into()),
            |all, count| finish(all, count) as f32,
        ),
        Value::F64(x) => folded(x, axes, keeps, first, |all, &x| join(all, x), finish),
        other => candle_core::bail!("is not defined for {}", other.name()),
    }
}

fn most(x: &Value, axes: &[bool], keeps: bool, wanted: std::cmp::Ordering) -> Result<Value> {
    each_number!(x, x => {
        if x.data().is_empty() {
            candle_core::bail!("no elements in shape {:?}", x.shape());
        }
        let first = x.data()[0];
        folded(
            x,
            axes,
            keeps,
            None,
            |most, &x| match most {
                Some(most) if x.partial_cmp(&most) != Some(wanted) => Some(most),
                _ => Some(x),
            },
            |most, _| most.unwrap_or(first),
        )
    })
}

//! Operators of two inputs that broadcast: arithmetic, comparisons and logic.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::shape;
use super::strided;
use super::value::{Element, Tensor, Value};

/// Element by element, after broadcasting.
pub(super) fn zipped<A: Clone, B: Clone, R: Element>(
    a: &Tensor<A>,
    b: &Tensor<B>,
    join: impl Fn(&A, &B) -> R,
) -> Result<Value> {
    if a.shape() == b.shape() {
        let pairs = a.data().iter().zip(b.data());
        let joined = pairs.map(|(a, b)| join(a, b)).collect();
        return Value::new(a.shape().to_vec(), joined);
    }
    let shape = shape::broadcast(a.shape(), b.shape())?;
    let joined = match (a.data(), b.data()) {
        (a, [b]) if a.len() == shape.iter().product::<usize>() => {
            a.iter().map(|a| join(a, b)).collect()
        }
        ([a], b) if b.len() == shape.iter().product::<usize>() => {
            b.iter().map(|b| join(a, b)).collect()
        }
        _ => {
            let mut joined = Vec::with_capacity(shape::count(&shape)?);
            let b_axes = strided::broadcast(b.shape(), &shape);
            let b = strided::picked(b, &b_axes)?;
            let mut others = b.data().iter();
            strided::for_each(&strided::broadcast(a.shape(), &shape), |at| {
                if let Some(b) = others.next() {
                    joined.push(join(&a.data()[at], b));
                }
            });
            joined
        }
    };
    Value::new(shape, joined)
}

/// The second tensor, which must have the type of the first.
fn alike<'b, T: Element>(_: &Tensor<T>, b: &'b Value) -> Result<&'b Tensor<T>> {
    b.tensor()
}

/// Operators before version 7 had an attribute for broadcasting.
fn check(definition: Definition<'_>) -> Result<()> {
    if definition.has("broadcast") || definition.has("axis") {
        candle_core::bail!("broadcasts by attributes, as it did before version 7");
    }
    Ok(())
}

/// An operator of two inputs of the same type, for the types that are listed.
macro_rules! pair {
    ($a:ident, $b:ident, $($variant:ident($x:ident, $y:ident) => $join:expr;)+) => {
        match $a {
            $(Value::$variant(a) => {
                let b = alike(a, $b)?;
                zipped(a, b, |$x, $y| $join)
            })+
            #[allow(unreachable_patterns, reason = "some operators take all types")]
            other => candle_core::bail!("is not defined for {}", other.name()),
        }
    };
}

/// `Add`, `Sub`, `Mul`, `Div`, `Pow` and `Mod`. Integers wrap.
pub(super) fn arithmetic(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    check(definition)?;
    let join: fn(&Value, &Value) -> Result<Value> = match definition.node.op_type.as_str() {
        "Add" => add,
        "Sub" => |a, b| {
            pair!(a, b,
                F32(x, y) => x - y;
                F64(x, y) => x - y;
                I64(x, y) => x.wrapping_sub(*y);
                I32(x, y) => x.wrapping_sub(*y);
            )
        },
        "Mul" => |a, b| {
            pair!(a, b,
                F32(x, y) => x * y;
                F64(x, y) => x * y;
                I64(x, y) => x.wrapping_mul(*y);
                I32(x, y) => x.wrapping_mul(*y);
            )
        },
        "Div" => divide,
        "Mod" if definition.int("fmod", 0) != 0 => |a, b| {
            pair!(a, b,
                F32(x, y) => x % y;
                F64(x, y) => x % y;
                I64(x, y) => x.checked_rem(*y).unwrap_or_default();
                I32(x, y) => x.checked_rem(*y).unwrap_or_default();
            )
        },
        "Mod" => |a, b| {
            pair!(a, b,
                I64(x, y) => floored(*x, *y);
                I32(x, y) => floored(i64::from(*x), i64::from(*y)) as i32;
            )
        },
        "Pow" => power,
        other => candle_core::bail!("`{other}` is no arithmetic"),
    };
    Ok(single(move |inputs| join(inputs.at(0)?, inputs.at(1)?)))
}

pub(super) fn add(a: &Value, b: &Value) -> Result<Value> {
    pair!(a, b,
        F32(x, y) => x + y;
        F64(x, y) => x + y;
        I64(x, y) => x.wrapping_add(*y);
        I32(x, y) => x.wrapping_add(*y);
    )
}

/// The remainder with the sign of the divisor; 0 for a divisor of 0.
fn floored(x: i64, by: i64) -> i64 {
    let remainder = x.checked_rem(by).unwrap_or_default();
    if remainder != 0 && (remainder < 0) != (by < 0) {
        remainder + by
    } else {
        remainder
    }
}

fn divide(a: &Value, b: &Value) -> Result<Value> {
    let by_zero = match b {
        Value::I64(b) => b.data().contains(&0),
        Value::I32(b) => b.data().contains(&0),
        _ => false,
    };
    if by_zero {
        candle_core::bail!("an integer is divided by 0");
    }
    pair!(a, b,
        F32(x, y) => x / y;
        F64(x, y) => x / y;
        I64(x, y) => x.wrapping_div(*y);
        I32(x, y) => x.wrapping_div(*y);
    )
}

/// The exponent may have another type than the base, which is that of the result.
fn power(a: &Value, b: &Value) -> Result<Value> {
    let doubles = |b: &Value| -> Result<Tensor<f64>> {
        Tensor::new(b.shape().to_vec(), super::scale::doubles(b)?.into_owned())
    };
    match (a, b) {
        (Value::F32(a), Value::F32(b)) => zipped(a, b, |x, y| {
            // As the C library does for squares, the usual exponent.
            if *y == 2.0 { x * x } else { x.powf(*y) }
        }),
        (Value::F32(a), b) => zipped(a, &doubles(b)?, |x, y| f64::from(*x).powf(*y) as f32),
        (Value::F64(a), b) => zipped(a, &doubles(b)?, |x, y| x.powf(*y)),
        (Value::I64(a), b) => zipped(a, &doubles(b)?, |x, y| (*x as f64).powf(*y) as i64),
        (Value::I32(a), b) => zipped(a, &doubles(b)?, |x, y| f64::from(*x).powf(*y) as i32),
        (other, _) => candle_core::bail!("is not defined for {}", other.name()),
    }
}

/// A comparison of numbers.
macro_rules! comparison {
    ($operator:tt) => {
        |a, b| {
            pair!(a, b,
                F32(x, y) => x $operator y;
                F64(x, y) => x $operator y;
                I64(x, y) => x $operator y;
                I32(x, y) => x $operator y;
            )
        }
    };
}

/// `Equal`, `Less`, `LessOrEqual`, `Greater`, `GreaterOrEqual`, `And`, `Or` and `Xor`, to BOOL.
pub(super) fn comparison(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    check(definition)?;
    let join: fn(&Value, &Value) -> Result<Value> = match definition.node.op_type.as_str() {
        "Equal" => |a, b| {
            pair!(a, b,
                F32(x, y) => x == y;
                F64(x, y) => x == y;
                I64(x, y) => x == y;
                I32(x, y) => x == y;
                Bool(x, y) => x == y;
                Text(x, y) => x == y;
            )
        },
        "Less" => comparison!(<),
        "LessOrEqual" => comparison!(<=),
        "Greater" => comparison!(>),
        "GreaterOrEqual" => comparison!(>=),
        "And" => |a, b| pair!(a, b, Bool(x, y) => *x && *y;),
        "Or" => |a, b| pair!(a, b, Bool(x, y) => *x || *y;),
        "Xor" => |a, b| pair!(a, b, Bool(x, y) => x ^ y;),
        other => candle_core::bail!("`{other}` is no comparison"),
    };
    Ok(single(move |inputs| join(inputs.at(0)?, inputs.at(1)?)))
}

/// `Max`, `Min`, `Sum` and `Mean`, of any number of inputs. NaN stays NaN.
pub(super) fn variadic(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let name = definition.node.op_type.as_str();
    let join: fn(&Value, &Value) -> Result<Value> = match name {
        "Max" => maximum,
        "Min" => minimum,
        "Sum" | "Mean" => add,
        other => candle_core::bail!("`{other}` takes two inputs"),
    };
    let is_mean = name == "Mean";
    Ok(single(move |inputs| {
        let all = inputs.all()?;
        let Some((first, others)) = all.split_first() else {
            candle_core::bail!("no inputs");
        };
        let mut joined = (*first).clone();
        for other in others {
            joined = join(&joined, other)?;
        }
        let count = all.len() as f64;
        Ok(match joined {
            Value::F32(sum) if is_mean => Value::F32(sum.map(|one| one / count as f32)),
            Value::F64(sum) if is_mean => Value::F64(sum.map(|one| one / count)),
            joined => joined,
        })
    }))
}

pub(super) fn maximum(a: &Value, b: &Value) -> Result<Value> {
    pair!(a, b,
        F32(x, y) => if x.is_nan() || x > y { *x } else { *y };
        F64(x, y) => if x.is_nan() || x > y { *x } else { *y };
        I64(x, y) => *x.max(y);
        I32(x, y) => *x.max(y);
    )
}

pub(super) fn minimum(a: &Value, b: &Value) -> Result<Value> {
    pair!(a, b,
        F32(x, y) => if x.is_nan() || x < y { *x } else { *y };
        F64(x, y) => if x.is_nan() || x < y { *x } else { *y };
        I64(x, y) => *x.min(y);
        I32(x, y) => *x.min(y);
    )
}

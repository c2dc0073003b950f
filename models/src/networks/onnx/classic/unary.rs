//! Operators of one input, element by element, and `Clip` and `Where`.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::pairs::{maximum, minimum, zipped};
use super::value::{Element, Tensor, Value, each};

/// A function of floats.
macro_rules! float {
    ($x:ident => $body:expr) => {
        |value| match value {
            Value::F32(x) => Ok(Value::F32(x.map(|&$x| $body))),
            Value::F64(x) => Ok(Value::F64(x.map(|&$x| $body))),
            other => candle_core::bail!("is not defined for {}", other.name()),
        }
    };
}

/// A function of floats, and one of integers.
macro_rules! number {
    ($x:ident => $float:expr, $int:expr) => {
        |value| match value {
            Value::F32(x) => Ok(Value::F32(x.map(|&$x| $float))),
            Value::F64(x) => Ok(Value::F64(x.map(|&$x| $float))),
            Value::I64(x) => Ok(Value::I64(x.map(|&$x| $int))),
            Value::I32(x) => Ok(Value::I32(x.map(|&$x| $int))),
            other => candle_core::bail!("is not defined for {}", other.name()),
        }
    };
}

/// The shape and the type stay, but for `IsNaN`, which gives BOOL.
pub(super) fn unary(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let map: fn(&Value) -> Result<Value> = match definition.node.op_type.as_str() {
        "Identity" => |value| Ok(value.clone()),
        "Sqrt" => float!(x => x.sqrt()),
        "Exp" => float!(x => x.exp()),
        "Log" => float!(x => x.ln()),
        "Tanh" => float!(x => x.tanh()),
        "Floor" => float!(x => x.floor()),
        "Ceil" => float!(x => x.ceil()),
        "Round" => float!(x => x.round_ties_even()),
        "Reciprocal" => float!(x => x.recip()),
        "Sigmoid" => float!(x => {
            let positive = 1.0 / (1.0 + (-x.abs()).exp());
            if x < 0.0 { 1.0 - positive } else { positive }
        }),
        "Softplus" => float!(x => x.max(0.0) + (-x.abs()).exp().ln_1p()),
        "Abs" => number!(x => x.abs(), x.wrapping_abs()),
        "Neg" => number!(x => -x, x.wrapping_neg()),
        "Sign" => number!(x => if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x }, x.signum()),
        "Relu" => number!(x => if x < 0.0 { 0.0 } else { x }, x.max(0)),
        "Not" => |value| Ok(Value::Bool(value.tensor::<bool>()?.map(|x| !x))),
        "IsNaN" => |value| match value {
            Value::F32(x) => Ok(Value::Bool(x.map(|x| x.is_nan()))),
            Value::F64(x) => Ok(Value::Bool(x.map(|x| x.is_nan()))),
            other => candle_core::bail!("is not defined for {}", other.name()),
        },
        other => candle_core::bail!("`{other}` takes more inputs"),
    };
    Ok(single(move |inputs| map(inputs.at(0)?)))
}

/// `Clip`: limits are attributes before version 11, then inputs.
pub(super) fn clip(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let attribute = |name: &str| definition.has(name).then(|| definition.float(name, 0.0));
    let (least, most) = (attribute("min"), attribute("max"));
    let limit = |x: &Value, limit: f32| match x {
        Value::F64(_) => Value::new(Vec::new(), vec![f64::from(limit)]),
        _ => Value::new(Vec::new(), vec![limit]),
    };
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let attribute = |given: Option<f32>| given.map(|given| limit(x, given)).transpose();
        let (least, most) = (attribute(least)?, attribute(most)?);
        let mut clipped = x.clone();
        if let Some(least) = inputs.optional(1).or(least.as_ref()) {
            clipped = maximum(&clipped, least)?;
        }
        if let Some(most) = inputs.optional(2).or(most.as_ref()) {
            clipped = minimum(&clipped, most)?;
        }
        Ok(clipped)
    }))
}

/// `Where`: X where the condition holds, otherwise Y; all three broadcast.
pub(super) fn condition(_: Definition<'_>) -> Result<Box<dyn Operator>> {
    Ok(single(|inputs| {
        let condition = inputs.tensor::<bool>(0)?;
        let (x, y) = (inputs.at(1)?, inputs.at(2)?);
        each!(x, x => chosen(condition, x, y.tensor()?))
    }))
}

fn chosen<T: Element>(condition: &Tensor<bool>, x: &Tensor<T>, y: &Tensor<T>) -> Result<Value> {
    // The positions of X that are taken, then Y elsewhere.
    let positions = Tensor::new(x.shape().to_vec(), (0..x.data().len() as i64).collect())?;
    let taken = zipped(
        condition,
        &positions,
        |is_x, at| if *is_x { *at } else { -1 },
    )?;
    zipped(taken.tensor::<i64>()?, y, |at, y| {
        let x = usize::try_from(*at).ok().and_then(|at| x.data().get(at));
        x.unwrap_or(y).clone()
    })
}

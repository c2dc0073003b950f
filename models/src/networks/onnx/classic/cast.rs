//! `Cast`.

use std::sync::Arc;

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::value::{Element, Tensor, Value};

/// Significant digits of floats as text.
const DIGITS: usize = 8;

/// The shape stays. Floats become integers towards 0; numbers that do not fit become the nearest.
pub(super) fn cast(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    definition.required("to")?;
    let cast: fn(&Value) -> Result<Value> = match definition.int("to", 0) {
        1 => |value| to(value, |x| x as f32),
        11 => |value| to(value, |x| x),
        6 => |value| match value {
            Value::I64(x) => Ok(Value::I32(x.map(|x| *x as i32))),
            value => to(value, |x| x as i32),
        },
        7 => |value| match value {
            Value::I64(x) => Ok(Value::I64(x.clone())),
            Value::Text(x) => parsed(x, |text| text.parse::<i64>().ok()),
            value => to(value, |x| x as i64),
        },
        8 => texts,
        9 => |value| match value {
            Value::Text(_) => candle_core::bail!("STRING does not become BOOL"),
            value => to(value, |x| x != 0.0),
        },
        other => candle_core::bail!("does not cast to element type {other}"),
    };
    Ok(single(move |inputs| cast(inputs.at(0)?)))
}

/// Through f64, which holds all numbers but large i64.
fn to<T: Element>(value: &Value, cast: impl Fn(f64) -> T) -> Result<Value> {
    let tensor = match value {
        Value::F32(x) => x.map(|&x| cast(x.into())),
        Value::F64(x) => x.map(|&x| cast(x)),
        Value::I64(x) => x.map(|&x| cast(x as f64)),
        Value::I32(x) => x.map(|&x| cast(x.into())),
        Value::Bool(x) => x.map(|&x| cast(u8::from(x).into())),
        Value::Text(x) => return parsed(x, |text| Some(cast(text.parse().ok()?))),
    };
    Ok(T::value(tensor))
}

fn parsed<T: Element>(
    texts: &Tensor<Arc<str>>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Value> {
    let numbers = texts.data().iter().map(|text| match parse(text.trim()) {
        Some(number) => Ok(number),
        None => candle_core::bail!("{text:?} is no {}", T::NAME),
    });
    Value::new(texts.shape().to_vec(), numbers.collect::<Result<_>>()?)
}

fn texts(value: &Value) -> Result<Value> {
    Ok(Value::Text(match value {
        Value::F32(x) => x.map(|&x| general(x.into()).into()),
        Value::F64(x) => x.map(|&x| general(x).into()),
        Value::I64(x) => x.map(|x| x.to_string().into()),
        Value::I32(x) => x.map(|x| x.to_string().into()),
        Value::Bool(x) => x.map(|x| u8::from(*x).to_string().into()),
        Value::Text(x) => x.clone(),
    }))
}

/// A float as onnxruntime writes it: C's `%.8g`, of doubles too.
fn general(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let scientific = format!("{x:.*e}", DIGITS - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= DIGITS as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (DIGITS as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{x:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_c_does() {
        for (x, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333"),
            (-2.5, "-2.5"),
            (123_456_789.0, "1.2345679e+08"),
            (1e-5, "1e-05"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-INF"),
        ] {
            assert_eq!(general(x), text);
        }
    }
}

//! `Scaler`, `Normalizer`, `Imputer` and `Binarizer` of `ai.onnx.ml`.

use std::borrow::Cow;

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::value::{Element, Tensor, Value};

/// Numbers of any type as f32, which the operators of `ai.onnx.ml` compute in.
pub(super) fn floats(value: &Value) -> Result<Cow<'_, [f32]>> {
    Ok(match value {
        Value::F32(x) => Cow::Borrowed(x.data()),
        Value::F64(x) => x.data().iter().map(|&one| one as f32).collect(),
        Value::I64(x) => x.data().iter().map(|&one| one as f32).collect(),
        Value::I32(x) => x.data().iter().map(|&one| one as f32).collect(),
        other => candle_core::bail!("{} where numbers were expected", other.name()),
    })
}

/// Numbers of any type as f64.
pub(super) fn doubles(value: &Value) -> Result<Cow<'_, [f64]>> {
    Ok(match value {
        Value::F64(x) => Cow::Borrowed(x.data()),
        Value::F32(x) => x.data().iter().map(|&one| one.into()).collect(),
        Value::I64(x) => x.data().iter().map(|&one| one as f64).collect(),
        Value::I32(x) => x.data().iter().map(|&one| one.into()).collect(),
        other => candle_core::bail!("{} where numbers were expected", other.name()),
    })
}

/// Features of a row: the second dimension, or the only one.
fn features(shape: &[usize]) -> Result<usize> {
    match *shape {
        [features] | [_, features, ..] => Ok(features),
        [] => candle_core::bail!("a single value where rows were expected"),
    }
}

/// `(X - offset) * scale`, `[rows, features]` to floats of the same shape.
pub(super) fn scaler(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let offset = definition.floats("offset").to_vec();
    let scale = definition.floats("scale").to_vec();
    if scale.is_empty() || offset.len() != scale.len() {
        candle_core::bail!("{} offsets, {} scales", offset.len(), scale.len());
    }
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let features = features(x.shape())?;
        if scale.len() != 1 && scale.len() != features {
            candle_core::bail!("{} scales for {features} features", scale.len());
        }
        let by = offset.iter().zip(&scale).cycle();
        let scaled: Vec<f32> = match x {
            Value::F64(x) => {
                let pairs = x.data().iter().zip(by);
                let scaled =
                    pairs.map(|(x, (&offset, &scale))| (x - f64::from(offset)) * f64::from(scale));
                scaled.map(|one| one as f32).collect()
            }
            x => {
                let floats = floats(x)?;
                let pairs = floats.iter().zip(by);
                pairs
                    .map(|(x, (offset, scale))| (x - offset) * scale)
                    .collect()
            }
        };
        Value::new(x.shape().to_vec(), scaled)
    }))
}

/// Rows divided by their norm; rows of norm 0 stay as they are.
pub(super) fn normalizer(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let norm: fn(&mut [f32]) = match definition.text("norm", "MAX")? {
        "MAX" => |row| {
            let most = row.iter().copied().fold(f32::MIN, f32::max);
            divide(row, most);
        },
        "L1" => |row| {
            let sum = row.iter().map(|one| one.abs()).sum();
            divide(row, sum);
        },
        "L2" => |row| {
            let sum: f32 = row.iter().map(|one| one * one).sum();
            if sum != 0.0 {
                for one in row {
                    *one = (*one * *one / sum).sqrt().copysign(*one);
                }
            }
        },
        other => candle_core::bail!("norm `{other}` is unknown"),
    };
    Ok(single(move |inputs| {
        let x = inputs.at(0)?;
        let features = features(x.shape())?;
        let mut rows = floats(x)?.into_owned();
        rows.chunks_exact_mut(features.max(1)).for_each(norm);
        Value::new(x.shape().to_vec(), rows)
    }))
}

fn divide(row: &mut [f32], by: f32) {
    if by != 0.0 {
        row.iter_mut().for_each(|one| *one /= by);
    }
}

/// Missing values replaced, each feature by its own or all by the same; the type stays.
pub(super) fn imputer(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let floats = definition.floats("imputed_value_floats").to_vec();
    let ints = definition.ints("imputed_value_int64s").to_vec();
    let float = definition.float("replaced_value_float", 0.0);
    let int = definition.int("replaced_value_int64", 0);
    if floats.is_empty() == ints.is_empty() {
        candle_core::bail!("neither or both of imputed_value_floats and imputed_value_int64s");
    }
    let is_nan = float.is_nan();
    let doubles: Vec<f64> = floats.iter().map(|&one| one.into()).collect();
    Ok(single(move |inputs| match inputs.at(0)? {
        Value::F32(x) => imputed(x, &floats, |x| *x == float || (is_nan && x.is_nan())),
        Value::F64(x) => {
            let float = f64::from(float);
            imputed(x, &doubles, |x| *x == float || (is_nan && x.is_nan()))
        }
        Value::I64(x) => imputed(x, &ints, |x| *x == int),
        other => candle_core::bail!("{} where floats or INT64 were expected", other.name()),
    }))
}

fn imputed<T: Element + Copy>(
    x: &Tensor<T>,
    by: &[T],
    is_missing: impl Fn(&T) -> bool,
) -> Result<Value> {
    let features = features(x.shape())?;
    let by = match by {
        [] => candle_core::bail!("no imputed values for {}", T::NAME),
        // Other numbers of values are onnxruntime's: the first is for all.
        [first, ..] if by.len() != features => std::slice::from_ref(first),
        by => by,
    };
    let pairs = x.data().iter().zip(by.iter().cycle());
    let filled = pairs.map(|(x, by)| if is_missing(x) { *by } else { *x });
    Value::new(x.shape().to_vec(), filled.collect())
}

/// 1 for values beyond the threshold, otherwise 0; the type stays.
pub(super) fn binarizer(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let threshold = definition.float("threshold", 0.0);
    Ok(single(move |inputs| {
        Ok(match inputs.at(0)? {
            Value::F32(x) => Value::F32(x.map(|x| f32::from(u8::from(*x > threshold)))),
            Value::F64(x) => {
                let threshold = f64::from(threshold);
                Value::F64(x.map(|x| f64::from(u8::from(*x > threshold))))
            }
            Value::I64(x) => Value::I64(x.map(|x| i64::from(*x as f32 > threshold))),
            Value::I32(x) => Value::I32(x.map(|x| i32::from(*x as f32 > threshold))),
            other => candle_core::bail!("{} where numbers were expected", other.name()),
        })
    }))
}

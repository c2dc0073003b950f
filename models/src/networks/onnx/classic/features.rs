//! `FeatureVectorizer` and `ArrayFeatureExtractor` of `ai.onnx.ml`.

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::scale::floats;
use super::shape;
use super::strided;
use super::value::{Value, each};

/// Inputs `[rows, features]` next to each other, as floats `[rows, all features]`. An input of
/// fewer features than `inputdimensions` has is followed by zeros; of more, the last are left out.
pub(super) fn feature_vectorizer(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let dimensions = shape::sizes(definition.ints("inputdimensions"))?;
    let total = dimensions
        .iter()
        .try_fold(0usize, |sum, &one| sum.checked_add(one));
    let Some(total) = total else {
        candle_core::bail!("inputdimensions {dimensions:?}");
    };
    Ok(single(move |inputs| {
        let inputs = inputs.all()?;
        if inputs.len() != dimensions.len() {
            candle_core::bail!("{} inputs, {} dimensions", inputs.len(), dimensions.len());
        }
        let size = |value: &Value| match *value.shape() {
            [] => candle_core::bail!("a single value where rows were expected"),
            [features] => Ok((1, features)),
            [rows, ref row @ ..] => Ok((rows, row.iter().product::<usize>())),
        };
        let rows = match inputs.first() {
            Some(first) => size(first)?.0,
            None => 0,
        };
        let mut joined = vec![0.0; shape::count(&[rows, total])?];
        let mut first = 0;
        for (input, &wanted) in inputs.iter().zip(&dimensions) {
            let (found, features) = size(input)?;
            if found != rows {
                candle_core::bail!("{found} rows after {rows}");
            }
            let used = features.min(wanted);
            let numbers = floats(input)?;
            let targets = joined.chunks_exact_mut(total.max(1));
            for (target, row) in targets.zip(numbers.chunks_exact(features.max(1))) {
                target[first..first + used].copy_from_slice(&row[..used]);
            }
            first += wanted;
        }
        Value::new(vec![rows, total], joined)
    }))
}

/// Positions of the last axis, `[..., features]` to `[..., positions]`.
pub(super) fn array_feature_extractor(_: Definition<'_>) -> Result<Box<dyn Operator>> {
    Ok(single(|inputs| {
        let (x, positions) = (inputs.at(0)?, inputs.at(1)?.integers()?);
        let Some(&features) = x.shape().last() else {
            candle_core::bail!("a single value where features were expected");
        };
        if positions.is_empty() {
            candle_core::bail!("no positions");
        }
        let position = |&at: &i64| match usize::try_from(at) {
            Ok(at) if at < features => Ok(at),
            _ => candle_core::bail!("position {at} of {features} features"),
        };
        let picked: Result<Vec<usize>> = positions.iter().map(position).collect();
        let mut axes = strided::all(x.shape());
        if let Some(last) = axes.last_mut() {
            *last = picked?;
        }
        if axes.len() == 1 {
            axes.insert(0, vec![0]);
        }
        Ok(each!(x, x => {
            super::value::Element::value(strided::picked(x, &axes)?)
        }))
    }))
}

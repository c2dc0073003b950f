//! `TreeEnsembleRegressor` of `ai.onnx.ml`, versions 1 and 3, and the shared end of `TreeEnsemble`.

use candle_core::Result;

use super::definition::Definition;
use super::ensemble::{AnyEnsemble, AnyScores, Ensemble, Real, Scores};
use super::operator::{Inputs, Operator};
use super::transform::{PostTransform, probit};
use super::tree_attributes;
use super::value::Value;

/// `[rows, features]` to `[rows, targets]`.
pub(super) struct TreeRegressor {
    pub(super) ensemble: AnyEnsemble,
    pub(super) transform: PostTransform,
    /// Whether doubles stay doubles, as `TreeEnsemble` has it.
    pub(super) keeps_doubles: bool,
}

pub(super) fn regressor(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let targets = definition.int("n_targets", 0);
    let targets = usize::try_from(targets).unwrap_or_default();
    let ensemble = tree_attributes::ensemble(definition, "target", targets)?;
    let bases = match &ensemble {
        AnyEnsemble::F32(ensemble) => ensemble.base.len(),
        AnyEnsemble::F64(ensemble) => ensemble.base.len(),
    };
    if bases != 0 && bases != targets {
        candle_core::bail!("{bases} base_values for {targets} targets");
    }
    Ok(Box::new(TreeRegressor {
        ensemble,
        transform: PostTransform::parse(definition.text("post_transform", "NONE")?)?,
        keeps_doubles: false,
    }))
}

// === impl TreeRegressor ===

impl Operator for TreeRegressor {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let (rows, scores) = self.ensemble.scores(inputs.at(0)?)?;
        let shape = vec![rows, self.ensemble.targets()];
        let narrow = match (&self.ensemble, scores) {
            (AnyEnsemble::F32(ensemble), AnyScores::F32(scores)) => based(ensemble, scores),
            (AnyEnsemble::F64(ensemble), AnyScores::F64(scores)) => {
                let wide = based(ensemble, scores);
                if self.keeps_doubles && self.transform == PostTransform::None {
                    return Ok(vec![Value::new(shape, wide)?]);
                }
                wide.into_iter().map(Real::narrow).collect()
            }
            _ => candle_core::bail!("scores of another type"),
        };
        let mut scores: Vec<f32> = narrow;
        match self.ensemble.targets() {
            // A single score stays as it is, but for PROBIT: so does onnxruntime.
            1 if self.transform == PostTransform::Probit => {
                scores.iter_mut().for_each(|one| *one = probit(*one));
            }
            1 => {}
            targets => scores
                .chunks_exact_mut(targets)
                .for_each(|row| self.transform.apply(row)),
        }
        let is_double = matches!(self.ensemble, AnyEnsemble::F64(_));
        if self.keeps_doubles && is_double {
            let wide = scores.into_iter().map(f64::from).collect();
            return Ok(vec![Value::new::<f64>(shape, wide)?]);
        }
        Ok(vec![Value::new(shape, scores)?])
    }

    fn bytes(&self) -> usize {
        self.ensemble.bytes()
    }
}

/// Scores with base values. Of several targets one that no leaf had a weight for is 0, whatever its
/// base value: so it is in onnxruntime.
fn based<H: Real>(ensemble: &Ensemble<H>, scores: Scores<H>) -> Vec<H> {
    let Scores { mut score, has } = scores;
    if ensemble.base.is_empty() {
        return score;
    }
    let is_single = ensemble.targets == 1;
    for ((score, has), &base) in score.iter_mut().zip(has).zip(ensemble.base.iter().cycle()) {
        if has || is_single {
            *score = *score + base;
        }
    }
    score
}

//! `LinearClassifier` and `LinearRegressor` of `ai.onnx.ml`.

use candle_core::Result;

use super::definition::Definition;
use super::labels::Labels;
use super::matmul;
use super::operator::{Inputs, Operator};
use super::scale::floats;
use super::transform::{PostTransform, probit};
use super::value::{Tensor, Value};

/// `X * coefficients^T + intercepts`, `[rows, features]` to `[rows, targets]`.
struct Linear {
    /// `[targets, features]`.
    coefficients: Vec<f32>,
    /// One for each target, or none.
    intercepts: Vec<f32>,
    targets: usize,
    features: usize,
}

/// Labels `[rows]` and scores `[rows, classes]`.
struct LinearClassifier {
    linear: Linear,
    labels: Labels,
    transform: PostTransform,
}

struct LinearRegressor {
    linear: Linear,
    transform: PostTransform,
}

pub(super) fn classifier(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let intercepts = definition.floats("intercepts");
    let labels = Labels::read(definition, "classlabels_ints")?;
    let targets = intercepts.len();
    if targets > 1 && labels.len() != targets {
        candle_core::bail!("{} class labels, {targets} intercepts", labels.len());
    }
    Ok(Box::new(LinearClassifier {
        linear: Linear::read(definition, targets)?,
        labels: if targets == 1 {
            labels.of_two()
        } else {
            labels
        },
        transform: PostTransform::parse(definition.text("post_transform", "NONE")?)?,
    }))
}

pub(super) fn regressor(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let targets = definition.int("targets", 1);
    Ok(Box::new(LinearRegressor {
        linear: Linear::read(definition, usize::try_from(targets).unwrap_or_default())?,
        transform: PostTransform::parse(definition.text("post_transform", "NONE")?)?,
    }))
}

// === impl Linear ===

impl Linear {
    fn read(definition: Definition<'_>, targets: usize) -> Result<Self> {
        let coefficients = definition.floats("coefficients");
        let intercepts = definition.floats("intercepts");
        let features = coefficients.len().checked_div(targets).unwrap_or_default();
        if coefficients.is_empty() || targets == 0 || features * targets != coefficients.len() {
            candle_core::bail!("{} coefficients for {targets} targets", coefficients.len());
        }
        let used = intercepts.len() == targets;
        Ok(Self {
            coefficients: coefficients.to_vec(),
            intercepts: if used {
                intercepts.to_vec()
            } else {
                Vec::new()
            },
            targets,
            features,
        })
    }

    fn scores(&self, x: &Value) -> Result<(usize, Vec<f32>)> {
        let x = Tensor::new(x.shape().to_vec(), floats(x)?.into_owned())?;
        let (rows, features) = x.matrix()?;
        if features != self.features {
            candle_core::bail!("{features} features, the model takes {}", self.features);
        }
        super::shape::count(&[rows, self.targets])?;
        let mut scores = matmul::transposed(x.data(), &self.coefficients, rows, self.targets);
        if !self.intercepts.is_empty() {
            for row in scores.chunks_exact_mut(self.targets) {
                let pairs = row.iter_mut().zip(&self.intercepts);
                pairs.for_each(|(score, intercept)| *score += intercept);
            }
        }
        Ok((rows, scores))
    }

    fn bytes(&self) -> usize {
        size_of_val(self.coefficients.as_slice()) + size_of_val(self.intercepts.as_slice())
    }
}

impl Operator for LinearClassifier {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let (rows_out, mut scores) = self.linear.scores(inputs.at(0)?)?;
        let targets = self.linear.targets;
        let classes = scores.chunks_exact(targets).map(|row| match row {
            [score] => usize::from(*score > 0.0),
            row => first_largest(row),
        });
        let labels = self.labels.of(&classes.collect::<Vec<_>>())?;
        if targets > 1 {
            let rows = scores.chunks_exact_mut(targets);
            rows.for_each(|row| self.transform.apply(row));
            return Ok(vec![labels, Value::new(vec![rows_out, targets], scores)?]);
        }
        // One score for two classes: onnxruntime's rule takes the complement, whatever the sign.
        let pair = |score: &f32| match self.transform {
            PostTransform::Probit => [probit(*score), 0.0],
            transform => transform.of_probability(*score),
        };
        let scores: Vec<f32> = scores.iter().flat_map(pair).collect();
        Ok(vec![labels, Value::new(vec![rows_out, 2], scores)?])
    }

    fn bytes(&self) -> usize {
        self.linear.bytes() + self.labels.bytes()
    }
}

/// The first of the largest scores.
pub(super) fn first_largest(scores: &[f32]) -> usize {
    let mut most = 0;
    for (at, score) in scores.iter().enumerate() {
        if *score > scores[most] {
            most = at;
        }
    }
    most
}

impl Operator for LinearRegressor {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let (rows, mut scores) = self.linear.scores(inputs.at(0)?)?;
        let targets = self.linear.targets;
        match (targets, self.transform) {
            (1, PostTransform::Probit) => scores.iter_mut().for_each(|one| *one = probit(*one)),
            (1, _) => {}
            (_, transform) => scores
                .chunks_exact_mut(targets)
                .for_each(|row| transform.apply(row)),
        }
        Ok(vec![Value::new(vec![rows, targets], scores)?])
    }

    fn bytes(&self) -> usize {
        self.linear.bytes()
    }
}

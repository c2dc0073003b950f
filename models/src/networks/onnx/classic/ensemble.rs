//! Sums over the trees of an ensemble.

use std::ops::{Add, Div};

use candle_core::Result;

use super::trees::Trees;
use super::value::Value;

/// Rows that walk through the same tree before the next tree is touched.
const BLOCK: usize = 64;

/// The type of thresholds and weights: f32, or f64 where a file has `*_as_tensor` attributes.
pub(super) trait Real:
    Copy + Default + PartialOrd + Add<Output = Self> + Div<Output = Self> + From<f32> + Into<f64>
{
    /// Rounds; exact for a number that was of this type.
    fn of(number: f64) -> Self;

    fn narrow(self) -> f32 {
        let wide: f64 = self.into();
        wide as f32
    }
}

impl Real for f32 {
    fn of(number: f64) -> Self {
        number as Self
    }
}

impl Real for f64 {
    fn of(number: f64) -> Self {
        number
    }
}

/// `aggregate_function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Average,
    Sum,
    Min,
    Max,
}

/// The weight of a leaf for a target or class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight<H> {
    pub(super) target: u32,
    pub(super) value: H,
}

/// Trees, and the weights of their leaves.
#[derive(Debug)]
pub(super) struct Ensemble<H> {
    pub(super) trees: Trees<H>,
    pub(super) weights: Vec<Weight<H>>,
    /// Targets, or classes; all weights are for one of them.
    pub(super) targets: usize,
    pub(super) aggregate: Aggregate,
    /// `base_values`.
    pub(super) base: Vec<H>,
}

/// Scores of rows, `[rows, targets]`, and whether any leaf had a weight for them.
#[derive(Debug)]
pub(super) struct Scores<H> {
    pub(super) score: Vec<H>,
    pub(super) has: Vec<bool>,
}

impl Aggregate {
    pub(super) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "AVERAGE" => Self::Average,
            "SUM" => Self::Sum,
            "MIN" => Self::Min,
            "MAX" => Self::Max,
            other => candle_core::bail!("aggregate_function `{other}` is unknown"),
        })
    }
}

// === impl Ensemble ===

impl<H: Real> Ensemble<H> {
    pub(super) fn bytes(&self) -> usize {
        self.trees.bytes() + size_of_val(self.weights.as_slice())
    }

    /// The scores of rows before base values are added; averages are divided.
    pub(super) fn scores<X: From<H> + Copy + PartialOrd>(
        &self,
        rows: &[X],
        width: usize,
    ) -> Result<Scores<H>> {
        if width < self.trees.features().max(1) {
            let needed = self.trees.features().max(1);
            candle_core::bail!("{width} features, the trees take {needed}");
        }
        let values = super::shape::count(&[rows.len() / width, self.targets])?;
        let mut scores = Scores {
            score: vec![H::default(); values],
            has: vec![false; values],
        };
        let blocks = rows.chunks(BLOCK * width);
        let score = scores.score.chunks_mut(BLOCK * self.targets);
        let has = scores.has.chunks_mut(BLOCK * self.targets);
        for ((rows, score), has) in blocks.zip(score).zip(has) {
            match self.aggregate {
                Aggregate::Sum | Aggregate::Average => {
                    self.block(rows, width, score, has, |sum, _, one| sum + one);
                }
                Aggregate::Min => self.block(rows, width, score, has, |least, has, one| {
                    if !has || one < least { one } else { least }
                }),
                Aggregate::Max => self.block(rows, width, score, has, |most, has, one| {
                    if !has || one > most { one } else { most }
                }),
            }
        }
        if self.aggregate == Aggregate::Average {
            let trees = H::of(self.trees.len() as f64);
            scores.score.iter_mut().for_each(|one| *one = *one / trees);
        }
        Ok(scores)
    }

    fn block<X: From<H> + Copy + PartialOrd>(
        &self,
        rows: &[X],
        width: usize,
        score: &mut [H],
        has: &mut [bool],
        join: impl Fn(H, bool, H) -> H,
    ) {
        let weights = self.weights.as_slice();
        if self.targets == 1 {
            self.trees.walk(rows, width, |row, first, _| {
                // onnxruntime too takes the first weight of a leaf, if there is one target.
                score[row] = join(score[row], has[row], weights[first as usize].value);
                has[row] = true;
            });
            return;
        }
        self.trees.walk(rows, width, |row, first, count| {
            let first = first as usize;
            for weight in &weights[first..first + count as usize] {
                let at = row * self.targets + weight.target as usize;
                score[at] = join(score[at], has[at], weight.value);
                has[at] = true;
            }
        });
    }
}

/// An ensemble of either type.
#[derive(Debug)]
pub(super) enum AnyEnsemble {
    F32(Ensemble<f32>),
    F64(Ensemble<f64>),
}

/// The scores of either type.
pub(super) enum AnyScores {
    F32(Scores<f32>),
    F64(Scores<f64>),
}

impl AnyEnsemble {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::F32(ensemble) => ensemble.bytes(),
            Self::F64(ensemble) => ensemble.bytes(),
        }
    }

    pub(super) fn targets(&self) -> usize {
        match self {
            Self::F32(ensemble) => ensemble.targets,
            Self::F64(ensemble) => ensemble.targets,
        }
    }

    /// The scores of `[rows, features]`, and the rows. Numbers are compared in the wider of their
    /// type and that of the thresholds; integers become that of the thresholds.
    pub(super) fn scores(&self, x: &Value) -> Result<(usize, AnyScores)> {
        let (rows, width) = match x {
            Value::F32(x) => x.matrix()?,
            Value::F64(x) => x.matrix()?,
            Value::I64(x) => x.matrix()?,
            Value::I32(x) => x.matrix()?,
            other => candle_core::bail!("{} where numbers were expected", other.name()),
        };
        let scores = match (self, x) {
            (Self::F32(ensemble), Value::F32(x)) => {
                AnyScores::F32(ensemble.scores(x.data(), width)?)
            }
            (Self::F32(ensemble), Value::F64(x)) => {
                AnyScores::F32(ensemble.scores(x.data(), width)?)
            }
            (Self::F64(ensemble), Value::F64(x)) => {
                AnyScores::F64(ensemble.scores(x.data(), width)?)
            }
            (Self::F32(ensemble), x) => {
                AnyScores::F32(ensemble.scores(&super::scale::floats(x)?, width)?)
            }
            (Self::F64(ensemble), x) => {
                AnyScores::F64(ensemble.scores(&super::scale::doubles(x)?, width)?)
            }
        };
        Ok((rows, scores))
    }
}

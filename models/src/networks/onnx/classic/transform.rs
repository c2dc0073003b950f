//! `post_transform` of `ai.onnx.ml`.

use candle_core::Result;

/// The attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostTransform {
    None,
    Logistic,
    Softmax,
    SoftmaxZero,
    Probit,
}

/// Scores nearer to 0 are 0 to `SOFTMAX_ZERO`.
const ZERO: f32 = 1e-7;

// === impl PostTransform ===

impl PostTransform {
    pub(super) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "NONE" => Self::None,
            "LOGISTIC" => Self::Logistic,
            "SOFTMAX" => Self::Softmax,
            "SOFTMAX_ZERO" => Self::SoftmaxZero,
            "PROBIT" => Self::Probit,
            other => candle_core::bail!("post_transform `{other}` is unknown"),
        })
    }

    /// Transforms the scores of one row, of two or more.
    pub(super) fn apply(self, scores: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Logistic => scores.iter_mut().for_each(|one| *one = logistic(*one)),
            Self::Probit => scores.iter_mut().for_each(|one| *one = probit(*one)),
            Self::Softmax => softmax(scores),
            Self::SoftmaxZero => softmax_zero(scores),
        }
    }

    /// The scores of two classes from one, whose sign tells them apart.
    pub(super) fn of_sign(self, score: f32) -> [f32; 2] {
        match self {
            Self::Logistic => [logistic(-score), logistic(score)],
            _ => [-score, score],
        }
    }

    /// The scores of two classes from that of the second, which may be a probability already.
    pub(super) fn of_probability(self, score: f32) -> [f32; 2] {
        match self {
            Self::Logistic => [logistic(-score), logistic(score)],
            _ => [1.0 - score, score],
        }
    }
}

pub(super) fn logistic(score: f32) -> f32 {
    let positive = 1.0 / (1.0 + (-score.abs()).exp());
    if score < 0.0 {
        1.0 - positive
    } else {
        positive
    }
}

/// onnxruntime's approximation of the quantile of a normal distribution.
pub(super) fn probit(score: f32) -> f32 {
    let x = 2.0 * score - 1.0;
    let log = ((1.0 - x) * (1.0 + x)).ln();
    let v = 2.0 / (std::f32::consts::PI * 0.147) + 0.5 * log;
    let root = (-v + (v * v - log / 0.147).sqrt()).sqrt();
    std::f32::consts::SQRT_2 * if x < 0.0 { -root } else { root }
}

fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

fn softmax_zero(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let zero = (-most).exp();
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        if score.abs() > ZERO {
            *score = (*score - most).exp();
            sum += *score;
        } else {
            *score *= zero;
        }
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_become_probabilities() {
        let mut scores = [0.0, 2f32.ln()];
        PostTransform::Softmax.apply(&mut scores);
        assert!((scores[1] - 2.0 / 3.0).abs() < 1e-6, "{scores:?}");
        let mut scores = [0.0, 2f32.ln(), 2f32.ln()];
        PostTransform::SoftmaxZero.apply(&mut scores);
        assert_eq!(scores, [0.0, 0.5, 0.5]);
        let of_sign = PostTransform::Logistic.of_sign(3f32.ln());
        assert!((of_sign[1] - 0.75).abs() < 1e-6);
        assert!(probit(0.5).abs() < 1e-6);
        assert!((probit(0.841_344_7) - 1.0).abs() < 5e-3);
        assert!(PostTransform::parse("CUBE").is_err());
    }
}

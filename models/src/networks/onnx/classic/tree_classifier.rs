//! `TreeEnsembleClassifier` of `ai.onnx.ml`, versions 1 and 3.
//!
//! The specification leaves open how two classes are told apart. The rules here are onnxruntime's.

use candle_core::Result;

use super::definition::Definition;
use super::ensemble::{AnyEnsemble, AnyScores, Ensemble, Real, Scores};
use super::labels::Labels;
use super::operator::{Inputs, Operator};
use super::transform::{PostTransform, probit};
use super::tree_attributes;
use super::value::Value;

/// `[rows, features]` to labels `[rows]` and scores `[rows, classes]`.
struct TreeClassifier {
    ensemble: AnyEnsemble,
    labels: Labels,
    transform: PostTransform,
    single: Option<SingleClass>,
}

/// Two classes, with weights for only one of them: its score decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SingleClass {
    /// No weight is negative: the score is a probability.
    Probability,
    /// The sign of the score decides.
    Sign,
}

pub(super) fn classifier(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let labels = Labels::read(definition, "classlabels_int64s")?;
    let ensemble = tree_attributes::ensemble(definition, "class", labels.len())?;
    let bases = match &ensemble {
        AnyEnsemble::F32(ensemble) => ensemble.base.len(),
        AnyEnsemble::F64(ensemble) => ensemble.base.len(),
    };
    match (labels.len(), bases) {
        (_, 0) | (1 | 2, 1) | (2, 2) => {}
        (classes, bases) if classes > 2 && classes == bases => {}
        (classes, bases) => candle_core::bail!("{bases} base_values for {classes} classes"),
    }
    let single = match &ensemble {
        AnyEnsemble::F32(ensemble) => single_class(ensemble, definition),
        AnyEnsemble::F64(ensemble) => single_class(ensemble, definition),
    };
    let labels = match labels {
        // onnxruntime's labels, if no single class decides between at most two.
        Labels::Ints(ints) if single.is_none() && ints.len() <= 2 => Labels::Ints(vec![0, 1]),
        labels => labels,
    };
    Ok(Box::new(TreeClassifier {
        ensemble,
        labels,
        transform: PostTransform::parse(definition.text("post_transform", "NONE")?)?,
        single,
    }))
}

fn single_class<H: Real>(
    ensemble: &Ensemble<H>,
    definition: Definition<'_>,
) -> Option<SingleClass> {
    let mut ids = definition.ints("class_ids").iter();
    let first = ids.next();
    if ensemble.targets != 2 || first.is_none() || !ids.all(|id| Some(id) == first) {
        return None;
    }
    let zero = H::default();
    let is_positive = ensemble.weights.iter().all(|weight| weight.value >= zero);
    Some(match is_positive {
        true => SingleClass::Probability,
        false => SingleClass::Sign,
    })
}

// === impl TreeClassifier ===

impl Operator for TreeClassifier {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let (rows, scores) = self.ensemble.scores(inputs.at(0)?)?;
        let classes = self.ensemble.targets();
        let mut probabilities = vec![0.0; rows * classes];
        let mut chosen = vec![0; rows];
        match (&self.ensemble, scores) {
            (AnyEnsemble::F32(ensemble), AnyScores::F32(scores)) => {
                self.finish(ensemble, scores, &mut probabilities, &mut chosen);
            }
            (AnyEnsemble::F64(ensemble), AnyScores::F64(scores)) => {
                self.finish(ensemble, scores, &mut probabilities, &mut chosen);
            }
            _ => candle_core::bail!("scores of another type"),
        }
        Ok(vec![
            self.labels.of(&chosen)?,
            Value::new(vec![rows, classes], probabilities)?,
        ])
    }

    fn bytes(&self) -> usize {
        self.ensemble.bytes() + self.labels.bytes()
    }
}

impl TreeClassifier {
    fn finish<H: Real>(
        &self,
        ensemble: &Ensemble<H>,
        mut scores: Scores<H>,
        probabilities: &mut [f32],
        chosen: &mut [usize],
    ) {
        let classes = ensemble.targets;
        let rows = scores
            .score
            .chunks_exact_mut(classes)
            .zip(scores.has.chunks_exact_mut(classes));
        let rows = rows.zip(probabilities.chunks_exact_mut(classes));
        for (((score, has), out), class) in rows.zip(chosen) {
            *class = match classes {
                1 => self.one_class(&ensemble.base, score[0], out),
                2 => self.two_classes(&ensemble.base, score, has, out),
                _ => self.many_classes(&ensemble.base, score, has, out),
            };
        }
    }

    fn many_classes<H: Real>(
        &self,
        base: &[H],
        score: &mut [H],
        has: &mut [bool],
        out: &mut [f32],
    ) -> usize {
        for (at, &base) in base.iter().enumerate() {
            score[at] = score[at] + base;
            has[at] = true;
        }
        let mut most = None;
        for (class, (&score, _)) in score
            .iter()
            .zip(&*has)
            .enumerate()
            .filter(|(_, (_, has))| **has)
        {
            match most {
                Some((_, best))
                    if score.partial_cmp(&best) != Some(std::cmp::Ordering::Greater) => {}
                _ => most = Some((class, score)),
            }
        }
        let most = most.map_or(0, |(class, _)| class);
        self.write(score, has, out);
        most
    }

    fn two_classes<H: Real>(
        &self,
        base: &[H],
        score: &mut [H],
        has: &[bool],
        out: &mut [f32],
    ) -> usize {
        let mut single_as_sign = false;
        match *base {
            [_, second] if has[1] => {
                score[1] = second + score[0];
                score[0] = H::of(-score[1].into());
            }
            [first, second] => {
                score[0] = score[0] + first;
                score[1] = score[1] + second;
            }
            [first] => score[0] = score[0] + first,
            _ => single_as_sign = true,
        }
        // With two base values both scores are written, although only the first may decide.
        let both = base.len() == 2 || has[1];
        let deciding = match (has[1], has[0]) {
            (true, _) => score[1],
            (false, true) => score[0],
            (false, false) => H::default(),
        };
        let deciding: f64 = deciding.into();
        let limit = match self.single {
            Some(SingleClass::Probability) => 0.5,
            _ => 0.0,
        };
        if both {
            self.write(score, has, out);
        } else {
            let score = score[0].narrow();
            match (self.single, self.transform) {
                (_, PostTransform::Probit) => out[0] = probit(score),
                (Some(SingleClass::Probability), transform) => {
                    out.copy_from_slice(&transform.of_probability(score));
                }
                (None, _) if !single_as_sign => out[0] = score,
                (_, transform) => out.copy_from_slice(&transform.of_sign(score)),
            }
        }
        usize::from(deciding > limit)
    }

    fn one_class<H: Real>(&self, base: &[H], score: H, out: &mut [f32]) -> usize {
        let score = base.first().map_or(score, |&base| score + base);
        out[0] = match self.transform {
            PostTransform::Probit => probit(score.narrow()),
            _ => score.narrow(),
        };
        usize::from(score > H::default())
    }

    /// Classes that no leaf had a weight for are 0.
    fn write<H: Real>(&self, score: &[H], has: &[bool], out: &mut [f32]) {
        for ((out, score), has) in out.iter_mut().zip(score).zip(has) {
            *out = if *has { score.narrow() } else { 0.0 };
        }
        self.transform.apply(out);
    }
}

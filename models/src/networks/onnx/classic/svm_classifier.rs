//! `SVMClassifier` of `ai.onnx.ml`.

use candle_core::Result;

use super::definition::Definition;
use super::labels::Labels;
use super::linear::first_largest;
use super::operator::{Inputs, Operator};
use super::svm::Machine;
use super::transform::{PostTransform, logistic, probit};
use super::value::Value;

/// Rounds of the pairwise coupling of probabilities.
const ROUNDS: usize = 100;
/// Pairwise probabilities are kept off 0 and 1 by this.
const MARGIN: f32 = 1e-7;

/// `[rows, features]` to labels `[rows]` and scores: of classes where there are probabilities or no
/// support vectors, otherwise of pairs of classes.
struct SvmClassifier {
    machine: Machine,
    votes: Votes,
    labels: Labels,
    transform: PostTransform,
    is_positive: bool,
}

enum Votes {
    /// One vector for each class; `rho` of the first is for all.
    Linear(f32),
    Pairs(Pairs),
}

/// A classifier for each pair of classes.
struct Pairs {
    /// The first vector of each class, and the end.
    starts: Vec<usize>,
    /// `[classes - 1, vectors]`.
    coefficients: Vec<f32>,
    rho: Vec<f32>,
    /// `prob_a` and `prob_b`, or nothing.
    prob: Vec<(f32, f32)>,
}

pub(super) fn classifier(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let labels = Labels::read(definition, "classlabels_ints")?;
    let classes = labels.len();
    let coefficients = definition.floats("coefficients");
    let rho = definition.floats("rho");
    let per_class = definition.ints("vectors_per_class");
    let mut starts = vec![0usize];
    for &vectors in per_class {
        let end = usize::try_from(vectors).ok();
        match end.and_then(|vectors| starts[starts.len() - 1].checked_add(vectors)) {
            Some(end) => starts.push(end),
            None => candle_core::bail!("vectors_per_class has {vectors}"),
        }
    }
    let vectors = starts[starts.len() - 1];
    let (machine, votes) = if vectors == 0 {
        let Some(rho) = rho.first() else {
            candle_core::bail!("attribute `rho` is missing");
        };
        (Machine::linear(coefficients, classes)?, Votes::Linear(*rho))
    } else {
        let pairs = classes * (classes - 1) / 2;
        let (a, b) = (definition.floats("prob_a"), definition.floats("prob_b"));
        let needed = (classes - 1).checked_mul(vectors);
        if per_class.len() != classes
            || needed.is_none_or(|needed| coefficients.len() < needed)
            || rho.len() < pairs
            || a.len() != b.len()
            || (!a.is_empty() && a.len() < pairs)
        {
            candle_core::bail!("attributes do not fit {classes} classes and {vectors} vectors");
        }
        let pairs = Pairs {
            starts,
            coefficients: coefficients.to_vec(),
            rho: rho.to_vec(),
            prob: a.iter().copied().zip(b.iter().copied()).collect(),
        };
        (Machine::read(definition, vectors)?, Votes::Pairs(pairs))
    };
    Ok(Box::new(SvmClassifier {
        machine,
        votes,
        labels,
        transform: PostTransform::parse(definition.text("post_transform", "NONE")?)?,
        is_positive: coefficients.iter().all(|&one| one >= 0.0),
    }))
}

// === impl SvmClassifier ===

impl Operator for SvmClassifier {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let (rows, compared) = self.machine.compare(inputs.at(0)?)?;
        let classes = self.labels.len();
        let mut chosen = Vec::with_capacity(rows);
        let mut scores = Vec::new();
        let columns = match &self.votes {
            Votes::Linear(rho) => {
                for row in compared.chunks_exact(classes) {
                    let first = scores.len();
                    scores.extend(row.iter().map(|score| score + rho));
                    let row = &mut scores[first..];
                    let most = first_largest(row);
                    chosen.push(self.linear_class(most, row[most]));
                    self.transform_many(row);
                }
                classes
            }
            Votes::Pairs(pairs) => {
                let vectors = pairs.starts[classes];
                for row in compared.chunks_exact(vectors) {
                    let (decided, votes) = pairs.decide(row);
                    chosen.push(most_votes(&votes));
                    self.pair_scores(pairs, decided, &mut scores);
                }
                match (pairs.prob.is_empty(), classes) {
                    (true, 3..) => classes * (classes - 1) / 2,
                    (true, _) => 2,
                    (false, _) => classes,
                }
            }
        };
        Ok(vec![
            self.labels.of(&chosen)?,
            Value::new(vec![rows, columns], scores)?,
        ])
    }

    fn bytes(&self) -> usize {
        let pairs = match &self.votes {
            Votes::Linear(_) => 0,
            Votes::Pairs(pairs) => size_of_val(pairs.coefficients.as_slice()),
        };
        self.machine.bytes() + pairs + self.labels.bytes()
    }
}

impl SvmClassifier {
    /// onnxruntime's rule: with two classes a score beyond the limit means the second.
    fn linear_class(&self, most: usize, score: f32) -> usize {
        let is_second = if self.is_positive {
            score >= 0.5
        } else {
            score > 0.0
        };
        if self.labels.len() == 2 && is_second {
            1
        } else {
            most
        }
    }

    fn transform_many(&self, row: &mut [f32]) {
        match row {
            [score] if self.transform == PostTransform::Probit => *score = probit(*score),
            [_] => {}
            row => self.transform.apply(row),
        }
    }

    /// Appends the scores of one row.
    fn pair_scores(&self, pairs: &Pairs, decided: Vec<f32>, scores: &mut Vec<f32>) {
        let first = scores.len();
        if !pairs.prob.is_empty() {
            scores.extend(pairs.probabilities(&decided));
            self.transform_many(&mut scores[first..]);
            return;
        }
        match decided[..] {
            [score] => scores.extend(match self.transform {
                PostTransform::None => [-score, score],
                PostTransform::Probit => [probit(score), 0.0],
                transform => transform.of_probability(score),
            }),
            [] => scores.extend([0.0, 0.0]),
            _ => {
                scores.extend(decided);
                self.transform_many(&mut scores[first..]);
            }
        }
    }
}

/// The first class with the most votes.
fn most_votes(votes: &[usize]) -> usize {
    let mut most = 0;
    for (class, count) in votes.iter().enumerate() {
        if *count > votes[most] {
            most = class;
        }
    }
    most
}

// === impl Pairs ===

impl Pairs {
    /// The scores of all pairs of classes, and the votes for each class, from the kernel of a row
    /// and all vectors.
    fn decide(&self, kernel: &[f32]) -> (Vec<f32>, Vec<usize>) {
        let vectors = kernel.len();
        let classes = self.starts.len() - 1;
        let mut votes = vec![0; classes];
        let mut scores = Vec::with_capacity(classes * classes.saturating_sub(1) / 2);
        let part = |row: usize, class: usize| {
            let (from, to) = (self.starts[class], self.starts[class + 1]);
            let coefficients = &self.coefficients[row * vectors..][from..to];
            let pairs = coefficients.iter().zip(&kernel[from..to]);
            pairs.map(|(a, b)| f64::from(a * b)).sum::<f64>()
        };
        for i in 0..classes {
            for j in i + 1..classes {
                let rho = f64::from(self.rho[scores.len()]);
                let score = part(j - 1, i) + part(i, j) + rho;
                votes[if score > 0.0 { i } else { j }] += 1;
                scores.push(score as f32);
            }
        }
        (scores, votes)
    }

    /// Probabilities of classes from the scores of pairs.
    fn probabilities(&self, scores: &[f32]) -> Vec<f32> {
        let classes = self.starts.len() - 1;
        let mut pairwise = vec![0.0; classes * classes];
        let mut known = scores.iter().zip(&self.prob);
        for i in 0..classes {
            for j in i + 1..classes {
                let Some((score, (a, b))) = known.next() else {
                    continue;
                };
                let probability = 1.0 - logistic(score * a + b);
                let probability = probability.clamp(MARGIN, 1.0 - MARGIN);
                pairwise[i * classes + j] = probability;
                pairwise[j * classes + i] = 1.0 - probability;
            }
        }
        coupled(classes, &pairwise)
    }
}

/// Wu, Lin and Weng's second method of pairwise coupling, as libsvm has it.
fn coupled(classes: usize, pairwise: &[f32]) -> Vec<f32> {
    let r = |i: usize, j: usize| pairwise[i * classes + j];
    let mut q = vec![0.0f32; classes * classes];
    for i in 0..classes {
        for j in (0..classes).filter(|&j| j != i) {
            q[i * classes + i] += r(j, i) * r(j, i);
            q[i * classes + j] = -r(j, i) * r(i, j);
        }
    }
    let limit = 0.005 / classes as f32;
    let mut p = vec![1.0 / classes as f32; classes];
    let mut qp = vec![0.0f32; classes];
    for _ in 0..ROUNDS {
        let mut pqp = 0.0;
        for i in 0..classes {
            qp[i] = (0..classes).map(|j| q[i * classes + j] * p[j]).sum();
            pqp += p[i] * qp[i];
        }
        if qp.iter().all(|one| (one - pqp).abs() < limit) {
            break;
        }
        for i in 0..classes {
            let diagonal = q[i * classes + i];
            let step = (pqp - qp[i]) / diagonal;
            p[i] += step;
            let scale = 1.0 + step;
            pqp = (pqp + step * (step * diagonal + 2.0 * qp[i])) / scale / scale;
            for j in 0..classes {
                qp[j] = (qp[j] + step * q[i * classes + j]) / scale;
                p[j] /= scale;
            }
        }
    }
    p
}

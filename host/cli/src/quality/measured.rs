//! The quality of a model on a table.

use switchyard_executor::LoadedModel;
use switchyard_models::card::{AppCard, QualityMetric, Task};
use switchyard_training::Confusion;

use super::answers::{Answer, Runner};
use super::fault::DataFault;
use super::table::Table;
use super::{metric, truth};

/// Most classes whose confusion matrix a card gets: a server reads cards at its start.
const CONFUSION_MAX: usize = 128;

/// The quality of every exit.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) metric: QualityMetric,
    pub(crate) rows: u64,
    /// Shallowest first.
    pub(crate) exits: Vec<ExitQuality>,
    /// Share of each class in the rows.
    pub(super) frequencies: Vec<f64>,
    /// Classes without a row.
    pub(super) unseen: Vec<String>,
}

/// The quality of one exit.
#[derive(Debug)]
pub(crate) struct ExitQuality {
    /// The metric, clipped to 0 to 1.
    pub(crate) accuracy: f64,
    /// Before it is clipped.
    pub(crate) exact: f64,
    /// Per class; empty if a class has no row, or without classes.
    pub(super) recall: Vec<f64>,
    /// Counts, rows by true class; empty as the recall is, or of many classes.
    pub(super) confusion: Vec<Vec<u64>>,
}

/// Measures a model on the rows of a table.
///
/// # Errors
/// A label or an input does not fit, the computation failed, or the metric is undefined.
pub(crate) fn measure(
    model: &LoadedModel,
    app: &AppCard,
    max_batch: usize,
    table: &Table,
) -> Result<Measured, DataFault> {
    tracing::info!(model = model.name, rows = table.rows(), "measuring");
    let output = match app.outputs.as_slice() {
        [only] => Some(only.name.as_str()),
        _ => None,
    };
    let runner = Runner::new(model, table, max_batch, output);
    match app.task {
        Task::Classify => classified(&runner, app, table),
        task => {
            let file = &table.file;
            let metric = QualityMetric::of(task);
            let metric = metric.ok_or_else(|| DataFault::new(file, "the task has no metric"))?;
            if output.is_none() {
                let reason = format!(
                    "app `{}` has {} outputs, a metric is of one: state the quality with --quality",
                    app.name,
                    app.outputs.len()
                );
                return Err(DataFault::new(file, reason));
            }
            let exact = match task {
                Task::Regress => regressed(&runner, table)?,
                Task::Embed => embedded(&runner, table)?,
                _ => scored(&runner, table)?,
            };
            let exits = exact.into_iter().map(|exact| ExitQuality {
                accuracy: exact.clamp(0.0, 1.0),
                exact,
                recall: Vec::new(),
                confusion: Vec::new(),
            });
            Ok(Measured {
                metric,
                rows: table.rows() as u64,
                exits: exits.collect(),
                frequencies: vec![1.0],
                unseen: Vec::new(),
            })
        }
    }
}

fn classified(runner: &Runner<'_>, app: &AppCard, table: &Table) -> Result<Measured, DataFault> {
    let truth = truth::classes(table, &app.classes)?;
    let classes = app.classes.len();
    let mut confusions: Vec<Confusion> = Vec::new();
    runner.each(0, |rows, exits| {
        confusions.resize_with(exits.len(), || Confusion::new(classes));
        for (confusion, answers) in confusions.iter_mut().zip(exits) {
            for (row, answer) in rows.clone().zip(answers) {
                confusion.record(truth[row], most_probable(&answer));
            }
        }
        Ok(())
    })?;
    let frequencies = confusions.first().map(Confusion::frequencies);
    let frequencies = frequencies.unwrap_or_default();
    let unseen = app.classes.iter().zip(&frequencies);
    let unseen = unseen.filter(|(_, share)| **share == 0.0);
    let unseen: Vec<String> = unseen.map(|(class, _)| class.clone()).collect();
    let exit = |confusion: &Confusion| ExitQuality {
        accuracy: confusion.accuracy(),
        exact: confusion.accuracy(),
        recall: match unseen.is_empty() {
            true => confusion.recall(),
            false => Vec::new(),
        },
        confusion: match unseen.is_empty() && classes <= CONFUSION_MAX {
            true => confusion.rows().to_vec(),
            false => Vec::new(),
        },
    };
    Ok(Measured {
        metric: QualityMetric::Accuracy,
        rows: table.rows() as u64,
        exits: confusions.iter().map(exit).collect(),
        frequencies,
        unseen,
    })
}

/// The first of the largest, as a server answers.
fn most_probable(answer: &[f64]) -> usize {
    let mut best = 0;
    for (class, probability) in answer.iter().enumerate() {
        if *probability > answer[best] {
            best = class;
        }
    }
    best
}

fn regressed(runner: &Runner<'_>, table: &Table) -> Result<Vec<f64>, DataFault> {
    let mut answers: Vec<Vec<Answer>> = Vec::new();
    let mut labels = Vec::new();
    runner.each(0, |rows, exits| {
        if labels.is_empty() {
            // Before the other rows are computed: their number is known from the first answer.
            let width = exits.first().and_then(|answers| answers.first());
            labels = truth::numbers(table, width.map_or(0, Vec::len))?;
        }
        answers.resize_with(exits.len(), Vec::new);
        for (all, exit) in answers.iter_mut().zip(exits) {
            let width = labels.first().map_or(0, Vec::len);
            if let Some(at) = exit.iter().position(|answer| answer.len() != width) {
                let reason = format!(
                    "the model answers with {} numbers, and with {width} to the first row",
                    exit[at].len()
                );
                let place = table.place(rows.start + at);
                return Err(DataFault::new(&table.file, reason).at(place));
            }
            all.extend(exit);
        }
        Ok(())
    })?;
    let of_exit = |answers: &Vec<Answer>| metric::r2(&labels, answers);
    let all: Option<Vec<f64>> = answers.iter().map(of_exit).collect();
    all.ok_or_else(|| constant(table))
}

/// The rank correlations of scores with labels.
fn scored(runner: &Runner<'_>, table: &Table) -> Result<Vec<f64>, DataFault> {
    let labels = truth::numbers(table, 1)?.concat();
    let mut scores: Vec<Answer> = Vec::new();
    runner.each(0, |rows, exits| {
        scores.resize_with(exits.len(), Vec::new);
        for (scores, answers) in scores.iter_mut().zip(exits) {
            for (row, answer) in rows.clone().zip(answers) {
                let [score] = answer[..] else {
                    let reason = format!(
                        "the model answers with {} numbers, a score is one: state the quality with \
                         --quality",
                        answer.len()
                    );
                    return Err(DataFault::new(&table.file, reason).at(table.place(row)));
                };
                scores.push(score);
            }
        }
        Ok(())
    })?;
    correlated(&labels, &scores, table)
}

/// The rank correlations of the cosine similarities of pairs with labels.
fn embedded(runner: &Runner<'_>, table: &Table) -> Result<Vec<f64>, DataFault> {
    let labels = truth::numbers(table, 1)?.concat();
    let mut left: Vec<Vec<Answer>> = Vec::new();
    runner.each(0, |_, exits| {
        left.resize_with(exits.len(), Vec::new);
        for (all, exit) in left.iter_mut().zip(exits) {
            all.extend(exit);
        }
        Ok(())
    })?;
    let mut similarities = vec![Vec::new(); left.len()];
    runner.each(1, |rows, exits| {
        for ((similarities, left), exit) in similarities.iter_mut().zip(&left).zip(exits) {
            for (row, right) in rows.clone().zip(exit) {
                let fault =
                    |reason: &str| Err(DataFault::new(&table.file, reason).at(table.place(row)));
                if left[row].len() != right.len() {
                    return fault("the two embeddings have different lengths");
                }
                match metric::cosine(&left[row], &right) {
                    Some(similarity) => similarities.push(similarity),
                    None => return fault("an embedding is zero, which has no direction"),
                }
            }
        }
        Ok(())
    })?;
    correlated(&labels, &similarities, table)
}

fn correlated(labels: &[f64], exits: &[Vec<f64>], table: &Table) -> Result<Vec<f64>, DataFault> {
    let of_exit = |answers: &Vec<f64>| metric::spearman(labels, answers);
    let all: Option<Vec<f64>> = exits.iter().map(of_exit).collect();
    all.ok_or_else(|| constant(table))
}

/// The refusal of labels without differences.
fn constant(table: &Table) -> DataFault {
    let reason = "are all equal, which no answer can follow: use rows with different labels";
    DataFault::new(&table.file, reason).column(&table.label)
}

// === impl Measured ===

impl Measured {
    /// The quality in words, `data` being its file.
    pub(crate) fn shown(&self, data: &str) -> String {
        let exits: Vec<String> = self
            .exits
            .iter()
            .map(|exit| format!("{:.4}", exit.accuracy))
            .collect();
        let mut text = format!(
            "quality {} ({} of {} rows of {data})",
            exits.join(", "),
            self.metric.name(),
            self.rows
        );
        let clipped = |exit: &&ExitQuality| exit.exact != exit.accuracy;
        if let Some(exit) = self.exits.iter().find(clipped) {
            text += &format!("; {:.4} counts as {}", exit.exact, exit.accuracy);
        }
        if let Some(first) = self.unseen.first() {
            text += &format!(
                "; no recall per class, since {} of {} classes, such as `{first}`, have no row",
                self.unseen.len(),
                self.frequencies.len()
            );
        }
        text
    }
}

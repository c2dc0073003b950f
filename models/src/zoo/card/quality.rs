//! The measurement of a variant's quality on a labelled file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::networks::task::Task;

/// The table `[quality]` of a variant's card: the measurement behind the accuracies of its exits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QualityCard {
    /// The metric that the exits' `accuracy` is.
    pub metric: QualityMetric,
    /// Rows of the file.
    pub rows: u64,
    /// The file or folder.
    pub data: String,
}

/// A measure of quality from 0 to 1. Negative values count as 0: such a model is worse than a
/// constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QualityMetric {
    /// Share of right classes.
    Accuracy,
    /// Coefficient of determination of numbers, the mean over the numbers of an answer.
    R2,
    /// Spearman's rank correlation of scores, or of the cosine similarities of pairs of embeddings,
    /// with the labels.
    Spearman,
}

// === impl QualityCard ===

impl QualityCard {
    pub(super) fn check(&self, file: &Path, task: Task, unknown: bool) -> Result<(), ModelError> {
        if QualityMetric::of(task) != Some(self.metric) {
            let (metric, task) = (self.metric.name(), task.name());
            let reason = format!(
                "\"{metric}\", task \"{task}\" has another: `switchyard measure` writes it"
            );
            return Err(ModelError::field(file, "quality.metric", reason));
        }
        if self.rows == 0 {
            return Err(ModelError::field(
                file,
                "quality.rows",
                "must be at least 1",
            ));
        }
        if unknown {
            let reason = "true next to [quality]: leave one of the two out";
            return Err(ModelError::field(file, "quality_unknown", reason));
        }
        Ok(())
    }
}

// === impl QualityMetric ===

impl QualityMetric {
    /// The metric of a task; `None` for tensors, whose meaning is unknown.
    pub const fn of(task: Task) -> Option<Self> {
        match task {
            Task::Classify => Some(Self::Accuracy),
            Task::Regress => Some(Self::R2),
            Task::Embed | Task::Score => Some(Self::Spearman),
            Task::Tensors => None,
        }
    }

    /// The name on cards.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::R2 => "r2",
            Self::Spearman => "spearman",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_of_another_task_is_refused() {
        let file = Path::new("model.toml");
        let card = QualityCard {
            metric: QualityMetric::R2,
            rows: 3,
            data: "test.csv".to_owned(),
        };
        card.check(file, Task::Regress, false).unwrap();
        let refused = |card: &QualityCard, task, unknown| {
            card.check(file, task, unknown).unwrap_err().to_string()
        };
        assert!(refused(&card, Task::Classify, false).contains("quality.metric"));
        assert!(refused(&card, Task::Tensors, false).contains("quality.metric"));
        assert!(refused(&card, Task::Regress, true).contains("quality_unknown"));
        let empty = QualityCard { rows: 0, ..card };
        assert!(refused(&empty, Task::Regress, false).contains("at least 1"));
    }
}

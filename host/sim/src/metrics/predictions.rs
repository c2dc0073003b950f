//! Answers by true and predicted class, drawn from the confusion matrices of the exits that ran.

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::{App, Catalog, Exit};
use switchyard_core::ids::AppId;

/// Sampled answers of one app by true and predicted class, in time or late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// The app.
    pub app: String,
    /// Number of answers: rows by true class, columns by predicted class, in the app's order.
    pub counts: Vec<Vec<u64>>,
    /// Recall and precision of each class, in the app's order.
    pub classes: Vec<ClassReport>,
}

/// How well the answers separate one class from the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// Answers to requests of this class.
    pub answers: u64,
    /// Share of those answers that named this class.
    pub recall: Option<f64>,
    /// Share of right ones among the answers that named it.
    pub precision: Option<f64>,
    /// Answers that named it for requests of other classes.
    pub false_alarms: u64,
    /// False alarms over all answers to requests of other classes.
    pub false_alarm_rate: Option<f64>,
}

/// Answers of one app by true and predicted class.
#[derive(Clone, Debug)]
pub(super) struct PredictionCounts {
    classes: usize,
    /// Row by row, `classes * classes` of them.
    cells: Vec<u64>,
}

// === impl PredictionCounts ===

impl PredictionCounts {
    /// By app; absent if the mistakes of an exit are unknown.
    pub(super) fn of(catalog: &Catalog) -> Vec<Option<Self>> {
        let apps = (0..).map(AppId).zip(&catalog.apps);
        apps.map(|(id, app)| {
            let classes = app.classes.len();
            let variants = catalog.variants_of(id).map(|(_, variant)| variant);
            let mut exits = variants.flat_map(|variant| &variant.exits);
            let known = classes > 1 && exits.all(|exit| knows(exit, classes));
            known.then(|| Self {
                classes,
                cells: vec![0; classes * classes],
            })
        })
        .collect()
    }

    pub(super) fn record(&mut self, label: usize, predicted: usize) {
        self.cells[label * self.classes + predicted] += 1;
    }

    fn report(&self, app: &App) -> Predictions {
        let rows: Vec<Vec<u64>> = self.cells.chunks(self.classes).map(<[_]>::to_vec).collect();
        let all: u64 = self.cells.iter().sum();
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let classes = app.classes.iter().enumerate().map(|(class, name)| {
            let right = rows[class][class];
            let answers: u64 = rows[class].iter().sum();
            let named: u64 = rows.iter().map(|row| row[class]).sum();
            let false_alarms = named - right;
            ClassReport {
                name: name.clone(),
                answers,
                recall: share(right, answers),
                precision: share(right, named),
                false_alarms,
                false_alarm_rate: share(false_alarms, all - answers),
            }
        });
        Predictions {
            app: app.name.clone(),
            classes: classes.collect(),
            counts: rows,
        }
    }
}

/// All apps with counts.
pub(super) fn report(counts: &[Option<PredictionCounts>], catalog: &Catalog) -> Vec<Predictions> {
    let apps = catalog.apps.iter().zip(counts);
    apps.filter_map(|(app, counts)| Some(counts.as_ref()?.report(app)))
        .collect()
}

/// Whether an exit's mistakes are known: with two classes there is a single wrong one.
fn knows(exit: &Exit, classes: usize) -> bool {
    exit.confusion.is_some() || classes == 2
}

/// The class that an exit names for a request of class `label`, given its `recall` for that class.
///
/// If `hardness`, uniform in [0, 1), is below the recall, the right class; otherwise the class at
/// that position of the rest of the confusion row. One draw per request decides both, so a request
/// is as hard under every policy. None if the exit's mistakes are unknown.
pub(super) fn predicted(
    exit: &Exit,
    classes: usize,
    label: usize,
    recall: f64,
    hardness: f64,
) -> Option<usize> {
    if hardness < recall {
        return Some(label);
    }
    match &exit.confusion {
        // `hardness` is at least the recall, so the recall is below 1.
        Some(confusion) => confusion.wrong(label, (hardness - recall) / (1.0 - recall)),
        None => (classes == 2).then(|| 1 - label),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use switchyard_core::catalog::Confusion;

    fn exit(counts: &[Vec<u64>]) -> Exit {
        let confusion = Confusion::from_counts(counts).unwrap();
        Exit {
            name: "final".to_owned(),
            after_stage: 1,
            accuracy: 0.5,
            recall: confusion.recall(),
            confusion: Some(confusion),
        }
    }

    #[test]
    fn one_draw_samples_the_row_of_the_true_class() {
        let exit = exit(&[vec![5, 4, 1], vec![1, 8, 1], vec![0, 0, 9]]);
        for label in 0..3 {
            let mut counts = [0; 3];
            for i in 0..10_000 {
                let hardness = f64::from(i) / 10_000.0;
                let named = predicted(&exit, 3, label, exit.recall[label], hardness);
                counts[named.unwrap()] += 1;
            }
            let row = exit.confusion.as_ref().unwrap().row(label).unwrap();
            for (count, share) in counts.into_iter().zip(row) {
                assert!((f64::from(count) / 10_000.0 - share).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn only_more_than_two_classes_need_a_matrix() {
        let unknown = Exit {
            confusion: None,
            ..exit(&[vec![1, 1], vec![1, 1]])
        };
        assert_eq!(predicted(&unknown, 2, 1, 0.5, 0.4), Some(1));
        assert_eq!(predicted(&unknown, 2, 1, 0.5, 0.6), Some(0));
        assert_eq!(predicted(&unknown, 3, 1, 0.5, 0.6), None);
    }
}

//! Neighbour counts of requests, drawn instead of looked up in an index: from recorded counts, or by
//! the SneakPeek model's confusion matrix.

use std::sync::Arc;

use switchyard_core::catalog::{App, Catalog, Confusion};
use switchyard_core::ids::AppId;
use switchyard_core::request::Evidence;
use switchyard_core::time::Micros;

use crate::random::{Purpose, Stream, running_sums};
use crate::scenario::EvidenceTimes;
use crate::votes::RecordedVotes;

/// Draws the votes of k neighbours.
///
/// With recorded votes, those of a sample of the request's class. Otherwise the class with the most votes is the right one with the SneakPeek model's recall for it, otherwise
/// another class by the model's confusion row, or by frequency if the row is unknown. Each other vote
/// is for the same class or for a class drawn by frequency.
#[derive(Debug)]
pub(crate) struct NeighbourVotes {
    times: EvidenceTimes,
    /// By app.
    recorded: Vec<Option<Arc<RecordedVotes>>>,
    /// Running sums of class frequencies, by app.
    frequencies: Vec<Vec<f64>>,
    delays: Stream,
    votes: Stream,
}

// === impl NeighbourVotes ===

impl NeighbourVotes {
    pub(crate) fn new(catalog: &Catalog, times: EvidenceTimes, seed: u64) -> Self {
        let frequencies = |app: &App| running_sums(app.frequencies.iter().copied());
        Self {
            times,
            recorded: Vec::new(),
            frequencies: catalog.apps.iter().map(frequencies).collect(),
            delays: Stream::new(seed, Purpose::Evidence, 0),
            votes: Stream::new(seed, Purpose::Evidence, 1),
        }
    }

    /// With recorded votes, by app.
    pub(crate) fn with_recorded(self, recorded: &[Option<Arc<RecordedVotes>>]) -> Self {
        Self {
            recorded: recorded.to_vec(),
            ..self
        }
    }

    /// Time from an arrival to its counts.
    pub(crate) fn delay(&mut self) -> Micros {
        let jitter = match self.times.jitter_us {
            Micros::ZERO => 0.0,
            jitter => jitter.0 as f64 * self.delays.uniform(),
        };
        self.times.delay_us + Micros(jitter as u64)
    }

    /// The counts of a request with this class; none in an app without a SneakPeek model.
    pub(crate) fn count(
        &mut self,
        app: AppId,
        label: usize,
        catalog: &Catalog,
    ) -> Option<Evidence> {
        let spec = &catalog.apps[app.index()];
        let model = spec.sneakpeek.as_ref()?;
        if let Some(Some(recorded)) = self.recorded.get(app.index()) {
            return Some(recorded.draw(label, &mut self.votes));
        }
        let classes = spec.classes.len();
        let mut counts: Evidence = std::iter::repeat_n(0, classes).collect();
        if classes == 0 || model.neighbours == 0 {
            return Some(counts);
        }
        let recall = model.recall.get(label).copied().unwrap_or(model.accuracy);
        let guess = match self.votes.uniform() < recall || classes == 1 {
            true => label,
            false => {
                let row = model.confusion.as_ref();
                self.other_than(label, app, classes, row)
            }
        };
        counts[guess] += 1;
        for _ in 1..model.neighbours {
            let agrees = self.votes.uniform() < self.times.agreement;
            let vote = match agrees {
                true => guess,
                false => self.votes.pick(&self.frequencies[app.index()]),
            };
            counts[vote] += 1;
        }
        settle(&mut counts, guess);
        Some(counts)
    }

    fn other_than(
        &mut self,
        label: usize,
        app: AppId,
        classes: usize,
        confusion: Option<&Confusion>,
    ) -> usize {
        if let Some(confusion) = confusion {
            let other = confusion.wrong(label, self.votes.uniform());
            // A row without mistakes has a recall of 1 and gets here only by rounding.
            return other.unwrap_or(label);
        }
        let sums = &self.frequencies[app.index()];
        let before = label.checked_sub(1).map_or(0.0, |at| sums[at]);
        let own = sums[label] - before;
        let others = sums[classes - 1] - own;
        if others <= 0.0 {
            return (label + 1) % classes;
        }
        let at = self.votes.uniform() * others;
        let at = if at < before { at } else { at + own };
        let found = sums.partition_point(|&sum| sum <= at).min(classes - 1);
        // Rounding may find the label itself, at its edge.
        if found == label {
            (label + 1) % classes
        } else {
            found
        }
    }
}

/// Moves votes until the guess has the most.
fn settle(counts: &mut Evidence, guess: usize) {
    while let Some(rival) =
        (0..counts.len()).find(|&class| class != guess && counts[class] >= counts[guess])
    {
        counts[rival] -= 1;
        counts[guess] += 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use switchyard_core::catalog::{Late, Penalty, SneakPeekModel};

    /// Three classes and a model with this recall.
    fn catalog(recall: Vec<f64>, confusion: Option<Confusion>) -> Catalog {
        let app = App {
            name: "a".to_owned(),
            task: switchyard_core::catalog::Task::Classify,
            classes: ["x", "y", "z"].map(str::to_owned).to_vec(),
            slo: Micros(1),
            penalty: Penalty::Step,
            prior: vec![0.5; 3],
            frequencies: vec![0.6, 0.3, 0.1],
            sneakpeek: Some(SneakPeekModel {
                neighbours: 5,
                accuracy: 0.7,
                recall,
                confusion,
            }),
            late: Late::Serve,
        };
        Catalog {
            apps: vec![app],
            ..Catalog::default()
        }
    }

    #[test]
    fn mistakes_follow_the_confusion_row() {
        let counts = [vec![50, 10, 40], vec![0, 10, 0], vec![3, 6, 1]];
        let confusion = Confusion::from_counts(&counts).unwrap();
        let catalog = catalog(confusion.recall(), Some(confusion));
        let mut neighbours = NeighbourVotes::new(&catalog, EvidenceTimes::default(), 1);
        for (label, row) in counts.iter().enumerate() {
            let mut guesses = [0u32; 3];
            for _ in 0..20_000 {
                let counts = neighbours.count(AppId(0), label, &catalog).unwrap();
                let best = (0..3).max_by_key(|&class| counts[class]).unwrap();
                guesses[best] += 1;
            }
            let whole: u64 = row.iter().sum();
            for (guessed, &counted) in guesses.into_iter().zip(row) {
                let (got, want) = (f64::from(guessed) / 2e4, counted as f64 / whole as f64);
                assert!(
                    (got - want).abs() < 0.02,
                    "class {label}: {got}, not {want}"
                );
            }
        }
    }

    #[test]
    fn the_best_guess_is_right_with_the_recall() {
        let catalog = catalog(vec![0.9, 0.5, 0.2], None);
        let mut neighbours = NeighbourVotes::new(&catalog, EvidenceTimes::default(), 1);
        for (label, recall) in [(0, 0.9), (1, 0.5), (2, 0.2)] {
            let mut right = 0;
            for _ in 0..20_000 {
                let counts = neighbours.count(AppId(0), label, &catalog).unwrap();
                assert_eq!(counts.iter().sum::<u32>(), 5);
                let best = counts.iter().max().unwrap();
                assert_eq!(counts.iter().filter(|c| *c == best).count(), 1, "a tie");
                right += u32::from(counts[label] == *best);
            }
            let got = f64::from(right) / 20_000.0;
            assert!((got - recall).abs() < 0.02, "class {label}: {got}");
        }
    }
}

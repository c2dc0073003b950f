//! The tasks of a window and what each processor would make of them.

use crate::score::{Rule, Score};

/// T, P and L(T, P) of the algorithms.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) rule: Rule,
    /// In the order in which a candidate places them.
    pub(crate) tasks: Vec<Task>,
    /// `wait_time(p)` at the start, in microseconds.
    pub(crate) waits: Vec<f64>,
    /// Per task and processor; infinite where it cannot run.
    pub(crate) latencies: Vec<f64>,
}

/// What a candidate's score asks of a task. Microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) age_us: f64,
    pub(crate) slo_us: f64,
}

/// A candidate: a processor for every task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) to: Vec<usize>,
    pub(crate) score: Score,
}

// === impl Problem ===

impl Problem {
    pub(crate) fn processors(&self) -> usize {
        self.waits.len()
    }

    #[inline]
    pub(crate) fn latency(&self, task: usize, processor: usize) -> f64 {
        self.latencies[task * self.waits.len() + processor]
    }

    /// A score with one task more, `load_us` being all that is before it on the processor.
    #[inline]
    pub(crate) fn add(&self, score: Score, task: usize, processor: usize, load_us: f64) -> Score {
        let Task { age_us, slo_us } = self.tasks[task];
        let expected_us = age_us + load_us + self.latency(task, processor);
        self.rule.add(score, expected_us, slo_us)
    }

    /// What a mapping is worth. Each task waits for those placed before it on its processor.
    pub(crate) fn score(&self, to: &[usize], loads: &mut Vec<f64>) -> Score {
        loads.clone_from(&self.waits);
        let mut score = Score::default();
        for (task, &processor) in to.iter().enumerate() {
            score = self.add(score, task, processor, loads[processor]);
            loads[processor] += self.latency(task, processor);
        }
        score
    }

    /// A mapping with its score.
    pub(crate) fn candidate(&self, to: Vec<usize>) -> Candidate {
        let score = self.score(&to, &mut Vec::new());
        Candidate { to, score }
    }

    /// Affinity (section 3.2): each task to its fastest processor, the first of equals.
    pub(crate) fn fastest(&self) -> Vec<usize> {
        (0..self.tasks.len())
            .map(|task| self.least(|processor| self.latency(task, processor)))
            .collect()
    }

    /// The processor of the least value, the first of equals.
    pub(crate) fn least(&self, value: impl Fn(usize) -> f64) -> usize {
        let all = 0..self.processors();
        all.min_by(|&a, &b| value(a).total_cmp(&value(b)))
            .unwrap_or(0)
    }
}

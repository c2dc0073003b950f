//! The mapping problem of a window: tasks, processors, latencies.

use crate::score::{MappingScore, ScoreRule};
use crate::settings::WaitRule;

/// T, P and L(T, P) of the algorithms.
#[derive(Clone, Debug)]
pub(crate) struct MappingProblem {
    pub(crate) rule: ScoreRule,
    pub(crate) wait: WaitRule,
    /// In the order in which a mapping places them.
    pub(crate) tasks: Vec<TaskTimes>,
    /// `wait_time(p)` at the start, in microseconds.
    pub(crate) waits: Vec<f64>,
    /// Microseconds, task by task, one per processor; infinite if the task cannot run there.
    pub(crate) latencies: Vec<f64>,
}

/// Age and SLO of a task, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TaskTimes {
    pub(crate) age_us: f64,
    pub(crate) slo_us: f64,
}

/// A processor for every task: a candidate of the algorithms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mapping {
    pub(crate) to: Vec<usize>,
    pub(crate) score: MappingScore,
}

// === impl MappingProblem ===

impl MappingProblem {
    pub(crate) fn processors(&self) -> usize {
        self.waits.len()
    }

    #[inline]
    pub(crate) fn latency(&self, task: usize, processor: usize) -> f64 {
        self.latencies[task * self.waits.len() + processor]
    }

    /// The wait of the next task on a processor after a task has been placed there.
    #[inline]
    pub(crate) fn load_after(&self, load_us: f64, task: usize, processor: usize) -> f64 {
        match self.wait {
            WaitRule::Placed => load_us + self.latency(task, processor),
            WaitRule::Pending => load_us,
        }
    }

    /// A score with one task more, which starts `load_us` from now on the processor.
    #[inline]
    pub(crate) fn add(
        &self,
        score: MappingScore,
        task: usize,
        processor: usize,
        load_us: f64,
    ) -> MappingScore {
        let TaskTimes { age_us, slo_us } = self.tasks[task];
        let expected_us = age_us + load_us + self.latency(task, processor);
        self.rule.add(score, expected_us, slo_us)
    }

    /// The score of a mapping. Each task waits for those placed before it on its processor, unless
    /// only pending work counts.
    pub(crate) fn score(&self, to: &[usize], loads: &mut Vec<f64>) -> MappingScore {
        loads.clone_from(&self.waits);
        let mut score = MappingScore::default();
        for (task, &processor) in to.iter().enumerate() {
            score = self.add(score, task, processor, loads[processor]);
            loads[processor] = self.load_after(loads[processor], task, processor);
        }
        score
    }

    /// A mapping with its score.
    pub(crate) fn mapping(&self, to: Vec<usize>) -> Mapping {
        let score = self.score(&to, &mut Vec::new());
        Mapping { to, score }
    }

    /// Affinity (section 3.2): each task to its fastest processor, the first of equals.
    pub(crate) fn fastest(&self) -> Vec<usize> {
        (0..self.tasks.len())
            .map(|task| self.least(|processor| self.latency(task, processor)))
            .collect()
    }

    /// The processor with the least value, the first of equals.
    pub(crate) fn least(&self, value: impl Fn(usize) -> f64) -> usize {
        let all = 0..self.processors();
        all.min_by(|&a, &b| value(a).total_cmp(&value(b)))
            .unwrap_or(0)
    }
}

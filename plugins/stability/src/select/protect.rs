//! Who would be late, whatever is done about it. Not in the paper.
//!
//! The stability score sums over tasks, so that a long queue with time left outweighs a short one
//! without: its most urgent task is made late although nobody had to be. Here a candidate is
//! asked first how many tasks miss their SLO if from then on everything is done to save them.

use super::Rounds;
use crate::exits::ExitRule;

// === impl Rounds ===

impl Rounds<'_> {
    /// Tasks of the first batch of every queue that miss their SLO even when these batches run
    /// next, the most urgent first, each from its shallowest exit.
    pub(super) fn late_at_best(&mut self) -> usize {
        let mut waiting: Vec<(f64, usize)> = Vec::with_capacity(self.queues.len());
        for (at, queue) in self.queues.iter().enumerate() {
            let slack_us = queue
                .longest_wait_us()
                .map(|wait_us| queue.tau_us - wait_us);
            waiting.extend(slack_us.map(|slack_us| (slack_us, at)));
        }
        waiting.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let devices = self.devices.clone();
        let mut late = 0;
        for (_, queue) in waiting {
            let next = self.first_free();
            if let Some(rescue) = self.candidate_by(ExitRule::Early, queue, next) {
                let end_us = self.devices[next].free_us + rescue.batch.latency_us;
                self.devices[next].free_us = end_us;
                late += self.queues[queue].late_among(rescue.batch.size, end_us);
            }
        }
        self.devices = devices;
        late
    }
}

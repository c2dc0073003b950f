//! The queue selection of the baselines of sections VI-A and VI-H.

use crate::candidate::Candidate;
use crate::queue::AppQueue;

/// The longest queue; of equal ones that with the longest waiting task.
pub(crate) fn longest_queue(
    candidates: impl Iterator<Item = Candidate>,
    queues: &[AppQueue],
) -> Option<Candidate> {
    candidates.reduce(|best, other| {
        let waiting = |candidate: &Candidate| queues[candidate.queue].waiting().len();
        let order = waiting(&other).cmp(&waiting(&best));
        let order = order.then(other.longest_us.total_cmp(&best.longest_us));
        if order.is_gt() { other } else { best }
    })
}

/// The queue whose most urgent task has the least slack.
pub(crate) fn earliest_deadline(
    candidates: impl Iterator<Item = Candidate>,
    queues: &[AppQueue],
) -> Option<Candidate> {
    candidates.reduce(|best, other| {
        let slack_us =
            |candidate: &Candidate| queues[candidate.queue].tau_us - candidate.longest_us;
        if slack_us(&other) < slack_us(&best) {
            other
        } else {
            best
        }
    })
}

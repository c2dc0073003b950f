//! Differences by request. A request that waits stands in many windows; it counts once, in the first
//! window in which the two plans treat it differently.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchyard_core::window::Window;
use switchyard_server::judge::{Difference, Fate, Outlook};

/// Requests of a recording, each counted once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RequestTally {
    /// All requests of the windows.
    pub(super) all: u64,
    /// Both plans decide the request in that window.
    pub(super) both_decide: u64,
    /// Only the replayed policy decides it; the recorded plan leaves it waiting.
    pub(super) replayed_first: u64,
    /// Only the recorded plan decides it; the replayed policy leaves it waiting.
    pub(super) replayed_waits: u64,
    /// Sums of utility over requests that both decide with a known utility.
    utility: UtilityPairs,
    /// Ids of this run.
    seen: BTreeSet<u64>,
    /// Ids of this run that were counted as different.
    counted: BTreeSet<u64>,
}

/// Utilities of the same requests under both plans.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct UtilityPairs {
    requests: u64,
    recorded: f64,
    replayed: f64,
}

// === impl RequestTally ===

impl RequestTally {
    /// Ids of another run are those of other requests.
    pub(super) fn begin_run(&mut self) {
        self.seen.clear();
        self.counted.clear();
    }

    /// Counts the requests of a window, and those that fare differently.
    pub(super) fn add(&mut self, window: &Window, found: Option<&Difference>) {
        for &id in &window.requests.id {
            self.all += u64::from(self.seen.insert(id));
        }
        for request in found.into_iter().flat_map(|found| &found.requests) {
            if self.counted.insert(request.id.0) {
                self.count(&request.done, &request.proposed);
            }
        }
    }

    fn count(&mut self, recorded: &Outlook, replayed: &Outlook) {
        match (recorded.fate, replayed.fate) {
            (Fate::Waits, _) => self.replayed_first += 1,
            (_, Fate::Waits) => self.replayed_waits += 1,
            _ => {
                self.both_decide += 1;
                if let (Some(one), Some(other)) = (recorded.utility, replayed.utility) {
                    self.utility.requests += 1;
                    self.utility.recorded += one;
                    self.utility.replayed += other;
                }
            }
        }
    }

    /// Requests that the plans treat differently in at least one window.
    pub(super) fn different(&self) -> u64 {
        self.both_decide + self.replayed_first + self.replayed_waits
    }

    /// Mean utility of the requests that both decide: recorded, replayed.
    pub(super) fn utility(&self) -> Option<[f64; 2]> {
        let UtilityPairs {
            requests,
            recorded,
            replayed,
        } = self.utility;
        let mean = |sum: f64| sum / requests as f64;
        (requests > 0).then(|| [mean(recorded), mean(replayed)])
    }

    pub(super) fn to_json(&self) -> Value {
        let utility = self.utility();
        json!({
            "all": self.all,
            "different": self.different(),
            "both_decide": self.both_decide,
            "replayed_first": self.replayed_first,
            "replayed_waits": self.replayed_waits,
            "utility_mean": utility.map(|[recorded, replayed]| json!({
                "recorded": recorded,
                "replayed": replayed,
            })),
        })
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::ids::{AppId, RequestId};
    use switchyard_core::time::Time;
    use switchyard_server::judge::{RequestDifference, Worth};

    use super::*;

    fn outlook(fate: Fate, utility: Option<f64>) -> Outlook {
        Outlook {
            fate,
            end: None,
            utility,
        }
    }

    fn difference(requests: &[(u64, Outlook, Outlook)]) -> Difference {
        let requests = requests
            .iter()
            .map(|&(id, done, proposed)| RequestDifference {
                id: RequestId(id),
                app: AppId(0),
                done,
                proposed,
                done_why: None,
                proposed_why: None,
            });
        Difference {
            window: 1,
            now: Time(0),
            pending: 3,
            by: "fcfs".to_owned(),
            requests: requests.collect(),
            besides: Vec::new(),
            done: Worth::default(),
            proposed: Worth::default(),
            failure: None,
        }
    }

    fn window(ids: &[u64]) -> Window {
        let mut window = Window::default();
        window.requests.id.extend(ids);
        window
    }

    #[test]
    fn a_request_that_waits_in_many_windows_counts_once() {
        let waits = outlook(Fate::Waits, None);
        let answered = outlook(Fate::Answered, Some(0.5));
        let rejected = outlook(Fate::Rejected, Some(0.0));
        let first = difference(&[(1, answered, waits), (2, waits, answered)]);
        let later = difference(&[(2, answered, rejected), (3, answered, rejected)]);
        let mut tally = RequestTally::default();
        tally.add(&window(&[1, 2, 3, 4]), Some(&first));
        tally.add(&window(&[2, 3, 4]), Some(&later));
        tally.add(&window(&[4]), None);
        assert_eq!((tally.all, tally.different()), (4, 3));
        assert_eq!((tally.replayed_waits, tally.replayed_first), (1, 1));
        assert_eq!((tally.both_decide, tally.utility()), (1, Some([0.5, 0.0])));
        tally.begin_run();
        tally.add(&window(&[1]), Some(&difference(&[(1, waits, answered)])));
        assert_eq!((tally.all, tally.replayed_first), (5, 2));
    }
}

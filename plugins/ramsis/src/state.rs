//! What one version of the policy hands to the next.

use serde::{Deserialize, Serialize};
use switchyard_sdk::RequestId;

use crate::class::Class;
use crate::queues::{Known, Queues};

/// Queues and turns. Workers and classes must be the same for it to be of use.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    classes: Vec<ClassState>,
    requests: Vec<u64>,
    workers: Vec<u32>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassState {
    app: u32,
    slo_us: u64,
    workers: Vec<u32>,
    next: usize,
    share: f64,
}

// === impl State ===

impl State {
    pub(crate) fn of(classes: &[Class], queues: &Queues) -> Self {
        Self {
            classes: classes.iter().map(ClassState::of).collect(),
            requests: queues.known.iter().map(|known| known.id.0).collect(),
            workers: queues.known.iter().map(|known| known.worker).collect(),
        }
    }

    /// Puts it in the place of what is there.
    ///
    /// # Errors
    /// It is of other classes or other workers.
    pub(crate) fn put(self, classes: &mut [Class], queues: &mut Queues) -> Result<(), String> {
        let is_same = |(class, state): (&Class, &ClassState)| {
            let own = ClassState::of(class);
            let same =
                (own.app, own.slo_us, &own.workers) == (state.app, state.slo_us, &state.workers);
            same && state.next < state.workers.len() && (0.0..=1.0).contains(&state.share)
        };
        let pairs = || classes.iter().zip(&self.classes);
        if classes.len() != self.classes.len() || !pairs().all(is_same) {
            return Err("state: is of other tables or workers".to_owned());
        }
        let is_sorted = self.requests.is_sorted_by(|a, b| a < b);
        if self.requests.len() != self.workers.len() || !is_sorted {
            return Err("state: requests: must ascend, each with a worker".to_owned());
        }
        for (class, state) in classes.iter_mut().zip(&self.classes) {
            (class.next, class.share) = (state.next, state.share);
        }
        let known = self.requests.iter().zip(&self.workers);
        let known = known.map(|(&id, &worker)| Known {
            id: RequestId(id),
            worker,
        });
        queues.known = known.collect();
        Ok(())
    }
}

impl ClassState {
    fn of(class: &Class) -> Self {
        Self {
            app: class.app.0,
            slo_us: class.slo_us,
            workers: class.workers.iter().map(|(worker, _)| worker.0).collect(),
            next: class.next,
            share: class.share,
        }
    }
}

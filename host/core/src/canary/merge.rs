//! The plans of the members as one plan.

use crate::catalog::Catalog;
use crate::plan::Plan;
use crate::time::Time;
use crate::window::{IDLE, Workers};

/// The three lists that reasons number through.
#[derive(Clone, Copy, Debug)]
enum List {
    Dispatches,
    Rejects,
    Answers,
}

/// The reasons so far: the lists grow until the last member has planned.
#[derive(Debug, Default)]
pub(super) struct Merge {
    reasons: Vec<(List, usize, String)>,
}

// === impl Merge ===

impl Merge {
    /// Adds a member's plan, without its wake and its routes.
    pub(super) fn add(&mut self, part: &mut Plan, whole: &mut Plan) {
        let (dispatches, rejects) = (part.dispatches.len(), part.rejects.len());
        for (position, reason) in part.reasons.drain(..) {
            let position = position as usize;
            let (list, index) = if position < dispatches {
                (List::Dispatches, whole.dispatches.len() + position)
            } else if position < dispatches + rejects {
                (List::Rejects, whole.rejects.len() + position - dispatches)
            } else {
                let index = position - dispatches - rejects;
                (List::Answers, whole.answers.len() + index)
            };
            self.reasons.push((list, index, reason));
        }
        whole.dispatches.append(&mut part.dispatches);
        whole.members.append(&mut part.members);
        whole.revokes.append(&mut part.revokes);
        whole.rejects.append(&mut part.rejects);
        whole.answers.append(&mut part.answers);
    }

    /// Numbers the reasons.
    pub(super) fn finish(&mut self, whole: &mut Plan) {
        let (dispatches, rejects) = (whole.dispatches.len(), whole.rejects.len());
        let numbered = self.reasons.drain(..).map(|(list, index, reason)| {
            let before = match list {
                List::Dispatches => 0,
                List::Rejects => dispatches,
                List::Answers => dispatches + rejects,
            };
            ((before + index) as u32, reason)
        });
        whole.reasons.extend(numbered);
    }
}

/// Notes the batches of a checked plan in the columns of the workers, so that the next member sees them.
pub(super) fn occupy(workers: &mut Workers, now: Time, plan: &Plan, catalog: &Catalog) {
    for dispatch in &plan.dispatches {
        let at = dispatch.worker.index();
        let expected = dispatch.profiled(catalog).unwrap_or_default();
        let is_idle = workers.running_variant[at] == IDLE && workers.queued[at] == 0;
        if is_idle {
            workers.running_variant[at] = dispatch.variant.0;
            workers.running_since[at] = now.0;
            workers.busy_until[at] = workers.busy_until[at].max(now.0) + expected.0;
        } else {
            workers.queued[at] += 1;
        }
        workers.free_at[at] = workers.free_at[at].max(now.0) + expected.0;
        if dispatch.exit.is_none() && dispatch.from_stage == 0 {
            workers.parked[at] += dispatch.size;
        }
    }
}

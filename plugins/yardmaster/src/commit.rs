//! From a schedule to a plan: batches, answers from evidence, and requests that can earn nothing.

use switchyard_sdk::PlanBuilder;

use crate::slot::Slot;
use crate::yard::Yard;

/// An answer from evidence is given this long before the deadline.
const ANSWER_LEAD_US: f64 = 200.0;

/// Answers from evidence: requests that are due, and those that no batch gains anything for.
pub(crate) fn answer(yard: &mut Yard<'_>, plan: &mut PlanBuilder, now_us: u64) {
    let all: Vec<usize> = (0..yard.slots.len()).collect();
    let samples = yard.unlike(&all);
    for (at, job) in yard.jobs.list.iter().enumerate() {
        if job.floor.is_none() {
            continue;
        }
        let menu = &yard.menus[job.app];
        let waiting = yard.jobs.queues[job.app].len();
        let pays = |slot: &Slot, choice: usize| {
            let cost = &menu.choices[choice].costs[slot.class];
            let time_us = slot.time_us(&menu.choices[choice], 1);
            let gain = yard.jobs.gain(at, menu, choice, slot.free_us + time_us);
            gain > slot.price * cost.per_request_us(waiting, menu.slo_us) * slot.factor
        };
        let is_due = job.left_us <= ANSWER_LEAD_US;
        let is_better = || {
            let mut slots = samples.iter().map(|&slot| &yard.slots[slot]);
            slots.any(|slot| (0..menu.choices.len()).any(|choice| pays(slot, choice)))
        };
        if is_due || !is_better() {
            let why = if is_due { "due" } else { "evidence-is-enough" };
            plan.answer_because(job.id, why);
            yard.taken[at] = true;
        } else {
            plan.wake_at(now_us + (job.left_us - ANSWER_LEAD_US) as u64);
        }
    }
}

/// Serves the app with the oldest request that no batch gains anything for, on the first of these slots
/// that can. The batch takes at most a quarter of the time that arrivals have, so that it makes none of
/// them late.
pub(crate) fn lost(yard: &Yard<'_>, slots: &[usize], plan: &mut PlanBuilder) {
    let mut ways = slots.iter().map(|&slot| &yard.slots[slot]);
    let Some((state, app, choice)) = ways.find_map(|slot| {
        let (app, choice) = oldest_lost(yard, slot)?;
        Some((slot, app, choice))
    }) else {
        return;
    };
    let arriving = yard
        .arrivals
        .iter()
        .filter(|arrivals| arrivals.per_us > 0.0);
    let allowed_us = arriving.map(|arrivals| arrivals.allowed_us);
    let within_us = allowed_us.fold(f64::INFINITY, f64::min) / 4.0;
    let (queue, choice) = (&yard.jobs.lost[app], &yard.menus[app].choices[choice]);
    let sizes = 1..=queue.len().min(state.batch_max(choice));
    let size = sizes.take_while(|&size| size == 1 || state.time_us(choice, size) <= within_us);
    let batch = queue.iter().take(size.last().unwrap_or(1));
    plan.run(state.worker, choice.variant)
        .exit(choice.exit)
        .because("lost")
        .requests(batch.map(|&(_, id)| id));
}

/// The app with the oldest lost request that a slot can serve, and its fastest choice there.
fn oldest_lost(yard: &Yard<'_>, slot: &Slot) -> Option<(usize, usize)> {
    let queues = yard.jobs.lost.iter().enumerate();
    let oldest = queues.filter_map(|(app, queue)| {
        let fastest = slot.fastest(&yard.menus[app], 1, u64::MAX);
        Some((queue.first()?.0, app, fastest?.0))
    });
    oldest.min().map(|(_, app, choice)| (app, choice))
}

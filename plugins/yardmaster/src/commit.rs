//! From a schedule to a plan: batches, answers from evidence, and requests that can earn nothing.

use switchyard_sdk::PlanBuilder;
use switchyard_sdk::sort::sort_distinct;

use crate::job::{LOST_MAX, LostJob};
use crate::menu::Menu;
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
        let menu = &yard.menus[job.lane];
        let waiting = yard.jobs.queues[job.lane].len();
        let pays = |slot: &Slot, choice: usize| {
            let cost = &menu.choices[choice].costs[slot.class];
            let time_us = slot.time_of_us(&menu.choices[choice], 1, job.rows);
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

/// The requests that no batch gains anything for: by lane, earliest deadline first.
#[derive(Debug)]
pub(crate) struct Lost(Vec<Vec<LostJob>>);

impl Lost {
    /// Those that are lost on every worker, and those that no worker, as it stands now, serves to any gain: a
    /// slowdown, a load or a least quality leaves them too little time.
    pub(crate) fn of(yard: &Yard<'_>, now_us: u64) -> Self {
        let mut lost = yard.jobs.lost.clone();
        for (lane, lost) in lost.iter_mut().enumerate() {
            let waiting = yard.queue(lane).iter().filter(|&&at| !yard.taken[at]);
            for job in waiting.filter(|&&at| !gains(yard, at)).take(LOST_MAX) {
                let job = &yard.jobs.list[*job];
                lost.push(LostJob {
                    deadline_us: (now_us as f64 + job.left_us) as u64,
                    id: job.id,
                    allows: job.allows,
                });
            }
            sort_distinct(lost, |a, b| a < b);
        }
        Self(lost)
    }

    /// Until when they wait for a worker that has nothing better to wait for; none: none is lost.
    pub(crate) fn until_us(&self, menus: &[Menu]) -> Option<u64> {
        let queues = self.0.iter().zip(menus);
        let until_us = queues.filter_map(|(queue, menu)| {
            let deadline_us = queue.first()?.deadline_us;
            Some(deadline_us + (menu.slo_us / 2.0) as u64)
        });
        until_us.min()
    }

    /// Serves the lane with the oldest one on the first of these slots that can. The batch takes at most a
    /// quarter of the time that arrivals have, so that it makes none of them late.
    pub(crate) fn serve(&self, yard: &Yard<'_>, slots: &[usize], plan: &mut PlanBuilder) {
        let mut ways = slots.iter().map(|&slot| &yard.slots[slot]);
        let Some((state, lane, choice)) = ways.find_map(|slot| {
            let (lane, choice) = self.oldest(yard, slot)?;
            Some((slot, lane, choice))
        }) else {
            return;
        };
        let arriving = yard
            .arrivals
            .iter()
            .filter(|arrivals| arrivals.per_us > 0.0);
        let allowed_us = arriving.map(|arrivals| arrivals.allowed_us);
        let within_us = allowed_us.fold(f64::INFINITY, f64::min) / 4.0;
        let accept = |job: &&LostJob| job.allows & (1 << choice) != 0;
        let queue = self.0[lane].iter().filter(accept);
        let choice = &yard.menus[lane].choices[choice];
        let sizes = 1..=queue.clone().count().min(state.batch_max(choice));
        let size = sizes.take_while(|&size| size == 1 || state.time_us(choice, size) <= within_us);
        let batch = queue.take(size.last().unwrap_or(1));
        plan.run(state.worker, choice.variant)
            .exit(choice.exit)
            .because("lost")
            .requests(batch.map(|job| job.id));
    }

    /// The lane with the oldest one that a slot can serve, and its fastest choice there.
    fn oldest(&self, yard: &Yard<'_>, slot: &Slot) -> Option<(usize, usize)> {
        let queues = self.0.iter().enumerate();
        let oldest = queues.filter_map(|(lane, queue)| {
            let first = queue.first()?;
            let fastest = slot.fastest(&yard.menus[lane], 1, first.allows);
            Some((first.deadline_us, lane, fastest?.0))
        });
        oldest.min().map(|(_, lane, choice)| (lane, choice))
    }
}

/// Whether a worker, once it is free, serves a job to any gain.
fn gains(yard: &Yard<'_>, at: usize) -> bool {
    let job = &yard.jobs.list[at];
    let menu = &yard.menus[job.lane];
    let mut slots = yard.slots.iter();
    slots.any(|slot| {
        let mut choices = menu.choices.iter().enumerate();
        choices.any(|(choice, of)| {
            let end_us = slot.free_us + slot.time_of_us(of, 1, job.rows);
            yard.jobs.gain(at, menu, choice, end_us) > 0.0
        })
    })
}

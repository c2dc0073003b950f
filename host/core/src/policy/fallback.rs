//! The native policy of last resort: earliest deadline first, with the most accurate
//! variant that still meets the deadline. Needs no wasm and cannot fault.

use super::{Description, Policy, PolicyFault, Triggers};
use crate::catalog::Catalog;
use crate::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use crate::plan::{Dispatch, Plan};
use crate::time::{Micros, Time};
use crate::window::{RequestProgress, Window};

/// Batches that the fallback lets wait behind a running one: enough to keep a worker busy,
/// few enough that a policy that comes back finds most decisions still open.
const QUEUE_DEPTH: u32 = 1;

/// Earliest deadline first, most accurate variant in time, batches as far as every deadline
/// in them allows.
#[derive(Debug)]
pub struct EarliestDeadlineFirst {
    description: Description,
    catalog: Catalog,
    /// Positions in the window, earliest deadline first; requests taken are dropped.
    order: Vec<usize>,
    taken: Vec<bool>,
    /// Per worker: when it is free and how many batches wait, the plan so far included.
    free_at: Vec<Time>,
    queued: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Choice {
    worker: WorkerId,
    variant: VariantId,
    exit: ExitId,
    from_stage: u32,
    to_stage: u32,
}

// === impl EarliestDeadlineFirst ===

impl Default for EarliestDeadlineFirst {
    fn default() -> Self {
        Self {
            description: Description {
                name: "edf-fallback".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                summary: "native earliest deadline first, most accurate variant in time".to_owned(),
                on: Triggers {
                    arrival: true,
                    worker_idle: true,
                    completion: true,
                    ..Triggers::default()
                },
                ..Description::default()
            },
            catalog: Catalog::default(),
            order: Vec::new(),
            taken: Vec::new(),
            free_at: Vec::new(),
            queued: Vec::new(),
        }
    }
}

impl Policy for EarliestDeadlineFirst {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.catalog.clone_from(catalog);
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.reset(window);
        for at in 0..self.order.len() {
            let first = self.order[at];
            if self.taken[first] {
                continue;
            }
            let Some(choice) = self.choose(window, first) else {
                continue;
            };
            let (members, latency) = self.fill(window, at, choice);
            let worker = choice.worker.index();
            self.free_at[worker] += latency;
            self.queued[worker] += 1;
            plan.dispatch(
                Dispatch {
                    worker: choice.worker,
                    variant: choice.variant,
                    from_stage: choice.from_stage,
                    to_stage: choice.to_stage,
                    exit: Some(choice.exit),
                    place: u32::MAX,
                    size: 0,
                },
                members,
            );
        }
        Ok(())
    }
}

impl EarliestDeadlineFirst {
    fn reset(&mut self, window: &Window) {
        let deadlines = &window.requests.deadline;
        self.order.clear();
        self.order.extend(0..deadlines.len());
        self.order.sort_by_key(|&i| (deadlines[i], i));
        self.taken.clear();
        self.taken.resize(deadlines.len(), false);
        self.free_at.clear();
        self.queued.clear();
        let workers = &window.workers;
        for w in 0..workers.up.len() {
            let running = u32::from(workers.running_variant[w] != crate::window::IDLE);
            self.free_at.push(Time(workers.free_at[w]).max(window.now));
            self.queued.push(workers.queued[w] + running);
        }
    }

    /// Room for one more batch on this worker.
    fn has_room(&self, window: &Window, worker: usize) -> bool {
        window.workers.up[worker] != 0
            && self.queued[worker] <= QUEUE_DEPTH.min(self.catalog.workers[worker].queue_max)
    }

    fn choose(&self, window: &Window, i: usize) -> Option<Choice> {
        if let Some(progress) = progress_of(window, i) {
            return self.go_on(window, progress);
        }
        let deadline = Time(window.requests.deadline[i]);
        let app = AppId(window.requests.app[i]);
        let mut in_time: Option<(f64, Time, Choice)> = None;
        let mut soonest: Option<(Time, Choice)> = None;
        for w in (0..self.free_at.len()).filter(|&w| self.has_room(window, w)) {
            for (choice, accuracy, latency) in self.choices(app, w) {
                let end = self.free_at[w] + latency;
                if soonest.is_none_or(|(best, _)| end < best) {
                    soonest = Some((end, choice));
                }
                let better = in_time
                    .is_none_or(|(best, at, _)| accuracy > best || accuracy == best && end < at);
                if end <= deadline && better {
                    in_time = Some((accuracy, end, choice));
                }
            }
        }
        in_time
            .map(|(_, _, choice)| choice)
            .or(soonest.map(|(_, choice)| choice))
    }

    /// Every whole run of the app on a worker, with its accuracy and its latency alone.
    fn choices(&self, app: AppId, w: usize) -> impl Iterator<Item = (Choice, f64, Micros)> + '_ {
        let worker = WorkerId(w as u32);
        let memory = self.catalog.workers[w].memory_bytes;
        self.catalog
            .variants_of(app)
            .filter(move |(_, variant)| variant.memory_bytes <= memory)
            .flat_map(move |(id, variant)| {
                (0u32..).zip(&variant.exits).filter_map(move |(e, exit)| {
                    let choice = Choice {
                        worker,
                        variant: id,
                        exit: ExitId(e),
                        from_stage: 0,
                        to_stage: exit.after_stage,
                    };
                    let latency = self.catalog.latency(worker, id, ExitId(e), 1)?;
                    Some((choice, exit.accuracy, latency))
                })
            })
    }

    /// A parked request can only go on where it is; it runs to the end.
    fn go_on(&self, window: &Window, progress: RequestProgress) -> Option<Choice> {
        if !self.has_room(window, progress.worker.index()) {
            return None;
        }
        let variant = self.catalog.variant(progress.variant)?;
        Some(Choice {
            worker: progress.worker,
            variant: progress.variant,
            exit: variant.last_exit(),
            from_stage: progress.stages_run,
            to_stage: variant.stages,
        })
    }

    /// Takes requests of the same app along, in deadline order, for as long as the batch
    /// stays in time for the first of them (or is late anyway).
    fn fill(&mut self, window: &Window, at: usize, choice: Choice) -> (Vec<RequestId>, Micros) {
        let first = self.order[at];
        let app = window.requests.app[first];
        let max_batch = self.catalog.variants[choice.variant.index()].max_batch;
        let deadline = Time(window.requests.deadline[first]);
        let free_at = self.free_at[choice.worker.index()];
        let mut latency = self.latency(choice, 1);
        let late = free_at + latency > deadline;
        let mut members = vec![RequestId(window.requests.id[first])];
        self.taken[first] = true;
        for &i in &self.order[at + 1..] {
            if members.len() as u32 >= max_batch {
                break;
            }
            if self.taken[i]
                || window.requests.app[i] != app
                || stages_run(window, i, choice) != Some(choice.from_stage)
            {
                continue;
            }
            let larger = self.latency(choice, members.len() as u32 + 1);
            if !late && free_at + larger > deadline {
                break;
            }
            latency = larger;
            self.taken[i] = true;
            members.push(RequestId(window.requests.id[i]));
        }
        (members, latency)
    }

    fn latency(&self, choice: Choice, batch: u32) -> Micros {
        let kind = self.catalog.workers[choice.worker.index()].kind;
        self.catalog
            .profile
            .latency(
                kind,
                choice.variant,
                choice.from_stage,
                choice.to_stage,
                Some(choice.exit),
                batch,
            )
            .unwrap_or_default()
    }
}

fn progress_of(window: &Window, i: usize) -> Option<RequestProgress> {
    let parked = &window.requests.progress;
    parked.iter().find(|p| p.index as usize == i).copied()
}

/// Stages that request `i` has run towards `choice`; none when it is parked elsewhere.
fn stages_run(window: &Window, i: usize, choice: Choice) -> Option<u32> {
    match progress_of(window, i) {
        None => Some(0),
        Some(p) if p.worker == choice.worker && p.variant == choice.variant => Some(p.stages_run),
        Some(_) => None,
    }
}

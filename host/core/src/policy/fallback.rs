//! The native policy of last resort: earliest deadline first, with the most accurate
//! variant that still meets the deadline and keeps up with the queue. Requests that will be late
//! come after all others; long ones run alone. Needs no wasm and cannot fault.

mod foreign;
mod leaving;
mod long;
mod menu;
mod merit;
mod queue;

use foreign::ForeignBatches;
use menu::{Menu, MenuItem};
use merit::{Merit, Standing};
use queue::{AppQueue, progress_of};

use super::{Description, Policy, PolicyFault, Triggers};
use crate::catalog::Catalog;
use crate::cost::Cost;
use crate::estimate::Slowdown;
use crate::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use crate::plan::{Dispatch, Plan};
use crate::time::{Micros, Time};
use crate::window::{IDLE, RequestProgress, Window};

/// Its name, also where a configuration names a policy.
pub const FALLBACK_NAME: &str = "edf-fallback";

/// Batches that one plan leaves to busy workers at most: it bounds the time of a window.
const LEFT_MAX: u32 = 16;

/// Earliest deadline first, most accurate variant in time, batches as far as every deadline
/// in them allows.
#[derive(Debug)]
pub struct EarliestDeadlineFirst {
    description: Description,
    catalog: Catalog,
    menu: Menu,
    /// By kind of workers: observed over profiled latency.
    slowdowns: Vec<Slowdown>,
    /// By app.
    queues: Vec<AppQueue>,
    /// Pending requests of all apps.
    waiting: usize,
    /// By position in the window; empty while all cost 1.
    costs: Vec<Cost>,
    /// Positions of the requests that are long.
    long: Vec<u32>,
    /// By position in the window: in a batch of the plan.
    taken: Vec<bool>,
    /// By worker: when it is free, the plan so far included.
    free_at: Vec<Time>,
    /// By worker: batches that it still has room for.
    room: Vec<u32>,
    /// By class of workers: the worker with room that is free first.
    first_free: Vec<Option<WorkerId>>,
    /// By class of workers: the worker without room that is free first. Empty with one class.
    first_busy: Vec<Option<WorkerId>>,
    /// By worker without room: until when its batches may run as predicted. Empty with one class.
    trusted_until: Vec<Time>,
    /// Batches that the plan leaves to busy workers.
    left: u32,
    /// Kept only if a variant has stages to park after.
    foreign: ForeignBatches,
}

/// A worker, variant and stages for one batch.
#[derive(Clone, Copy, Debug)]
struct FallbackChoice {
    worker: WorkerId,
    variant: VariantId,
    /// None: the request is parked after `to_stage`.
    exit: Option<ExitId>,
    from_stage: u32,
    to_stage: u32,
}

// === impl EarliestDeadlineFirst ===

impl Default for EarliestDeadlineFirst {
    fn default() -> Self {
        Self {
            description: Description {
                name: FALLBACK_NAME.to_owned(),
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
            menu: Menu::default(),
            slowdowns: Vec::new(),
            queues: Vec::new(),
            waiting: 0,
            costs: Vec::new(),
            long: Vec::new(),
            taken: Vec::new(),
            free_at: Vec::new(),
            room: Vec::new(),
            first_free: Vec::new(),
            first_busy: Vec::new(),
            trusted_until: Vec::new(),
            left: 0,
            foreign: ForeignBatches::default(),
        }
    }
}

impl Policy for EarliestDeadlineFirst {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.menu = Menu::of(catalog);
        self.catalog.clone_from(catalog);
        self.foreign = ForeignBatches::default();
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if self.menu.largest_parking() > 0 {
            self.foreign.look(window, &self.catalog);
        }
        // Under load most windows find no room: then the requests are not looked at.
        if self.look_at_workers(window) == 0 {
            return Ok(());
        }
        self.slowdowns.clone_from(&window.slowdown);
        self.look_at_busy(window);
        self.look_at_requests(window);
        self.start_long(window, plan);
        while let Some(app) = self.most_urgent(window) {
            let queue = &self.queues[app.index()];
            let first = queue.order[queue.next] as usize;
            let progress = progress_of(window, first);
            let choice = match progress {
                Some(progress) => self.go_on(progress),
                None => match self.best_of(window, first, &self.first_free) {
                    Some((merit, choice)) => match self.leave(window, first, merit) {
                        Some(busy) => {
                            self.leave_to(window, app, busy, plan);
                            continue;
                        }
                        None => Some(choice),
                    },
                    None => None,
                },
            };
            match choice {
                Some(choice) => self.dispatch(window, app, choice, plan),
                // Only the worker that holds its activations could go on with it.
                None if progress.is_some() => self.queues[app.index()].next += 1,
                // Room only shrinks: of this app only requests parked on a worker with room can
                // still be placed.
                None => self.queues[app.index()].skip_fresh(window),
            }
        }
        self.fill_idle(window, plan);
        Ok(())
    }
}

impl EarliestDeadlineFirst {
    /// Another policy may have placed batches since the last window.
    pub(crate) fn forget_batches(&mut self) {
        self.foreign = ForeignBatches::default();
    }

    /// Reads the state of the workers. Returns the room for batches, all workers together.
    fn look_at_workers(&mut self, window: &Window) -> u32 {
        self.free_at.clear();
        self.room.clear();
        let workers = &window.workers;
        let free_at = workers.free_at.iter();
        self.free_at
            .extend(free_at.map(|&at| Time(at).max(window.now)));
        let taken = workers.queued.iter().zip(&workers.running_variant);
        let taken = taken.map(|(queued, &variant)| queued + u32::from(variant != IDLE));
        let most = self.menu.room().iter().zip(&workers.up);
        let most = most.map(|(&most, &up)| if up == 0 { 0 } else { most });
        self.room.extend(
            most.zip(taken)
                .map(|(most, taken)| most.saturating_sub(taken)),
        );
        let room = self.room.iter().sum();
        self.first_free.clear();
        for class in 0..self.menu.classes() {
            let first = self.free_first(class, window.now);
            self.first_free.push(first);
        }
        room
    }

    /// The worker of a class that is free first, the first of equals.
    fn free_first(&self, class: usize, now: Time) -> Option<WorkerId> {
        let mut first: Option<(Time, WorkerId)> = None;
        for &worker in self.menu.workers(class) {
            let has_room = self.room.get(worker.index()).is_some_and(|&room| room > 0);
            if !has_room {
                continue;
            }
            let free_at = self.free_at[worker.index()];
            if first.is_none_or(|(earliest, _)| free_at < earliest) {
                first = Some((free_at, worker));
                // No worker is free earlier.
                if free_at == now {
                    break;
                }
            }
        }
        first.map(|(_, worker)| worker)
    }

    fn look_at_requests(&mut self, window: &Window) {
        let requests = &window.requests;
        self.waiting = requests.id.len();
        self.taken.clear();
        self.taken.resize(requests.id.len(), false);
        self.queues
            .resize_with(self.catalog.apps.len(), AppQueue::default);
        for queue in &mut self.queues {
            queue.order.clear();
            queue.next = 0;
        }
        self.look_at_costs(window);
        for (i, &app) in (0u32..).zip(&requests.app) {
            if self.is_long(i) {
                self.long.push(i);
            } else if let Some(queue) = self.queues.get_mut(app as usize) {
                queue.order.push(i);
            }
        }
        // If nothing is parked, requests are taken from the front only.
        let room: u32 = self.room.iter().sum();
        let leaves = self.first_busy.iter().any(Option::is_some);
        let batches = room.saturating_add(if leaves { LEFT_MAX } else { 0 });
        for app in self.catalog.app_ids() {
            let hopeless_before = self.first_end(app);
            let queue = &mut self.queues[app.index()];
            queue.hopeless_before = hopeless_before;
            let newest = queue.order.last().map(|&i| requests.deadline[i as usize]);
            queue.newest = Time(newest.unwrap_or_default());
            let needed = match requests.progress.is_empty() {
                true => batches.saturating_mul(self.menu.largest_batch(app)) as usize,
                false => usize::MAX,
            };
            queue.sort(&requests.deadline, needed);
        }
    }

    /// When a request of an app that is dispatched now can be answered first.
    fn first_end(&self, app: AppId) -> Time {
        let firsts = self.first_free.iter().enumerate();
        let firsts = firsts.chain(self.first_busy.iter().enumerate());
        let ends = firsts.filter_map(|(class, &worker)| {
            let slowdown = self.slowdown(class);
            let items = self.menu.items(class, app).iter();
            let fastest = items.map(|item| slowdown.of(item.latency)).min()?;
            Some(self.free_at[worker?.index()] + fastest)
        });
        ends.min().unwrap_or_default()
    }

    fn slowdown(&self, class: usize) -> Slowdown {
        let kind = self.menu.kind(class).index();
        self.slowdowns.get(kind).copied().unwrap_or(Slowdown::NONE)
    }

    /// The app whose first request left comes first, the oldest of equals.
    fn most_urgent(&mut self, window: &Window) -> Option<AppId> {
        if self.first_free.iter().all(Option::is_none) {
            return None;
        }
        let deadlines = &window.requests.deadline;
        let taken = &self.taken;
        let firsts = (0..).map(AppId).zip(&mut self.queues);
        let firsts = firsts.filter_map(|(app, queue)| {
            let first = queue.first(taken)?;
            let deadline = deadlines[first];
            Some(((queue.is_hopeless(deadline), deadline, first), app))
        });
        firsts.min().map(|(_, app)| app)
    }

    /// The most accurate exit that is in time and keeps up with the queue; if none does, of those
    /// in time the one with the largest rate; if none is in time, the one that answers first.
    /// Workers of a class differ only in when they are free, so only the first free one of each is
    /// tried.
    fn choose(&self, window: &Window, i: usize) -> Option<FallbackChoice> {
        let best = self.best_of(window, i, &self.first_free)?;
        Some(best.1)
    }

    /// The best choice among one worker of each class.
    fn best_of(
        &self,
        window: &Window,
        i: usize,
        firsts: &[Option<WorkerId>],
    ) -> Option<(Merit, FallbackChoice)> {
        let deadline = Time(window.requests.deadline[i]);
        let app = AppId(window.requests.app[i]);
        let cost = self.cost(i);
        let mut best: Option<(Merit, FallbackChoice)> = None;
        for (class, &worker) in firsts.iter().enumerate() {
            let Some(worker) = worker else { continue };
            let slowdown = self.slowdown(class);
            let start = self.free_at[worker.index()];
            for item in self.menu.items(class, app) {
                let choice = FallbackChoice {
                    worker,
                    variant: item.variant,
                    exit: Some(item.exit),
                    from_stage: 0,
                    to_stage: item.to_stage,
                };
                let end = start
                    + match cost {
                        Cost::ONE => slowdown.of(item.latency),
                        _ => self.latency(choice, cost),
                    };
                let merit = Merit {
                    standing: match () {
                        () if end > deadline => Standing::Late,
                        () if self.keeps_up(app, start, item, slowdown) => {
                            Standing::KeepsUp(item.accuracy)
                        }
                        () => Standing::InTime(item.rate()),
                    },
                    end,
                    worker,
                };
                if best.is_none_or(|(other, _)| merit.is_better_than(other)) {
                    best = Some((merit, choice));
                }
            }
        }
        best
    }

    /// Whether an exit is fast enough to serve as many requests as all apps have waiting before the
    /// deadline of its app's youngest request, on all workers of its class.
    fn keeps_up(&self, app: AppId, start: Time, item: &MenuItem, slowdown: Slowdown) -> bool {
        let queue = &self.queues[app.index()];
        let batch = item.efficient;
        if self.waiting <= batch.size as usize {
            return true;
        }
        let (workers, size) = (item.workers.max(1), batch.size.max(1));
        let latency = slowdown.of(batch.latency);
        let rounds = self.waiting as u64 * latency.0 / (u64::from(size) * workers as u64);
        start + Micros(rounds) + latency <= queue.newest
    }

    /// A parked request can only go on where it is; it runs to the end.
    fn go_on(&self, progress: RequestProgress) -> Option<FallbackChoice> {
        if self
            .room
            .get(progress.worker.index())
            .is_none_or(|&room| room == 0)
        {
            return None;
        }
        let variant = self.catalog.variant(progress.variant)?;
        Some(FallbackChoice {
            worker: progress.worker,
            variant: progress.variant,
            exit: Some(variant.last_exit()),
            from_stage: progress.stages_run,
            to_stage: variant.stages,
        })
    }

    fn dispatch(&mut self, window: &Window, app: AppId, choice: FallbackChoice, plan: &mut Plan) {
        let before = plan.members.len();
        let latency = self.fill(window, app, choice, &mut plan.members);
        let size = (plan.members.len() - before) as u32;
        self.place(window.now, choice, latency, size, plan);
    }

    /// Adds a batch to the plan; its requests are the last `size` members.
    fn place(
        &mut self,
        now: Time,
        choice: FallbackChoice,
        latency: Micros,
        size: u32,
        plan: &mut Plan,
    ) {
        self.free_at[choice.worker.index()] += latency;
        self.room[choice.worker.index()] -= 1;
        let class = self.menu.class_of(choice.worker);
        self.first_free[class] = self.free_first(class, now);
        plan.dispatches.push(Dispatch {
            worker: choice.worker,
            variant: choice.variant,
            from_stage: choice.from_stage,
            to_stage: choice.to_stage,
            exit: choice.exit,
            place: u32::MAX,
            size,
        });
    }

    /// Adds requests of the same app in deadline order while the batch stays in time for the
    /// first of them, or if that one is late anyway. A batch in time takes no hopeless request. Returns the latency of the batch.
    fn fill(
        &mut self,
        window: &Window,
        app: AppId,
        choice: FallbackChoice,
        members: &mut Vec<RequestId>,
    ) -> Micros {
        let max_batch = self.catalog.variants[choice.variant.index()].max_batch;
        let free_at = self.free_at[choice.worker.index()];
        let queue = &self.queues[app.index()];
        let first = queue.order[queue.next] as usize;
        let deadline = Time(window.requests.deadline[first]);
        let mut cost = self.cost(first);
        let mut latency = self.latency(choice, cost);
        let late = free_at + latency > deadline;
        let mut size = 1;
        members.push(RequestId(window.requests.id[first]));
        self.taken[first] = true;
        for &i in &queue.order[queue.next + 1..] {
            if size >= max_batch {
                break;
            }
            let i = i as usize;
            if self.taken[i] || stages_run(window, i, choice) != Some(choice.from_stage) {
                continue;
            }
            let together = cost + self.cost(i);
            let larger = self.latency(choice, together);
            let is_hopeless = queue.is_hopeless(window.requests.deadline[i]);
            if !late && (is_hopeless || free_at + larger > deadline) {
                break;
            }
            (cost, latency) = (together, larger);
            size += 1;
            members.push(RequestId(window.requests.id[i]));
            self.taken[i] = true;
        }
        latency
    }

    fn latency(&self, choice: FallbackChoice, cost: Cost) -> Micros {
        let kind = self.catalog.workers[choice.worker.index()].kind;
        let known = match (choice.from_stage, choice.exit, cost.as_whole()) {
            (0, Some(exit), Some(rows)) => self.menu.latency(kind, choice.variant, exit, rows),
            _ => None,
        };
        let profiled = known.or_else(|| {
            self.catalog.profile.latency_of(
                kind,
                choice.variant,
                choice.from_stage,
                choice.to_stage,
                choice.exit,
                cost,
            )
        });
        let class = self.menu.class_of(choice.worker);
        self.slowdown(class).of(profiled.unwrap_or_default())
    }
}

/// Stages that request `i` has run towards `choice`; none when it is parked elsewhere.
fn stages_run(window: &Window, i: usize, choice: FallbackChoice) -> Option<u32> {
    match progress_of(window, i) {
        None => Some(0),
        Some(p) if p.worker == choice.worker && p.variant == choice.variant => Some(p.stages_run),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;

//! A live core with a policy that is sent only the workers that changed, in step with one whose twin
//! sees all of them: both give the same commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet::{FAILS, TRAPS};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::decision::Decision;
use switchyard_core::event::{BatchEnd, Command, Event};
use switchyard_core::guard::FaultLimit;
use switchyard_core::ids::{AppId, BatchId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault};
use switchyard_core::request::Request;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;
use switchyard_core::{Scheduler, SchedulerConfig};
use switchyard_sim::{Contender, Observer, Outage, Scenario, run_observed};

use crate::support::ask;
use crate::workers::{component, many, twin};

const WORKERS: usize = 20;

/// One in this many windows of the policy fails.
const FAILING: u32 = 11;

/// A policy that fails windows after it has seen them.
struct Failing {
    inner: Box<dyn Policy>,
    /// Of the request that makes it fail.
    priority: u32,
    asked: u32,
}

impl Policy for Failing {
    fn description(&self) -> &Description {
        self.inner.description()
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.inner.configure(catalog)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.asked += 1;
        if !self.asked.is_multiple_of(FAILING) || window.is_empty() {
            return self.inner.schedule(window, plan);
        }
        let mut window = window.clone();
        window.requests.priority[0] = self.priority;
        self.inner.schedule(&window, plan)
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        self.inner.save()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        self.inner.restore(state)
    }
}

/// The component, every other time with a trap instead of an error.
fn failing_component(catalog: &Catalog, traps: bool) -> Box<dyn Policy> {
    Box::new(Failing {
        inner: component(catalog, &[]),
        priority: if traps { TRAPS } else { FAILS },
        asked: 0,
    })
}

fn failing_twin(catalog: &Catalog) -> Box<dyn Policy> {
    Box::new(Failing {
        inner: Box::new(twin(catalog)),
        priority: FAILS,
        asked: 0,
    })
}

/// Two schedulers that are told the same.
struct Pair {
    cores: [Scheduler; 2],
    now: Time,
    running: BTreeMap<WorkerId, BatchId>,
    replies: BTreeMap<RequestId, u32>,
    /// Windows and catalogs, in order.
    recorded: Vec<Recorded>,
}

enum Recorded {
    Decision(Arc<Decision>),
    Catalog(Catalog),
}

impl Pair {
    fn new(catalog: &Catalog) -> Self {
        let config = SchedulerConfig {
            tells_decisions: true,
            follows_latencies: true,
            fault_limit: FaultLimit {
                faults: 1_000_000,
                windows: 1,
            },
            ..SchedulerConfig::default()
        };
        let core = || Scheduler::try_new(Arc::new(catalog.clone()), config.clone()).unwrap();
        Self {
            cores: [core(), core()],
            now: Time(1_000_000),
            running: BTreeMap::new(),
            replies: BTreeMap::new(),
            recorded: Vec::new(),
        }
    }

    fn tell(&mut self, event: impl Fn() -> Event) {
        for core in &mut self.cores {
            core.handle(self.now, event());
        }
    }

    fn swap(&mut self, catalog: &Catalog, traps: bool) {
        let [component, twin] = &mut self.cores;
        let event = Event::PolicyChanged(failing_component(catalog, traps));
        component.handle(self.now, event);
        twin.handle(self.now, Event::PolicyChanged(failing_twin(catalog)));
    }

    /// Polls both; their commands must be equal but for the reasons of faults.
    fn poll(&mut self) {
        let now = self.now;
        let [one, other] = self.cores.each_mut().map(|core| {
            let commands = std::iter::from_fn(|| core.poll(now));
            let commands = commands.filter(|command| !matches!(command, Command::Notice(_)));
            commands.collect::<Vec<_>>()
        });
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        for command in one {
            match command {
                Command::Launch(launch) => {
                    self.running.insert(launch.worker, launch.batch);
                }
                Command::Reply(reply) => *self.replies.entry(reply.request).or_default() += 1,
                Command::Decided(decision) => self.recorded.push(Recorded::Decision(decision)),
                _ => {}
            }
        }
    }

    fn finish(&mut self, worker: WorkerId) {
        if let Some(batch) = self.running.remove(&worker) {
            self.tell(|| Event::Finished {
                worker,
                batch,
                end: BatchEnd::Done,
            });
        }
    }
}

fn request(id: u64, now: Time) -> Request {
    Request {
        id: RequestId(id),
        app: AppId(0),
        arrival: now,
        deadline: now + Micros(40_000 + id % 7 * 10_000),
        priority: 0,
        min_accuracy: 0.0,
        pinned: None,
        cost: Cost::ONE,
    }
}

#[test]
fn both_decide_alike_through_swaps_faults_lost_workers_and_new_catalogs() {
    let mut random = Pcg64::seed_from_u64(11);
    let mut catalog = many(WORKERS);
    let mut pair = Pair::new(&catalog);
    pair.swap(&catalog, true);
    let mut accepted = 0;
    for step in 0..4_000_u32 {
        pair.now += Micros(random.random_range(0..800));
        for _ in 0..random.random_range(0..4) {
            accepted += 1;
            let arrived = request(accepted, pair.now);
            pair.tell(|| Event::Arrived(arrived.clone()));
        }
        let worker = WorkerId(random.random_range(0..catalog.workers.len() as u32));
        match random.random_range(0..100) {
            0..2 => {
                pair.running.remove(&worker);
                pair.tell(|| Event::WorkerDown {
                    worker,
                    reason: "test".to_owned(),
                });
            }
            2..6 => (0..catalog.workers.len() as u32).for_each(|worker| {
                if !pair.cores[0].is_up(WorkerId(worker)) {
                    pair.tell(|| Event::WorkerUp(WorkerId(worker)));
                }
            }),
            6..10 => {
                let free_bytes = random.random_range(0..1 << 30);
                pair.tell(|| Event::Residency {
                    worker,
                    resident: vec![VariantId(0)],
                    free_bytes,
                });
            }
            _ => {}
        }
        for _ in 0..3 {
            let running = pair.running.len();
            if running > 0 {
                let nth = random.random_range(0..running);
                let worker = *pair.running.keys().nth(nth).unwrap();
                pair.finish(worker);
            }
        }
        if step % 900 == 899 {
            pair.swap(&catalog, step % 1_800 == 899);
        }
        if step % 1_300 == 1_299 {
            catalog = many(catalog.workers.len() + 1);
            catalog.generation += u64::from(step);
            pair.recorded.push(Recorded::Catalog(catalog.clone()));
            pair.tell(|| Event::CatalogChanged(Arc::new(catalog.clone())));
        }
        pair.poll();
    }
    while pair.cores[0].live() > 0 {
        pair.now += Micros(1_000);
        let workers: Vec<_> = pair.running.keys().copied().collect();
        workers.into_iter().for_each(|worker| pair.finish(worker));
        pair.poll();
    }
    assert_eq!(pair.replies.len() as u64, accepted);
    assert!(
        pair.replies.values().all(|&replies| replies == 1),
        "answered once"
    );
    repeats(&pair.recorded);
}

/// Another instance repeats the plans on the recorded windows. Those of the fallback are shown to
/// it as well, as `switchyard replay` does.
fn repeats(recorded: &[Recorded]) {
    let mut policy = component(&many(WORKERS), &[]);
    let label = policy.description().label();
    let (mut own, mut others) = (0, 0);
    for entry in recorded {
        match entry {
            Recorded::Catalog(catalog) => policy.configure(catalog).unwrap(),
            Recorded::Decision(decision) if decision.rescue => others += 1,
            Recorded::Decision(decision) => {
                let plan = ask(policy.as_mut(), &decision.window).unwrap();
                if *decision.by == *label {
                    assert_eq!(plan, decision.plan, "window {}", decision.window.id);
                    own += 1;
                } else {
                    others += 1;
                }
            }
        }
    }
    assert!(
        own > 1_000 && others > 50,
        "{own} own windows, {others} others"
    );
}

/// Every decision of a run.
#[derive(Default)]
struct Decisions(Vec<Arc<Decision>>);

impl Observer for Decisions {
    fn decided(&mut self, decision: &Arc<Decision>) {
        self.0.push(Arc::clone(decision));
    }
}

#[test]
fn a_simulation_decides_alike_with_changed_workers_and_with_all() {
    let catalog = Arc::new(many(WORKERS));
    let workload = "poisson:4000".parse().unwrap();
    let mut scenario = Scenario::new(Arc::clone(&catalog), workload);
    scenario.duration = Micros::from_millis(1_000);
    scenario.failing_batches = 0.01;
    scenario.scheduler.tells_decisions = true;
    scenario.scheduler.fault_limit.faults = 1_000_000;
    let outage = |worker, from: u64, to: u64| Outage {
        worker: WorkerId(worker),
        from: Time(from * 1_000),
        to: Time(to * 1_000),
    };
    scenario.outages = vec![
        outage(3, 100, 300),
        outage(4, 150, 160),
        outage(3, 500, 700),
    ];
    let contender = |make: fn(&Catalog) -> Box<dyn Policy>| Contender {
        name: "fleet".to_owned(),
        make: Arc::new(move |catalog| Ok(make(catalog))),
        foresight: None,
    };
    let made = [
        contender(|catalog| failing_component(catalog, false)),
        contender(failing_twin),
    ];
    let [one, other] = made.each_ref().map(|contender| {
        let mut decisions = Decisions::default();
        let report = run_observed(&scenario, contender, 5, &mut decisions).unwrap();
        (report, decisions.0)
    });
    assert_eq!(one.1.len(), other.1.len());
    assert!(one.1.len() > 1_000, "{} windows", one.1.len());
    assert!(one.1 == other.1, "the same decisions");
    assert_eq!(one.0, other.0);
    // Untold, times that have passed stay in the windows.
    scenario.scheduler.tells_decisions = false;
    for contender in &made {
        let untold = run_observed(&scenario, contender, 5, &mut ()).unwrap();
        assert_eq!(untold, one.0);
    }
}

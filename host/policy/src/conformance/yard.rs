//! A yard that a policy has to run by itself for a few seconds of its own time: the host's
//! scheduler, workers that take as long as the profile says, requests, evidence, and a
//! worker that goes away for a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::{Notice, Run};
use switchyard_core::ids::{AppId, RequestId, VariantId, WorkerId};
use switchyard_core::policy::Policy;
use switchyard_core::request::{Evidence, Request};
use switchyard_core::time::{Micros, Time};
use switchyard_core::{Command, Event, Scheduler, SchedulerConfig};

/// Requests, one every [`GAP`].
const REQUESTS: u64 = 300;
const GAP: Micros = Micros(7_000);

/// How long after its arrival a request's neighbours are counted.
const EVIDENCE_AFTER: Micros = Micros(400);

/// The first worker is away between these times.
const AWAY: (Time, Time) = (Time(700_000), Time(1_400_000));

/// The yard is closed by then; the last request comes after about two seconds.
const CLOSED: Time = Time(30_000_000);

/// Longest step when nothing is due, so that a request left waiting is noticed.
const STEP: Micros = Micros(50_000);

/// Time that a batch takes for which there is no profile.
const UNKNOWN: Micros = Micros(10_000);

struct Yard<'a> {
    catalog: &'a Arc<Catalog>,
    scheduler: Scheduler,
    /// What will happen, in order.
    due: BTreeMap<(Time, u64), Event>,
    events: u64,
    /// Per worker, what it holds.
    residents: Vec<Vec<VariantId>>,
    replies: u64,
}

/// Lets a policy run the yard.
///
/// # Errors
/// Its first fault, or how many requests it left without an end.
pub(super) fn run(policy: Box<dyn Policy>, catalog: &Arc<Catalog>) -> Result<(), String> {
    let config = SchedulerConfig {
        history: 1,
        ..SchedulerConfig::default()
    };
    let scheduler =
        Scheduler::try_new(Arc::clone(catalog), config).map_err(|error| error.to_string())?;
    let mut yard = Yard {
        catalog,
        scheduler,
        due: BTreeMap::new(),
        events: 0,
        residents: vec![Vec::new(); catalog.workers.len()],
        replies: 0,
    };
    yard.plan_events();
    yard.scheduler
        .handle(Time::ZERO, Event::PolicyChanged(policy));
    yard.run()
}

// === impl Yard ===

impl Yard<'_> {
    fn plan_events(&mut self) {
        for n in 0..REQUESTS {
            let arrival = Time(GAP.0 * (n + 1));
            let app = AppId((n % self.catalog.apps.len().max(1) as u64) as u32);
            self.request(RequestId(n + 1), app, arrival);
        }
        let worker = WorkerId(0);
        let reason = "on leave".to_owned();
        self.at(AWAY.0, Event::WorkerDown { worker, reason });
        self.at(AWAY.1, Event::WorkerUp(worker));
    }

    fn request(&mut self, id: RequestId, app: AppId, arrival: Time) {
        let Some(spec) = self.catalog.app(app) else {
            return;
        };
        let (slo, classes) = (spec.slo, spec.classes.len());
        let neighbours = spec.sneakpeek.as_ref().map_or(0, |model| model.neighbours);
        let request = Request {
            id,
            app,
            arrival,
            deadline: arrival + slo,
            priority: 0,
            min_accuracy: 0.0,
            pinned: None,
        };
        self.at(arrival, Event::Arrived(request));
        if neighbours > 0 {
            let mut counts = Evidence::from_elem(0, classes);
            counts[id.0 as usize % classes] = neighbours;
            let request = id;
            self.at(
                arrival + EVIDENCE_AFTER,
                Event::Evidence { request, counts },
            );
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.events += 1;
        self.due.insert((time, self.events), event);
    }

    fn run(&mut self) -> Result<(), String> {
        let mut now = Time::ZERO;
        while now < CLOSED {
            while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
                let event = entry.remove();
                self.scheduler.handle(now, event);
            }
            while let Some(command) = self.scheduler.poll(now) {
                self.carry_out(now, command)?;
            }
            if self.replies == REQUESTS {
                return Ok(());
            }
            now = self.next_time(now);
        }
        let left = REQUESTS - self.replies;
        Err(format!(
            "{left} of {REQUESTS} requests were left without an end"
        ))
    }

    fn next_time(&self, now: Time) -> Time {
        let due = self.due.first_key_value().map(|((time, _), _)| *time);
        let wakeup = self.scheduler.next_wakeup();
        let next = [due, wakeup, Some(now + STEP)].into_iter().flatten().min();
        next.unwrap_or(CLOSED).max(now + Micros(1))
    }

    fn carry_out(&mut self, now: Time, command: Command) -> Result<(), String> {
        match command {
            Command::Run(run) => self.start(now, &run),
            Command::Reply(_) => self.replies += 1,
            Command::Notice(Notice::PolicyFaulted(faulted)) => {
                return Err(faulted.fault.to_string());
            }
            Command::Notice(_)
            | Command::Decided(_)
            | Command::Prepare { .. }
            | Command::Release { .. } => {}
        }
        Ok(())
    }

    fn start(&mut self, now: Time, run: &Run) {
        let kind = self.catalog.workers[run.worker.index()].kind;
        let (profile, batch) = (&self.catalog.profile, run.requests.len() as u32);
        let takes = profile.latency(
            kind,
            run.variant,
            run.from_stage,
            run.to_stage,
            run.exit,
            batch,
        );
        let held = &self.residents[run.worker.index()];
        let loads = if held.contains(&run.variant) {
            Micros::ZERO
        } else {
            profile.load_time(kind, run.variant)
        };
        let end = now + loads + takes.unwrap_or(UNKNOWN);
        self.hold(now, run.worker, run.variant);
        let (worker, batch) = (run.worker, run.batch);
        let result = Ok(());
        self.at(
            end,
            Event::Finished {
                worker,
                batch,
                result,
            },
        );
    }

    /// Makes a variant resident; where memory is short, in the place of all others.
    fn hold(&mut self, now: Time, worker: WorkerId, variant: VariantId) {
        let bytes = |id: &VariantId| self.catalog.variant(*id).map_or(0, |v| v.memory_bytes);
        let budget = self.catalog.workers[worker.index()].memory_bytes;
        let held = &mut self.residents[worker.index()];
        if !held.contains(&variant) {
            if held.iter().map(bytes).sum::<u64>() + bytes(&variant) > budget {
                held.clear();
            }
            held.push(variant);
        }
        let resident = held.clone();
        let free_bytes = budget - resident.iter().map(bytes).sum::<u64>();
        self.at(
            now,
            Event::Residency {
                worker,
                resident,
                free_bytes,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::plan::Plan;
    use switchyard_core::policy::{Description, EarliestDeadlineFirst, PolicyFault};
    use switchyard_core::window::Window;

    use super::super::catalog;
    use super::*;

    /// Looks on.
    struct Idler(Description);

    impl Policy for Idler {
        fn description(&self) -> &Description {
            &self.0
        }

        fn configure(&mut self, _catalog: &Catalog) -> Result<(), PolicyFault> {
            Ok(())
        }

        fn schedule(&mut self, _window: &Window, _plan: &mut Plan) -> Result<(), PolicyFault> {
            Ok(())
        }
    }

    #[test]
    fn the_native_policy_runs_it() {
        let catalog = Arc::new(catalog());
        let mut policy = EarliestDeadlineFirst::default();
        assert_eq!(policy.configure(&catalog), Ok(()));
        assert_eq!(run(Box::new(policy), &catalog), Ok(()));
    }

    #[test]
    fn who_only_looks_on_is_found_out() {
        let idler = Box::new(Idler(Description::default()));
        let error = run(idler, &Arc::new(catalog())).unwrap_err();
        assert!(error.starts_with("starved: "), "{error}");
    }
}

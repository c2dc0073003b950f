//! The steps of a case, one after the other, and its end.

use std::sync::Arc;

use switchyard_core::canary::{Canary, CanaryParts, CanaryRule, Verdict, Why};
use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::event::{BatchEnd, Event};
use switchyard_core::ids::{AppId, RequestId, VariantId, WorkerId};
use switchyard_core::policy::{EarliestDeadlineFirst, Policy, WindowFields};
use switchyard_core::request::Request;
use switchyard_core::time::{Micros, Time};

use super::bench::Bench;
use super::hostile::{Hostile, PolicyKind};
use super::pool::Ending;
use super::rules::SLACK;
use super::step::SoakStep;
use super::violation::{Rule, Violation, require};
use super::world::{OpenCanary, World};

/// Longest end of a case: batches of lost workers are overdue after some 30 s, and then requests may wait
/// for each other, each for the patience.
const END: Micros = Micros::from_millis(400_000);

/// Time between two looks at the end.
const LOOK: Micros = Micros::from_millis(50);

impl World<'_> {
    /// Plays a step and counts it if it is a fault that changed something.
    pub(super) fn play(&mut self, step: &SoakStep) -> Result<(), Violation> {
        let happened = self.happen(step)?;
        if let Some(fault) = step.fault().filter(|_| happened) {
            *self.faults.entry(fault).or_default() += 1;
        }
        Ok(())
    }

    fn happen(&mut self, step: &SoakStep) -> Result<bool, Violation> {
        match *step {
            SoakStep::Arrive {
                app,
                slack_us,
                pinned,
                rows,
            } => {
                let id = self.books.next_id();
                let request = self.request(id, app, slack_us, pinned, rows);
                self.arrive(request)?;
            }
            SoakStep::Burst {
                app,
                count,
                slack_us,
            } => {
                for _ in 0..count {
                    let id = self.books.next_id();
                    let request = self.request(id, app, slack_us, None, 1.0);
                    self.arrive(request)?;
                }
            }
            SoakStep::ArriveTwice { back } => {
                if self.books.newest == 0 {
                    return Ok(false);
                }
                let request = self.request(self.books.back(back), 0, 1_000, None, 1.0);
                self.give(Event::Arrived(request))?;
            }
            SoakStep::Wait { us } => self.advance_to(self.now + Micros(us))?,
            SoakStep::Sleep { us } => {
                self.now += Micros(us);
                // The driver has not looked at the workers meanwhile.
                self.idle_since = None;
                self.settle()?;
            }
            SoakStep::Evidence { back } => self.evidence(self.books.back(back), 2)?,
            SoakStep::WrongEvidence { back } => self.evidence(self.books.back(back), 3)?,
            SoakStep::LateEvidence { id } => {
                if self.books.open.contains_key(&RequestId(id)) {
                    return Ok(false);
                }
                self.evidence(RequestId(id), 2)?;
            }
            SoakStep::Cancel { back } => {
                let id = self.books.back(back);
                let is_open = self.books.open.contains_key(&id);
                self.give(Event::Cancelled(id))?;
                return Ok(is_open);
            }
            SoakStep::Slow { worker, .. }
            | SoakStep::Fail { worker, .. }
            | SoakStep::Overtake { worker }
            | SoakStep::Lose { worker }
            | SoakStep::Down { worker }
            | SoakStep::Leave { worker }
            | SoakStep::Up { worker }
            | SoakStep::Hang { worker }
            | SoakStep::AnswerLate { worker, .. }
            | SoakStep::AnswerTwice { worker }
            | SoakStep::AnswerOld { worker }
            | SoakStep::AnswerOther { worker }
            | SoakStep::Residency { worker, .. } => {
                return self.worker_step(WorkerId(worker % self.benches.len() as u32), step);
            }
            SoakStep::Swap { policy, seed } => return self.swap(policy, seed),
            SoakStep::Remove => {
                self.canary = None;
                self.give(Event::PolicyRemoved)?;
            }
            SoakStep::Canary {
                serving,
                candidate,
                seed,
            } => return self.begin_canary(serving, candidate, seed),
            SoakStep::EndCanary { promotes, seed } => return self.end_canary(promotes, seed),
            SoakStep::Recatalog { change } => {
                let catalog = self.pool.change(change);
                while self.benches.len() < self.pool.workers as usize {
                    self.benches.push(Bench::new());
                }
                self.give(Event::CatalogChanged(catalog))?;
            }
            SoakStep::Watch { on } => {
                let fields = WindowFields {
                    evidence: true,
                    completions: true,
                    placed: true,
                    residents: true,
                };
                self.give(Event::Watched(on.then_some(fields)))?;
            }
            SoakStep::Drain => self.give(Event::Drain)?,
        }
        Ok(true)
    }

    // ---- clients ----------------------------------------------------------------------

    fn request(
        &self,
        id: RequestId,
        app: u32,
        slack_us: u64,
        pinned: Option<u32>,
        rows: f64,
    ) -> Request {
        Request {
            id,
            app: AppId(app),
            arrival: self.now,
            deadline: self.now + Micros(slack_us),
            priority: 0,
            min_accuracy: if slack_us.is_multiple_of(5) { 0.9 } else { 0.0 },
            pinned: pinned.map(VariantId),
            cost: Cost::from_f64(rows),
        }
    }

    fn arrive(&mut self, request: Request) -> Result<(), Violation> {
        self.books.arrived(&request);
        self.give(Event::Arrived(request))
    }

    fn evidence(&mut self, request: RequestId, classes: u32) -> Result<(), Violation> {
        let counts = (1..=classes).collect();
        self.give(Event::Evidence { request, counts })
    }

    // ---- workers ----------------------------------------------------------------------

    fn worker_step(&mut self, worker: WorkerId, step: &SoakStep) -> Result<bool, Violation> {
        let bench = &mut self.benches[worker.index()];
        match *step {
            SoakStep::Slow { factor, .. } => {
                let before = std::mem::replace(&mut bench.factor, factor);
                Ok(before != factor)
            }
            SoakStep::Fail { repeatable, .. } => self.finish(worker, failed(repeatable)),
            SoakStep::Overtake { .. } => match bench.sent.pop_back() {
                Some((_, launch)) => self.ended(&launch, BatchEnd::Done).map(|()| true),
                None => Ok(false),
            },
            SoakStep::Lose { .. } => {
                let hung = bench.hung.pop_front();
                match hung {
                    Some(launch) => self.ended(&launch, lost()).map(|()| true),
                    None => self.finish(worker, lost()),
                }
            }
            SoakStep::Down { .. } => {
                bench.forget();
                let was_up = self.scheduler.is_up(worker);
                let reason = "unplugged".to_owned();
                self.give(Event::WorkerDown { worker, reason })?;
                Ok(was_up)
            }
            SoakStep::Leave { .. } => {
                let was_up = self.scheduler.is_up(worker);
                self.give(Event::WorkerLeaving(worker))?;
                Ok(was_up)
            }
            SoakStep::Up { .. } => {
                let was_up = self.scheduler.is_up(worker);
                self.bring_up(worker)?;
                Ok(!was_up)
            }
            SoakStep::Hang { .. } => {
                bench.hang();
                Ok(bench.running.is_some())
            }
            SoakStep::AnswerLate { fails, .. } => {
                let Some(launch) = bench.hung.pop_front() else {
                    return Ok(false);
                };
                let end = if fails { failed(true) } else { BatchEnd::Done };
                self.ended(&launch, end).map(|()| true)
            }
            SoakStep::AnswerTwice { .. } => {
                let batch = bench.last;
                self.answer(worker, batch)
            }
            SoakStep::AnswerOld { .. } => {
                let batch = bench.old.front().map(|launch| launch.batch);
                self.answer(worker, batch)
            }
            SoakStep::AnswerOther { .. } => {
                let other = self.worker_ids().find(|&other| other != worker);
                let other = other.and_then(|other| self.benches[other.index()].running.as_ref());
                let batch = other.map(|(_, launch)| launch.batch);
                self.answer(worker, batch)
            }
            SoakStep::Residency { mask, .. } => {
                let resident = (0..self.pool.variants).filter(|v| mask >> v & 1 == 1);
                let resident = resident.map(VariantId).collect();
                self.give(Event::Residency {
                    worker,
                    resident,
                    free_bytes: u64::from(mask) * 100,
                })?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn answer(
        &mut self,
        worker: WorkerId,
        batch: Option<switchyard_core::ids::BatchId>,
    ) -> Result<bool, Violation> {
        let Some(batch) = batch else {
            return Ok(false);
        };
        let end = BatchEnd::Done;
        self.give(Event::Finished { worker, batch, end })?;
        Ok(true)
    }

    fn bring_up(&mut self, worker: WorkerId) -> Result<(), Violation> {
        if !self.scheduler.is_up(worker) {
            self.benches[worker.index()].forget();
        }
        self.give(Event::WorkerUp(worker))
    }

    // ---- policies ---------------------------------------------------------------------

    /// A policy of this kind, or one from outside; none if it refuses the catalog.
    fn policy(&self, kind: PolicyKind, seed: u64) -> Option<Box<dyn Policy>> {
        let catalog: &Catalog = self.scheduler.catalog();
        if !self.policies.is_empty() && seed.is_multiple_of(2) {
            let at = (seed / 2) as usize % self.policies.len();
            return (self.policies[at].make)(catalog).ok();
        }
        if kind == PolicyKind::Native {
            let mut native = EarliestDeadlineFirst::default();
            native.configure(catalog).ok()?;
            return Some(Box::new(native));
        }
        let mischief = self.mischief.clone();
        Some(Box::new(Hostile::new(kind, seed, catalog, mischief)))
    }

    fn swap(&mut self, kind: PolicyKind, seed: u64) -> Result<bool, Violation> {
        let Some(policy) = self.policy(kind, seed) else {
            return Ok(false);
        };
        self.canary = None;
        self.give(Event::PolicyChanged(policy))?;
        Ok(true)
    }

    fn begin_canary(
        &mut self,
        serving: PolicyKind,
        candidate: PolicyKind,
        seed: u64,
    ) -> Result<bool, Violation> {
        let members = [serving, serving, candidate].map(|kind| self.policy(kind, seed));
        let [Some(of_serving), Some(baseline), Some(of_candidate)] = members else {
            return Ok(false);
        };
        let (canary, watch) = Canary::new(CanaryParts {
            serving: of_serving,
            baseline,
            candidate: of_candidate,
            catalog: Arc::clone(self.scheduler.catalog()),
            share: 0.3,
            slot: Micros::from_millis(1 + seed % 5),
            seed,
            rule: CanaryRule {
                error: 0.3,
                ..CanaryRule::default()
            },
        });
        self.canary = Some(OpenCanary {
            watch,
            serving,
            candidate,
        });
        self.give(Event::PolicyChanged(Box::new(canary)))?;
        Ok(true)
    }

    fn end_canary(&mut self, promotes: bool, seed: u64) -> Result<bool, Violation> {
        let Some(canary) = self.canary.take() else {
            return Ok(false);
        };
        let (verdict, winner) = match promotes {
            true => (Verdict::Promote(Why::Ordered), canary.candidate),
            false => (Verdict::RollBack(Why::Ordered), canary.serving),
        };
        canary.watch.order(verdict);
        self.swap(winner, seed)
    }

    // ---- the end ----------------------------------------------------------------------

    /// Ends the case and checks that no request is left that should have ended.
    pub(super) fn end(&mut self) -> Result<(), Violation> {
        self.benches.iter_mut().for_each(|bench| bench.factor = 1);
        let ending = self.pool.ending;
        match ending {
            Ending::ByFallback => self.give(Event::PolicyRemoved)?,
            Ending::ByPolicy => {}
            Ending::WithoutWorkers => {
                self.is_dead = true;
                self.benches.iter_mut().for_each(Bench::hang);
            }
        }
        let end = self.now + END;
        for round in 0.. {
            // Again once hung batches are overdue.
            if ending != Ending::WithoutWorkers && round % 1_000 == 0 {
                for worker in self.worker_ids() {
                    self.bring_up(worker)?;
                }
            }
            if self.is_over() || self.now >= end {
                break;
            }
            self.advance_to(self.now + LOOK)?;
        }
        let left = self.books.due(self.late_by());
        let left: Vec<_> = left.map(|(id, _)| id.0).collect();
        require(self.is_over(), Rule::Progress, self.now, || {
            format!(
                "{} requests are live at the end, due are {left:?}",
                self.scheduler.live()
            )
        })?;
        let parked = self
            .benches
            .iter()
            .map(|bench| bench.parked.len())
            .sum::<usize>();
        let is_released = parked == 0 || self.scheduler.live() > 0;
        require(is_released, Rule::Release, self.now, || {
            format!("{parked} requests are parked at the end")
        })
    }

    /// Deadlines before this time are long past.
    fn late_by(&self) -> Time {
        match self.pool.ending {
            Ending::ByFallback => Time::NEVER,
            Ending::ByPolicy | Ending::WithoutWorkers => self.now - self.pool.patience() - SLACK,
        }
    }

    fn is_over(&self) -> bool {
        self.books.due(self.late_by()).next().is_none()
    }
}

fn failed(repeatable: bool) -> BatchEnd {
    BatchEnd::Failed {
        reason: "made to".to_owned(),
        repeatable,
    }
}

fn lost() -> BatchEnd {
    BatchEnd::Lost {
        reason: "unplugged".to_owned(),
    }
}

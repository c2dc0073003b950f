//! The driver of a world: it carries the core's commands out in virtual time, and checks the rules after
//! each event.

use switchyard_core::event::{BatchEnd, Command, Event, Launch, Notice};
use switchyard_core::ids::{KindId, WorkerId};
use switchyard_core::time::{Micros, Time};

use super::rules;
use super::violation::{Rule, Violation, require};
use super::world::World;

/// Commands at one time after which the scheduler counts as running in circles.
const COMMANDS_MAX: u32 = 100_000;

impl World<'_> {
    /// Hands an event over and carries out the commands that follow.
    pub(super) fn give(&mut self, event: Event) -> Result<(), Violation> {
        self.events += 1;
        self.scheduler.handle(self.now, event);
        self.settle()
    }

    /// Time passes: batches end, and the scheduler is woken when it asked for it.
    pub(super) fn advance_to(&mut self, end: Time) -> Result<(), Violation> {
        loop {
            let finish = (self.worker_ids().zip(&self.benches))
                .filter_map(|(worker, bench)| Some((bench.running.as_ref()?.0, worker)))
                .min();
            let wake = self.scheduler.next_wakeup();
            let next = [finish.map(|finish| finish.0), wake];
            let next = next.into_iter().flatten().min();
            let Some(at) = next.filter(|&at| at <= end && at < Time::NEVER) else {
                break;
            };
            self.now = self.now.max(at);
            match finish.filter(|finish| finish.0 <= self.now) {
                Some((_, worker)) => {
                    self.finish(worker, BatchEnd::Done)?;
                }
                None => {
                    self.events += 1;
                    self.settle()?;
                }
            }
        }
        // Not polled: the scheduler did not ask for it.
        self.now = self.now.max(end);
        rules::check_waiting(self)
    }

    /// A worker's running batch ends. False: it runs none.
    pub(super) fn finish(&mut self, worker: WorkerId, end: BatchEnd) -> Result<bool, Violation> {
        let bench = &mut self.benches[worker.index()];
        let Some(launch) = bench.next(self.now) else {
            return Ok(false);
        };
        self.ended(&launch, end)?;
        Ok(true)
    }

    pub(super) fn ended(&mut self, launch: &Launch, end: BatchEnd) -> Result<(), Violation> {
        let (worker, batch) = (launch.worker, launch.batch);
        let bench = &mut self.benches[worker.index()];
        bench.ended(launch, &end);
        if let BatchEnd::Lost { .. } = end {
            bench.forget();
        }
        self.give(Event::Finished { worker, batch, end })
    }

    /// Polls until the scheduler rests, as one turn of a driver at one time.
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        let mut commands = 0;
        while let Some(command) = self.scheduler.poll(self.now) {
            commands += 1;
            require(commands < COMMANDS_MAX, Rule::Wakeup, self.now, || {
                format!("{commands} commands at one time")
            })?;
            if let Some(hash) = &mut self.hash {
                hash.add(self.now, &command);
            }
            self.carry_out(command)?;
        }
        self.note_idle();
        rules::check(self)?;
        self.now += self.mischief.taken();
        Ok(())
    }

    fn note_idle(&mut self) {
        let any_up = self.worker_ids().any(|worker| self.scheduler.is_up(worker));
        // Also of a worker that leaves.
        let any_busy = self.benches.iter().any(|bench| bench.running.is_some());
        self.idle_since = match any_up && !any_busy {
            true => self.idle_since.or(Some(self.now)),
            false => None,
        };
    }

    fn carry_out(&mut self, command: Command) -> Result<(), Violation> {
        match command {
            Command::Launch(launch) => self.launch(launch),
            Command::Reply(reply) => {
                let catalog = self.scheduler.catalog();
                self.books.answer(self.now, &reply, catalog)
            }
            Command::Release { worker, request } => {
                self.benches[worker.index()].parked.remove(&request);
                Ok(())
            }
            Command::Notice(Notice::WorkerOverdue { worker, batch, .. }) => {
                let bench = &mut self.benches[worker.index()];
                let running = bench.running.as_ref();
                let is_it = running.is_some_and(|(_, launch)| launch.batch == batch);
                bench.give_up();
                require(is_it, Rule::OneBatch, self.now, || {
                    format!(
                        "batch {} is overdue on worker {}, which does not run it",
                        batch.0, worker.0
                    )
                })
            }
            Command::Prepare { .. } | Command::Decided(_) | Command::Notice(_) => Ok(()),
        }
    }

    fn launch(&mut self, launch: Launch) -> Result<(), Violation> {
        rules::check_launch(self, &launch)?;
        let catalog = self.scheduler.catalog();
        let kind = catalog
            .worker(launch.worker)
            .map_or(KindId(0), |spec| spec.kind);
        let time = catalog.profile.latency_of(
            kind,
            launch.variant,
            launch.from_stage,
            launch.to_stage,
            launch.exit,
            launch.cost,
        );
        let bench = &mut self.benches[launch.worker.index()];
        let time = time.unwrap_or(Micros::from_millis(1));
        let time = match self.is_dead {
            true => Micros(Time::NEVER.0 - self.now.0),
            false => Micros(time.0.saturating_mul(bench.factor)),
        };
        bench.take_in(self.now, time, launch);
        Ok(())
    }
}

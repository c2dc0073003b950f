//! A pool under a scheduler of its own: in each turn one request arrives and one batch ends.

use std::collections::VecDeque;
use std::sync::Arc;

use switchyard_core::catalog::Late;
use switchyard_core::cost::Cost;
use switchyard_core::event::{BatchEnd, Command, Event};
use switchyard_core::ids::{AppId, BatchId, ExitId, KindId, RequestId, VariantId, WorkerId};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::request::Request;
use switchyard_core::time::{Micros, Time};
use switchyard_core::{Scheduler, SchedulerConfig};

use crate::policies::NextIdle;
use crate::test_bed::{self, APPS, MAX_BATCH};

/// Between two arrivals.
const GAP: Micros = Micros(50);

/// How the apps and the clients of a pool are.
#[derive(Clone, Copy)]
pub(crate) struct PoolKind {
    pub(crate) late: Late,
    /// Every client pins the variant.
    pub(crate) pinned: bool,
}

/// A pool of which half is busy.
pub(crate) struct Pool {
    scheduler: Scheduler,
    now: Time,
    next: u64,
    pinned: bool,
    running: VecDeque<(WorkerId, BatchId)>,
    busy: usize,
}

// === impl Pool ===

impl Pool {
    pub(crate) fn new(workers: usize, kind: PoolKind) -> Self {
        let mut catalog = test_bed::catalog(workers);
        let made = Arc::make_mut(&mut catalog);
        let busy = workers / 2;
        // A batch ends when half the workers have got one after it.
        let latency = Micros(GAP.0 * busy as u64);
        made.profile = Profile::new(0.95, rows(latency), []);
        for app in &mut made.apps {
            app.late = kind.late;
            app.slo = Micros(latency.0 * 10);
        }
        let mut scheduler = Scheduler::try_new(catalog, SchedulerConfig::default()).unwrap();
        for worker in (0..workers as u32).map(WorkerId) {
            let event = Event::Residency {
                worker,
                resident: (0..2 * APPS).map(VariantId).collect(),
                free_bytes: 0,
            };
            scheduler.handle(Time::ZERO, event);
        }
        let policy = Box::new(NextIdle::on_events());
        scheduler.handle(Time::ZERO, Event::PolicyChanged(policy));
        let mut pool = Self {
            scheduler,
            now: Time::ZERO,
            next: 1,
            pinned: kind.pinned,
            running: VecDeque::new(),
            busy,
        };
        // Until the kept decisions are full.
        (0..2 * workers + 200).for_each(|_| pool.turn());
        pool
    }

    pub(crate) fn windows(&self) -> u64 {
        self.scheduler.windows_opened()
    }

    pub(crate) fn turn(&mut self) {
        self.now += GAP;
        if self.running.len() >= self.busy
            && let Some((worker, batch)) = self.running.pop_front()
        {
            let end = BatchEnd::Done;
            let event = Event::Finished { worker, batch, end };
            self.scheduler.handle(self.now, event);
        }
        let app = AppId((self.next % u64::from(APPS)) as u32);
        self.scheduler.handle(
            self.now,
            Event::Arrived(Request {
                id: RequestId(self.next),
                app,
                arrival: self.now,
                deadline: self.now + Micros(10_000_000),
                priority: 0,
                min_accuracy: 0.0,
                pinned: self.pinned.then_some(VariantId(2 * app.0)),
                cost: Cost::ONE,
            }),
        );
        self.next += 1;
        while let Some(command) = self.scheduler.poll(self.now) {
            if let Command::Launch(launch) = command {
                self.running.push_back((launch.worker, launch.batch));
            }
        }
        std::hint::black_box(self.scheduler.next_wakeup());
    }
}

fn rows(latency: Micros) -> impl Iterator<Item = ProfileRow> {
    let row = move |v: u32, batch| ProfileRow {
        kind: KindId(0),
        variant: VariantId(v),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        batch,
        latency,
        energy_uj: None,
    };
    (0..2 * APPS).flat_map(move |v| [row(v, 1), row(v, MAX_BATCH)])
}

//! A driver in virtual time that keeps books of its own and compares the core's commands to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::event::{BatchEnd, Command, Event, Launch, Notice, Reply};
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::request::Request;
use switchyard_core::time::{Micros, Time};
use switchyard_core::{Scheduler, SchedulerConfig};

pub struct Driver {
    pub scheduler: Scheduler,
    pub now: Time,
    pub replies: BTreeMap<RequestId, Reply>,
    pub runs: Vec<(Time, Launch)>,
    pub notices: Vec<Notice>,
    /// From [`Command::Decided`].
    pub decisions: Vec<Arc<Decision>>,
    /// From [`Command::Prepare`].
    pub prepared: Vec<(WorkerId, Vec<VariantId>)>,
    /// Every command as text, to compare two runs.
    pub log: Vec<String>,
    /// A batch takes this many times the profile's latency.
    pub slowdown: fn(&Launch) -> f64,
    /// With their deadlines.
    arrived: BTreeMap<RequestId, Time>,
    running: BTreeMap<WorkerId, (Time, Launch)>,
    /// Batches behind the running one, and their times.
    sent: BTreeMap<WorkerId, VecDeque<(Micros, Launch)>>,
    /// Batches of workers that counted as lost because the first did not end.
    hung: BTreeMap<WorkerId, VecDeque<Launch>>,
    parked: BTreeSet<(RequestId, WorkerId)>,
}

impl Driver {
    pub fn new(catalog: Arc<Catalog>, config: SchedulerConfig) -> Self {
        Self {
            scheduler: Scheduler::try_new(catalog, config).unwrap(),
            now: Time::ZERO,
            replies: BTreeMap::new(),
            runs: Vec::new(),
            notices: Vec::new(),
            decisions: Vec::new(),
            prepared: Vec::new(),
            log: Vec::new(),
            slowdown: |_| 1.0,
            arrived: BTreeMap::new(),
            running: BTreeMap::new(),
            sent: BTreeMap::new(),
            hung: BTreeMap::new(),
            parked: BTreeSet::new(),
        }
    }

    pub fn arrive(&mut self, request: Request) {
        self.arrived.insert(request.id, request.deadline);
        self.give(Event::Arrived(request));
    }

    /// Hands over one event and carries out the commands that follow.
    pub fn give(&mut self, event: Event) {
        match &event {
            Event::WorkerDown { worker, .. }
            | Event::Finished {
                worker,
                end: BatchEnd::Lost { .. },
                ..
            } => self.forget(*worker),
            // A fresh worker, unless the old one serves.
            Event::WorkerUp(worker) if !self.scheduler.is_up(*worker) => self.forget(*worker),
            _ => {}
        }
        self.scheduler.handle(self.now, event);
        self.settle();
    }

    fn forget(&mut self, worker: WorkerId) {
        self.running.remove(&worker);
        self.sent.remove(&worker);
        self.hung.remove(&worker);
        self.parked.retain(|&(_, at)| at != worker);
    }

    /// The batch of this worker does not end.
    pub fn hang(&mut self, worker: WorkerId) {
        if let Some((end, _)) = self.running.get_mut(&worker) {
            *end = Time::NEVER;
        }
    }

    /// The batch that made this worker count as lost ends after all.
    pub fn finish_late(&mut self, worker: WorkerId, end: BatchEnd) {
        let hung = self.hung.get_mut(&worker).and_then(VecDeque::pop_front);
        if let Some(launch) = hung {
            self.ended(&launch, end);
        }
    }

    /// Advances the time at once.
    pub fn sleep(&mut self, length: Micros) {
        self.now += length;
        self.settle();
    }

    /// Advances the time; finishes batches and wakes the scheduler when they are due.
    pub fn advance_to(&mut self, end: Time) {
        loop {
            let finish = self.running.iter().map(|(&w, run)| (run.0, w)).min();
            let wake = self.scheduler.next_wakeup();
            let next = [finish.map(|f| f.0), wake].into_iter().flatten().min();
            let Some(at) = next.filter(|&at| at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            match finish.filter(|f| f.0 <= self.now) {
                Some((_, worker)) => self.finish(worker, BatchEnd::Done),
                None => self.settle(),
            }
        }
        self.now = self.now.max(end);
        self.settle();
    }

    /// Runs until every request has ended, at most for a virtual minute.
    pub fn drain(&mut self) {
        for _ in 0..6_000 {
            if self.scheduler.live() == 0 {
                return;
            }
            self.advance_to(self.now + Micros::from_millis(10));
        }
    }

    pub fn finish(&mut self, worker: WorkerId, end: BatchEnd) {
        if let Some((_, launch)) = self.running.remove(&worker) {
            let next = self.sent.get_mut(&worker).and_then(VecDeque::pop_front);
            if let Some((time, next)) = next {
                self.running.insert(worker, (self.now + time, next));
            }
            self.ended(&launch, end);
        }
    }

    /// The batch that this worker was sent last ends first.
    pub fn overtake(&mut self, worker: WorkerId) {
        let last = self.sent.get_mut(&worker).and_then(VecDeque::pop_back);
        if let Some((_, launch)) = last {
            self.ended(&launch, BatchEnd::Done);
        }
    }

    fn ended(&mut self, launch: &Launch, end: BatchEnd) {
        let (batch, worker) = (launch.batch, launch.worker);
        for &id in &launch.requests {
            // Parked when no exit ran. A batch that failed leaves no activations.
            if launch.exit.is_none() && end == BatchEnd::Done {
                self.parked.insert((id, worker));
            } else {
                self.parked.remove(&(id, worker));
            }
        }
        self.give(Event::Finished { worker, batch, end });
    }

    /// The requests that have not ended although their deadline has passed.
    pub fn due(&self) -> Vec<RequestId> {
        let arrived = self.arrived.iter();
        let due = arrived.filter(|(id, at)| **at < self.now && !self.replies.contains_key(id));
        due.map(|(&id, _)| id).collect()
    }

    /// Checks the books, which must balance at every moment.
    pub fn check(&self) {
        assert_eq!(self.scheduler.imbalance(), 0, "the books do not balance");
        assert_eq!(
            self.arrived.len(),
            self.replies.len() + self.scheduler.live(),
            "a request was lost or answered twice"
        );
    }

    /// Checks that every request has ended and no activations are left.
    pub fn check_empty(&self) {
        self.check();
        assert_eq!(self.scheduler.live(), 0);
        assert_eq!(self.replies.len(), self.arrived.len());
        assert!(
            self.parked.is_empty(),
            "activations leaked: {:?}",
            self.parked
        );
    }

    fn settle(&mut self) {
        for step in 0.. {
            assert!(step < 100_000, "the scheduler never comes to rest");
            let Some(command) = self.scheduler.poll(self.now) else {
                break;
            };
            self.log.push(format!("{} {command:?}", self.now.0));
            match command {
                Command::Launch(launch) => self.run(launch),
                Command::Reply(reply) => {
                    assert!(
                        self.arrived.contains_key(&reply.request),
                        "reply to an unknown request"
                    );
                    let before = self.replies.insert(reply.request, reply);
                    assert!(before.is_none(), "answered twice: {before:?}");
                }
                Command::Release { worker, request } => {
                    self.parked.remove(&(request, worker));
                }
                Command::Prepare { worker, soon } => self.prepared.push((worker, soon.to_vec())),
                Command::Decided(decision) => self.decisions.push(decision),
                Command::Notice(notice) => self.notice(notice),
            }
        }
        self.check();
        let wakeup = self.scheduler.next_wakeup();
        assert!(
            wakeup.is_none_or(|at| at > self.now),
            "nothing is left to do at {}, and the next wake-up is at {wakeup:?}",
            self.now
        );
    }

    fn notice(&mut self, notice: Notice) {
        if let Notice::WorkerOverdue { worker, batch, .. } = notice {
            let (_, launch) = self.running.remove(&worker).unwrap();
            assert_eq!(launch.batch, batch);
            let sent = self.sent.remove(&worker).into_iter().flatten();
            let hung = std::iter::once(launch).chain(sent.map(|(_, launch)| launch));
            self.hung.entry(worker).or_default().extend(hung);
        }
        self.notices.push(notice);
    }

    fn run(&mut self, launch: Launch) {
        assert!(!launch.requests.is_empty(), "an empty batch");
        for id in &launch.requests {
            assert!(!self.replies.contains_key(id), "an answered request runs");
            let mut running = self.running.values().map(|(_, run)| run);
            let mut sent = self.sent.values().flatten().map(|(_, run)| run);
            let has = |run: &Launch| run.requests.contains(id);
            let elsewhere = running.any(has) || sent.any(has);
            assert!(!elsewhere, "a request runs twice at once");
            let parked = self.parked.iter().filter(|(parked, _)| parked == id);
            let parked: Vec<_> = parked.map(|&(_, worker)| worker).collect();
            let needed = (launch.from_stage > 0).then_some(launch.worker);
            assert_eq!(
                parked,
                Vec::from_iter(needed),
                "activations are not where the batch needs them"
            );
        }
        let catalog = self.scheduler.catalog();
        let spec = &catalog.workers[launch.worker.index()];
        let last = catalog.variants[launch.variant.index()].last_exit();
        assert!(
            spec.can.exits || launch.exit.is_none_or(|exit| exit == last),
            "the worker answers at last exits only"
        );
        let latency = catalog
            .profile
            .latency_of(
                spec.kind,
                launch.variant,
                launch.from_stage,
                launch.to_stage,
                launch.exit,
                launch.cost,
            )
            .unwrap();
        let latency = Micros((latency.0 as f64 * (self.slowdown)(&launch)).round() as u64);
        let most = spec.outstanding as usize;
        let (worker, run) = (launch.worker, launch.clone());
        match self.running.contains_key(&worker) {
            false => {
                self.running.insert(worker, (self.now + latency, run));
            }
            true => {
                let sent = self.sent.entry(worker).or_default();
                sent.push_back((latency, run));
            }
        }
        let sent = self.sent.get(&worker).map_or(0, VecDeque::len);
        let hung = self.hung.get(&worker).map_or(0, VecDeque::len);
        let has = 1 + sent + hung;
        assert!(has <= most, "more batches than the worker may have");
        self.runs.push((self.now, launch));
    }
}

use super::super::shown::{columns_of, undo};
use super::*;
use crate::catalog::Capabilities;
use crate::ids::{KindId, VariantId};
use crate::time::Micros;
use crate::worker::{Decided, Members, RunningBatch, WorkerBatch};

fn spec(w: u64) -> WorkerSpec {
    WorkerSpec {
        name: format!("w{w}"),
        kind: KindId(0),
        memory_bytes: 100 * w,
        queue_max: 2,
        parked_max: 0,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1 + w as u32 % 2,
    }
}

fn shown(set: &mut WorkerSet, now: Time) -> window::Workers {
    set.show(now, true, false);
    set.columns().clone()
}

#[test]
fn the_columns_show_every_write() {
    let specs: Vec<_> = (1..=4).map(spec).collect();
    let mut set = WorkerSet::new(&specs[..3]);
    assert!(set.any_idle(), "before the first refresh");
    let columns = shown(&mut set, Time(7));
    assert_eq!(columns.free_memory, [100, 200, 300]);
    assert_eq!(columns.busy_until, [7; 3]);
    set[WorkerId(1)].parked = 5;
    set[WorkerId(1)].up = false;
    set.fit(&specs);
    let columns = shown(&mut set, Time(9));
    assert_eq!(columns.parked, [0, 5, 0, 0]);
    assert_eq!(columns.up, [1, 0, 1, 1]);
    assert_eq!(columns.free_memory, [100, 200, 300, 400]);
    assert_eq!(columns.busy_until, [9; 4]);
}

#[test]
fn idle_workers_are_counted_before_and_after_a_refresh() {
    let mut set = WorkerSet::new(&[spec(1), spec(2)]);
    for (worker, up, any) in [
        (0, false, true),
        (1, false, false),
        (1, false, false),
        (0, true, true),
        (0, false, false),
    ] {
        set[WorkerId(worker)].up = up;
        assert_eq!(set.any_idle(), any);
        set.refresh();
        assert_eq!(set.any_idle(), any);
    }
    set.all_mut().iter_mut().for_each(|worker| worker.up = true);
    assert!(set.any_idle());
}

/// Numbers of a linear congruential generator.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn batch(id: u64, draws: &mut Draws) -> WorkerBatch {
    WorkerBatch {
        id: BatchId(id),
        variant: VariantId(draws.below(3) as u32),
        from_stage: 0,
        to_stage: 1,
        exit: None,
        members: (0..=draws.below(3))
            .map(crate::ids::RequestId)
            .collect::<Members>(),
        cost: crate::cost::Cost::ONE,
        expected: Micros(draws.below(40)),
        load: Micros::ZERO,
        decided: Decided {
            window: 0,
            by: "host".into(),
        },
        pinned: false,
        late: false,
    }
}

fn running(id: u64, now: Time, draws: &mut Draws) -> RunningBatch {
    let batch = batch(id, draws);
    RunningBatch {
        since: now,
        expected_end: now + batch.expected,
        overdue_at: Time::NEVER,
        batch,
    }
}

/// Writes one worker in some way.
fn write(worker: &mut Worker, id: u64, now: Time, draws: &mut Draws) {
    match draws.below(11) {
        0 => worker.running = Some(running(id, now, draws)),
        1 => worker.running = None,
        2 if worker.running.is_some() => worker.sent.push_back(running(id, now, draws)),
        3 => worker.sent.clear(),
        4 => worker.queue.push_back(batch(id, draws)),
        5 => worker.queue.clear(),
        6 => worker.up = !worker.up,
        7 => worker.parked = draws.below(2) as u32,
        8 => worker.overdue.push(running(id, now, draws)),
        9 => worker.overdue.clear(),
        _ => worker.resident = (0..draws.below(3) as u32).map(VariantId).collect(),
    }
}

fn free_at(worker: &Worker, now: Time) -> Time {
    let busy_until = worker.busy_until(now);
    (worker.waiting()).fold(busy_until, |at, batch| at + batch.expected)
}

/// The columns as they were made before they were kept: from every worker.
fn made(set: &WorkerSet, now: Time) -> window::Workers {
    let mut columns = window::Workers::default();
    for worker in set.iter() {
        let place = worker.has_place();
        let shown = worker.running.as_ref().filter(|_| !place);
        columns.busy_until.push(worker.busy_until(now).0);
        columns.free_at.push(free_at(worker, now).0);
        columns.running_since.push(shown.map_or(0, |r| r.since.0));
        let variant = shown.map_or(window::IDLE, |r| r.batch.variant.0);
        columns.running_variant.push(variant);
        columns.queued.push(worker.queue.len() as u32);
        columns.parked.push(worker.parked);
        columns.free_memory.push(worker.free_bytes);
        columns.up.push(u8::from(worker.up));
        columns.incarnation.push(worker.incarnation);
    }
    columns
}

/// One window of the past.
struct Past {
    now: Time,
    columns: window::Workers,
    before: Vec<WorkerRow>,
}

#[test]
fn indexes_and_columns_are_as_a_look_at_every_worker() {
    for seed in 1..6 {
        let mut draws = Draws(seed);
        let specs: Vec<_> = (1..=9).map(|w| spec(1 + w % 4)).collect();
        let mut set = WorkerSet::new(&specs[..7]);
        let (mut now, mut past) = (Time::ZERO, Vec::<Past>::new());
        let mut batches = 0;
        for step in 0..2_000 {
            now += Micros(draws.below(20));
            for _ in 0..draws.below(3) {
                let worker = WorkerId(draws.below(set.len() as u64) as u32);
                batches += 1;
                write(&mut set[worker], batches, now, &mut draws);
            }
            if step == 1_000 {
                set.fit(&specs);
            }
            compare(&mut set, now, &mut draws);
            if draws.below(2) == 0 {
                let whole = draws.below(2) == 0;
                look(&mut set, now, whole, &mut past);
            }
        }
        look(&mut set, now, true, &mut past);
        let mut rows = set.rows();
        for window in past.iter().rev() {
            rows.truncate(window.columns.up.len());
            assert_eq!(columns_of(&rows, window.now), window.columns);
            undo(&mut rows, &window.before);
        }
    }
}

fn compare(set: &mut WorkerSet, now: Time, draws: &mut Draws) {
    assert_eq!(set.any_idle(), set.iter().any(Worker::is_idle));
    assert_eq!(set.any_free(), set.iter().any(Worker::is_free));
    assert_eq!(set.any_parked(), set.iter().any(|w| w.parked > 0));
    assert_eq!(set.up(), set.iter().filter(|w| w.up).count());
    let memory = 100 * draws.below(6);
    let specs: Vec<_> = (1..=9).map(|w| spec(1 + w % 4)).collect();
    let fits = |id: WorkerId| memory <= specs[id.index()].memory_bytes;
    let able = |set: &WorkerSet| {
        let able = set.ids().filter(|&id| set[id].up && fits(id));
        able.collect::<Vec<_>>()
    };
    assert_eq!(set.any_up_with(memory), !able(set).is_empty());
    let is_idle = |id| able(set).contains(&id) && set[id].is_idle();
    assert_eq!(set.any_idle_with(memory), set.ids().any(is_idle));
    if draws.below(3) > 0 {
        return; // Indexes catch up after some writes.
    }
    let idle: Vec<_> = set.ids().filter(|&id| set[id].is_idle()).collect();
    assert_eq!(set.idle().collect::<Vec<_>>(), idle);
    let ends = set.iter().filter(|w| w.up).map(|w| {
        let times = super::super::facts::WorkerTimes::of(w);
        times.last_end().max(now)
    });
    let earliest = ends.min().unwrap_or(now);
    assert_eq!(set.earliest_free(now), earliest);
    let first = able(set).into_iter().min_by_key(|&id| {
        let worker = &set[id];
        let is_busy = !worker.has_place() || !worker.queue.is_empty();
        (is_busy, free_at(worker, now), id)
    });
    assert_eq!(set.first_free(now, memory), first);
    let first = able(set)
        .into_iter()
        .min_by_key(|&id| (free_at(&set[id], now), id));
    assert_eq!(set.first_to_end(now, memory), first);
    set.look_at_queues();
    let queued = set.with_ids();
    let queued = queued.flat_map(|(id, w)| w.queue.iter().map(move |b| (id, b)));
    let queued: Vec<_> = queued.collect();
    assert_eq!(set.queued_batches(), queued.len());
    let requests = queued.iter().map(|(_, b)| b.members.len());
    assert_eq!(set.queued_requests(), requests.sum::<usize>());
    assert!(queued.iter().all(|(id, b)| set.queue_of(b.id) == Some(*id)));
}

/// A window; `whole` as in [`WorkerSet::show`].
fn look(set: &mut WorkerSet, now: Time, whole: bool, past: &mut Vec<Past>) {
    set.show(now, whole, true);
    let made = made(set, now);
    let mut shown = set.columns().clone();
    for at in shown.busy_until.iter_mut().chain(&mut shown.free_at) {
        assert!(!whole || *at >= now.0);
        *at = (*at).max(now.0);
    }
    assert_eq!(shown, made);
    let residents = set.with_ids().flat_map(|(worker, held)| {
        let held = held.resident.iter();
        held.map(move |&variant| Resident { worker, variant })
    });
    assert_eq!(set.residents(), residents.collect::<Vec<_>>());
    let (mut before, mut workers) = (Vec::new(), Vec::new());
    set.take_changes(&mut before, &mut workers);
    if let Some(last) = past.last() {
        let rows = shown.up.len();
        for at in 0..rows {
            let id = WorkerId(at as u32);
            let is_new = at >= last.columns.up.len();
            let moved = |was: &[u64], is: &[u64]| was[at].max(now.0) != is[at].max(now.0);
            let is_other = is_new
                || moved(&last.columns.busy_until, &made.busy_until)
                || moved(&last.columns.free_at, &made.free_at)
                || last.columns.running_variant[at] != made.running_variant[at]
                || last.columns.up[at] != made.up[at];
            assert!(!is_other || workers.contains(&id), "{id:?} is another");
        }
    }
    past.push(Past {
        now,
        columns: made,
        before,
    });
}

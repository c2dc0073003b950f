//! The plans equal those of a plain search over all workers, variants and exits.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::capacity::Capacity;
use crate::catalog::{App, Capabilities, Exit, Late, Penalty, Task, Variant, WorkerSpec};
use crate::ids::{AppId, KindId};
use crate::profile::{Profile, ProfileRow};

/// Two apps of two variants, one of them with an early exit, on two kinds of workers with
/// different memories. `fast` makes the second kind as fast as the first, for ties.
fn catalog(memories: &[u64], fast: bool) -> Catalog {
    let app = |name: &str| App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: vec!["a".to_owned()],
        slo: Micros(50_000),
        penalty: Penalty::Step,
        prior: vec![0.5],
        frequencies: vec![1.0],
        sneakpeek: None,
        late: Late::Serve,
    };
    let variant = |v: u32| Variant {
        name: format!("v{v}"),
        app: AppId(v % 2),
        stages: 2,
        exits: (1..=2)
            .map(|after_stage| Exit {
                name: format!("after{after_stage}"),
                after_stage,
                // Two variants share their accuracies.
                accuracy: 0.5 + 0.1 * f64::from(after_stage) + 0.1 * f64::from(v / 3),
                recall: vec![0.5],
                confusion: None,
            })
            .collect(),
        memory_bytes: 10 * u64::from(v + 1),
        max_batch: 3 + v,
        quality_unknown: false,
    };
    let mut rows = Vec::new();
    for kind in 0..2 {
        for v in 0..4 {
            for stage in 0..2 {
                for exit in [None, Some(ExitId(0)), Some(ExitId(1))] {
                    for batch in [1, 3 + v] {
                        let slower = if fast { 1 } else { 1 + u64::from(kind) };
                        let us = u64::from(1_000 + 300 * v + 200 * batch) * slower;
                        rows.push(ProfileRow {
                            kind: KindId(kind),
                            variant: VariantId(v),
                            from_stage: stage,
                            to_stage: stage + 1,
                            exit,
                            batch,
                            latency: Micros(us),
                            energy_uj: None,
                        });
                    }
                }
            }
        }
    }
    let worker = |(w, &memory_bytes): (usize, &u64)| WorkerSpec {
        name: format!("w{w}"),
        kind: KindId(w as u32 % 2),
        memory_bytes,
        queue_max: (w % 3) as u32,
        parked_max: 8,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    };
    Catalog {
        generation: 1,
        apps: vec![app("one"), app("two")],
        variants: (0..4).map(variant).collect(),
        kinds: vec!["cpu-1t".to_owned(), "cpu-2t".to_owned()],
        workers: memories.iter().enumerate().map(worker).collect(),
        profile: Profile::new(0.95, rows, []),
    }
}

fn window(
    catalog: &Catalog,
    requests: &[(u32, u64, Option<u32>)],
    workers: &[(u64, u32, bool, bool)],
) -> Window {
    let mut window = Window {
        id: 1,
        now: Time(100_000),
        ..Window::default()
    };
    for (i, &(app, deadline_us, parked)) in (0u32..).zip(requests) {
        let columns = &mut window.requests;
        columns.id.push(1_000 + u64::from(i));
        columns.app.push(app);
        columns.arrival.push(90_000);
        columns.deadline.push(95_000 + 500 * deadline_us);
        columns.priority.push(0);
        columns.min_accuracy.push(0.0);
        if let Some(worker) = parked {
            columns.progress.push(RequestProgress {
                index: i,
                worker: WorkerId(worker % catalog.workers.len() as u32),
                variant: VariantId(app),
                stages_run: 1,
            });
        }
    }
    for &(busy_us, queued, running, up) in workers {
        let columns = &mut window.workers;
        let running = running || queued > 0;
        columns
            .free_at
            .push(100_000 + if running { 1_000 * busy_us } else { 0 });
        columns
            .busy_until
            .push(100_000 + if running { 800 * busy_us } else { 0 });
        // Some run for longer than their largest batch takes.
        columns.running_since.push(if running {
            100_000 - 2_500 * u64::from(queued)
        } else {
            0
        });
        columns.running_variant.push(if running { 0 } else { IDLE });
        columns.queued.push(queued);
        columns.up.push(u8::from(up));
        columns.incarnation.push(1);
    }
    window
}

/// The policy as a plain search.
fn plain(catalog: &Catalog, window: &Window) -> Plan {
    let (requests, workers) = (&window.requests, &window.workers);
    let capacity = Capacity::of(catalog);
    let mut free_at: Vec<Time> = workers.free_at.iter().map(|&at| Time(at)).collect();
    let mut held: Vec<u32> = (0..free_at.len())
        .map(|w| workers.queued[w] + u32::from(workers.running_variant[w] != IDLE))
        .collect();
    let mut taken = vec![false; requests.id.len()];
    let mut plan = Plan::default();
    let latency = |choice: FallbackChoice, batch| {
        let kind = catalog.workers[choice.worker.index()].kind;
        let (from, to) = (choice.from_stage, choice.to_stage);
        let profile = &catalog.profile;
        let latency = profile.latency(kind, choice.variant, from, to, choice.exit, batch);
        window.slowdown[kind.index()].of(latency.unwrap())
    };
    let room = |held: &[u32], w: usize| {
        workers.up[w] != 0 && held[w] <= 1.min(catalog.workers[w].queue_max)
    };
    let exits_of = |app: u32, w: usize| {
        let variants = catalog.variants_of(AppId(app));
        let memory = catalog.workers[w].memory_bytes;
        let variants = variants.filter(move |(_, variant)| variant.memory_bytes <= memory);
        variants.flat_map(move |(id, variant)| {
            let exits = (0u32..).zip(&variant.exits);
            exits.map(move |(e, exit)| {
                let choice = FallbackChoice {
                    worker: WorkerId(w as u32),
                    variant: id,
                    exit: Some(ExitId(e)),
                    from_stage: 0,
                    to_stage: exit.after_stage,
                };
                (exit.accuracy, choice)
            })
        })
    };
    // Until when a worker without room may run as predicted.
    let classes = catalog.workers.iter().map(|w| (w.kind, w.memory_bytes));
    let classes: std::collections::BTreeSet<_> = classes.collect();
    let busy: Vec<Option<Time>> = (0..free_at.len())
        .map(|w| {
            let runs = workers.up[w] == 1 && workers.running_variant[w] != IDLE;
            let kind = catalog.workers[w].kind;
            let batch = catalog.variants[0].max_batch;
            let longest = catalog
                .profile
                .latency(kind, VariantId(0), 0, 2, Some(ExitId(1)), batch);
            let longest = window.slowdown[kind.index()].of(longest.unwrap());
            let until = Time(workers.running_since[w]) + longest;
            let until = until.min(Time(workers.busy_until[w]));
            let is_busy = classes.len() > 1 && runs && !room(&held, w) && until > window.now;
            is_busy.then_some(until)
        })
        .collect();
    let mut left = 0;
    // Per app: the first end that is possible.
    let first_ends: Vec<Time> = (0..2)
        .map(|app| {
            let of_all = (0..free_at.len()).filter(|&w| room(&held, w) || busy[w].is_some());
            let exits = of_all.flat_map(|w| exits_of(app, w));
            let ends = exits.map(|(_, choice)| free_at[choice.worker.index()] + latency(choice, 1));
            ends.min().unwrap_or_default()
        })
        .collect();
    let hopeless = |i: usize| Time(requests.deadline[i]) < first_ends[requests.app[i] as usize];
    let mut order: Vec<usize> = (0..requests.id.len()).collect();
    order.sort_by_key(|&i| (hopeless(i), requests.deadline[i], i));
    for at in 0..order.len() {
        let first = order[at];
        let has_room = |w: usize| room(&held, w);
        let deadline = Time(requests.deadline[first]);
        let rated = |of: &dyn Fn(usize) -> bool| {
            let of = (0..free_at.len()).filter(|&w| of(w));
            let exits = of.flat_map(|w| exits_of(requests.app[first], w));
            let exits = exits.map(|(accuracy, choice)| {
                let start = free_at[choice.worker.index()];
                let kind = catalog.workers[choice.worker.index()].kind;
                let batch = capacity
                    .efficient(kind, choice.variant, choice.exit.unwrap())
                    .unwrap();
                let mut of_app =
                    (0..requests.id.len()).filter(|&i| requests.app[i] == requests.app[first]);
                let (waiting, last) = (requests.id.len() as u64, of_app.next_back().unwrap());
                let like = |w: &&WorkerSpec| {
                    let own = &catalog.workers[choice.worker.index()];
                    (w.kind, w.memory_bytes) == (own.kind, own.memory_bytes)
                };
                let alike = catalog.workers.iter().filter(like).count() as u64;
                let taken = window.slowdown[kind.index()].of(batch.latency);
                let rounds = waiting * taken.0 / (u64::from(batch.size) * alike);
                let end = start + latency(choice, 1);
                let keeps_up = waiting <= u64::from(batch.size)
                    || start + Micros(rounds) + taken <= Time(requests.deadline[last]);
                let worth = match (end <= deadline, keeps_up) {
                    (false, _) => (0, 0.0),
                    (true, false) => (1, f64::from(batch.size) / batch.latency.as_secs_f64()),
                    (true, true) => (2, accuracy),
                };
                (worth, end, choice)
            });
            // The first of the best, in the order of workers, variants and exits.
            exits.collect::<Vec<_>>().into_iter().reduce(|best, exit| {
                let better = exit.0 > best.0 || exit.0 == best.0 && exit.1 < best.1;
                if better { exit } else { best }
            })
        };
        let best = rated(&has_room);
        // A busy worker that ends it sooner, if that is better, keeps it for later.
        let later = rated(&|w| busy[w].is_some()).filter(|&(worth, end, _)| {
            best.is_some_and(|(other, sooner, _)| {
                left < LEFT_MAX && worth >= other && end < sooner && end <= deadline
            })
        });
        let later = later.filter(|_| progress_of(window, first).is_none());
        let choice = match progress_of(window, first) {
            Some(p) => has_room(p.worker.index()).then_some(FallbackChoice {
                worker: p.worker,
                variant: p.variant,
                exit: Some(ExitId(1)),
                from_stage: p.stages_run,
                to_stage: 2,
            }),
            None => later.or(best).map(|(_, _, choice)| choice),
        };
        let Some(choice) = choice.filter(|_| !taken[first]) else {
            continue;
        };
        let w = choice.worker.index();
        let max_batch = catalog.variants[choice.variant.index()].max_batch;
        let late = free_at[w] + latency(choice, 1) > deadline;
        let mut members = vec![first];
        for &i in &order[at + 1..] {
            let size = members.len() as u32;
            if size >= max_batch {
                break;
            }
            let same = requests.app[i] == requests.app[first];
            if taken[i] || !same || stages_run(window, i, choice) != Some(choice.from_stage) {
                continue;
            }
            if !late && (hopeless(i) || free_at[w] + latency(choice, size + 1) > deadline) {
                break;
            }
            members.push(i);
        }
        members.iter().for_each(|&i| taken[i] = true);
        free_at[w] += latency(choice, members.len() as u32);
        if later.is_some() {
            left += 1;
            let late = busy[w].unwrap() + Micros(1);
            plan.wake = Some(plan.wake.map_or(late, |wake: Time| wake.min(late)));
            continue;
        }
        held[w] += 1;
        plan.dispatch(
            Dispatch {
                worker: choice.worker,
                variant: choice.variant,
                from_stage: choice.from_stage,
                to_stage: choice.to_stage,
                exit: choice.exit,
                place: u32::MAX,
                size: 0,
            },
            members.iter().map(|&i| RequestId(requests.id[i])),
        );
    }
    plan
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn plans_equal_those_of_the_plain_search(
        memories in prop::collection::vec(prop_oneof![Just(5u64), Just(25), Just(100)], 1..6),
        fast in any::<bool>(),
        requests in prop::collection::vec(
            (0..2u32, 0..60u64, prop_oneof![6 => Just(None), 1 => (0..6u32).prop_map(Some)]),
            0..60,
        ),
        fresh_only in any::<bool>(),
        workers in prop::collection::vec((0..4u64, 0..3u32, any::<bool>(), prop::bool::weighted(0.9)), 6),
        slowdowns in prop::collection::vec(prop_oneof![Just(1_000u64), 600..4_000u64], 2),
    ) {
        let catalog = catalog(&memories, fast);
        let requests: Vec<_> = requests
            .into_iter()
            .map(|(app, deadline, parked)| (app, deadline, parked.filter(|_| !fresh_only)))
            .collect();
        let mut window = window(&catalog, &requests, &workers[..memories.len()]);
        let slowdown = |&observed| Slowdown::between(Micros(1_000), Micros(observed));
        window.slowdown = slowdowns.iter().map(slowdown).collect();
        let mut policy = EarliestDeadlineFirst::default();
        policy.configure(&catalog).unwrap();
        // Twice: buffers kept from one window must not change the next plan.
        for _ in 0..2 {
            let mut plan = Plan::default();
            policy.schedule(&window, &mut plan).unwrap();
            prop_assert_eq!(&plan, &plain(&catalog, &window));
        }
    }
}

#[test]
fn a_batch_waits_for_a_busy_worker_that_ends_it_sooner_than_an_idle_slow_one() {
    let catalog = catalog(&[100, 100], false);
    // The fast worker has room for its running batch only, the slow one takes 16 times as long.
    let slowdown = |ratio: u64| Slowdown::between(Micros(1_000), Micros(1_000 * ratio));
    let plan = |requests: &[(u32, u64, Option<u32>)], busy_us| {
        let workers = [(busy_us, 0, true, true), (0, 0, false, true)];
        let mut window = window(&catalog, requests, &workers);
        window.slowdown = vec![slowdown(1), slowdown(8)];
        let (mut policy, mut plan) = (EarliestDeadlineFirst::default(), Plan::default());
        policy.configure(&catalog).unwrap();
        policy.schedule(&window, &mut plan).unwrap();
        plan
    };
    let in_time = [(0, 80, None)];
    let left = plan(&in_time, 1);
    assert_eq!((left.dispatches.len(), left.wake), (0, Some(Time(100_801))));
    let of_slow = |plan: &Plan| plan.dispatches.iter().all(|d| d.worker == WorkerId(1));
    // Its end is past: it may hang.
    let late = plan(&in_time, 0);
    assert!(late.dispatches.len() == 1 && of_slow(&late), "{late:?}");
    // The queue of the fast worker counts.
    let many = plan(&[(0, 80, None); 60], 1);
    assert!(!many.dispatches.is_empty() && of_slow(&many), "{many:?}");
    // Neither can be in time.
    let hopeless = plan(&[(0, 13, None)], 1);
    assert!(
        hopeless.dispatches.len() == 1 && of_slow(&hopeless),
        "{hopeless:?}"
    );
}

//! Windows of every shape that a host can send, for any catalog.

use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_core::ids::{AppId, BatchId, RequestId, VariantId, WorkerId};
use switchyard_core::policy::Sights;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{
    Completion, End, IDLE, Placed, PlacedState, RequestProgress, Resident, Window,
};

/// When most windows are: late enough for any arrival.
const NOW: Time = Time(3_600_000_000);

/// Requests of the window with a lot of them.
const MANY: usize = 1_000;

/// Requests of the windows whose point is something else.
const FEW: usize = 24;

/// A window and what is special about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// In a few words.
    pub name: &'static str,
    /// What its window holds that an author may not have thought of, in the contract's words.
    pub special: &'static str,
    /// What the policy is asked.
    pub window: Window,
}

/// How a window is built, before the policy's wishes are looked at.
type Build = fn(&Catalog) -> Window;

const CASES: [(&str, &str, Build); 12] = [
    (
        "nothing pending",
        "the columns of `requests` are empty: there is no first request",
        idle,
    ),
    (
        "one request",
        "one request and every worker idle",
        |catalog| pending(catalog, 1),
    ),
    (
        "a thousand requests",
        "1,000 pending requests, more than workers and batches can take",
        |catalog| pending(catalog, MANY),
    ),
    (
        "every request late",
        "every deadline is before `now`: there is no slack",
        all_late,
    ),
    (
        "no idle worker",
        "every worker runs a batch: `busy-until` is after `now`",
        all_busy,
    ),
    (
        "queues full",
        "every worker runs a batch and has `queue-max` batches waiting",
        queues_full,
    ),
    (
        "a worker away",
        "`workers.up` of the first worker is 0",
        |catalog| away(catalog, 1),
    ),
    (
        "every worker away",
        "`workers.up` of every worker is 0",
        |catalog| away(catalog, catalog.workers.len()),
    ),
    (
        "requests half run",
        "`requests.progress` lists requests that are parked on a worker after their first stage",
        half_run,
    ),
    (
        "the clock at zero",
        "`now`, arrivals and deadlines are 0, arrival rates as well",
        at_zero,
    ),
    (
        "times without end",
        "`now` is near 2^64, deadlines are 0 or 2^64 - 1: sums and differences overflow",
        without_end,
    ),
    (
        "wishes nobody can meet",
        "`min-accuracy` is 1, more than any variant has",
        wishful,
    ),
];

/// Every case, as a policy with these wishes would see it. Windows follow one another.
pub fn windows(catalog: &Catalog, wants: Sights) -> Vec<Case> {
    let built = (1u64..).zip(CASES);
    let case = |(id, (name, special, build)): (u64, (&'static str, &'static str, Build))| {
        let mut window = build(catalog);
        window.id = id;
        Case {
            name,
            special,
            window: seen(window, wants),
        }
    };
    built.map(case).collect()
}

/// An ordinary window with so many pending requests and every worker idle.
pub fn window_of(catalog: &Catalog, wants: Sights, requests: usize) -> Window {
    seen(pending(catalog, requests), wants)
}

/// Leaves out what the policy has not asked for, as the host does.
fn seen(mut window: Window, wants: Sights) -> Window {
    if !wants.evidence {
        window.requests.evidence_index.clear();
        window.requests.evidence_counts.clear();
    }
    if !wants.completions {
        window.completions.clear();
    }
    if !wants.placed {
        window.placed = Placed::default();
    }
    if !wants.residents {
        window.residents.clear();
    }
    window
}

// === cases ===

/// Every worker idle and empty, half of them with a model.
fn idle(catalog: &Catalog) -> Window {
    let mut window = Window {
        id: 1,
        now: NOW,
        arrival_rate: vec![100.0; catalog.apps.len()],
        ..Window::default()
    };
    window.because.changed = true;
    for (w, worker) in (0u32..).zip(&catalog.workers) {
        let workers = &mut window.workers;
        workers.busy_until.push(0);
        workers.free_at.push(0);
        workers.running_since.push(0);
        workers.running_variant.push(IDLE);
        workers.queued.push(0);
        workers.parked.push(0);
        workers.up.push(1);
        let held = (0u32..).zip(&catalog.variants).find(|(_, variant)| {
            w.is_multiple_of(2) && variant.memory_bytes <= worker.memory_bytes
        });
        let taken = held.map_or(0, |(_, variant)| variant.memory_bytes);
        workers.free_memory.push(worker.memory_bytes - taken);
        window.residents.extend(held.map(|(variant, _)| Resident {
            worker: WorkerId(w),
            variant: VariantId(variant),
        }));
    }
    window
}

fn pending(catalog: &Catalog, requests: usize) -> Window {
    let mut window = idle(catalog);
    window.because.arrival = true;
    for n in 0..requests {
        let (app, age_us) = (n % catalog.apps.len().max(1), 10 * (requests - n) as u64);
        let arrival = NOW - Micros(age_us);
        let slo = catalog.apps.get(app).map_or(Micros::ZERO, |app| app.slo);
        push(&mut window, app, arrival, arrival + slo);
        if n % 2 == 0 {
            add_evidence(&mut window, catalog, n);
        }
    }
    window
}

fn all_late(catalog: &Catalog) -> Window {
    let mut window = pending(catalog, FEW);
    for (n, deadline) in window.requests.deadline.iter_mut().enumerate() {
        // From just late to later than any penalty lasts.
        *deadline = window.now.0 - 10u64.pow(n as u32 % 9);
    }
    let first = window.requests.deadline.iter().min().copied().unwrap_or(0);
    for (n, arrival) in window.requests.arrival.iter_mut().enumerate() {
        *arrival = first - 1_000 + n as u64;
    }
    window
}

/// Every worker runs a batch, and so many more wait behind it.
fn busy(catalog: &Catalog, queued: fn(&WorkerSpec) -> u32) -> Window {
    let mut window = pending(catalog, FEW);
    for (w, worker) in catalog.workers.iter().enumerate() {
        let variant = catalog
            .variants
            .iter()
            .position(|v| v.memory_bytes <= worker.memory_bytes);
        occupy(&mut window, catalog, w, variant.unwrap_or(0), 5_000);
        for _ in 0..queued(worker) {
            queue(&mut window, catalog, w);
        }
    }
    window
}

fn all_busy(catalog: &Catalog) -> Window {
    busy(catalog, |_| 0)
}

fn queues_full(catalog: &Catalog) -> Window {
    busy(catalog, |worker| worker.queue_max)
}

/// The first `count` workers are away.
fn away(catalog: &Catalog, count: usize) -> Window {
    let mut window = pending(catalog, FEW);
    for w in 0..count.min(catalog.workers.len()) {
        window.workers.up[w] = 0;
        window.workers.free_memory[w] = catalog.workers[w].memory_bytes;
        window
            .residents
            .retain(|resident| resident.worker.index() != w);
    }
    window
}

/// Some requests have run the first stage of a variant that has more, and are parked.
fn half_run(catalog: &Catalog) -> Window {
    let mut window = pending(catalog, FEW);
    let holds = |worker: &usize, variant: &usize| {
        let (worker, variant) = (&catalog.workers[*worker], &catalog.variants[*variant]);
        worker.parked_max > 0 && variant.stages > 1 && variant.memory_bytes <= worker.memory_bytes
    };
    let all = |w| (0..catalog.variants.len()).map(move |v| (w, v));
    let mut pairs = (0..catalog.workers.len()).flat_map(all);
    let Some((w, v)) = pairs.find(|(w, v)| holds(w, v)) else {
        return window;
    };
    let of_app = |n: &usize| AppId(window.requests.app[*n]) == catalog.variants[v].app;
    let room = catalog.workers[w].parked_max.min(3) as usize;
    let parked: Vec<usize> = (0..FEW).filter(of_app).take(room).collect();
    window.workers.parked[w] = parked.len() as u32;
    window
        .requests
        .progress
        .extend(parked.into_iter().map(|n| RequestProgress {
            index: n as u32,
            worker: WorkerId(w as u32),
            variant: VariantId(v as u32),
            stages_run: 1,
        }));
    window
}

fn at_zero(catalog: &Catalog) -> Window {
    let mut window = pending(catalog, FEW);
    window.now = Time::ZERO;
    window.requests.arrival.fill(0);
    window.requests.deadline.fill(0);
    window.arrival_rate.fill(0.0);
    window
}

/// The largest numbers, and deadlines before arrivals.
fn without_end(catalog: &Catalog) -> Window {
    let mut window = pending(catalog, FEW);
    window.now = Time(u64::MAX - 1);
    for n in 0..window.len() {
        window.requests.arrival[n] = if n < FEW / 2 { 0 } else { window.now.0 };
        window.requests.deadline[n] = if n % 2 == 0 { u64::MAX } else { 0 };
    }
    window.arrival_rate.fill(1e12);
    for n in 0..window.len() as u64 {
        window.completions.push(Completion {
            id: RequestId(n),
            app: AppId(0),
            end: End::Late,
            variant: None,
            exit: None,
            latency: Micros(u64::MAX),
        });
    }
    window
}

/// Accuracies that no variant has, priorities at both ends.
fn wishful(catalog: &Catalog) -> Window {
    let mut window = pending(catalog, FEW);
    for n in 0..window.len() {
        window.requests.min_accuracy[n] = 1.0;
        window.requests.priority[n] = if n % 2 == 0 { 1 } else { u32::MAX };
    }
    window
}

// === parts ===

fn push(window: &mut Window, app: usize, arrival: Time, deadline: Time) {
    let n = window.len() as u64;
    let requests = &mut window.requests;
    // Ids of requests that were served before lie between them.
    requests.id.push(1_000 + 3 * n);
    requests.app.push(app as u32);
    requests.arrival.push(arrival.0);
    requests.deadline.push(deadline.0);
    requests.priority.push((n % 3) as u32);
    requests
        .min_accuracy
        .push(if n.is_multiple_of(5) { 0.75 } else { 0.0 });
}

/// Neighbours of request `n`: all of one class, or spread.
fn add_evidence(window: &mut Window, catalog: &Catalog, n: usize) {
    let app = catalog.app(AppId(window.requests.app[n]));
    let Some((app, model)) = app.and_then(|app| Some((app, app.sneakpeek.as_ref()?))) else {
        return;
    };
    let classes = app.classes.len();
    let mut counts = vec![0; classes];
    for neighbour in 0..model.neighbours as usize {
        let class = if n.is_multiple_of(4) {
            n / 4
        } else {
            neighbour
        };
        counts[class % classes] += 1;
    }
    window.requests.evidence_index.push(n as u32);
    window.requests.evidence_counts.extend(counts);
}

/// The worker runs a batch of one that ends in `left_us`.
fn occupy(window: &mut Window, catalog: &Catalog, w: usize, variant: usize, left_us: u64) {
    let end = window.now + Micros(left_us);
    window.workers.busy_until[w] = end.0;
    window.workers.free_at[w] = end.0;
    window.workers.running_since[w] = window.now.0 - 1_000;
    window.workers.running_variant[w] = variant as u32;
    place(window, catalog, w, PlacedState::Running);
}

/// One more batch of one waits behind what runs.
fn queue(window: &mut Window, catalog: &Catalog, w: usize) {
    window.workers.queued[w] += 1;
    window.workers.free_at[w] += 5_000;
    place(window, catalog, w, PlacedState::Queued);
}

/// A request on a worker that runs something: of the same variant, in a batch of its own.
fn place(window: &mut Window, catalog: &Catalog, w: usize, state: PlacedState) {
    let n = window.placed.id.len() as u64;
    let variant = VariantId(window.workers.running_variant[w]);
    window.placed.push(
        RequestId(n + 1),
        catalog
            .variant(variant)
            .map_or(AppId(0), |variant| variant.app),
        window.now - Micros(20_000),
        window.now + Micros(80_000),
        WorkerId(w as u32),
        variant,
        BatchId(n + 1),
        state,
    );
}

#[cfg(test)]
mod tests {
    use super::super::{catalog, changed_catalog};
    use super::*;

    const ALL: Sights = Sights {
        evidence: true,
        completions: true,
        placed: true,
        residents: true,
    };

    /// As the contract has it: columns of equal length, oldest first, every number in place.
    fn assert_holds_together(catalog: &Catalog, Case { name, window, .. }: &Case) {
        let requests = &window.requests;
        let columns = [
            requests.app.len(),
            requests.arrival.len(),
            requests.deadline.len(),
            requests.priority.len(),
            requests.min_accuracy.len(),
        ];
        assert!(
            columns.iter().all(|&len| len == window.len()),
            "{name}: {columns:?}"
        );
        assert!(
            requests.id.is_sorted() && requests.arrival.is_sorted(),
            "{name}"
        );
        assert!(
            requests.arrival.iter().all(|&at| at <= window.now.0),
            "{name}"
        );
        let classes = requests.evidence_index.iter().map(|&n| {
            let app = catalog.app(AppId(requests.app[n as usize]));
            app.map_or(0, |app| app.classes.len())
        });
        assert_eq!(
            classes.sum::<usize>(),
            requests.evidence_counts.len(),
            "{name}"
        );
        let workers = &window.workers;
        assert_eq!(workers.up.len(), catalog.workers.len(), "{name}");
        for (w, spec) in catalog.workers.iter().enumerate() {
            assert!(workers.queued[w] <= spec.queue_max, "{name}");
            assert!(workers.free_memory[w] <= spec.memory_bytes, "{name}");
            let runs = workers.running_variant[w] != IDLE;
            assert_eq!(runs, workers.busy_until[w] > window.now.0, "{name}");
        }
        assert_eq!(window.arrival_rate.len(), catalog.apps.len(), "{name}");
    }

    #[test]
    fn every_case_is_a_window_that_a_host_could_send() {
        for catalog in [catalog(), changed_catalog()] {
            let cases = windows(&catalog, ALL);
            cases
                .iter()
                .for_each(|case| assert_holds_together(&catalog, case));
            let named = |name| {
                let case = cases.iter().find(|case| case.name == name);
                &case.expect("a case of that name").window
            };
            assert!(named("nothing pending").is_empty());
            assert_eq!(named("a thousand requests").len(), MANY);
            assert!(!named("requests half run").requests.progress.is_empty());
            assert!(!named("queues full").placed.id.is_empty());
            let late = named("every request late");
            assert!(late.requests.deadline.iter().all(|&at| at < late.now.0));
        }
    }

    #[test]
    fn what_is_not_asked_for_is_left_out() {
        for Case { name, window, .. } in windows(&catalog(), Sights::default()) {
            assert_eq!(window.placed, Placed::default(), "{name}");
            assert!(window.requests.evidence_counts.is_empty(), "{name}");
            assert!(
                window.completions.is_empty() && window.residents.is_empty(),
                "{name}"
            );
        }
    }
}

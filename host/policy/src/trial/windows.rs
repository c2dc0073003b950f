//! Windows of every shape that a host can send, for any catalog.

use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_core::cost::Cost;
use switchyard_core::estimate::Slowdown;
use switchyard_core::ids::{AppId, BatchId, RequestId, VariantId, WorkerId};
use switchyard_core::policy::WindowFields;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{
    Completion, End, IDLE, Placed, PlacedState, RequestCost, RequestProgress, Resident, Window,
};

/// The time of most windows: late enough for any arrival.
const NOW: Time = Time(3_600_000_000);

/// Requests of the large window.
const MANY: usize = 1_000;

/// Requests of the windows that test something other than the number of requests.
const FEW: usize = 24;

/// A made window and its particularity.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeWindow {
    /// In a few words.
    pub name: &'static str,
    /// Values that an author may not have expected, in the contract's words.
    pub special: &'static str,
    /// The window.
    pub window: Window,
}

/// Builds a window with all fields.
type BuildWindow = fn(&Catalog) -> Window;

const WINDOWS: [(&str, &str, BuildWindow); 13] = [
    (
        "nothing pending",
        "`requests` is absent (0.1: its columns are empty): there is no first request",
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
        "parked requests",
        "`progress` lists requests that are parked on a worker after their first stage",
        parked,
    ),
    (
        "the clock at zero",
        "`now`, arrivals and deadlines are 0, arrival rates as well",
        at_zero,
    ),
    (
        "the largest times",
        "`now` is near 2^64, deadlines are 0 or 2^64 - 1: sums and differences overflow",
        largest_times,
    ),
    (
        "accuracy out of reach",
        "`min-quality` is 1, more than any variant has",
        out_of_reach,
    ),
    (
        "requests of different lengths",
        "`cost` and `slowdown` are present: some requests take longer than those of the profile",
        of_lengths,
    ),
];

/// All made windows with the fields that a policy wants; their ids count up from 1.
pub fn made_windows(catalog: &Catalog, wants: WindowFields) -> Vec<MadeWindow> {
    let windows = (1..).zip(WINDOWS).map(|(id, (name, special, build))| {
        let mut window = build(catalog);
        window.id = id;
        MadeWindow {
            name,
            special,
            window: shown(window, wants),
        }
    });
    windows.collect()
}

/// An ordinary window with this number of pending requests and every worker idle.
pub fn window_of(catalog: &Catalog, wants: WindowFields, requests: usize) -> Window {
    shown(pending(catalog, requests), wants)
}

/// Leaves out the fields that the policy has not asked for, as the host does.
fn shown(mut window: Window, wants: WindowFields) -> Window {
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

// === windows ===

/// Every worker idle and empty, half of them with a resident variant.
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
        workers.incarnation.push(1);
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

/// Every worker runs a batch, and `queued` more wait behind it.
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
fn parked(catalog: &Catalog) -> Window {
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
fn largest_times(catalog: &Catalog) -> Window {
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
fn out_of_reach(catalog: &Catalog) -> Window {
    let mut window = pending(catalog, FEW);
    for n in 0..window.len() {
        window.requests.min_accuracy[n] = 1.0;
        window.requests.priority[n] = if n % 2 == 0 { 1 } else { u32::MAX };
    }
    window
}

/// Every second request costs 3.5 rows, and every kind of workers is slower than profiled.
fn of_lengths(catalog: &Catalog) -> Window {
    let mut window = pending(catalog, FEW);
    let costly = (0..window.len() as u32).skip(1).step_by(2);
    window.requests.costs = costly
        .map(|index| RequestCost {
            index,
            cost: Cost::from_f64(3.5),
        })
        .collect();
    let slowdown = Slowdown::between(Micros(1_000), Micros(1_500));
    window.slowdown = vec![slowdown; catalog.kinds.len()];
    window
}

// === parts ===

fn push(window: &mut Window, app: usize, arrival: Time, deadline: Time) {
    let n = window.len() as u64;
    let requests = &mut window.requests;
    // With gaps: the requests in between were served before.
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

/// Lets the worker run a batch of one that ends in `left_us`.
fn occupy(window: &mut Window, catalog: &Catalog, w: usize, variant: usize, left_us: u64) {
    let end = window.now + Micros(left_us);
    window.workers.busy_until[w] = end.0;
    window.workers.free_at[w] = end.0;
    window.workers.running_since[w] = window.now.0 - 1_000;
    window.workers.running_variant[w] = variant as u32;
    place(window, catalog, w, PlacedState::Running);
}

/// Adds a batch of one behind the running one.
fn queue(window: &mut Window, catalog: &Catalog, w: usize) {
    window.workers.queued[w] += 1;
    window.workers.free_at[w] += 5_000;
    place(window, catalog, w, PlacedState::Queued);
}

/// Adds a request in a batch of its own, of the variant that the worker runs.
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

    const ALL: WindowFields = WindowFields {
        evidence: true,
        completions: true,
        placed: true,
        residents: true,
    };

    /// Checks the contract: columns of equal length, oldest first, numbers within their ranges.
    fn assert_holds_together(catalog: &Catalog, made: &MadeWindow) {
        let MadeWindow { name, window, .. } = made;
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
    fn a_host_could_send_every_made_window() {
        for catalog in [catalog(), changed_catalog()] {
            let made = made_windows(&catalog, ALL);
            made.iter()
                .for_each(|made| assert_holds_together(&catalog, made));
            let named = |name| {
                let found = made.iter().find(|made| made.name == name);
                &found.expect("a window of that name").window
            };
            assert!(named("nothing pending").is_empty());
            assert_eq!(named("a thousand requests").len(), MANY);
            assert!(!named("parked requests").requests.progress.is_empty());
            assert!(!named("queues full").placed.id.is_empty());
            let late = named("every request late");
            assert!(late.requests.deadline.iter().all(|&at| at < late.now.0));
        }
    }

    #[test]
    fn fields_that_are_not_wanted_are_left_out() {
        for made in made_windows(&catalog(), WindowFields::default()) {
            let MadeWindow { name, window, .. } = made;
            assert_eq!(window.placed, Placed::default(), "{name}");
            assert!(window.requests.evidence_counts.is_empty(), "{name}");
            assert!(
                window.completions.is_empty() && window.residents.is_empty(),
                "{name}"
            );
        }
    }
}

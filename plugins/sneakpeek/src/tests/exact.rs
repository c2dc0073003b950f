//! Placements, the exact search, and the order beyond tau.

use proptest::prelude::*;
use switchyard_sdk::utility::utility;
use switchyard_sdk::{VariantId, WorkerId};

use super::*;
use crate::problem::Assignment;

/// The schedule beyond tau, of all groups.
fn in_order(problem: &SchedulingProblem<'_>, timelines: &[WorkerTimeline]) -> Schedule {
    order::one_by_one(
        problem,
        timelines,
        settings::SneakPeekAlgorithm::Grouped,
        u64::MAX,
    )
}

/// Apps `a` and `b`, one variant each, 10 ms per batch and 20 ms to load.
fn two_apps() -> CatalogBuilder {
    CatalogBuilder::new()
        .app("a", &["x", "y"])
        .variant("va", &[0.9, 0.9])
        .memory_bytes(600)
        .latency(10_000, 0)
        .load_us(20_000)
        .app("b", &["x", "y"])
        .variant("vb", &[0.9, 0.9])
        .memory_bytes(600)
        .latency(10_000, 0)
        .load_us(20_000)
}

#[test]
fn a_load_is_charged_once() {
    let roomy = two_apps().worker("cpu").worker_memory_bytes(2_000).build();
    let tight = two_apps().worker("cpu").worker_memory_bytes(1_000).build();
    // The ends of the groups a, b, a, from the start of the window.
    let ends = |catalog: &Catalog| {
        let window = WindowBuilder::new(catalog)
            .request("a")
            .request("b")
            .build();
        let scene = TestBed::new(catalog, "{}", &window, 1);
        let mut timeline = scene.timelines[0];
        [0, 1, 0].map(|group| {
            timeline = scene.problem().place(group, 0, &timeline).unwrap().1;
            timeline.free_us - scene.now_us
        })
    };
    // Load a 20, run 10; load b 20, run 10; a is resident: run 10.
    assert_eq!(ends(&roomy), [30_000, 60_000, 70_000]);
    // Memory for one variant: b evicts a, which is loaded again.
    assert_eq!(ends(&tight), [30_000, 60_000, 90_000]);

    let window = WindowBuilder::new(&roomy)
        .request("a")
        .resident(0, 0)
        .build();
    let scene = TestBed::new(&roomy, "{}", &window, 1);
    let (_, timeline) = scene.problem().place(0, 0, &scene.timelines[0]).unwrap();
    assert_eq!(
        timeline.free_us - scene.now_us,
        10_000,
        "a resident variant is not loaded"
    );
}

#[test]
fn a_large_group_runs_as_batches() {
    // 10 requests in batches of 4: 14 + 14 + 12 ms. Deadlines at 20 ms with the step penalty:
    // the first four answers count.
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .penalty(Penalty::Step)
        .variant("small", &[0.5, 0.5])
        .max_batch(4)
        .latency(10_000, 1_000)
        .variant("wide", &[0.4, 0.4])
        .max_batch(16)
        .latency(50_000, 0)
        .worker("cpu")
        .build();
    let mut window = WindowBuilder::new(&catalog).all_resident();
    for _ in 0..10 {
        window = window.request("a").slack_us(20_000);
    }
    let scene = TestBed::new(&catalog, "{}", &window.build(), 1);
    let (utility, timeline) = scene.problem().place(0, 0, &scene.timelines[0]).unwrap();
    assert_eq!(timeline.free_us - scene.now_us, 40_000);
    close(utility, 4.0 * 0.5);
}

#[test]
fn the_search_beats_a_wrong_order() {
    // One worker, 10 ms each, step penalty. a: accuracies 0.5 and 0.9 (variance 0.04), due in
    // 40 ms: 1.04 * exp(-0.04) = 0.9992. b: 0.8 only, due in 15 ms: exp(-0.015) = 0.9851.
    // By priority a runs first and b ends at 20 ms with utility 0: 0.9. b first: 0.8 + 0.9.
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .penalty(Penalty::Step)
        .variant("a0", &[0.5, 0.5])
        .latency(10_000, 0)
        .variant("a1", &[0.9, 0.9])
        .latency(10_000, 0)
        .app("b", &["x", "y"])
        .penalty(Penalty::Step)
        .variant("b0", &[0.8, 0.8])
        .latency(10_000, 0)
        .worker("cpu")
        .build();
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .request("a")
        .slack_us(40_000)
        .request("b")
        .slack_us(15_000)
        .build();
    let scene = TestBed::new(&catalog, "{}", &window, 1);
    let first = in_order(&scene.problem(), &scene.timelines);
    assert_eq!(
        first.choices.iter().map(|c| c.group).collect::<Vec<_>>(),
        [0, 1]
    );
    close(first.utility, 0.9);
    let (best, complete) = search::exact(&scene.problem(), &scene.timelines, first.clone(), 1_000);
    assert!(complete);
    close(best.utility, 1.7);
    let on = |group, model| Assignment {
        group,
        model,
        timeline: Some(0),
    };
    assert_eq!(best.choices, [on(1, 0), on(0, 1)]);
    // Without nodes the first schedule stays.
    let (kept, complete) = search::exact(&scene.problem(), &scene.timelines, first.clone(), 0);
    assert_eq!((kept, complete), (first, false));
}

#[test]
fn the_worker_is_part_of_the_assignment() {
    // Eq. 15. Fast takes 10 ms, slow 30 ms. a is due in 35 ms, b in 15 ms, c in 25 ms: b, then c on
    // fast (10, 20), a on slow (30): all in time, 2.7. One worker has at most two in time.
    let app = |builder: CatalogBuilder, name| {
        let app = builder.app(name, &["x", "y"]).penalty(Penalty::Step);
        let variant = app.variant(name, &[0.9, 0.9]);
        variant
            .latency_on("gpu", 10_000, 0)
            .latency_on("cpu", 30_000, 0)
    };
    let catalog = ["a", "b", "c"].into_iter().fold(CatalogBuilder::new(), app);
    let catalog = catalog
        .worker_of("slow", "cpu")
        .worker_of("fast", "gpu")
        .build();
    let mut window = WindowBuilder::new(&catalog).all_resident();
    for (app, slack_us) in [("a", 35_000), ("b", 15_000), ("c", 25_000)] {
        window = window.request(app).slack_us(slack_us);
    }
    let scene = TestBed::new(&catalog, "{}", &window.build(), 2);
    let first = in_order(&scene.problem(), &scene.timelines);
    let (best, _) = search::exact(&scene.problem(), &scene.timelines, first, 10_000);
    close(best.utility, 2.7);
    let worker = |group| {
        let choice = best
            .choices
            .iter()
            .find(|choice| choice.group == group)
            .unwrap();
        scene.timelines[choice.timeline.unwrap()].worker
    };
    assert_eq!(
        [worker(0), worker(1), worker(2)],
        [WorkerId(0), WorkerId(1), WorkerId(1)]
    );
}

#[test]
fn an_app_that_no_worker_can_run_is_skipped() {
    let catalog = two_apps().worker("tiny").worker_memory_bytes(100).build();
    let window = WindowBuilder::new(&catalog).request("a").build();
    let scene = TestBed::new(&catalog, "{}", &window, 1);
    let first = in_order(&scene.problem(), &scene.timelines);
    assert_eq!(first.choices, []);
    let (best, _) = search::exact(&scene.problem(), &scene.timelines, first, 1_000);
    assert_eq!(best.choices, []);
}

// === against brute force ===

#[derive(Clone, Debug)]
struct AppCase {
    penalty: u8,
    sneakpeek: Option<f64>,
    /// Two recalls, latency of one request, latency per further request, load time (us), largest
    /// batch.
    variants: Vec<(f64, f64, u64, u64, u64, u32)>,
    /// Slack and evidence.
    requests: Vec<(i64, Option<u32>)>,
}

fn app_case() -> impl Strategy<Value = AppCase> {
    let variant = (
        0.1..1.0,
        0.1..1.0,
        1_000u64..60_000,
        0u64..5_000,
        0u64..30_000,
        1u32..4,
    );
    let request = (1_000i64..150_000, proptest::option::of(0u32..6));
    (
        0u8..3,
        proptest::option::of(0.1..1.0),
        proptest::collection::vec(variant, 1..3),
        proptest::collection::vec(request, 1..4),
    )
        .prop_map(|(penalty, sneakpeek, variants, requests)| AppCase {
            penalty,
            sneakpeek,
            variants,
            requests,
        })
}

fn build(cases: &[AppCase], workers: &[(bool, u64)]) -> (Catalog, raw::Window) {
    let mut catalog = CatalogBuilder::new();
    for (i, case) in cases.iter().enumerate() {
        let penalties = [Penalty::Step, Penalty::Linear, Penalty::Sigmoid];
        catalog = catalog.app(&i.to_string(), &["x", "y"]);
        catalog = catalog.penalty(penalties[usize::from(case.penalty)]);
        if let Some(accuracy) = case.sneakpeek {
            catalog = catalog.sneakpeek(5, accuracy);
        }
        for &(x, y, base, more, load, max_batch) in &case.variants {
            let variant = catalog
                .variant("v", &[x, y])
                .max_batch(max_batch)
                .load_us(load);
            catalog = variant
                .latency_on("cpu", base, more)
                .latency_on("gpu", base / 3, more);
        }
    }
    for (is_gpu, _) in workers {
        catalog = catalog.worker_of("w", if *is_gpu { "gpu" } else { "cpu" });
    }
    let catalog = catalog.build();
    let mut window = WindowBuilder::new(&catalog).resident(0, 0);
    for (worker, &(_, busy_us)) in workers.iter().enumerate() {
        window = if busy_us > 0 {
            window.busy(worker, 0, busy_us)
        } else {
            window
        };
    }
    for (i, case) in cases.iter().enumerate() {
        for &(slack_us, evidence) in &case.requests {
            window = window.request(&i.to_string()).slack_us(slack_us);
            if let Some(count) = evidence {
                window = window.evidence(&[count, 5 - count]);
            }
        }
    }
    let window = window.build();
    (catalog, window)
}

/// The sum of utilities of assignments, computed without the code under test: from the catalog,
/// request by request.
fn worth(scene: &TestBed, choices: &[Assignment]) -> f64 {
    let mut timelines: Vec<(u64, Vec<VariantId>)> = scene
        .timelines
        .iter()
        .map(|timeline| (timeline.free_us, Vec::new()))
        .collect();
    let mut sum = 0.0;
    for choice in choices {
        let group = &scene.groups.list[choice.group];
        let app = &scene.apps[group.app.index()];
        let jobs = &scene.jobs.live[group.jobs.clone()];
        let mut count = |jobs: &[job::Job], end_us: u64| {
            for job in jobs {
                let accuracy = scene.jobs.accuracies[job.accuracies + choice.model];
                sum += utility(app.penalty, accuracy, job.due_us, end_us - job.arrival_us);
            }
        };
        let Some(at) = choice.timeline else {
            count(jobs, scene.now_us);
            continue;
        };
        let ((variant, exit), worker) = (
            app.models[choice.model].run.unwrap(),
            scene.timelines[at].worker,
        );
        let (free_us, loaded) = &mut timelines[at];
        if !scene.timelines[at].holds(variant) && !loaded.contains(&variant) {
            *free_us += scene.catalog.load_us(worker, variant);
            loaded.push(variant);
        }
        let largest = scene.catalog.latencies_us(worker, variant, exit).len();
        for batch in jobs.chunks(largest) {
            let size = batch.len() as u32;
            *free_us += scene
                .catalog
                .latency_us(worker, variant, exit, size)
                .unwrap();
            count(batch, *free_us);
        }
    }
    sum
}

/// Tries all orders, models and workers.
fn brute_force(scene: &TestBed, rest: &mut Vec<usize>, path: &mut Vec<Assignment>) -> f64 {
    if rest.is_empty() {
        return worth(scene, path);
    }
    let mut best = f64::NEG_INFINITY;
    for at in 0..rest.len() {
        let group = rest.remove(at);
        let app = &scene.apps[scene.groups.list[group].app.index()];
        for model in 0..app.models.len() {
            let runs = app.models[model].run.is_some();
            let timelines = if runs { 0..scene.timelines.len() } else { 0..1 };
            if !runs && scene.problem().answer(group).is_none() {
                continue;
            }
            for timeline in timelines {
                let timeline = runs.then_some(timeline);
                path.push(Assignment {
                    group,
                    model,
                    timeline,
                });
                best = best.max(brute_force(scene, rest, path));
                path.pop();
            }
        }
        rest.insert(at, group);
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_search_is_exact(
        cases in proptest::collection::vec(app_case(), 1..4),
        workers in proptest::collection::vec((any::<bool>(), prop_oneof![Just(0u64), 0u64..40_000]), 1..3),
    ) {
        let (catalog, window) = build(&cases, &workers);
        let scene = TestBed::new(&catalog, r#"{"label_split": false}"#, &window, 1);
        prop_assume!(scene.groups.list.len() <= 3);
        let problem = scene.problem();
        let first = in_order(&problem, &scene.timelines);
        prop_assert!((worth(&scene, &first.choices) - first.utility).abs() < 1e-9);
        let (best, complete) = search::exact(&problem, &scene.timelines, first.clone(), u32::MAX);
        prop_assert!(complete);
        prop_assert!((worth(&scene, &best.choices) - best.utility).abs() < 1e-9);
        let mut groups = (0..scene.groups.list.len()).collect();
        let most = brute_force(&scene, &mut groups, &mut Vec::new());
        prop_assert!((best.utility - most).abs() < 1e-6, "{} is not {most}", best.utility);
        // The result does not depend on the first schedule.
        let none = Schedule { choices: Vec::new(), utility: -1.0 };
        let (best, _) = search::exact(&problem, &scene.timelines, none, u32::MAX);
        prop_assert!((best.utility - most).abs() < 1e-6, "{} is not {most}", best.utility);
    }

    #[test]
    fn every_plan_is_accepted(
        cases in proptest::collection::vec(app_case(), 1..6),
        workers in proptest::collection::vec((any::<bool>(), prop_oneof![Just(0u64), 0u64..40_000]), 1..4),
    ) {
        let (catalog, window) = build(&cases, &workers);
        let mut policy = SneakPeek::configure(&catalog, "{}").unwrap();
        let decisions = run(&mut policy, &catalog, &window);
        // If all workers are idle, at least one request is launched or answered.
        let all_idle = workers.iter().all(|&(_, busy_us)| busy_us == 0);
        let settled = decisions.dispatched().len() + decisions.answers.len();
        prop_assert!(!all_idle || settled > 0 || window.requests.is_none());
    }
}

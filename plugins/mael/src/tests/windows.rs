//! Windows: which launches, on which workers, when.

use switchyard_sdk::bindings::exports::switchyard::policy::scheduling as raw;

use super::*;

/// Adds a placed batch of one request.
fn queue(window: &mut raw::Window, worker: u32, app: u32, id: u64, state: u8) {
    let placed = window.placed.get_or_insert_with(super::no_rows);
    placed.id.push(id);
    placed.app.push(app);
    placed.arrival.push(window.now);
    placed.deadline.push(window.now + 400_000);
    placed.worker.push(worker);
    placed.variant.push(app);
    placed.batch.push(id);
    placed.state.push(state);
}

#[test]
fn mael_counts_the_work_of_a_worker() {
    let catalog = test_bed().build();
    let idle = WindowBuilder::new(&catalog).all_resident();
    // Each on its fastest worker: 1/40 + 1/10.
    let two = idle.clone().request("long").request("short");
    assert_eq!(workers(&decide(&catalog, "{}", two)), [(1, 0), (2, 1)]);
    // Busy for 45 ms, a ends the long task at 85; b behind the short task at 70; c at 100. Best is
    // 1/10 + 1/70; with the short task on c, 1/20 + 1/60.
    let busy = idle.busy(0, 0, 45_000).request("long").request("short");
    assert_eq!(workers(&decide(&catalog, "{}", busy)), [(1, 1), (2, 1)]);
}

#[test]
fn a_short_task_is_queued_before_a_waiting_long_task() {
    let catalog = test_bed().queue_max(8).build();
    let mut window = WindowBuilder::new(&catalog)
        .all_resident()
        .busy(1, 0, 2_000)
        .queued(1, 1, 62_000)
        .request("short")
        .build();
    queue(&mut window, 1, 0, 90, 2);
    queue(&mut window, 1, 0, 91, 1);
    // wait_time(b) is 62 ms, so the paper's score prefers c (20 ms), although before the long task
    // it would end at 12 ms.
    let mut policy = Mael::configure(&catalog, "{}").unwrap();
    assert_eq!(workers(&run(&mut policy, &catalog, &window)), [(1, 2)]);
    // With c down and a busy it goes to the head of b's queue.
    window.workers.up[2] = 0;
    window.workers.busy_until[0] = window.now + 500_000;
    window.workers.running_variant[0] = 0;
    window.workers.free_at[0] = window.now + 500_000;
    let mut policy = Mael::configure(&catalog, "{}").unwrap();
    let mut index = switchyard_sdk::window::Index::default();
    index.fill(&catalog, &window).unwrap();
    let view = Window::new(&catalog, &window, &index);
    let mut plan = PlanBuilder::new(view);
    policy.schedule(&view, &mut plan).unwrap();
    let plan = plan.finish();
    let dispatch = &plan.dispatches[0];
    assert_eq!((dispatch.worker, dispatch.place), (1, 0));
}

#[test]
fn a_window_ends_on_time_or_when_a_worker_is_idle() {
    let catalog = test_bed().build();
    let all_busy = WindowBuilder::new(&catalog)
        .now_us(1_003_000)
        .all_resident();
    let all_busy = all_busy
        .busy(0, 0, 9_000)
        .busy(1, 0, 9_000)
        .busy(2, 0, 9_000);
    let mut policy = Mael::configure(&catalog, "{}").unwrap();
    let first = run(
        &mut policy,
        &catalog,
        &all_busy.clone().request("short").build(),
    );
    assert_eq!(first.batches.len(), 1, "the first task is placed at once");
    // The next task waits for the end of the window, a multiple of 10 ms.
    let second = all_busy.now_us(1_005_000);
    let waits = run(
        &mut policy,
        &catalog,
        &second.clone().request("short").build(),
    );
    assert_eq!((waits.batches.len(), waits.wake_us), (0, Some(1_010_000)));
    let ended = run(
        &mut policy,
        &catalog,
        &second.now_us(1_010_000).request("short").build(),
    );
    assert_eq!(ended.batches.len(), 1);
    // An idle worker ends the window, unless eager is off.
    let idle = WindowBuilder::new(&catalog)
        .now_us(1_013_000)
        .all_resident();
    let idle = idle.request("short").build();
    assert_eq!(run(&mut policy, &catalog, &idle).batches.len(), 1);
    let mut strict = Mael::configure(&catalog, r#"{"eager": false}"#).unwrap();
    let waits = run(&mut strict, &catalog, &idle);
    assert_eq!((waits.batches.len(), waits.wake_us), (0, Some(1_020_000)));
}

#[test]
fn full_queues_leave_tasks_pending() {
    let catalog = CatalogBuilder::new()
        .app("one", &["x"])
        .variant("one", &[0.9])
        .latency(10_000, 0)
        .worker("cpu")
        .queue_max(2)
        .build();
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .requests(5, "one");
    let decisions = decide(&catalog, "{}", window);
    assert_eq!(
        decisions.dispatched(),
        [1, 2, 3],
        "one runs, two are queued"
    );
    assert!(decisions.wake_us.is_some());
}

#[test]
fn the_load_time_of_a_variant_that_is_not_resident_counts() {
    let catalog = CatalogBuilder::new()
        .app("one", &["x"])
        .variant("one", &[0.9])
        .latency_on("fast", 10_000, 0)
        .latency_on("slow", 30_000, 0)
        .load_us(50_000)
        .worker_of("fast", "fast")
        .worker_of("slow", "slow")
        .build();
    let window = WindowBuilder::new(&catalog).resident(1, 0).request("one");
    assert_eq!(workers(&decide(&catalog, "{}", window)), [(1, 1)]);
}

#[test]
fn the_setting_model_and_min_accuracy_choose_the_variant() {
    let catalog = CatalogBuilder::new()
        .app("one", &["x"])
        .variant("small", &[0.7])
        .latency(10_000, 0)
        .variant("large", &[0.9])
        .latency(30_000, 0)
        .worker("cpu")
        .build();
    let window = WindowBuilder::new(&catalog).all_resident().request("one");
    let variant = |json: &str, window: &WindowBuilder<'_>| {
        decide(&catalog, json, window.clone()).batches[0].variant
    };
    assert_eq!(variant("{}", &window), 1);
    assert_eq!(variant(r#"{"model": "fast"}"#, &window), 0);
    let wants = window.min_quality(0.8);
    assert_eq!(variant(r#"{"model": "fast"}"#, &wants), 1);
}

#[test]
fn replan_maps_queued_tasks_again() {
    // A long task waits on b behind 30 ms; a, where it takes 40 ms, has become idle.
    let catalog = test_bed().queue_max(8).build();
    let json = r#"{"replan": true}"#;
    let mut policy = Mael::configure(&catalog, json).unwrap();
    let busy = WindowBuilder::new(&catalog).all_resident();
    let busy = busy.busy(0, 0, 500_000).busy(2, 0, 500_000);
    let first = run(&mut policy, &catalog, &busy.request("long").build());
    assert_eq!(workers(&first), [(1, 1)]);
    let later = WindowBuilder::new(&catalog)
        .now_us(1_020_000)
        .all_resident();
    let later = later
        .busy(1, 1, 30_000)
        .queued(1, 1, 90_000)
        .busy(2, 0, 500_000);
    let mut window = later.request("short").build();
    window.requests.as_mut().unwrap().id[0] = 2;
    queue(&mut window, 1, 1, 89, 2);
    queue(&mut window, 1, 0, 1, 1);
    let moved = run(&mut policy, &catalog, &window);
    assert_eq!(moved.revokes, [1]);
    // 1/30 on a and 1/90 on b, or 1/40 on b and 1/40 on a.
    assert_eq!(workers(&moved), [(1, 0), (2, 1)]);
    let mut still = Mael::configure(&catalog, "{}").unwrap();
    still.restore(&policy.save()).unwrap();
    assert!(run(&mut still, &catalog, &window).revokes.is_empty());
}

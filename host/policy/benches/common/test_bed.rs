//! A test bed: three apps, eight variants, eight workers, 128 profile rows.

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, SneakPeekModel, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, WindowFields};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, Resident, Window};

const APPS: u32 = 3;
const VARIANTS: u32 = 8;
const WORKERS: u32 = 8;
const BATCHES: u32 = 16;
const CLASSES: usize = 7;
/// Neighbours of each request.
const NEIGHBOURS: u32 = 5;

pub(crate) fn catalog() -> Catalog {
    catalog_of(WORKERS)
}

pub(crate) fn catalog_of(workers: u32) -> Catalog {
    Catalog {
        generation: 1,
        apps: (0..APPS).map(app).collect(),
        variants: (0..VARIANTS).map(variant).collect(),
        kinds: vec!["cpu".to_owned()],
        workers: (0..workers).map(worker).collect(),
        profile: Profile::new(0.95, rows(), []),
    }
}

fn app(n: u32) -> App {
    App {
        name: format!("app-{n}"),
        task: Task::Classify,
        classes: (0..CLASSES).map(|class| format!("class-{class}")).collect(),
        slo: Micros(100_000),
        penalty: Penalty::Sigmoid,
        prior: vec![1.0; CLASSES],
        frequencies: vec![1.0 / CLASSES as f64; CLASSES],
        sneakpeek: Some(SneakPeekModel {
            neighbours: NEIGHBOURS,
            accuracy: 0.7,
            recall: vec![0.7; CLASSES],
            confusion: None,
        }),
        late: Late::Serve,
    }
}

fn variant(n: u32) -> Variant {
    let accuracy = 0.75 + 0.03 * f64::from(n);
    Variant {
        name: format!("variant-{n}"),
        app: AppId(n % APPS),
        stages: 1,
        exits: vec![Exit {
            name: "end".to_owned(),
            after_stage: 1,
            accuracy,
            recall: vec![accuracy; CLASSES],
            confusion: None,
        }],
        memory_bytes: 1 << 20,
        max_batch: BATCHES,
        quality_unknown: false,
    }
}

fn worker(n: u32) -> WorkerSpec {
    WorkerSpec {
        name: format!("worker-{n}"),
        kind: KindId(0),
        memory_bytes: 1 << 30,
        queue_max: 4_096,
        parked_max: 0,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    }
}

fn rows() -> impl Iterator<Item = ProfileRow> {
    (0..VARIANTS).flat_map(|variant| {
        (1..=BATCHES).map(move |batch| ProfileRow {
            kind: KindId(0),
            variant: VariantId(variant),
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            batch,
            latency: Micros(u64::from((variant + 1) * (300 + 200 * batch))),
            energy_uj: None,
        })
    })
}

/// A window with idle workers and the window fields that a policy asks for.
pub(crate) fn window(pending: usize, wants: WindowFields) -> Window {
    window_of(WORKERS, pending, wants)
}

pub(crate) fn window_of(workers: u32, pending: usize, wants: WindowFields) -> Window {
    let mut window = Window {
        id: 1,
        now: Time(10_000_000),
        ..Window::default()
    };
    window.because.arrival = true;
    for n in 0..pending as u64 {
        let arrival = window.now.0 - pending as u64 + n;
        let requests = &mut window.requests;
        requests.id.push(1_000 + n);
        requests.app.push((n % u64::from(APPS)) as u32);
        requests.arrival.push(arrival);
        // Neither sorted nor random: neighbours differ, and the pattern repeats late.
        requests
            .deadline
            .push(arrival + 20_000 + (n * 7_919) % 10_007 * 10);
        requests.priority.push(0);
        requests.min_accuracy.push(0.0);
        if wants.evidence {
            requests.evidence_index.push(n as u32);
            let likely = n as usize % CLASSES;
            let counts = (0..CLASSES).map(|class| if class == likely { NEIGHBOURS } else { 0 });
            requests.evidence_counts.extend(counts);
        }
    }
    for n in 0..workers {
        let workers = &mut window.workers;
        workers.busy_until.push(0);
        workers.free_at.push(window.now.0);
        workers.running_since.push(0);
        workers.running_variant.push(IDLE);
        workers.queued.push(0);
        workers.parked.push(0);
        workers.free_memory.push(1 << 30);
        workers.up.push(1);
        workers.incarnation.push(1);
        if wants.residents {
            window.residents.push(Resident {
                worker: WorkerId(n),
                variant: VariantId(n % VARIANTS),
            });
        }
    }
    window.arrival_rate = vec![100.0; APPS as usize];
    window
}

/// The native twin of the guest `good`: each request alone to worker 0, on its app's first variant.
/// It computes almost nothing, and its plans are as long as its windows, so it measures the price of
/// crossing in both directions.
#[derive(Default)]
pub(crate) struct NativeGood {
    description: Description,
    /// By app: its first variant, with the stages and the last exit of that.
    first_variants: Vec<(VariantId, u32, ExitId)>,
}

impl Policy for NativeGood {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.first_variants = (0..catalog.apps.len() as u32)
            .filter_map(|app| catalog.variants_of(AppId(app)).next())
            .map(|(id, variant)| (id, variant.stages, variant.last_exit()))
            .collect();
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        for (id, app) in window.requests.id.iter().zip(&window.requests.app) {
            let (variant, to_stage, exit) = self.first_variants[*app as usize];
            let dispatch = Dispatch {
                worker: WorkerId(0),
                variant,
                from_stage: 0,
                to_stage,
                exit: Some(exit),
                place: u32::MAX,
                size: 1,
            };
            plan.dispatch(dispatch, [RequestId(*id)]);
        }
        Ok(())
    }
}

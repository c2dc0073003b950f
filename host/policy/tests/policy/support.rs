//! Shared by the tests: guests, a catalog, windows, and components made from WIT.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Policy, PolicyFault};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, Window};
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::{
    EngineOptions, Limits, LoadError, Loaded, Loader, LoaderOptions, PolicyEngine,
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

/// The folder into which `cargo xtask plugins --with-guests` puts the guests.
pub(crate) fn guests_dir() -> PathBuf {
    std::env::var_os("SWITCHYARD_GUESTS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/policies-test"),
        PathBuf::from,
    )
}

pub(crate) fn guest(name: &str) -> PathBuf {
    let file = guests_dir().join(format!("{name}.wasm"));
    assert!(
        file.is_file(),
        "{} is missing: run `cargo xtask plugins --with-guests` first",
        file.display()
    );
    file
}

/// One engine for all tests: it has a thread.
pub(crate) fn engine() -> PolicyEngine {
    static ENGINE: OnceLock<PolicyEngine> = OnceLock::new();
    ENGINE
        .get_or_init(|| PolicyEngine::live(&EngineOptions::default()).unwrap())
        .clone()
}

/// Budgets that are long enough on a busy test machine, unlike the defaults.
pub(crate) fn patient() -> Limits {
    Limits {
        window_budget: std::time::Duration::from_millis(200),
        restart_budget: std::time::Duration::from_secs(2),
        configure_budget: std::time::Duration::from_secs(2),
        ..Limits::default()
    }
}

pub(crate) fn loader(limits: Limits) -> Loader {
    let options = LoaderOptions {
        limits,
        seed: 7,
        ..LoaderOptions::default()
    };
    Loader::new(engine(), options)
}

/// Loads without recorded windows.
pub(crate) fn load(loader: &Loader, file: &Path) -> Result<Loaded, LoadError> {
    load_tried(loader, file, &[])
}

pub(crate) fn load_tried(
    loader: &Loader,
    file: &Path,
    windows: &[Window],
) -> Result<Loaded, LoadError> {
    let catalog = catalog();
    let trial = PolicyTrial {
        catalog: &catalog,
        windows,
    };
    loader.load(file, trial)
}

pub(crate) fn load_guest(name: &str) -> Box<dyn Policy> {
    match load(&loader(patient()), &guest(name)) {
        Ok(loaded) => loaded.policy,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn ask(policy: &mut dyn Policy, window: &Window) -> Result<Plan, PolicyFault> {
    let mut plan = Plan::default();
    policy.schedule(window, &mut plan)?;
    Ok(plan)
}

/// One app, one variant of one stage and exit, two workers of one kind.
pub(crate) fn catalog() -> Catalog {
    let rows = [1, 8].map(|batch| ProfileRow {
        kind: KindId(0),
        variant: VariantId(0),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        batch,
        latency: Micros(1_000 * u64::from(batch)),
        energy_uj: None,
    });
    let worker = |name: &str| WorkerSpec {
        name: name.to_owned(),
        kind: KindId(0),
        memory_bytes: 1 << 30,
        queue_max: 4_096,
        parked_max: 0,
        can: Capabilities::ALL,
        transfer: Micros::ZERO,
        outstanding: 1,
    };
    Catalog {
        generation: 1,
        apps: vec![App {
            name: "heart".to_owned(),
            task: Task::Classify,
            classes: vec!["normal".to_owned(), "other".to_owned()],
            slo: Micros(100_000),
            penalty: Penalty::Linear,
            prior: vec![1.0, 1.0],
            frequencies: vec![0.5, 0.5],
            sneakpeek: None,
            late: Late::Serve,
        }],
        variants: vec![Variant {
            name: "small".to_owned(),
            app: AppId(0),
            stages: 1,
            exits: vec![Exit {
                name: "end".to_owned(),
                after_stage: 1,
                accuracy: 0.9,
                recall: vec![0.9, 0.9],
                confusion: None,
            }],
            memory_bytes: 1 << 20,
            max_batch: 8,
            quality_unknown: false,
        }],
        kinds: vec!["cpu".to_owned()],
        workers: vec![worker("one"), worker("two")],
        profile: Profile::new(0.95, rows, []),
    }
}

/// A window with `pending` requests and idle workers.
pub(crate) fn window(id: u64, pending: u64) -> Window {
    let mut window = Window {
        id,
        now: Time(1_000_000 * id),
        ..Window::default()
    };
    window.because.arrival = true;
    for n in 0..pending {
        let arrival = window.now.0 - pending + n;
        window.requests.id.push(1_000 * id + n);
        window.requests.app.push(0);
        window.requests.arrival.push(arrival);
        window.requests.deadline.push(arrival + 100_000);
        window.requests.priority.push(0);
        window.requests.min_accuracy.push(0.0);
    }
    for _ in 0..2 {
        window.workers.busy_until.push(0);
        window.workers.free_at.push(0);
        window.workers.running_since.push(0);
        window.workers.running_variant.push(IDLE);
        window.workers.queued.push(0);
        window.workers.parked.push(0);
        window.workers.free_memory.push(1 << 30);
        window.workers.up.push(1);
        window.workers.incarnation.push(1);
    }
    window.arrival_rate.push(10.0);
    window
}

/// A component of the given world. Its functions trap.
pub(crate) fn made_up(wit: &str) -> Vec<u8> {
    ComponentEncoder::default()
        .module(&made_up_module(wit))
        .unwrap()
        .encode()
        .unwrap()
}

/// The core module in such a component.
pub(crate) fn made_up_module(wit: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_source("made-up.wit", wit).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mangling = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
    let mut module = dummy_module(&resolve, world, mangling);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    module
}

/// A FIFO without a writer.
pub(crate) fn fifo(path: &Path) {
    use rustix::fs::{CWD, Mode, mkfifoat};
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

/// A component with further core instances, each with a memory of its own.
pub(crate) fn with_memories(component: &[u8], instances: u32, mib_each: u32) -> Vec<u8> {
    let pages = leb128(mib_each * 16);
    let memory = [&[1, 0][..], &pages].concat();
    let module = [
        b"\0asm\x01\0\0\0\x05",
        &leb128(memory.len() as u32)[..],
        &memory,
    ];
    with_instances(component, &module.concat(), instances)
}

/// A component with further instances of a core module.
pub(crate) fn with_instances(component: &[u8], module: &[u8], instances: u32) -> Vec<u8> {
    const CORE_MODULE: u8 = 1;
    const CORE_INSTANCE: u8 = 2;
    let index = sections(component)
        .into_iter()
        .filter(|&id| id == CORE_MODULE)
        .count();
    let instance = [&[0][..], &leb128(index as u32), &[0]].concat();
    let instances = [leb128(instances), instance.repeat(instances as usize)].concat();
    let mut component = component.to_vec();
    for (id, content) in [(CORE_MODULE, module.to_vec()), (CORE_INSTANCE, instances)] {
        component.push(id);
        component.extend(leb128(content.len() as u32));
        component.extend(content);
    }
    component
}

/// The ids of the outer sections.
fn sections(component: &[u8]) -> Vec<u8> {
    let (mut at, mut ids) = (8, Vec::new());
    while at < component.len() {
        ids.push(component[at]);
        let (mut size, mut shift) = (0, 0);
        loop {
            at += 1;
            size |= usize::from(component[at] & 0x7f) << shift;
            shift += 7;
            if component[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1 + size;
    }
    ids
}

fn leb128(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

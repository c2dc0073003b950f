//! Policies that are sent only the workers that changed see all of them, whatever comes between.

use std::path::Path;

use fleet::{FAILS, Fleet, TRAPS};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{VariantId, WorkerId};
use switchyard_core::policy::Policy;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, Resident, Window};
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::{Loader, LoaderOptions, PolicyVersion};
use switchyard_sdk::native::Native;

use crate::support::{ask, catalog, engine, guest, patient, window};

const SHOWS: &str = r#"{"shows": true}"#;

/// More workers than one word of marks has bits.
const WORKERS: usize = 130;

pub(crate) fn many(workers: usize) -> Catalog {
    let mut catalog = catalog();
    let spec = catalog.workers[0].clone();
    catalog.workers = (0..workers)
        .map(|n| {
            let mut spec = spec.clone();
            spec.name = format!("w{n}");
            spec
        })
        .collect();
    catalog
}

pub(crate) fn component(catalog: &Catalog, windows: &[Window]) -> Box<dyn Policy> {
    let file = guest("fleet-changed");
    let bytes = std::fs::read(&file).unwrap();
    let version = PolicyVersion::new(&file, bytes, SHOWS.to_owned());
    let trial = PolicyTrial { catalog, windows };
    let options = LoaderOptions {
        limits: patient(),
        // Compiled once.
        cache_dir: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet")),
        ..LoaderOptions::default()
    };
    let loaded = Loader::new(engine(), options).load_version(&version, trial);
    loaded.unwrap().policy
}

pub(crate) fn twin(catalog: &Catalog) -> Native<Fleet<true>> {
    let mut twin = Native::new(SHOWS);
    twin.configure(catalog).unwrap();
    twin
}

/// The line with the workers that changed, and the lines of all workers.
fn shown(policy: &mut dyn Policy) -> (String, String) {
    let text = String::from_utf8(policy.save().unwrap()).unwrap();
    let (changed, workers) = text.split_once('\n').unwrap();
    (changed.to_owned(), workers.to_owned())
}

/// The pool that the windows show. Ends and backlogs are kept apart, as in the core.
struct Pool {
    random: Pcg64,
    window: Window,
    /// By worker: end of the running batch, and the time of the waiting ones.
    ends: Vec<(u64, u64)>,
    /// Workers that were written to since the component's last window.
    written: Vec<bool>,
}

impl Pool {
    fn new(workers: usize, seed: u64) -> Self {
        let mut pool = Self {
            random: Pcg64::seed_from_u64(seed),
            window: window(1, 1),
            ends: Vec::new(),
            written: Vec::new(),
        };
        pool.window.now = Time(10_000_000);
        pool.grow(workers);
        pool
    }

    /// Adds idle workers up to this number.
    fn grow(&mut self, workers: usize) {
        let columns = &mut self.window.workers;
        columns.busy_until.resize(workers, 0);
        columns.free_at.resize(workers, 0);
        columns.running_since.resize(workers, 0);
        columns.running_variant.resize(workers, IDLE);
        columns.queued.resize(workers, 0);
        columns.parked.resize(workers, 0);
        columns.free_memory.resize(workers, 1 << 30);
        columns.up.resize(workers, 1);
        columns.incarnation.resize(workers, 1);
        self.ends.resize(workers, (0, 0));
        self.written.resize(workers, true);
    }

    /// Some time later, after some workers changed.
    fn step(&mut self) {
        let random = &mut self.random;
        self.window.id += 1;
        self.window.now = Time(self.window.now.0 + random.random_range(0..2_000));
        let now = self.window.now.0;
        let columns = &mut self.window.workers;
        for _ in 0..random.random_range(0..4) {
            let at = random.random_range(0..columns.up.len());
            self.written[at] = true;
            match random.random_range(0..6) {
                0 => {
                    self.ends[at] = (now + random.random_range(1..5_000), 0);
                    columns.running_since[at] = now;
                    columns.running_variant[at] = 0;
                }
                1 => {
                    self.ends[at] = (0, 0);
                    columns.running_since[at] = 0;
                    columns.running_variant[at] = IDLE;
                    columns.queued[at] = 0;
                }
                2 => {
                    self.ends[at].1 += 700;
                    columns.queued[at] += 1;
                }
                3 => columns.parked[at] = random.random_range(0..3),
                4 => {
                    columns.up[at] ^= 1;
                    columns.incarnation[at] += u32::from(random.random_bool(0.5));
                }
                _ => {
                    let held = &mut self.window.residents;
                    let before = held.len();
                    held.retain(|resident| resident.worker.index() != at);
                    if held.len() == before {
                        let resident = Resident {
                            worker: WorkerId(at as u32),
                            variant: VariantId(0),
                        };
                        let place = held.partition_point(|other| other.worker < resident.worker);
                        held.insert(place, resident);
                    }
                    columns.free_memory[at] ^= 1;
                }
            }
        }
        for (at, &(end, backlog)) in self.ends.iter().enumerate() {
            columns.busy_until[at] = end.max(now);
            columns.free_at[at] = end.max(now) + backlog;
            // The end of a queue behind an overdue batch moves on with the time.
            self.written[at] |= backlog > 0 && end < now;
        }
    }

    fn with_priority(&self, priority: u32) -> Window {
        let mut window = self.window.clone();
        window.requests.priority[0] = priority;
        window
    }

    /// Only workers that were written to may be shown.
    fn check_shown(&mut self, changed: &str, is_whole: bool) {
        if is_whole {
            assert_eq!(changed, "all");
        } else {
            let mut shown = changed
                .split_whitespace()
                .map(|id| id.parse::<usize>().unwrap());
            assert!(shown.all(|worker| self.written[worker]), "{changed}");
        }
        self.written.fill(false);
    }
}

/// Faults, windows decided by others, swaps, new catalogs: afterwards the component sees the workers of
/// its native twin, which is shown all of them in every window.
#[test]
fn a_policy_that_is_sent_changes_sees_every_worker_after_whatever_happens() {
    for seed in 0..4 {
        let mut workers = WORKERS;
        let mut pool = Pool::new(workers, seed);
        let mut changed = component(&many(workers), &[]);
        let mut native = twin(&many(workers));
        let mut is_whole = true;
        let mut windows = [0_u32; 2];
        for _ in 0..600 {
            pool.step();
            match pool.random.random_range(0..100) {
                // Decided by another policy.
                0..10 => continue,
                10..14 => {
                    ask(changed.as_mut(), &pool.with_priority(FAILS)).unwrap_err();
                    is_whole = true;
                }
                14..17 => {
                    ask(changed.as_mut(), &pool.with_priority(TRAPS)).unwrap_err();
                    is_whole = true;
                }
                17..20 => {
                    let state = changed.save().unwrap();
                    changed = component(&many(workers), &[pool.window.clone()]);
                    changed.restore(&state).unwrap();
                    is_whole = true;
                }
                20..22 => {
                    workers += 1;
                    pool.grow(workers);
                    changed.configure(&many(workers)).unwrap();
                    native.configure(&many(workers)).unwrap();
                    pool.step();
                    is_whole = true;
                }
                // Another run of the pool: time begins anew.
                22..23 => {
                    pool.window.now = Time(pool.window.now.0 / 2);
                    pool.step();
                    is_whole = true;
                }
                _ => {}
            }
            let plan = ask(changed.as_mut(), &pool.window).unwrap();
            assert_eq!(plan, ask(&mut native, &pool.window).unwrap());
            let ((rows, seen), (all, expected)) = (shown(changed.as_mut()), shown(&mut native));
            assert_eq!(seen, expected, "seed {seed}, window {}", pool.window.id);
            assert_eq!(all, "all");
            pool.check_shown(&rows, is_whole);
            windows[usize::from(is_whole)] += 1;
            is_whole = false;
        }
        assert!(windows[0] > 4 * windows[1], "{windows:?}");
    }
}

#[test]
fn a_window_without_changes_shows_no_worker() {
    let mut pool = Pool::new(WORKERS, 1);
    let mut policy = component(&many(WORKERS), &[]);
    ask(policy.as_mut(), &pool.window).unwrap();
    assert_eq!(shown(policy.as_mut()).0, "all");
    pool.window.now += Micros(5_000);
    pool.window.workers.busy_until.fill(pool.window.now.0);
    pool.window.workers.free_at.fill(pool.window.now.0);
    ask(policy.as_mut(), &pool.window).unwrap();
    assert_eq!(
        shown(policy.as_mut()).0,
        "",
        "idle workers do not change with the time"
    );
    pool.window.workers.parked[WORKERS - 1] = 1;
    ask(policy.as_mut(), &pool.window).unwrap();
    assert_eq!(shown(policy.as_mut()).0, (WORKERS - 1).to_string());
}

//! A pool with synthetic executors, whose batches a test controls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use smallvec::smallvec;
use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, Task, Variant, WorkerSpec,
};
use switchyard_core::cost::Cost;
use switchyard_core::ids::{AppId, ExitId, KindId, RequestId, VariantId};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_executor::synthetic::{InjectedFault, WaitMode};
use switchyard_executor::{
    CacheError, Device, ExecuteError, Executor, InputTensor, Job, JobOutcome, LoadError,
    LoadedModel, ModelSource, Residency, SyntheticExecutor, Weights,
};
use switchyard_server::clock::Clock;
use switchyard_server::driver::{
    CallEnd, Message, NotServed, Pool, PoolCall, PoolExecutor, PoolHandle, PoolParts, PoolStatus,
    PoolWeights, RowInput, VariantCounters,
};
use switchyard_server::readiness::Readiness;
use switchyard_server::telemetry::Registry;
use tokio::sync::oneshot;

pub(crate) const FAR: Duration = Duration::from_secs(60);

/// Orders to the executors of all starts of the worker.
#[derive(Default)]
pub(crate) struct Controls {
    /// Batches with this request fail.
    pub(crate) poison: Mutex<Option<RequestId>>,
    /// The worker thread panics at the end of its next batch.
    pub(crate) crash: AtomicBool,
    /// The next batch hangs until `released`.
    pub(crate) hang: AtomicBool,
    pub(crate) hangs: AtomicBool,
    pub(crate) released: Mutex<bool>,
    pub(crate) release: Condvar,
    /// Variants that cannot be loaded.
    pub(crate) broken: Mutex<Vec<VariantId>>,
    /// Sizes of all batches.
    pub(crate) sizes: Mutex<Vec<usize>>,
    /// Variants with other weights, and variants that were unloaded.
    pub(crate) replaced: Mutex<Vec<VariantId>>,
    pub(crate) unloaded: Mutex<Vec<VariantId>>,
}

impl Controls {
    pub(crate) fn release(&self) {
        *self.released.lock().unwrap() = true;
        self.release.notify_all();
    }
}

struct Controlled {
    inner: SyntheticExecutor,
    controls: Arc<Controls>,
}

impl Executor for Controlled {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        let controls = &self.controls;
        controls.sizes.lock().unwrap().push(job.rows.len());
        let is_fresh = job.from_stage == 0;
        if is_fresh && job.rows.iter().any(|row| row.input.is_none()) {
            return JobOutcome {
                result: Err(ExecuteError::Injected("an input is missing".to_owned())),
                compute: Micros(1),
                load: Micros::ZERO,
            };
        }
        if controls.hang.swap(false, Ordering::SeqCst) {
            controls.hangs.store(true, Ordering::SeqCst);
            let mut released = controls.released.lock().unwrap();
            while !*released {
                released = controls.release.wait(released).unwrap();
            }
        }
        self.inner.run(job)
    }

    fn release(&mut self, request: RequestId) {
        self.inner.release(request);
    }

    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        if self.controls.broken.lock().unwrap().contains(&variant) {
            return Err(LoadError::new(format!("variant {}", variant.0), "cut off").into());
        }
        self.inner.preload(variant)
    }

    fn unload(&mut self, variant: VariantId) {
        self.controls.unloaded.lock().unwrap().push(variant);
        self.inner.unload(variant);
    }

    fn replace(&mut self, variant: VariantId, _: &Arc<LoadedModel>) {
        self.controls.replaced.lock().unwrap().push(variant);
    }

    fn residency(&self) -> Residency {
        let ran = !self.controls.sizes.lock().unwrap().is_empty();
        if ran && self.controls.crash.swap(false, Ordering::SeqCst) {
            panic!("as a bug would");
        }
        self.inner.residency()
    }
}

/// There is no model to load.
struct NoModels;

impl ModelSource for NoModels {
    fn name(&self, variant: VariantId) -> String {
        format!("app/{}", variant.0)
    }

    fn memory_bytes(&self, _: VariantId) -> Result<u64, LoadError> {
        Ok(1)
    }

    fn load(&self, variant: VariantId, _: &Device) -> Result<LoadedModel, LoadError> {
        Err(LoadError::new(self.name(variant), "there is none"))
    }
}

/// Two apps with one variant each, whose batches take 20 ms, on one worker.
fn catalog() -> Arc<Catalog> {
    let app = |name: &str| App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: vec!["a".to_owned(), "b".to_owned()],
        slo: Micros::from_millis(100),
        penalty: Penalty::Sigmoid,
        prior: vec![0.5, 0.5],
        frequencies: vec![0.5, 0.5],
        sneakpeek: None,
        late: Late::Serve,
    };
    let variant = |app| Variant {
        name: "only".to_owned(),
        app: AppId(app),
        stages: 1,
        exits: vec![Exit {
            name: "end".to_owned(),
            after_stage: 1,
            accuracy: 0.9,
            recall: vec![0.9; 2],
            confusion: None,
        }],
        memory_bytes: 1,
        max_batch: 8,
        quality_unknown: false,
    };
    let row = |v, batch| ProfileRow {
        kind: KindId(0),
        variant: VariantId(v),
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        batch,
        latency: Micros::from_millis(20),
        energy_uj: None,
    };
    let rows = [row(0, 1), row(0, 8), row(1, 1), row(1, 8)];
    Arc::new(Catalog {
        generation: 1,
        apps: vec![app("heart"), app("fall")],
        variants: vec![variant(0), variant(1)],
        kinds: vec!["cpu-1t".to_owned()],
        workers: vec![WorkerSpec {
            name: "w0".to_owned(),
            kind: KindId(0),
            memory_bytes: 10,
            queue_max: 4,
            parked_max: 4,
            can: Capabilities::ALL,
            transfer: Micros::ZERO,
            outstanding: 1,
        }],
        profile: Profile::new(0.95, rows, []),
    })
}

impl Drop for TestPool {
    fn drop(&mut self) {
        // A test that fails must not wait for a batch that hangs.
        self.controls.release();
    }
}

pub(crate) struct TestPool {
    pub(crate) pool: Arc<PoolHandle>,
    pub(crate) controls: Arc<Controls>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) registry: Registry,
    _running: Pool,
}

impl TestPool {
    pub(crate) async fn start() -> Self {
        Self::start_with(Controls::default()).await
    }

    pub(crate) async fn start_with(controls: Controls) -> Self {
        let controls = Arc::new(controls);
        let catalog = catalog();
        let build = {
            let (catalog, controls) = (Arc::clone(&catalog), Arc::clone(&controls));
            move || {
                let poisoned = Arc::clone(&controls);
                let catalog = Arc::clone(&catalog);
                let inner = SyntheticExecutor::new(catalog, KindId(0), WaitMode::Sleep, 10)
                    .with_faults(move |job| {
                        let poison = (*poisoned.poison.lock().unwrap())?;
                        let has_it = job.rows.iter().any(|row| row.request == poison);
                        has_it.then(|| InjectedFault::Error("poisoned".to_owned()))
                    });
                let controls = Arc::clone(&controls);
                Ok(Box::new(Controlled { inner, controls }) as Box<dyn Executor>)
            }
        };
        let registry = Registry::new();
        let parts = PoolParts {
            traces: None,
            name: "main".to_owned(),
            scheduler: SchedulerConfig::default(),
            executors: vec![PoolExecutor {
                build: Box::new(build),
                threads: 1,
                cores: Vec::new(),
                pause_max: std::time::Duration::from_secs(30),
                address: None,
            }],
            pinned: vec![Vec::new()],
            weights: PoolWeights::new(Weights::new(Arc::new(NoModels)), vec![Device::Cpu]),
            medians: catalog.profile.clone(),
            drift_ratio: 1e9,
            evidence: vec![None, None],
            inbox_max: 1_024,
            counters: Arc::new(VariantCounters::new(2)),
            catalog,
        };
        let running = Pool::start(parts, Clock::start(), &registry).unwrap();
        let made = Self {
            pool: Arc::clone(running.handle()),
            controls,
            readiness: Arc::clone(running.handle().readiness()),
            registry,
            _running: running,
        };
        made.until(|pool| pool.readiness.check().is_ok()).await;
        made
    }

    /// One row.
    pub(crate) async fn serve(&self, app: u32, timeout: Duration) -> CallEnd {
        self.try_serve(app, timeout).await.unwrap()
    }

    pub(crate) async fn try_serve(
        &self,
        app: u32,
        timeout: Duration,
    ) -> Result<CallEnd, NotServed> {
        self.try_serve_rows(app, timeout, 1).await
    }

    /// One call of this many rows.
    pub(crate) async fn try_serve_rows(
        &self,
        app: u32,
        timeout: Duration,
        rows: usize,
    ) -> Result<CallEnd, NotServed> {
        let row = || RowInput {
            tensors: smallvec![InputTensor::F32(vec![1.0].into())],
            peek: None,
            cost: Cost::ONE,
        };
        let arrival = self.pool.clock().now();
        let call = PoolCall {
            trace: None,
            app: AppId(app),
            pinned: None,
            arrival,
            deadline: arrival + Micros::from(timeout),
            priority: 0,
            min_accuracy: 0.0,
            rows: (0..rows).map(|_| row()).collect(),
        };
        self.pool.serve(call).await
    }

    pub(crate) async fn status(&self) -> PoolStatus {
        let (reply, status) = oneshot::channel();
        self.pool.send(Message::Status(reply));
        status.await.unwrap()
    }

    pub(crate) async fn until(&self, wanted: impl Fn(&Self) -> bool) {
        let give_up = std::time::Instant::now() + FAR;
        while !wanted(self) {
            assert!(std::time::Instant::now() < give_up, "it never came");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The value of a metric's line that begins so.
    pub(crate) fn metric(&self, begin: &str) -> Option<f64> {
        let text = self.registry.render();
        let line = text.lines().find(|line| line.starts_with(begin))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

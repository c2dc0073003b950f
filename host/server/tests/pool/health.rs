//! Liveness, readiness and the metrics of policies.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::VariantId;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault, Triggers};
use switchyard_core::window::Window;
use switchyard_models::card::Task;
use switchyard_policy::recording::PolicyRecord;
use switchyard_server::assembly::AppTensors;
use switchyard_server::backend::{Additions, PoolBackend};
use switchyard_server::config::ServerConfig;
use switchyard_server::driver::Message;
use switchyard_server::ingress::{AppIndex, Backend, Control, InferError};

use crate::test_bed::{Controls, FAR, TestPool};

fn backend(pool: &TestPool) -> PoolBackend {
    backend_with(pool, ServerConfig::default())
}

fn backend_with(pool: &TestPool, config: ServerConfig) -> PoolBackend {
    let tensors = AppTensors {
        task: Task::Classify,
        inputs: Vec::new(),
        outputs: Vec::new(),
        folders: Vec::new(),
        known_quality: vec![true],
        non_finite: false,
    };
    let served = [(Arc::clone(&pool.pool), vec![tensors.clone(), tensors])];
    PoolBackend::try_new(
        &served,
        &ServerConfig {
            rows_max: 1,
            ..config
        },
        &pool.registry,
        Additions::default(),
    )
    .unwrap()
}

fn broken(variants: &[u32]) -> Controls {
    Controls {
        broken: Mutex::new(variants.iter().copied().map(VariantId).collect()),
        ..Controls::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_without_a_model_is_not_ready_and_the_server_serves_the_other_one() {
    let pool = TestPool::start_with(broken(&[1])).await;
    let backend = backend(&pool);
    assert_eq!(backend.server_ready(), Ok(()));
    assert_eq!(backend.app_ready(AppIndex(0), None), Ok(()));
    let reason = backend.app_ready(AppIndex(1), None).unwrap_err();
    assert_eq!(reason, "variant 1: cut off");
    let failed = pool.status().await.failed_variants;
    assert_eq!(failed["fall/only"], "variant 1: cut off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_none_of_whose_apps_has_a_model_is_not_ready() {
    let pool = TestPool::start_with(broken(&[0, 1])).await;
    let reason = backend(&pool).server_ready().unwrap_err();
    assert_eq!(reason, "no app has a model: variant 0: cut off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_does_not_end_is_answered_after_its_limit_and_goes_on() {
    let pool = TestPool::start().await;
    let limits = ServerConfig {
        load_timeout_ms: 50,
        ..ServerConfig::default()
    };
    let backend = backend_with(&pool, limits);
    backend.control(AppIndex(1), Control::Unload).await.unwrap();
    pool.controls.hang.store(true, Ordering::SeqCst);
    let busy = pool.serve(0, FAR);
    let load = async {
        pool.until(|pool| pool.controls.hangs.load(Ordering::SeqCst))
            .await;
        let late = backend.control(AppIndex(1), Control::Load).await;
        let reason = "the load has not ended after 50 ms (server.load_timeout_ms) and goes on";
        assert_eq!(late, Err(InferError::Failed(reason.to_owned())));
        pool.controls.release();
    };
    let (busy, ()) = tokio::join!(busy, load);
    assert!(busy.is_ok(), "{busy:?}");
    pool.until(|_| backend.app_ready(AppIndex(1), None).is_ok())
        .await;
    assert!(pool.serve(1, FAR).await.is_ok());
}

/// Does as told in every window.
struct Told(Description, fn() -> Result<(), PolicyFault>);

impl Policy for Told {
    fn description(&self) -> &Description {
        &self.0
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, _: &Window, _: &mut Plan) -> Result<(), PolicyFault> {
        (self.1)()
    }
}

fn install(pool: &TestPool, does: fn() -> Result<(), PolicyFault>) {
    let description = Description {
        name: "told".to_owned(),
        version: "7".to_owned(),
        on: Triggers {
            arrival: true,
            ..Triggers::default()
        },
        ..Description::default()
    };
    let (done, _) = crossbeam_channel::bounded(1);
    let policy = Box::new(Told(description, does));
    pool.pool
        .send(Message::Install(policy, PolicyRecord::default(), done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_panics_is_not_alive() {
    let pool = TestPool::start().await;
    let backend = backend(&pool);
    assert_eq!(backend.live(), Ok(()));
    install(&pool, || panic!("as a bug would"));
    assert!(pool.try_serve(0, FAR).await.is_err());
    pool.until(|pool| pool.pool.has_failed()).await;
    let began = Instant::now();
    let reason = backend.live().unwrap_err();
    assert!(began.elapsed().as_millis() < 50);
    assert!(
        reason.contains("pool main: its scheduler has failed"),
        "{reason}"
    );
    assert!(backend.server_ready().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_counted_by_pool_and_policy_from_0() {
    let pool = TestPool::start().await;
    let active = r#"switchyard_fallback_active{pool="main"}"#;
    assert_eq!(pool.metric(active), Some(1.0), "no policy yet");
    install(&pool, || {
        Err(PolicyFault::new(FaultKind::Failed, "as told"))
    });
    pool.status().await;
    let faults = |kind: &str| {
        let labels = format!(r#"pool="main",policy="told",kind="{kind}""#);
        pool.metric(&format!("switchyard_policy_faults_total{{{labels}}}"))
    };
    // It may have failed its first window.
    let others = |kind: &FaultKind| *kind != FaultKind::Failed;
    pool.until(|_| faults("failed").is_some()).await;
    for kind in FaultKind::ALL.into_iter().filter(others) {
        assert_eq!(faults(kind.label()), Some(0.0), "{kind}");
    }
    let before = faults("failed").unwrap();
    assert!(pool.serve(0, FAR).await.is_ok());
    assert!(faults("failed").unwrap() > before);
    assert_eq!(pool.metric(active), Some(1.0), "it fails");
    install(&pool, || Ok(()));
    pool.until(|pool| pool.metric(active) == Some(0.0)).await;
    pool.pool.send(Message::RemovePolicy);
    pool.until(|pool| pool.metric(active) == Some(1.0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wanted_workers_follow_the_load() {
    const DESIRED: &str = r#"switchyard_workers_desired{pool="main"}"#;
    let pool = TestPool::start().await;
    // Batches of eight take 20 ms: a request is 2.5 ms of a worker. 8000 of them are 20 s, in the first ten
    // seconds and at 70 % more than two workers.
    // Most of them are refused: they count too.
    let end = pool
        .try_serve_rows(0, Duration::from_millis(50), 8_000)
        .await;
    assert!(end.unwrap().is_err());
    pool.until(|pool| pool.metric(DESIRED) == Some(3.0)).await;
}

//! Failed batches, lost workers, and the loads of busy ones.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use switchyard_core::ids::{AppId, RequestId, VariantId};
use switchyard_core::request::Outcome;
use switchyard_executor::{Device, LoadedModel};
use switchyard_models::load_variant;
use switchyard_server::driver::Message;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::test_bed::{FAR, TestPool};

const UP: &str = r#"switchyard_worker_up{pool="main",worker="w0"}"#;
const RESTARTS: &str = r#"switchyard_worker_restarts_total{pool="main",worker="w0"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_request_fails_no_other_of_its_batch() {
    let pool = TestPool::start().await;
    *pool.controls.poison.lock().unwrap() = Some(RequestId(3));
    // They arrive in one burst and share a batch.
    let (one, two, three, four) = tokio::join!(
        pool.serve(0, FAR),
        pool.serve(0, FAR),
        pool.serve(0, FAR),
        pool.serve(0, FAR)
    );
    let ends = [one, two, three, four];
    let failed: Vec<_> = ends.iter().filter_map(|end| end.as_ref().err()).collect();
    assert_eq!(failed.len(), 1, "{ends:?}");
    let reason = "injected: poisoned".to_owned();
    assert_eq!(failed[0].outcome, Outcome::Failed(reason));
    let sizes = pool.controls.sizes.lock().unwrap().clone();
    assert_eq!(sizes, [4, 1, 1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_thread_panics_serves_again_within_a_second() {
    let pool = TestPool::start().await;
    assert_eq!(pool.metric(UP), Some(1.0));
    assert_eq!(pool.metric(RESTARTS), Some(0.0));
    pool.controls.crash.store(true, Ordering::SeqCst);
    let began = Instant::now();
    // Its batch is lost, and runs again on the restarted worker.
    let end = pool.serve(0, FAR).await;
    assert!(end.is_ok(), "{end:?}");
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(pool.metric(UP), Some(1.0));
    assert_eq!(pool.metric(RESTARTS), Some(1.0));
    let status = pool.status().await;
    assert!(status.workers[0].up);
    assert_eq!(status.imbalance, 0);
    assert_eq!(pool.readiness.check(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_without_a_worker_is_not_ready_until_one_is_back() {
    let pool = TestPool::start().await;
    for restarts in [1.0, 2.0] {
        pool.controls.crash.store(true, Ordering::SeqCst);
        let served = pool.serve(0, FAR);
        tokio::pin!(served);
        if restarts == 2.0 {
            // The second restart comes after a pause.
            tokio::select! {
                end = &mut served => panic!("served without a worker: {end:?}"),
                () = pool.until(|pool| pool.readiness.check().is_err()) => {}
            }
            let error = pool.readiness.check().unwrap_err();
            assert!(
                error.contains("no worker is up: its thread panicked"),
                "{error}"
            );
            assert_eq!(pool.metric(UP), Some(0.0));
            assert!(!pool.status().await.workers[0].up);
        }
        assert!(served.await.is_ok());
        assert_eq!(pool.metric(RESTARTS), Some(restarts));
    }
    assert_eq!(pool.readiness.check(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_hangs_is_replaced() {
    let pool = TestPool::start().await;
    pool.controls.hang.store(true, Ordering::SeqCst);
    let end = pool.serve(0, FAR).await;
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(pool.metric(RESTARTS), Some(1.0));
    // The old thread ends its batch: that changes nothing.
    pool.controls.release();
    assert!(pool.serve(0, FAR).await.is_ok());
    assert_eq!(pool.status().await.imbalance, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loads_and_unloads_of_a_busy_worker_leave_room_for_batches() {
    let pool = TestPool::start().await;
    pool.controls.hang.store(true, Ordering::SeqCst);
    let busy = pool.serve(0, FAR);
    let flood = async {
        pool.until(|pool| pool.controls.hangs.load(Ordering::SeqCst))
            .await;
        for _ in 0..2_000 {
            let (known, _) = oneshot::channel();
            pool.pool.send(Message::Unload(AppId(1), known));
            let (done, _) = oneshot::channel();
            pool.pool.send(Message::Load(AppId(1), done));
        }
        let (done, loaded) = oneshot::channel();
        pool.pool.send(Message::Load(AppId(1), done));
        pool.status().await; // The driver has taken all of them.
        let other = pool.serve(1, FAR);
        let release = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            pool.controls.release();
        };
        let (other, ()) = tokio::join!(other, release);
        assert!(other.is_ok(), "{other:?}");
        assert_eq!(loaded.await.unwrap(), Ok(()));
    };
    let (busy, ()) = tokio::join!(busy, flood);
    assert!(busy.is_ok(), "{busy:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_its_worker_loses_ends_with_the_reason() {
    let pool = TestPool::start().await;
    pool.controls.hang.store(true, Ordering::SeqCst);
    pool.controls.crash.store(true, Ordering::SeqCst);
    let busy = pool.serve(0, FAR);
    let load = async {
        pool.until(|pool| pool.controls.hangs.load(Ordering::SeqCst))
            .await;
        let (done, loaded) = oneshot::channel();
        pool.pool.send(Message::Load(AppId(1), done));
        pool.controls.release();
        loaded.await.unwrap().unwrap_err()
    };
    let (busy, error) = tokio::join!(busy, load);
    assert!(busy.is_ok(), "{busy:?}");
    assert!(error.contains("worker w0 was lost"), "{error}");
}

/// The worker hangs until its batch is overdue. Its restart is due in four seconds, because it was lost
/// three times before. `meanwhile` runs before the late batch ends.
async fn recovers_before_its_restart(pool: &TestPool, meanwhile: impl FnOnce()) {
    for restarts in [1.0, 2.0, 3.0] {
        pool.controls.crash.store(true, Ordering::SeqCst);
        assert!(pool.serve(0, FAR).await.is_ok());
        assert_eq!(pool.metric(RESTARTS), Some(restarts));
    }
    pool.controls.hang.store(true, Ordering::SeqCst);
    let recovery = async {
        pool.until(|pool| pool.metric(UP) == Some(0.0)).await;
        meanwhile();
        pool.status().await; // The driver has taken all messages.
        pool.controls.release();
        pool.until(|pool| pool.metric(UP) == Some(1.0)).await;
    };
    let (late, ()) = tokio::join!(pool.serve(0, FAR), recovery);
    assert!(late.is_ok(), "{late:?}");
    assert_eq!(pool.metric(RESTARTS), Some(3.0), "it recovered");
}

fn other_weights() -> Arc<LoadedModel> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/zoo/heart/cnn-small");
    let loaded = load_variant(&folder, &Device::Cpu).unwrap();
    Arc::new(LoadedModel {
        name: "heart/only".to_owned(),
        model: loaded.model,
        inputs: Arc::new([]),
        reads: Vec::new(),
        bytes: loaded.bytes,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovered_worker_serves_the_weights_that_were_replaced_while_it_was_overdue() {
    let pool = TestPool::start().await;
    let weights = other_weights();
    recovers_before_its_restart(&pool, || {
        pool.pool
            .send(Message::Replace(VariantId(0), vec![weights]));
    })
    .await;
    assert!(pool.serve(0, FAR).await.is_ok());
    assert_eq!(*pool.controls.replaced.lock().unwrap(), [VariantId(0)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovered_worker_lets_go_of_an_app_that_was_unloaded_while_it_was_overdue() {
    let pool = TestPool::start().await;
    recovers_before_its_restart(&pool, || {
        let (known, _) = oneshot::channel();
        pool.pool.send(Message::Unload(AppId(1), known));
    })
    .await;
    assert!(pool.serve(0, FAR).await.is_ok());
    assert_eq!(*pool.controls.unloaded.lock().unwrap(), [VariantId(1)]);
    assert_eq!(pool.status().await.apps["fall"], "UNAVAILABLE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovered_worker_that_is_lost_before_its_restart_is_down() {
    let pool = TestPool::start().await;
    recovers_before_its_restart(&pool, || {}).await;
    pool.controls.crash.store(true, Ordering::SeqCst);
    let (done, loaded) = oneshot::channel();
    pool.pool.send(Message::Load(AppId(1), done));
    let loaded = timeout(Duration::from_secs(3), loaded).await;
    let error = loaded.expect("the load has an end").unwrap().unwrap_err();
    assert!(error.contains("worker w0 was lost"), "{error}");
    pool.until(|pool| pool.readiness.check().is_err()).await;
    assert_eq!(pool.metric(UP), Some(0.0));
    assert!(pool.serve(0, FAR).await.is_ok());
    assert_eq!(pool.metric(RESTARTS), Some(4.0));
    assert_eq!(pool.readiness.check(), Ok(()));
}

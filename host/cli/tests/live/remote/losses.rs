//! Workers that end, and come back.

use std::time::{Duration, Instant};

use switchyard_server::admin::ServerStatus;
use switchyard_server::driver::PoolStatus;

use super::super::binary::Process;
use super::super::client::{Client, get};
use super::super::fixture::{APP, beat};
use super::super::test_bed::{PATIENCE, Setup};
use super::{ALIKE, Clients, blocking, ready, scheduler, two_workers, worker};

pub(super) async fn driver(scheduler: &Process) -> PoolStatus {
    let status = get(scheduler.admin, "/admin/v1/status").await;
    let mut status: ServerStatus = serde_json::from_str(&status.text).unwrap();
    status.pools.swap_remove(0).driver
}

async fn is_up(scheduler: &Process, worker: usize) -> bool {
    driver(scheduler).await.workers[worker].up
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_loses_no_request_and_serves_again_once_it_is_back() {
    let (addresses, [mut a, _b]) = two_workers().await;
    let scheduler = blocking(move || scheduler(addresses, ALIKE)).await;
    // The same answers as from this process.
    let near = Setup::new("near").start().await;
    let (mut here, mut there) = (near.client().await, Client::connect(scheduler.http).await);
    for (nth, variant) in (0..20).zip(["cnn-small", "resnet"].into_iter().cycle()) {
        let path = format!("/v2/models/{APP}/versions/{variant}/infer");
        let body = beat(nth);
        let local = here.send("POST", &path, body.clone()).await.unwrap();
        let remote = there.send("POST", &path, body).await.unwrap();
        assert_eq!((local.status, remote.status), (200, 200), "{}", remote.text);
        assert_eq!(local.json()["outputs"], remote.json()["outputs"]);
    }
    near.stop().await;

    let clients = Clients::start(scheduler.http, 8);
    tokio::time::sleep(Duration::from_millis(300)).await;
    a.kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!is_up(&scheduler, 0).await && is_up(&scheduler, 1).await);
    let (answered, longest) = clients.stop().await;
    println!("worker killed: {answered} answers, none lost, the longest after {longest:?}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");

    let at = addresses[0];
    let a = blocking(move || worker("far-a", at)).await;
    ready(a.http).await;
    let back = Instant::now();
    while !is_up(&scheduler, 0).await {
        assert!(
            back.elapsed() < Duration::from_secs(1),
            "not back in a second"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    println!("worker back: {:?} after it was ready", back.elapsed());
    let clients = Clients::start(scheduler.http, 4);
    tokio::time::sleep(Duration::from_millis(300)).await;
    clients.stop().await;

    let driver = driver(&scheduler).await;
    assert_eq!((driver.imbalance, driver.live), (0, 0));
    assert_eq!(driver.accepted, driver.ended);
}

async fn becomes(scheduler: &Process, worker: usize, up: bool, limit: Duration) -> Duration {
    let began = Instant::now();
    while is_up(scheduler, worker).await != up {
        assert!(began.elapsed() < limit, "not {up} within {limit:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_that_ends_is_down_before_a_batch_and_back_within_a_second() {
    let (addresses, [mut a, b]) = two_workers().await;
    let scheduler = blocking(move || scheduler(addresses, ALIKE)).await;
    becomes(&scheduler, 0, true, PATIENCE).await;
    a.kill();
    let down = becomes(&scheduler, 0, false, Duration::from_secs(2)).await;
    let at = addresses[0];
    let a = blocking(move || worker("far-a", at)).await;
    ready(a.http).await;
    let up = becomes(&scheduler, 0, true, Duration::from_secs(1)).await;
    println!("idle worker killed: down after {down:?}, up {up:?} after it was ready");

    // A worker that is told to end finishes its batches.
    let clients = Clients::start(scheduler.http, 8);
    tokio::time::sleep(Duration::from_millis(300)).await;
    b.terminate();
    becomes(&scheduler, 1, false, PATIENCE).await;
    let (answered, _) = clients.stop().await;
    assert!(answered > 0);
    let failed = scheduler.lines("batch failed");
    assert!(failed.is_empty(), "{failed:?}");
}

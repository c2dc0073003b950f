//! A worker on a Unix socket of the scheduler's machine, the only one that there is.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::super::binary::Process;
use super::super::client::Client;
use super::super::fixture::{beat, fixture};
use super::losses::driver;
use super::{ALIKE, Clients, blocking, ready, scheduler_of, worker_at};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_outlive_the_only_worker_and_end_in_time_without_one() {
    blocking(fixture).await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("far.sock");
    let url = format!("unix:{}", path.display());
    let start = || {
        let url = url.clone();
        blocking(move || worker_at("far-a", &url, &url, |_| {}))
    };
    let mut worker: Process = start().await;
    ready(worker.http).await;
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
    let at = url.clone();
    let scheduler = blocking(move || scheduler_of([&at, &at], ALIKE)).await;
    ready(scheduler.http).await;

    // Each must be served.
    let clients = Clients::start(scheduler.http, 8);
    tokio::time::sleep(Duration::from_millis(300)).await;
    worker.kill();
    let killed = Instant::now();
    worker = start().await;
    ready(worker.http).await;
    let back = killed.elapsed();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (served, longest) = clients.stop().await;
    println!("{served} served, the longest after {longest:?}, away for {back:?}");
    assert!(longest < back + Duration::from_secs(1), "{longest:?}");

    worker.kill();
    let mut client = Client::connect(scheduler.http).await;
    let began = Instant::now();
    let answer = client.infer(beat(1)).await;
    println!(
        "{} after {:?}: {}",
        answer.status,
        began.elapsed(),
        answer.text
    );
    // The deadline, and the way of the answer on a busy machine.
    assert!(began.elapsed() < Duration::from_secs(6));
    assert!([429, 503, 504].contains(&answer.status), "{}", answer.text);
    assert!(answer.json()["reason"].is_string(), "{}", answer.text);
    let driver = driver(&scheduler).await;
    assert_eq!((driver.imbalance, driver.live), (0, 0));
    assert_eq!(driver.accepted, driver.ended);
}

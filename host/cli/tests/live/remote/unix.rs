//! A worker on a Unix socket of the scheduler's machine, the only one that there is.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::super::binary::Process;
use super::super::client::{Answer, Client};
use super::super::fixture::{beat, fixture};
use super::losses::driver;
use super::{ALIKE, blocking, ready, scheduler_of, worker_at};

/// Answers to a client that never pauses.
#[derive(Default)]
struct Answers {
    served: u64,
    /// With a reason.
    refused: u64,
    longest: Duration,
    served_last: bool,
}

async fn ask(http: SocketAddr, first: u64, stopping: Arc<AtomicBool>) -> Answers {
    let mut client = Client::connect(http).await;
    let mut answers = Answers::default();
    let mut nth = first;
    while !stopping.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = client.infer(beat(nth)).await;
        answers.longest = answers.longest.max(began.elapsed());
        answers.served_last = answer.status == 200;
        match answer.status {
            200 => answers.served += 1,
            _ => {
                check_refusal(&answer);
                answers.refused += 1;
            }
        }
        nth += 8;
    }
    answers
}

fn check_refusal(answer: &Answer) {
    assert!([429, 503, 504].contains(&answer.status), "{}", answer.text);
    assert!(answer.json()["reason"].is_string(), "{}", answer.text);
}

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

    let stopping = Arc::new(AtomicBool::new(false));
    let clients = (0..8).map(|nth| {
        let stopping = Arc::clone(&stopping);
        tokio::spawn(ask(scheduler.http, nth, stopping))
    });
    let clients: Vec<_> = clients.collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    worker.kill();
    let killed = Instant::now();
    worker = start().await;
    ready(worker.http).await;
    let back = killed.elapsed();
    tokio::time::sleep(Duration::from_secs(1)).await;
    stopping.store(true, Ordering::Relaxed);
    let (mut served, mut refused, mut longest) = (0, 0, Duration::ZERO);
    for client in clients {
        let own = client.await.unwrap();
        (served, refused) = (served + own.served, refused + own.refused);
        longest = longest.max(own.longest);
        assert!(own.served_last, "not served again");
    }
    println!(
        "{served} served, {refused} refused, the longest after {longest:?}, away for {back:?}"
    );
    assert_eq!(refused, 0, "there was time to wait for the worker");
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
    check_refusal(&answer);
    let driver = driver(&scheduler).await;
    assert_eq!((driver.imbalance, driver.live), (0, 0));
    assert_eq!(driver.accepted, driver.ended);
}

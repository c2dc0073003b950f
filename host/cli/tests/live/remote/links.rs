//! Links that take time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use switchyard_core::ids::{ExitId, VariantId, WorkerId};
use switchyard_executor::{
    CandleExecutor, Device, Executor, Job, JobRow, ModelSource, Weights, Worker, WorkerEvent,
    WorkerOptions,
};
use switchyard_remote::RemoteExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::free_address::free_address;

use super::super::fixture::fixture;
use super::batches::batch;
use super::{Clients, blocking, manifest, options, ready, scheduler, two_workers, worker};

/// Forwards a connection to a worker, answers later if it is told so.
struct Link {
    at: SocketAddr,
    delay_us: Arc<AtomicU64>,
    /// Bytes of requests.
    bytes: Arc<AtomicU64>,
}

impl Link {
    async fn to(worker: SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (delay_us, bytes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (delay, counted) = (Arc::clone(&delay_us), Arc::clone(&bytes));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(worker).await.unwrap();
                tokio::spawn(forward(
                    client,
                    server,
                    Arc::clone(&delay),
                    Arc::clone(&counted),
                ));
            }
        });
        Self {
            at,
            delay_us,
            bytes,
        }
    }
}

async fn forward(
    client: TcpStream,
    server: TcpStream,
    delay_us: Arc<AtomicU64>,
    counted: Arc<AtomicU64>,
) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            counted.fetch_add(read as u64, Ordering::Relaxed);
            to_server.write_all(&buffer[..read]).await.unwrap();
        }
    });
    // As on a long wire, many answers may be on their way.
    let (sent, mut on_the_way) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((due, bytes)) = on_the_way.recv().await {
            tokio::time::sleep_until(due.into()).await;
            if to_client.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
        let delay = Duration::from_micros(delay_us.load(Ordering::Relaxed));
        if sent
            .send((Instant::now() + delay, buffer[..read].to_vec()))
            .is_err()
        {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_link_loses_its_work() {
    let (addresses, _workers) = two_workers().await;
    let (a, b) = (Link::to(addresses[0]).await, Link::to(addresses[1]).await);
    let links = [a.at, b.at];
    // Slowdowns are estimated by kind.
    let scheduler = blocking(move || scheduler(links, ["far-a", "far-b"])).await;
    let clients = Clients::start(scheduler.http, 2);
    let shares = async |time: Duration| {
        let before = [&a, &b].map(|link| link.bytes.load(Ordering::Relaxed));
        tokio::time::sleep(time).await;
        let after = [&a, &b].map(|link| link.bytes.load(Ordering::Relaxed));
        let [a, b] = [after[0] - before[0], after[1] - before[1]].map(|bytes| bytes as f64);
        [a, b].map(|bytes| bytes / (a + b).max(1.0))
    };
    let fast = shares(Duration::from_secs(1)).await;
    // A pause of a busy machine can make one link look slow for a second. The other one is slowed.
    let slowed = usize::from(fast[1] > fast[0]);
    [&a, &b][slowed].delay_us.store(20_000, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (fast, mut slow) = (fast[slowed], 1.0);
    // On a busy machine the fast link is slow for some time as well.
    for _ in 0..4 {
        slow = shares(Duration::from_secs(2)).await[slowed];
        if slow <= LEFT_MAX * fast {
            break;
        }
    }
    println!("share of the link: {fast:.3}, with 20 ms more: {slow:.3}");
    assert!(slow <= LEFT_MAX * fast, "{slow} of {fast} is left");
    clients.stop().await;
}

/// Part of its work that a link keeps once it is slow.
const LEFT_MAX: f64 = 0.2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_batches_on_the_way_hide_the_round_trip() {
    blocking(fixture).await;
    let at = free_address();
    let worker = blocking(move || worker("far-a", at)).await;
    ready(worker.http).await;
    let link = Link::to(at).await;
    // As long as the batch itself takes next to other tests.
    link.delay_us.store(20_000, Ordering::Relaxed);
    let linked = link.at;
    let mut best = 0.0_f64;
    // Other work on the machine slows both; one quiet round shows the difference.
    for _ in 0..5 {
        let [one, two] = blocking(move || [1, 2].map(|batches| rate(linked, batches))).await;
        println!("batches per second over 20 ms: {one:.0} with one on the way, {two:.0} with two");
        best = best.max(two / one);
        if best >= 1.3 {
            break;
        }
    }
    assert!(
        best >= 1.3,
        "two batches on the way reach {best:.2} times as many"
    );
}

/// Batches per second of a far worker that has this many at a time.
fn rate(at: SocketAddr, outstanding: usize) -> f64 {
    let far = RemoteExecutor::connect(options(at)).unwrap();
    let (worker, ended) = spawn(Box::new(far), outstanding);
    let job = large_batch();
    for _ in 0..outstanding {
        worker.run(again(&job)).unwrap();
    }
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(700) {
        finish(&ended);
        count += 1;
        worker.run(again(&job)).unwrap();
    }
    f64::from(count) / began.elapsed().as_secs_f64()
}

fn spawn(executor: Box<dyn Executor>, outstanding: usize) -> (Worker, Receiver<WorkerEvent>) {
    let (report, ended) = channel();
    let options = WorkerOptions {
        id: WorkerId(0),
        name: "bench".to_owned(),
        threads: 1,
        cores: Vec::new(),
        commands_max: 1,
        outstanding,
    };
    let worker = Worker::spawn(options, executor, move |event| {
        // The test may have ended.
        let _ = report.send(event);
    });
    (worker.unwrap(), ended)
}

fn finish(ended: &Receiver<WorkerEvent>) {
    let WorkerEvent::Finished(finished) = ended.recv().unwrap() else {
        panic!("no end of the batch");
    };
    finished.result.unwrap();
}

/// Rows of 150 KB together.
const LARGE_ROWS: usize = 201;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, for a quiet machine"]
async fn the_time_of_a_link_for_150_kb() {
    blocking(fixture).await;
    let at = free_address();
    let worker = blocking(move || worker("far-a", at)).await;
    ready(worker.http).await;
    for _ in 0..4 {
        let [here, there] = blocking(move || medians(at)).await;
        let ratio = there.as_secs_f64() / here.as_secs_f64();
        let more = there.saturating_sub(here);
        println!("150 KB: {here:?} here, {there:?} there: {more:?} more, {ratio:.2} times");
        assert!(there < 10 * here, "the link takes most of the time");
    }
}

/// A large batch of the smallest variant, to its end.
fn large_batch() -> Job {
    let manifest = manifest();
    let variants = (0..).map(VariantId).zip(&manifest.variants);
    let (variant, spec) = variants.min_by_key(|(_, spec)| spec.memory_bytes).unwrap();
    batch(
        LARGE_ROWS,
        variant,
        spec.stages,
        ExitId(spec.exits.len() as u32 - 1),
    )
}

/// The same batch once more.
fn again(job: &Job) -> Job {
    let rows = job.rows.iter().map(|row| JobRow {
        request: row.request,
        input: row.input.clone(),
    });
    Job {
        rows: rows.collect(),
        soon: job.soon.clone(),
        ..*job
    }
}

/// The medians of a large batch on a worker of this process and on the far one, in turn.
fn medians(at: SocketAddr) -> [Duration; 2] {
    let source: Arc<dyn ModelSource> = Arc::clone(&manifest().source) as _;
    let near = CandleExecutor::new(Weights::new(source), Device::Cpu, u64::MAX);
    let far = RemoteExecutor::connect(options(at)).unwrap();
    let executors: [Box<dyn Executor>; 2] = [Box::new(near), Box::new(far)];
    let workers = executors.map(|executor| spawn(executor, 1));
    let (job, mut times) = (large_batch(), [Vec::new(), Vec::new()]);
    for _ in 0..60 {
        for ((worker, ended), times) in workers.iter().zip(&mut times) {
            let job = again(&job);
            let began = Instant::now();
            worker.run(job).unwrap();
            finish(ended);
            times.push(began.elapsed());
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

//! The curve over HTTP: a server of its own, and connections that send again once they are answered.
//! First few of them; then, in rounds, more and more, and few again: the server must have recovered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use serde_json::json;
use switchyard_models::Zoo;
use switchyard_server::admin::ServerStatus;
use switchyard_training::data::{Generator, Mix};
use switchyard_training::train::recipe;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::clients::{Clients, RawRequest};
use super::files::{APP, DEADLINES, FALLBACK, Files, SLO_MS};
use super::options::OverloadOptions;
use super::report::{Curve, CurvePoint};
use crate::commands::Failure;
use crate::demo::{DemoError, ServerProcess};
use crate::probe;

/// Before a point is measured: its queues fill, or those of the last point empty.
const SETTLE: Duration = Duration::from_secs(2);

/// Longest time until the first answer.
const START: Duration = Duration::from_secs(60);

/// Time between two health checks.
const HEALTH_EVERY: Duration = Duration::from_millis(100);

/// Seconds in which the policy was asked.
const WINDOW_SUM: &str = "switchyard_window_seconds_sum";

/// Different inputs that are sent.
const INPUTS: u64 = 64;

/// Descriptors beyond those of the connections.
const DESCRIPTORS: u64 = 256;

/// Serves one policy.
pub(super) fn curve(
    files: &Files,
    policy: &str,
    options: &OverloadOptions,
) -> Result<Curve, Failure> {
    files.write_config(policy, options)?;
    let most = options
        .connections
        .iter()
        .copied()
        .max()
        .unwrap_or_default();
    raise_descriptors(most as u64 + DESCRIPTORS)?;
    let requests = requests(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(yield_to_server)
        .enable_all()
        .build()
        .map_err(Failure::check)?;
    runtime.block_on(measure(files, policy, options, &requests))
}

/// Lowers the priority of the thread that runs the clients: elsewhere they have machines of their own.
/// The server is started, and its health looked at, by another thread.
fn yield_to_server() {
    // Without it the clients take more of the server's cores.
    let _ = setpriority_process(None, 19);
}

async fn measure(
    files: &Files,
    policy: &str,
    options: &OverloadOptions,
    requests: &Arc<[RawRequest]>,
) -> Result<Curve, Failure> {
    let config = files.config();
    let server = ServerProcess::start(&config, |_| {}).await;
    let server = server.map_err(failed)?;
    if policy != FALLBACK {
        let ready = server.until("become ready", |status| status.ready);
        ready.await.map_err(failed)?;
    }
    first_answer(server.http, &requests[0]).await?;
    let (few, many) = match options.connections.split_first() {
        Some((few, [])) => (*few, &[][..]),
        Some((few, many)) => (*few, many),
        None => return Err(Failure::input("--connections: name at least one number")),
    };
    let mut before = Vec::new();
    for _ in 0..options.rounds {
        before.push(point(&server, few, options, requests).await?);
    }
    let (mut loaded, mut after) = (vec![Vec::new(); many.len()], Vec::new());
    for _ in 0..if many.is_empty() { 0 } else { options.rounds } {
        for (&count, measured) in many.iter().zip(&mut loaded) {
            measured.push(point(&server, count, options, requests).await?);
        }
        after.push(point(&server, few, options, requests).await?);
    }
    let points = std::iter::once(before).chain(loaded);
    server.stop().await.map_err(failed)?;
    Ok(Curve {
        policy: policy.to_owned(),
        points: points.filter_map(|it| CurvePoint::median(&it)).collect(),
        recovered: CurvePoint::median(&after),
    })
}

async fn point(
    server: &ServerProcess,
    connections: usize,
    options: &OverloadOptions,
    requests: &Arc<[RawRequest]>,
) -> Result<CurvePoint, Failure> {
    let clients = Clients::start(server.http, connections, requests);
    sleep(SETTLE).await;
    let (before, asked_before) = figures(server)?;
    clients.count(true);
    let began = Instant::now();
    let (address, length) = (server.http, Duration::from_secs_f64(options.seconds));
    let (checked, slowest) = oneshot::channel();
    // Not by the runtime, whose threads have a low priority. An error: the measurement was given up.
    std::thread::spawn(move || checked.send(slowest_health(address, length)));
    let slowest = slowest.await.map_err(Failure::check)?;
    clients.count(false);
    let took = began.elapsed().as_secs_f64();
    let (after, asked) = figures(server)?;
    let memory = server.memory_mib();
    let counts = Arc::clone(&clients.counts);
    clients.stop().await;
    let per_s = |count: u64| count as f64 / took;
    let in_time = in_time(&after).saturating_sub(in_time(&before));
    Ok(CurvePoint {
        at: connections as f64,
        load: None,
        goodput_per_s: per_s(in_time),
        faults: faults(&after).saturating_sub(faults(&before)),
        seen_per_s: Some(per_s(counts.in_time.load(Ordering::Relaxed))),
        replies_per_s: Some(per_s(counts.replies.load(Ordering::Relaxed))),
        health_ms: Some(slowest.map_or(f64::INFINITY, |it| it.as_secs_f64() * 1e3)),
        memory_mib: memory,
        policy_share: Some((asked - asked_before) / took),
    })
}

/// The status, and the seconds in which the policy was asked. On a thread of its own: the server
/// ends a connection on which those of the clients are slow to send a request.
fn figures(server: &ServerProcess) -> Result<(ServerStatus, f64), Failure> {
    let read = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::check)?;
        runtime.block_on(async {
            let status = server.status().await.map_err(failed)?;
            Ok((status, server.metric(WINDOW_SUM).await.map_err(failed)?))
        })
    };
    let reader = std::thread::scope(|scope| scope.spawn(read).join());
    reader.map_err(|_| Failure::check("the reader of the server's figures panicked"))?
}

fn in_time(status: &ServerStatus) -> u64 {
    let outcomes = status.pools.iter().flat_map(|pool| &pool.driver.outcomes);
    let in_time = outcomes.filter(|(name, _)| *name == "in_time" || *name == "short_circuit");
    in_time.map(|(_, count)| count).sum()
}

fn faults(status: &ServerStatus) -> u64 {
    let faults = status
        .pools
        .iter()
        .flat_map(|pool| pool.driver.faults.values());
    faults.sum()
}

/// The time of the slowest liveness check over this long; none if one failed. On a thread of its own:
/// those of the clients are slow to see an answer.
fn slowest_health(address: SocketAddr, length: Duration) -> Option<Duration> {
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    while began.elapsed() < length {
        slowest = slowest.max(health(address)?);
        std::thread::sleep(HEALTH_EVERY);
    }
    Some(slowest)
}

/// The time of one liveness check on a connection of its own; none if it failed.
fn health(address: SocketAddr) -> Option<Duration> {
    let began = Instant::now();
    let status = probe::status(&address.into(), "/v2/health/live")?;
    (status == 200).then(|| began.elapsed())
}

async fn first_answer(address: SocketAddr, request: &RawRequest) -> Result<(), Failure> {
    let began = Instant::now();
    while began.elapsed() < START {
        let mut stream = TcpStream::connect(address).await.map_err(Failure::check)?;
        stream
            .write_all(&request.bytes)
            .await
            .map_err(Failure::check)?;
        let mut head = [0; 12];
        let read = stream.read_exact(&mut head).await;
        if read.is_ok() && head.ends_with(b"200") {
            return Ok(());
        }
        sleep(HEALTH_EVERY).await;
    }
    let seconds = START.as_secs();
    Err(Failure::check(format!(
        "no request was answered within {seconds} s"
    )))
}

/// Requests with the deadlines in turn.
fn requests(options: &OverloadOptions) -> Result<Arc<[RawRequest]>, Failure> {
    let zoo = Zoo::open(&options.zoo).map_err(Failure::input)?;
    let app = zoo.app(APP).ok_or_else(|| {
        let zoo = options.zoo.display();
        Failure::input(format!("--zoo {zoo}: no app {APP}"))
    })?;
    let card = &app.card;
    let recipe = recipe(APP).ok_or_else(|| Failure::input(format!("{APP} has no data")))?;
    let mix = Mix::try_new(&card.workload_mix).map_err(Failure::input)?;
    let samples = Generator::new(recipe.data(), 1, mix);
    let input = card
        .inputs
        .first()
        .ok_or_else(|| Failure::input("no input"))?;
    let shape: Vec<usize> = std::iter::once(1).chain(input.typical_shape()).collect();
    let made = (0..INPUTS).map(|i| {
        let scale = DEADLINES[i as usize % DEADLINES.len()];
        let deadline = Duration::from_millis(SLO_MS).mul_f64(scale);
        let values = samples.sample(i).values;
        let head = json!({
            "parameters": { "timeout": deadline.as_micros() as u64 },
            "inputs": [{
                "name": input.name, "shape": shape, "datatype": "FP32",
                "parameters": { "binary_data_size": size_of_val(values.as_slice()) },
            }],
            "outputs": [{ "name": "label" }],
        });
        let head = head.to_string();
        let data: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let mut bytes = format!(
            "POST /v2/models/{APP}/infer HTTP/1.1\r\nHost: localhost\r\n\
             Inference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n{head}",
            head.len(),
            head.len() + data.len(),
        )
        .into_bytes();
        bytes.extend(data);
        RawRequest { bytes, deadline }
    });
    Ok(made.collect())
}

/// Raises the limit of open files of this process and of the server that it starts.
fn raise_descriptors(wanted: u64) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        let maximum = limit.maximum.unwrap_or_default();
        return Err(Failure::input(format!(
            "--connections: need {wanted} open files, and the hard limit is {maximum}; \
             take fewer, or raise it with `ulimit -Hn`"
        )));
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(Failure::check)
}

fn failed(error: DemoError) -> Failure {
    match error {
        DemoError::Input(reason) => Failure::input(reason),
        DemoError::Server(reason) => Failure::check(format!("the server {reason}")),
    }
}

//! The load: connections that are always busy, or arrivals that do not wait for answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_distr::{Distribution, Exp};
use rand_pcg::Pcg64;

use super::connection::Connection;
use super::model::Model;
use super::request::Dialect;

/// Requests that can be under way at once when arrivals do not wait.
const OPEN_CONNECTIONS: usize = 256;
/// A client gives up after this many times its deadline.
const PATIENCE: u32 = 2;
/// For the busy connections: longer than any answer takes, and the longest that this server takes by default.
const NO_DEADLINE: Duration = Duration::from_secs(60);

/// A server, and how it takes requests.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) port: u16,
    pub(crate) dialect: Dialect,
}

/// Results with busy connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    pub(crate) per_s: f64,
    pub(crate) p99_ms: f64,
}

/// Results with arrivals of one model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) sent: usize,
    pub(crate) in_time: usize,
}

/// Each of `connections` sends the model's next request when it has an answer.
///
/// # Panics
/// A request is refused.
pub(crate) fn busy(target: Target, model: Model, connections: usize, time: Duration) -> Busy {
    let requests = Arc::new(requests(target, model, NO_DEADLINE));
    let began = Instant::now();
    let clients = (0..connections).map(|client| {
        let requests = Arc::clone(&requests);
        thread::spawn(move || {
            let mut connection = Connection::open(target.port).unwrap();
            let mut latencies = Vec::new();
            let mut turn = requests.iter().cycle().skip(client * 7);
            while began.elapsed() < time {
                let sent = Instant::now();
                let answer = connection.ask(turn.next().unwrap(), None).unwrap();
                let said = || String::from_utf8_lossy(&answer.body).into_owned();
                assert!(answer.is_ok, "{}: {}", model.name(), said());
                // The load is smaller after the end.
                let ended = began.elapsed();
                if ended < time {
                    latencies.push((sent.elapsed().as_secs_f64() * 1e3, ended));
                }
            }
            latencies
        })
    });
    let clients: Vec<_> = clients.collect();
    let answers = clients
        .into_iter()
        .flat_map(|client| client.join().unwrap());
    let answers: Vec<(f64, Duration)> = answers.collect();
    // Up to the last answer: at the end a batch may be half done.
    let until = answers.iter().map(|answer| answer.1).max();
    let mut latencies: Vec<f64> = answers.iter().map(|answer| answer.0).collect();
    latencies.sort_by(f64::total_cmp);
    let p99 = latencies.get(latencies.len() * 99 / 100);
    Busy {
        per_s: latencies.len() as f64 / until.unwrap_or(time).as_secs_f64(),
        p99_ms: p99.copied().unwrap_or(f64::NAN),
    }
}

/// Poisson arrivals of these rates per second. The latency counts from the arrival, also while no connection is
/// free to send.
pub(crate) fn arriving(target: Target, rates: &[(Model, f64)], time: Duration) -> Vec<Arrived> {
    let arrivals = Arc::new(arrivals(rates, time));
    let requests = rates
        .iter()
        .map(|&(model, _)| requests(target, model, model.deadline()));
    let requests: Arc<Vec<_>> = Arc::new(requests.collect());
    let models: Vec<Model> = rates.iter().map(|(model, _)| *model).collect();
    let next = Arc::new(AtomicUsize::new(0));
    // Connecting takes its time.
    let began = Instant::now() + Duration::from_millis(300);
    let clients = (0..OPEN_CONNECTIONS).map(|_| {
        let (arrivals, requests) = (Arc::clone(&arrivals), Arc::clone(&requests));
        let (models, next) = (models.clone(), Arc::clone(&next));
        thread::spawn(move || {
            let mut connection = Connection::open(target.port).unwrap();
            let mut counts = vec![Arrived::default(); models.len()];
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(at, model)) = arrivals.get(number) else {
                    break counts;
                };
                let due = began + at;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                counts[model].sent += 1;
                let deadline = models[model].deadline();
                let patience = (deadline * PATIENCE).saturating_sub(due.elapsed());
                if patience.is_zero() {
                    continue;
                }
                let requests = &requests[model];
                let answer = connection.ask(&requests[number % requests.len()], Some(patience));
                let is_ok = answer.is_ok_and(|answer| answer.is_ok);
                counts[model].in_time += usize::from(is_ok && due.elapsed() <= deadline);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut sums = vec![Arrived::default(); rates.len()];
    for client in clients {
        for (sum, count) in sums.iter_mut().zip(client.join().unwrap()) {
            sum.sent += count.sent;
            sum.in_time += count.in_time;
        }
    }
    sums
}

fn requests(target: Target, model: Model, timeout: Duration) -> Vec<Vec<u8>> {
    let drawn = model.drawn().into_iter();
    drawn
        .map(|input| target.dialect.request(model, &input, timeout))
        .collect()
}

/// Times and positions in `rates`, in order.
fn arrivals(rates: &[(Model, f64)], time: Duration) -> Vec<(Duration, usize)> {
    let mut rng = Pcg64::seed_from_u64(2);
    let mut all = Vec::new();
    for (position, &(_, per_s)) in rates.iter().enumerate() {
        let gaps = Exp::new(per_s).unwrap();
        let mut at = gaps.sample(&mut rng);
        while at < time.as_secs_f64() {
            all.push((Duration::from_secs_f64(at), position));
            at += gaps.sample(&mut rng);
        }
    }
    all.sort();
    all
}

//! One run: a server of its own, all requests, its status at the end.

use std::path::Path;
use std::time::{Duration, Instant};

use hyper::Uri;
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Micros;
use switchyard_server::admin::ServerStatus;
use switchyard_sim::served::{ServedEnd, ServedRun, ServedTotals};

use super::client::{self, Due, Exchange};
use super::inputs::AppInputs;
use super::options::{LiveOptions, LiveWorkers};
use super::replies::Overheads;
use crate::commands::Failure;
use crate::demo::{DemoError, ServerProcess};

/// Looks at the server's clock.
const CLOCK_LOOKS: usize = 9;

/// The results of one run.
pub(super) struct Served {
    pub(super) ends: Vec<ServedEnd>,
    pub(super) totals: ServedTotals,
    pub(super) overheads: Overheads,
}

/// Serves the requests of a run with this configuration.
pub(super) fn serve(
    config: &Path,
    run: &ServedRun,
    catalog: &Catalog,
    seed: u64,
    options: &LiveOptions,
) -> Result<Served, Failure> {
    // A thread of its own: the server that it starts inherits its cores.
    let started = std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            if let (LiveWorkers::StandIn, Some(core)) = (options.workers, options.client_core) {
                switchyard_threads::keep_off(core).map_err(Failure::check)?;
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(Failure::check)?;
            runtime.block_on(exchange(config, run, catalog, seed, options.client_core))
        });
        serving.join()
    });
    let (exchanges, status) =
        started.map_err(|_| Failure::check("the thread of the server panicked"))??;
    let (mut ends, mut overheads, mut length) = (Vec::new(), Overheads::default(), Micros::ZERO);
    for exchange in &exchanges {
        let Some(arrival) = run.arrivals().get(exchange.request) else {
            continue;
        };
        let end = overheads.end(exchange, arrival, catalog);
        let end = end.map_err(Failure::check)?;
        length = length.max(Micros(arrival.at.0) + end.latency);
        ends.push(end);
    }
    Ok(Served {
        ends,
        totals: totals(&status, length),
        overheads,
    })
}

async fn exchange(
    config: &Path,
    run: &ServedRun,
    catalog: &Catalog,
    seed: u64,
    core: Option<usize>,
) -> Result<(Vec<Exchange>, ServerStatus), Failure> {
    let server = ServerProcess::start(config, |_| {}).await.map_err(failed)?;
    let ready = server.until("become ready", |status| status.ready);
    ready.await.map_err(failed)?;
    let mut apps = Vec::new();
    for app in &catalog.apps {
        let uri = format!("http://{}/v2/models/{}", server.http, app.name);
        let metadata = client::get(&uri).await.map_err(Failure::check)?;
        let inputs = AppInputs::read(&app.name, app.classes.len(), seed, &metadata);
        let uri: Uri = format!("{uri}/infer").parse().map_err(Failure::check)?;
        apps.push((inputs.map_err(Failure::input)?, uri));
    }
    let due = (0..).zip(run.arrivals()).filter_map(|(at, arrival)| {
        let (inputs, uri) = apps.get(arrival.app.index())?;
        Some(Due {
            at: Duration::from_micros(arrival.at.0),
            uri: uri.clone(),
            body: inputs.body(at, arrival.label(), arrival.deadline()),
        })
    });
    let (due, address): (Vec<Due>, _) = (due.collect(), server.http);
    let origin = clock_origin(&server).await?;
    let sending = tokio::task::spawn_blocking(move || client::send(address, origin, due, core));
    let exchanges = sending.await.map_err(Failure::check)?;
    let exchanges = exchanges.map_err(Failure::check)?;
    let status = server.status().await.map_err(failed)?;
    server.stop().await.map_err(failed)?;
    Ok((exchanges, status))
}

/// The zero of the server's clock, from the quickest of several looks at it.
async fn clock_origin(server: &ServerProcess) -> Result<Instant, Failure> {
    let mut quickest: Option<(Duration, Instant)> = None;
    for _ in 0..CLOCK_LOOKS {
        let asked = Instant::now();
        let status = server.status().await.map_err(failed)?;
        let took = asked.elapsed();
        let origin = (asked + took / 2).checked_sub(Duration::from_micros(status.now_us));
        let look = origin.map(|origin| (took, origin));
        quickest = [quickest, look]
            .into_iter()
            .flatten()
            .min_by_key(|look| look.0);
    }
    let (_, origin) = quickest.ok_or_else(|| Failure::check("the server's clock is too old"))?;
    Ok(origin)
}

fn totals(status: &ServerStatus, length: Micros) -> ServedTotals {
    let Some(pool) = status.pools.first() else {
        return ServedTotals::default();
    };
    ServedTotals {
        policy: pool.driver.policy.clone(),
        length,
        windows: pool.driver.windows,
        faults: pool.driver.faults.clone(),
        is_taken_off: pool.policies.active.is_none() && !pool.driver.faults.is_empty(),
        ledger: pool.driver.outcomes.clone(),
    }
}

fn failed(error: DemoError) -> Failure {
    match error {
        DemoError::Input(reason) => Failure::input(reason),
        DemoError::Server(reason) => Failure::check(format!("the server {reason}")),
    }
}

//! Rounds of phases, one policy each, on the same arrivals. Between phases the policy's file is
//! replaced while requests continue to arrive.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, sleep_until};

use super::child::ServerProcess;
use super::client::Client;
use super::error::DemoError;
use super::options::DemoOptions;
use super::report::{DemoReport, Row, SwapRow};
use super::score::{Outcome, Score, Scores};
use super::simulated::Simulated;
use super::stage::{Stage, StageApp};
use super::workload::{Asked, Request, Workload};
use switchyard_server::admin::ServerStatus;
use switchyard_server::policies::{Swap, SwapResult};

/// Time before and after a swap in which requests arrive.
const AROUND_SWAP: Duration = Duration::from_millis(250);

/// Added to the seed for requests that are sent but not compared.
const BETWEEN: u64 = 0x5eed;

/// Most requests a second of all apps together: the client and the server share the machine, and a GPU
/// has a capacity that its clients could not ask for.
const RATE_MAX_PER_S: f64 = 4_000.0;

/// Runs the demo; progress goes to stderr.
///
/// # Errors
/// Models, policies or profile cannot be used, or the server fails. Bad results of a policy are no
/// error: see [`DemoReport::failures`].
pub(crate) fn run(options: &DemoOptions) -> Result<DemoReport, DemoError> {
    let stage = Stage::set(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| DemoError::Input(error.to_string()))?;
    runtime.block_on(show(options, stage))
}

async fn show(options: &DemoOptions, stage: Stage) -> Result<DemoReport, DemoError> {
    let bar = progress();
    let first = options
        .names
        .first()
        .ok_or_else(|| DemoError::Input("no policy to show".to_owned()))?;
    stage.play(first)?;
    let (config, log) = (stage.config(), bar.clone());
    let server = ServerProcess::start(&config, move |line| {
        // A closed stderr does not end the demo.
        log.suspend(|| drop(writeln!(std::io::stderr(), "  server: {line}")));
    })
    .await?;
    server.until("become ready", |status| status.ready).await?;
    let names = stage.apps.iter().map(|app| app.zoo.card.name.clone());
    let client = Client::new(server.http, names).map_err(DemoError::Server)?;
    let phase = Duration::from_secs_f64(options.phase_s);
    let apps = stage.apps.as_slice();
    let load = options.load.min(RATE_MAX_PER_S / mean_capacity(apps));
    let mut show = Show {
        load,
        rate_per_s: load * mean_capacity(apps),
        phase: workload(apps, options.seed, load)?.phase(phase),
        between: workload(apps, options.seed ^ BETWEEN, load)?,
        serving: first.clone(),
        scores: vec![Scores::new(stage.apps.len()); options.names.len()],
        other: Score::default(),
        swaps: Vec::new(),
        stage,
        server,
        client,
        bar,
    };
    for _ in 0..options.rounds {
        for (i, name) in options.names.iter().enumerate() {
            show.swap_to(name).await?;
            show.phase(i, name).await;
        }
    }
    show.bar.set_message("simulating".to_owned());
    let simulated = simulated(options, &show)?;
    show.end(options, simulated).await
}

/// The phase under each policy, simulated.
fn simulated(options: &DemoOptions, show: &Show) -> Result<Vec<Simulated>, DemoError> {
    let length = Duration::from_secs_f64(options.phase_s);
    let stage = &show.stage;
    let of = |name: &String| {
        let file = stage.component(name);
        stage.twin.run(&file, &show.phase, length, options.seed)
    };
    options.names.iter().map(of).collect()
}

/// Requests for all apps. Each app gets the same share of the machine; its rate is the capacity of its
/// most accurate variant on that share, times the load.
fn workload(apps: &[StageApp], seed: u64, load: f64) -> Result<Workload, DemoError> {
    let share = load / apps.len().max(1) as f64;
    let asked = apps
        .iter()
        .map(|app| Asked::try_new(&app.zoo, seed, share * app.capacity_per_s, app.slo));
    let asked = asked.collect::<Result<_, _>>().map_err(DemoError::Input)?;
    Ok(Workload::new(seed, asked))
}

/// Capacity in requests per second of all apps together, on equal shares of the machine: the mean of
/// the capacities of their most accurate variants.
fn mean_capacity(apps: &[StageApp]) -> f64 {
    let sum: f64 = apps.iter().map(|app| app.capacity_per_s).sum();
    sum / apps.len().max(1) as f64
}

struct Show {
    stage: Stage,
    /// Share of the capacity that is offered.
    load: f64,
    /// Mean rate of all requests.
    rate_per_s: f64,
    server: ServerProcess,
    client: Client,
    bar: ProgressBar,
    /// The requests of every phase.
    phase: Vec<Request>,
    /// The requests between phases.
    between: Workload,
    /// Name of the active policy.
    serving: String,
    scores: Vec<Scores>,
    /// Of the requests between phases.
    other: Score,
    swaps: Vec<SwapRow>,
}

// === impl Show ===

impl Show {
    /// Replaces the policy's file while requests arrive, and waits until the new policy serves.
    async fn swap_to(&mut self, name: &str) -> Result<(), DemoError> {
        let (outcomes, received) = unbounded_channel();
        let swapping = Self::change(&self.stage, &self.server, &self.client, &self.serving, name);
        let swap = {
            let between = &mut self.between;
            let client = &self.client;
            tokio::pin!(swapping);
            loop {
                let (gap, request) = between.steady();
                let due = Instant::now() + gap;
                tokio::select! {
                    swap = &mut swapping => break swap?,
                    () = sleep_until(due) => client.send(request, due, outcomes.clone()),
                }
            }
        };
        drop(outcomes);
        self.collect(received, None).await;
        self.serving = name.to_owned();
        self.swaps.extend(swap);
        Ok(())
    }

    /// The swap; none if the policy serves already.
    async fn change(
        stage: &Stage,
        server: &ServerProcess,
        client: &Client,
        old: &str,
        new: &str,
    ) -> Result<Option<SwapRow>, DemoError> {
        sleep(AROUND_SWAP).await;
        if old == new {
            return Ok(None);
        }
        let before = swaps_of(&server.status().await?).len();
        stage.play(new)?;
        let (sent, in_flight) = (client.sent(), client.in_flight());
        let status = server
            .until("switch policies", |it| swaps_of(it).len() > before)
            .await?;
        let meanwhile = in_flight + client.sent() - sent;
        sleep(AROUND_SWAP).await;
        match swaps_of(&status).last() {
            Some(swap) if swap.result == SwapResult::Switched => Ok(Some(SwapRow {
                from: old.to_owned(),
                to: swap.policy.clone(),
                compile_us: swap.compile_us,
                validate_us: swap.validate_us,
                switch_us: swap.switch_us,
                meanwhile,
            })),
            Some(swap) => {
                let reason = swap.error.as_deref().unwrap_or("no reason given");
                Err(DemoError::Server(format!("refused {new}: {reason}")))
            }
            None => Err(DemoError::Server("reports no swap".to_owned())),
        }
    }

    /// Sends the phase's requests when they are due, then waits for all of them.
    async fn phase(&mut self, policy: usize, name: &str) {
        self.bar.set_message(name.to_owned());
        let (outcomes, received) = unbounded_channel();
        let start = Instant::now();
        send_all(&self.client, self.phase.clone(), start, outcomes, &self.bar).await;
        self.collect(received, Some(policy)).await;
    }

    /// Counts outcomes until the last request has ended.
    async fn collect(&mut self, mut outcomes: UnboundedReceiver<Outcome>, policy: Option<usize>) {
        while let Some(outcome) = outcomes.recv().await {
            let penalty = self.stage.apps[outcome.app].penalty;
            match policy {
                Some(policy) => self.scores[policy].add(&outcome, penalty),
                None => self.other.add(&outcome, penalty),
            }
        }
    }

    async fn end(
        self,
        options: &DemoOptions,
        simulated: Vec<Simulated>,
    ) -> Result<DemoReport, DemoError> {
        self.bar.finish_and_clear();
        let status = self.server.status().await?;
        let stopped = self.server.stop().await?;
        let time = Duration::from_secs_f64(options.phase_s * options.rounds as f64);
        let apps = self.stage.apps.iter();
        let apps: Vec<_> = apps.map(|app| app.zoo.card.name.as_str()).collect();
        let scores = options.names.iter().zip(&self.scores).zip(simulated);
        let counted = || self.scores.iter().map(|it| &it.all).chain([&self.other]);
        Ok(DemoReport {
            load: self.load,
            rate_per_s: self.rate_per_s,
            policies: scores
                .map(|((name, scores), simulated)| Row::new(name, scores, simulated, &apps, time))
                .collect(),
            between: self.other.requests,
            lost: counted().map(|score| score.lost).sum(),
            refused: counted().map(|score| score.refused).sum(),
            error: counted().find_map(|score| score.error.clone()),
            imbalance: status.pools.iter().map(|pool| pool.driver.imbalance).sum(),
            swaps: self.swaps,
            drained: stopped.success(),
        })
    }
}

async fn send_all(
    client: &Client,
    requests: Vec<Request>,
    start: Instant,
    outcomes: UnboundedSender<Outcome>,
    bar: &ProgressBar,
) {
    for request in requests {
        let due = start + request.at;
        sleep_until(due).await;
        client.send(request, due, outcomes.clone());
        bar.inc(1);
    }
}

fn swaps_of(status: &ServerStatus) -> Vec<&Swap> {
    let pools = status.pools.iter();
    pools.flat_map(|pool| &pool.policies.swaps).collect()
}

fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:>12} {wide_bar} {pos} requests {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::no_length().with_style(style);
    bar.set_message("starting");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

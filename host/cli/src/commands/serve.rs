//! `switchyard serve`: run the server until a signal stops it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use switchyard_executor::candle_threads::{candle_misfit, configure_candle};

use super::failure::Failure;
use super::shipped::config_of;
use switchyard_server::config::{Config, ConfigError};
use switchyard_server::server::{ConfigSource, Listeners, Server};
use switchyard_server::shutdown::{self, Cancel};
use switchyard_server::telemetry::{LogFormat, init_server_log};

/// Run the server
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  switchyard serve
  switchyard serve --config switchyard.toml
  switchyard serve --policies target/policies --zoo models/zoo --http 127.0.0.1:9000

The server binds its addresses first, then reads models and profile; if no profile of this
machine fits, it measures one. While it serves it takes in changes of the configuration and
of the models' cards: apps, workers and pools; SIGHUP makes it look. On SIGTERM or SIGINT it
answers the accepted requests and stops; a second signal ends it at once.")]
pub(super) struct ServeArgs {
    /// Configuration file [default: the shipped demo configuration]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of policies; overrides policies.dir
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// Folder of models; overrides every app's zoo
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Address of the inference port; overrides server.http; port 0: a free port
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Address of the gRPC port; overrides server.grpc
    #[arg(long, value_name = "ADDR")]
    grpc: Option<SocketAddr>,
    /// Address of the admin port; overrides server.admin
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
}

// === impl ServeArgs ===

impl ServeArgs {
    fn config(&self) -> Result<Config, ConfigError> {
        let mut config = config_of(self.config.as_deref())?;
        if let Some(policies) = &self.policies {
            config.policies.dir.clone_from(policies);
        }
        if let Some(zoo) = &self.zoo {
            for app in &mut config.apps {
                app.zoo.clone_from(zoo);
            }
        }
        config.server.http = self.http.unwrap_or(config.server.http);
        config.server.grpc = self.grpc.or(config.server.grpc);
        config.server.admin = self.admin.unwrap_or(config.server.admin);
        config.check()?;
        Ok(config)
    }

    /// The configuration, to be followed.
    fn source(self) -> ConfigSource {
        ConfigSource {
            file: self.config.clone(),
            read: Box::new(move || self.config()),
        }
    }
}

/// Serves until a signal. Starts the log, in a format and with the filter to use without `RUST_LOG`.
pub(super) fn run(args: &ServeArgs, log: LogFormat, filter: &str) -> Result<(), Failure> {
    let config = args.config().map_err(Failure::input)?;
    let threads = config.workers.iter().map(|worker| worker.threads).max();
    configure_candle(threads.unwrap_or(1));
    // After the environment is set: it has a thread. Until the end: it writes the last lines.
    let _log = init_server_log(log, filter).map_err(Failure::input)?;
    if let Some(misfit) = candle_misfit(threads.unwrap_or(1)) {
        tracing::warn!("{misfit}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.server.threads())
        .enable_all()
        .build()
        .map_err(Failure::input)?;
    let served = runtime.block_on(serve(config, args.clone().source()));
    // A task that blocks, such as a read of a file that hangs, does not hold up the end.
    runtime.shutdown_background();
    served
}

async fn serve(config: Config, source: ConfigSource) -> Result<(), Failure> {
    let mut signalled = Box::pin(shutdown::signalled().map_err(Failure::input)?);
    // Before the start, which may measure for a while, so that a taken port is reported at once.
    let listeners = Listeners::bind(&config.server)
        .await
        .map_err(Failure::input)?;
    let cancel = Cancel::default();
    let drain_timeout = config.server.drain_timeout();
    let starting = tokio::task::spawn_blocking({
        let cancel = cancel.clone();
        move || Server::start_unless(config, &cancel)
    });
    tokio::pin!(starting);
    let started = tokio::select! {
        started = &mut starting => started,
        signal = &mut signalled => {
            tracing::info!(signal, "stopping before the start is complete");
            cancel.cancel();
            // A read that hangs, such as of a network disk, ends with the process.
            if let Ok(started) = tokio::time::timeout(drain_timeout, &mut starting).await {
                started.map_err(Failure::check)?.map_or_else(
                    |error| if error.is_cancelled() { Ok(()) } else { Err(Failure::input(error)) },
                    |_server| Ok(()),
                )?;
            }
            tracing::info!("stopped");
            return Ok(());
        }
    };
    let mut server = started.map_err(Failure::check)?.map_err(Failure::input)?;
    server.follow(source);
    let http = listeners.http_addr().map_err(Failure::input)?;
    let admin = listeners.admin_addr().map_err(Failure::input)?;
    match listeners.grpc_addr().map_err(Failure::input)? {
        Some(grpc) => tracing::info!(%http, %grpc, %admin, "listening"),
        None => tracing::info!(%http, %admin, "listening"),
    }
    let shutdown = async {
        let signal = signalled.await;
        tracing::info!(signal, "draining");
    };
    server
        .serve(listeners, shutdown)
        .await
        .map_err(Failure::check)?;
    tracing::info!("stopped");
    Ok(())
}

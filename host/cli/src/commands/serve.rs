//! `switchyard serve`: run the server until a signal stops it.

use std::path::{Path, PathBuf};

use clap::Args;
use switchyard_executor::candle_threads::{candle_misfit, configure_candle};

use super::failure::Failure;
use super::print;
use super::serving;
use switchyard_server::config::{Config, ConfigError, Draft};
use switchyard_server::inspect::{Inspection, inspect};
use switchyard_server::server::{ConfigSource, Listeners, Server, StartError};
use switchyard_server::shutdown::{self, Cancel};
use switchyard_server::sockets::ListenAddress;
use switchyard_server::telemetry::{LogFormat, init_log, init_server_log};
use switchyard_simulate::bundle::Use;
use switchyard_simulate::shipped::{self, draft_of};

/// Run the server
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  switchyard serve
  switchyard serve --config switchyard.toml
  switchyard serve --policies target/policies --zoo models/zoo --http 127.0.0.1:9000

  switchyard serve --check

Without --config it takes ./switchyard.toml, otherwise switchyard.toml in ~/.config/switchyard
($XDG_CONFIG_HOME) or /etc/switchyard, otherwise the shipped one. A variable such as
SWITCHYARD_SERVER__HTTP overrides a field. The server binds its addresses first, then reads models and profile; if no profile of this
machine fits, it measures one. While it serves it takes in changes of the configuration and
of the models' cards: apps, workers and pools; SIGHUP makes it look. On SIGTERM or SIGINT it
answers the accepted requests and stops; a second signal ends it at once.")]
pub(super) struct ServeArgs {
    /// Configuration file [default: the first that is found, see below]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print every mistake of the configuration, or a summary of the server; serve nothing
    #[arg(long)]
    check: bool,
    /// Folder of policies; overrides policies.dir
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    /// Folder of models; overrides every app's zoo
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Address of the inference port, or unix:PATH; overrides server.http; port 0: a free port
    #[arg(long, value_name = "ADDR")]
    http: Option<ListenAddress>,
    /// Address of the gRPC port, or unix:PATH; overrides server.grpc
    #[arg(long, value_name = "ADDR")]
    grpc: Option<ListenAddress>,
    /// Address of the admin port, or unix:PATH; overrides server.admin
    #[arg(long, value_name = "ADDR")]
    admin: Option<ListenAddress>,
}

// === impl ServeArgs ===

impl ServeArgs {
    /// The configuration with its mistakes, read from `file`.
    fn draft(&self, file: Option<&Path>, how: Use) -> Result<Draft, ConfigError> {
        draft_of(file, how, |config| self.override_fields(config))
    }

    fn override_fields(&self, config: &mut Config) {
        let mut by = |field: &str, option: &str| config.written.overridden(field, option);
        if let Some(policies) = &self.policies {
            config.policies.dir.clone_from(policies);
            by("policies.dir", "--policies");
        }
        if let Some(zoo) = &self.zoo {
            for (i, app) in config.apps.iter_mut().enumerate() {
                app.zoo.clone_from(zoo);
                by(&format!("app[{i}].zoo"), "--zoo");
            }
        }
        if let Some(http) = &self.http {
            config.server.http.clone_from(http);
            by("server.http", "--http");
        }
        if let Some(grpc) = &self.grpc {
            config.server.grpc = Some(grpc.clone());
            by("server.grpc", "--grpc");
        }
        if let Some(admin) = &self.admin {
            config.server.admin.clone_from(admin);
            by("server.admin", "--admin");
        }
    }

    /// The configuration, to be followed.
    fn source(self, file: Option<PathBuf>) -> ConfigSource {
        ConfigSource {
            file: file.clone(),
            read: Box::new(move || self.draft(file.as_deref(), Use::Copied)?.finish()),
        }
    }
}

/// Serves until a signal. Starts the log, in a format and with the filter to use without `RUST_LOG`.
pub(super) fn run(args: &ServeArgs, log: LogFormat, filter: &str) -> Result<(), Failure> {
    let file = args.config.clone().or_else(shipped::find);
    if args.check {
        init_log(log, "error");
        return check(args, file.as_deref());
    }
    // Looked at before the log has its thread: candle reads variables of the environment.
    let draft = args.draft(file.as_deref(), Use::InPlace);
    let config = draft.and_then(Draft::finish).map_err(Failure::input)?;
    let threads = config.workers.iter().map(|worker| worker.threads).max();
    configure_candle(threads.unwrap_or(1));
    // After the environment is set: it has a thread. Until the end: it writes the last lines.
    let _log = init_server_log(log, filter).map_err(Failure::input)?;
    tracing::info!(file = %config.source.display(), "configuration");
    // The same again: now bundled policies are copied, as the log says.
    let draft = args.draft(file.as_deref(), Use::Copied);
    let config = draft.and_then(Draft::finish).map_err(Failure::input)?;
    if let Some(misfit) = candle_misfit(threads.unwrap_or(1)) {
        tracing::warn!("{misfit}");
    }
    let threads = config.server.threads();
    serving::run(threads, serve(config, args.clone().source(file)))
}

/// Prints the findings.
fn check(args: &ServeArgs, file: Option<&Path>) -> Result<(), Failure> {
    let draft = args.draft(file, Use::InPlace).map_err(Failure::input)?;
    let Inspection { mistakes, summary } = inspect(&draft);
    match (mistakes.len(), summary) {
        (0, Some(summary)) => print::line(summary.trim_end()),
        (0, None) => Err(Failure::check("the configuration cannot be read whole")),
        (1, _) => Err(Failure::input(format!(
            "1 mistake\n{}",
            mistakes.join("\n")
        ))),
        (count, _) => {
            let mistakes = mistakes.join("\n");
            Err(Failure::input(format!("{count} mistakes\n{mistakes}")))
        }
    }
}

async fn serve(config: Config, source: ConfigSource) -> Result<(), Failure> {
    let mut signalled = Box::pin(shutdown::signalled().map_err(Failure::input)?);
    // Before the start, which may measure for a while, so that a taken port is reported at once.
    let listeners = Listeners::bind(&config.server).map_err(Failure::input)?;
    let cancel = Cancel::default();
    let drain_timeout = config.server.drain_timeout();
    let starting = tokio::task::spawn_blocking({
        let cancel = cancel.clone();
        move || {
            let server = Server::start_unless(config, &cancel)?;
            server.require_policies(&cancel)?;
            Ok::<_, StartError>(server)
        }
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
    serving::ended(server.serve(listeners, serving::stopping(signalled))).await
}

//! `switchyard worker`: runs batches for a scheduler on another machine.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use switchyard_executor::candle_threads::configure_candle;
use switchyard_remote::{Etcd, RegisteredWorker, Registration, RemoteAddress};
use switchyard_server::config::{Config, Draft, TlsConfig};
use switchyard_server::server::{WorkerListeners, WorkerServer};
use switchyard_server::shutdown;
use switchyard_server::sockets::ListenAddress;
use switchyard_server::telemetry::{LogFormat, init_server_log};

use super::failure::Failure;
use super::serving;
use switchyard_simulate::bundle::Use;
use switchyard_simulate::shipped::{self, draft_of};

/// Run batches for a scheduler on another machine
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  switchyard worker far-a --config switchyard.toml --grpc 0.0.0.0:8001

Both machines have the same configuration and zoo. In it the worker has remote.url with the
address of this machine; here its threads, cores and memory_mb count. It loads its models first.
With remote.etcd it registers itself there, and leaves before it stops.
Without --certificate the ports ask for no credentials: keep them inside a private network.")]
pub(super) struct WorkerArgs {
    /// Name of the worker to run, in the configuration
    name: String,
    /// Configuration file [default: as for serve]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of models; overrides every app's zoo
    #[arg(long, value_name = "DIR")]
    zoo: Option<PathBuf>,
    /// Address for batches, or unix:PATH; port 0: a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8001")]
    grpc: ListenAddress,
    /// Address for probes of readiness, or unix:PATH; port 0: a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    http: ListenAddress,
    /// Address for schedulers, as HOST:PORT, with remote.etcd [default: that of --grpc]
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Name of this process in etcd: it keeps its slot after a restart [default: --advertise]
    #[arg(long = "as", value_name = "NAME")]
    instance: Option<String>,
    /// Certificate of this worker, then those of its issuers (PEM): both ports serve TLS
    #[arg(long, value_name = "FILE", requires_all = ["key", "client_ca"])]
    certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Certificates of the authorities of schedulers (PEM): others get no connection
    #[arg(long, value_name = "FILE", requires = "certificate")]
    client_ca: Option<PathBuf>,
}

/// Serves until a signal.
pub(super) fn run(args: &WorkerArgs, log: LogFormat, filter: &str) -> Result<(), Failure> {
    let file = args.config.clone().or_else(shipped::find);
    let draft = draft_of(file.as_deref(), Use::InPlace, |config| {
        args.override_fields(config);
    });
    let config = draft.and_then(Draft::finish).map_err(Failure::input)?;
    let worker = config
        .workers
        .iter()
        .find(|worker| worker.name == args.name);
    configure_candle(worker.map_or(1, |worker| worker.threads));
    let url = worker.and_then(|worker| worker.remote.as_ref());
    let url = url.map(|remote| remote.url.clone()).unwrap_or_default();
    // After the environment is set: it has a thread.
    let _log = init_server_log(log, filter).map_err(Failure::input)?;
    if url.starts_with("grpcs://") && args.certificate.is_none() {
        tracing::warn!(
            url,
            "serves without TLS: a proxy in front has to end it, or give --certificate, --key and --client-ca"
        );
    }
    serving::run(config.server.threads(), serve(config, args))
}

async fn serve(config: Config, args: &WorkerArgs) -> Result<(), Failure> {
    let signalled = shutdown::signalled().map_err(Failure::input)?;
    let mode = config.server.socket_mode;
    let listeners = WorkerListeners::bind(&args.grpc, &args.http, mode, args.tls().as_ref());
    let listeners = listeners.map_err(Failure::input)?;
    let entry = args
        .entry(&config, &listeners.grpc)
        .map_err(Failure::input)?;
    let name = args.name.clone();
    let started = tokio::task::spawn_blocking(move || WorkerServer::start(&config, &name)).await;
    let server = started.map_err(Failure::check)?.map_err(Failure::input)?;
    let (grpc, http) = (&listeners.grpc, &listeners.http);
    tracing::info!(%grpc, %http, worker = args.name, "listening");
    let mut registration = entry.map(|(etcd, worker)| Registration::start(etcd, worker));
    let registered = &mut registration;
    let stopping = async move {
        serving::stopping(signalled).await;
        // First: then no more batches come.
        if let Some(registration) = registered {
            registration.end().await;
        }
    };
    let served = serving::ended(server.serve(listeners, stopping)).await;
    // A lost worker leaves too.
    if let Some(registration) = &mut registration {
        registration.end().await;
    }
    served
}

// === impl WorkerArgs ===

impl WorkerArgs {
    /// The entry of this process in etcd; none without `remote.etcd`.
    fn entry(
        &self,
        config: &Config,
        grpc: &ListenAddress,
    ) -> Result<Option<(Arc<Etcd>, RegisteredWorker)>, String> {
        let mut workers = config.workers.iter();
        let worker = workers.find(|worker| worker.name == self.name);
        let prefix = worker.and_then(|worker| worker.remote.as_ref()?.etcd.clone());
        let Some((prefix, etcd)) = prefix.zip(config.etcd.options()) else {
            if let Some(option) = self.useless_option() {
                return Err(format!(
                    "{option}: [[worker]] `{}` has no remote.etcd; leave the option out",
                    self.name
                ));
            }
            return Ok(None);
        };
        let bound = grpc.tcp().filter(|at| !at.ip().is_unspecified());
        let address = self.advertise.clone().or(bound.map(|at| at.to_string()));
        let address = address.ok_or_else(|| {
            format!("--advertise: is missing: {grpc} is no address for schedulers; give HOST:PORT, such as 10.0.0.2:8001")
        })?;
        if format!("grpc://{address}")
            .parse::<RemoteAddress>()
            .is_err()
        {
            return Err(format!(
                "--advertise: `{address}`, must be HOST:PORT with a port from 1 to 65535, such as 10.0.0.2:8001"
            ));
        }
        let name = self.instance.clone().unwrap_or_else(|| address.clone());
        if name.is_empty() || name.contains('/') {
            return Err(format!(
                "--as: `{name}`, must be a name without slashes, such as far-a"
            ));
        }
        Ok(Some((
            Etcd::shared(etcd),
            RegisteredWorker {
                prefix,
                name,
                address,
            },
        )))
    }

    fn useless_option(&self) -> Option<&'static str> {
        let advertise = self.advertise.as_ref().map(|_| "--advertise");
        advertise.or(self.instance.as_ref().map(|_| "--as"))
    }

    fn tls(&self) -> Option<TlsConfig> {
        Some(TlsConfig {
            certificate: self.certificate.clone()?,
            key: self.key.clone()?,
            client_ca: self.client_ca.clone(),
        })
    }

    fn override_fields(&self, config: &mut Config) {
        let Some(zoo) = &self.zoo else { return };
        for (i, app) in config.apps.iter_mut().enumerate() {
            app.zoo.clone_from(zoo);
            config.written.overridden(&format!("app[{i}].zoo"), "--zoo");
        }
    }
}

//! `switchyard worker`: the executor of a configuration's worker as a server, without a scheduler.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::error::{ServeError, StartError};
use super::listeners::{ALPN, bind};
use crate::assembly::PoolPlan;
use crate::backend::DirectBackend;
use crate::config::{Config, TlsConfig};
use crate::descriptors;
use crate::ingress::{self, Backends, Limits, Ports};
use crate::sockets::{BindError, ListenAddress, SocketMode};
use crate::tls::Tls;

/// Pause between two looks at parked activations.
const SWEEP_EVERY: Duration = Duration::from_millis(250);

/// A worker before it serves.
pub struct WorkerServer {
    backend: Arc<DirectBackend>,
    limits: Limits,
}

/// The sockets of a worker.
pub struct WorkerListeners {
    ports: Ports,
    /// The protocol over gRPC.
    pub grpc: ListenAddress,
    /// The protocol over HTTP, for probes.
    pub http: ListenAddress,
}

// === impl WorkerServer ===

impl WorkerServer {
    /// Reads the zoo and starts the worker of this name, which loads its models from then on.
    ///
    /// # Errors
    /// No worker of the configuration has the name, or this machine cannot run it.
    pub fn start(config: &Config, name: &str) -> Result<Self, StartError> {
        let unknown = || StartError::NoWorker {
            worker: name.to_owned(),
            known: config
                .workers
                .iter()
                .map(|worker| worker.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        };
        let worker = config.workers.iter().find(|worker| worker.name == name);
        let worker = worker.cloned().ok_or_else(unknown)?.here();
        let mut alone = config.clone();
        alone
            .pools
            .retain(|pool| pool.workers.iter().any(|worker| worker == name));
        for pool in &mut alone.pools {
            pool.workers = vec![name.to_owned()];
        }
        alone.workers = vec![worker.clone()];
        let connections_max = descriptors::prepare(config.server.connections_max);
        alone.server.connections_max = connections_max;
        let plans = PoolPlan::all(&alone)?;
        let plan = plans.first().ok_or_else(unknown)?;
        let (catalog, executor) = plan.alone()?;
        let options = DirectBackend::options(name, worker.threads, worker.cores.clone());
        let batch_max = catalog.variants.iter().map(|variant| variant.max_batch);
        let parked_max = worker.parked_max.max(batch_max.max().unwrap_or(0)) as usize;
        let bounds = (alone.server.rows_max, parked_max);
        let backend = DirectBackend::start(&catalog, &plan.tensors, bounds, options, executor)?;
        Ok(Self {
            backend: Arc::new(backend),
            limits: alone.server.limits(),
        })
    }

    /// Serves until `shutdown` completes or the worker is lost, then drains.
    ///
    /// # Errors
    /// The worker is lost: the process should be restarted; or no connection can be accepted.
    pub async fn serve(
        self,
        listeners: WorkerListeners,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let mut lost = None;
        let stop = async {
            tokio::select! {
                () = shutdown => {}
                reason = Arc::clone(&self.backend).lost() => lost = Some(reason),
                () = sweep(&self.backend) => {}
            }
        };
        let backends = Arc::new(Backends::new(
            Arc::clone(&self.backend),
            self.limits.clone(),
        ));
        ingress::serve(listeners.ports, backends, stop).await?;
        match lost {
            Some(reason) => Err(ServeError::Worker { reason }),
            None => Ok(()),
        }
    }
}

/// Forgets activations of schedulers that have gone, for ever.
async fn sweep(backend: &DirectBackend) {
    loop {
        sleep(SWEEP_EVERY).await;
        backend.sweep();
    }
}

// === impl WorkerListeners ===

impl WorkerListeners {
    /// Opens the sockets, with TLS where files are given. The mode is that of Unix sockets.
    ///
    /// # Errors
    /// An address cannot be listened on, or a file cannot be used; names the field.
    pub fn bind(
        grpc: &ListenAddress,
        http: &ListenAddress,
        mode: SocketMode,
        tls: Option<&TlsConfig>,
    ) -> Result<Self, StartError> {
        let bound = |error| StartError::Listen {
            field: "grpc",
            address: grpc.clone(),
            error: BindError::System(error),
        };
        let (on_grpc, on_http) = (bind("grpc", grpc, mode)?, bind("http", http, mode)?);
        Ok(Self {
            grpc: on_grpc.address().map_err(bound)?,
            http: on_http.address().map_err(bound)?,
            ports: Ports {
                http: on_http,
                grpc: Some(on_grpc),
                tls: match tls {
                    Some(files) => Some(Tls::open("worker", files, ALPN)?),
                    None => None,
                },
            },
        })
    }
}

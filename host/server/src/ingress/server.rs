//! The listener: connections in, a drain at the end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::backend::Backend;
use super::limits::Limits;
use super::service::Service;

/// Wait after a failed accept: out of descriptors, trying at once would spin.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// How a shutdown went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy when the drain timeout passed, and cut.
    pub cut_connections: usize,
}

/// Serves the protocol on `listener` until `shutdown` completes, then drains.
///
/// From that moment readiness answers 503, the listener is closed and new
/// inferences are refused with 503; requests already taken are finished, for at
/// most [`Limits::drain_timeout`]. Idle connections close at once.
pub async fn serve<B: Backend>(
    listener: TcpListener,
    backend: Arc<B>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Drained {
    let drain_timeout = limits.drain_timeout;
    let mut acceptor = Acceptor::new(listener, backend, limits);
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            () = acceptor.accept() => {}
        }
    }
    acceptor.drain(drain_timeout).await
}

struct Acceptor<B> {
    listener: TcpListener,
    service: Arc<Service<B>>,
    http: http1::Builder,
    /// One permit per connection that may be served at once.
    permits: Arc<Semaphore>,
    graceful: GracefulShutdown,
    /// One task per connection.
    connections: JoinSet<()>,
}

impl<B: Backend> Acceptor<B> {
    fn new(listener: TcpListener, backend: Arc<B>, limits: Limits) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.header_read_timeout)
            .max_header_size(limits.max_header_bytes);
        Self {
            listener,
            http,
            permits: Arc::new(Semaphore::new(limits.max_connections)),
            graceful: GracefulShutdown::new(),
            connections: JoinSet::new(),
            service: Arc::new(Service {
                backend,
                limits,
                draining: AtomicBool::new(false),
            }),
        }
    }

    /// Takes one connection, or clears away one that has ended. Cancel safe: a
    /// permit or connection is handed on in the step that yields it.
    async fn accept(&mut self) {
        tokio::select! {
            (accepted, permit) = next_connection(&self.listener, &self.permits) => {
                match accepted {
                    Ok(stream) => self.spawn(stream, permit),
                    Err(error) => {
                        tracing::warn!(%error, "accept failed");
                        sleep(ACCEPT_RETRY).await;
                    }
                }
            }
            Some(ended) = self.connections.join_next() => log_panic(ended),
        }
    }

    fn spawn(&mut self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        // Answers are written whole; waiting for more to send only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let service = Arc::clone(&self.service);
        let respond = service_fn(move |request| {
            let service = Arc::clone(&service);
            async move { Ok::<_, Infallible>(service.respond(request).await) }
        });
        let connection = self.http.serve_connection(TokioIo::new(stream), respond);
        let connection = self.graceful.watch(connection);
        self.connections.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
            drop(permit);
        });
    }

    async fn drain(self, drain_timeout: Duration) -> Drained {
        let Self {
            listener,
            service,
            graceful,
            mut connections,
            ..
        } = self;
        service.draining.store(true, Ordering::Release);
        drop(listener);
        // Completes when the last watched connection is gone; each of them is
        // told by the call itself, which is why it runs beside the joining.
        let finished = async {
            graceful.shutdown().await;
            while let Some(ended) = connections.join_next().await {
                log_panic(ended);
            }
        };
        let in_time = timeout(drain_timeout, finished).await.is_ok();
        while connections.try_join_next().is_some() {}
        let cut_connections = connections.len();
        if !in_time {
            tracing::warn!(cut_connections, "drain timeout passed");
            connections.shutdown().await;
        }
        Drained { cut_connections }
    }
}

/// A connection, once there is room for one.
async fn next_connection(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (io::Result<TcpStream>, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits)
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    let accepted = listener.accept().await;
    (accepted.map(|(stream, _)| stream), permit)
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task panicked");
    }
}

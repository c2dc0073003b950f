//! The listener: connections in, a drain at the end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::backend::Backend;
use super::connections::{Crowding, LOOK_EVERY, Place, Places};
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
    max_connections: usize,
    /// One task per connection that is served.
    connections: JoinSet<()>,
    places: Places,
    /// The one that waits for a place, accepted so that it is known to. All others wait in the
    /// kernel's backlog.
    at_the_door: Option<TcpStream>,
    crowding: Arc<Crowding>,
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
            max_connections: limits.max_connections,
            connections: JoinSet::new(),
            places: Places::default(),
            at_the_door: None,
            crowding: Arc::default(),
            service: Arc::new(Service {
                backend,
                limits,
                draining: AtomicBool::new(false),
            }),
        }
    }

    /// Takes one connection, or clears away one that has ended, or makes room for one that
    /// waits. Cancel safe: what was accepted is kept in the step that yields it.
    async fn accept(&mut self) {
        if let Some(stream) = self
            .at_the_door
            .take_if(|_| self.connections.len() < self.max_connections)
        {
            self.crowding.end();
            return self.spawn(stream);
        }
        let waits = self.at_the_door.is_some();
        tokio::select! {
            accepted = self.listener.accept(), if !waits => match accepted {
                Ok((stream, _)) => {
                    self.at_the_door = Some(stream);
                    if self.connections.len() >= self.max_connections {
                        self.crowding.begin();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    sleep(ACCEPT_RETRY).await;
                }
            },
            Some(ended) = self.connections.join_next_with_id() => self.clear_away(ended),
            () = sleep(LOOK_EVERY), if waits => {
                // Whoever took the last turn may be slow to read its answer.
                self.crowding.begin();
                self.places.ask_one_to_leave();
            }
        }
    }

    fn spawn(&mut self, stream: TcpStream) {
        // Answers are written whole; waiting for more to send only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let place = Arc::new(Place::default());
        let (service, crowding) = (Arc::clone(&self.service), Arc::clone(&self.crowding));
        let exchanges = Arc::clone(&place);
        let respond = service_fn(move |request| {
            let (service, crowding) = (Arc::clone(&service), Arc::clone(&crowding));
            let place = Arc::clone(&exchanges);
            async move {
                place.begin();
                let mut reply = service.respond(request).await;
                if crowding.take_turn() {
                    let close = HeaderValue::from_static("close");
                    reply.headers_mut().insert(CONNECTION, close);
                }
                place.end();
                Ok::<_, Infallible>(reply)
            }
        });
        let connection = self.http.serve_connection(TokioIo::new(stream), respond);
        let leaving = Arc::clone(&place);
        let task = self.connections.spawn(async move {
            let mut connection = pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = leaving.told_to_leave() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "connection ended");
            }
        });
        self.places.seat(task.id(), place);
    }

    fn clear_away(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.places.leave(id);
        log_panic(ended.map(drop));
    }

    async fn drain(self, drain_timeout: Duration) -> Drained {
        let Self {
            listener,
            service,
            mut connections,
            mut places,
            ..
        } = self;
        service.draining.store(true, Ordering::Release);
        drop(listener);
        places.ask_all_to_leave();
        let finished = async {
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

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task panicked");
    }
}

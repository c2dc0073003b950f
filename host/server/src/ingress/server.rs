//! Serves the accepted connections, and drains them at the end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, sleep_until, timeout};

use super::accepting::Accepting;
use super::backend::Backend;
use super::backends::Backends;
use super::clients::{ClientAddress, ClientShares};
use super::connection_state::ConnectionState;
use super::connections::{CONTENDED_INTERVAL, PermitWanted, QUIET_INTERVAL, ServedConnections};
use super::grpc;
use super::http::respond;
use super::port::{Port, Ports, accept};
use super::service::{Service, Stage};
use super::watched_stream::WatchedStream;

/// Calls of one gRPC connection at a time; clients let further ones wait.
const STREAMS_MAX: u32 = 128;

/// Bytes of all bodies of a gRPC connection that the client may send before they are read.
const CONNECTION_WINDOW: u32 = 2 << 20;

/// The same for one body.
const STREAM_WINDOW: u32 = 1 << 20;

/// The result of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy at the drain timeout, and were cut.
    pub cut_connections: usize,
}

/// Serves the protocol on its ports until `shutdown` completes, then drains.
///
/// Readiness answers 503 from then on. For [`drain_delay`](super::Limits::drain_delay) all else is
/// served as before, so that balancers stop sending requests before the listeners close. During the
/// drain the listeners are closed, and new inferences are refused with 503; accepted requests are
/// finished, for at most [`drain_timeout`](super::Limits::drain_timeout). Idle connections close at
/// once. Fails without room for the thread that accepts.
pub async fn serve<B: Backend>(
    ports: Ports,
    backends: Arc<Backends<B>>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<Drained> {
    let mut acceptor = Acceptor::new(ports, backends)?;
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            () = acceptor.step() => {}
        }
    }
    acceptor.service.set_stage(Stage::Leaving);
    let limits = acceptor.service.limits();
    let mut left = pin!(sleep(limits.drain_delay));
    loop {
        tokio::select! {
            () = &mut left => break,
            () = acceptor.step() => {}
        }
    }
    Ok(acceptor.drain(limits.drain_timeout).await)
}

struct Acceptor<B> {
    accepting: Accepting,
    grpc_listener: Option<TcpListener>,
    service: Arc<Service<B>>,
    http: http1::Builder,
    grpc: http2::Builder<TokioExecutor>,
    /// One per connection that may be served.
    permits: Arc<Semaphore>,
    /// One task per served connection.
    tasks: JoinSet<()>,
    served: ServedConnections,
    clients: ClientShares,
    /// When the acceptor looks at the connections again.
    next_look: Instant,
    /// The connection that waits for a permit: it is accepted so that the acceptor knows of it.
    /// Further ones wait in the kernel's backlog.
    waiting: Option<(TcpStream, SocketAddr, Port)>,
    permit_wanted: Arc<PermitWanted>,
}

impl<B: Backend> Acceptor<B> {
    fn new(ports: Ports, backends: Arc<Backends<B>>) -> io::Result<Self> {
        let limits = backends.limits();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.header_read_timeout)
            .max_header_size(limits.max_header_bytes);
        let mut grpc = http2::Builder::new(TokioExecutor::new());
        grpc.timer(TokioTimer::new())
            // No client of gRPC reads it.
            .auto_date_header(false)
            .max_concurrent_streams(STREAMS_MAX)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW)
            .max_header_list_size(limits.max_header_bytes.try_into().unwrap_or(u32::MAX));
        let permits = limits.max_connections.min(Semaphore::MAX_PERMITS);
        let served = ServedConnections::new(&limits);
        let clients = ClientShares::new(limits.max_connections_per_client);
        let service = Arc::new(Service::new(backends));
        Ok(Self {
            accepting: Accepting::start(ports.http, &service, &http)?,
            grpc_listener: ports.grpc,
            service,
            http,
            grpc,
            permits: Arc::new(Semaphore::new(permits)),
            tasks: JoinSet::new(),
            served,
            clients,
            next_look: Instant::now(),
            waiting: None,
            permit_wanted: Arc::default(),
        })
    }

    /// Takes in one connection, gives the waiting one its permit, cleans up after one that has
    /// ended, or ends slow and idle ones. Cancel safe: an accepted connection is in `waiting` until
    /// it is served.
    async fn step(&mut self) {
        let waits = self.waiting.is_some();
        tokio::select! {
            (stream, peer) = self.accepting.next(), if !waits => {
                self.take_in(stream, peer, Port::Http);
            }
            (stream, peer) = accept(self.grpc_listener.as_ref()), if !waits => {
                self.take_in(stream, peer, Port::Grpc);
            }
            Ok(permit) = Arc::clone(&self.permits).acquire_owned(), if waits => {
                self.permit_wanted.clear();
                if let Some((stream, peer, port)) = self.waiting.take() {
                    self.spawn(stream, peer, port, permit);
                }
            }
            Some(ended) = self.tasks.join_next_with_id() => self.clean_up(ended),
            () = sleep_until(self.next_look.into()), if !self.served.is_empty() => self.look(),
        }
    }

    /// Serves an accepted connection, lets it wait, or refuses it.
    fn take_in(&mut self, stream: TcpStream, peer: SocketAddr, port: Port) {
        if !self.clients.has_room(ClientAddress::of(peer)) {
            self.clients.refuse(stream, port);
            self.service.on_connection_refused();
            return;
        }
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => self.spawn(stream, peer, port, permit),
            Err(_) => {
                self.waiting = Some((stream, peer, port));
                self.permit_wanted.set();
                let soon = Instant::now() + CONTENDED_INTERVAL;
                self.next_look = self.next_look.min(soon);
            }
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        if self.waiting.is_some() {
            // The connection that is to end may be slow to read its last answer.
            self.permit_wanted.set();
            self.served.end_some(now);
            self.next_look = now + CONTENDED_INTERVAL;
        } else {
            self.served.end_slow(now);
            self.next_look = now + QUIET_INTERVAL;
        }
    }

    /// Serves a connection, which returns its permit when its task ends.
    fn spawn(
        &mut self,
        stream: TcpStream,
        peer: SocketAddr,
        port: Port,
        permit: OwnedSemaphorePermit,
    ) {
        // Answers are written whole; waiting for more bytes only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let state = Arc::new(ConnectionState::new(peer, port == Port::Grpc));
        let watched = WatchedStream {
            stream,
            state: Arc::clone(&state),
        };
        let task = match port {
            Port::Http => {
                let serving = self.serve_http(watched, &state);
                self.tasks.spawn(with_permit(permit, serving))
            }
            Port::Grpc => {
                let serving = self.serve_grpc(watched, &state);
                self.tasks.spawn(with_permit(permit, serving))
            }
        };
        let client = ClientAddress::of(peer);
        self.clients.add(client);
        self.served.insert(task, client, state);
    }

    fn serve_http(
        &self,
        watched: WatchedStream,
        state: &Arc<ConnectionState>,
    ) -> impl Future<Output = ()> + use<B> {
        // One count per request instead of three, two of them of all connections.
        let shared = Arc::new((
            Arc::clone(&self.service),
            Arc::clone(&self.permit_wanted),
            Arc::clone(state),
        ));
        let answer = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move {
                let (service, permit_wanted, state) = &*shared;
                state.begin_exchange();
                let mut reply = respond(&**service, request, state).await;
                if permit_wanted.take() {
                    let close = HeaderValue::from_static("close");
                    reply.headers_mut().insert(CONNECTION, close);
                }
                state.end_exchange();
                Ok::<_, Infallible>(reply)
            }
        });
        let connection = self.http.serve_connection(TokioIo::new(watched), answer);
        let ending = Arc::clone(state);
        async move {
            let mut connection = pin!(connection);
            let served = tokio::select! {
                biased;
                served = connection.as_mut() => served,
                () = ending.asked_to_end() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            log_end(served);
        }
    }

    fn serve_grpc(
        &self,
        watched: WatchedStream,
        state: &Arc<ConnectionState>,
    ) -> impl Future<Output = ()> + use<B> {
        let shared = (Arc::clone(&self.service), Arc::clone(&self.permit_wanted));
        let calls = Arc::clone(state);
        let answer = service_fn(move |request| {
            let (service, permit_wanted) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
            let state = Arc::clone(&calls);
            // Boxed: HTTP/2 moves the future several times on its way into a task.
            Box::pin(async move {
                let answer = grpc::respond(service, request, Arc::clone(&state)).await;
                if permit_wanted.take() {
                    state.ask_to_end();
                }
                Ok::<_, Infallible>(answer)
            })
        });
        let connection = self.grpc.serve_connection(TokioIo::new(watched), answer);
        let ending = Arc::clone(state);
        async move {
            let mut connection = pin!(connection);
            let served = tokio::select! {
                served = connection.as_mut() => served,
                () = ending.asked_to_end() => {
                    // Its calls end; the client opens another connection for further ones.
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            log_end(served);
        }
    }

    fn clean_up(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        if let Some(client) = self.served.remove(id) {
            self.clients.remove(client);
        }
        log_panic(ended.map(drop));
    }

    async fn drain(self, drain_timeout: Duration) -> Drained {
        let Self {
            accepting,
            grpc_listener,
            service,
            mut tasks,
            mut served,
            ..
        } = self;
        service.set_stage(Stage::Draining);
        drop(grpc_listener);
        accepting.close().await;
        served.end_all(Instant::now());
        let finished = async {
            loop {
                tokio::select! {
                    ended = tasks.join_next() => match ended {
                        Some(ended) => log_panic(ended),
                        None => break,
                    },
                    // A client that does not read must not hold the drain.
                    () = sleep(QUIET_INTERVAL) => served.end_slow_in_drain(Instant::now()),
                }
            }
        };
        let in_time = timeout(drain_timeout, finished).await.is_ok();
        while tasks.try_join_next().is_some() {}
        let cut_connections = tasks.len();
        if !in_time {
            tracing::warn!(cut_connections, "drain timeout passed");
            tasks.shutdown().await;
        }
        Drained { cut_connections }
    }
}

async fn with_permit(_permit: OwnedSemaphorePermit, serving: impl Future<Output = ()>) {
    serving.await;
}

fn log_end(served: hyper::Result<()>) {
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "the task of a connection panicked");
    }
}

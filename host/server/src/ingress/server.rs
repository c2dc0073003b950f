//! Serves the accepted connections, and drains them at the end.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, sleep_until, timeout};

use super::accepting::Accepting;
use super::backend::Backend;
use super::backends::Backends;
use super::clients::{ClientAddress, ClientShares};
use super::connection_state::ConnectionState;
use super::connections::{CONTENDED_INTERVAL, QUIET_INTERVAL, ServedConnections};
use super::port::{Port, Ports, accept};
use super::protocols::Protocols;
use super::service::{Service, Stage};
use crate::sockets::{BoundPort, Peer, PortListener};
use crate::tls::LOOK_EVERY;

/// The result of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut: slow ones, and those that were still busy at the drain timeout.
    pub cut_connections: usize,
}

/// The end of the task of a connection.
type EndedTask = Result<(Id, ()), JoinError>;

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
    acceptor.protocols.service.set_stage(Stage::Leaving);
    let limits = acceptor.protocols.service.limits();
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
    grpc_listener: Option<PortListener>,
    protocols: Arc<Protocols<B>>,
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
    waiting: Option<(TcpStream, Peer, Port)>,
    /// Reads changed certificates; ends with the acceptor.
    _following: JoinSet<()>,
}

impl<B: Backend> Acceptor<B> {
    fn new(ports: Ports, backends: Arc<Backends<B>>) -> io::Result<Self> {
        let limits = backends.limits();
        let permits = limits.max_connections.min(Semaphore::MAX_PERMITS);
        let served = ServedConnections::new(&limits);
        let clients = ClientShares::new(limits.max_connections_per_client);
        let service = Arc::new(Service::new(backends));
        let protocols = Protocols::new(service, &limits, ports.tls.map(Arc::new));
        let mut following = JoinSet::new();
        if let Some(tls) = protocols.tls.clone() {
            following.spawn(async move { tls.follow(LOOK_EVERY).await });
        }
        Ok(Self {
            accepting: Accepting::start(ports.http, &protocols)?,
            grpc_listener: ports.grpc.map(BoundPort::listen).transpose()?,
            protocols: Arc::new(protocols),
            permits: Arc::new(Semaphore::new(permits)),
            tasks: JoinSet::new(),
            served,
            clients,
            next_look: Instant::now(),
            waiting: None,
            _following: following,
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
                self.protocols.permit_wanted.clear();
                if let Some((stream, peer, port)) = self.waiting.take() {
                    self.spawn(stream, peer, port, permit);
                }
            }
            Some(ended) = self.tasks.join_next_with_id() => self.clean_up(ended),
            () = sleep_until(self.next_look.into()), if !self.served.is_empty() => self.look(),
        }
    }

    /// Serves an accepted connection, lets it wait, or refuses it.
    fn take_in(&mut self, stream: TcpStream, peer: Peer, port: Port) {
        if !self.clients.has_room(ClientAddress::of(peer)) {
            match self.protocols.tls {
                None => self.clients.refuse(stream, port),
                // The answer would take a handshake.
                Some(_) => drop(stream),
            }
            self.protocols.service.on_connection_refused();
            return;
        }
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => self.spawn(stream, peer, port, permit),
            Err(_) => {
                self.waiting = Some((stream, peer, port));
                self.protocols.permit_wanted.set();
                let soon = Instant::now() + CONTENDED_INTERVAL;
                self.next_look = self.next_look.min(soon);
            }
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        if self.waiting.is_some() {
            // The connection that is to end may be slow to read its last answer.
            self.protocols.permit_wanted.set();
            self.served.end_some(now);
            self.next_look = now + CONTENDED_INTERVAL;
        } else {
            self.served.end_slow(now);
            self.next_look = now + QUIET_INTERVAL;
        }
    }

    /// Serves a connection, which returns its permit when its task ends.
    fn spawn(&mut self, stream: TcpStream, peer: Peer, port: Port, permit: OwnedSemaphorePermit) {
        // Answers are written whole; waiting for more bytes only delays them.
        if matches!(peer, Peer::Tcp(_))
            && let Err(error) = stream.set_nodelay(true)
        {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let state = Arc::new(ConnectionState::new(peer, port == Port::Grpc));
        let (protocols, of_task) = (Arc::clone(&self.protocols), Arc::clone(&state));
        let task = match port {
            Port::Http => {
                let serving = protocols.serve_http(stream, of_task);
                self.tasks.spawn(with_permit(permit, serving))
            }
            Port::Grpc => {
                let serving = protocols.serve_grpc(stream, of_task);
                self.tasks.spawn(with_permit(permit, serving))
            }
        };
        let client = ClientAddress::of(peer);
        self.clients.add(client);
        self.served.insert(task, client, state);
    }

    fn clean_up(&mut self, ended: EndedTask) {
        if let Some(client) = self.served.remove(id_of(&ended)) {
            self.clients.remove(client);
        }
        log_panic(ended);
    }

    async fn drain(self, drain_timeout: Duration) -> Drained {
        let Self {
            accepting,
            grpc_listener,
            protocols,
            mut tasks,
            mut served,
            ..
        } = self;
        protocols.service.set_stage(Stage::Draining);
        drop(grpc_listener);
        accepting.close().await;
        served.end_all(Instant::now());
        let mut cut_connections = 0;
        let finished = async {
            loop {
                tokio::select! {
                    ended = tasks.join_next_with_id() => match ended {
                        Some(ended) => {
                            served.remove(id_of(&ended));
                            cut_connections += usize::from(was_cut(&ended));
                            log_panic(ended);
                        }
                        None => break,
                    },
                    // A client that does not read must not hold the drain.
                    () = sleep(QUIET_INTERVAL) => served.end_slow_in_drain(Instant::now()),
                }
            }
        };
        let in_time = timeout(drain_timeout, finished).await.is_ok();
        while let Some(ended) = tasks.try_join_next_with_id() {
            cut_connections += usize::from(was_cut(&ended));
        }
        cut_connections += tasks.len();
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

fn id_of(ended: &EndedTask) -> Id {
    match ended {
        Ok((id, ())) => *id,
        Err(error) => error.id(),
    }
}

/// Whether the connection was cut before its end.
fn was_cut(ended: &EndedTask) -> bool {
    ended.as_ref().is_err_and(JoinError::is_cancelled)
}

fn log_panic(ended: EndedTask) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "the task of a connection panicked");
    }
}

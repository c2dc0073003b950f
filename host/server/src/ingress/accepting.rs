//! The thread that accepts connections, and answers health checks in a crowd.
//!
//! The HTTP threads have thousands of requests to read in a flood, and a health check among them
//! would wait for its turn. This thread has a runtime of its own. In a crowd it looks at the first
//! bytes of each new connection: it answers a health check itself, and then closes the connection;
//! all others go to the HTTP threads unread.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::backend::Backend;
use super::connection_state::ConnectionState;
use super::http::respond;
use super::port;
use super::protocols::Protocols;
use super::service::Service;
use crate::sockets::{BoundPort, Peer, PortListener};

/// The first bytes of a health check.
const HEALTH_CHECK: &[u8] = b"GET /v2/health/";

/// New connections that are looked at, or answered, at a time. Further ones are handed on unseen.
const LOOKS: usize = 64;

/// Wait for the first bytes of a connection.
const FIRST_BYTES: Duration = Duration::from_secs(1);

/// Longest exchange of a health check.
const EXCHANGE: Duration = Duration::from_secs(5);

/// The accepted connections.
pub(super) struct Accepting {
    accepted: mpsc::Receiver<Accepted>,
    ended: oneshot::Receiver<()>,
}

/// Not registered with a runtime.
type Accepted = (std::net::TcpStream, Peer);

/// The thread's side.
struct AcceptThread<B> {
    service: Arc<Service<B>>,
    http: http1::Builder,
    /// Before TLS nothing can be read.
    is_plain: bool,
    looks: Arc<Semaphore>,
    accepted: mpsc::Sender<Accepted>,
}

// === impl Accepting ===

impl Accepting {
    /// Starts the thread. Fails without room for one.
    pub(super) fn start<B: Backend>(port: BoundPort, protocols: &Protocols<B>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // One that waits to be served is enough; further ones wait in the kernel's backlog.
        let (sender, accepted) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        let thread = AcceptThread {
            service: Arc::clone(&protocols.service),
            http: protocols.http.clone(),
            is_plain: protocols.tls.is_none(),
            looks: Arc::new(Semaphore::new(LOOKS)),
            accepted: sender,
        };
        let name = "accept".to_owned();
        let run = move || runtime.block_on(thread.run(port, end));
        std::thread::Builder::new().name(name).spawn(run)?;
        Ok(Self { accepted, ended })
    }

    /// The next connection that is not a health check. Cancel safe.
    pub(super) async fn next(&mut self) -> (TcpStream, Peer) {
        loop {
            let Some((stream, peer)) = self.accepted.recv().await else {
                tracing::error!("no further connections are accepted: the thread has ended");
                std::future::pending::<()>().await;
                continue;
            };
            match TcpStream::from_std(stream) {
                Ok(stream) => return (stream, peer),
                Err(error) => tracing::warn!(%error, %peer, "an accepted connection is lost"),
            }
        }
    }

    /// Closes the listener.
    pub(super) async fn close(mut self) {
        self.accepted.close();
        // An error: the thread has ended.
        let _ = self.ended.await;
    }
}

// === impl AcceptThread ===

impl<B: Backend> AcceptThread<B> {
    async fn run(self, port: BoundPort, ended: oneshot::Sender<()>) {
        match port.listen() {
            Ok(listener) => self.accept(listener).await,
            Err(error) => tracing::error!(%error, "listen"),
        }
        // An error: the server does not wait.
        let _ = ended.send(());
        let all = self.looks.acquire_many(LOOKS as u32);
        // Health checks that are being answered. An error: they are slow.
        let _ = timeout(FIRST_BYTES, all).await;
    }

    async fn accept(&self, listener: PortListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.accepted.closed() => return,
            };
            match accepted {
                Ok((stream, peer)) => self.take_in(stream, peer).await,
                Err(error) => port::retry(&error).await,
            }
        }
    }

    async fn take_in(&self, stream: TcpStream, peer: Peer) {
        let look = match self.is_plain && self.service.is_crowded() {
            true => Arc::clone(&self.looks).try_acquire_owned().ok(),
            false => None,
        };
        let Some(look) = look else {
            return hand_on(&self.accepted, stream, peer).await;
        };
        let (service, http) = (Arc::clone(&self.service), self.http.clone());
        let accepted = self.accepted.clone();
        tokio::spawn(async move {
            let _look = look;
            match timeout(FIRST_BYTES, begins_health_check(&stream)).await {
                Ok(true) => answer(stream, peer, &service, &http).await,
                Ok(false) | Err(_) => hand_on(&accepted, stream, peer).await,
            }
        });
    }
}

async fn hand_on(accepted: &mpsc::Sender<Accepted>, stream: TcpStream, peer: Peer) {
    match stream.into_std() {
        // An error: the server drains, and takes no further connection.
        Ok(stream) => drop(accepted.send((stream, peer)).await),
        Err(error) => tracing::warn!(%error, %peer, "an accepted connection is lost"),
    }
}

/// Whether the first bytes that arrive are those of a health check. Takes none of them.
async fn begins_health_check(stream: &TcpStream) -> bool {
    let mut first = [0; HEALTH_CHECK.len()];
    let seen = stream.peek(&mut first).await;
    seen.is_ok_and(|seen| first[..seen] == *HEALTH_CHECK)
}

/// Answers one request. The connection closes then: a client that goes on with inferences is served
/// by the HTTP threads.
async fn answer<B: Backend>(
    stream: TcpStream,
    peer: Peer,
    service: &Service<B>,
    http: &http1::Builder,
) {
    let state = Arc::new(ConnectionState::new(peer, false));
    let answer = service_fn(|request| async {
        let mut reply = respond(service, request, &state).await;
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
        Ok::<_, Infallible>(reply)
    });
    let exchange = http.serve_connection(TokioIo::new(stream), answer);
    match timeout(EXCHANGE, exchange).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a health check ended"),
        Err(_) => tracing::debug!(%peer, "a slow health check was cut"),
    }
}

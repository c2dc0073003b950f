//! The connections of the admin port: few, short, and apart from those of the inference port.
//!
//! Each connection carries one request, so that one time limit bounds its head, its body and the
//! client's reading of the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::sender::ReachedAt;
use crate::sockets::PortListener;
use crate::tls::{HANDSHAKE, LOOK_EVERY, Tls, refuse_plain};

/// Wait after a failed accept: if the process is out of descriptors, trying again at once spins.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Bounds of the connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    /// Connections served at once; further ones wait in the kernel's backlog.
    pub(super) connections_max: usize,
    /// Longest wait for the head of the request.
    pub(super) head_timeout: Duration,
    /// Longest life of a connection, from its acceptance to the last byte of the answer.
    pub(super) connection_timeout: Duration,
}

impl Default for ConnectionLimits {
    /// Room for some scrapers and operators. A connection lives long enough for the head, for the
    /// wait for the drivers, and for a slow reader.
    fn default() -> Self {
        Self {
            connections_max: 64,
            head_timeout: Duration::from_secs(5),
            connection_timeout: Duration::from_secs(20),
        }
    }
}

/// The port and its limits.
pub(super) struct AdminListener {
    pub(super) listener: PortListener,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) limits: ConnectionLimits,
}

/// Answers the requests of a connection.
struct Answering {
    http: http1::Builder,
    service: TowerToHyperService<Router>,
    tls: Option<Arc<Tls>>,
}

/// Serves connections until the future is dropped, which ends them.
pub(super) async fn serve(port: AdminListener, router: Router) {
    let AdminListener {
        listener,
        tls,
        limits,
    } = port;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .keep_alive(false);
    let answering = Arc::new(Answering {
        http,
        service: TowerToHyperService::new(router),
        tls: tls.clone(),
    });
    let accepting = accept(listener, answering, limits);
    match tls {
        None => accepting.await,
        Some(tls) => tokio::select! {
            () = accepting => {}
            () = tls.follow(LOOK_EVERY) => {}
        },
    }
}

async fn accept(listener: PortListener, answering: Arc<Answering>, limits: ConnectionLimits) {
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let mut tasks = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        let stream = accepted(&listener).await;
        let answering = Arc::clone(&answering);
        tasks.spawn(async move {
            let answered = answering.answer(stream, limits.head_timeout);
            match timeout(limits.connection_timeout, answered).await {
                Ok(()) => {}
                Err(_) => tracing::debug!("admin connection cut: too slow"),
            }
            drop(permit);
        });
        while tasks.try_join_next().is_some() {}
    }
}

// === impl Answering ===

impl Answering {
    async fn answer(&self, stream: TcpStream, handshake_timeout: Duration) {
        let own = stream.local_addr().ok();
        let own = own.map(|address| ReachedAt(address.ip().to_canonical()));
        let Some(tls) = &self.tls else {
            return self.exchange(stream, own).await;
        };
        let mut first = [0];
        let handshake = async {
            match stream.peek(&mut first).await {
                Ok(_) if first[0] == HANDSHAKE => Some(tls.accept(stream).await),
                _ => {
                    refuse_plain(stream).await;
                    None
                }
            }
        };
        match timeout(handshake_timeout, handshake).await {
            Ok(Some(Ok(stream))) => self.exchange(stream, own).await,
            Ok(Some(Err(error))) => tracing::debug!(%error, "admin port: no TLS handshake"),
            Ok(None) => tracing::debug!("admin port: a client without TLS"),
            Err(_) => tracing::debug!("admin connection cut: slow handshake"),
        }
    }

    async fn exchange<S>(&self, stream: S, own: Option<ReachedAt>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(own);
            self.service.call(request)
        });
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.await {
            tracing::debug!(%error, "admin connection ended");
        }
    }
}

async fn accepted(listener: &PortListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "accept failed on the admin port");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::sockets::{BoundPort, SocketMode};

    /// More than the socket buffers of both ends hold.
    const LARGE: usize = 64 << 20;

    async fn port(limits: ConnectionLimits) -> SocketAddr {
        let port = BoundPort::bind(&"127.0.0.1:0".parse().unwrap(), SocketMode::default()).unwrap();
        let address = port.address().unwrap().tcp().unwrap();
        let listener = port.listen().unwrap();
        let router = Router::new()
            .route("/small", get(|| async { "small" }))
            .route("/large", get(|| async { vec![b'x'; LARGE] }));
        tokio::spawn(serve(
            AdminListener {
                listener,
                tls: None,
                limits,
            },
            router,
        ));
        address
    }

    async fn asked(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Answers although every connection is held: the holders are cut.
    async fn answers(address: SocketAddr) {
        let mut stream = asked(address, "/small").await;
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        timeout(Duration::from_secs(5), read)
            .await
            .unwrap()
            .unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(text.ends_with("small"), "{text}");
    }

    #[tokio::test]
    async fn clients_that_send_no_head_are_cut() {
        let address = port(ConnectionLimits {
            connections_max: 2,
            head_timeout: Duration::from_millis(200),
            connection_timeout: Duration::from_secs(60),
        })
        .await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        let _half = TcpStream::connect(address).await.unwrap();
        idle.write_all(b"GET /small HTTP/1.1\r\n").await.unwrap();
        answers(address).await;
    }

    #[tokio::test]
    async fn clients_that_never_read_are_cut() {
        let address = port(ConnectionLimits {
            connections_max: 2,
            head_timeout: Duration::from_secs(60),
            connection_timeout: Duration::from_millis(500),
        })
        .await;
        let _one = asked(address, "/large").await;
        let _two = asked(address, "/large").await;
        answers(address).await;
    }
}

//! One connection from its first byte to its end: the handshake of TLS, the protocol, the requests.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::backend::Backend;
use super::client_stream::ClientStream;
use super::connection_state::ConnectionState;
use super::connections::PermitWanted;
use super::grpc;
use super::http::respond;
use super::limits::Limits;
use super::preface::begins_http2;
use super::reply::CountedBody;
use super::service::Service;
use super::watched_stream::WatchedStream;
use crate::tls::{HANDSHAKE, Tls, refuse_plain};

/// Calls of one HTTP/2 connection at a time; clients let further ones wait.
const STREAMS_MAX: u32 = 128;

/// Bytes of all bodies of an HTTP/2 connection that the client may send before they are read.
const CONNECTION_WINDOW: u32 = 2 << 20;

/// The same for one body.
const STREAM_WINDOW: u32 = 1 << 20;

/// Largest frame of the gRPC port. A tensor in one frame is read in few steps and is not joined. Memory is
/// taken as its bytes come; it is counted once the frame is whole.
const GRPC_FRAME_BYTES_MAX: u32 = 256 << 10;

/// The protocols of the ports, with their limits.
pub(super) struct Protocols<B> {
    pub(super) service: Arc<Service<B>>,
    pub(super) permit_wanted: PermitWanted,
    pub(super) http: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    grpc: http2::Builder<TokioExecutor>,
    pub(super) tls: Option<Arc<Tls>>,
    head_timeout: Duration,
    first_byte_timeout: Duration,
}

// === impl Protocols ===

impl<B: Backend> Protocols<B> {
    pub(super) fn new(service: Arc<Service<B>>, limits: &Limits, tls: Option<Arc<Tls>>) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.header_read_timeout)
            .max_header_size(limits.max_header_bytes);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW)
            .max_header_list_size(limits.max_header_bytes.try_into().unwrap_or(u32::MAX));
        let mut grpc = http2.clone();
        // No client of gRPC reads it.
        grpc.auto_date_header(false);
        grpc.max_frame_size(GRPC_FRAME_BYTES_MAX);
        Self {
            service,
            permit_wanted: PermitWanted::default(),
            http,
            http2,
            grpc,
            tls,
            head_timeout: limits.head_timeout,
            first_byte_timeout: limits.header_read_timeout,
        }
    }

    /// Serves a connection of the HTTP port.
    pub(super) async fn serve_http(
        self: Arc<Self>,
        stream: TcpStream,
        state: Arc<ConnectionState>,
    ) {
        let Some(watched) = self.open(stream, &state).await else {
            return;
        };
        match self.speaks_http2(&watched.stream, &state).await {
            Some(false) => {}
            // Boxed: it takes no room in the futures of HTTP/1.
            Some(true) => return Box::pin(self.serve_http2(watched, state)).await,
            None => return,
        }
        // One count per request instead of two, one of them of all connections.
        let shared = Arc::new((Arc::clone(&self), Arc::clone(&state)));
        let answer = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move {
                let (protocols, state) = &*shared;
                state.begin_exchange();
                let mut reply = respond(&*protocols.service, request, state).await;
                if protocols.permit_wanted.take() {
                    let close = HeaderValue::from_static("close");
                    reply.headers_mut().insert(CONNECTION, close);
                }
                state.end_exchange();
                Ok::<_, Infallible>(reply)
            }
        });
        let connection = self.http.serve_connection(TokioIo::new(watched), answer);
        until_ended(connection, &state, http1::Connection::graceful_shutdown).await;
    }

    /// Whether the client speaks HTTP/2; `None` if it says nothing.
    async fn speaks_http2(&self, stream: &ClientStream, state: &ConnectionState) -> Option<bool> {
        let plain = match stream {
            ClientStream::Plain(plain) => plain,
            ClientStream::Tls(_) => return Some(stream.chosen() == Some(b"h2")),
        };
        tokio::select! {
            biased;
            seen = timeout(self.first_byte_timeout, begins_http2(plain, self.head_timeout)) => seen.ok().flatten(),
            () = state.asked_to_end() => None,
        }
    }

    async fn serve_http2(self: Arc<Self>, watched: WatchedStream, state: Arc<ConnectionState>) {
        state.is_http2();
        let (protocols, requests) = (Arc::clone(&self), Arc::clone(&state));
        let answer = service_fn(move |request| {
            let (protocols, state) = (Arc::clone(&protocols), Arc::clone(&requests));
            // Boxed: HTTP/2 moves the future several times on its way into a task.
            Box::pin(async move {
                let _exchange = state.exchanging();
                let reply = respond(&*protocols.service, request, &state).await;
                if protocols.permit_wanted.take() {
                    state.ask_to_end();
                }
                let untaken = state.untaken();
                Ok::<_, Infallible>(reply.map(|body| CountedBody::new(body, untaken)))
            })
        });
        let connection = self.http2.serve_connection(TokioIo::new(watched), answer);
        until_ended(connection, &state, http2::Connection::graceful_shutdown).await;
    }

    /// Serves a connection of the gRPC port.
    pub(super) async fn serve_grpc(
        self: Arc<Self>,
        stream: TcpStream,
        state: Arc<ConnectionState>,
    ) {
        let Some(watched) = self.open(stream, &state).await else {
            return;
        };
        let (protocols, calls) = (Arc::clone(&self), Arc::clone(&state));
        let answer = service_fn(move |request| {
            let (protocols, state) = (Arc::clone(&protocols), Arc::clone(&calls));
            // Boxed: HTTP/2 moves the future several times on its way into a task.
            Box::pin(async move {
                let service = Arc::clone(&protocols.service);
                let answer = grpc::respond(service, request, Arc::clone(&state)).await;
                if protocols.permit_wanted.take() {
                    state.ask_to_end();
                }
                Ok::<_, Infallible>(answer)
            })
        });
        let stream = TokioIo::new(watched.joining_trailers());
        let connection = self.grpc.serve_connection(stream, answer);
        until_ended(connection, &state, http2::Connection::graceful_shutdown).await;
    }

    /// The stream of a client, after the handshake where the port has TLS; `None` without a handshake.
    async fn open(&self, stream: TcpStream, state: &Arc<ConnectionState>) -> Option<WatchedStream> {
        let stream = match &self.tls {
            None => ClientStream::Plain(stream),
            // Boxed: the handshake takes no room in the futures of plain connections.
            Some(tls) => {
                let handshake = Box::pin(handshake(tls, stream));
                let opened = tokio::select! {
                    opened = timeout(self.head_timeout, handshake) => opened,
                    () = state.asked_to_end() => return None,
                };
                opened.ok().flatten()?
            }
        };
        Some(WatchedStream::new(stream, Arc::clone(state)))
    }
}

async fn handshake(tls: &Tls, stream: TcpStream) -> Option<ClientStream> {
    let mut first = [0];
    if stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    if first[0] != HANDSHAKE {
        tracing::debug!("a client without TLS");
        refuse_plain(stream).await;
        return None;
    }
    match tls.accept(stream).await {
        Ok(stream) => Some(ClientStream::Tls(Box::new(stream))),
        Err(error) => {
            tracing::debug!(%error, "no TLS handshake");
            None
        }
    }
}

/// Drives a connection to its end. One that is asked to end ends after its exchanges: clients open another
/// one for further requests.
async fn until_ended<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    state: &ConnectionState,
    end: impl FnOnce(Pin<&mut C>),
) {
    let mut connection = pin!(connection);
    let served = tokio::select! {
        biased;
        served = connection.as_mut() => served,
        () = state.asked_to_end() => {
            end(connection.as_mut());
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}

//! A server of the protocol that misbehaves on command.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use switchyard_protocol::grpc::messages::health::HealthCheckResponse;
use switchyard_protocol::grpc::messages::inference::model_infer_response::InferOutputTensor;
use switchyard_protocol::grpc::messages::inference::model_metadata_response::TensorMetadata;
use switchyard_protocol::grpc::messages::inference::{
    ModelInferRequest, ModelInferResponse, ModelMetadataResponse, ServerMetadataResponse,
    ServerReadyResponse,
};
use switchyard_protocol::grpc::{PREFIX_BYTES, Rpc, TIMEOUT, take_stages};
use switchyard_protocol::{STAGE_RANGES, StageCall, StageWork};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Serves until it is dropped.
pub(crate) struct FakeServer {
    pub(crate) at: SocketAddr,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct State {
    connections: AtomicU64,
    batches: AtomicU64,
    cancelled: AtomicU64,
    is_not_ready: AtomicBool,
    only_health: AtomicBool,
    timeout: Mutex<Option<String>>,
    /// Connections end when it changes.
    closing: watch::Sender<u64>,
    /// Connections drain, and none is accepted, once it is true.
    leaving: watch::Sender<bool>,
    /// Batches after this number wait.
    holding: watch::Sender<Option<u64>>,
    /// Its metadata lists ranges of stages.
    offers_stages: AtomicBool,
    kept: Mutex<KeptRows>,
    /// Nothing is answered once it is true.
    hanging: AtomicBool,
}

/// The rows whose activations it keeps.
#[derive(Default)]
struct KeptRows {
    rows: BTreeSet<(u64, u64)>,
    /// Calls of stages, each with the number of its inputs.
    calls: Vec<(StageCall, usize)>,
}

/// Counts a call that is dropped before its answer.
struct Cancelled<'a>(&'a State, bool);

impl FakeServer {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    pub(crate) fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("0.0.0.0:0")).unwrap();
        // Also at 127.0.0.2, for a host that its certificate lacks.
        let at = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        let state = Arc::new(State::default());
        runtime.spawn(accept(listener, tls, Arc::clone(&state)));
        Self {
            at,
            state,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn close_connections(&self) {
        self.state.closing.send_modify(|closed| *closed += 1);
    }

    /// Says goodbye on its connections, and accepts no other.
    pub(crate) fn leave(&self) {
        self.state.leaving.send_replace(true);
    }

    pub(crate) fn not_ready(&self) {
        self.state.is_not_ready.store(true, Ordering::Relaxed);
    }

    pub(crate) fn only_health(&self) {
        self.state.only_health.store(true, Ordering::Relaxed);
    }

    pub(crate) fn offer_stages(&self) {
        self.state.offers_stages.store(true, Ordering::Relaxed);
    }

    /// Loses its rows, as a process that was started anew.
    pub(crate) fn forget_rows(&self) {
        self.state.kept.lock().unwrap().rows.clear();
    }

    pub(crate) fn kept(&self) -> usize {
        self.state.kept.lock().unwrap().rows.len()
    }

    /// The calls of stages so far, each with the number of its inputs.
    pub(crate) fn stage_calls(&self) -> Vec<(StageCall, usize)> {
        self.state.kept.lock().unwrap().calls.clone()
    }

    pub(crate) fn hang(&self) {
        self.state.hanging.store(true, Ordering::Relaxed);
    }

    pub(crate) fn hold(&self) {
        self.state.holding.send_replace(Some(self.batches()));
    }

    /// Ends the first batch that it holds.
    pub(crate) fn release_one(&self) {
        let one = |holding: &mut Option<u64>| *holding = holding.map(|last| last + 1);
        self.state.holding.send_modify(one);
    }

    pub(crate) fn release(&self) {
        self.state.holding.send_replace(None);
    }

    pub(crate) fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn batches(&self) -> u64 {
        self.state.batches.load(Ordering::Relaxed)
    }

    pub(crate) fn cancelled(&self) -> u64 {
        self.state.cancelled.load(Ordering::Relaxed)
    }

    /// The time that the last batch was given.
    pub(crate) fn timeout(&self) -> Option<String> {
        self.state.timeout.lock().unwrap().clone()
    }

    pub(crate) fn wait_until(&self, patience: Duration, holds: impl Fn(&Self) -> bool) {
        let give_up = Instant::now() + patience;
        while !holds(self) {
            assert!(Instant::now() < give_up, "it does not come true");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>) {
    let mut leaving = state.leaving.subscribe();
    loop {
        tokio::select! {
            _ = leaving.wait_for(|leaving| *leaving) => return,
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                state.connections.fetch_add(1, Ordering::Relaxed);
                let state = Arc::clone(&state);
                match tls.clone() {
                    None => {
                        tokio::spawn(serve(stream, state));
                    }
                    Some(tls) => {
                        tokio::spawn(async move {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, state).await;
                            }
                        });
                    }
                }
            }
        }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, state: Arc<State>) {
    let (mut closing, mut leaving) = (state.closing.subscribe(), state.leaving.subscribe());
    let calls = Arc::clone(&state);
    let answering = service_fn(move |request| {
        let state = Arc::clone(&calls);
        async move { Ok::<_, Infallible>(answer(&state, request).await) }
    });
    let connection =
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answering);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = closing.changed() => return,
        _ = leaving.wait_for(|leaving| *leaving) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn answer(state: &State, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
    let rpc = Rpc::of(request.uri().path()).unwrap();
    if state.hanging.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    let header = request.headers().get(&TIMEOUT).cloned();
    let body = request.into_body().collect().await;
    let body = body.map(Collected::to_bytes).unwrap_or_default();
    let ready = !state.is_not_ready.load(Ordering::Relaxed);
    match rpc {
        Rpc::ServerReady if state.only_health.load(Ordering::Relaxed) => ended(None, "12"),
        Rpc::ServerReady => message(&ServerReadyResponse { ready }),
        Rpc::HealthCheck => message(&HealthCheckResponse {
            status: if ready { 1 } else { 2 },
        }),
        Rpc::ModelMetadata => message(&metadata()),
        Rpc::ServerMetadata => message(&ServerMetadataResponse {
            extensions: match state.offers_stages.load(Ordering::Relaxed) {
                true => vec![STAGE_RANGES.to_owned()],
                false => Vec::new(),
            },
            ..ServerMetadataResponse::default()
        }),
        Rpc::ModelInfer => {
            let header = header.map(|header| header.to_str().unwrap().to_owned());
            *state.timeout.lock().unwrap() = header;
            let number = state.batches.fetch_add(1, Ordering::Relaxed) + 1;
            let mut cancelled = Cancelled(state, true);
            let mut holding = state.holding.subscribe();
            let is_free = |last: &Option<u64>| last.is_none_or(|last| number <= last);
            holding.wait_for(is_free).await.unwrap();
            cancelled.1 = false;
            let mut sent = ModelInferRequest::decode(&body[PREFIX_BYTES..]).unwrap();
            match take_stages(&mut sent.parameters).unwrap() {
                None => message(&embedding()),
                Some(call) => staged(state, call, sent.inputs.len()),
            }
        }
        other => panic!("{other:?}"),
    }
}

fn staged(state: &State, call: StageCall, inputs: usize) -> Response<BoxBody<Bytes, Infallible>> {
    let mut kept = state.kept.lock().unwrap();
    kept.calls.push((call.clone(), inputs));
    let session = call.session;
    let keys: Vec<_> = call.rows.iter().map(|&row| (session, row)).collect();
    if call.work == StageWork::Release {
        kept.rows.retain(|key| !keys.contains(key));
        return message(&ModelInferResponse::default());
    }
    if !call.takes_inputs() && !keys.iter().all(|key| kept.rows.remove(key)) {
        return ended(None, "13");
    }
    match call.gives_outputs() {
        true => message(&embedding()),
        false => {
            kept.rows.extend(keys);
            message(&ModelInferResponse::default())
        }
    }
}

fn metadata() -> ModelMetadataResponse {
    let tensor = |name: &str| TensorMetadata {
        name: name.to_owned(),
        datatype: "FP32".to_owned(),
        shape: vec![-1, 2],
    };
    ModelMetadataResponse {
        inputs: vec![tensor("x")],
        outputs: vec![tensor("embedding")],
        ..ModelMetadataResponse::default()
    }
}

fn embedding() -> ModelInferResponse {
    ModelInferResponse {
        outputs: vec![InferOutputTensor {
            name: "embedding".to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![1, 2],
            ..InferOutputTensor::default()
        }],
        raw_output_contents: vec![[3.0_f32, 4.0].map(f32::to_le_bytes).concat().into()],
        ..ModelInferResponse::default()
    }
}

fn message(message: &impl Message) -> Response<BoxBody<Bytes, Infallible>> {
    let bytes = message.encode_to_vec();
    let mut framed = vec![0; PREFIX_BYTES];
    framed[1..].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
    framed.extend(bytes);
    ended(Some(framed.into()), "0")
}

fn ended(body: Option<Bytes>, status: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    let body = Full::new(body.unwrap_or_default());
    Response::new(body.with_trailers(async { Some(Ok(trailers)) }).boxed())
}

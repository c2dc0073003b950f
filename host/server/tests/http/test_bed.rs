//! A backend without models, and a server in front of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{HOST, HeaderMap};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use switchyard_server::config::TlsConfig;
use switchyard_server::ingress::{
    AppIndex, AppInfo, Backend, Backends, BatchStats, Control, Datatype, Drained, InferAnswer,
    InferCall, InferError, Limits, OutputIndex, OutputTensor, Ports, Tensor, TensorData,
    TensorSpec, Timing, VariantIndex, VariantStats, serve,
};
use switchyard_server::sockets::{BoundPort, SocketMode};
use switchyard_server::tls::Tls;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

/// Answers from the inputs alone, so that a test knows the outputs.
pub(crate) struct FakeBackend {
    apps: Vec<AppInfo>,
    /// The last call.
    pub(crate) last_call: Mutex<Option<InferCall>>,
    /// App and status of each request that the HTTP port refused.
    pub(crate) refused: Mutex<Vec<(Option<AppIndex>, u16)>>,
    /// Whether the schedulers turn.
    pub(crate) alive: AtomicBool,
    /// Whether the server is ready.
    pub(crate) ready: AtomicBool,
    /// A call to the app `gate` takes one permit before its answer.
    pub(crate) gate: Semaphore,
    /// Calls to the app `gate` that have arrived.
    pub(crate) waiting: AtomicUsize,
    /// Calls to the app `gate` that were dropped before their answer.
    pub(crate) abandoned: AtomicUsize,
    /// Whether each app is unloaded.
    unloaded: Mutex<[bool; 4]>,
    /// Requests and rows answered, per app and variant.
    answered: Mutex<[[(u64, u64); 2]; 4]>,
}

/// y = 2x + 1; rows of three FP32, at most 8 of them.
pub(crate) const LINEAR: AppIndex = AppIndex(0);
/// An input of every datatype; its outputs are its inputs.
pub(crate) const EVERY_TYPE: AppIndex = AppIndex(1);
/// Like `linear`, once it has a permit of the gate.
pub(crate) const GATE: AppIndex = AppIndex(2);
/// Fails; the priority of the request selects the error.
pub(crate) const FAILING: AppIndex = AppIndex(3);

impl FakeBackend {
    fn new() -> Self {
        let spec = |name: &str, datatype, shape: &[i64]| TensorSpec {
            name: name.to_owned(),
            datatype,
            shape: shape.to_vec(),
            largest: Vec::new(),
            content: Default::default(),
        };
        let app = |name: &str, inputs, outputs| AppInfo {
            name: name.to_owned(),
            variants: vec!["small".to_owned(), "large".to_owned()],
            platform: "fake".to_owned(),
            inputs,
            outputs,
            max_batch_rows: 8,
            max_timeout_us: 60_000_000,
            non_finite: false,
            accuracy_max: 0.9,
            accuracies: vec![Some(0.8), Some(0.9)],
            classes: Vec::new(),
        };
        let linear = |name: &str| {
            let x = spec("x", Datatype::F32, &[3]);
            let y = spec("y", Datatype::F32, &[3]);
            app(name, vec![x], vec![y, spec("label", Datatype::Bytes, &[])])
        };
        let every_type: Vec<_> = Datatype::ALL
            .iter()
            .map(|datatype| spec(datatype.name(), *datatype, &[-1]))
            .collect();
        Self {
            apps: vec![
                linear("linear"),
                app("echo/every type", every_type.clone(), every_type),
                linear("gate"),
                linear("failing"),
            ],
            last_call: Mutex::new(None),
            refused: Mutex::new(Vec::new()),
            alive: AtomicBool::new(true),
            ready: AtomicBool::new(true),
            gate: Semaphore::new(0),
            waiting: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            unloaded: Mutex::default(),
            answered: Mutex::default(),
        }
    }

    fn answer(&self, call: InferCall) -> InferAnswer {
        let rows = call.rows;
        let outputs = if call.app == EVERY_TYPE {
            call.inputs
        } else {
            let mut y = call.inputs.into_iter().next().unwrap();
            if let TensorData::Wire(wire) = &y.data {
                y.data = wire.decode().unwrap();
            }
            let TensorData::F32(values) = &mut y.data else {
                panic!("the HTTP port accepted {:?}", y.data.datatype());
            };
            for value in values {
                *value = *value * 2.0 + 1.0;
            }
            let labels = (0..rows).map(|row| format!("row {row}").into_bytes());
            let label = Tensor {
                shape: std::iter::once(rows).collect(),
                data: TensorData::Bytes(labels.collect()),
            };
            vec![y, label]
        };
        let VariantIndex(variant) = call.variant.unwrap_or(VariantIndex(0));
        let answered = &mut self.answered.lock().unwrap()[call.app.0][variant];
        *answered = (answered.0 + 1, answered.1 + rows as u64);
        InferAnswer {
            outputs: outputs
                .into_iter()
                .enumerate()
                .map(|(index, tensor)| OutputTensor {
                    output: OutputIndex(index),
                    tensor,
                })
                .collect(),
            variant: self.apps[call.app.0].variants[variant].as_str().into(),
            exit: "final".into(),
            policy: "fake".into(),
            batch_size: 1,
            queue_us: 10,
            compute_us: 20,
            deadline_met: true,
            short_circuit: false,
            window: 5,
        }
    }
}

impl Backend for FakeBackend {
    fn apps(&self) -> &[AppInfo] {
        &self.apps
    }

    fn app_index(&self, name: &str) -> Option<AppIndex> {
        let position = self.apps.iter().position(|app| app.name == name);
        position.map(AppIndex)
    }

    fn live(&self) -> Result<(), String> {
        match self.alive.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("pool main: its scheduler has failed".to_owned()),
        }
    }

    fn server_ready(&self) -> Result<(), String> {
        if self.ready.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("app \"linear\" is loading".to_owned())
        }
    }

    fn app_ready(&self, app: AppIndex, variant: Option<VariantIndex>) -> Result<(), String> {
        if self.unloaded.lock().unwrap()[app.0] {
            return Err("it is unloaded".to_owned());
        }
        if app == FAILING && variant == Some(VariantIndex(1)) {
            return Err("variant \"large\" does not fit any worker".to_owned());
        }
        self.server_ready()
    }

    async fn control(&self, app: AppIndex, verb: Control) -> Result<(), InferError> {
        if app == FAILING {
            return Err(InferError::Failed("its weights are cut off".to_owned()));
        }
        self.unloaded.lock().unwrap()[app.0] = verb == Control::Unload;
        Ok(())
    }

    async fn infer(&self, call: InferCall) -> Result<InferAnswer, InferError> {
        if self.unloaded.lock().unwrap()[call.app.0] {
            return Err(InferError::NotReady("it is unloaded".to_owned()));
        }
        *self.last_call.lock().unwrap() = Some(call.clone());
        match (call.app, call.priority) {
            (GATE, _) => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                let mut call = GateCall {
                    backend: self,
                    ended: false,
                };
                self.gate.acquire().await.unwrap().forget();
                call.ended = true;
            }
            (FAILING, 1) => {
                return Err(InferError::QueueFull {
                    queue: "pending of pool \"main\" (1024)".to_owned(),
                    retry_after_s: 2,
                });
            }
            (FAILING, 2) => return Err(InferError::NotReady("no worker is up".to_owned())),
            (FAILING, 3) => {
                return Err(InferError::RefusedByPolicy {
                    policy: "fcfs@2".into(),
                    window: 7,
                });
            }
            (FAILING, 4) => return Err(InferError::DeadlineDropped { waited_us: 1500 }),
            (FAILING, 6) => return Err(InferError::Overloaded { retry_after_s: 2 }),
            (FAILING, 7) => return Err(InferError::DeadlineTooShort),
            (FAILING, 8) => return Err(InferError::AboveShare { retry_after_s: 2 }),
            (FAILING, _) => return Err(InferError::Failed("worker cpu0 stopped".to_owned())),
            _ => {}
        }
        Ok(self.answer(call))
    }

    fn stats(&self, app: AppIndex, variant: VariantIndex) -> VariantStats {
        let (requests, rows) = self.answered.lock().unwrap()[app.0][variant.0];
        if requests == 0 {
            return VariantStats::default();
        }
        // One batch per request.
        let timing = |ns| Timing {
            count: requests,
            ns: ns * requests,
        };
        VariantStats {
            last_inference_ms: 1_700_000_000_000,
            inference_count: rows,
            execution_count: requests,
            success: timing(900),
            queue: timing(300),
            compute_input: timing(0),
            compute_infer: timing(600),
            compute_output: timing(0),
            batches: vec![BatchStats {
                batch_size: rows,
                compute_input: timing(0),
                compute_infer: timing(600),
                compute_output: timing(0),
            }],
            ..VariantStats::default()
        }
    }

    fn wants_parents(&self) -> bool {
        true
    }

    fn on_refused(&self, app: Option<AppIndex>, status: u16) {
        self.refused.lock().unwrap().push((app, status));
    }
}

/// A call that waits at the gate.
struct GateCall<'a> {
    backend: &'a FakeBackend,
    ended: bool,
}

impl Drop for GateCall<'_> {
    fn drop(&mut self) {
        let abandoned = usize::from(!self.ended);
        self.backend
            .abandoned
            .fetch_add(abandoned, Ordering::SeqCst);
    }
}

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) backend: Arc<FakeBackend>,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<io::Result<Drained>>,
}

impl TestServer {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_with(limits, None).await
    }

    /// With TLS of these files.
    pub(crate) async fn start_with(limits: Limits, tls: Option<&TlsConfig>) -> Self {
        let alpn: &[&[u8]] = &[b"h2", b"http/1.1"];
        let tls = tls.map(|files| Tls::open("tls", files, alpn).unwrap());
        let port =
            || BoundPort::bind(&"127.0.0.1:0".parse().unwrap(), SocketMode::default()).unwrap();
        let address = |port: &BoundPort| port.address().unwrap().tcp().unwrap();
        let (http, grpc) = (port(), port());
        let (address, grpc_address) = (address(&http), address(&grpc));
        let backend = Arc::new(FakeBackend::new());
        let (shutdown, signal) = oneshot::channel();
        let serving = tokio::spawn({
            let backends = Arc::new(Backends::new(Arc::clone(&backend), limits));
            let ports = Ports {
                http,
                grpc: Some(grpc),
                tls,
            };
            serve(ports, backends, async {
                let _ = signal.await;
            })
        });
        Self {
            address,
            grpc: grpc_address,
            backend,
            shutdown: Some(shutdown),
            serving,
        }
    }

    pub(crate) async fn with_defaults() -> Self {
        Self::start(Limits::default()).await
    }

    /// Begins the shutdown.
    pub(crate) fn shut_down(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }

    /// Waits for the drain.
    pub(crate) async fn drained(self) -> Drained {
        self.serving.await.unwrap().unwrap()
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends one request on its own connection.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let stream = TokioIo::new(self.connect().await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        let driving = tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let answer = Answer::read(response).await;
        drop(sender);
        let _ = driving.await;
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.method("GET", path).await
    }

    pub(crate) async fn method(&self, method: &str, path: &str) -> Answer {
        self.send(request(method, path, &[], Bytes::new())).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send(request("POST", path, &[], body)).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.send(request("POST", path, headers, body)).await
    }
}

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path);
    if headers.iter().all(|(name, _)| *name != "host") {
        request = request.header(HOST, "test");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).unwrap()
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    async fn read(response: Response<hyper::body::Incoming>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The text of `{"error": ...}`; the only other fields are those of a request without an answer.
    pub(crate) fn error(&self) -> String {
        let body = self.json();
        let known = ["error", "reason", "policy", "window", "waited_us", "id"];
        let unknown = body.as_object().unwrap().keys();
        let unknown: Vec<_> = unknown
            .filter(|key| !known.contains(&key.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{body}");
        body["error"].as_str().unwrap().to_owned()
    }
}

/// An inference of one row, for `linear`, `gate` and `failing`.
pub(crate) const ONE_ROW: &str =
    r#"{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}"#;

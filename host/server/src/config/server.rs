//! `[server]`: listeners and limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tls::TlsConfig;
use super::traces::TracesConfig;
use crate::ingress::Limits;
use crate::sockets::{ListenAddress, SocketMode};

/// Listeners and limits.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address of the Open Inference Protocol over HTTP, or `unix:PATH` ([Unix sockets](#unix-sockets)). Port
    /// 0 takes a free port and logs it.
    ///
    /// Address; default `"0.0.0.0:8000"`; example `"127.0.0.1:9000"`.
    pub http: ListenAddress,
    /// Address of the Open Inference Protocol over gRPC. Triton's is port 8001.
    ///
    /// Address; default none, no such port; example `"0.0.0.0:8001"`.
    pub grpc: Option<ListenAddress>,
    /// TLS of both ports for clients; see below.
    ///
    /// Table; default none; example `{ certificate = "server.pem", key = "server.key" }`.
    pub tls: Option<TlsConfig>,
    /// Address of metrics and status. On loopback and a Unix socket they need no token. Another address
    /// needs `admin_tls` and `operators`.
    ///
    /// Address; default `"127.0.0.1:8002"`; example `"127.0.0.1:9002"`.
    pub admin: ListenAddress,
    /// Mode of the ports' [Unix sockets](#unix-sockets).
    ///
    /// String, octal, `0600` to `0777`; default `"0660"`; example `"0600"`.
    pub socket_mode: SocketMode,
    /// TLS of the admin port; see below.
    ///
    /// Table; default none: plain HTTP; example `{ certificate = "server.pem", key = "server.key" }`.
    pub admin_tls: Option<TlsConfig>,
    /// Names of the admin port that clients may ask for, next to `localhost` and its addresses.
    ///
    /// List of strings; default `[]`; example `["admin.example.org"]`.
    pub admin_hosts: Vec<String>,
    /// File of the operators: a line `NAME TOKEN` for each who may change policies over the admin port, `NAME
    /// TOKEN read` for each who may only read. Readable by the server's user alone; read for each request
    /// that needs a token.
    ///
    /// Path; default none: the admin port only reads; example `"/etc/switchyard/operators"`.
    pub operators: Option<PathBuf>,
    /// Threads for requests and answers. 0: half of the machine's cores, rounded up.
    ///
    /// Integer, 0 to 1024; default `0`; example `2`.
    pub threads: usize,
    /// Largest request body, as sent and decompressed. A larger one gets 413.
    ///
    /// Integer, MiB, 1 to 4096; default `64`; example `16`.
    pub body_max_mb: usize,
    /// Largest request line with headers.
    ///
    /// Integer, KiB, 8 to 1024; default `32`; example `16`.
    pub header_max_kb: usize,
    /// Longest wait on a connection for the headers of the next request.
    ///
    /// Integer, ms, 1 to 3600000; default `60000`; example `5000`.
    pub header_timeout_ms: u64,
    /// Longest time for headers, from their first byte.
    ///
    /// Integer, ms, 1 to 3600000; default `10000`; example `5000`.
    pub head_timeout_ms: u64,
    /// Longest time for a body to arrive.
    ///
    /// Integer, ms, 1 to 3600000; default `30000`; example `10000`.
    pub body_timeout_ms: u64,
    /// Least rate of bodies (408) and of reading clients.
    ///
    /// Integer, bytes/s, 0 to 1048576; default `1024`; example `16384`.
    pub rate_min: u64,
    /// How long a client may read below `rate_min`.
    ///
    /// Integer, ms, 1 to 3600000; default `30000`; example `5000`.
    pub write_timeout_ms: u64,
    /// Memory of all bodies. A request without room within 1 s gets 503.
    ///
    /// Integer, MiB, twice `body_max_mb` to 1048576; default `512`; example `2048`.
    pub request_memory_mb: usize,
    /// Connections served at once. While others wait, each answer closes its connection
    /// (`Connection: close`), and idle and slow connections are closed.
    ///
    /// Integer, 1 to 1000000; default `4096`; example `512`.
    pub connections_max: usize,
    /// The same per client address (IPv6: /64), on a Unix socket per user. Further ones get 503, or are closed (TLS, gRPC). 0: half of `connections_max`.
    ///
    /// Integer, 0 to 1000000; default `0`; example `4096`.
    pub connections_per_client_max: usize,
    /// Whether clients may load and unload apps. Otherwise 403.
    ///
    /// Boolean; default `false`; example `true`.
    pub model_control: bool,
    /// Longest wait of a client for a load, which goes on. Large models on slow disks take minutes.
    ///
    /// Integer, ms, 1 to 3600000; default `600000`; example `60000`.
    pub load_timeout_ms: u64,
    /// Longest `timeout` of a request, unless its app's deadline is longer.
    ///
    /// Integer, ms, 1 to 3600000; default `60000`; example `5000`.
    pub timeout_max_ms: u64,
    /// Rows of one request.
    ///
    /// Integer, 1 to 65536; default `1024`; example `64`.
    pub rows_max: usize,
    /// Requests of one pool that its scheduler has not taken over. A further one gets 429.
    ///
    /// Integer, 1 to 1000000; default `4096`; example `1024`.
    pub inbox_max: usize,
    /// How long a shutdown serves after readiness has fallen.
    ///
    /// Integer, ms, 0 to 3600000; default `0`; example `5000`.
    pub drain_delay_ms: u64,
    /// Longest wait at shutdown for accepted requests.
    ///
    /// Integer, ms, 0 to 3600000; default `10000`; example `30000`.
    pub drain_timeout_ms: u64,
    /// [Traces](operating.md#traces) of requests, for a collector of OpenTelemetry.
    ///
    /// Table, see [below](#servertraces); default none; example `{ endpoint = "http://127.0.0.1:4318" }`.
    pub traces: Option<TracesConfig>,
    /// Library of onnxruntime, 1.17 or later, for variants that are an [ONNX
    /// graph](add-a-model.md#an-onnx-graph). Without one, the engine of this program runs them.
    ///
    /// Path; default the path in `ORT_DYLIB_PATH`, otherwise the system's library if it has one; example `"/opt/onnxruntime/libonnxruntime.so"`.
    pub onnxruntime: Option<PathBuf>,
}

// === impl ServerConfig ===

impl ServerConfig {
    /// Threads for HTTP, at least one. The default is half of the cores, because drivers and workers
    /// need cores too. On two cores one thread served more requests than two
    /// (`docs/performance.md`); machines with more cores were not measured.
    pub fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)),
            threads => threads,
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            http: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8000)).into(),
            grpc: None,
            tls: None,
            admin: SocketAddr::from((Ipv4Addr::LOCALHOST, 8002)).into(),
            socket_mode: SocketMode::default(),
            admin_tls: None,
            admin_hosts: Vec::new(),
            operators: None,
            threads: 0,
            body_max_mb: 64,
            header_max_kb: 32,
            header_timeout_ms: 60_000,
            head_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            rate_min: 1_024,
            write_timeout_ms: 30_000,
            request_memory_mb: 512,
            connections_max: 4_096,
            connections_per_client_max: 0,
            model_control: false,
            load_timeout_ms: 600_000,
            timeout_max_ms: 60_000,
            rows_max: 1_024,
            inbox_max: 4_096,
            drain_delay_ms: 0,
            drain_timeout_ms: 10_000,
            traces: None,
            onnxruntime: None,
        }
    }
}

impl ServerConfig {
    /// The limits of the ports for clients.
    pub fn limits(&self) -> Limits {
        Limits {
            max_body_bytes: self.body_max_mb << 20,
            request_memory_bytes: self.request_memory_mb << 20,
            max_header_bytes: self.header_max_kb << 10,
            header_read_timeout: Duration::from_millis(self.header_timeout_ms),
            head_timeout: Duration::from_millis(self.head_timeout_ms),
            body_read_timeout: Duration::from_millis(self.body_timeout_ms),
            min_rate: self.rate_min,
            write_timeout: Duration::from_millis(self.write_timeout_ms),
            max_connections: self.connections_max,
            max_connections_per_client: self.connections_per_client(),
            model_control: self.model_control,
            drain_delay: Duration::from_millis(self.drain_delay_ms),
            drain_timeout: self.drain_timeout(),
        }
    }

    /// The addresses of the ports, by field.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, &ListenAddress)> {
        let http = [("http", &self.http)].into_iter();
        http.chain(self.grpc.as_ref().map(|grpc| ("grpc", grpc)))
            .chain([("admin", &self.admin)])
    }

    /// Connections of one client.
    pub fn connections_per_client(&self) -> usize {
        match self.connections_per_client_max {
            0 => self.connections_max.div_ceil(2),
            max => max,
        }
    }

    /// The longest timeout of a request, in microseconds.
    pub fn timeout_max_us(&self) -> u64 {
        self.timeout_max_ms.saturating_mul(1_000)
    }

    /// How long a shutdown waits for requests that are being served.
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_timeout_ms)
    }
}

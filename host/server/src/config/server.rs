//! `[server]`: listeners and limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::ingress::Limits;

/// Listeners and limits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address of the Open Inference Protocol over HTTP. Port 0 takes a free port and logs it.
    ///
    /// Address; default `"0.0.0.0:8000"`; example `"127.0.0.1:9000"`.
    pub http: SocketAddr,
    /// Address of metrics and status: loopback only, because requests need no token.
    ///
    /// Address; default `"127.0.0.1:8002"`; example `"127.0.0.1:9002"`.
    pub admin: SocketAddr,
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
    /// Longest time for a body to arrive.
    ///
    /// Integer, ms, 1 to 3600000; default `30000`; example `10000`.
    pub body_timeout_ms: u64,
    /// Connections served at once. While others wait, each answer closes its connection
    /// (`Connection: close`), and idle connections are closed.
    ///
    /// Integer, 1 to 1000000; default `4096`; example `512`.
    pub connections_max: usize,
    /// Rows of one request.
    ///
    /// Integer, 1 to 65536; default `1024`; example `64`.
    pub rows_max: usize,
    /// Requests of one pool that its scheduler has not taken over. A further one gets 429.
    ///
    /// Integer, 1 to 1000000; default `4096`; example `1024`.
    pub inbox_max: usize,
    /// Longest wait at shutdown for accepted requests.
    ///
    /// Integer, ms, 0 to 3600000; default `10000`; example `30000`.
    pub drain_timeout_ms: u64,
    /// Library of onnxruntime, 1.17 or later, for variants that are an [ONNX
    /// graph](add-a-model.md#an-onnx-graph), in a program built with `--features ort`. Without the
    /// library, their configuration is refused.
    ///
    /// Path; default the path in `ORT_DYLIB_PATH`, otherwise the system's library; example `"/opt/onnxruntime/libonnxruntime.so"`.
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
            http: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8000)),
            admin: SocketAddr::from((Ipv4Addr::LOCALHOST, 8002)),
            threads: 0,
            body_max_mb: 64,
            header_max_kb: 32,
            header_timeout_ms: 60_000,
            body_timeout_ms: 30_000,
            connections_max: 4_096,
            rows_max: 1_024,
            inbox_max: 4_096,
            drain_timeout_ms: 10_000,
            onnxruntime: None,
        }
    }
}

impl ServerConfig {
    /// The limits of the HTTP port.
    pub fn limits(&self) -> Limits {
        Limits {
            max_body_bytes: self.body_max_mb << 20,
            max_header_bytes: self.header_max_kb << 10,
            header_read_timeout: Duration::from_millis(self.header_timeout_ms),
            body_read_timeout: Duration::from_millis(self.body_timeout_ms),
            max_connections: self.connections_max,
            drain_timeout: self.drain_timeout(),
        }
    }

    /// How long a shutdown waits for requests that are being served.
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_timeout_ms)
    }
}

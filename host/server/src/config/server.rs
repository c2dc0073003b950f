//! `[server]`: where it listens and what it bounds.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::ingress::Limits;

/// Listeners and limits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Where the Open Inference Protocol is spoken over HTTP.
    pub http: SocketAddr,
    /// Where metrics and status are served; a loopback address.
    pub admin: SocketAddr,
    /// Threads that read requests and write answers; 0: half as many as the machine has cores.
    pub threads: usize,
    /// Largest request body in MiB, as sent and once decompressed.
    pub body_max_mb: usize,
    /// Longest request line and headers in KiB.
    pub header_max_kb: usize,
    /// Longest wait for the headers of the next request on a connection.
    pub header_timeout_ms: u64,
    /// Longest time a body may take to arrive.
    pub body_timeout_ms: u64,
    /// Connections served at once; more wait, and places change hands while they do.
    pub connections_max: usize,
    /// Rows that one request may carry.
    pub rows_max: usize,
    /// Requests that may wait to be taken in by one pool's scheduler; more get 429.
    pub inbox_max: usize,
    /// How long a shutdown waits for requests that are being served.
    pub drain_timeout_ms: u64,
    /// onnxruntime's library, for variants that are ONNX graphs; without it `ORT_DYLIB_PATH`.
    pub onnxruntime: Option<PathBuf>,
}

// === impl ServerConfig ===

impl ServerConfig {
    /// Threads for HTTP, at least one. By default half the cores: beside them a pool schedules and
    /// its workers compute, and on two cores one thread served more requests than two did
    /// (`docs/performance.md`); on larger machines it was not measured.
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
    /// What the HTTP port bounds.
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

//! Bounds on the resources of one client.

use std::time::Duration;

/// Every bound of the HTTP port, and the answer at the bound.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request body, as sent and again once decompressed. More: 413. The largest legal
    /// request of an app is a lower limit for that app.
    pub max_body_bytes: usize,
    /// Bytes of all bodies together, as sent and decompressed, until their requests end. A request
    /// that finds no room within a second: 503.
    pub request_memory_bytes: usize,
    /// Bytes of the request line and headers together. More: 431.
    pub max_header_bytes: usize,
    /// From the end of one exchange, or from connecting, to the end of the next request's
    /// headers, idle time included. Longer: the connection closes.
    pub header_read_timeout: Duration,
    /// From the first byte of a request's headers to their end. Longer: the connection closes.
    pub head_timeout: Duration,
    /// From the end of the headers to the end of the body. Longer: 408.
    pub body_read_timeout: Duration,
    /// Least rate of a body that arrives and of an answer that is read, in bytes per second. A
    /// slower body: 408.
    pub min_rate: u64,
    /// How long a client may leave an answer unread. Longer, at less than the least rate: the
    /// connection closes.
    pub write_timeout: Duration,
    /// Connections served at once. Further ones wait, a few of them accepted and the others in the
    /// kernel's backlog. While one waits, answers close their connections, and idle and slow
    /// connections are closed.
    pub max_connections: usize,
    /// Connections served at once for one client address. A further one: 503, and it closes.
    pub max_connections_per_client: usize,
    /// Whether clients may load and unload apps. Otherwise: 403.
    pub model_control: bool,
    /// How long requests are served after readiness has fallen, before the listener closes.
    pub drain_delay: Duration,
    /// How long a drain waits for requests in flight. Longer: their connections are cut.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 64 << 20,
            request_memory_bytes: 512 << 20,
            max_header_bytes: 32 << 10,
            header_read_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(10),
            body_read_timeout: Duration::from_secs(30),
            min_rate: 1024,
            write_timeout: Duration::from_secs(30),
            max_connections: 4096,
            max_connections_per_client: 2048,
            model_control: false,
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

//! Bounds on the resources of one client.

use std::time::Duration;

/// Every bound of the HTTP port, and the answer at the bound.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request body, as sent and again once decompressed. More: 413.
    pub max_body_bytes: usize,
    /// Bytes of the request line and headers together. More: 431.
    pub max_header_bytes: usize,
    /// From the end of one exchange, or from connecting, to the end of the next request's
    /// headers, idle time included. Longer: the connection closes.
    pub header_read_timeout: Duration,
    /// From the end of the headers to the end of the body. Longer: 408.
    pub body_read_timeout: Duration,
    /// Connections served at once. Further ones wait, one of them accepted and the others in the
    /// kernel's backlog. While one waits, answers close their connections, and idle connections
    /// are closed.
    pub max_connections: usize,
    /// How long a drain waits for requests in flight. Longer: their connections are cut.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 64 << 20,
            max_header_bytes: 32 << 10,
            header_read_timeout: Duration::from_secs(60),
            body_read_timeout: Duration::from_secs(30),
            max_connections: 4096,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

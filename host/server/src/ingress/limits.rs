//! Bounds on what one client may take.

use std::time::Duration;

/// Everything the HTTP port bounds, and what happens at the bound.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request body, as sent and again once decompressed. More: 413.
    pub max_body_bytes: usize,
    /// Bytes of the request line and headers together. More: 431.
    pub max_header_bytes: usize,
    /// From the end of one exchange, or from connecting, to the end of the next
    /// request's headers. Longer, also when merely idle: the connection closes.
    pub header_read_timeout: Duration,
    /// From the end of the headers to the end of the body. Longer: 408.
    pub body_read_timeout: Duration,
    /// Connections served at once. More wait, all but one of them unaccepted in the kernel's
    /// backlog; while they do, answers close their connections and idle ones are closed.
    pub max_connections: usize,
    /// How long a drain waits for what is in flight. Longer: it is cut.
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

//! Connections that send the next request as soon as they have the answer to the last one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// After this long without an answer a connection is made anew.
const PATIENCE: Duration = Duration::from_secs(30);

/// Wait before a connection is made anew.
const RECONNECT: Duration = Duration::from_millis(20);

/// Addresses that clients connect from.
const ADDRESSES: usize = 32;

/// A request as bytes, and its deadline.
#[derive(Clone, Debug)]
pub(super) struct RawRequest {
    pub(super) bytes: Vec<u8>,
    pub(super) deadline: Duration,
}

/// Counts of all connections.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Requests with a reply.
    pub(super) replies: AtomicU64,
    /// Answers that came before their deadline, by the client's clock.
    pub(super) in_time: AtomicU64,
    /// Connections that broke.
    pub(super) broken: AtomicU64,
    counting: AtomicBool,
    over: AtomicBool,
}

/// Connections that send until [`stop`](Self::stop).
pub(super) struct Clients {
    pub(super) counts: Arc<Counts>,
    tasks: JoinSet<()>,
}

// === impl Clients ===

impl Clients {
    /// Opens the connections; connection i begins with the i-th request.
    pub(super) fn start(address: SocketAddr, count: usize, requests: &Arc<[RawRequest]>) -> Self {
        let counts = Arc::<Counts>::default();
        let mut tasks = JoinSet::new();
        for i in 0..count {
            let (counts, requests) = (Arc::clone(&counts), Arc::clone(requests));
            tasks.spawn(async move {
                while !counts.over.load(Ordering::Relaxed) {
                    if exchange(address, i, &requests, &counts).await.is_err() {
                        counts.broken.fetch_add(1, Ordering::Relaxed);
                    }
                    sleep(RECONNECT).await;
                }
            });
        }
        Self { counts, tasks }
    }

    /// Counts from now on, or no longer.
    pub(super) fn count(&self, counting: bool) {
        self.counts.counting.store(counting, Ordering::Relaxed);
    }

    /// Ends after the exchanges that are under way.
    pub(super) async fn stop(mut self) {
        self.counts.over.store(true, Ordering::Relaxed);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(Duration::from_secs(2), ended).await;
        self.tasks.shutdown().await;
    }
}

/// Sends on one connection until it breaks.
async fn exchange(
    address: SocketAddr,
    first: usize,
    requests: &[RawRequest],
    counts: &Counts,
) -> std::io::Result<()> {
    let mut stream = connect(address, first).await?;
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(4_096);
    for request in requests.iter().cycle().skip(first % requests.len().max(1)) {
        if counts.over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let began = Instant::now();
        stream.write_all(&request.bytes).await?;
        let reply = timeout(PATIENCE, reply(&mut stream, &mut buffer)).await;
        let (status, closes) = reply.map_err(|_| std::io::ErrorKind::TimedOut)??;
        if counts.counting.load(Ordering::Relaxed) {
            counts.replies.fetch_add(1, Ordering::Relaxed);
            if status == 200 && began.elapsed() <= request.deadline {
                counts.in_time.fetch_add(1, Ordering::Relaxed);
            }
        }
        if closes {
            return Ok(());
        }
    }
    Ok(())
}

/// Connects from one of many addresses: a server gives each only a share of its connections.
async fn connect(server: SocketAddr, client: usize) -> std::io::Result<TcpStream> {
    let IpAddr::V4(loopback) = server.ip() else {
        return TcpStream::connect(server).await;
    };
    let socket = TcpSocket::new_v4()?;
    let [first, _, _, _] = loopback.octets();
    // Linux answers for all of 127.0.0.0/8.
    if loopback.is_loopback() && cfg!(target_os = "linux") {
        let from = Ipv4Addr::new(first, 0, 1, 1 + (client % ADDRESSES) as u8);
        socket.bind(SocketAddr::from((from, 0)))?;
    }
    socket.connect(server).await
}

/// Reads one reply: its status, and whether the server closes the connection.
async fn reply(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<(u16, bool)> {
    buffer.clear();
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let head = loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = std::str::from_utf8(&buffer[..head]).map_err(|_| invalid())?;
    let status = text.get(9..12).and_then(|it| it.parse().ok());
    let status = status.ok_or_else(invalid)?;
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let length: usize = field("content-length")
        .and_then(|it| it.parse().ok())
        .ok_or_else(invalid)?;
    let closes = field("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
    while buffer.len() < head + length {
        if stream.read_buf(buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((status, closes))
}

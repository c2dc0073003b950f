//! One request to a server that may not run, without a runtime.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use switchyard_server::sockets::ListenAddress;

/// Longest connect, and longest wait for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// The status of a GET; `None` if no server answers.
pub(crate) fn status(address: &ListenAddress, path: &str) -> Option<u16> {
    let answer = ask(address, &format!("GET {path}"), "", b"").ok()?;
    Some(answer.status)
}

/// The answer to a request: its method and path, further lines of its head, each with `\r\n`, and its
/// body.
///
/// # Errors
/// No server answers, or one that is not of HTTP/1.1.
pub(crate) fn ask(
    address: &ListenAddress,
    request: &str,
    headers: &str,
    body: &[u8],
) -> io::Result<Answer> {
    match address {
        ListenAddress::Tcp(address) => {
            let stream = TcpStream::connect_timeout(&reachable(*address), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            exchange(stream, "localhost", request, headers, body)
        }
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            exchange(stream, "localhost", request, headers, body)
        }
    }
}

/// The same over a stream, for this host.
///
/// # Errors
/// The stream breaks off, or the answer is not of HTTP/1.1.
pub(crate) fn exchange(
    mut stream: impl Read + Write,
    host: &str,
    request: &str,
    headers: &str,
    body: &[u8],
) -> io::Result<Answer> {
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\
         {headers}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(answer).ok_or_else(|| io::Error::other("the answer is not HTTP/1.1"))
}

fn parse(mut answer: Vec<u8>) -> Option<Answer> {
    let status = answer.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let status = std::str::from_utf8(status).ok()?.parse().ok()?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let body = answer.split_off(end + 4);
    Some(Answer { status, body })
}

/// Where a server that listens on all addresses is reached on this machine.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

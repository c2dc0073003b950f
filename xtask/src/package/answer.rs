//! The first answer of a server that is started.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Longest time from the installation to the first answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// How often a server is asked.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Longest wait for an answer and for the end.
const PATIENCE: Duration = Duration::from_secs(15);

/// Samples of a heartbeat.
const SAMPLES: usize = 187;

/// Two free addresses of this machine.
pub(crate) fn free_addresses() -> Result<[SocketAddr; 2]> {
    let listeners = [
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    ];
    Ok([listeners[0].local_addr()?, listeners[1].local_addr()?])
}

/// Runs a server until it has classified a heartbeat, since `began`; then it has to stop on SIGTERM
/// with code 0. Returns the time to the answer.
pub(crate) fn first(server: &mut Command, http: SocketAddr, began: Instant) -> Result<Duration> {
    let mut child = server.spawn().context("the server does not start")?;
    let took = until(&mut child, http, began)?;
    match end(&mut child)? {
        Some(0) => Ok(took),
        code => bail!("the server ended with {code:?} after SIGTERM, must be 0"),
    }
}

/// Waits until the server of a process has classified a heartbeat; the time since `began`.
pub(super) fn until(child: &mut Child, http: SocketAddr, began: Instant) -> Result<Duration> {
    loop {
        if let Some(status) = child.try_wait()? {
            bail!("the server ended before an answer: {status}");
        }
        let is_answer =
            |text: String| text.starts_with("HTTP/1.1 200") && text.contains("\"label\"");
        if ask(http).is_some_and(is_answer) {
            return Ok(began.elapsed());
        }
        if began.elapsed() > LIMIT {
            end(child)?;
            bail!("no answer within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(ASK_EVERY);
    }
}

/// The answer to a made-up heartbeat; `None`: no server answers.
fn ask(http: SocketAddr) -> Option<String> {
    let data = (0..SAMPLES)
        .map(|sample| sample.to_string())
        .collect::<Vec<_>>();
    let body = format!(
        "{{\"inputs\": [{{\"name\": \"beat\", \"shape\": [1, {SAMPLES}], \"datatype\": \"FP32\", \
         \"data\": [{}]}}]}}",
        data.join(",")
    );
    let mut stream = TcpStream::connect_timeout(&http, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = format!(
        "POST /v2/models/heart/infer HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Sends SIGTERM; the exit code.
fn end(child: &mut Child) -> Result<Option<i32>> {
    let id = child.id().to_string();
    switchyard_kit::shell::run(Command::new("kill").args(["-TERM", &id]))?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        std::thread::sleep(ASK_EVERY);
    }
    child.kill()?;
    bail!("the server did not stop within {} s", PATIENCE.as_secs())
}

//! A kept-alive connection, as plain as can be: it costs the client's core the same with every server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::request::JSON_LENGTH;

pub(crate) struct Connection {
    port: u16,
    stream: BufReader<TcpStream>,
}

pub(crate) struct Answer {
    pub(crate) is_ok: bool,
    /// Bytes of the JSON, where other bytes follow.
    pub(crate) json_bytes: Option<usize>,
    pub(crate) body: Vec<u8>,
}

// === impl Connection ===

impl Connection {
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let stream = BufReader::new(stream);
        Ok(Self { port, stream })
    }

    /// Sends a request and waits for its answer; with `patience` not for longer. After an error the connection is
    /// a new one, so that the server may see that the client has left.
    pub(crate) fn ask(&mut self, request: &[u8], patience: Option<Duration>) -> io::Result<Answer> {
        let answer = self.try_ask(request, patience);
        if answer.is_err() {
            *self = Self::open(self.port)?;
        }
        answer
    }

    fn try_ask(&mut self, request: &[u8], patience: Option<Duration>) -> io::Result<Answer> {
        let stream = self.stream.get_mut();
        stream.set_read_timeout(patience.map(|time| time.max(Duration::from_millis(1))))?;
        stream.write_all(request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let is_ok = line.contains(" 200 ");
        let (mut length, mut json_bytes) = (None, None);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            let value = || value.trim().parse::<usize>().ok();
            if name.eq_ignore_ascii_case("content-length") {
                length = value();
            } else if name.eq_ignore_ascii_case(JSON_LENGTH) {
                json_bytes = value();
            }
        }
        let length = length.ok_or_else(|| io::Error::other("an answer without a length"))?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer {
            is_ok,
            json_bytes,
            body,
        })
    }
}

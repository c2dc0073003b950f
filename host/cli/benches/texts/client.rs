//! A client that sends its next text when it has the answer to the last one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::json;

use super::text_zoo::MINILM;

/// The application.
pub(crate) const APP: &str = "sense";

/// Wait of a client whose text was refused.
const REFUSED: Duration = Duration::from_millis(20);

pub(crate) struct Client {
    connection: BufReader<TcpStream>,
    rng: Pcg64,
    /// Fewest and most words of a text.
    words: [usize; 2],
}

/// The answers to a client.
pub(crate) struct Finished {
    pub(crate) latencies_ms: Vec<f64>,
    /// Texts that the server refused, or gave up, because no answer was possible in time.
    pub(crate) dropped: usize,
    /// From the first text to the last answer.
    pub(crate) took: Duration,
}

// === impl Client ===

impl Client {
    pub(crate) fn new(port: u16, seed: u64, words: [usize; 2]) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            connection: BufReader::new(stream),
            rng: Pcg64::seed_from_u64(seed),
            words,
        }
    }

    /// Sends texts until the time is over.
    pub(crate) fn run(&mut self, time: Duration) -> Finished {
        let began = Instant::now();
        let (mut latencies_ms, mut dropped) = (Vec::new(), 0);
        while began.elapsed() < time {
            let request = self.request();
            let sent = Instant::now();
            match self.send(&request) {
                true => latencies_ms.push(sent.elapsed().as_secs_f64() * 1e3),
                false => {
                    dropped += 1;
                    std::thread::sleep(REFUSED);
                }
            }
        }
        Finished {
            latencies_ms,
            dropped,
            took: began.elapsed(),
        }
    }

    fn request(&mut self) -> Vec<u8> {
        let [fewest, most] = self.words;
        let count = self.rng.random_range(fewest..=most);
        // The first words of the vocabulary are special ones.
        let words = (0..count).map(|_| format!("w{}", self.rng.random_range(4..MINILM.vocabulary)));
        let text = words.collect::<Vec<_>>().join(" ");
        let input = json!({"name": "text", "shape": [1, 1], "datatype": "BYTES", "data": [text]});
        let body = json!({"inputs": [input]}).to_string();
        let head = format!(
            "POST /v2/models/{APP}/infer HTTP/1.1\r\nHost: 127.0.0.1\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        [head, body].concat().into_bytes()
    }

    /// Whether the answer is an embedding, and not that none was possible in time.
    ///
    /// # Panics
    /// The answer is another one.
    fn send(&mut self, request: &[u8]) -> bool {
        self.connection.get_mut().write_all(request).unwrap();
        let mut status = String::new();
        self.connection.read_line(&mut status).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body).unwrap();
        let body = String::from_utf8_lossy(&body);
        if status.contains(" 429 ") || status.contains(" 504 ") {
            return false;
        }
        assert!(status.contains(" 200 "), "{status}{body}");
        assert!(body.contains("\"embedding\""), "{body}");
        true
    }
}

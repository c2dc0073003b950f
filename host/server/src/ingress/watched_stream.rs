//! A client's stream that counts its progress, and keeps half-closed clients.
//!
//! hyper ends a connection at the end of its input, also in the middle of an exchange. Its option
//! `half_close` keeps the exchange, but then it no longer sees that a client has gone, and every
//! abandoned request is computed. TCP does not tell the two apart. Here the end of the input is
//! withheld from hyper during an exchange, and the acceptor ends the connection a moment later
//! ([`HALF_CLOSED_GRACE`](super::connections)): a client that has closed its side gets its answer if
//! it comes within that time, and the request of a client that has gone is cancelled after it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client_stream::ClientStream;
use super::connection_state::ConnectionState;

/// A stream and the state that it writes.
pub(super) struct WatchedStream {
    pub(super) stream: ClientStream,
    state: Arc<ConnectionState>,
    /// Whether it takes several buffers in one write.
    gathers: bool,
}

// === impl WatchedStream ===

impl WatchedStream {
    pub(super) fn new(stream: ClientStream, state: Arc<ConnectionState>) -> Self {
        Self {
            gathers: stream.is_write_vectored(),
            stream,
            state,
        }
    }

    /// Has h2 write a short answer together with its trailers.
    ///
    /// h2 ends a write with a payload that it does not copy. It copies payloads below 1 KiB if the stream
    /// takes one buffer per write when the connection begins, otherwise below 256 bytes. From its first
    /// write on the stream takes several, so that longer payloads go out with their headers.
    pub(super) fn joining_trailers(self) -> Self {
        Self {
            gathers: false,
            ..self
        }
    }

    fn note_write(&mut self, written: &Poll<io::Result<usize>>) {
        self.gathers = self.stream.is_write_vectored();
        match written {
            Poll::Ready(Ok(bytes)) => self.state.has_written(*bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.state.is_write_blocked(),
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = polled {
            let bytes = buffer.filled().len() - before;
            if bytes == 0 && room > 0 && self.state.half_close() {
                // The end of the exchange wakes the task.
                return Poll::Pending;
            }
            self.state.has_read(bytes);
        }
        polled
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note_write(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.gathers
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::sockets::Peer;

    #[tokio::test]
    async fn a_stream_that_joins_trailers_gathers_from_its_first_write_on() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        let (_client, (stream, _)) = (client.unwrap(), accepted.unwrap());
        let state = Arc::new(ConnectionState::new(Peer::User(None), true));
        let stream = WatchedStream::new(ClientStream::Plain(stream), state);
        assert!(stream.is_write_vectored());
        let mut joining = stream.joining_trailers();
        assert!(!joining.is_write_vectored());
        joining.write_all(b"settings").await.unwrap();
        assert!(joining.is_write_vectored());
    }
}

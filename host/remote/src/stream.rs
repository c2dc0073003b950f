//! The stream of a connection: TCP, plain or with TLS, or a Unix socket. It keeps its first error: HTTP/2 says only that the
//! connection has ended.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::address::{Place, RemoteAddress};
use crate::tls::explain;

/// A stream.
pub(crate) struct RemoteStream {
    pub(crate) inner: InnerStream,
    pub(crate) failure: Arc<OnceLock<String>>,
}

/// A stream without its error.
pub(crate) enum InnerStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

// === impl InnerStream ===

impl InnerStream {
    /// Connects, without TLS.
    pub(crate) async fn connect(address: &RemoteAddress) -> io::Result<Self> {
        let stream = match &address.place {
            Place::Unix(path) => return Ok(Self::Unix(UnixStream::connect(path).await?)),
            Place::At(at) => TcpStream::connect(at).await?,
            Place::Host => TcpStream::connect((&*address.host, address.port)).await?,
        };
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }
}

// === impl RemoteStream ===

impl RemoteStream {
    pub(crate) fn new(inner: InnerStream) -> Self {
        Self {
            inner,
            failure: Arc::default(),
        }
    }

    fn note<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &polled {
            // The first error is the cause of the others.
            let _ = self.failure.set(explain(error));
        }
        polled
    }

    fn note_write<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match (&polled, &self.inner) {
            // A server that refuses a certificate says so and closes: the reader finds the reason, or the
            // end, and wakes the task.
            (Poll::Ready(Err(_)), InnerStream::Tls(_)) => Poll::Pending,
            _ => self.note(polled),
        }
    }
}

impl AsyncRead for RemoteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = match &mut self.inner {
            InnerStream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            InnerStream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            InnerStream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        self.note(polled)
    }
}

impl AsyncWrite for RemoteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = match &mut self.inner {
            InnerStream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            InnerStream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            InnerStream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        self.note_write(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = match &mut self.inner {
            InnerStream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            InnerStream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            InnerStream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        };
        self.note_write(polled)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.inner {
            InnerStream::Tcp(stream) => stream.is_write_vectored(),
            InnerStream::Unix(stream) => stream.is_write_vectored(),
            InnerStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = match &mut self.inner {
            InnerStream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            InnerStream::Unix(stream) => Pin::new(stream).poll_flush(context),
            InnerStream::Tls(stream) => Pin::new(stream).poll_flush(context),
        };
        self.note_write(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            InnerStream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            InnerStream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            InnerStream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

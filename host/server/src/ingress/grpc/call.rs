//! A call and its connection.

use std::sync::Arc;
use std::time::Instant;

use hyper::header::HeaderMap;
use switchyard_protocol::ProtocolError;
use switchyard_protocol::grpc::ClientTimeout;

use super::super::backend::Backend;
use super::super::connection_state::ConnectionState;
use super::super::service::Service;
use super::inbound::{Inbound, Message};

/// A call and its connection.
pub(super) struct Call<B> {
    pub(super) service: Arc<Service<B>>,
    pub(super) connection: Arc<ConnectionState>,
    pub(super) headers: HeaderMap,
    /// When the headers had been read.
    pub(super) began: Instant,
    pub(super) timeout: ClientTimeout,
}

/// Counts an exchange of the connection until it is dropped: the client may cancel it at any time.
pub(super) struct Exchanging(Arc<ConnectionState>);

// === impl Call ===

impl<B: Backend> Call<B> {
    /// Begins an exchange.
    pub(super) fn exchange(&self) -> Exchanging {
        self.connection.begin_exchange();
        Exchanging(Arc::clone(&self.connection))
    }

    /// The message of a call that has one; an error if there is none.
    pub(super) async fn one_message(
        &self,
        inbound: &mut Inbound,
    ) -> Result<Message, ProtocolError> {
        inbound.expect(&self.service, &self.connection);
        let next = inbound.next(&self.service, &self.connection).await?;
        next.ok_or_else(|| ProtocolError::malformed("body", "has no message"))
    }
}

// === impl Exchanging ===

impl Drop for Exchanging {
    fn drop(&mut self) {
        self.0.end_exchange();
    }
}

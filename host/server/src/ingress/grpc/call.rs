//! A call and its connection.

use std::sync::Arc;
use std::time::Instant;

use hyper::header::HeaderMap;
use switchyard_protocol::ProtocolError;
use switchyard_protocol::grpc::ClientTimeout;

use super::super::backend::Backend;
use super::super::connection_state::{ConnectionState, Exchanging};
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

// === impl Call ===

impl<B: Backend> Call<B> {
    /// Begins an exchange.
    pub(super) fn exchange(&self) -> Exchanging {
        self.connection.exchanging()
    }

    /// The message of a call that has one, within its exchange; an error if there is none.
    pub(super) async fn one_message(
        &self,
        inbound: &mut Inbound,
    ) -> Result<Message, ProtocolError> {
        inbound.expect(&self.service, || self.connection.arriving());
        let next = inbound.next(&self.service, &self.connection).await?;
        next.ok_or_else(|| ProtocolError::malformed("body", "has no message"))
    }
}

//! The tracer of a program that exports no traces: there is none.

use switchyard_protocol::TraceParent;

use super::record::{CallTrace, RequestTrace};

/// Cannot be made: the check of the configuration refuses `server.traces`.
pub enum NoTracer {}

// === impl NoTracer ===

impl NoTracer {
    pub(crate) fn draw(&self, _: Option<TraceParent>) -> Option<Box<CallTrace>> {
        match *self {}
    }

    pub(crate) fn record(&self, _: RequestTrace) {
        match *self {}
    }
}

//! Traces of single requests, exported by OTLP: how a request waited, which window decided it and why,
//! and where it ran.
//!
//! [`Tracer`] draws the requests that are traced. The driver fills a [`RequestTrace`] and hands it over; a
//! thread makes spans of it and sends them to the collector. Nothing waits for that thread: a trace
//! without room in its queue is dropped and counted.

#[cfg(feature = "traces")]
mod collector;
#[cfg(feature = "traces")]
mod exporter;
#[cfg(not(feature = "traces"))]
mod no_tracer;
#[cfg(feature = "traces")]
pub mod otlp;
mod record;
#[cfg(feature = "traces")]
mod sampler;
#[cfg(feature = "traces")]
mod spans;
#[cfg(feature = "traces")]
mod tracer;

#[cfg(not(feature = "traces"))]
pub use no_tracer::NoTracer as Tracer;
pub use record::{BatchTrace, CallTrace, RequestTrace, WindowTrace};
#[cfg(feature = "traces")]
pub use tracer::Tracer;

//! Spans of the traces: names instead of ids, times since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use switchyard_core::catalog::{Catalog, Variant};
use switchyard_core::ids::ExitId;
use switchyard_core::time::Time;

use super::otlp::{
    AnyValue, ExportTraceServiceRequest, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans,
    Span, Status, Value,
};
use super::record::{BatchTrace, CallTrace, RequestTrace, WindowTrace};
use super::sampler::mixed;
use crate::clock::Clock;

/// Span kinds of OTLP.
const INTERNAL: i32 = 1;
const SERVER: i32 = 2;

/// Status code of OTLP.
const ERROR: i32 = 2;

/// Zero of the server's clock in ns since 1970.
#[derive(Clone, Copy)]
pub(super) struct Epoch(u64);

/// Makes the spans of one trace.
struct SpanMaker<'a> {
    epoch: Epoch,
    trace: &'a RequestTrace,
    made: u64,
}

// === impl Epoch ===

impl Epoch {
    pub(super) fn of(clock: Clock) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ns = u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
        Self(now_ns.saturating_sub(clock.now().0.saturating_mul(1_000)))
    }

    fn ns(self, time: Time) -> u64 {
        self.0.saturating_add(time.0.saturating_mul(1_000))
    }
}

/// The body of a request to the collector.
pub(super) fn message(traces: &[RequestTrace], epoch: Epoch) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let spans = traces.iter().flat_map(|trace| spans(trace, epoch));
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: vec![
                    text("service.name", "switchyard"),
                    text("service.version", version),
                ],
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(Scope {
                    name: "switchyard".to_owned(),
                    version: version.to_owned(),
                }),
                spans: spans.collect(),
            }],
        }],
    }
}

/// The request, then its time in queues, its windows and its batches.
fn spans(trace: &RequestTrace, epoch: Epoch) -> Vec<Span> {
    let mut maker = SpanMaker {
        epoch,
        trace,
        made: 0,
    };
    let mut spans = vec![maker.request(), maker.queue()];
    spans.extend(trace.windows.iter().map(|window| maker.window(window)));
    spans.extend(trace.batches.iter().map(|batch| maker.compute(batch)));
    spans
}

// === impl SpanMaker ===

impl SpanMaker<'_> {
    fn request(&self) -> Span {
        let RequestTrace {
            call,
            catalog,
            arrival,
            ended,
            ..
        } = self.trace;
        let trace = self.trace;
        let app = catalog.app(trace.app).map_or("", |app| &*app.name);
        let deadline = trace.deadline.since(*arrival);
        let mut attributes = vec![
            text("switchyard.app", app),
            text("switchyard.pool", &trace.pool),
            text("switchyard.outcome", trace.outcome),
            int("switchyard.request", trace.request.0),
            int("switchyard.rows", trace.rows as u64),
            int("switchyard.deadline_us", deadline.0),
        ];
        if let Some((variant, exit)) = trace.ran {
            let variant = catalog.variant(variant);
            attributes.push(text("switchyard.variant", name_of(variant)));
            attributes.push(text("switchyard.exit", exit_of(variant, Some(exit))));
        }
        if let Some(policy) = &trace.policy {
            attributes.push(text("switchyard.policy", policy));
        }
        let error = || Status {
            message: trace.outcome.to_owned(),
            code: ERROR,
        };
        Span {
            span_id: call.span_id.to_be_bytes().to_vec(),
            parent_span_id: call
                .parent
                .map_or(Vec::new(), |id| id.to_be_bytes().to_vec()),
            kind: SERVER,
            status: (!trace.is_answered).then(error),
            ..self.span("request", *call, (*arrival, *ended), attributes)
        }
    }

    /// Until the first batch, or the end without one.
    fn queue(&mut self) -> Span {
        let first = self.trace.batches.first();
        let until = first.map_or(self.trace.ended, |batch| batch.began);
        self.child("queue", (self.trace.arrival, until), Vec::new())
    }

    fn window(&mut self, window: &WindowTrace) -> Span {
        let mut attributes = vec![
            text("switchyard.policy", &window.by),
            int("switchyard.window", window.id),
        ];
        if let Some(reason) = &window.reason {
            attributes.push(text("switchyard.reason", reason));
        }
        self.child("window", (window.opened, window.closed), attributes)
    }

    fn compute(&mut self, batch: &BatchTrace) -> Span {
        let catalog: &Catalog = &self.trace.catalog;
        let variant = catalog.variant(batch.variant);
        let worker = catalog.worker(batch.worker).map_or("", |spec| &*spec.name);
        let stages = format!("{} to {}", batch.from_stage, batch.to_stage);
        let attributes = vec![
            text("switchyard.worker", worker),
            text("switchyard.variant", name_of(variant)),
            text("switchyard.exit", exit_of(variant, batch.exit)),
            text("switchyard.stages", &stages),
            int("switchyard.batch_size", batch.size as u64),
            int("switchyard.load_us", batch.load.0),
        ];
        let ended = batch.ended.unwrap_or(self.trace.ended);
        self.child("compute", (batch.began, ended), attributes)
    }

    fn child(&mut self, name: &str, times: (Time, Time), attributes: Vec<KeyValue>) -> Span {
        self.made += 1;
        self.span(name, self.trace.call, times, attributes)
    }

    /// A child of the request.
    fn span(
        &self,
        name: &str,
        call: CallTrace,
        (began, ended): (Time, Time),
        attributes: Vec<KeyValue>,
    ) -> Span {
        let id = mixed(call.span_id.wrapping_add(self.made)).max(1);
        Span {
            trace_id: call.trace_id.to_be_bytes().to_vec(),
            span_id: id.to_be_bytes().to_vec(),
            parent_span_id: call.span_id.to_be_bytes().to_vec(),
            name: name.to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: self.epoch.ns(began),
            end_time_unix_nano: self.epoch.ns(ended.max(began)),
            attributes,
            status: None,
        }
    }
}

fn name_of(variant: Option<&Variant>) -> &str {
    variant.map_or("", |variant| &*variant.name)
}

/// Empty for none: the activations are parked.
fn exit_of(variant: Option<&Variant>, exit: Option<ExitId>) -> &str {
    let exit = variant
        .zip(exit)
        .and_then(|(variant, exit)| variant.exits.get(exit.index()));
    exit.map_or("", |exit| &*exit.name)
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::String(value.to_owned()))
}

fn int(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}

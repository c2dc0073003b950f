//! From the replies of the server to the ends of requests.

use std::time::Duration;

use hyper::StatusCode;
use serde::Deserialize;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, ExitId};
use switchyard_core::request::{DroppedFrom, Outcome, Rejection};
use switchyard_core::time::Micros;
use switchyard_sim::served::{ServedArrival, ServedEnd};

use super::client::Exchange;

/// The fields of an answer that a run needs.
#[derive(Deserialize)]
struct Answer {
    parameters: Parameters,
}

#[derive(Deserialize)]
struct Parameters {
    variant: String,
    exit: String,
    batch_size: u32,
    queue_us: u64,
    compute_us: u64,
    short_circuit: bool,
}

/// Times that no simulation has: of the client, and of the way to the server and back.
#[derive(Clone, Debug, Default)]
pub(super) struct Overheads {
    /// From when a request was due until it was sent.
    late: Vec<Duration>,
    /// The part of an exchange that is neither queueing nor computing.
    http: Vec<Duration>,
}

// === impl Overheads ===

impl Overheads {
    /// By name, in milliseconds.
    pub(super) fn metrics(&self) -> [(&'static str, f64); 4] {
        [
            ("client_late_p50_ms", quantile_ms(&self.late, 0.5)),
            ("client_late_p99_ms", quantile_ms(&self.late, 0.99)),
            ("http_p50_ms", quantile_ms(&self.http, 0.5)),
            ("http_p99_ms", quantile_ms(&self.http, 0.99)),
        ]
    }

    /// The end of a request in the catalog's terms; takes its times along.
    ///
    /// # Errors
    /// The reply cannot be read.
    pub(super) fn end(
        &mut self,
        exchange: &Exchange,
        arrival: &ServedArrival,
        catalog: &Catalog,
    ) -> Result<ServedEnd, String> {
        self.late.push(exchange.late);
        let latency = Micros::from(exchange.latency);
        let unanswered = |outcome| ServedEnd {
            arrival: exchange.request,
            outcome,
            latency,
            waited: latency,
            batch_size: 0,
        };
        let (status, body) = match &exchange.reply {
            Ok((status, body)) => (*status, body),
            Err(reason) => return Ok(unanswered(Outcome::Failed(reason.clone()))),
        };
        match status {
            StatusCode::OK => {}
            StatusCode::TOO_MANY_REQUESTS => {
                return Ok(unanswered(Outcome::Rejected(Rejection::Overloaded)));
            }
            StatusCode::GATEWAY_TIMEOUT => {
                return Ok(unanswered(Outcome::Dropped(DroppedFrom::Pending)));
            }
            other => return Ok(unanswered(Outcome::Failed(other.to_string()))),
        }
        let unreadable = |reason: &dyn std::fmt::Display| {
            let body = String::from_utf8_lossy(body);
            format!("unreadable answer: {reason}: {body}")
        };
        let answer: Answer = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
        let parameters = answer.parameters;
        let in_server = Duration::from_micros(parameters.queue_us + parameters.compute_us);
        let exchanged = exchange.latency.saturating_sub(exchange.late);
        self.http.push(exchanged.saturating_sub(in_server));
        let in_time = latency <= arrival.deadline();
        let outcome = match parameters.short_circuit {
            true => Outcome::ShortCircuited { in_time },
            false => outcome(catalog, arrival.app, &parameters, in_time)
                .ok_or_else(|| unreadable(&"a variant or an exit that the profile lacks"))?,
        };
        Ok(ServedEnd {
            arrival: exchange.request,
            outcome,
            latency,
            waited: Micros::from(exchange.late) + Micros(parameters.queue_us),
            batch_size: parameters.batch_size,
        })
    }
}

/// None if the catalog lacks the variant or the exit.
fn outcome(
    catalog: &Catalog,
    app: AppId,
    parameters: &Parameters,
    in_time: bool,
) -> Option<Outcome> {
    let mut variants = catalog.variants_of(app);
    let (variant, known) = variants.find(|(_, known)| known.name == parameters.variant)?;
    let exit = known
        .exits
        .iter()
        .position(|exit| exit.name == parameters.exit)?;
    Some(Outcome::Answered {
        variant,
        exit: ExitId(exit as u32),
        in_time,
    })
}

/// 0 without values.
fn quantile_ms(values: &[Duration], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = (share * sorted.len() as f64) as usize;
    let found = sorted.get(at.min(sorted.len().saturating_sub(1)));
    found.map_or(0.0, |value| value.as_secs_f64() * 1e3)
}

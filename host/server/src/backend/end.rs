//! The end of a call, as the HTTP port shows it.

use std::sync::Arc;

use switchyard_core::request::{Outcome, Rejection};

use super::served::ServedApp;
use crate::driver::{CallError, RowAnswer};
use crate::ingress::{InferAnswer, InferError};

/// Seconds after which a client that found a queue full may try again.
const RETRY_AFTER_S: u32 = 1;

/// Variant and exit of an answer from evidence alone.
const SHORT_CIRCUIT: &str = "sneakpeek";

/// Joins the answers of a call's rows, in their order. Different values are listed in the order of
/// their rows; times are those of the slowest row.
pub(super) fn answer(app: &ServedApp, rows: &[RowAnswer]) -> Result<InferAnswer, InferError> {
    if rows.is_empty() {
        return Err(InferError::Failed("a call without rows".to_owned()));
    }
    let catalog = app.pool.catalog();
    let variant = |row: &RowAnswer| {
        let ran = row.ran.and_then(|(variant, _)| catalog.variant(variant));
        ran.map_or(SHORT_CIRCUIT, |variant| variant.name.as_str())
    };
    let exit = |row: &RowAnswer| {
        let ran = row
            .ran
            .and_then(|(variant, exit)| catalog.variant(variant)?.exit(exit));
        ran.map_or(SHORT_CIRCUIT, |exit| exit.name.as_str())
    };
    Ok(InferAnswer {
        outputs: app.outputs.tensors(rows),
        variant: distinct(rows.iter().map(variant)),
        exit: distinct(rows.iter().map(exit)),
        policy: distinct(rows.iter().map(|row| &*row.policy)),
        batch_size: rows.iter().map(|row| row.batch_size).max().unwrap_or(0),
        queue_us: rows.iter().map(|row| row.queue.0).max().unwrap_or(0),
        compute_us: rows.iter().map(|row| row.compute.0).max().unwrap_or(0),
        deadline_met: rows.iter().all(|row| row.in_time),
        short_circuit: rows.iter().all(|row| row.ran.is_none()),
        window: rows.iter().map(|row| row.window).max().unwrap_or(0),
    })
}

/// The one value, or all different ones joined by commas.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Arc<str> {
    let mut seen: Vec<&str> = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    match seen.as_slice() {
        [one] => Arc::from(*one),
        many => Arc::from(many.join(",")),
    }
}

/// The one place where the end of a request becomes an error for its client.
pub(super) fn error(error: &CallError) -> InferError {
    match &error.outcome {
        Outcome::Rejected(Rejection::PendingFull) => queue_full("pending requests"),
        Outcome::Rejected(Rejection::LaneFull) => queue_full("its route's lane"),
        Outcome::Rejected(Rejection::ByPolicy) => {
            InferError::RefusedByPolicy("it chose not to serve this request".to_owned())
        }
        Outcome::Rejected(Rejection::NoWorker) => {
            InferError::NotReady("no worker that can hold the model is up".to_owned())
        }
        Outcome::Rejected(Rejection::Draining) | Outcome::Cancelled => InferError::Draining,
        Outcome::Dropped(_) => InferError::DeadlineDropped {
            waited_us: error.waited.0,
        },
        Outcome::Failed(reason) => InferError::Failed(reason.clone()),
        Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => {
            InferError::Failed("an answer was lost".to_owned())
        }
    }
}

/// The error of a call that found a queue full.
pub(super) fn queue_full(queue: impl Into<String>) -> InferError {
    InferError::QueueFull {
        queue: queue.into(),
        retry_after_s: RETRY_AFTER_S,
    }
}

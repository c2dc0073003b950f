//! The end of a call, as the HTTP port shows it.

use std::sync::Arc;

use switchyard_core::request::{Outcome, Rejection};

use super::public;
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
        outputs: app
            .outputs
            .tensors(rows)
            .map_err(|reason| failed(app.name(), &reason))?,
        variant: distinct(rows.iter().map(variant)),
        exit: distinct(rows.iter().map(exit)),
        policy: distinct_policies(rows),
        batch_size: rows.iter().map(|row| row.batch_size).max().unwrap_or(0),
        queue_us: rows.iter().map(|row| row.queue.0).max().unwrap_or(0),
        compute_us: rows.iter().map(|row| row.compute.0).max().unwrap_or(0),
        deadline_met: rows.iter().all(|row| row.in_time),
        short_circuit: rows.iter().all(|row| row.ran.is_none()),
        window: rows.iter().map(|row| row.window).max().unwrap_or(0),
    })
}

/// The one value, or all different ones joined by commas.
fn distinct<'a>(mut values: impl Iterator<Item = &'a str>) -> Arc<str> {
    let first = values.next().unwrap_or_default();
    let Some(other) = values.find(|value| *value != first) else {
        return Arc::from(first);
    };
    let mut seen = vec![first, other];
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    Arc::from(seen.join(","))
}

/// The same of the policies, which rows mostly share.
fn distinct_policies(rows: &[RowAnswer]) -> Arc<str> {
    match rows {
        [row] => Arc::clone(&row.policy),
        rows => distinct(rows.iter().map(|row| &*row.policy)),
    }
}

/// The one place where the end of a request becomes an error for its client.
pub(super) fn error(app: &str, error: &CallError) -> InferError {
    match &error.outcome {
        Outcome::Rejected(Rejection::PendingFull) => queue_full("pending requests"),
        Outcome::Rejected(Rejection::LaneFull) => queue_full("its route's lane"),
        Outcome::Rejected(Rejection::Overloaded) => InferError::Overloaded {
            retry_after_s: RETRY_AFTER_S,
        },
        Outcome::Rejected(Rejection::AboveShare) => InferError::AboveShare {
            retry_after_s: RETRY_AFTER_S,
        },
        Outcome::Rejected(Rejection::DeadlineTooShort) => InferError::DeadlineTooShort,
        Outcome::Rejected(Rejection::ByPolicy) => InferError::RefusedByPolicy {
            policy: error
                .decided
                .as_ref()
                .map_or_else(|| "".into(), |d| Arc::clone(&d.by)),
            window: error.decided.as_ref().map_or(0, |d| d.window),
        },
        Outcome::Rejected(Rejection::NoWorker) => {
            InferError::NotReady("no worker that can hold the model is up".to_owned())
        }
        Outcome::Rejected(Rejection::Draining) | Outcome::Cancelled => InferError::Draining,
        Outcome::Dropped(_) => InferError::DeadlineDropped {
            waited_us: error.waited.0,
        },
        Outcome::Failed(reason) => failed(app, reason),
        Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => {
            InferError::Failed("an answer was lost".to_owned())
        }
    }
}

/// The error of a call that failed on this machine. The client gets the first line without the
/// machine's paths; the log gets the rest.
pub(super) fn failed(app: &str, reason: &str) -> InferError {
    let public = public::reason(reason);
    if public != reason {
        tracing::warn!(app, reason, "failed; its client was told less");
    }
    InferError::Failed(public)
}

/// The error of a call that found a queue full.
pub(super) fn queue_full(queue: impl Into<String>) -> InferError {
    InferError::QueueFull {
        queue: queue.into(),
        retry_after_s: RETRY_AFTER_S,
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::request::DroppedFrom;
    use switchyard_core::time::Micros;
    use switchyard_core::worker::Decided;

    use super::*;

    fn ended(outcome: Outcome, decided: Option<Decided>) -> InferError {
        let waited = Micros(7);
        let call = CallError {
            outcome,
            waited,
            decided,
        };
        error("heart", &call)
    }

    #[test]
    fn a_rejection_names_the_policy_and_its_window() {
        let decided = Decided {
            window: 12,
            by: "stability@3".into(),
        };
        let outcome = Outcome::Rejected(Rejection::ByPolicy);
        let refused = InferError::RefusedByPolicy {
            policy: "stability@3".into(),
            window: 12,
        };
        assert_eq!(ended(outcome, Some(decided)), refused);
    }

    #[test]
    fn a_request_without_a_chance_ends_with_its_reason() {
        let rejected = |why| ended(Outcome::Rejected(why), None);
        let later = InferError::Overloaded { retry_after_s: 1 };
        assert_eq!(rejected(Rejection::Overloaded), later);
        let above = InferError::AboveShare { retry_after_s: 1 };
        assert_eq!(rejected(Rejection::AboveShare), above);
        assert_eq!(
            rejected(Rejection::DeadlineTooShort),
            InferError::DeadlineTooShort
        );
        let nobody = "no worker that can hold the model is up".to_owned();
        assert_eq!(rejected(Rejection::NoWorker), InferError::NotReady(nobody));
        let dropped = InferError::DeadlineDropped { waited_us: 7 };
        assert_eq!(ended(Outcome::Dropped(DroppedFrom::Pending), None), dropped);
    }

    #[test]
    fn a_failure_keeps_the_machine_to_itself() {
        let reason = "cannot read /srv/zoo/heart/cnn/weights.safetensors\n   0: std::backtrace";
        let told = InferError::Failed("cannot read weights.safetensors".to_owned());
        assert_eq!(ended(Outcome::Failed(reason.to_owned()), None), told);
    }
}

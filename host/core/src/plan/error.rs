//! Why a plan is refused, in the words that operators, researchers and policies' tests read.

use thiserror::Error;

use crate::ids::{BatchId, RequestId};

/// Why a plan was refused: the first reason found. Nothing of the plan was applied.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PlanError {
    /// A request that is not pending: unknown, ended, or placed elsewhere.
    #[error("{entry}: request {} is not pending", request.0)]
    NotPending {
        /// The entry of the plan.
        entry: String,
        /// The id it names.
        request: RequestId,
    },
    /// A list with more entries than could be valid. None of them was looked at.
    #[error("{list}: {len} entries, of which at most {most} can be valid")]
    TooLong {
        /// The list, such as `routes[0].lanes`.
        list: String,
        /// Its length.
        len: usize,
        /// The most entries that the state allows.
        most: usize,
    },
    /// A request named twice.
    #[error("request {} is named more than once", request.0)]
    Doubled {
        /// The id.
        request: RequestId,
    },
    /// Sizes of the dispatches do not add up to the members.
    #[error("dispatches hold {sizes} requests, members lists {members}")]
    MemberCount {
        /// Sum of the sizes.
        sizes: u64,
        /// Length of `members`.
        members: usize,
    },
    /// A batch that does not wait in a queue, or that the plan takes back twice.
    #[error("revokes[{index}]: batch {} is not queued", batch.0)]
    NotQueued {
        /// Position in `revokes`.
        index: usize,
        /// The batch named.
        batch: BatchId,
    },
    /// An entry that names something that does not exist or does not fit.
    #[error("{entry}.{field}: {reason}")]
    Invalid {
        /// The entry, such as `dispatches[3]`.
        entry: String,
        /// Its field.
        field: &'static str,
        /// The violated rule with the value found.
        reason: String,
    },
}

// === impl PlanError ===

impl PlanError {
    pub(super) fn invalid(entry: String, field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            entry,
            field,
            reason: reason.into(),
        }
    }
}

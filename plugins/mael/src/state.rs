//! State kept between windows and across a change of version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_sdk::{RequestId, Window, WorkerId};

use crate::mode::SliceMode;

/// Format of the saved state.
const FORMAT: u32 = 1;

/// Data that windows do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaelState {
    pub(crate) mode: SliceMode,
    /// The stages that each placed request runs now or next. Only requests of this policy that have
    /// not ended.
    pub(crate) ranges: BTreeMap<RequestId, StageRange>,
    /// Pending requests that have a worker but wait for the last slice of a task before them; in
    /// order.
    pub(crate) held: Vec<(WorkerId, RequestId)>,
}

/// The stages `[from, to)` of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StageRange {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    format: u32,
    mode: SliceMode,
    pieces: Vec<(u64, StageRange)>,
    held: Vec<(u32, u64)>,
}

// === impl MaelState ===

impl MaelState {
    /// Drops requests that have ended.
    pub(crate) fn forget_ended(&mut self, window: &Window) {
        let placed: Vec<RequestId> = {
            let mut ids: Vec<_> = window.placed().map(|row| row.id).collect();
            ids.sort_unstable();
            ids
        };
        self.ranges.retain(|id, _| placed.binary_search(id).is_ok());
    }

    pub(crate) fn save(&self) -> Vec<u8> {
        let saved = Saved {
            format: FORMAT,
            mode: self.mode,
            pieces: self
                .ranges
                .iter()
                .map(|(id, &range)| (id.0, range))
                .collect(),
            held: self.held.iter().map(|(w, id)| (w.0, id.0)).collect(),
        };
        // Cannot fail: lists of integers.
        serde_json::to_vec(&saved).unwrap_or_default()
    }

    /// Reads the bytes of [`save`](Self::save).
    ///
    /// # Errors
    /// The bytes are of another policy or of another format.
    pub(crate) fn restore(bytes: &[u8]) -> Result<Self, String> {
        let saved: Saved =
            serde_json::from_slice(bytes).map_err(|error| format!("state: {error}"))?;
        if saved.format != FORMAT {
            return Err(format!(
                "state: format {}; this version reads format {FORMAT}",
                saved.format
            ));
        }
        Ok(Self {
            mode: saved.mode,
            ranges: saved
                .pieces
                .into_iter()
                .map(|(id, range)| (RequestId(id), range))
                .collect(),
            held: saved
                .held
                .into_iter()
                .map(|(w, id)| (WorkerId(w), RequestId(id)))
                .collect(),
        })
    }
}

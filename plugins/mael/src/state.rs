//! What is remembered between windows, and across a change of version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_sdk::{RequestId, Window, WorkerId};

use crate::mode::SliceMode;

/// Format of the saved state.
const FORMAT: u32 = 1;

/// Everything that a window does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) mode: SliceMode,
    /// Stages that each request runs next or now, of those that this policy has placed and that
    /// have not ended: windows do not tell stages.
    pub(crate) pieces: BTreeMap<RequestId, Piece>,
    /// Pending requests that have a worker, but must not be queued behind a part that is not
    /// the last of its run; in their order.
    pub(crate) held: Vec<(WorkerId, RequestId)>,
}

/// Stages of one part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    format: u32,
    mode: SliceMode,
    pieces: Vec<(u64, Piece)>,
    held: Vec<(u32, u64)>,
}

// === impl State ===

impl State {
    /// Forgets what has ended.
    pub(crate) fn forget_ended(&mut self, window: &Window) {
        let placed: Vec<RequestId> = {
            let mut ids: Vec<_> = window.placed().map(|row| row.id).collect();
            ids.sort_unstable();
            ids
        };
        self.pieces.retain(|id, _| placed.binary_search(id).is_ok());
    }

    pub(crate) fn save(&self) -> Vec<u8> {
        let saved = Saved {
            format: FORMAT,
            mode: self.mode,
            pieces: self
                .pieces
                .iter()
                .map(|(id, &piece)| (id.0, piece))
                .collect(),
            held: self.held.iter().map(|(w, id)| (w.0, id.0)).collect(),
        };
        // Numbers in lists always have a JSON.
        serde_json::to_vec(&saved).unwrap_or_default()
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// It is of another policy or of a format that is not known.
    pub(crate) fn restore(bytes: &[u8]) -> Result<Self, String> {
        let saved: Saved =
            serde_json::from_slice(bytes).map_err(|error| format!("state: {error}"))?;
        if saved.format != FORMAT {
            return Err(format!("state: format {} is not known", saved.format));
        }
        Ok(Self {
            mode: saved.mode,
            pieces: saved
                .pieces
                .into_iter()
                .map(|(id, piece)| (RequestId(id), piece))
                .collect(),
            held: saved
                .held
                .into_iter()
                .map(|(w, id)| (WorkerId(w), RequestId(id)))
                .collect(),
        })
    }
}

//! SliceMode (Algorithm 3, lines 24 to 27): whether long runs are cut.

use serde::{Deserialize, Serialize};

use crate::line::{Entry, Length, Line, Place};

/// The flag, which outlives its window: pieces have to be there before the short task that
/// they let through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SliceMode {
    pub(crate) on: bool,
    /// When it last helped or was turned on, on the host's clock.
    helped_us: u64,
}

// === impl SliceMode ===

impl SliceMode {
    /// Looks at the queues of a window, new tasks in their places, and turns the flag.
    pub(crate) fn update(&mut self, now_us: u64, hold_us: u64, lines: &[Line]) {
        if !self.on {
            if lines.iter().any(is_blocked) {
                *self = Self {
                    on: true,
                    helped_us: now_us,
                };
            }
            return;
        }
        // Without pieces there is nothing to judge by.
        let mut sliced = lines.iter().filter(|line| has_pieces(line)).peekable();
        if sliced.peek().is_none() {
            return;
        }
        if sliced.any(helps) {
            self.helped_us = now_us;
        } else if now_us.saturating_sub(self.helped_us) >= hold_us {
            self.on = false;
        }
    }
}

/// Some task of this window is expected to miss its SLO, and would not without the long runs in
/// one piece before it.
fn is_blocked(line: &Line) -> bool {
    let mut end_us = line.busy_us;
    let mut long_us = if line.runs_long { line.busy_us } else { 0 };
    for entry in &line.order {
        end_us += entry.work_us;
        if entry.length == Length::Long {
            long_us += entry.work_us;
            continue;
        }
        let is_new = matches!(entry.place, Place::Pending(_));
        if is_new && entry.missed(end_us) > 0.0 && entry.missed(end_us - long_us) == 0.0 {
            return true;
        }
    }
    false
}

fn has_pieces(line: &Line) -> bool {
    let is_piece = |entry: &Entry| matches!(entry.length, Length::Begun | Length::Sliced);
    line.order.iter().any(is_piece)
}

/// Some task comes before pieces that would run first if the run that they are of had been
/// begun in one piece, and would then miss its SLO, or by more.
fn helps(line: &Line) -> bool {
    let mut later_us: u64 = line
        .order
        .iter()
        .filter(|entry| entry.length == Length::Begun)
        .map(|entry| entry.work_us)
        .sum();
    let mut end_us = line.busy_us;
    line.order.iter().any(|entry| {
        end_us += entry.work_us;
        if entry.length == Length::Begun {
            later_us -= entry.work_us;
        }
        later_us > 0 && entry.missed(end_us + later_us) > 0.0
    })
}

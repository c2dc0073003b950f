//! From lines to the plan: what is put into the host's queues, what is held, what is taken back.

use switchyard_sdk::{PlanBuilder, RequestRef, Window};

use crate::line::{Line, Place};
use crate::models::Models;
use crate::state::{Piece, State};

/// What a plan is made from.
pub(crate) struct Commit<'a> {
    pub(crate) window: Window<'a>,
    pub(crate) models: &'a Models,
    /// SliceMode as this window found it.
    pub(crate) slices: bool,
    pub(crate) how: &'static str,
}

// === impl Commit ===

impl Commit<'_> {
    /// Puts lines into a plan. Only the last part of a run may have others queued behind it: a
    /// worker takes the next batch by itself, and the part that follows is pending only then.
    /// What comes later in the line is held, unless its deadline has passed: the host minds
    /// requests that are late and wait.
    ///
    /// Returns whether anything is left to be dispatched.
    pub(crate) fn apply(&self, lines: &[Line], state: &mut State, plan: &mut PlanBuilder) -> bool {
        state.held.clear();
        let is_held: Vec<usize> = lines.iter().map(|line| self.reach(line, state)).collect();
        for (line, &reach) in lines.iter().zip(&is_held) {
            for entry in &line.order[reach..] {
                match entry.place {
                    Place::Queued { batch, mine: true } if !entry.is_overdue() => {
                        plan.revoke(line.worker, batch);
                        state.pieces.remove(&entry.id);
                        state.held.push((line.worker, entry.id));
                    }
                    Place::Pending(_) if !entry.is_overdue() => {
                        state.held.push((line.worker, entry.id));
                    }
                    _ => {}
                }
            }
        }
        let mut is_left = !state.held.is_empty();
        for (line, &reach) in lines.iter().zip(&is_held) {
            let mut can_park = self.can_park(line, state);
            let mut place = 0;
            for (at, entry) in line.order.iter().enumerate() {
                match entry.place {
                    Place::Running => {}
                    Place::Queued { mine, .. } => {
                        let stays = at < reach || !mine || entry.is_overdue();
                        place += u32::from(stays);
                    }
                    Place::Pending(_) if at >= reach && !entry.is_overdue() => {}
                    Place::Pending(index) => {
                        let request = self.window.request(index);
                        let taken = self.dispatch(request, line, place, &mut can_park, plan);
                        is_left |= taken.is_none();
                        if let Some(piece) = taken {
                            state.pieces.insert(entry.id, piece);
                            place += 1;
                        }
                    }
                }
            }
        }
        is_left
    }

    /// How much of a line can be queued: up to the first part that is not its run's last.
    fn reach(&self, line: &Line, state: &State) -> usize {
        let goes_on = line.order.iter().position(|entry| match entry.place {
            Place::Running => true,
            Place::Queued { .. } => state.pieces.get(&entry.id).is_some_and(|piece| {
                let stages = self.stages(entry.id, line);
                stages.is_some_and(|stages| piece.to < stages)
            }),
            Place::Pending(index) => {
                let request = self.window.request(index);
                self.piece(request, line, true)
                    .is_some_and(|(piece, stages)| piece.to < stages)
            }
        });
        goes_on.map_or(line.order.len(), |at| at + 1)
    }

    /// Stages of the variant that a placed request runs.
    fn stages(&self, id: switchyard_sdk::RequestId, line: &Line) -> Option<u32> {
        let mut placed = self.window.placed();
        let row = placed.find(|row| row.id == id && row.worker == line.worker)?;
        Some(self.window.catalog().variant(row.variant).stages)
    }

    /// Requests that the worker can still park.
    fn can_park(&self, line: &Line, state: &State) -> u32 {
        let worker = self.window.worker(line.worker);
        let coming = self.window.placed().filter(|row| {
            let stages = self.window.catalog().variant(row.variant).stages;
            let piece = state.pieces.get(&row.id);
            row.worker == line.worker && piece.is_some_and(|p| p.from == 0 && p.to < stages)
        });
        let limit = self.window.catalog().worker(line.worker).parked_max;
        limit.saturating_sub(worker.parked() + coming.count() as u32)
    }

    /// The part of a pending request's run that comes next, and all its stages.
    fn piece(&self, request: RequestRef<'_>, line: &Line, can_park: bool) -> Option<(Piece, u32)> {
        let (run, from) = match request.progress() {
            Some(progress) => {
                let run = self
                    .models
                    .run_of(request.app(), line.worker, progress.variant)?;
                (run, progress.stages_run)
            }
            None => (
                self.models
                    .run(request.app(), line.worker, request.min_accuracy())?,
                0,
            ),
        };
        let stages = self.window.catalog().variant(run.variant).stages;
        let cut = run
            .next_cut(from)
            .filter(|_| self.slices && (can_park || from > 0));
        let to = cut.map_or(stages, |cut| cut.to_stage);
        Some((Piece { from, to }, stages))
    }

    fn dispatch(
        &self,
        request: RequestRef<'_>,
        line: &Line,
        place: u32,
        can_park: &mut u32,
        plan: &mut PlanBuilder,
    ) -> Option<Piece> {
        let (piece, stages) = self.piece(request, line, *can_park > 0)?;
        let variant = match request.progress() {
            Some(progress) => progress.variant,
            None => {
                self.models
                    .run(request.app(), line.worker, request.min_accuracy())?
                    .variant
            }
        };
        let run = plan
            .run(line.worker, variant)
            .resume(piece.from)
            .place(place);
        let (run, why) = match (piece.to < stages, piece.from) {
            (true, _) => (run.park_after(piece.to), "one slice of it"),
            (false, 0) => (run, self.how),
            (false, _) => (run, "the rest of it"),
        };
        if run.because(why).requests([request]) == 0 {
            return None;
        }
        if piece.to < stages && piece.from == 0 {
            *can_park -= 1;
        }
        Some(piece)
    }
}

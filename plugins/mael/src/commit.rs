//! From lines to the plan: what is put into the host's queues, what is held, what is taken back.

use switchyard_sdk::window::{Placed, Progress};
use switchyard_sdk::{PlanBuilder, Reason, RequestId, VariantId, Window};

use crate::line::{Entry, Length, Line, Place};
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

/// One dispatch to be.
struct Part {
    id: RequestId,
    variant: VariantId,
    piece: Piece,
    /// Of its variant.
    stages: u32,
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
        let reaches: Vec<usize> = lines.iter().map(|line| self.reach(line, state)).collect();
        for (line, &reach) in lines.iter().zip(&reaches) {
            for (at, entry) in line.order.iter().enumerate() {
                let is_held = at >= reach && !entry.is_overdue();
                match entry.place {
                    Place::Moved { batch, from } => plan.revoke(from, batch),
                    Place::Queued { batch, mine: true } if is_held => {
                        plan.revoke(line.worker, batch);
                    }
                    Place::Pending(_) => {}
                    Place::Queued { .. } | Place::Running => continue,
                }
                if is_held {
                    state.pieces.remove(&entry.id);
                    state.held.push((line.worker, entry.id));
                }
            }
        }
        let mut is_left = !state.held.is_empty();
        for (line, &reach) in lines.iter().zip(&reaches) {
            let mut can_park = self.can_park(line, state);
            let mut place = 0;
            for (at, entry) in line.order.iter().enumerate() {
                let is_held = at >= reach && !entry.is_overdue();
                match entry.place {
                    Place::Running => {}
                    Place::Queued { mine, .. } => place += u32::from(!mine || !is_held),
                    Place::Pending(_) | Place::Moved { .. } if is_held => {}
                    Place::Pending(_) | Place::Moved { .. } => {
                        let part = self.part(entry, line, state, can_park > 0);
                        let taken =
                            part.filter(|part| self.dispatch(part, entry, line, place, plan));
                        is_left |= taken.is_none();
                        state.pieces.remove(&entry.id);
                        if let Some(part) = taken {
                            state.pieces.insert(part.id, part.piece);
                            can_park -= u32::from(part.is_first() && part.goes_on());
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
            // Most are whole, and whole lines may be long.
            Place::Queued { .. } if matches!(entry.length, Length::Short | Length::Long) => false,
            Place::Queued { .. } => {
                let piece = state.pieces.get(&entry.id);
                let row = self.row(entry.id);
                piece
                    .zip(row)
                    .is_some_and(|(piece, row)| piece.to < self.stages(row.variant))
            }
            Place::Pending(_) | Place::Moved { .. } => {
                let part = self.part(entry, line, state, true);
                part.is_some_and(|part| part.goes_on())
            }
        });
        goes_on.map_or(line.order.len(), |at| at + 1)
    }

    fn row(&self, id: RequestId) -> Option<Placed> {
        self.window.placed().find(|row| row.id == id)
    }

    fn stages(&self, variant: VariantId) -> u32 {
        self.window.catalog().variant(variant).stages
    }

    /// Requests that the worker can still park.
    fn can_park(&self, line: &Line, state: &State) -> u32 {
        let worker = self.window.worker(line.worker);
        let coming = self.window.placed().filter(|row| {
            let piece = state.pieces.get(&row.id);
            let parks = |p: &Piece| p.from == 0 && p.to < self.stages(row.variant);
            row.worker == line.worker && piece.is_some_and(parks)
        });
        let limit = self.window.catalog().worker(line.worker).parked_max;
        limit.saturating_sub(worker.parked() + coming.count() as u32)
    }

    /// The part of an entry's run that comes next.
    fn part(&self, entry: &Entry, line: &Line, state: &State, can_park: bool) -> Option<Part> {
        let (run, from) = match entry.place {
            Place::Pending(index) => {
                let request = self.window.request(index);
                let (app, accuracy) = (request.app(), request.min_accuracy());
                match request.progress() {
                    Some(Progress {
                        variant,
                        stages_run,
                        ..
                    }) => (self.models.run_of(app, line.worker, variant)?, stages_run),
                    None => (self.models.run(app, line.worker, accuracy)?, 0),
                }
            }
            _ => {
                let row = self.row(entry.id)?;
                let from = state.pieces.get(&entry.id).map_or(0, |piece| piece.from);
                (self.models.run_of(row.app, line.worker, row.variant)?, from)
            }
        };
        let stages = self.stages(run.variant);
        let cut = run
            .next_cut(from)
            .filter(|_| self.slices && (can_park || from > 0));
        let to = cut.map_or(stages, |cut| cut.to_stage);
        Some(Part {
            id: entry.id,
            variant: run.variant,
            piece: Piece { from, to },
            stages,
        })
    }

    /// Whether the queue had room.
    fn dispatch(
        &self,
        part: &Part,
        entry: &Entry,
        line: &Line,
        place: u32,
        plan: &mut PlanBuilder,
    ) -> bool {
        let run = plan
            .run(line.worker, part.variant)
            .resume(part.piece.from)
            .place(place);
        let (run, why) = match (part.goes_on(), part.is_first()) {
            (true, _) => (run.park_after(part.piece.to), "slice"),
            (false, true) => (run, self.how),
            (false, false) => (run, "rest"),
        };
        let why = Reason::new(why)
            .with("work_us", entry.work_us)
            .with("waited_us", entry.age_us)
            .with("slo_us", entry.slo_us);
        run.because(why).requests([part.id]) > 0
    }
}

// === impl Part ===

impl Part {
    /// Others of the same run follow.
    fn goes_on(&self) -> bool {
        self.piece.to < self.stages
    }

    fn is_first(&self) -> bool {
        self.piece.from == 0
    }
}

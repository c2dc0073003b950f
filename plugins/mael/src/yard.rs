//! The window's workers as [lines](Line): what the host shows, and what is remembered of it.

use switchyard_sdk::window::{Placed, PlacedState};
use switchyard_sdk::{BatchId, PlanBuilder, RequestRef, Window, WorkerRef};

use crate::line::{Entry, Length, Line, Place};
use crate::models::Models;
use crate::score::Rule;
use crate::state::State;

/// Every worker, in the catalog's order.
pub(crate) fn lines(
    window: &Window,
    plan: &PlanBuilder,
    models: &Models,
    state: &State,
    rule: Option<Rule>,
) -> Vec<Line> {
    let line = |worker: WorkerRef<'_>| Line {
        worker: worker.id(),
        is_up: worker.is_up(),
        room: plan.room(worker.id()),
        busy_us: worker.busy_until_us().saturating_sub(window.now_us()),
        runs_long: false,
        order: Vec::new(),
    };
    let mut lines: Vec<Line> = window.workers().map(line).collect();
    let mut rests: Vec<(usize, Entry)> = Vec::new();
    let rows: Vec<Placed> = window.placed().collect();
    for batch in
        rows.chunk_by(|a, b| a.batch.is_some() && (a.worker, a.batch) == (b.worker, b.batch))
    {
        let (first, at) = (&batch[0], batch[0].worker.index());
        match first.state {
            // Lanes are another policy's; theirs end with it.
            PlacedState::Lane => {}
            PlacedState::Running => {
                let run = models.run_of(first.app, first.worker, first.variant);
                let piece = state.pieces.get(&first.id);
                let stages = window.catalog().variant(first.variant).stages;
                match piece.filter(|piece| piece.to < stages) {
                    Some(piece) => rests.push((at, rest(window, first, piece.to))),
                    None => {
                        let is_cut = run.is_some_and(|run| !run.slices.is_empty());
                        lines[at].runs_long = is_cut && piece.is_none_or(|piece| piece.from == 0);
                    }
                }
            }
            PlacedState::Queued => lines[at].order.extend(queued(window, models, state, batch)),
        }
    }
    // What is left of a running run goes where it would be put if it were pending.
    for (at, entry) in rests {
        let place = rule.map_or(0, |rule| lines[at].best_place(rule, &entry));
        lines[at].order.insert(place, entry);
    }
    lines
}

/// A request's entry, but for its work.
fn entry(window: &Window, row: &Placed) -> Entry {
    Entry {
        id: row.id,
        work_us: 0,
        age_us: window.now_us().saturating_sub(row.arrival_us),
        slo_us: row.deadline_us.saturating_sub(row.arrival_us),
        place: Place::Running,
        length: Length::Begun,
    }
}

/// What is left once the part that runs now has ended.
fn rest(window: &Window, row: &Placed, from: u32) -> Entry {
    let entry = entry(window, row);
    Entry {
        work_us: stages_us(window, row, from),
        ..entry
    }
}

/// A batch that waits.
fn queued(window: &Window, models: &Models, state: &State, batch: &[Placed]) -> Option<Entry> {
    let first = &batch[0];
    let entry = entry(window, first);
    let place = |mine| first.batch.map(|batch| Place::Queued { batch, mine });
    let Some(piece) = state.pieces.get(&first.id) else {
        // Not of this policy: whole, as far as one can tell.
        let variant = window.catalog().variant(first.variant);
        let whole = window
            .catalog()
            .latencies_us(first.worker, first.variant, variant.last_exit());
        let work_us = whole.get(batch.len() - 1).or(whole.last());
        return Some(Entry {
            work_us: work_us.copied().unwrap_or(0),
            place: place(false)?,
            length: Length::Short,
            ..entry
        });
    };
    let stages = window.catalog().variant(first.variant).stages;
    let run = models.run_of(first.app, first.worker, first.variant);
    let run = run.filter(|run| !run.slices.is_empty());
    let (work_us, length) = match (run, piece.from) {
        (Some(run), 0) if piece.to < stages => (run.sliced_us(), Length::Sliced),
        (Some(run), 0) => (run.latency_us, Length::Long),
        (None, 0) => (stages_us(window, first, 0), Length::Short),
        _ => (stages_us(window, first, piece.from), Length::Begun),
    };
    Some(Entry {
        work_us,
        place: place(true)?,
        length,
        ..entry
    })
}

/// From a stage to the end. The whole run is a cell of its own; what is left of one is the sum
/// of its parts.
fn stages_us(window: &Window, row: &Placed, from: u32) -> u64 {
    let variant = window.catalog().variant(row.variant);
    let exit = Some(variant.last_exit());
    let of_rest =
        window
            .catalog()
            .run_latencies_us(row.worker, row.variant, from, variant.stages, exit);
    of_rest.first().copied().unwrap_or(0)
}

/// Marks what is not where the host has it: on another worker, or behind what it was before.
/// `hosts` are the lines as they were shown.
pub(crate) fn mark_moved(lines: &mut [Line], hosts: &[Line]) {
    let mut places: Vec<(BatchId, usize, usize)> = Vec::new();
    for (worker, line) in hosts.iter().enumerate() {
        let batches = line
            .order
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| match entry.place {
                Place::Queued { batch, .. } => Some((batch, worker, at)),
                _ => None,
            });
        places.extend(batches);
    }
    for (worker, line) in lines.iter_mut().enumerate() {
        let mut last = None;
        for entry in &mut line.order {
            let Place::Queued { batch, .. } = entry.place else {
                continue;
            };
            let Some(&(_, from, at)) = places.iter().find(|place| place.0 == batch) else {
                continue;
            };
            if from == worker && Some(at) > last {
                last = Some(at);
            } else {
                let from = hosts[from].worker;
                entry.place = Place::Moved { batch, from };
            }
        }
    }
}

/// A pending request as an entry that takes so long on the worker it is for.
pub(crate) fn pending(request: RequestRef<'_>, work_us: u64, length: Length) -> Entry {
    Entry {
        id: request.id(),
        work_us,
        age_us: request.age_us(),
        slo_us: request.deadline_us().saturating_sub(request.arrival_us()),
        place: Place::Pending(request.index()),
        length,
    }
}

//! The requests that recorded windows show, as a trace that the simulator replays.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::AppId;
use switchyard_core::time::Time;
use switchyard_core::window::Window;
use switchyard_policy::recording::Frame;
use switchyard_sim::workload::{Recorded, Trace};

use super::frames::for_each_frame;
use crate::commands::draft::write_file;
use crate::commands::failure::Failure;

/// Requests, run by run.
#[derive(Default)]
struct Gathering {
    catalog: Arc<Catalog>,
    /// Requests of the current run by id. A window shows a request again until it is placed.
    run: BTreeMap<u64, Seen>,
    /// Requests of the earlier runs.
    requests: Vec<Recorded>,
}

struct Seen {
    app: AppId,
    arrival: Time,
    deadline: Time,
}

/// Writes the requests of a recording. Several runs follow one another.
pub(super) fn write(trace: &Path, file: &Path) -> Result<(), Failure> {
    let mut gathering = Gathering::default();
    for_each_frame(trace, |frame| {
        match frame {
            Frame::Start(header) => {
                gathering.end_run();
                gathering.catalog = Arc::new(header.catalog);
            }
            Frame::Catalog(catalog) => gathering.catalog = Arc::new(*catalog),
            Frame::Decision(decision) => gathering.look(&decision.window),
            Frame::Policy(_) | Frame::Gap(_) => {}
        }
        Ok(())
    })?;
    gathering.end_run();
    if gathering.requests.is_empty() {
        let trace = trace.display();
        return Err(Failure::input(format!(
            "{trace}: no window shows a request"
        )));
    }
    let trace = Trace {
        requests: Some(gathering.requests),
        ..Trace::default()
    };
    let unwritten =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", file.display()));
    let text = serde_json::to_vec(&trace).map_err(|error| unwritten(&error))?;
    write_file(file, text).map_err(|error| unwritten(&error))
}

// === impl Gathering ===

impl Gathering {
    fn look(&mut self, window: &Window) {
        let pending = &window.requests;
        let placed = &window.placed;
        let rows = [
            (
                &pending.id,
                &pending.app,
                &pending.arrival,
                &pending.deadline,
            ),
            (&placed.id, &placed.app, &placed.arrival, &placed.deadline),
        ];
        for (ids, apps, arrivals, deadlines) in rows {
            let rows = ids.iter().zip(apps).zip(arrivals.iter().zip(deadlines));
            for ((&id, &app), (&arrival, &deadline)) in rows {
                self.run.entry(id).or_insert(Seen {
                    app: AppId(app),
                    arrival: Time(arrival),
                    deadline: Time(deadline),
                });
            }
        }
    }

    /// The first request of a run arrives when the last one of the run before did.
    fn end_run(&mut self) {
        let mut seen: Vec<Seen> = std::mem::take(&mut self.run).into_values().collect();
        seen.sort_by_key(|request| request.arrival);
        let Some(first) = seen.first().map(|request| request.arrival) else {
            return;
        };
        let begins = self.requests.last().map_or(0, |request| request.at_us);
        self.requests.extend(seen.iter().filter_map(|request| {
            Some(Recorded {
                at_us: begins + request.arrival.since(first).0,
                app: self.catalog.app(request.app)?.name.clone(),
                deadline_us: Some(request.deadline.since(request.arrival)),
                length: None,
            })
        }));
    }
}

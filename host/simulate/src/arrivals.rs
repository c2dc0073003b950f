//! The requests that recorded windows show, as a trace that the simulator replays.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::ids::AppId;
use switchyard_core::time::Time;
use switchyard_core::window::Window;
use switchyard_policy::recording::Frame;
use switchyard_sim::workload::Recorded;

/// Gathers the requests of a recording; several runs follow one another.
#[derive(Default)]
pub struct RecordedArrivals {
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
    /// None: no window showed it pending.
    cost: Option<Cost>,
}

// === impl RecordedArrivals ===

impl RecordedArrivals {
    /// Takes the next frame.
    pub fn take(&mut self, frame: &Frame) {
        match frame {
            Frame::Start(header) => {
                self.end_run();
                self.catalog = Arc::new(header.catalog.clone());
            }
            Frame::Catalog(catalog) => self.catalog = Arc::new(Catalog::clone(catalog)),
            Frame::Decision(decision) => self.look(&decision.window),
            Frame::Policy(_) | Frame::Gap(_) => {}
        }
    }

    /// The requests, ascending.
    pub fn finish(mut self) -> Vec<Recorded> {
        self.end_run();
        self.requests
    }

    fn look(&mut self, window: &Window) {
        let pending = &window.requests;
        let placed = &window.placed;
        let mut costs = pending.costs.iter().peekable();
        for (row, &id) in (0..).zip(&pending.id) {
            let cost = costs.next_if(|cost| cost.index == row);
            let at = row as usize;
            let request = (pending.app[at], pending.arrival[at], pending.deadline[at]);
            self.see(id, request, Some(cost.map_or(Cost::ONE, |cost| cost.cost)));
        }
        let rows = placed.app.iter().zip(&placed.arrival).zip(&placed.deadline);
        for (&id, ((&app, &arrival), &deadline)) in placed.id.iter().zip(rows) {
            self.see(id, (app, arrival, deadline), None);
        }
    }

    fn see(&mut self, id: u64, (app, arrival, deadline): (u32, u64, u64), cost: Option<Cost>) {
        let seen = self.run.entry(id).or_insert(Seen {
            app: AppId(app),
            arrival: Time(arrival),
            deadline: Time(deadline),
            cost,
        });
        seen.cost = seen.cost.or(cost);
    }

    /// The first request of a run arrives when the last one of the run before did.
    fn end_run(&mut self) {
        let mut seen: Vec<Seen> = std::mem::take(&mut self.run).into_values().collect();
        seen.sort_by_key(|request| request.arrival);
        let Some(first) = seen.first().map(|request| request.arrival) else {
            return;
        };
        let begins = self.requests.last().map_or(0, |request| request.at_us);
        let catalog = &self.catalog;
        self.requests.extend(seen.iter().filter_map(|request| {
            Some(Recorded {
                at_us: begins + request.arrival.since(first).0,
                app: catalog.app(request.app)?.name.clone(),
                deadline_us: Some(request.deadline.since(request.arrival)),
                length: request.length(catalog),
            })
        }));
    }
}

// === impl Seen ===

impl Seen {
    /// A length that has its cost, where costs follow lengths.
    fn length(&self, catalog: &Catalog) -> Option<u32> {
        let costs = catalog.profile.costs(self.app)?;
        costs.length_of(self.cost?)
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::catalog::{App, Late, Penalty, Task};
    use switchyard_core::cost::{CostCurve, CostPoint};
    use switchyard_core::time::Micros;
    use switchyard_core::window::RequestCost;

    use super::*;

    fn app(name: &str) -> App {
        App {
            name: name.to_owned(),
            task: Task::Tensors,
            classes: vec![String::new()],
            slo: Micros::from_millis(100),
            penalty: Penalty::Step,
            prior: vec![1.0],
            frequencies: vec![1.0],
            sneakpeek: None,
            late: Late::Shed,
        }
    }

    #[test]
    fn requests_keep_the_lengths_that_their_costs_stand_for() {
        let cost = |rows| Cost::from_f64(rows);
        let points = [(16, 0.25), (64, 1.0), (256, 5.0)].map(|(length, rows)| CostPoint {
            length,
            cost: cost(rows),
        });
        let mut catalog = Catalog {
            apps: vec![app("texts"), app("rows")],
            ..Catalog::default()
        };
        catalog.profile = catalog.profile.with_costs(AppId(0), CostCurve::new(points));
        let mut gathering = RecordedArrivals {
            catalog: Arc::new(catalog),
            ..RecordedArrivals::default()
        };
        let mut window = Window::default();
        let pending = &mut window.requests;
        pending.id = vec![1, 2, 3];
        pending.app = vec![0, 0, 1];
        pending.arrival = vec![10, 20, 30];
        pending.deadline = vec![110, 120, 130];
        pending.costs = vec![RequestCost {
            index: 1,
            cost: cost(5.0),
        }];
        gathering.look(&window);
        gathering.end_run();
        let lengths = gathering.requests.iter().map(|request| request.length);
        assert_eq!(lengths.collect::<Vec<_>>(), [Some(64), Some(256), None]);
    }
}

//! Whether a plan could be applied to a recorded window: asked of a scheduler in which the
//! same requests wait, so that a trial and the real thing are checked by the same code.

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::Notice;
use switchyard_core::ids::{AppId, RequestId};
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers};
use switchyard_core::request::{Evidence, Request};
use switchyard_core::time::Time;
use switchyard_core::window::Window;
use switchyard_core::{Command, Event, Scheduler, SchedulerConfig};

/// Answers every window with one plan.
struct Scripted {
    description: Description,
    plan: Plan,
}

/// Checks a plan against the window it was made for.
///
/// The scheduler of the trial has idle workers and empty queues. So what depends on the
/// moment is left out, batches to take back and windows with partly run requests;
/// [`switchyard_policy::conformance::check`] checks that part first.
///
/// # Errors
/// Why the plan was refused.
pub fn check_plan(catalog: &Arc<Catalog>, window: &Window, plan: &Plan) -> Result<(), String> {
    if !window.requests.progress.is_empty() {
        return Ok(());
    }
    let config = SchedulerConfig {
        pending_max: window.len() + 1,
        history: 0,
        ..SchedulerConfig::default()
    };
    let mut scheduler =
        Scheduler::try_new(Arc::clone(catalog), config).map_err(|error| error.to_string())?;
    arrive(&mut scheduler, catalog, window);
    let scripted = Scripted {
        description: Description {
            on: Triggers {
                arrival: true,
                ..Triggers::default()
            },
            ..Description::default()
        },
        plan: Plan {
            revokes: Vec::new(),
            ..plan.clone()
        },
    };
    scheduler.handle(window.now, Event::PolicyChanged(Box::new(scripted)));
    while let Some(command) = scheduler.poll(window.now) {
        match command {
            Command::Notice(Notice::PolicyFaulted(faulted)) => return Err(faulted.fault.reason),
            // The first window has been served.
            Command::Run(_) | Command::Reply(_) | Command::Release { .. } => return Ok(()),
            Command::Notice(_) | Command::Decided(_) | Command::Prepare { .. } => {}
        }
    }
    Ok(())
}

/// The window's pending requests, with their evidence.
fn arrive(scheduler: &mut Scheduler, catalog: &Catalog, window: &Window) {
    let requests = &window.requests;
    let mut order: Vec<usize> = (0..window.len()).collect();
    order.sort_by_key(|&i| requests.id[i]);
    for i in order {
        let request = Request {
            id: RequestId(requests.id[i]),
            app: AppId(requests.app[i]),
            arrival: Time(requests.arrival[i]),
            // An app that drops would drop what was late already.
            deadline: Time::NEVER,
            priority: requests.priority[i],
            min_accuracy: requests.min_accuracy[i],
            pinned: None,
        };
        scheduler.handle(window.now, Event::Arrived(request));
    }
    let mut counts = requests.evidence_counts.as_slice();
    for &index in &requests.evidence_index {
        let i = index as usize;
        let app = requests.app.get(i).and_then(|&app| catalog.app(AppId(app)));
        let classes = app.map_or(0, |app| app.classes.len()).min(counts.len());
        let (own, rest) = counts.split_at(classes);
        counts = rest;
        if let Some(&id) = requests.id.get(i) {
            let request = RequestId(id);
            let counts = Evidence::from_slice(own);
            scheduler.handle(window.now, Event::Evidence { request, counts });
        }
    }
}

// === impl Scripted ===

impl Policy for Scripted {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _catalog: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, _window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        // Only the first window is the recorded one.
        std::mem::swap(plan, &mut self.plan);
        self.plan.clear();
        Ok(())
    }
}

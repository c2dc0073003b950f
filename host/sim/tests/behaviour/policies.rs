//! Policies for the tests.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers, WindowFields};
use switchyard_core::window::{IDLE, Window};
use switchyard_sim::Contender;

/// A policy given as a function, called on arrivals, completions and evidence.
pub(crate) struct Script<F> {
    description: Description,
    body: F,
}

impl<F: FnMut(&Window, &mut Plan) + Send> Policy for Script<F> {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        (self.body)(window, plan);
        Ok(())
    }
}

pub(crate) fn script<F>(name: &str, body: F) -> Contender
where
    F: FnMut(&Window, &mut Plan) + Send + Sync + Clone + 'static,
{
    let description = Description {
        name: name.to_owned(),
        version: "1".to_owned(),
        on: Triggers {
            arrival: true,
            completion: true,
            evidence: true,
            ..Triggers::default()
        },
        wants: WindowFields {
            evidence: true,
            ..WindowFields::default()
        },
        ..Description::default()
    };
    Contender::new(name, move || Script {
        description: description.clone(),
        body: body.clone(),
    })
}

/// Idle workers take the oldest request, alone, by the last exit of `variant_of` its app.
pub(crate) fn first_come(variant_of: [u32; 2], stages: [u32; 2], exits: [u32; 2]) -> Contender {
    script("first-come", move |window, plan| {
        let workers = &window.workers;
        let idle = (0..workers.up.len() as u32).filter(|&w| {
            workers.running_variant[w as usize] == IDLE && workers.queued[w as usize] == 0
        });
        for (i, worker) in (0..window.len()).zip(idle) {
            let app = window.requests.app[i] as usize;
            let dispatch = Dispatch {
                worker: WorkerId(worker),
                variant: VariantId(variant_of[app]),
                from_stage: 0,
                to_stage: stages[app],
                exit: Some(ExitId(exits[app])),
                place: 0,
                size: 0,
            };
            plan.dispatch(dispatch, [RequestId(window.requests.id[i])]);
        }
    })
}

/// The native fallback of the core, as a policy.
pub(crate) fn edf() -> Contender {
    Contender::new(
        "edf",
        switchyard_core::policy::EarliestDeadlineFirst::default,
    )
}

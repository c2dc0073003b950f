//! A policy written inside the test that uses it.

use switchyard_core::catalog::Catalog;
use switchyard_core::event::Event;
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers, WindowFields};
use switchyard_core::window::Window;

type Body = Box<dyn FnMut(&Window, &mut Plan) + Send>;

pub struct Script {
    description: Description,
    body: Body,
    state: Vec<u8>,
}

/// An event that installs a policy which is called on arrivals and completions.
pub fn install(name: &str, body: impl FnMut(&Window, &mut Plan) + Send + 'static) -> Event {
    Event::PolicyChanged(Box::new(Script {
        description: Description {
            name: name.to_owned(),
            version: "1".to_owned(),
            on: Triggers {
                arrival: true,
                completion: true,
                ..Triggers::default()
            },
            wants: WindowFields {
                evidence: true,
                completions: true,
                placed: true,
                residents: true,
            },
            ..Description::default()
        },
        body: Box::new(body),
        state: Vec::new(),
    }))
}

/// Adds a batch of stage 0 to the first exit, at the end of the worker's queue.
pub fn whole(plan: &mut Plan, worker: u32, variant: u32, members: &[u64]) {
    stages(plan, worker, variant, 0..1, Some(0), members);
}

/// Adds a batch of some stages, at the end of the worker's queue.
pub fn stages(
    plan: &mut Plan,
    worker: u32,
    variant: u32,
    range: std::ops::Range<u32>,
    exit: Option<u32>,
    members: &[u64],
) {
    let dispatch = Dispatch {
        worker: WorkerId(worker),
        variant: VariantId(variant),
        from_stage: range.start,
        to_stage: range.end,
        exit: exit.map(ExitId),
        place: u32::MAX,
        size: 0,
    };
    plan.dispatch(dispatch, members.iter().map(|&id| RequestId(id)));
}

impl Policy for Script {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.state = window.id.to_le_bytes().to_vec();
        (self.body)(window, plan);
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        Ok(self.state.clone())
    }
}

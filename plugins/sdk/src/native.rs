//! An SDK policy in the host without wasm: the baseline of components, in the simulator and in
//! benchmarks.

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{self as host, Description, FaultKind, PolicyFault};
use switchyard_core::window::Window;

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::component::{self, Runner};
use crate::convert::{to_core, to_raw};
use crate::policy::Policy;

/// Runs an SDK policy natively behind the host's trait.
pub struct Native<P> {
    description: Description,
    settings: String,
    runner: Option<Runner<P>>,
    /// The window as it would cross, built into the same buffers each time.
    window: raw::Window,
}

// === impl Native ===

impl<P: Policy> Native<P> {
    /// A policy with its own JSON settings; `{}` means all defaults.
    pub fn new(settings: impl Into<String>) -> Self {
        Self {
            description: to_core::description(P::describe()),
            settings: settings.into(),
            runner: None,
            window: to_raw::empty_window(),
        }
    }
}

impl<P: Policy + Send> host::Policy for Native<P> {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        component::configure(&mut self.runner, to_raw::catalog(catalog), &self.settings)
            .map_err(failed)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        to_raw::window(window, &mut self.window);
        let decided = configured(&mut self.runner)?
            .schedule(&mut self.window)
            .map_err(failed)?;
        to_core::plan(decided, plan);
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        Ok(configured(&mut self.runner)?.policy().save())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        configured(&mut self.runner)?
            .policy_mut()
            .restore(state)
            .map_err(failed)
    }
}

fn configured<P>(runner: &mut Option<Runner<P>>) -> Result<&mut Runner<P>, PolicyFault> {
    runner
        .as_mut()
        .ok_or_else(|| failed("called before it was configured"))
}

fn failed(reason: impl Into<String>) -> PolicyFault {
    PolicyFault::new(FaultKind::Failed, reason)
}

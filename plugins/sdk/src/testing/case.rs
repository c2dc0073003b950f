//! A recorded window as a unit test: `switchyard replay TRACE --window N --test FILE` writes both.

use serde::Deserialize;
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::{Plan, check_window};
use switchyard_core::window::Window;

use super::decisions::Decisions;
use crate::component::Runner;
use crate::convert::{to_core, to_raw};
use crate::policy::Policy;

/// One recorded window, with the catalog and the settings to decide it again.
///
/// The policy is asked fresh: one that remembers earlier windows may decide differently.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    catalog: Catalog,
    /// The policy's own, as JSON.
    settings: String,
    window: Window,
}

// === impl Case ===

impl Case {
    /// Reads the JSON that `switchyard replay` wrote.
    ///
    /// # Errors
    /// The text is not such a file; names the field.
    pub fn parse(json: &str) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut json)
            .map_err(|error| format!("{}: {}", error.path(), error.inner()))
    }

    /// The plan of a fresh policy with the recorded settings.
    ///
    /// # Errors
    /// The policy's own, or why the host would refuse its plan.
    pub fn decide<P: Policy>(&self) -> Result<Decisions, String> {
        let mut runner = Runner::<P>::new(to_raw::catalog(&self.catalog), &self.settings)?;
        let mut window = to_raw::empty_window();
        to_raw::window(&self.window, &mut window);
        let decided = runner.schedule(&mut window)?;
        let decisions = Decisions::of(&decided);
        let mut plan = Plan::default();
        to_core::plan(decided, &mut plan);
        check_window(&self.window, &self.catalog, &plan).map_err(|error| error.to_string())?;
        Ok(decisions)
    }
}

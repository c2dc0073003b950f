//! A window that was recorded, as a unit test: `switchyard replay TRACE --window N --test FILE`
//! writes both.

use serde::Deserialize;
use switchyard_core::catalog as core;
use switchyard_core::window::Window;

use super::{Decisions, try_run};
use crate::catalog::Catalog;
use crate::native::{catalog_of, window_of};
use crate::policy::Policy;

/// One recorded window, and what is needed to decide it again.
///
/// A policy with a memory may decide otherwise: it is asked with none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    catalog: core::Catalog,
    /// The policy's own, as JSON.
    settings: String,
    window: Window,
}

// === impl Case ===

impl Case {
    /// Reads what `switchyard replay` wrote.
    ///
    /// # Errors
    /// The text is no case; names the field.
    pub fn parse(json: &str) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut json)
            .map_err(|error| format!("{}: {}", error.path(), error.inner()))
    }

    /// What a fresh policy with the recorded settings decides.
    ///
    /// # Errors
    /// What the policy says, or why the host would refuse its plan.
    pub fn decide<P: Policy>(&self) -> Result<Decisions, String> {
        let catalog = Catalog::new(catalog_of(&self.catalog))?;
        let mut policy = P::configure(&catalog, &self.settings)?;
        let plan = try_run(&mut policy, &catalog, &window_of(&self.window))?;
        Ok(Decisions::of(&plan))
    }
}

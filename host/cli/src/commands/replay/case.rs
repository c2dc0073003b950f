//! One window as a unit test of the replayed policy: a Rust file, and next to it the window for
//! `switchyard_sdk::testing::Case`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::RequestId;
use switchyard_core::window::Window;
use switchyard_policy::recording::PolicyRecord;

use crate::commands::draft::write_file;
use crate::commands::failure::Failure;
use crate::commands::print;

/// A window and the policy's decision.
pub(super) struct Case {
    /// Run of the recording, from 1.
    pub(super) run: u64,
    pub(super) policy: PolicyRecord,
    pub(super) catalog: Arc<Catalog>,
    pub(super) window: Window,
    /// The requests of its batches, in order, or the reason why the plan is not valid.
    pub(super) decided: Result<Vec<RequestId>, String>,
}

/// The file of the window, next to the test.
pub(super) fn data_file(test: &Path) -> PathBuf {
    test.with_extension("json")
}

// === impl Case ===

impl Case {
    /// Writes test and window. `of` is the type that implements the policy.
    pub(super) fn write(&self, file: &Path, of: &str, trace: &Path) -> Result<(), Failure> {
        let data = data_file(file);
        let failed = |path: &Path, error: std::io::Error| {
            Failure::input(format!("{}: {error}", path.display()))
        };
        let case = json!({
            "catalog": &*self.catalog,
            "settings": self.policy.settings,
            "window": self.window,
        });
        let text = serde_json::to_string_pretty(&case).map_err(Failure::check)?;
        write_file(&data, text + "\n").map_err(|error| failed(&data, error))?;
        let name = data.file_name().unwrap_or_default().to_string_lossy();
        let test = self.test(of, &name, trace);
        write_file(file, test).map_err(|error| failed(file, error))?;
        print::note(format_args!(
            "test: {}, with {}",
            file.display(),
            data.display()
        ));
        Ok(())
    }

    fn test(&self, of: &str, data: &str, trace: &Path) -> String {
        let (window, run, policy) = (self.window.id, self.run, &self.policy.label);
        let name = of.rsplit("::").next().unwrap_or(of);
        let (outcome, assertion) = match &self.decided {
            Err(failure) => (format!("fails: {failure}"), String::new()),
            Ok(members) => {
                let ids: Vec<u64> = members.iter().map(|id| id.0).collect();
                let assertion = format!(
                    "    let expected: &[u64] = &{ids:?};\n    \
                     assert_eq!(decisions.dispatched(), expected);\n"
                );
                let outcome = format!("dispatches {} requests", ids.len());
                (outcome, assertion)
            }
        };
        // An unused binding would give a warning.
        let binding = match assertion.is_empty() {
            true => "",
            false => "let decisions = ",
        };
        format!(
            "//! Window {window} of run {run} of {}, on which {policy} {}.\n\
             //!\n\
             //! Made by `switchyard replay`.\n\
             \n\
             use {of};\n\
             use switchyard_sdk::testing::Case;\n\
             \n\
             #[test]\n\
             fn window_{window}_of_run_{run}() {{\n    \
                 let case = Case::parse(include_str!({data:?})).expect(\"the recorded window\");\n    \
                 {binding}case.decide::<{name}>().expect(\"a plan that the host applies\");\n\
             {assertion}\
             }}\n",
            trace.display(),
            outcome.replace('\n', " "),
        )
    }
}

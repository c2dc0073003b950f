//! The files next to a program: models, policies, profiles.

use std::path::Path;

use anyhow::Result;
use switchyard_kit::install;

use crate::files::{below, copy_folder, file};
use crate::workspace::Workspace;

/// Fills `share/switchyard`.
///
/// # Errors
/// Names the file that cannot be copied.
pub(crate) fn fill(workspace: &Workspace, share: &Path) -> Result<()> {
    copy_folder(&workspace.root.join("models/zoo"), &share.join("zoo"))?;
    let policies = workspace.target("policies");
    for component in below(&policies, |extension| extension == "wasm")? {
        let name = component.file_stem().unwrap_or_default().to_string_lossy();
        if component.parent() == Some(&policies) {
            install::policy(&policies, &name, &share.join("policies"))?;
        }
    }
    let profiles = workspace.root.join("profiles");
    for profile in below(&profiles, |extension| extension == "json")? {
        let name = profile.file_name().unwrap_or_default();
        // Others are of this machine.
        if name == "reference.json" || name.to_string_lossy().starts_with("schema-") {
            file(&profile, &share.join("profiles").join(name))?;
        }
    }
    Ok(())
}

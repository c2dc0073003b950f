//! Rules of the house that no compiler checks.
//!
//! - [`files`]: length, names, unfinished work, clocks in the core
//! - [`modules`]: no two modules of a crate import each other; no two public types of a name;
//!   unsafe code only in the crates that say why
//! - [`words`]: plain words in comments and pages; [`spelling`]
//! - [`source`]: the files that all of these read

mod files;
mod modules;
mod source;
mod spelling;
mod words;

use anyhow::{Result, bail};

use self::source::Sources;
use crate::pages;
use crate::workspace::Workspace;

/// Checks every tracked file of the workspace; the densities of words go to stdout.
///
/// # Errors
/// Lists every breach as `path:line: rule`, or names the file that cannot be read.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let sources = Sources::read(&workspace.root)?;
    let mut breaches = Vec::new();
    for file in sources.code() {
        breaches.extend(files::breaches(&file.path, &file.text));
    }
    breaches.extend(modules::breaches(workspace, &sources)?);
    let counted = words::count(&sources);
    println!("{counted}");
    breaches.extend(counted.breaches());
    breaches.extend(spelling::breaches(&sources));
    breaches.extend(pages::stale(workspace)?);
    if !breaches.is_empty() {
        bail!(
            "{} breaches of the house rules:\n{}",
            breaches.len(),
            breaches.join("\n")
        );
    }
    Ok(())
}

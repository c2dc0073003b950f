//! Looks at a configuration as a start would, and collects every mistake. Nothing is served, measured
//! or written: `switchyard serve --check`.
//!
//! - `findings`: the mistakes as they are found
//! - `addresses`: the ports
//! - `files`: files and folders that the configuration names
//! - `pools`: zoo, hardware, profile and policies of each pool
//! - `summary`: the server that the configuration makes

mod addresses;
mod files;
mod findings;
mod pools;
mod summary;

use self::findings::Findings;
use crate::config::Draft;

/// The findings about a configuration.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Every mistake, in one or more lines each: file, line, field, value, and the way out.
    pub mistakes: Vec<String>,
    /// The server that it makes, if there is no mistake.
    pub summary: Option<String>,
}

/// Looks for the mistakes of a configuration, those in the files that it names too.
pub fn inspect(draft: &Draft) -> Inspection {
    let mistakes = draft.mistakes();
    let mut mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    let Some(config) = draft.config() else {
        return Inspection {
            mistakes,
            summary: None,
        };
    };
    let mut findings = Findings::new(draft, config);
    let notes = addresses::inspect(&mut findings);
    files::inspect(&mut findings);
    let pools = pools::inspect(&mut findings);
    mistakes.extend(findings.mistakes);
    let summary = mistakes
        .is_empty()
        .then(|| summary::summary(config, &pools, &notes));
    Inspection { mistakes, summary }
}

//! Why a change of the configuration is not taken in.

use thiserror::Error;

use super::super::error::StartError;
use crate::assembly::AssemblyError;
use crate::backend::OutputsError;
use crate::config::{Config, ConfigError};

/// Why a change is not taken in.
#[derive(Debug, Error)]
pub(super) enum ChangeRefused {
    /// The file cannot be read or is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A section that only a start reads.
    #[error("{file}: [{section}] has changed: restart the server, or undo the change")]
    Section {
        /// The configuration.
        file: String,
        /// The section.
        section: &'static str,
    },
    /// The zoo or the profile cannot be used.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// A pool does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A card names outputs that the server does not make.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// A pool has started and cannot serve.
    #[error("{0}")]
    NotReady(String),
    /// The server stops.
    #[error("the server stops")]
    Cancelled,
}

// === impl ChangeRefused ===

impl ChangeRefused {
    /// Refuses changes that only a restart takes in.
    pub(super) fn check(now: &Config, read: &Config) -> Result<(), Self> {
        let sections = [
            ("server", now.server != read.server),
            ("policies", now.policies != read.policies),
            ("profile", now.profile != read.profile),
        ];
        match sections.iter().find(|(_, differs)| *differs) {
            Some((section, _)) => Err(Self::Section {
                file: read.source.display().to_string(),
                section,
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::path::Path;

    fn config(section: &str) -> Config {
        let text = format!(
            "[[app]]\nname = \"heart\"\n[[worker]]\nname = \"w\"\n\
             [[pool]]\nname = \"main\"\napps = [\"heart\"]\nworkers = [\"w\"]\n\
             policy = \"sneakpeek\"\n{section}"
        );
        Config::parse(&text, Path::new("here.toml"), Path::new("")).unwrap()
    }

    #[test]
    fn a_section_that_only_a_start_reads_is_refused() {
        let now = config("");
        assert!(ChangeRefused::check(&now, &config("seed = 3")).is_ok());
        let refused = ChangeRefused::check(&now, &config("[server]\nrows_max = 7")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "here.toml: [server] has changed: restart the server, or undo the change"
        );
    }
}

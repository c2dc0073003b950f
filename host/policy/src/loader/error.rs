//! Why a policy was not loaded: which file, in which phase, for which reason.

use std::fmt;
use std::path::PathBuf;

use switchyard_core::policy::PolicyFault;

use crate::contract::ContractError;
use crate::settings::SettingsError;

/// A policy that was not loaded. What served before goes on serving.
#[derive(Debug, thiserror::Error)]
#[error("policy {}: {phase}: {cause}", file.display())]
pub struct LoadError {
    /// The policy's file.
    pub file: PathBuf,
    /// How far it came.
    pub phase: Phase,
    /// What stopped it.
    #[source]
    pub cause: LoadCause,
}

/// The steps of a load, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Read the component.
    Read,
    /// Read its settings.
    Settings,
    /// Compile it.
    Compile,
    /// Match it with the contract.
    Contract,
    /// Make an instance and ask it who it is.
    Describe,
    /// Configure it with catalog and settings.
    Configure,
    /// Try it on recorded windows.
    Validate,
}

/// What stopped a load.
#[derive(Debug, thiserror::Error)]
pub enum LoadCause {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The settings cannot be read.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// Something else altogether.
    #[error("not a WebAssembly file")]
    NotWasm,
    /// A step of the build is missing.
    #[error(
        "a core module, not a component; make one of it with `wasm-tools component new` \
         or `cargo xtask plugins`"
    )]
    CoreModule,
    /// The end is missing.
    #[error("the file is cut off after {bytes} bytes")]
    Truncated {
        /// Length of what is there.
        bytes: usize,
    },
    /// WebAssembly that does not validate, or uses what the engine has switched off.
    #[error("not a valid component: {0}")]
    Invalid(String),
    /// A component, but not a policy for this host.
    #[error("{0}")]
    Contract(#[from] ContractError),
    /// It did not answer as it must.
    #[error("{0}")]
    Fault(#[from] PolicyFault),
    /// It did not answer a recorded window as it must.
    #[error("recorded window {window}: {fault}")]
    Window {
        /// Id of the window.
        window: u64,
        /// What happened.
        fault: PolicyFault,
    },
    /// Its answer to a recorded window could not be applied.
    #[error("recorded window {window}: its plan is refused: {reason}")]
    Plan {
        /// Id of the window.
        window: u64,
        /// What is wrong with the plan.
        reason: String,
    },
}

// === impl Phase ===

impl Phase {
    /// Name in logs and metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Settings => "settings",
            Self::Compile => "compile",
            Self::Contract => "contract",
            Self::Describe => "describe",
            Self::Configure => "configure",
            Self::Validate => "validate",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

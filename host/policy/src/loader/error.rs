//! Why a policy was not loaded: the file, the phase and the reason.

use std::fmt;
use std::path::PathBuf;

use switchyard_core::policy::PolicyFault;

use crate::allow::NotAllowed;
use crate::files::FileError;
use crate::registry::ContractError;
use crate::settings::SettingsError;

/// A policy that was not loaded. The version that served before continues to serve.
#[derive(Debug, thiserror::Error)]
#[error("policy {}: {phase}: {cause}", file.display())]
pub struct LoadError {
    /// The policy's file.
    pub file: PathBuf,
    /// The phase that failed.
    pub phase: LoadPhase,
    /// The reason.
    #[source]
    pub cause: LoadCause,
}

/// The phases of a load, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadPhase {
    /// Read the component.
    Read,
    /// Read its settings.
    Settings,
    /// Look its hash up in the list of allowed components.
    Allow,
    /// Compile it.
    Compile,
    /// Match it with a contract version.
    Contract,
    /// Make an instance and ask it to describe itself.
    Describe,
    /// Configure it with catalog and settings.
    Configure,
    /// Try it on recorded windows.
    Validate,
}

/// Why a load failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadCause {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// The component is not allowed.
    #[error("{0}")]
    NotAllowed(#[from] NotAllowed),
    /// The component takes too long to compile.
    #[error("{0}; raise policies.compile_timeout_s, or build a smaller component")]
    CompileTime(String),
    /// Another component has been compiled for too long.
    #[error("{0}; try again later")]
    CompilerBusy(String),
    /// The load was given up because the server stops.
    #[error("given up: the server stops")]
    Stopped,
    /// The system gives no thread to compile on.
    #[error("{0}")]
    Thread(String),
    /// The settings cannot be read.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// The file is no WebAssembly.
    #[error("not a WebAssembly file")]
    NotWasm,
    /// A core module: the last step of the build is missing.
    #[error(
        "a core module, not a component: build it with `switchyard policy build`, or convert it \
         with `wasm-tools component new`"
    )]
    CoreModule,
    /// The end of the file is missing.
    #[error("the file is cut off after {bytes} bytes; copy it again")]
    Truncated {
        /// Length of the file.
        bytes: usize,
    },
    /// The component does not validate, or uses a feature that the engine has switched off.
    #[error("not a valid component: {0}")]
    Invalid(String),
    /// The component is no policy that this host can run.
    #[error("{0}")]
    Contract(#[from] ContractError),
    /// The policy faulted while it was described or configured.
    #[error("{0}")]
    Fault(#[from] PolicyFault),
    /// The policy faulted in a recorded window.
    #[error("recorded window {window}: {fault}")]
    Window {
        /// The window's id.
        window: u64,
        /// The fault.
        fault: PolicyFault,
    },
    /// The policy's plan for a recorded window could not be applied.
    #[error("recorded window {window}: its plan is refused: {reason}")]
    Plan {
        /// The window's id.
        window: u64,
        /// Why the plan is refused.
        reason: String,
    },
}

// === impl LoadError ===

impl LoadError {
    /// Whether the same file may load later: the process was out of descriptors, or the disk failed.
    pub fn may_pass(&self) -> bool {
        match &self.cause {
            LoadCause::File(error) => error.may_pass(),
            LoadCause::Settings(error) => error.may_pass,
            LoadCause::CompilerBusy(_) | LoadCause::Thread(_) => true,
            _ => false,
        }
    }

    /// Whether the component's file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(&self.cause, LoadCause::File(error) if error.is_not_found())
    }
}

// === impl LoadPhase ===

impl LoadPhase {
    /// Name in logs and metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Settings => "settings",
            Self::Allow => "allow",
            Self::Compile => "compile",
            Self::Contract => "contract",
            Self::Describe => "describe",
            Self::Configure => "configure",
            Self::Validate => "validate",
        }
    }
}

impl fmt::Display for LoadPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

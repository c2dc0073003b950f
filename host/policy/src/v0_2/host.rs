//! The host functions of contract 0.2.

use super::bindings::switchyard::policy::host;
use crate::artifacts::ArtifactError;
use crate::host_state::{HostState, LogLevel};

impl host::Host for HostState {
    fn log(&mut self, level: host::Level, message: String) {
        let level = match level {
            host::Level::Trace => LogLevel::Trace,
            host::Level::Debug => LogLevel::Debug,
            host::Level::Info => LogLevel::Info,
            host::Level::Warn => LogLevel::Warn,
            host::Level::Error => LogLevel::Error,
        };
        Self::log(self, level, message);
    }

    fn read_artifact(&mut self, name: String) -> Result<Vec<u8>, host::ArtifactError> {
        Self::read_artifact(self, &name).map_err(Into::into)
    }

    fn random_u64(&mut self) -> u64 {
        Self::random_u64(self)
    }
}

impl From<ArtifactError> for host::ArtifactError {
    fn from(error: ArtifactError) -> Self {
        match error {
            ArtifactError::NotFound => Self::NotFound,
            ArtifactError::Forbidden => Self::Forbidden,
            ArtifactError::TooLarge(bytes) => Self::TooLarge(bytes),
            ArtifactError::Unreadable(why) => Self::Unreadable(why),
        }
    }
}

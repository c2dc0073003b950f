//! The calls that a policy may make to its host. A component that makes none imports nothing.
//!
//! In native builds a stand-in answers, one per thread: see [`native`].

#[cfg(not(target_arch = "wasm32"))]
pub mod native;

use crate::bindings::switchyard::policy::host as raw;

pub use raw::{ArtifactError, Level};

/// Writes one line to the host's log, under the policy's name.
pub fn log(level: Level, message: &str) {
    #[cfg(target_arch = "wasm32")]
    raw::log(level, message);
    #[cfg(not(target_arch = "wasm32"))]
    native::log(level, message);
}

/// Reads a table or weights from the policy's own folder, while it is being configured.
///
/// # Errors
/// Why the file could not be read.
pub fn read_artifact(name: &str) -> Result<Vec<u8>, ArtifactError> {
    #[cfg(target_arch = "wasm32")]
    return raw::read_artifact(name);
    #[cfg(not(target_arch = "wasm32"))]
    native::read_artifact(name)
}

/// The next 64 bits of the stream seeded by the host.
pub fn random_u64() -> u64 {
    #[cfg(target_arch = "wasm32")]
    return raw::random_u64();
    #[cfg(not(target_arch = "wasm32"))]
    native::random_u64()
}

/// A number in [0, 1) from the stream seeded by the host.
pub fn random_f64() -> f64 {
    // A f64 holds 53 bits exactly.
    (random_u64() >> 11) as f64 / (1u64 << 53) as f64
}

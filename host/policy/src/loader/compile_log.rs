//! Log lines around the compilation of a large component, which takes up to tens of seconds.

use std::path::Path;
use std::time::Instant;

/// Smallest component, in bytes, whose compilation is logged. Smaller ones compile within a second.
const LOGGED_BYTES_MIN: usize = 1 << 20;

/// Compiles a component of `bytes` bytes. If it is large, logs when the compilation begins and ends.
pub(super) fn with_log<T, E>(
    file: &Path,
    bytes: usize,
    compile: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    if bytes < LOGGED_BYTES_MIN {
        return compile();
    }
    let mib = bytes.div_ceil(1 << 20);
    tracing::info!("compiling policy {} ({mib} MiB)", file.display());
    let began = Instant::now();
    let compiled = compile();
    let seconds = began.elapsed().as_secs_f64();
    match &compiled {
        Ok(_) => tracing::info!("policy compiled in {seconds:.1} s"),
        // The caller reports the error.
        Err(_) => tracing::info!("policy not compiled, given up after {seconds:.1} s"),
    }
    compiled
}

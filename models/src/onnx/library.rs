//! onnxruntime, a library of the machine's own, loaded once per process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;

/// Where it is, in the place of what is configured.
const VARIABLE: &str = "ORT_DYLIB_PATH";

static PREFERRED: OnceLock<PathBuf> = OnceLock::new();
static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();

/// Has the library loaded from this file. The first to say so is heard, up to the first load.
pub(super) fn prefer(file: &Path) {
    let _ = PREFERRED.set(file.to_path_buf());
}

/// The library's environment; what a failure was is said again, without another attempt.
pub(super) fn environment() -> Result<&'static Environment, String> {
    ENVIRONMENT.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Environment, String> {
    let (file, from) = wanted();
    let failed = |reason: String| {
        format!(
            "onnxruntime cannot be loaded from {} ({from}): {reason}",
            file.display()
        )
    };
    // The system looks for a plain name among its libraries; anything else must be there.
    if file.components().count() > 1 && !file.is_file() {
        return Err(failed("no such file".to_owned()));
    }
    let builder = ort::init_from(&file).map_err(|error| failed(error.to_string()))?;
    // Sessions have threads of their own: no pool of the whole process is asked for.
    let builder = builder.with_name("switchyard").with_telemetry(false);
    let environment = builder.build().map_err(|error| failed(error.to_string()))?;
    Ok(environment)
}

/// Where to look, and who says so.
fn wanted() -> (PathBuf, &'static str) {
    if let Some(file) = PREFERRED.get() {
        return (file.clone(), "field `server.onnxruntime`");
    }
    match std::env::var_os(VARIABLE) {
        Some(file) if !file.is_empty() => (PathBuf::from(file), VARIABLE),
        _ => {
            let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
            let plain = PathBuf::from(format!("{prefix}onnxruntime{suffix}"));
            (
                plain,
                "neither `server.onnxruntime` nor ORT_DYLIB_PATH is set",
            )
        }
    }
}

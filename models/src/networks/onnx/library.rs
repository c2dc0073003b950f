//! onnxruntime, a library of the machine, loaded once per process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;

/// Path of the library, if none is configured.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// In place of the setting that names the library.
const UNSET: &str = "neither `server.onnxruntime` nor ORT_DYLIB_PATH is set";

static PREFERRED: OnceLock<PathBuf> = OnceLock::new();
static ENVIRONMENT: OnceLock<Result<Environment, String>> = OnceLock::new();

/// Sets the file that the library is loaded from. The first call counts, until the first load.
pub(super) fn prefer(file: &Path) {
    let _ = PREFERRED.set(file.to_path_buf());
}

/// Whether a setting names the library: its failure is an error then.
pub(super) fn is_chosen() -> bool {
    let (_, setting) = wanted();
    setting != UNSET
}

/// The library's environment; a failure is remembered and not tried again.
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
    // The system searches its libraries for a plain name; a path must exist.
    if file.components().count() > 1 && !file.is_file() {
        return Err(failed("no such file".to_owned()));
    }
    let builder = ort::init_from(&file).map_err(|error| failed(error.to_string()))?;
    // Sessions have their own threads: a pool of the whole process is not needed.
    let builder = builder.with_name("switchyard").with_telemetry(false);
    let environment = builder.build().map_err(|error| failed(error.to_string()))?;
    Ok(environment)
}

/// The file to load, and the setting that names it.
fn wanted() -> (PathBuf, &'static str) {
    if let Some(file) = PREFERRED.get() {
        return (file.clone(), "field `server.onnxruntime`");
    }
    match std::env::var_os(VARIABLE) {
        Some(file) if !file.is_empty() => (PathBuf::from(file), VARIABLE),
        _ => {
            let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
            let plain = PathBuf::from(format!("{prefix}onnxruntime{suffix}"));
            (plain, UNSET)
        }
    }
}

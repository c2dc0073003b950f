//! CUDA's compiler and libraries, from PyPI if the machine has none.
//!
//! The packages are NVIDIA's own. Their libraries have versioned names only, and the driver's library,
//! which comes with a GPU, is missing. So this module adds links without a version, and a stub of the
//! driver. The stub has every name that cudarc may load and answers each call with "no device": a
//! program built here also starts here, and reports that there is no GPU.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use switchyard_kit::{cargo, shell};

use crate::workspace::Workspace;

/// All of one minor version, whose code runs on drivers of the 580 series and later.
const PACKAGES: [&str; 8] = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
    "nvidia-cublas==13.*",
    "nvidia-curand==10.4.*",
    "nvidia-cuda-nvrtc==13.0.*",
];

/// Libraries that are linked.
const LIBRARIES: [&str; 5] = ["cublas", "cublasLt", "cudart", "curand", "nvrtc"];

/// The stub's own functions; 100 is "no device".
const STUB: &str = r#"/* Written by `cargo xtask cuda`: stands in for the driver where there is none. */
int cuGetErrorName(int error, const char **text) {
    *text = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN";
    return 0;
}
int cuGetErrorString(int error, const char **text) {
    *text = error == 100 ? "no CUDA-capable device is detected: the driver is a stub"
                         : "unknown error";
    return 0;
}
"#;

/// A CUDA toolkit.
pub(crate) struct Toolkit {
    /// With `bin/nvcc`.
    pub(crate) home: PathBuf,
    /// With `libcuda.so`.
    stub: PathBuf,
}

// === impl Toolkit ===

impl Toolkit {
    /// The toolkit at `CUDA_HOME`, otherwise the one in `target/cuda`, installed if it is missing.
    ///
    /// # Errors
    /// `CUDA_HOME` has no toolkit, or it cannot be installed: no Python, no network, no C compiler.
    pub(crate) fn ready(workspace: &Workspace) -> Result<Self> {
        let stub = workspace.target("cuda/stub");
        let home = match env::var_os("CUDA_HOME") {
            Some(home) => PathBuf::from(home),
            None => bring(workspace)?,
        };
        if !home.join("bin/nvcc").is_file() {
            bail!("no CUDA toolkit in {}: it has no bin/nvcc", home.display());
        }
        make_stub(workspace, &stub)?;
        Ok(Self { home, stub })
    }

    /// Lets a command build with it, for GPUs of a compute capability.
    pub(crate) fn apply(&self, command: &mut Command, compute_cap: u32) {
        for name in ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"] {
            command.env(name, &self.home);
        }
        command.env("CUDA_COMPUTE_CAP", compute_cap.to_string());
        command.env("LIBRARY_PATH", before("LIBRARY_PATH", &self.libraries()));
        command.env(
            "LD_LIBRARY_PATH",
            before("LD_LIBRARY_PATH", &self.libraries()),
        );
        let bin = self.home.join("bin");
        command.env("PATH", before("PATH", &bin.to_string_lossy()));
    }

    /// Folders of libraries, as the linker and the loader take them. The stub comes last: a
    /// machine's own driver is found before it.
    pub(crate) fn libraries(&self) -> String {
        let folders = ["lib", "lib64"].map(|name| self.home.join(name));
        let folders = folders.iter().filter(|folder| folder.is_dir());
        let mut all: Vec<_> = folders.map(|folder| folder.display().to_string()).collect();
        if !has_driver() {
            all.push(self.stub.display().to_string());
        }
        all.join(":")
    }
}

/// `first`, then the value of an environment variable.
fn before(name: &str, first: &str) -> String {
    match env::var(name) {
        Ok(rest) if !rest.is_empty() => format!("{first}:{rest}"),
        _ => first.to_owned(),
    }
}

/// Whether the loader knows the driver's library.
fn has_driver() -> bool {
    shell::answer(Command::new("ldconfig").arg("-p"))
        .is_some_and(|libraries| libraries.contains("libcuda.so.1"))
}

/// The toolkit in `target/cuda`, from PyPI if it is missing.
fn bring(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target("cuda/toolkit");
    let home = folder.join("nvidia/cu13");
    if !home.join("bin/nvcc").is_file() {
        eprintln!("no CUDA_HOME: installing CUDA's compiler from PyPI, about 1.2 GB");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
        pip.arg(&folder).args(PACKAGES);
        shell::run(&mut pip)
            .context("CUDA's compiler cannot be installed; CUDA_HOME names an existing one")?;
    }
    let lib = home.join("lib");
    let files = fs::read_dir(&lib).with_context(|| format!("cannot read {}", lib.display()))?;
    for file in files {
        let name = file?.file_name().to_string_lossy().into_owned();
        if let Some(plain) = unversioned(&name)
            && !lib.join(&plain).exists()
        {
            std::os::unix::fs::symlink(&name, lib.join(&plain))
                .with_context(|| format!("cannot link {plain} in {}", lib.display()))?;
        }
    }
    Ok(home)
}

/// `libcublas.so` for `libcublas.so.13`; none for a library that is not linked.
fn unversioned(name: &str) -> Option<String> {
    let (stem, version) = name.strip_prefix("lib")?.split_once(".so.")?;
    let is_version = version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    (is_version && LIBRARIES.contains(&stem)).then(|| format!("lib{stem}.so"))
}

/// The stub of the driver, under both its names.
fn make_stub(workspace: &Workspace, folder: &Path) -> Result<()> {
    let library = folder.join("libcuda.so.1");
    if library.is_file() && folder.join("libcuda.so").exists() {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let source = folder.join("stub.c");
    fs::write(&source, stub(&driver_calls(workspace)?))
        .with_context(|| source.display().to_string())?;
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"]);
    shell::run(compile.arg(&library).arg(&source))?;
    let plain = folder.join("libcuda.so");
    if !plain.exists() {
        std::os::unix::fs::symlink("libcuda.so.1", &plain)?;
    }
    Ok(())
}

fn stub(calls: &BTreeSet<String>) -> String {
    let mut text = STUB.to_owned();
    for call in calls {
        // These two are in the fixed part.
        if !["cuGetErrorName", "cuGetErrorString"].contains(&call.as_str()) {
            let _ = writeln!(text, "int {call}(void) {{ return 100; }}");
        }
    }
    text
}

/// Every call of the driver that cudarc declares.
fn driver_calls(workspace: &Workspace) -> Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        manifest_path: PathBuf,
    }
    let mut metadata = cargo::host(&workspace.root);
    metadata.args([
        "metadata",
        "--format-version",
        "1",
        "--features",
        "switchyard/cuda",
    ]);
    let said = shell::answer(&mut metadata).context("`cargo metadata` with the feature fails")?;
    let Metadata { packages } = serde_json::from_str(&said)?;
    let cudarc = packages.iter().find(|package| package.name == "cudarc");
    let cudarc = cudarc.context("the feature `cuda` brings no cudarc")?;
    let sys = cudarc.manifest_path.with_file_name("src/driver/sys/mod.rs");
    let text = fs::read_to_string(&sys).with_context(|| sys.display().to_string())?;
    let calls = calls_in(&text);
    if calls.is_empty() {
        bail!("{} declares no calls of the driver", sys.display());
    }
    Ok(calls)
}

/// The driver's functions that bindings declare: `fn cuInit(` and the like.
fn calls_in(bindings: &str) -> BTreeSet<String> {
    let after = bindings.split("fn ").skip(1);
    let names = after.filter_map(|rest| rest.split_once('(').map(|(name, _)| name));
    let is_call = |name: &&str| {
        name.strip_prefix("cu").is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_uppercase())
                && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    names.filter(is_call).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_linked_libraries_get_a_name_without_a_version() {
        assert_eq!(
            unversioned("libcublas.so.13").as_deref(),
            Some("libcublas.so")
        );
        assert_eq!(
            unversioned("libcurand.so.10").as_deref(),
            Some("libcurand.so")
        );
        for other in [
            "libnvrtc-builtins.so.13.0",
            "libcublas.so",
            "libcudart_static.a",
            "cmake",
        ] {
            assert_eq!(unversioned(other), None, "{other}");
        }
    }

    #[test]
    fn the_stub_answers_every_call_once() {
        let bindings = "pub unsafe fn cuInit(Flags: c_uint) -> CUresult { extern \"C\" {\n\
                        fn cuInit(Flags: c_uint) -> CUresult; } }\n\
                        pub unsafe fn cuMemAllocAsync(a: u8) -> CUresult {}\n\
                        pub type CUhostFn = Option<unsafe extern \"C\" fn(data: *mut c_void)>;\n\
                        pub fn culib() {} pub fn cuGetErrorName(e: u8) {}";
        let calls = calls_in(bindings);
        let names: Vec<&str> = calls.iter().map(String::as_str).collect();
        assert_eq!(names, ["cuGetErrorName", "cuInit", "cuMemAllocAsync"]);
        let text = stub(&calls);
        assert_eq!(text.matches("cuInit(").count(), 1);
        assert_eq!(text.matches("cuGetErrorName(").count(), 1, "its own words");
        assert!(text.contains("int cuMemAllocAsync(void) { return 100; }"));
    }
}

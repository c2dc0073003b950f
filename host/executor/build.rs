//! Gives the crate the versions of candle and of the compiler that it is built with: latencies
//! depend on both, so profiles name them.

use std::path::Path;
use std::process::Command;

fn main() {
    let lock = Path::new("../../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    println!("cargo:rerun-if-changed=build.rs");
    let text = std::fs::read_to_string(lock).unwrap_or_default();
    let candle = version_of(&text, "candle-core").unwrap_or("unknown");
    println!("cargo:rustc-env=SWITCHYARD_CANDLE={candle}");
    println!("cargo:rustc-env=SWITCHYARD_RUSTC={}", rustc());
}

/// The version that a lock file names for a package.
fn version_of<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{package}\"\n"))?;
    let line = after.lines().next()?;
    line.strip_prefix("version = \"")?.strip_suffix('"')
}

fn rustc() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let printed = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match printed.unwrap_or_default().split_whitespace().nth(1) {
        Some(version) => version.to_owned(),
        None => "unknown".to_owned(),
    }
}

//! The Rust types of the proto files in `host/protocol/proto`.
//!
//! The program that makes them is outside of the workspace: its compiler of proto files is of no use to
//! any other part, and no build needs it. A test of `host/protocol` fails while a proto file and its types
//! differ.

use std::process::Command;

use anyhow::Result;
use switchyard_kit::{cargo, shell};

use crate::workspace::Workspace;

/// Makes the types anew.
///
/// # Errors
/// The program cannot be built, or a proto file is wrong.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let folder = workspace.root.join("host/protocol");
    let types = folder.join("src/grpc/messages");
    let mut generate = cargo::host(&workspace.root);
    generate.args(["run", "--quiet", "--manifest-path"]);
    generate.arg(folder.join("proto/generate/Cargo.toml"));
    generate
        .arg("--target-dir")
        .arg(workspace.target("protobuf"));
    shell::run(generate.arg("--").arg(&types))?;
    let mut format = Command::new("rustfmt");
    format.args(["--edition", "2024"]);
    for name in ["inference.rs", "health.rs", "etcd.rs"] {
        format.arg(types.join(name));
    }
    shell::run(&mut format)
}

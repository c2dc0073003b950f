//! Packages for machines without Rust, from the sources in `packaging/`.
//!
//! - `tree`: the files of an installation; `share`: those next to a program; `tarball`, `deb`: packed
//! - `bare`: the Debian package installed into a bare Debian, up to the first answer
//! - `booted`: the same on a Debian that systemd boots
//! - `image`: an image from scratch, built by buildah, up to the first answer
//! - `glibc`: the version that a program needs; `release`: version and machine; `answer`: the first answer of a server; `chroot`: its root

pub(crate) mod answer;
mod bare;
mod booted;
mod chroot;
mod deb;
pub(crate) mod glibc;
mod image;
mod release;
pub(crate) mod share;
mod tarball;
mod tree;

use anyhow::Result;
use clap::Args;
use switchyard_kit::cargo;

use self::release::Release;
use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// Options of `package`.
#[derive(Args)]
pub(crate) struct PackageArgs {
    /// Cargo profile of the program; `dev` compiles sooner and serves slower
    #[arg(long, default_value = "release")]
    profile: String,
    /// Install the Debian package into a bare Debian (mmdebstrap, root) and measure the time to the
    /// first answer
    #[arg(long)]
    check: bool,
    /// Boot a Debian with the package in a container (systemd-nspawn, root); start, reload, restart, purge
    #[arg(long)]
    systemd: bool,
    /// Build an image from scratch (buildah, root) and measure the time to its first answer
    #[arg(long)]
    image: bool,
}

/// Builds policies and program, and packs them.
///
/// # Errors
/// A build or a tool fails; with `--check`, `--systemd` or `--image`, the server does not answer in time.
pub(crate) fn run(workspace: &Workspace, args: &PackageArgs) -> Result<()> {
    plugins::build(workspace, Guests::Leave)?;
    let mut build = cargo::host(&workspace.root);
    build.args(["build", "--workspace", "--bin", "switchyard", "--profile"]);
    let artifacts = cargo::build(build.arg(&args.profile))?;
    let program = cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")?;
    let release = Release::of(workspace);
    let tree = tree::make(workspace, &release, program.as_ref())?;
    let tarball = tarball::pack(workspace, &release, &tree)?;
    println!("{}", workspace.relative(&tarball));
    let deb = deb::pack(workspace, &release, &tree)?;
    println!("{}", workspace.relative(&deb));
    if args.check {
        println!("{}", bare::check(&release, &deb)?);
    }
    if args.systemd {
        println!("{}", booted::check(&release, &deb)?);
    }
    if args.image {
        println!("{}", image::check(workspace, &release, &tree)?);
    }
    Ok(())
}

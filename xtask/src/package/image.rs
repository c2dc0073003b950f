//! An image from scratch, as packaging/Dockerfile makes it, by buildah: nothing is pulled.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use switchyard_kit::shell;

use super::answer;
use super::chroot::inside;
use super::release::Release;
use crate::files::{anew, copy_folder, file};
use crate::workspace::Workspace;

/// User and group of the server.
const USER: u32 = 999;

/// Builds the image, serves from it, and writes it as an OCI archive; a line with the time.
pub(super) fn check(workspace: &Workspace, release: &Release, tree: &Path) -> Result<String> {
    let root = root(release, tree)?;
    let container = shell::answer(buildah().args(["from", "scratch"])).context(
        "buildah makes no container: `apt-get install buildah` brings it; it takes root",
    )?;
    let result = serve_and_write(release, &container, &root);
    shell::run(buildah().args(["rm", &container]))?;
    fs::remove_dir_all(&root)?;
    let (archive, took_s) = result?;
    Ok(format!(
        "{}: first answer after {took_s:.1} s",
        workspace.relative(&archive)
    ))
}

fn serve_and_write(release: &Release, container: &str, root: &Path) -> Result<(PathBuf, f64)> {
    let mounted = shell::answer(buildah().args(["mount", container])).context("buildah mount")?;
    // `buildah copy` makes root the owner of every folder.
    let mut copy = Command::new("cp");
    shell::run(copy.arg("--archive").arg(root.join(".")).arg(&mounted))?;
    let user = format!("{USER}:{USER}");
    let entry = r#"["/usr/bin/switchyard", "--log", "json"]"#;
    shell::run(buildah().args([
        "config",
        "--user",
        &user,
        "--workingdir",
        "/var/lib/switchyard",
        "--env",
        "SWITCHYARD_SERVER__HTTP=0.0.0.0:8000",
        "--port",
        "8000",
        "--volume",
        "/var/lib/switchyard",
        "--entrypoint",
        entry,
        "--cmd",
        "serve --config /etc/switchyard/switchyard.toml",
        container,
    ]))?;
    let archive = release
        .folder
        .join(format!("switchyard-{}.oci.tar", release.version));
    if archive.exists() {
        fs::remove_file(&archive)?;
    }
    let target = format!(
        "oci-archive:{}:switchyard:{}",
        archive.display(),
        release.version
    );
    shell::run(buildah().args(["commit", "--quiet", container, &target]))?;
    let [http, admin] = answer::free_addresses()?;
    // Not by `buildah run`, which hands no signal on.
    let mut server = inside(Path::new(&mounted), Some(&USER.to_string()));
    server.env("SWITCHYARD_SERVER__HTTP", http.to_string());
    server.env("SWITCHYARD_SERVER__ADMIN", admin.to_string());
    server.args(["/usr/bin/switchyard", "serve"]);
    server.args(["--config", "/etc/switchyard/switchyard.toml"]);
    let took = answer::first(&mut server, http, Instant::now())?;
    Ok((archive, took.as_secs_f64()))
}

/// Images are kept in plain folders: overlays need a kernel that allows them.
fn buildah() -> Command {
    let mut command = Command::new("buildah");
    command.args(["--storage-driver", "vfs"]);
    command
}

/// The files of the image.
fn root(release: &Release, tree: &Path) -> Result<PathBuf> {
    let root = release.folder.join("image");
    anew(&root)?;
    for part in ["usr/bin", "usr/share/switchyard", "etc"] {
        copy_folder(&tree.join(part), &root.join(part))?;
    }
    let program = tree.join("usr/bin/switchyard");
    let libraries = shell::answer(Command::new("ldd").arg(&program)).context("ldd")?;
    let paths = libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    for library in paths {
        file(
            Path::new(library),
            &root.join(library.trim_start_matches('/')),
        )?;
    }
    let user = format!("switchyard:x:{USER}:{USER}::/var/lib/switchyard:/sbin/nologin\n");
    fs::write(root.join("etc/passwd"), user)?;
    fs::write(root.join("etc/group"), format!("switchyard:x:{USER}:\n"))?;
    for (folder, mode, is_own) in [
        ("var/lib/switchyard", 0o755, true),
        ("var/cache/switchyard", 0o700, true),
        ("tmp", 0o1777, false),
        ("proc", 0o555, false),
    ] {
        let folder = root.join(folder);
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode))?;
        if is_own {
            chown(&folder, Some(USER), Some(USER)).context("chown takes root")?;
        }
    }
    Ok(root)
}

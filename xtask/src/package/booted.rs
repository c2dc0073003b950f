//! The Debian package on a Debian that systemd boots in a container: started, reloaded, restarted, purged.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use switchyard_kit::shell;

use super::answer;
use super::bare::{PACKAGE, unpack};
use super::chroot::inside;
use super::release::Release;

/// Longest time from the first answer to the end of the container.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs in the container once a client had its answer. It leaves its output and `passed` behind.
const SCRIPT: &str = r#"#!/bin/sh
exec > /root/output 2>&1
trap 'systemctl poweroff --no-block' EXIT
set -ex
while [ ! -e /root/answered ]; do sleep 0.1; done
systemctl is-active switchyard
systemctl reload switchyard
systemctl restart switchyard
switchyard ctl --admin "$(cat /root/admin)" status
test -z "$(systemctl --failed --no-legend)"
dpkg --purge switchyard
test ! -e /var/lib/switchyard
test -z "$(systemctl list-unit-files --no-legend switchyard.service)"
touch /root/passed
"#;

const UNIT: &str = "[Unit]
After=switchyard.service
[Service]
Type=simple
ExecStart=/bin/sh /root/script
[Install]
WantedBy=multi-user.target
";

/// Boots, serves, and carries the script out; a line with the times.
pub(super) fn check(release: &Release, deb: &Path) -> Result<String> {
    let has_it = shell::answer(Command::new("systemd-nspawn").arg("--version")).is_some();
    ensure!(
        has_it,
        "`apt-get install systemd-container` brings the tool"
    );
    let root = release.folder.join("booted");
    unpack(release, &root)?;
    let [http, admin] = answer::free_addresses()?;
    for (name, text) in [
        ("root/script", SCRIPT.to_owned()),
        ("root/admin", admin.to_string()),
        ("etc/systemd/system/script.service", UNIT.to_owned()),
        (
            "etc/default/switchyard",
            format!("SWITCHYARD_SERVER__HTTP={http}\nSWITCHYARD_SERVER__ADMIN={admin}\n"),
        ),
    ] {
        let file = root.join(name);
        fs::create_dir_all(file.parent().context("a file in the root")?)?;
        fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    fs::copy(deb, root.join(PACKAGE.trim_start_matches('/')))?;
    let mut apt = inside(&root, None);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    let packages =
        "apt-get update && apt-get install --yes --no-install-recommends systemd-sysv dbus";
    let install = format!("{packages} && apt-get install --yes {PACKAGE}");
    shell::run(apt.args(["sh", "-c", &install]))?;
    shell::run(inside(&root, None).args(["systemctl", "enable", "script.service"]))?;

    let began = Instant::now();
    let mut boot = Command::new("systemd-nspawn");
    boot.args(["--quiet", "--register=no", "--keep-unit", "--boot"]);
    boot.arg("--directory").arg(&root);
    boot.stdin(Stdio::null()).stdout(Stdio::null());
    let mut container = boot.spawn().context("systemd-nspawn")?;
    let answered = answer::until(&mut container, http, began)?;
    fs::write(root.join("root/answered"), "")?;
    until_ended(&mut container)?;
    let passed = root.join("root/passed").exists();
    let output = fs::read_to_string(root.join("root/output")).unwrap_or_default();
    ensure!(passed, "a step in the container failed:\n{output}");
    fs::remove_dir_all(&root)?;
    Ok(format!(
        "Debian booted by systemd: first answer {:.1} s after the boot began; reloaded, restarted, purged",
        answered.as_secs_f64()
    ))
}

fn until_ended(container: &mut Child) -> Result<()> {
    let began = Instant::now();
    while container.try_wait()?.is_none() {
        if began.elapsed() > LIMIT {
            container.kill()?;
            bail!("the container did not end within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

//! Commands in another root.

use std::path::Path;
use std::process::Command;

/// A command in the root, with a /proc that goes with it. With a user it is not root's.
pub(super) fn inside(root: &Path, user: Option<&str>) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    let chroot = match user {
        Some(user) => format!("chroot --userspec={user}:{user} --groups="),
        None => "chroot".to_owned(),
    };
    command.arg(format!(
        "mount -t proc proc \"$0/proc\" && exec {chroot} \"$0\" \"$@\""
    ));
    command.arg(root);
    command.env_clear();
    command.env(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    );
    command
}

//! Tells systemd that the server is ready or stops (`Type=notify`): a datagram to `$NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::io;

/// The variable that names systemd's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Sends a state such as `READY=1`. Without systemd nothing is sent.
pub(super) fn notify(state: &str) {
    let Some(socket) = std::env::var_os(SOCKET).filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, state, "systemd is not told");
    }
}

#[cfg(target_os = "linux")]
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    // A name that begins with @ is in the abstract namespace.
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    sender.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn send(_: &OsStr, _: &str) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::*;

    #[test]
    fn both_kinds_of_sockets_get_the_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("switchyard-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let sockets = [
            (
                path.clone().into_os_string(),
                UnixDatagram::bind(&path).unwrap(),
            ),
            (
                format!("@{name}").into(),
                UnixDatagram::bind_addr(&address).unwrap(),
            ),
        ];
        for (socket, receiver) in sockets {
            send(&socket, "READY=1").unwrap();
            let mut received = [0; 32];
            let length = receiver.recv(&mut received).unwrap();
            assert_eq!(&received[..length], b"READY=1");
        }
        assert!(send(OsStr::new("/nowhere/notify"), "READY=1").is_err());
    }
}

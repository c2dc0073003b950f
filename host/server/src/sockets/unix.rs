//! The file of a Unix socket: taken over from a server that has ended, and removed at the end.
//!
//! The socket is made at `PATH.new` and renamed to `PATH`. Of two servers that start at a time one makes
//! `PATH.new`, and clients never find a path without a listener. A path on which a server answers, and a
//! file of another kind, are kept.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};
use socket2::{Domain, SockAddr, Socket, Type};

use super::error::BindError;
use super::mode::SocketMode;

/// Ending of the path at which the socket is made.
const NEW: &str = ".new";

/// Bytes of a path that the system takes, without the ending: Linux has 108 with the zero at the end,
/// macOS 104.
const PATH_BYTES_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 } - NEW.len();

/// Time between the making of `PATH.new` and its listening, in a server that starts at the same moment.
const START_PAUSE: Duration = Duration::from_millis(100);

/// The file of a listening socket. Removed on drop, unless it is another one by then.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Listens at a path.
pub(super) fn bind(
    path: &Path,
    mode: SocketMode,
    backlog: i32,
) -> Result<(SocketFile, UnixListener), BindError> {
    check(path)?;
    let mut new = path.as_os_str().to_owned();
    new.push(NEW);
    let (mut file, socket) = made(Path::new(&new))?;
    // Before it listens, so that no other user connects in between.
    fs::set_permissions(&file.path, Permissions::from_mode(mode.bits()))?;
    socket.listen(backlog)?;
    // Another server may have renamed its socket since the first look.
    check_free(path)?;
    fs::rename(&file.path, path)?;
    path.clone_into(&mut file.path);
    Ok((file, socket.into()))
}

/// Whether a server could listen at this path.
pub(super) fn check(path: &Path) -> Result<(), BindError> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        return Err(BindError::TooLong {
            bytes,
            max: PATH_BYTES_MAX,
        });
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(BindError::NoFolder);
    }
    check_free(path)?;
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|_| BindError::NotWritable)
}

/// Makes the socket at its first path, which a start that was killed may have left.
fn made(new: &Path) -> Result<(SocketFile, Socket), BindError> {
    let make = || -> io::Result<(SocketFile, Socket)> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(new)?)?;
        Ok((SocketFile::of(new)?, socket))
    };
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            std::thread::sleep(START_PAUSE);
            check_free(new)?;
            // An error: the other start has renamed or removed it.
            let _ = fs::remove_file(new);
            Ok(make()?)
        }
        made => Ok(made?),
    }
}

/// Refuses a path on which a server answers, or that is no socket.
fn check_free(path: &Path) -> Result<(), BindError> {
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !kind.is_socket() {
        return Err(BindError::NotASocket);
    }
    let client = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A server whose queue is full answers no sooner.
    client.set_nonblocking(true)?;
    match client.connect(&SockAddr::unix(path)?) {
        Ok(()) => Err(BindError::Answered),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(()),
            io::ErrorKind::WouldBlock => Err(BindError::Answered),
            _ => Err(error.into()),
        },
    }
}

// === impl SocketFile ===

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path)
            .is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.inode));
        if is_own && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the socket is left");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::net::UnixStream;

    use super::*;

    fn bind(path: &Path, backlog: i32) -> Result<(SocketFile, UnixListener), BindError> {
        super::bind(path, SocketMode::default(), backlog)
    }

    #[test]
    fn a_socket_has_its_mode_and_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        for mode in ["0660", "0600", "0777"] {
            let bound = super::bind(&path, mode.parse().unwrap(), 1).unwrap();
            let bits = fs::metadata(&path).unwrap().mode() & 0o777;
            assert_eq!(format!("{bits:04o}"), mode);
            UnixStream::connect(&path).unwrap();
            assert!(matches!(bind(&path, 1), Err(BindError::Answered)));
            drop(bound);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn sockets_of_servers_that_were_killed_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        for left in ["a.sock", "a.sock.new"] {
            drop(UnixListener::bind(folder.path().join(left)).unwrap());
        }
        let _bound = bind(&path, 1).unwrap();
        UnixStream::connect(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_of_others_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        fs::write(&path, "notes").unwrap();
        assert!(matches!(bind(&path, 1), Err(BindError::NotASocket)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "notes");
        fs::remove_file(&path).unwrap();

        let bound = bind(&path, 1).unwrap();
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(bound);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn paths_that_no_socket_can_have_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing/a.sock");
        assert!(matches!(bind(&missing, 1), Err(BindError::NoFolder)));
        // Root may write in every folder.
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o555)).unwrap();
        let refused = matches!(bind(&closed.join("a.sock"), 1), Err(BindError::NotWritable));
        assert_eq!(refused, !rustix::process::geteuid().is_root());
        let long = folder.path().join("x".repeat(PATH_BYTES_MAX));
        assert!(matches!(bind(&long, 1), Err(BindError::TooLong { .. })));
        let rest = PATH_BYTES_MAX - folder.path().as_os_str().len() - 1;
        bind(&folder.path().join("x".repeat(rest)), 1).unwrap();
    }
}

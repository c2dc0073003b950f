//! Reads files that another program may replace at any moment. A FIFO, a device or a socket under
//! the name of a file is refused: reading it would wait for its other end.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system's reason.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The name is that of something other than a file.
    #[error("it is a {kind}, must be a regular file")]
    NotRegular {
        /// The kind of the entry.
        kind: &'static str,
    },
    /// The file is longer than allowed.
    #[error("the file has {bytes} bytes, must be at most {bytes_max}")]
    TooLarge {
        /// Length of the file.
        bytes: u64,
        /// The largest length.
        bytes_max: u64,
    },
    /// A file of text is none.
    #[error("not UTF-8 text")]
    NotText,
}

// === impl FileError ===

impl FileError {
    /// Whether the file may be readable later without a change of it: the process was out of
    /// descriptors, or the disk failed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Io(error) => !is_gone(error),
            _ => false,
        }
    }

    /// Whether there is no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if is_gone(error))
    }
}

/// Whether the error says that a path leads to no file. Other errors say nothing about the file.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Opens a regular file, following links. Never waits.
///
/// # Errors
/// There is no such file, it cannot be opened, or it is no regular file.
pub fn open_regular(path: &Path) -> Result<(File, Metadata), FileError> {
    // Before it is opened, because opening a device can have effects; and after, because it may
    // have been replaced in between.
    check_regular(&path.metadata()?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    Ok((file, metadata))
}

/// Reads a regular file of at most `bytes_max` bytes. A longer one is not read.
///
/// # Errors
/// As [`open_regular`], or the file is longer.
pub fn read_regular(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let (file, metadata) = open_regular(path)?;
    read_at_most(file, metadata.len(), bytes_max)
}

/// As [`read_regular`], for text.
///
/// # Errors
/// Also when the file is not UTF-8.
pub fn read_regular_text(path: &Path, bytes_max: u64) -> Result<String, FileError> {
    let bytes = read_regular(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| FileError::NotText)
}

/// Reads an open file of this length, unless it is longer than `bytes_max`.
pub(crate) fn read_at_most(file: File, bytes: u64, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let too_large = |bytes| FileError::TooLarge { bytes, bytes_max };
    if bytes > bytes_max {
        return Err(too_large(bytes));
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    // One byte more than allowed: the file may have grown since.
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        return Err(too_large(content.len() as u64));
    }
    Ok(content)
}

fn check_regular(metadata: &Metadata) -> Result<(), FileError> {
    match kind_of(metadata.file_type()) {
        None => Ok(()),
        Some(kind) => Err(FileError::NotRegular { kind }),
    }
}

/// The kind of an entry that is no regular file.
fn kind_of(file_type: FileType) -> Option<&'static str> {
    if file_type.is_file() {
        return None;
    }
    if file_type.is_dir() {
        return Some("folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if file_type.is_fifo() {
            return Some("FIFO");
        }
        if file_type.is_socket() {
            return Some("socket");
        }
        if file_type.is_char_device() || file_type.is_block_device() {
            return Some("device");
        }
    }
    Some("special file")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_up_to_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_regular_text(&file, 4).unwrap(), "four");
        let error = read_regular(&file, 3).unwrap_err();
        assert!(matches!(error, FileError::TooLarge { bytes: 4, .. }));
        std::fs::write(&file, [0xff]).unwrap();
        assert!(matches!(
            read_regular_text(&file, 4),
            Err(FileError::NotText)
        ));
    }

    #[test]
    fn a_sparse_file_past_the_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sparse");
        File::create(&file).unwrap().set_len(2 << 40).unwrap();
        let error = read_regular(&file, 64 << 20).unwrap_err().to_string();
        assert_eq!(
            error,
            "the file has 2199023255552 bytes, must be at most 67108864"
        );
    }

    #[cfg(unix)]
    #[test]
    fn special_files_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, kind) in [
            (fifo.as_path(), "FIFO"),
            (&socket, "socket"),
            (Path::new("/dev/zero"), "device"),
            (dir.path(), "folder"),
        ] {
            let error = read_regular(path, 10).unwrap_err().to_string();
            assert_eq!(error, format!("it is a {kind}, must be a regular file"));
        }
    }
}

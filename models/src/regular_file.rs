//! Opens files that another program may replace while a server reads them. A FIFO, a device or a
//! folder under the name of a file is refused: opening or reading it could wait for ever.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file, following links. Never waits.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Before it is opened, because opening a device can have effects; and after, because it may
    // have been replaced in between.
    check(&path.metadata()?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// The bytes of a regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = match metadata.is_dir() {
        true => "it is a folder, must be a regular file",
        false => "it is a FIFO, a socket or a device, must be a regular file",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, kind))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn regular_files_are_read_also_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("card.toml");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read(&file).unwrap(), b"text");
        #[cfg(unix)]
        {
            let link = dir.path().join("link");
            std::os::unix::fs::symlink(&file, &link).unwrap();
            assert_eq!(read_to_string(&link).unwrap(), "text");
        }
        let error = read(dir.path()).unwrap_err().to_string();
        assert_eq!(error, "it is a folder, must be a regular file");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_fifo_under_the_name_of_weights_is_refused_without_waiting() {
        use crate::weights::mapped_file::FileBytes;
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("weights.safetensors");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let Err(error) = FileBytes::open(&fifo) else {
            panic!("it was opened");
        };
        assert!(error.to_string().contains("it is a FIFO"), "{error}");
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}

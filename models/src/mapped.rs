//! The bytes of a weights file, without a second copy of a large one in memory.
//!
//! A small file is read. A large one is mapped: pages come in as they are looked at and need not
//! be swapped out. A mapping has one danger: when somebody cuts the file off, the next look at
//! what is gone is a `SIGBUS`, which ends the process. So a file is mapped only under a lease
//! (`fcntl(2)`, `F_SETLEASE`): as long as it is held, the kernel makes whoever opens the file for
//! writing, or truncates it, wait until the mapping is gone (at most for
//! `/proc/sys/fs/lease-break-time`, 45 s as a rule, far beyond a load). Where there is no lease to
//! be had (another owner, a network file system, a file that is open for writing, another system
//! than Linux), the file is read instead. A file that is replaced by renaming, as it should be,
//! stays whole under its mapping in any case.
//!
//! What is written in place while it is *read* cannot be told from a whole file by reading alone;
//! length and time of change, before and after, can tell.

use std::fs::{File, Metadata};
use std::io::Read;
use std::ops::Deref;
use std::path::Path;

use crate::error::ModelError;

/// Files up to here are read: below it a mapping saves nothing worth a lease.
const READ_MAX: u64 = 4 << 20;

/// A file's bytes.
pub(crate) enum FileBytes {
    Read(Vec<u8>),
    #[cfg(target_os = "linux")]
    Mapped(lease::Mapped),
}

// === impl FileBytes ===

impl FileBytes {
    /// The bytes of a file. Call [`unchanged`](Before::unchanged) once done with them.
    pub(crate) fn open(file: &Path) -> Result<(Self, Before), ModelError> {
        Self::open_above(file, READ_MAX)
    }

    fn open_above(path: &Path, read_max: u64) -> Result<(Self, Before), ModelError> {
        let failed = |source| ModelError::io(path, source);
        let mut file = File::open(path).map_err(failed)?;
        let before = Before(file.metadata().map_err(failed)?);
        #[cfg(target_os = "linux")]
        if before.0.len() > read_max {
            match lease::Mapped::new(file) {
                Ok(mapped) => return Ok((Self::Mapped(mapped), before)),
                Err(back) => file = back,
            }
        }
        let _ = read_max;
        let mut bytes = Vec::with_capacity(usize::try_from(before.0.len()).unwrap_or(0));
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok((Self::Read(bytes), before))
    }
}

impl Deref for FileBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Self::Mapped(mapped) => mapped,
        }
    }
}

/// How a file looked before it was read.
pub(crate) struct Before(Metadata);

// === impl Before ===

impl Before {
    /// Refuses a file that was written in place meanwhile. One that was replaced by another is
    /// fine: what was read is the whole old one.
    pub(crate) fn unchanged(&self, file: &Path) -> Result<(), ModelError> {
        let after = std::fs::metadata(file);
        let after = after.map_err(|source| ModelError::io(file, source))?;
        let same_file = same_file(&self.0, &after);
        let looks = |found: &Metadata| (found.len(), found.modified().ok());
        if same_file && looks(&self.0) != looks(&after) {
            return Err(ModelError::weights(file, "changed while it was read"));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// The one place of this crate with `unsafe` in it.
#[cfg(target_os = "linux")]
mod lease {
    use std::fs::File;
    use std::ops::Deref;
    use std::os::fd::AsRawFd;

    use memmap2::Mmap;

    /// Which signal tells of a broken lease; `linux/fcntl.h` has it, the libc crate does not.
    const F_SETSIG: libc::c_int = 10;

    /// A mapped file under a lease.
    pub(crate) struct Mapped {
        // Dropped first: the lease ends with the file.
        map: Mmap,
        _file: File,
    }

    // === impl Mapped ===

    impl Mapped {
        /// Gives the file back where it cannot be leased or mapped.
        pub(super) fn new(file: File) -> Result<Self, File> {
            if !take_lease(&file) {
                return Err(file);
            }
            // SAFETY: nobody writes to the file or cuts it off as long as the lease is held, and
            // it is held as long as `file` is open, which the mapping does not outlive.
            match unsafe { Mmap::map(&file) } {
                Ok(map) => Ok(Self { map, _file: file }),
                Err(_) => Err(file),
            }
        }
    }

    impl Deref for Mapped {
        type Target = [u8];
        fn deref(&self) -> &[u8] {
            &self.map
        }
    }

    /// A read lease. When somebody wants to write, the kernel tells with a signal, `SIGIO`
    /// unless told otherwise, whose default is to end the process; `SIGURG` is ignored.
    fn take_lease(file: &File) -> bool {
        let fd = file.as_raw_fd();
        // SAFETY: both calls take integers only, about a file that is open.
        unsafe {
            libc::fcntl(fd, F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) == 0
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_that_is_written_in_place_is_refused_and_one_that_is_replaced_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("weights");
        std::fs::write(&file, "old").unwrap();
        let (bytes, before) = FileBytes::open(&file).unwrap();
        assert_eq!(&*bytes, b"old");
        before.unchanged(&file).unwrap();
        let beside = dir.path().join("beside");
        std::fs::write(&beside, "newer").unwrap();
        std::fs::rename(&beside, &file).unwrap();
        before.unchanged(&file).unwrap();
        let (_, before) = FileBytes::open(&file).unwrap();
        std::fs::write(&file, "cut").unwrap();
        let error = before.unchanged(&file).unwrap_err().to_string();
        assert!(
            error.ends_with("weights: changed while it was read"),
            "{error}"
        );
    }

    /// Where leases cannot be had, as on some file systems, files are read: nothing to show.
    #[cfg(target_os = "linux")]
    #[test]
    fn whoever_would_cut_off_a_mapped_file_waits() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("weights");
        std::fs::write(&file, vec![7; 100_000]).unwrap();
        let (bytes, _) = FileBytes::open_above(&file, 1_000).unwrap();
        let FileBytes::Mapped(mapped) = bytes else {
            eprintln!("skipped: no lease on {}", file.display());
            return;
        };
        let (cut, is_cut) = channel();
        let cutting = std::thread::spawn(move || {
            std::fs::write(&file, "cut").unwrap();
            cut.send(()).unwrap();
        });
        // The signal of the kernel has not ended the process, and every page is still there.
        assert!(is_cut.recv_timeout(Duration::from_millis(200)).is_err());
        assert!(mapped.iter().all(|byte| *byte == 7));
        drop(mapped);
        is_cut.recv_timeout(Duration::from_secs(20)).unwrap();
        cutting.join().unwrap();
    }
}

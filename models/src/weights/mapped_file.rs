//! The bytes of a weights file, without a second copy of a large one in memory.
//!
//! A small file is read. A large one is mapped: its pages are loaded when they are accessed and
//! need not be swapped out. If another process truncates a mapped file, the next access to a lost
//! page raises `SIGBUS`, which ends this process. So a file is mapped only under a read lease
//! (`fcntl(2)`, `F_SETLEASE`).
//!
//! A lease delays a writer; it does not exclude it. When another process opens the file for writing
//! or truncates it, the kernel blocks that process until this one gives the lease up, which happens
//! when the mapping is dropped, or until `/proc/sys/fs/lease-break-time` seconds have passed (45 by
//! default). Then the kernel removes the lease and the writer continues: from then on the mapping
//! has no protection. A process that opens the file with `O_NONBLOCK` gets an error instead of
//! waiting. A mapping lives only while its tensors are copied out, which takes far less than that
//! time; a load that took longer would not be safe.
//!
//! The kernel refuses a lease on another user's file (without `CAP_LEASE`), on a file that is open
//! for writing, and on some file systems such as network ones; other systems than Linux have no
//! leases. Then the file is read. A file that is replaced by renaming, the recommended way, stays
//! whole under its mapping.
//!
//! A file that is written in place while it is *read* may be a mix of two versions. Length and time
//! of change, before and after, reveal it.

#[cfg(target_os = "linux")]
mod lease;

use std::fs::Metadata;
use std::io::Read;
use std::ops::Deref;
use std::path::Path;

use crate::error::ModelError;
use crate::regular_file;

/// Files up to here are read: mapping them would save too little.
const READ_MAX: u64 = 4 << 20;

/// A file's bytes.
pub(crate) enum FileBytes {
    Read(Vec<u8>),
    #[cfg(target_os = "linux")]
    Mapped(lease::LeasedMapping),
}

/// Metadata of a file before it was read.
pub(crate) struct FileBefore(Metadata);

// === impl FileBytes ===

impl FileBytes {
    /// The bytes of a file. Call [`unchanged`](FileBefore::unchanged) after the last use of them.
    pub(crate) fn open(file: &Path) -> Result<(Self, FileBefore), ModelError> {
        Self::open_above(file, READ_MAX)
    }

    fn open_above(path: &Path, read_max: u64) -> Result<(Self, FileBefore), ModelError> {
        let failed = |source| ModelError::io(path, source);
        let mut file = regular_file::open(path).map_err(failed)?;
        let before = FileBefore(file.metadata().map_err(failed)?);
        #[cfg(target_os = "linux")]
        if before.0.len() > read_max {
            match lease::LeasedMapping::new(file) {
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

// === impl FileBefore ===

impl FileBefore {
    /// Refuses a file that was written in place in the meantime. If another file replaced it, the
    /// bytes are those of the whole old file.
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
        let other = dir.path().join("other");
        std::fs::write(&other, "newer").unwrap();
        std::fs::rename(&other, &file).unwrap();
        before.unchanged(&file).unwrap();
        let (_, before) = FileBytes::open(&file).unwrap();
        std::fs::write(&file, "cut").unwrap();
        let error = before.unchanged(&file).unwrap_err().to_string();
        assert!(
            error.ends_with("weights: changed while it was read"),
            "{error}"
        );
    }

    /// File systems without leases read the file: then there is nothing to test.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_truncates_a_mapped_file_waits() {
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
        // The kernel's signal has not ended the process, and every page is still there.
        assert!(is_cut.recv_timeout(Duration::from_millis(200)).is_err());
        assert!(mapped.iter().all(|byte| *byte == 7));
        drop(mapped);
        is_cut.recv_timeout(Duration::from_secs(20)).unwrap();
        cutting.join().unwrap();
    }
}

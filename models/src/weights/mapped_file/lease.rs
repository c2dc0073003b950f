//! Mappings under a lease.
#![allow(
    unsafe_code,
    reason = "maps a file, whose bytes must not change, and takes its lease with fcntl"
)]

use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsRawFd;

use memmap2::Mmap;

/// The command that chooses the signal of a broken lease; the libc crate lacks this constant of
/// `linux/fcntl.h`.
const F_SETSIG: libc::c_int = 10;

/// A mapped file under a lease.
pub(crate) struct LeasedMapping {
    // Dropped before the file, whose closing ends the lease.
    map: Mmap,
    _file: File,
}

// === impl LeasedMapping ===

impl LeasedMapping {
    /// Returns the file if it cannot be leased or mapped.
    pub(super) fn new(file: File) -> Result<Self, File> {
        if !take_lease(&file) {
            return Err(file);
        }
        // SAFETY: the bytes must not change and the file must not shrink while they are mapped.
        // The lease blocks writers for `lease-break-time`, and it is held until `file` closes,
        // which the mapping does not outlive. The mapping is dropped within that time, when the
        // tensors are copied out.
        match unsafe { Mmap::map(&file) } {
            Ok(map) => Ok(Self { map, _file: file }),
            Err(_) => Err(file),
        }
    }
}

impl Deref for LeasedMapping {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

/// Takes a read lease. The kernel announces a waiting writer with a signal: by default `SIGIO`,
/// whose default action ends the process. `SIGURG` is ignored by default.
fn take_lease(file: &File) -> bool {
    let fd = file.as_raw_fd();
    // SAFETY: both calls take only integers and an open file descriptor.
    unsafe {
        libc::fcntl(fd, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) == 0
    }
}

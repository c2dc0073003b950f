//! A hash of all commands, to compare two runs.

use std::fmt::{self, Write};

use switchyard_core::event::Command;
use switchyard_core::time::Time;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a over the text of the commands and their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandHash(u64);

// === impl CommandHash ===

impl CommandHash {
    pub(super) fn new() -> Self {
        Self(FNV_OFFSET)
    }

    pub(super) fn add(&mut self, now: Time, command: &Command) {
        // Writing into a hash cannot fail.
        let _ = write!(self, "{} {command:?};", now.0);
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

impl Write for CommandHash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        Ok(())
    }
}

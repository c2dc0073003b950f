//! The stand-in for the host of policies that run natively: unit tests, benchmarks, simulation.
//! Each thread has its own.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{ArtifactError, Level};

#[derive(Default)]
struct HostStandIn {
    artifacts: BTreeMap<String, Vec<u8>>,
    lines: Vec<(Level, String)>,
    random: u64,
}

thread_local! {
    static STAND_IN: RefCell<HostStandIn> = RefCell::default();
}

/// Lines kept until [`take_log`] takes them; later ones are dropped.
const LINES_MAX: usize = 1_000;

/// Starts the stream of random numbers anew.
pub fn seed(seed: u64) {
    STAND_IN.with_borrow_mut(|host| host.random = seed);
}

/// Puts a file into the policy's folder.
pub fn put_artifact(name: &str, bytes: Vec<u8>) {
    STAND_IN.with_borrow_mut(|host| host.artifacts.insert(name.to_owned(), bytes));
}

/// The lines that the policy has logged since the last call.
pub fn take_log() -> Vec<(Level, String)> {
    STAND_IN.with_borrow_mut(|host| std::mem::take(&mut host.lines))
}

pub(super) fn log(level: Level, message: &str) {
    STAND_IN.with_borrow_mut(|host| {
        if host.lines.len() < LINES_MAX {
            host.lines.push((level, message.to_owned()));
        }
    });
}

pub(super) fn read_artifact(name: &str) -> Result<Vec<u8>, ArtifactError> {
    STAND_IN.with_borrow(|host| {
        host.artifacts
            .get(name)
            .cloned()
            .ok_or(ArtifactError::NotFound)
    })
}

/// `SplitMix64`: every seed gives a full-period stream.
pub(super) fn random_u64() -> u64 {
    STAND_IN.with_borrow_mut(|host| {
        host.random = host.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = host.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        seed(7);
        let first = [host::random_u64(), host::random_u64()];
        seed(7);
        assert_eq!(first, [host::random_u64(), host::random_u64()]);
        assert_ne!(first[0], first[1]);
        assert!((0.0..1.0).contains(&host::random_f64()));
    }

    #[test]
    fn artifacts_and_log_lines_are_kept() {
        put_artifact("table.json", vec![1, 2]);
        assert!(host::read_artifact("table.json").is_ok_and(|bytes| bytes == [1, 2]));
        assert!(matches!(
            host::read_artifact("other"),
            Err(ArtifactError::NotFound)
        ));
        host::log(Level::Warn, "careful");
        assert!(
            take_log()
                .iter()
                .any(|(level, line)| *level == Level::Warn && line == "careful")
        );
        assert!(take_log().is_empty());
    }
}

//! The cores that a thread runs on. Known on Linux; an error on other systems.

use std::io;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that the calling thread may run on, ascending: those of the process unless the thread
/// was pinned. Under `taskset` or in a container these may be fewer than the machine has.
///
/// # Errors
/// The operating system does not say, or is not Linux.
#[cfg(target_os = "linux")]
pub fn cores() -> io::Result<Vec<usize>> {
    // `None` is the calling thread.
    let allowed = sched_getaffinity(None)?;
    let is_allowed = |core: &usize| allowed.is_set(*core);
    Ok((0..CpuSet::MAX_CPU).filter(is_allowed).collect())
}

/// Keeps the calling thread on one core.
///
/// # Errors
/// The machine lacks the core, the process may not use it, or the system is not Linux.
#[cfg(target_os = "linux")]
pub fn pin(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(None, &only)?)
}

/// Keeps the calling thread, and the threads and processes that it starts, off one core, if others are left.
///
/// # Errors
/// The operating system refuses, or is not Linux.
#[cfg(target_os = "linux")]
pub fn keep_off(core: usize) -> io::Result<()> {
    let mut rest = CpuSet::new();
    cores()?
        .into_iter()
        .filter(|&other| other != core)
        .for_each(|other| rest.set(other));
    match rest.count() {
        0 => Ok(()),
        _ => Ok(sched_setaffinity(None, &rest)?),
    }
}

/// The cores that the calling thread may run on.
///
/// # Errors
/// Always: they are known on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn cores() -> io::Result<Vec<usize>> {
    Err(unsupported())
}

/// Keeps the calling thread on one core.
///
/// # Errors
/// Always: threads are kept on cores on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn pin(_core: usize) -> io::Result<()> {
    Err(unsupported())
}

/// Keeps the calling thread off one core.
///
/// # Errors
/// Always: threads are kept on cores on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn keep_off(_core: usize) -> io::Result<()> {
    Err(unsupported())
}

#[cfg(not(target_os = "linux"))]
fn unsupported() -> io::Error {
    let reason = "threads are kept on cores on Linux only";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_pinned_thread_runs_on_its_core_and_leaves_others_alone() {
        let all = cores().unwrap();
        let last = *all.last().unwrap();
        let pinned = std::thread::spawn(move || {
            pin(last).unwrap();
            cores().unwrap()
        });
        assert_eq!(pinned.join().unwrap(), [last]);
        assert_eq!(cores().unwrap(), all);
    }

    #[test]
    fn a_thread_that_is_kept_off_a_core_has_the_others() {
        let all = cores().unwrap();
        let last = *all.last().unwrap();
        let left = std::thread::spawn(move || {
            keep_off(last).unwrap();
            cores().unwrap()
        });
        let others: Vec<usize> = all.iter().copied().filter(|&core| core != last).collect();
        let expected = if others.is_empty() { all } else { others };
        assert_eq!(left.join().unwrap(), expected);
    }

    #[test]
    fn cores_that_no_machine_has_are_refused() {
        for core in [CpuSet::MAX_CPU, usize::MAX] {
            let error = pin(core).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}

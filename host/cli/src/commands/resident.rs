//! The memory that a piece of work leaves behind in this process.

/// Runs `work`; with the memory that the process has more of afterwards, of which no file is the
/// source. `None` where the system does not say. No other work should run meanwhile.
pub(super) fn kept_by<T>(work: impl FnOnce() -> T) -> (T, Option<u64>) {
    let before = anonymous_bytes();
    let done = work();
    let kept = anonymous_bytes().zip(before);
    (
        done,
        kept.map(|(after, before)| after.saturating_sub(before)),
    )
}

fn anonymous_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_kept_is_counted() {
        let (kept, bytes) = kept_by(|| vec![1u8; 64 << 20]);
        let bytes = bytes.unwrap_or_default();
        // Tests of other threads take and free memory too.
        assert!((56 << 20..96 << 20).contains(&bytes), "{bytes}");
        assert_eq!(kept.len(), 64 << 20);
    }
}

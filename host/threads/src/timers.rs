//! Timers of a thread. Exact on Linux; on other systems as the system has them.

use std::io;

/// Wakes the calling thread from sleeps within microseconds instead of the 50 us of slack that Linux adds
/// to save power. Threads that it starts later inherit the slack.
///
/// # Errors
/// The operating system refuses.
#[cfg(target_os = "linux")]
pub fn exact_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(
        std::num::NonZeroU64::new(1),
    )?)
}

/// Leaves the timers as they are.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn exact_timers() -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_the_calling_thread_has_exact_timers() {
        let slack = || rustix::thread::current_timer_slack().unwrap();
        let before = slack();
        let exact = std::thread::spawn(move || {
            exact_timers().unwrap();
            slack()
        });
        assert_eq!(exact.join().unwrap(), 1);
        assert_eq!(slack(), before);
    }
}

//! File descriptors: as many connections as the process may open.
//!
//! Many systems start programs with a soft limit of 1,024 and a hard limit far above it. Without
//! descriptors a server accepts no connection on any port, and cannot read a changed policy.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for everything but connections of clients: the admin port, listeners, timers,
/// models, policies and their compiled code, recordings and logs.
const RESERVED: usize = 256;

/// Raises the process's soft limit to its hard limit, and returns the number of connections that
/// fit: `connections_max`, or fewer with a line in the log.
pub(crate) fn prepare(connections_max: usize) -> usize {
    let limit = raise();
    let fitting = fitting(limit, connections_max);
    if fitting < connections_max {
        tracing::warn!(
            connections_max,
            descriptors = limit,
            reserved = RESERVED,
            connections = fitting,
            "server.connections_max is more than the process may open: it serves fewer connections; \
             raise the hard limit of open files (`ulimit -Hn`, systemd's LimitNOFILE, Docker's \
             --ulimit nofile) or lower server.connections_max"
        );
    }
    fitting
}

/// The soft limit of descriptors after an attempt to raise it.
fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => {
            tracing::debug!(from = current, to = maximum, "limit of open files raised");
            maximum
        }
        Err(error) => {
            tracing::warn!(%error, current, maximum, "the limit of open files was not raised");
            current
        }
    }
}

/// The number of connections that fit into a limit of descriptors; `None` is no limit.
fn fitting(limit: Option<u64>, connections_max: usize) -> usize {
    let Some(limit) = limit else {
        return connections_max;
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // Under a limit that is hardly above the reserve, half of it is for connections.
    let free = limit.saturating_sub(RESERVED).max(limit / 2).max(1);
    connections_max.min(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        assert_eq!(fitting(None, 4_096), 4_096);
        assert_eq!(fitting(Some(20_000), 4_096), 4_096);
        assert_eq!(fitting(Some(4_352), 4_096), 4_096);
        assert_eq!(fitting(Some(1_024), 4_096), 768);
        assert_eq!(fitting(Some(300), 4_096), 150);
        assert_eq!(fitting(Some(1), 4_096), 1);
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        let before = getrlimit(Resource::Nofile);
        let lower = before.maximum.map_or(8_192, |maximum| maximum / 2);
        let lowered = Rlimit {
            current: Some(lower),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, lowered).unwrap();
        assert_eq!(prepare(1), 1);
        let after = getrlimit(Resource::Nofile);
        assert_eq!(after.current, before.maximum);
    }
}

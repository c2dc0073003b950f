//! A contender's processes: a peer may be a tree of them, Triton is four.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// For a server to end by itself once it is asked to.
const STOP_MAX: Duration = Duration::from_secs(15);

/// A server that ends with this, and all that it has started.
pub(crate) struct Process(Child);

/// Fields of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    cpu: Duration,
}

// === impl Process ===

impl Process {
    /// Starts it without its stdout, because the bench prints a table there.
    pub(crate) fn start(command: &mut Command) -> std::io::Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().map(Self)
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// CPU time of the process and its descendants so far.
    pub(crate) fn cpu(&self) -> Duration {
        let tree = self.tree().into_iter();
        tree.filter_map(|pid| Some(Stat::of(pid)?.cpu)).sum()
    }

    /// Memory of them all that is resident now. Pages that they share count for each.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.tree().into_iter().filter_map(resident_bytes).sum()
    }

    /// It, its children, theirs and so on.
    fn tree(&self) -> Vec<u32> {
        let all: Vec<(u32, Stat)> = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, Stat::of(pid)?)))
            .collect();
        let mut tree = vec![self.0.id()];
        let mut at = 0;
        while let Some(&parent) = tree.get(at) {
            let children = all.iter().filter(|(_, stat)| stat.parent == parent);
            tree.extend(children.map(|(pid, _)| *pid));
            at += 1;
        }
        tree
    }
}

impl Drop for Process {
    /// Asked first: a server of several processes ends the others and cleans up after itself.
    fn drop(&mut self) {
        let tree = self.tree();
        // Errors, here and below, mean that it has ended.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let began = Instant::now();
        while !self.has_ended() {
            if began.elapsed() > STOP_MAX {
                kill(self.tree());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // litserve leaves its workers behind.
        kill(tree);
    }
}

fn kill(processes: Vec<u32>) {
    for pid in processes {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }
}

// === impl Stat ===

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may hold anything, the state is field 3: the parent is field 4,
        // user and system time are fields 14 and 15.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks = number(14)? + number(15)?;
        let hertz = rustix::param::clock_ticks_per_second();
        Some(Self {
            parent: u32::try_from(number(4)?).ok()?,
            cpu: Duration::from_secs_f64(ticks as f64 / hertz as f64),
        })
    }
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib = line.split_whitespace().nth(1)?;
    Some(kib.parse::<u64>().ok()? * 1_024)
}

/// The first of `count` consecutive ports without a listener.
pub(crate) fn free_ports(count: u16) -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let is_free = |more| {
            let next = port.checked_add(more);
            next.is_some_and(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        };
        if (1..count).all(is_free) {
            return port;
        }
    }
}

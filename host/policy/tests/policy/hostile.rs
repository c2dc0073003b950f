//! Hostile components, a line each: the loader refuses them, or their calls fault, or they serve; a good
//! policy next to them serves in any case, no call takes much longer than its budget, and their memory
//! comes back.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use switchyard_core::policy::Policy;
use switchyard_policy::Limits;

use crate::hostile_parts::Ends::{self, Faults, KeepsState, Refused, Serves, TakesNoState};
use crate::hostile_parts::{PARTS, hostile};
use crate::support::{
    ask, fifo, guest, load, load_guest, loader, made_up, patient, window, with_instances,
};

/// Budget of each call.
const BUDGET: Duration = Duration::from_millis(400);

/// Memory that the process may keep after all cases: compiled code that is dropped late.
const KEPT_MIB: u64 = 128;

fn limits() -> Limits {
    Limits {
        window_budget: BUDGET,
        restart_budget: BUDGET,
        configure_budget: BUDGET,
        ..patient()
    }
}

/// The call's result, in at most twice the budget of this thread's processor time: the wall clock of a busy
/// test machine says little.
fn timed<T>(name: &str, call: impl FnOnce() -> T) -> T {
    let before = processor_time();
    let result = call();
    let took = processor_time() - before;
    assert!(took < 2 * BUDGET, "{name}: a call took {took:?}");
    result
}

fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns = stat.split_whitespace().next().unwrap().parse().unwrap();
    Duration::from_nanos(ns)
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

/// Mistakes of all cases, so that one run shows them together.
fn plays(name: &str, file: &Path, ends: &Ends, mistakes: &mut Vec<String>) {
    let loaded = load(&loader(limits()), file);
    let mut policy = match (loaded, ends) {
        (Ok(loaded), Refused(_)) => {
            return mistakes.push(format!("{name}: loaded {}", loaded.version.label));
        }
        (Ok(loaded), _) => loaded.policy,
        (Err(error), Refused(words)) if error.to_string().contains(words) => return,
        (Err(error), _) => return mistakes.push(format!("{name}: {error}")),
    };
    for id in 1..4 {
        let answer = timed(name, || ask(policy.as_mut(), &window(id, 3)));
        match (answer, ends) {
            (Err(fault), Faults(kind, words))
                if fault.kind == *kind && fault.reason.contains(words) => {}
            (Ok(_), Serves | KeepsState(_) | TakesNoState(_)) => {}
            (answer, _) => mistakes.push(format!("{name}, window {id}: {answer:?}")),
        }
    }
    let (called, words) = match ends {
        KeepsState(words) => (timed(name, || policy.save().map(drop)), words),
        TakesNoState(words) => (timed(name, || policy.restore(b"state")), words),
        Refused(_) | Faults(..) | Serves => return,
    };
    match called {
        Err(fault) if fault.to_string().contains(words) => {}
        other => mistakes.push(format!("{name}: {other:?}")),
    }
}

#[test]
fn a_hostile_part_hurts_no_other_policy() {
    let mistakes = all_parts();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

/// In a process of its own: the tests next to it take memory too.
#[test]
fn the_memory_of_hostile_parts_comes_back() {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", "hostile::memory_comes_back_alone", "--ignored"]);
    let output = alone.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by the_memory_of_hostile_parts_comes_back"]
fn memory_comes_back_alone() {
    let before = resident_mib();
    all_parts();
    let kept = resident_mib().saturating_sub(before);
    assert!(kept < KEPT_MIB, "{kept} MiB are kept");
}

fn all_parts() -> Vec<String> {
    let mut good = load_guest("good");
    let dir = tempfile::tempdir().unwrap();
    let mut mistakes = Vec::new();
    for (name, part, text, ends) in &PARTS {
        let file = dir.path().join("hostile.wasm");
        std::fs::write(&file, hostile(part, text)).unwrap();
        plays(name, &file, ends, &mut mistakes);
        serves(&mut *good, name);
    }
    mistakes
}

fn serves(good: &mut dyn Policy, next_to: &str) {
    let answer = timed(next_to, || ask(good, &window(1, 3)));
    assert!(answer.is_ok(), "next to {next_to}: {answer:?}");
}

#[test]
fn files_that_are_damaged_or_odd_are_refused_or_serve() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(guest("good")).unwrap();
    let mut good = load_guest("good");
    let mut played = |name: &str, bytes: &[u8]| {
        let file = dir.path().join("odd.wasm");
        std::fs::write(&file, bytes).unwrap();
        let began = Instant::now();
        let loaded = load(&loader(limits()), &file);
        assert!(began.elapsed() < Duration::from_secs(60), "{name}");
        let reason = match loaded {
            Ok(mut loaded) => {
                let _ = timed(name, || ask(loaded.policy.as_mut(), &window(1, 2)));
                None
            }
            Err(error) => Some(error.to_string()),
        };
        serves(&mut *good, name);
        reason
    };
    for part in 1..12 {
        let reason = played("truncated", &whole[..whole.len() * part / 12]);
        assert!(reason.is_some_and(|reason| reason.contains("odd.wasm: ")));
    }
    // Any end is right but a panic, a hang or a dead neighbour.
    for flip in 0..48 {
        let mut flipped = whole.clone();
        let at = (flip * 7_919) % flipped.len();
        flipped[at] ^= 1 << (flip % 8);
        played("bit-flipped", &flipped);
    }
    assert!(played("empty", b"").is_some());
    assert!(played("zeros", &[0; 4_096]).is_some());
    let functions = "(func (result i32) (i32.const 7))\n".repeat(10_000);
    assert_eq!(
        played("10,000 functions", &hostile("more", &functions)),
        None
    );
    let other =
        made_up("package other:thing@2.0.0; interface run { go: func(); } world w { export run; }");
    assert!(
        played("another world", &other).is_some_and(|reason| reason.contains("does not export"))
    );
    let many = with_instances(&hostile("more", ""), b"\0asm\x01\0\0\0", 5_000);
    assert!(played("5,000 instances", &many).is_some());
    // A custom section of 50 MB, and one above the limit of a file.
    for (mb, is_refused) in [(50, false), (80, true)] {
        let mut large = hostile("more", "");
        let size: u32 = mb << 20;
        large.push(0);
        let mut rest = size + 2;
        while rest >= 0x80 {
            large.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        large.extend([rest as u8, 1, b'x']);
        large.resize(large.len() + size as usize, 0);
        assert_eq!(played("large", &large).is_some(), is_refused, "{mb} MB");
    }
}

#[test]
fn names_that_are_no_files_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::create_dir(path("folder.wasm")).unwrap();
    std::os::unix::fs::symlink(path("b.wasm"), path("a.wasm")).unwrap();
    std::os::unix::fs::symlink(path("a.wasm"), path("b.wasm")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("zero.wasm")).unwrap();
    fifo(&path("fifo.wasm"));
    for name in ["folder.wasm", "a.wasm", "zero.wasm", "fifo.wasm"] {
        let refused = timed(name, || load(&loader(limits()), &path(name)).map(drop));
        let reason = refused.unwrap_err().to_string();
        assert!(reason.contains(&format!("{name}: read: ")), "{reason}");
    }
}

//! A process out of file descriptors. Their limit is that of a process, so this test has its own.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]
#![allow(missing_docs)]

use std::fs::{self, File};
use std::io::Write;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use switchyard_policy::files::WatchOptions;
use switchyard_policy::{PolicyFileEvent, PolicyWatcher};

/// A component with nothing in it.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

/// Time between two looks at the folder.
const POLL: Duration = Duration::from_millis(100);

/// Opens files until the process has no descriptor left.
fn exhaust() -> Vec<File> {
    let limit = Rlimit {
        current: Some(256),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut held = Vec::new();
    // A look at the folder that is under way gives its descriptor back.
    let began = Instant::now();
    while began.elapsed() < 3 * POLL {
        while let Ok(file) = File::open("/dev/null") {
            held.push(file);
        }
        thread::sleep(Duration::from_millis(1));
    }
    held
}

#[test]
fn a_policy_written_while_the_process_is_out_of_descriptors_is_reported_later() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("old.wasm");
    fs::write(&old, EMPTY).unwrap();
    let (send, events) = mpsc::channel();
    let options = WatchOptions {
        poll: POLL,
        ..WatchOptions::default()
    };
    let report = move |event| send.send(event).unwrap();
    let _watcher = PolicyWatcher::start(dir.path(), &options, report).unwrap();

    let part = dir.path().join("new.part");
    let mut file = File::create(&part).unwrap();
    let held = exhaust();
    file.write_all(EMPTY).unwrap();
    let new = dir.path().join("new.wasm");
    fs::rename(&part, &new).unwrap();
    // Neither is `old.wasm` taken for removed.
    let silence = events.recv_timeout(Duration::from_secs(1));
    assert!(silence.is_err(), "{silence:?}");

    drop(held);
    let event = events.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(event, PolicyFileEvent::Changed(new));
}

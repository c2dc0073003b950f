//! Every way a file gets its new content ends in one event, once it is whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use switchyard_policy::PolicyFileEvent::{self, Changed, Removed};
use switchyard_policy::{WatchOptions, Watcher};
use tempfile::TempDir;

use crate::support::made_up;

/// Longer than any event takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than an event takes on most; silence for this long counts as silence.
const SILENCE: Duration = Duration::from_millis(400);

struct Yard {
    dir: TempDir,
    events: Receiver<PolicyFileEvent>,
    _watcher: Watcher,
}

/// A directory with `old.wasm` in it, watched.
fn yard(give_up: Duration) -> Yard {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("old.wasm"), component("old")).unwrap();
    let (send, events) = mpsc::channel();
    let options = WatchOptions {
        debounce: Duration::from_millis(40),
        give_up,
    };
    let report = move |event| send.send(event).unwrap();
    let _watcher = Watcher::start(dir.path(), options, report).unwrap();
    Yard {
        dir,
        events,
        _watcher,
    }
}

fn patient_yard() -> Yard {
    yard(Duration::from_secs(60))
}

impl Yard {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn expect(&self, event: &PolicyFileEvent) {
        let seen = self.events.recv_timeout(PATIENCE).expect("an event");
        assert_eq!(seen, *event);
    }

    fn expect_changed(&self, name: &str) {
        self.expect(&Changed(self.path(name)));
    }

    fn expect_silence(&self) {
        if let Ok(event) = self.events.recv_timeout(SILENCE) {
            panic!("{event:?}");
        }
    }

    fn shell(&self, command: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.dir.path());
        assert!(shell.status().unwrap().success(), "{command}");
    }
}

fn component(name: &str) -> Vec<u8> {
    made_up(&format!(
        "package a:{name}; world w {{ export f: func(); }}"
    ))
}

#[test]
fn what_is_there_already_is_not_reported() {
    patient_yard().expect_silence();
}

#[test]
fn a_new_file_is_reported_once() {
    let yard = patient_yard();
    fs::write(yard.path("new.wasm"), component("new")).unwrap();
    yard.expect_changed("new.wasm");
    yard.expect_silence();
}

#[test]
fn a_rewrite_in_place_is_reported() {
    let yard = patient_yard();
    fs::write(yard.path("old.wasm"), component("newer")).unwrap();
    yard.expect_changed("old.wasm");
    yard.expect_silence();
}

#[test]
fn an_atomic_rename_is_reported_under_its_last_name() {
    let yard = patient_yard();
    fs::write(yard.path(".old.wasm.tmp"), component("newer")).unwrap();
    fs::rename(yard.path(".old.wasm.tmp"), yard.path("old.wasm")).unwrap();
    yard.expect_changed("old.wasm");
    yard.expect_silence();
}

#[test]
fn cp_and_mv_are_reported() {
    let yard = patient_yard();
    let outside = tempfile::tempdir().unwrap();
    let built = outside.path().join("built.wasm");
    fs::write(&built, component("newer")).unwrap();
    yard.shell(&format!("cp {} old.wasm", built.display()));
    yard.expect_changed("old.wasm");
    yard.shell(&format!("mv {} moved.wasm", built.display()));
    yard.expect_changed("moved.wasm");
    yard.shell("mv moved.wasm other.wasm");
    let mut seen = [(); 2].map(|()| yard.events.recv_timeout(PATIENCE).unwrap());
    seen.sort_by_key(|event| matches!(event, Removed(_)));
    let expected = [
        Changed(yard.path("other.wasm")),
        Removed(yard.path("moved.wasm")),
    ];
    assert_eq!(seen, expected);
}

/// vi keeps the old file as a backup, writes a new one, and removes the backup.
#[test]
fn an_editor_that_moves_the_old_file_away_is_one_change() {
    let yard = patient_yard();
    yard.shell("mv old.wasm old.wasm~");
    fs::write(yard.path("old.wasm"), component("newer")).unwrap();
    yard.shell("rm old.wasm~");
    yard.expect_changed("old.wasm");
    yard.expect_silence();
}

#[test]
fn a_file_is_not_reported_before_it_is_whole() {
    let yard = patient_yard();
    let bytes = component("slow");
    let (half, rest) = bytes.split_at(bytes.len() / 2);
    let mut file = File::create(yard.path("slow.wasm")).unwrap();
    file.write_all(half).unwrap();
    yard.expect_silence();
    file.write_all(rest).unwrap();
    drop(file);
    yard.expect_changed("slow.wasm");
    yard.expect_silence();
}

#[test]
fn a_file_that_never_becomes_whole_is_reported_in_the_end() {
    let yard = yard(Duration::from_millis(200));
    let bytes = component("cut");
    fs::write(yard.path("cut.wasm"), &bytes[..bytes.len() / 2]).unwrap();
    yard.expect_changed("cut.wasm");
}

#[test]
fn removal_is_reported_and_so_is_coming_back() {
    let yard = patient_yard();
    fs::remove_file(yard.path("old.wasm")).unwrap();
    yard.expect(&Removed(yard.path("old.wasm")));
    fs::write(yard.path("old.wasm"), component("old")).unwrap();
    yard.expect_changed("old.wasm");
}

#[test]
fn settings_are_a_change_of_their_policy() {
    let yard = patient_yard();
    fs::write(yard.path("old.toml"), "x = 1\n").unwrap();
    yard.expect_changed("old.wasm");
    fs::write(yard.path("old.toml"), "x = 22\n").unwrap();
    yard.expect_changed("old.wasm");
    fs::remove_file(yard.path("old.toml")).unwrap();
    yard.expect_changed("old.wasm");
    fs::write(yard.path("nobody.toml"), "x = 1\n").unwrap();
    yard.expect_silence();
}

#[test]
fn artifacts_are_a_change_of_their_policy() {
    let yard = patient_yard();
    let folder = yard.path("old/deep");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(yard.path("nobody")).unwrap();
    yard.expect_silence();
    fs::write(folder.join("table.bin"), "one").unwrap();
    yard.expect_changed("old.wasm");
    let temporary = yard.path("old/deep/.table.bin.part");
    fs::write(&temporary, "three").unwrap();
    yard.expect_silence();
    fs::rename(&temporary, folder.join("table.bin")).unwrap();
    yard.expect_changed("old.wasm");
    fs::remove_dir_all(yard.path("old")).unwrap();
    yard.expect_changed("old.wasm");
    fs::write(yard.path("nobody/table.bin"), "one").unwrap();
    yard.expect_silence();
}

#[test]
fn other_files_are_nobodys_business() {
    let yard = patient_yard();
    fs::write(yard.path("README.md"), "hello").unwrap();
    fs::write(yard.path(".hidden.wasm"), component("hidden")).unwrap();
    fs::read(yard.path("old.wasm")).unwrap();
    yard.expect_silence();
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let nowhere = Watcher::start("/nowhere/at/all".as_ref(), WatchOptions::default(), |_| {});
    let error = nowhere.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}

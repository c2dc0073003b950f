//! Every way to replace a file leads to one event, once the file is whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use switchyard_policy::PolicyFileEvent::{self, Changed, Removed};
use switchyard_policy::PolicyWatcher;
use switchyard_policy::files::WatchOptions;
use tempfile::TempDir;

use crate::support::{fifo, made_up};

/// Longer than an event takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than an event usually takes: no event within this time counts as none.
const SILENCE: Duration = Duration::from_millis(400);

struct WatchedPolicies {
    dir: TempDir,
    events: Receiver<PolicyFileEvent>,
    _watcher: PolicyWatcher,
}

/// A directory with `old.wasm` in it, watched.
fn watch(give_up: Duration) -> WatchedPolicies {
    watch_with(WatchOptions {
        give_up,
        ..WatchOptions::default()
    })
}

fn watch_with(options: WatchOptions) -> WatchedPolicies {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("old.wasm"), component("old")).unwrap();
    let (send, events) = mpsc::channel();
    let options = WatchOptions {
        debounce: Duration::from_millis(40),
        settle: Duration::from_millis(40),
        ..options
    };
    let report = move |event| send.send(event).unwrap();
    let _watcher = PolicyWatcher::start(dir.path(), &options, report).unwrap();
    WatchedPolicies {
        dir,
        events,
        _watcher,
    }
}

fn watch_patiently() -> WatchedPolicies {
    watch(Duration::from_secs(60))
}

// === impl WatchedPolicies ===

impl WatchedPolicies {
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

/// A write through a link in another folder gives this folder no event, as on network file systems.
#[test]
fn a_change_without_an_event_is_found_by_the_poll() {
    let (never, often) = (Duration::from_secs(3_600), Duration::from_millis(200));
    for (poll, is_found) in [(never, false), (often, true)] {
        let policies = watch_with(WatchOptions {
            poll,
            ..WatchOptions::default()
        });
        let outside = tempfile::tempdir_in(policies.dir.path().parent().unwrap()).unwrap();
        let link = outside.path().join("link.wasm");
        fs::hard_link(policies.path("old.wasm"), &link).unwrap();
        // The link itself is an event: the number of links is an attribute of the file.
        policies.expect_silence();
        fs::write(&link, component("newer")).unwrap();
        if is_found {
            policies.expect_changed("old.wasm");
        } else {
            policies.expect_silence();
        }
    }
}

#[test]
fn existing_files_are_not_reported() {
    watch_patiently().expect_silence();
}

#[test]
fn a_new_file_is_reported_once() {
    let policies = watch_patiently();
    fs::write(policies.path("new.wasm"), component("new")).unwrap();
    policies.expect_changed("new.wasm");
    policies.expect_silence();
}

#[test]
fn a_rewrite_in_place_is_reported() {
    let policies = watch_patiently();
    fs::write(policies.path("old.wasm"), component("newer")).unwrap();
    policies.expect_changed("old.wasm");
    policies.expect_silence();
}

#[test]
fn an_atomic_rename_is_reported_under_its_last_name() {
    let policies = watch_patiently();
    fs::write(policies.path(".old.wasm.tmp"), component("newer")).unwrap();
    fs::rename(policies.path(".old.wasm.tmp"), policies.path("old.wasm")).unwrap();
    policies.expect_changed("old.wasm");
    policies.expect_silence();
}

#[test]
fn cp_and_mv_are_reported() {
    let policies = watch_patiently();
    let outside = tempfile::tempdir().unwrap();
    let built = outside.path().join("built.wasm");
    fs::write(&built, component("newer")).unwrap();
    policies.shell(&format!("cp {} old.wasm", built.display()));
    policies.expect_changed("old.wasm");
    policies.shell(&format!("mv {} moved.wasm", built.display()));
    policies.expect_changed("moved.wasm");
    policies.shell("mv moved.wasm other.wasm");
    let mut seen = [(); 2].map(|()| policies.events.recv_timeout(PATIENCE).unwrap());
    seen.sort_by_key(|event| matches!(event, Removed(_)));
    let expected = [
        Changed(policies.path("other.wasm")),
        Removed(policies.path("moved.wasm")),
    ];
    assert_eq!(seen, expected);
}

/// vi keeps the old file as a backup, writes a new one, and removes the backup.
#[test]
fn an_editor_that_moves_the_old_file_away_is_one_change() {
    let policies = watch_patiently();
    policies.shell("mv old.wasm old.wasm~");
    fs::write(policies.path("old.wasm"), component("newer")).unwrap();
    policies.shell("rm old.wasm~");
    policies.expect_changed("old.wasm");
    policies.expect_silence();
}

#[test]
fn a_file_is_not_reported_before_it_is_whole() {
    let policies = watch_patiently();
    let bytes = component("slow");
    let (half, rest) = bytes.split_at(bytes.len() / 2);
    let mut file = File::create(policies.path("slow.wasm")).unwrap();
    file.write_all(half).unwrap();
    policies.expect_silence();
    file.write_all(rest).unwrap();
    drop(file);
    policies.expect_changed("slow.wasm");
    policies.expect_silence();
}

#[test]
fn a_file_that_never_becomes_whole_is_reported_in_the_end() {
    let policies = watch(Duration::from_millis(200));
    let bytes = component("cut");
    fs::write(policies.path("cut.wasm"), &bytes[..bytes.len() / 2]).unwrap();
    policies.expect_changed("cut.wasm");
}

#[test]
fn removal_is_reported_and_so_is_coming_back() {
    let policies = watch_patiently();
    fs::remove_file(policies.path("old.wasm")).unwrap();
    policies.expect(&Removed(policies.path("old.wasm")));
    fs::write(policies.path("old.wasm"), component("old")).unwrap();
    policies.expect_changed("old.wasm");
}

#[test]
fn settings_are_a_change_of_their_policy() {
    let policies = watch_patiently();
    fs::write(policies.path("old.toml"), "x = 1\n").unwrap();
    policies.expect_changed("old.wasm");
    fs::write(policies.path("old.toml"), "x = 22\n").unwrap();
    policies.expect_changed("old.wasm");
    fs::remove_file(policies.path("old.toml")).unwrap();
    policies.expect_changed("old.wasm");
    fs::write(policies.path("other.toml"), "x = 1\n").unwrap();
    policies.expect_silence();
}

#[test]
fn artifacts_are_a_change_of_their_policy() {
    let policies = watch_patiently();
    let folder = policies.path("old/deep");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(policies.path("other")).unwrap();
    policies.expect_silence();
    fs::write(folder.join("table.bin"), "one").unwrap();
    policies.expect_changed("old.wasm");
    let temporary = policies.path("old/deep/.table.bin.part");
    fs::write(&temporary, "three").unwrap();
    policies.expect_silence();
    fs::rename(&temporary, folder.join("table.bin")).unwrap();
    policies.expect_changed("old.wasm");
    fs::remove_dir_all(policies.path("old")).unwrap();
    policies.expect_changed("old.wasm");
    fs::write(policies.path("other/table.bin"), "one").unwrap();
    policies.expect_silence();
}

#[test]
fn other_files_are_not_reported() {
    let policies = watch_patiently();
    fs::write(policies.path("README.md"), "hello").unwrap();
    fs::write(policies.path(".hidden.wasm"), component("hidden")).unwrap();
    fs::read(policies.path("old.wasm")).unwrap();
    policies.expect_silence();
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let nowhere =
        PolicyWatcher::start("/nowhere/at/all".as_ref(), &WatchOptions::default(), |_| {});
    let error = nowhere.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}

#[test]
fn a_fifo_under_a_policys_name_is_reported_and_blocks_no_other_policy() {
    let policies = watch_patiently();
    fs::remove_file(policies.path("old.wasm")).unwrap();
    fifo(&policies.path("old.wasm"));
    policies.expect_changed("old.wasm");
    fifo(&policies.path("live.wasm"));
    policies.expect_changed("live.wasm");
    fs::write(policies.path("later.wasm"), component("later")).unwrap();
    policies.expect_changed("later.wasm");
    // Dropping the watcher joins its thread.
}

/// A folder `next/policies` that is reached through the link `current`, as volumes of configuration
/// are mounted.
#[cfg(unix)]
#[test]
fn a_link_above_the_folder_that_leads_elsewhere_is_seen_and_followed() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    for (version, name) in [("one", "old"), ("two", "newer")] {
        let folder = root.path().join(version).join("policies");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("old.wasm"), component(name)).unwrap();
    }
    symlink("one", root.path().join("current")).unwrap();
    let dir = root.path().join("current/policies");
    let (send, events) = mpsc::channel();
    let options = WatchOptions {
        poll: Duration::from_millis(100),
        ..WatchOptions::default()
    };
    let _watcher = PolicyWatcher::start(&dir, &options, move |e| send.send(e).unwrap()).unwrap();
    let flip = |to: &str| {
        symlink(to, root.path().join("next")).unwrap();
        fs::rename(root.path().join("next"), root.path().join("current")).unwrap();
    };
    let changed = Changed(dir.join("old.wasm"));
    flip("two");
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), changed);
    flip("one");
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), changed);
}

#[test]
fn a_folder_that_is_replaced_is_watched_again() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("policies");
    fs::create_dir(&dir).unwrap();
    let (send, events) = mpsc::channel();
    let options = WatchOptions {
        poll: Duration::from_millis(100),
        ..WatchOptions::default()
    };
    let _watcher = PolicyWatcher::start(&dir, &options, move |e| send.send(e).unwrap()).unwrap();
    for name in ["one", "two"] {
        fs::rename(&dir, root.path().join(format!("before-{name}"))).unwrap();
        fs::create_dir(&dir).unwrap();
        let policy = dir.join(format!("{name}.wasm"));
        fs::write(&policy, component(name)).unwrap();
        loop {
            let event = events.recv_timeout(PATIENCE).unwrap();
            if event == Changed(policy.clone()) {
                break;
            }
            assert!(matches!(event, Removed(_)), "{event:?}");
        }
    }
}

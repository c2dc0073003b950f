//! Faults of the process and of its machine: SIGKILL at a bad moment, a full disk, folders that cannot be
//! written, few open files, damaged files. The server serves afterwards, or a line names the way out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use switchyard_policy::recording::{Frame, Reader};
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::binary::{Process, serve_file};
use super::client::{Client, get};
use super::fixture::{APP, beat, fixture, policy};
use super::load::Load;
use super::test_bed::{PATIENCE, Setup};

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn started(setup: Setup) -> Process {
    blocking(move || {
        let process = Process::serve(&setup);
        process.wait_for_line("policy switched");
        process
    })
    .await
}

/// Waits for a line of its log.
async fn told(process: Process, line: &'static str) -> Process {
    blocking(move || {
        process.wait_for_line(line);
        process
    })
    .await
}

/// Waits until its policy's code is in the cache. Only x86-64 has baseline code, which is not kept.
async fn optimised(process: Process) -> Process {
    match cfg!(target_arch = "x86_64") {
        true => told(process, "policy optimised").await,
        false => process,
    }
}

/// Kills it and starts it again with the same files.
async fn killed(mut process: Process) -> Process {
    blocking(move || {
        process.kill();
        process.again()
    })
    .await
}

/// The policy that answers a request.
async fn answers(process: &Process) -> String {
    Client::connect(process.http)
        .await
        .infer(beat(1))
        .await
        .policy()
}

fn put(policy: &Path, component: &[u8]) {
    let part = policy.with_extension("part");
    fs::write(&part, component).unwrap();
    fs::rename(&part, policy).unwrap();
}

fn frames(file: &Path) -> Vec<Frame> {
    let frames: Result<Vec<Frame>, _> = Reader::open(file).unwrap().collect();
    frames.unwrap()
}

fn starts(frames: &[Frame]) -> usize {
    let starts = frames
        .iter()
        .filter(|frame| matches!(frame, Frame::Start(_)));
    starts.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_while_it_swaps_and_records_serves_again() {
    let folder = TempDir::new().unwrap();
    let (cache, file) = (folder.path().join("cache"), folder.path().join("pool.rec"));
    let setup = Setup::new("killed").policy(policy("fcfs"));
    let setup = setup.policies(&format!("cache = \"{}\"", cache.display()));
    let record = format!("record = {{ file = \"{}\" }}", file.display());
    let mut process = started(setup.lines(&record)).await;
    // Windows are in the file after a second.
    let kills = [40, 110, 150, 400, 1_300, 1_600];
    for (kill, after_ms) in kills.into_iter().enumerate() {
        // Its clients end with the server.
        let load = Load::start(process.http, 2);
        load.answered_by("", 5).await;
        put(&process.policy(), &policy(["sneakpeek", "fcfs"][kill % 2]));
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        process = killed(process).await;
        let label = answers(&process).await;
        assert!(
            label.starts_with(["sneakpeek@", "fcfs@"][kill % 2]),
            "{label}"
        );
        let kept = get(process.admin, "/admin/v1/status").await.json();
        let history = kept["pools"][0]["policies"]["history"]
            .as_array()
            .unwrap()
            .len();
        assert!((1..=2).contains(&history), "{kept}");
        assert!(
            process
                .lines("a kept policy version is passed over")
                .is_empty()
        );
    }
    process.terminate();
    let ended = blocking(move || process.ended()).await;
    assert_eq!(ended.code(), Some(0));
    // A life that was too short for a block leaves nothing.
    let lives = starts(&frames(&file));
    assert!((3..=kills.len() + 1).contains(&lives), "{lives}");
}

/// Killed at once, while it reads, and afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_while_it_reads_a_changed_configuration_serves_by_the_new_one() {
    let setup = Setup::new("reread").policy(policy("fcfs"));
    let mut process = started(setup.app("slo_ms = 1000")).await;
    let file = process.policy().with_file_name("switchyard.toml");
    for (round, after_ms) in [0, 120, 400].into_iter().enumerate() {
        let text = fs::read_to_string(&file).unwrap();
        let slo = |round: usize| format!("slo_ms = {}", 1_000 + round);
        fs::write(&file, text.replace(&slo(round), &slo(round + 1))).unwrap();
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        process = killed(process).await;
        answers(&process).await;
    }
}

/// The fixture's configuration, but profiles are in `profiles`.
fn with_profiles(text: &str, profiles: &Path, measure_s: u32) -> String {
    let usual = fixture().profiles.to_string_lossy();
    let text = text.replace(&*usual, &profiles.to_string_lossy());
    text.replace("measure_s = 1\n", &format!("measure_s = {measure_s}\n"))
}

/// Starts a server that has no profile yet. The text of its configuration is in its folder.
fn measuring(pool: &'static str, profiles: &Path, measure_s: u32) -> (Process, PathBuf) {
    let folder = TempDir::new().unwrap();
    let setup = Setup::new(pool).policy(policy("fcfs"));
    setup.furnish(folder.path());
    let text = setup.toml(fixture(), folder.path());
    let file = folder.path().join("switchyard.toml");
    fs::write(&file, with_profiles(&text, profiles, measure_s)).unwrap();
    (Process::start(&file, folder), file)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_while_it_measures_measures_again() {
    let profiles = TempDir::new().unwrap();
    let path = profiles.path().to_owned();
    let process = blocking(move || {
        let (mut process, file) = measuring("measures", &path, 600);
        process.wait_for_line("no profile of this machine yet: measuring one");
        std::thread::sleep(Duration::from_millis(300));
        process.kill();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("measure_s = 600", "measure_s = 1")).unwrap();
        process.again()
    });
    let process = process.await;
    answers(&process).await;
    assert_eq!(process.lines("profile measured and kept").len(), 1);
}

/// A file system of its own.
struct Mounted(TempDir);

impl Mounted {
    /// `None` where this is not permitted.
    fn of(kib: u32) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"]);
        let output = mount.arg(folder.path()).output();
        let is_mounted = output.is_ok_and(|output| output.status.success());
        if !is_mounted {
            eprintln!("SKIPPED: a test mounts a tmpfs, which is not permitted here");
        }
        is_mounted.then(|| Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves no space.
    fn fill(&self) {
        let written = fs::write(self.path().join("filler"), vec![0; 64 << 20]);
        assert!(written.is_err());
    }

    fn make_read_only(&self) {
        let mut mount = Command::new("mount");
        mount.args(["-o", "remount,ro"]).arg(self.path());
        assert!(mount.status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a server may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Compiled code, versions and the measured profile are in a file system that takes no bytes.
async fn serves_with_nothing_kept(pool: &'static str, spoil: fn(&Mounted)) {
    let Some(disk) = Mounted::of(256) else {
        return;
    };
    for folder in ["cache", "versions", "profiles"] {
        fs::create_dir(disk.path().join(folder)).unwrap();
    }
    spoil(&disk);
    let folder = TempDir::new().unwrap();
    let of = |name: &str| disk.path().join(name);
    std::os::unix::fs::symlink(of("versions"), folder.path().join(".versions")).unwrap();
    let setup = Setup::new(pool).policy(policy("fcfs"));
    let setup = setup.policies(&format!("cache = \"{}\"", of("cache").display()));
    setup.furnish(folder.path());
    let profiles = of("profiles");
    let process = blocking(move || {
        let text = setup.toml(fixture(), folder.path());
        let file = folder.path().join("switchyard.toml");
        fs::write(&file, with_profiles(&text, &profiles, 1)).unwrap();
        let mut process = Process::start(&file, folder);
        process.listening();
        process.wait_for_line("policy switched");
        process
    })
    .await;
    assert!(answers(&process).await.starts_with("fcfs@"));
    put(&process.policy(), &policy("sneakpeek"));
    let load = Load::start(process.http, 1);
    load.answered_by("sneakpeek@", 5).await;
    load.stop().await;
    let mut process = told(process, "compiled code was not kept").await;
    let said = |part: &str| {
        process
            .messages()
            .iter()
            .any(|message| message.contains(part))
    };
    assert!(said("kept in memory only"), "{:?}", process.messages());
    assert!(
        said("the measured profile is not kept"),
        "{:?}",
        process.messages()
    );
    process.terminate();
    assert_eq!(blocking(move || process.ended()).await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_full_disk_serves_and_swaps() {
    serves_with_nothing_kept("full", Mounted::fill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_folders_are_read_only_serves_and_swaps() {
    serves_with_nothing_kept("read-only", Mounted::make_read_only).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_on_a_disk_that_fills_up_ends_and_serving_goes_on() {
    let Some(disk) = Mounted::of(48) else {
        return;
    };
    let file = disk.path().join("pool.rec");
    let record = format!("record = {{ file = \"{}\" }}", file.display());
    let setup = Setup::new("filling").policy(policy("fcfs")).lines(&record);
    let process = started(setup).await;
    let load = Load::start(process.http, 4);
    let process = blocking(move || {
        process.wait_for_line("recording fails and stops; serving goes on");
        process
    })
    .await;
    let error = &process.lines("recording fails and stops; serving goes on")[0]["error"];
    assert!(error.as_str().unwrap().contains("No space left"), "{error}");
    load.answered_by("fcfs@", 20).await;
    load.stop().await;
    // The whole blocks can be replayed, and the next server goes on after them, or says why it does not.
    let recorded = frames(&file);
    assert_eq!(starts(&recorded), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_few_open_files_serves_and_takes_connections_again() {
    let setup = Setup::new("few-files").policy(policy("fcfs"));
    let process = blocking(move || Process::serve_with_files(&setup, 64)).await;
    answers(&process).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        match TcpStream::connect(process.http).await {
            Ok(connection) => idle.push(connection),
            Err(_) => break,
        }
    }
    assert!(idle.len() > 16, "{}", idle.len());
    // A policy is opened for a moment only.
    put(&process.policy(), &policy("sneakpeek"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(idle);
    // Until the server has seen that they are closed, this client has its share.
    let give_up = Instant::now() + PATIENCE;
    let is_served = async || {
        let mut client = Client::connect(process.http).await;
        let answer = client.send("GET", "/v2/models/heart/ready", String::new());
        answer.await.is_ok_and(|answer| answer.status == 200)
    };
    while !is_served().await {
        assert!(Instant::now() < give_up, "its connections are still taken");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let load = Load::start(process.http, 2);
    load.answered_by("sneakpeek@", 5).await;
    load.stop().await;
}

/// Cuts, flips and replaces the bytes of every file in a folder.
fn damaged(folder: &Path, how: usize) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += damaged(&path, how);
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        match how {
            0 => bytes.truncate(middle),
            1 => bytes[middle] ^= 0x10,
            2 => bytes.clear(),
            _ => bytes.fill(0x5a),
        }
        fs::write(&path, bytes).unwrap();
        count += 1;
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_compiled_code_and_versions_are_made_again() {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let setup = Setup::new("damaged").policy(policy("fcfs"));
    let setup = setup.policies(&format!("cache = \"{}\"", cache.display()));
    let mut process = optimised(started(setup).await).await;
    for how in 0..4 {
        let versions = process.policy().with_file_name(".versions");
        assert!(damaged(&cache, how) > 0);
        assert!(damaged(&versions, how) > 0);
        process = killed(process).await;
        assert!(answers(&process).await.starts_with("fcfs@"));
        let messages = process.messages();
        let said = |part: &str| messages.iter().any(|message| message.contains(part));
        assert!(said("compiled code is not used"), "{how}: {messages:?}");
        process = optimised(process).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_profile_of_this_machine_is_measured_again() {
    let profiles = TempDir::new().unwrap();
    for entry in fs::read_dir(&fixture().profiles).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, profiles.path().join(from.file_name().unwrap())).unwrap();
    }
    assert!(damaged(profiles.path(), 0) > 0);
    let path = profiles.path().to_owned();
    let process = blocking(move || {
        let (mut process, _) = measuring("damaged-profile", &path, 1);
        process.listening();
        process
    });
    let process = process.await;
    answers(&process).await;
    assert_eq!(
        process
            .lines("the kept profile does not fit: measuring a new one")
            .len(),
        1
    );
}

/// The reason for which a start is refused, on one line.
fn refusal(text: &str) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("switchyard.toml");
    fs::write(&file, text).unwrap();
    let output = serve_file(&file);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said.lines()
        .find(|line| line.starts_with("error: "))
        .unwrap()
        .to_owned()
}

#[test]
fn a_profile_that_was_chosen_and_is_damaged_is_named_with_the_way_out() {
    let folder = TempDir::new().unwrap();
    let profile = folder.path().join("chosen.json");
    fs::write(&profile, "{\"schema\": 2, \"made\"").unwrap();
    let setup = Setup::new("chosen").policy(policy("fcfs"));
    let setup = setup.profile(&format!("file = \"{}\"", profile.display()));
    setup.furnish(folder.path());
    let line = refusal(&setup.toml(fixture(), folder.path()));
    assert!(
        line.contains("chosen.json") && line.contains("switchyard profile"),
        "{line}"
    );
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        match from.is_dir() {
            true => copied(&from, &to),
            false => drop(fs::copy(&from, &to).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_weights_are_named_with_the_way_out_and_the_other_variants_serve() {
    let folder = TempDir::new().unwrap();
    let zoo = folder.path().join("zoo");
    copied(&fixture().zoo, &zoo);
    let weights = zoo.join(APP).join("cnn-small/weights.safetensors");
    let bytes = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
    let setup = Setup::new("weights").policy(policy("fcfs")).zoo(&zoo);
    let process = started(setup).await;
    let reason = process.lines("not loaded")[0]["reason"].to_string();
    assert!(reason.contains("cnn-small/weights.safetensors"), "{reason}");
    assert!(reason.contains("copy the file again"), "{reason}");
    let mut client = Client::connect(process.http).await;
    let answer = client.infer(beat(1)).await.json();
    assert_eq!(answer["model_version"], "resnet");
}

//! The command of `[pool.prepare]`: its placeholders filled in, run, and killed when it takes too
//! long or the server stops.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

/// Interval between two looks at a running command.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Bytes of the command's error output that a log line quotes at most.
const QUOTED_MAX: u64 = 2_048;

/// Priority of the command: serving goes first.
const NICE: i32 = 10;

/// A command whose placeholders are filled in but for app and load.
pub(super) struct Template {
    words: Vec<String>,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Exit code 0.
    Succeeded,
    /// The command could not be started, ran too long or failed; says why.
    Failed(String),
    /// The server stops.
    Stopped,
}

// === impl Template ===

impl Template {
    /// Fills in everything that does not change over the server's life.
    ///
    /// # Errors
    /// The command names `{switchyard}` and the path of this program is unknown.
    pub(super) fn try_new(
        mut words: Vec<String>,
        artifacts: &Path,
        profile: &Path,
    ) -> io::Result<Self> {
        if words.iter().any(|word| word.contains("{switchyard}")) {
            let own = std::env::current_exe()?;
            fill(&mut words, "{switchyard}", &own.to_string_lossy());
        }
        fill(&mut words, "{artifacts}", &artifacts.to_string_lossy());
        fill(&mut words, "{profile}", &profile.to_string_lossy());
        Ok(Self { words })
    }

    /// The command for one app and load.
    pub(super) fn command(&self, app: &str, zoo: &Path, load_rps: f64) -> Command {
        let mut words = self.words.clone();
        fill(&mut words, "{zoo}", &zoo.to_string_lossy());
        fill(&mut words, "{app}", app);
        fill(&mut words, "{load_rps}", &load_rps.to_string());
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        // Commands of this project compute with rayon; one thread leaves the others to serving.
        command.env("RAYON_NUM_THREADS", "1");
        command
    }
}

fn fill(words: &mut [String], placeholder: &str, value: &str) {
    for word in words {
        *word = word.replace(placeholder, value);
    }
}

/// Runs a command to its end, for `timeout` at most, or until `stopped` is disconnected. Its
/// output is dropped, apart from the end of stderr, which a failure quotes.
pub(super) fn run(command: Command, timeout: Duration, stopped: &Receiver<()>) -> Ended {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |reason: String| Ended::Failed(format!("{program}: {reason}"));
    let (mut child, mut stderr) = match start(command) {
        Ok(started) => started,
        Err(error) => return failed(error.to_string()),
    };
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ended::Succeeded,
            Ok(Some(status)) => return failed(format!("{status}: {}", end_of(&mut stderr))),
            Ok(None) if began.elapsed() < timeout => {}
            Ok(None) => {
                kill(&mut child);
                return failed(format!("killed after {} s", timeout.as_secs()));
            }
            Err(error) => {
                kill(&mut child);
                return failed(error.to_string());
            }
        }
        if stopped.recv_timeout(POLL_EVERY) == Err(RecvTimeoutError::Disconnected) {
            kill(&mut child);
            return Ended::Stopped;
        }
    }
}

/// Starts it with low priority in a process group of its own.
fn start(mut command: Command) -> io::Result<(Child, File)> {
    let stderr = tempfile::tempfile()?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr.try_clone()?);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn()?;
    #[cfg(unix)]
    if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        // A hint: the command runs as well without it.
        let _ = rustix::process::setpriority_process(Some(pid), NICE);
    }
    Ok((child, stderr))
}

/// Kills the command with the processes it has started.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    // An error means that it has ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// The end of a file as text.
fn end_of(file: &mut File) -> String {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::new();
    let _ = file
        .seek(SeekFrom::Start(length.saturating_sub(QUOTED_MAX)))
        .and_then(|_| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;

    fn shell(script: &str, timeout_ms: u64) -> Ended {
        let (_stop, stopped) = bounded(0);
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, Duration::from_millis(timeout_ms), &stopped)
    }

    #[test]
    fn a_failure_quotes_its_status_and_its_last_words() {
        assert_eq!(shell("exit 0", 10_000), Ended::Succeeded);
        let Ended::Failed(reason) = shell("echo the disk is full >&2; exit 3", 10_000) else {
            panic!("it failed");
        };
        assert_eq!(reason, "sh: exit status: 3: the disk is full");
    }

    #[test]
    fn a_missing_program_is_named() {
        let (_stop, stopped) = bounded(0);
        let ended = run(Command::new("/none/such"), Duration::from_secs(1), &stopped);
        assert!(matches!(&ended, Ended::Failed(reason) if reason.starts_with("/none/such: ")));
    }

    #[test]
    fn a_run_that_takes_too_long_is_killed_with_its_children() {
        let began = Instant::now();
        let ended = shell("sleep 60 & sleep 60", 100);
        assert_eq!(ended, Ended::Failed("sh: killed after 0 s".to_owned()));
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_run_ends_with_the_server() {
        let (stop, stopped) = bounded(0);
        drop(stop);
        let mut command = Command::new("sleep");
        command.arg("60");
        let ended = run(command, Duration::from_secs(60), &stopped);
        assert_eq!(ended, Ended::Stopped);
    }

    #[test]
    fn placeholders_are_filled_in() {
        let words = [
            "make",
            "{artifacts}/{app}",
            "{load_rps}",
            "{profile}",
            "{zoo}",
        ];
        let words = words.map(str::to_owned);
        let template =
            Template::try_new(words.to_vec(), Path::new("/p/ramsis"), Path::new("p.json"));
        let command = template.unwrap().command("heart", Path::new("zoo"), 450.0);
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["/p/ramsis/heart", "450", "p.json", "zoo"]);
    }
}

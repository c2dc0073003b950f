//! Shows commands as lines for a shell, and runs them.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Time between two looks at a command with a time limit.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The command as one line that can be pasted into a shell. Shows variables that were set, not
/// those that were removed.
pub fn line(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}={}", key.to_string_lossy(), quote(value?))));
    let words = std::iter::once(program(command))
        .chain(command.get_args())
        .map(quote);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// The program's name. Cargo, which rustup calls by a long path, is shown as `cargo`.
fn program(command: &Command) -> &OsStr {
    let program = command.get_program();
    let is_ours = env::var_os("CARGO").is_some_and(|cargo| cargo == program);
    if is_ours {
        OsStr::new("cargo")
    } else {
        program
    }
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs a command on the terminal.
///
/// # Errors
/// When it cannot be started or fails; both with the command line.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("{status}: `{}`", line(command));
    }
    Ok(())
}

/// The standard output of a command, trimmed; none when it is missing or fails.
pub fn answer(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a command without output, and kills it at a time limit. Returns whether it succeeded.
pub fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    let silent = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = silent.spawn() else {
        return false;
    };
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if started.elapsed() < limit => thread::sleep(POLL_INTERVAL),
            // The time is over, or the command cannot be waited for.
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_pasted() {
        let mut command = Command::new("cargo");
        command
            .args(["doc", "--no-deps", "it's"])
            .env("RUSTDOCFLAGS", "-D warnings");
        command.env_remove("RUSTFLAGS");
        assert_eq!(
            line(&command),
            r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s'"
        );
    }

    #[test]
    fn a_failure_names_the_command() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(error.to_string().contains("sh -c 'exit 3'"), "{error}");
    }

    #[test]
    fn a_command_that_hangs_is_killed() {
        let started = Instant::now();
        assert!(!succeeds_within(
            Command::new("sleep").arg("60"),
            Duration::from_millis(100)
        ));
        assert!(started.elapsed() < Duration::from_secs(30));
        assert!(succeeds_within(
            &mut Command::new("true"),
            Duration::from_secs(30)
        ));
    }

    #[test]
    fn a_missing_program_has_no_answer() {
        assert_eq!(answer(&mut Command::new("no-such-program-here")), None);
        assert_eq!(
            answer(Command::new("echo").arg("hello")).as_deref(),
            Some("hello")
        );
    }
}

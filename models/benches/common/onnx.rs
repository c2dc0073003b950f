//! onnxruntime from PyPI, in a process of Python.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::times::{Result, Times};

/// A script of this folder that computes with onnxruntime, as a process.
pub(crate) struct Onnx {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

// === impl Onnx ===

impl Onnx {
    /// Starts `script` with an argument, `folder`.
    pub(crate) fn start(script: &str, folder: &Path) -> Result<Self> {
        let python = python()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("benches")
            .join(script);
        let mut process = Command::new(python)
            .arg(script)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("no pipes".into());
        };
        Ok(Self {
            process,
            requests,
            answers: BufReader::new(answers),
        })
    }

    /// The answer to a request of one line.
    pub(crate) fn ask(&mut self, request: &str) -> Result<String> {
        writeln!(self.requests, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// The answer to a request for times.
    pub(crate) fn times(&mut self, request: &str) -> Result<Vec<Times>> {
        Ok(serde_json::from_str(&self.ask(request)?)?)
    }
}

impl Drop for Onnx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The interpreter of a virtual environment with onnxruntime, which is made once.
pub(crate) fn python() -> Result<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let workspace = crates.into_iter().find(|it| it.join("Cargo.lock").exists());
    let venv = workspace.ok_or("no workspace")?.join("target/engines/venv");
    let python = venv.join("bin/python");
    let works = |python: &Path| {
        let import = ["-c", "import numpy, onnx, onnxruntime"];
        let mut run = Command::new(python);
        let status = run.args(import).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !works(&python) {
        let run = |command: &mut Command| -> Result<()> {
            match command.status()?.success() {
                true => Ok(()),
                false => Err(format!("{command:?} failed").into()),
            }
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let packages = ["-m", "pip", "-q", "install", "onnxruntime", "onnx", "numpy"];
        run(Command::new(&python).args(packages))?;
    }
    Ok(python)
}

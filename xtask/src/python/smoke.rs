//! The wheel in an empty environment, from an empty folder, without Rust in `PATH`: the first steps of a user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use switchyard_kit::shell;

use crate::files::{anew, file};
use crate::package::answer;
use crate::workspace::Workspace;

const SMOKE: &str = include_str!("smoke.py");

/// Runs the notebook in the folder, and checks that it has a plot.
const NOTEBOOK: &str = include_str!("notebook.py");

/// With the wheel, the packages that the first notebook needs.
const PACKAGES: [&str; 3] = ["nbclient", "nbformat", "ipykernel"];

/// Longest time of all steps, installation included.
const LIMIT: Duration = Duration::from_secs(300);

/// Programs that a user without Rust lacks.
const RUST: [&str; 2] = ["cargo", "rustc"];

/// An installation.
struct Installed {
    bin: PathBuf,
    /// The only folder that is not empty is the environment's.
    home: PathBuf,
}

/// Installs the wheel, serves, simulates, makes a policy, and runs the demo and the first notebook. Prints the
/// time of each step.
///
/// # Errors
/// The step that fails, or all of them take too long.
pub(super) fn check(workspace: &Workspace, wheel: &Path) -> Result<()> {
    let folder = workspace.target("wheel/smoke");
    anew(&folder)?;
    let (home, venv) = (folder.join("home"), folder.join("venv"));
    fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    let examples = workspace.root.join("python/examples");
    for example in ["five_policies.ipynb", "requests.csv"] {
        file(&examples.join(example), &home.join(example))?;
    }
    let installed = Installed {
        bin: venv.join("bin"),
        home,
    };
    let began = Instant::now();
    step("pip install", || {
        shell::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let mut install = Command::new(installed.bin.join("python"));
        install.args(["-m", "pip", "install", "--quiet"]);
        install.arg("--disable-pip-version-check");
        shell::run(
            install
                .arg(format!("{}[pandas]", wheel.display()))
                .args(PACKAGES),
        )
    })?;
    installed.lacks_rust()?;
    installed.run("switchyard demo", &["switchyard", "demo", "--quick"])?;
    installed.run("first notebook", &["python", "-c", NOTEBOOK])?;
    installed.run("simulate", &["python", "-c", SMOKE])?;
    let new = ["switchyard", "policy", "new", "own", "--lang", "python"];
    installed.run("switchyard policy new", &new)?;
    let contract = installed.home.join("own/wit");
    ensure!(contract.exists(), "{}: is missing", contract.display());
    let [http, admin] = answer::free_addresses()?;
    step("switchyard serve, to the first answer", || {
        let mut server = installed.command("switchyard");
        server
            .env("SWITCHYARD_SERVER__HTTP", http.to_string())
            .env("SWITCHYARD_SERVER__ADMIN", admin.to_string());
        answer::first(server.arg("serve"), http, Instant::now())?;
        Ok(())
    })?;
    let (took, limit) = (began.elapsed(), LIMIT.as_secs());
    println!("all: {:.1} s, at most {limit}", took.as_secs_f64());
    ensure!(took <= LIMIT, "all steps took longer than {limit} s");
    Ok(())
}

/// Prints the time of a step.
fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let began = Instant::now();
    work().with_context(|| name.to_owned())?;
    println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

// === impl Installed ===

impl Installed {
    /// A program of the environment.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.home).env_clear();
        command.env("PATH", self.path()).env("HOME", &self.home);
        command
    }

    fn run(&self, name: &str, words: &[&str]) -> Result<()> {
        let (program, arguments) = words.split_first().context("a step without words")?;
        step(name, || {
            shell::run(self.command(program).args(arguments).env("NO_COLOR", "1"))
        })
    }

    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.bin.display())
    }

    fn lacks_rust(&self) -> Result<()> {
        for folder in self.path().split(':') {
            for program in RUST {
                let found = Path::new(folder).join(program);
                ensure!(!found.exists(), "{}: must not be there", found.display());
            }
        }
        Ok(())
    }
}

//! The tutorial, word by word: its files are written and its commands run, in order, in a folder
//! that looks like a clone of the repository. Only ports differ, and that everything is built.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::block::{Block, blocks};
use crate::binary::{command, policy, root};
use crate::free_address::free_address;

/// Ports that the page names.
const PORTS: [&str; 2] = ["8000", "8002"];

/// A clone of the repository with everything built, as far as a page needs it.
struct Clone {
    folder: TempDir,
    ports: [String; 2],
    /// Folder with the program, first in the path.
    bin: PathBuf,
    /// Servers that the page's `serve` started.
    servers: Vec<Child>,
    /// Standard output of the last `run`.
    printed: String,
}

impl Clone {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        symlink(root().join("models"), at("models")).unwrap();
        fs::create_dir_all(at("profiles")).unwrap();
        let reference = "profiles/reference.json";
        fs::copy(root().join(reference), at(reference)).unwrap();
        // Copies, because the page writes into their folder.
        fs::create_dir_all(at("target/policies")).unwrap();
        for entry in fs::read_dir(policy("fcfs").parent().unwrap()).unwrap() {
            let file = entry.unwrap().path();
            if file.is_file() {
                fs::copy(&file, at("target/policies").join(file.file_name().unwrap())).unwrap();
            }
        }
        let program = PathBuf::from(command().get_program());
        let ports = [(); 2].map(|()| free_address().port().to_string());
        Self {
            bin: program.parent().unwrap().to_owned(),
            folder,
            ports,
            servers: Vec::new(),
            printed: String::new(),
        }
    }

    /// Replaces the page's ports with this clone's.
    fn own(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (theirs, own) in PORTS.iter().zip(&self.ports) {
            for host in ["127.0.0.1", "localhost"] {
                text = text.replace(&format!("{host}:{theirs}"), &format!("127.0.0.1:{own}"));
            }
        }
        text
    }

    /// `bash` for a block, stopping at the first command that fails.
    fn bash(&self, script: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &self.own(script)])
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", self.bin.display()))
            // The build options of this test must not change the page's builds.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_TARGET_DIR")
            .env("RUST_LOG", "info");
        for (name, _) in std::env::vars() {
            if name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST") {
                bash.env_remove(name);
            }
        }
        bash
    }

    fn follow(&mut self, page: &str, block: &Block) {
        let at = format!("docs/{page}:{}", block.line);
        let Some(mark) = &block.mark else { return };
        let (what, about) = mark.split_once(": ").unwrap_or((mark, ""));
        match what {
            "file" => {
                let file = self.folder.path().join(about);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, self.own(&block.text)).unwrap();
            }
            "run" => {
                let output = self.bash(&block.text).output().unwrap();
                let (out, err) = (
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr),
                );
                eprintln!("{at}\n{}{out}", block.text);
                assert!(
                    output.status.success(),
                    "{at}: {}\n{out}\n{err}",
                    output.status
                );
                self.printed = out.into_owned();
            }
            "prints" => {
                let printed = &self.printed;
                assert!(
                    printed.contains(&block.text),
                    "{at}: the command printed:\n{printed}"
                );
            }
            "serve" => {
                let mut serve = self.bash(&format!("exec {}", block.text));
                let log = fs::File::create(self.folder.path().join("serve.log")).unwrap();
                // A process group of its own ends together with the processes that bash starts.
                serve.stderr(log).stdout(Stdio::null()).process_group(0);
                self.servers.push(serve.spawn().unwrap());
            }
            "card" => {}
            other => panic!("{at}: <!-- {other} --> says nothing to this test"),
        }
    }
}

impl Drop for Clone {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // It may have ended by itself; then the test says so elsewhere.
            let _ = server.kill();
            let _ = server.wait();
        }
        if std::thread::panicking()
            && let Ok(log) = fs::read_to_string(self.folder.path().join("serve.log"))
        {
            eprintln!("the server's log:\n{log}");
        }
    }
}

fn page(name: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join("docs").join(name)).unwrap();
    blocks(&text)
}

/// Building a project takes its crates from the registry, and a minute: only when asked for.
fn has_policy_new() -> bool {
    if std::env::var_os("SWITCHYARD_TUTORIAL").is_none() {
        return false;
    }
    let output = command().args(["policy", "new", "--help"]).output();
    output.unwrap().status.success()
}

#[test]
fn the_tutorial_works_word_by_word() {
    let can_make = has_policy_new();
    if !can_make {
        eprintln!("SWITCHYARD_TUTORIAL is not set: only what needs no new policy is run");
    }
    let mut clone = Clone::new();
    let mut followed = 0;
    for block in page("tutorial.md") {
        let needs_new = block
            .mark
            .as_deref()
            .is_some_and(|mark| mark.ends_with("policy new"));
        if can_make || !needs_new {
            followed += usize::from(block.mark.is_some());
            clone.follow("tutorial.md", &block);
        }
    }
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    assert_eq!(
        read(clone.folder.path().join("target/compare.svg")),
        read(root().join("docs/figures/compare.svg")),
        "docs/figures/compare.svg is not what the tutorial's command draws"
    );
    let report = clone.folder.path().join("target/report/index.html");
    assert!(
        followed >= 3 && (report.is_file() == can_make),
        "{followed} blocks"
    );
}

#[test]
fn a_profile_is_imported_as_the_page_says() {
    let mut clone = Clone::new();
    for block in page("bring-a-profile.md") {
        clone.follow("bring-a-profile.md", &block);
    }
    assert!(Path::new(&clone.folder.path().join("profiles/theirs.json")).is_file());
}

//! `switchyard manuals`: the man pages and the completions of a package. Hidden: packages have them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use super::failure::Failure;

/// Name of the program.
const NAME: &str = "switchyard";

/// The shells with completions, and the folders below `share` that they read.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/vendor-completions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Write the man pages and the completions of bash, zsh and fish
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard manuals /usr/local/share")]
pub(super) struct ManualsArgs {
    /// Folder that gets man/, bash-completion/, zsh/ and fish/
    #[arg(value_name = "SHARE")]
    share: PathBuf,
}

/// Writes the files for this command line.
pub(super) fn run(args: &ManualsArgs, mut cli: Command) -> Result<(), Failure> {
    let man = folder(&args.share, "man/man1")?;
    clap_mangen::generate_to(cli.clone(), &man).map_err(|error| failed(&man, &error))?;
    for (shell, place) in SHELLS {
        let folder = folder(&args.share, place)?;
        let written = clap_complete::generate_to(shell, &mut cli, NAME, &folder);
        let written = written.map_err(|error| failed(&folder, &error))?;
        // Bash loads completions by the name of the command.
        if shell == Shell::Bash {
            fs::rename(&written, folder.join(NAME)).map_err(|error| failed(&written, &error))?;
        }
    }
    Ok(())
}

fn folder(share: &Path, below: &str) -> Result<PathBuf, Failure> {
    let folder = share.join(below);
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    Ok(folder)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

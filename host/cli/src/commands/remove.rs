//! `switchyard remove`: serve an app or a variant no longer.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use switchyard_models::Precision;
use switchyard_models::zoo::ZooApp;
use switchyard_server::config::{AppConfig, Draft, Overrides};

use super::config_file::Changed;
use super::failure::Failure;
use super::print;
use super::running::{self, Taken};
use crate::probe::Answer;
use switchyard_simulate::shipped::config_of;

/// Serve an app or one of its variants no longer: takes it out of a configuration
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard remove detector
  switchyard remove search/minilm --delete

A server that runs with the configuration ends the requests inside and serves the others on.")]
pub(super) struct RemoveArgs {
    /// The app, or one variant of it
    #[arg(value_name = "APP[/VARIANT]")]
    name: String,
    /// Configuration that has the app
    #[arg(long, value_name = "FILE", default_value = "switchyard.toml")]
    config: PathBuf,
    /// Delete the folder of the app or variant in the zoo too
    #[arg(long)]
    delete: bool,
}

/// Changes the configuration, waits for a server that runs with it, and deletes the files.
pub(super) fn run(args: &RemoveArgs) -> Result<(), Failure> {
    let (app, variant) = match args.name.split_once('/') {
        Some((app, variant)) => (app, Some(variant)),
        None => (args.name.as_str(), None),
    };
    let config = config_of(Some(&args.config)).map_err(Failure::input)?;
    let known = config.apps.iter().find(|known| known.name == app);
    let known = known.ok_or_else(|| {
        let config = args.config.display();
        Failure::input(format!("{config}: has no app {app}"))
    })?;
    if args.delete && is_bundled(&args.config, known)? {
        return Err(Failure::input(format!(
            "--delete: {}: {app} comes with the program, for every configuration: leave out --delete, \
             `switchyard remove {}`",
            known.zoo.display(),
            args.name
        )));
    }
    let mut folder = known.zoo.join(app);
    let others = match variant {
        None => None,
        Some(variant) => {
            let served = match &known.variants {
                Some(listed) => listed.clone(),
                None => {
                    let found = ZooApp::open(&folder).map_err(Failure::input)?;
                    let names = found.variants.iter().map(|other| other.card.name.clone());
                    names.collect()
                }
            };
            let others = without(app, variant, &served)?;
            folder.push(base(variant));
            if args.delete {
                check_unread(&folder, app, variant, &others)?;
            }
            Some(others)
        }
    };
    let changed = Changed::without(&args.config, app, others.as_deref())?;
    let config = changed.write()?;
    let path = format!("/v2/models/{app}");
    let name = &args.name;
    match running::until(&config.server.http, &path, |answer| {
        is_gone(answer, variant)
    }) {
        Taken::Yes(_) => print::line(format!("removed {name}: the running server has let it go"))?,
        Taken::NoServer => print::line(format!("removed {name}"))?,
        Taken::No(address) => return Err(Failure::check(running::not_taken(&address))),
        Taken::Unknown(reason) if args.delete => {
            let kept = format!("{} is not deleted: {reason}", folder.display());
            return Err(Failure::check(kept));
        }
        Taken::Unknown(reason) => {
            print::line(format!("removed {name}"))?;
            print::note(reason);
        }
    }
    if args.delete {
        fs::remove_dir_all(&folder)
            .map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
        print::line(format!("deleted {}", folder.display()))?;
    }
    Ok(())
}

/// Whether the app comes with the program: the configuration names no zoo for it.
fn is_bundled(config: &Path, known: &AppConfig) -> Result<bool, Failure> {
    let own = Draft::read(config, &Overrides::of_environment()).map_err(Failure::input)?;
    let mut own = own.config().into_iter().flat_map(|own| &own.apps);
    Ok(own.any(|own| own.name == known.name && own.zoo != known.zoo))
}

/// The variants that stay.
fn without(app: &str, variant: &str, served: &[String]) -> Result<Vec<String>, Failure> {
    let others: Vec<String> = served
        .iter()
        .filter(|other| *other != variant)
        .cloned()
        .collect();
    if others.len() == served.len() {
        let known = served.join(", ");
        return Err(Failure::input(format!(
            "{app} has no variant {variant} that is served, it has: {known}"
        )));
    }
    if others.is_empty() {
        return Err(Failure::input(format!(
            "{app}/{variant} is the only variant: remove the app, `switchyard remove {app}`"
        )));
    }
    Ok(others)
}

/// Whether a server's answer about the app says that the app or the variant is served no longer. A GET of
/// a variant does not: each app answers to some names that no variant has.
fn is_gone(answer: &Answer, variant: Option<&str>) -> bool {
    match (answer.status, variant) {
        (404, _) => true,
        (200, Some(variant)) => {
            let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let served = said["versions"].as_array();
            served.is_some_and(|served| !served.iter().any(|other| other == variant))
        }
        _ => false,
    }
}

/// The name of a variant's folder: all precisions of a variant read the same one.
fn base(variant: &str) -> &str {
    Precision::split(variant).map_or(variant, |(base, _)| base)
}

/// Refuses to delete a folder that a variant which stays is read from.
fn check_unread(folder: &Path, app: &str, variant: &str, others: &[String]) -> Result<(), Failure> {
    match others.iter().find(|other| base(other) == base(variant)) {
        None => Ok(()),
        Some(other) => Err(Failure::input(format!(
            "--delete: {}: {app}/{other} is served from it: leave out --delete, `switchyard remove \
             {app}/{variant}`",
            folder.display()
        ))),
    }
}

//! Policies and models that come with the program, found wherever it is called: next to the program
//! of an installation (`../share/switchyard`, `../lib/switchyard`), or in the repository in which the
//! program was built.

use std::path::{Path, PathBuf};

use switchyard_core::policy::FALLBACK_NAME;
use switchyard_kit::install;
use switchyard_models::card::APP_CARD;
use switchyard_server::config::Config;

/// The zoo that an app has by default, relative to the configuration.
const ZOO_DEFAULT: &str = "models/zoo";

/// Folders that come with the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Models.
    pub zoo: PathBuf,
    /// Components.
    pub policies: PathBuf,
    /// The root of the repository, if it is one.
    pub repository: Option<PathBuf>,
}

/// Whether files may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A bundled policy is copied into the folder of policies, where it can be swapped.
    Copied,
    /// Policies are used in the bundle.
    InPlace,
}

// === impl Bundle ===

impl Bundle {
    /// That of this program.
    pub fn find() -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        Self::of(&program.canonicalize().ok()?)
    }

    /// That of a file of a Python package: of the installation's prefix, such as a virtual environment,
    /// or of the repository whose `target` has the package.
    pub fn above(file: &Path) -> Option<Self> {
        // As if a program stood there.
        let programs =
            |folder: &Path| ["bin", "target/debug"].map(|at| folder.join(at).join("switchyard"));
        let mut programs = file.ancestors().skip(1).flat_map(programs);
        programs.find_map(|program| Self::of(&program))
    }

    /// That of a program at this path.
    fn of(program: &Path) -> Option<Self> {
        let prefix = program.parent()?.parent()?;
        for folder in ["share/switchyard", "lib/switchyard"] {
            let root = prefix.join(folder);
            if root.join("zoo").is_dir() {
                return Some(Self {
                    zoo: root.join("zoo"),
                    policies: root.join("policies"),
                    repository: None,
                });
            }
        }
        let root = prefix.parent()?;
        let zoo = root.join(ZOO_DEFAULT);
        let is_repository = prefix.ends_with("target") && zoo.is_dir();
        is_repository.then(|| Self {
            zoo,
            policies: prefix.join("policies"),
            repository: Some(root.to_path_buf()),
        })
    }

    /// The profile of the machine on which the pages' figures were made.
    pub fn reference_profile(&self) -> PathBuf {
        let root = match &self.repository {
            Some(root) => root.clone(),
            None => self.zoo.with_file_name(""),
        };
        root.join("profiles/reference.json")
    }

    /// Gives a configuration the apps and policies that its own folders lack: apps that name no zoo,
    /// and policies that are given by name.
    pub fn fill(&self, config: &mut Config, how: Use) {
        for (i, app) in config.apps.iter_mut().enumerate() {
            let is_default = !config.written.has(&format!("app[{i}].zoo"));
            let has = |zoo: &Path| zoo.join(&app.name).join(APP_CARD).is_file();
            if is_default && !has(&app.zoo) && has(&self.zoo) {
                app.zoo.clone_from(&self.zoo);
            }
        }
        config.bundled_policies = Some(self.policies.clone());
        let dir = config.policies.dir.clone();
        for pool in &mut config.pools {
            let shadow = pool.shadow.as_mut().map(|shadow| &mut shadow.policy);
            for policy in shadow.into_iter().chain([&mut pool.policy]) {
                if let Some(file) = self.policy(policy, &dir, how) {
                    *policy = file.to_string_lossy().into_owned();
                }
            }
        }
    }

    /// The file of a bundled policy that is not in `dir` and cannot be copied there.
    fn policy(&self, name: &str, dir: &Path, how: Use) -> Option<PathBuf> {
        let is_name = !name.is_empty() && !name.contains('/') && !name.ends_with(".wasm");
        if !is_name || name == FALLBACK_NAME {
            return None;
        }
        let (own, bundled) = (file_in(dir, name), file_in(&self.policies, name));
        if own.exists() || !bundled.is_file() {
            return None;
        }
        if how == Use::Copied {
            match install::policy(&self.policies, name, dir) {
                Ok(()) => {
                    let from = self.policies.display();
                    tracing::info!(policy = name, %from, to = %dir.display(), "bundled policy copied");
                    return None;
                }
                Err(error) => {
                    tracing::warn!(
                        policy = name,
                        error = format!("{error:#}"),
                        "the bundled policy is served where it is: `ctl` cannot replace it"
                    );
                }
            }
        }
        Some(bundled)
    }
}

fn file_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.wasm"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    /// An installation below `root`.
    fn install(root: &Path) -> Bundle {
        for folder in ["usr/bin", "usr/share/switchyard/policies/fcfs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let share = root.join("usr/share/switchyard");
        fs::create_dir_all(share.join("zoo/heart")).unwrap();
        fs::write(share.join("zoo/heart").join(APP_CARD), "").unwrap();
        fs::write(share.join("policies/fcfs.wasm"), "component").unwrap();
        fs::write(share.join("policies/fcfs/table"), "artifact").unwrap();
        Bundle::of(&root.join("usr/bin/switchyard")).unwrap()
    }

    fn config(folder: &Path, zoo: &str) -> Config {
        let text = format!(
            "[[app]]\nname = \"heart\"\n{zoo}\n[[worker]]\nname = \"w\"\n[[pool]]\nname = \"p\"\n\
             apps = [\"heart\"]\nworkers = [\"w\"]\npolicy = \"fcfs\"\n"
        );
        Config::parse(&text, &folder.join("switchyard.toml"), folder).unwrap()
    }

    #[test]
    fn an_installed_program_has_its_files_next_to_it() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Bundle::of(&root.path().join("usr/bin/switchyard")), None);
        let bundle = install(root.path());
        assert_eq!(bundle.zoo, root.path().join("usr/share/switchyard/zoo"));
        assert_eq!(bundle.repository, None);
    }

    #[test]
    fn a_program_of_the_repository_has_the_files_of_the_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().unwrap();
        let bundle = Bundle::of(&root.join("target/release/switchyard")).unwrap();
        assert_eq!(bundle.zoo, root.join("models/zoo"));
        assert_eq!(bundle.repository, Some(root));
    }

    #[test]
    fn a_python_package_has_the_files_of_its_environment_or_of_the_repository() {
        let root = tempfile::tempdir().unwrap();
        let package = "usr/lib/python3/site-packages/switchyard/__init__.py";
        let bundle = install(root.path());
        assert_eq!(Bundle::above(&root.path().join(package)), Some(bundle));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().unwrap();
        let bundle = Bundle::above(&root.join("python/switchyard/__init__.py"));
        assert_eq!(bundle.unwrap().repository, Some(root));
    }

    #[test]
    fn missing_apps_and_policies_come_from_the_bundle() {
        let root = tempfile::tempdir().unwrap();
        let (bundle, here) = (install(root.path()), tempfile::tempdir().unwrap());
        let mut filled = config(here.path(), "");
        bundle.fill(&mut filled, Use::InPlace);
        assert_eq!(filled.apps[0].zoo, bundle.zoo);
        let in_place = file_in(&bundle.policies, "fcfs");
        assert_eq!(filled.pools[0].policy, in_place.to_string_lossy());
        assert!(!here.path().join("policies").exists());

        let mut filled = config(here.path(), "");
        bundle.fill(&mut filled, Use::Copied);
        assert_eq!(filled.pools[0].policy, "fcfs");
        let artifact = here.path().join("policies/fcfs/table");
        assert_eq!(fs::read_to_string(artifact).unwrap(), "artifact");
        // The operator's version stays.
        let own = here.path().join("policies/fcfs.wasm");
        fs::write(&own, "mine").unwrap();
        bundle.fill(&mut filled, Use::Copied);
        assert_eq!(fs::read_to_string(own).unwrap(), "mine");
    }

    #[test]
    fn a_zoo_that_is_named_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let (bundle, here) = (install(root.path()), tempfile::tempdir().unwrap());
        let mut filled = config(here.path(), "zoo = \"mine\"");
        bundle.fill(&mut filled, Use::InPlace);
        assert_eq!(filled.apps[0].zoo, here.path().join("mine"));
    }
}

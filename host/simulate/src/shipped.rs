//! The configuration of a command: the file of `--config`, otherwise one that is found, otherwise the
//! shipped one.

use std::path::{Path, PathBuf};

use switchyard_server::config::{Config, ConfigError, Draft, Overrides};

use crate::bundle::{Bundle, Use};
use crate::error::InputError;

/// The configuration at the root of the repository.
pub const SHIPPED: &str = include_str!("../../../switchyard.toml");

/// Name of [`SHIPPED`] in messages.
const SHIPPED_NAME: &str = "the shipped configuration";

/// Name of a configuration that is found.
const NAME: &str = "switchyard.toml";

/// The configuration of the system.
const SYSTEM: &str = "/etc/switchyard";

/// Reads a configuration; without a file the one that is found.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_config(file: Option<&Path>) -> Result<Config, InputError> {
    read_config_with(file, Bundle::find())
}

/// As [`read_config`], with the apps and policies of this bundle.
///
/// # Errors
/// Names the field that is wrong.
pub fn read_config_with(file: Option<&Path>, bundle: Option<Bundle>) -> Result<Config, InputError> {
    let found = file.map(Path::to_path_buf).or_else(find);
    read_exactly(found.as_deref(), bundle)
}

/// As [`read_config_with`]; without a file the shipped one, whether or not another is found.
pub(crate) fn read_exactly(
    file: Option<&Path>,
    bundle: Option<Bundle>,
) -> Result<Config, InputError> {
    let draft = draft_with(file, bundle, Use::InPlace, |_| {});
    draft.and_then(Draft::finish).map_err(InputError::new)
}

/// As [`read_config`], with the error of the configuration.
///
/// # Errors
/// Names the field that is wrong.
pub fn config_of(file: Option<&Path>) -> Result<Config, ConfigError> {
    let found = file.map(Path::to_path_buf).or_else(find);
    draft_of(found.as_deref(), Use::InPlace, |_| {})?.finish()
}

/// Reads a configuration with its mistakes, or the shipped one, and gives it the bundled apps and
/// policies that it lacks. Variables of the environment override its fields, and `options` do.
///
/// # Errors
/// The file cannot be read.
pub fn draft_of(
    file: Option<&Path>,
    how: Use,
    options: impl FnOnce(&mut Config),
) -> Result<Draft, ConfigError> {
    draft_with(file, Bundle::find(), how, options)
}

fn draft_with(
    file: Option<&Path>,
    bundle: Option<Bundle>,
    how: Use,
    options: impl FnOnce(&mut Config),
) -> Result<Draft, ConfigError> {
    let overrides = Overrides::of_environment();
    let mut draft = match file {
        Some(file) => Draft::read(file, &overrides)?,
        None => shipped(bundle.as_ref(), &overrides),
    };
    if let Some(config) = draft.config_mut() {
        options(config);
        if let Some(bundle) = bundle {
            bundle.fill(config, how);
        }
    }
    Ok(draft)
}

/// The shipped configuration on the files of the bundle. Without one its paths are relative to the
/// current folder.
fn shipped(bundle: Option<&Bundle>, overrides: &Overrides) -> Draft {
    let repository = bundle.and_then(|bundle| bundle.repository.clone());
    let folder = repository.clone().unwrap_or_default();
    let mut draft = Draft::parse(SHIPPED, Path::new(SHIPPED_NAME), &folder, overrides);
    let installed = bundle.filter(|_| repository.is_none());
    if let (Some(bundle), Some(config)) = (installed, draft.config_mut()) {
        for app in &mut config.apps {
            app.zoo.clone_from(&bundle.zoo);
        }
        // The files that a server writes do not belong into the installation.
        let own = own_folder();
        config.policies.dir = own.join("policies");
        config.policies.cache = Some(compiled_folder());
        config.profile.dir = own.join("profiles");
    }
    draft
}

/// The first of: the current folder's, the user's, the system's.
pub fn find() -> Option<PathBuf> {
    let user = folder_of("XDG_CONFIG_HOME", ".config").map(|home| home.join("switchyard"));
    let folders = [Some(PathBuf::new()), user, Some(PathBuf::from(SYSTEM))];
    first_in(folders.into_iter().flatten())
}

fn first_in(mut folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.find_map(|folder| {
        let file = folder.join(NAME);
        file.is_file().then_some(file)
    })
}

/// The folder for files that an installed program writes by itself, in the user's cache.
pub fn own_folder() -> PathBuf {
    let cache = folder_of("XDG_CACHE_HOME", ".cache");
    cache.unwrap_or_else(std::env::temp_dir).join("switchyard")
}

/// The folder for compiled code that outlives a run.
pub fn compiled_folder() -> PathBuf {
    own_folder().join("compiled")
}

/// The folder in a variable, otherwise one in the user's home.
fn folder_of(variable: &str, in_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let named = named.filter(|folder| folder.is_absolute());
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty());
    named.or_else(|| Some(PathBuf::from(home()?).join(in_home)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_first_folder_with_a_configuration_wins() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let paths = || folders.iter().map(|folder| folder.path().to_path_buf());
        assert_eq!(first_in(paths()), None);
        for at in [2, 1] {
            let file = folders[at].path().join(NAME);
            std::fs::write(&file, "").unwrap();
            assert_eq!(first_in(paths()), Some(file));
        }
    }
}

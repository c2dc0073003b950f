//! Policies on the command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use switchyard_sim::oracle::Goal;

use crate::error::InputError;
use crate::nearest::nearest;

/// Name of the native fallback.
pub const FALLBACK: &str = "edf";

/// A policy, as typed: `[NAME=]POLICY[{SETTINGS}]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name in results.
    pub name: String,
    /// Name or path of a component, [`FALLBACK`], or an oracle's ([`Goal::name`]).
    pub policy: String,
    /// Replace the settings in `NAME.toml` next to the component, field by field.
    pub settings: toml::Table,
}

// === impl Named ===

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (head, settings) = match text.split_once('{') {
            None => (text, toml::Table::new()),
            Some((head, rest)) => (head, settings_of(&format!("{{{rest}"))?),
        };
        let (name, policy) = head.split_once('=').unwrap_or((text, head));
        if name.is_empty() || policy.is_empty() {
            return Err("must be [NAME=]POLICY[{SETTINGS}]".to_owned());
        }
        Self::try_new(name.to_owned(), policy.to_owned(), settings)
    }
}

impl Named {
    /// From its parts.
    ///
    /// # Errors
    /// A native policy has no settings.
    pub fn try_new(name: String, policy: String, settings: toml::Table) -> Result<Self, String> {
        let is_native = policy == FALLBACK || oracle(&policy).is_some();
        if is_native && !settings.is_empty() {
            return Err(format!("{policy} has no settings"));
        }
        Ok(Self {
            name,
            policy,
            settings,
        })
    }

    /// The file of the component: the path itself, or the name in the folder of policies.
    ///
    /// # Errors
    /// The folder has no component of this name; the message names the most similar one.
    pub fn found_in(&self, policies: &Path) -> Result<PathBuf, InputError> {
        self.found_in_either(policies, None)
    }

    /// As [`found_in`](Self::found_in); a policy that the folder lacks may be a bundled one.
    ///
    /// # Errors
    /// As of [`found_in`](Self::found_in).
    pub fn found_in_either(
        &self,
        policies: &Path,
        bundled: Option<&Path>,
    ) -> Result<PathBuf, InputError> {
        let name = &self.policy;
        if name.ends_with(".wasm") {
            return Ok(PathBuf::from(name));
        }
        let folders = [Some(policies), bundled].into_iter().flatten();
        let mut files = folders
            .clone()
            .map(|folder| folder.join(format!("{name}.wasm")));
        if let Some(file) = files.find(|file| file.exists()) {
            return Ok(file);
        }
        let mut known: Vec<String> = folders.flat_map(components).collect();
        known.sort();
        known.dedup();
        let file = policies.join(format!("{name}.wasm"));
        let names = known.iter().map(String::as_str).chain([FALLBACK]);
        let hint = match (nearest(name, names.clone()), known.is_empty()) {
            (Some(similar), _) => format!("did you mean `{similar}`?"),
            (None, false) => format!("known are {}", names.collect::<Vec<_>>().join(", ")),
            (None, true) => "`cargo xtask plugins` builds the policies".to_owned(),
        };
        let file = file.display();
        Err(InputError::new(format!(
            "policy `{name}`: there is no {file}; {hint}"
        )))
    }
}

/// Settings as an inline table of TOML, such as `{tau = 0}`.
///
/// # Errors
/// The text is no table.
pub fn settings_of(text: &str) -> Result<toml::Table, String> {
    let table: toml::Table = toml::from_str(&format!("settings = {text}"))
        .map_err(|error| format!("settings: {}", error.message()))?;
    let settings = table.get("settings").and_then(toml::Value::as_table);
    Ok(settings.cloned().unwrap_or_default())
}

/// The oracle of this name.
pub(crate) fn oracle(policy: &str) -> Option<Goal> {
    Goal::ALL.into_iter().find(|goal| goal.name() == policy)
}

/// Names of the components in a folder, in order.
pub fn components(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut names: Vec<String> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<(String, String, usize), String> {
        let named: Named = text.parse()?;
        Ok((named.name, named.policy, named.settings.len()))
    }

    #[test]
    fn policies_as_they_are_typed() {
        let is =
            |name: &str, policy: &str, settings| Ok((name.to_owned(), policy.to_owned(), settings));
        assert_eq!(named("fcfs"), is("fcfs", "fcfs", 0));
        assert_eq!(named("mine=a/b.wasm"), is("mine", "a/b.wasm", 0));
        assert_eq!(
            named("sneakpeek{tau=0}"),
            is("sneakpeek{tau=0}", "sneakpeek", 1)
        );
        let both = r#"lo=sneakpeek{algorithm = "lo-edf", tau = 0}"#;
        assert_eq!(named(both), is("lo", "sneakpeek", 2));
        for wrong in [
            "",
            "=x",
            "x=",
            "x{",
            "x{tau}",
            "{tau=0}",
            "edf{tau=0}",
            "oracle-slo{tau=0}",
        ] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_policy_is_answered_with_the_most_similar_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let reason = |name: &str| {
            let named: Named = name.parse().expect("a policy");
            match named.found_in(folder.path()) {
                Err(reason) => reason.to_string(),
                other => panic!("{other:?}"),
            }
        };
        assert!(reason("sneakpek").ends_with("`cargo xtask plugins` builds the policies"));
        for name in ["sneakpeek.wasm", "fcfs.wasm", "fcfs.toml"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let similar = reason("sneakpek");
        assert!(similar.starts_with("policy `sneakpek`: there is no "));
        assert!(similar.ends_with("did you mean `sneakpeek`?"), "{similar}");
        assert!(reason("robin").ends_with("known are fcfs, sneakpeek, edf"));
    }
}

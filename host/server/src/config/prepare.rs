//! `[pool.prepare]`: a command that makes artifacts for the pool's policy while it serves.

use serde::Deserialize;

/// Names that a word of the command may hold in braces.
pub const PLACEHOLDERS: [&str; 6] = [
    "switchyard",
    "artifacts",
    "profile",
    "zoo",
    "app",
    "load_rps",
];

/// A command that runs when an app's load exceeds every load prepared for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table such as { command = [\"make-tables\", \"{load_rps}\"] }")]
pub struct PrepareConfig {
    /// Program and arguments. `{switchyard}` is this program, `{artifacts}` the folder of the
    /// policy's artifacts, `{profile}` the profile in use, `{app}` and `{load_rps}` the app and the
    /// load to prepare for, `{zoo}` the zoo of the app.
    ///
    /// List of strings; required; example `["make-tables", "{load_rps}"]`.
    pub command: Vec<String>,
    /// Load of one app up to which the command does not run.
    ///
    /// Number, requests/s, 0 to 1e9; default `0.0`; example `400.0`.
    #[serde(default)]
    pub above_rps: f64,
    /// Longest time of one run. A longer run is killed.
    ///
    /// Integer, s, 1 to 86400; default `600`; example `60`.
    #[serde(default = "default_timeout_s")]
    pub timeout_s: u64,
}

// === impl PrepareConfig ===

impl PrepareConfig {
    /// The first placeholder of the command that is none of [`PLACEHOLDERS`].
    pub(super) fn unknown_placeholder(&self) -> Option<&str> {
        self.command.iter().find_map(|word| {
            let mut names = word
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split('}').next());
            names.find(|name| !PLACEHOLDERS.contains(name))
        })
    }
}

fn default_timeout_s() -> u64 {
    600
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(word: &str) -> Option<String> {
        let config = PrepareConfig {
            command: vec!["make".to_owned(), word.to_owned()],
            above_rps: 0.0,
            timeout_s: 1,
        };
        config.unknown_placeholder().map(str::to_owned)
    }

    #[test]
    fn only_known_placeholders_pass() {
        assert_eq!(unknown("{artifacts}/{app}/{load_rps}"), None);
        assert_eq!(unknown("plain"), None);
        assert_eq!(unknown("--slo={slo_ms}").as_deref(), Some("slo_ms"));
    }
}

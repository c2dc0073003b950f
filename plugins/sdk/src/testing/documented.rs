//! The table of settings in a policy's README, compared with the settings.

use std::fmt::Debug;

/// Checks that a README has one row per setting, and no other, each with its default:
/// ``| `name` | `default` | meaning |`` or ``| `name` | type | `default` | range | meaning |``, with
/// `none` for a setting without one. `parse` reads the policy's JSON.
///
/// # Panics
/// A setting is missing, is unknown, or has another default.
pub fn check_documented<S: Default + PartialEq + Debug>(
    readme: &str,
    parse: impl Fn(&str) -> Result<S, String>,
) {
    // serde's error about an unknown field lists the known ones.
    let unknown = parse(r#"{"no_such_setting": 1}"#).err().unwrap_or_default();
    let mut known: Vec<&str> = unknown.split('`').skip(3).step_by(2).collect();
    let documented = rows(readme);
    let mut named: Vec<&str> = documented.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, known, "documented, and known");
    for (name, default) in documented {
        let default = if default == "none" { "null" } else { default };
        let explicit = parse(&format!(r#"{{"{name}": {default}}}"#));
        assert_eq!(explicit, Ok(S::default()), "{name} = {default}");
    }
}

/// Name and default of each row. Names in other tables have a dot or a space.
fn rows(readme: &str) -> Vec<(&str, &str)> {
    let rows = readme.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
        let name = cells.first()?.strip_suffix('`')?;
        let default = cells.get(if cells.len() < 5 { 1 } else { 2 })?;
        let default = default.trim_matches('`');
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name.then_some((name, default))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::check_documented;
    use crate::settings::parse;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Settings {
        tau: u32,
        name: Option<String>,
    }

    const GOOD: &str = "| `tau` | `0` | t |\n| `name` | none | n |\n| `queue.rs` | x | y |\n";

    const FIVE: &str =
        "| `tau` | integer | `0` | any | t |\n| `name` | string | none | any | n |\n";

    #[test]
    fn a_readme_with_all_settings_passes() {
        check_documented(GOOD, parse::<Settings>);
        check_documented(FIVE, parse::<Settings>);
    }

    #[test]
    #[should_panic(expected = "tau = 1")]
    fn another_default_fails() {
        check_documented(&GOOD.replace("`0`", "`1`"), parse::<Settings>);
    }

    #[test]
    #[should_panic(expected = "documented, and known")]
    fn a_missing_setting_fails() {
        check_documented("| `tau` | `0` | t |\n", parse::<Settings>);
    }
}

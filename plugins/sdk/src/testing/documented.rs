//! The table of settings in a policy's README, held to the settings.

use std::fmt::Debug;

/// Checks that a README has a row for every setting, and nothing else, each with its default:
/// ``| `name` | `default` | meaning |``; `none` where there is none. `parse` reads the policy's
/// JSON.
///
/// # Panics
/// A setting is missing, is no setting, or has another default.
pub fn check_documented<S: Default + PartialEq + Debug>(
    readme: &str,
    parse: impl Fn(&str) -> Result<S, String>,
) {
    // What serde says of a field that it does not know lists all that it does.
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

/// Name and default of each row; rows of other tables have names with a point or a space in them.
fn rows(readme: &str) -> Vec<(&str, &str)> {
    let rows = readme.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.strip_suffix('`')?;
        let default = cells.next()?.trim_matches('`');
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

    #[test]
    fn a_readme_that_is_right_passes() {
        check_documented(GOOD, parse::<Settings>);
    }

    #[test]
    #[should_panic(expected = "tau = 1")]
    fn another_default_does_not() {
        check_documented(&GOOD.replace("`0`", "`1`"), parse::<Settings>);
    }

    #[test]
    #[should_panic(expected = "documented, and known")]
    fn a_setting_that_is_missing_does_not() {
        check_documented("| `tau` | `0` | t |\n", parse::<Settings>);
    }
}

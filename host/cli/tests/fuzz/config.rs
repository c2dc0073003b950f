//! The configuration.

use std::path::Path;

use switchyard_server::config::Config;

use super::mutate::Form;
use super::target::{Target, seeds};

pub(crate) fn read(text: &[u8]) -> Result<(), String> {
    let text = str::from_utf8(text).map_err(|error| format!("switchyard.toml: {error}"))?;
    let parse =
        |text: &str| Config::parse(text, Path::new("switchyard.toml"), Path::new("/etc/own"));
    let config = parse(text).map_err(|error| error.to_string())?;
    let table: toml::Table = text.parse().unwrap();
    let written = toml::to_string(&table).unwrap();
    assert_eq!(parse(&written).as_ref().ok(), Some(&config), "{written}");
    Ok(())
}

#[test]
fn configurations() {
    let target = Target {
        name: "configuration",
        seeds: seeds(&["switchyard.toml", "packaging/switchyard.toml"]),
        form: Form::Text,
        executions: 500,
        accepted_min: 0.2,
        memory_max: (16 << 20, 512),
    };
    target.run(read);
}

//! Every command's help: examples, an explanation of each option, and snapshots.

use clap::{Command, CommandFactory};
use insta::assert_snapshot;

use super::Cli;

/// The command line's own tree, with the path of each command.
fn commands() -> Vec<(Vec<String>, Command)> {
    let mut cli = Cli::command();
    cli.build();
    let mut found = Vec::new();
    collect(Vec::new(), cli, &mut found);
    found
}

fn collect(path: Vec<String>, command: Command, found: &mut Vec<(Vec<String>, Command)>) {
    for sub in command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help")
    {
        let mut path = path.clone();
        path.push(sub.get_name().to_owned());
        collect(path, sub.clone(), found);
    }
    found.push((path, command));
}

#[test]
fn every_command_has_examples_of_itself() {
    for (path, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string);
        let typed = ["switchyard".to_owned()].into_iter().chain(path);
        let typed = typed.collect::<Vec<_>>().join(" ");
        let has = help.is_some_and(|help| help.contains("Examples:\n") && help.contains(&typed));
        assert!(has, "`{typed} --help` has no example");
    }
}

#[test]
fn every_option_is_explained() {
    for (path, command) in commands() {
        for argument in command
            .get_arguments()
            .filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
        {
            let explained = argument.get_help().is_some();
            assert!(explained, "{path:?}: {} has no help", argument.get_id());
        }
    }
}

#[test]
fn help_is_stable() {
    for (path, mut command) in commands() {
        let name = ["help".to_owned()].into_iter().chain(path);
        let name = name.collect::<Vec<_>>().join("_");
        assert_snapshot!(name, command.render_long_help().to_string());
    }
}

//! Which crate links which, as cargo knows it: a picture for ARCHITECTURE.md.

mod graph;
mod layers;
mod svg;

use std::collections::BTreeSet;

use anyhow::Result;

use self::graph::Graph;
use self::layers::Layers;
use crate::workspace::{Package, Workspace};

/// The picture, relative to the root.
pub(super) const PICTURE: &str = "docs/figures/crates.svg";

/// The graph without arrows that follow from others; policies with their generators are one box.
pub(super) fn picture(workspace: &Workspace) -> Result<String> {
    let graph = reduced(&graph(workspace, |package| Some(boxed(workspace, package))));
    Ok(svg::draw(&Layers::of(&graph)))
}

/// Members but for tests' guests and examples.
fn shown(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    workspace.packages().iter().filter(|package| {
        let folder = workspace.relative(package.folder());
        !folder.starts_with("tests/") && !folder.starts_with("plugins/examples/")
    })
}

/// The name of a crate's box in the picture.
fn boxed(workspace: &Workspace, package: &Package) -> String {
    let folder = workspace.relative(package.folder());
    match folder.as_str() {
        "plugins/sdk" => "plugins/sdk".to_owned(),
        inner if inner.starts_with("plugins/") => "plugins/*".to_owned(),
        _ => folder,
    }
}

fn graph(workspace: &Workspace, name: impl Fn(&Package) -> Option<String>) -> Graph {
    let packages: Vec<_> = shown(workspace).collect();
    let mut graph = Graph::new();
    for package in &packages {
        let Some(from) = name(package) else { continue };
        let links = graph.entry(from.clone()).or_default();
        let linked = packages.iter().filter(|other| package.links(&other.name));
        links.extend(
            linked
                .filter_map(|other| name(other))
                .filter(|to| *to != from),
        );
    }
    graph
}

/// Without the arrows between crates that a longer way joins too.
fn reduced(graph: &Graph) -> Graph {
    let reaches = |from: &str, to: &str| {
        let mut open: Vec<&str> = vec![from];
        let mut seen = BTreeSet::new();
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                open.extend(graph.get(at).into_iter().flatten().map(String::as_str));
            }
        }
        false
    };
    let keep = |from: &BTreeSet<String>, to: &String| {
        !from.iter().any(|other| other != to && reaches(other, to))
    };
    let rows = graph.iter().map(|(from, links)| {
        let kept = links.iter().filter(|to| keep(links, to)).cloned();
        (from.clone(), kept.collect())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph_of(arrows: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in arrows {
            graph.entry((*to).to_owned()).or_default();
            graph
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
        }
        graph
    }

    #[test]
    fn arrows_that_follow_from_others_go() {
        let graph = reduced(&graph_of(&[("a", "b"), ("b", "c"), ("a", "c")]));
        assert_eq!(graph, graph_of(&[("a", "b"), ("b", "c")]));
    }

    #[test]
    fn the_server_links_no_policy_no_trainer_and_no_simulator() {
        let workspace = Workspace::load().unwrap();
        let graph = graph(&workspace, |package| Some(boxed(&workspace, package)));
        assert!(graph["host/core"].is_empty(), "{graph:?}");
        let (mut linked, mut open) = (BTreeSet::new(), vec!["host/server"]);
        while let Some(at) = open.pop() {
            if linked.insert(at) {
                open.extend(graph[at].iter().map(String::as_str));
            }
        }
        for absent in [
            "plugins/*",
            "plugins/sdk",
            "host/sim",
            "host/cli",
            "models/training",
        ] {
            assert!(!linked.contains(absent), "{linked:?}");
        }
    }
}

//! A graph in layers: each box above all that it links, long arrows bent around boxes.

use std::collections::BTreeMap;

use super::graph::Graph;

/// Sweeps over the layers; each puts boxes nearer to their neighbours.
const SWEEPS: usize = 24;

/// Boxes and bends by layer, from the top, each in its order from the left.
pub(super) struct Layers {
    pub(super) rows: Vec<Vec<Node>>,
    /// Joints between neighbouring layers: layer, position above, position below.
    pub(super) joints: Vec<(usize, usize, usize)>,
}

/// A box, or a bend of an arrow that passes a layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Box(String),
    Bend(String, String),
}

impl Layers {
    pub(super) fn of(graph: &Graph) -> Self {
        let depth = depths(graph);
        let deepest = depth.values().copied().max().unwrap_or_default();
        let row = |name: &String| deepest - depth[name];
        let mut rows = vec![Vec::new(); deepest + 1];
        let mut arrows: Vec<(usize, Node, Node)> = Vec::new();
        for name in graph.keys() {
            rows[row(name)].push(Node::Box(name.clone()));
        }
        for (from, links) in graph {
            for to in links {
                let mut above = Node::Box(from.clone());
                let (first, last) = (row(from) + 1, row(to));
                for (i, passed) in rows[first..last].iter_mut().enumerate() {
                    let bend = Node::Bend(from.clone(), to.clone());
                    passed.push(bend.clone());
                    arrows.push((first + i - 1, above, bend.clone()));
                    above = bend;
                }
                arrows.push((row(to) - 1, above, Node::Box(to.clone())));
            }
        }
        for sweep in 0..SWEEPS {
            arrange(&mut rows, &arrows, sweep % 2 == 0);
        }
        let position = |row: usize, node: &Node| rows[row].iter().position(|other| other == node);
        let joints = arrows.iter().filter_map(|(row, above, below)| {
            Some((*row, position(*row, above)?, position(row + 1, below)?))
        });
        Self {
            joints: joints.collect(),
            rows,
        }
    }
}

/// Longest way to a crate that links nothing.
fn depths(graph: &Graph) -> BTreeMap<String, usize> {
    fn depth(name: &str, graph: &Graph, known: &mut BTreeMap<String, usize>) -> usize {
        if let Some(depth) = known.get(name) {
            return *depth;
        }
        let links = graph.get(name).into_iter().flatten();
        let deepest = links.map(|to| depth(to, graph, known) + 1).max();
        let deepest = deepest.unwrap_or_default();
        known.insert(name.to_owned(), deepest);
        deepest
    }
    let mut known = BTreeMap::new();
    for name in graph.keys() {
        depth(name, graph, &mut known);
    }
    known
}

/// Orders each row by the mean position of its neighbours in the row above, or below.
fn arrange(rows: &mut [Vec<Node>], arrows: &[(usize, Node, Node)], downwards: bool) {
    let order: Vec<usize> = match downwards {
        true => (1..rows.len()).collect(),
        false => (0..rows.len().saturating_sub(1)).rev().collect(),
    };
    for row in order {
        let other = if downwards { row - 1 } else { row + 1 };
        let middle = |node: &Node| {
            let neighbours = arrows
                .iter()
                .filter_map(|(upper, above, below)| match downwards {
                    true => (*upper == other && below == node).then_some(above),
                    false => (*upper == row && above == node).then_some(below),
                });
            let at: Vec<f64> = neighbours
                .filter_map(|node| rows[other].iter().position(|o| o == node))
                .map(|at| (at as f64 + 0.5) / rows[other].len() as f64)
                .collect();
            (!at.is_empty()).then(|| at.iter().sum::<f64>() / at.len() as f64)
        };
        let count = rows[row].len() as f64;
        let keyed = rows[row].iter().enumerate().map(|(i, node)| {
            let key = middle(node).unwrap_or((i as f64 + 0.5) / count);
            (key, node.clone())
        });
        let mut keyed: Vec<_> = keyed.collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        rows[row] = keyed.into_iter().map(|(_, node)| node).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_arrow_bends_in_each_layer_that_it_passes() {
        let arrows = [
            ("a", vec!["b", "c"]),
            ("b", vec!["d"]),
            ("d", vec!["c"]),
            ("c", vec![]),
        ];
        let graph: Graph = arrows
            .into_iter()
            .map(|(from, to)| (from.to_owned(), to.into_iter().map(str::to_owned).collect()))
            .collect();
        let layers = Layers::of(&graph);
        let sizes: Vec<_> = layers.rows.iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 2, 2, 1]);
        assert_eq!(layers.joints.len(), 6);
    }
}

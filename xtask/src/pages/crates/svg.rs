//! Layers as SVG, in the reader's light or dark theme.

use std::fmt::Write as _;

use super::layers::{Layers, Node};

const BOX_WIDTH: f64 = 150.0;
const BEND_WIDTH: f64 = 24.0;
const BOX_HEIGHT: f64 = 36.0;
const GAP: f64 = 22.0;
const ROW_HEIGHT: f64 = 92.0;
const MARGIN: f64 = 16.0;

const STYLE: &str = "\
text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
rect { fill: #f6f8fa; stroke: #8c959f; }
.host rect { fill: #ddf4ff; stroke: #54aeff; }
.models rect { fill: #dafbe1; stroke: #4ac26b; }
.plugins rect { fill: #fff8c5; stroke: #d4a72c; }
path { fill: none; stroke: #8c959f; stroke-width: 1.2; }
marker path { fill: #8c959f; stroke: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  rect { fill: #161b22; stroke: #6e7681; }
  .host rect { fill: #0c2d6b; stroke: #388bfd; }
  .models rect { fill: #033a16; stroke: #2ea043; }
  .plugins rect { fill: #341a00; stroke: #9e6a03; }
  path { stroke: #6e7681; }
  marker path { fill: #6e7681; }
}
";

/// Positions of a layer's nodes: centres, from the left.
struct Row {
    centres: Vec<f64>,
}

pub(super) fn draw(layers: &Layers) -> String {
    let width = layers.rows.iter().map(|row| width(row)).fold(0.0, f64::max) + 2.0 * MARGIN;
    let height = ROW_HEIGHT * (layers.rows.len() - 1) as f64 + BOX_HEIGHT + 2.0 * MARGIN;
    let rows: Vec<Row> = layers.rows.iter().map(|row| place(row, width)).collect();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>Crates of the workspace; an arrow points at a crate that is linked</title>\n\
         <style>\n{STYLE}</style>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>\n"
    );
    for &(row, above, below) in &layers.joints {
        let bend = |row: usize, at: usize| matches!(layers.rows[row][at], Node::Bend(..));
        let (x, y) = (rows[row].centres[above], top(row));
        let (to_x, to_y) = (rows[row + 1].centres[below], top(row + 1));
        let from_y = if bend(row, above) {
            y + BOX_HEIGHT / 2.0
        } else {
            y + BOX_HEIGHT
        };
        let is_tip = !bend(row + 1, below);
        let end_y = if is_tip {
            to_y
        } else {
            to_y + BOX_HEIGHT / 2.0
        };
        let middle = f64::midpoint(from_y, end_y);
        let tip = if is_tip {
            " marker-end=\"url(#tip)\""
        } else {
            ""
        };
        writeln!(
            text,
            "<path d=\"M{x:.0} {from_y:.0}C{x:.0} {middle:.0} {to_x:.0} {middle:.0} {to_x:.0} \
             {end_y:.0}\"{tip}/>"
        )
        .expect("a String takes every write");
    }
    for (i, row) in layers.rows.iter().enumerate() {
        for (node, centre) in row.iter().zip(&rows[i].centres) {
            if let Node::Box(name) = node {
                text += &label(name, *centre, top(i));
            }
        }
    }
    text + "</svg>\n"
}

fn label(name: &str, centre: f64, top: f64) -> String {
    let class = name.split('/').next().unwrap_or_default();
    let left = centre - BOX_WIDTH / 2.0;
    let baseline = top + BOX_HEIGHT / 2.0 + 4.5;
    format!(
        "<g class=\"{class}\"><rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{BOX_WIDTH}\" \
         height=\"{BOX_HEIGHT}\" rx=\"6\"/><text x=\"{centre:.0}\" y=\"{baseline:.0}\">{name}\
         </text></g>\n"
    )
}

fn top(row: usize) -> f64 {
    MARGIN + ROW_HEIGHT * row as f64
}

fn width_of(node: &Node) -> f64 {
    match node {
        Node::Box(_) => BOX_WIDTH,
        Node::Bend(..) => BEND_WIDTH,
    }
}

fn width(row: &[Node]) -> f64 {
    row.iter().map(width_of).sum::<f64>() + GAP * row.len().saturating_sub(1) as f64
}

/// Spreads a row over the width of the picture.
fn place(row: &[Node], total: f64) -> Row {
    let spare = (total - 2.0 * MARGIN - width(row)) / (row.len() + 1) as f64;
    let mut x = MARGIN;
    let centres = row.iter().map(|node| {
        x += spare;
        let centre = x + width_of(node) / 2.0;
        x += width_of(node) + GAP;
        centre
    });
    Row {
        centres: centres.collect(),
    }
}

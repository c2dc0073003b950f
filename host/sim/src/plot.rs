//! Plots as SVG: scales, axes, labels that keep clear of each other, and charts made of them.
//!
//! A [`Chart`] draws itself into a [`Drawing`]. The drawing becomes inline SVG for a page that
//! carries [`style`] once, or a file of its own with width, height and style. All colours are CSS
//! variables with a light and a dark value, so a plot follows the theme of its reader, also as an
//! image on GitHub. Marks have tooltips, and a drawing has a text alternative.
//!
//! ```
//! use switchyard_sim::plot::{Chart, LineChart, LinePoint, LineSeries, Scale, SeriesId, stacked};
//!
//! let served = [(1.0, 880.0), (2.0, 1_650.0), (4.0, 3_100.0)];
//! let points = served.map(|(x, y)| LinePoint::new(x, y).with_tip(format!("{y}/s")));
//! let chart = LineChart {
//!     x_title: "worker threads".to_owned(),
//!     y_title: "requests per second".to_owned(),
//!     x: Scale::linear(1.0, 4.0),
//!     y: Scale::around(served.map(|(_, y)| y), true, 4),
//!     series: vec![LineSeries::new(SeriesId(0), "switchyard", points)],
//!     ..LineChart::default()
//! };
//! let file = stacked("Throughput", &[("", &chart)]).standalone(&chart.in_words());
//! assert!(file.starts_with("<svg xmlns=") && file.contains("prefers-color-scheme: dark"));
//! ```
//!
//! This is a module of our own because no crate does all of it: `plotters` writes each colour into
//! the element, so a file has one theme; `charming` runs ECharts in V8 to make an SVG; `poloto` takes
//! CSS but places no labels, draws no tooltips, and had its last release in July 2023.
//!
//! In data order:
//! - [`Scale`], [`Tick`]: from values to positions
//! - [`Drawing`]: the elements of SVG; [`SeriesId`], [`style`]: colours and marker shapes
//! - [`Axes`]: plotting area, ticks, titles; `labels`: positions of names
//! - [`LineChart`], [`DotChart`], [`BarChart`], [`ScatterChart`]; [`stacked`]: several in one drawing

mod axes;
mod bars;
mod chart;
mod dots;
mod labels;
mod legend;
mod lines;
mod scale;
mod scatter;
mod svg;
mod theme;

pub use axes::Axes;
pub use bars::{BarChart, BarGroup, BarPart, BarRow};
pub use chart::{Chart, stacked};
pub use dots::{DotChart, DotRow};
pub use labels::{LabelPlacer, spread};
pub use legend::legend;
pub use lines::{LineChart, LinePoint, LineSeries, Reference};
pub use scale::{Scale, Tick};
pub use scatter::{ScatterChart, ScatterPoint, ScatterSeries};
pub use svg::{Anchor, Area, Drawing, inline_marker, text_width};
pub use theme::{SERIES_COLOURS, SeriesId, style};

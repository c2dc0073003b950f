//! The outcomes of a sweep, for people and for programs: as tables for a terminal, as data with
//! stable names, and as one HTML page.
//!
//! The page is one file without scripts or references to other files. Nothing here reads a clock or
//! writes a file: the caller passes the date and writes the text.
//!
//! All comparisons of policies rest on one statistic, [`PairedEffect`](crate::metrics::PairedEffect):
//! the differences between two policies, seed by seed.
//!
//! In data order:
//! - [`data`]: the contents of a report; [`catalog_data`]: apps, variants, workers;
//!   [`metric`]: the metrics it shows
//! - [`comparison`]: differences from a baseline; [`table`]: means per policy and point;
//!   [`matrix`]: differences in one matrix per metric
//! - `view`: the data by policy and point; `answer_kinds`, `palette`: exits and their colours
//! - `figure`: a plot with its caption; `sweep_plots`, `value_plots`, `tradeoff`, `latency_plots`,
//!   `answer_plots`, `batch_plots`, `gantt`: one kind of plot each
//! - `legends`, `tables`, `warnings`, `provenance`, `page`: HTML

mod answer_kinds;
mod answer_plots;
mod batch_plots;
pub mod catalog_data;
pub mod comparison;
pub mod data;
mod figure;
mod gantt;
mod latency_plots;
mod legends;
pub mod matrix;
pub mod metric;
mod page;
mod palette;
mod provenance;
mod sweep_plots;
pub mod table;
mod tables;
mod tradeoff;
mod value_plots;
mod view;
mod warnings;

pub use catalog_data::CatalogData;
pub use comparison::{Change, Comparison, Verdict};
pub use data::{Meta, PolicyMeta, ReportData, SweepAxis, TimelineData};
pub use matrix::{DIFFERENCES_NOTE, DifferenceMatrix, differences};
pub use page::{html, style as page_style};
pub use table::{ComparisonTable, comparison_table};

pub use crate::text::escape;

//! Outcomes of a sweep, for people and for programs: as a table for a terminal, as data with
//! stable names, and as one page of HTML.
//!
//! The page is one file without scripts that refers to nothing outside itself: plots are inline
//! SVG drawn here, because their colours must follow the reader's light or dark theme and their
//! marks must carry tooltips, which no plotting crate leaves to its caller. Nothing here reads a
//! clock or writes a file: the caller says the date and puts the text where it belongs.
//!
//! In data order:
//! - [`data`]: what a report is made of; [`metric`]: which metrics it shows, and how
//! - [`mod@table`]: the comparison, which the page shows too; [`comparison`]: what is a difference
//!   and what is noise
//! - `view`: the data by policy and point; `palette`: their colours
//! - `scale`, `svg`, `frame`, `labels`, `figure`: drawing; `lines`, `dots`, `tradeoff`, `cdf`, `shares`, `batches`,
//!   `gantt`: one kind of plot each
//! - `page`, `sections`: all of it in HTML

mod batches;
mod cdf;
pub mod comparison;
pub mod data;
mod dots;
mod figure;
mod frame;
mod gantt;
mod labels;
mod lines;
pub mod metric;
mod page;
mod palette;
mod scale;
mod sections;
mod shares;
mod svg;
pub mod table;
mod text;
mod tradeoff;
mod view;

pub use comparison::{Change, Comparison, Verdict};
pub use data::{Axis, Meta, ReportData, TimelineData};
pub use page::html;
pub use table::{Table, table};

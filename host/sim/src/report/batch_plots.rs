//! Sizes of batches: a histogram per policy, below each other.

use super::figure::{ReportFigure, WIDTH};
use super::view::{PolicyView, ReportView};
use crate::plot::{Anchor, Area, Drawing};
use crate::runner::PolicyOutcome;
use crate::text::brief;

/// Height of one policy's row, and of its highest column.
const ROW: f64 = 70.0;
const COLUMN: f64 = 40.0;

/// Most columns; with more sizes, each column stands for several.
const COLUMNS_MAX: usize = 32;

/// Space at either side.
const SIDE: f64 = 4.0;

/// Batches of one policy by size.
struct SizeHistogram<'a> {
    policy: &'a PolicyView<'a>,
    /// From size 1 on.
    counts: Vec<u64>,
}

/// Where the columns of all rows stand.
#[derive(Clone, Copy)]
struct ColumnLayout {
    /// Sizes per column.
    sizes: usize,
    /// Width of a column.
    pitch: f64,
}

/// The plot of one point; absent if no batch ran.
pub(super) fn plot(view: &ReportView<'_>, point: usize) -> Option<ReportFigure> {
    let rows: Vec<SizeHistogram<'_>> = view
        .policies
        .iter()
        .filter_map(|policy| SizeHistogram::new(policy, view.run(point, policy)?))
        .collect();
    let largest = rows.iter().map(|row| row.counts.len()).max()?;
    let sizes = largest.div_ceil(COLUMNS_MAX);
    let columns = largest.div_ceil(sizes);
    let pitch = ((WIDTH - 2.0 * SIDE) / columns as f64).min(48.0);
    let layout = ColumnLayout { sizes, pitch };
    let mut drawing = Drawing::new(WIDTH, ROW * rows.len() as f64 + 40.0);
    for (at, row) in (1..).zip(&rows) {
        row.draw(&mut drawing, layout, ROW * f64::from(at));
    }
    layout.draw_axis(&mut drawing, columns, ROW * rows.len() as f64);
    let title = if view.is_sweep() {
        view.points[point].name
    } else {
        "Batch sizes"
    };
    let words: Vec<String> = rows.iter().map(SizeHistogram::in_words).collect();
    let label = format!("Batches by size. {}.", words.join("; "));
    Some(ReportFigure::new(
        title,
        "share of batches by size",
        drawing.inline(&label),
    ))
}

// === impl ColumnLayout ===

impl ColumnLayout {
    /// The sizes of a column.
    fn range(self, column: usize) -> String {
        match self.sizes {
            1 => (column + 1).to_string(),
            sizes => format!("{}–{}", column * sizes + 1, (column + 1) * sizes),
        }
    }

    fn draw_axis(self, drawing: &mut Drawing, columns: usize, base: f64) {
        let every = columns.div_ceil(8);
        for column in (0..columns).filter(|column| (column + 1) % every == 0 || *column == 0) {
            let at = (SIDE + self.pitch * (column as f64 + 0.5), base + 17.0);
            drawing.text("tick", at, Anchor::Middle, &self.range(column));
        }
        let title = "requests in a batch";
        let half = crate::plot::text_width(title) / 2.0;
        let middle = (SIDE + self.pitch * columns as f64 / 2.0).max(half);
        drawing.text("title", (middle, base + 34.0), Anchor::Middle, title);
    }
}

// === impl SizeHistogram ===

impl<'a> SizeHistogram<'a> {
    fn new(policy: &'a PolicyView<'a>, run: &PolicyOutcome) -> Option<Self> {
        let mut counts = Vec::new();
        for report in &run.reports {
            let sizes = report.batches.sizes.get(1..).unwrap_or_default();
            if counts.len() < sizes.len() {
                counts.resize(sizes.len(), 0);
            }
            for (sum, count) in counts.iter_mut().zip(sizes) {
                *sum += count;
            }
        }
        (counts.iter().sum::<u64>() > 0).then_some(Self { policy, counts })
    }

    fn total(&self) -> f64 {
        self.counts.iter().sum::<u64>() as f64
    }

    fn mean(&self) -> f64 {
        let requests: u64 = (1..)
            .zip(&self.counts)
            .map(|(size, count)| size * count)
            .sum();
        requests as f64 / self.total()
    }

    /// Columns above a base line.
    fn draw(&self, drawing: &mut Drawing, layout: ColumnLayout, base: f64) {
        let columns = self
            .counts
            .chunks(layout.sizes)
            .map(|sizes| sizes.iter().sum::<u64>() as f64);
        let shares: Vec<f64> = columns.map(|count| count / self.total()).collect();
        let highest = shares.iter().copied().fold(0.0, f64::max);
        let PolicyView { id, name, label } = self.policy;
        let head = base - COLUMN - 6.0;
        drawing.group(&id.class(), |drawing| {
            drawing.marker(*id, (SIDE + 5.0, head - 4.0), 4.0, "");
            drawing.text("name", (SIDE + 15.0, head), Anchor::Start, label);
            for (at, share) in shares.iter().enumerate() {
                let height = COLUMN * share / highest;
                let (sizes, percent) = (layout.range(at), brief(100.0 * share));
                let tip = format!("{name}, {sizes}: {percent} % of batches");
                let left = SIDE + layout.pitch * at as f64 + 1.0;
                let column = Area::new(left, base - height, layout.pitch - 2.0, height);
                drawing.rect("fill", column, &tip);
            }
        });
        let (mean, highest) = (brief(self.mean()), 100.0 * highest);
        let text = format!("mean {mean}, top {highest:.0} %");
        drawing.text("tick", (WIDTH - SIDE, head), Anchor::End, &text);
        drawing.line("axis", (SIDE, base), (WIDTH - SIDE, base));
    }

    fn in_words(&self) -> String {
        let (name, largest) = (self.policy.name, self.counts.len());
        format!("{name}: mean {}, largest {largest}", brief(self.mean()))
    }
}

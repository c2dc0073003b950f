//! How large batches were: columns by size, a row per policy.

use super::figure::{Figure, WIDTH};
use super::palette::policy_class;
use super::svg::{Anchor, Svg};
use super::text::{brief, shortened};
use super::view::View;
use crate::runner::Outcome;

/// Height of one policy's row, of which columns take `COLUMN` at most.
const ROW: f64 = 70.0;
const COLUMN: f64 = 40.0;

/// Columns at most; sizes share them where there are more.
const COLUMNS_MAX: usize = 32;

/// Batches by size.
struct Sizes {
    policy: usize,
    /// From size 1 on.
    counts: Vec<u64>,
}

/// The plot of one point, where anything ran.
pub(super) fn plot(view: &View<'_>, point: usize) -> Option<Figure> {
    let rows: Vec<Sizes> = (0..view.policies.len())
        .filter_map(|policy| Sizes::new(policy, view.run(point, policy)?))
        .collect();
    let largest = rows.iter().map(|row| row.counts.len()).max()?;
    let step = largest.div_ceil(COLUMNS_MAX);
    let columns = largest.div_ceil(step);
    let mut svg = Svg::new(WIDTH, ROW * rows.len() as f64 + 40.0);
    let (left, width) = (4.0, WIDTH - 8.0);
    let pitch = (width / columns as f64).min(48.0);
    for (at, row) in rows.iter().enumerate() {
        row.draw(&mut svg, view, [left, ROW * (at as f64 + 1.0), pitch], step);
    }
    let y = ROW * rows.len() as f64 + 17.0;
    let every = columns.div_ceil(8);
    for column in (0..columns).filter(|column| (column + 1) % every == 0 || *column == 0) {
        let x = left + pitch * (column as f64 + 0.5);
        svg.text("tick", (x, y), Anchor::Middle, &range(column, step));
    }
    let middle = left + pitch * columns as f64 / 2.0;
    svg.text(
        "title",
        (middle, y + 17.0),
        Anchor::Middle,
        "requests in a batch",
    );
    let title = if view.is_sweep() {
        view.points[point].name
    } else {
        "Batch sizes"
    };
    let words: Vec<String> = rows.iter().map(|row| row.in_words(view)).collect();
    let label = format!("Batches by size. {}.", words.join("; "));
    Some(Figure::new(
        title,
        "share of batches by size",
        svg.finish(&label),
    ))
}

fn range(column: usize, step: usize) -> String {
    match step {
        1 => (column + 1).to_string(),
        _ => format!("{}–{}", column * step + 1, (column + 1) * step),
    }
}

// === impl Sizes ===

impl Sizes {
    fn new(policy: usize, run: &Outcome) -> Option<Self> {
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

    /// Columns from a base line up, as wide as `pitch` allows.
    fn draw(&self, svg: &mut Svg, view: &View<'_>, [left, base, pitch]: [f64; 3], step: usize) {
        let columns = self
            .counts
            .chunks(step)
            .map(|sizes| sizes.iter().sum::<u64>() as f64);
        let shares: Vec<f64> = columns.map(|count| count / self.total()).collect();
        let highest = shares.iter().copied().fold(0.0, f64::max);
        let name = view.policies[self.policy];
        svg.open(&policy_class(self.policy));
        let head = base - COLUMN - 6.0;
        svg.marker(self.policy, (left + 5.0, head - 4.0), 4.0, "");
        svg.text(
            "name",
            (left + 15.0, head),
            Anchor::Start,
            &shortened(name, 28),
        );
        for (at, share) in shares.iter().enumerate() {
            let height = COLUMN * share / highest;
            let title = format!(
                "{name}, {}: {} % of batches",
                range(at, step),
                brief(100.0 * share)
            );
            let x = left + pitch * at as f64 + 1.0;
            svg.rect("fill", [x, base - height, pitch - 2.0, height], &title);
        }
        svg.close();
        let told = format!("mean {}, top {:.0} %", brief(self.mean()), 100.0 * highest);
        svg.text("tick", (WIDTH - 4.0, head), Anchor::End, &told);
        svg.line("axis", (left, base), (WIDTH - 4.0, base));
    }

    fn in_words(&self, view: &View<'_>) -> String {
        let name = view.policies[self.policy];
        let largest = self.counts.len();
        format!("{name}: mean {}, largest {largest}", brief(self.mean()))
    }
}

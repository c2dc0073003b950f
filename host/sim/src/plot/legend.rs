//! Names of series with their markers, in rows.

use super::svg::{Anchor, Area, Drawing, text_width};
use super::theme::SeriesId;

/// Height of a row.
const ROW: f64 = 18.0;

/// From the start of a name to its marker, and between two names.
const MARKER: f64 = 16.0;
const GAP: f64 = 16.0;

/// Draws the legend in rows of the area's width and returns the height that it takes.
pub fn legend(drawing: &mut Drawing, series: &[(SeriesId, &str)], area: Area) -> f64 {
    for (id, name, (x, y)) in positions(series, area) {
        drawing.group(&id.class(), |drawing| {
            drawing.marker(id, (x + 5.0, y - 4.0), 4.0, "");
            drawing.text("name", (x + MARKER, y), Anchor::Start, name);
        });
    }
    height(series, area.width)
}

/// The height that a legend takes at a width.
pub(super) fn height(series: &[(SeriesId, &str)], width: f64) -> f64 {
    let area = Area::new(0.0, 0.0, width, 0.0);
    let last = positions(series, area).last();
    last.map_or(0.0, |(.., (_, y))| y + 6.0)
}

fn positions<'a>(
    series: &'a [(SeriesId, &'a str)],
    area: Area,
) -> impl Iterator<Item = (SeriesId, &'a str, (f64, f64))> {
    let (mut x, mut y) = (area.left, area.top + 12.0);
    series.iter().map(move |&(id, name)| {
        let width = MARKER + text_width(name);
        if x > area.left && x + width > area.right() {
            (x, y) = (area.left, y + ROW);
        }
        let at = (x, y);
        x += width + GAP;
        (id, name, at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_begin_a_row() {
        let series = [
            (SeriesId(0), "one"),
            (SeriesId(1), "two"),
            (SeriesId(2), "three"),
        ];
        assert_eq!(height(&series, 400.0), 18.0);
        assert_eq!(height(&series, 110.0), 36.0);
        assert_eq!(height(&[], 110.0), 0.0);
    }
}

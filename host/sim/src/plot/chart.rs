//! Charts that fill an area, and several of them in one drawing.

use super::svg::{Anchor, Area, Drawing};

/// Width of a drawing with a heading of its own.
const WIDTH: f64 = 720.0;

/// Around everything in such a drawing.
const MARGIN: f64 = 16.0;

/// Height of the heading, and of the name of a panel.
const HEADING: f64 = 30.0;
const PANEL_NAME: f64 = 22.0;

/// Space between two panels.
const BETWEEN: f64 = 14.0;

/// A plot that can be drawn into any area.
pub trait Chart {
    /// The height that suits a width, in units of the drawing.
    fn height(&self, width: f64) -> f64;

    /// Draws all of it into an area.
    fn draw(&self, drawing: &mut Drawing, area: Area);

    /// The values as text, for readers who do not see the drawing.
    fn in_words(&self) -> String;

    /// The chart alone, at this width.
    fn drawing(&self, width: f64) -> Drawing {
        let mut drawing = Drawing::new(width, self.height(width));
        let area = drawing.area();
        self.draw(&mut drawing, area);
        drawing
    }
}

/// Named charts below each other under a heading; an empty name or heading takes no room.
pub fn stacked(heading: &str, panels: &[(&str, &dyn Chart)]) -> Drawing {
    let width = WIDTH - 2.0 * MARGIN;
    let room = |text: &str, height: f64| if text.is_empty() { 0.0 } else { height };
    let panel = |(name, chart): &(&str, &dyn Chart)| room(name, PANEL_NAME) + chart.height(width);
    let between = BETWEEN * panels.len().saturating_sub(1) as f64;
    let body: f64 = panels.iter().map(panel).sum();
    let top = MARGIN + room(heading, HEADING);
    let mut drawing = Drawing::new(WIDTH, top + body + between + MARGIN);
    if !heading.is_empty() {
        drawing.text("heading", (MARGIN, MARGIN + 13.0), Anchor::Start, heading);
    }
    let mut y = top;
    for (name, chart) in panels {
        if !name.is_empty() {
            drawing.text("panel", (MARGIN, y + 12.0), Anchor::Start, name);
            y += PANEL_NAME;
        }
        let area = Area::new(MARGIN, y, width, chart.height(width));
        chart.draw(&mut drawing, area);
        y = area.bottom() + BETWEEN;
    }
    drawing
}

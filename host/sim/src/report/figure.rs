//! A plot with its caption.

use crate::plot::{SeriesId, inline_marker};
use crate::text::escape;

/// Width of most drawings, in units. A phone shows them 340 pixels wide, with text of 10 pixels.
pub(super) const WIDTH: f64 = 400.0;

/// A plot with its caption.
pub(super) struct ReportFigure {
    pub(super) title: String,
    /// Definition of the values.
    pub(super) note: String,
    /// The drawing.
    pub(super) svg: String,
    /// The policy, if all of it is about one.
    pub(super) policy: Option<SeriesId>,
    /// It takes the whole width of the page, and scrolls on narrow screens.
    pub(super) is_wide: bool,
}

// === impl ReportFigure ===

impl ReportFigure {
    pub(super) fn new(title: &str, note: &str, svg: String) -> Self {
        Self {
            title: title.to_owned(),
            note: note.to_owned(),
            svg,
            policy: None,
            is_wide: false,
        }
    }

    pub(super) fn html(&self) -> String {
        let (title, note, svg) = (escape(&self.title), escape(&self.note), &self.svg);
        let mark = self.policy.map_or(String::new(), inline_marker);
        let head = format!("<figcaption><b>{mark}{title}</b> {note}</figcaption>");
        match self.is_wide {
            false => format!("<figure>{head}{svg}</figure>\n"),
            true => format!(
                "<figure class=\"wide\">{head}<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
                 aria-label=\"{title}\">{svg}</div></figure>\n"
            ),
        }
    }
}

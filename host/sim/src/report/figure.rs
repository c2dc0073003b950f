//! A plot with its heading.

use super::svg::inline_marker;
use super::text::escape;

/// Width and height of most drawings. Text is 12 units high, so that it can still be read on a
/// phone, where a drawing is 340 pixels wide.
pub(super) const WIDTH: f64 = 400.0;
pub(super) const HEIGHT: f64 = 270.0;

/// A plot with its heading.
pub(super) struct Figure {
    pub(super) title: String,
    /// What exactly is shown.
    pub(super) note: String,
    /// The drawing.
    pub(super) svg: String,
    /// The policy that all of it is about.
    pub(super) policy: Option<usize>,
    /// It takes a line of the page for itself, and is scrolled where that is too narrow.
    pub(super) is_wide: bool,
}

// === impl Figure ===

impl Figure {
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

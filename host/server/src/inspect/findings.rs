//! The mistakes of a configuration as they are found.

use crate::config::{Config, Draft};

/// Mistakes as they are found.
pub(super) struct Findings<'a> {
    pub(super) draft: &'a Draft,
    pub(super) config: &'a Config,
    pub(super) mistakes: Vec<String>,
}

// === impl Findings ===

impl<'a> Findings<'a> {
    pub(super) fn new(draft: &'a Draft, config: &'a Config) -> Self {
        Self {
            draft,
            config,
            mistakes: Vec::new(),
        }
    }

    /// Notes a mistake about a field, unless the field has one already.
    pub(super) fn refuse(&mut self, field: &str, reason: &str) {
        if !self.draft.is_replaced(field) {
            let origin = self.config.written.origin(field);
            self.mistakes.push(format!("{origin}: {field}: {reason}"));
        }
    }

    /// Notes an error that names its field, unless it is there already.
    pub(super) fn note(&mut self, mistake: String) {
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }
}

//! Events of one policy file.

use std::path::Path;

use switchyard_policy::files::{WatchError, WatchOptions};
use switchyard_policy::{PolicyFileEvent, PolicyWatcher};

/// Watches a policy's folder and reports the events of its file.
pub(crate) fn watch_file(
    file: &Path,
    report: impl Fn(PolicyFileEvent) + Send + 'static,
) -> Result<PolicyWatcher, WatchError> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = file.file_name().map(ToOwned::to_owned);
    PolicyWatcher::start(folder, &WatchOptions::default(), move |event| {
        let (PolicyFileEvent::Changed(path) | PolicyFileEvent::Removed(path)) = &event;
        if path.file_name() == name.as_deref() {
            report(event);
        }
    })
}

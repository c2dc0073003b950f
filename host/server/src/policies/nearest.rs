//! The policy in a folder whose name is most like that of a missing one.

use std::path::Path;

use crate::config::closest;

/// The name of a `.wasm` file next to `missing` that is similar to it.
pub(super) fn nearest(missing: &Path) -> Option<String> {
    nearest_in(missing, &[missing.parent()?])
}

/// The end of a message about a missing file: the most similar name next to it and in another folder.
pub(crate) fn hint(missing: &Path, other: Option<&Path>) -> String {
    let folders: Vec<&Path> = missing.parent().into_iter().chain(other).collect();
    match nearest_in(missing, &folders) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

fn nearest_in(missing: &Path, folders: &[&Path]) -> Option<String> {
    let wanted = missing.file_stem()?.to_str()?;
    let entries = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok());
    let names = entries.flatten().flatten().filter_map(|entry| {
        let path = entry.path();
        let is_policy = path
            .extension()
            .is_some_and(|extension| extension == "wasm");
        let name = path.file_stem()?.to_str()?.to_owned();
        is_policy.then_some(name)
    });
    let names: Vec<String> = names.collect();
    closest(wanted, names.iter().map(String::as_str)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_nearest_policy_of_the_folder_is_suggested() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["sneakpeek.wasm", "stability.wasm", "sneakpek.toml"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let missing = |name: &str| nearest(&dir.path().join(name));
        assert_eq!(missing("sneakpek.wasm"), Some("sneakpeek".to_owned()));
        assert_eq!(missing("roundrobin.wasm"), None);
        assert_eq!(nearest(Path::new("/nowhere/at/all.wasm")), None);
    }
}

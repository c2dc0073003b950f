//! Names of classes in a `config.json`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::ModelError;

/// The names of `id2label`, by number.
///
/// # Errors
/// The numbers are not 0, 1, 2 and so on.
pub(super) fn labels(
    config: &Path,
    id2label: &BTreeMap<String, String>,
) -> Result<Vec<String>, ModelError> {
    let name = |number: usize| {
        let name = id2label.get(&number.to_string()).cloned();
        name.ok_or_else(|| {
            let reason = format!("has {} names, and none for class {number}", id2label.len());
            ModelError::field(config, "id2label", reason)
        })
    };
    (0..id2label.len()).map(name).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_are_ordered_by_number_and_none_is_missing() {
        let names = |numbers: &[usize]| {
            let named = numbers
                .iter()
                .map(|n| (n.to_string(), format!("class {n}")));
            labels(Path::new("config.json"), &named.collect())
        };
        let ten: Vec<usize> = (0..11).collect();
        assert_eq!(names(&ten).unwrap()[9..], ["class 9", "class 10"]);
        let text = names(&[0, 2]).unwrap_err().to_string();
        assert!(
            text.contains("`id2label`") && text.contains("class 1"),
            "{text}"
        );
    }
}

//! The known name that a mistyped one is most like.

/// Similarity (Jaro-Winkler) from which a name is suggested.
const SIMILAR: f64 = 0.8;

/// The known name most like `wanted`, if one is similar.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let similar = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(similarity, _)| *similarity >= SIMILAR);
    similar
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let known = ["fcfs", "mael", "sneakpeek", "stability"];
        assert_eq!(nearest("sneakpek", known), Some("sneakpeek"));
        assert_eq!(nearest("stability-2", known), Some("stability"));
        assert_eq!(nearest("roundrobin", known), None);
    }
}

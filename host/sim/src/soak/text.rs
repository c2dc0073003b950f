//! A case as source text.

use std::fmt::Write;

use super::case::SoakCase;
use super::violation::Violation;

/// The names in a case.
const IMPORTS: &str = "    use switchyard_core::catalog::Late::*;
    #[allow(unused_imports)] // Not every case has all of them.
    use switchyard_sim::soak::{CatalogChange::*, Ending::*, PolicyKind::*, SoakStep::*};
    use switchyard_sim::soak::{SoakCase, SoakPool};
";

impl SoakCase {
    /// The case as a test, for `host/sim/tests/behaviour/soak.rs`.
    pub fn as_test(&self, violation: &Violation) -> String {
        let seed = self.pool.seed;
        let mut text = format!(
            "/// {violation}\n#[test]\n#[rustfmt::skip]\nfn seed_{seed}() {{\n\
             {IMPORTS}    let case = SoakCase {{\n        pool: {:?},\n        steps: vec![\n",
            self.pool
        );
        for step in &self.steps {
            // Writing into a text cannot fail.
            let _ = writeln!(text, "            {step:?},");
        }
        text.push_str("        ],\n    };\n    assert_eq!(case.check(), Ok(()));\n}\n");
        text
    }
}

/// Positions as ranges, such as `3,7-9`.
pub(super) fn ranges(positions: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &at in positions {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == at => *end = at,
            _ => parts.push((at, at)),
        }
    }
    let parts = parts.into_iter().map(|(from, to)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_a_row_are_a_range() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[4]), "4");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }
}

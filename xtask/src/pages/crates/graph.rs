//! Crates and their links.

use std::collections::{BTreeMap, BTreeSet};

/// Crates by name, with the local crates that they link.
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

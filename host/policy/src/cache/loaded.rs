//! Compiled components that stay in memory. Reading the code of a component in Python from a folder takes tens
//! of milliseconds, once for each run of a simulation.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::Component;

use crate::history::ContentHash;

/// The components that were used last, of one engine. Clones hold the same ones.
#[derive(Clone)]
pub struct LoadedCode(Arc<Mutex<Recent>>);

struct Recent {
    most: usize,
    /// The one that was used last is the last one.
    components: VecDeque<(ContentHash, Component)>,
}

// === impl LoadedCode ===

impl LoadedCode {
    /// Holds at most this number of components, each with the memory of its code.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Recent {
            most,
            components: VecDeque::new(),
        })))
    }

    pub(crate) fn find(&self, code: ContentHash) -> Option<Component> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = recent.components.iter();
        let at = known.position(|(known, _)| *known == code)?;
        let found = recent.components.remove(at)?;
        let component = found.1.clone();
        recent.components.push_back(found);
        Some(component)
    }

    pub(crate) fn keep(&self, code: ContentHash, component: &Component) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recent.components.retain(|(known, _)| *known != code);
        recent.components.push_back((code, component.clone()));
        while recent.components.len() > recent.most {
            recent.components.pop_front();
        }
    }
}

impl fmt::Debug for LoadedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let codes = recent.components.iter().map(|(code, _)| code);
        f.debug_list().entries(codes).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_component_that_was_used_longest_ago_is_dropped_first() {
        let engine = wasmtime::Engine::default();
        let component = Component::from_binary(&engine, b"\0asm\x0d\0\x01\0").unwrap();
        let codes = [b"a", b"b", b"c"].map(|content| ContentHash::of(&[content]));
        let loaded = LoadedCode::new(2);
        loaded.keep(codes[0], &component);
        loaded.keep(codes[1], &component);
        assert!(loaded.find(codes[0]).is_some());
        loaded.keep(codes[2], &component);
        let held = codes.map(|code| loaded.find(code).is_some());
        assert_eq!(held, [true, false, true]);
    }
}

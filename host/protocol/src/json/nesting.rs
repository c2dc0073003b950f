//! Nested arrays must be regular: at each level all of the same length, with elements at one level only.
//!
//! Only brackets are looked at, so that flat data costs nothing per element.

use std::fmt;

use smallvec::SmallVec;

/// Follows the brackets of an array of arrays.
#[derive(Default)]
pub(super) struct Nesting {
    /// The arrays that are open, and the lengths of closed ones.
    levels: SmallVec<[Level; 8]>,
    depth: usize,
    /// Level of the elements, once one was read.
    elements_at: Option<usize>,
    /// Elements read before the last bracket.
    counted: usize,
}

#[derive(Clone, Copy, Default)]
struct Level {
    /// Entries of the array that is open.
    entries: usize,
    /// Entries of those that are closed.
    length: Option<usize>,
}

/// Why nested data is not a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ragged {
    /// Two arrays of one level differ.
    Lengths(usize, usize),
    /// An array is next to elements, or elements are at two levels.
    Mixed,
}

// === impl Nesting ===

impl Nesting {
    /// Arrays that are open.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// An array opens, after `found` elements of all levels.
    pub(super) fn open(&mut self, found: usize) -> Result<(), Ragged> {
        self.count(found)?;
        if self.elements_at.is_some_and(|level| self.depth >= level) {
            return Err(Ragged::Mixed);
        }
        if let Some(outer) = self.depth.checked_sub(1) {
            self.levels[outer].entries += 1;
        }
        match self.levels.get_mut(self.depth) {
            Some(level) => level.entries = 0,
            None => self.levels.push(Level::default()),
        }
        self.depth += 1;
        Ok(())
    }

    /// The innermost array closes, after `found` elements of all levels.
    pub(super) fn close(&mut self, found: usize) -> Result<(), Ragged> {
        self.count(found)?;
        // An array that was never opened: the caller's parser refuses it.
        let Some(inner) = self.depth.checked_sub(1) else {
            return Ok(());
        };
        self.depth = inner;
        let Level { entries, length } = self.levels[inner];
        match length {
            Some(length) if length != entries => Err(Ragged::Lengths(length, entries)),
            _ => {
                self.levels[inner].length = Some(entries);
                Ok(())
            }
        }
    }

    /// Counts the elements since the last bracket.
    fn count(&mut self, found: usize) -> Result<(), Ragged> {
        let new = found - self.counted;
        self.counted = found;
        if new == 0 {
            return Ok(());
        }
        if *self.elements_at.get_or_insert(self.depth) != self.depth {
            return Err(Ragged::Mixed);
        }
        if let Some(level) = self.depth.checked_sub(1) {
            self.levels[level].entries += new;
            // An empty array of this level has shown that it holds arrays or nothing.
            if self.levels.len() > self.depth {
                return Err(Ragged::Mixed);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Ragged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths(one, other) => write!(
                f,
                "ragged: arrays of one level have {one} and {other} entries; send arrays of equal \
                 length, or the elements without inner arrays"
            ),
            Self::Mixed => f.write_str(
                "ragged: elements and arrays stand on one level; send arrays of equal length, or \
                 the elements without inner arrays",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text of brackets, in which each `x` is an element.
    fn read(text: &str) -> Result<(), Ragged> {
        let (mut nesting, mut found) = (Nesting::default(), 0);
        for c in text.chars() {
            match c {
                '[' => nesting.open(found)?,
                ']' => nesting.close(found)?,
                _ => found += 1,
            }
        }
        assert_eq!(nesting.depth(), 0);
        Ok(())
    }

    #[test]
    fn regular_arrays_are_accepted() {
        for text in [
            "[]",
            "[xxx]",
            "[[xx][xx][xx]]",
            "[[[x][x]][[x][x]]]",
            "[[][]]",
        ] {
            assert_eq!(read(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn irregular_arrays_are_refused() {
        for (text, reason) in [
            ("[[xxx][x]]", Ragged::Lengths(3, 1)),
            ("[[[x][x]][[x]]]", Ragged::Lengths(2, 1)),
            ("[[xx][]]", Ragged::Lengths(2, 0)),
            ("[[][x]]", Ragged::Lengths(0, 1)),
            ("[[x]x]", Ragged::Mixed),
            ("[x[x]]", Ragged::Mixed),
            ("[[x][[x]]]", Ragged::Mixed),
            ("[[[x]][x]]", Ragged::Mixed),
            ("[[[]][x]]", Ragged::Mixed),
        ] {
            assert_eq!(read(text), Err(reason), "{text}");
        }
    }
}

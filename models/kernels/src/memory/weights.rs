//! Memory of weights, in large pages where the system has them.
//!
//! A layer of few rows reads every weight once and computes little with it. In pages of 4 KiB the core looks up
//! an address, and stops fetching ahead, 512 times as often as in pages of 2 MiB.

use std::ops::{Deref, DerefMut};

use super::region::Part;
use super::scratch::Aligned;

/// Fewer bytes are allocated on their own, so that small models take no large page.
const SHARED_MIN: usize = 256 << 10;

/// Values of one layer, which start at a cache line.
#[derive(Debug)]
pub(crate) struct Weights<T: Copy + Default = f32>(Place<T>);

#[derive(Debug)]
enum Place<T: Copy + Default> {
    Own(Aligned<T>),
    Shared(Part<T>),
}

// === impl Weights ===

impl<T: Copy + Default> Weights<T> {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let is_small = len.saturating_mul(size_of::<T>()) < SHARED_MIN;
        let shared = (!is_small).then(|| Part::zeros(len)).flatten();
        Self(shared.map_or_else(|| Place::Own(Aligned::zeros(len)), Place::Shared))
    }
}

impl<T: Copy + Default> Deref for Weights<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Place::Own(values) => values,
            Place::Shared(part) => part.values(),
        }
    }
}

impl<T: Copy + Default> DerefMut for Weights<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Place::Own(values) => values,
            Place::Shared(part) => part.values_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::LINE;
    use super::*;

    const MANY: usize = SHARED_MIN / 4;

    #[test]
    fn layers_have_memory_of_their_own() {
        let mut layers: Vec<Weights> = (1..40).map(|i| Weights::zeros(i * MANY / 4)).collect();
        for (i, layer) in layers.iter_mut().enumerate() {
            assert!(layer.iter().all(|&value| value == 0.0));
            assert_eq!(layer.as_ptr().align_offset(LINE), 0);
            layer.fill(i as f32);
        }
        // Every other one is dropped; the rest keeps its values, and new ones are zeros.
        let kept: Vec<Weights> = layers.into_iter().step_by(2).collect();
        let new: Vec<Weights> = (1..9).map(|i| Weights::zeros(i * MANY)).collect();
        for (i, layer) in kept.iter().enumerate() {
            assert_eq!(layer.len(), (2 * i + 1) * MANY / 4);
            assert!(layer.iter().all(|&value| value == (2 * i) as f32));
        }
        assert!(
            new.iter()
                .flat_map(|layer| layer.iter())
                .all(|&value| value == 0.0)
        );
    }

    #[test]
    fn small_layers_take_no_large_page() {
        let is_shared = |len| matches!(Weights::<f32>::zeros(len).0, Place::Shared(_));
        assert!(!is_shared(MANY - 1));
        assert!(is_shared(MANY));
    }
}

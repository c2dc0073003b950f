//! Numbers of a request on their way into a batch.

use std::sync::Arc;

use bytemuck::Pod;
use bytes::Bytes;

/// The numbers of one input of one request, shared by its clones. Large inputs stay in the request's
/// body until they are written into their batch, so that they are copied once.
#[derive(Clone, Debug)]
pub struct Values<T>(ValueStorage<T>);

#[derive(Clone, Debug)]
enum ValueStorage<T> {
    Numbers(Arc<Vec<T>>),
    /// Little-endian, at any address, a multiple of the size of `T`.
    Wire(Bytes),
}

/// Numbers as their bytes; every supported machine is little-endian.
struct AsBytes<T>(Arc<Vec<T>>);

impl<T: Pod> AsRef<[u8]> for AsBytes<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// A number of a tensor, little-endian on the wire.
pub trait Number: Pod + Send + Sync {
    /// Appends little-endian numbers; bytes of an incomplete last number are left out.
    fn append(wire: &[u8], onto: &mut Vec<Self>);

    /// Writes numbers until either side ends.
    fn copy(wire: &[u8], onto: &mut [Self]);
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Number for $number {
            fn append(wire: &[u8], onto: &mut Vec<Self>) {
                let (words, _) = wire.as_chunks();
                onto.extend(words.iter().map(|word| Self::from_le_bytes(*word)));
            }

            fn copy(wire: &[u8], onto: &mut [Self]) {
                let (words, _) = wire.as_chunks();
                for (to, word) in onto.iter_mut().zip(words) {
                    *to = Self::from_le_bytes(*word);
                }
            }
        }
    )*};
}

number!(f32, i64, u8);

// === impl Values ===

impl<T: Number> Values<T> {
    /// Little-endian numbers of a body; `None` if the last one is incomplete.
    pub fn wire(bytes: Bytes) -> Option<Self> {
        let whole = bytes.len().is_multiple_of(size_of::<T>());
        whole.then_some(Self(ValueStorage::Wire(bytes)))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match &self.0 {
            ValueStorage::Numbers(numbers) => numbers.len(),
            ValueStorage::Wire(bytes) => bytes.len() / size_of::<T>(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As little-endian bytes, without a copy.
    pub fn to_wire(&self) -> Bytes {
        match &self.0 {
            ValueStorage::Numbers(numbers) => Bytes::from_owner(AsBytes(Arc::clone(numbers))),
            ValueStorage::Wire(bytes) => bytes.clone(),
        }
    }

    /// Appends them to a batch.
    pub fn append_to(&self, batch: &mut Vec<T>) {
        match &self.0 {
            ValueStorage::Numbers(numbers) => batch.extend_from_slice(numbers),
            ValueStorage::Wire(bytes) => T::append(bytes, batch),
        }
    }

    /// Writes them to a slice of [`len`](Self::len) numbers.
    ///
    /// # Panics
    /// The slice has another length.
    pub fn copy_to(&self, slice: &mut [T]) {
        assert_eq!(slice.len(), self.len(), "a slice of another length");
        match &self.0 {
            ValueStorage::Numbers(numbers) => slice.copy_from_slice(numbers),
            ValueStorage::Wire(bytes) => T::copy(bytes, slice),
        }
    }

    /// As a vector; without a copy if they are one that no clone shares.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            ValueStorage::Numbers(numbers) => Arc::unwrap_or_clone(numbers),
            ValueStorage::Wire(_) => Self::joined(&[self]),
        }
    }

    /// The numbers of several, one after another.
    pub fn joined(all: &[Self]) -> Vec<T> {
        let mut joined = Vec::with_capacity(all.iter().map(Self::len).sum());
        for values in all {
            values.append_to(&mut joined);
        }
        joined
    }
}

impl<T> From<Vec<T>> for Values<T> {
    fn from(numbers: Vec<T>) -> Self {
        Self(ValueStorage::Numbers(Arc::new(numbers)))
    }
}

impl<T> FromIterator<T> for Values<T> {
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        Vec::from_iter(numbers).into()
    }
}

/// Equal numbers, in either storage.
impl<T: Number + PartialEq> PartialEq for Values<T> {
    fn eq(&self, other: &Self) -> bool {
        self.clone().into_vec() == other.clone().into_vec()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_wire_holds_the_same_numbers() {
        let numbers = vec![1.5_f32, -0.0, f32::MAX, 3e-40];
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        // At an odd address, as in bodies.
        let body = Bytes::from([&[7][..], &bytes].concat());
        let (made, wire) = (
            Values::from(numbers.clone()),
            Values::wire(body.slice(1..)).unwrap(),
        );
        assert_eq!((made.len(), wire.len()), (4, 4));
        assert_eq!(made, wire);
        let mut copied = [0.0; 4];
        wire.copy_to(&mut copied);
        assert_eq!(copied.as_slice(), numbers);
        let joined = Values::joined(&[made, wire.clone()]);
        assert_eq!(joined, [&numbers[..], &numbers].concat());
        assert_eq!(Values::from(numbers.clone()).to_wire(), bytes);
        assert_eq!(wire.to_wire(), bytes);
        assert_eq!(wire.into_vec(), numbers);
    }

    #[test]
    fn an_incomplete_number_is_refused() {
        assert!(Values::<i64>::wire(Bytes::from_static(&[0; 12])).is_none());
        assert!(Values::<f32>::wire(Bytes::from_static(&[0; 12])).is_some());
    }

    #[test]
    fn a_clone_shares_the_numbers() {
        let values = Values::from(vec![1_i64, 2]);
        let kept = values.clone();
        assert_eq!(values.into_vec(), [1, 2], "copied");
        let address = match &kept.0 {
            ValueStorage::Numbers(numbers) => numbers.as_ptr(),
            ValueStorage::Wire(_) => panic!("not a vector"),
        };
        let last = kept.into_vec();
        assert_eq!(last.as_ptr(), address, "the last one is moved");
    }

    #[test]
    fn a_vector_is_moved() {
        let numbers = vec![1_i64, 2];
        let address = numbers.as_ptr();
        let moved = Values::from(numbers).into_vec();
        assert_eq!(moved.as_ptr(), address);
    }
}

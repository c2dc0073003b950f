//! A list of tensors in a request, of bounded length.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// Most inputs of a request, and most outputs: several times those of any model. An entry of 40
/// bytes takes 250 in memory, so that an unbounded list is a way to fill the memory.
pub(super) const ENTRIES_MAX: usize = 256;

/// At most 256 entries.
#[derive(Debug)]
pub(crate) struct TensorEntries<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TensorEntries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = TensorEntries<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array of tensors")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    if entries.len() == ENTRIES_MAX {
                        return Err(A::Error::custom(format_args!(
                            "more than {ENTRIES_MAX} tensors"
                        )));
                    }
                    entries.push(entry);
                }
                Ok(TensorEntries(entries))
            }
        }
        deserializer.deserialize_seq(EntriesVisitor(PhantomData))
    }
}

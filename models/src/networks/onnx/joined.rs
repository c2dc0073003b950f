//! A graph whose values are in other files (`external_data` of the format), as one file.
//!
//! Exporters put the weights of large graphs next to them. A server reads one file, which is replaced
//! as a whole.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::fields::{Kind, fields};
use super::header::ElementType;
use super::lengths;
use super::proto::PlacedTensor;
use crate::error::ModelError;
use crate::regular_file;
use crate::weights::mapped_file::FileBytes;

/// The format's limit of one file.
const FILE_MAX: u64 = i32::MAX as u64;

/// Fields of a tensor.
const RAW_DATA: u32 = 9;
const EXTERNAL_DATA: u32 = 13;
const DATA_LOCATION: u32 = 14;

/// A part of the joined file.
enum Piece<'a> {
    Kept(&'a [u8]),
    Made(Vec<u8>),
    Values(Values),
}

/// The values of a tensor in another file.
struct Values {
    /// As the graph names it.
    location: String,
    file: PathBuf,
    offset: u64,
    length: u64,
}

/// Copies a graph and its values in other files into one file.
///
/// # Errors
/// A file cannot be read or written, is no graph, names a file outside of its folder, has other values
/// than a tensor needs, or would have more than 2 GiB.
pub fn copy_graph(from: &Path, to: &Path) -> Result<(), ModelError> {
    let (bytes, before) = FileBytes::open(from)?;
    let pieces = pieces(from, &bytes)?;
    let length: u64 = pieces.iter().map(Piece::len).sum();
    if length > FILE_MAX {
        let reason = format!(
            "has {length} bytes with its values in other files, and one file of the format has at \
             most {FILE_MAX}: export it in half precision"
        );
        return Err(ModelError::weights(from, reason));
    }
    let failed = |source| ModelError::io(to, source);
    let mut file = BufWriter::new(File::create(to).map_err(failed)?);
    for piece in pieces {
        match piece {
            Piece::Kept(bytes) => file.write_all(bytes).map_err(failed)?,
            Piece::Made(bytes) => file.write_all(&bytes).map_err(failed)?,
            Piece::Values(values) => values.copy(&mut file)?,
        }
    }
    file.flush().map_err(failed)?;
    before.unchanged(from)
}

/// The files with values of a graph, relative to its folder; none if it has all values itself.
///
/// # Errors
/// The file cannot be read or is no graph, or names a file outside of its folder.
pub fn value_files(graph: &Path) -> Result<BTreeSet<String>, ModelError> {
    let (bytes, before) = FileBytes::open(graph)?;
    let values = pieces(graph, &bytes)?.into_iter();
    let found = values.filter_map(|piece| match piece {
        Piece::Values(values) => Some(values.location),
        Piece::Kept(_) | Piece::Made(_) => None,
    });
    let found = found.collect();
    before.unchanged(graph)?;
    Ok(found)
}

fn pieces<'a>(file: &Path, bytes: &'a [u8]) -> Result<Vec<Piece<'a>>, ModelError> {
    // Which also bounds the depth.
    lengths::check(bytes).map_err(|reason| no_onnx(file, &reason))?;
    let changed = message(file, bytes, Kind::Model)?;
    Ok(changed.unwrap_or_else(|| vec![Piece::Kept(bytes)]))
}

fn no_onnx(file: &Path, reason: &dyn std::fmt::Display) -> ModelError {
    ModelError::weights(file, format!("not an ONNX file: {reason}"))
}

/// The message with all of its tensors' values; none if it has them.
fn message<'a>(
    file: &Path,
    bytes: &'a [u8],
    kind: Kind,
) -> Result<Option<Vec<Piece<'a>>>, ModelError> {
    if kind == Kind::Tensor {
        return tensor(file, bytes);
    }
    let (mut pieces, mut is_changed) = (Vec::new(), false);
    for field in fields(bytes) {
        let field = field.map_err(|reason| no_onnx(file, &reason))?;
        let inside = match field.message(kind) {
            Some(inside) => message(file, field.content, inside)?,
            None => None,
        };
        match inside {
            None => pieces.push(Piece::Kept(field.whole)),
            Some(inside) => {
                is_changed = true;
                pieces.push(head(field.number, inside.iter().map(Piece::len).sum()));
                pieces.extend(inside);
            }
        }
    }
    Ok(is_changed.then_some(pieces))
}

fn tensor<'a>(file: &Path, bytes: &'a [u8]) -> Result<Option<Vec<Piece<'a>>>, ModelError> {
    let placed = PlacedTensor::decode(bytes).map_err(|error| no_onnx(file, &error))?;
    if placed.data_location == 0 {
        return Ok(None);
    }
    let values = Values::of(file, &placed)
        .map_err(|reason| ModelError::tensor(file, &placed.name, reason))?;
    let mut pieces = Vec::new();
    for field in fields(bytes) {
        let field = field.map_err(|reason| no_onnx(file, &reason))?;
        if ![RAW_DATA, EXTERNAL_DATA, DATA_LOCATION].contains(&field.number) {
            pieces.push(Piece::Kept(field.whole));
        }
    }
    pieces.push(head(RAW_DATA, values.length));
    pieces.push(Piece::Values(values));
    Ok(Some(pieces))
}

/// The beginning of a field.
fn head(number: u32, length: u64) -> Piece<'static> {
    let mut head = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut head);
    encode_varint(length, &mut head);
    Piece::Made(head)
}

// === impl Piece ===

impl Piece<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Kept(bytes) => bytes.len() as u64,
            Self::Made(bytes) => bytes.len() as u64,
            Self::Values(values) => values.length,
        }
    }
}

// === impl Values ===

impl Values {
    fn of(graph: &Path, tensor: &PlacedTensor) -> Result<Self, String> {
        let entry = |key: &str| {
            let entry = tensor.external_data.iter().find(|entry| entry.key == key);
            entry.map(|entry| entry.value.as_str())
        };
        let number = |key: &str| match entry(key) {
            None => Ok(None),
            Some(text) => text
                .parse::<u64>()
                .map(Some)
                .map_err(|_| format!("external_data: {key} {text:?}: must be a number of bytes")),
        };
        let location = entry("location").unwrap_or_default();
        let mut components = Path::new(location).components();
        let is_inside = components.all(|part| matches!(part, Component::Normal(_)));
        if location.is_empty() || !is_inside {
            return Err(format!(
                "external_data: location {location:?}: must be a file in the graph's folder"
            ));
        }
        let needed = tensor
            .bytes()
            .ok_or("has values in another file that are no numbers")?;
        let length = number("length")?.unwrap_or(needed);
        if length != needed {
            return Err(format!(
                "external_data: length {length}: its shape and type need {needed} bytes"
            ));
        }
        Ok(Self {
            file: graph.with_file_name(location),
            location: location.to_owned(),
            offset: number("offset")?.unwrap_or(0),
            length,
        })
    }

    fn copy(&self, to: &mut impl Write) -> Result<(), ModelError> {
        let failed = |source: io::Error| ModelError::io(&self.file, source);
        let mut file = regular_file::open(&self.file).map_err(failed)?;
        file.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
        let copied = io::copy(&mut file.take(self.length), to).map_err(failed)?;
        if copied == self.length {
            return Ok(());
        }
        let (offset, length) = (self.offset, self.length);
        let reason = format!(
            "ends within the graph's values of {length} bytes from byte {offset} on: download or \
             export both files anew"
        );
        Err(ModelError::weights(&self.file, reason))
    }
}

// === impl PlacedTensor ===

impl PlacedTensor {
    /// The bytes of its values; none if they are no numbers of a known type.
    fn bytes(&self) -> Option<u64> {
        let bits = ElementType(self.data_type).number_bits()?;
        let mut sizes = self.dims.iter().map(|&size| u64::try_from(size).ok());
        let count = sizes.try_fold(1u64, |all, size| all.checked_mul(size?))?;
        Some(count.checked_mul(bits)?.div_ceil(8))
    }
}

#[cfg(test)]
mod tests;

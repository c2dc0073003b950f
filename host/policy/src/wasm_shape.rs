//! Tells components from core modules and other files, and whole files from beginnings. Reads the
//! preamble and the sizes of the sections, not their content.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

const MAGIC: [u8; 4] = *b"\0asm";
/// Version 1, layer 0.
const CORE: [u8; 4] = [1, 0, 0, 0];
/// Any version of layer 1.
const COMPONENT_LAYER: [u8; 2] = [1, 0];

/// A file by its preamble and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WasmShape {
    /// A whole component.
    Component,
    /// A whole core module.
    CoreModule,
    /// The beginning of a component or core module.
    Partial,
    NotWasm,
}

/// Reads a file, or its bytes, from the beginning.
pub(crate) fn shape_of(file: &mut (impl Read + Seek)) -> io::Result<WasmShape> {
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut preamble = [0; 8];
    let present = end.min(8) as usize;
    file.read_exact(&mut preamble[..present])?;
    let magic = present.min(4);
    if preamble[..magic] != MAGIC[..magic] {
        return Ok(WasmShape::NotWasm);
    }
    if present < 8 {
        return Ok(WasmShape::Partial);
    }
    let shape = if preamble[4..] == CORE {
        WasmShape::CoreModule
    } else if preamble[6..] == COMPONENT_LAYER {
        WasmShape::Component
    } else {
        return Ok(WasmShape::NotWasm);
    };
    match sections_end(file, end) {
        Ok(last) if last == end => Ok(shape),
        Ok(_) => Ok(WasmShape::Partial),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(WasmShape::Partial),
        Err(error) => Err(error),
    }
}

/// The end of the last section, by its own size. Past `end` when the file is cut off.
fn sections_end(file: &mut (impl Read + Seek), end: u64) -> io::Result<u64> {
    let mut at = file.stream_position()?;
    while at < end {
        let mut id = [0];
        file.read_exact(&mut id)?;
        let size = leb128(file)?;
        at = file.stream_position()? + u64::from(size);
        file.seek(SeekFrom::Start(at))?;
    }
    Ok(at)
}

/// An unsigned LEB128 of at most 32 bits. The compiler refuses longer ones.
fn leb128(file: &mut impl Read) -> io::Result<u32> {
    let mut value: u32 = 0;
    for shift in (0..35).step_by(7) {
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        value |= u32::from(byte[0] & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte[0] & 0x80 == 0 {
            break;
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Cursor;

    use super::*;

    fn shape(bytes: &[u8]) -> WasmShape {
        shape_of(&mut Cursor::new(bytes)).unwrap()
    }

    /// Two custom sections. The size of the second takes two bytes.
    fn component() -> Vec<u8> {
        let mut bytes = b"\0asm\x0d\0\x01\0\0\x02\x01a\0\xc8\x01".to_vec();
        bytes.extend([7; 200]);
        bytes
    }

    #[test]
    fn components_modules_and_other_files_are_told_apart() {
        assert_eq!(shape(&component()), WasmShape::Component);
        assert_eq!(shape(b"\0asm\x01\0\0\0"), WasmShape::CoreModule);
        assert_eq!(shape(b"hello, world"), WasmShape::NotWasm);
        assert_eq!(shape(b"he"), WasmShape::NotWasm);
        assert_eq!(shape(b"\0asm\x01\0\x07\0"), WasmShape::NotWasm);
    }

    #[test]
    fn every_beginning_inside_a_section_is_partial() {
        let whole = component();
        // A file that ends after the preamble or after the first section looks whole.
        let looks_whole = [8, 12, whole.len()];
        for length in 0..whole.len() {
            let expected = if looks_whole.contains(&length) {
                WasmShape::Component
            } else {
                WasmShape::Partial
            };
            assert_eq!(shape(&whole[..length]), expected, "{length} bytes");
        }
    }
}

//! Is this file a WebAssembly component, and is all of it there? Looks at the preamble and
//! the sizes of the sections, not at what is in them.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

const MAGIC: [u8; 4] = *b"\0asm";
/// Version 1, layer 0.
const CORE: [u8; 4] = [1, 0, 0, 0];
/// Any version of layer 1.
const COMPONENT_LAYER: [u8; 2] = [1, 0];

/// What a file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A component, whole.
    Component,
    /// A core module, whole.
    CoreModule,
    /// The beginning of one of these.
    Partial,
    NotWasm,
}

/// Looks at a file, or at its bytes, from the beginning.
pub(crate) fn shape(file: &mut (impl Read + Seek)) -> io::Result<Shape> {
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(0))?;
    let mut preamble = [0; 8];
    let present = end.min(8) as usize;
    file.read_exact(&mut preamble[..present])?;
    let magic = present.min(4);
    if preamble[..magic] != MAGIC[..magic] {
        return Ok(Shape::NotWasm);
    }
    if present < 8 {
        return Ok(Shape::Partial);
    }
    let shape = if preamble[4..] == CORE {
        Shape::CoreModule
    } else if preamble[6..] == COMPONENT_LAYER {
        Shape::Component
    } else {
        return Ok(Shape::NotWasm);
    };
    match sections_end(file, end) {
        Ok(last) if last == end => Ok(shape),
        Ok(_) => Ok(Shape::Partial),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Shape::Partial),
        Err(error) => Err(error),
    }
}

/// Where the section that reaches `end` says that it ends.
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

/// An unsigned LEB128 of at most 32 bits; longer ones are left to the compiler to refuse.
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

    fn look(bytes: &[u8]) -> Shape {
        shape(&mut Cursor::new(bytes)).unwrap()
    }

    /// Two custom sections, the second one long enough for a two-byte size.
    fn component() -> Vec<u8> {
        let mut bytes = b"\0asm\x0d\0\x01\0\0\x02\x01a\0\xc8\x01".to_vec();
        bytes.extend([7; 200]);
        bytes
    }

    #[test]
    fn tells_components_modules_and_others_apart() {
        assert_eq!(look(&component()), Shape::Component);
        assert_eq!(look(b"\0asm\x01\0\0\0"), Shape::CoreModule);
        assert_eq!(look(b"hello, world"), Shape::NotWasm);
        assert_eq!(look(b"he"), Shape::NotWasm);
        assert_eq!(look(b"\0asm\x01\0\x07\0"), Shape::NotWasm);
    }

    #[test]
    fn every_beginning_inside_a_section_is_partial() {
        let whole = component();
        // After the preamble and after the first section nothing is missing that shows.
        let looks_whole = [8, 12, whole.len()];
        for length in 0..whole.len() {
            let expected = if looks_whole.contains(&length) {
                Shape::Component
            } else {
                Shape::Partial
            };
            assert_eq!(look(&whole[..length]), expected, "{length} bytes");
        }
    }
}

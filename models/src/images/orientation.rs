//! The orientation tag of EXIF.

/// Number of the tag.
const TAG: u16 = 0x0112;

/// Type of the tag's value: an unsigned 16-bit number.
const SHORT: u16 = 3;

/// How pixels in the order of the file lie in the image as displayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Orientation {
    /// The file's rows are the columns of the image.
    pub(super) transposed: bool,
    /// The file's columns run backwards.
    pub(super) flipped_x: bool,
    /// The file's rows run backwards.
    pub(super) flipped_y: bool,
}

// === impl Orientation ===

impl Orientation {
    /// Reads the tag in a block of EXIF, with or without the prefix of JPEG. A damaged block counts
    /// as none, as in Pillow and browsers.
    pub(super) fn from_exif(exif: &[u8]) -> Self {
        Self::tag(exif.strip_prefix(b"Exif\0\0").unwrap_or(exif)).map_or_else(Self::default, |n| {
            Self {
                transposed: (5..=8).contains(&n),
                flipped_x: matches!(n, 2 | 3 | 7 | 8),
                flipped_y: matches!(n, 3 | 4 | 6 | 7),
            }
        })
    }

    /// The tag's value in the first directory.
    fn tag(tiff: &[u8]) -> Option<u16> {
        let little = match tiff.get(..4)? {
            b"II*\0" => true,
            b"MM\0*" => false,
            _ => return None,
        };
        let short = |at: usize| -> Option<u16> {
            let bytes = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
            Some(if little {
                u16::from_le_bytes(bytes)
            } else {
                u16::from_be_bytes(bytes)
            })
        };
        let offset = tiff.get(4..8)?.try_into().ok()?;
        let offset = if little {
            u32::from_le_bytes(offset)
        } else {
            u32::from_be_bytes(offset)
        };
        let directory = usize::try_from(offset).ok()?;
        let entries = usize::from(short(directory)?);
        let first = directory.checked_add(2)?;
        (0..entries)
            .map(|i| first + 12 * i)
            .take_while(|at| at + 12 <= tiff.len())
            .find(|&at| short(at) == Some(TAG) && short(at + 2) == Some(SHORT))
            .and_then(|at| short(at + 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of EXIF with one entry.
    fn exif(little: bool, orientation: u16) -> Vec<u8> {
        let short = |v: u16| {
            if little {
                v.to_le_bytes()
            } else {
                v.to_be_bytes()
            }
        };
        let long = |v: u32| {
            if little {
                v.to_le_bytes()
            } else {
                v.to_be_bytes()
            }
        };
        let mut bytes = b"Exif\0\0".to_vec();
        bytes.extend(if little { b"II*\0" } else { b"MM\0*" });
        bytes.extend(long(8));
        bytes.extend(short(1));
        bytes.extend(short(TAG));
        bytes.extend(short(SHORT));
        bytes.extend(long(1));
        bytes.extend(short(orientation));
        bytes.extend([0; 6]);
        bytes
    }

    #[test]
    fn the_tag_is_read_in_both_byte_orders() {
        let turned = Orientation {
            transposed: true,
            flipped_x: false,
            flipped_y: true,
        };
        assert_eq!(Orientation::from_exif(&exif(true, 6)), turned);
        assert_eq!(Orientation::from_exif(&exif(false, 6)[6..]), turned);
        assert_eq!(
            Orientation::from_exif(&exif(true, 1)),
            Orientation::default()
        );
        assert_eq!(
            Orientation::from_exif(&exif(true, 9)),
            Orientation::default()
        );
    }

    #[test]
    fn a_cut_block_counts_as_none() {
        let whole = exif(false, 3);
        for end in 0..whole.len() - 6 {
            assert_eq!(
                Orientation::from_exif(&whole[..end]),
                Orientation::default()
            );
        }
        let mut far = exif(true, 3);
        far[10..14].fill(0xFF);
        assert_eq!(Orientation::from_exif(&far), Orientation::default());
    }
}

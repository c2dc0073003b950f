//! Errors of cards and of images.

/// Largest number of characters of a decoder's own text in an error.
const REASON_CHARS: usize = 200;

/// The format of an encoded image, known from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// JPEG, baseline or progressive.
    Jpeg,
    /// PNG.
    Png,
    /// WebP, lossy or lossless.
    WebP,
}

/// A field of an `[inputs.image]` table or of a `preprocessor_config.json` was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `{field}`: {reason}")]
pub struct FieldError {
    /// Name of the field, for example `size` or `crop_size.height`.
    pub field: String,
    /// The value, the allowed range and the way out.
    pub reason: String,
}

/// The reason why an image was refused. The client can mend all but [`ImageError::Card`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The card was not checked before its use.
    #[error("the card of the image: {0}")]
    Card(#[from] FieldError),
    /// The first bytes belong to none of the formats.
    #[error("not a JPEG, PNG or WebP image ({found}): encode the image as one of the three")]
    UnknownFormat {
        /// The first bytes, in hexadecimal.
        found: String,
    },
    /// The header states more pixels than the card allows.
    #[error(
        "{format} image of {width} x {height} has {pixels} pixels, more than the {limit} of \
         `max_pixels`: send a smaller image, or raise `max_pixels` in the card"
    )]
    TooManyPixels {
        /// Format of the image.
        format: ImageFormat,
        /// Width in the header.
        width: u32,
        /// Height in the header.
        height: u32,
        /// Product of the two.
        pixels: u64,
        /// The card's limit.
        limit: u64,
    },
    /// A side is zero or too long.
    #[error("{format} image of {width} x {height}: each side must be 1 to {limit} pixels")]
    Side {
        /// Format of the image.
        format: ImageFormat,
        /// Width in the header.
        width: u32,
        /// Height in the header.
        height: u32,
        /// The longest side.
        limit: u32,
    },
    /// The bytes end before the image does.
    #[error("{0} image ends early: send the whole file")]
    Truncated(ImageFormat),
    /// The image has several frames.
    #[error("{0} image is animated: send one frame as a still image")]
    Animated(ImageFormat),
    /// The JPEG has four components, and their meaning is not in the file.
    #[error("JPEG image is CMYK: convert it to RGB")]
    Cmyk,
    /// The decoder refused the bytes.
    #[error("{format} image cannot be decoded ({reason}): encode the image anew")]
    Decode {
        /// Format of the image.
        format: ImageFormat,
        /// The decoder's reason, cut to 200 characters.
        reason: String,
    },
}

// === impl ImageFormat ===

impl std::fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
        })
    }
}

// === impl FieldError ===

impl FieldError {
    /// `field` was refused.
    pub(super) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

// === impl ImageError ===

impl ImageError {
    /// The decoder's `reason` on one line, cut to a safe length.
    pub(super) fn decode(format: ImageFormat, reason: &dyn std::fmt::Display) -> Self {
        let line = |c: char| if c.is_control() { ' ' } else { c };
        let reason: String = reason.to_string().chars().map(line).collect();
        let reason = reason.trim().chars().take(REASON_CHARS).collect();
        Self::Decode { format, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoders_text_is_cut_and_kept_on_one_line() {
        let error = ImageError::decode(ImageFormat::Png, &format!("a\nb{}", "é".repeat(900)));
        let ImageError::Decode { reason, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(reason.chars().count(), 200);
        assert!(reason.starts_with("a bé"));
    }
}

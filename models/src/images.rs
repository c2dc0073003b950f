//! Images as inputs: JPEG, PNG or WebP bytes become the tensor of floats that a model takes.
//!
//! [`ImageCard`] is the table `[inputs.image]` of an input's card. [`ImageCard::tensor`] reads the
//! header, applies the limits, decodes, and then resizes, crops and normalises in one pass over the
//! pixels. Filters, rounding and crops are those of Pillow and torchvision: the tensor of a lossless
//! image is equal to the last bit. Exceptions, of one level mostly: images whose orientation swaps
//! width and height, tall images against Pillow 13 (it resizes them vertically first), and
//! `filter = "nearest"` where two pixels are equally near.
//!
//! Conventions: the EXIF orientation is applied, as browsers and Pillow's `exif_transpose` do.
//! Alpha is dropped and not composited, as Pillow's `convert("RGB")` does. Colour profiles and
//! gamma are ignored. Of 16-bit channels the high byte is used. Animations and CMYK are refused.

mod card;
mod check;
mod decode;
mod error;
mod filter;
mod geometry;
mod jpeg;
mod luma;
mod orientation;
mod pixels;
mod png;
mod preprocessor;
mod resample;
mod webp;

pub use self::card::{Channels, Filter, Fit, ImageCard, Layout};
pub use self::error::{FieldError, ImageError};

#[cfg(test)]
mod tests;

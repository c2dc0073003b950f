//! The app of a request, and how its body is laid out.

use crate::app::{AppIndex, AppInfo, VariantIndex};
use crate::framing::BodyFraming;

/// The app of a request, and how its body is laid out.
#[derive(Clone, Copy, Debug)]
pub struct DecodeTarget<'a> {
    /// The app of the URL.
    pub app_index: AppIndex,
    /// Its inputs and outputs.
    pub app: &'a AppInfo,
    /// The variant that the URL pins.
    pub variant: Option<VariantIndex>,
    /// Layout of the body.
    pub framing: BodyFraming,
}

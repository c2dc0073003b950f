//! Images with zeros around them.

use super::feature_map::FeatureView;
use super::scratch::Buffer;
use crate::window::Padding;

/// Images with their padding, copied unless the padding is empty.
pub(crate) struct Padded {
    copy: Option<Buffer>,
    /// Lines and columns of an image with its padding.
    pub(crate) size: [usize; 2],
}

// === impl Padded ===

impl Padded {
    pub(crate) fn new(x: FeatureView<'_>, padding: Padding) -> Self {
        let [images, height, width, channels] = x.dims;
        let size = padding.around(height, width);
        if padding == Padding::default() {
            return Self { copy: None, size };
        }
        let line = size[1] * channels;
        let mut copy = Buffer::take(images * size[0] * line);
        let inside = width * channels;
        for (to, from) in copy
            .chunks_exact_mut((size[0] * line).max(1))
            .zip(x.values.chunks_exact(x.image_len().max(1)))
        {
            pad_image(to, 0.0, padding, [height, inside, channels], |i, to| {
                to.copy_from_slice(&from[i * inside..][..inside]);
            });
        }
        Self {
            copy: Some(copy),
            size,
        }
    }

    /// The values of the images; `x` are the images without padding.
    pub(crate) fn values<'a>(&'a self, x: FeatureView<'a>) -> &'a [f32] {
        match &self.copy {
            Some(copy) => copy,
            None => x.values,
        }
    }
}

/// Writes one image with its padding: `border` around it, and each of its `height` lines, of
/// `inside` values, with `write`.
#[inline]
pub(crate) fn pad_image<T: Copy>(
    to: &mut [T],
    border: T,
    padding: Padding,
    [height, inside, channels]: [usize; 3],
    mut write: impl FnMut(usize, &mut [T]),
) {
    let (left, right) = (padding.left * channels, padding.right * channels);
    let line = left + inside + right;
    let (top, rest) = to.split_at_mut(padding.top * line);
    let (middle, bottom) = rest.split_at_mut(height * line);
    top.fill(border);
    bottom.fill(border);
    for (i, to) in middle.chunks_exact_mut(line.max(1)).enumerate() {
        let (before, to) = to.split_at_mut(left);
        let (to, behind) = to.split_at_mut(inside);
        before.fill(border);
        write(i, to);
        behind.fill(border);
    }
}

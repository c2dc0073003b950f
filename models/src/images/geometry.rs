//! The part of an image that becomes the tensor, and its place there.

use super::card::{Fit, ImageCard};
use super::filter::Axis;
use super::pixels::Pixels;

/// Resize and crop along the axes of the file, and the offset in the tensor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Along the file's rows.
    pub(super) x: Axis,
    /// Across the file's rows.
    pub(super) y: Axis,
    /// Rows of padding above the image, in the tensor.
    pub(super) top: usize,
    /// Columns of padding left of the image, in the tensor.
    pub(super) left: usize,
    /// The file's rows are columns of the tensor.
    pub(super) transposed: bool,
}

// === impl Geometry ===

impl Geometry {
    /// The geometry of one image.
    pub(super) fn new(card: &ImageCard, pixels: &Pixels) -> Self {
        let (stored, turn) = ([pixels.height, pixels.width], pixels.orientation);
        let swap = |[a, b]: [usize; 2]| if turn.transposed { [b, a] } else { [a, b] };
        let shown = swap(stored);
        let resized = resized(card, shown);
        let kept = [0, 1].map(|i| card.size[i].min(resized[i]));
        let start = [0, 1].map(|i| centre(resized[i] - kept[i]));
        let padding = [0, 1].map(|i| (card.size[i] - kept[i]) / 2);
        let ([resized_y, resized_x], [kept_y, kept_x]) = (swap(resized), swap(kept));
        // A flip reverses the axis as shown, so the crop's start stays one of the shown image.
        let [start_y, start_x] = swap(start);
        let axis = |source, resized, start, kept, flipped| Axis {
            source,
            resized,
            start,
            kept,
            flipped,
        };
        Self {
            x: axis(stored[1], resized_x, start_x, kept_x, turn.flipped_x),
            y: axis(stored[0], resized_y, start_y, kept_y, turn.flipped_y),
            top: padding[0],
            left: padding[1],
            transposed: turn.transposed,
        }
    }
}

/// Height and width to which an image of `shown` height and width is resized.
fn resized(card: &ImageCard, shown: [usize; 2]) -> [usize; 2] {
    let [height, width] = shown;
    // The other side as torchvision cuts it off, in f64: sides are below 2^16.
    let cut = |side: usize, target: usize, of: usize| {
        ((target as f64 * side as f64 / of as f64) as usize).max(1)
    };
    let [target_height, target_width] = match (card.fit, card.resize) {
        (Fit::Stretch, Some(side)) => return [side, side],
        (Fit::Stretch, None) => return card.size,
        (Fit::Pad, _) => return letterbox(card.size, shown),
        (Fit::Cover, Some(side)) => [side, side],
        (Fit::Cover, None) => card.size,
    };
    if height * target_width <= width * target_height {
        [target_height, cut(width, target_height, height)]
    } else {
        [cut(height, target_width, width), target_width]
    }
}

/// The largest height and width of the image's aspect ratio within `size`, rounded as YOLO does.
fn letterbox(size: [usize; 2], shown: [usize; 2]) -> [usize; 2] {
    let ratio = |i: usize| size[i] as f64 / shown[i] as f64;
    let ratio = ratio(0).min(ratio(1));
    [0, 1].map(|i| {
        let side = (shown[i] as f64 * ratio).round_ties_even() as usize;
        side.clamp(1, size[i])
    })
}

/// Half of `margin`, rounded to even as torchvision's centre crop does.
fn centre(margin: usize) -> usize {
    (margin as f64 / 2.0).round_ties_even() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::orientation::Orientation;

    fn pixels(width: usize, height: usize, transposed: bool) -> Pixels {
        Pixels {
            data: Vec::new(),
            width,
            height,
            stride: 3,
            orientation: Orientation {
                transposed,
                ..Orientation::default()
            },
        }
    }

    #[test]
    fn sides_and_crops_are_torchvisions() {
        let mut card = ImageCard {
            resize: Some(256),
            ..ImageCard::default()
        };
        let geometry = Geometry::new(&card, &pixels(1280, 960, false));
        // 256 * 1280 / 960 is cut to 341; 58.5 and 16 are rounded to even.
        assert_eq!(
            (geometry.x.resized, geometry.x.start, geometry.x.kept),
            (341, 58, 224)
        );
        assert_eq!(
            (geometry.y.resized, geometry.y.start, geometry.y.kept),
            (256, 16, 224)
        );
        let turned = Geometry::new(&card, &pixels(960, 1280, true));
        assert_eq!(
            (turned.y.resized, turned.y.start, turned.x.resized),
            (341, 58, 256)
        );
        card.fit = Fit::Stretch;
        assert_eq!(resized(&card, [10, 3000]), [256, 256]);
    }

    #[test]
    fn an_oblong_size_is_covered_and_a_letterbox_is_centred() {
        let mut card = ImageCard {
            size: [100, 300],
            ..ImageCard::default()
        };
        assert_eq!(resized(&card, [500, 500]), [300, 300]);
        assert_eq!(resized(&card, [100, 900]), [100, 900]);
        assert_eq!(resized(&card, [65_535, 1]), [19_660_500, 300]);
        card.fit = Fit::Pad;
        card.size = [640, 640];
        let geometry = Geometry::new(&card, &pixels(1280, 960, false));
        assert_eq!((geometry.x.kept, geometry.y.kept), (640, 480));
        assert_eq!((geometry.top, geometry.left), (80, 0));
    }
}

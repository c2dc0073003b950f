//! Images made in code, against values computed by Pillow 13.

mod bytes;
mod hostile;
mod pillow;

use super::{Fit, ImageCard, Layout};

/// A card whose tensor is the 8-bit pixels in order, of `height` and `width`.
fn plain(height: usize, width: usize) -> ImageCard {
    ImageCard {
        size: [height, width],
        fit: Fit::Stretch,
        layout: Layout::Hwc,
        scale: 1.0,
        mean: vec![0.0],
        deviation: vec![1.0],
        ..ImageCard::default()
    }
}

fn tensor(card: &ImageCard, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![9.0; 5];
    card.tensor(bytes, &mut out).expect("an image");
    assert_eq!(out.len(), card.shape().iter().product::<usize>());
    out
}

fn refusal(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    let error = ImageCard::default().tensor(bytes, &mut out);
    error.expect_err("no image").to_string()
}

//! Images that must be refused, quickly and in little memory.

use std::time::{Duration, Instant};

use super::super::ImageCard;
use super::bytes::{JPEG, WEBP, chunk, oriented, png_header, rgb};
use super::{plain, refusal, tensor};

#[test]
fn other_formats_are_refused_by_their_first_bytes() {
    for bytes in [
        &b""[..],
        b"G",
        b"GIF89a\x01\0\x01\0",
        b"RIFF\0\0\0\0WAVE",
        b"\xFF\xD8",
    ] {
        let error = refusal(bytes);
        assert!(
            error.starts_with("not a JPEG, PNG or WebP image ("),
            "{error}"
        );
    }
    assert!(refusal(b"GIF89a").contains("47 49 46 38 39 61"));
}

#[test]
fn headers_of_too_many_pixels_are_refused_before_pixels_are_allocated() {
    let png = refusal(&png_header(60_000, 60_000));
    assert!(png.contains("60000 x 60000 has 3600000000 pixels"), "{png}");
    assert!(png.contains("25000000 of `max_pixels`"), "{png}");
    let long = refusal(&png_header(20_000_000, 1));
    assert!(long.contains("each side must be 1 to 65535"), "{long}");
    let mut jpeg = JPEG.to_vec();
    let frame = jpeg
        .windows(2)
        .position(|pair| pair == [0xFF, 0xC0])
        .expect("a frame");
    jpeg[frame + 5..frame + 9].fill(0xFF);
    assert!(refusal(&jpeg).contains("65535 x 65535"));
    jpeg[frame + 5..frame + 9].fill(0);
    assert!(refusal(&jpeg).contains("0 x 0: each side"));
}

#[test]
fn a_webp_is_measured_by_its_bitstream_and_not_by_its_container() {
    let canvas = [0, 0, 0, 0, 6, 0, 0, 4, 0, 0];
    let vp8 = [0x10, 0, 0, 0x9D, 0x01, 0x2A, 0xFF, 0x3F, 0xFF, 0x3F, 0, 0];
    let extended = [b"RIFF\0\0\0\0WEBPVP8X\x0A\0\0\0".as_slice(), &canvas].concat();
    let large = [&extended, b"VP8 \x0C\0\0\0".as_slice(), &vp8].concat();
    assert!(refusal(&large).contains("16383 x 16383"));
    let still = [&extended, &WEBP[12..]].concat();
    assert_eq!(tensor(&plain(4, 3), &still), tensor(&plain(4, 3), &WEBP));
    let mut animated = still;
    animated[20] = 2;
    assert!(refusal(&animated).contains("is animated"));
}

#[test]
fn every_cut_is_an_error() {
    let mut out = Vec::new();
    for image in [&rgb(), WEBP.as_slice(), &JPEG, &oriented(6)] {
        // A PNG's pixels are whole without its last chunk, and a WebP without its padding.
        for end in 0..image.len() - 16 {
            let cut = ImageCard::default().tensor(&image[..end], &mut out);
            assert!(cut.is_err(), "{end} of {}", image.len());
        }
    }
    assert_eq!(
        refusal(&JPEG[..300]),
        "JPEG image ends early: send the whole file"
    );
}

#[test]
fn damaged_bytes_never_panic() {
    let mut out = Vec::new();
    for image in [&rgb(), WEBP.as_slice(), &JPEG, &oriented(6)] {
        for at in 0..image.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFE, 0xFF] {
                let mut damaged = image.to_vec();
                damaged[at] = value;
                let _ = plain(4, 3).tensor(&damaged, &mut out);
            }
        }
    }
}

#[test]
fn text_and_profiles_are_skipped_unread() {
    // Deflate of 8 MiB of zeros would be the hostile content; its first bytes suffice unread.
    let mut bytes = png_header(7, 5);
    bytes.extend(chunk(
        b"iCCP",
        &[b"x\0\0".as_slice(), &vec![0x78; 8 << 20]].concat(),
    ));
    bytes.extend(chunk(
        b"zTXt",
        &[b"x\0\0".as_slice(), &vec![0x78; 8 << 20]].concat(),
    ));
    bytes.extend(&rgb()[33..]);
    assert_eq!(tensor(&plain(4, 3), &bytes), tensor(&plain(4, 3), &rgb()));
    let mut exif = png_header(7, 5);
    exif.extend(chunk(b"eXIf", &vec![0; 8 << 20]));
    exif.extend(&rgb()[33..]);
    assert!(refusal(&exif).contains("limits are exceeded"));
}

#[test]
fn many_segments_are_refused_quickly() {
    let start = Instant::now();
    let segment = b"\xFF\xE1\0\x04ab".repeat(1_000_000);
    let jpeg = [&JPEG[..2], &segment, &JPEG[2..]].concat();
    assert!(refusal(&jpeg).contains("more than 1024 segments"));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn cmyk_is_refused() {
    let mut jpeg = JPEG.to_vec();
    let frame = jpeg
        .windows(2)
        .position(|pair| pair == [0xFF, 0xC0])
        .expect("a frame");
    jpeg[frame + 9] = 4;
    assert_eq!(refusal(&jpeg), "JPEG image is CMYK: convert it to RGB");
}

#[test]
fn memory_follows_from_the_header() {
    let card = ImageCard::default();
    assert_eq!(card.peak_bytes(&rgb()), Ok(card.bytes_of_pixels(35)));
    assert_eq!(card.peak_bytes(&JPEG), Ok(card.bytes_of_pixels(64)));
    let tables = 200 * WEBP.len() as u64;
    assert_eq!(
        card.peak_bytes(&WEBP),
        Ok(card.bytes_of_pixels(35) + tables)
    );
    let error = card.peak_bytes(&png_header(60_000, 60_000)).unwrap_err();
    assert!(error.to_string().contains("3600000000 pixels"), "{error}");
}

//! Texts and images.

use super::*;
use crate::app::BytesContent;

#[test]
fn a_text_is_utf8_and_not_too_long() {
    let app = app(vec![spec("text", Datatype::Bytes, &[1])]);
    let json = |text: &str| {
        let inputs =
            format!(r#"[{{"name":"text","shape":[1,1],"datatype":"BYTES","data":["{text}"]}}]"#);
        decode_json(&app, &inputs)
    };
    let decoded = json("Gr\u{fc}ezi").unwrap();
    assert_eq!(
        decoded.call.inputs[0].data,
        TensorData::Bytes(vec!["Gr\u{fc}ezi".into()])
    );
    assert_eq!(
        json(&"a".repeat(65_537)).unwrap_err().to_string(),
        "inputs[0].data: element 0: the text has 65537 bytes, the limit is 65536"
    );
    let error = decode_as(&app, BodyFraming::Raw, b"caf\xe9").unwrap_err();
    assert_eq!(error.status(), 400);
    assert!(
        error
            .to_string()
            .starts_with("body: element 0: not UTF-8: "),
        "{error}"
    );
}

#[test]
fn an_image_is_bytes_and_base64_in_json() {
    let mut input = spec("photo", Datatype::Bytes, &[1]);
    input.content = BytesContent::Image { bytes_max: 6 };
    let app = app(vec![input]);
    let json = |data: &str| {
        let inputs = format!(
            r#"[{{"name":"photo","shape":[2,1],"datatype":"BYTES","data":["AAE=","{data}"]}}]"#
        );
        decode_json(&app, &inputs)
    };
    let decoded = json("\\/9j\\/").unwrap();
    assert_eq!(
        decoded.call.inputs[0].data,
        TensorData::Bytes(vec![vec![0, 1], vec![0xff, 0xd8, 0xff]])
    );
    let error = json("caf\u{e9}").unwrap_err().to_string();
    assert!(
        error.starts_with("inputs[0].data: element 1: an image in JSON is base64 with padding: "),
        "{error}"
    );
    assert_eq!(
        json("AAAAAAAAAAAA").unwrap_err().to_string(),
        "inputs[0].data: element 1: the image has 9 bytes, the limit is 6"
    );
    let raw = decode_as(&app, BodyFraming::Raw, b"\xff\xd8\xff").unwrap();
    assert_eq!(
        raw.call.inputs[0].data,
        TensorData::Bytes(vec![vec![0xff, 0xd8, 0xff]])
    );
}

/// Base64 of an image is longer than the longest text.
#[test]
fn a_photograph_fits_into_json() {
    let mut input = spec("photo", Datatype::Bytes, &[1]);
    input.content = BytesContent::Image { bytes_max: 1 << 20 };
    let app = app(vec![input]);
    let json = |data: &str| {
        let inputs =
            format!(r#"[{{"name":"photo","shape":[1,1],"datatype":"BYTES","data":["{data}"]}}]"#);
        decode_json(&app, &inputs)
    };
    let decoded = json(&"/9j/".repeat(300_000)).unwrap();
    let bytes = [0xff, 0xd8, 0xff].repeat(300_000);
    assert_eq!(decoded.call.inputs[0].data, TensorData::Bytes(vec![bytes]));
    let longer = json(&"/9j/".repeat(600_000)).unwrap_err().to_string();
    assert!(longer.starts_with("body: the string at byte "), "{longer}");
}

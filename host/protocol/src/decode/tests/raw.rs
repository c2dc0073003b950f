//! Bodies without JSON.

use super::*;

#[test]
fn the_size_of_a_raw_body_gives_its_rows() {
    let app = one_input();
    let decoded = decode_as(&app, BodyFraming::Raw, &[0; 24]).unwrap();
    assert_eq!(decoded.call.rows, 2);
    assert!(decoded.wanted.iter().all(|output| output.binary));
    assert_eq!(
        decode_as(&app, BodyFraming::Raw, &[0; 26])
            .unwrap_err()
            .to_string(),
        "body: expected 24 bytes for 6 elements of FP32, got 26"
    );
    assert_eq!(
        decode_as(&app, BodyFraming::Raw, &[])
            .unwrap_err()
            .to_string(),
        "body: expected 12 bytes for 3 elements of FP32, got 0"
    );
}

#[test]
fn a_raw_body_may_fill_one_variable_dimension() {
    let variable = app(vec![spec("x", Datatype::F32, &[2, -1])]);
    let decoded = decode_as(&variable, BodyFraming::Raw, &[0; 40]).unwrap();
    assert_eq!(decoded.call.inputs[0].shape.as_slice(), [1, 2, 5]);

    let twice = app(vec![spec("x", Datatype::F32, &[-1, -1])]);
    let error = decode_as(&twice, BodyFraming::Raw, &[0; 40]).unwrap_err();
    assert!(
        error.to_string().contains("2 variable dimensions"),
        "{error}"
    );

    let two_inputs = app(vec![
        spec("a", Datatype::U8, &[]),
        spec("b", Datatype::U8, &[]),
    ]);
    let error = decode_as(&two_inputs, BodyFraming::Raw, &[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Inference-Header-Content-Length: 0 sends one raw input, but app \"heart\" has 2 inputs"
    );
}

#[test]
fn a_raw_bytes_body_is_one_element() {
    let text = app(vec![spec("text", Datatype::Bytes, &[1])]);
    let decoded = decode_as(&text, BodyFraming::Raw, b"hello").unwrap();
    assert_eq!(
        decoded.call.inputs[0].data,
        TensorData::Bytes(vec![b"hello".to_vec()])
    );
    let pair = app(vec![spec("text", Datatype::Bytes, &[2])]);
    let error = decode_as(&pair, BodyFraming::Raw, b"hello").unwrap_err();
    assert_eq!(
        error.to_string(),
        "body: a raw BYTES body is one element, [1, 2] has 2"
    );
}

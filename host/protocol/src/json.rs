//! The JSON part of an inference request.
//!
//! [`parse`] tries `fast` for the usual request and `serde` for all others; both give the same
//! [`JsonRequest`].

mod cursor;
pub(crate) mod data;
mod element;
mod entries;
mod fast;
mod nesting;
mod number;
pub(crate) mod parameters;
pub(crate) mod request;
mod strings;

pub(crate) use self::cursor::has_special;
use crate::error::ProtocolError;
use request::JsonRequest;

/// Parses the JSON part of a body, whose images in base64 have at most `image_bytes_max` bytes.
///
/// # Errors
/// The first fault, led by the field where it is.
pub(crate) fn parse(json: &[u8], image_bytes_max: usize) -> Result<JsonRequest<'_>, ProtocolError> {
    // serde also reads an array as a struct; the protocol does not.
    match json.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(_) => {
            return Err(ProtocolError::malformed("body", "expected a JSON object"));
        }
        None => return Err(ProtocolError::malformed("body", "is empty")),
    }
    if let Some(request) = fast::parse(json) {
        return Ok(request);
    }
    // serde repeats a string that it did not expect in its message.
    strings::check(json, image_bytes_max)
        .map_err(|reason| ProtocolError::malformed("body", reason))?;
    serde_json::from_slice(json).map_err(|_| locate(json))
}

/// Parses again and tracks the path to the fault, which is too slow for good requests.
fn locate(json: &[u8]) -> ProtocolError {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let (field, error) =
        match serde_path_to_error::deserialize::<_, JsonRequest<'_>>(&mut deserializer) {
            Err(error) => (error.path().to_string(), error.into_inner()),
            Ok(_) => match deserializer.end() {
                Err(error) => (".".to_owned(), error),
                Ok(()) => return ProtocolError::malformed("body", "invalid JSON"),
            },
        };
    // `?` stands for a key that serde could not read: the object around it is at fault.
    let field = match field.trim_end_matches('?').trim_end_matches('.') {
        "" => "body".to_owned(),
        known => known.to_owned(),
    };
    let reason = if error.is_data() {
        error.to_string()
    } else {
        format!("invalid JSON: {error}")
    };
    ProtocolError::malformed(field, reason)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::datatype::Datatype;
    use crate::json::data::{DataSeed, decode_raw};
    use crate::json::request::JsonData;

    fn refusal(json: &str) -> String {
        match parse(json.as_bytes(), 0) {
            Ok(_) => panic!("{json} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn data_after_its_datatype_is_decoded_at_once() {
        let json = br#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}"#;
        let request = parse(json, 0).unwrap();
        assert!(matches!(request.inputs.0[0].data, JsonData::Decoded(_)));
        assert!(matches!(request.inputs.0[0].name.0, Cow::Borrowed("x")));
    }

    #[test]
    fn data_before_its_datatype_is_kept_as_text() {
        let json = br#"{"inputs":[{"data":[[1],[2]],"name":"x","datatype":"FP32","shape":[2]}]}"#;
        let request = parse(json, 0).unwrap();
        let JsonData::Raw(raw) = request.inputs.0[0].data else {
            panic!("decoded without its datatype");
        };
        let seed = DataSeed {
            datatype: Datatype::I8,
            expected: 2,
        };
        assert_eq!(decode_raw(raw, seed).unwrap().found, 2);
    }

    #[test]
    fn a_whole_dimension_may_have_a_point() {
        let json = br#"{"inputs":[{"name":"x","shape":[1.0,3e0],"datatype":"FP32","data":[1]}]}"#;
        let request = parse(json, 0).unwrap();
        assert_eq!(request.inputs.0[0].shape.as_slice(), [1, 3]);
    }

    #[test]
    fn a_name_of_64_mebibytes_gets_a_short_answer() {
        let long = "\u{1}".repeat(64 << 20);
        let named = |name: &str| {
            format!(r#"{{"inputs":[{{"name":"{name}","shape":[1],"datatype":"FP32"}}]}}"#)
        };
        assert_eq!(
            refusal(&named(&long)),
            "body: the string at byte 20 is longer than 393216 bytes"
        );
        let shorter = refusal(&named(&long[..100_000].replace('\u{1}', "x")));
        assert!(
            shorter.starts_with("inputs[0].name: has 100000 bytes, the limit is 1024"),
            "{shorter}"
        );
        let echoed = refusal(&format!(r#"{{"inputs":"{}"}}"#, "y".repeat(300_000)));
        assert!(echoed.len() < 1_200, "{}", echoed.len());
    }

    #[test]
    fn the_number_of_inputs_and_outputs_is_bounded() {
        for list in ["inputs", "outputs"] {
            let entry = r#"{"name":"x","shape":[],"datatype":""}"#;
            let entries = vec![entry; 1_000_000].join(",");
            let error = refusal(
                &format!(r#"{{"inputs":[],"{list}":[{entries}]}}"#).replacen(
                    r#""inputs":[],"inputs""#,
                    r#""inputs""#,
                    1,
                ),
            );
            let expected = format!("{list}: more than 256 tensors");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn the_length_of_an_id_is_bounded() {
        let id = |length: usize| format!(r#"{{"id":"{}","inputs":[]}}"#, "i".repeat(length));
        assert!(parse(id(1_024).as_bytes(), 0).is_ok());
        let error = refusal(&id(1_025));
        assert!(
            error.starts_with("id: has 1025 bytes, the limit is 1024"),
            "{error}"
        );
    }

    #[test]
    fn an_error_names_its_field() {
        for (json, message) in [
            ("", "body: is empty"),
            ("[]", "body: expected a JSON object"),
            ("{} x", "body: missing field `inputs`"),
            (
                r#"{"inputs":[]} x"#,
                "body: invalid JSON: trailing characters",
            ),
            ("{nope", "body: invalid JSON: key must be a string"),
            (
                r#"{"inputs":[{nope"#,
                "inputs[0]: invalid JSON: key must be a string",
            ),
            (r#"{"inputs":3}"#, "inputs: invalid type: integer `3`"),
            (
                r#"{"id":3,"inputs":[]}"#,
                "id: invalid type: integer `3`, expected a string",
            ),
            (
                r#"{"inputs":[{"shape":[1],"datatype":"FP32"}]}"#,
                "inputs[0]: missing field `name`",
            ),
            (
                r#"{"inputs":[{"name":"x","shape":[-1],"datatype":"FP32"}]}"#,
                "inputs[0].shape[0]: invalid value: integer `-1`",
            ),
            (
                r#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[[1,"a"]]}]}"#,
                "inputs[0].data[0][1]: invalid value: string \"a\", expected an FP32 number",
            ),
            (
                r#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2"#,
                "inputs[0].data: invalid JSON: EOF while parsing a list",
            ),
            (
                r#"{"inputs":[{"name":"x","shape":[1.5],"datatype":"FP32"}]}"#,
                "inputs[0].shape[0]: invalid value: floating point `1.5`, expected a dimension",
            ),
            (
                r#"{"inputs":[],"parameters":{"timeout":"soon"}}"#,
                "parameters.timeout: invalid value: string \"soon\"",
            ),
            (
                r#"{"inputs":[],"outputs":[{"name":"y","parameters":{"binary_data":1}}]}"#,
                "outputs[0].parameters.binary_data: invalid type: integer `1`",
            ),
        ] {
            let error = refusal(json);
            assert!(error.starts_with(message), "{json}: {error}");
        }
    }
}

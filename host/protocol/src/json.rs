//! The JSON part of an inference request.
//!
//! [`parse`] tries `fast` for the usual request and `serde` for all others; both give the same
//! [`JsonRequest`].

mod cursor;
pub(crate) mod data;
mod element;
mod fast;
mod number;
pub(crate) mod parameters;
pub(crate) mod request;

use crate::error::ProtocolError;
use request::JsonRequest;

/// Parses the JSON part of a body.
///
/// # Errors
/// The first fault, led by the field where it is.
pub(crate) fn parse(json: &[u8]) -> Result<JsonRequest<'_>, ProtocolError> {
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
    ProtocolError::Malformed { field, reason }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::datatype::Datatype;
    use crate::json::data::{DataSeed, decode_raw};
    use crate::json::request::JsonData;

    fn refusal(json: &str) -> String {
        match parse(json.as_bytes()) {
            Ok(_) => panic!("{json} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn data_after_its_datatype_is_decoded_at_once() {
        let json = br#"{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]}"#;
        let request = parse(json).unwrap();
        assert!(matches!(request.inputs[0].data, JsonData::Decoded(_)));
        assert!(matches!(request.inputs[0].name.0, Cow::Borrowed("x")));
    }

    #[test]
    fn data_before_its_datatype_is_kept_as_text() {
        let json = br#"{"inputs":[{"data":[[1],[2]],"name":"x","datatype":"FP32","shape":[2]}]}"#;
        let request = parse(json).unwrap();
        let JsonData::Raw(raw) = request.inputs[0].data else {
            panic!("decoded without its datatype");
        };
        let seed = DataSeed {
            datatype: Datatype::I8,
            expected: 2,
        };
        assert_eq!(decode_raw(raw, seed).unwrap().found, 2);
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

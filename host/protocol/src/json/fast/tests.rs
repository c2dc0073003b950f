use proptest::prelude::*;

use super::*;

fn by_serde(json: &[u8]) -> Option<JsonRequest<'_>> {
    serde_json::from_slice(json).ok()
}

/// All fields of a request, floats as their bits.
fn fields_of(request: &JsonRequest<'_>) -> String {
    let inputs = request.inputs.0.iter().map(|input| {
        let data = match &input.data {
            JsonData::Decoded(decoded) => match &decoded.data {
                TensorData::F32(values) => {
                    let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
                    format!("{bits:?} of {}", decoded.found)
                }
                other => format!("{other:?} of {}", decoded.found),
            },
            JsonData::Absent => "absent".to_owned(),
            JsonData::Raw(raw) => format!("raw {raw}"),
        };
        format!(
            "{:?} {:?} {:?} {:?} {data}",
            input.name, input.shape, input.datatype, input.parameters
        )
    });
    let outputs = request.outputs.iter().flat_map(|outputs| &outputs.0);
    let outputs = outputs.map(|output| format!("{:?} {:?}", output.name, output.parameters));
    format!(
        "{:?} {:?} {:?} {:?}",
        request.id,
        request.parameters,
        inputs.collect::<Vec<_>>(),
        outputs.collect::<Vec<_>>(),
    )
}

fn with_data(datatype: &str, data: &str) -> String {
    format!(r#"{{"inputs":[{{"name":"x","shape":[2,2],"datatype":"{datatype}","data":{data}}}]}}"#)
}

#[test]
fn the_requests_of_usual_clients_are_read_here() {
    for json in [
        with_data("FP32", "[1, 2.5, -3e-2, 0.10000000149011612]"),
        with_data("FP32", "[[1,2],[3,4]]"),
        with_data("INT64", "[101, -5, 0, 102]"),
        r#" {"id": "7", "parameters": {"timeout": 5000, "x": [1, "}"]}, "inputs": [
            {"name": "x", "shape": [1, 2], "datatype": "FP32",
             "parameters": {"binary_data_size": 8}}],
            "outputs": [{"name": "y", "parameters": {"binary_data": true}}]} "#
            .to_owned(),
    ] {
        let read = parse(json.as_bytes()).expect(&json);
        let expected = by_serde(json.as_bytes()).expect(&json);
        assert_eq!(fields_of(&read), fields_of(&expected), "{json}");
    }
}

#[test]
fn unusual_requests_are_left_to_serde() {
    for json in [
        "",
        "[]",
        "{}",
        r#"{"inputs":[]}"#,
        r#"{"inputs":[{"data":[1],"name":"x","shape":[1],"datatype":"FP32"}]}"#,
        r#"{"inputs":[{"name":"\u0078","shape":[1],"datatype":"FP32","data":[1]}]}"#,
        r#"{"more":1,"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}]}"#,
        r#"{"id":"a","id":"b","inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}]}"#,
        &with_data("FP32", "[1,2,3,4]").replace("]}", "]},"),
        &with_data("FP64", "[1,2,3,4]"),
    ] {
        assert!(parse(json.as_bytes()).is_none(), "{json}");
    }
    for number in [
        "",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "null",
        "true",
        "\"1\"",
        "1e39",
        "123456789012345678901",
        "1.5.5",
        "1 2",
        "[]",
        "1e-50",
    ] {
        let json = with_data("FP32", &format!("[{number}]"));
        assert!(parse(json.as_bytes()).is_none(), "{json}");
    }
    for number in ["1.0", "1e2", "9223372036854775808"] {
        let json = with_data("INT64", &format!("[{number}]"));
        assert!(parse(json.as_bytes()).is_none(), "{json}");
    }
}

/// A number as one of several printers writes it.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<f32>().prop_map(|x| x.to_string()),
        any::<f32>().prop_map(|x| format!("{x:e}")),
        any::<f32>().prop_map(|x| f64::from(x).to_string()),
        (-10.0..10.0_f64).prop_map(|x| x.to_string()),
        any::<i64>().prop_map(|x| x.to_string()),
        any::<u64>().prop_map(|x| x.to_string()),
        Just("-0".to_owned()),
        Just("-0.0".to_owned()),
        "-?[0-9]{1,3}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,2})?",
    ]
}

fn body() -> impl Strategy<Value = String> {
    let data = proptest::collection::vec(number(), 0..6)
        .prop_map(|numbers| format!("[{}]", numbers.join(", ")));
    let nested = proptest::collection::vec(number(), 1..6)
        .prop_map(|numbers| format!("[[{}], [1]]", numbers.join("],[")));
    let row = proptest::collection::vec(number(), 0..3);
    let ragged = proptest::collection::vec(row, 0..4).prop_map(|rows| {
        let rows = rows.iter().map(|row| format!("[{}]", row.join(",")));
        format!("[{}]", rows.collect::<Vec<_>>().join(","))
    });
    (
        prop_oneof![data, nested, ragged],
        prop_oneof![Just("FP32"), Just("INT64"), Just("INT8"), Just("FP64")],
    )
        .prop_map(|(data, datatype)| with_data(datatype, &data))
}

proptest! {
    #[test]
    fn serde_reads_an_accepted_request_the_same(json in body()) {
        if let Some(read) = parse(json.as_bytes()) {
            let expected = by_serde(json.as_bytes());
            prop_assert!(expected.is_some(), "serde refuses {}", json);
            prop_assert_eq!(fields_of(&read), fields_of(&expected.unwrap()));
        }
    }

    /// A body broken in one position: cut off, or with one byte replaced.
    #[test]
    fn a_broken_body_is_read_as_serde_reads_it(
        json in body(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"{}[],:\"-+.eE0 9x\\\x01\xff".to_vec()),
        cut in any::<bool>(),
    ) {
        let mut json = json.into_bytes();
        let at = at.index(json.len());
        if cut { json.truncate(at) } else { json[at] = byte }
        if let Some(read) = parse(&json) {
            let expected = by_serde(&json);
            prop_assert!(expected.is_some(), "serde refuses {}", String::from_utf8_lossy(&json));
            prop_assert_eq!(fields_of(&read), fields_of(&expected.unwrap()));
        }
    }
}

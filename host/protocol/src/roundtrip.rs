//! Property tests: written tensors are read back bit for bit, and damaged bodies are refused.

use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeSeed;

use crate::app::{AppIndex, AppInfo, TensorSpec};
use crate::binary;
use crate::datatype::Datatype;
use crate::decode::{DecodeTarget, decode};
use crate::encode::elements::JsonElements;
use crate::framing::BodyFraming;
use crate::json::data::DataSeed;
use crate::tensor::{TensorData, element_count};

fn any_binary() -> impl Strategy<Value = TensorData> {
    let up_to = 0..40_usize;
    prop_oneof![
        vec(any::<bool>(), up_to.clone()).prop_map(TensorData::Bool),
        vec(any::<u8>(), up_to.clone()).prop_map(TensorData::U8),
        vec(any::<u16>(), up_to.clone()).prop_map(TensorData::U16),
        vec(any::<u32>(), up_to.clone()).prop_map(TensorData::U32),
        vec(any::<u64>(), up_to.clone()).prop_map(TensorData::U64),
        vec(any::<i8>(), up_to.clone()).prop_map(TensorData::I8),
        vec(any::<i16>(), up_to.clone()).prop_map(TensorData::I16),
        vec(any::<i32>(), up_to.clone()).prop_map(TensorData::I32),
        vec(any::<i64>(), up_to.clone()).prop_map(TensorData::I64),
        vec(any::<u16>(), up_to.clone()).prop_map(TensorData::F16),
        vec(any::<u16>(), up_to.clone()).prop_map(TensorData::Bf16),
        vec(any::<f32>(), up_to.clone()).prop_map(TensorData::F32),
        vec(any::<f64>(), up_to.clone()).prop_map(TensorData::F64),
        vec(vec(any::<u8>(), 0..9), up_to).prop_map(TensorData::Bytes),
    ]
}

fn any_json() -> impl Strategy<Value = TensorData> {
    any_binary().prop_filter_map("no JSON form", |data| match data {
        TensorData::F16(_) | TensorData::Bf16(_) => None,
        TensorData::F32(values) if !values.iter().all(|value| value.is_finite()) => None,
        TensorData::F64(values) if !values.iter().all(|value| value.is_finite()) => None,
        TensorData::Bytes(elements) => Some(TensorData::Bytes(
            elements
                .iter()
                .map(|element| String::from_utf8_lossy(element).into_owned().into_bytes())
                .collect(),
        )),
        other => Some(other),
    })
}

proptest! {
    #[test]
    fn binary(data in any_binary()) {
        let mut blob = Vec::new();
        binary::encode(&data, &mut blob);
        prop_assert_eq!(blob.len(), binary::encoded_len(&data));
        let read = binary::decode(data.datatype(), &blob, data.len()).unwrap();
        // NaN is not equal to itself; its bytes are.
        let mut again = Vec::new();
        binary::encode(&read, &mut again);
        prop_assert_eq!(blob, again);
    }

    #[test]
    fn json(data in any_json()) {
        let text = serde_json::to_string(&JsonElements { name: "x", data: &data }).unwrap();
        let seed = DataSeed { datatype: data.datatype(), expected: data.len() };
        let read = seed.deserialize(&mut serde_json::Deserializer::from_str(&text)).unwrap();
        prop_assert_eq!(read.found, data.len());
        prop_assert_eq!(read.data, data);
    }

    /// Damage to a valid body at most gets it refused; a body that is still accepted is consistent.
    #[test]
    fn damaged_bodies_are_refused_or_consistent(
        flips in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
        shift in -3..4_isize,
    ) {
        let json = br#"{"id":"a\u00e9","parameters":{"timeout":"5"},"inputs":[{"name":"i",
            "shape":[1,2],"datatype":"BYTES","parameters":{"binary_data_size":11}},
            {"name":"j","data":[[[1],[2]]],"datatype":"INT16","shape":[1,2]}],"outputs":[]}"#;
        let mut body = json.to_vec();
        body.extend_from_slice(&[3, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0]);
        for (index, byte) in &flips {
            let index = index.index(body.len());
            body[index] = *byte;
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        let json_length = json.len().saturating_add_signed(shift);
        let app = two_inputs();
        let target = DecodeTarget {
            app_index: AppIndex(0),
            app: &app,
            variant: None,
            framing: BodyFraming::JsonThenBlobs(json_length),
        };
        let decoded = decode(target, &body.into());
        if flips.is_empty() && cut.is_none() && shift == 0 {
            prop_assert!(decoded.is_ok(), "{:?}", decoded);
        }
        if let Ok(decoded) = decoded {
            for input in &decoded.call.inputs {
                prop_assert_eq!(element_count(&input.shape), Some(input.data.len()));
            }
        }
    }
}

fn two_inputs() -> AppInfo {
    let spec = |name: &str, datatype| TensorSpec {
        name: name.to_owned(),
        datatype,
        shape: vec![-1],
        largest: Vec::new(),
        content: Default::default(),
    };
    AppInfo {
        name: "x".to_owned(),
        variants: vec!["v".to_owned()],
        platform: "test".to_owned(),
        inputs: vec![spec("i", Datatype::Bytes), spec("j", Datatype::I16)],
        outputs: Vec::new(),
        max_batch_rows: 4,
        max_timeout_us: 60_000_000,
        non_finite: false,
        accuracy_max: 0.95,
        accuracies: vec![Some(0.9)],
        classes: Vec::new(),
    }
}

//! Element types of tensors on the wire.

use serde::{Deserialize, Serialize};

/// Element type, as named by the Open Inference Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Datatype {
    /// 32-bit IEEE float.
    #[serde(rename = "FP32")]
    Fp32,
    /// 64-bit signed integer.
    #[serde(rename = "INT64")]
    Int64,
    /// A string; as an input, UTF-8 text.
    #[serde(rename = "BYTES")]
    Bytes,
}

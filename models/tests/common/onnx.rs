//! ONNX files for tests, written with the fields that `onnx.proto` has.

use prost::Message;

/// Type numbers of `TensorProto.DataType`.
pub(crate) const FLOAT: i32 = 1;
/// As above.
pub(crate) const INT64: i32 = 7;
/// As above.
pub(crate) const COMPLEX64: i32 = 14;

/// A dimension that the graph leaves open.
pub(crate) const OPEN: i64 = 0;

/// A graph.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) weights: Vec<Weight>,
    pub(crate) inputs: Vec<Value>,
    pub(crate) outputs: Vec<Value>,
}

// === impl Graph ===

impl Graph {
    /// `relu(x W0 + b0) W1 + b1`, as logits: the weights of an `mlp` variant, row by row.
    pub(crate) fn perceptron(sizes: [usize; 3], [w0, b0, w1, b1]: [Vec<f32>; 4]) -> Self {
        let [samples, hidden, classes] = sizes.map(|size| size as i64);
        Self {
            nodes: vec![
                Node::new("Gemm", &["x", "w0", "b0"], "h"),
                Node::new("Relu", &["h"], "r"),
                Node::new("Gemm", &["r", "w1", "b1"], "logits"),
            ],
            weights: vec![
                Weight::new("w0", &[samples, hidden], &w0),
                Weight::new("b0", &[hidden], &b0),
                Weight::new("w1", &[hidden, classes], &w1),
                Weight::new("b1", &[classes], &b1),
            ],
            inputs: vec![Value::new("x", FLOAT, Some(&[OPEN, samples]))],
            outputs: vec![Value::new("logits", FLOAT, Some(&[OPEN, classes]))],
        }
    }

    /// The graph, and a file `location` with its values, as exporters write large ones.
    pub(crate) fn apart(mut self, location: &str) -> (Vec<u8>, Vec<u8>) {
        let mut values = Vec::new();
        for weight in &mut self.weights {
            let bytes = std::mem::take(&mut weight.raw_data);
            let place = [
                ("location", location.to_owned()),
                ("offset", values.len().to_string()),
                ("length", bytes.len().to_string()),
            ];
            let entries = place.into_iter().map(|(key, value)| Entry {
                key: key.to_owned(),
                value,
            });
            weight.external_data = entries.collect();
            weight.data_location = 1;
            values.extend(bytes);
        }
        (self.bytes(), values)
    }

    /// The file.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let model = Model {
            ir_version: 8,
            graph: Some(GraphProto {
                node: self.nodes,
                name: "graph".to_owned(),
                initializer: self.weights,
                input: self.inputs,
                output: self.outputs,
            }),
            opset_import: vec![
                Opset {
                    domain: String::new(),
                    version: 17,
                },
                Opset {
                    domain: "ai.onnx.ml".to_owned(),
                    version: 3,
                },
            ],
        };
        model.encode_to_vec()
    }
}

impl Node {
    pub(crate) fn new(kind: &str, inputs: &[&str], output: &str) -> Self {
        Self {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            op_type: kind.to_owned(),
            attribute: Vec::new(),
            domain: String::new(),
        }
    }

    /// Of `ai.onnx.ml`.
    pub(crate) fn classic(self) -> Self {
        Self {
            domain: "ai.onnx.ml".to_owned(),
            ..self
        }
    }

    /// With an attribute of numbers.
    pub(crate) fn floats(mut self, name: &str, floats: &[f32]) -> Self {
        self.attribute.push(Attribute {
            name: name.to_owned(),
            floats: floats.to_vec(),
            kind: 6,
            ..Attribute::default()
        });
        self
    }

    /// With an attribute of texts.
    pub(crate) fn strings(mut self, name: &str, strings: &[&str]) -> Self {
        self.attribute.push(Attribute {
            name: name.to_owned(),
            strings: strings
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect(),
            kind: 8,
            ..Attribute::default()
        });
        self
    }

    /// With an attribute of one text.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn text(mut self, name: &str, text: &str) -> Self {
        self.attribute.push(Attribute {
            name: name.to_owned(),
            text: text.as_bytes().to_vec(),
            kind: 3,
            ..Attribute::default()
        });
        self
    }

    /// With an attribute of integers.
    pub(crate) fn ints(mut self, name: &str, ints: &[i64]) -> Self {
        self.attribute.push(Attribute {
            name: name.to_owned(),
            ints: ints.to_vec(),
            kind: 7,
            ..Attribute::default()
        });
        self
    }
}

impl Weight {
    pub(crate) fn new(name: &str, dims: &[i64], numbers: &[f32]) -> Self {
        Self {
            dims: dims.to_vec(),
            data_type: FLOAT,
            name: name.to_owned(),
            raw_data: numbers.iter().copied().flat_map(f32::to_le_bytes).collect(),
            data_location: 0,
            external_data: Vec::new(),
        }
    }
}

impl Value {
    /// An input or output; `None` if the file does not have its shape.
    pub(crate) fn new(name: &str, elem_type: i32, shape: Option<&[i64]>) -> Self {
        let dim = |(axis, &size): (usize, &i64)| match size {
            OPEN => Dimension {
                value: None,
                param: Some(format!("n{axis}")),
            },
            size => Dimension {
                value: Some(size),
                param: None,
            },
        };
        let shape = shape.map(|shape| Shape {
            dim: shape.iter().enumerate().map(dim).collect(),
        });
        Self {
            name: name.to_owned(),
            r#type: Some(Type {
                tensor_type: Some(TensorType { elem_type, shape }),
                sequence_type: None,
            }),
        }
    }

    /// An output of a map for each row: from an integer to a number.
    pub(crate) fn maps(name: &str) -> Self {
        // SequenceTypeProto of MapTypeProto of INT64 and a tensor of FLOAT.
        let sequence = [0x0a, 10, 0x2a, 8, 0x08, 7, 0x12, 4, 0x0a, 2, 0x08, 1];
        Self {
            name: name.to_owned(),
            r#type: Some(Type {
                tensor_type: None,
                sequence_type: Some(sequence.to_vec()),
            }),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<Opset>,
}

#[derive(Clone, PartialEq, Message)]
struct Opset {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<Node>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<Weight>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<Value>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) output: Vec<String>,
    #[prost(string, tag = "4")]
    pub(crate) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub(crate) domain: String,
}

/// An attribute of one integer.
pub(crate) fn integer(name: &str, value: i64) -> Attribute {
    Attribute {
        name: name.to_owned(),
        value,
        kind: 2,
        ..Attribute::default()
    }
}

/// An attribute of an operator.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attribute {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int64, tag = "3")]
    value: i64,
    #[prost(bytes = "vec", tag = "4")]
    text: Vec<u8>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(crate) ints: Vec<i64>,
    #[prost(bytes = "vec", repeated, tag = "9")]
    pub(crate) strings: Vec<Vec<u8>>,
    /// 2: an integer, 3: a text, 6: floats, 7: integers, 8: texts.
    #[prost(int32, tag = "20")]
    kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Weight {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(string, tag = "8")]
    pub(crate) name: String,
    #[prost(bytes = "vec", tag = "9")]
    pub(crate) raw_data: Vec<u8>,
    #[prost(int32, tag = "14")]
    pub(crate) data_location: i32,
    #[prost(message, repeated, tag = "13")]
    external_data: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    r#type: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
struct Type {
    #[prost(message, optional, tag = "1")]
    tensor_type: Option<TensorType>,
    #[prost(bytes = "vec", optional, tag = "4")]
    sequence_type: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorType {
    #[prost(int32, tag = "1")]
    elem_type: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    param: Option<String>,
}

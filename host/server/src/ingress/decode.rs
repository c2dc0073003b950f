//! From the bytes of a body to a call the backend can trust.
//!
//! Every check is made here, once: what [`decode`] returns matches the app's
//! inputs in name, datatype, shape and length.

mod outputs;
mod raw;
mod text;

use bytes::Bytes;
use hyper::header::HeaderName;
use smallvec::SmallVec;

use self::outputs::wanted_outputs;
use self::raw::decode_raw_request;
use super::backend::{AppInfo, InferCall, TensorSpec};
use super::binary;
use super::error::ProtocolError;
use super::json_tensor::DataSeed;
use super::request::{InferRequest, InputData, RequestInput, decode_raw};
use super::tensor::{Datatype, Tensor, TensorData, element_count};

/// The header that says where the JSON ends and the blobs begin.
pub(super) static JSON_LENGTH: HeaderName =
    HeaderName::from_static("inference-header-content-length");
const JSON_LENGTH_FIELD: &str = "Inference-Header-Content-Length";

/// How a body is laid out, by the header [`JSON_LENGTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// No header: all of it is JSON.
    Json,
    /// So many bytes of JSON, then blobs.
    JsonThenBlobs(usize),
    /// Header value 0: all of it is the one input.
    Raw,
}

impl Framing {
    /// Reads the header's value.
    pub(super) fn from_header(value: Option<&[u8]>) -> Result<Self, ProtocolError> {
        let Some(value) = value else {
            return Ok(Self::Json);
        };
        let length = str::from_utf8(value)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        match length {
            Some(0) => Ok(Self::Raw),
            Some(length) => Ok(Self::JsonThenBlobs(length)),
            None => Err(ProtocolError::malformed(
                JSON_LENGTH_FIELD,
                format!(
                    "expected a number of bytes, got {:?}",
                    String::from_utf8_lossy(value)
                ),
            )),
        }
    }
}

/// Which app, and how the body is to be read.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) app_index: usize,
    pub(super) app: &'a AppInfo,
    pub(super) variant: Option<usize>,
    pub(super) framing: Framing,
}

/// An output the client wants, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) spec: usize,
    pub(super) binary: bool,
}

/// Outputs the client wants, in its order.
pub(super) type WantedOutputs = SmallVec<[Wanted; 4]>;

/// A request that has passed every check.
#[derive(Debug)]
pub(super) struct DecodedRequest {
    pub(super) call: InferCall,
    /// To be echoed.
    pub(super) id: Option<String>,
    pub(super) wanted: WantedOutputs,
}

/// Reads and checks the body of one inference, as the server does: `json_bytes` is the value of
/// the header that says where the JSON ends, if it is there. For measuring and for fuzzing; of
/// several apps it is the first.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(
    app: &AppInfo,
    json_bytes: Option<usize>,
    body: &Bytes,
) -> Result<InferCall, ProtocolError> {
    let framing = match json_bytes {
        None => Framing::Json,
        Some(0) => Framing::Raw,
        Some(length) => Framing::JsonThenBlobs(length),
    };
    let target = Target {
        app_index: 0,
        app,
        variant: None,
        framing,
    };
    decode(target, body).map(|request| request.call)
}

/// Decodes and checks a body.
pub(super) fn decode(target: Target<'_>, body: &Bytes) -> Result<DecodedRequest, ProtocolError> {
    let (json, blobs) = match target.framing {
        Framing::Raw => return decode_raw_request(target, body),
        Framing::Json => (&body[..], None),
        Framing::JsonThenBlobs(length) => {
            let (json, blobs) = body.split_at_checked(length).ok_or_else(|| {
                let reason = format!("is {length}, the body has {} bytes", body.len());
                ProtocolError::malformed(JSON_LENGTH_FIELD, reason)
            })?;
            (json, Some(blobs))
        }
    };
    let request = InferRequest::parse(json)?;
    let parameters = request.parameters.unwrap_or_default();
    let outputs = request.outputs.as_deref().unwrap_or_default();
    let wanted = wanted_outputs(target.app, outputs, parameters.binary_data_output)?;
    let (rows, inputs) = decode_inputs(target.app, request.inputs, Blobs::new(body, blobs))?;
    Ok(DecodedRequest {
        call: InferCall {
            app: target.app_index,
            variant: target.variant,
            rows,
            inputs,
            timeout_us: parameters.timeout,
            priority: parameters.priority,
            min_accuracy: parameters.min_accuracy,
        },
        id: request.id.map(|id| id.0.into_owned()),
        wanted,
    })
}

/// The blobs not yet taken; none when the body has no binary part.
struct Blobs<'a> {
    body: &'a Bytes,
    rest: Option<&'a [u8]>,
}

impl<'a> Blobs<'a> {
    const fn new(body: &'a Bytes, rest: Option<&'a [u8]>) -> Self {
        Self { body, rest }
    }

    fn take(&mut self, index: usize, size: usize) -> Result<&'a [u8], ProtocolError> {
        let field = || format!("inputs[{index}].parameters.binary_data_size");
        let Some(rest) = self.rest else {
            let reason = format!("is set, but the header {JSON_LENGTH_FIELD} is missing");
            return Err(ProtocolError::malformed(field(), reason));
        };
        let Some((blob, rest)) = rest.split_at_checked(size) else {
            let reason = format!("is {size}, the body has {} bytes left", rest.len());
            return Err(ProtocolError::malformed(field(), reason));
        };
        self.rest = Some(rest);
        Ok(blob)
    }

    fn finish(self) -> Result<(), ProtocolError> {
        match self.rest {
            None | Some([]) => Ok(()),
            Some(rest) => Err(ProtocolError::malformed(
                "body",
                format!("{} bytes follow the last binary tensor", rest.len()),
            )),
        }
    }
}

/// Decodes all inputs into the app's order; returns the rows they agree on.
fn decode_inputs(
    app: &AppInfo,
    inputs: Vec<RequestInput<'_>>,
    mut blobs: Blobs<'_>,
) -> Result<(usize, Vec<Tensor>), ProtocolError> {
    let mut slots: SmallVec<[Option<Tensor>; 4]> = app.inputs.iter().map(|_| None).collect();
    let mut rows = None;
    for (index, input) in inputs.into_iter().enumerate() {
        let spec = find(&app.inputs, &input.name.0)
            .ok_or_else(|| unknown_tensor("input", index, &input.name.0, app))?;
        if slots[spec].is_some() {
            let reason = format!("{:?} is there twice", input.name.0);
            return Err(ProtocolError::malformed(
                format!("inputs[{index}].name"),
                reason,
            ));
        }
        let tensor = decode_input(app, &app.inputs[spec], index, input, &mut blobs)?;
        let own_rows = tensor.shape[0];
        if *rows.get_or_insert(own_rows) != own_rows {
            let reason = format!(
                "has {own_rows} rows, the inputs before it have {}",
                rows.unwrap_or_default()
            );
            return Err(ProtocolError::malformed(
                format!("inputs[{index}].shape"),
                reason,
            ));
        }
        slots[spec] = Some(tensor);
    }
    blobs.finish()?;
    let tensors = slots
        .into_iter()
        .zip(&app.inputs)
        .map(|(slot, spec)| {
            slot.ok_or_else(|| {
                ProtocolError::malformed("inputs", format!("{:?} is missing", spec.name))
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let rows = rows.ok_or_else(|| ProtocolError::malformed("inputs", "is empty"))?;
    Ok((rows, tensors))
}

fn decode_input(
    app: &AppInfo,
    spec: &TensorSpec,
    index: usize,
    input: RequestInput<'_>,
    blobs: &mut Blobs<'_>,
) -> Result<Tensor, ProtocolError> {
    let malformed = |field: &str, reason: String| {
        ProtocolError::malformed(format!("inputs[{index}].{field}"), reason)
    };
    check_datatype(spec, &input.datatype.0).map_err(|reason| malformed("datatype", reason))?;
    let count =
        check_shape(app, spec, &input.shape).map_err(|reason| malformed("shape", reason))?;
    if input.parameters.shared_memory_region.is_some() {
        let field = "parameters.shared_memory_region";
        return Err(malformed(
            field,
            "shared memory is not supported".to_owned(),
        ));
    }
    let data = match (input.data, input.parameters.binary_data_size) {
        (InputData::Absent, Some(size)) => {
            let blob = blobs.take(index, size)?;
            binary::take(spec.datatype, blobs.body, blob, count)
                .map_err(|reason| malformed("parameters.binary_data_size", reason))?
        }
        (InputData::Absent, None) => {
            let reason = "is missing, and so is parameters.binary_data_size";
            return Err(malformed("data", reason.to_owned()));
        }
        (_, Some(_)) => {
            let reason = "is set beside parameters.binary_data_size; send one of them";
            return Err(malformed("data", reason.to_owned()));
        }
        (data, None) => {
            json_data(data, spec.datatype, count).map_err(|reason| malformed("data", reason))?
        }
    };
    text::check(&data).map_err(|reason| malformed("data", reason))?;
    Ok(Tensor {
        shape: input.shape,
        data,
    })
}

/// The elements of `data`, now that their type and count are certain.
fn json_data(data: InputData<'_>, datatype: Datatype, count: usize) -> Result<TensorData, String> {
    let decoded = match data {
        InputData::Decoded(decoded) => decoded,
        InputData::Raw(raw) => {
            let expected = count;
            decode_raw(raw, DataSeed { datatype, expected })?
        }
        InputData::Absent => return Err("is missing".to_owned()),
    };
    if decoded.found == count {
        Ok(decoded.data)
    } else {
        Err(format!("expected {count} elements, got {}", decoded.found))
    }
}

fn check_datatype(spec: &TensorSpec, name: &str) -> Result<(), String> {
    match Datatype::from_name(name) {
        Some(datatype) if datatype == spec.datatype => Ok(()),
        Some(_) => Err(format!("expected {}, got {name}", spec.datatype.name())),
        None => Err(format!(
            "expected {}, got the unknown datatype {name:?}",
            spec.datatype.name()
        )),
    }
}

/// Returns the elements a tensor of that shape has, if the app takes it.
fn check_shape(app: &AppInfo, spec: &TensorSpec, shape: &[usize]) -> Result<usize, String> {
    let fits = shape.split_first().is_some_and(|(_, row)| {
        row.len() == spec.shape.len()
            && row
                .iter()
                .zip(&spec.shape)
                .all(|(&dim, &wanted)| usize::try_from(wanted).map_or(true, |wanted| dim == wanted))
    });
    if !fits {
        return Err(format!(
            "expected {}, got {shape:?}; the first dimension is the batch",
            batched(spec)
        ));
    }
    let rows = shape[0];
    if rows == 0 || rows > app.max_batch_rows {
        return Err(format!(
            "expected 1 to {} rows, got {rows}",
            app.max_batch_rows
        ));
    }
    element_count(shape).ok_or_else(|| format!("{shape:?} has more elements than can be counted"))
}

/// `[rows, 187]`, with `?` where a dimension is variable.
fn batched(spec: &TensorSpec) -> String {
    let mut text = String::from("[rows");
    for dim in &spec.shape {
        text.push_str(", ");
        if *dim < 0 {
            text.push('?');
        } else {
            text.push_str(&dim.to_string());
        }
    }
    text.push(']');
    text
}

fn find(specs: &[TensorSpec], name: &str) -> Option<usize> {
    specs.iter().position(|spec| spec.name == name)
}

fn unknown_tensor(kind: &str, index: usize, name: &str, app: &AppInfo) -> ProtocolError {
    let specs = if kind == "input" {
        &app.inputs
    } else {
        &app.outputs
    };
    let known: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
    ProtocolError::malformed(
        format!("{kind}s[{index}].name"),
        format!(
            "unknown {kind} {name:?}; app {:?} has: {}",
            app.name,
            known.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests;

//! The apps that a server offers: names, inputs, outputs, and typed indices into them.

use crate::datatype::Datatype;

/// Position of an app among all apps of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppIndex(pub usize);

/// Position of a variant in [`AppInfo::variants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantIndex(pub usize);

/// Position of an output in [`AppInfo::outputs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputIndex(pub usize);

/// The inputs, outputs and variants of an app. An *app* is the protocol's model, a *variant* its
/// version.
#[derive(Clone, Debug)]
pub struct AppInfo {
    /// Name in the URL.
    pub name: String,
    /// Variant names, by [`VariantIndex`].
    pub variants: Vec<String>,
    /// Platform in the metadata, such as `candle`.
    pub platform: String,
    /// Inputs, in the order of [`InferCall::inputs`](crate::InferCall::inputs).
    pub inputs: Vec<TensorSpec>,
    /// Outputs, by [`OutputIndex`].
    pub outputs: Vec<TensorSpec>,
    /// Most rows in one request.
    pub max_batch_rows: usize,
}

/// Name, datatype and shape of one input or output.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Name on the wire.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Dimensions of one row, without the batch dimension; -1 is variable.
    pub shape: Vec<i64>,
}

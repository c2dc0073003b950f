//! The engine inside this program: rten, which needs no library of the machine.
//!
//! It computes in 32 bits. Integers of 64 bits that do not fit are refused, and so are graphs of
//! doubles, halves and strings.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{Error, Result};
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView, ValueView};
use rten_tensor::{AsView, Layout, Tensor, TensorView};

use super::elements;
use super::engine::Engine;
use super::sketch;
use crate::error::ModelError;
use crate::networks::datatype::Datatype;
use crate::networks::graph::{NamedTensor, Port, RawTensor};

/// Its name.
pub(super) const NAME: &str = "rten";

/// The way out for graphs that it refuses.
pub(super) const WAY_OUT: &str = "install onnxruntime, and name it with `onnxruntime` in [server] or \
                       ORT_DYLIB_PATH";

/// Pools that run no batch now. A batch borrows one with as many threads as its worker has.
static IDLE_POOLS: Mutex<Vec<IdlePool>> = Mutex::new(Vec::new());

/// A pool and its threads.
type IdlePool = (usize, Arc<ThreadPool>);

/// A graph that rten runs.
pub(super) struct EmbeddedGraph {
    model: Model,
    outputs: Vec<(Port, NodeId)>,
}

/// A pool that is returned when this is dropped, also after a panic.
struct BorrowedPool(IdlePool);

/// Reads the graph in the `bytes` of `file`, for these inputs and outputs. Packed weights make encoders a fifth
/// faster, and convolutions no faster; they take memory.
///
/// # Errors
/// The graph has an operator or a type that rten does not know; the text names it.
pub(super) fn read(
    file: &Path,
    bytes: Vec<u8>,
    inputs: &[Port],
    outputs: &[Port],
    packs: bool,
) -> std::result::Result<EmbeddedGraph, ModelError> {
    let refuse = |reason: String| ModelError::weights(file, format!("{reason}; {WAY_OUT}"));
    let mut ports = inputs.iter().chain(outputs);
    if let Some(port) = ports.find(|port| !is_known(port.datatype)) {
        let (name, datatype) = (&port.name, port.datatype.name());
        return Err(refuse(format!(
            "`{name}` is {datatype}, which the engine in this program does not compute"
        )));
    }
    if let Some(operator) = sketch::read(&bytes).map_err(&refuse)?.padded_lower() {
        return Err(refuse(format!(
            "auto_pad of operator {operator} is SAME_LOWER, which the engine in this program does not compute"
        )));
    }
    let loaded = ModelOptions::with_all_ops()
        .prepack_weights(packs)
        .load(bytes);
    let model = loaded
        .map_err(|error| refuse(format!("the engine in this program cannot run it: {error}")))?;
    let outputs = outputs.iter().map(|port| match model.node_id(&port.name) {
        Ok(id) => Ok((port.clone(), id)),
        Err(error) => Err(refuse(format!("output `{}`: {error}", port.name))),
    });
    Ok(EmbeddedGraph {
        outputs: outputs.collect::<std::result::Result<_, _>>()?,
        model,
    })
}

const fn is_known(datatype: Datatype) -> bool {
    matches!(
        datatype,
        Datatype::Fp32
            | Datatype::Int64
            | Datatype::Int32
            | Datatype::Int8
            | Datatype::Uint8
            | Datatype::Bool
    )
}

// === impl EmbeddedGraph ===

impl EmbeddedGraph {
    /// Whether the graph has a tensor of this name.
    pub(super) fn takes(&self, name: &str) -> bool {
        self.model.node_id(name).is_ok()
    }
}

impl Engine for EmbeddedGraph {
    fn run(&self, inputs: &[(&str, &RawTensor)], wanted: Option<&str>) -> Result<Vec<NamedTensor>> {
        let views = inputs.iter().map(|(_, tensor)| Input::of(tensor));
        let views: Vec<Input<'_>> = views.collect::<Result<_>>()?;
        let values = inputs.iter().zip(&views).map(|((name, tensor), view)| {
            let id = self.model.node_id(name).map_err(Error::wrap)?;
            Ok((id, ValueOrView::View(view.value(&tensor.shape)?)))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let outputs = self.outputs.iter();
        let outputs = outputs.filter(|(port, _)| wanted.is_none_or(|name| *port.name == *name));
        let outputs: Vec<&(Port, NodeId)> = outputs.collect();
        let ids: Vec<NodeId> = outputs.iter().map(|(_, id)| *id).collect();
        let pool = BorrowedPool::new(rayon::current_num_threads());
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&pool.0.1)));
        let made = self
            .model
            .run(values, &ids, Some(options))
            .map_err(Error::wrap)?;
        let named = outputs
            .into_iter()
            .zip(made)
            .map(|((port, _), value)| Ok((Arc::clone(&port.name), raw(port, value)?)));
        named.collect()
    }
}

/// The elements of an input, in a type of rten's.
enum Input<'a> {
    F32(Cow<'a, [f32]>),
    I32(Cow<'a, [i32]>),
    I8(Cow<'a, [i8]>),
    U8(Cow<'a, [u8]>),
}

// === impl Input ===

impl<'a> Input<'a> {
    fn of(tensor: &'a RawTensor) -> Result<Self> {
        Ok(match tensor.datatype {
            Datatype::Fp32 => Self::F32(elements::numbers(tensor)?),
            Datatype::Int32 => Self::I32(elements::numbers(tensor)?),
            Datatype::Int8 => Self::I8(elements::numbers(tensor)?),
            Datatype::Uint8 => Self::U8(elements::numbers(tensor)?),
            Datatype::Bool => {
                let bytes = elements::numbers::<u8>(tensor)?;
                Self::I32(bytes.iter().map(|&byte| i32::from(byte != 0)).collect())
            }
            Datatype::Int64 => {
                let wide = elements::numbers::<i64>(tensor)?;
                let narrow: std::result::Result<Vec<i32>, _> =
                    wide.iter().map(|&number| i32::try_from(number)).collect();
                Self::I32(narrow.map_err(|_| too_large(&wide))?.into())
            }
            other => candle_core::bail!("{} is not computed by {NAME}", other.name()),
        })
    }

    fn value(&self, shape: &[usize]) -> Result<ValueView<'_>> {
        Ok(match self {
            Self::F32(numbers) => view(shape, numbers)?.into(),
            Self::I32(numbers) => view(shape, numbers)?.into(),
            Self::I8(numbers) => view(shape, numbers)?.into(),
            Self::U8(numbers) => view(shape, numbers)?.into(),
        })
    }
}

fn view<'a, T>(shape: &[usize], numbers: &'a [T]) -> Result<TensorView<'a, T>> {
    TensorView::try_from_data(shape, numbers).map_err(Error::wrap)
}

fn too_large(numbers: &[i64]) -> Error {
    let odd = numbers
        .iter()
        .find(|&&number| i32::try_from(number).is_err());
    let odd = odd.copied().unwrap_or_default();
    Error::msg(format!(
        "{odd} does not fit the 32 bits that the engine in this program computes in; {WAY_OUT}"
    ))
}

/// An output in the type that the graph declares.
fn raw(port: &Port, value: Value) -> Result<RawTensor> {
    let datatype = port.datatype;
    match (value, datatype) {
        (Value::FloatTensor(tensor), Datatype::Fp32) => Ok(moved(datatype, tensor)),
        (Value::Int32Tensor(tensor), Datatype::Int32) => Ok(moved(datatype, tensor)),
        (Value::Int8Tensor(tensor), Datatype::Int8) => Ok(moved(datatype, tensor)),
        (Value::UInt8Tensor(tensor), Datatype::Uint8) => Ok(moved(datatype, tensor)),
        (Value::Int32Tensor(tensor), Datatype::Int64) => {
            let wide: Vec<i64> = tensor.iter().map(|&number| i64::from(number)).collect();
            Ok(elements::moved(datatype, tensor.shape().to_vec(), wide))
        }
        (Value::Int32Tensor(tensor), Datatype::Bool) => {
            let bytes: Vec<u8> = tensor.iter().map(|&flag| u8::from(flag != 0)).collect();
            Ok(elements::moved(datatype, tensor.shape().to_vec(), bytes))
        }
        (other, wanted) => candle_core::bail!(
            "output `{}` is {}, the graph says {}",
            port.name,
            other.dtype(),
            wanted.name()
        ),
    }
}

fn moved<T: bytemuck::Pod + Send>(datatype: Datatype, tensor: Tensor<T>) -> RawTensor {
    let shape = tensor.shape().to_vec();
    elements::moved(datatype, shape, tensor.into_data())
}

// === impl BorrowedPool ===

impl BorrowedPool {
    fn new(threads: usize) -> Self {
        let mut idle = idle_pools();
        let at = idle.iter().position(|(of, _)| *of == threads);
        let known = at.map(|at| idle.swap_remove(at));
        drop(idle);
        Self(known.unwrap_or_else(|| (threads, Arc::new(ThreadPool::with_num_threads(threads)))))
    }
}

impl Drop for BorrowedPool {
    fn drop(&mut self) {
        let (threads, pool) = &self.0;
        idle_pools().push((*threads, Arc::clone(pool)));
    }
}

fn idle_pools() -> MutexGuard<'static, Vec<IdlePool>> {
    // Its contents are consistent at every point where a panic can happen.
    IDLE_POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

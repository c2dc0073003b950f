//! Running a graph: sessions of onnxruntime, one for each batch that runs at the same time.
//!
//! A session serves one batch at a time and has the threads of the worker that runs it: the calling
//! thread and, for a worker of more than one thread, threads of the session that sleep between
//! batches. Workers share a graph as they share any weights. If a second worker runs a batch at the
//! same time as the first, or has another number of threads, it gets its own session, which is kept
//! for later batches.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use candle_core::{Error, Result};
use ort::session::{OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, Tensor, TensorElementType, TensorRef, ValueType};

use super::classic::appended_outputs;
use super::elements;
use super::engine::Engine;
use super::file::GraphFile;
use super::header::GraphHeader;
use super::library;
use super::spec::OnnxSpec;
use crate::error::ModelError;
use crate::networks::datatype::Datatype;
use crate::networks::graph::{NamedTensor, RawData, RawTensor};

/// A graph that onnxruntime runs.
pub(super) struct GraphSession {
    file: GraphFile,
    /// Bytes that follow the file's: further outputs.
    appended: Vec<u8>,
    /// Its outputs that are tensors, if some are maps, which cannot be taken out.
    tensors: Vec<String>,
    /// Sessions that run nothing now.
    idle: Mutex<Vec<IdleSession>>,
    /// Notified when a session is returned.
    returned: Condvar,
    /// Whether the log has the warning that no more sessions can be made.
    is_warned: AtomicBool,
}

/// A session, and the threads that it was made for.
struct IdleSession {
    threads: usize,
    session: Session,
}

/// A borrowed session, which is returned when this is dropped, also after a panic.
struct BorrowedSession<'a> {
    graph: &'a GraphSession,
    session: Option<IdleSession>,
}

// === impl GraphSession ===

impl GraphSession {
    /// Makes the first session, for the threads of the current pool; outside of a pool, for those
    /// of the largest worker. From now on there is at least one session, idle or running.
    pub(super) fn open(
        path: &Path,
        card: &Path,
        spec: &OnnxSpec,
    ) -> std::result::Result<Self, ModelError> {
        let file = GraphFile::open(path)?;
        let mut bytes = file.read()?;
        // The card was completed from an earlier read of the file.
        let header = GraphHeader::parse(path, &bytes)?;
        spec.completes_again(card, &header)?;
        let appended = appended_outputs(&header.zipped);
        bytes.extend_from_slice(&appended);
        let threads = rayon::current_num_threads();
        let session = session(path, &bytes, threads)?;
        Ok(Self {
            file,
            appended,
            tensors: match header.zipped.is_empty() {
                true => Vec::new(),
                false => header.outputs.into_iter().map(|one| one.name).collect(),
            },
            idle: Mutex::new(vec![IdleSession { threads, session }]),
            returned: Condvar::new(),
            is_warned: AtomicBool::new(false),
        })
    }

    /// A session with the worker's threads. If another cannot be made, any idle session:
    /// a late answer is better than an error.
    fn borrow(&self) -> BorrowedSession<'_> {
        let threads = rayon::current_num_threads();
        let mut idle = self.idle();
        if let Some(at) = idle.iter().position(|one| one.threads == threads) {
            return self.borrowed(idle.swap_remove(at));
        }
        drop(idle);
        let bytes = self.file.read().map(|mut bytes| {
            bytes.extend_from_slice(&self.appended);
            bytes
        });
        match bytes.and_then(|bytes| session(self.file.path(), &bytes, threads)) {
            Ok(session) => return self.borrowed(IdleSession { threads, session }),
            Err(error) if !self.is_warned.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, threads, "cannot make another session: batches wait for a free one");
            }
            Err(_) => {}
        }
        let mut idle = self.idle();
        loop {
            if let Some(session) = idle.pop() {
                return self.borrowed(session);
            }
            let waited = self.returned.wait(idle);
            idle = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn borrowed(&self, session: IdleSession) -> BorrowedSession<'_> {
        BorrowedSession {
            graph: self,
            session: Some(session),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<IdleSession>> {
        // Its contents are consistent at every point where a panic can happen.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for GraphSession {
    fn run(&self, inputs: &[(&str, &RawTensor)], wanted: Option<&str>) -> Result<Vec<NamedTensor>> {
        let mut borrowed = self.borrow();
        let Some(IdleSession { session, .. }) = &mut borrowed.session else {
            candle_core::bail!("no session");
        };
        let views = inputs.iter().map(|(_, tensor)| InputView::of(tensor));
        let views: Vec<InputView<'_>> = views.collect::<Result<_>>()?;
        let values = inputs.iter().zip(&views).map(|((name, tensor), view)| {
            let value = view.value(&tensor.shape).map_err(Error::wrap)?;
            Ok((Cow::Borrowed(*name), value))
        });
        let values: Vec<(Cow<'_, str>, SessionInputValue<'_>)> = values.collect::<Result<_>>()?;
        let names: Vec<&str> = match wanted {
            Some(name) => vec![name],
            None => self.tensors.iter().map(String::as_str).collect(),
        };
        let options = match names.is_empty() {
            true => None,
            false => {
                let none = OutputSelector::no_default();
                let only = names.into_iter().fold(none, OutputSelector::with);
                Some(RunOptions::new().map_err(Error::wrap)?.with_outputs(only))
            }
        };
        let outputs = match &options {
            Some(options) => session.run_with_options(values, options),
            None => session.run(values),
        };
        let outputs = outputs.map_err(Error::wrap)?;
        let raw = outputs
            .iter()
            .map(|(name, value)| Ok((name.into(), extract(&value)?)));
        raw.collect()
    }
}

/// Declares the numbers that onnxruntime takes and gives, from one table.
macro_rules! number_types {
    ($($datatype:ident $element:ident $type:ty),+ $(,)?) => {
        /// The elements of an input, aligned.
        enum InputView<'a> {
            $($datatype(Cow<'a, [$type]>),)+
            Bool(Vec<bool>),
            Texts(&'a [std::sync::Arc<str>]),
        }

        impl<'a> InputView<'a> {
            fn of(tensor: &'a RawTensor) -> Result<Self> {
                match tensor.datatype {
                    $(Datatype::$datatype => elements::numbers(tensor).map(Self::$datatype),)+
                    Datatype::Bool => {
                        let bytes = elements::numbers::<u8>(tensor)?;
                        Ok(Self::Bool(bytes.iter().map(|&byte| byte != 0).collect()))
                    }
                    Datatype::Bytes => Ok(Self::Texts(tensor.texts().unwrap_or_default())),
                }
            }

            fn value(&self, shape: &[usize]) -> ort::Result<SessionInputValue<'_>> {
                let shape = shape.to_vec();
                Ok(match self {
                    $(Self::$datatype(numbers) => {
                        TensorRef::from_array_view((shape, &**numbers))?.into()
                    })+
                    Self::Bool(values) => TensorRef::from_array_view((shape, &**values))?.into(),
                    Self::Texts(texts) => {
                        let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
                        Tensor::from_string_array((shape, texts.as_slice()))?.into()
                    }
                })
            }
        }

        /// A copy of an output.
        fn extract(value: &DynValue) -> Result<RawTensor> {
            let ValueType::Tensor { ty, .. } = value.dtype() else {
                candle_core::bail!("an output is no tensor");
            };
            match ty {
                $(TensorElementType::$element => {
                    let (shape, numbers) =
                        value.try_extract_tensor::<$type>().map_err(Error::wrap)?;
                    Ok(elements::tensor(Datatype::$datatype, sizes(shape), numbers))
                })+
                TensorElementType::Bool => {
                    let (shape, values) =
                        value.try_extract_tensor::<bool>().map_err(Error::wrap)?;
                    let bytes: Vec<u8> = values.iter().map(|&value| u8::from(value)).collect();
                    Ok(elements::tensor(Datatype::Bool, sizes(shape), &bytes))
                }
                TensorElementType::String => {
                    let (shape, texts) = value.try_extract_strings().map_err(Error::wrap)?;
                    Ok(RawTensor {
                        datatype: Datatype::Bytes,
                        shape: sizes(shape),
                        data: RawData::Texts(texts.into_iter().map(Into::into).collect()),
                    })
                }
                other => candle_core::bail!("an output is {other:?}, which cannot be sent"),
            }
        }
    };
}

number_types! {
    Uint8 Uint8 u8,
    Uint16 Uint16 u16,
    Uint32 Uint32 u32,
    Uint64 Uint64 u64,
    Int8 Int8 i8,
    Int16 Int16 i16,
    Int32 Int32 i32,
    Int64 Int64 i64,
    Fp16 Float16 half::f16,
    Bf16 Bfloat16 half::bf16,
    Fp32 Float32 f32,
    Fp64 Float64 f64,
}

/// The dimensions of a value, which are all known.
fn sizes(shape: &[i64]) -> Vec<usize> {
    let sizes = shape.iter().map(|&size| usize::try_from(size));
    sizes.map(std::result::Result::unwrap_or_default).collect()
}

/// A session with `threads` threads for the graph of `bytes`.
fn session(path: &Path, bytes: &[u8], threads: usize) -> std::result::Result<Session, ModelError> {
    let refuse = |reason: String| ModelError::weights(path, reason);
    let environment = library::environment().map_err(refuse)?;
    let made = || {
        Session::builder(environment)?
            .with_intra_threads(threads)?
            .with_inter_threads(1)?
            // Threads that spin between operators would take the cores of other workers.
            .with_intra_op_spinning(false)?
            .commit_from_memory(bytes)
    };
    made().map_err(|error: ort::Error| refuse(format!("onnxruntime: {error}")))
}

// === impl BorrowedSession ===

impl Drop for BorrowedSession<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.graph.idle().push(session);
            self.graph.returned.notify_one();
        }
    }
}

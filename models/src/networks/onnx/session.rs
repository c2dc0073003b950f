//! Running a graph: sessions of onnxruntime, one for each batch that runs at the same time.
//!
//! A session serves one batch at a time and has the threads of the worker that runs it: the calling
//! thread and, for a worker of more than one thread, threads of the session that sleep between
//! batches. Workers share a graph as they share any weights. If a second worker runs a batch at the
//! same time as the first, or has another number of threads, it gets its own session, which is kept
//! for later batches.

use std::fmt::Debug;
use std::fs::{File, Metadata};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, Device, Error, Result, Storage, Tensor};
use ort::session::Session;
use ort::value::{PrimitiveTensorElementType, TensorRef};

use super::header::GraphHeader;
use super::library;
use super::spec::{OnnxScores, OnnxSpec};
use crate::error::ModelError;
use crate::networks::staged::{StagedModel, no_stage};
use crate::regular_file;

/// A graph of one stage and one exit.
pub(crate) struct GraphSession {
    file: GraphFile,
    input: String,
    output: String,
    /// Shape of one request's input.
    row_shape: Vec<usize>,
    classes: usize,
    scores: OnnxScores,
    /// Sessions that run nothing now.
    idle: Mutex<Vec<IdleSession>>,
    /// Notified when a session is returned.
    returned: Condvar,
    /// Whether the log has the warning that no more sessions can be made.
    is_warned: AtomicBool,
}

/// The file as it was when it was loaded. It stays open, so replacing it under its name has no
/// effect.
struct GraphFile {
    path: PathBuf,
    file: Mutex<File>,
    before: Metadata,
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

// === impl GraphFile ===

impl GraphFile {
    fn open(path: &Path) -> std::result::Result<Self, ModelError> {
        let failed = |source| ModelError::io(path, source);
        let file = regular_file::open(path).map_err(failed)?;
        Ok(Self {
            before: file.metadata().map_err(failed)?,
            path: path.to_path_buf(),
            file: Mutex::new(file),
        })
    }

    /// Its bytes, which must be those that the first session was made of.
    fn read(&self) -> std::result::Result<Vec<u8>, ModelError> {
        let failed = |source| ModelError::io(&self.path, source);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::with_capacity(usize::try_from(self.before.len()).unwrap_or(0));
        file.rewind().map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        let after = file.metadata().map_err(failed)?;
        let looks = |found: &Metadata| (found.len(), found.modified().ok());
        if looks(&self.before) != looks(&after) {
            let reason = "was changed in place: put another file under its name instead";
            return Err(ModelError::weights(&self.path, reason));
        }
        Ok(bytes)
    }

    fn session(&self, bytes: &[u8], threads: usize) -> std::result::Result<Session, ModelError> {
        let refuse = |reason: String| ModelError::weights(&self.path, reason);
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
}

// === impl GraphSession ===

impl GraphSession {
    /// Makes the first session, for the threads of the current pool; outside of a pool, for those
    /// of the largest worker. From now on there is at least one session, idle or running.
    pub(crate) fn open(
        path: &Path,
        card: &Path,
        spec: &OnnxSpec,
    ) -> std::result::Result<Self, ModelError> {
        let file = GraphFile::open(path)?;
        let bytes = file.read()?;
        // The card was completed from an earlier read of the file.
        spec.clone()
            .complete(card, &GraphHeader::parse(path, &bytes)?)?;
        let threads = rayon::current_num_threads();
        let session = file.session(&bytes, threads)?;
        Ok(Self {
            file,
            input: spec.input.clone().unwrap_or_default(),
            output: spec.output.clone().unwrap_or_default(),
            row_shape: spec.shape.clone().unwrap_or_default(),
            classes: spec.classes.unwrap_or_default(),
            scores: spec.scores.unwrap_or(OnnxScores::Logits),
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
        let bytes = self.file.read();
        match bytes.and_then(|bytes| self.file.session(&bytes, threads)) {
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

    fn run<T: PrimitiveTensorElementType + Clone + Debug + 'static>(
        &self,
        rows: usize,
        values: &[T],
    ) -> Result<Tensor> {
        let shape: Vec<usize> = [&[rows], self.row_shape.as_slice()].concat();
        let mut borrowed = self.borrow();
        let Some(IdleSession { session, .. }) = &mut borrowed.session else {
            candle_core::bail!("no session");
        };
        let x = TensorRef::from_array_view((shape, values)).map_err(Error::wrap)?;
        let inputs = ort::inputs![self.input.as_str() => x];
        let outputs = session.run(inputs).map_err(Error::wrap)?;
        let Some(output) = outputs.get(&self.output) else {
            candle_core::bail!("no output `{}`", self.output);
        };
        let (shape, values) = output.try_extract_tensor::<f32>().map_err(Error::wrap)?;
        if shape.first() != Some(&(rows as i64)) || values.len() != rows * self.classes {
            let (output, classes) = (&self.output, self.classes);
            candle_core::bail!(
                "output `{output}` is {shape:?} for {rows} inputs, not {classes} values for each"
            );
        }
        Tensor::from_slice(values, (rows, self.classes), &Device::Cpu)
    }
}

impl StagedModel for GraphSession {
    fn stages(&self) -> usize {
        1
    }

    fn exits(&self) -> &[usize] {
        &[1]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        if stage != 0 {
            return no_stage(stage, 1);
        }
        let (rows, width) = x.dims2()?;
        let samples: usize = self.row_shape.iter().product();
        if width != samples {
            candle_core::bail!("input has {width} samples, the model takes {samples}");
        }
        let x = x.contiguous()?;
        let (storage, layout) = x.storage_and_layout();
        let Some((from, to)) = layout.contiguous_offsets() else {
            candle_core::bail!("input is not contiguous");
        };
        match &*storage {
            Storage::Cpu(CpuStorage::F32(values)) => self.run(rows, &values[from..to]),
            Storage::Cpu(CpuStorage::I64(values)) => self.run(rows, &values[from..to]),
            _ => candle_core::bail!("input is neither f32 nor i64 on the CPU"),
        }
    }

    fn logits(&self, _: usize, x: &Tensor) -> Result<Tensor> {
        match self.scores {
            OnnxScores::Logits => Ok(x.clone()),
            OnnxScores::Probabilities => x.log(),
        }
    }

    fn head(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        match self.scores {
            OnnxScores::Logits => candle_nn::ops::softmax_last_dim(&self.logits(exit, x)?),
            OnnxScores::Probabilities => Ok(x.clone()),
        }
    }
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

//! A graph that runs: sessions of onnxruntime, one for each batch that runs at the same time.
//!
//! A session is used by one batch at a time and has the threads of the worker that asks: the
//! calling thread and, for a worker of more than one, threads of the session's own that sleep
//! between batches. Workers share a graph as they share any weights; when a second one runs a batch
//! while the first is at it, or has another number of threads, it gets a session of its own, which
//! stays for the next batch.

use std::fmt::Debug;
use std::fs::{File, Metadata};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use candle_core::{CpuStorage, Device, Error, Result, Storage, Tensor};
use ort::session::Session;
use ort::value::{PrimitiveTensorElementType, TensorRef};

use super::header::Header;
use super::{OnnxSpec, Scores, library};
use crate::error::ModelError;
use crate::model::StagedModel;

/// A graph of one stage and one exit.
pub(crate) struct Graph {
    source: Source,
    input: String,
    output: String,
    /// Of one request.
    row_shape: Vec<usize>,
    classes: usize,
    scores: Scores,
    /// Sessions that run nothing now.
    idle: Mutex<Vec<Seat>>,
    /// One has come back.
    returned: Condvar,
    /// That no more sessions can be made has been said.
    is_told: AtomicBool,
}

/// The file as it was when it was loaded. It stays open, so that one that replaces it by its name
/// does not matter.
struct Source {
    path: PathBuf,
    file: Mutex<File>,
    before: Metadata,
}

struct Seat {
    threads: usize,
    session: Session,
}

/// A session that runs a batch; it goes back when this ends, also by a panic.
struct Taken<'a> {
    graph: &'a Graph,
    seat: Option<Seat>,
}

// === impl Source ===

impl Source {
    fn open(path: &Path) -> std::result::Result<Self, ModelError> {
        let failed = |source| ModelError::io(path, source);
        let file = File::open(path).map_err(failed)?;
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
                // Threads that spin between operators take the cores of the other workers.
                .with_intra_op_spinning(false)?
                .commit_from_memory(bytes)
        };
        made().map_err(|error: ort::Error| refuse(format!("onnxruntime: {error}")))
    }
}

// === impl Graph ===

impl Graph {
    /// Makes the first session, for the threads of the pool that this runs in; outside of one, for
    /// those of the largest worker. There is always one from now on, idle or running.
    pub(crate) fn open(
        path: &Path,
        card: &Path,
        spec: &OnnxSpec,
    ) -> std::result::Result<Self, ModelError> {
        let source = Source::open(path)?;
        let bytes = source.read()?;
        // The card was completed from what the file was then.
        spec.clone().complete(card, &Header::parse(path, &bytes)?)?;
        let threads = rayon::current_num_threads();
        let session = source.session(&bytes, threads)?;
        Ok(Self {
            source,
            input: spec.input.clone().unwrap_or_default(),
            output: spec.output.clone().unwrap_or_default(),
            row_shape: spec.shape.clone().unwrap_or_default(),
            classes: spec.classes.unwrap_or_default(),
            scores: spec.scores,
            idle: Mutex::new(vec![Seat { threads, session }]),
            returned: Condvar::new(),
            is_told: AtomicBool::new(false),
        })
    }

    /// A session of the worker's threads. Where another cannot be made, one that there is, whatever
    /// its threads: to be late is better than to fail.
    fn take(&self) -> Taken<'_> {
        let threads = rayon::current_num_threads();
        let mut idle = self.idle();
        if let Some(at) = idle.iter().position(|seat| seat.threads == threads) {
            return self.taken(idle.swap_remove(at));
        }
        drop(idle);
        let bytes = self.source.read();
        match bytes.and_then(|bytes| self.source.session(&bytes, threads)) {
            Ok(session) => return self.taken(Seat { threads, session }),
            Err(error) if !self.is_told.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, threads, "no further session: batches wait for each other");
            }
            Err(_) => {}
        }
        let mut idle = self.idle();
        loop {
            if let Some(seat) = idle.pop() {
                return self.taken(seat);
            }
            let waited = self.returned.wait(idle);
            idle = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn taken(&self, seat: Seat) -> Taken<'_> {
        Taken {
            graph: self,
            seat: Some(seat),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Seat>> {
        // Whole at every point where a panic can strike.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<T: PrimitiveTensorElementType + Clone + Debug + 'static>(
        &self,
        rows: usize,
        values: &[T],
    ) -> Result<Tensor> {
        let shape: Vec<usize> = [&[rows], self.row_shape.as_slice()].concat();
        let mut taken = self.take();
        let Some(seat) = &mut taken.seat else {
            candle_core::bail!("no session");
        };
        let x = TensorRef::from_array_view((shape, values)).map_err(Error::wrap)?;
        let inputs = ort::inputs![self.input.as_str() => x];
        let outputs = seat.session.run(inputs).map_err(Error::wrap)?;
        let Some(output) = outputs.get(&self.output) else {
            candle_core::bail!("no output `{}`", self.output);
        };
        let (shape, numbers) = output.try_extract_tensor::<f32>().map_err(Error::wrap)?;
        if shape.first() != Some(&(rows as i64)) || numbers.len() != rows * self.classes {
            let (output, classes) = (&self.output, self.classes);
            candle_core::bail!(
                "output `{output}` is {shape:?} for {rows} inputs, not {classes} numbers for each"
            );
        }
        Tensor::from_slice(numbers, (rows, self.classes), &Device::Cpu)
    }
}

impl StagedModel for Graph {
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
            candle_core::bail!("stage {stage} of 1");
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
            Scores::Logits => Ok(x.clone()),
            Scores::Probabilities => x.log(),
        }
    }

    fn head(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        match self.scores {
            Scores::Logits => candle_nn::ops::softmax_last_dim(&self.logits(exit, x)?),
            Scores::Probabilities => Ok(x.clone()),
        }
    }
}

// === impl Taken ===

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.graph.idle().push(seat);
            self.graph.returned.notify_one();
        }
    }
}

//! The code of a component: from memory, from the cache, or from one of the two compilers.

use std::io::Cursor;
use std::sync::Arc;

use wasmtime::component::Component;

use super::{Code, LoadCause, Loader, compile_log};
use crate::compiler::CompileError;
use crate::engine::CodeTier;
use crate::history::PolicyVersion;
use crate::truncate::one_line;
use crate::wasm_shape::{WasmShape, shape_of};

/// Largest component, in bytes, that is compiled to baseline code first. The optimised code of a larger one
/// takes seconds; a policy without saved state would then lose as much of it.
const BASELINE_BYTES_MAX: usize = 1 << 20;

impl Loader {
    /// Optimised code; with `soon` baseline code if the other would have to be compiled.
    pub(super) fn code(&self, version: &PolicyVersion, soon: bool) -> Result<Code, LoadCause> {
        let found = |component| Code {
            component,
            tier: CodeTier::Optimized,
            cached: true,
        };
        let loaded = self.loaded.as_ref();
        if let Some(component) = loaded.and_then(|loaded| loaded.find(version.code)) {
            return Ok(found(component));
        }
        let cache = self.cache.as_ref();
        let code = match cache.and_then(|cache| cache.find(&self.engine, version.code)) {
            Some(component) => found(component),
            None => self.compile(version, soon)?,
        };
        if let (CodeTier::Optimized, Some(loaded)) = (code.tier, loaded) {
            loaded.keep(version.code, &code.component);
        }
        Ok(code)
    }

    fn compile(&self, version: &PolicyVersion, soon: bool) -> Result<Code, LoadCause> {
        let bytes = &version.bytes;
        // A cursor over bytes gives no error.
        match shape_of(&mut Cursor::new(bytes)).unwrap_or(WasmShape::NotWasm) {
            WasmShape::Component => {}
            WasmShape::CoreModule => return Err(LoadCause::CoreModule),
            WasmShape::Partial => return Err(LoadCause::Truncated { bytes: bytes.len() }),
            WasmShape::NotWasm => return Err(LoadCause::NotWasm),
        }
        let baseline = soon.then(|| self.compile_baseline(bytes)).flatten();
        if let Some(component) = baseline {
            return Ok(Code {
                component,
                tier: CodeTier::Baseline,
                cached: false,
            });
        }
        let component = compile_log::with_log(&version.file, bytes.len(), || {
            let engine = self.engine.wasmtime();
            self.engine.compiler().compile(engine, bytes, &self.stop)
        })
        .map_err(|error| self.not_compiled(error))?;
        if let Some(cache) = &self.cache {
            cache.keep(&self.engine, version.code, &component);
        }
        Ok(Code {
            component,
            tier: CodeTier::Optimized,
            cached: false,
        })
    }

    /// None: the component is large, or uses an instruction that the baseline compiler lacks. The other
    /// compiler tells of a mistake in the component.
    fn compile_baseline(&self, bytes: &Arc<[u8]>) -> Option<Component> {
        let baseline = self.engine.baseline()?;
        if bytes.len() > BASELINE_BYTES_MAX {
            return None;
        }
        let compiled = baseline
            .compiler
            .compile(&baseline.engine, bytes, &self.stop);
        compiled
            .inspect_err(|error| tracing::debug!(%error, "no baseline code"))
            .ok()
    }

    fn not_compiled(&self, error: CompileError) -> LoadCause {
        let mut reason = error.to_string();
        match error {
            CompileError::Invalid(_) => {
                // The compiler quotes names of the component.
                one_line(&mut reason, self.limits.log_line_bytes);
                LoadCause::Invalid(reason)
            }
            CompileError::TooLong(_) => LoadCause::CompileTime(reason),
            CompileError::Busy(_) => LoadCause::CompilerBusy(reason),
            CompileError::Stopped => LoadCause::Stopped,
            CompileError::Thread(_) => LoadCause::Thread(reason),
        }
    }
}

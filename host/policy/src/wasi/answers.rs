//! The answer of each WASI function, by interface and name.

use wasmtime::component::Val;
use wasmtime::{Result, bail};

use super::call::{WasiCall, WasiHandle};

/// Most random bytes of one call: more than a library needs as a seed.
const RANDOM_BYTES: u64 = 64 << 10;

/// Bytes that a stream accepts at once.
const WRITE_BYTES: u64 = 4_096;

const NS_PER_US: u64 = 1_000;
const US_PER_S: u64 = 1_000_000;

/// The result of a function.
pub(super) enum WasiAnswer {
    /// The function has no result.
    NoResult,
    Value(Val),
}

/// The answer; none for a function that this world does not have.
pub(super) fn of(
    interface: &str,
    function: &str,
    mut call: WasiCall<'_>,
) -> Result<Option<WasiAnswer>> {
    let value = match (interface, function) {
        ("wasi:cli/environment", "get-environment" | "get-arguments")
        | ("wasi:filesystem/preopens", "get-directories") => Val::List(Vec::new()),
        ("wasi:cli/environment", "initial-cwd" | "get-initial-cwd")
        | ("wasi:cli/terminal-stdin", "get-terminal-stdin")
        | ("wasi:cli/terminal-stdout", "get-terminal-stdout")
        | ("wasi:cli/terminal-stderr", "get-terminal-stderr")
        | ("wasi:filesystem/types", "filesystem-error-code") => Val::Option(None),
        ("wasi:cli/exit", _) => bail!("it called exit"),
        ("wasi:cli/stdin", "get-stdin") => call.handle(WasiHandle::STDIN)?,
        ("wasi:cli/stdout", "get-stdout") => call.handle(WasiHandle::STDOUT)?,
        ("wasi:cli/stderr", "get-stderr") => call.handle(WasiHandle::STDERR)?,
        ("wasi:clocks/monotonic-clock" | "wasi:clocks/wall-clock", _) => {
            return clock(interface, function, call);
        }
        ("wasi:random/random" | "wasi:random/insecure" | "wasi:random/insecure-seed", _) => {
            return random(function, &mut call);
        }
        ("wasi:io/poll", "poll") => {
            let all = 0u32..;
            Val::List(all.take(call.handles.len()).map(Val::U32).collect())
        }
        ("wasi:io/poll", "[method]pollable.ready") => Val::Bool(true),
        ("wasi:io/poll", "[method]pollable.block") => return Ok(Some(WasiAnswer::NoResult)),
        ("wasi:io/error", "[method]error.to-debug-string") => Val::String("none".to_owned()),
        ("wasi:io/streams", _) => return stream(function, call),
        _ => return Ok(None),
    };
    Ok(Some(WasiAnswer::Value(value)))
}

/// The window's time. It does not pass while a policy waits, so every wait ends at once.
fn clock(interface: &str, function: &str, mut call: WasiCall<'_>) -> Result<Option<WasiAnswer>> {
    let now_us = call.state().now_us;
    let value = match (interface, function) {
        ("wasi:clocks/monotonic-clock", "now") => Val::U64(now_us.saturating_mul(NS_PER_US)),
        ("wasi:clocks/monotonic-clock", "resolution") => Val::U64(NS_PER_US),
        ("wasi:clocks/monotonic-clock", "subscribe-instant" | "subscribe-duration") => {
            call.handle(WasiHandle::POLLABLE)?
        }
        ("wasi:clocks/wall-clock", "now") => wall(now_us),
        ("wasi:clocks/wall-clock", "resolution") => wall(1),
        _ => return Ok(None),
    };
    Ok(Some(WasiAnswer::Value(value)))
}

/// Time since the host's start, as a time since 1970-01-01.
fn wall(us: u64) -> Val {
    let nanoseconds = us % US_PER_S * NS_PER_US;
    let nanoseconds = u32::try_from(nanoseconds).unwrap_or(u32::MAX);
    Val::Record(vec![
        ("seconds".to_owned(), Val::U64(us / US_PER_S)),
        ("nanoseconds".to_owned(), Val::U32(nanoseconds)),
    ])
}

fn random(function: &str, call: &mut WasiCall<'_>) -> Result<Option<WasiAnswer>> {
    let value = match function {
        "get-random-bytes" | "get-insecure-random-bytes" => {
            let Some(Val::U64(len)) = call.params.first() else {
                return Ok(None);
            };
            if *len > RANDOM_BYTES {
                bail!("it asked for {len} random bytes at once, the limit is {RANDOM_BYTES}");
            }
            let bytes = std::iter::repeat_with(|| call.state().random_u64().to_le_bytes());
            Val::List(bytes.flatten().take(*len as usize).map(Val::U8).collect())
        }
        "get-random-u64" | "get-insecure-random-u64" => Val::U64(call.state().random_u64()),
        "insecure-seed" | "get-insecure-seed" => {
            let mut half = || Val::U64(call.state().random_u64());
            Val::Tuple(vec![half(), half()])
        }
        _ => return Ok(None),
    };
    Ok(Some(WasiAnswer::Value(value)))
}

/// Written bytes go to the log. Input streams are closed.
fn stream(function: &str, mut call: WasiCall<'_>) -> Result<Option<WasiAnswer>> {
    let Some((stream, verb)) = function
        .strip_prefix("[method]")
        .and_then(|method| method.split_once('.'))
    else {
        return Ok(None);
    };
    let done = Val::Result(Ok(None));
    let value = match (stream, verb) {
        ("input-stream" | "output-stream", "subscribe") => call.handle(WasiHandle::POLLABLE)?,
        ("input-stream", _) => {
            let closed = Val::Variant("closed".to_owned(), None);
            Val::Result(Err(Some(Box::new(closed))))
        }
        ("output-stream", "check-write") => Val::Result(Ok(Some(Box::new(Val::U64(WRITE_BYTES))))),
        ("output-stream", "flush" | "blocking-flush") => done,
        ("output-stream", "write" | "blocking-write-and-flush") => {
            let bytes: Vec<u8> = match call.params {
                [_, Val::List(bytes)] => bytes.iter().filter_map(byte).collect(),
                _ => return Ok(None),
            };
            let is_error = call.handles.first() == Some(&WasiHandle::STDERR);
            call.state().print(is_error, &bytes);
            done
        }
        _ => return Ok(None),
    };
    Ok(Some(WasiAnswer::Value(value)))
}

fn byte(value: &Val) -> Option<u8> {
    match value {
        Val::U8(byte) => Some(*byte),
        _ => None,
    }
}

//! Jumps of the clock: of the wall clock, and of time itself for a process that stood still.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::binary::{Process, switchyard};
use super::client::get;
use super::fixture::policy;
use super::load::Load;
use super::test_bed::Setup;

/// A library that adds the seconds in a file to the wall clock of a process.
const WALL_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long *offset_s;

__attribute__((constructor)) static void map_offset(void) {
    int file = open(getenv("WALL_CLOCK_OFFSET"), O_RDONLY);
    void *page = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || page == MAP_FAILED) abort();
    offset_s = page;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME && offset_s) now->tv_sec += *offset_s;
    return failed;
}
"#;

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Compiles the library; Rust's linker is a C compiler.
fn library(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, WALL_CLOCK).unwrap();
    let mut compile = Command::new("cc");
    compile
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library);
    let status = compile.arg(&source).status().unwrap();
    assert!(status.success());
    library
}

fn set_offset(file: &Path, seconds: i64) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
}

/// Unix milliseconds of the last inference, by the server's clock.
async fn last_inference_ms(process: &Process) -> i64 {
    let stats = get(process.http, "/v2/models/heart/stats").await.json();
    let stats = stats["model_stats"].as_array().unwrap();
    let last = stats
        .iter()
        .filter_map(|model| model["last_inference"].as_i64());
    last.max().unwrap()
}

/// Late requests are served, so that a pause fails none.
fn patient(pool: &'static str) -> Setup {
    Setup::new(pool)
        .policy(policy("fcfs"))
        .app("late = \"serve\"")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_notices_that_the_wall_clock_jumps() {
    const DAY_S: i64 = 86_400;
    let folder = TempDir::new().unwrap();
    let offset = folder.path().join("offset");
    std::fs::write(&offset, 0_i64.to_ne_bytes()).unwrap();
    let mut command = switchyard();
    command.env("LD_PRELOAD", library(folder.path()));
    command.env("WALL_CLOCK_OFFSET", &offset);
    let process = blocking(move || {
        let process = Process::serve_by(command, &patient("jumps"));
        process.wait_for_line("policy switched");
        process
    })
    .await;
    let load = Load::start(process.http, 2);
    load.answered_by("fcfs@", 20).await;
    let before = last_inference_ms(&process).await;
    for jump_s in [DAY_S, -DAY_S, 0] {
        set_offset(&offset, jump_s);
        load.answered_by("fcfs@", 50).await;
        let moved_ms = last_inference_ms(&process).await - before;
        // The clock has jumped, or the library is not in use.
        assert!(
            (moved_ms - 1_000 * jump_s).abs() < 60_000,
            "{jump_s}: {moved_ms}"
        );
        let live = get(process.http, "/v2/health/live").await;
        assert_eq!(live.status, 200);
    }
    load.stop().await;
    let status = get(process.admin, "/admin/v1/status").await.json();
    assert_eq!(status["pools"][0]["workers"][0]["up"], true, "{status}");
    assert!(process.lines("worker lost").is_empty());
}

/// Longer than the time after which a batch is overdue: when the process goes on, everything is due at
/// once, and the worker of the running batch may count as lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stood_still_answers_every_request() {
    let process = blocking(|| {
        let process = Process::serve(&patient("stands"));
        process.wait_for_line("policy switched");
        process
    })
    .await;
    let load = Load::start(process.http, 4);
    load.answered_by("fcfs@", 20).await;
    for stands_ms in [300, 6_500] {
        process.signal("STOP");
        tokio::time::sleep(Duration::from_millis(stands_ms)).await;
        process.signal("CONT");
        load.answered_by("", 50).await;
    }
    load.answered_by("fcfs@", 50).await;
    load.stop().await;
    let status = get(process.admin, "/admin/v1/status").await.json();
    assert_eq!(status["pools"][0]["workers"][0]["up"], true, "{status}");
}

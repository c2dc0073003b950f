//! SIGTERM ends the process in time, whatever it is doing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;

use super::binary::Process;
use super::fixture::{APP, beat, guest, policy};
use super::test_bed::Setup;

/// The longest drain in these tests.
const DRAIN: Duration = Duration::from_millis(500);

/// The most that an end may take beyond its drain.
const AFTER_DRAIN: Duration = Duration::from_secs(2);

fn started(pool: &'static str, component: Vec<u8>) -> Process {
    let drain = format!("drain_timeout_ms = {}", DRAIN.as_millis());
    let setup = Setup::new(pool).policy(component).server(&drain);
    let process = Process::serve(&setup.app("slo_ms = 60000"));
    process.wait_for_line("policy switched");
    process
}

/// Sends SIGTERM.
fn ends_in_time(state: &str, mut process: Process) -> Process {
    let began = Instant::now();
    process.terminate();
    let exit = process.ended();
    let took = began.elapsed();
    assert_eq!(exit.code(), Some(0), "{state}: {:?}", process.messages());
    assert!(took < DRAIN + AFTER_DRAIN, "{state}: {took:?}");
    process
}

fn request(body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /v2/models/{APP}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn connect(process: &Process) -> TcpStream {
    TcpStream::connect(process.http).unwrap()
}

/// Sends whole requests, each on its own connection, and waits until they have been read.
fn asked(process: &Process, count: u64) -> Vec<TcpStream> {
    let body = |nth| beat(nth).into_bytes();
    let ask = |nth| {
        let mut stream = connect(process);
        stream.write_all(&request(&body(nth))).unwrap();
        stream
    };
    let streams = (0..count).map(ask).collect();
    std::thread::sleep(Duration::from_millis(300));
    streams
}

#[test]
fn an_idle_server_ends_in_time() {
    let process = started("stop-idle", policy("fcfs"));
    let _idle = connect(&process);
    ends_in_time("idle", process);
}

#[test]
fn half_a_body_does_not_hold_the_end() {
    let process = started("stop-body", policy("fcfs"));
    let mut stream = connect(&process);
    let whole = request(&beat(0).into_bytes());
    stream.write_all(&whole[..whole.len() - 10]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    ends_in_time("half a body", process);
}

#[test]
fn a_client_that_never_reads_does_not_hold_the_end() {
    let process = started("stop-unread", policy("fcfs"));
    let mut stream = connect(&process);
    stream.set_nonblocking(true).unwrap();
    let ask = b"GET /v2/models/stats HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(500) {
        // An error: its buffers are full.
        let _ = stream.write(&ask);
    }
    ends_in_time("unread answers", process);
}

#[test]
fn requests_that_a_policy_holds_do_not_hold_the_end() {
    let process = started("stop-held", guest("chatters"));
    let _held = asked(&process, 3);
    ends_in_time("held requests", process);
}

/// They would wait for a full batch until their deadline, a minute from now.
#[test]
fn sigterm_flushes_lanes() {
    let process = started("stop-lanes", guest("lanes"));
    // The first one opens the window whose plan has the route.
    let streams = asked(&process, 3);
    let process = ends_in_time("lanes", process);
    for mut stream in streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let drained = &process.lines("drained")[0];
    assert_eq!(drained["cut_connections"], 0);
    assert_eq!(drained["empty"], true);
}

#[test]
fn a_fifo_in_the_place_of_the_policy_does_not_hold_the_end() {
    use rustix::fs::{CWD, Mode, mkfifoat};
    let process = started("stop-fifo", policy("fcfs"));
    let file = process.policy();
    std::fs::remove_file(&file).unwrap();
    mkfifoat(CWD, &file, Mode::RUSR | Mode::WUSR).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    ends_in_time("a FIFO", process);
}

#[test]
fn a_component_that_compiles_for_long_does_not_hold_the_end() {
    let process = started("stop-compile", policy("fcfs"));
    std::fs::write(process.policy(), slow_to_compile()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let refused = "policy refused: the old one serves on";
    assert!(process.lines(refused).is_empty(), "it compiles still");
    ends_in_time("compiling", process);
}

/// A component with 20,000 functions of 200 additions.
fn slow_to_compile() -> Vec<u8> {
    const FUNCTIONS: u32 = 20_000;
    const ADDITIONS: usize = 200;
    // local.get 0, i32.const 1, i32.add, local.set 0
    let step = [0x20, 0, 0x41, 1, 0x6a, 0x21, 0];
    // No locals but the parameter.
    let body = [&[0][..], &step.repeat(ADDITIONS), &[0x0b]].concat();
    let body = sized(&body);
    // One type: from i32 to nothing.
    let types = section(1, &[1, 0x60, 1, 0x7f, 0]);
    let functions = [leb128(FUNCTIONS), vec![0; FUNCTIONS as usize]].concat();
    let code = [leb128(FUNCTIONS), body.repeat(FUNCTIONS as usize)].concat();
    let module = [
        b"\0asm\x01\0\0\0",
        &types[..],
        &section(3, &functions),
        &section(10, &code),
    ];
    [b"\0asm\x0d\0\x01\0", &section(1, &module.concat())[..]].concat()
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &sized(content)].concat()
}

fn sized(content: &[u8]) -> Vec<u8> {
    [&leb128(content.len() as u32)[..], content].concat()
}

fn leb128(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Another client than those at 127.0.0.1: each has a share of the connections.
#[cfg(target_os = "linux")]
fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().build().unwrap();
    let connected = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        socket.connect(to).await?.into_std()
    });
    let stream = connected.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Some descriptors are kept from clients.
#[cfg(target_os = "linux")]
#[test]
fn idle_connections_leave_health_admin_and_swaps_alive() {
    let setup = Setup::new("few-files").policy(guest("good"));
    let process = Process::serve_with_files(&setup, 400);
    process.wait_for_line("policy switched");
    let _idle: Vec<_> = (0..500).map(|_| connect(&process)).collect();
    for (address, path) in [
        (process.admin, "/admin/v1/status"),
        (process.http, "/v2/health/live"),
    ] {
        let began = Instant::now();
        let mut stream = connect_from([127, 0, 0, 2], address);
        let ask = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(began.elapsed() < Duration::from_secs(2), "{path}");
    }
    std::fs::write(process.policy(), policy("fcfs")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while process.lines("policy switched").len() < 2 {
        assert!(Instant::now() < deadline, "{:?}", process.messages());
        std::thread::sleep(Duration::from_millis(20));
    }
}

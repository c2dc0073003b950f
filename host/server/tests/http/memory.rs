//! The memory of all requests together.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use switchyard_server::ingress::Limits;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::test_bed::{ONE_ROW, TestServer};

/// An app whose inputs have variable dimensions: its requests may be as large as any.
const ANY_SIZE: &str = "/v2/models/echo/every%20type/infer";
const INFER: &str = "/v2/models/linear/infer";

fn gzip(write: impl FnOnce(&mut GzEncoder<Vec<u8>>)) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    write(&mut encoder);
    encoder.finish().unwrap()
}

/// Most memory that this process has had, in bytes; 0 on systems without `/proc`.
fn peak_bytes() -> usize {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return 0;
    };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: usize = line.unwrap().trim_end_matches("kB").trim().parse().unwrap();
    kib << 10
}

#[tokio::test]
async fn a_request_without_room_in_the_memory_is_sent_away() {
    let limits = Limits {
        request_memory_bytes: 1 << 20,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut holding = server.connect().await;
    let head = format!("POST {ANY_SIZE} HTTP/1.1\r\nhost: x\r\ncontent-length: 900000\r\n\r\n");
    holding.write_all(head.as_bytes()).await.unwrap();
    sleep(Duration::from_millis(200)).await;

    let large = " ".repeat(900_000);
    let answer = server.post(ANY_SIZE, large.clone()).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(
        answer.error(),
        "busy: the bodies of other requests fill the 1 MiB of server.request_memory_mb"
    );
    // A usual request takes no share.
    assert_eq!(server.post(INFER, ONE_ROW).await.status, 200);
    drop(holding);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(server.post(ANY_SIZE, large).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bombs_are_not_inflated_side_by_side() {
    let limits = Limits {
        request_memory_bytes: 128 << 20,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let bomb = gzip(|encoder| {
        for _ in 0..60 {
            encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
        }
    });
    let before = peak_bytes();
    let headers = [("content-encoding", "gzip")];
    let mut bombs = tokio::task::JoinSet::new();
    let server = std::sync::Arc::new(server);
    for _ in 0..64 {
        let (server, bomb) = (std::sync::Arc::clone(&server), bomb.clone());
        bombs.spawn(async move { server.post_with(ANY_SIZE, &headers, bomb).await });
    }
    let answers = bombs.join_all().await;
    for answer in &answers {
        let status = answer.status.as_u16();
        assert!(matches!(status, 400 | 503), "{}", answer.error());
    }
    assert!(answers.iter().any(|answer| answer.status == 400));
    // All of them at once would be 3.8 GB.
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < 1 << 30, "{grown}");
    assert_eq!(server.post(INFER, ONE_ROW).await.status, 200);
}

/// 65 kB that become 60 MiB.
#[tokio::test]
async fn reflected_text_is_short() {
    let server = TestServer::with_defaults().await;
    let name = gzip(|encoder| {
        encoder.write_all(br#"{"inputs":[{"name":""#).unwrap();
        for _ in 0..60 {
            encoder.write_all(&vec![1; 1 << 20]).unwrap();
        }
        encoder
            .write_all(br#"","shape":[1,1],"datatype":"FP32"}]}"#)
            .unwrap();
    });
    let inputs = gzip(|encoder| {
        encoder.write_all(br#"{"inputs":["#).unwrap();
        let entries = r#"{"name":"x","shape":[],"datatype":""},"#.repeat(1_000);
        for _ in 0..1_500 {
            encoder.write_all(entries.as_bytes()).unwrap();
        }
        encoder.write_all(b"]}").unwrap();
    });
    for (body, begin) in [
        (name, "body: the string at byte 20 is longer than"),
        (inputs, "inputs: more than 256 tensors"),
    ] {
        let headers = [("content-encoding", "gzip")];
        let answer = server.post_with(ANY_SIZE, &headers, body).await;
        assert_eq!(answer.status, 400);
        assert!(answer.error().starts_with(begin), "{}", answer.error());
        assert!(answer.body.len() < 200);
    }
    // A path as long as the headers may be.
    let path = format!("/v2/models/{}", "x".repeat(20_000));
    let answer = server.get(&path).await;
    assert_eq!(answer.status, 404);
    assert!(answer.body.len() < 400, "{}", answer.body.len());
}

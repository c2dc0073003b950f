//! Whether contenders do the same work: the answer of each to the race's request.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{Device, Tensor};

use super::contender::Contender;
use super::load::Body;
use super::model::{APP, SAMPLES, beat, variant};

/// For a server that listens to answer: Triton loads its model afterwards.
const READY_MAX: Duration = Duration::from_secs(60);

/// How long one question may take meanwhile: some peers accept it, and never answer, while they start.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Largest difference of a probability.
const TOLERANCE: f32 = 1e-4;

/// Asks every contender until it answers, and compares the answer with the model's own.
///
/// # Panics
/// One does not answer, or answers something else; but for `hyper`, which runs no model.
pub(crate) fn compare(contenders: &[Contender], zoo: &Path) {
    let loaded = switchyard_models::load_variant(&variant(zoo), &Device::Cpu).unwrap();
    let x = Tensor::from_vec(beat(), (1, SAMPLES), &Device::Cpu).unwrap();
    let wanted = loaded.model.forward(0, &x).unwrap();
    let wanted: Vec<f32> = wanted.flatten_all().unwrap().to_vec1().unwrap();
    for contender in contenders {
        let found = ask_until_ready(contender);
        let apart = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0_f32, f32::max);
        let same = found.len() == wanted.len() && apart <= TOLERANCE;
        assert!(
            same || contender.name == "hyper",
            "{} answers {found:?}, not {wanted:?}",
            contender.name
        );
    }
}

fn ask_until_ready(contender: &Contender) -> Vec<f32> {
    let began = Instant::now();
    loop {
        match ask(contender) {
            Ok(probabilities) => return probabilities,
            Err(error) => {
                let waited = began.elapsed();
                assert!(waited < READY_MAX, "{}: {error}", contender.name);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One request on a connection of its own.
fn ask(contender: &Contender) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let (_, body) = Body::Json.bytes_for(contender.names);
    let (address, path) = contender.place();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.write_all(&[head.into_bytes(), body].concat())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no body")?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(answer.into());
    }
    // Some send it in chunks: the object alone is between these.
    let object = body.find('{').zip(body.rfind('}')).ok_or("no JSON")?;
    let answer: serde_json::Value = serde_json::from_str(&body[object.0..=object.1])?;
    if answer["model_name"] != APP {
        return Err(answer.to_string().into());
    }
    Ok(serde_json::from_value(
        answer["outputs"][0]["data"].clone(),
    )?)
}

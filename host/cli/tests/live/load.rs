//! Clients that never pause.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::client::Client;
use super::fixture::beat;
use super::test_bed::PATIENCE;

/// Connections that each send their next request when they have the answer to the last.
pub(crate) struct Load {
    stopping: Arc<AtomicBool>,
    tally: Arc<Mutex<Tally>>,
    connections: Vec<JoinHandle<()>>,
}

/// Outcomes of the requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    /// Answers with status 200, by deciding policy.
    pub(crate) by_policy: BTreeMap<String, u64>,
    /// Errors of the other requests.
    pub(crate) failed: Vec<String>,
}

// === impl Load ===

impl Load {
    pub(crate) fn start(address: SocketAddr, connections: u64) -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let tally = Arc::new(Mutex::new(Tally::default()));
        let drive = |first| {
            let (stopping, tally) = (Arc::clone(&stopping), Arc::clone(&tally));
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                let mut nth = first;
                while !stopping.load(Ordering::Relaxed) {
                    tally.lock().unwrap().sent += 1;
                    let end = one(&mut client, nth).await;
                    let mut tally = tally.lock().unwrap();
                    match end {
                        Ok(policy) => *tally.by_policy.entry(policy).or_default() += 1,
                        Err(reason) => {
                            tally.failed.push(reason);
                            return;
                        }
                    }
                    nth += connections;
                }
            })
        };
        Self {
            connections: (0..connections).map(drive).collect(),
            stopping,
            tally,
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally.lock().unwrap().clone()
    }

    /// Waits until whoever's label begins so has given `more` further answers.
    pub(crate) async fn answered_by(&self, policy: &str, more: u64) {
        let wanted = self.tally().by(policy) + more;
        let give_up = Instant::now() + PATIENCE;
        loop {
            let tally = self.tally();
            if tally.by(policy) >= wanted {
                return;
            }
            assert!(tally.failed.is_empty(), "waited for {policy}: {tally:#?}");
            assert!(Instant::now() < give_up, "waited for {policy}: {tally:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Lets every connection have its last answer; fails if any request had none, or another
    /// one than 200.
    pub(crate) async fn stop(self) -> Tally {
        self.stopping.store(true, Ordering::Relaxed);
        for connection in self.connections {
            connection.await.unwrap();
        }
        let tally = self.tally.lock().unwrap().clone();
        assert_eq!(tally.failed, Vec::<String>::new());
        assert_eq!(tally.by_policy.values().sum::<u64>(), tally.sent);
        tally
    }
}

/// One request; the label of the deciding policy, or the error.
async fn one(client: &mut Client, nth: u64) -> Result<String, String> {
    let path = "/v2/models/heart/infer";
    let answer = client.send("POST", path, beat(nth)).await?;
    if answer.status != 200 {
        return Err(format!("{}: {}", answer.status, answer.text));
    }
    let body = answer.json();
    if body["id"] != format!("beat-{nth}") {
        return Err(format!(
            "the answer to another request than beat-{nth}: {body}"
        ));
    }
    Ok(answer.policy())
}

// === impl Tally ===

impl Tally {
    /// Answers by whoever's label begins so.
    pub(crate) fn by(&self, policy: &str) -> u64 {
        let by = self.by_policy.iter();
        by.filter(|(label, _)| label.starts_with(policy))
            .map(|(_, count)| count)
            .sum()
    }
}

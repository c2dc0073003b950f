//! The workers under a prefix: the list is read whole, and again at each change that a watch tells. So no
//! order of changes matters, and a watch that breaks costs one more look.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use super::calls::{self, Keys};
use super::client::{Etcd, RETRY};
use crate::address::WrongAddress;
use crate::channel::Channel;
use crate::members::{Member, MemberName, Members};

/// The value of a worker's key.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RegisteredValue {
    /// Its gRPC port, as `HOST:PORT`.
    pub(super) address: String,
    /// The number of the process there.
    pub(super) incarnation: u64,
}

/// The receiver is gone.
struct Untold;

/// The workers now.
///
/// # Errors
/// etcd does not answer.
pub(crate) async fn look_up(etcd: &Etcd, prefix: &str) -> Result<Members, String> {
    let found = async {
        let channel = etcd.connect().await?;
        Ok(list(&channel, prefix).await?.0)
    };
    found
        .await
        .map_err(|reason: String| format!("etcd: {reason}"))
}

/// Tells the workers, and whenever they have changed, until the receiver is gone. While etcd is away it
/// tells why, and asks again.
pub(crate) async fn follow(etcd: &Arc<Etcd>, prefix: &str, tell: Sender<Result<Members, String>>) {
    loop {
        let reason = match watched(etcd, prefix, &tell).await {
            Ok(Untold) => return,
            Err(reason) => reason,
        };
        tracing::debug!(reason, "the watch of workers has ended");
        // A watch that breaks is worth a word only if the next look fails too.
        if let Err(reason) = look_up(etcd, prefix).await {
            etcd.is_away(&reason);
            if tell.send(Err(reason)).await.is_err() {
                return;
            }
        }
        sleep(RETRY).await;
    }
}

async fn watched(
    etcd: &Etcd,
    prefix: &str,
    tell: &Sender<Result<Members, String>>,
) -> Result<Untold, String> {
    let channel = etcd.connect().await?;
    let (mut members, revision) = list(&channel, prefix).await?;
    let mut changes = calls::watch(&channel, &Keys::below(prefix), revision).await?;
    loop {
        etcd.is_back();
        if tell.send(Ok(members)).await.is_err() {
            return Ok(Untold);
        }
        changes.changed().await?;
        (members, _) = list(&channel, prefix).await?;
    }
}

/// The workers, and the revision that they are of.
async fn list(channel: &Channel, prefix: &str) -> Result<(Members, i64), String> {
    let found = calls::range(channel, &Keys::below(prefix)).await?;
    let mut members = Members::new();
    for pair in &found.pairs {
        let key = String::from_utf8_lossy(&pair.key);
        let name = key
            .strip_prefix(prefix)
            .and_then(|rest| rest.strip_prefix('/'));
        // Of a longer prefix.
        let Some(name) = name.filter(|name| !name.contains('/')) else {
            continue;
        };
        match read(&pair.value) {
            Ok(member) => drop(members.insert(MemberName::Registered(name.to_owned()), member)),
            Err(reason) => tracing::warn!(
                %key,
                reason,
                "left out of the workers: must be {{\"address\":\"HOST:PORT\",\"incarnation\":NUMBER}}"
            ),
        }
    }
    Ok((members, found.revision))
}

fn read(value: &[u8]) -> Result<Member, String> {
    let value: RegisteredValue =
        serde_json::from_slice(value).map_err(|error| error.to_string())?;
    let address = format!("grpc://{}", value.address).parse();
    Ok(Member {
        address: address.map_err(|error: WrongAddress| error.to_string())?,
        incarnation: value.incarnation,
    })
}

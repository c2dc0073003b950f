//! The calls of etcd that workers and schedulers need.

use std::time::Duration;

use bytes::Bytes;
use switchyard_protocol::grpc::messages::etcd::compare::{
    CompareResult, CompareTarget, TargetUnion,
};
use switchyard_protocol::grpc::messages::etcd::request_op::Request;
use switchyard_protocol::grpc::messages::etcd::watch_request::RequestUnion;
use switchyard_protocol::grpc::messages::etcd::{
    Compare, DeleteRangeRequest, DeleteRangeResponse, KeyValue, LeaseGrantRequest,
    LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp,
    ResponseHeader, TxnRequest, TxnResponse, WatchCreateRequest, WatchRequest, WatchResponse,
};

use crate::channel::{CallError, Channel};
use crate::messages::{self, Messages};

/// Longest wait for an answer. A write of etcd waits for disks.
const LIMIT: Duration = Duration::from_secs(2);

/// Keys: one, or all with a prefix.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    key: Bytes,
    end: Bytes,
}

/// The pairs of a range, and the revision that they are of.
pub(crate) struct Found {
    pub(crate) pairs: Vec<KeyValue>,
    pub(crate) revision: i64,
}

/// Keys that are watched.
pub(crate) struct Watched(Messages);

// === impl Keys ===

impl Keys {
    pub(crate) fn one(key: &str) -> Self {
        Self {
            key: Bytes::copy_from_slice(key.as_bytes()),
            end: Bytes::new(),
        }
    }

    /// The keys below a folder.
    pub(crate) fn below(folder: &str) -> Self {
        // The key after all that begin with `folder/`: 0 follows the slash.
        Self {
            key: format!("{folder}/").into(),
            end: format!("{folder}0").into(),
        }
    }
}

/// The pairs of these keys.
pub(crate) async fn range(channel: &Channel, keys: &Keys) -> Result<Found, String> {
    let request = keys.request();
    let found = channel.call("/etcdserverpb.KV/Range", &request, LIMIT);
    let found: RangeResponse = found.await.map_err(CallError::reason)?;
    Ok(Found {
        pairs: found.kvs,
        revision: revision(found.header.as_ref()),
    })
}

/// The names of these keys.
pub(crate) async fn names(channel: &Channel, keys: &Keys) -> Result<Vec<String>, String> {
    let request = RangeRequest {
        keys_only: true,
        ..keys.request()
    };
    let found = channel.call("/etcdserverpb.KV/Range", &request, LIMIT);
    let found: RangeResponse = found.await.map_err(CallError::reason)?;
    let names = found.kvs.into_iter();
    let names = names.map(|pair| String::from_utf8_lossy(&pair.key).into_owned());
    Ok(names.collect())
}

/// Deletes these keys.
pub(crate) async fn delete(channel: &Channel, keys: &Keys) -> Result<(), String> {
    let request = DeleteRangeRequest {
        key: keys.key.clone(),
        range_end: keys.end.clone(),
    };
    let path = "/etcdserverpb.KV/DeleteRange";
    let done = channel.call::<DeleteRangeResponse>(path, &request, LIMIT);
    done.await.map(drop).map_err(CallError::reason)
}

/// Puts a key that goes with a lease; 0: with none.
pub(crate) async fn put(
    channel: &Channel,
    key: &str,
    value: Bytes,
    lease: i64,
) -> Result<(), String> {
    let put = put_request(key, value, lease);
    let done = channel.call::<PutResponse>("/etcdserverpb.KV/Put", &put, LIMIT);
    done.await.map(drop).map_err(CallError::reason)
}

/// Puts a key that goes with a lease. `false`: it is there already.
pub(crate) async fn put_new(
    channel: &Channel,
    key: &str,
    value: Bytes,
    lease: i64,
) -> Result<bool, String> {
    let put = put_request(key, value, lease);
    Ok(put_if_at(channel, put, 0).await?.succeeded)
}

/// Puts a key whose last change was this revision, 0 for a key that is not there; the revision of the new
/// change, none if there was another one.
pub(crate) async fn swap(
    channel: &Channel,
    key: &str,
    value: Bytes,
    revision: i64,
) -> Result<Option<i64>, String> {
    let done = put_if_at(channel, put_request(key, value, 0), revision).await?;
    let at = self::revision(done.header.as_ref());
    Ok(done.succeeded.then_some(at))
}

async fn put_if_at(
    channel: &Channel,
    put: PutRequest,
    revision: i64,
) -> Result<TxnResponse, String> {
    let is_unchanged = Compare {
        result: CompareResult::Equal as i32,
        target: CompareTarget::Mod as i32,
        key: put.key.clone(),
        // 0 for a key that is not there.
        target_union: Some(TargetUnion::ModRevision(revision)),
    };
    let put = Request::RequestPut(put);
    let request = TxnRequest {
        compare: vec![is_unchanged],
        success: vec![RequestOp { request: Some(put) }],
    };
    let done = channel.call("/etcdserverpb.KV/Txn", &request, LIMIT);
    done.await.map_err(CallError::reason)
}

/// A lease that lasts this many seconds after each renewal.
pub(crate) async fn grant(channel: &Channel, ttl_s: u64) -> Result<i64, String> {
    let request = LeaseGrantRequest {
        ttl: ttl_s as i64,
        id: 0,
    };
    let granted = channel.call("/etcdserverpb.Lease/LeaseGrant", &request, LIMIT);
    let granted: LeaseGrantResponse = granted.await.map_err(CallError::reason)?;
    match granted.error.is_empty() {
        true => Ok(granted.id),
        false => Err(granted.error),
    }
}

/// Renews a lease. `false`: there is no such lease any more.
pub(crate) async fn keep_alive(
    channel: &Channel,
    lease: i64,
    limit: Duration,
) -> Result<bool, String> {
    // A call of one question: etcd answers each, and ends with the questions.
    let request = LeaseKeepAliveRequest { id: lease };
    let kept = channel.call("/etcdserverpb.Lease/LeaseKeepAlive", &request, limit);
    let kept: LeaseKeepAliveResponse = kept.await.map_err(CallError::reason)?;
    Ok(kept.ttl > 0)
}

/// Ends a lease, and with it its keys.
pub(crate) async fn revoke(channel: &Channel, lease: i64) -> Result<(), String> {
    let request = LeaseRevokeRequest { id: lease };
    let path = "/etcdserverpb.Lease/LeaseRevoke";
    let revoked = channel.call::<LeaseRevokeResponse>(path, &request, LIMIT);
    revoked.await.map(drop).map_err(CallError::reason)
}

/// Watches keys, from the changes after a revision.
pub(crate) async fn watch(channel: &Channel, keys: &Keys, after: i64) -> Result<Watched, String> {
    let request = WatchRequest {
        request_union: Some(RequestUnion::CreateRequest(WatchCreateRequest {
            key: keys.key.clone(),
            range_end: keys.end.clone(),
            start_revision: after + 1,
        })),
    };
    let answers = messages::ask(channel, "/etcdserverpb.Watch/Watch", &request, LIMIT);
    answers.await.map(Watched).map_err(CallError::reason)
}

// === impl Watched ===

impl Watched {
    /// Waits until the keys have changed, or may have. Cancel safe.
    ///
    /// # Errors
    /// The watch has ended.
    pub(crate) async fn changed(&mut self) -> Result<(), String> {
        loop {
            let answer: WatchResponse = self.0.next().await.map_err(CallError::reason)?;
            match answer {
                // Changes are no longer kept: the caller reads the keys anew, and watches again.
                WatchResponse { canceled: true, .. } if answer.compact_revision > 0 => {
                    return Err(COMPACTED.to_owned());
                }
                WatchResponse { canceled: true, .. } => {
                    return Err(format!(
                        "etcd: the watch has ended: {}",
                        answer.cancel_reason
                    ));
                }
                WatchResponse { events, .. } if !events.is_empty() => return Ok(()),
                _ => {}
            }
        }
    }
}

/// The reason of a watch whose changes are no longer kept.
const COMPACTED: &str = "etcd: the changes since the last look are compacted";

impl Keys {
    fn request(&self) -> RangeRequest {
        RangeRequest {
            key: self.key.clone(),
            range_end: self.end.clone(),
            keys_only: false,
        }
    }
}

fn put_request(key: &str, value: Bytes, lease: i64) -> PutRequest {
    PutRequest {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value,
        lease,
    }
}

fn revision(header: Option<&ResponseHeader>) -> i64 {
    header.map_or(0, |header| header.revision)
}

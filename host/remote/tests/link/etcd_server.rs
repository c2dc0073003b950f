//! An etcd that keeps its keys in memory, and stops, loses leases and cancels watches on command.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use switchyard_protocol::grpc::messages::etcd::compare::TargetUnion;
use switchyard_protocol::grpc::messages::etcd::request_op::Request as Step;
use switchyard_protocol::grpc::messages::etcd::watch_request::RequestUnion;
use switchyard_protocol::grpc::messages::etcd::{
    DeleteRangeRequest, DeleteRangeResponse, Event, KeyValue, LeaseGrantRequest,
    LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, ResponseHeader,
    TxnRequest, TxnResponse, WatchRequest, WatchResponse,
};
use switchyard_protocol::grpc::{PREFIX_BYTES, frame};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::free_address::free_address;

/// Serves until it is stopped or dropped.
pub(crate) struct FakeEtcd {
    pub(crate) at: SocketAddr,
    store: Arc<Mutex<Store>>,
    runtime: Option<Runtime>,
}

/// The content, which outlives a stop.
#[derive(Default)]
struct Store {
    revision: i64,
    pairs: BTreeMap<Vec<u8>, KeyValue>,
    /// Their time, and their end.
    leases: HashMap<i64, (Duration, Instant)>,
    events: Vec<(i64, Event)>,
    /// Changes with each event, and when watches are to end.
    changed: watch::Sender<u64>,
    /// Times that the watches were ended.
    compactions: u64,
    lists: u64,
    granted: i64,
}

/// A body that is sent as it comes.
struct Sent(mpsc::UnboundedReceiver<Bytes>);

type Answer = Response<BoxBody<Bytes, Infallible>>;

// === impl FakeEtcd ===

impl FakeEtcd {
    pub(crate) fn start() -> Self {
        let mut etcd = Self {
            at: free_address(),
            store: Arc::default(),
            runtime: None,
        };
        etcd.resume();
        etcd
    }

    /// Closes its port and all connections.
    pub(crate) fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Serves again at the same port, with the same content. Leases begin anew.
    pub(crate) fn resume(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        // Also inside of the runtime of a test.
        let listener = std::net::TcpListener::bind(self.at).unwrap();
        listener.set_nonblocking(true).unwrap();
        let entered = runtime.enter();
        let listener = TcpListener::from_std(listener).unwrap();
        drop(entered);
        for (time, end) in self.store().leases.values_mut() {
            *end = Instant::now() + *time;
        }
        runtime.spawn(accept(listener, Arc::clone(&self.store)));
        self.runtime = Some(runtime);
    }

    /// The keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        let store = self.store();
        let keys = store.pairs.keys().cloned();
        keys.map(|key| String::from_utf8(key).unwrap()).collect()
    }

    /// The content, by key.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let store = self.store();
        let pairs = store.pairs.values();
        pairs
            .map(|pair| (text(&pair.key), text(&pair.value)))
            .collect()
    }

    pub(crate) fn put(&self, key: &str, value: &str) {
        let (key, value) = (key.to_owned().into(), value.to_owned().into());
        self.store().put(PutRequest {
            key,
            value,
            lease: 0,
        });
    }

    pub(crate) fn delete(&self, key: &str) {
        self.store().delete(key.as_bytes());
    }

    /// Ends every lease, as after a silence.
    pub(crate) fn end_leases(&self) {
        let mut store = self.store();
        for (_, end) in store.leases.values_mut() {
            *end = Instant::now();
        }
        store.expire();
    }

    /// Forgets the changes so far: watches end.
    pub(crate) fn compact(&self) {
        let mut store = self.store();
        store.compactions += 1;
        store.changed.send_modify(|changed| *changed += 1);
    }

    /// Times that keys were listed.
    pub(crate) fn lists(&self) -> u64 {
        self.store().lists
    }

    pub(crate) fn leases(&self) -> usize {
        self.store().leases.len()
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }
}

impl Drop for FakeEtcd {
    fn drop(&mut self) {
        self.stop();
    }
}

// === impl Store ===

impl Store {
    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader {
            revision: self.revision,
            ..ResponseHeader::default()
        })
    }

    fn tell(&mut self, r#type: i32, kv: KeyValue) {
        let event = Event {
            r#type,
            kv: Some(kv),
        };
        self.events.push((self.revision, event));
        self.changed.send_modify(|changed| *changed += 1);
    }

    fn put(&mut self, put: PutRequest) {
        self.revision += 1;
        let known = self.pairs.get(&*put.key);
        let pair = KeyValue {
            create_revision: known.map_or(self.revision, |pair| pair.create_revision),
            mod_revision: self.revision,
            version: known.map_or(0, |pair| pair.version) + 1,
            key: put.key,
            value: put.value,
            lease: put.lease,
        };
        self.pairs.insert(pair.key.to_vec(), pair.clone());
        self.tell(0, pair);
    }

    fn delete(&mut self, key: &[u8]) {
        if self.pairs.remove(key).is_some() {
            self.revision += 1;
            let gone = KeyValue {
                key: key.to_vec().into(),
                mod_revision: self.revision,
                ..KeyValue::default()
            };
            self.tell(1, gone);
        }
    }

    fn revoke(&mut self, lease: i64) {
        self.leases.remove(&lease);
        let pairs = self.pairs.values().filter(|pair| pair.lease == lease);
        let keys: Vec<_> = pairs.map(|pair| pair.key.clone()).collect();
        keys.iter().for_each(|key| self.delete(key));
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let ended = self.leases.iter().filter(|(_, (_, end))| *end <= now);
        let ended: Vec<_> = ended.map(|(lease, _)| *lease).collect();
        ended.into_iter().for_each(|lease| self.revoke(lease));
    }

    fn range(&self, range: &RangeRequest) -> RangeResponse {
        let within = |key: &[u8]| is_within(key, &range.key, &range.range_end);
        let pairs = self.pairs.values().filter(|pair| within(&pair.key));
        let kvs = pairs.cloned();
        let without_value = |pair| KeyValue {
            value: Bytes::new(),
            ..pair
        };
        let kvs: Vec<_> = match range.keys_only {
            true => kvs.map(without_value).collect(),
            false => kvs.collect(),
        };
        RangeResponse {
            header: self.header(),
            count: kvs.len() as i64,
            kvs,
            more: false,
        }
    }

    /// A transaction that compares the revisions of last changes.
    fn transact(&mut self, transaction: TxnRequest) -> TxnResponse {
        let mut compares = transaction.compare.iter();
        let succeeded = compares.all(|compare| {
            let known = self.pairs.get(&*compare.key);
            let revision = known.map_or(0, |pair| pair.mod_revision);
            compare.target_union == Some(TargetUnion::ModRevision(revision))
        });
        let steps = transaction.success.into_iter();
        for step in steps.filter(|_| succeeded) {
            let Some(Step::RequestPut(put)) = step.request else {
                panic!("{step:?}");
            };
            self.put(put);
        }
        TxnResponse {
            header: self.header(),
            succeeded,
        }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let received = self.0.poll_recv(context);
        received.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

fn is_within(key: &[u8], first: &[u8], end: &[u8]) -> bool {
    match end.is_empty() {
        true => key == first,
        false => key >= first && key < end,
    }
}

async fn accept(listener: TcpListener, store: Arc<Mutex<Store>>) {
    let expiring = Arc::clone(&store);
    tokio::spawn(async move {
        loop {
            expiring.lock().unwrap().expire();
            sleep(Duration::from_millis(10)).await;
        }
    });
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let store = Arc::clone(&store);
        let answering = service_fn(move |request| {
            let store = Arc::clone(&store);
            async move { Ok::<_, Infallible>(answer(&store, request).await) }
        });
        let connection = http2::Builder::new(TokioExecutor::new());
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), answering));
    }
}

async fn answer(store: &Arc<Mutex<Store>>, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    let question = question(request.into_body()).await;
    let mut locked = store.lock().unwrap();
    let store_now = &mut *locked;
    match path.as_str() {
        "/etcdserverpb.KV/Range" => {
            store_now.lists += 1;
            one(&store_now.range(&RangeRequest::decode(question).unwrap()))
        }
        "/etcdserverpb.KV/Put" => {
            store_now.put(PutRequest::decode(question).unwrap());
            one(&PutResponse {
                header: store_now.header(),
            })
        }
        "/etcdserverpb.KV/DeleteRange" => {
            let range = DeleteRangeRequest::decode(question).unwrap();
            let within = |key: &&Vec<u8>| is_within(key, &range.key, &range.range_end);
            let keys: Vec<_> = store_now.pairs.keys().filter(within).cloned().collect();
            keys.iter().for_each(|key| store_now.delete(key));
            one(&DeleteRangeResponse {
                header: store_now.header(),
                deleted: keys.len() as i64,
            })
        }
        "/etcdserverpb.KV/Txn" => one(&store_now.transact(TxnRequest::decode(question).unwrap())),
        "/etcdserverpb.Lease/LeaseGrant" => {
            let LeaseGrantRequest { ttl, .. } = LeaseGrantRequest::decode(question).unwrap();
            store_now.granted += 1;
            let id = store_now.granted;
            let time = Duration::from_secs(ttl as u64);
            store_now.leases.insert(id, (time, Instant::now() + time));
            one(&LeaseGrantResponse {
                id,
                ttl,
                ..LeaseGrantResponse::default()
            })
        }
        "/etcdserverpb.Lease/LeaseKeepAlive" => {
            let LeaseKeepAliveRequest { id } = LeaseKeepAliveRequest::decode(question).unwrap();
            let known = store_now.leases.get_mut(&id);
            let ttl = known.map_or(0, |(time, end)| {
                *end = Instant::now() + *time;
                time.as_secs() as i64
            });
            one(&LeaseKeepAliveResponse {
                id,
                ttl,
                ..LeaseKeepAliveResponse::default()
            })
        }
        "/etcdserverpb.Lease/LeaseRevoke" => {
            store_now.revoke(LeaseRevokeRequest::decode(question).unwrap().id);
            one(&LeaseRevokeResponse::default())
        }
        "/etcdserverpb.Watch/Watch" => {
            drop(locked);
            watched(store, WatchRequest::decode(question).unwrap())
        }
        other => panic!("{other}"),
    }
}

/// The first message of a body, which may stay open.
async fn question(mut body: Incoming) -> Bytes {
    let mut bytes = BytesMut::new();
    loop {
        if let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
            if bytes.len() >= PREFIX_BYTES + length as usize {
                return bytes.split_off(PREFIX_BYTES).freeze();
            }
        }
        let frame = body.frame().await.unwrap().unwrap();
        bytes.extend_from_slice(&frame.into_data().unwrap());
    }
}

fn watched(store: &Arc<Mutex<Store>>, request: WatchRequest) -> Answer {
    let Some(RequestUnion::CreateRequest(asked)) = request.request_union else {
        panic!("{request:?}");
    };
    let (send, sent) = mpsc::unbounded_channel();
    let store = Arc::clone(store);
    let framed = |answer: &WatchResponse| Bytes::from(frame(answer).unwrap());
    tokio::spawn(async move {
        let created = WatchResponse {
            created: true,
            ..WatchResponse::default()
        };
        let _ = send.send(framed(&created));
        let (mut changed, compactions) = {
            let store = store.lock().unwrap();
            (store.changed.subscribe(), store.compactions)
        };
        let mut next = asked.start_revision;
        loop {
            let answer = {
                let store = store.lock().unwrap();
                let is_new = |(revision, event): &&(i64, Event)| {
                    let key = &event.kv.as_ref().unwrap().key;
                    *revision >= next && is_within(key, &asked.key, &asked.range_end)
                };
                let events = store.events.iter().filter(is_new);
                let events = events.map(|(_, event)| event.clone()).collect();
                next = store.revision + 1;
                let is_compacted = store.compactions > compactions;
                WatchResponse {
                    canceled: is_compacted,
                    compact_revision: if is_compacted { store.revision } else { 0 },
                    events,
                    ..WatchResponse::default()
                }
            };
            let ends = answer.canceled;
            let is_news = ends || !answer.events.is_empty();
            if is_news && send.send(framed(&answer)).is_err() || ends {
                return;
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
    });
    Response::new(Sent(sent).boxed())
}

fn one(message: &impl Message) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let body = Full::new(Bytes::from(frame(message).unwrap()));
    Response::new(body.with_trailers(async { Some(Ok(trailers)) }).boxed())
}

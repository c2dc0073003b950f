//! Versions of files that processes share.

use std::collections::BTreeMap;
use std::time::Duration;

use switchyard_remote::{SharedKey, SharedVersion};

use super::PATIENCE;
use super::etcd::reached_at;
use super::etcd_server::FakeEtcd;

const KEY: &str = "yard/policies/pool";

fn key(etcd: &FakeEtcd) -> SharedKey {
    SharedKey {
        etcd: reached_at(etcd.at, Duration::from_secs(1)),
        key: KEY.to_owned(),
    }
}

pub(crate) fn version(name: &str) -> SharedVersion {
    SharedVersion {
        version: name.to_owned(),
        label: format!("policy@{name}"),
        by: "an-operator".to_owned(),
    }
}

pub(crate) fn files(bytes: usize) -> BTreeMap<String, Vec<u8>> {
    let large = (0..bytes).map(|at| (at % 251) as u8).collect();
    let files = [
        ("policy.wasm", large),
        ("policy/sub/table.bin", vec![1, 2]),
        ("policy.toml", Vec::new()),
    ];
    files.map(|(name, bytes)| (name.to_owned(), bytes)).into()
}

#[tokio::test]
async fn the_first_of_two_that_change_a_version_wins() {
    let etcd = FakeEtcd::start();
    let mut here = key(&etcd).open().await.unwrap();
    let mut there = key(&etcd).open().await.unwrap();
    assert_eq!(here.now(), (None, 0));
    // A component of several parts.
    let sent = files(5 << 19);
    assert!(here.publish(version("one"), &sent).await.unwrap());
    let same = here.files("one").await.unwrap();
    assert!(same == sent, "the files differ");

    // The other one has not seen it.
    let refused = there.publish(version("two"), &files(10)).await.unwrap();
    assert!(!refused, "both won");
    let told = tokio::time::timeout(PATIENCE, there.changed()).await;
    told.unwrap().unwrap();
    there.read().await.unwrap();
    let (now, revision) = there.now();
    assert_eq!(now, Some(&version("one")));
    assert_eq!(here.now().1, revision, "the revision of its own change");
    assert!(there.publish(version("two"), &files(10)).await.unwrap());
    let refused = here.publish(version("three"), &files(10)).await.unwrap();
    assert!(!refused, "both won");
    here.read().await.unwrap();
    assert_eq!(here.now().0, Some(&version("two")));
}

#[tokio::test]
async fn the_version_of_now_and_one_before_are_kept() {
    let etcd = FakeEtcd::start();
    let mut here = key(&etcd).open().await.unwrap();
    for name in ["one", "two", "three"] {
        assert!(here.publish(version(name), &files(3)).await.unwrap());
    }
    let kept: Vec<_> = etcd.keys();
    let part = |version: &str, file: &str| format!("{KEY}/versions/{version}/{file}/000000");
    let mut wanted = vec![KEY.to_owned()];
    for name in ["three", "two"] {
        for file in ["policy.toml", "policy.wasm", "policy/sub/table.bin"] {
            wanted.push(part(name, file));
        }
    }
    assert_eq!(kept, wanted);
    assert!(here.files("one").await.unwrap().is_empty());
}

#[tokio::test]
async fn another_value_is_an_error() {
    let etcd = FakeEtcd::start();
    etcd.put(KEY, "policy.wasm");
    let Err(reason) = key(&etcd).open().await else {
        panic!("it is read");
    };
    assert!(reason.starts_with("etcd: yard/policies/pool: "), "{reason}");
}

//! Files that processes share by versions: a key names the version of now, and is changed by compare-and-swap.
//!
//! `KEY` has the name of the version; `KEY/versions/VERSION/FILE/NUMBER` a part of one of its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::calls::{self, Keys, Watched};
use super::client::Etcd;
use crate::channel::Channel;

/// Bytes of a part: etcd refuses requests of more than 1.5 MiB.
const PART_BYTES: usize = 1 << 20;

/// A key whose versions processes share.
#[derive(Clone, Debug)]
pub struct SharedKey {
    /// Where it is.
    pub etcd: Arc<Etcd>,
    /// Its name.
    pub key: String,
}

/// The version of now.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SharedVersion {
    /// Its name among the versions of the key.
    pub version: String,
    /// A name for people.
    pub label: String,
    /// The operator behind it; empty: a file changed.
    #[serde(default)]
    pub by: String,
}

/// A key on a connection that lasts.
pub struct SharedView {
    key: String,
    channel: Channel,
    changes: Watched,
    /// The revision of the last change of the key, 0 without one.
    revision: i64,
    now: Option<SharedVersion>,
}

// === impl SharedKey ===

impl SharedKey {
    /// Reads the key, and watches it from then on.
    ///
    /// # Errors
    /// etcd does not answer, or the key has another value.
    pub async fn open(&self) -> Result<SharedView, String> {
        let channel = self.etcd.connect().await.inspect_err(|reason| {
            self.etcd.is_away(reason);
        })?;
        let keys = Keys::one(&self.key);
        let found = calls::range(&channel, &keys).await?;
        self.etcd.is_back();
        let mut view = SharedView {
            changes: calls::watch(&channel, &keys, found.revision).await?,
            key: self.key.clone(),
            channel,
            revision: 0,
            now: None,
        };
        view.take(found)?;
        Ok(view)
    }
}

// === impl SharedView ===

impl SharedView {
    /// The version of now, and the revision of the last change; 0 without a version.
    pub fn now(&self) -> (Option<&SharedVersion>, i64) {
        (self.now.as_ref(), self.revision)
    }

    /// Waits until the key has changed. Cancel safe.
    ///
    /// # Errors
    /// The watch has ended.
    pub async fn changed(&mut self) -> Result<(), String> {
        self.changes.changed().await
    }

    /// Reads the key again.
    ///
    /// # Errors
    /// etcd does not answer, or the key has another value.
    pub async fn read(&mut self) -> Result<(), String> {
        let found = calls::range(&self.channel, &Keys::one(&self.key)).await?;
        self.take(found)
    }

    fn take(&mut self, found: calls::Found) -> Result<(), String> {
        let Some(pair) = found.pairs.first() else {
            (self.revision, self.now) = (0, None);
            return Ok(());
        };
        let read = serde_json::from_slice(&pair.value);
        let read = read.map_err(|error| format!("etcd: {}: {error}", self.key))?;
        (self.revision, self.now) = (pair.mod_revision, Some(read));
        Ok(())
    }

    /// The files of a version, by name.
    ///
    /// # Errors
    /// etcd does not answer.
    pub async fn files(&self, version: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let folder = self.folder_of(version);
        let found = calls::range(&self.channel, &Keys::below(&folder)).await?;
        let mut files = BTreeMap::<String, Vec<u8>>::new();
        // In the order of their keys, and so of their numbers.
        for pair in found.pairs {
            let key = String::from_utf8_lossy(&pair.key);
            let name = key.strip_prefix(&folder).and_then(|rest| {
                let (name, _) = rest.strip_prefix('/')?.rsplit_once('/')?;
                Some(name.to_owned())
            });
            if let Some(name) = name {
                files
                    .entry(name)
                    .or_default()
                    .extend_from_slice(&pair.value);
            }
        }
        Ok(files)
    }

    /// Writes the files of a version, then makes it the version of now, if that is still the one of
    /// [`now`](Self::now). `false`: it is not, [`read`](Self::read) it. Versions of before the last one are
    /// removed.
    ///
    /// # Errors
    /// etcd does not answer.
    pub async fn publish(
        &mut self,
        next: SharedVersion,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<bool, String> {
        let folder = self.folder_of(&next.version);
        for (name, bytes) in files {
            // A file without bytes has one part.
            let parts = bytes
                .chunks(PART_BYTES)
                .chain(bytes.is_empty().then_some(&[][..]));
            for (number, part) in parts.enumerate() {
                let key = format!("{folder}/{name}/{number:06}");
                calls::put(&self.channel, &key, Bytes::copy_from_slice(part), 0).await?;
            }
        }
        // A struct of plain fields.
        let value = serde_json::to_string(&next).unwrap_or_default();
        let swapped = calls::swap(&self.channel, &self.key, value.into(), self.revision).await?;
        let Some(revision) = swapped else {
            return Ok(false);
        };
        let before = self.now.replace(next);
        self.revision = revision;
        self.prune(before.map(|before| before.version)).await?;
        Ok(true)
    }

    /// Removes the files of all versions but that of now and one before: others may be reading it.
    async fn prune(&self, before: Option<String>) -> Result<(), String> {
        let folder = format!("{}/versions", self.key);
        let now = self.now.as_ref().map(|now| now.version.clone());
        for key in calls::names(&self.channel, &Keys::below(&folder)).await? {
            let version = key
                .strip_prefix(&folder)
                .and_then(|rest| rest.split('/').nth(1));
            let Some(version) = version.map(str::to_owned) else {
                continue;
            };
            if ![&now, &before].contains(&&Some(version.clone())) {
                let keys = Keys::below(&self.folder_of(&version));
                calls::delete(&self.channel, &keys).await?;
            }
        }
        Ok(())
    }

    fn folder_of(&self, version: &str) -> String {
        format!("{}/versions/{version}", self.key)
    }
}

//! One policy of a pool on every scheduler: etcd has its version, and the files of it.
//!
//! The scheduler that may act publishes the version that it switches to, if no other one was first. The others switch to it.

use std::sync::Arc;
use std::time::Duration;

use switchyard_policy::{PackedVersion, VersionStore};
use switchyard_remote::{Fence, SharedKey, SharedVersion, SharedView};
use switchyard_threads::ServiceThread;
use tokio::sync::{oneshot, watch};

use super::handle::PoliciesHandle;
use super::report::Version;
use super::source;
use crate::telemetry::{Gauge, Registry, names};

/// Pause before etcd is asked again after a failure.
const RETRY: Duration = Duration::from_millis(500);

/// Pause after this scheduler becomes the active one, or stands by.
const TURN: Duration = Duration::from_millis(10);

/// Where the policy of a pool is shared.
pub struct SharedPolicy {
    /// The key of the pool.
    pub key: SharedKey,
    /// Only the active scheduler may change it; none: each may.
    pub fence: Option<Arc<Fence>>,
}

/// The parts of a pool that shares its policy.
pub(super) struct SharingParts {
    pub(super) shared: SharedPolicy,
    pub(super) pool: String,
    pub(super) handle: PoliciesHandle,
    /// The settings of the pool, which override those of a version.
    pub(super) settings: toml::Table,
    /// The versions of this scheduler; none if they are in memory only.
    pub(super) store: Option<VersionStore>,
    pub(super) registry: Registry,
}

/// The thread that shares a pool's policy.
struct Sharing {
    parts: SharingParts,
    /// 1 while the pool has the version in etcd.
    in_step: Gauge,
    seen: Seen,
    /// The last failure, which is logged once.
    failure: String,
}

/// Both sides at the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    revision: i64,
    local: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing to do; whether both sides have one version.
    Wait { in_step: bool },
    /// Switch to the version in etcd.
    Follow,
    /// Make the version that serves here the one in etcd.
    Publish,
}

/// Shares the policy of a pool until dropped.
///
/// # Errors
/// The system refuses a thread.
pub(super) fn share(parts: SharingParts) -> std::io::Result<ServiceThread> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let gauge = names::POLICY_IN_STEP;
    let in_step = parts.registry.gauge(gauge, [("pool", &*parts.pool)]);
    let name = format!("{}-shared", parts.pool);
    let sharing = Sharing {
        parts,
        in_step,
        seen: Seen::default(),
        failure: String::new(),
    };
    let thread = ServiceThread::spawn(name, move || {
        runtime.block_on(async {
            tokio::select! {
                () = sharing.run() => {}
                _ = stopped => {}
            }
        });
    })?;
    Ok(thread.with_stop(move || drop(stop)))
}

// === impl Sharing ===

impl Sharing {
    async fn run(mut self) {
        let mut local = self.parts.handle.active();
        loop {
            if let Err(reason) = self.follow(&mut local).await {
                self.in_step.set(0.0);
                self.failed(reason);
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Keeps both sides in step, until etcd does not answer.
    async fn follow(&mut self, local: &mut watch::Receiver<Option<String>>) -> Result<(), String> {
        let mut view = self.parts.shared.key.open().await?;
        loop {
            let here = local.borrow_and_update().clone();
            self.step(&mut view, here).await?;
            let fence = self.parts.shared.fence.clone();
            let turned = async {
                match &fence {
                    Some(fence) => {
                        fence.turned(!fence.is_held()).await;
                        // A lease that has just ended by the clock is not given up yet.
                        tokio::time::sleep(TURN).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = view.changed() => {
                    changed?;
                    view.read().await?;
                }
                // An error: the pool ends, and this thread with it.
                changed = local.changed() => changed.map_err(|_| "the pool ends".to_owned())?,
                () = turned => {}
            }
        }
    }

    async fn step(&mut self, view: &mut SharedView, here: Option<String>) -> Result<(), String> {
        let fence = &self.parts.shared.fence;
        let may_publish = fence.as_ref().is_none_or(|fence| fence.is_held());
        let (there, revision) = view.now();
        let there = there.cloned();
        let version = there.as_ref().map(|there| there.version.as_str());
        let step = self
            .seen
            .step(version, revision, here.as_deref(), may_publish);
        let mut in_step = false;
        match (step, there) {
            (Step::Publish, _) => in_step = self.publish(view, here.as_deref()).await?,
            (Step::Follow, Some(there)) => match self.take(view, &there).await? {
                Ok(()) => in_step = true,
                Err(reason) => self.failed(format!("{}: {reason}", there.label)),
            },
            (Step::Follow, None) => {}
            (Step::Wait { in_step: is }, _) => in_step = is,
        }
        if in_step {
            self.failure.clear();
        }
        self.in_step.set(f64::from(u8::from(in_step)));
        let local = self.parts.handle.active().borrow().clone();
        self.seen = Seen { revision, local };
        Ok(())
    }

    /// Makes the version that serves here the one in etcd. `false`: another one was first, or it cannot be.
    async fn publish(&mut self, view: &mut SharedView, here: Option<&str>) -> Result<bool, String> {
        let pool = &self.parts.pool;
        let packed = here.map(|here| self.pack(here));
        let (files, next) = match packed {
            Some(Ok(packed)) => packed,
            Some(Err(reason)) => {
                self.failed(reason);
                return Ok(false);
            }
            None => return Ok(false),
        };
        let SharedVersion { version, by, .. } = &next;
        let version = version.clone();
        tracing::info!(pool, by, version, "publishing the policy in etcd");
        if view.publish(next, &files.0).await? {
            return Ok(true);
        }
        view.read().await?;
        tracing::warn!(
            pool,
            version,
            "another scheduler was first: its policy is followed"
        );
        Ok(false)
    }

    /// The files of a version that has served here.
    fn pack(&self, here: &str) -> Result<(PackedVersion, SharedVersion), String> {
        let kept = self.parts.store.as_ref().and_then(|store| store.find(here));
        let kept = kept.ok_or("its version is kept in memory only, see the log")?;
        let files = PackedVersion::read(&kept).map_err(|error| error.to_string())?;
        let status = self.parts.handle.status();
        let last = status
            .swaps
            .iter()
            .rev()
            .find(|swap| here.starts_with(&swap.hash));
        let next = SharedVersion {
            version: here.to_owned(),
            label: Version::from(&kept).policy,
            by: last.map(|swap| swap.by.clone()).unwrap_or_default(),
        };
        Ok((files, next))
    }

    /// Switches to the version in etcd; the reason if it is refused here.
    async fn take(
        &self,
        view: &SharedView,
        there: &SharedVersion,
    ) -> Result<Result<(), String>, String> {
        let files = view.files(&there.version).await?;
        let folder = match tempfile::tempdir() {
            Ok(folder) => folder,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let file = PackedVersion(files).write(folder.path(), name_of(&there.label));
        let file = match file {
            Ok(file) => file,
            Err(error) => return Ok(Err(error.to_string())),
        };
        // Otherwise a part is missing, or this pool has settings of its own.
        let found = source::version(&file, self.parts.settings.clone());
        let found = found.map(|found| found.hash.to_hex());
        if found.as_ref().ok() != Some(&there.version) {
            let found = found.unwrap_or_else(|error| error.to_string());
            let wanted = &there.version;
            return Ok(Err(format!(
                "its version is {found} here and {wanted} in etcd: the settings of the pool must be alike"
            )));
        }
        let by = match there.by.is_empty() {
            true => "etcd".to_owned(),
            false => there.by.clone(),
        };
        let taken = self.parts.handle.take(file, by).await;
        Ok(taken.map(drop).map_err(|error| error.to_string()))
    }

    /// Logs a failure, once until another one or the end of it.
    fn failed(&mut self, reason: String) {
        let pool = &self.parts.pool;
        if reason != self.failure {
            tracing::warn!(
                pool,
                reason,
                "the policy is not the one in etcd, or may not be"
            );
        }
        self.failure = reason;
    }
}

/// The name of a policy in its label `name@version`, if it can be that of a file.
fn name_of(label: &str) -> &str {
    let name = label.split('@').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name,
        false => "policy",
    }
}

// === impl Seen ===

impl Seen {
    fn step(
        &self,
        there: Option<&str>,
        revision: i64,
        here: Option<&str>,
        may_publish: bool,
    ) -> Step {
        let is_news = revision != self.revision;
        let has_changed = here != self.local.as_deref();
        match (there, here) {
            (Some(there), Some(here)) if there == here => Step::Wait { in_step: true },
            // Also at the start: etcd goes before the files of a scheduler.
            (Some(_), _) if is_news => Step::Follow,
            (_, Some(_)) if may_publish && (has_changed || there.is_none()) => Step::Publish,
            // Changed on a scheduler that stands by.
            (Some(_), Some(_)) if has_changed => Step::Follow,
            // Refused here, removed here, or nothing is there.
            _ => Step::Wait { in_step: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_published_once_and_followed_once() {
        let fresh = Seen::default();
        let seen = |revision, local: &str| Seen {
            revision,
            local: Some(local.to_owned()),
        };
        let out = Step::Wait { in_step: false };
        let (a, b) = (Some("a"), Some("b"));
        // Seen, in etcd with its revision, here, may publish.
        for (case, seen, there, revision, here, may, step) in [
            ("nothing is there", &fresh, None, 0, a, true, Step::Publish),
            ("nothing, standing by", &fresh, None, 0, a, false, out),
            ("no policy at all", &fresh, None, 0, None, true, out),
            ("a start", &fresh, b, 3, a, true, Step::Follow),
            (
                "a start without a file",
                &fresh,
                b,
                3,
                None,
                false,
                Step::Follow,
            ),
            (
                "alike",
                &seen(3, "b"),
                b,
                3,
                b,
                true,
                Step::Wait { in_step: true },
            ),
            ("a change here", &seen(3, "b"), b, 3, a, true, Step::Publish),
            ("standing by", &seen(3, "b"), b, 3, a, false, Step::Follow),
            (
                "changes on both sides",
                &seen(3, "b"),
                b,
                4,
                a,
                true,
                Step::Follow,
            ),
            ("refused here", &seen(3, "a"), b, 3, a, true, out),
            ("removed here", &seen(3, "b"), b, 3, None, true, out),
            (
                "active since",
                &seen(0, "a"),
                None,
                0,
                a,
                true,
                Step::Publish,
            ),
            (
                "deleted there",
                &seen(3, "b"),
                None,
                0,
                b,
                true,
                Step::Publish,
            ),
        ] {
            let found = seen.step(there, revision, here, may);
            assert_eq!(found, step, "{case}");
        }
    }

    #[test]
    fn a_label_gives_the_name_of_a_file() {
        assert_eq!(name_of("sneakpeek@1.2"), "sneakpeek");
        assert_eq!(name_of("../x@1"), "policy");
        assert_eq!(name_of(""), "policy");
    }
}

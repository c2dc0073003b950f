//! Follows the configuration while serving: a changed file becomes other pools, with no restart and no
//! lost request.
//!
//! Pools that the change leaves as they are serve on. A pool that it changes is started anew next to the
//! old one: it shares the weights of the variants that both have, and takes over once its models are
//! loaded and its policy serves. Requests end in the pool in which they began. A change that cannot be
//! served is refused as a whole, and all serves on as before.

mod files;
mod refusal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use switchyard_models::card::APP_CARD;
use switchyard_policy::files::{FileStamps, FileWatcher, WatchOptions};
use switchyard_threads::ServiceThread;

use self::files::ConfigFiles;
pub(super) use self::files::FilesAtStart;
use self::refusal::ChangeRefused;
use super::running::RunningPool;
use super::serving::ServingPools;
use crate::assembly::{Measured, PoolPlan};
use crate::backend::{AddApp, NotAdded};
use crate::config::{AppConfig, Config, ConfigError};
use crate::readiness::Awaited;
use crate::shutdown::Cancel;
use crate::telemetry::{Counter, names};

/// How often pools that start are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Longest loads of a pool: large models on slow disks take minutes.
const MODELS_LIMIT: Duration = Duration::from_secs(600);

/// Longest wait for the policy of a pool whose models are loaded.
const POLICY_LIMIT: Duration = Duration::from_secs(60);

/// The configuration that a server was started with, to be read again.
pub struct ConfigSource {
    /// Its file; `None`: none is watched.
    pub file: Option<PathBuf>,
    /// Reads it, with the same options as at the start.
    pub read: Box<dyn Fn() -> Result<Config, ConfigError> + Send>,
}

/// Follows a configuration until dropped.
pub(super) struct ConfigFollower {
    cancel: Cancel,
    _hangups: Option<Hangups>,
    _thread: ServiceThread,
}

/// Listens for SIGHUP until dropped.
struct Hangups(tokio::task::JoinHandle<()>);

struct Following {
    pools: Arc<ServingPools>,
    source: ConfigSource,
    cancel: Cancel,
    wake: Sender<()>,
    /// Apps that clients have loaded and the file does not name.
    added: Vec<AppConfig>,
    /// The files of the last attempt and their watcher.
    watched: Option<(ConfigFiles, FileWatcher)>,
    /// Changes by result.
    results: [(&'static str, Counter); 3],
}

/// A change that was taken in.
struct Change {
    started: Vec<String>,
    kept: usize,
    added: Vec<String>,
    removed: Vec<String>,
    /// Fields of `[server]`, with their values before and now.
    limits: Vec<String>,
}

// === impl ConfigFollower ===

impl ConfigFollower {
    /// Follows the files from now on, and SIGHUP where there is one. Files that have changed since the
    /// start are read again. `None`: the system gives no thread, as the log says.
    pub(super) fn start(
        pools: Arc<ServingPools>,
        source: ConfigSource,
        asked: Receiver<AddApp>,
        at_start: &FilesAtStart,
    ) -> Option<Self> {
        let (wake, woken) = bounded(1);
        let cancel = Cancel::default();
        let results = ["switched", "unchanged", "refused"].map(|result| {
            let labels = [("result", result)];
            (
                result,
                pools.registry().counter(names::CONFIG_CHANGES, labels),
            )
        });
        let mut following = Following {
            results,
            pools,
            source,
            cancel: cancel.clone(),
            wake: wake.clone(),
            added: Vec::new(),
            watched: None,
        };
        following.watch(&following.pools.config());
        // The watcher takes the files of now as known.
        if following.source.file.is_some() && at_start.have_changed() {
            let _ = wake.try_send(());
        }
        let hangups = Hangups::listen(wake.clone());
        let stopping = cancel.clone();
        let thread = ServiceThread::spawn("config", move || following.run(&woken, &asked));
        let thread = thread.inspect_err(|error| {
            tracing::error!(%error, "the configuration is not followed: a change needs a restart");
        });
        Some(Self {
            cancel,
            _hangups: hangups,
            _thread: thread.ok()?.with_stop(move || {
                stopping.cancel();
                let _ = wake.try_send(());
            }),
        })
    }

    /// Takes no further change in, and gives up one under way. Does not wait.
    pub(super) fn stop(&mut self) {
        self.cancel.cancel();
    }
}

// === impl Hangups ===

impl Hangups {
    /// `None` outside of a runtime, and on systems without the signal.
    #[cfg(unix)]
    fn listen(wake: Sender<()>) -> Option<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let mut hangups = signal(SignalKind::hangup()).ok()?;
        Some(Self(runtime.spawn(async move {
            while hangups.recv().await.is_some() {
                tracing::info!("SIGHUP: reading the configuration again");
                let _ = wake.try_send(());
            }
        })))
    }

    #[cfg(not(unix))]
    fn listen(_: Sender<()>) -> Option<Self> {
        None
    }
}

impl Drop for Hangups {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Following ===

impl Following {
    fn run(mut self, woken: &Receiver<()>, asked: &Receiver<AddApp>) {
        loop {
            let add = crossbeam_channel::select! {
                recv(woken) -> _ => None,
                recv(asked) -> add => add.ok(),
            };
            if self.cancel.is_cancelled() {
                return;
            }
            let before = self.stamps();
            match add {
                None => drop(self.settle()),
                Some(AddApp { name, done }) => drop(done.send(self.add(&name))),
            }
            // The files of the new configuration are watched only now.
            if self.stamps() != before {
                let _ = self.wake.try_send(());
            }
        }
    }

    /// Serves an app that a folder of the configured zoos has, in the first pool.
    fn add(&mut self, name: &str) -> Result<(), NotAdded> {
        let config = self.pools.config();
        let has = |zoo: &&PathBuf| zoo.join(name).join(APP_CARD).is_file();
        let mut zoos = config.apps.iter().map(|app| &app.zoo);
        let zoo = zoos.find(has).ok_or(NotAdded::Unknown)?;
        if config.apps.iter().any(|app| app.name == name) {
            return Ok(()); // Another client was faster.
        }
        self.added.push(AppConfig::of_card(name, zoo.clone()));
        self.settle().map_err(|reason| {
            self.added.pop();
            NotAdded::Refused(reason)
        })
    }

    fn stamps(&self) -> Option<FileStamps> {
        let (files, _) = self.watched.as_ref()?;
        files.looks().ok()
    }

    /// Logs and counts the result of an attempt. An error is the reason of a refusal.
    fn settle(&mut self) -> Result<(), String> {
        let (result, error) = match self.take_in() {
            Ok(None) => ("unchanged", None),
            Ok(Some(change)) => {
                let Change {
                    started,
                    kept,
                    added,
                    removed,
                    limits,
                } = change;
                tracing::info!(
                    ?started,
                    kept,
                    ?added,
                    ?removed,
                    ?limits,
                    "configuration changed: the new one serves"
                );
                ("switched", None)
            }
            Err(error) if self.cancel.is_cancelled() => return Err(error.to_string()),
            Err(error) => ("refused", Some(error)),
        };
        if let Some(error) = &error {
            tracing::error!(%error, "configuration refused: the old one serves on");
        }
        let counter = self.results.iter().find(|(of, _)| *of == result);
        if let Some((_, counter)) = counter {
            counter.increment(1);
        }
        error.map_or(Ok(()), |error| Err(error.to_string()))
    }

    fn take_in(&mut self) -> Result<Option<Change>, ChangeRefused> {
        let mut read = (self.source.read)()?;
        // What has left its zoo is served no longer, and holds up no other change.
        self.added
            .retain(|app| app.zoo.join(&app.name).join(APP_CARD).is_file());
        for app in &self.added {
            if read.apps.iter().all(|known| known.name != app.name) {
                read.apps.push(app.clone());
                let first = read.pools.first_mut();
                first
                    .into_iter()
                    .for_each(|pool| pool.apps.push(app.name.clone()));
            }
        }
        self.watch(&read);
        let now = self.pools.config();
        let limits = ChangeRefused::check(&now, &read)?;
        let mut adapted = read.clone();
        adapted.server = self.pools.server_of(&read);
        let plans = PoolPlan::all(&adapted)?;
        let serving = self.pools.all();
        let is_as = |pool: &RunningPool, plan: &PoolPlan| pool.plan().is_as(plan);
        let unchanged = |plan: &PoolPlan| serving.iter().find(|pool| is_as(pool, plan));
        let is_same = plans.len() == serving.len();
        if is_same && limits.is_empty() && plans.iter().all(|plan| unchanged(plan).is_some()) {
            return Ok(None);
        }
        let measured = Measured::obtain_unless(&adapted, &plans, &self.cancel)?;
        let (mut pools, mut started) = (Vec::new(), Vec::<Arc<RunningPool>>::new());
        for plan in plans {
            if let Some(pool) = unchanged(&plan) {
                pools.push(Arc::clone(pool));
                continue;
            }
            let name = plan.config.name.clone();
            let before = serving.iter().find(|pool| pool.handle().name() == name);
            let before = before.map(|pool| &**pool);
            let pool = self
                .pools
                .starter()
                .start(&adapted, plan, &measured, before)?;
            let pool = Arc::new(pool);
            started.push(Arc::clone(&pool));
            pools.push(pool);
        }
        for pool in &started {
            let name = pool.handle().name();
            let mut others = serving
                .iter()
                .filter(|before| before.handle().name() == name);
            // A pool that waits for its policy is replaced by one that may wait too.
            let waits = |before: &Arc<RunningPool>| {
                let readiness = before.handle().readiness();
                readiness.waits_for(Awaited::Policy)
            };
            let with_policy = !others.clone().any(waits);
            self.until_ready(pool, with_policy)?;
            // A pool that serves with the fallback already may go on so.
            if read.requires_policies() && others.all(|before| before.has_policy()) && with_policy {
                pool.require_policy(read.bundled_policies.as_deref(), &self.cancel)?;
            }
        }
        let (apps_before, apps_now) = (apps_of(&serving), apps_of(&pools));
        let kept = pools.len() - started.len();
        let started = started.iter().map(|pool| pool.handle().name().to_owned());
        let started: Vec<String> = started.collect();
        let retired = self.pools.take_over(read, pools)?;
        let ending = std::thread::Builder::new().name("pool-end".to_owned());
        // Without a thread the old pools end at once, and the requests inside get the reason.
        let _ = ending.spawn(move || retired.end());
        let without = |some: &[String], others: &[String]| -> Vec<String> {
            let gone = some.iter().filter(|app| !others.contains(app));
            gone.cloned().collect()
        };
        Ok(Some(Change {
            started,
            kept,
            added: without(&apps_now, &apps_before),
            removed: without(&apps_before, &apps_now),
            limits,
        }))
    }

    /// Waits for the models of a pool, and for its policy.
    fn until_ready(&self, pool: &RunningPool, with_policy: bool) -> Result<(), ChangeRefused> {
        let readiness = pool.handle().readiness();
        let mut give_up = Instant::now() + MODELS_LIMIT;
        let mut loaded = false;
        loop {
            if self.cancel.is_cancelled() {
                return Err(ChangeRefused::Cancelled);
            }
            if !loaded && !readiness.waits_for(Awaited::Models) {
                loaded = true;
                give_up = Instant::now() + POLICY_LIMIT;
            }
            match readiness.check() {
                Ok(()) => break,
                Err(_) if loaded && !with_policy => break,
                Err(reason) if pool.handle().has_failed() || Instant::now() >= give_up => {
                    return Err(ChangeRefused::NotReady(reason));
                }
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
        match pool.failed_app() {
            Some(reason) => Err(ChangeRefused::NotReady(reason)),
            None => Ok(()),
        }
    }

    /// Watches the files that this configuration rests on.
    fn watch(&mut self, config: &Config) {
        let Some(file) = &self.source.file else {
            return;
        };
        let files = ConfigFiles::of(file, config);
        if self
            .watched
            .as_ref()
            .is_some_and(|(known, _)| *known == files)
        {
            return;
        }
        let wake = self.wake.clone();
        let report = move |(), _change| match wake.try_send(()) {
            // A look that is due serves this change too.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        };
        match FileWatcher::start(
            "config-watch",
            files.clone(),
            &WatchOptions::default(),
            report,
        ) {
            Ok(watcher) => self.watched = Some((files, watcher)),
            Err(error) => {
                tracing::error!(%error, "the configuration is not watched: send SIGHUP after a change");
            }
        }
    }
}

fn apps_of(pools: &[Arc<RunningPool>]) -> Vec<String> {
    let apps = pools.iter().flat_map(|pool| &pool.handle().catalog().apps);
    apps.map(|app| app.name.clone()).collect()
}

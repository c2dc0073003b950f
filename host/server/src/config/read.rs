//! Reads a configuration from a file or from text.

use std::path::Path;

use super::pool::names_file;
use super::{
    Config, ConfigError, Draft, Overrides, PoliciesConfig, ProfileConfig, RemoteConfig, TlsConfig,
};

impl Config {
    /// Reads and checks a file, without overrides.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has unknown, missing or invalid fields: every mistake
    /// with its line.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        Draft::read(file, &Overrides::default())?.finish()
    }

    /// Reads and checks the text of `file`; relative paths start at `folder`.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, file: &Path, folder: &Path) -> Result<Self, ConfigError> {
        Draft::parse(text, file, folder, &Overrides::default()).finish()
    }

    /// The field of the app with this name, for messages.
    pub(crate) fn app_field(&self, name: &str) -> String {
        match self.apps.iter().position(|app| app.name == name) {
            Some(at) => format!("app[{at}]"),
            None => "app".to_owned(),
        }
    }

    /// Paths are relative to `folder` from now on.
    pub(super) fn resolve(&mut self, folder: &Path) {
        for app in &mut self.apps {
            app.zoo = folder.join(&app.zoo);
        }
        let server = &mut self.server;
        let admin_and_http = [&mut server.http, &mut server.admin];
        for address in admin_and_http.into_iter().chain(&mut server.grpc) {
            address.resolve(folder);
        }
        for worker in &mut self.workers {
            if let Some(remote) = &mut worker.remote {
                remote.resolve(folder);
            }
        }
        let files = [&mut server.onnxruntime, &mut server.operators];
        let tls = [&mut server.tls, &mut server.admin_tls];
        let of_tls = tls.into_iter().flatten().flat_map(TlsConfig::files_mut);
        let remotes = self.workers.iter_mut().filter_map(|w| w.remote.as_mut());
        let of_remotes = remotes.flat_map(RemoteConfig::files_mut);
        let of_etcd = self.etcd.files_mut();
        let all = files.into_iter().flatten().chain(of_tls).chain(of_remotes);
        let all = all.chain(of_etcd);
        for path in all {
            *path = folder.join(&*path);
        }
        for pool in &mut self.pools {
            let shadow = pool.shadow.as_mut().map(|shadow| &mut shadow.policy);
            for policy in shadow.into_iter().chain([&mut pool.policy]) {
                if names_file(policy) {
                    *policy = folder.join(&policy).to_string_lossy().into_owned();
                }
            }
            if let Some(record) = &mut pool.record {
                record.file = folder.join(&record.file);
            }
        }
        let PoliciesConfig {
            dir, cache, allow, ..
        } = &mut self.policies;
        *dir = folder.join(&*dir);
        for path in [cache, allow].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        let ProfileConfig { file, dir, .. } = &mut self.profile;
        *dir = folder.join(&*dir);
        if let Some(file) = file {
            *file = folder.join(&*file);
        }
    }
}

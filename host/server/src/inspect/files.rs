//! Files and folders that a configuration names.

use std::path::{Path, PathBuf};

use super::findings::Findings;
use crate::admin::check_operators;
use crate::config::RemoteConfig;
use crate::tls::Tls;

pub(super) fn inspect(findings: &mut Findings<'_>) {
    let config = findings.config;
    let server = &config.server;
    if let Some(file) = &server.operators
        && let Err(reason) = check_operators(file)
    {
        let reason = format!("{}: {reason}", file.display());
        findings.refuse("server.operators", &reason);
    }
    for (field, files) in [
        ("server.tls", &server.tls),
        ("server.admin_tls", &server.admin_tls),
    ] {
        if let Some(files) = files
            && let Err(error) = Tls::open(field, files, &[])
        {
            let reason = format!("{}: {}", error.file.display(), error.reason);
            findings.refuse(&error.field, &reason);
        }
    }
    for (i, worker) in config.workers.iter().enumerate() {
        let tls = worker.remote.as_ref().and_then(RemoteConfig::tls);
        if let Some(Err(error)) = tls.map(|tls| tls.check()) {
            let reason = format!("{}: {}", error.file.display(), error.reason);
            findings.refuse(&format!("worker[{i}].remote.{}", error.field), &reason);
        }
    }
    if let Some(library) = &server.onnxruntime
        && !library.is_file()
    {
        let reason = format!("{} is no file", library.display());
        findings.refuse("server.onnxruntime", &reason);
    }
    let dir = &config.policies.dir;
    let is_used = config.pools.iter().any(|pool| {
        let shadow = pool.shadow.as_ref().map(|shadow| shadow.policy_file(dir));
        let mut files = shadow.into_iter().chain([pool.policy_file(dir)]);
        files.any(|file| file.parent() == Some(dir.as_path()))
    });
    if is_used && !dir.is_dir() {
        let dir = dir.display();
        let reason = format!("{dir} is no folder; `mkdir -p {dir}` makes it");
        findings.refuse("policies.dir", &reason);
    }
    for (i, pool) in config.pools.iter().enumerate() {
        if let Some(record) = &pool.record {
            let folder = folder_of(&record.file);
            if !folder.is_dir() {
                let folder = folder.display();
                let reason = format!("{folder} is no folder; `mkdir -p {folder}` makes it");
                findings.refuse(&format!("pool[{i}].record.file"), &reason);
            }
        }
        let program = pool.prepare.as_ref().and_then(|p| p.command.first());
        if let Some(program) = program.filter(|program| !program.is_empty())
            && !program.contains('{')
            && !is_program(program)
        {
            let reason = format!("`{program}` is no program, neither a file nor in PATH");
            findings.refuse(&format!("pool[{i}].prepare.command[0]"), &reason);
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Whether the system finds it, as when it starts a command.
fn is_program(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    folders.any(|folder: PathBuf| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_the_system_does() {
        assert!(is_program("sh"));
        assert!(is_program("/bin/sh"));
        assert!(!is_program("no-such-program"));
        assert_eq!(folder_of(Path::new("a.rec")), Path::new("."));
    }
}

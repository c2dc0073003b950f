//! Which contract a component speaks, and whether this host speaks it too.

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault, Sights};
use switchyard_core::window::Window;
use wasmtime::Store;
use wasmtime::component::Component;

use crate::guest::{Setting, WasmPolicy};
use crate::host_state::HostState;
use crate::usage::Usage;
use crate::v0_1::{self, V0_1};
use crate::wasi;

/// The interface that a policy exports, without its version.
const EXPORT: &str = "switchyard:policy/scheduling";
/// The only interface it may import beside WASI's, without its version.
const IMPORT: &str = "switchyard:policy/host";

/// The calls of one contract version on an instance of it, in the core's types. The outer
/// error is a trap or a broken contract, the inner one the policy's own words.
pub(crate) trait Contract: Send + 'static {
    /// The exported functions of one instance, looked up once.
    type Exports: Send;

    fn instantiate(&self, store: &mut Store<HostState>) -> wasmtime::Result<Self::Exports>;

    fn describe(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
    ) -> wasmtime::Result<Description>;

    fn configure(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        catalog: &Catalog,
        settings: &str,
    ) -> wasmtime::Result<Result<(), String>>;

    fn schedule(
        &mut self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        window: &Window,
        wants: Sights,
        plan: &mut Plan,
    ) -> wasmtime::Result<Result<(), String>>;

    fn save(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
    ) -> wasmtime::Result<Vec<u8>>;

    fn restore(
        &self,
        exports: &Self::Exports,
        store: &mut Store<HostState>,
        state: &[u8],
    ) -> wasmtime::Result<Result<(), String>>;
}

/// Why a component is not a policy that this host can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// It exports something else.
    #[error("it does not export `{EXPORT}`; it exports {exports}")]
    NoExport {
        /// What it does export.
        exports: String,
    },
    /// It was built for a contract this host does not speak.
    #[error("it speaks contract {theirs}, this host speaks {ours}: {advice}")]
    Version {
        /// The component's version.
        theirs: String,
        /// The host's version.
        ours: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// It asks for more than a policy gets.
    #[error(
        "it imports {imports}; a policy may import `{IMPORT}`, and WASI 0.2, which is an empty \
         world here (no files, no environment, no network)"
    )]
    Import {
        /// The imports at fault.
        imports: String,
    },
    /// Right names, wrong types.
    #[error("it does not fit contract {ours}: {reason}")]
    Types {
        /// The host's version.
        ours: String,
        /// What does not fit.
        reason: String,
    },
}

/// Links a component to the host module of its contract version and describes it.
pub(crate) fn bind(
    component: &Component,
    setting: Setting,
) -> Result<Result<Box<dyn Recyclable>, PolicyFault>, ContractError> {
    let engine = setting.engine.wasmtime().clone();
    let ty = component.component_type();
    let exports: Vec<&str> = ty.exports(&engine).map(|(name, _)| name).collect();
    check_version(&exports)?;
    let strange: Vec<String> = ty
        .imports(&engine)
        .filter(|(name, _)| name.split('@').next() != Some(IMPORT) && !wasi::is_wasi(name))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !strange.is_empty() {
        let imports = strange.join(", ");
        return Err(ContractError::Import { imports });
    }
    let contract = V0_1::link(&engine, component).map_err(|error| ContractError::Types {
        ours: ours(),
        reason: format!("{error:#}"),
    })?;
    Ok(WasmPolicy::new(contract, setting).map(|policy| Box::new(policy) as Box<dyn Recyclable>))
}

/// A policy that can be made new again after it was tried.
pub(crate) trait Recyclable: Policy {
    /// Drops the instance and its state; the random stream starts again from its seed.
    fn recycle(&mut self) -> Result<(), PolicyFault>;

    /// What it has taken so far.
    fn usage(&self) -> &Arc<Usage>;

    /// As the core knows it.
    fn into_policy(self: Box<Self>) -> Box<dyn Policy>;
}

fn check_version(exports: &[&str]) -> Result<(), ContractError> {
    let theirs = exports
        .iter()
        .filter_map(|name| name.split_once('@'))
        .find(|(name, _)| *name == EXPORT)
        .map(|(_, version)| version);
    let Some(theirs) = theirs else {
        let exports = match exports {
            [] => "nothing".to_owned(),
            names => names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", "),
        };
        return Err(ContractError::NoExport { exports });
    };
    let refuse = |advice| {
        Err(ContractError::Version {
            theirs: theirs.to_owned(),
            ours: ours(),
            advice,
        })
    };
    let mut numbers = theirs.split(['.', '-', '+']).map(str::parse::<u64>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return refuse("its version is not one");
    };
    let (our_major, our_minor) = v0_1::VERSION;
    if major != our_major {
        return refuse("another major version; rebuild the policy on this host's SDK");
    }
    if minor > our_minor {
        return refuse("a newer minor version; update the host, or build for the older contract");
    }
    if minor < our_minor {
        return refuse("a version that was never released");
    }
    Ok(())
}

fn ours() -> String {
    let (major, minor) = v0_1::VERSION;
    format!("{major}.{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(export: &str) -> String {
        check_version(&[export]).map_or_else(|e| e.to_string(), |()| String::new())
    }

    #[test]
    fn any_patch_of_a_known_minor_is_accepted() {
        assert_eq!(
            check_version(&["switchyard:policy/scheduling@0.1.0"]),
            Ok(())
        );
        assert_eq!(
            check_version(&["x", "switchyard:policy/scheduling@0.1.7"]),
            Ok(())
        );
    }

    #[test]
    fn refusals_name_both_versions() {
        let newer = refusal("switchyard:policy/scheduling@0.2.0");
        assert!(
            newer.contains("0.2.0") && newer.contains("speaks 0.1"),
            "{newer}"
        );
        assert!(newer.contains("newer minor"), "{newer}");
        let major = refusal("switchyard:policy/scheduling@1.0.0");
        assert!(
            major.contains("1.0.0") && major.contains("another major"),
            "{major}"
        );
    }

    #[test]
    fn a_component_of_another_kind_is_told_what_is_missing() {
        let other = refusal("wasi:cli/run@0.2.0");
        assert!(other.contains("`switchyard:policy/scheduling`"), "{other}");
        assert!(other.contains("`wasi:cli/run@0.2.0`"), "{other}");
        let nothing = check_version(&[]).map_err(|e| e.to_string());
        assert!(nothing.is_err_and(|e| e.ends_with("exports nothing")));
    }
}

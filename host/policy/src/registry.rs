//! The contract versions that this host speaks: picks the module for a component's version.

use std::fmt;

use switchyard_core::policy::PolicyFault;
use wasmtime::component::Component;

use crate::contract::Contract;
use crate::guest::{GuestParts, Recyclable, WasmPolicy};
use crate::truncate::one_line;
use crate::v0_1::{self, V0_1};
use crate::v0_2::{self, V0_2};
use crate::wasi;

/// The interface that a policy exports, without its version.
const EXPORT: &str = "switchyard:policy/scheduling";
/// The only interface that it may import next to WASI's, without its version.
const IMPORT: &str = "switchyard:policy/host";

/// Bytes of a component's names that an error quotes.
const NAMES_BYTES_MAX: usize = 2_000;

/// Why this host cannot run a component as a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// It does not export the contract's interface.
    #[error("it does not export `{EXPORT}`; it exports {exports}")]
    NoExport {
        /// Its exports.
        exports: String,
    },
    /// It was built for a contract version that this host does not speak.
    #[error("it speaks contract {theirs}, this host speaks {ours}: {advice}")]
    Version {
        /// The component's version.
        theirs: String,
        /// The host's versions.
        ours: String,
        /// The difference, and the remedy.
        advice: &'static str,
    },
    /// It imports interfaces that a policy does not get.
    #[error(
        "it imports {imports}; a policy may import `{IMPORT}`, and WASI 0.2, which is an empty \
         world here (no files, no environment, no network)"
    )]
    Import {
        /// The imports at fault.
        imports: String,
    },
    /// Its exports and imports have the right names and other types.
    #[error("it does not fit contract {version}: {reason}")]
    Types {
        /// The component's version.
        version: String,
        /// The first difference.
        reason: String,
    },
}

/// A contract version that this host speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    V0_1,
    V0_2,
}

/// Links a component to the host module of its contract version, and asks it to describe itself.
pub(crate) fn bind(
    component: &Component,
    parts: GuestParts,
) -> Result<Result<Box<dyn Recyclable>, PolicyFault>, ContractError> {
    let engine = component.engine().clone();
    let ty = component.component_type();
    let exports: Vec<&str> = ty.exports(&engine).map(|(name, _)| name).collect();
    let version = version_of(&exports)?;
    let foreign: Vec<String> = ty
        .imports(&engine)
        .filter(|(name, _)| name.split('@').next() != Some(IMPORT) && !wasi::is_wasi(name))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !foreign.is_empty() {
        let mut imports = foreign.join(", ");
        one_line(&mut imports, NAMES_BYTES_MAX);
        return Err(ContractError::Import { imports });
    }
    match version {
        Spoken::V0_1 => policy(version, V0_1::link(&engine, component), parts),
        Spoken::V0_2 => policy(version, V0_2::link(&engine, component), parts),
    }
}

fn policy<C: Contract>(
    version: Spoken,
    linked: wasmtime::Result<C>,
    parts: GuestParts,
) -> Result<Result<Box<dyn Recyclable>, PolicyFault>, ContractError> {
    let contract = linked.map_err(|error| ContractError::Types {
        version: version.to_string(),
        reason: format!("{error:#}"),
    })?;
    Ok(WasmPolicy::new(contract, parts).map(|policy| Box::new(policy) as Box<dyn Recyclable>))
}

fn version_of(exports: &[&str]) -> Result<Spoken, ContractError> {
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
        let mut exports = exports;
        one_line(&mut exports, NAMES_BYTES_MAX);
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
        return refuse("its version is not a version number");
    };
    let spoken = Spoken::ALL
        .iter()
        .find(|ours| ours.numbers() == (major, minor));
    if let Some(&spoken) = spoken {
        return Ok(spoken);
    }
    let (our_major, our_minor) = Spoken::V0_2.numbers();
    if major != our_major {
        return refuse("another major version; rebuild the policy on this host's SDK");
    }
    if minor > our_minor {
        return refuse("a newer minor version; update the host, or build for the older contract");
    }
    refuse("a version that was never released")
}

fn ours() -> String {
    Spoken::ALL.map(|ours| ours.to_string()).join(" and ")
}

// === impl Spoken ===

impl Spoken {
    const ALL: [Self; 2] = [Self::V0_1, Self::V0_2];

    /// Major and minor number.
    fn numbers(self) -> (u64, u64) {
        match self {
            Self::V0_1 => v0_1::VERSION,
            Self::V0_2 => v0_2::VERSION,
        }
    }
}

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.numbers();
        write!(f, "{major}.{minor}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(export: &str) -> String {
        version_of(&[export]).map_or_else(|e| e.to_string(), |_| String::new())
    }

    #[test]
    fn every_patch_of_a_known_minor_is_accepted() {
        let version = |export| version_of(&["x", export]);
        assert_eq!(
            version("switchyard:policy/scheduling@0.1.0"),
            Ok(Spoken::V0_1)
        );
        assert_eq!(
            version("switchyard:policy/scheduling@0.1.7"),
            Ok(Spoken::V0_1)
        );
        assert_eq!(
            version("switchyard:policy/scheduling@0.2.0"),
            Ok(Spoken::V0_2)
        );
    }

    #[test]
    fn refusals_name_both_versions() {
        let newer = refusal("switchyard:policy/scheduling@0.3.0");
        assert!(
            newer.contains("0.3.0") && newer.contains("speaks 0.1 and 0.2"),
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
    fn a_component_of_another_kind_is_refused_with_the_missing_export() {
        let other = refusal("wasi:cli/run@0.2.0");
        assert!(other.contains("`switchyard:policy/scheduling`"), "{other}");
        assert!(other.contains("`wasi:cli/run@0.2.0`"), "{other}");
        let nothing = version_of(&[]).map_err(|e| e.to_string());
        assert!(nothing.is_err_and(|e| e.ends_with("exports nothing")));
    }
}

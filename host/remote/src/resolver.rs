//! From a name to addresses.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::lookup_host;

/// The addresses of a name, once they are known.
pub type FoundAddresses<'a> =
    Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Finds the addresses of a name.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// The addresses of `host` with `port`, in any order.
    fn addresses<'a>(&'a self, host: &'a str, port: u16) -> FoundAddresses<'a>;
}

/// The resolver of a configuration. Clones are the same one.
#[derive(Clone, Debug)]
pub struct NameResolver(Arc<dyn Resolve>);

/// The system's resolver.
#[derive(Debug)]
struct SystemResolver;

// === impl NameResolver ===

impl NameResolver {
    /// Another resolver than the system's.
    pub fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self(resolver)
    }

    /// The addresses of a name, each once. Of a name with addresses of both families those of IPv4: a
    /// server with both must not count as two.
    ///
    /// # Errors
    /// The resolver's reason.
    pub(crate) async fn addresses(
        &self,
        host: &str,
        port: u16,
    ) -> Result<BTreeSet<SocketAddr>, String> {
        let found = self.0.addresses(host, port).await;
        let found = found.map_err(|error| error.to_string())?;
        let has_v4 = found.iter().any(SocketAddr::is_ipv4);
        let of_family = found.into_iter().filter(|at| at.is_ipv4() == has_v4);
        Ok(of_family.collect())
    }
}

impl Default for NameResolver {
    fn default() -> Self {
        Self(Arc::new(SystemResolver))
    }
}

impl PartialEq for NameResolver {
    /// A configuration is the same with any resolver.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

// === impl SystemResolver ===

impl Resolve for SystemResolver {
    fn addresses<'a>(&'a self, host: &'a str, port: u16) -> FoundAddresses<'a> {
        Box::pin(async move { Ok(lookup_host((host, port)).await?.collect()) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[derive(Debug)]
    struct Fixed(Vec<&'static str>);

    impl Resolve for Fixed {
        fn addresses<'a>(&'a self, _: &'a str, _: u16) -> FoundAddresses<'a> {
            let all = self.0.iter().map(|at| at.parse().unwrap()).collect();
            Box::pin(std::future::ready(Ok(all)))
        }
    }

    #[tokio::test]
    async fn a_server_with_two_families_counts_once() {
        for (found, used) in [
            (vec!["10.0.0.2:1", "10.0.0.1:1", "10.0.0.2:1"], 2),
            (vec!["[fd00::1]:1", "10.0.0.1:1", "[fd00::2]:1"], 1),
            (vec!["[fd00::1]:1", "[fd00::2]:1"], 2),
            (vec![], 0),
        ] {
            let resolver = NameResolver::new(Arc::new(Fixed(found.clone())));
            let addresses = resolver.addresses("workers", 1).await.unwrap();
            assert_eq!(addresses.len(), used, "{found:?}: {addresses:?}");
        }
    }

    #[tokio::test]
    async fn the_system_knows_localhost() {
        let found = NameResolver::default().addresses("localhost", 8001).await;
        assert!(found.unwrap().iter().all(|at| at.ip().is_loopback()));
    }
}

//! The check of every address that is dialled for a cluster that a Secret names.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

use super::address::{AddressClass, AddressRefused};
use crate::error::BoxError;
use crate::kubeconfig::Context;

/// The addresses to which a name resolves; see [`AddressGuard::with_resolver`].
pub type Resolution = io::Result<Vec<IpAddr>>;

type Resolver = Arc<dyn Fn(&str) -> Resolution + Send + Sync>;

/// The check that a cluster which a Secret names has no address of this machine, its link or its cloud.
///
/// It is applied at each dial to every address to which the server's name resolves then, so that a name which
/// resolves differently later does not pass either.
#[derive(Clone, Default)]
pub struct AddressGuard {
    allows_loopback: bool,
    allows_link_local: bool,
    resolver: Option<Resolver>,
}

impl std::fmt::Debug for AddressGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressGuard")
            .field("allows_loopback", &self.allows_loopback)
            .field("allows_link_local", &self.allows_link_local)
            .finish_non_exhaustive()
    }
}

impl AddressGuard {
    /// Returns the guard for the clusters that Secrets of the cluster `home` name. Loopback addresses are allowed only
    /// if the address of `home` is one, and link-local ones likewise. A home that is reached by a proxy, that another
    /// cluster's Secret names, or whose host is a name other than `localhost` allows neither.
    pub fn of_home(home: &Context) -> AddressGuard {
        let host = home.config.cluster_url.host().unwrap_or_default();
        let class = match host {
            _ if home.config.proxy_url.is_some() || home.guard.is_some() => AddressClass::Ordinary,
            "localhost" => AddressClass::Loopback,
            host => literal(host).map_or(AddressClass::Ordinary, AddressClass::of),
        };
        AddressGuard {
            allows_loopback: class == AddressClass::Loopback,
            allows_link_local: class == AddressClass::LinkLocal,
            resolver: None,
        }
    }

    /// Resolves names by `resolver` instead of by the system's resolver. It runs on a thread that may block.
    #[must_use]
    pub fn with_resolver(
        self,
        resolver: impl Fn(&str) -> Resolution + Send + Sync + 'static,
    ) -> AddressGuard {
        AddressGuard { resolver: Some(Arc::new(resolver)), ..self }
    }

    /// Checks that a cluster which a Secret names may have this address.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), AddressRefused> {
        let class = AddressClass::of(address);
        let is_allowed = match class {
            AddressClass::Ordinary => true,
            AddressClass::Loopback => self.allows_loopback,
            AddressClass::LinkLocal => self.allows_link_local,
            AddressClass::Metadata
            | AddressClass::Unspecified
            | AddressClass::Multicast
            | AddressClass::Reserved => false,
        };
        if is_allowed { Ok(()) } else { Err(AddressRefused { address, class }) }
    }

    /// Checks the host of a URL as [`AddressGuard::check`] does if it is an IP address; a name passes.
    pub(crate) fn check_literal(&self, url: &Uri) -> Result<(), AddressRefused> {
        literal(url.host().unwrap_or_default()).map_or(Ok(()), |address| self.check(address))
    }

    /// Returns a connector that dials only addresses that pass [`AddressGuard::check`].
    pub(crate) fn connector(self) -> GuardedConnector {
        let mut tcp = HttpConnector::new_with_resolver(GuardedResolver(self.clone()));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        GuardedConnector { guard: self, tcp }
    }
}

/// Parses a URL's host, with or without brackets, as an IP address; `None` if it is a name.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

/// A resolver that fails if any address of a name does not pass [`AddressGuard::check`].
#[derive(Clone)]
pub(crate) struct GuardedResolver(AddressGuard);

impl Service<Name> for GuardedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.0.clone();
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = match guard.resolver.clone() {
                None => GaiResolver::new().call(name).await?.collect(),
                Some(resolver) => {
                    let found = tokio::task::spawn_blocking(move || resolver(name.as_str())).await??;
                    found.into_iter().map(|address| SocketAddr::new(address, 0)).collect()
                }
            };
            for address in &addresses {
                guard.check(address.ip())?;
            }
            Ok(addresses.into_iter())
        })
    }
}

/// A TCP connector that checks literal addresses, which no resolver sees, and those of names.
#[derive(Clone)]
pub(crate) struct GuardedConnector {
    guard: AddressGuard,
    tcp: HttpConnector<GuardedResolver>,
}

impl Service<Uri> for GuardedConnector {
    type Response = <HttpConnector<GuardedResolver> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        if let Err(refused) = self.guard.check_literal(&url) {
            return Box::pin(std::future::ready(Err(refused.into())));
        }
        let connecting = self.tcp.call(url);
        Box::pin(async move { connecting.await.map_err(Into::into) })
    }
}

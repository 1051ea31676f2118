//! Makes kubeconfigs, contexts and connections for tests.

use std::time::Duration;

use taffrail_cluster::{Cluster, ConnectError, Context, Deadline, Kubeconfig};
use taffrail_testkit::server::Server;

/// A deadline for tests that must not time out.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Returns a kubeconfig with the context `test`, whose cluster and user have these lines.
pub(crate) fn kubeconfig(cluster: &str, user: &str) -> String {
    taffrail_testkit::kubeconfig(&[("test", cluster, user)])
}

/// Returns the current context of a kubeconfig, given as text.
pub(crate) fn current(kubeconfig: &str) -> Context {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig).unwrap();
    Kubeconfig::load(Some(file.path()), None, None).unwrap().current().unwrap()
}

pub(crate) fn context(cluster: &str, user: &str) -> Context {
    current(&kubeconfig(cluster, user))
}

pub(crate) async fn connect(cluster: &str, user: &str, timeout: Duration) -> Result<Cluster, ConnectError> {
    Cluster::connect(&context(cluster, user), Deadline::after(timeout)).await
}

/// Connects to a server without credentials.
pub(crate) async fn reached(server: &Server, timeout: Duration) -> Cluster {
    connect(&format!("server: {}", server.url()), "", timeout).await.unwrap()
}

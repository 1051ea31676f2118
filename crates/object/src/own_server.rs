//! The addresses by which Pods reach the API server of their own cluster.

const OWN_SERVERS: [&str; 3] = [
    "https://kubernetes.default.svc",
    "https://kubernetes.default",
    "https://kubernetes.default.svc.cluster.local",
];

/// Returns true if a server address means the cluster in which it is written: the name under which each cluster serves
/// its API to its own Pods.
pub fn is_own_server(server: &str) -> bool {
    let host = server.trim().trim_end_matches('/');
    OWN_SERVERS.contains(&host.strip_suffix(":443").unwrap_or(host))
}

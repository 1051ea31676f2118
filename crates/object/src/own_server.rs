//! The addresses by which Pods reach the API server of their own cluster.

const OWN_SERVERS: [&str; 3] = [
    "https://kubernetes.default.svc",
    "https://kubernetes.default",
    "https://kubernetes.default.svc.cluster.local",
];

/// Returns true if `server` is the URL by which Pods reach the API server of their own cluster, such as
/// `https://kubernetes.default.svc`. White space around it, the port 443 and slashes at its end are ignored.
pub fn is_own_server(server: &str) -> bool {
    let host = server.trim().trim_end_matches('/');
    OWN_SERVERS.contains(&host.strip_suffix(":443").unwrap_or(host))
}

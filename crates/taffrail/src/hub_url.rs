//! URLs of hubs.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The URL of a hub.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HubUrl {
    pub(crate) address: SocketAddr,
    /// The host and port as in the URL.
    pub(crate) authority: String,
    /// The token in the fragment; `None` without one.
    pub(crate) token: Option<String>,
}

/// Prints the URL without its token.
impl fmt::Debug for HubUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubUrl").field("authority", &self.authority).finish_non_exhaustive()
    }
}

impl HubUrl {
    /// Parses a URL, with the token of the hub as its fragment or without one.
    pub(crate) fn parse(text: &str) -> Result<Box<HubUrl>, String> {
        let (url, token) = match text.split_once('#') {
            Some((url, token)) => (url, Some(token.to_owned()).filter(|token| !token.is_empty())),
            None => (text, None),
        };
        let uri: http::Uri = url.parse().map_err(|_| "write a URL like http://127.0.0.1:7655")?;
        if uri.scheme_str() != Some("http") {
            return Err("write a URL like http://127.0.0.1:7655".to_owned());
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err("the URL of a hub has no path: write one like http://127.0.0.1:7655".to_owned());
        }
        let host = uri.host().unwrap_or_default();
        let ip = match host {
            "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            host => host.trim_start_matches('[').trim_end_matches(']').parse().ok(),
        };
        let Some(ip) = ip.filter(|ip| ip.to_canonical().is_loopback()) else {
            return Err("http is for hubs on this machine alone: 127.0.0.1, [::1] or localhost".to_owned());
        };
        let port = uri.port_u16().unwrap_or(80);
        let authority = format!("{host}:{port}");
        Ok(Box::new(HubUrl { address: SocketAddr::new(ip, port), authority, token }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hubs_on_this_machine_are_asked_without_tls() {
        for (text, authority, token) in [
            ("http://127.0.0.1:7655", "127.0.0.1:7655", None),
            ("http://localhost:7655/#abc", "localhost:7655", Some("abc")),
            ("http://[::1]:1#", "[::1]:1", None),
            ("http://127.0.0.1", "127.0.0.1:80", None),
        ] {
            let url = HubUrl::parse(text).unwrap();
            assert_eq!((&*url.authority, url.token.as_deref()), (authority, token), "{text}");
            assert!(url.address.ip().is_loopback() && !format!("{url:?}").contains("abc"));
        }
        for text in [
            "https://127.0.0.1:7655",
            "127.0.0.1:7655",
            "http://10.0.0.1:7655",
            "http://hub.example.com",
            "http://127.0.0.1.example.com:7655",
            "http://user@10.0.0.1:7655",
            "http://127.0.0.1:7655/api/v1/apps",
            "http://127.0.0.1:7655/?status=Ready",
            "",
        ] {
            assert!(HubUrl::parse(text).is_err(), "{text}");
        }
    }
}

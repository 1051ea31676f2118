//! Parses URLs of hubs.

use std::fmt;
use std::net::IpAddr;

/// The scheme of the URL of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Without TLS; only for a hub on this machine.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// Returns the scheme as it stands in URLs: `http` or `https`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// The parsed URL of a hub.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HubUrl {
    pub(crate) scheme: Scheme,
    /// The name or address of the host: an IPv6 address without brackets, and `127.0.0.1` for `http://localhost`.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The value of the header `Host`: the host as in the URL and the port, without the port for an https URL with port
    /// 443.
    pub(crate) authority: String,
    /// The token in the fragment; `None` without one, or if it is empty.
    pub(crate) token: Option<String>,
}

/// Prints the URL without its token.
impl fmt::Debug for HubUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HubUrl { scheme, authority, .. } = self;
        f.debug_struct("HubUrl").field("scheme", scheme).field("authority", authority).finish_non_exhaustive()
    }
}

impl HubUrl {
    /// Parses an http or https URL, whose fragment, if it is not empty, is the token of the hub. Fails for a path, a
    /// query or a user in it, and for an http URL whose host is neither `localhost` nor a loopback address; the error
    /// is a message for the user.
    pub(crate) fn parse(text: &str) -> Result<Box<HubUrl>, String> {
        const EXAMPLE: &str = "write a URL like https://hub.example.com:7655 or http://127.0.0.1:7655";
        let wrong = || format!("this is not the URL of a hub: {EXAMPLE}");
        let (url, token) = match text.split_once('#') {
            Some((url, token)) => (url, Some(token.to_owned()).filter(|token| !token.is_empty())),
            None => (text, None),
        };
        let uri: http::Uri = url.parse().map_err(|_| wrong())?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(wrong()),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!("the URL of a hub has neither path nor query: {EXAMPLE}"));
        }
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        if authority.contains('@') {
            return Err(
                "the URL of a hub has no user: its token is the fragment, or in --hub-token-file".to_owned()
            );
        }
        let named = uri.host().unwrap_or_default();
        let host = named.trim_start_matches('[').trim_end_matches(']');
        // A name could resolve to another machine.
        let is_here = |ip: IpAddr| ip.to_canonical().is_loopback();
        let host = match scheme {
            Scheme::Http if host == "localhost" => "127.0.0.1",
            Scheme::Http if !host.parse().is_ok_and(is_here) => {
                return Err(
                    "http is for hubs on this machine alone: 127.0.0.1, [::1] or localhost".to_owned()
                );
            }
            _ if host.is_empty() => return Err(wrong()),
            _ => host,
        };
        let default = if scheme == Scheme::Http { 80 } else { 443 };
        let port = uri.port_u16().unwrap_or(default);
        let authority = match (scheme, port) {
            (Scheme::Https, 443) => named.to_owned(),
            _ => format!("{named}:{port}"),
        };
        Ok(Box::new(HubUrl { scheme, host: host.to_owned(), port, authority, token }))
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
            let ip: IpAddr = url.host.parse().unwrap();
            assert!(ip.is_loopback() && !format!("{url:?}").contains("abc"));
        }
        for text in [
            "127.0.0.1:7655",
            "ftp://127.0.0.1:7655",
            "http://10.0.0.1:7655",
            "http://hub.example.com",
            "http://127.0.0.1.example.com:7655",
            "http://user@10.0.0.1:7655",
            "http://user@127.0.0.1:7655",
            "https://user:secret@hub.example.com",
            "https://hub.example.com/taffrail",
            "https://",
            "http://127.0.0.1:7655/api/v1/apps",
            "http://127.0.0.1:7655/?status=Ready",
            "",
        ] {
            assert!(HubUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hubs_elsewhere_are_asked_with_tls() {
        for (text, host, port, authority) in [
            ("https://hub.example.com", "hub.example.com", 443, "hub.example.com"),
            ("https://hub.example.com:443/", "hub.example.com", 443, "hub.example.com"),
            ("https://10.0.0.1:7655#abc", "10.0.0.1", 7655, "10.0.0.1:7655"),
            ("https://[fd00::1]:7655", "fd00::1", 7655, "[fd00::1]:7655"),
            ("https://localhost:7655", "localhost", 7655, "localhost:7655"),
        ] {
            let url = HubUrl::parse(text).unwrap();
            assert_eq!(url.scheme, Scheme::Https);
            assert_eq!((&*url.host, url.port, &*url.authority), (host, port, authority), "{text}");
        }
    }
}

//! Proxies between Taffrail and the servers that it connects to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;

/// The proxies that the environment names, as kubectl and curl understand them.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentProxies {
    /// The value of `HTTP_PROXY`; empty for none.
    pub http: String,
    /// The value of `HTTPS_PROXY`; empty for none.
    pub https: String,
    /// The value of `NO_PROXY`: hosts, domains and networks that are reached directly.
    pub no_proxy: String,
}

impl EnvironmentProxies {
    /// Returns the proxy for the server at `url`; `None` if it is reached directly, as each server on this machine is.
    /// The URL of the proxy may name a user and a password.
    pub fn proxy_of(&self, url: &Uri) -> Option<Uri> {
        if is_loopback(url) {
            return None;
        }
        let matcher = Matcher::builder().http(&*self.http).https(&*self.https).no(&*self.no_proxy).build();
        matcher.intercept(url).map(|proxy| {
            // The matcher removes the user from the address.
            let named = if url.scheme_str() == Some("http") { &self.http } else { &self.https };
            proxy_uri(named).unwrap_or_else(|| proxy.uri().clone())
        })
    }
}

/// Returns true if the host of a URL is `localhost` or a loopback address.
pub(crate) fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Parses a proxy's URL, which without a scheme is an HTTP proxy; `None` if its scheme is not `http`, `https` or
/// `socks5`, or if it has no host.
pub(crate) fn proxy_uri(text: &str) -> Option<Uri> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri = text.parse::<Uri>().ok()?;
    (matches!(uri.scheme_str(), Some("http" | "https" | "socks5")) && uri.host().is_some()).then_some(uri)
}

/// Returns user and password, percent-decoded, from the URL of a proxy; `None` if it names no user. A missing password
/// is empty.
pub(crate) fn proxy_user(proxy: &Uri) -> Option<(String, String)> {
    let (user, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decode(name), decode(password)))
}

/// Returns a connector through an HTTP proxy (`CONNECT`), with the user and password in its URL, if it has some.
pub fn tunnel<C>(proxy: &Uri, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let basic = proxy_user(proxy).map(|(name, password)| STANDARD.encode(format!("{name}:{password}")));
    match basic.and_then(|basic| HeaderValue::from_str(&format!("Basic {basic}")).ok()) {
        Some(header) => tunnel.with_auth(header),
        None => tunnel,
    }
}

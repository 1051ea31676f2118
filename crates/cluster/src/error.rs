//! The errors of connecting to and reading from an API server, with hints.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};
use taffrail_object::words;
use taffrail_status::is_unseen;

use crate::found::address::AddressRefused;

/// An error of any type.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The class of a failure, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The deadline, or the time limit of one request, passed.
    Timeout,
    /// The server does not accept the credentials.
    Unauthorized,
    /// The server accepts the credentials, but does not allow this request.
    Forbidden,
    /// The server has no object of the requested name, or does not serve its kind.
    NotFound,
    /// The server's certificate is not trusted, is for another name, is not valid yet, or has another defect.
    CertificateInvalid,
    /// The server's certificate has expired.
    CertificateExpired,
    /// No process listens at the server's address.
    ConnectionRefused,
    /// The connection broke before the answer was complete.
    ConnectionLost,
    /// The server is unreachable, the two ends do not speak the same protocol, or the transport failed in another way.
    ConnectionFailed,
    /// The server's name does not resolve.
    NameNotResolved,
    /// The proxy that the kubeconfig or the environment names did not connect.
    ProxyFailed,
    /// The exec plugin did not give credentials.
    ExecPluginFailed,
    /// The credentials could not be renewed or sent with a request.
    CredentialsInvalid,
    /// The response is not JSON; perhaps it does not come from an API server.
    NotJson,
    /// The response is JSON, but not of the requested form; or the request could not be formed.
    UnexpectedAnswer,
    /// The server answered with an HTTP status of 500 or above.
    ServerError,
    /// The server answered 429 (too many requests) to the last attempt.
    TooManyRequests,
    /// The server no longer keeps the requested resource version.
    Gone,
    /// The cluster sends more, or needs more connections, than the limits allow.
    OverLimit,
    /// The server rejects the request with an HTTP status that has no reason of its own here, or the request would
    /// write a Secret.
    BadRequest,
    /// Another client changed the object since it was read, or the object to create exists already.
    Conflict,
    /// The server rejects the resulting object (422), one of its webhooks denies the request, or the served version
    /// lacks a field of the object.
    Invalid,
    /// A kubeconfig, or a Secret that names a cluster, cannot be used.
    BadKubeconfig,
}

words! {
    Reason {
        Timeout, Unauthorized, Forbidden, NotFound, CertificateInvalid, CertificateExpired, ConnectionRefused, ConnectionLost,
        ConnectionFailed, NameNotResolved, ProxyFailed, ExecPluginFailed, CredentialsInvalid, NotJson, UnexpectedAnswer,
        ServerError, TooManyRequests, Gone, OverLimit, BadRequest, Conflict, Invalid, BadKubeconfig,
    }
}

impl Reason {
    /// Returns the hint for the user that fits every failure of this class.
    pub fn hint(self) -> &'static str {
        match self {
            Reason::Timeout => {
                "check that the server is up and reachable; if it is only slow, use a longer --timeout or --request-timeout"
            }
            Reason::Unauthorized => {
                "the credentials of this context are missing, wrong or expired: log in again"
            }
            Reason::Forbidden => {
                "ask for a role that allows `get` and `list` on what the message names, or name a namespace that you may read; unreadable objects are shown as Unknown"
            }
            Reason::NotFound => "check the name and namespace, and that the kind is installed in the cluster",
            Reason::CertificateInvalid => {
                "check that certificate-authority in the kubeconfig belongs to this server (it changes if the cluster was recreated), that the certificate is for the name in `server` or tls-server-name, and the clock of this machine"
            }
            Reason::CertificateExpired => {
                "renew the server's certificate, and check the clock of this machine"
            }
            Reason::ConnectionRefused => {
                "check that the server is running, and that its port in the kubeconfig is right"
            }
            Reason::ConnectionLost => {
                "the server, or a proxy before it, closed the connection: run the command again"
            }
            Reason::ConnectionFailed => {
                "check that the network (or VPN) is up, and that `server` in the kubeconfig is right"
            }
            Reason::NameNotResolved => {
                "check the server's name in the kubeconfig, and that the network (or VPN) is up"
            }
            Reason::ProxyFailed => "check proxy-url in the kubeconfig, and HTTPS_PROXY and NO_PROXY",
            Reason::ExecPluginFailed => "run the plugin by hand, or log in with kubectl, and try again",
            Reason::CredentialsInvalid => "renew the credentials of this context: log in again",
            Reason::NotJson => {
                "check that `server` in the kubeconfig is an API server, not a login page or a load balancer"
            }
            Reason::UnexpectedAnswer => {
                "check that `server` in the kubeconfig is an API server, and that no proxy changes its responses"
            }
            Reason::ServerError => {
                "see the API server's log; an API service or webhook behind it may be down"
            }
            Reason::TooManyRequests => "the server is busy: try again, with a longer timeout",
            Reason::Gone => "the list changed faster than its pages could be read: run the command again",
            Reason::OverLimit => {
                "if an app names too many objects, split it; if a cluster sends too much, read less with -n or --kind, or use a machine with more memory"
            }
            Reason::BadRequest => {
                "check that the server serves this kind in this version; a selector or name may be wrong"
            }
            Reason::Conflict => {
                "look at the object again, and run the command again if the change is still needed"
            }
            Reason::Invalid => {
                "correct the field, or satisfy the webhook, that the message names; the object was not changed"
            }
            Reason::BadKubeconfig => {
                "correct the entry of the kubeconfig that the message names, or log in again, which often rewrites the kubeconfig"
            }
        }
    }
}

/// The phase of connecting or of a request in which a time limit passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting for credentials from an exec plugin.
    ExecPlugin,
    /// Resolving the name or opening the TCP connection.
    Connect,
    /// Waiting for the TLS handshake on an open connection.
    Handshake,
    /// Waiting for a free stream on the connection.
    Queue,
    /// No request was sent: the deadline had passed before.
    Unsent,
    /// Waiting for the start of the response.
    Headers,
    /// Waiting for the rest of the response.
    Body,
    /// Parsing the complete response.
    Reading,
    /// Waiting as long as the server asked with `Retry-After`.
    RetryAfter,
}

impl Display for Phase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::ExecPlugin => "waiting for the exec plugin",
            Phase::Connect => "connecting",
            Phase::Handshake => "in the TLS handshake",
            Phase::Queue => "waiting for earlier requests",
            Phase::Unsent => "before the request was sent",
            Phase::Headers => "waiting for an answer",
            Phase::Body => "in the middle of the answer",
            Phase::Reading => "reading the answer",
            Phase::RetryAfter => "waiting for the time that the server requested",
        })
    }
}

/// The time limit that ended a request, and the time that it gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeLimit {
    /// The deadline of all reads, counted from when that was set.
    All(Duration),
    /// The limit of one request.
    Request(Duration),
}

impl TimeLimit {
    /// Returns the length of the limit: for [`TimeLimit::All`] the time from setting the deadline to giving up.
    pub fn time(self) -> Duration {
        let (TimeLimit::All(time) | TimeLimit::Request(time)) = self;
        time
    }
}

impl Display for TimeLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TimeLimit::All(time) => write!(f, "{:.1} s", time.as_secs_f64()),
            TimeLimit::Request(time) => write!(f, "{:.1} s, the limit of one request", time.as_secs_f64()),
        }
    }
}

/// A failure of the transport to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The name does not resolve.
    NameNotResolved,
    /// No process listens at the address.
    Refused,
    /// There is no route to the address.
    Unreachable,
    /// The connection was closed or reset.
    Lost,
    /// The server's certificate has expired.
    CertificateExpired,
    /// The server's certificate is not valid yet.
    CertificateNotYetValid,
    /// The server's certificate was issued by an authority that is not trusted.
    UnknownAuthority,
    /// The server's certificate is for another name.
    WrongName,
    /// The server's certificate has some other defect.
    CertificateInvalid,
    /// The server refused the client certificate, or demands one.
    ClientCertificateRefused,
    /// The other end does not speak TLS.
    NotTls,
    /// The two ends cannot agree on TLS.
    TlsFailed,
    /// The proxy is unreachable or refused.
    Proxy,
    /// A cluster that another cluster's Secret names has an address that such clusters must not have.
    AddressRefused,
    /// The credentials could not be renewed or sent.
    Credentials,
    /// Another failure, described by the cause.
    Other,
}

impl Fault {
    /// Returns the class of failures to which this fault belongs.
    pub fn reason(self) -> Reason {
        match self {
            Fault::NameNotResolved => Reason::NameNotResolved,
            Fault::Refused => Reason::ConnectionRefused,
            Fault::Lost => Reason::ConnectionLost,
            Fault::CertificateExpired => Reason::CertificateExpired,
            Fault::CertificateNotYetValid
            | Fault::UnknownAuthority
            | Fault::WrongName
            | Fault::CertificateInvalid => Reason::CertificateInvalid,
            Fault::ClientCertificateRefused => Reason::Unauthorized,
            Fault::Proxy => Reason::ProxyFailed,
            Fault::AddressRefused => Reason::BadKubeconfig,
            Fault::Credentials => Reason::CredentialsInvalid,
            Fault::Unreachable | Fault::NotTls | Fault::TlsFailed | Fault::Other => Reason::ConnectionFailed,
        }
    }

    /// Returns the fault that an error or one of its causes shows: the outermost error of TLS, of credentials or of a
    /// refused address counts first, then name resolution, then the innermost I/O or HTTP error; [`Fault::Other`] if
    /// none is known.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Fault {
        let mut fault = Fault::Other;
        for cause in causes(error) {
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return of_tls(tls);
            }
            if cause.is::<AddressRefused>() {
                return Fault::AddressRefused;
            }
            if cause.is::<kube::client::AuthError>() {
                return Fault::Credentials;
            }
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                fault = match io.kind() {
                    // A resolver's error has none of the kinds below, so the earlier finding stays.
                    _ if fault == Fault::NameNotResolved => fault,
                    io::ErrorKind::ConnectionRefused => Fault::Refused,
                    io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::AddrNotAvailable => Fault::Unreachable,
                    io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof => Fault::Lost,
                    // The HTTP/2 library keeps only the text of an error that ends several streams.
                    io::ErrorKind::InvalidData if refuses_client(&io.to_string()) => {
                        Fault::ClientCertificateRefused
                    }
                    _ => fault,
                };
            } else if let Some(http) = cause.downcast_ref::<hyper::Error>() {
                if http.is_incomplete_message() || http.is_closed() || http.is_body_write_aborted() {
                    fault = Fault::Lost;
                } else if fault == Fault::Other && (http.is_canceled() || http.to_string().contains("http2"))
                {
                    // A reset stream or a GOAWAY: the connection is of no more use.
                    fault = Fault::Lost;
                }
            } else if cause.to_string() == "dns error" {
                // The connector's error type is private; this is its whole text.
                fault = Fault::NameNotResolved;
            }
        }
        fault
    }
}

/// The TLS alerts with which a server refuses a client's certificate, or the lack of one.
const CLIENT_REFUSED: [AlertDescription; 6] = [
    AlertDescription::CertificateRequired,
    AlertDescription::BadCertificate,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
];

/// Returns true if `text` is exactly the message of rustls for receiving a TLS alert in [`CLIENT_REFUSED`].
fn refuses_client(text: &str) -> bool {
    CLIENT_REFUSED.into_iter().any(|alert| text == rustls::Error::AlertReceived(alert).to_string())
}

fn of_tls(error: &rustls::Error) -> Fault {
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Fault::CertificateExpired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Fault::CertificateNotYetValid
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Fault::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Fault::WrongName
            }
            _ => Fault::CertificateInvalid,
        },
        rustls::Error::AlertReceived(alert) if CLIENT_REFUSED.contains(alert) => {
            Fault::ClientCertificateRefused
        }
        rustls::Error::InvalidMessage(_) => Fault::NotTls,
        _ => Fault::TlsFailed,
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::NameNotResolved => "the host name does not resolve to an address",
            Fault::Refused => "connection refused",
            Fault::Unreachable => "there is no route to the host",
            Fault::Lost => "the connection was closed",
            Fault::CertificateExpired => "the server's certificate has expired",
            Fault::CertificateNotYetValid => "the server's certificate is not valid yet",
            Fault::UnknownAuthority => "the server's certificate is not signed by a trusted authority",
            Fault::WrongName => "the server's certificate is for another name",
            Fault::CertificateInvalid => "the server's certificate is not valid",
            Fault::ClientCertificateRefused => "the server does not accept the client certificate",
            Fault::NotTls => "the other end does not speak TLS",
            Fault::TlsFailed => "the TLS handshake failed",
            Fault::Proxy => "the proxy failed",
            Fault::AddressRefused => {
                "a Secret names it, and its address is one that such a cluster must not have (loopback, link-local, metadata service or reserved)"
            }
            Fault::Credentials => "the credentials could not be renewed",
            Fault::Other => "the request failed",
        })
    }
}

/// Iterates over an error and its causes, outermost first.
///
/// `source()` of an I/O error that wraps another error skips the wrapped one, which is often the informative one.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

/// The reason why connecting to a cluster failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The context's settings or credentials cannot be used.
    #[error("context \"{context}\": {what}")]
    Unusable {
        /// Name of the context.
        context: String,
        /// The defect as a clause, such as `its certificates cannot be used`.
        what: &'static str,
        /// The error of the TLS or HTTP library, if there is one.
        source: Option<BoxError>,
    },
    /// The exec plugin gave no credentials.
    #[error("context \"{context}\": exec plugin \"{command}\" {what}")]
    ExecPlugin {
        /// Name of the context.
        context: String,
        /// The command in the kubeconfig.
        command: String,
        /// The failure as a verb phrase, such as `was not found`; after a failed run with the last line of the plugin's
        /// stderr.
        what: String,
        /// The kubeconfig's text about installing the plugin, if the plugin was not found.
        install_hint: Option<String>,
        /// The error of starting the plugin or of reading its output; `None` after other failures.
        source: Option<io::Error>,
    },
    /// The server could not be reached.
    #[error("cannot connect to {server}: {fault}")]
    Transport {
        /// Address of the server.
        server: String,
        /// The class of the failure.
        fault: Fault,
        /// The underlying error.
        source: BoxError,
    },
    /// The deadline, or the limit of one request, passed before the server was connected to.
    #[error("no connection to {server} within {after}: gave up {phase}")]
    Timeout {
        /// Address of the server.
        server: String,
        /// The phase that the connection attempt had reached.
        phase: Phase,
        /// The limit that passed.
        after: TimeLimit,
    },
}

impl ConnectError {
    /// Returns the class of this failure.
    pub fn reason(&self) -> Reason {
        match self {
            ConnectError::Unusable { .. } => Reason::BadKubeconfig,
            ConnectError::ExecPlugin { .. } => Reason::ExecPluginFailed,
            ConnectError::Transport { fault, .. } => fault.reason(),
            ConnectError::Timeout { .. } => Reason::Timeout,
        }
    }

    /// Returns a hint for the user, never `None`: the plugin's installation hint if the plugin was not found, a hint
    /// about the failed phase or transport, or else the hint of the [reason](ConnectError::reason).
    pub fn hint(&self) -> Option<&str> {
        match self {
            ConnectError::ExecPlugin { install_hint: Some(hint), .. } => Some(hint),
            ConnectError::Timeout { phase: Phase::ExecPlugin, .. } => Some(Reason::ExecPluginFailed.hint()),
            ConnectError::Transport { fault: Fault::NotTls, .. } => {
                Some("check `server` in the kubeconfig: for a server without TLS it begins with http://")
            }
            _ => Some(self.reason().hint()),
        }
    }
}

/// The reason why reading from a cluster failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The request or its response did not get through.
    #[error("{what}: {fault}")]
    Transport {
        /// The operation, such as `list pods in namespace a`.
        what: String,
        /// The class of the failure.
        fault: Fault,
        /// The underlying error; `None` if it could contain a credential.
        source: Option<BoxError>,
    },
    /// The deadline, or the limit of one request, passed before the response was complete and read.
    #[error("{what}: no complete answer within {after}: gave up {phase}")]
    Timeout {
        /// The operation.
        what: String,
        /// The phase that the request had reached.
        phase: Phase,
        /// The limit that passed.
        after: TimeLimit,
    },
    /// The server responded with an error.
    #[error("{what}: {message} (HTTP {code})")]
    Refused {
        /// The operation.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The server's message, or else the name of the status and the start of the body, on one line.
        message: String,
    },
    /// The response is not JSON.
    #[error("{what}: the answer is not JSON (HTTP {code}, {content_type}): \"{start}\"")]
    NotJson {
        /// The operation.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The content type of the response, or `no content type`.
        content_type: String,
        /// The first 80 characters of the response, on one line.
        start: String,
    },
    /// A response, a list, all that is kept of the cluster, or the number of connections to it would exceed a limit.
    #[error("{what}: {limit}")]
    OverLimit {
        /// The operation.
        what: String,
        /// The excess as a clause, such as `the answer is larger than 8 MiB`.
        limit: String,
    },
    /// The response is not of the requested form, or the request could not be formed.
    #[error("{what}: {problem}")]
    Unexpected {
        /// The operation.
        what: String,
        /// The defect of the response or of the request.
        problem: String,
    },
}

impl ReadError {
    /// Returns the class of this failure.
    pub fn reason(&self) -> Reason {
        match self {
            ReadError::Transport { fault, .. } => fault.reason(),
            ReadError::Timeout { .. } => Reason::Timeout,
            ReadError::Refused { code, .. } => match code {
                401 => Reason::Unauthorized,
                403 => Reason::Forbidden,
                404 => Reason::NotFound,
                410 => Reason::Gone,
                429 => Reason::TooManyRequests,
                500.. => Reason::ServerError,
                _ => Reason::BadRequest,
            },
            ReadError::NotJson { .. } => Reason::NotJson,
            ReadError::OverLimit { .. } => Reason::OverLimit,
            ReadError::Unexpected { .. } => Reason::UnexpectedAnswer,
        }
    }

    /// Returns the hint of the [reason](ReadError::reason) for the user; never `None`.
    pub fn hint(&self) -> Option<&str> {
        Some(self.reason().hint())
    }
}

/// Returns the texts of an error and of its causes, outermost first, joined by `: ` as by [`add_causes`].
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    add_causes(&mut text, error.source());
    text
}

/// Maximum length in characters of one cause in a message; a longer one is cut. Some contain text from the server.
const LONGEST_CAUSE: usize = 400;

/// Appends a cause, and the causes of that cause, to a message, each after `: ` and cut to 400 characters. Leaves out a
/// cause whose text the message ends with already.
pub fn add_causes(text: &mut String, mut cause: Option<&dyn std::error::Error>) {
    let mut whole = text.clone();
    while let Some(error) = cause {
        let own = error.to_string();
        // Some errors repeat their cause in their own text.
        if !whole.ends_with(&own) {
            text.push_str(": ");
            match own.len() > LONGEST_CAUSE {
                true => text.push_str(&one_line(&own, LONGEST_CAUSE)),
                false => text.push_str(&own),
            }
            whole.push_str(&own);
        }
        cause = error.source();
    }
}

/// Cleans text from outside for one line of a message: no control characters, no runs of white space, `[…]` for every
/// word that looks like a token, and after `max` characters only `…`.
pub fn one_line(text: &str, max: usize) -> String {
    const TOKEN: usize = 40;

    let printable = text.replace(is_unseen, " ");
    let mut line = String::new();
    for word in printable.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        // Kubernetes' names can be as long, but they have no capitals.
        let token = word.split(['/', '"', '\'', '<', '>']).any(|part| {
            part.len() >= TOKEN
                && part.bytes().any(|c| c.is_ascii_uppercase())
                && part.bytes().any(|c| c.is_ascii_lowercase())
                && part.bytes().any(|c| c.is_ascii_digit())
        });
        line.push_str(if token { "[…]" } else { word });
    }
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_breaks_controls_or_tokens() {
        assert_eq!(one_line("  a\r\n\tb\u{1b}[31mc ", 80), "a b [31mc");
        assert_eq!(one_line("abcdef", 3), "abc…");
        let token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJ4In0.c2ln";
        assert_eq!(one_line(&format!("bad token \"{token}\" here"), 80), "bad token […] here");
        let account = "User \"system:serviceaccount:flux-system:kustomize-controller-2\" cannot list";
        assert_eq!(one_line(account, 80), account);
    }

    #[test]
    fn every_reason_has_a_word_and_a_hint_of_its_own() {
        let words: std::collections::BTreeSet<&str> = Reason::ALL.iter().map(|it| it.as_str()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        assert!(Reason::ALL.iter().all(|it| it.hint().len() > 10));
    }

    #[test]
    fn an_alert_of_which_only_the_text_is_left_refuses_the_client() {
        let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        let error = io::Error::new(io::ErrorKind::InvalidData, alert.to_string());
        assert_eq!(Fault::of(&error), Fault::ClientCertificateRefused);
        let other = io::Error::new(io::ErrorKind::InvalidData, "received fatal alert: HandshakeFailure");
        assert_eq!(Fault::of(&other), Fault::Other);
    }

    #[test]
    fn a_fault_is_found_below_io_errors_that_wrap_errors() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::Expired);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls));
        assert_eq!(Fault::of(&wrapped), Fault::CertificateExpired);
        assert_eq!(Fault::of(&io::Error::from(io::ErrorKind::ConnectionRefused)), Fault::Refused);
        assert_eq!(Fault::of(&io::Error::other("?")), Fault::Other);
    }
}

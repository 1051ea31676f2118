//! Errors of reading a metrics server.

use std::path::PathBuf;

use http::StatusCode;
use hyper_util::client::legacy;

/// The reason why a server cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A file for TLS cannot be read, or holds nothing of the kind.
    #[error("cannot read {} for TLS with the metrics server", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// The system's certificate authorities cannot be read.
    #[error("cannot read the certificate authorities of the system; set tls.caFile")]
    Roots(#[source] std::io::Error),
    /// The TLS configuration is not valid, for example because the private key is that of another certificate.
    #[error("cannot set up TLS for the metrics server")]
    Tls(#[source] rustls::Error),
    /// A file with a secret cannot be read.
    #[error("cannot read the secret in {}", path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file with a secret holds what cannot be sent in a header.
    #[error("{} is empty, or holds characters that HTTP does not allow", path.display())]
    SecretText {
        /// The file.
        path: PathBuf,
    },
}

/// The reason why a query has no answer that counts.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The server cannot be reached.
    #[error("the metrics server cannot be reached")]
    Unreachable(#[source] legacy::Error),
    /// The answer was not complete in time.
    #[error("the metrics server did not answer within {seconds} s")]
    Timeout {
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The connection broke within the answer.
    #[error("the connection broke within the answer")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server answered with an HTTP status other than 200.
    #[error("the metrics server answered {status}: {message}")]
    Status {
        /// The status.
        status: StatusCode,
        /// The beginning of the server's error.
        message: String,
    },
    /// The server answered with an error in place of data.
    #[error("the metrics server refused the query ({kind}): {message}")]
    Refused {
        /// The type of the error.
        kind: String,
        /// The beginning of the server's error.
        message: String,
    },
    /// The answer has no data.
    #[error("the metrics server answered without data")]
    NoData,
    /// The answer is too long.
    #[error("the answer is longer than {max} bytes")]
    TooLong {
        /// The greatest number of bytes that is read.
        max: usize,
    },
    /// The answer has too many series.
    #[error("the answer has more than {max} series")]
    TooManySeries {
        /// The greatest number that is read.
        max: usize,
    },
    /// The answer is not one of Prometheus' API.
    #[error("the answer is not one of Prometheus' API")]
    Malformed {
        /// The cause.
        source: serde_json::Error,
    },
}

impl QueryError {
    /// Returns the reason in one word, for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            QueryError::Unreachable(_) | QueryError::Broken(_) => "Unreachable",
            QueryError::Timeout { .. } => "Timeout",
            QueryError::Status { status, .. } if is_denial(*status) => "Forbidden",
            QueryError::Status { .. } | QueryError::Refused { .. } => "Refused",
            QueryError::TooLong { .. } | QueryError::TooManySeries { .. } => "TooManySeries",
            QueryError::NoData | QueryError::Malformed { .. } => "Malformed",
        }
    }

    /// Returns what the user may do, if that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            QueryError::Status { status, .. } if is_denial(*status) => {
                Some("check bearerTokenFile or basicAuth, and the tenant in headers (X-Scope-OrgID)")
            }
            QueryError::Status { status: StatusCode::NOT_FOUND, .. } => {
                Some("end url where /api/v1 begins; Mimir has a path before it, such as /prometheus")
            }
            QueryError::TooLong { .. } | QueryError::TooManySeries { .. } => {
                Some("select fewer series with matchers, or name the server twice with other matchers")
            }
            _ => None,
        }
    }
}

fn is_denial(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// Returns the text of an error with its causes.
pub(crate) fn whole_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    shown(&text)
}

/// The maximum length of an error or a warning that is shown, in characters.
const MAX_TEXT: usize = 300;

/// Returns the beginning of a text of the server, in one line and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let plain = text.chars().map(|it| if it.is_control() { ' ' } else { it });
    let mut cut: String = plain.take(MAX_TEXT).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        cut.push('…');
    }
    cut.trim().to_owned()
}

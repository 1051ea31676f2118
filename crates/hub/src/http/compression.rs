//! Compressed answers, for clients that accept them.

use std::io::Write;

use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};

use super::body::typed;
use super::elements::elements;

/// The number of bytes from which on an answer is compressed: what is shorter is sent as fast as it is compressed.
const MIN_COMPRESSED: usize = 16 << 10;

/// An answer, compressed if that is worth its time.
pub(super) struct Answer {
    bytes: Vec<u8>,
    is_gzip: bool,
}

impl Answer {
    /// Compresses an answer that is long, if `is_accepted`.
    pub(super) fn new(bytes: Vec<u8>, is_accepted: bool) -> Answer {
        if !is_accepted || bytes.len() < MIN_COMPRESSED {
            return Answer { bytes, is_gzip: false };
        }
        let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
        match encoder.write_all(&bytes).and_then(|()| encoder.finish()) {
            Ok(bytes) => Answer { bytes, is_gzip: true },
            Err(_) => Answer { bytes, is_gzip: false },
        }
    }

    /// Makes a response with status 200 and this content type.
    pub(super) fn respond(self, content_type: &'static str) -> Response {
        let mut response = typed(self.bytes, content_type);
        add_headers(response.headers_mut(), self.is_gzip);
        response
    }
}

/// Adds the headers of a body that depends on the codings that a client accepts.
pub(super) fn add_headers(headers: &mut HeaderMap, is_gzip: bool) {
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if is_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

/// Returns true if the client of a request accepts a body that gzip compressed (RFC 9110, 12.5.3).
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    elements(headers, header::ACCEPT_ENCODING.as_str()).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

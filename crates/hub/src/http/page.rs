//! The page that a browser shows: the files that `web/` builds, compressed and part of the program.
//!
//! They reveal nothing about the fleet, so a browser needs no token to load them; the page asks for one, and reads all
//! else by the API.

use std::io::Read;

use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, header};

use super::body::typed;
use super::compression::{accepts_gzip, add_headers};
use super::elements::elements;
use super::problem::Refusal;

/// A file of the page.
struct PageFile {
    path: &'static str,
    content_type: &'static str,
    gzip: &'static [u8],
}

/// The files, as the build of `web/` listed them.
const FILES: &[PageFile] = include!("../../page/files.rs");

/// The path of the document, which is shown at the address of each view.
const DOCUMENT: &str = "/";

/// The rules by which browsers keep what the page loads to this hub: no other origin, no code or style within the
/// document, no frames.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src 'self'; img-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Returns true if the page has a file at `path`.
pub(super) fn has(path: &str) -> bool {
    file(path).is_some()
}

/// Returns true if a request accepts HTML, as those of a browser that opens an address do.
pub(super) fn is_opened(headers: &HeaderMap) -> bool {
    elements(headers, header::ACCEPT.as_str()).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("text/html")
    })
}

/// Responds with the file at `path`, or with the document.
pub(super) fn answer(path: &str, headers: &HeaderMap) -> Response {
    let Some(found) = file(path).or_else(|| file(DOCUMENT)) else {
        return Refusal::not_found("this hub was built without its page").into_response();
    };
    let is_gzip = accepts_gzip(headers);
    let mut response = if is_gzip {
        typed(found.gzip, found.content_type)
    } else {
        let mut plain = Vec::new();
        match GzDecoder::new(found.gzip).read_to_end(&mut plain) {
            Ok(_) => typed(plain, found.content_type),
            Err(_) => return Refusal::internal().into_response(),
        }
    };
    let headers = response.headers_mut();
    add_headers(headers, is_gzip);
    // A worker has the rules of its own file.
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

fn file(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.path == path)
}

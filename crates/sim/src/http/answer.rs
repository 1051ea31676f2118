//! Answers to HTTP requests.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;

use super::{Body, whole};
use crate::error::ApiError;

/// The length in bytes from which an answer is compressed, if the client accepts that.
const MIN_COMPRESSED_BYTES: usize = 128 * 1024;

/// The answer to an HTTP request.
pub(crate) struct Answer {
    code: u16,
    content_type: &'static str,
    headers: Vec<(HeaderName, String)>,
    warnings: Vec<String>,
    body: Content,
}

enum Content {
    Whole(Bytes),
    Stream(Body),
}

impl Answer {
    fn new(code: u16, content_type: &'static str, body: Content) -> Answer {
        Answer { code, content_type, headers: Vec::new(), warnings: Vec::new(), body }
    }

    pub(crate) fn json(code: u16, value: &Value) -> Answer {
        let mut text = value.to_string().into_bytes();
        text.push(b'\n');
        Answer::bytes(code, text)
    }

    /// Builds an answer from JSON text.
    pub(crate) fn bytes(code: u16, text: Vec<u8>) -> Answer {
        Answer::new(code, "application/json", Content::Whole(text.into()))
    }

    pub(crate) fn text(code: u16, text: &str) -> Answer {
        let body = Content::Whole(Bytes::copy_from_slice(text.as_bytes()));
        Answer::new(code, "text/plain; charset=utf-8", body)
    }

    pub(super) fn stream(body: Body) -> Answer {
        Answer::new(200, "application/json", Content::Stream(body))
    }

    pub(crate) fn not_found() -> Answer {
        Answer::text(404, "404 page not found\n")
    }

    pub(crate) fn not_modified() -> Answer {
        Answer::new(304, "application/json", Content::Whole(Bytes::new()))
    }

    pub(crate) fn of_type(mut self, content_type: &'static str) -> Answer {
        self.content_type = content_type;
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn warned(mut self, warnings: impl IntoIterator<Item = String>) -> Answer {
        self.warnings.extend(warnings);
        self
    }

    /// Compresses a whole body of at least [`MIN_COMPRESSED_BYTES`] with gzip if `accepted`, the header
    /// `Accept-Encoding`, names it; leaves streams as they are.
    pub(super) fn compressed(mut self, accepted: &str) -> Answer {
        let wanted =
            accepted.split(',').any(|coding| coding.split(';').next().unwrap_or_default().trim() == "gzip");
        let Content::Whole(body) = &self.body else { return self };
        if !wanted || body.len() < MIN_COMPRESSED_BYTES {
            return self;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing into memory cannot fail.
        let packed = encoder.write_all(body).and_then(|()| encoder.finish());
        if let Ok(packed) = packed {
            self.body = Content::Whole(packed.into());
            self.headers.push((header::CONTENT_ENCODING, "gzip".to_owned()));
            self.headers.push((header::VARY, "Accept-Encoding".to_owned()));
        }
        self
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let (length, body) = match self.body {
            Content::Whole(bytes) => (Some(bytes.len()), whole(bytes)),
            Content::Stream(body) => (None, body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(length) = length.filter(|_| self.code != 204) {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.append(name, value);
            }
        }
        for warning in self.warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

/// Appends the `Status` of an error to `out`.
pub(crate) fn write_status(error: &ApiError, out: &mut Vec<u8>) {
    out.extend_from_slice(error.status().to_string().as_bytes());
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Answer {
        let mut text = Vec::new();
        write_status(&error, &mut text);
        text.push(b'\n');
        let answer = Answer::bytes(error.code, text);
        match error.details.and_then(|details| details.retry_after_seconds) {
            Some(seconds) => answer.header(header::RETRY_AFTER, seconds.to_string()),
            None => answer,
        }
    }
}

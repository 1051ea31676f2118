//! Lists in the headers of requests.

use http::HeaderMap;

/// Iterates over the elements, which commas separate, of all headers of this name that are text (RFC 9110, 5.6.1).
pub(super) fn elements<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> + use<'h> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

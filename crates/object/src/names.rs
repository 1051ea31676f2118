//! Checks of object names by the rules of the API server.

use crate::ObjectKey;

/// The maximum length of the name of an object or group, in bytes; [`check`] refuses a longer one.
const MAX_NAME_LENGTH: usize = 253;

/// The maximum length of the name of a namespace or kind, in bytes; [`check`] refuses a longer one.
const MAX_LABEL_LENGTH: usize = 63;

/// The number of characters to which an error message cuts the invalid name that it quotes.
const MAX_QUOTED_LENGTH: usize = 60;

/// The error for a part of an object key that the API server would not accept: the part, its text and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {part} '{told}'{} {why}", if *.is_cut { "…" } else { "" })]
pub struct InvalidObjectName {
    part: &'static str,
    told: String,
    is_cut: bool,
    why: &'static str,
}

impl InvalidObjectName {
    fn new(part: &'static str, name: &str, why: &'static str) -> InvalidObjectName {
        let told: String = name.chars().take(MAX_QUOTED_LENGTH).collect();
        InvalidObjectName { part, is_cut: told.len() < name.len(), told, why }
    }
}

/// Checks that the API server would accept this object key.
///
/// # Errors
///
/// When the name or the kind is empty, or a part of the key (the group and the namespace may be empty) is longer or of
/// another form than the API server allows.
pub fn check(key: &ObjectKey) -> Result<(), InvalidObjectName> {
    let ObjectKey { group, kind, namespace, name } = key;
    if !group.is_empty() && !is_subdomain(group) {
        return Err(InvalidObjectName::new("group", group, "is not a DNS-1123 subdomain"));
    }
    if kind.is_empty()
        || kind.len() > MAX_LABEL_LENGTH
        || !kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return Err(InvalidObjectName::new("kind", kind, "is not the name of a kind"));
    }
    if !namespace.is_empty() && !is_label(namespace) {
        return Err(InvalidObjectName::new("namespace", namespace, "is not a DNS-1123 label"));
    }
    if has_loose_names(group, kind) {
        let is_segment = name.len() <= MAX_NAME_LENGTH && !name.is_empty() && !matches!(&**name, "." | "..");
        let is_clean = |char: char| !matches!(char, '/' | '%') && !char.is_control() && !char.is_whitespace();
        return match is_segment && name.chars().all(is_clean) {
            true => Ok(()),
            false => Err(InvalidObjectName::new("name", name, "cannot be part of a URL path")),
        };
    }
    match is_subdomain(name) {
        true => Ok(()),
        false => Err(InvalidObjectName::new("name", name, "is not a DNS-1123 subdomain")),
    }
}

/// Returns true for the kinds whose objects may have any name that can be part of a URL path: `IPAddress`, and all
/// kinds of the RBAC group and of OpenShift's groups `authorization`, `user`, `image` and `oauth`.
pub fn has_loose_names(group: &str, kind: &str) -> bool {
    let is_openshifts = || {
        let first = group.strip_suffix(".openshift.io");
        first.is_some_and(|first| matches!(first, "authorization" | "user" | "image" | "oauth"))
    };
    group == "rbac.authorization.k8s.io"
        || (group, kind) == ("networking.k8s.io", "IPAddress")
        || is_openshifts()
}

/// Returns true if a text is a DNS-1123 label, as the names of namespaces are.
pub fn is_label(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= MAX_LABEL_LENGTH
        && ends.iter().all(|end| end.is_some_and(is_word))
        && text.bytes().all(|byte| is_word(byte) || byte == b'-')
}

/// Returns true if a text is a DNS-1123 subdomain, as most object names are.
pub fn is_subdomain(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let ends = [part.bytes().next(), part.bytes().next_back()];
        ends.iter().all(|end| end.is_some_and(is_word))
            && part.bytes().all(|byte| is_word(byte) || byte == b'-')
    };
    text.len() <= MAX_NAME_LENGTH && text.split('.').all(is_part)
}

/// Returns true if a text is at most 253 bytes long, as object names are.
pub fn is_short(text: &str) -> bool {
    text.len() <= MAX_NAME_LENGTH
}

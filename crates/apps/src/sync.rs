//! The sync state of apps: if the desired revision is applied in the cluster.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKey;

/// The state of an app between its source and its cluster, as its delivery tool reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SyncState {
    /// The desired revision is applied.
    Synced,
    /// Another revision than the applied one is desired, or objects differ from it, and nothing shows that it is being
    /// applied.
    OutOfSync,
    /// The desired revision is being applied.
    Syncing,
    /// Fetching, building or applying the desired revision failed.
    Failed,
    /// The app is suspended: its tool does not sync it.
    Suspended,
    /// The desired or applied revision is not known.
    Unknown,
}

impl SyncState {
    /// All states.
    pub const ALL: [SyncState; 6] = [
        SyncState::Synced,
        SyncState::OutOfSync,
        SyncState::Syncing,
        SyncState::Failed,
        SyncState::Suspended,
        SyncState::Unknown,
    ];

    /// Returns the name used in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            SyncState::Synced => "Synced",
            SyncState::OutOfSync => "OutOfSync",
            SyncState::Syncing => "Syncing",
            SyncState::Failed => "Failed",
            SyncState::Suspended => "Suspended",
            SyncState::Unknown => "Unknown",
        }
    }
}

/// The error for a word that is not a sync state; holds the word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a sync state; there are: Synced, OutOfSync, Syncing, Failed, Suspended, Unknown")]
pub struct UnknownSyncState(pub String);

impl std::str::FromStr for SyncState {
    type Err = UnknownSyncState;

    fn from_str(text: &str) -> Result<SyncState, UnknownSyncState> {
        let found = SyncState::ALL.into_iter().find(|state| state.as_str().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| UnknownSyncState(text.to_owned()))
    }
}

impl std::fmt::Display for SyncState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The sync state and revisions of an app, as its delivery tool reports them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sync {
    /// The sync state: if the desired revision is applied, being applied, or failed.
    pub state: SyncState,
    /// The revision that the source holds; `None` if it is not known.
    pub desired: Option<String>,
    /// The revision that the tool tried last, successfully or not; `None` if it reports none.
    pub attempted: Option<String>,
    /// The revision that the tool applied successfully last; `None` if it reports none.
    pub applied: Option<String>,
    /// The time of the last successful sync; `None` if the tool reports none.
    pub last_success: Option<Timestamp>,
}

impl Sync {
    /// Makes a `Sync` in state `Unknown` without revisions.
    pub fn unknown() -> Sync {
        Sync { state: SyncState::Unknown, desired: None, attempted: None, applied: None, last_success: None }
    }
}

/// The sync state of one object, as its delivery tool reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectSync {
    /// The key of the object.
    #[serde(rename = "object")]
    pub key: ObjectKey,
    /// The state, as the tool reports it.
    pub state: ObjectSyncState,
    /// The message of the tool's last operation about the object, if that could not sync it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The fields in which an OutOfSync object differs, as far as the object records them; searched only for the
    /// details and the explanation of an app.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<DifferingFields>,
    /// True if Taffrail did not compare all fields of an OutOfSync object, because there are too many of them or of
    /// such objects.
    #[serde(default, skip_serializing_if = "is_false")]
    pub incomplete: bool,
}

/// Fields in which an object differs from its declaration; their values are not shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DifferingFields {
    /// The paths of the first fields: `spec.replicas`.
    pub fields: Vec<String>,
    /// The number of further fields.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The field manager that wrote these fields after the last sync; absent for fields that differ from what was last
    /// applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl DifferingFields {
    /// Returns the phrase for people: `spec.replicas differs from what was last applied`, or `kubectl wrote
    /// spec.replicas after the last sync`.
    pub fn words(&self) -> String {
        let fields = self.fields.join(", ");
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        let differ = if self.fields.len() + self.more == 1 { "differs" } else { "differ" };
        match &self.by {
            Some(by) => format!("{by} wrote {fields}{more} after the last sync"),
            None => format!("{fields}{more} {differ} from what was last applied"),
        }
    }
}

/// The state of an object that its delivery tool reports as not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ObjectSyncState {
    /// The object differs from its declaration, or does not exist.
    OutOfSync,
    /// The object is no longer declared, and waits to be pruned.
    RequiresPruning,
    /// The last sync operation could not write the object.
    SyncFailed,
    /// The object is a hook that failed.
    HookFailed,
}

impl ObjectSyncState {
    /// Returns the name used in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectSyncState::OutOfSync => "OutOfSync",
            ObjectSyncState::RequiresPruning => "RequiresPruning",
            ObjectSyncState::SyncFailed => "SyncFailed",
            ObjectSyncState::HookFailed => "HookFailed",
        }
    }

    /// Returns true if the last operation failed on the object.
    pub fn is_failed(self) -> bool {
        matches!(self, ObjectSyncState::SyncFailed | ObjectSyncState::HookFailed)
    }

    /// Returns the words that follow a status: `OutOfSync`, `sync failed`.
    pub fn words(self) -> &'static str {
        match self {
            ObjectSyncState::OutOfSync => "OutOfSync",
            ObjectSyncState::RequiresPruning => "requires pruning",
            ObjectSyncState::SyncFailed => "sync failed",
            ObjectSyncState::HookFailed => "hook failed",
        }
    }
}

/// The source of an app: the place from which its tool gets the desired state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The kind of source: `GitRepository`, `OCIRepository`, `HelmRepository`, `git`, …
    pub kind: String,
    /// Namespace of the object that describes the source; `None` without such an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object that describes the source; `None` without such an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The URL of the source, without credentials; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The part of the source that is delivered, a folder or a chart; `None` if the app names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The branch, tag, version or range that the app follows; `None` if it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// Removes the password and the query from a URL, and over HTTP the user name too: tokens occur in each of these
/// places.
pub(crate) fn without_password(url: &str) -> String {
    let mut url = without_user(url);
    let path = url.find("://").map_or(0, |end| end + 3);
    if let Some(query) = url[path..].find('?') {
        url.truncate(path + query);
    }
    url
}

fn without_user(url: &str) -> String {
    let (scheme, rest) = match url.find("://") {
        Some(end) => url.split_at(end + 3),
        None => ("", url),
    };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = match rest[..authority].rfind('@') {
        Some(at) => at,
        // A password may contain a slash, a port may not.
        None if is_port(&rest[..authority]) => return url.to_owned(),
        None => match rest.rfind('@') {
            Some(at) => at,
            None => return url.to_owned(),
        },
    };
    let (user, host) = (&rest[..at], &rest[at + 1..]);
    match user.split_once(':') {
        _ if scheme.to_ascii_lowercase().starts_with("http") => format!("{scheme}{host}"),
        Some((name, _)) => format!("{scheme}{name}@{host}"),
        None => url.to_owned(),
    }
}

/// Returns true if the part of `authority` after its last colon consists of digits, so that it is a port; also if there
/// is no colon, or for an IPv6 address in brackets.
fn is_port(authority: &str) -> bool {
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    authority.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit())
}

impl Source {
    /// Returns the source with a URL without password, which is safe to show.
    pub(crate) fn without_password(self) -> Source {
        Source { url: self.url.map(|url| without_password(&url)), ..self }
    }
}

/// Shortens each hash in a revision, which is 40 to 128 lower-case hexadecimal digits in a row, to its first 8 digits.
///
/// ```
/// use taffrail_apps::shorten;
///
/// assert_eq!(shorten("main@sha1:1e644628deb645c454f4db167e1041e95e2d0ba3"), "main@sha1:1e644628");
/// assert_eq!(shorten("1.2.0"), "1.2.0");
/// ```
pub fn shorten(revision: &str) -> Cow<'_, str> {
    const HASHES: std::ops::RangeInclusive<usize> = 40..=128;
    const SHORT: usize = 8;

    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let mut short = String::new();
    let mut copied = 0;
    let mut start = 0;
    while start < revision.len() {
        let hex = revision.bytes().skip(start).take_while(|&byte| is_hex(byte)).count();
        if HASHES.contains(&hex) {
            short.push_str(&revision[copied..start + SHORT]);
            copied = start + hex;
        }
        start += hex.max(1);
    }
    if copied == 0 {
        return Cow::Borrowed(revision);
    }
    short.push_str(&revision[copied..]);
    Cow::Owned(short)
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn passwords_are_cut_out_of_addresses() {
        for (url, shown) in [
            ("https://git.example/a/b@v1.git", "https://git.example/a/b@v1.git"),
            ("https://git.example:8443/a@b", "https://git.example:8443/a@b"),
            ("https://bot:s3cret@git.example/a.git", "https://git.example/a.git"),
            ("https://s3cret@git.example/a.git", "https://git.example/a.git"),
            ("HTTPS://bot:s3cr/et@git.example/a", "HTTPS://git.example/a"),
            ("https://bot:s3c@ret@git.example", "https://git.example"),
            ("ssh://git@git.example/a.git", "ssh://git@git.example/a.git"),
            ("ssh://git:s3cret@git.example:22/a.git", "ssh://git@git.example:22/a.git"),
            ("git@git.example:a/b.git", "git@git.example:a/b.git"),
            ("bot:s3cret@git.example/a.git", "bot@git.example/a.git"),
            ("oci://[::1]:5000/a@sha256:b", "oci://[::1]:5000/a@sha256:b"),
            ("https://git.example/a.git?private_token=s3cret", "https://git.example/a.git"),
            ("https://bot:s3cret@git.example/a.git?token=t", "https://git.example/a.git"),
            ("https://git.example?mail=a@b", "https://git.example"),
            ("oci://git.example/a?token=t#b", "oci://git.example/a"),
            ("", ""),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}

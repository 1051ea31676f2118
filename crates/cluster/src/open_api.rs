//! The schemas of a server's kinds: OpenAPI v3, read one group version at a time, when it is first needed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::aside::aside_if_large;
use crate::connect::Cluster;
use crate::error::{ReadError, Reason};
use crate::request::{Ask, JSON};

/// Maximum size of one document in bytes; a larger one is refused. The largest of Kubernetes' own has 3 MiB.
const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// Maximum size of the list of documents in bytes; a larger one is refused.
const MAX_INDEX_BYTES: usize = 8 << 20;

/// Maximum number of values of one document; one with more is refused, because each takes memory. All of Kubernetes' own
/// together have a tenth of that.
const MAX_VALUES: usize = 5_000_000;

/// The charge, in bytes, for each value of a document.
const BYTES_PER_VALUE: u64 = 64;

/// Maximum length of a group and version, and of a hash, in bytes.
const MAX_WORD: usize = 512;

/// The key with which a schema is described for people.
const DESCRIPTION: &str = "description";

/// The OpenAPI v3 documents that a server has, one for each group version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenApiIndex {
    /// The hashes by path, such as `apis/apps/v1`.
    hashes: BTreeMap<String, Option<String>>,
}

impl OpenApiIndex {
    /// Returns true if the server has a document for an `apiVersion`, such as `apps/v1`.
    pub fn has(&self, api_version: &str) -> bool {
        self.hashes.contains_key(&place(api_version))
    }

    /// Returns the hash of the document for an `apiVersion`: two documents with equal hashes are equal. `None` if the
    /// server has no document, or states no hash.
    pub fn hash(&self, api_version: &str) -> Option<&str> {
        self.hashes.get(&place(api_version))?.as_deref()
    }
}

/// The schemas of one group version.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenApiDocument {
    /// The hash by which the server names this state of the document; `None` if it states none.
    pub hash: Option<String>,
    /// The document without its paths, and its schemas without their descriptions.
    pub document: Value,
}

/// The reason why there is no OpenAPI document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiReadError {
    /// The server has none for the group version.
    #[error("the server has no OpenAPI document for {api_version}")]
    NoDocument {
        /// The group and version, such as `apps/v1`.
        api_version: String,
    },
    /// It cannot be read, is too large, or is not an OpenAPI document.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Documents that were read, by their paths and hashes; clusters of one version have equal ones. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct OpenApiCache(Arc<Mutex<VecDeque<Kept>>>);

#[derive(Debug)]
struct Kept {
    place: String,
    hash: String,
    values: usize,
    document: Arc<OpenApiDocument>,
}

impl OpenApiCache {
    /// Maximum number of values of all kept documents; beyond it the one that was used last is kept, and the others are
    /// dropped in the order of their last use.
    const MAX_VALUES: usize = 2_000_000;

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, place: &str, hash: &str) -> Option<Arc<OpenApiDocument>> {
        let mut kept = self.kept();
        let at = kept.iter().position(|it| it.place == place && it.hash == hash)?;
        let found = kept.remove(at)?;
        let document = found.document.clone();
        kept.push_back(found);
        Some(document)
    }

    fn put(&self, place: String, document: &Arc<OpenApiDocument>, values: usize) {
        let Some(hash) = document.hash.clone() else { return };
        let mut kept = self.kept();
        kept.retain(|it| it.place != place || it.hash != hash);
        kept.push_back(Kept { place, hash, values, document: document.clone() });
        while kept.len() > 1 && kept.iter().map(|it| it.values).sum::<usize>() > OpenApiCache::MAX_VALUES {
            kept.pop_front();
        }
    }
}

/// The server's list of documents.
#[derive(Deserialize)]
struct Paths {
    paths: BTreeMap<String, PathOfDocument>,
}

#[derive(Deserialize)]
struct PathOfDocument {
    #[serde(rename = "serverRelativeURL", default)]
    url: String,
}

/// The parts of a document that are read. Its paths are the most of it, and tell nothing of the kinds.
#[derive(Deserialize)]
struct Document {
    components: Components,
}

#[derive(Deserialize)]
struct Components {
    schemas: Map<String, Value>,
}

/// Returns the path of the document for an `apiVersion`, below `/openapi/v3`.
fn place(api_version: &str) -> String {
    if api_version.contains('/') { format!("apis/{api_version}") } else { format!("api/{api_version}") }
}

/// Returns true for a text that needs no escape in a path or a query.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    !text.is_empty() && text.len() <= MAX_WORD && text.bytes().all(is_plain) && !text.contains("..")
}

/// Returns the hash in the address of a document; `None` if it states none that can be sent again.
fn hash_in(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let hash = query.split('&').find_map(|part| part.strip_prefix("hash="))?;
    is_plain(hash).then(|| hash.to_owned())
}

/// Removes what only people read from the schemas; returns the number of values that are left.
fn cut(value: &mut Value) -> usize {
    match value {
        Value::Object(members) => {
            // A field may have this name, too, and its schema is no text.
            if members.get(DESCRIPTION).is_some_and(Value::is_string) {
                members.remove(DESCRIPTION);
            }
            1 + members.values_mut().map(cut).sum::<usize>()
        }
        Value::Array(items) => 1 + items.iter_mut().map(cut).sum::<usize>(),
        _ => 1,
    }
}

impl Cluster {
    /// Lists the OpenAPI v3 documents of the server, which serves them from Kubernetes 1.24 on.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read.
    pub async fn open_api_index(&self) -> Result<OpenApiIndex, ReadError> {
        let what = "list OpenAPI documents".to_owned();
        let ask = Ask { what, path: "/openapi/v3".to_owned(), accept: JSON };
        let answer = self.ask_up_to(&ask, MAX_INDEX_BYTES).await.map_err(|failure| failure.error)?;
        let paths = serde_json::from_slice::<Paths>(&answer.body);
        self.charge.give_back(answer.body.len() as u64);
        let paths = paths.map_err(|problem| answer.unreadable(&ask.what, problem))?.paths;
        let hashes = paths.into_iter().filter(|(place, _)| is_plain(place));
        Ok(OpenApiIndex { hashes: hashes.map(|(place, it)| (place, hash_in(&it.url))).collect() })
    }

    /// Reads the document for an `apiVersion`, such as `apps/v1`, unless `cache` has it in the state that `index` tells,
    /// and keeps it there. If it has changed since the index was read, the present one is read.
    ///
    /// # Errors
    /// Returns an error if there is no document, or if it cannot be read.
    pub async fn open_api(
        &self,
        index: &OpenApiIndex,
        api_version: &str,
        cache: &OpenApiCache,
    ) -> Result<Arc<OpenApiDocument>, OpenApiReadError> {
        let place = place(api_version);
        let no_document = || OpenApiReadError::NoDocument { api_version: api_version.to_owned() };
        let hash = index.hashes.get(&place).ok_or_else(no_document)?;
        if let Some(kept) = hash.as_deref().and_then(|hash| cache.get(&place, hash)) {
            return Ok(kept);
        }
        let query = hash.as_ref().map_or(String::new(), |hash| format!("?hash={hash}"));
        let what = format!("read the OpenAPI document for {api_version}");
        let mut ask = Ask { what, path: format!("/openapi/v3/{place}{query}"), accept: JSON };
        let mut answer = self.ask_up_to(&ask, MAX_DOCUMENT_BYTES).await;
        // The server leads to the present document if the hash is an old one.
        if answer.as_ref().is_err_and(|failure| failure.is_redirect) && hash.is_some() {
            ask.path = format!("/openapi/v3/{place}");
            answer = self.ask_up_to(&ask, MAX_DOCUMENT_BYTES).await;
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) if failure.error.reason() == Reason::NotFound => {
                return Err(no_document());
            }
            Err(failure) => return Err(failure.error.into()),
        };
        let tag = answer.headers.get(http::header::ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
        // Without a tag the document is the one that was asked for.
        let hash = match tag {
            Some(tag) => Some(tag).filter(|tag| is_plain(tag)),
            None => hash.clone().filter(|_| ask.path.contains('?')),
        };
        let parsed = self.parse_document(&ask, &answer.body);
        self.charge.give_back(answer.body.len() as u64);
        let (schemas, values) = parsed?.map_err(|problem| answer.unreadable(&ask.what, problem))?;
        self.deadline.check(&ask.what)?;
        let document = serde_json::json!({ "components": { "schemas": schemas } });
        let document = Arc::new(OpenApiDocument { hash, document });
        cache.put(place, &document, values);
        Ok(document)
    }

    /// Parses the schemas of a document and counts their values. Charges the cluster for them while they are parsed; those
    /// that are kept are bounded by the cache.
    fn parse_document(
        &self,
        ask: &Ask,
        body: &[u8],
    ) -> Result<Result<(Value, usize), serde_json::Error>, ReadError> {
        // Each value but the first of its list or object has a comma before it.
        let values = memchr::memchr3_iter(b',', b'[', b'{', body).count();
        if values > MAX_VALUES {
            let limit = format!("the document has more than {MAX_VALUES} values");
            return Err(ReadError::OverLimit { what: ask.what.clone(), limit });
        }
        let charge = values as u64 * BYTES_PER_VALUE;
        self.charge.take(&ask.what, charge)?;
        let parsed = aside_if_large(body.len(), || {
            let document = serde_json::from_slice::<Document>(body)?;
            let mut schemas = Value::Object(document.components.schemas);
            let values = cut(&mut schemas);
            Ok((schemas, values))
        });
        self.charge.give_back(charge);
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn descriptions_are_cut_and_fields_of_that_name_stay() {
        let mut schemas = json!({"A": {"description": "text", "properties": {
            "description": {"type": "string", "description": "more"}, "list": {"items": [{"description": ""}]},
        }}});
        cut(&mut schemas);
        let left = json!({"A": {"properties": {"description": {"type": "string"}, "list": {"items": [{}]}}}});
        assert_eq!(schemas, left);
    }

    #[test]
    fn hashes_that_need_escapes_are_left_out() {
        assert_eq!(hash_in("/openapi/v3/api/v1?hash=0AF9"), Some("0AF9".to_owned()));
        assert_eq!(hash_in("/openapi/v3/api/v1?a=b&hash=1-2"), Some("1-2".to_owned()));
        for url in ["/openapi/v3/api/v1", "/x?hash=", "/x?hash=a%20b", "/x?hash=a b", ""] {
            assert_eq!(hash_in(url), None, "{url}");
        }
    }

    #[test]
    fn cache_drops_what_was_used_longest_ago() {
        let cache = OpenApiCache::default();
        let document =
            |hash: &str| Arc::new(OpenApiDocument { hash: Some(hash.to_owned()), document: json!({}) });
        let third = OpenApiCache::MAX_VALUES / 3;
        for hash in ["1", "2", "3"] {
            cache.put("api/v1".to_owned(), &document(hash), third);
        }
        assert!(cache.get("api/v1", "1").is_some());
        cache.put("api/v1".to_owned(), &document("4"), third);
        assert!(cache.get("api/v1", "2").is_none());
        assert!(["1", "3", "4"].iter().all(|hash| cache.get("api/v1", hash).is_some()));
        assert!(cache.get("apis/apps/v1", "1").is_none(), "another place");
        cache.put("api/v2".to_owned(), &document("5"), 10 * third);
        assert!(cache.get("api/v2", "5").is_some() && cache.get("api/v1", "4").is_none());
    }
}

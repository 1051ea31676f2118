//! List requests, in pages and at given versions.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Asked;
use super::answer::Answer;
use super::negotiate::{Form, form};
use super::path::Query;
use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError, Cause};
use crate::selector::Selector;
use crate::state::Inner;
use crate::store::{Object, Store};
use crate::table;
use crate::target::Target;

/// Returns the prefix of the store's keys for objects in a namespace: `shop/`; empty for all namespaces.
pub(crate) fn key_prefix(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!("{namespace}/") }
}

/// A continue token of a list, with the contents that kube-apiserver gives it.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

/// The state of the store that a list shows: the newest or that of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Newest,
    Exactly(u64),
}

fn parse_version(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        )
    })
}

/// Fails with 422 if the query parameters of a list (or with `watch` of a watch) contradict each other or have an
/// unsupported value.
pub(super) fn check_options(query: &Query, watch: bool, inner: &Inner) -> Answered<()> {
    let (version, matching) = (query.get("resourceVersion"), query.get("resourceVersionMatch"));
    let mut causes = Vec::new();
    let mut forbid = |field: &str, what: &str| causes.push(Cause::forbidden(field, what));
    if query.has("sendInitialEvents") && !watch {
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    } else if query.has("sendInitialEvents") && matching != "NotOlderThan" {
        forbid(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
    } else if !matching.is_empty() {
        let initial = query.has("sendInitialEvents");
        if watch && !initial {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        } else if !query.get("continue").is_empty() {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
        } else if version.is_empty() && !initial {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        } else if !matches!(matching, "Exact" | "NotOlderThan") {
            let supported = ["Exact", "NotOlderThan", ""];
            causes.push(Cause::unsupported("resourceVersionMatch", &json!(matching), &supported));
        } else if matching == "Exact" && version == "0" {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            );
        }
    }
    if causes.is_empty() || !inner.does.on(Behaviour::ListOptionsChecked) {
        return Ok(());
    }
    Err(ApiError::invalid_options("ListOptions", causes))
}

/// A page of a list, as the server sends it.
struct Page {
    version: u64,
    objects: Vec<Arc<Object>>,
    next: Option<String>,
    remaining: Option<usize>,
}

pub(super) fn answer(inner: &Arc<Inner>, asked: &Asked, target: &Target) -> Answered<Answer> {
    let form = form(asked.header(header::ACCEPT), &inner.does)?;
    let query = &asked.query;
    check_options(query, false, inner)?;
    let selector = Selector::parse(
        query.get("labelSelector"),
        query.get("fieldSelector"),
        &target.resource,
        &target.version,
        &inner.does,
    )?;
    let page = page(inner, query, target, &selector)?;
    Ok(Answer::bytes(200, write(&page, form, target, asked, inner)))
}

fn page(inner: &Inner, query: &Query, target: &Target, selector: &Selector) -> Answered<Page> {
    let does = &inner.does;
    let store = inner.store();
    let limit = match query.get("limit").parse::<i64>() {
        Ok(limit) if limit > 0 && does.on(Behaviour::Limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let prefix =
        if does.on(Behaviour::NamespacedLists) { key_prefix(&target.namespace) } else { String::new() };
    let (state, start) = match query.get("continue") {
        "" => (wanted_state(inner, &store, query)?, None),
        token => {
            let token = read_token(inner, query, token)?;
            let state = match u64::try_from(token.rv) {
                Ok(version) if does.on(Behaviour::ConsistentPages) => State::Exactly(version),
                _ => State::Newest,
            };
            (state, does.on(Behaviour::Continue).then_some(token.start))
        }
    };
    let after = start.as_deref().map(|start| format!("{prefix}{}", start.trim_end_matches('\0')));
    let version = match state {
        State::Newest => store.version(),
        State::Exactly(version) => version,
    };
    let objects = match state {
        State::Exactly(version) if version != store.version() => {
            older(&store, target, &prefix, after.as_deref(), version)
                .map_err(|oldest| gone(query, &start, oldest))?
        }
        _ => store
            .range(target.shelf, &prefix, after.as_deref())
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect(),
    };
    drop(store);
    // If only one name can match, it is looked up directly.
    let alone =
        (!target.resource.namespaced || !target.namespace.is_empty()).then(|| selector.name()).flatten();
    let alone = alone.map(|name| crate::target::key(&target.namespace, name));
    let objects: Kept = match alone {
        Some(alone) => objects.into_iter().filter(|(key, _)| **key == *alone).collect(),
        None => objects,
    };
    let total = objects.len();
    let mut seen = 0;
    let mut chosen = Vec::new();
    let mut last = None;
    let mut more = false;
    for (key, object) in objects {
        // The rest has not been searched for further matches.
        if chosen.len() == limit {
            more = true;
            break;
        }
        if selector.matches(&object) {
            last = Some(key);
            chosen.push(object);
        }
        seen += 1;
    }
    let next = last.filter(|_| more).map(|last| {
        let start = format!("{}\0", last.strip_prefix(&prefix).unwrap_or(&last));
        write_token(i64::try_from(version).unwrap_or(i64::MAX), &start)
    });
    let counted = next.is_some() && selector.is_empty() && does.on(Behaviour::RemainingItems);
    Ok(Page { version, objects: chosen, next, remaining: counted.then_some(total - seen) })
}

/// Returns the state that a list request without a continue token asks for: that of exactly its resourceVersion if it
/// says so, or limits its pages and has another version than 0; else the newest. Fails if the version is invalid or was
/// not reached yet.
fn wanted_state(inner: &Inner, store: &Store, query: &Query) -> Answered<State> {
    let does = &inner.does;
    let text = query.get("resourceVersion");
    if text.is_empty() {
        return Ok(State::Newest);
    }
    let version = match parse_version(text) {
        Ok(version) => version,
        Err(why) if does.on(Behaviour::VersionChecked) => {
            return Err(ApiError::bad_request(format!("invalid resource version: {why}")));
        }
        Err(_) => 0,
    };
    if version > store.version() && does.on(Behaviour::TooLargeVersion) {
        return Err(ApiError::too_large_version(version, store.version()));
    }
    // A limit without resourceVersionMatch always means exactly this version.
    let limited = query.get("limit").parse::<i64>().is_ok_and(|limit| limit > 0);
    let exact = match query.get("resourceVersionMatch") {
        "Exact" => true,
        "" => limited && version != 0,
        _ => false,
    };
    if exact && does.on(Behaviour::ExactVersion) { Ok(State::Exactly(version)) } else { Ok(State::Newest) }
}

type Kept = Vec<(Arc<str>, Arc<Object>)>;

/// Returns the objects of a resource with keys that begin with `prefix` and follow `after`, as they were at the
/// resourceVersion `version`.
///
/// # Errors
/// The oldest version that the history reaches, if `version` is older.
fn older(
    store: &Store,
    target: &Target,
    prefix: &str,
    after: Option<&str>,
    version: u64,
) -> Result<Kept, u64> {
    let mut differences = store.differences(target.shelf, version).map_err(|forgotten| forgotten.oldest)?;
    let mut objects: Kept = Vec::new();
    for (key, object) in store.range(target.shelf, prefix, after) {
        match differences.remove(key) {
            None => objects.push((key.clone(), object.clone())),
            Some(Some(before)) => objects.push((key.clone(), before)),
            Some(None) => {}
        }
    }
    // Objects that were deleted since.
    let inside = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
    let lost = differences
        .into_iter()
        .filter(|(key, _)| inside(key))
        .filter_map(|(key, object)| Some((key, object?)));
    objects.extend(lost);
    objects.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(objects)
}

fn gone(query: &Query, start: &Option<String>, _oldest: u64) -> ApiError {
    if query.get("continue").is_empty() {
        return ApiError::expired("The resourceVersion for the provided list is too old.");
    }
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without \
         the continue parameter, or use the continue token in this response to retrieve the remainder of the results. \
         Continuing with the provided token results in an inconsistent list - objects that were created, modified, or \
         deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.r#continue = start.as_deref().map(|start| write_token(-1, start));
    error
}

fn write_token(version: i64, start: &str) -> String {
    let token = Token { v: "meta.k8s.io/v1".to_owned(), rv: version, start: start.to_owned() };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

fn read_token(inner: &Inner, query: &Query, text: &str) -> Answered<Token> {
    if !matches!(query.get("resourceVersion"), "" | "0") && inner.does.on(Behaviour::ContinueAlone) {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
    let token = bytes.and_then(|bytes| serde_json::from_slice::<Token>(&bytes).ok());
    match token.filter(|token| token.v == "meta.k8s.io/v1") {
        Some(token) => Ok(token),
        None if inner.does.on(Behaviour::ContinueChecked) => Err(ApiError::bad_request(
            "invalid continue token: continue key is not valid: invalid character looking for beginning of value",
        )),
        None => Ok(Token { v: String::new(), rv: -1, start: String::new() }),
    }
}

fn write(page: &Page, form: Form, target: &Target, asked: &Asked, inner: &Inner) -> Vec<u8> {
    let resource = &target.resource;
    let does = &inner.does;
    let api_version = target.api_version();
    let (kind, list_version) = match form {
        Form::Whole => (&*resource.list_kind, api_version.as_str()),
        Form::Partial => ("PartialObjectMetadataList", "meta.k8s.io/v1"),
        Form::Table => ("Table", "meta.k8s.io/v1"),
    };
    let mut metadata = json!({});
    if does.on(Behaviour::ListVersion) {
        metadata["resourceVersion"] = json!(page.version.to_string());
    }
    if let Some(next) = &page.next {
        metadata["continue"] = json!(next);
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    let kind = if does.on(Behaviour::ListKind) { kind } else { "List" };
    let size: usize = page.objects.iter().map(|object| object.head().len() + object.tail().len() + 160).sum();
    let mut out = Vec::with_capacity(size + 256);
    out.extend_from_slice(
        format!("{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},", json!(kind), json!(list_version))
            .as_bytes(),
    );
    let mut objects: Vec<&Arc<Object>> = page.objects.iter().collect();
    if !does.on(Behaviour::ListOrder) {
        objects.reverse();
    }
    if form == Form::Table {
        table::write_body(
            &mut out,
            inner,
            target,
            objects.into_iter().map(|object| &**object),
            asked.query.get("includeObject"),
            true,
        );
        return out;
    }
    let start = if resource.custom || !does.on(Behaviour::ItemsWithoutKind) {
        target.item_start()
    } else {
        "{".to_owned()
    };
    out.extend_from_slice(b"\"items\":[");
    for (index, object) in objects.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match form {
            Form::Partial => object.write_partial(&mut out),
            _ => object.write(&start, &mut out),
        }
    }
    out.extend_from_slice(b"]}\n");
    out
}

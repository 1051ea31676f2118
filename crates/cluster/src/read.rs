//! Reads objects with single requests: lists, pages of lists, and one object by name.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use taffrail_object::json::{DocumentBuilder, Kind, OwnedDocument, Parser, Part, Value, write_string};
use taffrail_object::{ApiResource, LAST_APPLIED, Projection};

use crate::aside::aside_if_large;
use crate::connect::Cluster;
use crate::error::{Phase, ReadError, Reason, TimeLimit, one_line};
use crate::memory::Charge;
use crate::request::{Answer, Ask, JSON, ReadFailure, too_large};

/// The media type that asks for lists of metadata only. It names no alternative: a server that cannot omit bodies must
/// refuse the request instead of sending them.
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The media type that asks for the metadata only of a single object, or of the objects of a watch. It names no
/// alternative, either.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The media type that asks for the objects of a watch as Protobuf, or as JSON from servers without it.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

/// The media type that asks for the metadata only of the objects of a watch, as Protobuf, or as JSON from servers
/// without it.
pub(crate) const METADATA_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
     application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The charge, in bytes, for each value in the index of a text.
const BYTES_PER_VALUE: u64 = 16;

/// Maximum size of a response that is one object, in bytes; a larger one is refused with an error.
pub(crate) const MAX_OBJECT_BYTES: usize = 8 << 20;

/// Number of list items that are parsed between two checks of the time limit.
const ITEMS_AT_ONCE: usize = 4096;

/// Characters that must be escaped in a part of a path or a query.
pub(crate) const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The parameters of a list request.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'a> {
    /// The resource of the objects.
    pub resource: &'a ApiResource,
    /// The namespace of the objects; `None` for all namespaces, or for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The part of each object that is read. Secrets are always listed as [`Projection::Metadata`], because their
    /// values are only read one at a time and by name; the copy that `kubectl apply` leaves in an annotation is
    /// removed.
    pub projection: Projection,
    /// A label selector in the API's syntax; `None` selects all objects.
    pub label_selector: Option<&'a str>,
    /// A field selector in the API's syntax; `None` selects all objects.
    pub field_selector: Option<&'a str>,
    /// Maximum number of objects per page; 0 asks for all in one response.
    pub page: u32,
}

impl<'a> ListRequest<'a> {
    /// The default number of objects per page.
    pub const PAGE: u32 = 500;

    /// Maximum number of pages of one list; a list with more fails. An honest server fills each page with the
    /// requested number of objects.
    pub const PAGES: usize = 10_000;

    /// Maximum number of items of one list that are not valid objects; a list with more is refused.
    pub const MALFORMED: usize = 1000;

    /// Creates a request for the whole objects of `resource` in all namespaces.
    pub fn all(resource: &'a ApiResource) -> ListRequest<'a> {
        ListRequest {
            resource,
            namespace: None,
            projection: Projection::Full,
            label_selector: None,
            field_selector: None,
            page: ListRequest::PAGE,
        }
    }

    /// Returns the operation for error messages, such as `list pods in namespace a`.
    fn what(&self) -> String {
        let mut what = format!("list {}", self.resource.full_name());
        if let Some(namespace) = self.namespace.filter(|_| self.resource.namespaced) {
            // Writing to a string cannot fail.
            let _ = write!(what, " in namespace {namespace}");
        }
        what
    }

    /// Returns the error for a list with more than [`ListRequest::PAGES`] pages.
    pub fn too_many_pages(&self) -> ReadError {
        let limit = format!("the list has more than {} pages", ListRequest::PAGES);
        ReadError::OverLimit { what: self.what(), limit }
    }

    /// Returns the error for a list whose pages together took too long; `after` is the time since it began.
    pub fn too_slow(&self, after: Duration) -> ReadError {
        ReadError::Timeout { what: self.what(), phase: Phase::Reading, after: TimeLimit::All(after) }
    }

    fn projection(&self) -> Projection {
        if is_secret(self.resource) { Projection::Metadata } else { self.projection }
    }

    fn path(&self, continued: Option<&str>) -> String {
        let mut path = path_of(self.resource, self.namespace);
        let mut separator = '?';
        let mut add = |key: &str, value: &str| {
            let _ = write!(path, "{separator}{key}={}", utf8_percent_encode(value, ESCAPED));
            separator = '&';
        };
        if self.page > 0 {
            add("limit", &self.page.to_string());
        }
        if let Some(selector) = self.label_selector {
            add("labelSelector", selector);
        }
        if let Some(selector) = self.field_selector {
            add("fieldSelector", selector);
        }
        if let Some(token) = continued {
            add("continue", token);
        }
        path
    }
}

/// The objects of all pages of a list.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The objects with their `apiVersion` and `kind`, in the server's order.
    pub objects: Vec<OwnedDocument>,
    /// Items that are not Kubernetes objects; the others are unaffected.
    pub malformed: Vec<MalformedItem>,
    /// The resource version of the last page, from which changes can be watched; `None` if the page does not state one.
    pub resource_version: Option<String>,
    /// True if the list had to be restarted because its pages expired.
    pub restarted: bool,
}

/// One page of a list.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The objects with their `apiVersion` and `kind`, in the server's order.
    pub objects: Vec<OwnedDocument>,
    /// Items that are not Kubernetes objects; their indexes count from the start of the page.
    pub malformed: Vec<MalformedItem>,
    /// The token that leads to the next page; `None` on the last one.
    pub next: Option<String>,
    /// The charge for the objects, which lasts at least as long as the page.
    _charge: Option<Arc<Charge>>,
}

/// An item of a list that is not a valid object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedItem {
    /// The item's index in the list, from 0.
    pub index: usize,
    /// The item's namespace and name, if readable.
    pub name: Option<String>,
    /// The defect.
    pub reason: String,
}

pub(crate) fn is_secret(resource: &ApiResource) -> bool {
    resource.group.is_empty() && resource.plural == "secrets"
}

pub(crate) fn path_of(resource: &ApiResource, namespace: Option<&str>) -> String {
    let mut path =
        if resource.group.is_empty() { "/api/".to_owned() } else { format!("/apis/{}/", resource.group) };
    path.push_str(&resource.version);
    if let Some(namespace) = namespace.filter(|_| resource.namespaced) {
        let _ = write!(path, "/namespaces/{}", utf8_percent_encode(namespace, ESCAPED));
    }
    path.push('/');
    path.push_str(&resource.plural);
    path
}

impl Cluster {
    /// Lists objects, page after page.
    ///
    /// # Errors
    /// Returns an error if a page cannot be read. If the server no longer keeps the state that the pages are of, the
    /// list is restarted once.
    pub async fn list(&self, request: &ListRequest<'_>) -> Result<Listing, ReadError> {
        let what = request.what();
        let projection = request.projection();
        let accept = if projection == Projection::Metadata { METADATA_LIST } else { JSON };
        let mut listing = Listing::default();
        let mut continued: Option<String> = None;
        let mut pages = 0;
        loop {
            pages += 1;
            if pages > ListRequest::PAGES {
                return Err(request.too_many_pages());
            }
            let ask = Ask { what: what.clone(), path: request.path(continued.as_deref()), accept };
            let answer = match self.ask(&ask).await {
                Ok(answer) => answer,
                Err(failure)
                    if failure.error.reason() == Reason::Gone
                        && continued.is_some()
                        && !listing.restarted =>
                {
                    listing = Listing { restarted: true, ..Listing::default() };
                    continued = None;
                    continue;
                }
                Err(failure) => return Err(failure.error),
            };
            // What was sent in time is read in time as well.
            self.deadline.check(&what)?;
            let before = listing.objects.len();
            let in_time = || self.deadline.check(&what).is_ok();
            // A parser keeps the memory of the largest index, so each page has its own.
            let next = self.charged_for_indexes(&what, &answer.body, || {
                let parser = &mut Parser::new();
                listing.take_aside(parser, &answer.body, request.resource, projection, false, &in_time)
            })?;
            self.deadline.check(&what)?;
            let next = next.map_err(|problem| answer.unreadable(&what, problem))?;
            // Each object has its part of that index when it is read.
            let objects = listing.objects.len().saturating_sub(before) as u64;
            self.charge.take_objects(&what, objects)?;
            match next {
                // The same page again would be the same page for ever.
                Some(token) if continued.as_ref() == Some(&token) => {
                    return Err(answer.unreadable(&what, "the server repeats a page"));
                }
                Some(token) => continued = Some(token),
                None => return Ok(listing),
            }
        }
    }

    /// Reads one page of a list: the first, or the one that `continued`, the token of the previous page, leads to. A
    /// caller that writes objects as they come need not hold the whole list. Items that state another kind are
    /// malformed, unless only metadata is read.
    ///
    /// # Errors
    /// Returns an error if the page cannot be read: [`Reason::Gone`] if the server no longer keeps the state of the
    /// list.
    pub async fn list_page(
        &self,
        request: &ListRequest<'_>,
        continued: Option<&str>,
    ) -> Result<ListPage, ReadError> {
        let what = request.what();
        let projection = request.projection();
        let accept = if projection == Projection::Metadata { METADATA_LIST } else { JSON };
        let ask = Ask { what: what.clone(), path: request.path(continued), accept };
        let answer = self.ask(&ask).await.map_err(|failure| failure.error)?;
        let mut listing = Listing::default();
        let in_time = || self.deadline.check(&what).is_ok();
        let next = self.charged_for_indexes(&what, &answer.body, || {
            let parser = &mut Parser::new();
            listing.take_aside(parser, &answer.body, request.resource, projection, true, &in_time)
        })?;
        self.deadline.check(&what)?;
        let next = next.map_err(|problem| answer.unreadable(&what, problem))?;
        if next.is_some() && (next.as_deref() == continued || listing.objects.is_empty()) {
            return Err(answer.unreadable(&what, "the server repeats a page, or sends an empty one"));
        }
        self.charge.take_objects(&what, listing.objects.len() as u64)?;
        let _charge = Some(self.charge.clone());
        Ok(ListPage { objects: listing.objects, malformed: listing.malformed, next, _charge })
    }

    /// Returns the resource version of the server, from the first page of a list, `None` if the page does not state
    /// one; sends one request without retries.
    ///
    /// # Errors
    /// Returns an error if the page cannot be read.
    pub async fn first_page(&self, request: &ListRequest<'_>) -> Result<Option<String>, ReadError> {
        let ask = Cluster::first_ask(request);
        let answer = self.ask_once(&ask).await?;
        self.version_of(request, &ask, answer)
    }

    /// Proves by the first page of a list that the API server itself answers, and returns its resource version; `None`
    /// if it refused to list (403, 404 or 429), which proves the same. Sends one request without retries.
    ///
    /// # Errors
    /// Returns an error if the page cannot be read, states no resource version, or if something else than an API server
    /// may have refused it.
    pub(crate) async fn prove(&self, request: &ListRequest<'_>) -> Result<Option<String>, ReadError> {
        let ask = Cluster::first_ask(request);
        let answer = self.ask_once(&ask).await?;
        let is_refused = matches!(answer.status.as_u16(), 403 | 404 | 429);
        if is_refused && answer.is_of_api_server() {
            self.charge.give_back(answer.body.len() as u64);
            return Ok(None);
        }
        let no_version = || {
            let problem = "the list states no resource version".to_owned();
            ReadError::Unexpected { what: ask.what.clone(), problem }
        };
        self.version_of(request, &ask, answer)?.map(Some).ok_or_else(no_version)
    }

    fn first_ask(request: &ListRequest<'_>) -> Ask {
        let accept = if request.projection() == Projection::Metadata { METADATA_LIST } else { JSON };
        Ask { what: request.what(), path: request.path(None), accept }
    }

    /// Returns the resource version in the page `answer`; `None` if it states none.
    fn version_of(
        &self,
        request: &ListRequest<'_>,
        ask: &Ask,
        answer: Answer,
    ) -> Result<Option<String>, ReadError> {
        let what = &ask.what;
        self.refuse_larger(what, &answer.body, MAX_OBJECT_BYTES)?;
        let mut listing = Listing::default();
        let answer = answer.successful(ask)?;
        let in_time = || self.deadline.check(what).is_ok();
        let projection = request.projection();
        let taken = self.charged_for_indexes(what, &answer.body, || {
            let parser = &mut Parser::new();
            listing.take_aside(parser, &answer.body, request.resource, projection, false, &in_time)
        })?;
        // Nothing of the page is kept.
        self.charge.give_back(index_cost(&answer.body));
        taken.map_err(|problem| answer.unreadable(what, problem))?;
        Ok(listing.resource_version)
    }

    /// Sends a read like [`Cluster::ask`]; refuses a response of more than `most` bytes.
    pub(crate) async fn ask_up_to(&self, ask: &Ask, most: usize) -> Result<Answer, ReadFailure> {
        let answer = self.ask(ask).await?;
        self.refuse_larger(&ask.what, &answer.body, most)?;
        Ok(answer)
    }

    /// Returns an error for a response to the operation `what` of more than `most` bytes, and gives its charge back.
    fn refuse_larger(&self, what: &str, body: &[u8], most: usize) -> Result<(), ReadError> {
        if body.len() <= most {
            return Ok(());
        }
        self.charge.give_back(body.len() as u64);
        Err(too_large(what, most))
    }

    /// Parses a response with `parse`, and charges the cluster for its index and for the indexes of the objects in it,
    /// which are both held until `parse` returns; after that the latter's charge remains. The response itself is
    /// charged already.
    fn charged_for_indexes<T>(
        &self,
        what: &str,
        text: &[u8],
        parse: impl FnOnce() -> T,
    ) -> Result<T, ReadError> {
        let held = cost_while_parsed(text);
        self.charge.take(what, held)?;
        let parsed = parse();
        self.charge.give_back(held - index_cost(text));
        Ok(parsed)
    }

    /// Reads one object; returns `None` if no object of that name exists. `namespace` is `None` for cluster-scoped
    /// objects.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read, or if the server does not serve the resource.
    pub async fn get(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
        projection: Projection,
    ) -> Result<Option<OwnedDocument>, ReadError> {
        let mut what = format!("get {}/{name}", resource.full_name());
        if let Some(namespace) = namespace.filter(|_| resource.namespaced) {
            let _ = write!(what, " in namespace {namespace}");
        }
        self.get_for(&what, resource, namespace, name, projection).await
    }

    /// Reads one object like [`Cluster::get`]; `what` names the operation in errors.
    pub(crate) async fn get_for(
        &self,
        what: &str,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
        projection: Projection,
    ) -> Result<Option<OwnedDocument>, ReadError> {
        let path = format!("{}/{}", path_of(resource, namespace), utf8_percent_encode(name, ESCAPED));
        let accept = if projection == Projection::Metadata { METADATA } else { JSON };
        let ask = Ask { what: what.to_owned(), path, accept };
        let answer = match self.ask(&ask).await {
            Ok(answer) => answer,
            Err(failure) if failure.no_such_object => return Ok(None),
            Err(failure) => return Err(failure.error),
        };
        // What was sent in time is read in time as well.
        self.deadline.check(what)?;
        let object = self.read_object(what, &answer.body, |root| {
            if projection == Projection::Metadata
                && !root.get("kind").is_some_and(|kind| kind.is_str("PartialObjectMetadata"))
            {
                return Err(WHOLE.to_owned());
            }
            let api_version = resource.api_version();
            let secret = is_secret(resource);
            let owner = Owner { api_version: &api_version, kind: &resource.kind, secret };
            owner.object(root, projection)
        })?;
        self.deadline.check(what)?;
        object.map(Some).map_err(|problem| answer.unreadable(what, problem))
    }

    /// Reads a response that is one object with `read`, and charges the cluster for the indexes of the response and of
    /// the object; the latter's charge remains. The inner error is the problem of a malformed response.
    ///
    /// # Errors
    /// Returns an error if the response is larger than one object, or exceeds the cluster's memory.
    pub(crate) fn read_object(
        &self,
        what: &str,
        body: &[u8],
        read: impl FnOnce(Value<'_>) -> Result<OwnedDocument, String>,
    ) -> Result<Result<OwnedDocument, String>, ReadError> {
        self.refuse_larger(what, body, MAX_OBJECT_BYTES)?;
        self.charged_for_indexes(what, body, || {
            aside_if_large(body.len(), || {
                let mut parser = Parser::new();
                let document =
                    parser.parse(body).map_err(|error| format!("the answer is malformed: {error}"))?;
                read(document.root())
            })
        })
    }
}

/// The error for a response with whole objects although only metadata was requested.
pub(crate) const WHOLE: &str = "the server sent whole objects although only their metadata was requested";

impl Listing {
    /// Parses a page and adds its items as [`Listing::take`] does; a large page as blocking work, while other tasks go
    /// on.
    fn take_aside(
        &mut self,
        parser: &mut Parser,
        body: &[u8],
        resource: &ApiResource,
        projection: Projection,
        only_asked: bool,
        in_time: &dyn Fn() -> bool,
    ) -> Result<Option<String>, String> {
        aside_if_large(body.len(), || self.take(parser, body, resource, projection, only_asked, in_time))
    }

    /// Adds the items of a page; returns the token of the next page, `None` on the last one. Stops with an error when
    /// `in_time` returns false. Whole objects without a kind get that which the list states, or with `only_asked` that
    /// of `resource`; then those that state another kind are malformed.
    fn take(
        &mut self,
        parser: &mut Parser,
        body: &[u8],
        resource: &ApiResource,
        projection: Projection,
        only_asked: bool,
        in_time: &dyn Fn() -> bool,
    ) -> Result<Option<String>, String> {
        let before = (self.objects.len(), self.malformed.len());
        let own = ListKind::default();
        let page = self.take_items(parser, body, resource, projection, only_asked, in_time, own)?;
        if !page.is_late {
            return Ok(page.next);
        }
        // Servers name the kind of a list first; any other list is read twice.
        self.objects.truncate(before.0);
        self.malformed.truncate(before.1);
        let page = self.take_items(parser, body, resource, projection, only_asked, in_time, page.kind)?;
        Ok(page.next)
    }

    /// Adds the items of a page, which are of `kind` unless the page states another kind before them; returns the
    /// page's other fields.
    #[expect(clippy::too_many_arguments, reason = "two passes over one page")]
    fn take_items(
        &mut self,
        parser: &mut Parser,
        body: &[u8],
        resource: &ApiResource,
        projection: Projection,
        only_asked: bool,
        in_time: &dyn Fn() -> bool,
        kind: ListKind,
    ) -> Result<Page, String> {
        let own_version = resource.api_version();
        let secret = is_secret(resource);
        // The list knows better than we what its items are.
        let is_told = projection == Projection::Full && !only_asked;
        let before = (self.objects.len(), self.malformed.len());
        let mut page = Page { kind, ..Page::default() };
        let mut is_read = false;
        let mut problem = None;
        let text = |value: Value<'_>| value.as_str().unwrap_or(Cow::Borrowed("")).into_owned();
        let take = |listing: &mut Listing, kind: &ListKind, item: Value<'_>| {
            let index = listing.objects.len() + listing.malformed.len();
            if index.is_multiple_of(ITEMS_AT_ONCE) && !in_time() {
                return Err("the time limit ended before all of the answer was read".to_owned());
            }
            let of_items = kind.of_items().filter(|kind| is_told && !kind.is_empty());
            let owner = Owner {
                api_version: Some(&*kind.version)
                    .filter(|it| is_told && !it.is_empty())
                    .unwrap_or(&own_version),
                kind: of_items.unwrap_or(&resource.kind),
                secret,
            };
            let is_other = only_asked && projection == Projection::Full && !is_of(item, resource);
            let object = match is_other {
                true => Err(OTHER_KIND.to_owned()),
                false => owner.object(item, projection),
            };
            match object {
                Ok(object) => listing.objects.push(object),
                Err(_) if listing.malformed.len() >= ListRequest::MALFORMED => return Err(too_malformed()),
                Err(reason) => listing.malformed.push(MalformedItem { index, name: name_of(item), reason }),
            }
            Ok(())
        };
        let read = parser.envelope(body, |part| match part {
            Part::Object(document) if problem.is_none() => {
                problem = take(self, &page.kind, document.root()).err();
            }
            Part::Other(item) if problem.is_none() => problem = take(self, &page.kind, item).err(),
            Part::Object(_) | Part::Other(_) => {}
            Part::Items => {
                // Of equal keys the last one counts.
                self.objects.truncate(before.0);
                self.malformed.truncate(before.1);
                (page.has_items, is_read) = (true, true);
            }
            // Go writes an empty list as null.
            Part::Member(b"items", value) => {
                page.has_items = true;
                if !value.is_null() {
                    problem = Some("the items of the answer are not a list".to_owned());
                }
            }
            Part::Member(b"metadata", metadata) => {
                let part = |key: &str| metadata.get(key).map(text).filter(|value| !value.is_empty());
                (page.next, self.resource_version) = (part("continue"), part("resourceVersion"));
            }
            Part::Member(b"kind", value) => {
                let said = text(value);
                page.is_late |= is_told && is_read && said != page.kind.kind;
                page.kind.kind = said;
            }
            Part::Member(b"apiVersion", value) => {
                let said = text(value);
                page.is_late |= is_told && is_read && said != page.kind.version;
                page.kind.version = said;
            }
            Part::Member(..) => {}
        });
        read.map_err(|error| format!("the answer is malformed: {error}"))?;
        let list_kind = &page.kind.kind;
        if projection == Projection::Metadata && list_kind != "PartialObjectMetadataList" {
            return Err(WHOLE.to_owned());
        }
        if !page.has_items {
            return Err(format!(
                "the answer is not a list: its kind is \"{}\" and it has no field 'items'",
                one_line(list_kind, 60)
            ));
        }
        problem.map_or(Ok(page), Err)
    }
}

/// The kind and `apiVersion` that a list states for itself.
#[derive(Debug, Default)]
struct ListKind {
    version: String,
    kind: String,
}

impl ListKind {
    /// Returns the kind of the list's items, `Pod` for `PodList`; `None` if the stated kind does not end in `List`.
    fn of_items(&self) -> Option<&str> {
        self.kind.strip_suffix("List")
    }
}

/// The fields of a page besides its items.
#[derive(Debug, Default)]
struct Page {
    kind: ListKind,
    has_items: bool,
    /// The token of the next page; `None` on the last one.
    next: Option<String>,
    /// True if the page stated the kind or `apiVersion` of its items only after some of them were parsed.
    is_late: bool,
}

/// Returns the charge in bytes for the index of a JSON text, estimated from its commas and opening brackets.
fn index_size(text: &[u8]) -> u64 {
    // Each value but the first of its list or object has a comma before it.
    memchr::memchr3_iter(b',', b'[', b'{', text).count() as u64 * BYTES_PER_VALUE
}

/// Returns the cost in bytes of the index of a text beyond the charge for the text: 0 if its values have a usual
/// length.
pub(crate) fn index_cost(text: &[u8]) -> u64 {
    index_size(text).saturating_sub(text.len() as u64)
}

/// Returns the cost in bytes, beyond the charge for a text, of the text's index and of the indexes of the objects that
/// are copied from it: both are held while it is parsed.
pub(crate) fn cost_while_parsed(text: &[u8]) -> u64 {
    2 * index_size(text)
}

/// Returns the error for a list with more than [`ListRequest::MALFORMED`] items that are not valid objects.
pub(crate) fn too_malformed() -> String {
    format!("more than {} items are not valid objects", ListRequest::MALFORMED)
}

/// The error for an item of another kind than requested.
pub(crate) const OTHER_KIND: &str = "the object is of another kind than the requested one";

/// Returns true unless an item states another kind or another API group than the resource; its version may differ.
pub(crate) fn is_of(item: Value<'_>, resource: &ApiResource) -> bool {
    item.members().into_iter().flatten().all(|(key, value)| match key.as_ref() {
        "kind" => value.is_str(&resource.kind),
        "apiVersion" => value
            .as_str()
            .is_some_and(|version| version.rsplit_once('/').map_or("", |(group, _)| group) == resource.group),
        _ => true,
    })
}

/// Returns an item's `namespace/name`, or its name alone if it has no namespace, for messages; `None` if it has no
/// name.
pub(crate) fn name_of(item: Value<'_>) -> Option<String> {
    let part = |key: &str| item.at(&["metadata", key]).and_then(|value| value.as_str());
    let name = part("name")?;
    Some(match part("namespace") {
        Some(namespace) => one_line(&format!("{namespace}/{name}"), 200),
        None => one_line(&name, 200),
    })
}

/// Appends to `to` the JSON of an object with the members of `object` for whose keys `is_kept` returns true. `change`
/// gets key, value and `to` of each; if it has written another value there, it returns true.
pub fn copy_members(
    object: Value<'_>,
    is_kept: impl Fn(&str) -> bool,
    to: &mut Vec<u8>,
    change: impl Fn(&str, Value<'_>, &mut Vec<u8>) -> bool,
) {
    to.push(b'{');
    let mut first = true;
    for (key, value) in object.members().into_iter().flatten().filter(|(key, _)| is_kept(key)) {
        if !std::mem::take(&mut first) {
            to.push(b',');
        }
        write_string(&key, to);
        to.push(b':');
        if !change(&key, value, to) {
            to.extend_from_slice(value.text().unwrap_or(b"null"));
        }
    }
    to.push(b'}');
}

/// The `apiVersion` and `kind` that items get which do not state them, and all items of which only metadata is read.
pub(crate) struct Owner<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    /// True for Secrets: where only metadata is read, the annotation with a copy of their values is removed from it.
    pub(crate) secret: bool,
}

impl Owner<'_> {
    /// Copies an object with its `apiVersion` and `kind`, reduced to the part `projection`; returns the reason if it is
    /// not a named object.
    pub(crate) fn object(&self, value: Value<'_>, projection: Projection) -> Result<OwnedDocument, String> {
        let (Kind::Object, Some(text)) = (value.kind(), value.text()) else {
            return Err("the value is not an object".to_owned());
        };
        let metadata = value.get("metadata").filter(|value| value.kind() == Kind::Object);
        let metadata = metadata.ok_or_else(|| "the object has no metadata".to_owned())?;
        if metadata.get("name").and_then(|name| name.as_str()).is_none_or(|name| name.is_empty()) {
            return Err("the object has no name".to_owned());
        }
        let names = self.kind.len() + self.api_version.len() + 40;
        if projection == Projection::Metadata {
            // What the server calls these objects is their form; their kind is the one asked for.
            let text = metadata.text().unwrap_or(b"{}");
            let mut object = DocumentBuilder::new(text.len() + names);
            object.string("apiVersion", self.api_version);
            object.string("kind", self.kind);
            match self.secret.then(|| without_copy(metadata)).flatten() {
                None => object.value("metadata", metadata),
                Some(cut) => {
                    let cut = OwnedDocument::parse(cut).map_err(|error| error.to_string())?;
                    object.value("metadata", cut.root());
                }
            }
            return object.finish().map_err(|error| error.to_string());
        }
        let (api_version, kind) = (value.get("apiVersion"), value.get("kind"));
        if [api_version, kind].iter().flatten().any(|value| value.kind() != Kind::String) {
            return Err("the object's apiVersion or kind is not a text".to_owned());
        }
        let mut object = DocumentBuilder::new(text.len() + names);
        if api_version.is_none() {
            object.string("apiVersion", self.api_version);
        }
        if kind.is_none() {
            object.string("kind", self.kind);
        }
        object.members(value);
        object.finish().map_err(|error| error.to_string())
    }
}

/// Returns the metadata of a Secret without the annotation that copies its values; `None` if it has no such
/// annotation.
fn without_copy(metadata: Value<'_>) -> Option<Vec<u8>> {
    let is_copy = |value: Value<'_>| value.kind() == Kind::Object && value.get(LAST_APPLIED).is_some();
    // Of equal keys each is looked at.
    let mut members = metadata.members().into_iter().flatten();
    if !members.any(|(key, value)| key == "annotations" && is_copy(value)) {
        return None;
    }
    let mut cut = Vec::new();
    copy_members(
        metadata,
        |_| true,
        &mut cut,
        |key, value, to| {
            let annotations = key == "annotations" && value.kind() == Kind::Object;
            if annotations {
                copy_members(value, |key| key != LAST_APPLIED, to, |_, _, _| false);
            }
            annotations
        },
    );
    Some(cut)
}

//! Decodes text from lists and watches into changes.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use taffrail_object::json::{Kind, OwnedDocument, Parser, Part, Value};
use taffrail_object::protobuf::{self, Extent};
use taffrail_object::{ItemKind, Object, ObjectError, Projection};

use super::{Scope, ScopeId, ScopeWatch};
use crate::error::one_line;
use crate::read::{ListRequest, MalformedItem, OTHER_KIND, WHOLE, is_of, name_of, too_malformed};

/// A change of an object or of the scope.
#[derive(Debug)]
pub enum Change<'a> {
    /// The object exists in this state: it is new, changed, or listed again.
    Upsert(Object<'a>),
    /// The object was deleted; holds its last state.
    Delete(Object<'a>),
    /// The item is not a Kubernetes object, has no name, or is of another kind than the scope; or an event was too
    /// long. The other items are unaffected.
    Malformed(MalformedItem),
    /// All existing objects have been delivered.
    InitDone,
}

/// A part of the text that a scope received.
pub struct Batch {
    pub(super) followed: Arc<ScopeWatch>,
    pub(super) text: Vec<u8>,
    pub(super) form: WireFormat,
    pub(super) epoch: u64,
}

/// The content of a batch: how its text, or its parsed items, are read.
#[derive(Debug, Clone)]
pub(super) enum WireFormat {
    /// Items of a page of a list.
    Items(Items),
    /// The end of a page whose items came before.
    PageEnd(PageEnd),
    /// Complete lines of a watch.
    Lines,
    /// Complete events of a watch in Protobuf, each preceded by its length.
    Frames,
    /// The beginning of a line or frame that was too long and was skipped.
    TooLong {
        /// The limit that it exceeded, in bytes.
        limit: usize,
    },
}

impl Debug for Batch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("scope", &self.followed.id)
            .field("form", &self.form)
            .field("bytes", &self.text.len())
            .finish()
    }
}

/// The `type` of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    Unknown,
}

impl EventType {
    fn of(value: Value<'_>) -> EventType {
        match value.text() {
            Some(br#""ADDED""#) => EventType::Added,
            Some(br#""MODIFIED""#) => EventType::Modified,
            Some(br#""DELETED""#) => EventType::Deleted,
            Some(br#""BOOKMARK""#) => EventType::Bookmark,
            Some(br#""ERROR""#) => EventType::Error,
            _ => EventType::Unknown,
        }
    }
}

/// A bookmark with this annotation marks the end of a streamed list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Batch {
    /// Returns the ID of the scope that the batch belongs to.
    pub fn scope(&self) -> ScopeId {
        self.followed.id
    }

    /// Returns the scope that the batch belongs to, as it is followed: for Secrets with [`Projection::Metadata`].
    pub fn followed(&self) -> &Scope {
        &self.followed.scope
    }

    /// Returns the size in bytes of the batch's text or items; 0 for the end of a page.
    pub fn size(&self) -> usize {
        let items = match &self.form {
            WireFormat::Items(items) => items.bytes,
            _ => 0,
        };
        self.text.len() + items
    }

    /// Decodes the batch and calls `visit` with each change in order; stops at an event that is malformed, after which
    /// the watch is opened again. One `parser` can serve all batches.
    pub fn read(self, parser: &mut Parser, mut visit: impl FnMut(Change<'_>)) {
        match self.form {
            WireFormat::Items(ref items) => self.items(items, &mut visit),
            WireFormat::PageEnd(ref end) => self.page_end(end, &mut visit),
            WireFormat::Lines => {
                let mut lines = self.text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
                // The server resends what follows a damaged line.
                let _ = lines.all(|line| self.line(line, parser, &mut visit));
                self.end_if_over();
            }
            WireFormat::Frames => {
                let mut line = Vec::new();
                let _ = frames(&self.text).all(|frame| {
                    line.clear();
                    match protobuf::write_event(frame, Extent::Unmanaged, &mut line) {
                        Ok(()) => self.line(&line, parser, &mut visit),
                        Err(error) => {
                            self.followed.progress().unreadable =
                                Some(format!("an event is malformed: {error}"));
                            false
                        }
                    }
                });
                self.end_if_over();
            }
            WireFormat::TooLong { limit } => {
                let start = one_line(&String::from_utf8_lossy(&self.text), 120);
                let reason = format!("a watch event of over {limit} bytes was skipped: {start}");
                visit(Change::Malformed(MalformedItem { index: 0, name: None, reason }));
            }
        }
    }

    /// Notifies the task of the scope if the watch cannot continue, so that the task ends it.
    fn end_if_over(&self) {
        if self.followed.progress().is_over() {
            self.followed.ended.notify_one();
        }
    }

    /// Returns the object at `root`; fails if it is not of the scope's kind or has no name. A metadata scope rejects
    /// whole objects, because these may contain secrets; `known_form` is true if the text has stated that it is
    /// metadata only.
    fn object<'a>(&'a self, root: Value<'a>, known_form: bool) -> Result<Object<'a>, String> {
        let scope = &self.followed.scope;
        if root.kind() != Kind::Object {
            return Err("the value is not an object".to_owned());
        }
        let cut = || root.get("kind").is_some_and(|kind| kind.is_str("PartialObjectMetadata"));
        if scope.projection == Projection::Metadata && !known_form && !cut() {
            return Err(WHOLE.to_owned());
        }
        if scope.projection == Projection::Full && !is_of(root, &scope.resource) {
            return Err(OTHER_KIND.to_owned());
        }
        let kind = ItemKind::new(&self.followed.api_version, &scope.resource.kind);
        let object = kind.object(root).map_err(|error: ObjectError| error.to_string())?;
        match object.metadata() {
            None => Err("the object has no metadata".to_owned()),
            Some(_) if object.name().is_empty() => Err("the object has no name".to_owned()),
            Some(_) => Ok(object),
        }
    }

    fn items(&self, items: &Items, visit: &mut impl FnMut(Change<'_>)) {
        let mut malformed = 0;
        for (index, document) in (items.first..).zip(&items.documents) {
            match self.object(document.root(), items.is_cut) {
                Ok(object) => visit(Change::Upsert(object)),
                Err(reason) => {
                    malformed += 1;
                    visit(Change::Malformed(MalformedItem { index, name: name_of(document.root()), reason }));
                }
            }
        }
        let mut progress = self.followed.progress();
        progress.malformed += malformed;
        if progress.malformed > ListRequest::MALFORMED {
            progress.unreadable = Some(too_malformed());
        }
    }

    fn page_end(&self, end: &PageEnd, visit: &mut impl FnMut(Change<'_>)) {
        let mut progress = self.followed.progress();
        progress.continued = None;
        if end.unreadable.is_some() {
            progress.unreadable = end.unreadable.clone();
            return;
        }
        progress.resource_version = end.resource_version.clone();
        self.followed.note(self.epoch, &progress.resource_version);
        progress.complete = end.continued.is_none();
        progress.continued = end.continued.clone();
        let complete = progress.complete;
        drop(progress);
        if complete {
            visit(Change::InitDone);
        }
    }

    /// Parses an event and calls `visit` with its changes; returns false if it is malformed.
    fn line(&self, line: &[u8], parser: &mut Parser, visit: &mut impl FnMut(Change<'_>)) -> bool {
        let mut event = None;
        let mut early = false;
        let mut complete = false;
        let read = parser.envelope(line, |part| match part {
            Part::Member(b"type", value) => event = Some(EventType::of(value)),
            Part::Object(document) => match event {
                Some(event) => complete |= self.event(event, document.root(), visit),
                // Servers send the type first; any other event is parsed twice.
                None => early = true,
            },
            _ => {}
        });
        if early && let (Ok(()), Some(event)) = (&read, event) {
            let _ = parser.envelope(line, |part| {
                if let Part::Object(document) = part {
                    complete |= self.event(event, document.root(), visit);
                }
            });
        }
        if complete {
            visit(Change::InitDone);
        }
        let problem = match read {
            Err(error) => format!("a line is malformed: {error}"),
            Ok(()) if event.is_none() => "a line is not a watch event".to_owned(),
            Ok(()) => return true,
        };
        self.followed.progress().unreadable = Some(problem);
        false
    }

    /// Processes an event; returns true if it completes the list.
    fn event(&self, event: EventType, root: Value<'_>, visit: &mut impl FnMut(Change<'_>)) -> bool {
        let metadata = root.get("metadata");
        let version = metadata.and_then(|metadata| metadata.get("resourceVersion")?.as_str());
        match event {
            EventType::Added | EventType::Modified | EventType::Deleted => {
                match self.object(root, false) {
                    Ok(object) if event == EventType::Deleted => visit(Change::Delete(object)),
                    Ok(object) => visit(Change::Upsert(object)),
                    Err(reason) => {
                        visit(Change::Malformed(MalformedItem { index: 0, name: name_of(root), reason }));
                    }
                }
                self.move_on(version.as_deref(), false)
            }
            EventType::Bookmark => {
                self.followed.progress().is_bookmarked = true;
                let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
                let end = annotations.and_then(|annotations| annotations.get(INITIAL_EVENTS_END));
                self.move_on(version.as_deref(), end.is_some_and(|end| end.is_str("true")))
            }
            EventType::Error => {
                let code = root.get("code").and_then(Value::as_i64).and_then(|code| u16::try_from(code).ok());
                let text = |key| root.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
                let message = text("message").or_else(|| text("reason")).unwrap_or_default();
                let mut progress = self.followed.progress();
                if matches!(code, Some(410)) {
                    progress.expired = Some(one_line(&message, 200));
                } else {
                    progress.refused = Some((code.unwrap_or(500), one_line(&message, 200)));
                }
                false
            }
            EventType::Unknown => false,
        }
    }

    /// Records `version` as the position of the watch if the initial list is complete, or at its `end`; marks the watch
    /// as expired if the position would go back. Returns true if that completes the list.
    fn move_on(&self, version: Option<&str>, end: bool) -> bool {
        let mut progress = self.followed.progress();
        let Some(version) = version.filter(|version| !version.is_empty()) else { return false };
        // A streamed list comes in any order; later versions only grow, unless the server's state went back.
        if progress.complete && went_back(&progress.resource_version, version) {
            let before = &progress.resource_version;
            progress.expired =
                Some(format!("the server's state went back from version {before} to {version}"));
            return false;
        }
        if progress.complete || end {
            self.followed.note(self.epoch, version);
            progress.resource_version.clear();
            progress.resource_version.push_str(version);
        }
        end && !std::mem::replace(&mut progress.complete, true)
    }
}

/// Parsed items of a page of a list.
#[derive(Debug, Clone, Default)]
pub(super) struct Items {
    /// Index of the first item in its page.
    first: usize,
    /// The parsed items.
    documents: Vec<OwnedDocument>,
    /// The size of the items' texts, in bytes.
    bytes: usize,
    /// True if the page says that its items are metadata only.
    is_cut: bool,
}

/// The fields of a page besides its items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PageEnd {
    resource_version: String,
    /// The token of the next page; `None` on the last one.
    continued: Option<String>,
    /// The reason why the page cannot be read; `None` if it can.
    unreadable: Option<String>,
}

/// Maximum size of a batch of list items, in bytes; an item that would exceed it begins the next batch. Decoding a
/// batch must not keep the reader from other clusters for long.
const MAX_BATCH_BYTES: usize = 512 << 10;
/// Maximum number of items in a batch of list items; further ones form the next batch.
const MAX_BATCH_ITEMS: usize = 2000;

/// Parses a page and splits its items into batches of at most [`MAX_BATCH_ITEMS`] items and [`MAX_BATCH_BYTES`], unless
/// one item is larger; returns them and the page's other fields. No item is parsed a second time.
pub(super) fn split(page: &[u8], projection: Projection) -> (Vec<Items>, PageEnd) {
    let mut parts: Vec<Items> = Vec::new();
    let (mut index, mut malformed) = (0, 0);
    let (mut has_items, mut is_list, mut is_cut, mut kind) = (false, false, false, String::new());
    let mut end = PageEnd::default();
    let mut add = |item: OwnedDocument, is_cut: bool| {
        let size = item.text().len();
        let is_full = parts.last().is_none_or(|items| {
            items.documents.len() >= MAX_BATCH_ITEMS
                || items.bytes + size > MAX_BATCH_BYTES
                || items.is_cut != is_cut
        });
        if is_full {
            parts.push(Items { first: index, is_cut, ..Items::default() });
        }
        if let Some(items) = parts.last_mut() {
            items.bytes += size;
            items.documents.push(item);
        }
        index += 1;
    };
    let read = Parser::new().envelope(page, |part| match part {
        Part::Object(document) => {
            has_items = true;
            add(document.owned(), is_cut);
        }
        Part::Other(value) => {
            has_items = true;
            malformed += 1;
            if malformed <= ListRequest::MALFORMED {
                // What is not an object costs little.
                if let Ok(item) = OwnedDocument::parse(value.text().unwrap_or(b"null")) {
                    add(item, is_cut);
                }
            }
        }
        Part::Member(b"metadata", metadata) => {
            let text = |key| metadata.get(key).and_then(Value::as_str).map(|it| it.into_owned());
            end.resource_version = text("resourceVersion").unwrap_or_default();
            end.continued = text("continue").filter(|token| !token.is_empty());
        }
        Part::Member(b"kind", value) => {
            kind = value.as_str().unwrap_or_default().into_owned();
            is_list = kind.ends_with("List");
            is_cut = kind == "PartialObjectMetadataList";
        }
        Part::Member(b"items", _) | Part::Items => has_items = true,
        Part::Member(..) => {}
    });
    end.unreadable = match read {
        Err(error) => Some(format!("the answer is malformed: {error}")),
        Ok(()) if malformed > ListRequest::MALFORMED => Some(too_malformed()),
        Ok(()) if projection == Projection::Metadata && !is_cut => Some(WHOLE.to_owned()),
        // An empty list may lack items; any other answer without items is not a list.
        Ok(()) if !has_items && !is_list => Some(format!(
            "the answer is not a list: its kind is \"{}\" and it has no field 'items'",
            one_line(&kind, 60)
        )),
        Ok(()) => None,
    };
    (parts, end)
}

/// Size of the length before each frame, in bytes.
const LENGTH_BYTES: usize = 4;

/// Returns the length of the first frame, including its length field; `None` if that is incomplete.
pub(super) fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<LENGTH_BYTES>()?;
    Some((u32::from_be_bytes(*length) as usize).saturating_add(LENGTH_BYTES))
}

/// Iterates over the complete frames in `bytes`.
fn frames(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (frame, after) = rest.split_at_checked(frame_length(rest)?)?;
        rest = after;
        frame.get(LENGTH_BYTES..)
    })
}

/// Returns the index behind the last complete frame in `bytes`; 0 if no frame is complete.
pub(super) fn last_frame_ends(bytes: &[u8]) -> usize {
    frames(bytes).map(|frame| frame.len() + LENGTH_BYTES).sum()
}

/// Returns true if both resource versions are numbers (as KEP-5504 requires) and `now` is smaller than `before`.
pub fn went_back(before: &str, now: &str) -> bool {
    match (before.parse::<u64>(), now.parse::<u64>()) {
        (Ok(before), Ok(now)) => now < before,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BATCH_ITEMS, PageEnd, frame_length, frames, last_frame_ends, split};
    use taffrail_object::Projection;

    #[test]
    fn pages_are_split_into_batches() {
        let item = |at: usize| format!(r#"{{"metadata":{{"name":"a{at}"}}}}"#);
        let items: Vec<String> = (0..2 * MAX_BATCH_ITEMS + 1).map(item).collect();
        let page = format!(
            r#"{{"kind":"ThingList","metadata":{{"resourceVersion":"7","continue":"c"}},"items":[{}]}}"#,
            items.join(" ,\n")
        );
        let (parts, end) = split(page.as_bytes(), Projection::Full);
        let expected =
            PageEnd { resource_version: "7".to_owned(), continued: Some("c".to_owned()), unreadable: None };
        assert_eq!(end, expected);
        let documents = parts.iter().flat_map(|items| &items.documents);
        let found: Vec<String> =
            documents.map(|item| String::from_utf8_lossy(item.text()).into_owned()).collect();
        assert!(found == items, "all in their order");
        assert_eq!(
            parts.iter().map(|items| items.first).collect::<Vec<_>>(),
            [0, MAX_BATCH_ITEMS, 2 * MAX_BATCH_ITEMS]
        );

        let large = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "x".repeat(300 << 10));
        let page = format!(r#"{{"kind":"ThingList","items":[{large},{large},{large}]}}"#);
        assert_eq!(split(page.as_bytes(), Projection::Full).0.len(), 3);

        // What is no object costs little, however much of it there is.
        let page = format!(r#"{{"kind":"ThingList","items":[{}1]}}"#, "1,".repeat(100_000));
        let (parts, end) = split(page.as_bytes(), Projection::Full);
        assert!(parts.iter().map(|items| items.documents.len()).sum::<usize>() <= 1000);
        assert_eq!(end.unreadable.as_deref(), Some("more than 1000 items are not valid objects"));
    }

    #[test]
    fn frames_end_where_their_lengths_say() {
        let bytes = b"\0\0\0\x02ab\0\0\0\0\0\0\0\x03cd";
        assert_eq!(frames(bytes).collect::<Vec<_>>(), [&b"ab"[..], b""]);
        assert_eq!(last_frame_ends(bytes), 10);
        assert_eq!(frame_length(&bytes[10..]), Some(7));
        assert_eq!(frame_length(b"\xff\xff\xff\xff"), Some(u32::MAX as usize + 4));
        for end in 0..4 {
            assert_eq!((last_frame_ends(&bytes[..end]), frame_length(&bytes[..end])), (0, None));
        }
    }
}

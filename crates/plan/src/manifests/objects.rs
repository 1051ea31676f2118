//! Objects found in documents: lists opened, kinds and names checked, options read.

use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};
use taffrail_object::{ItemKind, Lines, ObjectKey, names};

use super::annotations;
use super::documents::{Document, Documents};
use super::errors::{
    MAX_LISTED, ManifestError, ManifestErrorKind, ManifestWarning, ManifestWarningKind, sort,
};
use super::near::shown;
use super::options::SyncOptions;
use super::{FileLine, MAX_OBJECT_BYTES, MAX_OBJECTS, ManifestFile};

/// The objects, errors and warnings found so far in a set.
#[derive(Default)]
pub(super) struct Found {
    pub(super) drafts: Vec<Draft>,
    pub(super) errors: Vec<ManifestError>,
    /// The number of errors beyond those listed.
    pub(super) more: usize,
    pub(super) warnings: Vec<ManifestWarning>,
    /// The weight of the aliases of all documents.
    replayed: usize,
}

/// An object whose scope is not known yet: its key has the namespace that the manifest states.
pub(super) struct Draft {
    pub(super) key: ObjectKey,
    pub(super) api_version: String,
    pub(super) generate_name: Option<String>,
    pub(super) value: Value,
    pub(super) place: FileLine,
    /// The line of `spec.scope`, for a CRD.
    pub(super) scope_line: u64,
    pub(super) options: SyncOptions,
}

impl Draft {
    /// Returns words for the object in messages.
    pub(super) fn told(&self) -> String {
        told(&self.key)
    }
}

impl Found {
    /// Reads the objects of a file; returns false if the set has too many, or too many errors, so that no other file needs
    /// to be read.
    pub(super) fn read(&mut self, file: &ManifestFile<'_>) -> bool {
        let name: Arc<str> = file.path.into();
        let mut replayed = self.replayed;
        for document in Documents::of(file, &mut replayed) {
            match document {
                Ok(document) => self.take_document(&name, document),
                Err((line, kind)) => self.fail(FileLine { file: name.clone(), line }, None, kind),
            }
            if self.drafts.len() > MAX_OBJECTS {
                let place = self.drafts.pop().map(|draft| draft.place);
                let place = place.unwrap_or(FileLine { file: name, line: 1 });
                self.fail(place, None, ManifestErrorKind::TooManyObjects);
                return false;
            }
            if self.more > MAX_OBJECTS {
                return false;
            }
        }
        self.replayed = replayed;
        true
    }

    /// Adds an error; of too many errors the last are only counted.
    pub(super) fn fail(&mut self, place: FileLine, object: Option<String>, kind: ManifestErrorKind) {
        match self.errors.len() {
            MAX_LISTED.. => self.more += 1,
            _ => self.errors.push(ManifestError { place, object, kind }),
        }
    }

    fn warn(&mut self, place: FileLine, object: Option<String>, kind: ManifestWarningKind) {
        if self.warnings.len() < MAX_LISTED {
            self.warnings.push(ManifestWarning { place, object, kind });
        }
    }

    fn take_document(&mut self, file: &Arc<str>, document: Document) {
        if let Some((key, line)) = document.repeated {
            let kind = ManifestWarningKind::RepeatedKey(shown(&key).into_owned());
            self.warn(FileLine { file: file.clone(), line }, None, kind);
        }
        let at = Position { file, before: document.before, lines: Some(&document.lines), line: 0 };
        self.take(document.tree, &at, None);
    }

    /// Adds a value as an object, or the items of a list; `of_items` is the kind that its list gives it.
    fn take(&mut self, value: Value, at: &Position<'_>, of_items: Option<&ItemKind<'_>>) {
        let Value::Object(mut members) = value else {
            return self.fail(at.place(&[]), None, ManifestErrorKind::NotAnObject { found: sort(&value) });
        };
        let mut reader = FieldReader::default();
        let mut kind = reader.text(&members, "kind").unwrap_or_default();
        let mut api_version = reader.text(&members, "apiVersion").unwrap_or_default();
        if let Some(of_items) =
            of_items.filter(|it| reader.failed.is_empty() && it.is_of(&api_version, &kind))
        {
            (kind, api_version) = (of_items.kind().to_owned(), of_items.api_version().to_owned());
            members.insert("kind".to_owned(), kind.as_str().into());
            members.insert("apiVersion".to_owned(), api_version.as_str().into());
        }
        if let Some(of_items) = ItemKind::of_list(api_version.as_str().into(), kind.as_str().into())
            && (of_items.kind().is_empty() || members.get("items").is_some_and(Value::is_array))
        {
            return self.open(members.remove("items"), at, &of_items);
        }
        if reader.failed.is_empty() && kind.is_empty() && api_version.is_empty() {
            // Such as the values of a Helm chart.
            let found = "a map without apiVersion and kind";
            return self.fail(at.place(&[]), None, ManifestErrorKind::NotAnObject { found });
        }
        self.add(Value::Object(members), kind, api_version, at, reader);
    }

    fn open(&mut self, items: Option<Value>, at: &Position<'_>, of_items: &ItemKind<'_>) {
        let items = match items {
            Some(Value::Array(items)) => items,
            None | Some(Value::Null) => return,
            Some(other) => {
                let field = "items".to_owned();
                let kind = ManifestErrorKind::WrongType { field, found: sort(&other), expected: "a list" };
                return self.fail(at.place(&["items"]), None, kind);
            }
        };
        let lines = at.lines.and_then(|lines| lines.member("items"));
        for (position, item) in items.into_iter().enumerate() {
            if self.drafts.len() > MAX_OBJECTS {
                return;
            }
            let own = lines.and_then(|lines| lines.item(position));
            let line = at.place(&["items"]).line;
            self.take(item, &Position { lines: own, line, ..*at }, Some(of_items));
        }
    }

    /// Adds an object, or the errors for which it is none; `reader` has read its kind.
    fn add(
        &mut self,
        value: Value,
        kind: String,
        api_version: String,
        at: &Position<'_>,
        mut reader: FieldReader,
    ) {
        let Value::Object(members) = &value else { return };
        reader.demand("kind", kind.is_empty());
        reader.demand("apiVersion", api_version.is_empty());
        let group = match api_version.split_once('/') {
            Some((group, version)) if !group.is_empty() && names::is_label(version) => group,
            None if api_version.is_empty() || names::is_label(&api_version) => "",
            _ => {
                let kind = ManifestErrorKind::ApiVersion(shown(&api_version).into_owned());
                reader.failed.push(("apiVersion", kind));
                ""
            }
        };
        let nothing = Map::new();
        let metadata = match members.get("metadata") {
            Some(Value::Object(metadata)) => metadata,
            None | Some(Value::Null) => &nothing,
            Some(other) => {
                reader.wrong("metadata", other, "a map");
                &nothing
            }
        };
        let name = reader.text(metadata, "metadata.name");
        let generate_name = reader.text(metadata, "metadata.generateName");
        let namespace = reader.text(metadata, "metadata.namespace").unwrap_or_default();
        let generate_name = generate_name.filter(|_| name.is_none());
        let key = ObjectKey::new(group, &*kind, namespace, name.unwrap_or_default());
        let object = Some(told(&key)).filter(|_| !kind.is_empty());

        let line_of = |path: [&str; 3]| at.place(&path).line;
        let mut report = annotations::Report::default();
        let options = annotations::read(metadata, &line_of, &mut report);
        if key.name.is_empty() && reader.failed.iter().all(|(path, _)| !path.starts_with("metadata")) {
            match &generate_name {
                Some(_) if options.is_hook() || options.is_skipped() => {}
                Some(_) => reader.failed.push(("metadata.generateName", ManifestErrorKind::GenerateName)),
                None => reader.demand("metadata.name", true),
            }
        }
        if reader.failed.is_empty() {
            let generated = generate_name.as_ref().map(|start| format!("{start}x"));
            let checked = match generated {
                Some(name) => names::check(&ObjectKey { name, ..key.clone() }),
                None => names::check(&key),
            };
            reader.failed.extend(checked.err().map(|error| ("metadata.name", error.into())));
        }
        if is_too_large(&value) {
            reader.failed.push(("", ManifestErrorKind::ObjectTooLarge));
        }
        let is_valid = reader.failed.is_empty();
        for (path, kind) in reader.failed {
            let path: Vec<&str> = path.split('.').collect();
            self.fail(at.place(&path), object.clone(), kind);
        }
        for (line, kind) in report.errors {
            self.fail(FileLine { file: at.file.clone(), line }, object.clone(), kind);
        }
        for (line, kind) in report.warnings {
            self.warn(FileLine { file: at.file.clone(), line }, object.clone(), kind);
        }
        if is_valid {
            let scope_line = at.place(&["spec", "scope"]).line;
            let place = at.place(&[]);
            self.drafts.push(Draft { key, api_version, generate_name, value, place, scope_line, options });
        }
    }
}

/// The position of a value in a file.
struct Position<'a> {
    file: &'a Arc<str>,
    /// The number of lines of the file before those that `lines` counts.
    before: u64,
    lines: Option<&'a Lines>,
    /// The line in the file, used where `lines` are not known.
    line: u64,
}

impl Position<'_> {
    /// Returns the place of the value at a path of keys, or of what is known of that path.
    fn place(&self, path: &[&str]) -> FileLine {
        let line = self.lines.map_or(self.line, |lines| self.before + lines.nearest(path));
        FileLine { file: self.file.clone(), line }
    }
}

/// Reads fields of an object, and collects the paths of invalid ones with their errors.
#[derive(Default)]
struct FieldReader {
    failed: Vec<(&'static str, ManifestErrorKind)>,
}

impl FieldReader {
    /// Returns the text at the end of `path`, a member of `members`; `None` if it is missing, null, empty or, which is an
    /// error, of another type.
    fn text(&mut self, members: &Map<String, Value>, path: &'static str) -> Option<String> {
        match members.get(path.rsplit('.').next()?)? {
            Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Value::Null => None,
            other => {
                self.wrong(path, other, "a string");
                None
            }
        }
    }

    fn wrong(&mut self, path: &'static str, value: &Value, expected: &'static str) {
        let kind = ManifestErrorKind::WrongType { field: path.to_owned(), found: sort(value), expected };
        self.failed.push((path, kind));
    }

    /// Adds the error that a field is missing, if it is and has no other error.
    fn demand(&mut self, field: &'static str, is_missing: bool) {
        if is_missing && self.failed.iter().all(|(path, _)| *path != field) {
            self.failed.push((field, ManifestErrorKind::Missing { field }));
        }
    }
}

/// Returns words for an object in messages: `Deployment shop/web`.
fn told(key: &ObjectKey) -> String {
    let (kind, path) = (shown(&key.kind), key.path());
    if key.name.is_empty() { kind.into_owned() } else { format!("{kind} {}", shown(&path)) }
}

/// Returns true if a value is larger than [`MAX_OBJECT_BYTES`] as JSON.
pub(super) fn is_too_large(value: &Value) -> bool {
    /// A writer that counts what it is given, and refuses more than it has room for.
    struct Room(usize);

    impl io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    serde_json::to_writer(Room(MAX_OBJECT_BYTES), value).is_err()
}

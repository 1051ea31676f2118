//! The manifest of a Helm release, parsed into the objects that its YAML documents declare.

use serde::{Deserialize, Deserializer, de};
use taffrail_object::{ItemKind, ObjectKey, names, yaml};

use super::bounds::MAX_OBJECTS;

/// The maximum number of malformed documents that are reported one by one; the others are only counted.
const MAX_REPORTED: usize = 50;

/// The maximum length in bytes of a document that must be parsed with YAML aliases; a longer one counts as malformed.
/// Only short documents written by hand contain aliases.
const MAX_ALIASED_BYTES: usize = 64 << 10;

/// The length in bytes to which the names, kinds and API versions of a manifest and the messages about it are cut;
/// longer than any name.
const MAX_WORD_LENGTH: usize = 512;

/// The maximum length of a document that is parsed as a whole, in bytes; a longer one counts as malformed. Of most
/// documents the YAML library parses only a few lines.
const MAX_DOCUMENT_BYTES: usize = 2 << 20;

/// The error that a manifest needs more YAML parsing than its limit allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

/// A document of a manifest that does not declare an object: its number (from 1), and the reason.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("document {document} of the manifest {why}")]
pub(super) struct BadDocument {
    document: usize,
    why: String,
}

/// A document of a Helm manifest: the identity of an object, or a list of objects.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default, deserialize_with = "word")]
    api_version: Option<String>,
    #[serde(default, deserialize_with = "word")]
    kind: Option<String>,
    metadata: Option<Metadata>,
    items: Option<Vec<Option<Document>>>,
}

impl Document {
    /// Sets the kind of an item of a typed list, such as `DeploymentList`, if it states none itself.
    fn typed(mut self, of_items: &ItemKind<'_>) -> Document {
        let [version, kind] = [&self.api_version, &self.kind].map(|word| word.as_deref().unwrap_or_default());
        if of_items.is_of(version, kind) {
            self.api_version = Some(of_items.api_version().to_owned());
            self.kind = Some(of_items.kind().to_owned());
        }
        self
    }
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, deserialize_with = "word")]
    name: Option<String>,
    #[serde(default, deserialize_with = "word")]
    namespace: Option<String>,
}

/// Deserializes a text, of which it keeps at most [`MAX_WORD_LENGTH`] bytes: enough to see that it is too
/// long for a name.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct Word;
    impl<'de> de::Visitor<'de> for Word {
        type Value = Option<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<String>, E> {
            let end = text.floor_char_boundary(MAX_WORD_LENGTH);
            Ok(Some(text[..end].to_owned()))
        }

        fn visit_none<E: de::Error>(self) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<String>, D::Error> {
            deserializer.deserialize_str(self)
        }
    }
    deserializer.deserialize_option(Word)
}

/// The objects and errors of a parsed manifest.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub(super) declared: Vec<ObjectKey>,
    /// The first malformed documents, at most [`MAX_REPORTED`].
    pub(super) bad: Vec<BadDocument>,
    /// Number of malformed documents beyond those in `bad`.
    pub(super) more_bad: usize,
    /// True if the manifest has more than [`MAX_OBJECTS`] documents or objects; those after them are left out.
    pub(super) is_cut: bool,
}

/// Parses a manifest into the objects that its documents declare, and the malformed documents.
///
/// `left` is the number of bytes that the YAML library may still parse; each call reduces it.
///
/// # Errors
///
/// When `left` is used up.
pub(super) fn read(manifest: &str, left: &mut usize) -> Result<Manifest, TooMuch> {
    let mut found = Manifest::default();
    let mut documents_read = 0;
    for (document, text) in (1..).zip(documents(manifest)) {
        if text.lines().all(is_blank) {
            continue;
        }
        documents_read += 1;
        if documents_read > MAX_OBJECTS || found.declared.len() > MAX_OBJECTS {
            found.is_cut = true;
            break;
        }
        let may_repeat = found.bad.len() < MAX_REPORTED;
        let parsed = parse(text, may_repeat, left)?;
        if let Err(why) = parsed.and_then(|parsed| declare(parsed, &mut found.declared)) {
            match found.bad.len() {
                MAX_REPORTED.. => found.more_bad += 1,
                _ => found.bad.push(BadDocument { document, why }),
            }
        }
    }
    found.is_cut |= found.declared.len() > MAX_OBJECTS;
    found.declared.truncate(MAX_OBJECTS);
    Ok(found)
}

/// Splits a manifest at lines that consist of `---`, or begin with it and a space or tab, as Helm itself does.
fn documents(manifest: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(manifest);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let after = line.strip_prefix("---");
            if after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\r', '\n'])) {
                rest = text.get(at + 3..);
                return text.get(..at);
            }
            at += line.len();
        }
        rest = None;
        Some(text)
    })
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Parses the fields of a document that name its object; `None` for an empty document. The inner error is the reason
/// why the document is malformed, which one with aliases is unless `may_repeat`; the outer one that `left` is used up,
/// which is reduced by the bytes that the YAML library parses.
fn parse(
    text: &str,
    may_repeat: bool,
    left: &mut usize,
) -> Result<Result<Option<Document>, String>, TooMuch> {
    // Most of a document is not needed here, and the YAML library refuses some of what Helm accepts.
    if let Some(head) = head(text)
        && let Ok(document) = read_document(&head, may_repeat, left)?
    {
        return Ok(Ok(document));
    }
    if text.len() > MAX_DOCUMENT_BYTES {
        return Ok(Err(format!("is longer than {} MiB", MAX_DOCUMENT_BYTES >> 20)));
    }
    let read = read_document(text, may_repeat, left)?;
    Ok(read.map_err(|error| {
        let line = error.line.map(|line| format!("at its line {line}: ")).unwrap_or_default();
        let told = format!("{line}{}", error.message);
        let end = told.floor_char_boundary(MAX_WORD_LENGTH);
        format!("is not YAML: {}", &told[..end])
    }))
}

type ReadDocument = Result<Option<Document>, yaml::YamlError>;

fn read_document(text: &str, may_repeat: bool, left: &mut usize) -> Result<ReadDocument, TooMuch> {
    let mut pay = || {
        *left = left.checked_sub(text.len()).ok_or(TooMuch)?;
        Ok(())
    };
    pay()?;
    let read = yaml::read_without_aliases(text);
    if read.is_err() && may_repeat && text.len() <= MAX_ALIASED_BYTES && text.contains('*') {
        pay()?;
        return Ok(yaml::read_with_few_aliases(text));
    }
    Ok(read)
}

/// Returns the lines of a document with `apiVersion`, `kind`, and the name and namespace in `metadata`, so that only
/// these are parsed.
///
/// Returns `None` unless the document is plainly a block mapping with keys in the first column, each of these once and
/// no `items`: only then these lines are certain.
fn head(text: &str) -> Option<String> {
    let mut head = String::new();
    let (mut versions, mut kinds) = (0, 0);
    let mut metadata = None;
    let mut part = DocumentPart::Other;
    for line in text.split_inclusive('\n') {
        if line.starts_with([' ', '\t', '#', '\n', '\r', '-']) {
            // A part of the block before; a `-` in the first column is an item of its sequence.
            match &mut part {
                DocumentPart::Wanted => head.push_str(line),
                DocumentPart::Metadata(names) => names.take(line, &mut head)?,
                DocumentPart::Other => {}
            }
            continue;
        }
        let (key, value) = line.split_once(':')?;
        if !is_plain_key(key) {
            return None;
        }
        if let DocumentPart::Metadata(names) = std::mem::replace(&mut part, DocumentPart::Other) {
            metadata = Some(names);
        }
        match key {
            "apiVersion" => versions += 1,
            "kind" => kinds += 1,
            "metadata" if metadata.is_some() => return None,
            "metadata" if is_blank(value) => {
                head.push_str(line);
                part = DocumentPart::Metadata(MetadataLines::default());
                continue;
            }
            // In one line, or with a tag: all of it is read.
            "metadata" => metadata = Some(MetadataLines::default()),
            "items" => return None,
            _ => continue,
        }
        head.push_str(line);
        part = DocumentPart::Wanted;
    }
    if let DocumentPart::Metadata(names) = part {
        metadata = Some(names);
    }
    let names = metadata?;
    (versions == 1 && kinds == 1 && names.names < 2 && names.namespaces < 2).then_some(head)
}

fn is_plain_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The top-level key of a YAML document below which the current line is.
enum DocumentPart {
    /// A key whose lines are skipped.
    Other,
    /// `apiVersion`, `kind`, or `metadata` with its value in the same line: all lines are kept.
    Wanted,
    /// `metadata`, of which the lines with the name and the namespace are kept.
    Metadata(MetadataLines),
}

/// The lines with the name and the namespace in the block `metadata` of a document.
#[derive(Default)]
struct MetadataLines {
    /// The indentation of the keys in `metadata`, in spaces; `None` before the first key.
    indent: Option<usize>,
    is_wanted: bool,
    names: usize,
    namespaces: usize,
}

impl MetadataLines {
    /// Appends a line of `metadata` to `head` if it belongs to the name or the namespace. Returns `None` if
    /// the line is not plainly one of a block mapping.
    fn take(&mut self, line: &str, head: &mut String) -> Option<()> {
        if is_blank(line) {
            // In a text of several lines it counts.
            if self.is_wanted {
                head.push_str(line);
            }
            return Some(());
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let own = *self.indent.get_or_insert(indent);
        let rest = line.get(indent..)?;
        if indent < own || own == 0 {
            return None;
        }
        // An item of a sequence may stand as far left as its key.
        if indent == own && !rest.starts_with("- ") {
            let (key, _) = rest.split_once(':')?;
            let key = key.trim_end();
            if !is_plain_key(key) {
                return None;
            }
            self.names += usize::from(key == "name");
            self.namespaces += usize::from(key == "namespace");
            self.is_wanted = matches!(key, "name" | "namespace");
        }
        if self.is_wanted {
            head.push_str(line);
        }
        Some(())
    }
}

fn declare(document: Option<Document>, declared: &mut Vec<ObjectKey>) -> Result<(), String> {
    let Some(document) = document else { return Ok(()) };
    let kind = document.kind.filter(|kind| !kind.is_empty()).ok_or("has no kind")?;
    let version = document.api_version.unwrap_or_default();
    let of_items = ItemKind::of_list((&*version).into(), (&*kind).into());
    if let (Some(items), Some(of_items)) = (document.items, of_items) {
        // Kubernetes has no lists in lists.
        let nested = |item: &Document| item.items.is_some();
        for item in items {
            if item.as_ref().is_some_and(nested) {
                return Err("holds a list in a list".to_owned());
            }
            // One more than the limit shows that there are more.
            if declared.len() > MAX_OBJECTS {
                break;
            }
            declare(item.map(|item| item.typed(&of_items)), declared)?;
        }
        return Ok(());
    }
    let metadata = document.metadata.ok_or("has no metadata")?;
    let name = metadata.name.filter(|name| !name.is_empty()).ok_or("has no name")?;
    let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let namespace = metadata.namespace.unwrap_or_default();
    let key = ObjectKey { group, kind, namespace, name };
    names::check(&key).map_err(|error| format!("names no object: {error}"))?;
    declared.push(key);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MAX_OBJECTS, MAX_REPORTED, Manifest, TooMuch, head};
    use taffrail_object::ObjectKey;

    pub(super) fn read(manifest: &str) -> Manifest {
        super::read(manifest, &mut usize::MAX.clone()).unwrap_or_else(|TooMuch| Manifest::default())
    }

    /// Returns the number of bytes of a manifest that the YAML library was given.
    fn cost(manifest: &str) -> usize {
        let mut left = usize::MAX;
        super::read(manifest, &mut left).map(|_| usize::MAX - left).unwrap_or(usize::MAX)
    }

    #[test]
    fn unneeded_parts_of_a_document_are_not_parsed() {
        let labels: String = (0..150).map(|number| format!("    l{number}: x\n")).collect();
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels:\n{labels}  name: a\n  finalizers:\n  - a/b\n  namespace: shop\ndata:\n  a: b\n"
        );
        check(&text, &[declared("", "ConfigMap", "shop", "a")], &[]);
        assert!(cost(&text) < 100, "{}", cost(&text));
        // A document that is not so plain is parsed as a whole, and paid for.
        let flow = text.replace(&format!("\n{labels}"), " {a: b}\n").replace("  name: a", "  \"name\": a");
        check(&flow, &[declared("", "ConfigMap", "shop", "a")], &[]);
        assert!(cost(&flow) >= flow.len());
    }

    #[test]
    fn parsing_stops_at_the_yaml_limit() {
        let one = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {a: b}}\n---\n";
        let each = cost(one);
        let mut left = each * 10;
        assert!(super::read(&one.repeat(10), &mut left).is_ok());
        assert_eq!(left, 0);
        assert_eq!(super::read(&one.repeat(11), &mut (each * 10)).err(), Some(TooMuch));
    }

    #[test]
    fn names_are_taken_only_from_plain_metadata() {
        for odd in [
            // A text that goes on as far left as the keys are.
            "metadata:\n  annotations:\n    a: \"x\n  name: b\"\n  name: a\n",
            "metadata:\n  name: b\n  name: a\n",
            "metadata:\n    x: y\n  name: a\n",
        ] {
            assert_eq!(head(&format!("apiVersion: v1\nkind: Secret\n{odd}")), None, "{odd}");
        }
        check(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  # name: x\n  name: >-\n    a\n\n  ownerReferences:\n  - name: b\n",
            &[declared("", "Secret", "", "a")],
            &[],
        );
    }

    fn declared(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(group, kind, namespace, name)
    }

    #[track_caller]
    fn check(manifest: &str, expected: &[ObjectKey], bad: &[&str]) {
        let found = read(manifest);
        assert_eq!(found.declared, expected);
        let errors: Vec<String> = found.bad.iter().map(ToString::to_string).collect();
        let told = errors.iter().zip(bad).all(|(error, bad)| error.starts_with(bad));
        assert!(errors.len() == bad.len() && told, "{errors:?}");
    }

    #[test]
    fn documents_of_every_form_are_read() {
        check("", &[], &[]);
        check("---\n# Source: web/templates/empty.yaml\n---\n\n", &[], &[]);
        check(
            "---\n# Source: a\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\nspec: {}\n\
             --- # next\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
            &[declared("apps", "Deployment", "shop", "web"), declared("", "Service", "", "web")],
            &[],
        );
        check(
            "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"a\"}}",
            &[declared("", "Secret", "", "a")],
            &[],
        );
        check(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: a\n-\n\
             - apiVersion: v1\n  kind: Secret\n  metadata:\n    name: b\n",
            &[declared("", "Secret", "", "a"), declared("", "Secret", "", "b")],
            &[],
        );
    }

    #[test]
    fn an_item_of_a_typed_list_has_the_kind_of_the_list() {
        check(
            "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n- {kind: Secret, metadata: {name: b}}\n",
            &[declared("apps", "Deployment", "", "a"), declared("", "Secret", "", "b")],
            &[],
        );
    }

    #[test]
    fn keys_are_read_despite_unusual_yaml_elsewhere() {
        // Go accepts a continuation line that is not indented past its key.
        check(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  text: \"one\n  two\"\n",
            &[declared("", "ConfigMap", "", "a")],
            &[],
        );
        check(
            "kind: ConfigMap\ndata:\n  text: |\n    kind: Secret\n    metadata:\nmetadata:\n  name: &n a\n  labels:\n    app: *n\napiVersion: v1\n",
            &[declared("", "ConfigMap", "", "a")],
            &[],
        );
        check(
            "common: &labels\n  app: web\napiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  labels: *labels\n",
            &[declared("", "Secret", "", "a")],
            &[],
        );
        check(
            "apiVersion: v1\nkind: Secret\nkind: ConfigMap\nmetadata:\n  name: a\n",
            &[declared("", "ConfigMap", "", "a")],
            &[],
        );
    }

    #[test]
    fn a_malformed_document_leaves_the_others_readable() {
        check(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n---\nkind: [\n---\nkind: Secret\nmetadata: {}\n---\nmetadata:\n  name: b\n",
            &[declared("", "Secret", "", "a")],
            &[
                "document 2 of the manifest is not YAML: at its line 2: ",
                "document 3 of the manifest has no name",
                "document 4 of the manifest has no kind",
            ],
        );
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut manifest = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            manifest.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(",")));
        }
        manifest.push_str("kind: Secret\nmetadata: {name: a, labels: *a11}\n");
        assert_eq!(read(&manifest).bad.len(), 1);
    }

    #[test]
    fn many_documents_are_cut_and_many_errors_are_counted() {
        let one = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n";
        let found = read(&one.repeat(MAX_OBJECTS + 7));
        assert_eq!((found.declared.len(), found.is_cut), (MAX_OBJECTS, true));
        let found = read(&"kind: [\n---\n".repeat(MAX_REPORTED + 7));
        assert_eq!((found.bad.len(), found.more_bad, found.is_cut), (MAX_REPORTED, 7, false));
        let items = "- {kind: Secret, metadata: {name: a}}\n".repeat(MAX_OBJECTS + 7);
        let found = read(&format!("kind: List\nitems:\n{items}"));
        assert_eq!((found.declared.len(), found.is_cut), (MAX_OBJECTS, true));
    }
}

#[cfg(test)]
mod bounds {
    use super::tests::read;
    use super::{MAX_ALIASED_BYTES, MAX_OBJECTS};

    /// Returns about 125 KB of documents, each of which expands to far more.
    fn small_bombs() -> String {
        let mut one = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (name, below) in ["b", "c", "d", "e", "f", "g"].into_iter().zip(["a", "b", "c", "d", "e", "f"]) {
            one.push_str(&format!("{name}: &{name} [{}]\n", [format!("*{below}").as_str(); 10].join(",")));
        }
        one.push_str("kind: Secret\nmetadata: {name: a, labels: *g}\nitems: [*g]\n---\n");
        one.repeat(125_000 / one.len())
    }

    /// Returns about 125 KB in which one long name is repeated.
    fn long_name(length: usize) -> String {
        let items = "- *d\n".repeat((125_000 - length) / 5);
        format!(
            "d: &d {{kind: Secret, metadata: {{name: {}}}}}\nkind: List\nitems:\n{items}",
            "a".repeat(length)
        )
    }

    /// Before there was a limit, a manifest of 125 KB took 73 seconds and 6.7 GB.
    #[test]
    fn aliases_cost_no_more_than_the_length_of_the_text() {
        let found = read(&small_bombs());
        assert_eq!(found.declared, []);
        assert!(found.bad.len() + found.more_bad > 100);
        for length in [100, 250, 60_000] {
            let text = long_name(length);
            assert!(text.len() > MAX_ALIASED_BYTES);
            assert_eq!((read(&text).declared.len(), read(&text).bad.len()), (0, 1));
        }
        // A short document is parsed, and its names are not longer than allowed.
        let short = format!(
            "d: &d {{kind: Secret, metadata: {{name: {}}}}}\nkind: List\nitems: [*d, *d]\n",
            "a".repeat(60)
        );
        assert_eq!(read(&short).declared.len(), 2);
        assert!(read(&short).declared.len() < MAX_OBJECTS);
    }

    #[test]
    fn the_number_of_documents_is_limited() {
        let found = read(&"x\n---\n".repeat(1_000_000));
        assert_eq!((found.bad.len() + found.more_bad, found.is_cut), (MAX_OBJECTS, true));
    }
}

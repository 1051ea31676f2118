//! The manifest of a Helm release: which objects do its YAML documents declare?

use serde::Deserialize;

use crate::yaml;

/// What a document says of the object it declares.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A document that declares no object: which one of the manifest (from 1), and why.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("document {document} of the manifest {why}")]
pub(super) struct BadDocument {
    document: usize,
    why: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Metadata>,
    items: Option<Vec<Option<Document>>>,
}

#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
}

/// Reads a manifest: what its documents declare, and which of them cannot be read.
pub(super) fn read(manifest: &str) -> (Vec<Declared>, Vec<BadDocument>) {
    let (mut declared, mut bad) = (Vec::new(), Vec::new());
    for (document, text) in (1..).zip(documents(manifest)) {
        if text.lines().all(is_blank) {
            continue;
        }
        if let Err(why) = parse(&text).and_then(|parsed| declare(parsed, &mut declared)) {
            bad.push(BadDocument { document, why });
        }
    }
    (declared, bad)
}

/// The documents between lines that start with `---`, as Helm itself splits manifests.
fn documents(manifest: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in manifest.split_inclusive('\n') {
        let after = line
            .strip_prefix("---")
            .filter(|after| after.is_empty() || after.starts_with([' ', '\t', '\r', '\n']));
        match after {
            Some(after) => documents.push(after.to_owned()),
            None => documents.last_mut().into_iter().for_each(|document| document.push_str(line)),
        }
    }
    documents
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

fn parse(text: &str) -> Result<Option<Document>, String> {
    // Most of a document is of no interest here, and some of what Helm accepts the YAML library does not.
    if let Some(head) = head(text)
        && let Ok(document) = yaml::read(&head)
    {
        return Ok(document);
    }
    yaml::read(text).map_err(|error| format!("is no YAML: {error}"))
}

/// The blocks `apiVersion`, `kind` and `metadata` of a document, if it is plainly a block mapping of keys that
/// start in the first column, of which these stand there once each, and it is no list.
fn head(text: &str) -> Option<String> {
    let mut head = String::new();
    let (mut versions, mut kinds, mut metadata) = (0, 0, 0);
    let mut wanted = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with([' ', '\t', '#', '\n', '\r', '-']) {
            // A part of the block before; a `-` in the first column is an item of its sequence.
        } else {
            let (key, _) = line.split_once(':')?;
            if key.is_empty()
                || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            {
                return None;
            }
            let count = match key {
                "apiVersion" => Some(&mut versions),
                "kind" => Some(&mut kinds),
                "metadata" => Some(&mut metadata),
                "items" => return None,
                _ => None,
            };
            wanted = count.is_some();
            count.into_iter().for_each(|count| *count += 1);
        }
        if wanted {
            head.push_str(line);
        }
    }
    ((versions, kinds, metadata) == (1, 1, 1)).then_some(head)
}

fn declare(document: Option<Document>, declared: &mut Vec<Declared>) -> Result<(), String> {
    let Some(document) = document else { return Ok(()) };
    let kind = document.kind.filter(|kind| !kind.is_empty()).ok_or("has no kind")?;
    if let Some(items) = document.items.filter(|_| kind.ends_with("List")) {
        // A list in a list is none that Kubernetes knows.
        let nested = |item: &Document| item.items.is_some();
        for item in items {
            if item.as_ref().is_some_and(nested) {
                return Err("holds a list in a list".to_owned());
            }
            declare(item, declared)?;
        }
        return Ok(());
    }
    let metadata = document.metadata.ok_or("has no metadata")?;
    let name = metadata.name.filter(|name| !name.is_empty()).ok_or("has no name")?;
    let version = document.api_version.unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
    declared.push(Declared { group, kind, namespace: metadata.namespace.unwrap_or_default(), name });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Declared, read};

    fn declared(group: &str, kind: &str, namespace: &str, name: &str) -> Declared {
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        Declared { group, kind, namespace, name }
    }

    #[track_caller]
    fn check(manifest: &str, expected: &[Declared], bad: &[&str]) {
        let (found, errors) = read(manifest);
        assert_eq!(found, expected);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
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
    fn what_matters_is_read_whatever_else_stands_there() {
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
    fn a_bad_document_spoils_itself_only() {
        check(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n---\nkind: [\n---\nkind: Secret\nmetadata: {}\n---\nmetadata:\n  name: b\n",
            &[declared("", "Secret", "", "a")],
            &[
                "document 2 of the manifest is no YAML: at its line 2: ",
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
        let (_, bad) = read(&manifest);
        assert_eq!(bad.len(), 1);
    }
}

//! Checks and defaults of objects before the server stores them: names, metadata, finalizers.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::error::{Answered, Cause};
use crate::kinds::Resource;
use crate::target::Target;

/// The characters of generated names: no vowels, so that they form no words.
pub(crate) const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Lists the errors in `name`, the name of an object of `resource`; empty if it is valid.
pub(crate) fn name_faults(resource: &Resource, name: &Value) -> Vec<Cause> {
    let text = name.as_str().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |text: &str| {
        let bytes = text.as_bytes();
        !bytes.is_empty()
            && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| plain(*byte))
            && bytes.last().is_some_and(|byte| plain(*byte))
    };
    let mut causes = Vec::new();
    let mut refuse = |what: &str| causes.push(Cause::invalid("metadata.name", name, what));
    match (&*resource.group, &*resource.plural) {
        // Names of roles may contain colons.
        ("rbac.authorization.k8s.io", _) => {
            if text.contains('/') || text.contains('%') || text == "." || text == ".." {
                refuse("may not contain '/'");
            }
        }
        ("", "namespaces" | "services") => {
            if text.contains('.') {
                refuse("must not contain dots");
            } else if !label(text) {
                refuse(LABEL);
            } else if text.len() > 63 {
                refuse("must be no more than 63 characters");
            }
        }
        _ => {
            if text.len() > 253 {
                refuse("must be no more than 253 bytes");
            }
            if !text.split('.').all(label) {
                refuse(SUBDOMAIN);
            }
        }
    }
    causes
}

/// Removes nulls from an object's metadata; returns the first of the fields that it checks, such as labels, with an
/// invalid JSON type; `None` if all are valid.
pub(crate) fn misshapen(metadata: &mut Value) -> Option<&'static str> {
    let members = metadata.as_object_mut()?;
    members.retain(|_, value| !value.is_null());
    let texts = |value: &Value| value.as_object().is_some_and(|all| all.values().all(Value::is_string));
    let objects = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_object));
    let names = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    let fits = |key: &str, value: &Value| match key {
        "labels" | "annotations" => texts(value),
        "ownerReferences" => objects(value),
        "finalizers" => names(value),
        _ => value.is_string(),
    };
    let parts = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
    ];
    parts.into_iter().find(|part| members.get(*part).is_some_and(|value| !fits(part, value)))
}

/// Finalizers that need no domain before them.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Lists the errors in the values of an object's labels and in its finalizers. Built-in kinds require a domain in the
/// name of a finalizer; for custom resources there is only a warning ([`finalizer_warnings`]).
pub(crate) fn metadata_faults(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for value in object["metadata"]["labels"].as_object().into_iter().flat_map(|labels| labels.values()) {
        let text = value.as_str().unwrap_or_default();
        let bytes = text.as_bytes();
        let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
        let inside = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
        if !inside || !ends(bytes.first()) || !ends(bytes.last()) {
            causes.push(Cause::invalid("metadata.labels", value, LABEL_VALUE));
        } else if bytes.len() > 63 {
            causes.push(Cause::invalid("metadata.labels", value, "must be no more than 63 bytes"));
        }
    }
    for (index, value) in object["metadata"]["finalizers"].as_array().into_iter().flatten().enumerate() {
        let text = value.as_str().unwrap_or_default();
        if !resource.custom && !text.contains('/') && !STANDARD_FINALIZERS.contains(&text) {
            let what = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{index}]"), value, what));
        }
    }
    causes
}

/// Lists the warnings about finalizers without a domain and path that a write adds to a custom resource, sorted by
/// name. `before` is the stored object, or null.
pub(crate) fn finalizer_warnings(resource: &Resource, before: &Value, after: &Value) -> Vec<String> {
    if !resource.custom {
        return Vec::new();
    }
    let of = |object: &Value| -> BTreeSet<String> {
        let names = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let is_bare = |name: &&String| !name.contains('/') && !STANDARD_FINALIZERS.contains(&name.as_str());
    let (before, after) = (of(before), of(after));
    let added = after.difference(&before).filter(is_bare).map(|name| {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        )
    });
    added.collect()
}

/// Removes the status of a new object, because clients cannot set it at creation; keeps it for Nodes, and for kinds
/// without a status subresource.
pub(crate) fn fresh_status(resource: &Resource, object: &mut Value) {
    // Nodes keep theirs: kubelets create their Node with it.
    let keeps = matches!((&*resource.group, &*resource.plural), ("", "nodes"));
    let has_status = resource.versions.iter().any(|version| version.status);
    if has_status
        && !keeps
        && let Some(members) = object.as_object_mut()
    {
        members.remove("status");
    }
}

/// The annotation of a DaemonSet with the number of its templates so far.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the templates of a DaemonSet in an annotation, which clients cannot change; does nothing for other kinds, and
/// for one that was stored without the annotation. `before` is the stored object, or null.
pub(crate) fn count_templates(resource: &Resource, before: &Value, after: &mut Value) {
    if !resource.is("apps", "daemonsets") {
        return;
    }
    let number = match before.is_null() {
        true => 1,
        false => {
            let old = before["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
            let Some(old) = old.and_then(|old| old.parse::<i64>().ok()) else { return };
            old + i64::from(before["spec"]["template"] != after["spec"]["template"])
        }
    };
    let annotations = &mut after["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[TEMPLATE_GENERATION] = json!(number.to_string());
}

/// Moves the `stringData` of a Secret, which only clients write, into its `data`.
pub(crate) fn keep_string_data(resource: &Resource, object: &mut Value) {
    if !resource.is("", "secrets") {
        return;
    }
    let Some(members) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = members.remove("stringData") else { return };
    let data = members.entry("data").or_insert_with(|| json!({}));
    if data.is_null() {
        *data = json!({});
    }
    if let Some(data) = data.as_object_mut() {
        let encoded = |text: &Value| STANDARD.encode(text.as_str().unwrap_or_default());
        data.extend(texts.iter().map(|(key, text)| (key.clone(), json!(encoded(text)))));
    }
}

/// Makes `kubernetes` the only finalizer in the spec of a Namespace, which so stays until its objects are gone; does
/// nothing for other kinds, and without a spec.
pub(crate) fn keep_by_kubernetes(resource: &Resource, object: &mut Value) {
    if resource.is("", "namespaces")
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.insert("finalizers".to_owned(), json!(["kubernetes"]));
    }
}

/// Returns true if a deletion may remove the object at once: it has no finalizers, a Namespace none in its spec either,
/// and no grace period above 0.
pub(crate) fn is_free(resource: &Resource, object: &Value) -> bool {
    let none = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    none(&object["metadata"]["finalizers"])
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && (!resource.is("", "namespaces") || none(&object["spec"]["finalizers"]))
}

/// Fails with 422 if `after` has finalizers that `before`, an object that is being deleted, does not have.
pub(crate) fn check_finalizers(target: &Target, before: &Value, after: &Value) -> Answered<()> {
    let of = |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let old = of(before);
    let new: Vec<String> =
        of(after).iter().filter(|name| !old.contains(name)).map(Value::to_string).collect();
    if new.is_empty() {
        return Ok(());
    }
    let what = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        new.join(", ")
    );
    Err(target.invalid(&target.name, vec![Cause::forbidden("metadata.finalizers", &what)]))
}

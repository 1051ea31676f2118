//! The set as a whole: scopes of kinds, namespaces, and objects declared twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;
use taffrail_object::{GroupKind, ObjectKey, kinds};

use super::errors::{ManifestErrorKind, ManifestErrors};
use super::near::{nearest, shown};
use super::objects::{Draft, Found};
use super::options::Setting;
use super::{DeclaredObject, DeclaredSet, FileLine, KindScope};

/// Returns the scope of a kind that every API server has; `None` for other kinds. For sets that are read without a
/// cluster.
pub fn built_in_scope(kind: &GroupKind) -> Option<KindScope> {
    kinds::is_built_in_namespaced(&kind.group, &kind.kind).map(scope)
}

fn scope(is_namespaced: bool) -> KindScope {
    if is_namespaced { KindScope::Namespaced } else { KindScope::Cluster }
}

/// Gives each object the namespace that the scope of its kind demands; returns all objects, or all errors by file and
/// line.
pub(super) fn finish(
    mut found: Found,
    default_namespace: &str,
    scope_of: &dyn Fn(&GroupKind) -> Option<KindScope>,
) -> Result<DeclaredSet, ManifestErrors> {
    let drafts = std::mem::take(&mut found.drafts);
    let defined = defined_kinds(&drafts, &mut found);
    let mut first: HashMap<ObjectKey, FileLine> = HashMap::with_capacity(drafts.len());
    let mut objects = Vec::with_capacity(drafts.len());
    for mut draft in drafts {
        let kind = draft.key.group_kind();
        let Some(scope) = defined.get(&kind).copied().or_else(|| scope_of(&kind)) else {
            let told = draft.told();
            found.fail(draft.place, Some(told), unknown(kind, &defined));
            continue;
        };
        set_namespace(&mut draft, scope, default_namespace);
        resolve(&mut draft, &mut found, &defined, scope_of);
        // The server gives each object with a generated name another one.
        if draft.generate_name.is_none() {
            match first.entry(draft.key.clone()) {
                Entry::Vacant(entry) => drop(entry.insert(draft.place.clone())),
                Entry::Occupied(entry) => {
                    let (told, first) = (draft.told(), entry.get().clone());
                    found.fail(draft.place, Some(told), ManifestErrorKind::Duplicate { first });
                    continue;
                }
            }
        }
        let Draft { key, api_version, generate_name, value, place, options, .. } = draft;
        objects.push(DeclaredObject { key, api_version, generate_name, value, place, options });
    }
    if found.errors.is_empty() {
        return Ok(DeclaredSet { objects, warnings: found.warnings });
    }
    // Errors of one file stay together: the first of each file decides about their order.
    let mut order = HashMap::new();
    for error in &found.errors {
        let next = order.len();
        order.entry(error.place.file.clone()).or_insert(next);
    }
    let mut errors = found.errors;
    errors.sort_by_key(|error| (order.get(&error.place.file).copied(), error.place.line));
    Err(ManifestErrors { errors, more: found.more })
}

/// Returns the scopes of the kinds that the set's own CRDs define; adds an error for a CRD without a valid scope.
fn defined_kinds(drafts: &[Draft], found: &mut Found) -> HashMap<GroupKind, KindScope> {
    let mut defined = HashMap::new();
    for draft in drafts.iter().filter(|draft| is_definition(&draft.key)) {
        let text = |path: &str| draft.value.pointer(path).and_then(Value::as_str);
        let scope = match text("/spec/scope") {
            Some("Namespaced") => KindScope::Namespaced,
            Some("Cluster") => KindScope::Cluster,
            _ => {
                let place = FileLine { line: draft.scope_line, ..draft.place.clone() };
                found.fail(place, Some(draft.told()), ManifestErrorKind::CrdScope);
                // The CRD is the error, and not its objects as well.
                KindScope::Namespaced
            }
        };
        if let Some(kind) = defined_kind(&draft.key, &draft.value) {
            defined.insert(kind, scope);
        }
    }
    defined
}

/// Returns true for the key of a CustomResourceDefinition.
pub(crate) fn is_definition(key: &ObjectKey) -> bool {
    (&*key.group, &*key.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// Returns the kind that a CustomResourceDefinition defines; `None` for other objects, and for one that does not name it.
pub(crate) fn defined_kind(key: &ObjectKey, value: &Value) -> Option<GroupKind> {
    let text = |path: &str| value.pointer(path)?.as_str();
    is_definition(key).then(|| Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?)))?
}

/// Sets or removes the namespace in the key and the value of an object.
fn set_namespace(draft: &mut Draft, scope: KindScope, default_namespace: &str) {
    match scope {
        KindScope::Cluster => draft.key.namespace.clear(),
        KindScope::Namespaced if draft.key.namespace.is_empty() => {
            draft.key.namespace = default_namespace.to_owned();
        }
        KindScope::Namespaced => return,
    }
    let Some(Value::Object(metadata)) = draft.value.get_mut("metadata") else { return };
    match scope {
        KindScope::Cluster => drop(metadata.remove("namespace")),
        KindScope::Namespaced => {
            drop(metadata.insert("namespace".to_owned(), default_namespace.into()));
        }
    }
}

/// Completes what options of an object state by its namespace: the sources of its fields, and the names of its groups. Adds an
/// error for each that there is not.
fn resolve(
    draft: &mut Draft,
    found: &mut Found,
    defined: &HashMap<GroupKind, KindScope>,
    scope_of: &dyn Fn(&GroupKind) -> Option<KindScope>,
) {
    let mut errors = Vec::new();
    if let Some(Setting { value, line, .. }) = &mut draft.options.substitutions {
        for substitution in value {
            let kind = substitution.source_kind();
            match defined.get(&kind).copied().or_else(|| scope_of(&kind)) {
                Some(scope) => substitution.set_namespace(scope, &draft.key.namespace),
                None => errors.push((*line, unknown(kind, defined))),
            }
        }
    }
    let changes = &draft.options.changes;
    let groups = changes.groups.iter().map(|it| (&it.value, it.stated_by, it.line));
    let of_rules = changes.rules.iter().map(|it| (&it.value.group, it.stated_by, it.line));
    let defines = defined_kind(&draft.key, &draft.value);
    for (group, annotation, line) in groups.chain(of_rules) {
        if let Err(reason) = group.on(&draft.key, defines.as_ref()) {
            errors.push((line, reason.of(annotation, group)));
        }
    }
    for (line, kind) in errors {
        let place = FileLine { line, ..draft.place.clone() };
        found.fail(place, Some(draft.told()), kind);
    }
}

fn unknown(kind: GroupKind, defined: &HashMap<GroupKind, KindScope>) -> ManifestErrorKind {
    let mut own: Vec<&GroupKind> = defined.keys().collect();
    own.sort_unstable();
    let built_in = kinds::built_in().iter().map(|kind| kind.kind);
    let near = nearest(&kind.kind, built_in.chain(own.iter().map(|kind| &*kind.kind)));
    let nearest = near.map(|near| {
        let of_built_in = kinds::built_in().iter().find(|kind| kind.kind == near);
        match (of_built_in, own.iter().find(|kind| kind.kind == near)) {
            (Some(built_in), _) if built_in.group.is_empty() => format!("{near} of {}", built_in.version),
            (Some(built_in), _) => format!("{near} of {}/{}", built_in.group, built_in.version),
            (None, Some(own)) => format!("{near} of {}", own.group),
            (None, None) => near.to_owned(),
        }
    });
    let GroupKind { group, kind } = kind;
    ManifestErrorKind::UnknownKind {
        group: shown(&group).into_owned(),
        kind: shown(&kind).into_owned(),
        nearest,
    }
}

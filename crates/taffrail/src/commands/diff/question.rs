//! The manifests, and how each of their objects is compared with a live one, from whatever that was read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use taffrail_api::{DiffRow, ErrorRow};
use taffrail_cluster::OpenApiCache;
use taffrail_engine::Types;
use taffrail_merge::Type;
use taffrail_object::{GroupKind, ObjectKey};
use taffrail_plan::diff::{DiffInput, DiffOptions, DryRun, IgnoreRules, NoDryRun, diff};
use taffrail_plan::manifests::{
    self, ApplyMode, DeclaredObject, DeclaredSet, KindScope, ManifestErrorKind, ManifestErrors, ManifestFile,
};

use super::{ReadFile, rows};
use crate::command_error::CommandError;
use crate::jq_worker::JqWorker;
use crate::reasons::{INVALID_MANIFEST, NO_OBJECTS};

/// The question to all clusters: the manifests, and how they are compared.
pub(in crate::commands) struct Question {
    pub(in crate::commands) files: Vec<ReadFile>,
    /// The manifests of an earlier time.
    pub(in crate::commands) before: Before,
    /// True if manifests without an object are no error.
    pub(in crate::commands) may_be_empty: bool,
    /// The namespace of objects without one; `None` for that of the context, `default` in a dump.
    pub(in crate::commands) namespace: Option<String>,
    pub(in crate::commands) manager: String,
    pub(in crate::commands) marks: ToolMarks,
    pub(in crate::commands) ignored: Arc<Ignored>,
    /// The annotations whose values are masked.
    pub(in crate::commands) masked: BTreeSet<String>,
    pub(in crate::commands) includes_additions: bool,
    pub(in crate::commands) jq: Arc<JqWorker>,
    /// The schemas that were read: clusters of one version have equal ones.
    pub(in crate::commands) schemas: Arc<OpenApiCache>,
}

/// The fields that do not count as differences, by a file of rules.
#[derive(Default)]
pub(in crate::commands) struct Ignored {
    pub(in crate::commands) rules: IgnoreRules,
    /// True if the rules of aggregated ClusterRoles do not count.
    pub(in crate::commands) aggregated_roles: bool,
}

/// The manifests of an earlier time, with which those of now are compared beforehand.
#[derive(Default)]
pub(in crate::commands) struct Before {
    /// The files that have changed since, as they were.
    pub(in crate::commands) files: Vec<ReadFile>,
    /// The paths of all files that have changed since.
    pub(in crate::commands) changed: BTreeSet<String>,
    /// True if the answer names the existing objects that only these manifests declare.
    pub(in crate::commands) asks_what_is_left: bool,
}

/// The labels and the annotation that a delivery tool adds to each object that it applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::commands) struct ToolMarks {
    /// Labels, by name.
    pub(in crate::commands) labels: BTreeMap<&'static str, String>,
    /// The beginning of Argo CD's annotation `tracking-id`, which names the app; `None` if it is not added.
    pub(in crate::commands) tracking: Option<String>,
}

impl ToolMarks {
    fn put_on(&self, object: &mut DeclaredObject) {
        let ObjectKey { group, kind, namespace, name } = &object.key;
        let tracking =
            self.tracking.iter().map(|app| (TRACKING, format!("{app}:{group}/{kind}:{namespace}/{name}")));
        let labels = self.labels.iter().map(|(label, value)| ("labels", *label, value.clone()));
        let marks: Vec<_> =
            labels.chain(tracking.map(|(mark, value)| ("annotations", mark, value))).collect();
        let Some(metadata) = object.value.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        for (part, mark, value) in marks {
            let part = metadata.entry(part).or_insert_with(|| Value::Object(serde_json::Map::new()));
            if part.is_null() {
                *part = Value::Object(serde_json::Map::new());
            }
            if let Some(part) = part.as_object_mut() {
                part.insert(mark.to_owned(), Value::String(value));
            }
        }
    }
}

/// The annotation by which Argo CD knows its objects.
pub(in crate::commands) const TRACKING: &str = "argocd.argoproj.io/tracking-id";

/// The answer of one cluster.
pub(in crate::commands) struct ClusterDiff {
    pub(in crate::commands) cluster: String,
    pub(in crate::commands) rows: Vec<DiffRow>,
    pub(in crate::commands) errors: Vec<ErrorRow>,
    pub(in crate::commands) warnings: Vec<CommandError>,
    /// The number of objects that an apply leaves alone.
    pub(in crate::commands) not_compared: usize,
    /// The objects that the manifests declare, also those that are not compared; empty if the manifests are wrong.
    pub(in crate::commands) declared: BTreeSet<ObjectKey>,
    /// The existing objects that only the manifests of an earlier time declare.
    pub(in crate::commands) left: Vec<ObjectKey>,
    /// The objects whose manifests are as at the earlier time.
    pub(in crate::commands) same: BTreeSet<ObjectKey>,
}

impl ClusterDiff {
    pub(in crate::commands) fn new(cluster: String) -> ClusterDiff {
        ClusterDiff {
            cluster,
            rows: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            not_compared: 0,
            declared: BTreeSet::new(),
            left: Vec::new(),
            same: BTreeSet::new(),
        }
    }

    /// Adds an error about the cluster as a whole, or about a part of it.
    pub(in crate::commands) fn fail(&mut self, scope: String, reason: String, message: String) {
        self.errors.push(ErrorRow { cluster: self.cluster.clone(), scope, reason, message });
    }

    /// Returns the warning that some objects are not compared, if there are any.
    pub(in crate::commands) fn left_alone(&self) -> Option<String> {
        match self.not_compared {
            0 => None,
            1 => Some("1 hook or object that is never applied is not compared".to_owned()),
            number => Some(format!("{number} hooks or objects that are never applied are not compared")),
        }
    }

    /// Reads the manifests as a cluster takes them, where `scope_of` returns the scope of a kind, and an object without a
    /// namespace is in `namespace`; `None`, with the errors in this answer, if they are wrong or declare nothing. Objects of
    /// kinds that nobody has are left out, with an error.
    pub(in crate::commands) fn read(
        &mut self,
        question: &Question,
        namespace: &str,
        scope_of: &dyn Fn(&GroupKind) -> Option<KindScope>,
    ) -> Option<DeclaredSet> {
        let namespace = question.namespace.as_deref().unwrap_or(namespace);
        let (mut set, unknown) = match manifests_of(&question.files, namespace, scope_of) {
            Ok(set) => (set, BTreeSet::new()),
            Err(errors) => {
                self.errors.extend(told(&self.cluster, &errors));
                // What is wrong with the other objects is told at once.
                let unknown = unknown_kinds(&errors)?;
                let any_scope = |kind: &GroupKind| scope_of(kind).or(Some(KindScope::Namespaced));
                (manifests_of(&question.files, namespace, &any_scope).ok()?, unknown)
            }
        };
        self.declared = set.objects.iter().map(|object| object.key.clone()).collect();
        self.compare_with_before(question, &set, namespace, scope_of);
        set.objects.retain(|object| !unknown.contains(&object.key.group_kind()));
        if set.objects.is_empty() && unknown.is_empty() && self.left.is_empty() && !question.may_be_empty {
            // An empty input is rather a broken pipe than a set of nothing.
            let message = "there are no objects in the manifests".to_owned();
            self.fail("manifests".to_owned(), NO_OBJECTS.to_owned(), message);
            return None;
        }
        self.warnings = set.warnings.iter().map(|it| CommandError::unreadable(it).harmless()).collect();
        let declared = set.objects.len();
        set.objects.retain(is_applied);
        self.not_compared = declared - set.objects.len();
        set.objects.iter_mut().for_each(|object| question.marks.put_on(object));
        Some(set)
    }
}

impl ClusterDiff {
    /// Finds the objects that only the manifests of an earlier time declare, and those that are declared as then.
    fn compare_with_before(
        &mut self,
        question: &Question,
        set: &DeclaredSet,
        namespace: &str,
        scope_of: &dyn Fn(&GroupKind) -> Option<KindScope>,
    ) {
        let Before { files, changed, asks_what_is_left } = &question.before;
        if changed.is_empty() {
            return;
        }
        let before = match files.is_empty() {
            true => DeclaredSet::default(),
            // What is wrong with manifests of another time concerns nobody any more.
            false => manifests_of(files, namespace, scope_of).unwrap_or_default(),
        };
        let values: HashMap<&ObjectKey, &Value> =
            before.objects.iter().map(|object| (&object.key, &object.value)).collect();
        let is_same = |object: &&DeclaredObject| match values.get(&object.key) {
            Some(before) => **before == object.value,
            None => !changed.contains(&*object.place.file),
        };
        self.same = set.objects.iter().filter(is_same).map(|object| object.key.clone()).collect();
        if *asks_what_is_left {
            self.left = before.objects.into_iter().map(|object| object.key).collect();
            self.left.retain(|key| !self.declared.contains(key));
        }
    }
}

/// Returns the kinds that neither the cluster nor the manifests have; `None` if anything else is wrong with the manifests.
fn unknown_kinds(errors: &ManifestErrors) -> Option<BTreeSet<GroupKind>> {
    let kinds = errors.errors.iter().map(|error| match &error.kind {
        ManifestErrorKind::UnknownKind { group, kind, .. } => Some(GroupKind::new(group, kind)),
        _ => None,
    });
    kinds.collect::<Option<_>>().filter(|_| errors.more == 0)
}

fn manifests_of(
    files: &[ReadFile],
    namespace: &str,
    scope_of: &dyn Fn(&GroupKind) -> Option<KindScope>,
) -> Result<DeclaredSet, ManifestErrors> {
    let files = files.iter().map(|file| ManifestFile { path: &file.path, content: &file.content });
    manifests::read(&files.collect::<Vec<_>>(), namespace, scope_of)
}

/// Returns true if a sync applies an object: no hook, and nothing that its options leave alone.
fn is_applied(object: &DeclaredObject) -> bool {
    let is_ignored = object.options.apply_mode.as_ref().is_some_and(|mode| mode.value == ApplyMode::Ignore);
    !object.options.is_hook() && !object.options.is_skipped() && !is_ignored
}

fn told(cluster: &str, errors: &ManifestErrors) -> Vec<ErrorRow> {
    let row = |scope: String, message: String| ErrorRow {
        cluster: cluster.to_owned(),
        scope,
        reason: INVALID_MANIFEST.to_owned(),
        message,
    };
    let each = errors.errors.iter().map(|error| {
        let object = error.object.as_ref().map(|object| format!("{object}: ")).unwrap_or_default();
        row(error.place.to_string(), format!("{object}{} ({})", error.kind, error.hint()))
    });
    let more =
        (errors.more > 0).then(|| row("manifests".to_owned(), format!("{} further errors", errors.more)));
    each.chain(more).collect()
}

impl Question {
    /// Compares an object of the manifests with `live`, or with the answer of the API server to a dry run.
    pub(in crate::commands) fn row(
        &self,
        cluster: &str,
        object: &DeclaredObject,
        live: Option<&Value>,
        dry_run: &DryRun,
        types: &Types,
    ) -> DiffRow {
        let (schema, of) = types.find(object);
        // It is created if it does not exist, and never changed.
        let is_final =
            object.options.apply_mode.as_ref().is_some_and(|mode| mode.value == ApplyMode::IfNotPresent);
        let (wanted, dry_run) = match live {
            Some(live) if is_final => (live, &DryRun::NotRun(NoDryRun::Offline)),
            _ => (&object.value, dry_run),
        };
        let options = DiffOptions {
            includes_additions: self.includes_additions,
            masked_annotations: self.masked.clone(),
            ignores_aggregated_rules: self.ignored.aggregated_roles,
        };
        let compared = diff(&DiffInput {
            wanted: Some(wanted),
            live,
            dry_run,
            of: Type::new(schema, &of),
            manager: &self.manager,
            applied: None,
            rules: &self.ignored.rules,
            jq: Some(&*self.jq),
            options: &options,
        });
        rows::row(cluster, object, compared)
    }
}

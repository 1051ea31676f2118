//! Reads manifests as a cluster takes them, and compares each object with the live one.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use futures::stream::FuturesOrdered;
use taffrail_api::{DiffRow, ErrorRow};
use taffrail_cluster::{Cluster, Discovery, OpenApiCache};
use taffrail_merge::{GroupVersionKind, OpenApi, Schema, Type, TypeRef, built_in};
use taffrail_object::GroupKind;
use taffrail_observe::{ApplyAnswer, AskedApply, ClusterConnector, DeclaredManifest, Failure, ask_apply};
use taffrail_plan::diff::{DiffInput, DiffOptions, DryRun, IgnoreRules, NoDryRun, ToldConflict, diff};
use taffrail_plan::manifests::{
    self, ApplyMode, DeclaredObject, DeclaredSet, KindScope, ManifestErrors, ManifestFile,
};

use super::{ReadFile, rows};
use crate::command_error::CommandError;

/// Maximum number of objects about which one API server is asked at one time.
const AT_ONCE: usize = 8;

/// The question to all clusters: the manifests, and how they are compared.
pub(super) struct Question {
    pub(super) files: Vec<ReadFile>,
    pub(super) namespace: Option<String>,
    pub(super) manager: String,
    pub(super) rules: IgnoreRules,
    pub(super) includes_additions: bool,
    /// The schemas that were read: clusters of one version have equal ones.
    pub(super) schemas: OpenApiCache,
}

/// The answer of one cluster.
pub(super) struct ClusterDiff {
    pub(super) cluster: String,
    pub(super) rows: Vec<DiffRow>,
    pub(super) errors: Vec<ErrorRow>,
    pub(super) warnings: Vec<CommandError>,
    /// The number of objects that an apply leaves alone.
    pub(super) not_compared: usize,
}

/// Compares all objects of the manifests with those of a cluster.
pub(super) async fn compare(connector: &ClusterConnector, question: &Question) -> ClusterDiff {
    let cluster = connector.member.name.clone();
    let mut answer =
        ClusterDiff { cluster, rows: Vec::new(), errors: Vec::new(), warnings: Vec::new(), not_compared: 0 };
    if let Err(Failure { reason, message }) = compare_into(&mut answer, connector, question).await {
        let (cluster, scope) = (answer.cluster.clone(), "cluster".to_owned());
        answer.errors.push(ErrorRow { cluster, scope, reason, message });
    }
    answer
}

async fn compare_into(
    answer: &mut ClusterDiff,
    connector: &ClusterConnector,
    question: &Question,
) -> Result<(), Failure> {
    let cluster = connector.connect().await?;
    let discovery = cluster.discover().await.map_err(|error| Failure::of_read(&error))?;
    let set = match read(question, &cluster, &discovery) {
        Ok(set) => set,
        Err(errors) => {
            answer.errors.extend(told(&answer.cluster, &errors));
            return Ok(());
        }
    };
    if set.objects.is_empty() {
        // An empty input is rather a broken pipe than a set of nothing.
        let (cluster, scope) = (answer.cluster.clone(), "manifests".to_owned());
        let (reason, message) = ("NoObjects".to_owned(), "there are no objects in the manifests".to_owned());
        answer.errors.push(ErrorRow { cluster, scope, reason, message });
        return Ok(());
    }
    answer.warnings = set.warnings.iter().map(|it| CommandError::unreadable(it).harmless()).collect();
    let (objects, left_alone): (Vec<&DeclaredObject>, Vec<&DeclaredObject>) =
        set.objects.iter().partition(|object| is_applied(object));
    answer.not_compared = left_alone.len();
    let types = Types::of(&cluster, &objects, &question.schemas).await;
    let coming = Coming::of(&objects);
    let asked = Asked { cluster: &cluster, discovery: &discovery, question, types: &types, coming: &coming };
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    let (mut waiting, mut running) = (objects.iter(), FuturesOrdered::new());
    loop {
        while running.len() < AT_ONCE {
            let Some(object) = waiting.next() else { break };
            running.push_back(asked.row(&answer.cluster, object));
        }
        match running.next().await {
            Some(Ok(row)) => rows.push(row),
            Some(Err(error)) => errors.push(error),
            None => break,
        }
    }
    drop(running);
    (answer.rows, answer.errors) = (rows, errors);
    Ok(())
}

/// Returns true if a sync applies an object: no hook, and nothing that its options leave alone.
fn is_applied(object: &DeclaredObject) -> bool {
    let is_ignored = object.options.apply_mode.as_ref().is_some_and(|mode| mode.value == ApplyMode::Ignore);
    !object.options.is_hook() && !object.options.is_skipped() && !is_ignored
}

fn read(
    question: &Question,
    cluster: &Cluster,
    discovery: &Discovery,
) -> Result<DeclaredSet, ManifestErrors> {
    let files = question.files.iter().map(|file| ManifestFile { path: &file.path, content: &file.content });
    let files: Vec<ManifestFile<'_>> = files.collect();
    let scope_of = |kind: &GroupKind| {
        let served = discovery.kind(&kind.group, &kind.kind)?;
        Some(if served.preferred().namespaced { KindScope::Namespaced } else { KindScope::Cluster })
    };
    let namespace = question.namespace.as_deref().unwrap_or(cluster.namespace());
    manifests::read(&files, namespace, &scope_of)
}

fn told(cluster: &str, errors: &ManifestErrors) -> Vec<ErrorRow> {
    let row = |scope: String, message: String| ErrorRow {
        cluster: cluster.to_owned(),
        scope,
        reason: "InvalidManifest".to_owned(),
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

/// The namespaces and kinds that come with the manifests.
struct Coming {
    namespaces: BTreeSet<String>,
    /// The names of the CustomResourceDefinitions by the kinds that they define.
    kinds: BTreeMap<GroupKind, String>,
}

impl Coming {
    fn of(objects: &[&DeclaredObject]) -> Coming {
        let is = |object: &DeclaredObject, group: &str, kind: &str| {
            object.key.group == group && object.key.kind == kind
        };
        let namespaces = objects.iter().filter(|it| is(it, "", "Namespace")).map(|it| it.key.name.clone());
        let definitions =
            objects.iter().filter(|it| is(it, "apiextensions.k8s.io", "CustomResourceDefinition"));
        let kinds = definitions.filter_map(|it| {
            let text = |path: &str| it.value.pointer(path)?.as_str();
            let kind = GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?);
            Some((kind, it.key.name.clone()))
        });
        Coming { namespaces: namespaces.collect(), kinds: kinds.collect() }
    }

    /// Returns the object that must come before `object`; `None` if no manifest has it.
    fn before(&self, object: &DeclaredObject) -> Option<String> {
        let kind = self.kinds.get(&object.key.group_kind());
        let kind = kind.map(|name| format!("CustomResourceDefinition {name}"));
        let namespace = &object.key.namespace;
        kind.or_else(|| self.namespaces.contains(namespace).then(|| format!("Namespace {namespace}")))
    }
}

/// The types of the objects' kinds: those of the server, else those of Kubernetes itself, else the deduced one.
struct Types {
    /// Those of the server, by `apiVersion`.
    read: BTreeMap<String, OpenApi>,
    deduced: Schema,
}

impl Types {
    /// Reads the types that the server has of these objects. A document that cannot be read leaves its kinds to the types of
    /// Kubernetes itself, or deduced.
    async fn of(cluster: &Cluster, objects: &[&DeclaredObject], cache: &OpenApiCache) -> Types {
        let versions: BTreeSet<&str> = objects.iter().map(|object| &*object.api_version).collect();
        let mut types = Types { read: BTreeMap::new(), deduced: Schema::deduced() };
        let Ok(index) = cluster.open_api_index().await else { return types };
        for version in versions {
            let Ok(document) = cluster.open_api(&index, version, cache).await else { continue };
            if let Ok(read) = OpenApi::read(&document.document) {
                types.read.insert(version.to_owned(), read);
            }
        }
        types
    }

    /// Returns the schema and the type of an object in it.
    fn find(&self, object: &DeclaredObject) -> (&Schema, TypeRef) {
        let version = object.api_version.rsplit('/').next().unwrap_or_default();
        let kind = GroupVersionKind {
            group: object.key.group.clone(),
            version: version.to_owned(),
            kind: object.key.kind.clone(),
        };
        let known = [self.read.get(&object.api_version), Some(built_in())];
        let found = known.into_iter().flatten().find_map(|it| Some((&it.schema, it.type_of(&kind)?)));
        found.unwrap_or_else(|| (&self.deduced, TypeRef::named(Schema::DEDUCED)))
    }
}

struct Asked<'a> {
    cluster: &'a Cluster,
    discovery: &'a Discovery,
    question: &'a Question,
    types: &'a Types,
    coming: &'a Coming,
}

impl Asked<'_> {
    /// Compares one object.
    async fn row(&self, cluster: &str, object: &DeclaredObject) -> Result<DiffRow, ErrorRow> {
        let declared =
            DeclaredManifest { key: &object.key, api_version: &object.api_version, value: &object.value };
        let asked = ask_apply(self.cluster, self.discovery, declared, &self.question.manager).await;
        let AskedApply { live, answer } = asked.map_err(|Failure { reason, message }| ErrorRow {
            cluster: cluster.to_owned(),
            scope: format!("{} {}", object.key.kind, object.key.path()),
            reason,
            message,
        })?;
        let dry_run = match answer {
            ApplyAnswer::Object { object, conflicts } => {
                let conflicts = conflicts.into_iter().map(|it| ToldConflict { path: it.path }).collect();
                DryRun::Answered { object, conflicts }
            }
            ApplyAnswer::NoRight => DryRun::NotRun(NoDryRun::NoRight),
            ApplyAnswer::NoDryRun => DryRun::NotRun(NoDryRun::Webhook),
            ApplyAnswer::NotFound(message) => match self.coming.before(object) {
                Some(needs) => DryRun::CreatedLater { needs },
                None => DryRun::Refused { message },
            },
            ApplyAnswer::Refused(message) => DryRun::Refused { message },
        };
        let (schema, of) = self.types.find(object);
        let options =
            DiffOptions { includes_additions: self.question.includes_additions, ..DiffOptions::default() };
        let compared = diff(&DiffInput {
            wanted: Some(&object.value),
            live: live.as_ref(),
            dry_run: &dry_run,
            of: Type::new(schema, &of),
            manager: &self.question.manager,
            applied: None,
            rules: &self.question.rules,
            jq: None,
            options: &options,
        });
        Ok(rows::row(cluster, object, compared))
    }
}

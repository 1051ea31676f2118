//! Compares declared objects with the live ones, by a dry run of each apply.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::StreamExt as _;
use serde_json::Value;
use taffrail_cluster::{
    ApplyRequest, Cluster, Discovery, FieldConflict, OpenApiCache, ReadError, Reason, WriteError, chain,
};
use taffrail_merge::{FieldSet, GroupVersionKind, OpenApi, Schema, Type, TypeRef, built_in};
use taffrail_object::{GroupKind, ObjectKey};
use taffrail_observe::{ApplyAnswer, AskedApply, DeclaredManifest, Failure, ask_apply};
use taffrail_plan::diff::{
    DiffBasis, DiffInput, DiffOptions, DiffOutcome, DryRun, IgnoreRules, NoDryRun, ObjectDiff, ToldConflict,
    diff,
};
use taffrail_plan::manifests::{ApplyMode, DeclaredObject};

use crate::error::{EngineError, RefusedObject};
use crate::migration::Predecessors;
use crate::options::{WriteOptions, conflict_text, is_immutable, may_be_immutable};

/// Maximum number of objects about which one API server is asked at one time.
const AT_ONCE: usize = 16;

/// The types of the objects' kinds: those of the server, else those of Kubernetes itself, else the deduced one.
pub struct Types {
    /// The types of the server, by `apiVersion`.
    read: BTreeMap<String, OpenApi>,
    deduced: Schema,
}

impl Types {
    /// Returns the types of Kubernetes itself, and the deduced one.
    pub fn built_in() -> Types {
        Types { read: BTreeMap::new(), deduced: Schema::deduced() }
    }

    /// Reads the types that the server has of these objects. A document that cannot be read leaves its kinds to the types of
    /// Kubernetes itself, or deduced.
    pub async fn of(cluster: &Cluster, objects: &[DeclaredObject], cache: &OpenApiCache) -> Types {
        let versions: BTreeSet<&str> = objects.iter().map(|object| &*object.api_version).collect();
        let mut types = Types::built_in();
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
    pub fn find(&self, object: &DeclaredObject) -> (&Schema, TypeRef) {
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

/// The namespaces and kinds that come with the manifests.
pub struct Coming {
    namespaces: BTreeSet<String>,
    /// The names of the CustomResourceDefinitions by the kinds that they define.
    kinds: BTreeMap<GroupKind, String>,
}

impl Coming {
    /// Returns the namespaces and kinds that these objects are or define.
    pub fn of(objects: &[DeclaredObject]) -> Coming {
        let is_namespace = |it: &&DeclaredObject| it.key.group.is_empty() && it.key.kind == "Namespace";
        let namespaces = objects.iter().filter(is_namespace).map(|it| it.key.name.clone());
        let kinds = objects.iter().filter_map(|it| Some((it.defines()?, it.key.name.clone())));
        Coming { namespaces: namespaces.collect(), kinds: kinds.collect() }
    }

    /// Returns the object that must come before `object`; `None` if no manifest has it.
    pub fn before(&self, object: &DeclaredObject) -> Option<String> {
        let kind = self.kinds.get(&object.key.group_kind());
        let kind = kind.map(|name| format!("CustomResourceDefinition {name}"));
        let namespace = &object.key.namespace;
        kind.or_else(|| self.namespaces.contains(namespace).then(|| format!("Namespace {namespace}")))
    }
}

/// Returns the dry run for a diff, by the API server's answer; what the server does not know may come with the manifests.
pub fn dry_run_of(answer: ApplyAnswer, object: &DeclaredObject, coming: &Coming) -> DryRun {
    match answer {
        ApplyAnswer::Object { object, conflicts } => DryRun::Answered { object, conflicts: told(&conflicts) },
        ApplyAnswer::NoRight => DryRun::NotRun(NoDryRun::NoRight),
        ApplyAnswer::NoDryRun => DryRun::NotRun(NoDryRun::Webhook),
        ApplyAnswer::NotFound(message) => match coming.before(object) {
            Some(needs) => DryRun::CreatedLater { needs },
            None => DryRun::Refused { message },
        },
        ApplyAnswer::Refused(message) => DryRun::Refused { message },
    }
}

fn told(conflicts: &[FieldConflict]) -> Vec<ToldConflict> {
    let told = conflicts.iter().map(|it| ToldConflict {
        path: it.path.clone(),
        manager: it.owner.as_ref().map(|owner| owner.manager.clone()),
    });
    told.collect()
}

/// A declared object beside the live one.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// The differences; `None` for an object that is not applied, such as a hook.
    diff: Option<ObjectDiff>,
    /// The UID of the live object.
    uid: Option<String>,
    /// The managers whose fields go over to ours before the apply.
    predecessors: Vec<String>,
    /// True if the API server refuses the change in place, and it is allowed to delete and create the object.
    pub(crate) is_replaced: bool,
}

impl Comparison {
    /// Returns the UID of the live object if nothing differs.
    pub(crate) fn unchanged(&self) -> Option<&str> {
        let is_equal = self.diff.as_ref().is_some_and(|diff| diff.outcome == DiffOutcome::Unchanged);
        self.uid.as_deref().filter(|_| is_equal)
    }

    /// Returns the differences; `None` for an object that is not applied, such as a hook.
    pub(crate) fn diff(&self) -> Option<&ObjectDiff> {
        self.diff.as_ref()
    }

    /// Returns the managers whose fields go over to ours before the apply.
    pub(crate) fn predecessors(&self) -> &[String] {
        &self.predecessors
    }

    /// Returns true if the API server has answered about the object as it is sent: its kind and namespace were there.
    pub(crate) fn is_fresh(&self) -> bool {
        let basis = self.diff.as_ref().map(|diff| &diff.basis);
        basis
            .is_some_and(|basis| !matches!(basis, DiffBasis::CreatedLater { .. } | DiffBasis::Refused { .. }))
            || self.is_replaced
    }

    /// Returns the UID of the live object.
    pub(crate) fn live_uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }
}

/// The manifests of the last run of a set, by which drift is told from a conflict.
#[derive(Default)]
pub(crate) struct LastApplied(HashMap<ObjectKey, Value>);

impl LastApplied {
    /// Adds the objects of an earlier run, but for those that a later one applied.
    pub(crate) fn add_earlier(&mut self, objects: impl IntoIterator<Item = DeclaredObject>) {
        for object in objects {
            self.0.entry(object.key).or_insert(object.value);
        }
    }

    /// Returns the fields of an object that the set applied last time.
    pub(crate) fn fields(&self, key: &ObjectKey, of: Type<'_>) -> Option<FieldSet> {
        of.field_set(self.0.get(key)?).ok()
    }
}

/// The parts of a comparison that all objects share.
pub(crate) struct Comparer<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) discovery: &'a Discovery,
    pub(crate) options: &'a WriteOptions,
    pub(crate) types: &'a Types,
    pub(crate) coming: &'a Coming,
    pub(crate) last: &'a LastApplied,
}

impl Comparer<'_> {
    /// Compares objects, those for which `is_applied` is false left out.
    ///
    /// # Errors
    /// Returns all objects that the API server would refuse, or about which it does not answer.
    pub(crate) async fn compare_all(
        &self,
        objects: &[DeclaredObject],
        is_applied: &dyn Fn(&DeclaredObject) -> bool,
    ) -> Result<Vec<Comparison>, EngineError> {
        let asked = objects.iter().map(|object| {
            let is_applied = is_applied(object);
            async move {
                match is_applied {
                    true => self.compare(object).await,
                    false => Ok(Comparison::default()),
                }
            }
        });
        let all: Vec<Result<Comparison, Failure>> =
            futures::stream::iter(asked).buffered(AT_ONCE).collect().await;
        let (mut compared, mut refused) = (Vec::with_capacity(all.len()), Vec::new());
        for (object, result) in objects.iter().zip(all) {
            match result {
                Ok(comparison) => compared.push(comparison),
                Err(Failure { reason, message }) => refused.push(RefusedObject {
                    key: object.key.clone(),
                    place: object.place.clone(),
                    reason,
                    message,
                }),
            }
        }
        if refused.is_empty() { Ok(compared) } else { Err(EngineError::Refused(refused)) }
    }

    /// Compares one object; an error if an apply would be refused.
    pub(crate) async fn compare(&self, object: &DeclaredObject) -> Result<Comparison, Failure> {
        let declared =
            DeclaredManifest { key: &object.key, api_version: &object.api_version, value: &object.value };
        let AskedApply { live, answer } =
            ask_apply(self.cluster, self.discovery, declared, &self.options.manager).await?;
        let uid = live.as_ref().and_then(|live| Some(live.pointer("/metadata/uid")?.as_str()?.to_owned()));
        let mode = object.options.apply_mode.as_ref().map(|mode| mode.value);
        let is_final = mode == Some(ApplyMode::IfNotPresent) && live.is_some();
        let conflicts = match &answer {
            ApplyAnswer::Object { conflicts, .. } if !is_final => conflicts.clone(),
            _ => Vec::new(),
        };
        let managers = live.as_ref().and_then(|live| live.pointer("/metadata/managedFields")?.as_array());
        let predecessors = match managers {
            Some(managers) if !is_final => {
                Predecessors::of(object, self.options.dialect).names(managers, &self.options.manager)
            }
            _ => Vec::new(),
        };
        let dry_run = dry_run_of(answer, object, self.coming);
        let (schema, of) = self.types.find(object);
        let of = Type::new(schema, &of);
        let applied = self.last.fields(&object.key, of);
        let (wanted, dry_run) = match &live {
            Some(live) if is_final => (live, DryRun::NotRun(NoDryRun::Offline)),
            _ => (&object.value, dry_run),
        };
        let rules = IgnoreRules::default();
        let options = DiffOptions::default();
        let diff = tokio::task::block_in_place(|| {
            diff(&DiffInput {
                wanted: Some(wanted),
                live: live.as_ref(),
                dry_run: &dry_run,
                of,
                manager: &self.options.manager,
                applied: applied.as_ref(),
                rules: &rules,
                jq: None,
                options: &options,
            })
        });
        let mut comparison = Comparison { diff: None, uid, predecessors, is_replaced: false };
        let refusal = match &diff.basis {
            DiffBasis::Refused { message } => Some(message.clone()),
            DiffBasis::Merged { why: NoDryRun::NoRight } => {
                Some("you have no right to apply it: check with `kubectl auth can-i patch`".to_owned())
            }
            _ => None,
        };
        if let Some(message) = refusal {
            let replaces = self.options.replaces || object.options.force.as_ref().is_some_and(|it| it.value);
            let may_come_later =
                object.options.skip_dry_run_on_missing_resource.as_ref().is_some_and(|it| it.value)
                    && comparison.uid.is_none();
            let in_place = comparison.uid.is_some() && may_be_immutable(&message);
            if in_place && replaces {
                if let Some(message) = self.refused_anew(object, &message).await? {
                    return Err(Failure { reason: "Refused".to_owned(), message });
                }
                comparison.is_replaced = true;
            }
            if !comparison.is_replaced && !may_come_later {
                let hint = match in_place && is_immutable(&message) {
                    true => "; with --force Taffrail deletes the object and creates it again",
                    false => "",
                };
                return Err(Failure { reason: "Refused".to_owned(), message: format!("{message}{hint}") });
            }
        }
        let kept = self.options.refused_conflicts(&conflicts, applied.as_ref(), &comparison.predecessors);
        if !kept.is_empty() {
            return Err(Failure { reason: "Conflict".to_owned(), message: conflict_text(&kept) });
        }
        comparison.diff = Some(diff);
        Ok(comparison)
    }

    /// Returns the reason why the API server would refuse to create an object that it refuses to change with `message`; `None` if
    /// it would create it. It is asked under another name, since the object is still there.
    async fn refused_anew(&self, object: &DeclaredObject, message: &str) -> Result<Option<String>, Failure> {
        /// The kinds whose names say what they are.
        const NAMED: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];
        let kind = self.discovery.kind(&object.key.group, &object.key.kind);
        let version = object.api_version.rsplit('/').next().unwrap_or_default();
        let resource = kind.and_then(|kind| kind.in_version(version));
        let Some(resource) = resource.filter(|_| !NAMED.contains(&&*object.key.group)) else {
            return Ok(Some(message.to_owned()).filter(|message| !is_immutable(message)));
        };
        let start: String = object.key.name.chars().take(40).collect();
        let name = format!("{}-taffrail-dry-run", start.trim_end_matches(['-', '.']));
        let mut value = object.value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), Value::from(&*name));
        }
        let body = value.to_string();
        let request = ApplyRequest {
            resource: &resource,
            namespace: Some(&*object.key.namespace).filter(|_| resource.namespaced),
            name: &name,
            subresource: None,
            body: body.as_bytes(),
            manager: &self.options.manager,
            force: false,
            dry_run: true,
            // It is one of a declared set, and no message quotes it.
            allow_secret: true,
        };
        match self.cluster.apply(&request).await {
            Ok(_) => Ok(None),
            // The live object itself has the address or port.
            Err(WriteError::Invalid { message, .. }) if message.contains("already allocated") => Ok(None),
            Err(WriteError::Invalid { message, .. } | WriteError::UnknownField { message, .. }) => {
                Ok(Some(message.replace(&name, &object.key.name)))
            }
            Err(error) if error.is_missing_right() => Ok(Some(chain(&error))),
            Err(WriteError::Refused(error @ ReadError::Refused { code: 400..=499, .. }))
                if error.reason() != Reason::TooManyRequests =>
            {
                Ok(Some(chain(&error)))
            }
            Err(WriteError::Refused(error)) => {
                Err(Failure { reason: error.reason().as_str().to_owned(), message: chain(&error) })
            }
            // A quota counts the live object, too.
            Err(_) => Ok(None),
        }
    }
}

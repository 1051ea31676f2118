//! Creates, changes and deletes objects, as the registry of kube-apiserver does.

use std::sync::{Arc, MutexGuard};

use serde_json::{Value, json};

use crate::admission;
use crate::behaviour::Behaviour;
use crate::clock::{later, stamp};
use crate::crd;
use crate::defaults::default;
use crate::error::{Answered, ApiError, Cause};
use crate::immutable;
use crate::kept::texts_of;
use crate::kinds::Resource;
use crate::managed::{Writer, timeless};
use crate::patch::merge;
use crate::state::{Inner, User};
use crate::store::{Object, Store, Texts};
use crate::target::{Part, Target};
use crate::validate;

/// The maximum size of a stored object in bytes, etcd's `--max-request-bytes`. Kubernetes stores its own kinds as
/// Protobuf, which is a little shorter than the JSON that is measured here.
const MAX_STORED: usize = 1_572_864;

/// The options of a write request.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    /// The handling of fields that the schema does not have: ignore, warn or refuse.
    pub(crate) unknown_fields: UnknownFields,
    pub(crate) writer: Writer,
    /// The sender, whose permissions limit those that the write grants; `None` for the simulator's own controllers.
    pub(crate) user: Option<User>,
    /// The JSON merge patches by which webhooks change what is written.
    pub(crate) mutations: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum UnknownFields {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The result of a write: the object as the write left it, or with a dry run would leave it, and the warnings for the
/// client.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Arc<Object>,
    pub(crate) warnings: Vec<String>,
}

/// The handling of the dependents of a deleted object, as `propagationPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The options of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletion {
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) grace: Option<i64>,
    pub(crate) dry_run: bool,
}

/// The result of a deletion, which with a dry run is only computed: the object, and if it is gone.
#[derive(Debug)]
pub(crate) struct Deleted {
    pub(crate) object: Arc<Object>,
    /// True if the object was removed; false if it is only marked as being deleted.
    pub(crate) gone: bool,
}

/// Returns the stored object of a target, as it is and as a JSON tree; fails if it does not exist.
fn stored(store: &Store, target: &Target) -> Answered<(Arc<Object>, Value)> {
    let current = store.get(target.shelf, &target.key()).cloned();
    let current = current.ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
    let tree = target.tree(&current);
    Ok((current, tree))
}

impl Inner {
    /// Fails with 400 unless the body of a request is an object with the kind and `apiVersion` of its path, well-typed
    /// metadata and, for a built-in kind, well-typed spec and status. A body of a built-in kind may lack kind and
    /// `apiVersion`; both are then set. Removes nulls from the metadata, and a null spec or status of a built-in kind.
    pub(crate) fn check_kind(&self, target: &Target, body: &mut Value) -> Answered<()> {
        let resource = &target.resource;
        let (kind, api_version) =
            (texts_of(&body["kind"]).to_owned(), texts_of(&body["apiVersion"]).to_owned());
        let wanted = target.api_version();
        let fits = (kind.is_empty() && !resource.custom || kind == *resource.kind)
            && (api_version.is_empty() && !resource.custom || api_version == wanted);
        if !fits && self.does.on(Behaviour::RefuseOtherKind) {
            if resource.custom {
                let why = if api_version == wanted {
                    format!(
                        "the kind in the data ({kind}) does not match the expected kind ({})",
                        resource.kind
                    )
                } else {
                    format!(
                        "the API version in the data ({api_version}) does not match the expected API version ({wanted})"
                    )
                };
                return Err(ApiError::bad_request(why));
            }
            let (_, version) = crate::kinds::split_group_version(&api_version);
            let why = if kind == *resource.kind {
                let scheme = "pkg/runtime/scheme.go:111";
                format!("no kind {kind:?} is registered for version {api_version:?} in scheme {scheme:?}")
            } else {
                format!("converting ({version}.{kind}) to (core.{}): unknown conversion", resource.kind)
            };
            let message =
                format!("{kind} in version {version:?} cannot be handled as a {}: {why}", resource.kind);
            return Err(ApiError::bad_request(message));
        }
        if !body.is_object() {
            return Err(ApiError::bad_request(
                "json: cannot unmarshal value into Go value of type map[string]interface {}",
            ));
        }
        if let Some(members) = body.as_object_mut() {
            if !resource.custom {
                // The code below relies on these types.
                for part in ["spec", "status"] {
                    let found = members.get(part);
                    if found.is_some_and(Value::is_null) {
                        members.remove(part);
                    } else if found.is_some_and(|found| !found.is_object()) {
                        let kind = &resource.kind;
                        return Err(ApiError::bad_request(format!(
                            "{kind} in version {:?} cannot be handled as a {kind}: json: cannot unmarshal value into Go \
                             struct field {kind}.{part} of type v1.{kind}{part}",
                            target.version
                        )));
                    }
                }
            }
            members.insert("kind".to_owned(), json!(&*resource.kind));
            members.insert("apiVersion".to_owned(), json!(wanted));
            let metadata = members.entry("metadata").or_insert_with(|| json!({}));
            if !metadata.is_object() {
                *metadata = json!({});
            }
            if let Some(part) = admission::misshapen(metadata) {
                let message =
                    format!("json: cannot unmarshal value into Go struct field ObjectMeta.metadata.{part}");
                return Err(ApiError::bad_request(message));
            }
        }
        Ok(())
    }

    /// Creates an object from `body`: generates its name if asked, sets uid, creation time and generation, adds
    /// defaults and validates it; with a dry run it stores nothing. Fails if the object is invalid or exists, or if its
    /// namespace does not accept it.
    pub(crate) fn create(&self, target: &Target, body: Value, wanted: &WriteOptions) -> Answered<Written> {
        self.create_owned(target, body, wanted, None)
    }

    /// Creates an object like [`create`](Inner::create). With `owners` these are its field managers; without, the writer
    /// is the one.
    pub(crate) fn create_owned(
        &self,
        target: &Target,
        mut body: Value,
        wanted: &WriteOptions,
        owners: Option<Value>,
    ) -> Answered<Written> {
        self.check_kind(target, &mut body)?;
        let resource = target.resource.clone();
        let metadata = &mut body["metadata"];
        self.check_namespace(target, metadata)?;
        if metadata["resourceVersion"].as_str().is_some_and(|version| !version.is_empty())
            && self.does.on(Behaviour::CreateRefusesVersion)
        {
            return Err(ApiError::plain(500, "resourceVersion should not be set on objects to be created"));
        }
        let mut name = texts_of(&metadata["name"]).to_owned();
        let prefix = texts_of(&metadata["generateName"]).to_owned();
        if name.is_empty() && !prefix.is_empty() && self.does.on(Behaviour::GenerateName) {
            name = format!("{}{}", &prefix[..prefix.len().min(58)], self.letters(5));
            metadata["name"] = json!(name);
        }
        if name.is_empty() {
            if self.does.on(Behaviour::NameRequired) {
                let cause = Cause::required("metadata.name", "name or generateName is required");
                return Err(target.invalid("", vec![cause]));
            }
            name = self.letters(8);
            metadata["name"] = json!(name);
        }
        let mut target = target.clone();
        target.name = name.clone();
        if self.does.on(Behaviour::NameChecked) {
            let faults = admission::name_faults(&resource, &body["metadata"]["name"]);
            if !faults.is_empty() {
                return Err(target.invalid(&name, faults));
            }
        }
        let now = stamp(self.fleet.clock.now());
        let metadata = &mut body["metadata"];
        for key in [
            "selfLink",
            "managedFields",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
        ] {
            if let Some(members) = metadata.as_object_mut() {
                members.remove(key);
            }
        }
        if self.does.on(Behaviour::CreateStamps) || metadata["uid"].is_null() {
            metadata["uid"] = json!(self.uid());
            metadata["creationTimestamp"] = json!(now);
        }
        if resource.has_generation() && self.does.on(Behaviour::GenerationStarts) {
            metadata["generation"] = json!(1);
        }
        if resource.namespaced {
            metadata["namespace"] = json!(target.namespace);
        }
        if target.has_status() && self.does.on(Behaviour::CreateDropsStatus) {
            admission::fresh_status(&resource, &mut body);
        }
        let warnings = self.complete(&target, &Value::Null, &mut body, wanted)?;
        let faults = admission::metadata_faults(&resource, &body);
        if !faults.is_empty() && self.does.on(Behaviour::MetadataChecked) {
            return Err(target.invalid(&name, faults));
        }
        admission::keep_by_kubernetes(&resource, &mut body);
        let is_applied = owners.is_some();
        match owners {
            Some(owners) if owners.is_array() => body["metadata"]["managedFields"] = owners,
            Some(_) => {}
            None => self.manage(&target, &[Part::Main], &wanted.writer, &Value::Null, &mut body),
        }
        self.mutate(&target, &Value::Null, &mut body, wanted)?;
        let texts = self.fitting(self.texts(&body), is_applied)?;
        let mut store = self.store();
        self.check_home(&store, &target)?;
        self.check_grants(&store, wanted.user.as_ref(), &target, &Value::Null, &body)?;
        if store.get(target.shelf, &target.key()).is_some() && self.does.on(Behaviour::CreateRefusesTwice) {
            return Err(ApiError::already_exists(&resource, &name));
        }
        if wanted.dry_run && self.does.on(Behaviour::DryRunCreate) {
            return Ok(Written { object: Arc::new(Object::unkept(texts)), warnings });
        }
        let object = store.put(target.shelf, &target.key(), texts).ok_or_else(ApiError::no_resource)?;
        drop(store);
        self.changed(&target, &object, false);
        Ok(Written { object, warnings })
    }

    /// Changes an object as webhooks do, and completes it again; returns true if there are any. The changes have no owner.
    fn mutate(
        &self,
        target: &Target,
        before: &Value,
        object: &mut Value,
        wanted: &WriteOptions,
    ) -> Answered<bool> {
        for patch in &wanted.mutations {
            merge(object, patch.clone(), true);
        }
        if !wanted.mutations.is_empty() {
            self.complete(target, before, object, wanted)?;
        }
        Ok(!wanted.mutations.is_empty())
    }

    /// Returns the texts of an object if the store has room for them, else without field managers; fails if it still has
    /// none, or the object `is_applied`, whose managers are a part of what the client wants.
    fn fitting(&self, texts: Texts, is_applied: bool) -> Answered<Texts> {
        if texts.size() <= MAX_STORED || !self.does.on(Behaviour::StoreLimit) {
            return Ok(texts);
        }
        let unmanaged = texts.without_managers();
        if is_applied || unmanaged.size() > MAX_STORED {
            return Err(ApiError::plain(500, "etcdserver: request is too large"));
        }
        Ok(unmanaged)
    }

    /// Sets the namespace in an object's metadata to that of the request's path; fails if the metadata state
    /// another one. Removes it from the metadata of cluster-scoped kinds.
    pub(crate) fn check_namespace(&self, target: &Target, metadata: &mut Value) -> Answered<()> {
        let written = texts_of(&metadata["namespace"]);
        if !target.resource.namespaced {
            if let Some(members) = metadata.as_object_mut() {
                members.remove("namespace");
            }
            return Ok(());
        }
        if !written.is_empty() && written != target.namespace && self.does.on(Behaviour::NamespaceMatches) {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        metadata["namespace"] = json!(target.namespace);
        Ok(())
    }

    /// Fails if the namespace of the target does not exist (404) or is being deleted (403); accepts cluster-scoped
    /// targets.
    fn check_home(&self, store: &Store, target: &Target) -> Answered<()> {
        if !target.resource.namespaced {
            return Ok(());
        }
        let found = store.find("", "namespaces").and_then(|(shelf, _)| store.get(shelf, &target.namespace));
        let Some(namespace) = found else {
            return if self.does.on(Behaviour::NamespaceMustExist) {
                Err(ApiError::no_namespace(&target.namespace))
            } else {
                Ok(())
            };
        };
        if namespace.metadata().get("deletionTimestamp").is_some()
            && self.does.on(Behaviour::TerminatingRefuses)
        {
            let namespace = &target.namespace;
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            return Err(ApiError::forbidden(&target.resource, &target.name, &why));
        }
        Ok(())
    }

    /// Adds defaults to an object, removes the fields that its schema does not have (or refuses them, as `wanted`
    /// says), and validates it; returns the warnings for the client. `before` is the stored state, null for a new
    /// object.
    fn complete(
        &self,
        target: &Target,
        before: &Value,
        object: &mut Value,
        wanted: &WriteOptions,
    ) -> Answered<Vec<String>> {
        let resource = &target.resource;
        let mut warnings = Vec::new();
        if self.does.on(Behaviour::Warnings) {
            warnings = admission::finalizer_warnings(resource, before, object);
        }
        if self.does.on(Behaviour::SecretTexts) {
            admission::keep_string_data(resource, object);
        }
        default(resource, object);
        admission::count_templates(resource, before, object);
        let name = texts_of(&object["metadata"]["name"]).to_owned();
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            let faults = crd::faults(object);
            if !faults.is_empty() && self.does.on(Behaviour::DefinitionChecked) {
                return Err(target.invalid(&name, faults));
            }
        }
        let faults = validate::faults(resource, object);
        if !faults.is_empty() && self.does.on(Behaviour::RequiredFields) {
            return Err(target.invalid(&name, faults));
        }
        let Some(version) = target.described() else { return Ok(warnings) };
        if let Some(warning) = &version.warning
            && self.does.on(Behaviour::Warnings)
        {
            warnings.push(warning.clone());
        }
        if let Some(schema) = &version.schema {
            if self.does.on(Behaviour::Pruning) {
                let unknown = schema.prune(object);
                let told: Vec<String> =
                    unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
                match wanted.unknown_fields {
                    UnknownFields::Strict if !told.is_empty() && self.does.on(Behaviour::StrictFields) => {
                        let kind = &resource.kind;
                        let why = format!("strict decoding error: {}", told.join(", "));
                        return Err(ApiError::bad_request(format!(
                            "{kind} in version {:?} cannot be handled as a {kind}: {why}",
                            version.name
                        )));
                    }
                    UnknownFields::Warn if self.does.on(Behaviour::WarnUnknownFields) => {
                        warnings.extend(told)
                    }
                    _ => {}
                }
            }
            if self.does.on(Behaviour::CustomDefaults) {
                schema.default(object);
            }
            if self.does.on(Behaviour::Validation) {
                let faults = schema.faults(object);
                if !faults.is_empty() {
                    return Err(target.invalid(&name, faults));
                }
            }
        }
        Ok(warnings)
    }

    /// Updates a part of an object; `change` computes the new state from the stored one. If an object that is being
    /// deleted loses its last finalizer, removes it; an unchanged object keeps its version; with a dry run it stores
    /// nothing.
    pub(crate) fn update(
        &self,
        target: &Target,
        part: Part,
        wanted: &WriteOptions,
        change: impl FnOnce(Value) -> Answered<Value>,
    ) -> Answered<Written> {
        self.update_owned(target, part, wanted, false, change)
    }

    /// Updates a part of an object like [`update`](Inner::update). With `is_owned`, `change` states the field managers,
    /// too.
    pub(crate) fn update_owned(
        &self,
        target: &Target,
        part: Part,
        wanted: &WriteOptions,
        is_owned: bool,
        change: impl FnOnce(Value) -> Answered<Value>,
    ) -> Answered<Written> {
        let mut store = self.store();
        let resource = &target.resource;
        let (current, before) = stored(&store, target)?;
        let mut after = change(before.clone())?;
        let owners = after["metadata"].get("managedFields").cloned().filter(|_| is_owned);
        self.check_kind(target, &mut after)?;
        let deleting = before["metadata"].get("deletionTimestamp").is_some();
        self.keep_identity(target, &before, &mut after)?;
        self.keep_part(target, part, &before, &mut after);
        let warnings = self.complete(target, &before, &mut after, wanted)?;
        // A value that is the default may be left out, and is no change.
        if part == Part::Main {
            self.count_generation(target, &before, &mut after);
        }
        let faults = admission::metadata_faults(resource, &after);
        if !faults.is_empty() && self.does.on(Behaviour::MetadataChecked) {
            return Err(target.invalid(&target.name, faults));
        }
        if part == Part::Main && self.does.on(Behaviour::ImmutableFields) {
            let faults = immutable::faults(resource, &before, &after);
            if !faults.is_empty() {
                return Err(target.invalid(&target.name, faults));
            }
        }
        self.check_grants(&store, wanted.user.as_ref(), target, &before, &after)?;
        if deleting && self.does.on(Behaviour::NoNewFinalizers) {
            admission::check_finalizers(target, &before, &after)?;
        }
        if !is_owned {
            self.manage(target, &[part], &wanted.writer, &before, &mut after);
        } else if let Some(owners) = owners {
            after["metadata"]["managedFields"] = owners;
        }
        let is_mutated = self.mutate(target, &before, &mut after, wanted)?;
        if is_mutated && part == Part::Main && resource.has_generation() {
            after["metadata"]["generation"] = before["metadata"]["generation"].clone();
            self.count_generation(target, &before, &mut after);
        }
        // Times of managers alone are no change.
        let is_same = self.does.on(Behaviour::SameStaysSame) && timeless(&before) == timeless(&after);
        let texts = if is_same { current.texts() } else { self.fitting(self.texts(&after), is_owned)? };
        if wanted.dry_run && self.does.on(Behaviour::DryRunUpdate) {
            return Ok(Written { object: Arc::new(current.with(texts)), warnings });
        }
        if deleting && admission::is_free(resource, &after) && self.does.on(Behaviour::LastFinalizerRemoves) {
            let last = current.with(texts.clone());
            let gone = store.remove(target.shelf, &target.key(), Some(texts));
            drop(store);
            if let Some(gone) = gone {
                self.changed(target, &gone, true);
            }
            return Ok(Written { object: Arc::new(last), warnings });
        }
        if current.says(&texts) && self.does.on(Behaviour::SameStaysSame) {
            return Ok(Written { object: current, warnings });
        }
        let object = store.put(target.shelf, &target.key(), texts).ok_or_else(ApiError::no_resource)?;
        drop(store);
        self.changed(target, &object, false);
        Ok(Written { object, warnings })
    }

    /// Removes an object that has neither finalizers nor a grace period, and marks any other as being deleted; with a
    /// dry run it changes nothing. Fails if the object does not exist, is a system namespace, or does not meet the
    /// preconditions in `deletion`.
    pub(crate) fn delete(&self, target: &Target, deletion: &Deletion) -> Answered<Deleted> {
        let mut store = self.store();
        let resource = &target.resource;
        let (current, before) = stored(&store, target)?;
        let metadata = &before["metadata"];
        if let Some(uid) = deletion.uid.as_deref().filter(|uid| metadata["uid"] != **uid)
            && self.does.on(Behaviour::DeletionUid)
        {
            let found = texts_of(&metadata["uid"]);
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({found}). The object might have \
                 been deleted and then recreated"
            );
            return Err(ApiError::precondition(resource, &target.name, &why));
        }
        if let Some(version) =
            deletion.version.as_deref().filter(|version| metadata["resourceVersion"] != **version)
            && self.does.on(Behaviour::DeletionVersion)
        {
            let found = texts_of(&metadata["resourceVersion"]);
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({found}). The object might have been modified"
            );
            return Err(ApiError::precondition(resource, &target.name, &why));
        }
        let is_namespace = resource.is("", "namespaces");
        if is_namespace
            && matches!(target.name.as_str(), "default" | "kube-system" | "kube-public")
            && self.does.on(Behaviour::SystemNamespacesStay)
        {
            return Err(ApiError::forbidden(resource, &target.name, "this namespace may not be deleted"));
        }
        let mut after = before.clone();
        self.mark(resource, &mut after, deletion);
        let gone = admission::is_free(resource, &after);
        let texts = self.texts(&after);
        if deletion.dry_run && self.does.on(Behaviour::DryRunDelete) {
            return Ok(Deleted { object: Arc::new(current.with(texts)), gone });
        }
        if gone {
            let object = store.remove(target.shelf, &target.key(), None).ok_or_else(ApiError::no_resource)?;
            drop(store);
            self.changed(target, &object, true);
            return Ok(Deleted { object, gone });
        }
        if current.says(&texts) {
            return Ok(Deleted { object: current, gone });
        }
        let object = store.put(target.shelf, &target.key(), texts).ok_or_else(ApiError::no_resource)?;
        drop(store);
        self.changed(target, &object, false);
        Ok(Deleted { object, gone })
    }

    /// Marks an object as being deleted: sets its deletion time and grace period, and increases its generation, unless
    /// it is marked already; then only the grace period of a Pod becomes shorter. Sets the finalizers of the
    /// propagation, and the phase of a Namespace.
    fn mark(&self, resource: &Resource, object: &mut Value, deletion: &Deletion) {
        let metadata = &mut object["metadata"];
        let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        if !self.does.on(Behaviour::Finalizers) {
            finalizers.clear();
        }
        // A deletion under way keeps its propagation unless the request has another.
        let under_way = metadata.get("deletionTimestamp").is_some();
        if deletion.propagation.is_some() || !under_way {
            finalizers.retain(|finalizer| finalizer != "orphan" && finalizer != "foregroundDeletion");
            match deletion.propagation {
                Some(Propagation::Foreground) if self.does.on(Behaviour::Foreground) => {
                    finalizers.push(json!("foregroundDeletion"));
                }
                Some(Propagation::Orphan) if self.does.on(Behaviour::Orphan) => {
                    finalizers.push(json!("orphan"))
                }
                _ => {}
            }
        }
        if let Some(members) = metadata.as_object_mut() {
            if finalizers.is_empty() {
                members.remove("finalizers");
            } else {
                members.insert("finalizers".to_owned(), Value::Array(finalizers));
            }
        }
        let is_pod = resource.is("", "pods");
        let grace = match (is_pod, object["spec"]["nodeName"].as_str()) {
            (true, Some(_))
                if !matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) =>
            {
                let own = object["spec"]["terminationGracePeriodSeconds"].as_i64();
                deletion.grace.or(own).unwrap_or(30).max(0)
            }
            _ => 0,
        };
        let metadata = &mut object["metadata"];
        if !under_way {
            let at = later(self.fleet.clock.now(), jiff::SignedDuration::from_secs(grace));
            metadata["deletionTimestamp"] = json!(stamp(at));
            metadata["deletionGracePeriodSeconds"] = json!(grace);
            if let Some(generation) = metadata["generation"].as_i64() {
                metadata["generation"] = json!(generation + 1);
            }
        } else if is_pod && metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|old| grace < old) {
            metadata["deletionGracePeriodSeconds"] = json!(grace);
        }
        if resource.is("", "namespaces") {
            object["status"]["phase"] = json!("Terminating");
        }
    }

    /// Writes an object with its status and without validation, for recordings and controllers. The stored status stays
    /// if it has none, and so do the fields of its metadata that the server sets.
    pub(crate) fn impose(&self, target: &Target, object: Value, by: &Writer) -> Answered<Arc<Object>> {
        self.impose_completed(target, object, by, |_| ())
    }

    /// Writes an object like [`impose`](Inner::impose). `complete` changes it at last, when its metadata are final.
    pub(crate) fn impose_completed(
        &self,
        target: &Target,
        object: Value,
        by: &Writer,
        complete: impl FnOnce(&mut Value),
    ) -> Answered<Arc<Object>> {
        self.impose_in(self.store(), target, object, by, complete)
    }

    /// Writes as [`impose`](Inner::impose) the result of `change` on the stored object, atomically. `change` must not
    /// lock the store; `None` leaves the object as it is. A missing object is ignored.
    pub(crate) fn impose_change(
        &self,
        target: &Target,
        by: &Writer,
        change: impl FnOnce(Value) -> Option<Value>,
        complete: impl FnOnce(&mut Value),
    ) {
        let store = self.store();
        let current = store.get(target.shelf, &target.key()).map(|current| target.tree(current));
        if let Some(object) = current.and_then(change) {
            let _ = self.impose_in(store, target, object, by, complete);
        }
    }

    fn impose_in(
        &self,
        mut store: MutexGuard<'_, Store>,
        target: &Target,
        mut object: Value,
        by: &Writer,
        complete: impl FnOnce(&mut Value),
    ) -> Answered<Arc<Object>> {
        self.check_kind(target, &mut object)?;
        let mut target = target.clone();
        target.name = texts_of(&object["metadata"]["name"]).to_owned();
        if target.name.is_empty() {
            return Err(target.invalid("", vec![Cause::required("metadata.name", "name is required")]));
        }
        let verbatim = self.fleet.options.verbatim;
        let current = store.get(target.shelf, &target.key()).cloned();
        // Existing objects of a namespace that is being deleted may change until they are gone.
        if current.is_none() {
            self.check_home(&store, &target)?;
        }
        let before = current.as_deref().map(|current| target.tree(current));
        let metadata = &mut object["metadata"];
        if target.resource.namespaced {
            metadata["namespace"] = json!(target.namespace);
        }
        match &before {
            Some(before) => {
                for key in [
                    "uid",
                    "creationTimestamp",
                    "generation",
                    "deletionTimestamp",
                    "deletionGracePeriodSeconds",
                ] {
                    if metadata.get(key).is_none()
                        && let Some(value) = before["metadata"].get(key)
                    {
                        metadata[key] = value.clone();
                    }
                }
                if metadata["generation"] == before["metadata"]["generation"] && !verbatim {
                    self.count_generation(&target, before, &mut object);
                }
                if object.get("status").is_none()
                    && let Some(status) = before.get("status")
                {
                    object["status"] = status.clone();
                }
            }
            None => {
                if metadata.get("uid").is_none() {
                    metadata["uid"] = json!(self.uid());
                }
                if metadata.get("creationTimestamp").is_none() {
                    metadata["creationTimestamp"] = json!(stamp(self.fleet.clock.now()));
                }
                if target.resource.has_generation() && metadata.get("generation").is_none() && !verbatim {
                    metadata["generation"] = json!(1);
                }
            }
        }
        if !verbatim {
            default(&target.resource, &mut object);
            admission::keep_by_kubernetes(&target.resource, &mut object);
        }
        complete(&mut object);
        let texts = if verbatim {
            Texts::recorded(&object, &self.fleet.interner)
        } else {
            self.manage(
                &target,
                &[Part::Main, Part::Status],
                by,
                before.as_ref().unwrap_or(&Value::Null),
                &mut object,
            );
            self.texts(&object)
        };
        if let Some(current) = current.filter(|current| current.says(&texts)) {
            return Ok(current);
        }
        let object = store.put(target.shelf, &target.key(), texts).ok_or_else(ApiError::no_resource)?;
        drop(store);
        self.changed(&target, &object, false);
        Ok(object)
    }

    /// Removes an object immediately, even if it has finalizers; does nothing if it does not exist.
    pub(crate) fn remove(&self, target: &Target) {
        let gone = self.store().remove(target.shelf, &target.key(), None);
        if let Some(gone) = gone {
            self.changed(target, &gone, true);
        }
    }
}

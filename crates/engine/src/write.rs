//! Writes one object: applies it, runs it as a hook, deletes it, or releases it.

use serde_json::{Value, json};
use taffrail_apps::sets::SET_MARK;
use taffrail_cluster::{
    ApiResource, ApplyRequest, Cluster, DeleteOutcome, DeleteRequest, Discovery, ManagersRequest,
    PatchRequest, PatchType, ReadError, Reason, WriteError, chain,
};
use taffrail_object::json::{OwnedDocument, Value as Json};
use taffrail_object::{ObjectKey, Projection};
use taffrail_plan::manifests::{DeclaredObject, HookDeletePolicy};
use taffrail_plan::sync::{Answer, HookTask, TaskOutcome};

use crate::compare::{Comparer, Comparison};
use crate::migration::Predecessors;
use crate::options::{WriteOptions, conflict_text};

/// The annotation of a hook with the id of the run that created it.
pub(crate) const RUN_MARK: &str = "taffrail.dev/run";

/// The annotation of a hook with the phase in which it runs.
pub(crate) const PHASE_MARK: &str = "taffrail.dev/hook-phase";

/// The finalizer that holds a hook until its result is saved.
pub(crate) const HOOK_FINALIZER: &str = "taffrail.dev/hook";

/// The number of times that a patch is sent which another client was faster with.
const MAX_CONFLICTS: u32 = 5;

/// The answer to a write, with the generation of the object that was written.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) answer: Answer,
    pub(crate) generation: Option<i64>,
}

impl Written {
    pub(crate) fn of(answer: Answer) -> Written {
        Written { answer, generation: None }
    }

    fn object(document: &OwnedDocument, outcome: TaskOutcome) -> Written {
        let metadata = document.root().get("metadata");
        let uid = metadata.and_then(|it| it.get("uid")).and_then(|it| it.as_str());
        let generation = metadata.and_then(|it| it.get("generation")).and_then(Json::as_i64);
        let uid = uid.map(|uid| uid.into_owned()).unwrap_or_default();
        Written { answer: Answer::Written { uid, outcome }, generation }
    }
}

/// Writes the objects of one run.
pub(crate) struct Writer<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) discovery: &'a Discovery,
    pub(crate) options: &'a WriteOptions,
    pub(crate) comparer: &'a Comparer<'a>,
    /// The id of the run.
    pub(crate) run: &'a str,
    /// The name of the set, which each object bears that is deleted without a manifest: who may write the record could name any
    /// object in it. `None` for the inventories of other tools, whose marks were looked at.
    pub(crate) mark: Option<&'a str>,
}

/// A served kind, and the object's namespace in requests.
struct Place<'a> {
    resource: ApiResource,
    namespace: Option<&'a str>,
}

impl Writer<'_> {
    fn place<'k>(&self, key: &'k ObjectKey, api_version: Option<&str>) -> Result<Place<'k>, Answer> {
        let kind = self.discovery.kind(&key.group, &key.kind);
        let version = api_version.and_then(|it| it.rsplit('/').next());
        let resource = kind.and_then(|kind| match version {
            Some(version) => kind.in_version(version),
            None => Some(kind.preferred()),
        });
        // Its definition may have been applied a moment ago.
        let missing = || Answer::Later(format!("the server does not serve {} yet", key.group_kind()));
        let resource = resource.ok_or_else(missing)?;
        let namespace = Some(&*key.namespace).filter(|_| resource.namespaced);
        Ok(Place { resource, namespace })
    }

    /// Applies an object. One that was not compared because its kind or namespace came with the set, and one whose write may
    /// have been made already, is compared first.
    pub(crate) async fn apply(&self, object: &DeclaredObject, compared: Option<&Comparison>) -> Written {
        if let Some(uid) = compared.and_then(Comparison::unchanged) {
            let answer = Answer::Written { uid: uid.to_owned(), outcome: TaskOutcome::Unchanged };
            return Written::of(answer);
        }
        let fresh;
        let compared = match compared {
            Some(compared) if compared.is_fresh() => compared,
            _ => {
                fresh = match self.comparer.compare(object).await {
                    Ok(fresh) => fresh,
                    Err(failure) => return Written::of(failed(&failure.reason, failure.message)),
                };
                &fresh
            }
        };
        if let Some(uid) = compared.unchanged() {
            let answer = Answer::Written { uid: uid.to_owned(), outcome: TaskOutcome::Unchanged };
            return Written::of(answer);
        }
        if let (true, Some(uid)) = (compared.is_replaced, compared.live_uid()) {
            return Written::of(Answer::InTheWay { uid: uid.to_owned(), replaces: true });
        }
        self.send(object, compared).await
    }

    async fn send(&self, object: &DeclaredObject, compared: &Comparison) -> Written {
        let place = match self.place(&object.key, Some(&object.api_version)) {
            Ok(place) => place,
            Err(answer) => return Written::of(answer),
        };
        let outcome = if compared.live_uid().is_some() { TaskOutcome::Changed } else { TaskOutcome::Created };
        if !compared.predecessors().is_empty()
            && let Err(error) = self.migrate(object, &place).await
        {
            return Written::of(answer_of(&error));
        }
        let Place { resource, namespace } = place;
        let body = object.value.to_string();
        let request = |force: bool| ApplyRequest {
            resource: &resource,
            namespace,
            name: &object.key.name,
            subresource: None,
            body: body.as_bytes(),
            manager: &self.options.manager,
            force,
            dry_run: false,
            // It is one of a declared set.
            allow_secret: true,
        };
        // Force takes all fields, also what another manager took since the dry run.
        let error = match self.cluster.apply(&request(self.options.force_conflicts)).await {
            Ok(document) => return Written::object(&document, outcome),
            Err(error) => error,
        };
        if let WriteError::FieldConflict { conflicts, .. } = &error {
            let (schema, of) = self.comparer.types.find(object);
            let applied = self.comparer.last.fields(&object.key, taffrail_merge::Type::new(schema, &of));
            let refused = self.options.refused_conflicts(conflicts, applied.as_ref(), &[]);
            if !refused.is_empty() {
                return Written::of(Answer::Failed(conflict_text(&refused)));
            }
            return match self.cluster.apply(&request(true)).await {
                Ok(document) => Written::object(&document, outcome),
                Err(error) => Written::of(answer_of(&error)),
            };
        }
        Written::of(answer_of(&error))
    }

    /// Gives the fields of earlier managers to ours, so that one that is not declared any more is removed. Does nothing if there
    /// are none.
    async fn migrate(&self, object: &DeclaredObject, place: &Place<'_>) -> Result<(), WriteError> {
        let Place { resource, namespace } = place;
        let (name, manager) = (&*object.key.name, &*self.options.manager);
        let mut last = None;
        for _ in 0..MAX_CONFLICTS {
            let found = self.cluster.get(resource, *namespace, name, Projection::Metadata).await;
            let Some(found) = found.map_err(WriteError::Refused)? else { return Ok(()) };
            let entries = found.root().at(&["metadata", "managedFields"]).and_then(|it| it.to_tree().ok());
            let Some(Value::Array(entries)) = entries else { return Ok(()) };
            let predecessors = Predecessors::of(object, self.options.dialect);
            let Some(entries) = predecessors.taken_over(entries, manager) else { return Ok(()) };
            let request = ManagersRequest {
                resource,
                namespace: *namespace,
                name,
                resource_version: &text(&found, "resourceVersion"),
                managed_fields: &entries,
            };
            match self.cluster.set_managers(&request).await {
                Ok(_) => return Ok(()),
                Err(error @ (WriteError::Conflict { .. } | WriteError::Invalid { .. })) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        last.map_or(Ok(()), Err)
    }

    /// Looks for a hook of this run, and creates it if there is none.
    pub(crate) async fn run_hook(
        &self,
        object: &DeclaredObject,
        key: &ObjectKey,
        hook: &HookTask,
    ) -> Written {
        let Place { resource, namespace } = match self.place(key, Some(&object.api_version)) {
            Ok(place) => place,
            Err(answer) => return Written::of(answer),
        };
        let found = match self.cluster.get(&resource, namespace, &key.name, Projection::Metadata).await {
            Ok(found) => found,
            Err(error) => return Written::of(of_read(&error)),
        };
        if let Some(found) = found {
            let is_own = annotation(&found, RUN_MARK).as_deref() == Some(self.run)
                && annotation(&found, PHASE_MARK).as_deref() == Some(hook.phase.as_str());
            if is_own {
                return Written::object(&found, TaskOutcome::Created);
            }
            if hook.delete.contains(&HookDeletePolicy::BeforeHookCreation) {
                let uid = text(&found, "uid");
                return Written::of(Answer::InTheWay { uid, replaces: false });
            }
        }
        let body = self.hook_body(object, key, hook).to_string();
        let request = ApplyRequest {
            resource: &resource,
            namespace,
            name: &key.name,
            subresource: None,
            body: body.as_bytes(),
            manager: &self.options.manager,
            force: true,
            dry_run: false,
            allow_secret: true,
        };
        match self.cluster.apply(&request).await {
            Ok(document) => Written::object(&document, TaskOutcome::Created),
            Err(error) => Written::of(answer_of(&error)),
        }
    }

    fn hook_body(&self, object: &DeclaredObject, key: &ObjectKey, hook: &HookTask) -> Value {
        let mut marked = object.clone();
        marked.annotate(RUN_MARK, self.run);
        marked.annotate(PHASE_MARK, hook.phase.as_str());
        let mut body = marked.value;
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("generateName");
            metadata.insert("name".to_owned(), json!(key.name));
            // A Secret has no result to wait for, and no patch may remove its finalizer.
            if (&*key.group, &*key.kind) == ("", "Secret") {
                return body;
            }
            let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
            if let Some(finalizers) = finalizers.as_array_mut() {
                finalizers.push(json!(HOOK_FINALIZER));
            }
        }
        body
    }

    /// Deletes the object with this UID, a hook of an earlier run with its finalizer.
    pub(crate) async fn delete(&self, key: &ObjectKey, uid: &str, object: Option<&DeclaredObject>) -> Answer {
        let Place { resource, namespace } = match self.place(key, object.map(|it| &*it.api_version)) {
            Ok(place) => place,
            // A kind that is not served any more has no objects.
            Err(_) => return Answer::Gone,
        };
        let found = match self.cluster.get(&resource, namespace, &key.name, Projection::Metadata).await {
            Ok(Some(found)) => found,
            Ok(None) => return Answer::Gone,
            // Its definition went before it, and took it along.
            Err(error) if error.reason() == Reason::NotFound => return Answer::Gone,
            Err(error) => return of_read(&error),
        };
        if text(&found, "uid") != uid {
            return Answer::Gone;
        }
        let is_marked = self.mark.is_none() || annotation(&found, SET_MARK).as_deref() == self.mark;
        if object.is_none() && !is_marked {
            return Answer::Failed("it does not bear the mark of the set any more, and stays".to_owned());
        }
        if has_finalizer(&found)
            && let Err(error) = self.unhold(&resource, namespace, key, uid).await
        {
            return answer_of(&error);
        }
        if !text(&found, "deletionTimestamp").is_empty() {
            return Answer::Deleting;
        }
        let request = DeleteRequest {
            resource: &resource,
            namespace,
            name: &key.name,
            uid: Some(uid),
            resource_version: None,
            propagation: Some(self.options.propagation()),
            dry_run: false,
            allow_secret: true,
        };
        match self.cluster.delete(&request).await {
            Ok(DeleteOutcome::Gone) => Answer::Gone,
            Ok(DeleteOutcome::Terminating(_)) => Answer::Deleting,
            Err(WriteError::NotFound { .. } | WriteError::Conflict { .. }) => Answer::Gone,
            Err(error) => answer_of(&error),
        }
    }

    /// Removes the finalizer of a hook, and deletes the hook if `deletes` says so.
    pub(crate) async fn release(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
        object: Option<&DeclaredObject>,
        deletes: bool,
    ) -> Answer {
        let released = Answer::Released { deleted: deletes };
        let Ok(Place { resource, namespace }) = self.place(key, object.map(|it| &*it.api_version)) else {
            return released;
        };
        let found = match self.cluster.get(&resource, namespace, &key.name, Projection::Metadata).await {
            Ok(Some(found)) => found,
            Ok(None) => return released,
            Err(error) => return of_read(&error),
        };
        let own = text(&found, "uid");
        let is_own = match uid {
            Some(uid) => own == uid,
            None => annotation(&found, RUN_MARK).as_deref() == Some(self.run),
        };
        if !is_own {
            return released;
        }
        if deletes {
            return match self.delete(key, &own, object).await {
                Answer::Deleting | Answer::Gone => released,
                answer => answer,
            };
        }
        match self.unhold(&resource, namespace, key, &own).await {
            Ok(()) => released,
            Err(error) => answer_of(&error),
        }
    }

    /// Removes our finalizer from the object with this UID.
    async fn unhold(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<(), WriteError> {
        let mut last = None;
        for _ in 0..MAX_CONFLICTS {
            let found = self.cluster.get(resource, namespace, &key.name, Projection::Metadata).await;
            let found = match found {
                Ok(Some(found)) if text(&found, "uid") == uid && has_finalizer(&found) => found,
                Ok(_) => return Ok(()),
                Err(error) => return Err(WriteError::Refused(error)),
            };
            let left: Vec<String> =
                finalizers(&found).into_iter().filter(|it| it != HOOK_FINALIZER).collect();
            let patch = json!({ "metadata": {
                "uid": uid, "resourceVersion": text(&found, "resourceVersion"), "finalizers": left,
            } });
            let body = patch.to_string();
            let request = PatchRequest {
                resource,
                namespace,
                name: &key.name,
                subresource: None,
                patch_type: PatchType::Merge,
                body: body.as_bytes(),
                dry_run: false,
            };
            match self.cluster.patch(&request).await {
                Ok(_) | Err(WriteError::NotFound { .. }) => return Ok(()),
                Err(error @ WriteError::Conflict { .. }) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        last.map_or(Ok(()), Err)
    }
}

fn text(document: &OwnedDocument, field: &str) -> String {
    let found = document.root().get("metadata").and_then(|it| it.get(field)).and_then(|it| it.as_str());
    found.map(|text| text.into_owned()).unwrap_or_default()
}

fn annotation(document: &OwnedDocument, key: &str) -> Option<String> {
    let annotations = document.root().get("metadata")?.get("annotations")?;
    Some(annotations.get(key)?.as_str()?.into_owned())
}

fn finalizers(document: &OwnedDocument) -> Vec<String> {
    let list = document.root().get("metadata").and_then(|it| it.get("finalizers")).and_then(Json::items);
    let texts = list.into_iter().flatten().filter_map(|it| it.as_str().map(|text| text.into_owned()));
    texts.collect()
}

fn has_finalizer(document: &OwnedDocument) -> bool {
    finalizers(document).iter().any(|it| it == HOOK_FINALIZER)
}

/// Returns the answer to a write that failed: some failures pass.
fn answer_of(error: &WriteError) -> Answer {
    let message = chain(error);
    match error {
        WriteError::Uncertain(_) => Answer::Later(message),
        WriteError::Refused(error) => of_read(error),
        WriteError::Forbidden { message, .. } if message.contains("exceeded quota") => {
            Answer::Later(message.clone())
        }
        // A namespace or definition that the set has just created.
        WriteError::NotFound { .. } | WriteError::Conflict { .. } => Answer::Later(message),
        _ if message.contains("failed calling webhook") => Answer::Later(message),
        _ => Answer::Failed(message),
    }
}

fn of_read(error: &ReadError) -> Answer {
    let message = chain(error);
    match error {
        ReadError::Refused { code: 400..=407 | 409..=428 | 430..=499, .. } => Answer::Failed(message),
        _ => Answer::Later(message),
    }
}

fn failed(reason: &str, message: String) -> Answer {
    match reason {
        "Refused" | "Conflict" | "Forbidden" => Answer::Failed(message),
        _ => Answer::Later(message),
    }
}

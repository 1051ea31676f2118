//! Requests for single objects and their subresources.

use std::sync::Arc;

use http::header;
use serde_json::{Value, json};
use taffrail_object::protobuf::{self, Extent, ProtobufError};
use taffrail_object::yaml;

use super::Asked;
use super::answer::Answer;
use super::list::key_prefix;
use super::negotiate::{Form, form};
use crate::access::Wish;
use crate::behaviour::{Behaviour, Behaviours};
use crate::error::{Answered, ApiError, Cause};
use crate::kinds::Scale;
use crate::managed::{Application, Writer};
use crate::patch;
use crate::selector::{Selector, text_of};
use crate::state::Inner;
use crate::store::Object;
use crate::table;
use crate::target::{Part, Target};
use crate::write::{Deleted, Deletion, Propagation, UnknownFields, WriteOptions, Written};

/// The maximum length of the name of a field manager, in bytes.
const MAX_MANAGER: usize = 128;

pub(super) fn answer(
    inner: &Arc<Inner>,
    asked: &Asked,
    target: &Target,
    verb: &str,
    subresource: &str,
) -> Answered<Answer> {
    let does = &inner.does;
    let form = form(asked.header(header::ACCEPT), does)?;
    let version = target.resource.version(&target.version).ok_or_else(ApiError::no_resource)?;
    let part = match subresource {
        "" => Part::Main,
        "status" if version.status && does.on(Behaviour::StatusSubresource) => Part::Status,
        "scale" if version.scale.is_some() && does.on(Behaviour::ScaleSubresource) => {
            let scale = version.scale.as_ref().ok_or_else(ApiError::no_resource)?;
            return scaled(inner, asked, target, verb, scale);
        }
        "log" if target.resource.is("", "pods") && does.on(Behaviour::PodLogs) => {
            return match verb {
                "get" => super::log::answer(inner, asked, target),
                _ => Err(ApiError::method_not_allowed()),
            };
        }
        "eviction" if target.resource.is("", "pods") && verb == "create" => {
            let eviction = body(asked, "Eviction", does)?;
            let deletion = deletion_of(&eviction["deleteOptions"], asked, does)?;
            inner.check_budgets(target)?;
            inner.delete(target, &deletion)?;
            return Ok(Answer::json(
                201,
                &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
            ));
        }
        // Custom resources have these paths, but this one has no such subresource.
        "status" | "scale" if target.resource.custom => {
            return Err(ApiError::not_found(&target.resource, &target.name));
        }
        _ => return Err(ApiError::no_resource()),
    };
    let verbs = &target.resource.verbs;
    match verb {
        "create" if part == Part::Main && target.name.is_empty() => {
            if target.resource.namespaced && target.namespace.is_empty() || !verbs.contains(&"create") {
                return Err(ApiError::method_not_allowed());
            }
            if target.resource.is_stored() {
                let body = body(asked, &target.resource.kind, does)?;
                let write_options = write_options(asked, "CreateOptions", does)?;
                let written = inner.create(target, body, &write_options)?;
                return Ok(shown(inner, asked, target, &written, form, 201));
            }
            let body = body(asked, &target.resource.kind, does)?;
            let review = inner.review(&inner.store(), &asked.user, &target.resource.plural, body);
            let mut review = review;
            review["kind"] = json!(&*target.resource.kind);
            review["apiVersion"] = json!(target.api_version());
            Ok(Answer::json(201, &review))
        }
        "create" => Err(ApiError::method_not_allowed()),
        "get" => {
            let object = inner.store().get(target.shelf, &target.key()).cloned();
            let object = object.ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
            Ok(Answer::bytes(200, written(inner, asked, target, &object, form)))
        }
        "update" => {
            let sent = body(asked, &target.resource.kind, does)?;
            let write_options = write_options(asked, "UpdateOptions", does)?;
            let done = inner.update(target, part, &write_options, |current| {
                // A uid in the body must be that of the stored object.
                let (sent_uid, uid) = (&sent["metadata"]["uid"], &current["metadata"]["uid"]);
                let believed = sent_uid.as_str().unwrap_or_default();
                if !believed.is_empty() && sent_uid != uid && does.on(Behaviour::UpdateUid) {
                    let found = uid.as_str().unwrap_or_default();
                    let why = format!(
                        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, \
                         AdditionalErrorMsg: Precondition failed: UID in precondition: {believed}, UID in object meta: {found}",
                        target.resource.plural,
                        target.key()
                    );
                    return Err(ApiError::conflict(&target.resource, &target.name, &why));
                }
                Ok(sent)
            })?;
            Ok(shown(inner, asked, target, &done, form, 200))
        }
        "patch" => {
            let form_of_patch = patch_form(asked, target, does)?;
            if form_of_patch == patch::Form::Apply {
                return applied(inner, asked, target, part, form);
            }
            let write_options = write_options(asked, "PatchOptions", does)?;
            let done = inner.update(target, part, &write_options, |current| {
                patch::apply(form_of_patch, &asked.body, current, does)
            })?;
            Ok(shown(inner, asked, target, &done, form, 200))
        }
        "delete" if part == Part::Main => {
            let deleted = inner.delete(target, &deletion(asked, does)?)?;
            Ok(farewell(inner, asked, target, &deleted, form))
        }
        "deletecollection" if part == Part::Main && verbs.contains(&"deletecollection") => {
            if target.resource.namespaced && target.namespace.is_empty()
                || !does.on(Behaviour::DeleteCollection)
            {
                return Err(ApiError::method_not_allowed());
            }
            delete_all(inner, asked, target)
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn patch_form(asked: &Asked, target: &Target, does: &Behaviours) -> Answered<patch::Form> {
    let form = patch::Form::of(asked.header(header::CONTENT_TYPE));
    let known = match form {
        Some(patch::Form::Strategic)
            if target.resource.custom && does.on(Behaviour::NoStrategicForCustom) =>
        {
            None
        }
        Some(patch::Form::Apply) if !does.on(Behaviour::ServerSideApply) => None,
        None if !does.on(Behaviour::PatchTypeChecked) => Some(patch::Form::Merge),
        form => form,
    };
    known.ok_or_else(ApiError::unsupported_patch)
}

/// Returns the configuration of a server-side apply, an object; fails if the request lacks its field manager.
fn configuration(asked: &Asked) -> Answered<Value> {
    if asked.query.get("fieldManager").is_empty() {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid_options("PatchOptions", vec![cause]));
    }
    let text = String::from_utf8_lossy(&asked.body);
    let undecodable =
        |why: &dyn std::fmt::Display| ApiError::bad_request(format!("error decoding YAML: {why}"));
    let read = yaml::read_all::<Value>(&text).map_err(|error| undecodable(&error))?;
    let config = read.into_iter().next().filter(Value::is_object);
    config.ok_or_else(|| undecodable(&"the configuration is not an object"))
}

/// Answers a server-side apply.
fn applied(inner: &Inner, asked: &Asked, target: &Target, part: Part, form: Form) -> Answered<Answer> {
    let does = &inner.does;
    let write_options = write_options(asked, "PatchOptions", does)?;
    let config = configuration(asked)?;
    let manager = asked.query.get("fieldManager");
    let force = asked.query.is_true("force") && does.on(Behaviour::ApplyForce);
    let application = Application { part, manager, config: &config, force, subresource: "" };
    let may_create = || {
        let wish = Wish {
            verb: "create",
            group: &target.resource.group,
            resource: &target.resource.plural,
            namespace: &target.namespace,
            name: &target.name,
            ..Wish::default()
        };
        inner.authorize(&inner.store(), &asked.user, &wish)
    };
    let (done, is_new) = inner.apply(target, &application, &write_options, may_create)?;
    Ok(shown(inner, asked, target, &done, form, if is_new { 201 } else { 200 }))
}

/// Parses the body of a request as JSON, YAML or Protobuf, by its `Content-Type`; an empty JSON body is an empty
/// object. Fails for another type or a malformed body; `kind` names the object in the error.
fn body(asked: &Asked, kind: &str, does: &Behaviours) -> Answered<Value> {
    let content_type = asked.header(header::CONTENT_TYPE);
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" | "*/*" => {
            if asked.body.is_empty() {
                return Ok(json!({}));
            }
            serde_json::from_slice(&asked.body).map_err(|error| {
                let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
                let text = String::from_utf8_lossy(&asked.body);
                ApiError::bad_request(format!(
                    "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
                     error: {why} ({})",
                    text.chars().take(100).collect::<String>()
                ))
            })
        }
        "application/yaml" => {
            let text = String::from_utf8_lossy(&asked.body);
            let first = yaml::read_all::<Value>(&text)
                .map_err(|error| ApiError::bad_request(error.to_string()))?
                .into_iter()
                .next();
            Ok(first.unwrap_or_else(|| json!({})))
        }
        "application/vnd.kubernetes.protobuf" if does.on(Behaviour::Protobuf) => {
            let mut text = Vec::new();
            let read = protobuf::write_json(&asked.body, Extent::Whole, &mut text);
            let object = read.map(|()| serde_json::from_slice(&text));
            match object {
                Ok(Ok(object)) => Ok(object),
                Err(ProtobufError::UnknownKind { .. }) => Err(ApiError::unsupported_body()),
                _ => Err(ApiError::bad_request(format!(
                    "the object provided is unrecognized (must be of type {kind}): it is not Protobuf of that kind"
                ))),
            }
        }
        _ => Err(ApiError::unsupported_body()),
    }
}

/// Returns the dry run, the handling of unknown fields and the field manager of a write request, by its query
/// parameters and `User-Agent`. Fails with 422 if a `dryRun` is not `All`; `options` is the kind that the error names.
fn write_options(asked: &Asked, options: &str, does: &Behaviours) -> Answered<WriteOptions> {
    let values: Vec<&str> = asked.query.all("dryRun").collect();
    if values.iter().any(|value| *value != "All") && does.on(Behaviour::DryRunChecked) {
        let cause = Cause::unsupported("dryRun", &json!(values), &["All"]);
        return Err(ApiError::invalid_options(options, vec![cause]));
    }
    let manager = asked.query.get("fieldManager");
    if manager.len() > MAX_MANAGER && does.on(Behaviour::ManagerNameChecked) {
        let cause = Cause::too_long("fieldManager", MAX_MANAGER);
        return Err(ApiError::invalid_options(options, vec![cause]));
    }
    let unknown_fields = match asked.query.get("fieldValidation") {
        "Strict" => UnknownFields::Strict,
        "Ignore" => UnknownFields::Ignore,
        _ => UnknownFields::Warn,
    };
    let agent = asked.header(header::USER_AGENT).split('/').next().unwrap_or_default();
    let name = [manager, agent, "unknown"].into_iter().find(|name| !name.is_empty());
    let writer = Writer::named(&name.unwrap_or_default().chars().take(MAX_MANAGER).collect::<String>());
    let mutations = asked.mutations.clone();
    let user = Some(asked.user.clone());
    Ok(WriteOptions { dry_run: !values.is_empty(), unknown_fields, writer, user, mutations })
}

fn deletion(asked: &Asked, does: &Behaviours) -> Answered<Deletion> {
    let body = if asked.body.is_empty() { json!({}) } else { body(asked, "DeleteOptions", does)? };
    deletion_of(&body, asked, does)
}

fn deletion_of(body: &Value, asked: &Asked, does: &Behaviours) -> Answered<Deletion> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let policy = match asked.query.get("propagationPolicy") {
        "" => body["propagationPolicy"].as_str().unwrap_or_default(),
        policy => policy,
    };
    let orphans = body["orphanDependents"] == true || asked.query.get("orphanDependents") == "true";
    let propagation = match policy {
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        "" => orphans.then_some(Propagation::Orphan),
        _ if does.on(Behaviour::PropagationChecked) => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            let cause = Cause::unsupported("propagationPolicy", &json!(policy), &supported);
            return Err(ApiError::invalid_options("DeleteOptions", vec![cause]));
        }
        _ => None,
    };
    let dry_run = !write_options(asked, "DeleteOptions", does)?.dry_run
        && body["dryRun"].as_array().is_none_or(Vec::is_empty);
    Ok(Deletion {
        propagation,
        uid: text(&body["preconditions"]["uid"]),
        version: text(&body["preconditions"]["resourceVersion"]),
        grace: body["gracePeriodSeconds"]
            .as_i64()
            .or_else(|| asked.query.get("gracePeriodSeconds").parse().ok()),
        dry_run: !dry_run,
    })
}

/// Returns the JSON text of an object in the requested form.
fn written(inner: &Inner, asked: &Asked, target: &Target, object: &Object, form: Form) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.head().len() + object.tail().len() + 160);
    match form {
        Form::Whole => object.write(&target.item_start(), &mut out),
        Form::Partial => object.write_partial(&mut out),
        Form::Table => {
            table::write_one(&mut out, inner, target, object, asked.query.get("includeObject"), true);
        }
    }
    out.push(b'\n');
    out
}

fn shown(inner: &Inner, asked: &Asked, target: &Target, done: &Written, form: Form, code: u16) -> Answer {
    let answer = Answer::bytes(code, written(inner, asked, target, &done.object, form));
    answer.warned(done.warnings.iter().cloned())
}

/// Builds the answer to a deletion: the object if it still exists or if kube-apiserver returns deleted objects of its
/// kind, else a `Status`.
fn farewell(inner: &Inner, asked: &Asked, target: &Target, deleted: &Deleted, form: Form) -> Answer {
    let resource = &target.resource;
    // `ReturnDeletedObject` in Kubernetes' registries.
    let returned = [
        "pods",
        "services",
        "serviceaccounts",
        "persistentvolumeclaims",
        "persistentvolumes",
        "resourcequotas",
        "podtemplates",
    ];
    let returns = resource.group.is_empty() && returned.contains(&&*resource.plural);
    if !deleted.gone || returns || !inner.does.on(Behaviour::DeleteStatus) {
        return Answer::bytes(200, written(inner, asked, target, &deleted.object, form));
    }
    let mut details =
        json!({"name": target.name, "kind": &*resource.plural, "uid": deleted.object.metadata()["uid"]});
    if !resource.group.is_empty() {
        details["group"] = json!(&*resource.group);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Answer::json(200, &status)
}

fn delete_all(inner: &Arc<Inner>, asked: &Asked, target: &Target) -> Answered<Answer> {
    let query = &asked.query;
    let deletion = deletion(asked, &inner.does)?;
    let selector = if inner.does.on(Behaviour::DeleteCollectionSelects) {
        let (labels, fields) = (query.get("labelSelector"), query.get("fieldSelector"));
        Selector::parse(labels, fields, &target.resource, &target.version, &inner.does)?
    } else {
        Selector::default()
    };
    let found: Vec<(String, Arc<Object>)> = {
        let store = inner.store();
        let prefix = key_prefix(&target.namespace);
        let all = store.range(target.shelf, &prefix, None);
        all.filter(|(_, object)| selector.matches(object))
            .map(|(key, object)| (key.rsplit('/').next().unwrap_or_default().to_owned(), object.clone()))
            .collect()
    };
    let mut items = Vec::new();
    for (name, object) in found {
        let one = Target { name, ..target.clone() };
        // An object that is gone already counts as deleted.
        if inner.delete(&one, &deletion).is_ok() {
            items.push(object.tree(&target.api_version(), &target.resource.kind));
        }
    }
    let version = inner.store().version().to_string();
    let list = json!({
        "kind": &*target.resource.list_kind, "apiVersion": target.api_version(),
        "metadata": {"resourceVersion": version}, "items": items,
    });
    Ok(Answer::json(200, &list))
}

fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// Sets the value at a path of keys, creating missing objects on the way.
fn put(object: &mut Value, path: &[String], value: Value) {
    match path {
        [] => *object = value,
        [key, rest @ ..] => {
            if !object.is_object() {
                *object = json!({});
            }
            if let Some(members) = object.as_object_mut() {
                put(members.entry(key.clone()).or_insert(Value::Null), rest, value);
            }
        }
    }
}

/// The `apiVersion` of Scale objects.
const SCALE_VERSION: &str = "autoscaling/v1";

/// Builds the Scale object of the scale subresource.
fn scale_of(object: &Value, scale: &Scale) -> Value {
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(key) {
            metadata[key] = value.clone();
        }
    }
    let number = |path: &[String]| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({"replicas": number(&scale.status_replicas)});
    let selector = scale.selector.as_deref().and_then(|path| at(object, path));
    match selector {
        Some(Value::String(text)) => status["selector"] = json!(text),
        Some(selector) => status["selector"] = json!(text_of(selector)),
        None => {}
    }
    json!({
        "kind": "Scale", "apiVersion": SCALE_VERSION, "metadata": metadata,
        "spec": {"replicas": number(&scale.spec_replicas)}, "status": status,
    })
}

/// Applies a Scale to its parent, as an apply of the number of replicas alone.
fn applied_scale(inner: &Inner, asked: &Asked, target: &Target, scale: &Scale) -> Answered<Written> {
    let does = &inner.does;
    let write_options = write_options(asked, "PatchOptions", does)?;
    let sent = configuration(asked)?;
    if sent["kind"] != "Scale" || sent["apiVersion"] != SCALE_VERSION {
        return Err(ApiError::bad_request("the configuration is not a Scale of autoscaling/v1"));
    }
    let mut config = target.empty();
    config["metadata"] = sent["metadata"].clone();
    if let Some(replicas) = sent["spec"].get("replicas") {
        check_replicas(target, replicas.as_i64().unwrap_or_default())?;
        put(&mut config, &scale.spec_replicas, replicas.clone());
    }
    let application = Application {
        part: Part::Main,
        manager: asked.query.get("fieldManager"),
        config: &config,
        force: asked.query.is_true("force") && does.on(Behaviour::ApplyForce),
        subresource: "scale",
    };
    let none = || Err(ApiError::not_found(&target.resource, &target.name));
    inner.apply(target, &application, &write_options, none).map(|(written, _)| written)
}

fn check_replicas(target: &Target, replicas: i64) -> Answered<()> {
    if replicas >= 0 {
        return Ok(());
    }
    let cause = Cause::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
    Err(ApiError::invalid("autoscaling", "Scale", &target.name, vec![cause]))
}

fn scaled(inner: &Arc<Inner>, asked: &Asked, target: &Target, verb: &str, scale: &Scale) -> Answered<Answer> {
    let does = &inner.does;
    let current = inner.tree(target).ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
    let change: Box<dyn FnOnce(Value) -> Answered<Value>> = match verb {
        "get" => return Ok(Answer::json(200, &scale_of(&current, scale))),
        "update" => {
            let sent = body(asked, "Scale", does)?;
            Box::new(move |_| Ok(sent))
        }
        "patch" => {
            let form = patch_form(asked, target, does)?;
            if form == patch::Form::Apply {
                let written = applied_scale(inner, asked, target, scale)?;
                return Ok(Answer::json(200, &scale_of(&target.tree(&written.object), scale)));
            }
            let text = asked.body.clone();
            let does = does.clone();
            Box::new(move |scale| patch::apply(form, &text, scale, &does))
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    let mut write_options = write_options(asked, "UpdateOptions", does)?;
    write_options.writer.subresource = "scale";
    let written = inner.update(target, Part::Main, &write_options, |current| {
        let sent = change(scale_of(&current, scale))?;
        let mut changed = current;
        let version = sent["metadata"]["resourceVersion"].clone();
        if version.as_str().is_some_and(|version| !version.is_empty()) {
            changed["metadata"]["resourceVersion"] = version;
        }
        let replicas = sent["spec"]["replicas"].as_i64().unwrap_or_default();
        check_replicas(target, replicas)?;
        put(&mut changed, &scale.spec_replicas, json!(replicas));
        Ok(changed)
    })?;
    let object = written.object.tree(&target.api_version(), &target.resource.kind);
    Ok(Answer::json(200, &scale_of(&object, scale)))
}

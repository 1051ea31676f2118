//! The verbs for Argo CD: the annotation that requests a refresh, and the field that requests a sync. Argo CD removes
//! each of them when it is done.

use serde_json::json;
use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::Observed;

use super::{Patch, Plan, Progress, Refusal, Step, StepSign, Verb, by_whom, command, tree};
use crate::app::App;
use crate::delivery::argo::{SKIP, SUSPENDED, is_kept_off};

pub(super) const REFRESH: &str = "argocd.argoproj.io/refresh";
const AUTOMATED: [&str; 3] = ["spec", "syncPolicy", "automated"];
const ENABLED: [&str; 4] = ["spec", "syncPolicy", "automated", "enabled"];

pub(super) fn plan(app: &App, verb: Verb, observed: &Observed<'_>) -> Result<Plan, Refusal> {
    let object = &observed.object;
    let step = |patch, alternative, until| {
        Ok(Plan::of(vec![Step { object: observed.key.to_owned(), patch, alternative, until }]))
    };
    let is_skipped = object.text(&["metadata", "annotations", SKIP]) == "true";
    match verb {
        Verb::Suspend if is_kept_off(object) => {
            Ok(Plan::nothing(format!("the app is already suspended{}", by_whom(object, &ENABLED))))
        }
        Verb::Suspend => {
            let Some(automated) = tree(object, &AUTOMATED) else {
                return Ok(Plan::nothing(
                    "automatic sync is already off: without spec.syncPolicy.automated Argo CD syncs the app only on \
                     request",
                ));
            };
            let patch = Patch::new(object, vec![(ENABLED.to_vec(), Some(json!(false)))]);
            // Before Argo CD 3.1 the field does not exist: then the policy is removed as a whole and kept in
            // an annotation.
            let kept = (annotation(SUSPENDED), Some(json!(automated.to_string())));
            let without = Patch::new(object, vec![(AUTOMATED.to_vec(), None), kept]).based_on(object);
            step(patch, Some(without), StepSign::Written)
        }
        Verb::Resume => {
            let mut fields = Vec::new();
            let mut is_based = false;
            if is_skipped {
                fields.push((annotation(SKIP), None));
            }
            let kept = object.text(&["metadata", "annotations", SUSPENDED]);
            if !kept.is_empty() && tree(object, &AUTOMATED).is_none() {
                let policy = serde_json::from_str(&kept).ok().filter(serde_json::Value::is_object);
                let Some(policy) = policy else {
                    return Err(Refusal::new(
                        format!("the annotation {SUSPENDED} of {} holds no sync policy", app.app),
                        "set spec.syncPolicy.automated by hand, and remove the annotation",
                    ));
                };
                fields.push((AUTOMATED.to_vec(), Some(policy)));
                is_based = true;
            }
            if !kept.is_empty() {
                fields.push((annotation(SUSPENDED), None));
            }
            if object.at(&ENABLED).and_then(Value::as_bool) == Some(false) {
                // Without the field automated sync is enabled, so this restores the former state.
                fields.push((ENABLED.to_vec(), None));
            }
            if fields.is_empty() {
                return Ok(Plan::nothing(match tree(object, &AUTOMATED) {
                    Some(_) => "the app is not suspended".to_owned(),
                    None => format!(
                        "the app is not suspended, but has no spec.syncPolicy.automated: Argo CD syncs it only on request \
                         ({})",
                        command("reconcile --sync", &app.app)
                    ),
                }));
            }
            fields.push((annotation(REFRESH), Some(json!("normal"))));
            let patch = Patch::new(object, fields);
            step(if is_based { patch.based_on(object) } else { patch }, None, StepSign::Argo { syncs: false })
        }
        Verb::Reconcile(_) if is_skipped => Err(Refusal::new(
            format!("{} is suspended: Argo CD ignores an Application with the annotation {SKIP}", app.app),
            format!("first resume the app: {}", command("resume", &app.app)),
        )),
        Verb::Reconcile(how) => {
            let mut fields = Vec::new();
            if how.hard || !how.sync {
                fields.push((annotation(REFRESH), Some(json!(if how.hard { "hard" } else { "normal" }))));
            }
            if !how.sync {
                return step(Patch::new(object, fields), None, StepSign::Argo { syncs: false });
            }
            if let Some(running) = running(object) {
                return Err(Refusal::new(
                    format!("{} already has a sync operation: {running}", app.app),
                    "wait until the operation has ended, or end it with `argocd app terminate-op`",
                ));
            }
            fields.extend(operation(object));
            // An operation that another client requests meanwhile is not overwritten.
            step(Patch::new(object, fields).based_on(object), None, StepSign::Argo { syncs: true })
        }
    }
}

fn annotation(name: &str) -> Vec<&str> {
    vec!["metadata", "annotations", name]
}

/// Returns the phase and message of an Application's running operation, or `requested` if the operation has not
/// begun; `None` if there is no operation.
fn running(object: &Object<'_>) -> Option<String> {
    let phase = object.text(&["status", "operationState", "phase"]);
    if matches!(&*phase, "Running" | "Terminating") {
        return Some(format!("{phase}, {}", object.text(&["status", "operationState", "message"])));
    }
    tree(object, &["operation"]).map(|_| "requested".to_owned())
}

/// Returns the fields to write to start a sync of an Application, each as its path and value: with the target revision,
/// sync options and retry of its spec, as far as it sets them.
///
/// Argo CD then prunes objects that are no longer declared only if automatic sync is on and prunes.
fn operation(object: &Object<'_>) -> Vec<(Vec<&'static str>, Option<serde_json::Value>)> {
    let sync = |name| vec!["operation", "sync", name];
    let mut fields = vec![
        (vec!["operation", "initiatedBy", "username"], Some(json!("taffrail"))),
        (sync("prune"), Some(json!(prunes(object)))),
    ];
    let revision = object.text(&["spec", "source", "targetRevision"]);
    if !revision.is_empty() {
        fields.push((sync("revision"), Some(json!(revision))));
    }
    if let Some(options) = tree(object, &["spec", "syncPolicy", "syncOptions"]) {
        fields.push((sync("syncOptions"), Some(options)));
    }
    if let Some(retry) = tree(object, &["spec", "syncPolicy", "retry"]) {
        fields.push((vec!["operation", "retry"], Some(retry)));
    }
    fields
}

fn prunes(object: &Object<'_>) -> bool {
    let flag = |name| object.at(&[&AUTOMATED[..], &[name]].concat()).and_then(Value::as_bool);
    flag("prune") == Some(true) && flag("enabled") != Some(false)
}

/// Returns `Waiting` until Argo CD has done the requested refresh of the Application `object`, and, if `syncs`, until
/// its sync operation has ended: `Failed` if that failed, otherwise `Done`. `name` is the Application's name in
/// messages.
pub(super) fn progress(object: &Object<'_>, name: &str, syncs: bool) -> Progress {
    if !object.text(&["metadata", "annotations", REFRESH]).is_empty() {
        return Progress::Waiting(format!("Argo CD has not refreshed {name} yet"));
    }
    if !syncs {
        return Progress::Done;
    }
    // Argo CD removes the request together with its last report on it.
    if let Some(running) = running(object) {
        return Progress::Waiting(format!("the sync of {name} has not finished: {running}"));
    }
    let said = |field| object.text(&["status", "operationState", field]);
    match &*said("phase") {
        "Failed" | "Error" => Progress::Failed(format!("the sync of {name} failed: {}", said("message"))),
        _ => Progress::Done,
    }
}

//! The verbs for Flux: annotations that request a reconciliation, which the controllers confirm in the status.

use serde_json::json;
use taffrail_object::json::Value;
use taffrail_object::{Object, Projection};
use taffrail_status::{Observed, Presence};

use super::{Patch, Plan, Progress, Refusal, Step, StepSign, Verb, by_whom, command};
use crate::app::App;
use crate::delivery;
use crate::objects::Objects;

const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";
const FORCED: &str = "reconcile.fluxcd.io/forceAt";
const RESET: &str = "reconcile.fluxcd.io/resetAt";

pub(super) fn plan(
    app: &App,
    verb: Verb,
    home: &dyn Objects,
    observed: &Observed<'_>,
    requested: &str,
) -> Result<Plan, Refusal> {
    let object = &observed.object;
    let is_suspended = is_suspended(object);
    let suspend = || vec!["spec", "suspend"];
    match verb {
        Verb::Suspend if is_suspended => {
            Ok(Plan::nothing(format!("the app is already suspended{}", by_whom(object, &suspend()))))
        }
        Verb::Suspend => {
            let patch = Patch::new(object, vec![(suspend(), Some(json!(true)))]);
            Ok(Plan::of(vec![step(observed, patch, StepSign::Written)]))
        }
        Verb::Resume if !is_suspended => Ok(Plan::nothing("the app is not suspended")),
        Verb::Resume => {
            let fields = vec![(suspend(), Some(json!(false))), request(REQUESTED, requested)];
            Ok(Plan::of(vec![step(observed, Patch::new(object, fields), until(requested))]))
        }
        Verb::Reconcile(_) if is_suspended => Err(Refusal::new(
            format!("{} is suspended{}: Flux does not reconcile it", app.app, by_whom(object, &suspend())),
            format!("first resume the app: {}", command("resume", &app.app)),
        )),
        Verb::Reconcile(how) => {
            let mut steps = Vec::new();
            if how.with_source {
                for key in delivery::flux::sources(home, observed) {
                    steps.extend(source(app, home, &key, requested)?);
                }
            }
            let mut fields = vec![request(REQUESTED, requested)];
            fields.extend(how.force.then(|| request(FORCED, requested)));
            fields.extend(how.reset.then(|| request(RESET, requested)));
            steps.push(step(observed, Patch::new(object, fields), until(requested)));
            Ok(Plan::of(steps))
        }
    }
}

fn is_suspended(object: &Object<'_>) -> bool {
    object.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true)
}

fn request<'k>(name: &'k str, requested: &str) -> (Vec<&'k str>, Option<serde_json::Value>) {
    (vec!["metadata", "annotations", name], Some(json!(requested)))
}

fn until(requested: &str) -> StepSign {
    StepSign::Flux(requested.to_owned())
}

fn step(observed: &Observed<'_>, patch: Patch, until: StepSign) -> Step {
    Step { object: observed.key.to_owned(), patch, alternative: None, until }
}

/// Returns the step that makes Flux fetch the source `key` of `app`, with `requested` as the value of the
/// annotation; `None` for a source that Flux does not fetch.
///
/// # Errors
///
/// When the object is not a Flux source, does not exist, cannot be read, or is suspended.
fn source(
    app: &App,
    home: &dyn Objects,
    key: &taffrail_object::ObjectKey,
    requested: &str,
) -> Result<Option<Step>, Refusal> {
    let name = format!("{} {}", key.kind, key.path());
    let fault = |why: String| {
        let hint = format!(
            "omit --with-source, or find the problem of the source: {}",
            command("explain", &app.app)
        );
        Refusal::new(format!("the source of {}, {name}, {why}", app.app), hint)
    };
    if !delivery::flux::is_source(key) {
        let group = if key.group.is_empty() { "the core group" } else { &*key.group };
        return Err(fault(format!("is of {group} and not a Flux source: nothing is written to it")));
    }
    let observed = match home.get(key.as_ref()) {
        Presence::Present(observed) if observed.projection == Projection::Full => observed,
        Presence::Present(_) => return Err(fault("cannot be read".to_owned())),
        Presence::Absent => return Err(fault("does not exist".to_owned())),
        Presence::Unobserved(why) => return Err(fault(format!("cannot be read: {why}"))),
    };
    let object = &observed.object;
    // OCI registries are read chart by chart, and external artifacts are not fetched by Flux.
    let is_static = key.kind == "ExternalArtifact"
        || key.kind == "HelmRepository" && object.at(&["spec", "type"]).is_some_and(|it| it.is_str("oci"));
    if is_static {
        return Ok(None);
    }
    if is_suspended(object) {
        return Err(fault(format!("is suspended{}", by_whom(object, &["spec", "suspend"]))));
    }
    let patch = Patch::new(object, vec![request(REQUESTED, requested)]);
    Ok(Some(step(&observed, patch, until(requested))))
}

/// Returns `Waiting` until Flux has handled the request `requested` (the annotation's value) to `object`; then `Done`
/// if the condition `Ready` is true, `Failed` if it is false, and `Waiting` while it says that the object is
/// progressing or waits for a dependency. `name` is the object's name in messages.
pub(super) fn progress(object: &Object<'_>, name: &str, requested: &str) -> Progress {
    if object.text(&["status", "lastHandledReconcileAt"]) != requested {
        return Progress::Waiting(format!("Flux has not handled the request to {name} yet"));
    }
    let ready = object.condition("Ready");
    let field = |key| ready.and_then(|it| it.get(key)).and_then(Value::as_str).unwrap_or_default();
    // A controller that has begun reports that before it reports the result.
    match (&*field("status"), &*field("reason")) {
        ("True", _) => Progress::Done,
        ("False", "Progressing" | "DependencyNotReady") => {
            Progress::Waiting(format!("{name} is not reconciled yet: {}", field("message")))
        }
        ("False", _) => {
            Progress::Failed(format!("the reconciliation of {name} failed: {}", field("message")))
        }
        _ => Progress::Waiting(format!("{name} is being reconciled")),
    }
}

//! Refusals of verbs for apps whose delivery tool takes no requests.

use super::{Refusal, Verb, command};
use crate::app::App;
use crate::command::quoted;
use crate::identity::Delivery;

/// Returns the refusal of `verb` for an app that neither Flux nor Argo CD delivers, with what the user can do
/// instead.
pub(super) fn refusal(app: &App, verb: Verb) -> Refusal {
    let name = &app.app.name;
    let namespace = &app.app.namespace;
    let word = verb.as_str();
    let (why, hint) = match (app.app.delivery, verb) {
        (Delivery::ConfigSync, Verb::Reconcile(_)) => (
            "Config Sync takes no requests: it reads its source every 15 s, or as spec says, and reverts differences \
             at once"
                .to_owned(),
            format!(
                "to restart its reconciler: `kubectl -n config-management-system rollout restart deployment {}`",
                quoted(&reconciler(app))
            ),
        ),
        (Delivery::ConfigSync, Verb::Suspend) => (
            "Config Sync cannot suspend a single sync".to_owned(),
            "pin spec.git.revision to a commit, or stop all syncs of the cluster: `kubectl -n \
             config-management-system scale \
             deployment --all --replicas=0`"
                .to_owned(),
        ),
        (Delivery::ConfigSync, Verb::Resume) => (
            "Config Sync cannot suspend a single sync, so there is nothing to resume".to_owned(),
            "if all syncs of the cluster were stopped: `kubectl -n config-management-system scale deployment \
             reconciler-manager --replicas=1`"
                .to_owned(),
        ),
        (Delivery::Kpt, Verb::Reconcile(_)) => (
            "kpt changes objects only when a user runs it".to_owned(),
            "run `kpt live apply` in the folder of the package".to_owned(),
        ),
        (Delivery::Kpt, _) => (
            "kpt changes objects only when a user runs it".to_owned(),
            format!("there is nothing to {word}"),
        ),
        (Delivery::Helm, Verb::Reconcile(_)) => (
            "Helm changes a release only when a user runs it".to_owned(),
            format!("run `helm upgrade {} CHART -n {}`", quoted(name), quoted(namespace)),
        ),
        (Delivery::Helm, _) => (
            "Helm changes a release only when a user runs it".to_owned(),
            format!("there is nothing to {word}"),
        ),
        (Delivery::Porch, _) => match &app.delivered_by {
            Some(via) => (
                format!("Porch only stores the package; {via} delivers it"),
                format!("{word} that: {}", command(word, via)),
            ),
            None => (
                "Porch only stores the package, and no known tool delivers it to this cluster".to_owned(),
                "`taffrail get apps --all-contexts` shows in which clusters it is synced".to_owned(),
            ),
        },
        _ => (
            "no tool is known to deliver it: its objects only share a label".to_owned(),
            format!("{} shows its objects; {word} the tool that makes them", command("app", &app.app)),
        ),
    };
    Refusal::new(format!("cannot {word} {}: {why}", app.app), hint)
}

/// Returns the name of the Deployment that syncs a RootSync or RepoSync, which reconciler-manager chose.
fn reconciler(app: &App) -> String {
    let (namespace, name) = (&app.app.namespace, &app.app.name);
    let is_root = app.declaring.as_ref().is_some_and(|key| key.kind == "RootSync");
    match (is_root, name.as_str()) {
        (true, "root-sync") => "root-reconciler".to_owned(),
        (true, _) => format!("root-reconciler-{name}"),
        (false, "repo-sync") => format!("ns-reconciler-{namespace}"),
        (false, _) => format!("ns-reconciler-{namespace}-{name}-{}", name.len()),
    }
}

//! Actions: Lua scripts that return the changed object, and objects to create beside it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use jiff::Timestamp;
use serde_json::Value;
use taffrail_apps::verbs::Patch;
use taffrail_cluster::{WriteError, chain};
use taffrail_object::json::OwnedDocument;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_rules::lua::{Action, Change, Customizations, LuaError, LuaProblem, Operation};
use taffrail_rules::{Origin, shipped_actions};

use super::located::{LiveObject, LocatedObject, LocatedScripts};
use super::{
    MAX_TRIES, OperationError, OperationEvent, OperationId, OperationPlan, Outcome, PlanDigest, PlannedItem,
    PlannedWrite, Reply, called, send,
};

/// Prefix of the names of actions whose scripts are in the cluster.
const OF_CLUSTER: &str = "cluster/";

/// Maximum number of actions that one origin's scripts may offer for an object.
const MAX_OFFERS: usize = 100;

/// The kinds, by group, that a script of a cluster may create unless the user allows more. The effects of other kinds depend
/// on their controllers.
const HARMLESS: [(&str, &str); 3] = [("", "ConfigMap"), ("", "Event"), ("events.k8s.io", "Event")];

/// Prefix of the names of ConfigMaps that configure an Argo CD.
const OF_ARGO: &str = "argocd-";

/// The user's and Taffrail's action scripts, which are the same for every cluster.
#[derive(Debug)]
pub struct ActionScripts {
    own: Option<Customizations>,
    shipped: Customizations,
}

/// An action that an object has, and the origin of its script.
#[derive(Debug)]
pub struct Offer {
    /// The origin of the script: user, cluster or Taffrail.
    pub origin: Origin,
    /// The index of the script among those of its origin.
    place: usize,
    /// The action, as the script defines it.
    pub action: Action,
}

impl Offer {
    /// Returns the name by which users call the action. Actions of the cluster have the prefix `cluster/`, so that
    /// they cannot replace others.
    pub fn called(&self) -> String {
        match self.origin {
            Origin::Cluster => format!("{OF_CLUSTER}{}", self.action.name),
            Origin::User | Origin::Shipped => self.action.name.clone(),
        }
    }
}

impl ActionScripts {
    /// Combines the user's own scripts, if there are any, with those of Taffrail; the user's come first.
    pub fn new(own: Option<Customizations>) -> ActionScripts {
        ActionScripts { own, shipped: shipped_actions() }
    }

    /// Returns all scripts of one origin in their order; `of_cluster` has those of the cluster.
    fn of<'s>(&'s self, origin: Origin, of_cluster: &'s LocatedScripts) -> Vec<&'s Customizations> {
        match origin {
            Origin::User => self.own.iter().collect(),
            Origin::Shipped => vec![&self.shipped],
            Origin::Cluster => of_cluster.delivered_by.iter().map(|(scripts, _)| scripts).collect(),
        }
    }

    /// Returns the actions of an object, sorted by name with the cluster's last, and the errors of scripts that failed.
    ///
    /// # Errors
    /// Fails if the object cannot be read.
    pub fn offers(
        &self,
        located: &LocatedObject,
        now: Timestamp,
    ) -> Result<(Vec<Offer>, Vec<OperationError>), OperationError> {
        let name = || format!("{}: {}", located.cluster, located.key());
        let object =
            located.object().map_err(|error| OperationError::unreadable(name()).with_source(&error))?;
        let (offers, errors) = self.offers_by_origin(&located.scripts, &object, now);
        Ok((offers, errors.iter().map(|(_, error)| failing(&located.cluster, error)).collect()))
    }

    fn offers_by_origin(
        &self,
        of_cluster: &LocatedScripts,
        object: &Object<'_>,
        now: Timestamp,
    ) -> (Vec<Offer>, Vec<(Origin, LuaError)>) {
        let mut offers: Vec<Offer> = Vec::new();
        let mut errors = Vec::new();
        for origin in [Origin::User, Origin::Shipped, Origin::Cluster] {
            for (place, scripts) in self.of(origin, of_cluster).into_iter().enumerate() {
                match scripts.discover(object, now) {
                    Ok(actions) => {
                        for action in actions.into_iter().take(MAX_OFFERS) {
                            let offer = Offer { origin, place, action };
                            if !offers.iter().any(|other| other.called() == offer.called()) {
                                offers.push(offer);
                            }
                        }
                    }
                    Err(error) => errors.push((origin, error)),
                }
            }
        }
        offers.sort_by_key(|offer| (offer.origin == Origin::Cluster, offer.action.name.clone()));
        (offers, errors)
    }
}

/// Makes an error from the failure of a script in `cluster`.
fn failing(cluster: &str, error: &LuaError) -> OperationError {
    OperationError::unreadable(format!("{cluster}: {}", chain(error)))
}

/// A request to run an action on objects.
#[derive(Debug)]
pub struct ActionRequest {
    /// The scripts, of which one has the action.
    pub scripts: ActionScripts,
    /// The name of the action to run.
    pub action: String,
    /// The names and values of the action's parameters.
    pub parameters: Vec<(String, String)>,
    /// Kinds that a script of a cluster may create although they may run code or grant rights.
    pub allow_create: Vec<String>,
    /// The present time, as the scripts see it.
    pub now: Timestamp,
}

/// An object, and the action that is run on it.
#[derive(Debug)]
pub struct ActionTarget {
    /// The object on which the action is run.
    pub located: LocatedObject,
    /// The key of the object.
    pub key: ObjectKey,
    chosen: Option<ChosenAction>,
}

impl ActionTarget {
    /// Returns the origin of the script; `None` if the action was refused.
    pub fn origin(&self) -> Option<Origin> {
        Some(self.chosen.as_ref()?.origin)
    }

    /// Returns the ConfigMap that contains the script; `None` unless it is a script of the cluster.
    pub fn script_of(&self) -> Option<&str> {
        let chosen = self.chosen.as_ref().filter(|chosen| chosen.origin == Origin::Cluster)?;
        self.located.scripts.delivered_by.get(chosen.place).map(|(_, called)| &**called)
    }
}

/// The script and the action that were chosen.
#[derive(Debug)]
struct ChosenAction {
    origin: Origin,
    place: usize,
    /// The name of the action inside the script, without a prefix.
    name: String,
    parameters: BTreeMap<String, String>,
}

/// Plans an action for each of the objects; sends nothing.
pub fn plan_action(request: &ActionRequest, objects: Vec<LocatedObject>) -> OperationPlan<ActionTarget> {
    let mut plan =
        OperationPlan { operation: request.action.clone(), items: Vec::new(), refused: Vec::new() };
    for located in objects {
        let key = located.key();
        let cluster = located.cluster.clone();
        let planned = match located.object() {
            Ok(object) => request.plan(&located, &object),
            Err(error) => Err(OperationError::unreadable(&cluster).with_source(&error)),
        };
        match planned {
            Ok((chosen, writes)) => plan.items.push(PlannedItem {
                cluster,
                writes,
                warnings: Vec::new(),
                unchanged: format!("{} {} already has this state: nothing to do", key.kind, key.path()),
                target: ActionTarget { located, key, chosen: Some(chosen) },
            }),
            Err(error) => plan.refused.push((ActionTarget { located, key, chosen: None }, error)),
        }
    }
    plan
}

impl ActionRequest {
    /// Chooses the action for `object`, which is that of `located` or a newer version of it, and computes the
    /// writes.
    fn plan(
        &self,
        located: &LocatedObject,
        object: &Object<'_>,
    ) -> Result<(ChosenAction, Vec<PlannedWrite>), OperationError> {
        let chosen = self.choose(located, object)?;
        let writes = self.writes(located, object, &chosen)?;
        Ok((chosen, writes))
    }

    /// Finds the action that the request names, and checks its parameters.
    fn choose(&self, located: &LocatedObject, object: &Object<'_>) -> Result<ChosenAction, OperationError> {
        let (offers, errors) = self.scripts.offers_by_origin(&located.scripts, object, self.now);
        let key = ObjectKey::of(object);
        let (name, cluster) = (&self.action, &located.cluster);
        let place = format!("{} {} in {cluster}", key.kind, key.path());
        let Some(offer) = offers.iter().find(|offer| offer.called() == *name) else {
            // The failed script may have offered this action.
            let is_of_cluster = name.starts_with(OF_CLUSTER);
            let mut errors = errors.iter();
            let failed = errors.find(|(origin, _)| (*origin == Origin::Cluster) == is_of_cluster);
            if let Some((_, error)) = failed {
                return Err(failing(cluster, error));
            }
            let LocatedScripts { delivered_by, not_for_it } = &located.scripts;
            if let (true, Some(of)) = (is_of_cluster && delivered_by.is_empty(), not_for_it.first()) {
                let error = OperationError::usage(format!(
                    "there is no action '{name}' for {place}: the actions in {of} are only for objects that its Argo \
                     CD delivers"
                ));
                return Err(error.hint(
                    "an Application of that Argo CD must list the object, and the object must name the Application \
                     (annotation argocd.argoproj.io/tracking-id, or the label that Argo CD is set to use)",
                ));
            }
            let names: Vec<String> = offers.iter().map(Offer::called).collect();
            let hint = match names.as_slice() {
                [] => format!("no rules define actions for {}; --rules DIR adds some", key.kind),
                names => format!("there are: {}", names.join(", ")),
            };
            return Err(OperationError::usage(format!("there is no action '{name}' for {place}")).hint(hint));
        };
        if offer.action.disabled {
            let others = offers.iter().filter(|offer| !offer.action.disabled);
            let others: Vec<String> = others.map(Offer::called).collect();
            let others = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
            let error = format!("'{name}' is disabled for the current state of {place}");
            return Err(OperationError::usage(error).hint(format!("enabled: {others}")));
        }
        let parameters = self.parameters_of(&offer.action)?;
        Ok(ChosenAction {
            origin: offer.origin,
            place: offer.place,
            name: offer.action.name.clone(),
            parameters,
        })
    }

    /// Merges the given parameters with the defaults of the action. Fails for a parameter that the action does not
    /// declare, unless it declares none.
    fn parameters_of(&self, action: &Action) -> Result<BTreeMap<String, String>, OperationError> {
        let mut merged: BTreeMap<String, String> = (action.params.iter())
            .filter(|parameter| !parameter.default.is_empty())
            .map(|parameter| (parameter.name.clone(), parameter.default.clone()))
            .collect();
        for (name, value) in &self.parameters {
            // A script that declares no parameters may take any.
            if !action.params.is_empty() && !action.params.iter().any(|parameter| parameter.name == *name) {
                let names: Vec<&str> =
                    action.params.iter().map(|parameter| parameter.name.as_str()).collect();
                let error = OperationError::usage(format!("'{}' has no parameter '{name}'", action.name));
                return Err(error.hint(format!("parameters: {}", names.join(", "))));
            }
            merged.insert(name.clone(), value.clone());
        }
        Ok(merged)
    }

    /// Runs the chosen action and returns its writes.
    fn writes(
        &self,
        located: &LocatedObject,
        object: &Object<'_>,
        chosen: &ChosenAction,
    ) -> Result<Vec<PlannedWrite>, OperationError> {
        let name = &self.action;
        let scripts = self.scripts.of(chosen.origin, &located.scripts).into_iter().nth(chosen.place);
        let answer = scripts.map(|scripts| scripts.run(&chosen.name, object, &chosen.parameters, self.now));
        let changes = match answer {
            Some(Ok(changes)) => changes,
            Some(Err(error)) if matches!(error.problem, LuaProblem::Raised(_)) => {
                let line = error.line.map(|line| format!(" on line {line}")).unwrap_or_default();
                let refusal = OperationError::usage(format!("'{name}' refuses: {}", error.problem));
                return Err(refusal.hint(format!("raised in {}{line}", error.script)));
            }
            Some(Err(error)) => return Err(failing(&located.cluster, &error)),
            None => Vec::new(),
        };
        let own = ObjectKey::of(object);
        let mut writes = Vec::new();
        for Change { operation, object: after } in changes {
            let key = Object::new((&after).into()).map(|object| ObjectKey::of(&object));
            let mut key = key.map_err(|error| {
                OperationError::unreadable(format!("'{name}' returned a value that is not an object"))
                    .with_source(&error)
            })?;
            match operation {
                Operation::Patch if key == own => {
                    let patch = Patch::between(object, &after).map_err(|_| {
                        OperationError::unreadable(format!(
                            "{} {} is nested too deeply",
                            own.kind,
                            own.path()
                        ))
                    })?;
                    if !patch.is_empty() {
                        writes.push(PlannedWrite::Patch { object: own.clone(), patch, alternative: None });
                    }
                }
                Operation::Patch => {
                    let what = format!("'{name}' would change {} {}", key.kind, key.path());
                    return Err(OperationError::unreadable(what)
                        .hint("an action may change only its own object, and create others"));
                }
                Operation::Create => {
                    let is_namespaced = has_namespace(located.live.as_ref(), &key);
                    if key.namespace.is_empty() && is_namespaced {
                        key.namespace.clone_from(&own.namespace);
                    }
                    if chosen.origin == Origin::Cluster {
                        let is_inside =
                            is_namespaced && !key.namespace.is_empty() && key.namespace == own.namespace;
                        self.allow(&key, &after, is_inside)?;
                    }
                    writes.push(PlannedWrite::Create { object: key, body: after });
                }
            }
        }
        Ok(writes)
    }

    /// Checks that a script of the cluster may create this object. Such a script runs with the rights of the user, but
    /// anyone who may write to one namespace may have written it.
    fn allow(&self, key: &ObjectKey, object: &Value, is_inside: bool) -> Result<(), OperationError> {
        let what = format!("'{}' would create {} {}", self.action, key.kind, called(key, object));
        if !is_inside {
            return Err(OperationError::unreadable(what)
                .hint("a script of the cluster may create objects only in the namespace of its own object"));
        }
        if is_risky(key, object) && !is_allowed(key, &self.allow_create) {
            let error = OperationError::unreadable(format!("{what}, which may run code or grant rights"));
            return Err(error.hint(format!("--allow-create {} permits it", key.kind)));
        }
        Ok(())
    }
}

fn has_namespace(live: Option<&LiveObject>, key: &ObjectKey) -> bool {
    match live.and_then(|live| live.discovery.kind(&key.group, &key.kind)) {
        Some(served) => served.namespaced,
        None => is_namespaced(&key.group, &key.kind).unwrap_or(true),
    }
}

/// Returns true if an object may run code or grant rights, so that the user must allow its kind.
fn is_risky(key: &ObjectKey, object: &Value) -> bool {
    let is_harmless = HARMLESS.contains(&(key.group.as_str(), key.kind.as_str()));
    // Tools select ConfigMaps by label: Helm releases, inventories, dashboards.
    let labels = object.pointer("/metadata/labels").is_some_and(|labels| !labels.is_null());
    !is_harmless || labels || key.name.starts_with(OF_ARGO)
}

/// Returns true if one of the words, `Kind` or `Kind.group`, names the kind.
fn is_allowed(key: &ObjectKey, words: &[String]) -> bool {
    words.iter().any(|word| match word.split_once('.') {
        Some((kind, group)) => kind.eq_ignore_ascii_case(&key.kind) && group.eq_ignore_ascii_case(&key.group),
        None => word.eq_ignore_ascii_case(&key.kind),
    })
}

impl OperationPlan<ActionTarget> {
    /// Sends all writes of the plan, one object after the other. `request` must be the one from which the plan was
    /// made; `on_event` receives the progress.
    ///
    /// # Errors
    ///
    /// Fails if the plan does not have this digest; all other failures are the [`Outcome`] of an item.
    pub async fn run_action<F: FnMut(OperationEvent<'_>) -> Reply>(
        &self,
        digest: &PlanDigest,
        id: &OperationId,
        request: &ActionRequest,
        dry_run: bool,
        mut on_event: F,
    ) -> Result<(), OperationError> {
        self.check(digest)?;
        if on_event(OperationEvent::Started { id, digest }) == Reply::Stop {
            return Ok(());
        }
        for (item, planned) in self.items.iter().enumerate() {
            let outcome = match planned.writes.is_empty() {
                true => Outcome::Unchanged,
                false => match on_event(OperationEvent::Begins { item }) {
                    Reply::Skip => Outcome::Refused,
                    Reply::Stop => return Ok(()),
                    Reply::Continue => {
                        let run = ActionRun { request, item, planned, dry_run, on_event: &mut on_event };
                        match run.write().await {
                            ControlFlow::Continue(Ok(())) if dry_run => Outcome::Accepted,
                            ControlFlow::Continue(Ok(())) => Outcome::Done,
                            ControlFlow::Continue(Err(error)) => Outcome::Error(error),
                            ControlFlow::Break(()) => return Ok(()),
                        }
                    }
                },
            };
            if on_event(OperationEvent::Ended { item, outcome }) == Reply::Stop {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The run of an action on one object.
struct ActionRun<'r, F> {
    request: &'r ActionRequest,
    item: usize,
    planned: &'r PlannedItem<ActionTarget>,
    dry_run: bool,
    on_event: &'r mut F,
}

impl<F: FnMut(OperationEvent<'_>) -> Reply> ActionRun<'_, F> {
    fn tell(&mut self, event: OperationEvent<'_>) -> ControlFlow<()> {
        if (self.on_event)(event) == Reply::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Sends all writes in order. If there are several, or the script is the cluster's, sends a server-side dry run
    /// of all of them first.
    async fn write(mut self) -> ControlFlow<(), Result<(), OperationError>> {
        let PlannedItem { target, writes, cluster, .. } = self.planned;
        let Some(live) = &target.located.live else {
            let error = format!("{}: cluster {cluster} is not connected", target.name());
            return ControlFlow::Continue(Err(OperationError::unreadable(error)));
        };
        // A single write needs no dry run: the write itself is refused or done.
        let tries_first = writes.len() > 1 || target.origin() == Some(Origin::Cluster);
        let rounds: &[bool] = match (self.dry_run, tries_first) {
            (true, _) => &[true],
            (false, true) => &[true, false],
            (false, false) => &[false],
        };
        for (round, &dry_run) in rounds.iter().enumerate() {
            for (at, write) in writes.iter().enumerate() {
                let item = self.item;
                if round == 0 {
                    self.tell(OperationEvent::Writing { item, write, is_alternative: false })?;
                }
                let mut is_stored = false;
                let sent = match write {
                    PlannedWrite::Patch { patch, .. } => {
                        self.patch(live, patch, dry_run, &mut is_stored).await.map(|()| None)
                    }
                    PlannedWrite::Create { object, body } => {
                        let made = send::create(cluster, live, object, &write.called(), body, dry_run).await;
                        is_stored = made.is_ok() && !dry_run;
                        made
                    }
                };
                if is_stored || sent.is_ok() {
                    let name = sent.as_ref().ok().cloned().flatten();
                    self.tell(OperationEvent::Written { item, write: at, is_stored, name })?;
                }
                if let Err(error) = sent {
                    return ControlFlow::Continue(Err(error));
                }
            }
        }
        ControlFlow::Continue(Ok(()))
    }

    /// Patches the object itself. On a conflict it reads the object again and plans the action again, up to [`MAX_TRIES`]
    /// times.
    async fn patch(
        &self,
        live: &LiveObject,
        patch: &Patch,
        dry_run: bool,
        is_stored: &mut bool,
    ) -> Result<(), OperationError> {
        let ActionTarget { located, key, chosen } = &self.planned.target;
        let name = self.planned.target.name();
        let invalid = |error: &dyn std::error::Error| OperationError::unreadable(&name).with_source(error);
        let object = located.object().map_err(|error| invalid(&error))?;
        let mut based = patch.clone().based_on(&object);
        for _ in 0..MAX_TRIES {
            let conflict = match send::patch_parts(live, key, &based, dry_run, is_stored).await {
                Ok(dropped) if dropped.is_empty() => return Ok(()),
                Ok(dropped) => return Err(OperationError::dropped(&name, &dropped)),
                Err(error @ WriteError::Conflict { .. }) => error,
                Err(error) => {
                    return Err(OperationError::of_write(
                        format!("cannot {} {name}", self.request.action),
                        &error,
                    ));
                }
            };
            let fresh = read_again(live, key, &name).await?;
            let again = Object::new(fresh.root()).map_err(|error| invalid(&error))?;
            let (now_chosen, writes) = self.request.plan(located, &again)?;
            let is_same_script = chosen
                .as_ref()
                .is_some_and(|it| (it.origin, it.place) == (now_chosen.origin, now_chosen.place));
            let fresh = writes.into_iter().find_map(|write| match write {
                PlannedWrite::Patch { patch, .. } => Some(patch),
                PlannedWrite::Create { .. } => None,
            });
            let Some(same) = fresh.filter(|fresh| is_same_script && fresh.is_same(patch)) else {
                return Err(OperationError::changed(&name, &chain(&conflict)));
            };
            based = same.based_on(&again);
        }
        let error =
            OperationError::unreadable(format!("{name} is changed again and again by another client"));
        Err(error.hint("try again later"))
    }
}

impl ActionTarget {
    /// Returns the object's kind, namespace and name, for messages.
    fn name(&self) -> String {
        format!("{} {}", self.key.kind, self.key.path())
    }
}

async fn read_again(live: &LiveObject, key: &ObjectKey, name: &str) -> Result<OwnedDocument, OperationError> {
    let cluster = send::in_time(&live.cluster);
    let read = cluster.get(&live.resource, Some(&key.namespace), &key.name, Projection::Full).await;
    let found = read.map_err(|error| OperationError::unreadable(name).with_source(&error))?;
    found.ok_or_else(|| OperationError::unreadable(format!("{name} was deleted meanwhile")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_plain_config_maps_and_events_are_harmless() {
        let is = |group: &str, kind: &str, name: &str, object: Value| {
            is_risky(&ObjectKey::new(group, kind, "shop", name), &object)
        };
        for (group, kind) in [
            ("", "Pod"),
            ("", "Secret"),
            ("", "ServiceAccount"),
            ("", "Endpoints"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("batch", "Job"),
            ("argoproj.io", "Application"),
            ("kustomize.toolkit.fluxcd.io", "Kustomization"),
            // The effects of these kinds depend on controllers that Taffrail does not know.
            ("serving.knative.dev", "Service"),
            ("external-secrets.io", "ExternalSecret"),
            ("networking.k8s.io", "NetworkPolicy"),
            ("example.com", "ConfigMap"),
            ("example.com", "Backup"),
        ] {
            assert!(is(group, kind, "a", json!({})), "{group} {kind}");
        }
        assert!(!is("", "ConfigMap", "a", json!({"data": {"a": "b"}})));
        assert!(!is("", "Event", "a", json!({})) && !is("events.k8s.io", "Event", "a", json!({})));
        assert!(is("", "ConfigMap", "argocd-cm", json!({})));
        assert!(is("", "ConfigMap", "a", json!({"metadata": {"labels": {"owner": "helm"}}})));
    }

    #[test]
    fn kinds_are_allowed_by_name() {
        let job = ObjectKey::new("batch", "Job", "shop", "a");
        let allowed =
            |words: &[&str]| is_allowed(&job, &words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert!(allowed(&["job"]) && allowed(&["Secret", "Job.batch"]));
        assert!(!allowed(&[]) && !allowed(&["Job.example.com", "Jobs"]));
    }
}

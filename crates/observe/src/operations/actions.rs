//! Actions: Lua scripts that return the changed object, and objects to create beside it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use serde_json::Value;
use taffrail_api::operations::{
    ActionTarget, OperationError, OperationEvent, OperationId, OperationPlan, Outcome, PlanDigest,
    PlannedChange, PlannedItem, PlannedWrite, RefusedItem, Reply, called,
};
use taffrail_apps::verbs::Patch;
use taffrail_cluster::{ApiResource, Cluster, Reason, WriteError, chain};
use taffrail_object::json::OwnedDocument;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_rules::lua::{Action, Change, Customizations, LuaError, LuaProblem, Operation};
use taffrail_rules::{Origin, shipped_actions};

use super::located::{LiveObject, LocatedObject, LocatedScripts};
use super::rights::{note_refusals, rights_questions};
use super::{MAX_TRIES, changed, of_write, send, with_source};

/// Prefix of the names of actions whose scripts are in the cluster.
const OF_CLUSTER: &str = "cluster/";

/// Maximum number of actions that the user's scripts, Taffrail's, or those of one ConfigMap may offer for an object;
/// further ones are ignored.
const MAX_OFFERS: usize = 100;

/// The kinds, by group, of which a script of a cluster may create objects without the user's permission, if they have
/// no labels and no name that begins with [`OF_ARGO`]. The effects of other kinds depend on their controllers.
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
    /// An action of the user replaces Taffrail's of the same name.
    ///
    /// # Errors
    /// Fails if the server sent something else than an object.
    pub fn offers(
        &self,
        located: &LocatedObject,
        now: Timestamp,
    ) -> Result<(Vec<Offer>, Vec<OperationError>), OperationError> {
        let what = || format!("{}: cannot parse the object", located.cluster);
        let object =
            located.object().map_err(|error| with_source(OperationError::unreadable(what()), &error))?;
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
    /// The user's and Taffrail's scripts; those of a cluster are in each [`LocatedObject`].
    pub scripts: ActionScripts,
    /// The name of the action to run, as [`Offer::called`] returns it.
    pub action: String,
    /// The names and values of the action's parameters.
    pub parameters: Vec<(String, String)>,
    /// Kinds, as `Kind` or `Kind.group`, that a script of a cluster may create although they may run code or grant
    /// rights.
    pub allow_create: Vec<String>,
    /// The present time, as the scripts see it.
    pub now: Timestamp,
}

/// The plan of an action, with what its run needs.
#[derive(Debug)]
pub struct ActionPlan {
    /// The plan, as it is shown.
    pub shown: OperationPlan<ActionTarget>,
    /// The object of each item, and the action that is run on it.
    objects: Vec<(LocatedObject, ChosenAction)>,
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

impl ChosenAction {
    /// Returns the ConfigMap that contains the script, such as `ConfigMap argocd/argocd-cm`; `None` unless it is one of
    /// the cluster's `scripts`.
    fn script_of(&self, scripts: &LocatedScripts) -> Option<String> {
        let of_cluster = Some(self).filter(|chosen| chosen.origin == Origin::Cluster)?;
        scripts.delivered_by.get(of_cluster.place).map(|(_, called)| called.clone())
    }
}

/// Plans an action for each of the objects; those for which that fails are in [`OperationPlan::refused`]. Sends
/// nothing.
pub fn plan_action(request: &ActionRequest, objects: Vec<LocatedObject>) -> ActionPlan {
    let mut plan = ActionPlan { shown: OperationPlan::new(&*request.action), objects: Vec::new() };
    for located in objects {
        let object = located.key();
        let cluster = located.cluster.clone();
        let target = |origin: Option<Origin>, script_of| ActionTarget {
            cluster: cluster.clone(),
            object: object.clone(),
            origin: origin.map(|origin| origin.as_str().into()),
            script_of,
        };
        let planned = match located.object() {
            Ok(object) => request.plan(&located, &object),
            Err(error) => {
                let what = format!("{cluster}: cannot parse the object");
                Err(with_source(OperationError::unreadable(what), &error))
            }
        };
        match planned {
            Ok((chosen, writes)) => {
                plan.shown.items.push(PlannedItem {
                    cluster: cluster.clone(),
                    target: target(Some(chosen.origin), chosen.script_of(&located.scripts)),
                    writes,
                    warnings: Vec::new(),
                    unchanged: format!(
                        "{} {} already has this state: nothing to do",
                        object.kind,
                        object.path()
                    ),
                    forbidden: None,
                });
                plan.objects.push((located, chosen));
            }
            Err(error) => plan.shown.refused.push(RefusedItem { target: target(None, None), error }),
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
                names => format!("the actions are: {}", names.join(", ")),
            };
            return Err(OperationError::usage(format!("there is no action '{name}' for {place}")).hint(hint));
        };
        if offer.action.disabled {
            let others = offers.iter().filter(|offer| !offer.action.disabled);
            let others: Vec<String> = others.map(Offer::called).collect();
            let others = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
            let error = format!("action '{name}' is disabled for the current state of {place}");
            return Err(OperationError::usage(error)
                .hint(format!("the actions that are enabled for the object: {others}")));
        }
        let parameters = self.parameters_of(&offer.action)?;
        Ok(ChosenAction {
            origin: offer.origin,
            place: offer.place,
            name: offer.action.name.clone(),
            parameters,
        })
    }

    /// Returns the given values of the action's parameters, and for the others their defaults, if not empty. Fails for
    /// a parameter that the action does not declare, unless it declares none.
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
                let error =
                    OperationError::usage(format!("action '{}' has no parameter '{name}'", action.name));
                return Err(error.hint(format!("the parameters of the action are: {}", names.join(", "))));
            }
            merged.insert(name.clone(), value.clone());
        }
        Ok(merged)
    }

    /// Runs the chosen action and returns its writes. Fails if the script fails or refuses, or would change another
    /// object, and for a script of the cluster if it may not create one of its objects.
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
                let refusal = OperationError::usage(format!("action '{name}' refuses: {}", error.problem));
                return Err(
                    refusal.hint(format!("the error was raised in the script {}{line}", error.script))
                );
            }
            Some(Err(error)) => return Err(failing(&located.cluster, &error)),
            None => Vec::new(),
        };
        let own = ObjectKey::of(object);
        let mut writes = Vec::new();
        for Change { operation, object: after } in changes {
            let key = Object::new((&after).into()).map(|object| ObjectKey::of(&object));
            let mut key = key.map_err(|error| {
                let what = format!("action '{name}' returned a value that is not an object");
                with_source(OperationError::unreadable(what), &error)
            })?;
            match operation {
                Operation::Patch if key == own => {
                    let patch = Patch::between(object, &after).map_err(|_| {
                        OperationError::unreadable(format!(
                            "cannot compare {} {} before and after action '{name}': it is nested too deeply",
                            own.kind,
                            own.path()
                        ))
                    })?;
                    if !patch.is_empty() {
                        writes.push(PlannedWrite::patch(own.clone(), patch, None));
                    }
                }
                Operation::Patch => {
                    let what = format!("refused: action '{name}' would change {} {}", key.kind, key.path());
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
                    let yaml = serde_saphyr::to_string(&after).unwrap_or_default();
                    writes.push(PlannedWrite::create(key, after, &yaml));
                }
            }
        }
        Ok(writes)
    }

    /// Checks that a script of the cluster may create this object: in the namespace of the action's own object
    /// (`is_inside`), and harmless or of a kind that the user allowed. Such a script runs with the rights of the user,
    /// but anyone who may write to one namespace may have written it.
    fn allow(&self, key: &ObjectKey, object: &Value, is_inside: bool) -> Result<(), OperationError> {
        let what = format!("action '{}' would create {} {}", self.action, key.kind, called(key, object));
        if !is_inside {
            return Err(OperationError::unreadable(format!("refused: {what}"))
                .hint("an action script that comes from a cluster may create only objects in the namespace of the object that it is run for, \
                     and no cluster-scoped ones"));
        }
        if is_risky(key, object) && !is_allowed(key, &self.allow_create) {
            let error =
                OperationError::unreadable(format!("refused: {what}, which may run code or grant rights"));
            return Err(error.hint(format!("--allow-create {} lets the script create it", key.kind)));
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

/// Returns true unless an object is of a [`HARMLESS`] kind, has no labels and no name that begins with [`OF_ARGO`]: it
/// may run code or grant rights, so the user must allow its kind.
fn is_risky(key: &ObjectKey, object: &Value) -> bool {
    let is_harmless = HARMLESS.contains(&(key.group.as_str(), key.kind.as_str()));
    // Tools select ConfigMaps by label: Helm releases, inventories, dashboards.
    let labels = object.pointer("/metadata/labels").is_some_and(|labels| !labels.is_null());
    !is_harmless || labels || key.name.starts_with(OF_ARGO)
}

/// Returns true if one of the words, ignoring case, is the kind of `key`, or its kind and group as `Kind.group`.
fn is_allowed(key: &ObjectKey, words: &[String]) -> bool {
    words.iter().any(|word| match word.split_once('.') {
        Some((kind, group)) => kind.eq_ignore_ascii_case(&key.kind) && group.eq_ignore_ascii_case(&key.group),
        None => word.eq_ignore_ascii_case(&key.kind),
    })
}

/// The options of [`ActionPlan::run`].
#[derive(Debug, Clone, Copy)]
pub struct ActionSettings {
    /// True for a server-side dry run.
    pub dry_run: bool,
    /// The time that each cluster has for all of its writes.
    pub time: Duration,
}

impl ActionPlan {
    /// Asks the API servers whether they would allow the writes, and notes the refusals in the plan; takes at most
    /// `time`. Nothing is written.
    pub async fn note_rights(&mut self, time: Duration) {
        let objects = &self.objects;
        let find = |place: usize, object: &ObjectKey| {
            let (located, _) = objects.get(place)?;
            let live = located.live.as_ref()?;
            let resource = live.discovery.kind(&object.group, &object.kind)?.preferred();
            Some((live.cluster.clone(), resource))
        };
        let questions = rights_questions(&self.shown, time, find);
        note_refusals(&mut self.shown, questions).await;
    }

    /// Sends all writes of the plan: to all clusters at the same time, and to the objects of one cluster one after the
    /// other, within its time. `request` must be the one from which the plan was made; `on_event` receives the
    /// progress. All items begin before the first write, so the time that the user takes for an answer does not count
    /// as that of a cluster.
    ///
    /// # Errors
    ///
    /// Fails if the plan does not have this digest; all other failures are the [`Outcome`] of an item.
    pub async fn run<F: FnMut(OperationEvent) -> Reply>(
        &self,
        digest: &PlanDigest,
        id: &OperationId,
        request: &ActionRequest,
        settings: ActionSettings,
        on_event: F,
    ) -> Result<(), OperationError> {
        self.shown.check(digest)?;
        let mut run = ActionRun { plan: self, request, settings, on_event };
        // The caller that stops it knows that it did.
        let _ = run.all(digest, id).await;
        Ok(())
    }
}

/// The run of an action on all objects of a plan.
struct ActionRun<'r, F> {
    plan: &'r ActionPlan,
    request: &'r ActionRequest,
    settings: ActionSettings,
    on_event: F,
}

impl<F: FnMut(OperationEvent) -> Reply> ActionRun<'_, F> {
    fn tell(&mut self, event: OperationEvent) -> ControlFlow<()> {
        if (self.on_event)(event) == Reply::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end(&mut self, item: usize, outcome: Outcome) -> ControlFlow<()> {
        self.tell(OperationEvent::Ended { item, outcome })
    }

    async fn all(&mut self, digest: &PlanDigest, id: &OperationId) -> ControlFlow<()> {
        self.tell(OperationEvent::Started { id: id.clone(), digest: digest.clone() })?;
        let mut items: BTreeMap<&str, Vec<QueuedItem<'_>>> = BTreeMap::new();
        let planned = self.plan.shown.items.iter().zip(&self.plan.objects).enumerate();
        for (item, (PlannedItem { target, cluster, writes, .. }, (located, chosen))) in planned {
            let Some(live) = located.live.as_ref().filter(|_| !writes.is_empty()) else {
                let name = name_of(&target.object);
                let error = || {
                    OperationError::unreadable(format!(
                        "cannot write {name}: cluster {cluster} is not connected"
                    ))
                };
                self.end(
                    item,
                    match writes.is_empty() {
                        true => Outcome::Unchanged,
                        false => Outcome::Error { error: error() },
                    },
                )?;
                continue;
            };
            match (self.on_event)(OperationEvent::Begins { item }) {
                Reply::Continue => {
                    let key = &target.object;
                    let queued = QueuedItem { item, key, writes, located, chosen, live };
                    items.entry(cluster).or_default().push(queued);
                }
                Reply::Skip => self.end(item, Outcome::Refused)?,
                Reply::Stop => return ControlFlow::Break(()),
            }
        }
        let mut under_way = FuturesUnordered::new();
        for items in items.into_values() {
            let Some(queue) = ClusterQueue::new(self.request, self.settings, items) else { continue };
            self.announce(&queue)?;
            under_way.push(queue.send());
        }
        while let Some((queue, sent)) = under_way.next().await {
            if let Some(queue) = self.take(queue, sent)? {
                self.announce(&queue)?;
                under_way.push(queue.send());
            }
        }
        ControlFlow::Continue(())
    }

    /// Reports the write that is sent next to the caller, unless its dry run was reported before.
    fn announce(&mut self, queue: &ClusterQueue<'_>) -> ControlFlow<()> {
        match queue.write() {
            Some(write) if queue.is_trial == queue.begins_with_trial() => {
                let (item, write) = (queue.current.item, write.clone());
                self.tell(OperationEvent::Writing { item, write, is_alternative: false })
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Processes the result of a write. Returns the queue with the next write; `None` if it was the last one.
    fn take<'r>(
        &mut self,
        mut queue: ClusterQueue<'r>,
        sent: SentWrite,
    ) -> ControlFlow<(), Option<ClusterQueue<'r>>> {
        let (item, write) = (queue.current.item, queue.write);
        let SentWrite { is_stored, result } = sent;
        if is_stored || result.is_ok() {
            let name = result.as_ref().ok().cloned().flatten();
            self.tell(OperationEvent::Written { item, write, is_stored, name })?;
        }
        let outcome = match result {
            Err(error) => Outcome::Error { error },
            Ok(_) if queue.advance() => return ControlFlow::Continue(Some(queue)),
            Ok(_) if self.settings.dry_run => Outcome::Accepted,
            Ok(_) => Outcome::Done,
        };
        self.end(item, outcome)?;
        ControlFlow::Continue(queue.next_item())
    }
}

/// An item of the plan that is to be written to its cluster.
struct QueuedItem<'r> {
    /// The item's index in the plan.
    item: usize,
    key: &'r ObjectKey,
    writes: &'r [PlannedWrite],
    located: &'r LocatedObject,
    chosen: &'r ChosenAction,
    live: &'r LiveObject,
}

/// The items of one cluster, which are written one after the other. All writes of an item are sent in order; if there
/// are several, or the script is the cluster's, a server-side dry run of all of them comes first.
struct ClusterQueue<'r> {
    request: &'r ActionRequest,
    dry_run: bool,
    /// The connection, whose deadline is the end of the cluster's time.
    cluster: Cluster,
    current: QueuedItem<'r>,
    /// The items after the current one.
    rest: std::vec::IntoIter<QueuedItem<'r>>,
    /// Index of the write of the current item that is sent next.
    write: usize,
    /// True if the next write is sent as a dry run.
    is_trial: bool,
}

/// The result of a write.
struct SentWrite {
    /// True if the server stored the write, or a part of it.
    is_stored: bool,
    /// The name of the created object; `None` for a patch, or if the response has no readable object.
    result: Result<Option<String>, OperationError>,
}

impl<'r> ClusterQueue<'r> {
    /// Makes the queue of a cluster, whose time begins now; `None` if there are no items.
    fn new(
        request: &'r ActionRequest,
        settings: ActionSettings,
        items: Vec<QueuedItem<'r>>,
    ) -> Option<ClusterQueue<'r>> {
        let mut rest = items.into_iter();
        let current = rest.next()?;
        let cluster = current.live.cluster.with_timeout(settings.time);
        let mut queue = ClusterQueue {
            request,
            dry_run: settings.dry_run,
            cluster,
            current,
            rest,
            write: 0,
            is_trial: false,
        };
        queue.is_trial = queue.begins_with_trial();
        Some(queue)
    }

    /// Returns true if a server-side dry run of the current item's writes comes first, or is all that is sent: in a dry
    /// run, if there are several writes, or if the script is the cluster's. A single write of another script needs
    /// none: it is refused or done as a whole.
    fn begins_with_trial(&self) -> bool {
        let QueuedItem { writes, chosen, .. } = self.current;
        self.dry_run || writes.len() > 1 || chosen.origin == Origin::Cluster
    }

    fn write(&self) -> Option<&'r PlannedWrite> {
        self.current.writes.get(self.write)
    }

    /// Moves to the next write of the current item, and from the end of a trial to the first write, to store it now
    /// unless the run is a dry run. Returns false if nothing of the item is left to send.
    fn advance(&mut self) -> bool {
        self.write += 1;
        if self.write().is_some() {
            return true;
        }
        self.write = 0;
        std::mem::replace(&mut self.is_trial, false) && !self.dry_run
    }

    /// Moves to the next item; `None` after the last one.
    fn next_item(mut self) -> Option<ClusterQueue<'r>> {
        self.current = self.rest.next()?;
        self.write = 0;
        self.is_trial = self.begins_with_trial();
        Some(self)
    }

    /// Sends the next write. It is not sent again if its answer is lost.
    async fn send(self) -> (ClusterQueue<'r>, SentWrite) {
        let mut is_stored = false;
        let result = match self.write() {
            None => Ok(None),
            Some(write) => match &write.change {
                PlannedChange::Patch { patch, .. } => self.patch(patch, &mut is_stored).await.map(|()| None),
                PlannedChange::Create { body } => {
                    let (cluster, live) = (&self.cluster, self.current.live);
                    let called = write.called();
                    let made = send::create(cluster, live, &write.object, &called, body, self.is_trial).await;
                    is_stored = made.is_ok() && !self.is_trial;
                    made
                }
            },
        };
        (self, SentWrite { is_stored, result })
    }

    /// Patches the object itself. On a conflict it reads the object again and plans the action again, up to
    /// [`MAX_TRIES`] times; fails if that yields another patch, or if the server does not store a field.
    async fn patch(&self, patch: &Patch, is_stored: &mut bool) -> Result<(), OperationError> {
        let QueuedItem { key, located, chosen, live, .. } = self.current;
        let name = name_of(key);
        let invalid = |error: &dyn std::error::Error| {
            with_source(OperationError::unreadable(format!("cannot parse {name}")), error)
        };
        let object = located.object().map_err(|error| invalid(&error))?;
        let mut based = patch.clone().based_on(&object);
        for _ in 0..MAX_TRIES {
            let sent = send::patch_parts(&self.cluster, live, key, &based, self.is_trial, is_stored).await;
            let conflict = match sent {
                Ok(dropped) if dropped.is_empty() => return Ok(()),
                Ok(dropped) => return Err(super::dropped(&name, &dropped)),
                Err(error @ WriteError::Conflict { .. }) => error,
                Err(error) => {
                    return Err(of_write(format!("cannot {} {name}", self.request.action), &error));
                }
            };
            let fresh = read_again(&self.cluster, &live.resource, key, &name).await?;
            let again = Object::new(fresh.root()).map_err(|error| invalid(&error))?;
            let (now_chosen, writes) = self.request.plan(located, &again)?;
            let is_same_script = (chosen.origin, chosen.place) == (now_chosen.origin, now_chosen.place);
            let fresh = writes.into_iter().find_map(|write| match write.change {
                PlannedChange::Patch { patch, .. } => Some(patch),
                PlannedChange::Create { .. } => None,
            });
            let Some(same) = fresh.filter(|fresh| is_same_script && fresh.is_same(patch)) else {
                return Err(changed(&name, &chain(&conflict)));
            };
            based = same.based_on(&again);
        }
        let what =
            format!("cannot {} {name}: another client changes it again and again", self.request.action);
        let error = OperationError::unreadable(what);
        Err(error.hint("run the action again later"))
    }
}

/// Returns an object's kind, namespace and name, for messages.
fn name_of(key: &ObjectKey) -> String {
    format!("{} {}", key.kind, key.path())
}

async fn read_again(
    cluster: &Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    name: &str,
) -> Result<OwnedDocument, OperationError> {
    let read = cluster.get(resource, Some(&key.namespace), &key.name, Projection::Full).await;
    let found = read.map_err(|error| {
        let what = format!("{name} changed meanwhile and cannot be read again; this change was not written");
        let is_late = error.reason() == Reason::Timeout;
        OperationError { is_late, ..with_source(OperationError::unreadable(what), &error) }
    })?;
    found.ok_or_else(|| OperationError::unreadable(format!("cannot write {name}: it was deleted meanwhile")))
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

//! Prints the statuses of objects in clusters or dumps, which are selected as in kubectl.

#[cfg(feature = "hub")]
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_api::question::StatusView;
use taffrail_apps::wait::Selection;
use taffrail_apps::{Freshness, Objects, Scope, ScopeError, Snapshot};
use taffrail_cluster::{ApiResource, Cluster, Discovery};
use taffrail_object::{GroupKind, ObjectKey, ObjectKeyRef};
use taffrail_observe::{ClusterConnector, FleetMembers, LEFT_OUT, ObjectArg, ObjectLook};
use taffrail_status::assess::{Budgets, Costs, Evidence};
use taffrail_status::{ClusterState as _, Presence, Status, Verdict};

use super::arguments::StatusArguments;
use super::judge::{Answers, Judge, Row};
use super::kinds;
use super::print::Printer;
use crate::command_error::{CommandError, Exit};
use crate::commands::named::unknown_cluster;
use crate::output::answer::Console;
use crate::rule_source::RulesWithOptions;
use crate::source;

/// A parsed word of the command line: an object, or all objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SelectedWord {
    Object(ObjectArg),
    /// All objects of a kind, which the user may give by any of its names.
    Kind(String),
}

/// The objects that the command line selects by name, kind, namespace and label, before they are resolved in each
/// cluster.
pub(super) struct ReadQuery {
    wanted: Vec<SelectedWord>,
    namespace: Option<String>,
    all_namespaces: bool,
    pub(super) selector: Option<String>,
}

/// The objects that one argument, such as `deploy/web`, selects in a cluster, or the reason why it selects none.
#[derive(Clone)]
pub(super) enum Meant {
    One(ApiResource, ObjectKey),
    All(ApiResource, Option<String>),
    /// A kind, as written, that the server certainly does not serve, since its discovery was complete, or that no
    /// object, CustomResourceDefinition or recorded discovery of a dump has.
    NoKind(String),
    /// An argument that selects nothing here; holds the reason, for the user.
    Nothing(String),
    /// A full name that begins with the name of another cluster.
    Elsewhere,
}

/// The objects that were read from one cluster.
pub(super) struct ReadObjects {
    pub(super) snapshot: Snapshot,
    pub(super) meant: Vec<Meant>,
    /// Names of the kinds that the cluster serves, to suggest one for a misspelled kind.
    pub(super) kinds: Vec<String>,
    cluster: Option<Cluster>,
}

impl ReadQuery {
    pub(super) fn read(arguments: &StatusArguments) -> Result<ReadQuery, CommandError> {
        ReadQuery::of(&arguments.view())
    }

    /// Parses the objects that a question names.
    ///
    /// # Errors
    /// Fails if a word names no object, if `KIND/NAME` and `KIND NAME` are mixed, or if a selector is combined with
    /// names.
    pub(super) fn of(view: &StatusView) -> Result<ReadQuery, CommandError> {
        let StatusView { objects, namespace, all_namespaces, selector } = view.clone();
        let wanted = wanted(&objects)?;
        let is_of_kind = |wanted: &SelectedWord| matches!(wanted, SelectedWord::Kind(_));
        if selector.is_some() && !wanted.iter().all(is_of_kind) {
            return Err(CommandError::usage(
                "-l selects all objects of a kind that have labels, so no names may be given with it",
            ));
        }
        Ok(ReadQuery { wanted, namespace, all_namespaces, selector })
    }

    /// Returns the namespace of -n; `None` without it.
    #[cfg(feature = "hub")]
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the clusters with which the names of all objects begin; `None` if some argument has none, so that its
    /// objects may be in any cluster.
    #[cfg(feature = "hub")]
    pub(super) fn clusters(&self) -> Option<BTreeSet<String>> {
        let cluster = |wanted: &SelectedWord| match wanted {
            SelectedWord::Object(object) => object.cluster().map(str::to_owned),
            SelectedWord::Kind(_) => None,
        };
        self.wanted.iter().map(cluster).collect()
    }

    /// Returns the namespace to read objects of `resource` in: that of -n, else `own`, the context's; `None` for
    /// all namespaces and for cluster-scoped kinds.
    fn place<'a>(&'a self, resource: &ApiResource, own: &'a str) -> Option<&'a str> {
        match &self.namespace {
            _ if self.all_namespaces || !resource.namespaced => None,
            Some(namespace) => Some(namespace.as_str()),
            None => Some(own),
        }
    }

    /// Returns an error if an argument begins with a cluster that is not among `known`.
    pub(super) fn check_clusters(&self, known: &[&str]) -> Result<(), CommandError> {
        let named = self.wanted.iter().filter_map(|wanted| match wanted {
            SelectedWord::Object(object) => object.cluster(),
            SelectedWord::Kind(_) => None,
        });
        unknown_cluster(named, known).map_or(Ok(()), Err)
    }

    /// Returns the meaning of each argument in `cluster`, whose kinds are in `discovery`; `own` is the namespace of
    /// its context.
    pub(super) fn meant(&self, cluster: &str, discovery: &Discovery, own: &str) -> Vec<Meant> {
        let meant = |wanted: &SelectedWord| {
            let (kind, name) = match wanted {
                SelectedWord::Kind(kind) => (kind, None),
                SelectedWord::Object(ObjectArg::Named { kind, name }) => (kind, Some(name)),
                SelectedWord::Object(object) if object.cluster().is_some_and(|other| other != cluster) => {
                    return Meant::Elsewhere;
                }
                SelectedWord::Object(ObjectArg::Key { key, .. }) => return in_full(key, discovery),
            };
            let Some(resource) = discovery.resolve(kind) else {
                return match discovery.broken().is_empty() {
                    true => Meant::NoKind(kind.clone()),
                    false => Meant::Nothing(format!("the server has no kind called {kind}")),
                };
            };
            let place = self.place(&resource, own);
            match name {
                None => Meant::All(resource.clone(), place.map(str::to_owned)),
                Some(name) if self.all_namespaces && resource.namespaced => Meant::Nothing(format!(
                    "{kind} {name}: a name needs a namespace: add -n NAMESPACE, without -A"
                )),
                Some(name) => {
                    let place = place.unwrap_or_default();
                    let key = ObjectKey::new(&*resource.group, &*resource.kind, place, &**name);
                    Meant::One(resource.clone(), key)
                }
            }
        };
        self.wanted.iter().map(meant).collect()
    }

    /// Returns the keys of the objects to read one by one, and the kinds to list, with namespace and selector.
    pub(super) fn reads(&self, meant: &[Meant]) -> (Vec<ObjectKey>, Vec<Selection>) {
        let mut reads = (Vec::new(), Vec::new());
        for meant in meant {
            match meant {
                Meant::One(_, key) => reads.0.push(key.clone()),
                Meant::All(resource, namespace) => reads.1.push(Selection {
                    kind: GroupKind::new(&*resource.group, &*resource.kind),
                    namespace: namespace.clone(),
                    labels: self.selector.clone(),
                }),
                Meant::NoKind(_) | Meant::Nothing(_) | Meant::Elsewhere => {}
            }
        }
        reads
    }

    /// Returns the error for an argument whose kind certainly no cluster serves, with a hint at similar kinds in
    /// `known`; `None` if some cluster may serve each kind.
    pub(super) fn wrong_kind<'m>(
        meant: impl Iterator<Item = &'m [Meant]>,
        known: impl IntoIterator<Item = String>,
    ) -> Option<CommandError> {
        Some(kinds::unknown(ReadQuery::unserved(meant)?, known))
    }

    /// Returns the kind of the first argument that certainly no cluster serves; `None` if some cluster may serve each.
    pub(super) fn unserved<'m>(meant: impl Iterator<Item = &'m [Meant]>) -> Option<&'m String> {
        let mut places: Option<Vec<Option<&String>>> = None;
        for meant in meant {
            let wrong = meant.iter().map(|meant| match meant {
                Meant::NoKind(kind) => Some(kind),
                Meant::One(..) | Meant::All(..) | Meant::Nothing(_) | Meant::Elsewhere => None,
            });
            places = Some(match places {
                None => wrong.collect(),
                Some(places) => places.into_iter().zip(wrong).map(|(one, other)| one.and(other)).collect(),
            });
        }
        places?.into_iter().flatten().next()
    }
}

/// Returns the meaning of an argument `group/Kind/namespace/name` in a cluster with these kinds.
fn in_full(key: &ObjectKey, discovery: &Discovery) -> Meant {
    match (discovery.kind(&key.group, &key.kind), discovery.broken().is_empty()) {
        (Some(served), _) => Meant::One(served.preferred(), key.clone()),
        (None, true) => Meant::NoKind(key.kind.clone()),
        (None, false) => Meant::Nothing(format!("the server has no kind called {}", key.kind)),
    }
}

/// Returns the query for whole objects by name, with other objects as evidence about them unless only kstatus' rules
/// apply; the caller adds the objects.
pub(super) fn plan(judge: &Judge) -> taffrail_apps::ReadQuery {
    taffrail_apps::ReadQuery {
        declarations: false,
        label_groups: false,
        evidence: !judge.is_pure,
        by_name: true,
        whole: true,
        ..taffrail_apps::ReadQuery::default()
    }
}

/// Returns the keys of all objects of a kind in the snapshot, only those in `namespace` if that is given.
pub(super) fn keys(
    snapshot: &Snapshot,
    resource: &ApiResource,
    namespace: Option<&String>,
) -> Vec<ObjectKey> {
    let all = snapshot.of_kind(&resource.group, &resource.kind, None).map(|observed| observed.key);
    all.filter(|key| namespace.is_none_or(|place| *place == key.namespace))
        .map(ObjectKeyRef::to_owned)
        .collect()
}

pub(super) fn run(
    arguments: &StatusArguments,
    judge: &Judge,
    console: &Console,
) -> Result<Exit, CommandError> {
    let asked = ReadQuery::read(arguments)?;
    if !arguments.source.from.is_empty() {
        return of_dumps(arguments, judge, &asked, console);
    }

    let FleetMembers { members, problems } = source::members(&arguments.source)?;
    asked.check_clusters(&members.iter().map(|member| &*member.name).collect::<Vec<_>>())?;
    let namespace = asked.namespace.clone();
    let asked = Arc::new(asked);
    let now = super::now(arguments.source.now);
    let source = &arguments.source;
    let rules = arguments.rules.with_options(Budgets::default(), source.patience(), &source.trust);
    let plan = plan(judge);
    let found = source::each(members, source.limits(), move |live| {
        let (asked, plan, rules) = (asked.clone(), plan.clone(), rules.clone());
        async move { of_cluster(&live, &asked, plan, now, rules).await }
    })?;
    source::print_requests(
        arguments.source.verbose,
        found.iter().filter_map(|found| found.cluster.as_ref()),
        console,
    );

    // A kind that no server has is a word that is wrong; where one does not answer, it may be the one that has it.
    let are_all_there = found.iter().all(|found| !found.meant.is_empty());
    let known = found.iter().flat_map(|found| found.kinds.iter().cloned());
    if are_all_there
        && let Some(complaint) = ReadQuery::wrong_kind(found.iter().map(|found| &*found.meant), known)
    {
        return Err(complaint);
    }
    let mut printer = Printer::new(arguments, found.len() > 1, console);
    for problem in &problems {
        printer.complain(problem.into());
    }
    for ReadObjects { snapshot, meant, .. } in &found {
        if !print(&mut printer, judge, snapshot, meant)? {
            break;
        }
    }
    let read: Vec<&Snapshot> = found.iter().map(|found| &found.snapshot).collect();
    for missing in source::missing_namespaces(namespace.iter(), &read, &arguments.source)? {
        printer.lacks_namespace(missing);
    }
    printer.finish(arguments.exit_status)
}

/// Prints the errors of one cluster and the status of each selected object in it; returns `false` once stdout is
/// closed.
fn print(
    printer: &mut Printer,
    judge: &Judge,
    snapshot: &Snapshot,
    meant: &[Meant],
) -> Result<bool, CommandError> {
    let cluster = snapshot.name();
    unread(printer, cluster, snapshot.errors(), snapshot.freshness() == Freshness::never());
    let costs = Costs::default();
    for meant in meant {
        let (resource, keys) = match meant {
            Meant::NoKind(kind) => {
                printer.unread(cluster, kind, "", &format!("the server has no kind called {kind}"));
                continue;
            }
            Meant::Nothing(why) => {
                printer.unread(cluster, Scope::Cluster, "", why);
                continue;
            }
            Meant::Elsewhere => continue,
            Meant::One(resource, key) => (resource, vec![key.clone()]),
            Meant::All(resource, namespace) => (resource, keys(snapshot, resource, namespace.as_ref())),
        };
        for key in keys {
            if !printer.print(of_key(judge, snapshot, &costs, resource, &key))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Prints the errors of reading a cluster; `is_unobserved` is true if it was never read, which the error then says.
pub(super) fn unread(printer: &mut Printer, cluster: &str, errors: &[ScopeError], is_unobserved: bool) {
    for error in errors {
        match error.scope == Scope::Cluster && is_unobserved {
            true => printer.unobserved(cluster, &error.scope, &error.reason, &error.message),
            false => printer.unread(cluster, &error.scope, &error.reason, &error.message),
        }
    }
}

/// Returns the status of the object `key`: `NotFound` if it does not exist, `Unknown` if it was not read.
pub(super) fn of_key(
    judge: &Judge,
    snapshot: &Snapshot,
    costs: &Costs,
    resource: &ApiResource,
    key: &ObjectKey,
) -> Answers {
    match snapshot.get(key.as_ref()) {
        Presence::Present(observed) => {
            judge.object(snapshot.name(), observed.object, Evidence::from(snapshot).at_cost(costs))
        }
        Presence::Absent => judge.absent(absent(snapshot, resource, key, None)),
        Presence::Unobserved(why) => judge.absent(absent(snapshot, resource, key, Some(why.into_owned()))),
    }
}

/// Returns the row of an object without content: with the status Unknown and the message `unread` if that is given,
/// else NotFound.
pub(super) fn absent(
    snapshot: &Snapshot,
    resource: &ApiResource,
    key: &ObjectKey,
    unread: Option<String>,
) -> Row {
    let verdict = match unread {
        Some(why) => Verdict::new(Status::Unknown, why, ""),
        None => {
            let lacks_kind =
                snapshot.is_dump() && snapshot.of_kind(&key.group, &key.kind, None).next().is_none();
            let doubt = if lacks_kind { LEFT_OUT } else { "" };
            Verdict::new(Status::NotFound, format!("Resource not found{doubt}"), "reader")
        }
    };
    Row {
        cluster: snapshot.name().to_owned(),
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        verdict,
    }
}

/// Parses the arguments, which are `KIND/NAME …` and full names, `KIND NAME …`, or `KIND,…`. Fails if they mix words
/// with and without a `/`, or a word with a `/` is no object.
fn wanted(words: &[String]) -> Result<Vec<SelectedWord>, CommandError> {
    let with_names = words.iter().filter(|word| word.contains('/')).count();
    if with_names == words.len() {
        let object = |word: &String| match word.parse() {
            Ok(object) => Ok(SelectedWord::Object(object)),
            Err(_) => {
                let complaint = CommandError::usage(format!(
                    "cannot read '{word}' as an object: write KIND/NAME, such as deploy/web"
                ));
                Err(complaint.hint("write [CLUSTER/]group/Kind/namespace/name to name an object in full"))
            }
        };
        return words.iter().map(object).collect();
    }
    if with_names > 0 {
        let complaint = CommandError::usage("KIND/NAME and KIND NAME cannot be mixed");
        return Err(complaint.hint("write every object as KIND/NAME: deploy/web svc/web"));
    }
    let Some((kinds, names)) = words.split_first() else { return Ok(Vec::new()) };
    let kinds: Vec<&str> = kinds.split(',').filter(|kind| !kind.is_empty()).collect();
    let of_kind = |kind: &str| -> Vec<SelectedWord> {
        if names.is_empty() {
            return vec![SelectedWord::Kind(kind.to_owned())];
        }
        names.iter().map(|name| SelectedWord::Object(ObjectArg::named(kind, name))).collect()
    };
    Ok(kinds.into_iter().flat_map(of_kind).collect())
}

pub(super) async fn of_cluster(
    live: &ClusterConnector,
    asked: &ReadQuery,
    plan: taffrail_apps::ReadQuery,
    now: Timestamp,
    rules: RulesWithOptions,
) -> ReadObjects {
    let (name, mut meant) = (&*live.member.name, Vec::new());
    let choose = |cluster: &Cluster, discovery: &Discovery| {
        meant = asked.meant(name, discovery, cluster.namespace());
        asked.reads(&meant)
    };
    let ObjectLook { snapshot, discovery, cluster } =
        live.read_objects(plan, now, &rules.active(), choose).await;
    let served = discovery.iter().flat_map(|discovery| discovery.resources());
    let kinds = served.map(|served| served.kind.clone()).collect();
    ReadObjects { snapshot, meant, kinds, cluster }
}

/// Prints the statuses of the selected objects in dumps. The dumps alone tell which kinds there are; no server is
/// asked. Fails for a label selector, which only a server evaluates.
fn of_dumps(
    arguments: &StatusArguments,
    judge: &Judge,
    asked: &ReadQuery,
    console: &Console,
) -> Result<Exit, CommandError> {
    if asked.selector.is_some() {
        return Err(CommandError::usage(
            "-l (labels) is evaluated by the API server, so it does not work with dumps",
        ));
    }
    let of = |snapshot: &Snapshot| {
        let meant = in_dump(snapshot, asked);
        let (mut objects, selections) = asked.reads(&meant);
        for meant in &meant {
            if let Meant::All(resource, namespace) = meant {
                objects.extend(keys(snapshot, resource, namespace.as_ref()));
            }
        }
        taffrail_apps::ReadQuery { objects, selections, ..plan(judge) }
    };
    let fleet = source::dumps_of(&arguments.source, &of, console)?;
    asked.check_clusters(&fleet.snapshots.iter().map(Objects::name).collect::<Vec<_>>())?;
    let judge = &Judge { now: Some(fleet.now), ..judge.clone() };
    let meant: Vec<Vec<Meant>> = fleet.snapshots.iter().map(|snapshot| in_dump(snapshot, asked)).collect();
    let known = fleet.snapshots.iter().flat_map(|snapshot| snapshot.all().map(|it| it.key.kind.to_owned()));
    if let Some(complaint) = ReadQuery::wrong_kind(meant.iter().map(Vec::as_slice), known) {
        return Err(complaint);
    }
    let mut printer = Printer::new(arguments, fleet.snapshots.len() > 1, console);
    for problem in &fleet.problems {
        printer.complain(problem.into());
    }
    for (snapshot, meant) in fleet.snapshots.iter().zip(&meant) {
        let known: Vec<Meant> = meant.iter().filter(|it| !matches!(it, Meant::NoKind(_))).cloned().collect();
        if !print(&mut printer, judge, snapshot, &known)? {
            break;
        }
    }
    let read: Vec<&Snapshot> = fleet.snapshots.iter().collect();
    for missing in source::missing_namespaces(asked.namespace.iter(), &read, &arguments.source)? {
        printer.lacks_namespace(missing);
    }
    printer.finish(arguments.exit_status)
}

/// Returns the meanings of each argument in a dump. A name without -n means every object of that name, in any
/// namespace; if the dump has none, one of the first kind that the word names.
fn in_dump(snapshot: &Snapshot, asked: &ReadQuery) -> Vec<Meant> {
    let mut meant = Vec::new();
    for wanted in &asked.wanted {
        let (word, name) = match wanted {
            SelectedWord::Kind(kind) => (kind, None),
            SelectedWord::Object(ObjectArg::Named { kind, name }) => (kind, Some(name)),
            SelectedWord::Object(object)
                if object.cluster().is_some_and(|other| other != snapshot.name()) =>
            {
                meant.push(Meant::Elsewhere);
                continue;
            }
            SelectedWord::Object(ObjectArg::Key { key, .. }) => {
                meant.push(Meant::One(dumped(snapshot, &key.group_kind()), key.clone()));
                continue;
            }
        };
        let kinds = kinds::called(snapshot, word);
        if kinds.is_empty() {
            meant.push(Meant::NoKind(word.clone()));
        }
        let before = meant.len();
        for kind in &kinds {
            let resource = dumped(snapshot, kind);
            let namespace = asked.namespace.clone().filter(|_| resource.namespaced);
            let Some(name) = name else {
                meant.push(Meant::All(resource, namespace));
                continue;
            };
            let there =
                keys(snapshot, &resource, namespace.as_ref()).into_iter().filter(|key| key.name == *name);
            meant.extend(there.map(|key| Meant::One(resource.clone(), key)));
        }
        // One that is not there is of the kind that comes first.
        if let (Some(name), Some(kind), true) = (name, kinds.first(), meant.len() == before) {
            let resource = ApiResource { version: String::new(), ..dumped(snapshot, kind) };
            let place = asked.namespace.clone().filter(|_| resource.namespaced).unwrap_or_default();
            let key = ObjectKey::new(&*kind.group, &*kind.kind, place, &**name);
            meant.push(Meant::One(resource, key));
        }
    }
    meant
}

/// Describes a kind as discovery does. Its version is that of the first object of the kind in the dump, empty without
/// one; its plural is empty. It counts as namespaced unless the dump tells otherwise.
fn dumped(snapshot: &Snapshot, kind: &GroupKind) -> ApiResource {
    let version = snapshot.of_kind(&kind.group, &kind.kind, None).next();
    ApiResource {
        group: kind.group.clone(),
        version: version.map_or_else(String::new, |observed| observed.object.version().to_owned()),
        kind: kind.kind.clone(),
        plural: String::new(),
        namespaced: snapshot.is_namespaced(&kind.group, &kind.kind).unwrap_or(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let show = |wanted: &SelectedWord| match wanted {
                SelectedWord::Kind(kind) => format!("{kind}:*"),
                SelectedWord::Object(ObjectArg::Named { kind, name }) => format!("{kind}:{name}"),
                SelectedWord::Object(ObjectArg::Key { cluster, key }) => {
                    format!("{}:{key}", cluster.as_deref().unwrap_or("*"))
                }
            };
            wanted(&words)
                .map(|all| all.iter().map(show).collect::<Vec<_>>().join(" "))
                .map_err(|error| error.exit)
        };
        assert_eq!(read(&["deploy/web", "svc/web"]), Ok("deploy:web svc:web".to_owned()));
        assert_eq!(read(&["deploy", "web", "api"]), Ok("deploy:web deploy:api".to_owned()));
        assert_eq!(read(&["deploy,sts.apps"]), Ok("deploy:* sts.apps:*".to_owned()));
        let both = ["apps/Deployment/shop/web", "arn:aws:eks:eu/one//Service/shop/web"];
        let keys = "*:apps/Deployment/shop/web arn:aws:eks:eu/one:/Service/shop/web";
        assert_eq!(read(&both), Ok(keys.to_owned()));
        assert_eq!(read(&["deploy", "svc/web"]), Err(Exit::Usage));
        assert_eq!(read(&["deploy/"]), Err(Exit::Usage));
        assert_eq!(read(&["a/b/c"]), Err(Exit::Usage));
    }
}

//! The question (names, filters and options) of `explain`.

mod doubts;

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use taffrail_apps::{
    App, AppError, AppLabels, AppList, Changes, Delivery, FindError, ObjectSync, Objects, Ownership,
    Ownerships, Problem, ReadQuery, Resource, Snapshot, Suspension, Words, aliases, changes_of_each,
    declared_each, differing_fields, last_changes,
};
use taffrail_object::kinds::names_kind;
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::assess::Change;
use taffrail_status::{ActiveRules, Status};

use super::select::{asked_for, concerning, hides_apps, not_single, places, reaching};
use super::subject::SubjectName;
use super::{AskedClusters, AskedFleet, FleetFacts, QuestionError, View, differences, reads_apps};
use crate::{AppRow, Explanation, as_text, explained_together, told_in_few};

/// The parameters of `explain`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ExplainView {
    /// Names of apps (`NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`) or objects (`KIND/NAME` or
    /// `[CLUSTER/]group/Kind/namespace/name`); empty for every app with a problem that is more than a notice.
    #[serde(with = "as_text::list")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub names: Vec<SubjectName>,
    /// The namespace of the objects, and in which the apps are declared; `null` for all.
    pub namespace: Option<String>,
    /// The names of the clusters whose apps or objects are explained; empty for all.
    pub clusters: Vec<String>,
    /// True for one explanation for each cluster, in place of one for all clusters with an equal one; without effect if
    /// `names` are given, as these are explained for each cluster.
    pub per_cluster: bool,
    /// True if suggested commands name the context of the cluster.
    pub contexts: bool,
    /// True to get the last lines of the containers that are causes, of the first cluster of each explanation, from a
    /// hub; without effect where the clusters are read directly.
    pub logs: bool,
    /// The objects that are explained as one app, in place of the apps; never serialized.
    #[serde(skip)]
    pub declared: Vec<ObjectKey>,
    /// The labels by which undeclared objects are grouped into apps; never serialized.
    #[serde(skip)]
    pub app_labels: AppLabels,
}

/// The answer of `explain`: the explained subjects, and the names that have no explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplainAnswer {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The explained apps and objects, in the order of the names; without names the apps with a problem that is more
    /// than a notice, the worst first.
    pub items: Vec<ExplainedSubject>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
    /// The reasons why names have no explanation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<QuestionError>,
    /// Number of apps whose green status was not checked for doubts, because a hundred of the same name in the same
    /// cluster were.
    #[serde(default)]
    pub undoubted: usize,
    /// True if the fleet has any app, or anything is explained.
    pub has_apps: bool,
    /// True if no explained app or object has a problem but notices.
    pub is_well: bool,
    /// Failures to find the containers that are causes, if the question asks for their logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_errors: Vec<AppError>,
    /// True if the log of a container that is a cause exists but could not be read.
    #[serde(default)]
    pub lacks_logs: bool,
}

/// An app or object with its explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplainedSubject {
    /// The explanation of the app or object.
    pub explanation: Explanation,
    /// The row of the app; for an object the row of an app that consists of the object alone.
    pub row: AppRow,
    /// The object, if it is explained in place of an app; else left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// True if the explanation names the apps and controllers of the object.
    #[serde(default)]
    pub tells_owners: bool,
    /// The declared objects that are not ready beside the one that the status names: the first five, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherObject>,
    /// Number of declared objects that are not ready beside the one that the status names, those beyond `others`
    /// included.
    #[serde(default)]
    pub other_count: usize,
    /// A sentence why it is not known in which further fields unsynced objects differ (they are not recorded, too many,
    /// or in a cluster that was not read), with Argo CD's command that shows them; left out for other tools, and if no
    /// object that exists is OutOfSync that no problem names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differences: Option<String>,
}

/// A declared object that is not Ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OtherObject {
    /// The object.
    pub object: ObjectKey,
    /// The status of the object.
    pub status: Status,
    /// The message of the status, in one line.
    pub message: Words,
}

impl ExplainedSubject {
    /// Maximum number of [`ExplainedSubject::others`]; [`ExplainedSubject::other_count`] counts the rest too.
    pub const MAX_OTHERS: usize = 5;

    fn new(app: &App, tells_owners: bool, explanation: Explanation) -> ExplainedSubject {
        let object = match (app.app.delivery, app.resources.as_slice()) {
            (Delivery::Taffrail, [only]) => Some((*only.key).clone()),
            _ => None,
        };
        let is_other = |resource: &&Resource| {
            Some(&*resource.key) != app.worst.as_ref() && resource.status != Status::Current
        };
        let mut others: Vec<&Resource> = app.resources.iter().filter(is_other).collect();
        others.sort_by_key(|other| other.status);
        let other_count = others.len();
        let told = |other: &Resource| OtherObject {
            object: (*other.key).clone(),
            status: other.status,
            message: other.message.clone(),
        };
        let others = others.into_iter().take(ExplainedSubject::MAX_OTHERS).map(told).collect();
        let differences = differences(app, &unsaid(&explanation));
        let row = AppRow::from(app);
        ExplainedSubject { explanation, row, object, tells_owners, others, other_count, differences }
    }

    /// Returns the unsynced objects that no problem tells already: leaves out those that a problem names with a message
    /// that ends with theirs.
    pub fn unsaid(&self) -> Vec<&ObjectSync> {
        unsaid(&self.explanation)
    }
}

fn unsaid(explanation: &Explanation) -> Vec<&ObjectSync> {
    let is_said = |own: &&ObjectSync| {
        let ends = |problem: &Problem| !own.message.is_empty() && problem.message.ends_with(&own.message);
        explanation.problems.iter().any(|problem| problem.object.as_ref() == Some(&own.key) && ends(problem))
    };
    explanation.unsynced.iter().filter(|own| !is_said(own)).collect()
}

/// An app to explain, or an object with its owning apps.
struct Subject<'l> {
    app: Cow<'l, App>,
    belonging: Option<Ownership<'l>>,
}

impl<'l> Subject<'l> {
    fn app(app: &'l App) -> Subject<'l> {
        Subject { app: Cow::Borrowed(app), belonging: None }
    }

    /// Returns the apps that hold the object; empty if the subject itself is an app.
    fn via(&self) -> &[&'l App] {
        self.belonging.as_ref().map_or(&[], |belonging| &belonging.apps)
    }
}

/// The fleet, and the facts about all clusters that explaining several names has in common.
struct ExplainContext<'l> {
    fleet: &'l dyn AskedFleet,
    rules: &'l ActiveRules<'l>,
    list: &'l AppList,
    clusters: &'l [&'l dyn Objects],
    belongings: Ownerships<'l>,
    /// For each cluster, true if an earlier one is the same cluster under another name.
    aliases: Vec<bool>,
}

impl ExplainView {
    fn in_cluster(&self, name: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|it| it == name)
    }

    /// Iterates over the apps with a problem that is more than a notice, in the namespace and clusters of the question.
    fn unwell<'l>(&self, list: &'l AppList) -> impl Iterator<Item = &'l App> {
        let is_inside = |app: &&App| self.namespace.as_ref().is_none_or(|own| *own == app.app.namespace);
        let is_unwell = |app: &&App| app.pressing().is_some() && self.in_cluster(&app.app.target);
        list.apps.iter().filter(is_inside).filter(is_unwell)
    }

    /// Returns the subjects to explain (the apps of `list` if objects are declared; else the named ones; without names,
    /// the apps with a problem that is more than a notice, the worst first), and an error for each name that was not
    /// found or means several apps.
    fn choose<'l>(&self, grounds: impl Fn() -> ExplainContext<'l>, list: &'l AppList) -> Chosen<'l> {
        let namespace = self.namespace.as_deref();
        if !self.declared.is_empty() {
            let apps = list.apps.iter().filter(|app| self.in_cluster(&app.app.target));
            return (apps.map(Subject::app).collect(), Vec::new());
        }
        if self.names.is_empty() {
            let mut apps: Vec<&App> = self.unwell(list).collect();
            apps.sort_by_key(|app| (app.effective(), app.problem().map(|problem| problem.severity)));
            return (apps.into_iter().map(Subject::app).collect(), Vec::new());
        }
        let mut chosen = Vec::new();
        let mut missing = Vec::new();
        let grounds = LazyCell::new(grounds);
        for name in &self.names {
            let apps =
                name.query().map(|query| query.clone().within(namespace).find_in(list, &self.clusters));
            let refusal = match apps {
                Some(Ok(apps)) => {
                    let apps = apps.into_iter().filter(|app| self.in_cluster(&app.app.target));
                    chosen.extend(apps.map(Subject::app));
                    continue;
                }
                Some(Err(error @ FindError::Ambiguous { .. })) => {
                    missing.push(not_single(error, list));
                    continue;
                }
                Some(Err(error)) => Some(error),
                None => None,
            };
            let mut found = grounds.objects(name, namespace);
            found.retain(|subject| self.in_cluster(&subject.app.app.target));
            if found.is_empty() {
                missing.push(not_found(&grounds, name, refusal));
            }
            chosen.extend(found);
        }
        (chosen, missing)
    }

    /// Returns the context that suggested commands about an app name: its target cluster if its worst object is a
    /// declared one, else its home; `None` unless `contexts` is set.
    fn context(&self, app: &App) -> Option<String> {
        // The declaring object may be in another cluster than the app's objects.
        let is_there = app.resources.iter().any(|resource| Some(&*resource.key) == app.worst.as_ref());
        self.contexts.then(|| if is_there { app.app.target.clone() } else { app.app.home.clone() })
    }

    /// Returns the apps for which `changed`, the changes before a failure, is computed: those whose name is among the
    /// names, or all if no name was given.
    fn changes(&self) -> Changes {
        if self.names.is_empty() {
            return Changes::All;
        }
        Changes::Of(self.names.iter().filter_map(|name| name.query().cloned()).collect())
    }
}

/// The subjects of an answer, and the errors for names that were not found or mean several apps.
type Chosen<'l> = (Vec<Subject<'l>>, Vec<QuestionError>);

impl<'l> ExplainContext<'l> {
    /// Returns the objects that `name` matches in each cluster, in `namespace` if that is given, each with the apps
    /// that own it. An object named in full is among them even if it does not exist. A cluster with two names is
    /// searched once.
    fn objects(&self, name: &SubjectName, namespace: Option<&str>) -> Vec<Subject<'l>> {
        let mut found = Vec::new();
        for (cluster, is_alias) in self.clusters.iter().zip(&self.aliases) {
            // One cluster under two names is shown once.
            if *is_alias || name.cluster().is_some_and(|own| own != cluster.name()) {
                continue;
            }
            let here = self.list.apps.iter().filter(|app| app.app.target == cluster.name());
            let declared_here =
                here.flat_map(|app| app.resources.iter().map(|own| ObjectKey::as_ref(&own.key)));
            let there = cluster.all().map(|observed| observed.key);
            let named = declared_here.chain(there).chain(name.key().map(ObjectKey::as_ref));
            let mut keys: Vec<ObjectKeyRef<'_>> =
                named.filter(|key| name.is_object(*key, namespace)).collect();
            keys.sort();
            keys.dedup();
            let keys: Vec<ObjectKey> = keys.into_iter().map(ObjectKeyRef::to_owned).collect();
            let own = declared_each(*cluster, &keys, self.rules, self.fleet.now());
            found.extend(keys.iter().zip(own.apps).map(|(key, app)| Subject {
                app: Cow::Owned(app),
                belonging: Some(self.belongings.of(*cluster, key)),
            }));
        }
        found
    }

    /// Returns true if `kind` names a kind that some cluster serves or has objects of.
    fn is_known(&self, kind: &str) -> bool {
        self.clusters.iter().any(|cluster| {
            let served = cluster.kinds().is_some_and(|catalog| {
                catalog.iter().any(|served| names_kind(kind, &served.group, &served.kind))
            });
            served || cluster.all().any(|observed| names_kind(kind, observed.key.group, observed.key.kind))
        })
    }
}

/// Makes the error for a name that matches neither an app nor an object: [`QuestionError::NoObject`] for `KIND/NAME` of
/// a known kind, else that of `refusal`, the error of the search for an app, or [`QuestionError::NothingFound`] without
/// one.
fn not_found(grounds: &ExplainContext<'_>, name: &SubjectName, refusal: Option<FindError>) -> QuestionError {
    let of_kind = name.kind_and_name().filter(|(kind, _)| grounds.is_known(kind));
    let Some((kind, wanted)) = of_kind else {
        return match refusal {
            Some(error) => not_single(error, grounds.list),
            None => QuestionError::NothingFound,
        };
    };
    let hidden_by = grounds.list.errors.iter().find(|error| hides_apps(error)).cloned().map(Box::new);
    let all = grounds.clusters.iter().flat_map(|cluster| cluster.all()).map(|observed| observed.key);
    let mut namespaces: Vec<String> = all
        .filter(|key| names_kind(kind, key.group, key.kind) && key.name == wanted)
        .map(|key| key.namespace.to_owned())
        .collect();
    namespaces.sort();
    namespaces.dedup();
    QuestionError::NoObject { kind: kind.to_owned(), name: wanted.to_owned(), namespaces, hidden_by }
}

impl View for ExplainView {
    type Answer = ExplainAnswer;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        let of_names = self.names.iter_mut().flat_map(SubjectName::clusters_mut);
        self.clusters.iter_mut().chain(of_names).collect()
    }

    fn reads(&self) -> ReadQuery {
        // The app of a named object may be declared in any namespace, but the selected one holds all named apps: who may
        // read that one alone gets an answer.
        let namespace = self.namespace.as_ref().filter(|_| self.names.iter().all(SubjectName::is_of_app));
        let apps = reads_apps(namespace, &self.declared, &self.app_labels);
        let mut asked = ReadQuery { owners: !self.names.is_empty(), changes: self.changes(), ..apps };
        asked.objects.extend(self.names.iter().filter_map(SubjectName::key).cloned());
        asked
    }

    fn reads_objects(&self, snapshot: &Snapshot, namespace: &str) -> Vec<ObjectKey> {
        let chosen = self.namespace.as_deref();
        let namespace = chosen.unwrap_or(namespace);
        self.names.iter().flat_map(|name| name.keys(snapshot, namespace, chosen)).collect()
    }

    fn extent_resolved(&self, fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        let list = fleet.apps(&[]);
        if self.names.is_empty() {
            return Ok(match self.clusters.is_empty() {
                // What is not well may have its objects in any cluster.
                true => AskedClusters::All,
                false => reaching(self.clusters.iter().cloned().collect(), &list),
            });
        }
        let mut clusters = BTreeSet::new();
        let mut is_missing = false;
        for name in &self.names {
            let apps = name.query().map(|query| query.clone().within(self.namespace.as_deref()).all(&list));
            match apps {
                Some(Ok(apps)) => clusters.extend(places(apps)),
                _ if name.is_of_app() => is_missing = true,
                // An object may be in any cluster.
                _ => match name.cluster() {
                    Some(cluster) => clusters.extend([cluster.to_owned()]),
                    None if self.clusters.is_empty() => return Ok(AskedClusters::All),
                    None => clusters.extend(self.clusters.iter().cloned()),
                },
            }
        }
        match is_missing && !clusters.is_empty() {
            // Similar names may be those of apps in other clusters.
            true => Ok(AskedClusters::All),
            false => Ok(reaching(clusters, &list)),
        }
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<ExplainAnswer, QuestionError> {
        let (clusters, rules) = (fleet.clusters(), fleet.rules());
        let list = fleet.apps(&self.declared);
        let grounds = || ExplainContext {
            fleet,
            rules: &rules,
            list: &list,
            clusters: &clusters,
            belongings: list.belongings(),
            aliases: aliases(&clusters),
        };
        let (subjects, missing) = self.choose(grounds, &list);
        let shown: Vec<&App> = subjects.iter().map(|subject| &*subject.app).collect();
        let errors = match self.names.is_empty() || !missing.is_empty() {
            true => asked_for(&list, &shown, self.namespace.as_deref()),
            false => concerning(&list, &shown),
        };
        let (doubts, undoubted) = match self.names.is_empty() {
            true => Default::default(),
            false => doubts::each(&subjects, &list, &clusters, fleet.now(), self.contexts),
        };
        let homes: HashMap<&str, &dyn Objects> = clusters.iter().rev().map(|it| (it.name(), *it)).collect();
        let explained = |subject: &Subject<'_>, changed: &[Change], doubts, unsynced: Vec<ObjectSync>| {
            let explanation = Explanation::new(&subject.app, self.context(&subject.app).as_deref());
            let home = homes.get(&*subject.app.app.home).copied();
            let explanation = explanation.after(changed).differing(unsynced);
            let explanation = explanation.suspended(Suspension::of(&subject.app, home));
            // A dump cannot be written to, and the cluster that a user reaches may be another one.
            let explanation = match home.is_some_and(|home| !home.is_dump()) {
                true => explanation.remedied(&subject.app, self.contexts),
                false => explanation,
            };
            match (&subject.belonging, subject.app.resources.as_slice()) {
                (Some(belonging), [only]) => {
                    let last = last_changes(&subject.app, &clusters);
                    explanation.with(&only.key, belonging).written(&last)
                }
                _ => match doubts {
                    Some(doubts) => explanation.doubted(doubts),
                    None => explanation,
                },
            }
        };
        let turned: Vec<(&App, &[&App])> = subjects.iter().map(|it| (&*it.app, it.via())).collect();
        let changed = changes_of_each(&turned, &clusters);
        let both = changed.iter().zip(doubts.into_iter().chain(std::iter::repeat(None)));
        let unsynced = differing_fields(shown.iter().copied(), &clusters);
        let all = subjects.iter().zip(both).zip(unsynced);
        let explanations: Vec<Explanation> = all
            .map(|((subject, (changed, doubts)), unsynced)| explained(subject, changed, doubts, unsynced))
            .collect();
        // A named app or object is explained for each cluster.
        let is_all = self.names.is_empty() && self.declared.is_empty();
        let (told, mut explanations): (Vec<&Subject<'_>>, Vec<Explanation>) =
            match is_all && !self.per_cluster {
                true => {
                    let together = explained_together(shown.iter().copied().zip(explanations).collect());
                    together.into_iter().filter_map(|(at, told)| Some((subjects.get(at)?, told))).unzip()
                }
                false => subjects.iter().zip(explanations).unzip(),
            };
        told_in_few(&mut explanations);
        let item = |(subject, explanation): (&Subject<'_>, Explanation)| {
            ExplainedSubject::new(&subject.app, subject.belonging.is_some(), explanation)
        };
        let items: Vec<ExplainedSubject> = told.into_iter().zip(explanations).map(item).collect();
        Ok(ExplainAnswer {
            fleet: FleetFacts::of(fleet),
            has_apps: !items.is_empty() || !fleet.apps(&[]).apps.is_empty(),
            items,
            errors,
            missing,
            undoubted,
            is_well: !shown.iter().any(|app| app.pressing().is_some()),
            log_errors: Vec::new(),
            lacks_logs: false,
        })
    }
}

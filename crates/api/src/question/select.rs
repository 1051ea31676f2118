//! Finds the apps that a question names or selects, and the errors that concern them.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashSet};

use taffrail_apps::{
    App, AppError, AppList, AppName, AppQuery, FindError, FleetMember, Objects, Scope, members,
};
use taffrail_object::ObjectKey;
use taffrail_status::assess::UNJUDGED;

use super::{AskedClusters, QuestionError};
use crate::filter::cluster_names;

/// Replaces each of `wanted`, a name or an alias of one of `clusters`, by the first name of that cluster, which apps and
/// errors have.
///
/// # Errors
/// Returns [`QuestionError::UnknownCluster`] for the first one that is neither.
pub fn resolve_clusters<'w>(
    wanted: impl IntoIterator<Item = &'w mut String>,
    clusters: &[&dyn Objects],
) -> Result<(), QuestionError> {
    let members = LazyCell::new(|| members(clusters));
    for name in wanted {
        let is_named = |own: &&FleetMember<'_>| own.objects.name() == *name || own.aliases.contains(name);
        let Some(member) = members.iter().find(is_named) else {
            return Err(QuestionError::UnknownCluster { name: name.clone(), known: cluster_names(clusters) });
        };
        member.objects.name().clone_into(name);
    }
    Ok(())
}

/// Returns the first error in `list` because of which apps of one of `clusters` may be missing; `None` if there is
/// none.
fn hidden_by(list: &AppList, clusters: &[String]) -> Option<Box<AppError>> {
    let mut errors = list.errors.iter().filter(|error| hides_apps(error));
    errors.find(|error| clusters.contains(&error.cluster)).cloned().map(Box::new)
}

/// Returns the rows of the app called `name`, one for each cluster among `clusters` that holds its objects (for every
/// such cluster if `clusters` is empty). A `namespace` restricts a name without one to apps declared there.
///
/// # Errors
/// Fails if no app or several different apps match, or if the app has no objects in any of `clusters`.
pub fn find<'l>(
    name: &AppQuery,
    namespace: Option<&str>,
    clusters: &[String],
    list: &'l AppList,
) -> Result<Vec<&'l App>, QuestionError> {
    let found = name.clone().within(namespace).find_in(list, clusters);
    let mut found = found.map_err(|error| not_single(error, list))?;
    let elsewhere: BTreeSet<&str> = found.iter().map(|app| &*app.app.target).collect();
    found.retain(|app| clusters.is_empty() || clusters.contains(&app.app.target));
    if !found.is_empty() {
        return Ok(found);
    }
    let elsewhere = elsewhere.into_iter().map(str::to_owned).collect();
    let hidden_by = hidden_by(list, clusters);
    Err(QuestionError::NotInClusters { name: name.to_string(), clusters: elsewhere, hidden_by })
}

/// Removes from `list` the apps that none of `names` matches; without names removes nothing. A `namespace` restricts
/// names without one to apps declared there.
///
/// # Errors
/// Fails if a name matches no app.
pub fn keep(names: &[AppQuery], namespace: Option<&str>, list: &mut AppList) -> Result<(), QuestionError> {
    if names.is_empty() {
        return Ok(());
    }
    let mut keys = BTreeSet::new();
    for name in names {
        let found = name.clone().within(namespace).all(list);
        let found = found.map_err(|error| not_single(error, list))?;
        keys.extend(found.into_iter().map(|app| app.app.clone()));
    }
    list.apps.retain(|app| keys.contains(&app.app));
    Ok(())
}

/// The apps upstream and downstream of some.
pub(super) struct RelatedApps {
    /// The home and name of each app that is upstream; `None` if any app may be.
    upstream: Option<HashSet<(String, AppName)>>,
    /// The home and name of each app of which one that is downstream must name one; `None` if it need not.
    named: Option<HashSet<(String, AppName)>>,
}

impl RelatedApps {
    /// Finds the apps upstream of those called `upstream_of`, and those downstream of those called `downstream_of`, in
    /// `list`, which has all apps.
    ///
    /// # Errors
    /// Fails if a name matches no app.
    pub(super) fn of(
        upstream_of: &[AppQuery],
        downstream_of: &[AppQuery],
        list: &AppList,
    ) -> Result<RelatedApps, QuestionError> {
        let found = |names: &[AppQuery]| -> Result<Vec<&App>, QuestionError> {
            let found = names.iter().map(|name| name.all(list).map_err(|error| not_single(error, list)));
            Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let (below, above) = (found(upstream_of)?, found(downstream_of)?);
        let upstream = below.iter().flat_map(|app| &app.upstreams.apps);
        let upstream = upstream.map(|upstream| (upstream.home.clone(), upstream.app.clone())).collect();
        let named = above.iter().map(|app| (app.app.home.clone(), AppName::from(&app.app))).collect();
        Ok(RelatedApps {
            upstream: (!upstream_of.is_empty()).then_some(upstream),
            named: (!downstream_of.is_empty()).then_some(named),
        })
    }

    /// Removes the other apps from `list`.
    pub(super) fn keep(&self, list: &mut AppList) {
        let RelatedApps { upstream, named } = self;
        if upstream.is_none() && named.is_none() {
            return;
        }
        list.apps.retain(|app| {
            let own = || (app.app.home.clone(), AppName::from(&app.app));
            let names_one = |named: &HashSet<(String, AppName)>| {
                let mut upstreams = app.upstreams.apps.iter();
                upstreams.any(|upstream| named.contains(&(upstream.home.clone(), upstream.app.clone())))
            };
            upstream.as_ref().is_none_or(|upstream| upstream.contains(&own()))
                && named.as_ref().is_none_or(names_one)
        });
    }
}

/// Returns the names of the target clusters and of the home clusters of these apps.
pub(super) fn places<'l>(apps: impl IntoIterator<Item = &'l App>) -> BTreeSet<String> {
    apps.into_iter().flat_map(|app| [app.app.target.clone(), app.app.home.clone()]).collect()
}

/// Returns the clusters that an answer about `clusters` depends on: these, and the home clusters of the apps in `list`
/// that have one of them as target cluster, since such an app may claim any object there.
pub(super) fn reaching(mut clusters: BTreeSet<String>, list: &AppList) -> AskedClusters {
    let homes = list.apps.iter().filter(|app| clusters.contains(&app.app.target));
    let homes: BTreeSet<String> = homes.map(|app| app.app.home.clone()).collect();
    clusters.extend(homes);
    AskedClusters::Clusters(clusters)
}

/// Converts `error`, that a name matches no app of `list` or several. If it matches none, the result names the first
/// error of `list` because of which apps may be missing.
pub fn not_single(error: FindError, list: &AppList) -> QuestionError {
    // An app that was not found may be in a part that could not be read.
    let hidden_by = match &error {
        FindError::NotFound { .. } => {
            list.errors.iter().find(|error| hides_apps(error)).cloned().map(Box::new)
        }
        FindError::Ambiguous { .. } => None,
    };
    QuestionError::NoSingleApp { error, hidden_by }
}

/// Returns the apps of `list` that are declared in `namespace` and whose target cluster is one of `clusters`. `None`
/// stands for all namespaces, an empty slice for all clusters.
pub fn inside<'l>(namespace: Option<&str>, clusters: &[String], list: &'l AppList) -> Vec<&'l App> {
    let here = |app: &&App| {
        namespace.is_none_or(|namespace| *namespace == app.app.namespace)
            && (clusters.is_empty() || clusters.contains(&app.app.target))
    };
    list.apps.iter().filter(here).collect()
}

/// Returns true if apps may be missing because of `error`: if a whole cluster, a whole dump, or a kind could not be
/// read.
pub fn hides_apps(error: &AppError) -> bool {
    matches!(error.error.scope, Scope::Cluster | Scope::Input(_) | Scope::Kind { .. })
}

/// Returns the errors of `list` that concern the apps `shown`: those of any cluster as a whole; of kinds, groups and
/// dumps in the home and target clusters of these apps; of their objects, their declaring objects and the objects of
/// their problems; and of the namespaces in which they are declared or objects of them were not judged.
pub fn concerning(list: &AppList, shown: &[&App]) -> Vec<AppError> {
    let places = Places::of(shown);
    list.errors.iter().filter(|error| places.concerns(error)).cloned().collect()
}

/// Returns the errors of `list` to show in a view of `namespace`: those of that namespace and its objects; those of
/// cluster-scoped objects, kinds, groups, dumps and clusters; and those of other objects and namespaces that concern
/// the apps in `shown`. Returns all errors if `namespace` is `None`.
pub fn asked_for(list: &AppList, shown: &[&App], namespace: Option<&str>) -> Vec<AppError> {
    let Some(namespace) = namespace else { return list.errors.clone() };
    let places = Places::of(shown);
    let is_asked = |error: &&AppError| match &error.error.scope {
        Scope::Object(ObjectKey { namespace: own, .. }) | Scope::Namespace(own) => {
            own.is_empty() || own == namespace || places.concerns(error)
        }
        Scope::Cluster | Scope::Group(_) | Scope::Kind { .. } | Scope::Input(_) => true,
    };
    list.errors.iter().filter(is_asked).cloned().collect()
}

/// The clusters, objects and namespaces of some apps, an error about which concerns these apps. Each object and
/// namespace comes with the name of its cluster; the namespaces are those in which objects of the apps were not judged,
/// or in which the apps are declared.
struct Places<'l> {
    clusters: HashSet<&'l str>,
    objects: HashSet<(&'l str, &'l ObjectKey)>,
    namespaces: HashSet<(&'l str, &'l str)>,
}

impl<'l> Places<'l> {
    fn of(apps: &[&'l App]) -> Places<'l> {
        let mut places =
            Places { clusters: HashSet::new(), objects: HashSet::new(), namespaces: HashSet::new() };
        for app in apps {
            for cluster in BTreeSet::from([&*app.app.target, &*app.app.home]) {
                places.clusters.insert(cluster);
                let own = app.resources.iter().map(|own| &*own.key);
                let problems = app.problems.iter().filter_map(|problem| problem.object.as_ref());
                let read = own.chain(&app.declaring).chain(&app.unreadable).chain(problems);
                places.objects.extend(read.map(|key| (cluster, key)));
                let unjudged = app.resources.iter().filter(|own| own.rule == UNJUDGED).map(|own| &*own.key);
                places
                    .namespaces
                    .extend(unjudged.chain(&app.declaring).map(|key| (cluster, &*key.namespace)));
            }
        }
        places
    }

    fn concerns(&self, error: &AppError) -> bool {
        let cluster = &*error.cluster;
        match &error.error.scope {
            Scope::Cluster => true,
            Scope::Object(key) => self.objects.contains(&(cluster, key)),
            Scope::Namespace(namespace) => self.namespaces.contains(&(cluster, namespace)),
            Scope::Group(_) | Scope::Kind { .. } | Scope::Input(_) => self.clusters.contains(cluster),
        }
    }
}

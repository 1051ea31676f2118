//! Questions about a fleet, and their answers: what a view of the command line asks for, and what it prints.
//!
//! A question is answered from a [`AskedFleet`], by the same function wherever the fleet is: in the process of the
//! command line, which has just read it, or in a hub, which follows it. So both print the same.
//!
//! * `lists` answers `get apps`, `get clusters`, `get resources` and `overview`.
//! * `named` answers `app`, `tree`, `events` and `trust`.
//! * `explain` answers `explain`.
//! * `object` answers `object`.
//! * `status` has the question of `status`, which is answered where the kinds of each cluster are known.
//! * `select` finds the apps that a question names, and the errors that concern them.

mod explain;
mod lists;
mod named;
mod object;
mod select;
mod status;
mod subject;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use taffrail_apps::{AppError, AppLabels, AppList, FindError, Freshness, Objects, ReadQuery, Snapshot};
use taffrail_object::ObjectKey;
use taffrail_status::ActiveRules;

pub use explain::{ExplainAnswer, ExplainView, ExplainedSubject, OtherObject};
pub use lists::{
    AppsElsewhere, AppsView, ClustersView, ListAnswer, OverviewAnswer, OverviewView, ResourcesView,
    RowSelection,
};
pub use named::{
    AppAnswer, AppOfView, AppSelection, AppView, EventsAnswer, EventsView, TreeAnswer, TreeView, TrustAnswer,
    TrustView, differences,
};
pub use object::{ObjectAnswer, ObjectView};
pub use select::{asked_for, concerning, find, hides_apps, inside, keep, not_single, resolve_clusters};

pub use status::{ClusterStatuses, StatusAnswer, StatusItem, StatusView};
pub use subject::{InvalidSubject, SubjectName};

use crate::{AppRow, ClusterRow, ResourceRow};

/// The fleet that questions are answered from: its apps, clusters and rules.
pub trait AskedFleet {
    /// Returns the apps of all clusters. If `objects` is not empty, returns instead one app in each cluster, which
    /// consists of these objects.
    fn apps(&self, objects: &[ObjectKey]) -> AppList;

    /// Returns the objects in these namespaces that no app of `list` declares and that have no owner, as one app in
    /// each cluster; without `namespaces` those of all namespaces but Kubernetes' own.
    fn orphans(&self, list: &AppList, namespaces: &BTreeSet<String>) -> AppList;

    /// Returns the cluster states, one for each name under which a cluster was queried.
    fn clusters(&self) -> Vec<&dyn Objects>;

    /// Returns the rules by which objects are judged.
    fn rules(&self) -> ActiveRules<'_>;

    /// Returns the time at which objects are judged.
    fn now(&self) -> Timestamp;

    /// Returns the failures that belong to no cluster, such as an unreadable kubeconfig.
    fn problems(&self) -> Vec<FleetProblem>;
}

/// The question of a view, and the way in which it is answered.
pub trait View: Clone {
    /// The answer, which holds all that the view prints.
    type Answer: DeserializeOwned;

    /// Returns the query for what the answer needs of each cluster.
    fn reads(&self) -> ReadQuery;

    /// Returns the keys of further objects to read from a live cluster, in view of what was read of it by
    /// [`View::reads`]; `namespace` is that of its context.
    fn reads_objects(&self, _snapshot: &Snapshot, _namespace: &str) -> Vec<ObjectKey> {
        Vec::new()
    }

    /// Returns the names of clusters in the question, each of which may be an alias.
    fn clusters_mut(&mut self) -> Vec<&mut String>;

    /// Returns the question with the first name of each cluster in place of an alias.
    ///
    /// # Errors
    /// If the question names a cluster that the fleet does not have.
    fn resolved(&self, fleet: &dyn AskedFleet) -> Result<Self, QuestionError> {
        let mut view = self.clone();
        resolve_clusters(view.clusters_mut(), &fleet.clusters())?;
        Ok(view)
    }

    /// Returns the clusters that must be read in full for the answer. The apps of `fleet` are all known, but other
    /// objects need not have been read yet.
    ///
    /// # Errors
    /// If the question names something that the fleet does not have.
    fn extent(&self, fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        self.resolved(fleet)?.extent_resolved(fleet)
    }

    /// Returns what [`View::extent`] returns, for a [resolved](View::resolved) question.
    ///
    /// # Errors
    /// Fails as [`View::extent`] does.
    fn extent_resolved(&self, _fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        Ok(AskedClusters::All)
    }

    /// Returns true if the answer depends only on the apps and their judged objects, as in `get apps` and `get
    /// resources`: while these stay the same, `-w` does not compute it again.
    fn shows_rows(&self) -> bool {
        false
    }

    /// Answers the question from `fleet`.
    ///
    /// # Errors
    /// If the question names something that the fleet does not have.
    fn answer(&self, fleet: &dyn AskedFleet) -> Result<Self::Answer, QuestionError> {
        self.resolved(fleet)?.answer_resolved(fleet)
    }

    /// Returns what [`View::answer`] returns, for a [resolved](View::resolved) question.
    ///
    /// # Errors
    /// Fails as [`View::answer`] does.
    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<Self::Answer, QuestionError>;

    /// Returns the query for what [`View::complete`] needs; `None` if `answer` is complete already.
    fn reads_more(&self, _answer: &Self::Answer) -> Option<ReadQuery> {
        None
    }

    /// Completes an answer for which [`View::reads_more`] returned a query, from a fleet that was read by it.
    fn complete(&self, _answer: &mut Self::Answer, _fleet: &dyn AskedFleet) {}

    /// Returns the namespaces of `answer` that the question names and of which nothing was read, so that those can be
    /// removed that exist; `None` for a view that does not tell them.
    fn unseen_namespaces<'a>(&self, _answer: &'a mut Self::Answer) -> Option<&'a mut Vec<String>> {
        None
    }
}

/// A question of any view, in the form that goes over a wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", tag = "view")]
pub enum ViewQuestion {
    /// The apps in their clusters.
    Apps(AppsView),
    /// The clusters.
    Clusters(ClustersView),
    /// The objects of the apps.
    Resources(ResourcesView),
    /// The details of an app.
    App(AppView),
    /// The tree of an app.
    Tree(TreeView),
    /// The warning events of apps.
    Events(EventsView),
    /// The reasons to doubt a green status.
    Trust(TrustView),
    /// The causes of the state of apps and objects.
    Explain(ExplainView),
    /// The statuses of objects.
    Status(StatusView),
    /// An object as its API server returns it.
    Object(ObjectView),
    /// The clusters and apps, for what needs attention.
    Overview(OverviewView),
}

/// The clusters that must be read to answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedClusters {
    /// All clusters.
    All,
    /// The clusters of these names. Of the others the answer needs only their names, states and errors. If the set is
    /// empty, the apps that are known already suffice.
    Clusters(BTreeSet<String>),
}

impl ViewQuestion {
    /// Reads the answer to this question, as JSON.
    ///
    /// # Errors
    /// If it is not the answer of this view.
    pub fn read_answer(&self, answer: &[u8]) -> Result<ViewAnswer, serde_json::Error> {
        use serde_json::from_slice;
        Ok(match self {
            ViewQuestion::Apps(_) => ViewAnswer::Apps(from_slice(answer)?),
            ViewQuestion::Clusters(_) => ViewAnswer::Clusters(from_slice(answer)?),
            ViewQuestion::Resources(_) => ViewAnswer::Resources(from_slice(answer)?),
            ViewQuestion::App(_) => ViewAnswer::App(from_slice(answer)?),
            ViewQuestion::Tree(_) => ViewAnswer::Tree(from_slice(answer)?),
            ViewQuestion::Events(_) => ViewAnswer::Events(from_slice(answer)?),
            ViewQuestion::Trust(_) => ViewAnswer::Trust(from_slice(answer)?),
            ViewQuestion::Explain(_) => ViewAnswer::Explain(from_slice(answer)?),
            ViewQuestion::Status(_) => ViewAnswer::Status(from_slice(answer)?),
            ViewQuestion::Object(_) => ViewAnswer::Object(from_slice(answer)?),
            ViewQuestion::Overview(_) => ViewAnswer::Overview(from_slice(answer)?),
        })
    }

    /// Returns true if the answer contains lines of logs, which need a right of their own.
    pub fn reads_logs(&self) -> bool {
        matches!(self, ViewQuestion::Explain(view) if view.logs)
    }

    /// Returns true if the answer needs more of the clusters than the apps and their objects.
    pub fn is_drill_down(&self) -> bool {
        match self {
            ViewQuestion::Apps(_) | ViewQuestion::Clusters(_) | ViewQuestion::Overview(_) => false,
            ViewQuestion::Resources(view) => view.orphaned || !view.rows.filter.images.is_empty(),
            ViewQuestion::App(_)
            | ViewQuestion::Tree(_)
            | ViewQuestion::Events(_)
            | ViewQuestion::Trust(_)
            | ViewQuestion::Explain(_)
            | ViewQuestion::Status(_)
            | ViewQuestion::Object(_) => true,
        }
    }
}

/// Returns the query for the apps declared in `namespace`, in all namespaces if it is `None`; if `declared` is not
/// empty, for those objects instead.
fn reads_apps(namespace: Option<&String>, declared: &[ObjectKey], app_labels: &AppLabels) -> ReadQuery {
    if declared.is_empty() {
        let (namespace, app_labels) = (namespace.cloned(), app_labels.clone());
        ReadQuery { namespace, app_labels, ..ReadQuery::default() }
    } else {
        ReadQuery { declarations: false, objects: declared.to_vec(), ..ReadQuery::default() }
    }
}

/// Implements the conversion of each view into the variant of [`ViewQuestion`] with this name.
macro_rules! of_views {
    ($($name:ident($view:ident)),* $(,)?) => {$(
        impl From<$view> for ViewQuestion {
            fn from(view: $view) -> ViewQuestion {
                ViewQuestion::$name(view)
            }
        }
    )*};
}

of_views! {
    Apps(AppsView),
    Clusters(ClustersView),
    Resources(ResourcesView),
    App(AppView),
    Tree(TreeView),
    Events(EventsView),
    Trust(TrustView),
    Explain(ExplainView),
    Status(StatusView),
    Object(ObjectView),
    Overview(OverviewView),
}

/// The answer to a [`ViewQuestion`], as it goes over a wire: that of its view.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ViewAnswer {
    /// Apps in their clusters.
    Apps(ListAnswer<AppRow>),
    /// Clusters.
    Clusters(ListAnswer<ClusterRow>),
    /// Objects of apps.
    Resources(ListAnswer<ResourceRow>),
    /// The details of an app.
    App(AppAnswer),
    /// The tree of an app.
    Tree(TreeAnswer),
    /// The warning events of apps.
    Events(EventsAnswer),
    /// The reasons to doubt a green status.
    Trust(TrustAnswer),
    /// The causes of the state of apps and objects.
    Explain(ExplainAnswer),
    /// The statuses of objects.
    Status(StatusAnswer),
    /// An object in its clusters.
    Object(ObjectAnswer),
    /// The clusters and apps.
    Overview(OverviewAnswer),
}

/// Facts about the queried fleet as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FleetFacts {
    /// The time at which the objects were judged, and to which ages refer.
    pub now: Timestamp,
    /// Number of cluster names that were queried; a cluster with two names is counted twice.
    pub clusters: usize,
    /// The name of the cluster, if there is only one; left out if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// The names of the clusters that were never observed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unobserved: BTreeSet<String>,
    /// The names of the clusters that are not live but were observed before, each with the time of the last
    /// observation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub last_observed: BTreeMap<String, Timestamp>,
    /// Failures outside of any cluster, such as in a kubeconfig.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FleetProblem>,
}

impl FleetFacts {
    /// Returns the facts of a fleet.
    pub fn of(fleet: &dyn AskedFleet) -> FleetFacts {
        let clusters = fleet.clusters();
        let never = |cluster: &&&dyn Objects| cluster.freshness() == Freshness::never();
        let last = |cluster: &&dyn Objects| {
            let Freshness { observed_at, .. } =
                Some(cluster.freshness()).filter(|freshness| !freshness.is_live())?;
            Some((cluster.name().to_owned(), observed_at?))
        };
        FleetFacts {
            now: fleet.now(),
            clusters: clusters.len(),
            only: match clusters.as_slice() {
                [only] => Some(only.name().to_owned()),
                _ => None,
            },
            unobserved: clusters.iter().filter(never).map(|cluster| cluster.name().to_owned()).collect(),
            last_observed: clusters.iter().filter_map(last).collect(),
            problems: fleet.problems(),
        }
    }
}

/// A failure outside of any cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FleetProblem {
    /// The severity of the failure.
    pub level: ErrorLevel,
    /// The message, for people.
    pub message: String,
    /// The remedy; left out if there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The severity of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ErrorLevel {
    /// Everything was read, but the answer may be wrong.
    Warning,
    /// Requested data could not be read.
    Unreadable,
    /// The user asked for something impossible, such as a context that does not exist.
    Usage,
}

/// Returns the text of [`QuestionError::NoSuchObject`].
fn no_such_object(object: &str, is_served: bool) -> String {
    match is_served {
        true => format!("there is no {object}"),
        false => format!("the server has no kind for {object}, and there is no app of that name"),
    }
}

/// The reason why a question has no answer, such as an unknown cluster, app or kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum QuestionError {
    /// The fleet has no cluster of the name that the question gives.
    #[error("there is no cluster '{name}'")]
    UnknownCluster {
        /// The name as given.
        name: String,
        /// The names and aliases of all clusters.
        known: Vec<String>,
    },
    /// The name of an app matches no app, or several.
    #[error("{error}")]
    NoSingleApp {
        /// The error of the search.
        error: FindError,
        /// The failure to read a part that may hold the app, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hidden_by: Option<Box<AppError>>,
    },
    /// The app is in none of the selected clusters.
    #[error("app '{name}' is not in the selected clusters")]
    NotInClusters {
        /// The name of the app as the user gave it.
        name: String,
        /// The clusters outside of the selected ones that have the app.
        clusters: Vec<String>,
        /// The failure to read a part of the selected clusters that may hold the app, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hidden_by: Option<Box<AppError>>,
    },
    /// None of the selected apps declares an object of a kind.
    #[error("none of the selected apps declares an object of kind '{kind}'")]
    UnknownKind {
        /// The kind as given.
        kind: String,
        /// The kinds of the objects that the selected apps declare, sorted.
        known: Vec<String>,
    },
    /// No object of a kind has the name in the selected namespace and clusters, and no app has it.
    #[error("there is no {kind} '{name}' and no app of that name")]
    NoObject {
        /// The kind as given.
        kind: String,
        /// The name as given.
        name: String,
        /// The namespaces in which an object of that kind has the name, sorted; empty if there are none.
        namespaces: Vec<String>,
        /// The failure to read a part that may hold the object, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hidden_by: Option<Box<AppError>>,
    },
    /// A text names neither an app nor an object whose logs could be read.
    #[error("'{text}' is neither the name of an app nor of an object")]
    InvalidName {
        /// The text as given.
        text: String,
    },
    /// No object whose logs were asked for has the name, and no app has it.
    #[error("{}", no_such_object(.object, *.is_served))]
    NoSuchObject {
        /// The name as given.
        text: String,
        /// The name in the form for messages: `deploy 'web'`.
        object: String,
        /// True if a server serves the kind.
        is_served: bool,
        /// True if all namespaces were searched.
        has_searched_all: bool,
    },
    /// None of the Pods whose logs were asked for has a container of the name.
    #[error("no Pod has a container '{container}'")]
    NoContainer {
        /// The name as given.
        container: String,
        /// The names of the containers of these Pods, sorted.
        known: Vec<String>,
    },
    /// No cluster serves a kind.
    #[error("there is no kind called '{kind}'")]
    UnservedKind {
        /// The kind as given.
        kind: String,
        /// The kinds that the clusters serve, sorted; of more than a thousand the first.
        known: Vec<String>,
    },
    /// A part that could not be read may hold another app of the name, so that a write could be meant for that one.
    #[error("cannot rule out a second app '{name}' in {}: {}", .hidden_by.cluster, .hidden_by.error.message)]
    NotOnlyApp {
        /// The name as given.
        name: String,
        /// The failure to read the part.
        hidden_by: Box<AppError>,
    },
    /// No app of Flux or Argo CD is among the selected ones.
    #[error("the selection matches no Flux or Argo CD app")]
    NoneSelected,
    /// An object is named in full, but the cluster in its name is not among the selected ones.
    #[error("none of the selected clusters is the cluster in the name of the object")]
    NothingFound,
}

#[cfg(test)]
mod tests {
    use taffrail_status::Status;

    use super::*;
    use crate::filter::{Filter, StatusFilter, SyncFilter};

    /// Returns the question as it arrives at the other end of a wire.
    fn sent(question: &ViewQuestion) -> ViewQuestion {
        serde_json::from_str(&serde_json::to_string(question).unwrap()).unwrap()
    }

    #[test]
    fn filters_go_over_a_wire_unchanged() {
        for status in
            ["Ready", "Failed,InProgress", "!Ready", "!Ready, InProgress", "Ready,!Ready", "!Failed"]
        {
            let filter: StatusFilter = status.parse().unwrap();
            let again: StatusFilter = filter.to_string().parse().unwrap();
            assert_eq!(again, filter, "{status}");
            let is_admitted =
                |filter: &StatusFilter| Status::ALL.map(|status| filter.admits_row(status, true));
            assert_eq!(is_admitted(&again), is_admitted(&filter), "{status}");
        }
        for sync in ["Failed", "!Synced,Syncing", "Failed,!Failed", "OutOfSync, Failed"] {
            let filter: SyncFilter = sync.parse().unwrap();
            assert_eq!(filter.to_string().parse::<SyncFilter>().unwrap(), filter, "{sync}");
        }
        let filter = Filter {
            status: Some("!Ready".parse().unwrap()),
            sync: Some("Failed".parse().unwrap()),
            problems: Some([taffrail_apps::Axis::Sync].into()),
            labels: Some("team in (a,b),!old,env!=dev".parse().unwrap()),
            images: vec!["nginx".to_owned()],
            ..Filter::default()
        };
        let names = vec!["eu-1/helm/shop/web".parse().unwrap()];
        let rows =
            RowSelection { names, filter, namespace: Some("shop".to_owned()), ..RowSelection::default() };
        let question = ViewQuestion::from(ResourcesView { rows, orphaned: true });
        assert_eq!(sent(&question), question);
        let question = ViewQuestion::from(TrustView { contexts: true, ..TrustView::default() });
        assert_eq!(sent(&question), question);
    }

    #[test]
    fn questions_with_unknown_parts_are_refused() {
        let read = |text: &str| serde_json::from_str::<ViewQuestion>(text);
        assert_eq!(read(r#"{"view": "apps"}"#).unwrap(), AppsView::default().into());
        let unknown = read(r#"{"view": "apps", "colour": "red"}"#).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `colour`"), "{unknown}");
        assert!(read(r#"{"view": "app"}"#).is_err(), "an app has a name");
        assert!(read(r#"{"view": "app", "name": ""}"#).is_err());
    }
}

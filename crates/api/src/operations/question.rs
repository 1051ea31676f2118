//! The questions of operations.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use taffrail_apps::verbs::{TAKE_REQUESTS, Verb};
use taffrail_apps::{App, AppError, AppList, AppQuery, Dependents, ReadQuery};
use taffrail_object::LabelSelector;

use crate::as_text;
use crate::filter::Filter;
use crate::question::{AppSelection, AskedFleet, QuestionError, find, inside, resolve_clusters};

/// The question of `reconcile`, `suspend` and `resume`: the verb, and the apps to which it is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerbQuestion {
    /// The verb.
    pub verb: Verb,
    /// The names of the apps, each of which stands for the app in all selected clusters: `NAME`, `NAMESPACE/NAME` or
    /// `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; empty for the Flux and Argo CD apps that `selector` admits.
    #[serde(default, with = "as_text::list")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub names: Vec<AppQuery>,
    /// The label selector that the declaring objects match; `null` for all. Without effect if `names` are given.
    #[serde(default, with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub selector: Option<LabelSelector>,
    /// The namespace and the clusters to which the apps are limited.
    #[serde(default)]
    pub apps: AppSelection,
}

impl VerbQuestion {
    /// Returns true if the verb reads the sources of the apps, too.
    pub fn has_sources(&self) -> bool {
        matches!(self.verb, Verb::Reconcile(how) if how.with_source)
    }

    /// Returns the names of the apps; one without a namespace gets that of the selection.
    pub fn names(&self) -> Vec<AppQuery> {
        let within = |name: &AppQuery| name.clone().within(self.apps.namespace.as_deref());
        self.names.iter().map(within).collect()
    }

    /// Returns the question with the first name of each cluster of `fleet` in place of an alias.
    ///
    /// # Errors
    /// If the question names a cluster that the fleet does not have.
    pub fn resolved(&self, fleet: &dyn AskedFleet) -> Result<VerbQuestion, QuestionError> {
        let mut question = self.clone();
        let names = question.names.iter_mut().flat_map(AppQuery::clusters_mut);
        resolve_clusters(question.apps.clusters.iter_mut().chain(names), &fleet.clusters())?;
        Ok(question)
    }

    /// Returns the query for what the operation needs of each cluster.
    pub fn reads(&self) -> ReadQuery {
        ReadQuery {
            namespace: self.apps.namespace.clone(),
            dependents: match &*self.names() {
                [name] => Dependents::Of(name.clone()),
                _ => Dependents::None,
            },
            app_labels: self.apps.app_labels.clone(),
            ..ReadQuery::default()
        }
    }

    /// Returns the apps of `list`, those of `fleet`, that the question names or selects.
    ///
    /// # Errors
    /// If a name matches no app or several, or may be that of an app that could not be read; if the selection is empty;
    /// and for an unknown cluster.
    pub fn choose<'l>(
        &self,
        fleet: &dyn AskedFleet,
        list: &'l AppList,
    ) -> Result<Vec<&'l App>, QuestionError> {
        let question = self.resolved(fleet)?;
        let (names, AppSelection { namespace, clusters, .. }) = (question.names(), &question.apps);
        let namespace = namespace.as_deref();
        let mut apps = Vec::new();
        for name in &names {
            let hides = |error: &&AppError| {
                TAKE_REQUESTS.into_iter().any(|delivery| name.may_be_hidden(&error.error, Some(delivery)))
            };
            if let Some(error) = list.errors.iter().find(hides) {
                let hidden_by = Box::new(error.clone());
                return Err(QuestionError::NotOnlyApp { name: name.to_string(), hidden_by });
            }
            apps.extend(find(name, namespace, clusters, list)?);
        }
        if !names.is_empty() {
            return Ok(apps);
        }
        let filter = Filter { labels: self.selector.clone(), ..Filter::default() };
        let mut admitted = AppList { apps: list.apps.clone(), ..AppList::default() };
        filter.apps(&mut admitted, &fleet.clusters());
        let inside = inside(namespace, clusters, &admitted);
        let chosen = |app: &&App| {
            TAKE_REQUESTS.contains(&app.app.delivery) && inside.iter().any(|inside| inside.app == app.app)
        };
        let apps: Vec<&App> = list.apps.iter().filter(chosen).collect();
        if apps.is_empty() { Err(QuestionError::NoneSelected) } else { Ok(apps) }
    }
}

/// The question of an action: its name, and the object on which it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionQuestion {
    /// The name of the action, as the list of the object's actions has it.
    pub action: String,
    /// The object, in each cluster that has it: `KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`.
    pub object: String,
    /// The namespace of an object named by kind and name; `null` for that of the context.
    #[serde(default)]
    pub namespace: Option<String>,
    /// True to run the action on all objects of the kind and name, in every namespace.
    #[serde(default)]
    pub all_namespaces: bool,
    /// The values of the action's parameters; those that are not given have their defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The kinds, as `Kind` or `Kind.group`, that a script of a cluster may create although they may run code or grant
    /// rights.
    #[serde(default)]
    pub allow_create: Vec<String>,
}

/// The question of an operation: a verb for apps, or an action on an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum OperationQuestion {
    /// A verb for apps.
    Verb(VerbQuestion),
    /// An action on an object.
    Action(ActionQuestion),
}

/// Takes what names an `action` for an action, so that errors are about one form.
impl<'de> Deserialize<'de> for OperationQuestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OperationQuestion, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match value.get("action") {
            Some(_) => serde_json::from_value(value).map(OperationQuestion::Action),
            None => serde_json::from_value(value).map(OperationQuestion::Verb),
        };
        read.map_err(D::Error::custom)
    }
}

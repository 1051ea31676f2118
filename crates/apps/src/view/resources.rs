//! `get resources`.

use serde::Serialize;

use super::{API_VERSION, AppName, ErrorRow, time};
use crate::apps::{App, AppList, Resource};

/// The declared objects of the apps of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceList {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `ResourceList`.
    pub kind: &'static str,
    /// A row for each object of each app.
    pub items: Vec<ResourceRow>,
    /// What could not be read, cannot be right, or is claimed twice.
    pub errors: Vec<ErrorRow>,
}

impl From<&AppList> for ResourceList {
    fn from(list: &AppList) -> ResourceList {
        let rows = list.apps.iter().flat_map(|app| app.resources.iter().map(|resource| row(app, resource)));
        ResourceList {
            api_version: API_VERSION,
            kind: "ResourceList",
            items: rows.collect(),
            errors: list.errors.iter().map(ErrorRow::from).collect(),
        }
    }
}

/// A declared object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRow {
    /// The cluster that it is in.
    pub cluster: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What may be said of its status now.
    pub status: &'static str,
    /// Why, in one line.
    pub message: String,
    /// The rule that decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// Since when it is not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The app that declares it.
    pub app: AppName,
}

fn row(app: &App, resource: &Resource) -> ResourceRow {
    ResourceRow {
        cluster: app.app.target.clone(),
        group: resource.key.group.clone(),
        kind: resource.key.kind.clone(),
        namespace: resource.key.namespace.clone(),
        name: resource.key.name.clone(),
        status: app.freshness.effective(resource.status).as_str(),
        message: resource.message.clone(),
        rule: resource.rule.clone(),
        since: resource.since.map(time),
        app: AppName::from(&app.app),
    }
}

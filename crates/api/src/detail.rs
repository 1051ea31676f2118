//! `app`: the source of an app, the state of its delivery, and each of its objects.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{
    self as apps, App, AppRef, ApplicationDetails, ObjectSync, Objects, ReconciliationDetails,
    application_details, reconciliation_details,
};
use taffrail_object::ObjectKey;
use taffrail_status::ActiveRules;

use crate::relations::{RelationRow, Relations};
use crate::resources::Inner;
use crate::tree::{self, Forest, Relation, TreeNode, TreeOptions};
use crate::{AppRow, List, ListItem};

/// The answer of `app`: one item for each cluster that holds a copy of the app.
pub type AppDetailList = List<AppDetail>;

impl ListItem for AppDetail {
    const LIST: &'static str = "AppDetailList";
}

/// An app in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppDetail {
    /// The row of the app as in `get apps`, but in `counts` an object that declares another app counts with the health
    /// of that app.
    pub app: AppRow,
    /// The source of the app (URL, revision to follow, path, content type), as its delivery tool declares it, and the
    /// URL of the source of the app that delivers its declaring object.
    pub application: ApplicationDetails,
    /// The time of the last successful sync, and the objects by which a delivery tool delivers the app, such as a
    /// Kustomization and its source, with their readiness.
    pub reconciliation: ReconciliationDetails,
    /// The apps to which this one is related, those upstream first: what it depends on, and what delivers its declaring
    /// object or its objects; then the apps of which it is that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationRow>,
    /// Number of relations beyond those of `relations`; left out if there are none.
    #[serde(default, skip_serializing_if = "crate::apps::is_none")]
    pub relations_left_out: usize,
    /// The objects that Argo CD reports as not synced; empty for other tools, which report no single objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsynced: Vec<ObjectSync>,
    /// The declared objects of the app, each with its dependents as children.
    pub deployment: Vec<TreeNode>,
}

impl AppDetailList {
    /// Makes one item for each of `asked`, which are apps of `list`; `list` holds the apps of `clusters`.
    pub fn new<'a>(
        asked: &[&'a App],
        list: &'a apps::AppList,
        clusters: &[&'a dyn Objects],
        rules: &'a ActiveRules<'a>,
        now: Timestamp,
    ) -> AppDetailList {
        let shape = TreeOptions { compact: false, fold: false, nest: false };
        let forest = Forest::new(list, clusters, rules, now, shape);
        let inner = Inner::of(list);
        let parents = parents(asked, list);
        let hosting = apps::hosting(clusters, rules.rules);
        let mut carriers: HashMap<&AppRef, &App> = HashMap::new();
        if asked.iter().any(|app| app.delivered_by.is_some()) {
            carriers.extend(list.apps.iter().rev().map(|app| (&app.app, app)));
        }
        let detail = |(app, unsynced): (&&'a App, Vec<ObjectSync>)| {
            let home_of = |app: &App| forest.cluster(&app.app.home);
            let home = home_of(app);
            // If another app delivers the objects, its source and its state count.
            let via = app.delivered_by.as_ref().and_then(|via| carriers.get(via).copied());
            let parent = app.declaring.as_ref().and_then(|key| *parents.get(&(&*app.app.home, key))?);
            let Relations { rows: relations, left_out } = Relations::of(app, list, &hosting);
            AppDetail {
                app: AppRow { counts: inner.counts(app), ..AppRow::from(*app) },
                application: application_details(app, parent, home),
                reconciliation: reconciliation_details(app, home, via.map(|via| (via, home_of(via)))),
                relations,
                relations_left_out: left_out,
                unsynced,
                deployment: forest.tree(app).children,
            }
        };
        let unsynced = apps::differing_fields(asked.iter().copied(), clusters);
        List::of(asked.iter().zip(unsynced).map(detail).collect(), &list.errors)
    }
}

impl AppDetail {
    /// Returns the declared objects and their dependents as rows of a table without children: dependents follow their
    /// owner, and objects that are alike share a row as in [`AppTree::fold`](crate::AppTree::fold).
    pub fn lines(&self) -> Vec<TreeNode> {
        fn flatten(nodes: Vec<TreeNode>, lines: &mut Vec<TreeNode>) {
            for mut node in nodes {
                let children = std::mem::take(&mut node.children);
                lines.push(node);
                flatten(children, lines);
            }
        }

        let AppRow { health, freshness, .. } = self.app;
        let mut root = TreeNode::new(Relation::App, health, freshness);
        root.children.clone_from(&self.deployment);
        tree::fold(&mut root);
        let mut lines = Vec::new();
        flatten(root.children, &mut lines);
        lines
    }
}

/// Returns, for each app in `asked`, the first app of `list` that declares its declaring object with a confirmed claim,
/// by cluster and key of that object; `None` if there is none.
fn parents<'a>(
    asked: &[&'a App],
    list: &'a apps::AppList,
) -> HashMap<(&'a str, &'a ObjectKey), Option<&'a App>> {
    let declaring = asked.iter().filter_map(|app| Some((&*app.app.home, app.declaring.as_ref()?)));
    let mut parents: HashMap<_, Option<&App>> = declaring.map(|place| (place, None)).collect();
    for app in list.apps.iter().filter(|app| app.in_reach) {
        for resource in app.resources.iter().filter(|resource| !resource.unconfirmed) {
            if let Some(parent) = parents.get_mut(&(&*app.app.target, &resource.key)) {
                parent.get_or_insert(app);
            }
        }
    }
    parents
}

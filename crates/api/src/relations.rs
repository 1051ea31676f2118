//! The apps to which an app is related, upstream and downstream, with their statuses.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use taffrail_apps::{App, AppList, Delivery, Hosting, RelationType, Upstream, Words};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use crate::AppName;

/// The maximum number of relations that an answer lists of one app in each direction; others are counted.
const MAX_RELATIONS: usize = 100;

/// The direction of a relation, as seen by the app that lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum RelationDirection {
    /// The app has the relation with the other one: it depends on that one, or is created, delivered or hosted by it.
    Upstream,
    /// The other app has the relation with this one.
    Downstream,
}

/// A relation of an app to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RelationRow {
    /// The type of the relation, in the words of the app downstream.
    #[serde(rename = "type")]
    pub relation: RelationType,
    /// The direction of the other app.
    pub direction: RelationDirection,
    /// The other app.
    pub app: RelatedApp,
    /// The status of the other app now: NotFound if nothing declares it, Unknown if it was not read.
    pub status: Status,
    /// The message of the other app, or the reason why its status is not known; left out if it is Ready.
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    pub message: Words,
}

/// The name of an app, and its clusters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RelatedApp {
    /// Name of the cluster that holds the app's objects; the same as `home` if it is not known.
    pub cluster: String,
    /// Name of the cluster that declares the app.
    pub home: String,
    /// The name of the app.
    #[serde(flatten)]
    pub app: AppName,
}

/// The relations of one app.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    /// The relations, those upstream first; in each direction by type, then by cluster and name.
    pub(crate) rows: Vec<RelationRow>,
    /// Number of further relations.
    pub(crate) left_out: usize,
}

impl Relations {
    /// Finds the relations of `asked` among the apps of `list`; `hosting` are the objects that stand for clusters.
    pub(crate) fn of(asked: &App, list: &AppList, hosting: &Hosting) -> Relations {
        let upstreams = &asked.upstreams;
        let upstream = upstreams.apps.iter().map(|upstream| {
            let known = list.apps.iter().find(|app| is_it(upstream, app));
            known.map_or_else(
                || unknown(upstream),
                |app| row(upstream.relation, RelationDirection::Upstream, app),
            )
        });
        let downstream = list.apps.iter().flat_map(|app| {
            let ours = app.upstreams.apps.iter().filter(|upstream| is_it(upstream, asked));
            ours.map(move |upstream| row(upstream.relation, RelationDirection::Downstream, app))
        });
        // A management cluster may have many such objects, and an app too.
        let of_cluster: HashSet<(&str, &ObjectKey)> = hosting
            .objects
            .iter()
            .filter(|object| asked.in_reach && object.is_proved && object.cluster == asked.app.target)
            .map(|object| (&*object.home, &object.object))
            .collect();
        let hosts = |app: &&App| {
            let confirmed = app.resources.iter().filter(|own| !own.unconfirmed);
            !of_cluster.is_empty()
                && app.in_reach
                && confirmed.into_iter().any(|own| of_cluster.contains(&(&*app.app.target, &*own.key)))
        };
        let hosted_by = list.apps.iter().filter(hosts);
        let hosted_by = hosted_by.map(|app| row(RelationType::HostedBy, RelationDirection::Upstream, app));
        let own = asked.resources.iter().filter(|own| asked.in_reach && !own.unconfirmed);
        let own: HashSet<&ObjectKey> = own.map(|own| &*own.key).collect();
        let clusters: HashSet<&str> = hosting
            .objects
            .iter()
            .filter(|object| {
                object.is_proved && object.home == asked.app.target && own.contains(&object.object)
            })
            .map(|object| &*object.cluster)
            .collect();
        let hosted = list.apps.iter().filter(|app| app.in_reach && clusters.contains(&*app.app.target));
        let hosted = hosted.map(|app| row(RelationType::HostedBy, RelationDirection::Downstream, app));
        let mut relations = Relations { rows: Vec::new(), left_out: upstreams.left_out };
        for rows in [upstream.chain(hosted_by).collect::<Vec<_>>(), downstream.chain(hosted).collect()] {
            relations.add(rows);
        }
        relations
    }

    /// Adds relations of one direction: if there are too many, the first by status, the worst first.
    fn add(&mut self, mut rows: Vec<RelationRow>) {
        if rows.len() > MAX_RELATIONS {
            rows.sort_by_key(|row| row.status);
            self.left_out += rows.len() - MAX_RELATIONS;
            rows.truncate(MAX_RELATIONS);
        }
        rows.sort_by(|one, other| (one.relation, &one.app).cmp(&(other.relation, &other.app)));
        self.rows.extend(rows);
    }
}

/// Returns true if `app` is the one that `upstream` names.
fn is_it(upstream: &Upstream, app: &App) -> bool {
    let AppName { delivery, namespace, name } = &upstream.app;
    app.app.name == *name
        && app.app.namespace == *namespace
        && app.app.delivery == *delivery
        && app.app.home == upstream.home
}

fn row(relation: RelationType, direction: RelationDirection, app: &App) -> RelationRow {
    let status = app.effective();
    let message = match status {
        Status::Current => Words::default(),
        _ => app.message.clone(),
    };
    let own = RelatedApp {
        cluster: app.app.target.clone(),
        home: app.app.home.clone(),
        app: AppName::from(&app.app),
    };
    RelationRow { relation, direction, app: own, status, message }
}

/// Makes the relation to an app that is not in the list.
fn unknown(upstream: &Upstream) -> RelationRow {
    let Upstream { relation, home, app, is_missing } = upstream;
    let kind = match app.delivery {
        Delivery::FluxKustomization => "Kustomization",
        Delivery::FluxHelmRelease => "HelmRelease",
        _ => app.delivery.as_str(),
    };
    let (status, what) = match is_missing {
        true => (Status::NotFound, "not found"),
        false => (Status::Unknown, "was not read"),
    };
    let message = format!("{kind} {}/{} {what}", app.namespace, app.name);
    RelationRow {
        relation: *relation,
        direction: RelationDirection::Upstream,
        app: RelatedApp { cluster: home.clone(), home: home.clone(), app: app.clone() },
        status,
        message: message.into(),
    }
}

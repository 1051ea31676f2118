//! The question of `object`: an object as its API server returned it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use taffrail_apps::{
    AppError, Freshness, KindCatalog, NamedObject, Objects, ReadQuery, Resource, Scope, ScopeError, Snapshot,
    aliases, declared_each,
};
use taffrail_object::{GroupKind, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::Presence;

use super::{AskedClusters, AskedFleet, FleetFacts, QuestionError, SubjectName, View};
use crate::{ObjectEvent, ObjectRow, as_text};

/// The parameters of `object`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectView {
    /// The name of the object: `KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`.
    #[serde(with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: SubjectName,
    /// The namespace of an object named by kind and name; `null` for that of each cluster's context, and in dumps for
    /// any.
    #[serde(default)]
    pub namespace: Option<String>,
    /// True to look for an object named by kind and name in all namespaces.
    #[serde(default)]
    pub all_namespaces: bool,
    /// The names of the clusters in which the object is looked for; empty for all.
    #[serde(default)]
    pub clusters: Vec<String>,
}

/// The answer of `object`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectAnswer {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The object in each cluster that has it.
    pub items: Vec<ObjectRow>,
    /// Failures to read the clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
}

/// Maximum number of kinds that the error about an unknown one names.
const MAX_KINDS: usize = 1000;

impl ObjectView {
    /// Maximum number of events of an object that the answer has: those that occurred last.
    const MAX_EVENTS: usize = 100;

    fn is_in(&self, cluster: &str) -> bool {
        let is_named = self.name.cluster().is_none_or(|own| own == cluster);
        is_named && (self.clusters.is_empty() || self.clusters.iter().any(|own| own == cluster))
    }

    /// Returns the row of an object with its status; `None` if the cluster does not have it.
    ///
    /// # Errors
    /// If the object is nested too deeply to be shown.
    fn row(
        cluster: &dyn Objects,
        judged: &Resource,
        freshness: Freshness,
    ) -> Result<Option<ObjectRow>, Box<AppError>> {
        let Presence::Present(observed) = cluster.get(judged.key.as_ref().as_ref()) else { return Ok(None) };
        let text = observed.object.to_json().ok();
        let Some(body) = text.and_then(|text| serde_json::from_slice(&text).ok()) else {
            let error = ScopeError {
                scope: Scope::Object((*judged.key).clone()),
                reason: "Malformed".to_owned(),
                message: "the object is nested too deeply to be shown".to_owned(),
            };
            return Err(Box::new(AppError { cluster: cluster.name().to_owned(), error }));
        };
        let is_secret = judged.key.group.is_empty() && judged.key.kind == "Secret";
        let mut events: Vec<ObjectEvent> =
            cluster.events(&observed.object).iter().map(ObjectEvent::from).collect();
        events.sort_by_key(|event| event.last_seen);
        events.drain(..events.len().saturating_sub(ObjectView::MAX_EVENTS));
        let effective = freshness.effective(judged.status);
        Ok(Some(ObjectRow {
            cluster: cluster.name().to_owned(),
            object: (*judged.key).clone(),
            health: judged.status,
            effective,
            status: effective,
            freshness,
            message: judged.message.to_string(),
            events,
            is_metadata: is_secret || observed.projection == Projection::Metadata,
            // A dump, and a hub for a cluster that does not answer, may have read more of a Secret.
            body: if is_secret { ObjectRow::without_values(body) } else { body },
        }))
    }

    /// Returns the keys of the objects of a cluster that the name means.
    fn keys(&self, cluster: &dyn Objects) -> Vec<ObjectKey> {
        if let Some(key) = self.name.key() {
            return vec![key.clone()];
        }
        let namespace = self.namespace.as_deref();
        let called = |key: &ObjectKeyRef<'_>| {
            let (kind, name) = self.name.kind_and_name()?;
            // Only discovery knows the plurals of custom kinds.
            let served = cluster.kinds()?.get(&GroupKind::new(key.group, key.kind))?;
            let is_there = key.namespace.is_empty() || namespace.is_none_or(|it| it == key.namespace);
            Some(name == key.name && is_there && served.is_called(kind))
        };
        let is_meant =
            |key: &ObjectKeyRef<'_>| self.name.is_object(*key, namespace) || called(key) == Some(true);
        let keys: BTreeSet<ObjectKey> =
            cluster.all().map(|it| it.key).filter(is_meant).map(ObjectKeyRef::to_owned).collect();
        keys.into_iter().collect()
    }

    /// Returns true if a cluster serves the kind of the object, or does not tell its kinds.
    fn is_served(&self, cluster: &dyn Objects) -> bool {
        let Some(catalog) = cluster.kinds() else { return true };
        let mut kinds = catalog.iter();
        match (self.name.key(), self.name.kind_and_name()) {
            (Some(key), _) => kinds.any(|it| (&*it.group, &*it.kind) == (&*key.group, &*key.kind)),
            (None, Some((kind, _))) => kinds.any(|it| it.is_called(kind)),
            (None, None) => false,
        }
    }

    /// Returns the error that none of the `clusters` has the object.
    fn not_found(&self, clusters: &[&dyn Objects]) -> QuestionError {
        let object = match (self.name.key(), self.name.kind_and_name()) {
            (Some(key), _) => format!("{} {}", key.kind, key.path()),
            (None, Some((kind, name))) => format!("{kind} '{name}'"),
            (None, None) => self.name.to_string(),
        };
        if !clusters.iter().any(|cluster| self.is_served(*cluster)) {
            let kind = match (self.name.key(), self.name.kind_and_name()) {
                (Some(key), _) if key.group.is_empty() => key.kind.clone(),
                (Some(key), _) => format!("{}.{}", key.kind, key.group),
                (None, Some((kind, _))) => kind.to_owned(),
                (None, None) => self.name.to_string(),
            };
            let kinds = clusters.iter().filter_map(|cluster| cluster.kinds()).flat_map(KindCatalog::iter);
            let known: BTreeSet<String> = kinds.map(|served| served.kind.to_string()).collect();
            return QuestionError::UnservedKind { kind, known: known.into_iter().take(MAX_KINDS).collect() };
        }
        let text = self.name.to_string();
        // Without a namespace a dump is searched in all.
        let is_of_dumps = self.namespace.is_none() && clusters.iter().all(|cluster| cluster.is_dump());
        let has_searched_all = self.all_namespaces || is_of_dumps;
        QuestionError::NoSuchObject { text, object, is_served: true, has_searched_all }
    }
}

impl View for ObjectView {
    type Answer = ObjectAnswer;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.clusters.iter_mut().chain(self.name.clusters_mut()).collect()
    }

    fn reads(&self) -> ReadQuery {
        ReadQuery {
            declarations: false,
            label_groups: false,
            objects: self.name.key().cloned().into_iter().collect(),
            named: self.name.kind_and_name().filter(|_| self.all_namespaces).map(NamedObject::from),
            by_name: true,
            whole: true,
            events_about: true,
            ..ReadQuery::default()
        }
    }

    fn reads_objects(&self, snapshot: &Snapshot, namespace: &str) -> Vec<ObjectKey> {
        let chosen = self.namespace.as_deref();
        self.name.keys(snapshot, chosen.unwrap_or(namespace), chosen)
    }

    fn extent_resolved(&self, _fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        Ok(match self.name.cluster() {
            Some(cluster) => AskedClusters::Clusters(BTreeSet::from([cluster.to_owned()])),
            None if self.clusters.is_empty() => AskedClusters::All,
            None => AskedClusters::Clusters(self.clusters.iter().cloned().collect()),
        })
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<ObjectAnswer, QuestionError> {
        if self.name.is_of_app() {
            return Err(QuestionError::InvalidName { text: self.name.to_string() });
        }
        let (clusters, rules) = (fleet.clusters(), fleet.rules());
        let mut answer = ObjectAnswer { fleet: FleetFacts::of(fleet), items: Vec::new(), errors: Vec::new() };
        let asked: Vec<&dyn Objects> = (clusters.iter().zip(aliases(&clusters)))
            .filter(|(cluster, is_alias)| !is_alias && self.is_in(cluster.name()))
            .map(|(cluster, _)| *cluster)
            .collect();
        for cluster in &asked {
            let judged = declared_each(*cluster, &self.keys(*cluster), &rules, fleet.now());
            let resources =
                judged.apps.iter().flat_map(|app| app.resources.iter().map(|it| (it, app.freshness)));
            for (resource, freshness) in resources {
                match ObjectView::row(*cluster, resource, freshness) {
                    Ok(row) => answer.items.extend(row),
                    Err(error) => answer.errors.push(*error),
                }
            }
            answer.errors.extend(judged.errors);
        }
        if asked.is_empty() {
            return Err(QuestionError::NothingFound);
        }
        match answer.items.is_empty() && answer.errors.is_empty() {
            true => Err(self.not_found(&asked)),
            false => Ok(answer),
        }
    }
}

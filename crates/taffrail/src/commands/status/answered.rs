//! Answers the questions of `taffrail status --hub` in a hub.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_api::StatusRow;
use taffrail_api::question::{ClusterStatuses, QuestionError, StatusItem, StatusView};
use taffrail_apps::{Freshness, Objects, Snapshot};
use taffrail_cluster::ApiResource;
use taffrail_object::ObjectKey;
use taffrail_observe::{Member, ObserveError, TimeLimits, for_each_cluster};
use taffrail_status::assess::{Costs, Evidence};
use taffrail_status::{ClusterState as _, Presence};

use super::clusters::{Meant, ReadObjects, ReadQuery, absent, keys, of_cluster, plan};
use super::judge::{Form, Judge};
use crate::command_error::CommandError;
use crate::rule_source::RulesWithOptions;

/// Maximum number of served kinds that the error about an unknown kind names; the others are left out.
const MAX_KINDS: usize = 1_000;

/// A parsed question of `status`, with the rules that judge its objects.
pub(in crate::commands) struct ObjectsAsked {
    query: Arc<ReadQuery>,
    judge: Judge,
    now: Timestamp,
}

/// The statuses in each cluster that was asked, and the namespace of the question if nothing was read of it.
pub(in crate::commands) struct ObjectsRead {
    pub(in crate::commands) clusters: Vec<ClusterStatuses>,
    pub(in crate::commands) unseen_namespaces: Vec<String>,
}

impl ObjectsAsked {
    /// Parses the words of a question, whose objects `rules` will judge.
    ///
    /// # Errors
    /// Fails if a word names no object, if `KIND/NAME` and `KIND NAME` are mixed, or if a selector is combined with
    /// names.
    pub(in crate::commands) fn new(
        view: &StatusView,
        rules: RulesWithOptions,
    ) -> Result<ObjectsAsked, CommandError> {
        let now = Timestamp::now();
        let judge = Judge { rules, why: None, now: Some(now), form: Form::Rows, is_pure: false };
        Ok(ObjectsAsked { query: Arc::new(ReadQuery::of(view)?), judge, now })
    }

    /// Returns the clusters with which the names of all objects begin; `None` if some name has none, so that its object
    /// may be in any cluster.
    pub(in crate::commands) fn clusters(&self) -> Option<BTreeSet<String>> {
        self.query.clusters()
    }

    /// Reads the objects in the clusters `members`, and judges them. Fails with [`QuestionError::UnservedKind`] if all
    /// of these answered and none serves a kind, provided that `are_all`: no other cluster may have the objects.
    pub(in crate::commands) async fn read(
        self,
        members: Vec<Member>,
        limits: TimeLimits,
        are_all: bool,
    ) -> Result<Result<ObjectsRead, QuestionError>, ObserveError> {
        let ObjectsAsked { query, judge, now } = self;
        let (plan, asked, rules) = (plan(&judge), Arc::clone(&query), judge.rules.clone());
        let found = for_each_cluster(members, limits, move |live| {
            let (asked, plan, rules) = (asked.clone(), plan.clone(), rules.clone());
            async move { of_cluster(&live, &asked, plan, now, rules).await }
        });
        let found = found.await?;
        let judged = tokio::task::spawn_blocking(move || answered(&query, &judge, &found, are_all));
        Ok(judged.await?)
    }
}

fn answered(
    query: &ReadQuery,
    judge: &Judge,
    found: &[ReadObjects],
    are_all: bool,
) -> Result<ObjectsRead, QuestionError> {
    let are_there = are_all && found.iter().all(|found| !found.meant.is_empty());
    if are_there && let Some(kind) = ReadQuery::unserved(found.iter().map(|found| &*found.meant)) {
        let known: BTreeSet<&String> = found.iter().flat_map(|found| &found.kinds).collect();
        let known = known.into_iter().take(MAX_KINDS).cloned().collect();
        return Err(QuestionError::UnservedKind { kind: kind.clone(), known });
    }
    let unseen = query.namespace().filter(|namespace| {
        !found.iter().any(|found| {
            found.snapshot.all().map(|observed| observed.key).any(|key| {
                key.namespace == *namespace
                    || (key.group, key.kind, key.name) == ("", "Namespace", *namespace)
            })
        })
    });
    Ok(ObjectsRead {
        clusters: found.iter().map(|found| statuses(judge, found)).collect(),
        unseen_namespaces: unseen.map(str::to_owned).into_iter().collect(),
    })
}

fn statuses(judge: &Judge, ReadObjects { snapshot, meant, .. }: &ReadObjects) -> ClusterStatuses {
    let costs = Costs::default();
    let item = |meant: &Meant| match meant {
        Meant::NoKind(kind) => vec![StatusItem::NoKind(kind.clone())],
        Meant::Nothing(why) => vec![StatusItem::Nothing(why.clone())],
        Meant::Elsewhere => Vec::new(),
        Meant::One(resource, key) => vec![row(judge, snapshot, &costs, resource, key)],
        Meant::All(resource, namespace) => keys(snapshot, resource, namespace.as_ref())
            .iter()
            .map(|key| row(judge, snapshot, &costs, resource, key))
            .collect(),
    };
    ClusterStatuses {
        cluster: snapshot.name().to_owned(),
        is_unobserved: snapshot.freshness() == Freshness::never(),
        errors: snapshot.errors().to_vec(),
        items: meant.iter().flat_map(item).collect(),
    }
}

fn row(
    judge: &Judge,
    snapshot: &Snapshot,
    costs: &Costs,
    resource: &ApiResource,
    key: &ObjectKey,
) -> StatusItem {
    let row: StatusRow = match snapshot.get(key.as_ref()) {
        Presence::Present(observed) => judge.row(&observed.object, Evidence::from(snapshot).at_cost(costs)),
        Presence::Absent => absent(snapshot, resource, key, None).into(),
        Presence::Unobserved(why) => absent(snapshot, resource, key, Some(why.into_owned())).into(),
    };
    StatusItem::Object(Box::new(row))
}

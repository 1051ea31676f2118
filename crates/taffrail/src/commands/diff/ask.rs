//! Asks a cluster about each object of the manifests.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesOrdered;
use taffrail_api::{DiffRow, ErrorRow};
use taffrail_cluster::{Cluster, Discovery};
use taffrail_engine::{Coming, Types, dry_run_of};
use taffrail_object::{GroupKind, ObjectKey, Projection};
use taffrail_observe::{AskedApply, ClusterConnector, DeclaredManifest, Failure, ask_apply};
use taffrail_plan::manifests::{DeclaredObject, DeclaredSet, KindScope};

use super::question::{ClusterDiff, Question};

/// Maximum number of objects about which one API server is asked at one time.
const AT_ONCE: usize = 8;

/// Compares the objects of the manifests of each question with those of a cluster.
pub(in crate::commands) async fn compare(
    connector: &ClusterConnector,
    questions: &[Arc<Question>],
) -> Vec<ClusterDiff> {
    let connected = async {
        let cluster = connector.connect().await?;
        let discovery = cluster.discover().await.map_err(|error| Failure::of_read(&error))?;
        Ok((cluster, discovery))
    };
    let connected: Result<(Cluster, Discovery), Failure> = connected.await;
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let mut answer = ClusterDiff::new(connector.member.name.clone());
        match &connected {
            Ok((cluster, discovery)) => compare_into(&mut answer, cluster, discovery, question).await,
            Err(Failure { reason, message }) => {
                answer.fail("cluster".to_owned(), reason.clone(), message.clone());
            }
        }
        answers.push(answer);
    }
    answers
}

async fn compare_into(
    answer: &mut ClusterDiff,
    cluster: &Cluster,
    discovery: &Discovery,
    question: &Question,
) {
    let scope_of = |kind: &GroupKind| {
        let served = discovery.kind(&kind.group, &kind.kind)?;
        Some(if served.preferred().namespaced { KindScope::Namespaced } else { KindScope::Cluster })
    };
    let Some(DeclaredSet { objects, .. }) = answer.read(question, cluster.namespace(), &scope_of) else {
        return;
    };
    let types = Types::of(cluster, &objects, &question.schemas).await;
    let coming = Coming::of(&objects);
    let asked = Asked { cluster, discovery, question, types: &types, coming: &coming };
    let name = answer.cluster.clone();
    each(
        &objects,
        |object| asked.row(&name, object),
        |row| match row {
            Ok(row) => answer.rows.push(row),
            Err(error) => answer.errors.push(error),
        },
    )
    .await;
    let (keys, mut left) = (std::mem::take(&mut answer.left), Vec::new());
    each(
        &keys,
        |key| asked.exists(&name, key),
        |found| match found {
            Ok(found) => left.extend(found),
            Err(error) => answer.errors.push(error),
        },
    )
    .await;
    answer.left = left;
}

/// Calls `ask` for each of `items`, for [`AT_ONCE`] at one time, and `take` with the results in their order.
async fn each<'i, I, F: Future>(items: &'i [I], ask: impl Fn(&'i I) -> F, mut take: impl FnMut(F::Output)) {
    let (mut waiting, mut running) = (items.iter(), FuturesOrdered::new());
    loop {
        while running.len() < AT_ONCE {
            let Some(item) = waiting.next() else { break };
            running.push_back(ask(item));
        }
        match running.next().await {
            Some(result) => take(result),
            None => break,
        }
    }
}

struct Asked<'a> {
    cluster: &'a Cluster,
    discovery: &'a Discovery,
    question: &'a Question,
    types: &'a Types,
    coming: &'a Coming,
}

impl Asked<'_> {
    /// Compares one object.
    async fn row(&self, cluster: &str, object: &DeclaredObject) -> Result<DiffRow, ErrorRow> {
        let declared =
            DeclaredManifest { key: &object.key, api_version: &object.api_version, value: &object.value };
        let asked = ask_apply(self.cluster, self.discovery, declared, &self.question.manager).await;
        let AskedApply { live, answer } = asked.map_err(|failure| failed(cluster, &object.key, failure))?;
        let dry_run = dry_run_of(answer, object, self.coming);
        // Merging, and expressions of rules, may take long.
        let compare = || self.question.row(cluster, object, live.as_ref(), &dry_run, self.types);
        Ok(tokio::task::block_in_place(compare))
    }

    /// Returns the key of an object if it exists.
    async fn exists(&self, cluster: &str, key: &ObjectKey) -> Result<Option<ObjectKey>, ErrorRow> {
        let Some(kind) = self.discovery.kind(&key.group, &key.kind) else { return Ok(None) };
        let resource = kind.preferred();
        let namespace = Some(&*key.namespace).filter(|_| resource.namespaced);
        let found = self.cluster.get(&resource, namespace, &key.name, Projection::Metadata).await;
        let found = found.map_err(|error| failed(cluster, key, Failure::of_read(&error)))?;
        Ok(found.map(|_| key.clone()))
    }
}

fn failed(cluster: &str, key: &ObjectKey, failure: Failure) -> ErrorRow {
    let Failure { reason, message } = failure;
    let scope = format!("{} {}", key.kind, key.path());
    ErrorRow { cluster: cluster.to_owned(), scope, reason, message }
}

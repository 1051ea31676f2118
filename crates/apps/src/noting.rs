//! A wrapper of a cluster that records the lookups made in it while a result is computed.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::assess::Event;
use taffrail_status::{ClusterState, Listing, Observed, Presence};

use crate::cluster_facts::ClusterFacts;
use crate::objects::Objects;
use crate::questions::{Question, QuestionLog};
use crate::snapshot::labels;

/// Runs `find`, and records only the lookup `question` in place of the many lookups that `find` makes.
pub(crate) fn ask_at_once<T>(objects: &dyn Objects, question: &Question<'_>, find: impl FnOnce() -> T) -> T {
    let Some((log, cluster)) = objects.question_log() else { return find() };
    log.ask(cluster, question);
    log.quietly(find)
}

/// Lists the objects of a kind for a caller that uses only their keys, and records only a lookup of these keys.
pub(crate) fn keys_of<'o>(objects: &'o dyn Objects, group: &str, kind: &str) -> Listing<'o> {
    ask_at_once(objects, &Question::Keys(group, kind), || objects.of_kind(group, kind, None))
}

/// Returns an object for a caller that uses only its metadata, and records only a lookup of this metadata.
pub(crate) fn metadata_of<'o>(objects: &'o dyn Objects, key: &ObjectKey) -> Presence<'o> {
    ask_at_once(objects, &Question::Metadata(key.as_ref()), || objects.get(key.as_ref()))
}

/// Returns the time from `at` to `now`. If it is less than `limit`, records the moment at which it reaches it, because
/// the caller's result changes then.
pub(crate) fn elapsed(
    objects: &dyn Objects,
    at: Timestamp,
    limit: SignedDuration,
    now: Timestamp,
) -> SignedDuration {
    let elapsed = now.duration_since(at);
    if let Some((log, _)) = objects.question_log()
        && elapsed < limit
        && let Ok(end) = at.checked_add(limit)
    {
        log.changes_at(end);
    }
    elapsed
}

/// A cluster that records in a log the lookups of objects and of lists that are made through it.
pub(crate) struct Noting<'a> {
    objects: &'a dyn Objects,
    cluster: usize,
    log: &'a QuestionLog,
}

impl<'a> Noting<'a> {
    /// Wraps `objects`, in which lookups are recorded in `log` under the index `cluster`.
    pub(crate) fn new(objects: &'a dyn Objects, cluster: usize, log: &'a QuestionLog) -> Noting<'a> {
        Noting { objects, cluster, log }
    }

    fn ask(&self, question: &Question<'_>) {
        self.log.ask(self.cluster, question);
    }
}

impl ClusterState for Noting<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.ask(&Question::Object(key));
        let found = self.objects.get(key);
        if !matches!(found, Presence::Present(_)) {
            self.ask(&Question::Lists(key.group, key.kind));
        }
        found
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.ask(&Question::Controlled(uid));
        self.objects.owned(uid, namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.ask(&Question::Owned(uid));
        self.objects.dependents(uid, namespace)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.ask(&Question::Kind(group, kind, namespace));
        self.objects.of_kind(group, kind, namespace)
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.ask(&Question::Users(namespace, claim));
        self.objects.users(namespace, claim)
    }

    fn knows_users(&self, namespace: &str) -> bool {
        self.ask(&Question::Pods(namespace));
        self.ask(&Question::Lists("", "Pod"));
        self.objects.knows_users(namespace)
    }

    fn budgets(&self, namespace: &str, own: Option<Value<'_>>) -> Listing<'_> {
        self.ask(&Question::Budgets(namespace, None));
        labels(own).iter().for_each(|label| self.ask(&Question::Budgets(namespace, Some(label))));
        self.objects.budgets(namespace, own)
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        self.ask(&Question::Leaving(node));
        self.objects.terminating_on(node)
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.ask(&Question::Definition(group, kind));
        self.objects.definition(group, kind)
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        self.objects.has_status_subresource(group, version, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.ask(&Question::Namespace(namespace));
        self.objects.in_namespace(namespace)
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        self.ask(&Question::Events(about.kind(), &about.namespace(), &about.name()));
        self.objects.events(about)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.ask(&Question::Lists(group, kind));
        self.objects.is_observed(group, kind, namespace)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        if self.objects.is_dump() {
            self.ask(&Question::Kind(group, kind, Some(namespace)));
            self.ask(&Question::Definition(group, kind));
        }
        self.objects.tells_absence(group, kind, namespace)
    }
}

impl Objects for Noting<'_> {
    fn facts(&self) -> &ClusterFacts {
        self.objects.facts()
    }

    fn all(&self) -> Listing<'_> {
        self.ask(&Question::All);
        self.objects.all()
    }

    fn labelled_uncontrolled<'o>(&'o self, labels: &'o [&'o str]) -> Listing<'o> {
        self.ask(&Question::All);
        self.objects.labelled_uncontrolled(labels)
    }

    fn of_kind_named<'o>(&'o self, group: &str, kind: &str, start: &'o str) -> Listing<'o> {
        self.ask(&Question::Kind(group, kind, None));
        self.objects.of_kind_named(group, kind, start)
    }

    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        // Nothing in a cluster changes the scope of a built-in kind.
        if is_namespaced(group, kind).is_none() {
            self.ask(&Question::IsNamespaced(group, kind));
        }
        self.objects.is_namespaced(group, kind)
    }

    fn share(&self, key: ObjectKeyRef<'_>) -> Arc<ObjectKey> {
        self.objects.share(key)
    }

    fn question_log(&self) -> Option<(&QuestionLog, usize)> {
        Some((self.log, self.cluster))
    }
}

//! The state of a target of `wait` at one moment.

use std::collections::BTreeSet;

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{LabelSelector, Object, ObjectKey, PredicateAnswer, Projection};
use taffrail_status::{ActiveRules, ClusterState as _, Observed, Presence, Status};

use super::expression::Question;
use super::field::{FieldMatch, WantedField};
use super::{Judgement, Selection, Subject, Target, Until, WaitState};
use crate::app::{App, AppList, Resource};
use crate::apps::declared;
use crate::delivery::flux;
use crate::delivery::labels::NOT_SHOWN;
use crate::find::{AppQuery, FindError};
use crate::freshness::{Freshness, FreshnessState};
use crate::identity::Delivery;
use crate::objects::{Objects, freshness_of};
use crate::problem::{Axis, Problem, RULES_UNREAD, SUSPENDED};
use crate::reads::Target as ReadTarget;
use crate::reads::declaring::may_declare;
use crate::scope::{Scope, ScopeError};
use crate::snapshot::{Listed, Snapshot};
use crate::sync::{SyncState, shorten};
use crate::words::Words;

/// The reason for a target that does not exist.
const NOT_FOUND: &str = "NotFound";

/// The reason for an expression that cannot be evaluated though the object exists: see [`PredicateAnswer::Fault`].
pub const EXPRESSION_FAULT: &str = "ExpressionFault";

/// The message for a field that is missing because it was not read.
const LEFT_OUT: &str = "the field was not read: Taffrail reads no values of Secrets, nor data that its user may not \
    read";

/// The state of a target: if it meets the condition, with reason and message.
struct Opinion {
    verdict: WaitState,
    /// The reason for the verdict in one CamelCase word; empty if there is none.
    reason: String,
    why: Words,
    /// True to append the message about the object's status, which names the root cause, while it is not Ready.
    with_cause: bool,
}

impl Opinion {
    fn met(why: impl Into<Words>) -> Opinion {
        Opinion { verdict: WaitState::Met, reason: String::new(), why: why.into(), with_cause: false }
    }

    fn waiting(why: impl Into<Words>) -> Opinion {
        Opinion { verdict: WaitState::Waiting, reason: String::new(), why: why.into(), with_cause: true }
    }

    fn hopeless(why: impl Into<Words>) -> Opinion {
        Opinion { verdict: WaitState::Hopeless, ..Opinion::waiting(why) }
    }

    fn unobserved(why: impl Into<Words>) -> Opinion {
        Opinion { verdict: WaitState::Unobserved, with_cause: false, ..Opinion::waiting(why) }
    }

    fn because(self, reason: &str) -> Opinion {
        Opinion { reason: reason.to_owned(), ..self }
    }
}

/// Returns the reason why nothing is known now about a cluster; `None` if it is live.
pub(super) fn silence(snapshot: &Snapshot) -> Option<String> {
    let state = snapshot.freshness().state;
    if state == FreshnessState::Live {
        return None;
    }
    let own = snapshot.errors().iter().find(|error| error.scope == Scope::Cluster);
    Some(own.map_or_else(|| format!("the cluster {}", state.predicate()), |error| error.message.clone()))
}

/// Returns the keys of the objects that a selection matches.
pub(super) fn selected(snapshot: &Snapshot, selection: &Selection) -> Vec<ObjectKey> {
    let Selection { kind, namespace, labels } = selection;
    let labels = labels.as_ref().map(|labels| labels.parse().unwrap_or_else(|_| LabelSelector::nothing()));
    let is_chosen = |observed: &Observed<'_>| {
        namespace.as_ref().is_none_or(|namespace| *namespace == observed.key.namespace)
            && labels
                .as_ref()
                .is_none_or(|labels| labels.matches_labels(observed.object.at(&["metadata", "labels"])))
    };
    let all = snapshot.of_kind(&kind.group, &kind.kind, None).filter(is_chosen);
    all.map(|observed| observed.key.to_owned()).collect()
}

/// One cluster, with the condition, the rules and the time by which its targets are judged.
pub(super) struct Bench<'b> {
    pub(super) snapshot: &'b Snapshot,
    pub(super) until: &'b Until,
    pub(super) rules: &'b ActiveRules<'b>,
    pub(super) now: Timestamp,
}

impl Bench<'_> {
    /// Judges each object of a target, or the target itself if it has no objects.
    ///
    /// `known` are the objects that [`Wait`](super::Wait) has recorded for the target.
    pub(super) fn target(&self, target: &Target, known: &BTreeSet<ObjectKey>) -> Vec<Judgement> {
        if let Some(why) = silence(self.snapshot) {
            let own = match target {
                Target::Object(key) | Target::Inventory(key) => Subject::Object(key.clone()),
                Target::Selection(selection) => Subject::Named(selection.to_string()),
                Target::UnknownKind { word, name, .. } => Subject::Named(named(word, name.as_deref())),
            };
            let all = known.iter().cloned().map(Subject::Object);
            let all: Vec<Subject> = if known.is_empty() { vec![own] } else { all.collect() };
            return all
                .into_iter()
                .map(|subject| self.said(subject, None, Opinion::unobserved(&*why)))
                .collect();
        }
        match target {
            Target::Object(key) => self.objects([key]),
            Target::Selection(selection) => self.selection(selection, known),
            Target::Inventory(key) => self.objects(std::iter::once(key).chain(known)),
            Target::UnknownKind { word, name, why } => {
                let subject = Subject::Named(named(word, name.as_deref()));
                vec![match (why, self.until) {
                    (Some(why), _) => self.said(subject, None, Opinion::unobserved(why)),
                    // A mistyped kind must not be reported as deleted.
                    (None, Until::Deleted) => {
                        let why = format!(
                            "the server has no kind called {word}; write group/Kind/namespace/name to count that as \
                             deleted"
                        );
                        let opinion = Opinion::hopeless(why).because(NOT_FOUND);
                        self.said(subject, Some(Status::NotFound), opinion)
                    }
                    (None, _) => {
                        let why = format!("the server has no kind called {word} yet");
                        let opinion = Opinion::waiting(why).because(NOT_FOUND);
                        self.said(subject, Some(Status::NotFound), opinion)
                    }
                }]
            }
        }
    }

    fn selection(&self, selection: &Selection, known: &BTreeSet<ObjectKey>) -> Vec<Judgement> {
        let subject = || Subject::Named(selection.to_string());
        let there = selected(self.snapshot, selection);
        let Selection { kind, namespace, labels } = selection;
        let namespace = namespace.as_deref();
        let served = self.snapshot.kinds().is_none_or(|kinds| kinds.may_serve(kind));
        let target = ReadTarget::List { labels: labels.clone(), fields: None };
        // Each object is judged on its own, and may need more than metadata.
        let is_read = self.snapshot.was_selected(kind, namespace, &target, Projection::Metadata)
            || self.snapshot.listed(kind, namespace, Projection::Metadata) == Listed::Done;
        if served && !is_read {
            return vec![self.said(
                subject(),
                None,
                Opinion::unobserved("Taffrail has not read the objects yet"),
            )];
        }
        let scope = Scope::Kind { kind: kind.clone(), namespace: namespace.map(str::to_owned) };
        if let Some(error) = self.snapshot.errors().iter().find(|error| error.scope == scope)
            && there.is_empty()
        {
            return vec![self.said(
                subject(),
                None,
                Opinion::unobserved(&*error.message).because(&error.reason),
            )];
        }
        if *self.until == Until::Deleted {
            let all: BTreeSet<&ObjectKey> = known.iter().chain(&there).collect();
            if all.is_empty() {
                return vec![self.said(subject(), None, Opinion::met("no object matches the selection"))];
            }
            let (left, gone): (Vec<&ObjectKey>, Vec<&ObjectKey>) =
                all.into_iter().partition(|key| there.contains(key));
            let gone = gone.into_iter().map(|key| {
                let status = Some(Status::NotFound);
                self.said(
                    Subject::Object(key.clone()),
                    status,
                    Opinion::met("the object was deleted").because(NOT_FOUND),
                )
            });
            return self.objects(left).into_iter().chain(gone).collect();
        }
        if there.is_empty() {
            let why = match served {
                true => "no object matches the selection yet".to_owned(),
                false => format!("the server has no kind {} yet", kind.kind),
            };
            return vec![self.said(
                subject(),
                Some(Status::NotFound),
                Opinion::waiting(why).because(NOT_FOUND),
            )];
        }
        self.objects(&there)
    }

    fn objects<'k>(&self, keys: impl IntoIterator<Item = &'k ObjectKey>) -> Vec<Judgement> {
        let keys: BTreeSet<ObjectKey> = keys.into_iter().cloned().collect();
        let keys: Vec<ObjectKey> = keys.into_iter().collect();
        if keys.is_empty() {
            return Vec::new();
        }
        let list = declared(&[self.snapshot], &keys, self.rules, self.now);
        let resources = list.apps.into_iter().flat_map(|app| app.resources);
        resources.map(|resource| self.object(&resource)).collect()
    }

    fn object(&self, resource: &Resource) -> Judgement {
        let subject = Subject::Object((*resource.key).clone());
        let observed = match self.snapshot.get(ObjectKey::as_ref(&resource.key)) {
            Presence::Present(_) if !freshness_of(self.snapshot, resource.grounds()).is_live() => {
                let why = format!("the object {}", FreshnessState::Stale.predicate());
                return self.said(subject, None, Opinion::unobserved(why));
            }
            Presence::Present(observed) => observed,
            Presence::Absent => {
                let opinion = match self.until {
                    Until::Deleted => Opinion::met("the object does not exist"),
                    _ => {
                        let kinds = self.snapshot.kinds();
                        let served = kinds.is_none_or(|kinds| kinds.may_serve(&resource.key.group_kind()));
                        Opinion::waiting(match served {
                            true => "the object does not exist yet".to_owned(),
                            false => format!("the server has no kind {} yet", resource.key.kind),
                        })
                    }
                };
                let opinion = Opinion { with_cause: false, ..opinion.because(NOT_FOUND) };
                return self.said(subject, Some(Status::NotFound), opinion);
            }
            Presence::Unobserved(why) => return self.said(subject, None, Opinion::unobserved(why)),
        };
        let opinion = self.of_object(resource, &observed);
        let mut judgement = self.said(subject, Some(resource.status), Opinion { ..opinion });
        if judgement.verdict != WaitState::Met || resource.status != Status::Current {
            judgement.chain.clone_from(&resource.chain);
            judgement.since = resource.since;
        }
        judgement.uid =
            Some(observed.object.text(&["metadata", "uid"]).into_owned()).filter(|uid| !uid.is_empty());
        judgement
    }

    fn of_object(&self, resource: &Resource, observed: &Observed<'_>) -> Opinion {
        let object = &observed.object;
        let with_cause = |opinion: Opinion| match opinion.with_cause && resource.status != Status::Current {
            true if opinion.why.is_empty() => Opinion { why: resource.message.clone(), ..opinion },
            true => Opinion { why: format!("{}; {}", opinion.why, resource.message).into(), ..opinion },
            false => opinion,
        };
        let of_tree = |look: &dyn Fn(&serde_json::Value) -> Opinion| {
            let Ok(tree) = object.root().to_tree() else {
                return Opinion::unobserved(
                    "the object is nested too deeply to be compared with the condition",
                );
            };
            let opinion = look(&tree);
            match (opinion.verdict, finished(object)) {
                (WaitState::Waiting, Some(FinishedObject { how, .. })) => {
                    Opinion::hopeless(format!("{}, and {how}", opinion.why))
                }
                _ => with_cause(opinion),
            }
        };
        // The message is that of the cause, so the reason must be too.
        let reason = resource.chain.last().map(|link| &*link.reason).unwrap_or_default();
        match self.until {
            Until::Exists => Opinion::met("the object exists"),
            Until::Deleted if resource.status == Status::Terminating => {
                with_cause(Opinion::waiting("")).because(reason)
            }
            Until::Deleted => Opinion {
                with_cause: false,
                ..Opinion::waiting("the object exists, and its deletion has not been requested")
            },
            Until::Current => match resource.status {
                Status::Current => Opinion::met(""),
                Status::Failed => with_cause(Opinion::hopeless("")).because(reason),
                Status::Unknown if resource.rule.is_empty() => Opinion::unobserved(resource.message.clone()),
                _ => with_cause(Opinion::waiting("")).because(reason),
            },
            Until::Failed => match (resource.status, finished(object)) {
                (Status::Failed, _) => Opinion::met(resource.message.clone()).because(reason),
                (_, Some(FinishedObject { well: true, how })) => Opinion::hopeless(how),
                (_, Some(FinishedObject { well: false, how })) => Opinion::met(how),
                (Status::Current, None) => Opinion::waiting("the object is ready"),
                _ => with_cause(Opinion::waiting("the object has not failed so far")).because(reason),
            },
            Until::Condition { name, value } => {
                let opinion = of_condition(object, name, value);
                let is_good = value.eq_ignore_ascii_case("true") && !tells_of_failure(name);
                match (opinion.verdict, finished(object)) {
                    (WaitState::Waiting, Some(FinishedObject { how, .. })) => {
                        Opinion::hopeless(format!("{}, and {how}", opinion.why)).because(&opinion.reason)
                    }
                    (WaitState::Waiting, None) if is_good && resource.status == Status::Failed => {
                        with_cause(Opinion { verdict: WaitState::Hopeless, ..opinion })
                    }
                    _ => with_cause(opinion),
                }
            }
            Until::JsonPath(path) => of_tree(&|tree| of_field(path, tree, observed.projection)),
            Until::Cel(question) => of_tree(&|tree| of_expression(question, tree, observed.projection)),
            Until::Revision(_) => Opinion::hopeless("only apps have revisions: write app/NAME"),
        }
    }

    fn said(&self, subject: Subject, status: Option<Status>, opinion: Opinion) -> Judgement {
        Judgement {
            cluster: self.snapshot.name().to_owned(),
            subject,
            verdict: opinion.verdict,
            status,
            reason: opinion.reason,
            message: opinion.why,
            since: None,
            chain: Vec::new(),
            uid: None,
        }
    }

    /// Judges an app whose objects are in this cluster; `home` is the cluster of its declaring object.
    fn app(&self, app: &App, home: &Bench<'_>) -> Judgement {
        let subject = Subject::App(app.app.clone());
        if let Some(why) = silence(self.snapshot) {
            return self.said(subject, None, Opinion::unobserved(why));
        }
        if let Some(dark) = of_dark(app, app.freshness) {
            return self.said(subject, None, dark);
        }
        let dark_home = || of_dark(app, app.home_freshness);
        let opinion = match self.until {
            // A live target alone says that objects are not well; all else is the word of the home.
            Until::Current => of_health(app).or_else(dark_home).unwrap_or_else(|| of_sync(app)),
            Until::Failed if app.health == Status::Failed => Opinion::met(app.message.clone()),
            _ if let Some(dark) = dark_home() => dark,
            Until::Exists => Opinion::met("the app exists"),
            Until::Deleted => Opinion { with_cause: false, ..Opinion::waiting("the app exists") },
            Until::Revision(wanted) => match &app.sync.applied {
                Some(applied) if wanted.is(applied) => {
                    of_health(app).unwrap_or_else(|| Opinion::met(format!("{} is applied", shorten(applied))))
                }
                applied => {
                    let told = match applied {
                        Some(applied) => format!("{} is applied, not {wanted}", shorten(applied)),
                        None => format!("no revision is applied yet, {wanted} is wanted"),
                    };
                    let other = app
                        .sync
                        .desired
                        .as_ref()
                        .filter(|desired| !wanted.is(desired) && applied.as_ref() != Some(desired));
                    let told = match other {
                        Some(desired) => format!("{told}; the source has {}", shorten(desired)),
                        None => told,
                    };
                    let attempted = app.sync.attempted.as_ref().is_some_and(|attempted| wanted.is(attempted));
                    match app.sync.state {
                        SyncState::Suspended => {
                            Opinion::hopeless(format!("{told}, and the app is suspended"))
                        }
                        SyncState::Failed if attempted => {
                            Opinion::hopeless(format!("applying {wanted} failed: {}", app.delivery_message))
                        }
                        SyncState::Failed if !app.delivery_message.is_empty() => {
                            Opinion::waiting(format!("{told}: {}", app.delivery_message))
                        }
                        _ => Opinion::waiting(told),
                    }
                }
            },
            Until::Failed => match app.sync.state {
                SyncState::Failed => Opinion::met(&*app.delivery_message),
                _ => Opinion::waiting("the app has not failed so far"),
            },
            Until::Condition { .. } | Until::JsonPath(_) | Until::Cel(_) => match &app.declaring {
                Some(key) => {
                    let own = home.objects([key]).into_iter().next();
                    let Some(own) = own else {
                        return self.said(
                            subject,
                            None,
                            Opinion::unobserved("Taffrail has not read the app yet"),
                        );
                    };
                    return Judgement { subject, cluster: self.snapshot.name().to_owned(), uid: None, ..own };
                }
                None => Opinion::hopeless("no object declares this app, so it has no fields and conditions"),
            },
        };
        let mut judgement = self.said(subject, Some(app.health), opinion);
        if let Some(speaker) = app.speaker.as_ref().filter(|_| app.health != Status::Current) {
            judgement.chain.clone_from(&speaker.chain);
            judgement.since = speaker.since;
            if judgement.reason.is_empty()
                && judgement.verdict != WaitState::Met
                && judgement.message == app.message
            {
                judgement.reason = speaker.chain.last().map(|link| link.reason.clone()).unwrap_or_default();
            }
        }
        judgement
    }
}

fn named(word: &str, name: Option<&str>) -> String {
    name.map_or_else(|| word.to_owned(), |name| format!("{word}/{name}"))
}

/// Returns the state of an app if its health decides it; `None` if its objects are well and no health rules are unread,
/// so that its sync decides.
fn of_health(app: &App) -> Option<Opinion> {
    Some(match app.health {
        // Without the rules that may turn it red, a green status proves nothing.
        Status::Current => {
            let is_unread = |it: &&Problem| it.axis == Axis::Health && it.state == RULES_UNREAD;
            let problem = app.problems.iter().find(is_unread)?;
            Opinion::unobserved(problem.message.clone()).because(RULES_UNREAD)
        }
        Status::Failed => Opinion::hopeless(app.message.clone()),
        Status::Unknown if app.speaker.as_ref().is_none_or(|speaker| speaker.rule.is_empty()) => {
            Opinion::unobserved(app.message.clone())
        }
        _ => Opinion::waiting(app.message.clone()),
    })
}

/// Returns the state `Unobserved` of an app if its home or target cluster, whose freshness is `half`, is not live and a
/// problem of the app says so; else `None`.
fn of_dark(app: &App, half: Freshness) -> Option<Opinion> {
    if half.is_live() {
        return None;
    }
    let problem = app.problems.iter().find(|problem| problem.axis == Axis::Freshness)?;
    Some(Opinion::unobserved(problem.message.clone()).because(&problem.state))
}

/// Returns the state of an app whose objects are well, by its sync: `Hopeless` if the sync failed, or the app is
/// suspended before the desired revision; `Waiting` if it is OutOfSync or syncing; otherwise that of its worst problem
/// that is more than a notice, see [`of_problem`], or else `Met`.
fn of_sync(app: &App) -> Opinion {
    let wanted =
        app.sync.desired.as_deref().map(shorten).map(|it| format!("{it} is wanted")).unwrap_or_default();
    let applied =
        app.sync.applied.as_deref().map(shorten).map(|it| format!("{it} is applied")).unwrap_or_default();
    let revisions =
        [wanted, applied].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
    match app.sync.state {
        SyncState::Failed => {
            Opinion::hopeless(format!("the sync of the app failed: {}", app.delivery_message))
                .because("SyncFailed")
        }
        SyncState::OutOfSync => {
            // If the revision is right but objects differ, the problem names them.
            let told = app.problems.iter().find(|it| it.axis == Axis::Sync && !it.message.is_empty());
            let why = match told {
                Some(problem) if app.sync.desired == app.sync.applied => problem.message.as_str(),
                _ => &revisions,
            };
            Opinion::waiting(format!("the app is out of sync: {why}")).because("OutOfSync")
        }
        SyncState::Syncing => {
            Opinion::waiting(format!("the app is being synced: {revisions}")).because("Syncing")
        }
        // Its tool delivers what is wanted only after a user resumes it.
        SyncState::Suspended if flux::newer(&app.sync).is_some() => {
            Opinion::hopeless(format!("the app is suspended: {revisions}")).because(SUSPENDED)
        }
        SyncState::Synced | SyncState::Suspended | SyncState::Unknown => {
            of_problem(app).unwrap_or_else(|| Opinion::met(app.message.clone()))
        }
    }
}

/// Returns the state of an app whose worst problem is more than a notice: `Unobserved` for a problem of freshness,
/// `Waiting` for any other, such as a stopped controller; `None` if there is no such problem.
fn of_problem(app: &App) -> Option<Opinion> {
    let problem = app.pressing()?;
    let opinion = match problem.axis {
        // The home is not live: its declarations may have changed.
        Axis::Freshness => Opinion::unobserved(problem.message.clone()),
        Axis::Health | Axis::Sync | Axis::Source | Axis::Check => Opinion::waiting(problem.message.clone()),
    };
    Some(opinion.because(&problem.state))
}

/// Judges the apps that a query matches, in each cluster. Where a cluster has none, judges the query itself if an app
/// may be hidden there, or if its deletion is awaited; if that gives no judgement at all, returns one of the query in
/// the first cluster.
pub(super) fn apps(
    query: &AppQuery,
    list: &AppList,
    benches: &[Bench<'_>],
    is_settled: &[bool],
) -> Vec<Judgement> {
    let Some(first) = benches.first() else { return Vec::new() };
    let until = first.until;
    let mut judgements = Vec::new();
    let mut found = Vec::new();
    let mut trouble = None;
    match query.find(list) {
        Ok(apps) => found = apps,
        Err(FindError::NotFound { nearest, .. }) => {
            let hint =
                if nearest.is_empty() { String::new() } else { format!("; similar: {}", nearest.join(", ")) };
            trouble = Some(Opinion::waiting(format!("there is no such app yet{hint}")).because(NOT_FOUND));
        }
        Err(error @ FindError::Ambiguous { .. }) => {
            trouble = Some(Opinion::hopeless(error.to_string()).because("Ambiguous"))
        }
    }
    for (bench, is_settled) in benches.iter().zip(is_settled) {
        let name = bench.snapshot.name();
        // If the name includes a cluster, the other clusters do not matter.
        if query.cluster().is_some_and(|cluster| cluster != name) {
            continue;
        }
        let mut here = found.iter().filter(|app| app.app.target == name).peekable();
        let subject = || Subject::Named(format!("app/{query}"));
        if here.peek().is_none() {
            if let Some(why) = silence(bench.snapshot) {
                judgements.push(bench.said(subject(), None, Opinion::unobserved(why)));
            } else if !is_settled {
                judgements.push(bench.said(
                    subject(),
                    None,
                    Opinion::unobserved("Taffrail has not read the apps of the cluster yet"),
                ));
            } else if *until == Until::Deleted
                && found.is_empty()
                && !matches!(&trouble, Some(it) if it.verdict == WaitState::Hopeless)
            {
                // Without access to a declaring kind it is not known that the app is gone.
                let hidden =
                    bench.snapshot.errors().iter().find(|error| matches!(error.scope, Scope::Kind { .. }));
                let (status, opinion) = match hidden {
                    Some(error) => (None, Opinion::unobserved(&*error.message).because(&error.reason)),
                    None => {
                        let opinion = Opinion::met("the app does not exist").because(NOT_FOUND);
                        (Some(Status::NotFound), opinion)
                    }
                };
                judgements.push(bench.said(subject(), status, opinion));
            } else if let Some(trouble) = trouble.as_ref().filter(|it| it.reason == NOT_FOUND)
                && let Some(error) = hidden(bench.snapshot, query)
            {
                // Without access to a declaring kind it is not known that the app does not exist yet.
                let why = format!("{} in what could be read: {}", trouble.why, error.message);
                judgements.push(bench.said(subject(), None, Opinion::unobserved(why).because(&error.reason)));
            }
        }
        for app in here {
            let home = benches.iter().find(|bench| bench.snapshot.name() == app.app.home).unwrap_or(bench);
            let judgement = bench.app(app, home);
            // The objects of a label group may be part of an app that is hidden.
            let is_part = app.app.delivery == Delivery::Label && app.delivery_message.contains(NOT_SHOWN);
            let is_vouched = judgement.verdict != WaitState::Met || *until == Until::Exists;
            // A kind that could not be listed may hold another app of this name.
            let another = bench.snapshot.errors().iter().find(|error| query.may_be_hidden(error, None));
            let of_part = hidden(bench.snapshot, query).filter(|_| is_part);
            judgements.push(match another.or(of_part).filter(|_| !is_vouched) {
                Some(error) => {
                    let why = match is_part {
                        true => format!("{}, and may not be seen: {}", app.delivery_message, error.message),
                        false => format!("there may be another app of this name: {}", error.message),
                    };
                    let opinion = Opinion::unobserved(why).because(&error.reason);
                    bench.said(Subject::App(app.app.clone()), None, opinion)
                }
                None => judgement,
            });
        }
    }
    // An app that is nowhere may appear in any cluster.
    if let Some(opinion) = trouble
        && judgements.is_empty()
    {
        let status = (opinion.reason == NOT_FOUND).then_some(Status::NotFound);
        judgements.push(first.said(Subject::Named(format!("app/{query}")), status, opinion));
    }
    judgements
}

/// Returns the first error about a kind that may declare an app which the query matches; `None` if there is none.
fn hidden<'s>(snapshot: &'s Snapshot, query: &AppQuery) -> Option<&'s ScopeError> {
    snapshot.errors().iter().find(|error| match &error.scope {
        Scope::Kind { kind, .. } => may_declare(kind, query.delivery()),
        _ => false,
    })
}

/// Returns the state of an object, given as a JSON tree, when waiting for a field: `Met` if the field has the value or
/// exists, `Unobserved` if it is missing in an object of which only metadata was read, else `Waiting`.
fn of_field(path: &WantedField, tree: &serde_json::Value, projection: Projection) -> Opinion {
    let name = path.path();
    let wanted = path.wanted().map(|wanted| format!(", not {wanted}")).unwrap_or_default();
    match path.look(tree) {
        FieldMatch::Met => Opinion::met(match path.wanted() {
            Some(wanted) => format!("{name} is {wanted}"),
            None => format!("{name} exists"),
        }),
        FieldMatch::Missing if projection != Projection::Full => Opinion::unobserved(LEFT_OUT),
        FieldMatch::Missing => Opinion::waiting(format!("{name} does not exist yet")),
        FieldMatch::Other(found) => Opinion::waiting(format!("{name} is {found}{wanted}")),
        FieldMatch::Unusable(why) => Opinion::waiting(format!("{name} cannot be compared: {why}")),
    }
}

/// Returns the state of an object, given as a JSON tree, when waiting for an expression: `Met` if it is true, `Waiting`
/// if it is not or a field is missing, `Unobserved` if it needs parts that were not read, `Hopeless` if it cannot be
/// evaluated.
fn of_expression(question: &Question, tree: &serde_json::Value, projection: Projection) -> Opinion {
    // Parts that were not read must not make `!has(object.data.key)` true.
    if projection != Projection::Full && !question.asks_for_metadata_only() {
        return Opinion::unobserved(LEFT_OUT);
    }
    let text = question.text();
    match question.ask(tree) {
        PredicateAnswer::True => Opinion::met(format!("{text} is true")),
        PredicateAnswer::False => Opinion::waiting(format!("{text} is not true yet")),
        PredicateAnswer::Missing(what) => Opinion::waiting(format!("{text} is not true yet: {what}")),
        PredicateAnswer::Fault(why) => {
            let opinion = Opinion { with_cause: false, ..Opinion::hopeless(format!("{text}: {why}")) };
            opinion.because(EXPRESSION_FAULT)
        }
    }
}

/// Returns the state of an object when waiting for the condition `name` to have the status `value`, both in any case;
/// `Waiting` while the condition is of an older generation.
fn of_condition(object: &Object<'_>, name: &str, value: &str) -> Opinion {
    let all = object.at(&["status", "conditions"]).and_then(Value::items).into_iter().flatten();
    let text = |condition: Value<'_>, key: &str| {
        condition.get(key).and_then(Value::as_str).map(|text| text.into_owned()).unwrap_or_default()
    };
    let found = all.into_iter().find(|condition| text(*condition, "type").eq_ignore_ascii_case(name));
    let Some(condition) = found else {
        return Opinion::waiting(format!("the object has no condition {name} yet"));
    };
    let generation = object.at(&["metadata", "generation"]).and_then(Value::as_i64);
    let own = condition.get("observedGeneration").and_then(Value::as_i64);
    let observed = own.or_else(|| object.at(&["status", "observedGeneration"]).and_then(Value::as_i64));
    if let (Some(generation), Some(observed)) = (generation, observed)
        && observed < generation
    {
        let why = format!("the condition {name} is of generation {observed}, and {generation} is the newest");
        return Opinion::waiting(why).because("LatestGenerationNotObserved");
    }
    let (status, reason, message) =
        (text(condition, "status"), text(condition, "reason"), text(condition, "message"));
    if status.eq_ignore_ascii_case(value) {
        return Opinion::met(format!("the condition {name} is {status}")).because(&reason);
    }
    let told = [&*reason, &*message].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(": ");
    let told = if told.is_empty() { told } else { format!(" ({told})") };
    Opinion::waiting(format!("the condition {name} is {status}, not {value}{told}")).because(&reason)
}

/// Returns true if a condition of this name reports a failure when it is `True`, such as `Stalled`.
fn tells_of_failure(name: &str) -> bool {
    const BAD: [&str; 6] = ["fail", "stalled", "error", "degraded", "pressure", "disruption"];

    let name = name.to_ascii_lowercase();
    BAD.iter().any(|bad| name.contains(bad))
}

/// The end of a Job or Pod, after which its status does not change any more.
struct FinishedObject {
    well: bool,
    how: String,
}

fn finished(object: &Object<'_>) -> Option<FinishedObject> {
    let is_true = |name: &str| object.condition_is(name, "True");
    match (object.group(), object.kind()) {
        ("batch", "Job") if is_true("Complete") => {
            Some(FinishedObject { well: true, how: "the Job has completed".to_owned() })
        }
        ("batch", "Job") if is_true("Failed") => {
            Some(FinishedObject { well: false, how: "the Job has failed".to_owned() })
        }
        ("", "Pod") => match &*object.text(&["status", "phase"]) {
            "Succeeded" => Some(FinishedObject { well: true, how: "the Pod has completed".to_owned() }),
            "Failed" => {
                Some(FinishedObject { well: false, how: "the Pod has ended without success".to_owned() })
            }
            _ => None,
        },
        _ => None,
    }
}

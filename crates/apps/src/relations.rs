//! The relations between the rows of a list: which app delivers the declaring object of which, and which app upstream is
//! the cause that one downstream waits.
//!
//! An index holds for each row only hashes, so that after a change of some rows only those are looked at that depend on
//! them: the rows that they create, and the rows that wait for them, directly or by way of others.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;

use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::assess::CauseStep;

use crate::app::App;
use crate::identity::{AppName, AppRef};
use crate::problem::{Axis, Problem};
use crate::reads::declaring::is_declaring;
use crate::upstream::{RelationType, Upstream};
use crate::words::Words;

/// The reason of Flux for an app that waits for another one.
const WAITING: &str = "DependencyNotReady";

/// The maximum number of apps that are followed from one that waits to the one that is the cause; beyond that, the last
/// one counts as the cause.
const MAX_HOPS: usize = 32;

/// The number of a row, which stays the same while the row exists.
type Number = u32;

/// The relations of the rows of a list, by the numbers of the rows.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    hasher: RandomState,
    rows: HashMap<Number, RowFacts>,
    /// The rows that each object declares, by the hash of its cluster and key.
    declared: BTreeSet<(u64, Number)>,
    /// The rows that deliver each object that declares an app, in the same way.
    creators: BTreeSet<(u64, Number)>,
    /// The rows that wait for the app that an object declares, in the same way.
    waiting: BTreeSet<(u64, Number)>,
}

/// The facts about one row on which others depend.
#[derive(Debug, PartialEq, Eq)]
struct RowFacts {
    /// The hash of the row's name.
    name: u64,
    /// The declaring object.
    declaring: Option<u64>,
    /// The objects among the row's own that declare apps; sorted.
    creates: Box<[u64]>,
    /// The object for whose app the row waits.
    awaits: Option<u64>,
    /// The message of the row itself, if it was replaced by one that names the app upstream.
    message: Option<Words>,
}

/// The end of the path from an app that waits along those for which it waits.
enum Cause {
    /// The app with this number, after so many steps.
    Row(Number, usize),
    /// The path comes back to an app on it.
    Circle,
}

impl Relations {
    /// Finds the relations of all rows of a list, whose numbers are their indexes.
    pub(crate) fn find_all(&mut self, apps: &mut [App]) {
        let place = |number: Number| usize::try_from(number).ok();
        let numbers: Vec<Number> = (0..).take(apps.len()).collect();
        self.update(apps, place, &numbers, &HashSet::new());
    }

    /// Finds the relations again after the rows `judged` were judged, and those of `gone` were removed. Returns the
    /// numbers of the other rows that differ now. `place` returns the index in `apps` of the row with a number.
    pub(crate) fn update(
        &mut self,
        apps: &mut [App],
        place: impl Fn(Number) -> Option<usize>,
        judged: &[Number],
        gone: &HashSet<Number>,
    ) -> BTreeSet<Number> {
        let mut touched = Touched::default();
        for number in gone {
            touched.add(self.remove(*number).as_ref(), None);
        }
        for number in judged {
            let new = place(*number).and_then(|at| apps.get(at)).map(|app| self.facts(app));
            let old = self.remove(*number);
            touched.add(old.as_ref(), new.as_ref());
            if let Some(new) = new {
                self.insert(*number, new);
            }
        }
        let judged: HashSet<Number> = judged.iter().copied().collect();
        let created = touched.created.iter().flat_map(|object| of(&self.declared, *object));
        let created: BTreeSet<Number> = created.chain(judged.iter().copied()).collect();
        let mut waiting = self.downstream(touched.declaring);
        waiting.extend(&judged);

        let mut differing = BTreeSet::new();
        for number in created {
            let Some(at) = place(number) else { continue };
            let creator = self.creator(number, apps, &place);
            if let Some(app) = apps.get_mut(at)
                && set_creator(app, creator)
                && !judged.contains(&number)
            {
                differing.insert(number);
            }
        }
        // All rows have their own messages before one of them is named as the cause of another.
        let mut before: Vec<(Number, Words)> = Vec::new();
        for number in waiting {
            let Some(app) = place(number).and_then(|at| apps.get_mut(at)) else { continue };
            before.push((number, app.message.clone()));
            if let Some(own) = self.rows.get_mut(&number).and_then(|facts| facts.message.take()) {
                set_message(app, own, None);
            }
        }
        let named: Vec<_> = before
            .iter()
            .filter_map(|(number, _)| Some((*number, self.named(*number, apps, &place)?)))
            .collect();
        for (number, (message, problem, app)) in named {
            let Some(own) = place(number).and_then(|at| apps.get_mut(at)) else { continue };
            if let Some(facts) = self.rows.get_mut(&number) {
                facts.message = Some(own.message.clone());
            }
            set_message(own, message.into(), problem.map(|problem| (problem, app)));
        }
        for (number, message) in before {
            let now = place(number).and_then(|at| apps.get(at));
            if now.is_some_and(|now| now.message != message) && !judged.contains(&number) {
                differing.insert(number);
            }
        }
        differing
    }

    fn hash(&self, cluster: &str, key: &ObjectKey) -> u64 {
        self.hasher.hash_one((cluster, key))
    }

    fn facts(&self, app: &App) -> RowFacts {
        let AppRef { home, target, .. } = &app.app;
        let declares = app.resources.iter().filter(|own| {
            app.in_reach
                && !own.unconfirmed
                && own.status != Status::NotFound
                && is_declaring(&own.key.group, &own.key.kind)
        });
        let mut creates: Box<[u64]> = declares.map(|own| self.hash(target, &own.key)).collect();
        creates.sort_unstable();
        RowFacts {
            name: self.hasher.hash_one(&app.app),
            declaring: app.declaring.as_ref().map(|key| self.hash(home, key)),
            creates,
            awaits: awaited(app).map(|(cluster, [_, to])| self.hash(cluster, &to.object)),
            message: None,
        }
    }

    fn insert(&mut self, number: Number, facts: RowFacts) {
        self.declared.extend(facts.declaring.map(|object| (object, number)));
        self.creators.extend(facts.creates.iter().map(|object| (*object, number)));
        self.waiting.extend(facts.awaits.map(|object| (object, number)));
        self.rows.insert(number, facts);
    }

    fn remove(&mut self, number: Number) -> Option<RowFacts> {
        let facts = self.rows.remove(&number)?;
        if let Some(object) = facts.declaring {
            self.declared.remove(&(object, number));
        }
        for object in &facts.creates {
            self.creators.remove(&(*object, number));
        }
        if let Some(object) = facts.awaits {
            self.waiting.remove(&(object, number));
        }
        Some(facts)
    }

    /// Returns the rows that wait for an app that one of `objects` declares, directly or by way of at most [`MAX_HOPS`]
    /// others.
    fn downstream(&self, objects: HashSet<u64>) -> BTreeSet<Number> {
        let mut found = BTreeSet::new();
        let mut seen = objects.clone();
        let mut open: Vec<u64> = objects.into_iter().collect();
        for _ in 0..=MAX_HOPS {
            let mut next = Vec::new();
            for number in open.iter().flat_map(|object| of(&self.waiting, *object)) {
                found.insert(number);
                let declaring = self.rows.get(&number).and_then(|facts| facts.declaring);
                next.extend(declaring.filter(|object| seen.insert(*object)));
            }
            open = next;
        }
        found
    }

    /// Returns the app that delivers the declaring object of a row; of several the first by name, and `None` if there is
    /// none but the row itself.
    fn creator(
        &self,
        number: Number,
        apps: &[App],
        place: &impl Fn(Number) -> Option<usize>,
    ) -> Option<AppRef> {
        let object = self.rows.get(&number)?.declaring?;
        let others = of(&self.creators, object).filter(|creator| *creator != number);
        let creators = others.filter_map(|creator| Some(&apps.get(place(creator)?)?.app));
        creators.min().cloned()
    }

    /// Returns the row that is the cause why a row waits; `None` if it waits for none, or no row is known of the app for
    /// which it waits.
    fn cause(&self, number: Number) -> Option<Cause> {
        let facts = self.rows.get(&number)?;
        let mut awaited = facts.awaits?;
        let mut seen: HashSet<u64> = facts.declaring.into_iter().collect();
        for hops in 1.. {
            if !seen.insert(awaited) {
                return Some(Cause::Circle);
            }
            let next = of(&self.declared, awaited).next()?;
            match self.rows.get(&next)?.awaits {
                // An app without a row says nothing.
                Some(object) if hops < MAX_HOPS && of(&self.declared, object).next().is_some() => {
                    awaited = object;
                }
                _ => return Some(Cause::Row(next, hops)),
            }
        }
        None
    }

    /// Returns the message of a row that waits for an app upstream, which names that app and the cause; and the problem
    /// of the app that is the cause, with its name. `None` if the row waits for none, or the cause is not known.
    fn named(
        &self,
        number: Number,
        apps: &[App],
        place: &impl Fn(Number) -> Option<usize>,
    ) -> Option<(String, Option<Problem>, AppName)> {
        let app = apps.get(place(number)?)?;
        let (_, [from, to]) = awaited(app)?;
        let who = if app.declaring.as_ref() == Some(&from.object) {
            "waits for".to_owned()
        } else {
            format!("{} waits for", title(&from.object))
        };
        let first = title(&to.object);
        // Flux may tell more, such as a revision.
        let tool = match &*from.message {
            "" => String::new(),
            own => format!(" (Flux: {own})"),
        };
        let (cause, hops) = match self.cause(number)? {
            Cause::Circle => {
                let message = format!("{who} {first}, whose dependencies form a circle{tool}");
                return Some((message, None, AppName::from(&app.app)));
            }
            Cause::Row(cause, hops) => (cause, hops),
        };
        let own = self.rows.get(&cause)?.message.as_ref();
        let cause = apps.get(place(cause)?)?;
        if cause.health == Status::Current {
            return None;
        }
        let between = match hops {
            1 => String::new(),
            2 => format!(", which waits for {}", title(cause.declaring.as_ref()?)),
            _ => format!(
                ", which waits, by way of {} more, for {}",
                hops - 2,
                title(cause.declaring.as_ref()?)
            ),
        };
        let said = own.unwrap_or(&cause.message);
        let colon = if said.is_empty() { "" } else { ": " };
        let message = format!("{who} {first}{between}, which is {}{colon}{said}{tool}", cause.health);
        let problem = cause.problems.iter().find(|problem| problem.axis != Axis::Freshness).cloned();
        let problem = problem.map(|problem| match own {
            Some(own) if problem.upstream.is_some() => {
                Problem { message: own.clone(), upstream: None, ..problem }
            }
            _ => problem,
        });
        Some((message, problem, AppName::from(&cause.app)))
    }
}

/// The objects whose rows changed.
#[derive(Default)]
struct Touched {
    /// The objects that are delivered by other rows than before.
    created: HashSet<u64>,
    /// The declaring objects of rows that were judged or are gone.
    declaring: HashSet<u64>,
}

impl Touched {
    fn add(&mut self, old: Option<&RowFacts>, new: Option<&RowFacts>) {
        let is_same = matches!((old, new), (Some(old), Some(new))
            if old.name == new.name && old.creates == new.creates);
        for facts in old.into_iter().chain(new) {
            self.declaring.extend(facts.declaring);
            if !is_same {
                self.created.extend(facts.creates.iter());
            }
        }
    }
}

/// Iterates over the rows that a set has for an object.
fn of(rows: &BTreeSet<(u64, Number)>, object: u64) -> impl Iterator<Item = Number> {
    rows.range((object, Number::MIN)..=(object, Number::MAX)).map(|(_, number)| *number)
}

/// Returns the first step in the cause chain of an app from an object of Flux to one for which it waits, and the name of
/// their cluster; `None` if the app does not wait for another one.
fn awaited(app: &App) -> Option<(&str, [&CauseStep; 2])> {
    let speaker = app.speaker.as_ref()?;
    let is_declaring = app.declaring.as_ref() == Some(&*speaker.key);
    let cluster = if is_declaring { &app.app.home } else { &app.app.target };
    let steps = speaker.chain.windows(2).find_map(|steps| {
        let [from, to] = steps else { return None };
        let is_alike = from.object.kind == to.object.kind && from.object.group == to.object.group;
        (is_alike && from.reason == WAITING).then_some([&**from, &**to])
    });
    Some((cluster, steps?))
}

/// Returns kind and name of an object for sentences.
fn title(key: &ObjectKey) -> String {
    format!("{} {}", key.kind, key.path())
}

/// Sets the app that delivers the declaring object of `app`; returns true if it was another one before.
fn set_creator(app: &mut App, creator: Option<AppRef>) -> bool {
    let upstreams = &mut app.upstreams.apps;
    let is_it = |upstream: &Upstream| upstream.relation == RelationType::CreatedBy;
    let creator = creator.map(|creator| Upstream {
        relation: RelationType::CreatedBy,
        app: AppName::from(&creator),
        home: creator.home,
        is_missing: false,
    });
    if upstreams.iter().find(|upstream| is_it(upstream)) == creator.as_ref() {
        return false;
    }
    upstreams.retain(|upstream| !is_it(upstream));
    let at = upstreams.partition_point(|upstream| upstream.relation < RelationType::CreatedBy);
    upstreams.splice(at..at, creator);
    true
}

/// Sets the message of an app that is not well, and of its problem, with the problem of the app that is the cause.
fn set_message(app: &mut App, message: Words, cause: Option<(Problem, AppName)>) {
    let is_it = |problem: &&mut Problem| problem.axis == Axis::Health && !problem.is_beside_health();
    if let Some(problem) = app.problems.iter_mut().find(is_it) {
        let bare = Problem { upstream: None, ..problem.clone() };
        let said = bare.says(message);
        *problem = match cause {
            Some((cause, app)) => said.caused_by(cause.of_upstream(app)),
            None => said,
        };
        let message = problem.message.clone();
        app.speaker.iter_mut().for_each(|speaker| speaker.message = message.clone());
        app.message = message;
    }
}

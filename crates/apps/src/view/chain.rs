//! The way from an object to its cause: told in full in few places of an answer, however many lead there.

use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use taffrail_object::ObjectKey;
use taffrail_status::assess::Link;

use super::{Explanation, WaitChange, time};
use crate::words::Place;

/// An object on the way to the cause, as it is known: rows of one cause share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LinkRow(pub(super) Arc<Link>);

impl Deref for LinkRow {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.0
    }
}

impl Serialize for LinkRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Fields::of(self).serialize(serializer)
    }
}

/// The fields of a link.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'l> {
    /// Which object.
    object: &'l ObjectKey,
    /// How it is; `Current` for one that is well, but in the way of another.
    status: &'static str,
    /// One word in CamelCase; may be empty.
    reason: &'l str,
    /// Its own words.
    message: &'l str,
    /// Since when it is not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "str::is_empty")]
    rule: &'l str,
    /// What else is known: containers, events, missing objects.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    facts: &'l [String],
}

impl<'l> Fields<'l> {
    fn of(link: &'l Link) -> Fields<'l> {
        let Link { object, status, reason, message, since, rule, facts } = link;
        let (status, since) = (status.as_str(), since.map(time));
        Fields { object, status, reason, message, since, rule, facts }
    }
}

/// In so many places of an answer a link is told in full: more rarely share a cause, and who reads the last of a thousand has
/// seen it.
const MOST_TOLD: usize = 10;

/// How much of its own words is told of a link in each further place.
const SHORT: usize = 200;

/// How often each link was told so far, for apps of each namespace: who lists objects of others in one of them takes no words from
/// apps of those.
#[derive(Default)]
struct Told(HashMap<(Place<Link>, Rc<str>), Times>);

/// How often a link was told.
struct Times {
    count: usize,
    /// What told it first.
    first: Rc<str>,
}

impl Told {
    /// Tells a chain of what is called `whose`. Of what was told often enough, only where it begins and where it ends are told
    /// once more, in short.
    fn tell(&mut self, chain: &mut Vec<LinkRow>, namespace: &str, whose: &str) {
        let namespace: Rc<str> = namespace.into();
        let mut left_out: Option<Rc<str>> = None;
        let mut more = 0;
        let mut kept = Vec::with_capacity(chain.len());
        let last = chain.len().saturating_sub(1);
        for (at, link) in chain.drain(..).enumerate() {
            let place = (Place(link.0.clone()), namespace.clone());
            let told = self.0.entry(place).or_insert_with(|| Times { count: 0, first: whose.into() });
            told.count += 1;
            if told.count <= MOST_TOLD {
                kept.push(link);
                continue;
            }
            left_out.get_or_insert_with(|| told.first.clone());
            if at == 0 || at == last {
                kept.push(short(&link));
            } else {
                more += 1;
            }
        }
        if let Some((first, cause)) = left_out.zip(kept.last_mut()) {
            let told = match more {
                0 => format!("more of it is told of {first}"),
                more => format!("more of it, and of {more} objects on the way to it, is told of {first}"),
            };
            Arc::make_mut(&mut cause.0).facts.push(told);
        }
        *chain = kept;
    }
}

fn short(link: &Link) -> LinkRow {
    let message = match link.message.get(..link.message.floor_char_boundary(SHORT)) {
        Some(begin) if begin.len() < link.message.len() => format!("{begin}…"),
        _ => link.message.clone(),
    };
    let Link { object, status, reason, since, rule, .. } = link;
    let (object, reason, rule) = (object.clone(), reason.clone(), rule.clone());
    LinkRow(Arc::new(Link {
        object,
        status: *status,
        reason,
        message,
        since: *since,
        rule,
        facts: Vec::new(),
    }))
}

/// Lets explanations of one answer tell what they share in full in few of them: of a cause of thousands of apps the answer
/// would be too long for anything.
pub fn told_in_few(explanations: &mut [Explanation]) {
    let mut told = Told::default();
    for explanation in explanations {
        let whose = match (&explanation.app, &explanation.object) {
            (Some(app), _) if app.namespace.is_empty() => format!("{} {}", app.delivery, app.name),
            (Some(app), _) => format!("{} {}/{}", app.delivery, app.namespace, app.name),
            (None, Some(object)) => format!("{} {}", object.kind, object.name),
            (None, None) => "another".to_owned(),
        };
        let namespace = match (&explanation.app, &explanation.object) {
            (Some(app), _) => &*app.namespace,
            (None, Some(object)) => &*object.namespace,
            (None, None) => "",
        };
        told.tell(&mut explanation.chain, namespace, &whose);
    }
}

/// The same of what is waited for.
pub(super) fn awaited_in_few(items: &mut [WaitChange]) {
    let mut told = Told::default();
    for item in items {
        let app = item.app.as_ref().map(|app| &*app.namespace);
        let namespace = app.or(item.object.as_ref().map(|object| &*object.namespace)).unwrap_or_default();
        told.tell(&mut item.chain, namespace, &item.target);
    }
}

//! Shortens cause chains that many rows of an answer share: only some of these rows show them in full.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use taffrail_apps::ByAddress;
use taffrail_status::assess::CauseStep;

use crate::{Explanation, WaitChange};

/// The maximum number of rows about apps of one namespace in which a step of a cause chain is shown in full. Further
/// rows show it with a short message if it is the first or last step of their chain, else leave it out.
///
/// Causes are rarely shared by more, and in a thousand rows a reader has seen it by then.
const MAX_FULL_LINKS: usize = 10;

/// The length, in bytes, to which the message of a cause step is cut in rows that do not show it in full.
const MAX_SHORT_MESSAGE: usize = 200;

/// The number of rows so far that contain each cause step, by the address of the step and the namespace of the app.
///
/// The count is per namespace so that an author who lists the objects of others does not shorten the chains of their
/// apps.
#[derive(Default)]
struct ToldSteps(HashMap<(ByAddress<CauseStep>, Rc<str>), StepUses>);

/// The number of rows that contain a cause step, and the first of them.
struct StepUses {
    count: usize,
    /// The name of the first row with the step.
    first: Rc<str>,
}

impl ToldSteps {
    /// Shortens those steps of the cause chain of a row that [`MAX_FULL_LINKS`] earlier rows about `namespace` contain:
    /// the first and the last step of the chain get a short message and no facts, others are left out. The last step
    /// that stays then gets a fact that names the first row with the first of these steps. `whose` names this row.
    fn tell(&mut self, chain: &mut Vec<Arc<CauseStep>>, namespace: &str, whose: &str) {
        let namespace: Rc<str> = namespace.into();
        let mut left_out: Option<Rc<str>> = None;
        let mut more = 0;
        let mut kept = Vec::with_capacity(chain.len());
        let last = chain.len().saturating_sub(1);
        for (at, link) in chain.drain(..).enumerate() {
            let place = (ByAddress(link.clone()), namespace.clone());
            let told = self.0.entry(place).or_insert_with(|| StepUses { count: 0, first: whose.into() });
            told.count += 1;
            if told.count <= MAX_FULL_LINKS {
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
                0 => format!("its full text is shown at {first}"),
                more => format!("its full text, and {more} objects on the way to it, are shown at {first}"),
            };
            Arc::make_mut(cause).facts.push(told);
        }
        *chain = kept;
    }
}

fn short(link: &CauseStep) -> Arc<CauseStep> {
    let message = match link.message.get(..link.message.floor_char_boundary(MAX_SHORT_MESSAGE)) {
        Some(begin) if begin.len() < link.message.len() => format!("{begin}…"),
        _ => link.message.clone(),
    };
    let CauseStep { object, status, reason, since, rule, .. } = link;
    let (object, reason, rule) = (object.clone(), reason.clone(), rule.clone());
    Arc::new(CauseStep { object, status: *status, reason, message, since: *since, rule, facts: Vec::new() })
}

/// Shortens the cause chains of explanations: a step that ten earlier explanations of the same namespace show gets a
/// short message if it is the first or last of its chain, and is left out otherwise. So the answer stays short even for
/// a cause of thousands of apps.
pub fn told_in_few(explanations: &mut [Explanation]) {
    let mut told = ToldSteps::default();
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

/// Shortens shared cause chains in the rows of `wait`, like [`told_in_few`].
pub(super) fn awaited_in_few(items: &mut [WaitChange]) {
    let mut told = ToldSteps::default();
    for item in items {
        let app = item.app.as_ref().map(|app| &*app.namespace);
        let namespace = app.or(item.object.as_ref().map(|object| &*object.namespace)).unwrap_or_default();
        told.tell(&mut item.chain, namespace, &item.target);
    }
}

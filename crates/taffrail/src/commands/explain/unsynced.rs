//! The objects that are not synced, and the fields in which they differ.

use std::collections::HashSet;
use std::io::{self, Write};

use anstyle::Style;
use taffrail_apps::command::quoted;
use taffrail_apps::{App, Delivery, ObjectSync, ObjectSyncState, Problem};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use super::{MAX_NAMED, object};
use crate::output::{indented, printable};
use crate::program;
use crate::say;

/// Prints the objects that the delivery tool reports as not synced, with the command that shows all differences.
pub(super) fn print(out: &mut impl Write, app: &App, unsynced: &[ObjectSync]) -> io::Result<()> {
    let bold = Style::new().bold();
    // The problem already says this.
    let is_said = |own: &&ObjectSync| {
        let ends = |problem: &Problem| !own.message.is_empty() && problem.message.ends_with(&own.message);
        app.problems.iter().any(|problem| problem.object.as_ref() == Some(&own.key) && ends(problem))
    };
    let unsynced: Vec<_> = unsynced.iter().filter(|own| !is_said(own)).collect();
    if unsynced.is_empty() {
        return Ok(());
    }
    say!(out)?;
    say!(out, "{}Not synced{:#}", bold, bold)?;
    for own in unsynced.iter().take(MAX_NAMED) {
        let colon = if own.message.is_empty() { "" } else { ": " };
        let name = object(&own.key);
        indented(out, "  ", &format!("{name}  {}{colon}{}", own.state.as_str(), own.message))?;
        own.differs.iter().try_for_each(|fields| indented(out, "    - ", &fields.words()))?;
    }
    let more = unsynced.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        let command = program::typed(&format!("taffrail app {}", quoted(&app.app.name)));
        say!(out, "  … and {} more: {}", more, printable(&command))?;
    }
    match differences(app, &unsynced) {
        Some(told) => indented(out, "  ", &told),
        None => Ok(()),
    }
}

/// Returns the remark about differences that the cluster does not record, or that Taffrail did not look for, with Argo
/// CD's command that shows them; `None` if no object differs.
pub(crate) fn differences(app: &App, unsynced: &[&ObjectSync]) -> Option<String> {
    if app.app.delivery != Delivery::ArgoApplication {
        return None;
    }
    // An app may list thousands of objects, and as many of them may not be synced.
    let there = app.resources.iter().filter(|resource| resource.status != Status::NotFound);
    let there: HashSet<&ObjectKey> = there.map(|resource| &resource.key).collect();
    let is_meant = |own: &&&ObjectSync| own.state == ObjectSyncState::OutOfSync && there.contains(&own.key);
    let differing: Vec<_> = unsynced.iter().filter(is_meant).collect();
    let told = differing.iter().filter(|own| !own.differs.is_empty()).count();
    let what = match differing.iter().any(|own| own.incomplete) {
        _ if differing.is_empty() => return None,
        true => "Taffrail did not compare all fields, because there are too many",
        false if told == 0 => "Which fields differ is not recorded in the cluster",
        false => "What else differs is not recorded in the cluster",
    };
    let name = quoted(&format!("{}/{}", app.app.namespace, app.app.name));
    Some(format!("{what}; Argo CD shows it: argocd app diff {name}"))
}

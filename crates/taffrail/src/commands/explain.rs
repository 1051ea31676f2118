//! `taffrail explain`: the cause chain of an app or object, and commands that show more.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use taffrail_api::question::{
    ExplainAnswer, ExplainView, ExplainedSubject, FleetFacts, OtherObject, SubjectName,
};
use taffrail_api::{AppRow, Explanation, Flagged, InClusters, OwningApp, text};
use taffrail_apps::command::quoted;
use taffrail_apps::{Axis, Delivery, FreshnessState, NOT_SHOWN, Problem, UNOBSERVED};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::assess::{CauseStep, Change};
use unicode_width::UnicodeWidthStr;

use super::get::{self, Unread, complaints};
use super::rows::NamedRow as _;
use super::{changes, named};
use crate::cli::{ExplainArguments, ListOutput, TableOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::{app_style, fitting, indented, printable, screen, style};
use crate::source::{self, Source};
use crate::{phrase, program, say};

mod explained;
pub(in crate::commands) mod logs;
mod unsynced;

pub(crate) use explained::Explained;

pub(crate) fn run(
    arguments: &ExplainArguments,
    printed: &mut Option<Explained>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    if arguments.logs && !arguments.view.source.from.is_empty() {
        return Err(super::logs::no_logs_in_dumps());
    }
    let names = arguments.what.iter().map(|text| name(text)).collect::<Result<Vec<_>, _>>()?;
    // A single name yields a single document, unless it matches several objects.
    let is_single = names.len() == 1 || !arguments.declared.is_empty();
    let view = ExplainView {
        names,
        namespace: arguments.namespace.clone(),
        clusters: arguments.cluster.clone(),
        per_cluster: arguments.per_cluster,
        contexts: arguments.hub.names_contexts(&arguments.view.source),
        logs: arguments.logs && arguments.hub.hub.is_some(),
        declared: arguments.declared.clone(),
        app_labels: arguments.grouping.labels(),
    };
    let answer = source::ask("explain", &view, (&arguments.view, &arguments.hub), source, console)?;
    let mut answer = answer;
    if arguments.logs && !view.logs {
        logs::add(&mut answer, &arguments.view.source)?;
    }
    let ExplainAnswer { fleet, items, errors, missing, undoubted, has_apps, is_well, log_errors, lacks_logs } =
        answer;
    let mut exit = logs::tell(&log_errors, lacks_logs, console);
    let answer = match arguments.output {
        TableOutput::Table => Explained::Text(items),
        TableOutput::Json | TableOutput::Yaml => {
            let explanations = items.into_iter().map(|item| item.explanation).collect();
            Explained::document(explanations, &errors, is_single)
        }
    };
    let Some(answer) = changes::news(printed, answer) else { return Ok(Exit::Yes) };
    let form = if arguments.output == TableOutput::Yaml { ListOutput::Yaml } else { ListOutput::Json };
    written(match answer {
        Explained::Text(told) if told.is_empty() && !missing.is_empty() => Ok(()),
        Explained::Text(told) if told.is_empty() => {
            nothing(has_apps, &Unread::of(&errors, &fleet, &arguments.cluster), console);
            Ok(())
        }
        Explained::Text(told) => people(told, &fleet, arguments.what.is_empty(), console),
        Explained::One(only) => get::document(form, only, console),
        Explained::Several(all) => get::document(form, all, console),
    })?;

    let in_answer = arguments.output != TableOutput::Table;
    for complaint in complaints(&errors, &fleet.unobserved) {
        if !in_answer {
            complaint.print(console);
        }
        exit = exit.max(complaint.exit);
    }
    let problems = fleet.problems.iter().map(CommandError::from);
    let mut told = if in_answer { Vec::new() } else { errors };
    let missing = missing.iter().map(|error| named::refused_after(&mut told, "explain", error));
    for complaint in problems.chain(missing).chain(unchecked(undoubted)) {
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    if arguments.exit_status && !is_well {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

/// Parses the name of an app or object to explain; the error about another text has a hint with the possible forms.
fn name(text: &str) -> Result<SubjectName, CommandError> {
    text.parse().map_err(|error| {
        CommandError::usage(error)
            .hint("name an app as NAME or NAMESPACE/NAME, an object as KIND/NAME or [CLUSTER/]group/Kind/namespace/name")
    })
}

/// Returns the warning that `apps` further apps of a name were not checked for signs that their green status is wrong;
/// `None` if that is 0.
fn unchecked(apps: usize) -> Option<CommandError> {
    (apps > 0).then(|| {
        let what = format!(
            "{apps} more apps of one name were not checked for signs that their green status is wrong"
        );
        CommandError::unreadable(what)
            .hint("name one of these apps in full: DELIVERY/NAMESPACE/NAME")
            .harmless()
    })
}

/// Prints to stderr why there is nothing to explain: no apps, or no app with a problem, as far as could be read.
fn nothing(has_apps: bool, unread: &Unread<'_>, console: &Console) {
    // Without apps there is no ready app to report.
    let found = match has_apps {
        false => "No apps found",
        true if unread.is_empty() => {
            return console.tell(phrase!("Every app is ready, and no sync or source has a problem.\n"));
        }
        true => "No problem found",
    };
    console.tell(phrase!("{}\n", printable(&unread.ends(found))));
}

/// Prints the explanations. If `joins`, apps that one cause explains in full share one explanation, and a cause that
/// was explained before for another app in the same clusters is only named.
fn people(told: &[ExplainedSubject], fleet: &FleetFacts, joins: bool, console: &Console) -> io::Result<()> {
    let mut out = console.people();
    let groups = match joins {
        true => by_cause(told),
        false => told.iter().map(|only| (only, Vec::new())).collect(),
    };
    // The apps whose explanation is printed, by their cause.
    let mut printed: HashMap<(&InClusters, SharedCause<'_>), &ExplainedSubject> = HashMap::new();
    for (place, (first, alike)) in groups.iter().enumerate() {
        if place > 0 {
            say!(out)?;
        }
        let cause = SharedCause::of(&first.explanation).filter(|_| joins && lost(first).is_none());
        let earlier = match cause.map(|cause| printed.entry((&first.explanation.place, cause))) {
            Some(Entry::Occupied(earlier)) => Some(*earlier.get()),
            Some(Entry::Vacant(free)) => {
                free.insert(first);
                None
            }
            None => None,
        };
        explain(&mut out, first, alike, earlier, (fleet.clusters > 1, fleet.now))?;
    }
    out.flush()
}

/// Returns the explanations, each with the later ones that have the same cause in the same clusters and say nothing
/// else: the worst first, and of equally bad ones those first that concern most apps in clusters.
fn by_cause(told: &[ExplainedSubject]) -> Vec<(&ExplainedSubject, Vec<&ExplainedSubject>)> {
    let mut groups: Vec<(&ExplainedSubject, Vec<&ExplainedSubject>)> = Vec::new();
    let mut places = HashMap::new();
    for next in told {
        let Some(cause) = sole_cause(next) else {
            groups.push((next, Vec::new()));
            continue;
        };
        match places.entry((&next.explanation.place, cause)) {
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push((next, Vec::new()));
            }
            Entry::Occupied(place) => {
                groups.get_mut(*place.get()).into_iter().for_each(|(_, alike)| alike.push(next));
            }
        }
    }
    groups.sort_by_cached_key(|(first, alike)| {
        let severity = first.row.problem.as_ref().map(|problem| problem.severity);
        let places = |told: &ExplainedSubject| told.explanation.place.count();
        let count = places(first) + alike.iter().map(|other| places(other)).sum::<usize>();
        (first.row.effective, severity.is_none(), severity, Reverse(count))
    });
    groups
}

/// The cause that several apps may have in common, such as a lost node, without what is the app's own.
#[derive(PartialEq, Eq, Hash)]
struct SharedCause<'e> {
    object: &'e ObjectKey,
    reason: &'e str,
    message: &'e str,
    facts: &'e [String],
}

impl SharedCause<'_> {
    /// Returns the cause of an explanation with a cause chain; `None` without one.
    fn of(explanation: &Explanation) -> Option<SharedCause<'_>> {
        let CauseStep { object, reason, facts, .. } = &**explanation.chain.last()?;
        Some(SharedCause { object, reason, message: &explanation.message, facts })
    }
}

/// All that explains the state of an app, but for what is the app's own.
#[derive(PartialEq, Eq, Hash)]
struct SoleCause<'e> {
    /// The object of the cause, or of the only problem beside the health; `None` if nothing is known of the app's
    /// cluster, or the problem names no object.
    object: Option<&'e ObjectKey>,
    message: &'e str,
    /// The states and messages of the problems beside the health.
    besides: Vec<(&'e str, &'e str)>,
    changed: &'e [Change],
    next: &'e [String],
}

/// Returns the cause of an app's state; `None` for an object, and if there is more to tell about the app than that
/// cause.
fn sole_cause(told: &ExplainedSubject) -> Option<SoleCause<'_>> {
    let ExplainedSubject { explanation, others, other_count, .. } = told;
    let Explanation { unsynced, flagged, doubts, changed, next, .. } = explanation;
    if told.object.is_some() || !unsynced.is_empty() || !flagged.is_empty() || !doubts.is_empty() {
        return None;
    }
    let besides: Vec<&Problem> = besides(explanation).collect();
    let (object, message) = match (explanation.chain.last(), besides.as_slice()) {
        _ if lost(told).is_some() => (None, ""),
        (Some(cause), []) => (Some(&cause.object), &*explanation.message),
        (None, [problem]) => (problem.object.as_ref(), &*problem.message),
        _ => return None,
    };
    let is_sole = lost(told).is_some()
        || (others.len() == *other_count && others.iter().all(|other| *other.message == *message));
    let besides = besides.into_iter().map(|problem| (&*problem.state, &*problem.message)).collect();
    is_sole.then_some(SoleCause { object, message, besides, changed, next })
}

/// Returns the problems of an app that its status does not show: those of sync, source or freshness, notices, and those
/// that only Argo CD reports.
fn besides(explanation: &Explanation) -> impl Iterator<Item = &Problem> {
    explanation.problems.iter().filter(|problem| problem.is_beside_health())
}

/// Returns the problem that the app's cluster does not answer, if none of the objects there are known for this answer.
fn lost(told: &ExplainedSubject) -> Option<&Problem> {
    let is_unobserved = told.row.freshness.state == FreshnessState::Lost
        && told.row.freshness.observed_at.is_none()
        && told.explanation.chain.last().is_none_or(|cause| cause.reason == UNOBSERVED);
    besides(&told.explanation).find(|problem| problem.axis == Axis::Freshness).filter(|_| is_unobserved)
}

/// Prints one explanation; `alike` are further apps with the same cause, which get a headline only. `earlier` is the
/// app whose explanation, printed before, has the same cause: then the cause is only named. If there are `several`
/// clusters, headlines name them.
fn explain(
    out: &mut impl Write,
    told: &ExplainedSubject,
    alike: &[&ExplainedSubject],
    earlier: Option<&ExplainedSubject>,
    (several, now): (bool, Timestamp),
) -> io::Result<()> {
    let bold = Style::new().bold();
    let ExplainedSubject { explanation, row, others, other_count, .. } = told;
    let place = &explanation.place;
    headline(out, told, several, now)?;
    alike.iter().try_for_each(|other| headline(out, other, several, now))?;
    if place.are_several() {
        let told = format!("shown for {}; --per-cluster shows each cluster", place.first());
        indented(out, "  ", &told)?;
    }
    if let Some(suspension) = &explanation.suspension {
        indented(out, "  ", &format!("suspended{}", text::by_at(suspension, now)))?;
    }
    flagged(out, explanation)?;
    if told.tells_owners {
        belongs(out, explanation, &row.cluster)?;
    }
    if let Some(lost) = lost(told) {
        say!(out)?;
        say!(out, "{}Cause{:#}", bold, bold)?;
        indented(out, "  ", &lost.message)?;
        let of = if alike.is_empty() { "its" } else { "their" };
        indented(out, "  ", &format!("nothing is known of {of} objects"))?;
        problems(out, besides(explanation).filter(|problem| problem.axis != Axis::Freshness), now)?;
        return further(out, explanation, &[]);
    }
    let Some(cause) = explanation.chain.last() else {
        if !explanation.problems.is_empty() {
            problems(out, besides(explanation), now)?;
            unsynced::print(out, told)?;
        } else if !explanation.message.is_empty() {
            indented(out, "  ", &explanation.message)?;
        }
        doubted(out, explanation)?;
        last_changed(out, explanation, now)?;
        return further(out, explanation, &[]);
    };
    say!(out)?;
    say!(out, "{}Cause{:#}", bold, bold)?;
    let reason = if cause.reason.is_empty() { String::new() } else { format!(": {}", cause.reason) };
    indented(out, "  ", &format!("{}{reason}{}", object(&cause.object), since(cause, now)))?;
    match earlier {
        Some(earlier) => indented(out, "  ", &format!("explained above, for {}", earlier.row.title()))?,
        None => {
            indented(out, "  ", &explanation.message)?;
            for fact in cause.facts.iter().filter(|fact| **fact != explanation.message) {
                indented(out, "  - ", fact)?;
            }
            // The meaning of built-in kinds is known; other rules are named so that they can be looked up.
            if taffrail_rules::origin_of(&cause.rule).is_some() {
                indented(out, "  - ", &format!("by the rule {}", cause.rule))?;
            }
            logs::print(out, explanation)?;
        }
    }
    if earlier.is_none_or(|earlier| earlier.explanation.changed != explanation.changed) {
        changed(out, explanation)?;
    }
    last_changed(out, explanation, now)?;
    if explanation.chain.len() > 1 {
        say!(out)?;
        let of = if alike.is_empty() { String::new() } else { format!(" of {}", row.title()) };
        say!(out, "{}Cause chain{}{:#}", bold, printable(&of), bold)?;
        for (depth, link) in explanation.chain.iter().enumerate() {
            let branch = if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
            let message = if depth + 1 == explanation.chain.len() { "" } else { &*link.message };
            line(out, &branch, &object(&link.object), link.status, message)?;
        }
    }
    // Those of joined apps have the same cause.
    if alike.is_empty() && !others.is_empty() {
        say!(out)?;
        say!(out, "{}Also not ready{:#}", bold, bold)?;
        for OtherObject { object: key, status, message } in others {
            line(out, "", &format!("{} {}", key.kind, key.path()), *status, message)?;
        }
        more(out, row, other_count.saturating_sub(others.len()))?;
    }
    problems(out, besides(explanation), now)?;
    unsynced::print(out, told)?;
    let printed = earlier.map_or(&[][..], |earlier| &earlier.explanation.next);
    further(out, explanation, printed)
}

/// Prints the name of the app or object, its cluster if there are `several`, and its status.
fn headline(out: &mut impl Write, told: &ExplainedSubject, several: bool, now: Timestamp) -> io::Result<()> {
    let bold = Style::new().bold();
    let row = &told.row;
    let subject = match &told.object {
        Some(only) => object(only),
        None if row.delivery == Delivery::Taffrail => format!("{} objects", row.objects),
        None => row.title(),
    };
    let cluster = if several { format!(" in {}", told.explanation.place.words()) } else { String::new() };
    let colour = app_style(row);
    let health = row.words(now);
    say!(
        out,
        "{}{}{:#}{} is {}{}{:#}",
        bold,
        printable(&subject),
        bold,
        printable(&cluster),
        colour,
        printable(&health),
        colour,
    )
}

/// Returns words with the first letter in upper case.
fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Prints problems beside the health under a title; nothing if there are none.
fn problems<'e>(
    out: &mut impl Write,
    problems: impl Iterator<Item = &'e Problem>,
    now: Timestamp,
) -> io::Result<()> {
    let bold = Style::new().bold();
    let besides: Vec<&Problem> = problems.collect();
    if besides.is_empty() {
        return Ok(());
    }
    let has = |axis: Axis| besides.iter().any(|problem| problem.axis == axis);
    let axes = [Axis::Freshness, Axis::Sync, Axis::Source, Axis::Check];
    let words = ["freshness", "sync", "source", "checks"];
    let words: Vec<&str> =
        axes.into_iter().zip(words).filter(|(axis, _)| has(*axis)).map(|(_, word)| word).collect();
    let title = match words.split_last() {
        None => "Notices".to_owned(),
        Some((only, [])) => capitalised(only),
        Some((last, others)) => capitalised(&format!("{} and {last}", others.join(", "))),
    };
    let title = &printable(&title);
    say!(out)?;
    say!(out, "{}{}{:#}", bold, title, bold)?;
    for problem in besides {
        let about = problem.object.as_ref().map(object);
        let about = about.map(|about| format!("{about}: ")).unwrap_or_default();
        let seconds = |since: Timestamp| now.as_second().saturating_sub(since.as_second());
        let since = problem.since.map(|since| format!(", for {}", text::span(seconds(since))));
        indented(out, "  ", &format!("{about}{}{}", problem.state, since.unwrap_or_default()))?;
        // Many messages name their object themselves.
        let message = problem.message.strip_prefix(&*about).unwrap_or(&problem.message);
        if !message.is_empty() {
            indented(out, "  ", &text::revision(message))?;
        }
    }
    Ok(())
}

/// Prints the changes before the failure, each with the time by which it came before; nothing if there are none.
fn changed(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    let bold = Style::new().bold();
    if explanation.changed.is_empty() {
        return Ok(());
    }
    say!(out)?;
    say!(out, "{}Changes before{:#}", bold, bold)?;
    let turn = explanation.chain.iter().find_map(|link| link.since);
    for change in &explanation.changed {
        let span = turn.zip(change.when).map(|(turn, when)| turn.as_second() - when.as_second());
        let before = match span {
            Some(seconds @ 1..) => format!("{} before", text::span(seconds)),
            _ => "at that time".to_owned(),
        };
        indented(out, "  ", &format!("{before}: {}, {}", object(&change.object), text::change(change)))?;
    }
    Ok(())
}

/// Prints the first [`MAX_NAMED`] signs that a green status is wrong, and the number of the others; nothing without
/// signs.
fn doubted(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    if explanation.doubts.is_empty() {
        return Ok(());
    }
    let bold = Style::new().bold();
    say!(out)?;
    say!(out, "{}Signs that this status is wrong{:#}", bold, bold)?;
    for doubt in explanation.doubts.iter().take(MAX_NAMED) {
        let about = match doubt.objects.as_slice() {
            [only] => format!("{} {}", only.key.kind, only.key.name),
            _ => doubt.scope.clone(),
        };
        indented(out, "  ", &format!("{about}: {}", doubt.message))?;
        doubt.next.iter().try_for_each(|command| say!(out, "  > {}", printable(&program::typed(command))))?;
    }
    match explanation.doubts.len().saturating_sub(MAX_NAMED) {
        0 => Ok(()),
        more => say!(out, "  … and {} more", more),
    }
}

/// Prints the last change of the object by each field manager, unless [`changed`] has printed them.
fn last_changed(out: &mut impl Write, explanation: &Explanation, now: Timestamp) -> io::Result<()> {
    let is_told = |last: &Change| {
        let same = |told: &Change| told.object == last.object && told.by == last.by;
        explanation.changed.iter().any(|told| same(told) && told.when == last.when)
    };
    let last: Vec<_> = explanation.last_changed.iter().filter(|last| !is_told(last)).collect();
    if last.is_empty() {
        return Ok(());
    }
    let bold = Style::new().bold();
    say!(out)?;
    say!(out, "{}Last changed{:#}", bold, bold)?;
    for change in last {
        let when = change.when.map_or_else(|| "time not known".to_owned(), |when| text::ago(when, now));
        indented(out, "  ", &format!("{when}: {}, {}", object(&change.object), text::change(change)))?;
    }
    Ok(())
}

/// Prints an object in one line, with its message cut at the screen's width.
fn line(out: &mut impl Write, lead: &str, name: &str, status: Status, message: &str) -> io::Result<()> {
    let colour = style(status);
    let dash = if message.is_empty() { "" } else { ": " };
    let name = printable(name);
    let message = format!("{dash}{}", printable(&text::line(message)));
    let used = 2 + lead.width() + name.width() + 2 + status.word().width();
    let message = fitting(&message, screen().map(|screen| screen.saturating_sub(used)));
    say!(out, "  {}{}  {}{}{:#}{}", printable(lead), name, colour, status.word(), colour, printable(&message))
}

/// Prints the commands that show more, without those that are `printed` already.
fn further(out: &mut impl Write, explanation: &Explanation, printed: &[String]) -> io::Result<()> {
    let bold = Style::new().bold();
    let next: Vec<&String> = explanation.next.iter().filter(|command| !printed.contains(command)).collect();
    if next.is_empty() {
        return Ok(());
    }
    say!(out)?;
    say!(out, "{}Next steps{:#}", bold, bold)?;
    next.iter().try_for_each(|command| say!(out, "  {}", printable(&program::typed(command))))
}

/// Prints that `number` more objects of an app are left out, with the command that shows them all, if the app is not
/// one of objects that the user named; nothing if none are left out.
fn more(out: &mut impl Write, app: &AppRow, number: usize) -> io::Result<()> {
    // Objects that the user named are no app for other commands.
    let name = Some(app.name(false)).filter(|_| app.delivery != Delivery::Taffrail);
    let command = name.map(|name| program::typed(&format!("taffrail app {}", quoted(&name))));
    match (number, command) {
        (0, _) => Ok(()),
        (_, Some(command)) => say!(out, "  … and {} more: {}", number, printable(&command)),
        (_, None) => say!(out, "  … and {} more", number),
    }
}

/// Maximum number of objects or signs that a section lists one by one; the others are counted.
const MAX_NAMED: usize = 5;

/// Prints the first [`MAX_NAMED`] objects of an app that are suspended or paused, and the number of the others.
fn flagged(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    for Flagged { object: name, flags } in explanation.flagged.iter().take(MAX_NAMED) {
        indented(
            out,
            "  ",
            &format!(
                "{} is {}",
                object(name),
                flags.iter().map(|flag| flag.as_str()).collect::<Vec<_>>().join(" and ")
            ),
        )?;
    }
    match explanation.flagged.len().saturating_sub(MAX_NAMED) {
        0 => Ok(()),
        more => say!(out, "  and {} more are suspended or paused", more),
    }
}

/// Prints the ownership of an object in `cluster`: its controllers, its apps, unconfirmed claims and marks.
fn belongs(out: &mut impl Write, explanation: &Explanation, cluster: &str) -> io::Result<()> {
    let Explanation { owners, belongs_to, declares, listed_by, marked_for, owners_unread, .. } = explanation;
    let owners: Vec<String> = owners.iter().map(|key| format!("{} {}", key.kind, key.path())).collect();
    if !owners.is_empty() {
        indented(out, "  ", &format!("controlled by {}", owners.join(", which is controlled by ")))?;
    }
    if let Some(app) = declares {
        indented(out, "  ", &format!("declares {app}"))?;
    }
    for OwningApp { app, home, applied, source } in belongs_to {
        let home = if home == cluster { String::new() } else { format!(" of {home}") };
        let revision = applied.as_deref().map(|revision| format!(", at {}", text::revision(revision)));
        let source = source.as_ref().and_then(|source| {
            let place = source.url.clone().or_else(|| source.name.clone())?;
            let path = source.path.as_ref().map(|path| format!("{path} of ")).unwrap_or_default();
            Some(format!(", from {path}{place}"))
        });
        let line = format!("{app}{home}{}{}", source.unwrap_or_default(), revision.unwrap_or_default());
        indented(out, "  ", &format!("belongs to {line}"))?;
    }
    for app in listed_by {
        indented(
            out,
            "  ",
            &format!("listed by {app} (unconfirmed: its labels and annotations do not name that app)"),
        )?;
    }
    for mark in marked_for {
        indented(out, "  ", &format!("marked for {mark}"))?;
    }
    let is_marked_elsewhere = marked_for.iter().any(|mark| mark.ends_with(NOT_SHOWN));
    match belongs_to.is_empty() && declares.is_none() {
        false => Ok(()),
        true if !owners_unread.is_empty() => {
            let unread = owners_unread.join(", ");
            indented(out, "  ", &format!("its app is not known: apps of {unread} could not be read"))
        }
        true if !listed_by.is_empty() => Ok(()),
        true if is_marked_elsewhere => {
            say!(out, "  its app is not known: the one that it is marked for is not in what was read")
        }
        true => say!(out, "  belongs to no known app"),
    }
}

fn object(name: &ObjectKey) -> String {
    let slash = if name.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", name.kind, name.namespace, name.name)
}

fn since(link: &CauseStep, now: Timestamp) -> String {
    let what = if link.status == Status::Terminating { "being deleted" } else { "not ready" };
    let seconds = |since: Timestamp| now.as_second().saturating_sub(since.as_second());
    link.since.map(|since| format!(", {what} for {}", text::span(seconds(since)))).unwrap_or_default()
}

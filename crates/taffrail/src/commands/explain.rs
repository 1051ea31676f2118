//! `taffrail explain`: the cause chain of an app or object, and commands that show more.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use taffrail_api::question::{FleetFacts, asked_for, concerning, hides_apps, not_single};
use taffrail_api::{AppRow, Explanation, Flagged, explained_together, text, told_in_few};
use taffrail_apps::command::{self, quoted};
use taffrail_apps::{
    App, AppList, AppQuery, Axis, Changes, Delivery, FindError, Freshness, InvalidAppQuery, ObjectSync,
    Objects, Ownership, Ownerships, ReadQuery, Resource, Scope, Snapshot, Words, aliases, changes_of_each,
    declared_each, differing_fields, full_name, last_changes,
};
use taffrail_object::kinds::names_kind;
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_observe::FleetSnapshot;
use taffrail_status::assess::{CauseStep, Change};
use taffrail_status::{ClusterState as _, Presence, Status};
use unicode_width::UnicodeWidthStr;

use super::get::{self, complaints};
use super::{changes, named};
use crate::cli::{ExplainArguments, ExplainOutput, ListOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::{app_style, fitting, indented, printable, screen, style};
use crate::source::{Source, asked};
use crate::{phrase, program, say};

mod doubts;
mod explained;
mod logs;
mod unsynced;

pub(crate) use explained::Explained;
use explained::Told;

pub(crate) fn run(
    arguments: &ExplainArguments,
    printed: &mut Option<Explained>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    if arguments.logs && !arguments.view.source.from.is_empty() {
        return Err(super::logs::no_logs_in_dumps());
    }
    let names = arguments.what.iter().map(|text| Name::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let more = |snapshot: &Snapshot, namespace: &str| {
        let namespace = arguments.namespace.as_deref().unwrap_or(namespace);
        let chosen = arguments.namespace.as_deref();
        names.iter().flat_map(|name| name.keys(snapshot, namespace, chosen)).collect()
    };
    let mut asked = ReadQuery {
        owners: !names.is_empty(),
        changes: of_interest(&names),
        // The app of a named object may be declared in any namespace, but the selected one holds all named apps: who may
        // read that one alone gets an answer.
        ..asked(
            arguments.namespace.as_ref().filter(|_| names.iter().all(Name::is_of_app)),
            &arguments.declared,
            &arguments.grouping,
        )
    };
    asked.objects.extend(names.iter().filter_map(Name::key).cloned());
    let fleet = source.read(&arguments.view, &asked, &more)?;
    named::check_clusters(&arguments.cluster, fleet)?;
    let of_objects: Vec<String> = names.iter().filter_map(Name::cluster).map(str::to_owned).collect();
    named::check_clusters(&of_objects, fleet)?;
    let list = fleet.apps(&arguments.declared);
    let (subjects, missing) = choose(fleet, &list, &names, arguments);

    let shown: Vec<&App> = subjects.iter().map(|subject| &subject.app).collect();
    let errors = match names.is_empty() || !missing.is_empty() {
        true => asked_for(&list, &shown, arguments.namespace.as_deref()),
        false => concerning(&list, &shown),
    };
    // Suggested commands are for the clusters that were read; they name the context unless it is the current one.
    let from = &arguments.view.source;
    let is_named = from.from.is_empty() && (from.all_contexts || !from.context.is_empty());
    let context = |app: &App| {
        // The declaring object may be in another cluster than the app's objects.
        let is_there = app.resources.iter().any(|resource| Some(&resource.key) == app.worst.as_ref());
        is_named.then(|| if is_there { app.app.target.clone() } else { app.app.home.clone() })
    };
    let clusters = fleet.clusters();
    let explained = |subject: &Subject<'_>, changed: &[Change], doubts, unsynced: Vec<ObjectSync>| {
        let explanation = Explanation::new(&subject.app, context(&subject.app).as_deref()).after(changed);
        let explanation = explanation.differing(unsynced);
        match (&subject.belonging, subject.app.resources.as_slice()) {
            (Some(belonging), [only]) => {
                let last = last_changes(&subject.app, &clusters);
                explanation.with(&only.key, belonging).written(&last)
            }
            _ => match doubts {
                Some(doubts) => explanation.doubted(doubts),
                None => explanation,
            },
        }
    };
    let (doubts, undoubted) =
        if names.is_empty() { Default::default() } else { doubts::each(&subjects, &list, fleet, is_named) };
    let turned: Vec<(&App, &[&App])> = subjects.iter().map(|it| (&it.app, it.via())).collect();
    let changed = changes_of_each(&turned, &clusters);
    let both = changed.iter().zip(doubts.into_iter().chain(std::iter::repeat(None)));
    let unsynced = differing_fields(subjects.iter().map(|subject| &subject.app), &clusters);
    let all = subjects.iter().zip(both).zip(unsynced);
    let explanations: Vec<_> = all
        .map(|((subject, (changed, doubts)), unsynced)| explained(subject, changed, doubts, unsynced))
        .collect();
    // A named app or object is explained for each cluster.
    let is_all = names.is_empty() && arguments.declared.is_empty();
    let (subjects_told, mut explanations): (Vec<&Subject<'_>>, Vec<Explanation>) =
        match is_all && !arguments.per_cluster {
            true => {
                let apps = subjects.iter().map(|subject| &subject.app);
                let told = explained_together(apps.zip(explanations).collect());
                told.into_iter().filter_map(|(place, told)| Some((subjects.get(place)?, told))).unzip()
            }
            false => subjects.iter().zip(explanations).unzip(),
        };
    told_in_few(&mut explanations);
    let mut exit = match arguments.logs {
        true => logs::add(&mut explanations, &arguments.view.source)?,
        false => Exit::Yes,
    };
    // A single name yields a single document, unless it matches several objects.
    let is_single = names.len() == 1 || !arguments.declared.is_empty();
    let answer = match arguments.output {
        ExplainOutput::Table => {
            let besides = |subject: &&Subject<'_>| (AppRow::from(&subject.app), others(&subject.app));
            Explained::Text(subjects_told.iter().map(besides).zip(explanations).collect())
        }
        ExplainOutput::Json | ExplainOutput::Yaml => Explained::document(explanations, &errors, is_single),
    };
    let Some(answer) = changes::news(printed, answer) else { return Ok(Exit::Yes) };
    let form = if arguments.output == ExplainOutput::Yaml { ListOutput::Yaml } else { ListOutput::Json };
    written(match answer {
        Explained::Text(told) => {
            let lost: Vec<&str> = lost(&list, &arguments.cluster).collect();
            let is_hidden = errors.iter().any(hides_apps);
            people(&subjects_told, told, fleet, &lost, (is_hidden, missing.is_empty()), console)
        }
        Explained::One(only) => get::document(form, only, console),
        Explained::Several(all) => get::document(form, all, console),
    })?;

    let of_errors = complaints(&errors, &FleetFacts::of(fleet).unobserved);
    let in_answer = arguments.output != ExplainOutput::Table;
    for complaint in of_errors {
        if !in_answer {
            complaint.print(console);
        }
        exit = exit.max(complaint.exit);
    }
    let problems: Vec<CommandError> = fleet.problems.iter().map(CommandError::from).collect();
    for complaint in problems.iter().chain(&missing).chain(&undoubted) {
        complaint.print(console);
        exit = exit.max(complaint.exit);
    }
    if arguments.exit_status && subjects.iter().any(|subject| subject.app.pressing().is_some()) {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

/// Returns the apps for which Taffrail must read the objects that changed before a failure: the named ones, or all
/// if no name was given.
fn of_interest(names: &[Name<'_>]) -> Changes {
    if names.is_empty() {
        return Changes::All;
    }
    Changes::Of(names.iter().filter_map(|name| name.query().cloned()).collect())
}

/// A name given on the command line.
enum Name<'t> {
    /// `[CLUSTER/]group/Kind/namespace/name`
    Key { cluster: Option<&'t str>, key: ObjectKey },
    /// A text that may be the name of an app or `KIND/NAME`; the objects that were read decide.
    Words { text: &'t str, query: AppQuery },
}

impl<'t> Name<'t> {
    fn parse(text: &'t str) -> Result<Name<'t>, CommandError> {
        // The full name of an app has as many parts as that of an object.
        let query = text.parse::<AppQuery>().ok().filter(|query| query.cluster().is_some());
        if let Some(query) = query {
            return Ok(Name::Words { text, query });
        }
        if let Some((cluster, key)) = ObjectKey::in_cluster(text) {
            return Ok(Name::Key { cluster: Some(cluster), key });
        }
        match text.parse() {
            Ok(key) => Ok(Name::Key { cluster: None, key }),
            Err(_) => match text.parse() {
                Ok(query) => Ok(Name::Words { text, query }),
                Err(InvalidAppQuery(text)) => {
                    let what = format!("'{text}' is neither the name of an app nor of an object");
                    Err(CommandError::usage(what)
                        .hint("write NAME, NAMESPACE/NAME, KIND/NAME or [CLUSTER/]group/Kind/namespace/name"))
                }
            },
        }
    }

    fn key(&self) -> Option<&ObjectKey> {
        match self {
            Name::Key { key, .. } => Some(key),
            Name::Words { .. } => None,
        }
    }

    fn query(&self) -> Option<&AppQuery> {
        match self {
            Name::Key { .. } => None,
            Name::Words { query, .. } => Some(query),
        }
    }

    /// Returns the cluster in `CLUSTER/group/Kind/namespace/name`; `None` for any other form.
    fn cluster(&self) -> Option<&'t str> {
        match self {
            Name::Key { cluster, .. } => *cluster,
            Name::Words { .. } => None,
        }
    }

    /// Splits the name into kind and name; `None` if it does not have the form `KIND/NAME`.
    fn kind_and_name(&self) -> Option<(&'t str, &'t str)> {
        match self {
            Name::Key { .. } => None,
            Name::Words { text, .. } => text.split_once('/').filter(|(_, name)| !name.contains('/')),
        }
    }

    /// Returns the keys of objects to read for this name in a cluster that was read in part: unread objects of each
    /// matching kind in `namespace`, the context's, and objects already read in the namespace `chosen` with -n, or
    /// in any if it is `None`.
    fn keys(&self, snapshot: &Snapshot, namespace: &str, chosen: Option<&str>) -> Vec<ObjectKey> {
        let Some(((kind, name), catalog)) = self.kind_and_name().zip(snapshot.kinds()) else {
            return Vec::new();
        };
        let keys = catalog.iter().map(|served| {
            let namespace = if served.namespaced { namespace } else { "" };
            (ObjectKey::new(&*served.group, &*served.kind, namespace, name), &*served.plural)
        });
        let keys = keys.filter(|(key, plural)| {
            names_kind(kind, &key.group, &key.kind) || kind.eq_ignore_ascii_case(plural)
        });
        let unread = keys
            .map(|(key, _)| key)
            .filter(|key| matches!(snapshot.get(key.as_ref()), Presence::Unobserved(_)));
        // Known objects need more reads too: their kind may have been listed for apps of other namespaces, and evidence
        // was then read only there.
        let known = snapshot.all().filter(|it| self.is_object(it.key, chosen));
        unread.chain(known.map(|it| it.key.to_owned())).collect()
    }

    /// Returns true if the name can be only that of an app.
    fn is_of_app(&self) -> bool {
        matches!(self, Name::Words { text, .. } if !text.contains('/'))
    }

    fn is_object(&self, key: ObjectKeyRef<'_>, namespace: Option<&str>) -> bool {
        match (self, self.kind_and_name()) {
            (Name::Key { key: own, .. }, _) => own.as_ref() == key,
            (_, Some((kind, name))) => {
                name == key.name
                    && (key.namespace.is_empty() || namespace.is_none_or(|it| it == key.namespace))
                    && names_kind(kind, key.group, key.kind)
            }
            _ => false,
        }
    }
}

/// An app to explain, or an object with its owning apps.
struct Subject<'l> {
    app: App,
    belonging: Option<Ownership<'l>>,
}

impl<'l> Subject<'l> {
    fn app(app: &App) -> Subject<'l> {
        Subject { app: app.clone(), belonging: None }
    }

    /// Returns the apps that hold the object; empty if the subject itself is an app.
    fn via(&self) -> &[&'l App] {
        self.belonging.as_ref().map_or(&[], |belonging| &belonging.apps)
    }
}

/// Returns the subjects to explain (the named ones, or everything that is not ready), and an error for each name that
/// was not found.
fn choose<'l>(
    fleet: &'l FleetSnapshot,
    list: &'l AppList,
    names: &[Name<'_>],
    arguments: &ExplainArguments,
) -> (Vec<Subject<'l>>, Vec<CommandError>) {
    let namespace = arguments.namespace.as_deref();
    let in_cluster =
        |name: &str| arguments.cluster.is_empty() || arguments.cluster.iter().any(|it| it == name);
    if !arguments.declared.is_empty() {
        let apps = list.apps.iter().filter(|app| in_cluster(&app.app.target));
        return (apps.map(Subject::app).collect(), Vec::new());
    }
    if names.is_empty() {
        let is_inside = |app: &&App| namespace.is_none_or(|namespace| namespace == app.app.namespace);
        let is_unwell = |app: &&App| app.pressing().is_some() && in_cluster(&app.app.target);
        let mut apps: Vec<&App> = list.apps.iter().filter(is_inside).filter(is_unwell).collect();
        apps.sort_by_key(|app| (app.effective(), app.problem().map(|problem| problem.severity)));
        return (apps.into_iter().map(Subject::app).collect(), Vec::new());
    }
    let mut chosen = Vec::new();
    let mut missing = Vec::new();
    let grounds =
        LazyCell::new(|| Grounds { belongings: list.belongings(), aliases: aliases(&fleet.clusters()) });
    for name in names {
        let apps = match name {
            Name::Key { .. } => None,
            Name::Words { query, .. } => {
                Some(query.clone().within(namespace).find_in(list, &arguments.cluster))
            }
        };
        let refusal = match apps {
            Some(Ok(apps)) => {
                chosen.extend(apps.into_iter().filter(|app| in_cluster(&app.app.target)).map(Subject::app));
                continue;
            }
            Some(Err(error @ FindError::Ambiguous { .. })) => {
                missing.push(named::refused("explain", &not_single(error, list)));
                continue;
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        let mut found = objects(fleet, list, &grounds, name, namespace);
        found.retain(|subject| in_cluster(&subject.app.app.target));
        if found.is_empty() {
            missing.push(not_found(fleet, list, name, refusal.as_ref()));
        }
        chosen.extend(found);
    }
    (chosen, missing)
}

/// Returns the error that neither an app nor an object has this name.
fn not_found(
    fleet: &FleetSnapshot,
    list: &AppList,
    name: &Name<'_>,
    refusal: Option<&FindError>,
) -> CommandError {
    let of_kind = name.kind_and_name().filter(|(kind, _)| is_known(fleet, kind));
    let Some((kind, wanted)) = of_kind else {
        return match refusal {
            Some(error) => named::refused("explain", &not_single(error.clone(), list)),
            None => CommandError::usage("found nothing of that name"),
        };
    };
    let what = format!("there is no {kind} '{wanted}' and no app of that name");
    if let Some(hidden) = list.errors.iter().find(|error| hides_apps(error)) {
        let hidden =
            format!("{what} in the part that could be read; {}: {}", hidden.cluster, hidden.error.message);
        return CommandError::unreadable(hidden);
    }
    let all = fleet.snapshots.iter().flat_map(Objects::all).map(|observed| observed.key);
    let mut others: Vec<String> = all
        .filter(|key| names_kind(kind, key.group, key.kind) && key.name == wanted)
        .map(|key| key.namespace.to_owned())
        .collect();
    others.sort();
    others.dedup();
    let commands = others.iter().take(MAX_NAMED).filter_map(|namespace| {
        command::taffrail(&["explain", &format!("{kind}/{wanted}")], namespace, None)
    });
    let commands: Vec<String> = commands.map(|command| program::hinted(&command)).collect();
    CommandError::usage(what).hint(match commands.as_slice() {
        [] => "choose a namespace with -n NAMESPACE, or write group/Kind/namespace/name".to_owned(),
        commands => format!("an object of that name is in another namespace: {}", commands.join(" or ")),
    })
}

/// Returns true if some cluster serves the kind named `kind`, or has objects of it.
fn is_known(fleet: &FleetSnapshot, kind: &str) -> bool {
    fleet.snapshots.iter().any(|snapshot| {
        let served = snapshot.kinds().is_some_and(|catalog| {
            catalog.iter().any(|served| names_kind(kind, &served.group, &served.kind))
        });
        served || snapshot.all().any(|observed| names_kind(kind, observed.key.group, observed.key.kind))
    })
}

/// Facts about all clusters that explaining several names has in common.
struct Grounds<'l> {
    belongings: Ownerships<'l>,
    /// For each cluster, true if an earlier one is the same cluster under another name.
    aliases: Vec<bool>,
}

/// Returns the objects that `name` matches in each cluster, in the namespace given with -n or in any, each with the
/// apps that own it. A cluster with two names in the kubeconfig is searched once.
fn objects<'l>(
    fleet: &FleetSnapshot,
    list: &'l AppList,
    grounds: &Grounds<'l>,
    name: &Name<'_>,
    namespace: Option<&str>,
) -> Vec<Subject<'l>> {
    let mut found = Vec::new();
    for (snapshot, is_alias) in fleet.snapshots.iter().zip(&grounds.aliases) {
        // One cluster under two names is shown once.
        if *is_alias || name.cluster().is_some_and(|own| own != snapshot.name()) {
            continue;
        }
        let here = list.apps.iter().filter(|app| app.app.target == snapshot.name());
        let declared_here = here.flat_map(|app| app.resources.iter().map(|resource| resource.key.as_ref()));
        let there = snapshot.all().map(|observed| observed.key);
        let named = declared_here.chain(there).chain(name.key().map(ObjectKey::as_ref));
        let mut keys: Vec<ObjectKeyRef<'_>> = named.filter(|key| name.is_object(*key, namespace)).collect();
        keys.sort();
        keys.dedup();
        let keys: Vec<ObjectKey> = keys.into_iter().map(ObjectKeyRef::to_owned).collect();
        let own = declared_each(snapshot, &keys, &fleet.rules.active(), fleet.now);
        found.extend(
            keys.iter()
                .zip(own.apps)
                .map(|(key, app)| Subject { app, belonging: Some(grounds.belongings.of(snapshot, key)) }),
        );
    }
    found
}

/// Maximum number of lost clusters that one line names.
const MAX_LOST: usize = 5;

/// Returns the names of clusters that could not be read at all: those among `asked`, or all if `asked` is empty.
fn lost<'l>(list: &'l AppList, asked: &'l [String]) -> impl Iterator<Item = &'l str> {
    let errors = list.errors.iter().filter(|error| error.error.scope == Scope::Cluster);
    let names: BTreeSet<&str> = errors.map(|error| &*error.cluster).collect();
    names.into_iter().filter(|name| asked.is_empty() || asked.iter().any(|it| it == name))
}

/// Returns the message `found` ("No apps found") extended by the names of the clusters in `lost`, which could not
/// be read.
fn unread(found: &str, lost: &[&str]) -> String {
    let named = lost.iter().take(MAX_LOST).copied().collect::<Vec<_>>().join(", ");
    let more = match lost.len().saturating_sub(MAX_LOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = if lost.len() == 1 { "" } else { "s" };
    format!("{found}, but cluster{plural} {named}{more} could not be read: its objects are unknown.")
}

fn people(
    subjects: &[&Subject<'_>],
    told: &[Told],
    fleet: &FleetSnapshot,
    lost: &[&str],
    (is_hidden, is_all): (bool, bool),
    console: &Console,
) -> io::Result<()> {
    if told.is_empty() {
        if is_all {
            let is_empty = fleet.apps(&[]).apps.is_empty();
            if !lost.is_empty() {
                let found = if is_empty { "No apps found" } else { "No problem found" };
                console.tell(phrase!("{}\n", printable(&unread(found, lost))));
                return Ok(());
            }
            // Without apps there is no ready app to report.
            console.tell(match is_empty {
                true if is_hidden => {
                    phrase!("No apps found, but not everything could be read.\n")
                }
                true => phrase!("No apps found.\n"),
                false => phrase!("Every app is ready, and no sync or source has a problem.\n"),
            });
        }
        return Ok(());
    }
    let several = fleet.snapshots.len() > 1;
    let mut out = console.people();
    for (place, (subject, told)) in subjects.iter().zip(told).enumerate() {
        if place > 0 {
            say!(out)?;
        }
        explain(&mut out, subject, told, several, fleet.now)?;
    }
    out.flush()
}

fn explain(
    out: &mut impl Write,
    of: &Subject<'_>,
    ((row, others), explanation): &Told,
    several: bool,
    now: Timestamp,
) -> io::Result<()> {
    let bold = Style::new().bold();
    let app = &of.app;
    let subject = match (app.app.delivery, app.resources.as_slice()) {
        (Delivery::Taffrail, [only]) => object(&only.key),
        (Delivery::Taffrail, objects) => format!("{} objects", objects.len()),
        _ => app.app.to_string(),
    };
    let place = &explanation.place;
    let cluster = if several { format!(" in {}", place.words()) } else { String::new() };
    let colour = app_style(row);
    let subject = printable(&subject);
    let health = text::health(app, now);
    say!(
        out,
        "{}{}{:#}{} is {}{}{:#}",
        bold,
        subject,
        bold,
        printable(&cluster),
        colour,
        printable(&health),
        colour,
    )?;
    if place.are_several() {
        let told = format!("shown for {}; --per-cluster shows each cluster", place.first());
        indented(out, "  ", &told)?;
    }
    flagged(out, explanation)?;
    of.belonging.iter().try_for_each(|belonging| belongs(out, belonging, app))?;
    let Some(cause) = explanation.chain.last() else {
        if !app.is_well() {
            say!(out)?;
            problems(out, app, now)?;
            unsynced::print(out, app, &explanation.unsynced)?;
        } else if !explanation.message.is_empty() {
            indented(out, "  ", &explanation.message)?;
        }
        doubted(out, explanation)?;
        last_changed(out, explanation, now)?;
        return further(out, explanation);
    };
    say!(out)?;
    say!(out, "{}Cause{:#}", bold, bold)?;
    let reason = if cause.reason.is_empty() { String::new() } else { format!(": {}", cause.reason) };
    indented(out, "  ", &format!("{}{reason}{}", object(&cause.object), since(cause, now)))?;
    indented(out, "  ", &explanation.message)?;
    for fact in cause.facts.iter().filter(|fact| **fact != explanation.message) {
        indented(out, "  - ", fact)?;
    }
    // The meaning of built-in kinds is known; other rules are named so that they can be looked up.
    if taffrail_rules::origin_of(&cause.rule).is_some() {
        indented(out, "  - ", &format!("by the rule {}", cause.rule))?;
    }
    logs::print(out, explanation)?;
    changed(out, explanation)?;
    last_changed(out, explanation, now)?;
    if explanation.chain.len() > 1 {
        say!(out)?;
        say!(out, "{}Cause chain{:#}", bold, bold)?;
        for (depth, link) in explanation.chain.iter().enumerate() {
            let branch = if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
            let message = if depth + 1 == explanation.chain.len() { "" } else { &*link.message };
            line(out, &branch, &object(&link.object), link.status, message)?;
        }
    }
    // Of a cluster that was never observed each object would say the same.
    if app.freshness == Freshness::never() && !others.is_empty() {
        say!(out)?;
        let objects = if others.len() == 1 { "object" } else { "objects" };
        say!(out, "Nothing is known of its {} other {} either.", others.len(), objects)?;
    } else if !others.is_empty() {
        say!(out)?;
        say!(out, "{}Also not ready{:#}", bold, bold)?;
        for (key, status, message) in others.iter().take(MAX_NAMED) {
            line(out, "", &format!("{} {}", key.kind, key.path()), *status, message)?;
        }
        more(out, app, others.len().saturating_sub(MAX_NAMED))?;
    }
    if app.problems.iter().any(|problem| problem.is_beside_health()) {
        say!(out)?;
        problems(out, app, now)?;
    }
    unsynced::print(out, app, &explanation.unsynced)?;
    further(out, explanation)
}

/// Prints the problems of an app with its sync, its source or a cluster that is not live.
fn problems(out: &mut impl Write, app: &App, now: Timestamp) -> io::Result<()> {
    let bold = Style::new().bold();
    let besides: Vec<_> = app.problems.iter().filter(|problem| problem.is_beside_health()).collect();
    let title = match besides.as_slice() {
        [] => return Ok(()),
        [only] if only.axis == Axis::Sync => "Sync",
        [only] if only.axis == Axis::Source => "Source",
        [only] if only.axis == Axis::Freshness => "Freshness",
        _ => "Sync and source",
    };
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

/// Prints the changes before the failure, each with its distance from it.
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

/// Prints the signs that a green status is wrong.
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

/// Prints an object in one line, cut at the screen's width.
fn line(out: &mut impl Write, lead: &str, name: &str, status: Status, message: &str) -> io::Result<()> {
    let colour = style(status);
    let dash = if message.is_empty() { "" } else { ": " };
    let name = printable(name);
    let message = format!("{dash}{}", printable(&text::line(message)));
    let used = 2 + lead.width() + name.width() + 2 + status.word().width();
    let message = fitting(&message, screen().map(|screen| screen.saturating_sub(used)));
    say!(out, "  {}{}  {}{}{:#}{}", printable(lead), name, colour, status.word(), colour, printable(&message))
}

fn further(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    let bold = Style::new().bold();
    if explanation.next.is_empty() {
        return Ok(());
    }
    say!(out)?;
    say!(out, "{}Next steps{:#}", bold, bold)?;
    explanation.next.iter().try_for_each(|command| say!(out, "  {}", printable(&program::typed(command))))
}

/// Prints that `number` more objects of an app are left out, with the command that shows them all; nothing if none are.
fn more(out: &mut impl Write, app: &App, number: usize) -> io::Result<()> {
    // Objects that the user named are no app for other commands.
    let name = Some(full_name(&app.app)).filter(|_| app.app.delivery != Delivery::Taffrail);
    let command = name.map(|name| program::typed(&format!("taffrail app {}", quoted(&name))));
    match (number, command) {
        (0, _) => Ok(()),
        (_, Some(command)) => say!(out, "  … and {} more: {}", number, printable(&command)),
        (_, None) => say!(out, "  … and {} more", number),
    }
}

/// Maximum number of objects that a section lists one by one.
const MAX_NAMED: usize = 5;

/// Prints the objects of an app that are suspended or paused, at most [`MAX_NAMED`].
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

/// Prints the ownership of an object: its controllers, its apps, unconfirmed claims and marks.
fn belongs(out: &mut impl Write, belonging: &Ownership<'_>, object: &App) -> io::Result<()> {
    let owners: Vec<String> =
        belonging.owners.iter().map(|key| format!("{} {}", key.kind, key.path())).collect();
    if !owners.is_empty() {
        indented(out, "  ", &format!("controlled by {}", owners.join(", which is controlled by ")))?;
    }
    if let Some(app) = belonging.declares {
        indented(out, "  ", &format!("declares {}", app.app))?;
    }
    for app in &belonging.apps {
        let own = &app.app;
        let home = if own.home == object.app.target { String::new() } else { format!(" of {}", own.home) };
        let revision =
            app.sync.applied.as_deref().map(|revision| format!(", at {}", text::revision(revision)));
        let source = app.source.as_ref().and_then(|source| {
            let place = source.url.clone().or_else(|| source.name.clone())?;
            let path = source.path.as_ref().map(|path| format!("{path} of ")).unwrap_or_default();
            Some(format!(", from {path}{place}"))
        });
        let line = format!("{own}{home}{}{}", source.unwrap_or_default(), revision.unwrap_or_default());
        indented(out, "  ", &format!("belongs to {line}"))?;
    }
    for app in &belonging.listed {
        indented(
            out,
            "  ",
            &format!("listed by {} (unconfirmed: its labels and annotations do not name that app)", app.app),
        )?;
    }
    for mark in &belonging.marked {
        indented(out, "  ", &format!("marked for {mark}"))?;
    }
    if belonging.apps.is_empty() && belonging.listed.is_empty() && belonging.declares.is_none() {
        say!(out, "  belongs to no known app")?;
    }
    Ok(())
}

/// Returns the declared objects of an app that are not ready, worst first, without the one that its status names.
fn others(app: &App) -> Vec<(ObjectKey, Status, Words)> {
    let is_other = |resource: &&Resource| {
        Some(&resource.key) != app.worst.as_ref() && resource.status != Status::Current
    };
    let others = app.resources.iter().filter(is_other);
    let mut others: Vec<_> = others.map(|it| (it.key.clone(), it.status, it.message.clone())).collect();
    others.sort_by_key(|(_, status, _)| *status);
    others
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

//! `taffrail explain`: from the symptom to the cause, and the command to look further.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use taffrail_apps::view::{Answer, ErrorRow, Explanation, ExplanationList, LinkRow, ObjectName, text};
use taffrail_apps::{App, AppList, Delivery, Lookup, ObjectKey, Objects, Snapshot, declared};
use taffrail_status::{Status, Taffrail};

use crate::cli::{ExplainArguments, ExplainOutput};
use crate::complaint::{Complaint, Exit, written};
use crate::output::{answer, printable, screen, style, wrapped};
use crate::program;
use crate::source::{Fleet, asked};

use super::get::complaints;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, Complaint> {
    let names: Vec<Name<'_>> = arguments.what.iter().map(|text| Name::parse(text)).collect();
    let more = |snapshot: &Snapshot, namespace: &str| {
        let namespace = arguments.namespace.as_deref().unwrap_or(namespace);
        names.iter().flat_map(|name| name.keys(snapshot, namespace)).collect()
    };
    let mut asked = asked(None, &arguments.declared, &arguments.grouping);
    asked.objects.extend(names.iter().filter_map(Name::key).cloned());
    let fleet = Fleet::read_with(&arguments.source, &asked, &more)?;
    let list = fleet.apps(&arguments.declared);
    let (apps, missing) = choose(&fleet, &list, &names, arguments);

    let errors: Vec<ErrorRow> = list.errors.iter().map(ErrorRow::from).collect();
    // Commands are for the clusters that were asked, and name them where that is not the usual one.
    let source = &arguments.source;
    let is_named = source.from.is_empty() && (source.all_contexts || !source.context.is_empty());
    let context = |app: &App| {
        // What declares an app may be in another cluster than its objects.
        let is_there = app.resources.iter().any(|resource| Some(&resource.key) == app.worst.as_ref());
        is_named.then(|| if is_there { app.app.target.clone() } else { app.app.home.clone() })
    };
    let explanations: Vec<_> =
        apps.iter().map(|app| (app, Explanation::new(app, context(app).as_deref()))).collect();
    written(match arguments.output {
        ExplainOutput::Table => people(&explanations, &fleet, missing.is_empty()),
        form => {
            document(form, explanations.into_iter().map(|(_, it)| it).collect(), errors, &names, arguments)
        }
    })?;

    let mut exit = Exit::Yes;
    let of_errors = complaints(&list.errors);
    let in_answer = arguments.output != ExplainOutput::Table;
    for complaint in of_errors {
        if !in_answer {
            complaint.print();
        }
        exit = exit.max(complaint.exit);
    }
    for complaint in fleet.complaints.iter().chain(&missing) {
        complaint.print();
        exit = exit.max(complaint.exit);
    }
    if arguments.exit_status && apps.iter().any(|app| app.effective() != Status::Current) {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

/// What was asked for by name.
enum Name<'t> {
    /// `group/Kind/namespace/name`
    Key(ObjectKey),
    /// Up to three words; which of them are what depends on what there is.
    Words { text: &'t str, words: Vec<&'t str> },
}

impl<'t> Name<'t> {
    fn parse(text: &'t str) -> Name<'t> {
        match text.parse() {
            Ok(key) => Name::Key(key),
            Err(_) => Name::Words { text, words: text.split('/').collect() },
        }
    }

    fn key(&self) -> Option<&ObjectKey> {
        match self {
            Name::Key(key) => Some(key),
            Name::Words { .. } => None,
        }
    }

    /// The keys that it may stand for in a cluster of which not all was read.
    fn keys(&self, snapshot: &Snapshot, namespace: &str) -> Vec<ObjectKey> {
        let (Name::Words { words, .. }, Some(catalog)) = (self, snapshot.kinds()) else { return Vec::new() };
        let &[kind, name] = words.as_slice() else { return Vec::new() };
        let of_kind =
            catalog.iter().filter(|served| is_kind(kind, &served.group, &served.kind, &served.plural));
        let keys = of_kind.map(|served| {
            let namespace = if served.namespaced { namespace } else { "" };
            ObjectKey::new(&*served.group, &*served.kind, namespace, name)
        });
        keys.filter(|key| matches!(snapshot.get(key), Lookup::Unobserved(_))).collect()
    }

    fn is_app(&self, app: &App) -> bool {
        let Name::Words { words, .. } = self else { return false };
        let own = &app.app;
        match *words.as_slice() {
            [name] => name == own.name || name == app.key.to_string(),
            [namespace, name] => namespace == own.namespace && name == own.name,
            [delivery, namespace, name] => {
                delivery == own.delivery.as_str() && namespace == own.namespace && name == own.name
            }
            _ => false,
        }
    }

    fn is_object(&self, key: &ObjectKey, namespace: Option<&str>) -> bool {
        match self {
            Name::Key(own) => own == key,
            Name::Words { words, .. } => match words.as_slice() {
                &[kind, name] => {
                    name == key.name
                        && (key.namespace.is_empty() || namespace.is_none_or(|it| it == key.namespace))
                        && is_kind(kind, &key.group, &key.kind, &plural(&key.kind))
                }
                _ => false,
            },
        }
    }
}

/// What people call kinds for short.
const SHORT: [(&str, &str); 22] = [
    ("cj", "CronJob"),
    ("cm", "ConfigMap"),
    ("crd", "CustomResourceDefinition"),
    ("deploy", "Deployment"),
    ("ds", "DaemonSet"),
    ("ep", "Endpoints"),
    ("hpa", "HorizontalPodAutoscaler"),
    ("hr", "HelmRelease"),
    ("ing", "Ingress"),
    ("ks", "Kustomization"),
    ("netpol", "NetworkPolicy"),
    ("no", "Node"),
    ("ns", "Namespace"),
    ("pdb", "PodDisruptionBudget"),
    ("po", "Pod"),
    ("pv", "PersistentVolume"),
    ("pvc", "PersistentVolumeClaim"),
    ("rs", "ReplicaSet"),
    ("sa", "ServiceAccount"),
    ("sc", "StorageClass"),
    ("sts", "StatefulSet"),
    ("svc", "Service"),
];

/// Whether a word, alone or followed by the group or a part of it, names a kind.
fn is_kind(word: &str, group: &str, kind: &str, plural: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let (own, of_group) = word.split_once('.').map_or((word.as_str(), ""), |(own, group)| (own, group));
    let is_short = SHORT.iter().any(|(short, long)| *short == own && *long == kind);
    (own == kind.to_ascii_lowercase() || own == plural || is_short) && group.starts_with(of_group)
}

fn plural(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) || kind.ends_with("ch") => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// The apps to explain: those that were asked for, or those that are not ready; and what was not found.
fn choose(
    fleet: &Fleet,
    list: &AppList,
    names: &[Name<'_>],
    arguments: &ExplainArguments,
) -> (Vec<App>, Vec<Complaint>) {
    let namespace = arguments.namespace.as_deref();
    let is_inside = |app: &&App| namespace.is_none_or(|namespace| namespace == app.app.namespace);
    if !arguments.declared.is_empty() {
        return (list.apps.clone(), Vec::new());
    }
    if names.is_empty() {
        let is_unwell = |app: &&App| app.effective() != Status::Current;
        let mut apps: Vec<App> = list.apps.iter().filter(is_inside).filter(is_unwell).cloned().collect();
        apps.sort_by_key(App::effective);
        return (apps, Vec::new());
    }
    let mut chosen = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let apps: Vec<App> =
            list.apps.iter().filter(is_inside).filter(|app| name.is_app(app)).cloned().collect();
        let found = if apps.is_empty() { objects(fleet, list, name, namespace) } else { apps };
        if found.is_empty() {
            let text = match name {
                Name::Key(key) => key.to_string(),
                Name::Words { text, .. } => (*text).to_owned(),
            };
            let complaint = Complaint::unreadable(format!("no app and no object '{text}' was found"));
            missing.push(complaint.hint(format!("'{} get apps -o name' lists the apps", program::name())));
        }
        chosen.extend(found);
    }
    (chosen, missing)
}

/// The objects of that name, each as an app of its own.
fn objects(fleet: &Fleet, list: &AppList, name: &Name<'_>, namespace: Option<&str>) -> Vec<App> {
    let mut found = Vec::new();
    for snapshot in &fleet.snapshots {
        let here = list.apps.iter().filter(|app| app.app.target == snapshot.name());
        let declared_here = here.flat_map(|app| app.resources.iter().map(|resource| &resource.key));
        let there = snapshot.all().map(|observed| observed.key);
        let named = declared_here.chain(there).chain(name.key());
        let mut keys: Vec<&ObjectKey> = named.filter(|key| name.is_object(key, namespace)).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let list = declared(&[snapshot], std::slice::from_ref(key), &Taffrail, fleet.now);
            found.extend(list.apps);
        }
    }
    found
}

fn document(
    form: ExplainOutput,
    mut explanations: Vec<Explanation>,
    errors: Vec<ErrorRow>,
    names: &[Name<'_>],
    arguments: &ExplainArguments,
) -> io::Result<()> {
    // Who asks for one thing gets it as it is, unless there are several of it.
    let is_single = names.len() == 1 || !arguments.declared.is_empty();
    let text = match (explanations.pop(), explanations.is_empty() && is_single) {
        (Some(only), true) => serialized(form, &Answer::new(only, errors))?,
        (last, _) => {
            explanations.extend(last);
            serialized(form, &ExplanationList::new(explanations, errors))?
        }
    };
    answer::programs().write_all(text.as_bytes())
}

fn serialized(form: ExplainOutput, answer: &impl serde::Serialize) -> io::Result<String> {
    match form {
        ExplainOutput::Yaml => serde_saphyr::to_string(answer).map_err(io::Error::other),
        _ => Ok(serde_json::to_string_pretty(answer)? + "\n"),
    }
}

fn people(explanations: &[(&App, Explanation)], fleet: &Fleet, is_all: bool) -> io::Result<()> {
    if explanations.is_empty() {
        return if is_all { writeln!(io::stderr(), "Nothing found that is not ready.") } else { Ok(()) };
    }
    let several = fleet.snapshots.len() > 1;
    let mut out = answer::people();
    for (place, (app, explanation)) in explanations.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        explain(&mut out, app, explanation, several, fleet.now)?;
    }
    out.flush()
}

fn explain(
    out: &mut impl Write,
    app: &App,
    explanation: &Explanation,
    several: bool,
    now: Timestamp,
) -> io::Result<()> {
    let bold = Style::new().bold();
    let subject = match (app.app.delivery, app.resources.as_slice()) {
        (Delivery::Taffrail, [only]) => object(&ObjectName::from(&only.key)),
        (Delivery::Taffrail, objects) => format!("{} objects", objects.len()),
        _ => app.app.to_string(),
    };
    let cluster = if several { format!(" in {}", app.app.target) } else { String::new() };
    let colour = style(app.effective());
    let subject = printable(&subject);
    let health = text::health(app, now);
    writeln!(out, "{bold}{subject}{bold:#}{} is {colour}{health}{colour:#}", printable(&cluster))?;
    let Some(cause) = explanation.chain.last() else {
        return match &*explanation.message {
            "" => Ok(()),
            message => writeln!(out, "{}", wrapped("  ", message, screen())),
        };
    };
    writeln!(out)?;
    writeln!(out, "{bold}Cause{bold:#}")?;
    let reason = if cause.reason.is_empty() { String::new() } else { format!(": {}", cause.reason) };
    let screen = screen();
    let subject = format!("{}{reason}{}", object(&cause.object), since(cause, now));
    writeln!(out, "{}", wrapped("  ", &subject, screen))?;
    writeln!(out, "{}", wrapped("  ", &explanation.message, screen))?;
    for fact in cause.facts.iter().filter(|fact| **fact != explanation.message) {
        writeln!(out, "{}", wrapped("  - ", fact, screen))?;
    }
    if explanation.chain.len() > 1 {
        writeln!(out)?;
        writeln!(out, "{bold}How it shows{bold:#}")?;
        for (depth, link) in explanation.chain.iter().enumerate() {
            let branch = if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
            let status: Status = link.status.parse().unwrap_or(Status::Unknown);
            let colour = style(status);
            let message = if depth + 1 == explanation.chain.len() { "" } else { &*link.message };
            let dash = if message.is_empty() { "" } else { ": " };
            let name = object(&link.object);
            writeln!(
                out,
                "  {branch}{}  {colour}{}{colour:#}{dash}{}",
                printable(&name),
                status.word(),
                printable(&text::line(message)),
            )?;
        }
    }
    let others = others(app);
    if !others.is_empty() {
        writeln!(out)?;
        writeln!(out, "{bold}Not ready as well{bold:#}")?;
        writeln!(out, "  {others}")?;
    }
    writeln!(out)?;
    writeln!(out, "{bold}Look further{bold:#}")?;
    explanation.next.iter().try_for_each(|command| writeln!(out, "  {command}"))
}

/// How many other declared objects are not ready: `2 Failed, 1 InProgress`.
fn others(app: &App) -> String {
    let others = app.resources.iter().filter(|resource| Some(&resource.key) != app.worst.as_ref());
    let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
    for resource in others.filter(|resource| resource.status != Status::Current) {
        *counts.entry(resource.status).or_default() += 1;
    }
    counts.iter().map(|(status, count)| format!("{count} {}", status.word())).collect::<Vec<_>>().join(", ")
}

fn object(name: &ObjectName) -> String {
    let slash = if name.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", name.kind, name.namespace, name.name)
}

fn since(link: &LinkRow, now: Timestamp) -> String {
    let since: Option<Timestamp> = link.since.as_ref().and_then(|since| since.parse().ok());
    let what = if link.status == Status::Terminating.as_str() { "being deleted" } else { "not ready" };
    since.map(|since| format!(", {what} since {}", text::ago(since, now))).unwrap_or_default()
}

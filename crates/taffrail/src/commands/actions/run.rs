//! `taffrail action`: plans, shows and writes the changes of an action.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write};

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use taffrail_api::API_VERSION;
use taffrail_apps::verbs::{DiffLine, Patch};
use taffrail_cluster::WriteError;
use taffrail_object::json::OwnedDocument;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_rules::Origin;
use taffrail_rules::lua::{Action, Change, LuaProblem, Operation};

use super::arguments::{ActionArguments, ActionOutput};
use super::creating::{is_allowed, is_risky};
use super::sites::{self, Reach, Site, Sites};
use super::writing::{create, in_time, named, write_parts};
use super::{OF_CLUSTER, Offer, Scripts, failing};
use crate::commands::guard;
use crate::commands::verbs::{DryRun, lines};
use crate::complaint::{Complaint, Exit, chain, written};
use crate::output::{answer, printable};
use crate::runtime::block_on;
use crate::source;
use crate::{emit, phrase, say};

/// Maximum number of attempts when another client changes the object at the same time.
const MAX_TRIES: usize = 5;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: &'static str,
    kind: &'static str,
    action: String,
    /// `none`, `server` or `client`.
    dry_run: &'static str,
    items: Vec<Row>,
}

/// The result of an action for one object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    cluster: String,
    object: ObjectKey,
    /// The origin of the action's script: `user`, `cluster` or `shipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    /// The object in the cluster that contains the script, for a script of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    script_of: Option<String>,
    /// `Done`, `Unchanged`, `Refused`, `Error`; of dry runs `Planned` and `Accepted`.
    result: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    changes: Vec<ChangeRow>,
}

#[derive(Serialize)]
struct ChangeRow {
    operation: &'static str,
    object: ObjectKey,
    /// A JSON merge patch, or the new object.
    body: Value,
    written: bool,
}

/// A single write.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// A patch of the object itself.
    Patch(Patch),
    Create {
        key: ObjectKey,
        object: Value,
    },
}

/// The action on one object.
struct Task<'s> {
    site: &'s Site,
    key: ObjectKey,
    chosen: Chosen,
    steps: Vec<Step>,
    row: Row,
}

/// The script and the name of the chosen action.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chosen {
    origin: Origin,
    place: usize,
    /// The name by which the script knows it.
    name: String,
    parameters: BTreeMap<String, String>,
}

pub(crate) fn run(arguments: &ActionArguments) -> Result<Exit, Complaint> {
    let which = &arguments.which;
    if !which.source.from.is_empty() && arguments.dry_run != DryRun::Client {
        let complaint = Complaint::usage("a dump cannot be changed");
        return Err(complaint.hint("--dry-run=client shows what would be written"));
    }
    let scripts = Scripts::read(which.rules.0.as_deref())?;
    let Sites { sites, complaints } = Sites::read(which)?;
    let now = which.source.now.unwrap_or_else(Timestamp::now);
    let mut exit = Exit::Yes;
    for complaint in &complaints {
        complaint.print();
        exit = exit.max(complaint.exit);
    }
    let (what, of, meant) = match which.all_namespaces {
        true => {
            let named = |site: &Site| format!("{} in {}", site.key().path(), site.cluster);
            (arguments.action.clone(), "objects", sites.iter().map(named).collect())
        }
        false => {
            let clusters: Vec<String> = sites.iter().map(|site| site.cluster.clone()).collect();
            (format!("{} in", arguments.action), "clusters", clusters)
        }
    };
    guard::confirm(&what, of, &meant, arguments.yes, arguments.dry_run, || ())?;
    let mut rows = Vec::new();
    let mut tasks = Vec::new();
    for site in &sites {
        let key = site.key();
        match plan(site, &scripts, arguments, now) {
            Ok((chosen, steps)) => {
                let row = row(site, &key, Some(&chosen));
                tasks.push(Task { site, key, chosen, steps, row });
            }
            Err(refusal) => {
                refusal.print();
                exit = exit.max(refusal.exit);
                let result = if refusal.exit == Exit::Usage { "Refused" } else { "Error" };
                let (message, hint) = (refusal.to_string(), refusal.hint);
                rows.push(Row { result, message, hint, ..row(site, &key, None) });
            }
        }
    }
    let writes = |task: &Task<'_>| {
        !task.steps.is_empty() && task.site.live.is_some() && arguments.dry_run == DryRun::None
    };
    let is_of_cluster = |task: &Task<'_>| task.chosen.origin == Origin::Cluster && writes(task);
    if !arguments.yes && !may_ask(arguments) && tasks.iter().any(is_of_cluster) {
        let what =
            format!("{} is a script of the cluster, and would write with your rights", arguments.action);
        let hint = "check with --dry-run=client, then confirm with --yes";
        return Err(Complaint::usage(what).hint(hint));
    }
    for mut task in tasks {
        task.show(arguments)?;
        if is_of_cluster(&task) && !arguments.yes && !is_meant(arguments)? {
            task.row.result = "Refused";
            exit = exit.max(Exit::Usage);
            rows.push(task.row);
            continue;
        }
        let outcome = match arguments.dry_run {
            _ if task.steps.is_empty() => Ok("Unchanged"),
            DryRun::Client => Ok("Planned"),
            DryRun::None | DryRun::Server => block_on(task.write(&scripts, arguments, now))?,
        };
        match outcome {
            Ok(result) => task.row.result = result,
            Err(failed) => {
                failed.print();
                exit = exit.max(failed.exit);
                task.row.message = failed.to_string();
                task.row.hint = failed.hint;
                task.say_written(arguments)?;
            }
        }
        task.say(arguments)?;
        rows.push(task.row);
    }
    if arguments.output == ActionOutput::Json {
        let document = Document {
            api_version: API_VERSION,
            kind: "ActionRun",
            action: arguments.action.clone(),
            dry_run: arguments.dry_run.as_str(),
            items: rows,
        };
        let text = serde_json::to_string_pretty(&document).map_err(io::Error::from);
        written(text.and_then(|text| emit!(answer::programs(), "{text}")))?;
    }
    source::print_requests(which.source.verbose, sites::clusters(&sites));
    Ok(exit)
}

/// Returns true if there is a terminal to ask at.
fn may_ask(arguments: &ActionArguments) -> bool {
    arguments.output == ActionOutput::Text && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for confirmation of the changes shown.
fn is_meant(arguments: &ActionArguments) -> Result<bool, Complaint> {
    answer::tell(phrase!("Run the cluster's script {}? [y/N] ", printable(&arguments.action)));
    let mut said = String::new();
    let read = io::stdin().read_line(&mut said);
    read.map_err(|error| Complaint::unreadable("cannot read the answer").because(&error))?;
    Ok(matches!(said.trim(), "y" | "Y" | "yes"))
}

fn row(site: &Site, key: &ObjectKey, chosen: Option<&Chosen>) -> Row {
    let of_cluster = chosen.filter(|chosen| chosen.origin == Origin::Cluster);
    Row {
        cluster: site.cluster.clone(),
        object: key.clone(),
        origin: chosen.map(|chosen| chosen.origin.as_str()),
        script_of: of_cluster.and_then(|chosen| Some(site.scripts.get(chosen.place)?.called.clone())),
        result: "Error",
        message: String::new(),
        hint: None,
        changes: Vec::new(),
    }
}

/// Chooses the action and computes its writes.
fn plan(
    site: &Site,
    scripts: &Scripts,
    arguments: &ActionArguments,
    now: Timestamp,
) -> Result<(Chosen, Vec<Step>), Complaint> {
    let invalid = |error: &dyn std::error::Error| Complaint::unreadable(&site.cluster).because(error);
    let object = site.object().map_err(|error| invalid(&error))?;
    let chosen = chosen(site, &object, scripts, arguments, now)?;
    let steps = steps(site, &object, &chosen, scripts, arguments, now)?;
    Ok((chosen, steps))
}

/// Finds the action of the given name and its parameters.
fn chosen(
    site: &Site,
    object: &Object<'_>,
    scripts: &Scripts,
    arguments: &ActionArguments,
    now: Timestamp,
) -> Result<Chosen, Complaint> {
    let (offers, errors) = scripts.offers(&site.scripts, object, now);
    let key = ObjectKey::of(object);
    let (name, place) = (&arguments.action, format!("{} {} in {}", key.kind, key.path(), site.cluster));
    let Some(offer) = offers.iter().find(|offer| offer.called() == *name) else {
        // The failed script may have offered this action.
        let is_of_cluster = name.starts_with(OF_CLUSTER);
        let mut errors = errors.iter();
        if let Some((_, error)) = errors.find(|(origin, _)| (*origin == Origin::Cluster) == is_of_cluster) {
            return Err(failing(&site.cluster, error));
        }
        if let (true, Some(of)) = (is_of_cluster && site.scripts.is_empty(), site.not_for_it.first()) {
            let what = format!("'{name}' is a script of the cluster ({of}) for what its Argo CD delivers");
            let complaint = Complaint::usage(format!("{what}; {place} is not of that"));
            return Err(complaint.hint(
                "an Application there must list the object, and the object carry its mark \
                 (the annotation argocd.argoproj.io/tracking-id, or the label by which it tracks)",
            ));
        }
        let complaint = Complaint::usage(format!("there is no action '{name}' for {place}"));
        let names: Vec<String> = offers.iter().map(Offer::called).collect();
        return Err(match names.as_slice() {
            [] => complaint.hint(format!("no rules define actions for {}; --rules DIR adds some", key.kind)),
            names => complaint.hint(format!("there are: {}", names.join(", "))),
        });
    };
    if offer.action.disabled {
        let complaint = Complaint::usage(format!("'{name}' is disabled for the current state of {place}"));
        let others = offers.iter().filter(|offer| !offer.action.disabled);
        let others: Vec<String> = others.map(Offer::called).collect();
        let others = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
        return Err(complaint.hint(format!("enabled: {others}")));
    }
    let parameters = told(&offer.action, &arguments.parameters)?;
    Ok(Chosen { origin: offer.origin, place: offer.place, name: offer.action.name.clone(), parameters })
}

/// Merges the given parameters with the action's defaults. Returns an error for one that the action does not declare.
fn told(action: &Action, given: &[(String, String)]) -> Result<BTreeMap<String, String>, Complaint> {
    let mut told: BTreeMap<String, String> = (action.params.iter())
        .filter(|parameter| !parameter.default.is_empty())
        .map(|parameter| (parameter.name.clone(), parameter.default.clone()))
        .collect();
    for (name, value) in given {
        // A script that declares no parameters may take any.
        if !action.params.is_empty() && !action.params.iter().any(|parameter| parameter.name == *name) {
            let names: Vec<&str> = action.params.iter().map(|parameter| parameter.name.as_str()).collect();
            let complaint = Complaint::usage(format!("'{}' has no parameter '{name}'", action.name));
            return Err(complaint.hint(format!("parameters: {}", names.join(", "))));
        }
        told.insert(name.clone(), value.clone());
    }
    Ok(told)
}

/// Runs the chosen action and returns its writes.
fn steps(
    site: &Site,
    object: &Object<'_>,
    chosen: &Chosen,
    scripts: &Scripts,
    arguments: &ActionArguments,
    now: Timestamp,
) -> Result<Vec<Step>, Complaint> {
    let name = &arguments.action;
    let scripts = scripts.of(chosen.origin, &site.scripts).into_iter().nth(chosen.place);
    let answer = scripts.map(|scripts| scripts.run(&chosen.name, object, &chosen.parameters, now));
    let changes = match answer {
        Some(Ok(changes)) => changes,
        Some(Err(error)) if matches!(error.problem, LuaProblem::Raised(_)) => {
            let complaint = Complaint::usage(format!("'{name}' refuses: {}", error.problem));
            let line = error.line.map(|line| format!(" on line {line}")).unwrap_or_default();
            return Err(complaint.hint(format!("raised in {}{line}", error.script)));
        }
        Some(Err(error)) => return Err(failing(&site.cluster, &error)),
        None => Vec::new(),
    };
    let own = ObjectKey::of(object);
    let mut steps = Vec::new();
    for Change { operation, object: after } in changes {
        let key = Object::new((&after).into()).map(|object| ObjectKey::of(&object));
        let mut key = key.map_err(|error| {
            Complaint::unreadable(format!("'{name}' returned a value that is not an object")).because(&error)
        })?;
        match operation {
            Operation::Patch if key == own => {
                let patch = Patch::between(object, &after).map_err(|_| {
                    Complaint::unreadable(format!("{} {} is nested too deeply", own.kind, own.path()))
                })?;
                steps.extend(Some(patch).filter(|patch| !patch.is_empty()).map(Step::Patch));
            }
            Operation::Patch => {
                let what = format!("'{name}' would change {} {}", key.kind, key.path());
                return Err(Complaint::unreadable(what)
                    .hint("an action may change only its own object, and make others"));
            }
            Operation::Create => {
                let is_namespaced = site.is_namespaced(&key);
                if key.namespace.is_empty() && is_namespaced {
                    key.namespace.clone_from(&own.namespace);
                }
                if chosen.origin == Origin::Cluster {
                    let is_inside =
                        is_namespaced && !key.namespace.is_empty() && key.namespace == own.namespace;
                    allow(name, &key, &after, is_inside, &arguments.allow_create)?;
                }
                steps.push(Step::Create { key, object: after });
            }
        }
    }
    Ok(steps)
}

/// Checks that a script of the cluster may create this object.
fn allow(
    action: &str,
    key: &ObjectKey,
    object: &Value,
    is_inside: bool,
    allowed: &[String],
) -> Result<(), Complaint> {
    let what = format!("'{action}' would make {} {}", key.kind, named(key, object));
    if !is_inside {
        let complaint = Complaint::unreadable(what);
        return Err(
            complaint.hint("a script of the cluster may make objects only in the namespace of its object")
        );
    }
    if is_risky(key, object) && !is_allowed(key, allowed) {
        let complaint = Complaint::unreadable(format!("{what}, which may run code or grant rights"));
        return Err(complaint.hint(format!("--allow-create {} lets a script of the cluster do so", key.kind)));
    }
    Ok(())
}

impl Site {
    fn is_namespaced(&self, key: &ObjectKey) -> bool {
        match self.live.as_ref().and_then(|reach| reach.discovery.kind(&key.group, &key.kind)) {
            Some(served) => served.namespaced,
            None => is_namespaced(&key.group, &key.kind).unwrap_or(true),
        }
    }
}

impl Task<'_> {
    /// Prints the changes, and records them for the document.
    fn show(&mut self, arguments: &ActionArguments) -> Result<(), Complaint> {
        let own = self.key.clone();
        self.row.changes = (self.steps.iter())
            .map(|step| match step {
                Step::Patch(patch) => {
                    ChangeRow { operation: "patch", object: own.clone(), body: patch.tree(), written: false }
                }
                Step::Create { key, object } => ChangeRow {
                    operation: "create",
                    object: key.clone(),
                    body: object.clone(),
                    written: false,
                },
            })
            .collect();
        if arguments.output != ActionOutput::Text {
            return Ok(());
        }
        let mut out = answer::people();
        let place = printable(&self.site.cluster);
        let bold = Style::new().bold();
        if let (Some(of), false) = (&self.row.script_of, self.steps.is_empty()) {
            written(say!(
                out,
                "{} is a script of the cluster: {} in {}",
                printable(&arguments.action),
                printable(of),
                place
            ))?;
        }
        for step in &self.steps {
            written(match step {
                Step::Patch(patch) => say!(
                    out,
                    "{}{} {}{:#} in {}",
                    bold,
                    printable(&self.key.kind),
                    printable(&self.key.path()),
                    bold,
                    place
                )
                .and_then(|()| lines(&mut out, &patch.lines())),
                Step::Create { key, object } => {
                    let text = serde_saphyr::to_string(object).unwrap_or_default();
                    let new: Vec<DiffLine> =
                        text.lines().map(|line| DiffLine::Added(line.to_owned())).collect();
                    say!(
                        out,
                        "{}{} {}{:#} in {}, new",
                        bold,
                        printable(&key.kind),
                        printable(&named(key, object)),
                        bold,
                        place
                    )
                    .and_then(|()| lines(&mut out, &new))
                }
            })?;
        }
        written(out.flush())
    }

    /// Sends all steps in order. With several steps, or a script of the cluster, a dry run of all of them comes first.
    async fn write(
        &mut self,
        scripts: &Scripts,
        arguments: &ActionArguments,
        now: Timestamp,
    ) -> Result<&'static str, Complaint> {
        let Some(reach) = &self.site.live else { return Ok("Planned") };
        let dry_run = arguments.dry_run == DryRun::Server;
        // A single step needs no dry run: the write itself is refused or done.
        let tries_first = self.steps.len() > 1 || self.chosen.origin == Origin::Cluster;
        let rounds: &[bool] = if dry_run {
            &[true]
        } else if tries_first {
            &[true, false]
        } else {
            &[false]
        };
        for &dry_run in rounds {
            for at in 0..self.steps.len() {
                let mut is_written = false;
                let outcome = match &self.steps[at] {
                    Step::Patch(patch) => {
                        let patch = patch.clone();
                        self.patch(patch, scripts, arguments, now, dry_run, &mut is_written).await
                    }
                    Step::Create { key, object } => {
                        let made = create(self.site, reach, key, object, dry_run).await;
                        is_written = made.is_ok() && !dry_run;
                        made
                    }
                };
                let row = &mut self.row.changes[at];
                row.written = is_written;
                if let Some(name) = outcome? {
                    row.object.name = name;
                }
            }
        }
        Ok(if dry_run { "Accepted" } else { "Done" })
    }

    /// Patches the object itself. On a conflict it reads the object again and reruns the action, up to [`MAX_TRIES`]
    /// times.
    async fn patch(
        &self,
        patch: Patch,
        scripts: &Scripts,
        arguments: &ActionArguments,
        now: Timestamp,
        dry_run: bool,
        is_written: &mut bool,
    ) -> Result<Option<String>, Complaint> {
        let Some(reach) = &self.site.live else { return Ok(None) };
        let name = format!("{} {}", self.key.kind, self.key.path());
        let of_write = |error: &WriteError| {
            Complaint::unreadable(format!("cannot {} {name}", arguments.action))
                .because(error)
                .hint(error.hint())
        };
        let object = self.site.object().map_err(|error| Complaint::unreadable(&name).because(&error))?;
        let mut based = patch.clone().based_on(&object);
        for _ in 0..MAX_TRIES {
            let conflict = match write_parts(reach, &self.key, &based, dry_run, is_written).await {
                Ok(dropped) if dropped.is_empty() => return Ok(None),
                Ok(dropped) => {
                    let what = format!("{name}: the server did not keep {}", dropped.join(", "));
                    return Err(Complaint::unreadable(what).hint("a webhook may have set it back"));
                }
                Err(error @ WriteError::Conflict { .. }) => error,
                Err(error) => return Err(of_write(&error)),
            };
            let fresh = self.read_again(reach).await?;
            let again =
                Object::new(fresh.root()).map_err(|error| Complaint::unreadable(&name).because(&error))?;
            let chosen = chosen(self.site, &again, scripts, arguments, now)?;
            let steps = steps(self.site, &again, &chosen, scripts, arguments, now)?;
            let fresh = steps.into_iter().find_map(|step| match step {
                Step::Patch(fresh) => Some(fresh),
                Step::Create { .. } => None,
            });
            let is_same = chosen.origin == self.chosen.origin && chosen.place == self.chosen.place;
            let same = fresh.filter(|fresh| is_same && fresh.is_same(&patch));
            let Some(same) = same else {
                let complaint =
                    Complaint::unreadable(format!("{name} was changed meanwhile: {}", chain(&conflict)));
                return Err(complaint.hint("check the object, and try again if the change is still needed"));
            };
            based = same.based_on(&again);
        }
        let complaint = Complaint::unreadable(format!("{name} is changed again and again by another client"));
        Err(complaint.hint("try again later"))
    }

    async fn read_again(&self, reach: &Reach) -> Result<OwnedDocument, Complaint> {
        let name = format!("{} {}", self.key.kind, self.key.path());
        let cluster = in_time(&reach.cluster);
        let read =
            cluster.get(&reach.resource, Some(&self.key.namespace), &self.key.name, Projection::Full).await;
        let found = read.map_err(|error| Complaint::unreadable(&name).because(&error))?;
        found.ok_or_else(|| Complaint::unreadable(format!("{name} was deleted meanwhile")))
    }

    /// Describes the writes that were made.
    fn written(&self) -> Vec<String> {
        let written = self.row.changes.iter().filter(|change| change.written);
        let told = written.map(|change| match change.operation {
            "create" => {
                let ObjectKey { kind, namespace, name, .. } = &change.object;
                let slash = if namespace.is_empty() { "" } else { "/" };
                format!("created {kind} {namespace}{slash}{name}")
            }
            _ => format!("changed {} {}", self.key.kind, self.key.path()),
        });
        told.collect()
    }

    /// Prints the writes made before a failure.
    fn say_written(&self, arguments: &ActionArguments) -> Result<(), Complaint> {
        let done = self.written();
        if arguments.output != ActionOutput::Text || done.is_empty() {
            return Ok(());
        }
        let text = format!("written before it failed: {}", done.join(", "));
        written(say!(answer::people(), "{}", printable(&text)))
    }

    /// Prints the result of the action.
    fn say(&self, arguments: &ActionArguments) -> Result<(), Complaint> {
        if arguments.output != ActionOutput::Text {
            return Ok(());
        }
        let own = format!("{} {}", self.key.kind, self.key.path());
        let text = match self.row.result {
            "Planned" => "nothing was sent (dry run)".to_owned(),
            "Accepted" => "the server accepts the change; nothing was written (dry run)".to_owned(),
            "Unchanged" => format!("{own} already has this state: nothing to do"),
            "Done" => format!("{}: {}", arguments.action, self.written().join(", ")),
            _ => return Ok(()),
        };
        written(say!(answer::people(), "{}", printable(&text)))
    }
}

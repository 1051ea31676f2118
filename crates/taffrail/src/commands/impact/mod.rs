//! `taffrail impact`: says what a change of a Git repository does to the objects of clusters.

mod arguments;
mod delivered;
mod folder;
mod git;
mod markdown;
mod print;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::{AppOfHome, DiffResult, DiffRow, ErrorRow, ImpactEffect, ImpactList, ImpactRow};
use taffrail_apps::{App, AppList, Objects as _, ReadQuery, Snapshot};
use taffrail_cluster::{FIELD_MANAGER, OpenApiCache};
use taffrail_object::ObjectKey;
use taffrail_observe::{FleetSnapshot, TimeBudget, TimeLimits};

pub(crate) use arguments::ImpactArguments;
use arguments::ImpactOutput;
use delivered::{Concern, Delivered};
use folder::{Extent, Folder, Tree};
use git::{Commits, GitError, TreeFile};

use super::diff::{Before, ClusterDiff, Ignored, Question, ReadFile, ToolMarks, ask, rules};
use super::get;
use crate::cli::{ListOutput, Pdb, SourceArguments, ViewArguments};
use crate::command_error::{CommandError, Exit, advise, written};
use crate::jq_worker::JqWorker;
use crate::output::answer::Console;
use crate::reasons::UNTOLD;
use crate::rule_source::RuleSource;
use crate::source;

/// The time for one cluster: each object takes two requests or more.
const PATIENCE: Duration = Duration::from_secs(300);

/// The endings of files of manifests.
const MANIFESTS: Extent = Extent::Below(&["yaml", "yml", "json"]);

pub(crate) fn run(arguments: &ImpactArguments, console: &Console) -> Result<Exit, CommandError> {
    let change = Change::read(arguments)?;
    let mut answer = Answer::default();
    if !change.paths.is_empty() {
        let source = arguments.clusters.source(PATIENCE);
        let (pdb, rules) = (Pdb::Advisory, RuleSource::default());
        let view = ViewArguments { pdb, rules, watch: false, source: arguments.clusters.source(PATIENCE) };
        let fleet = source::read(&view, &ReadQuery { follow: true, ..ReadQuery::default() }, console)?;
        for problem in &fleet.problems {
            CommandError::from(problem).print(console);
            answer.is_incomplete = true;
        }
        let apps = fleet.apps(&[]);
        answer.errors.extend(apps.errors.iter().map(ErrorRow::from));
        let plan = Plan::of(&change, &fleet, &apps, arguments)?;
        answer.take(plan, &fleet, &source)?;
    }
    let Answer { mut rows, mut errors, warnings, is_incomplete, makes_objects } = answer;
    rows.sort_by(|one, other| (&one.cluster, &one.app).cmp(&(&other.cluster, &other.app)));
    // A cluster that cannot be asked says so for its apps, and for its objects.
    let mut told = HashSet::new();
    errors.retain(|error| told.insert((error.cluster.clone(), error.scope.clone(), error.message.clone())));
    let list = ImpactList::of(rows, errors);
    written(match arguments.output {
        ImpactOutput::Json => get::document(ListOutput::Json, &list, console),
        ImpactOutput::Text => print::text(&list, console),
        ImpactOutput::Markdown => markdown::comment(&change.commits, &list, &warnings, console),
    })?;
    for warning in &warnings {
        warning.print(console);
    }
    for ErrorRow { cluster, scope, message, .. } in &list.errors {
        CommandError::unreadable(format_args!("{scope}: {message}"))
            .print_about(&format!("{cluster}: "), console);
    }
    if makes_objects {
        let hint = "render what another tool makes by that tool: kustomize build deploy/eu | taffrail diff -f - --context eu";
        advise(hint, console);
    }
    let is_unknown = list.items.iter().any(|row| row.effect == ImpactEffect::Unknown);
    Ok(if is_incomplete || is_unknown || !list.errors.is_empty() { Exit::Incomplete } else { Exit::Yes })
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> CommandError {
        let hint = error.hint().map(str::to_owned);
        let converted = match error {
            GitError::TooLarge { .. } => CommandError::unreadable(&error),
            _ => CommandError::usage(&error),
        };
        let converted = match std::error::Error::source(&error) {
            Some(source) => converted.with_source(source),
            None => converted,
        };
        converted.maybe_hint(hint)
    }
}

/// The two commits, and what differs between them.
struct Change {
    commits: Commits,
    /// The paths that differ.
    paths: BTreeSet<String>,
    before: Tree,
    after: Tree,
    /// The places of the repository, by its remotes.
    places: BTreeSet<String>,
    /// The branch into which the change goes; `None` if it is not known.
    branch: Option<String>,
}

impl Change {
    fn read(arguments: &ImpactArguments) -> Result<Change, GitError> {
        let commits = git::range(&arguments.range)?;
        git::check(&commits, &arguments.path)?;
        let paths = git::changed(&commits, &arguments.path)?;
        let (before, after) = (Tree::read(&commits.base)?, Tree::read(&commits.after)?);
        let places = git::remotes()?.iter().filter_map(|url| git::place(url)).collect();
        Ok(Change { commits, paths, before, after, places, branch: arguments.branch.clone() })
    }

    /// Returns the branch, tag or commit that an app follows, if the change does not go into it.
    fn other_reference<'a>(&self, app: &'a App) -> Option<&'a str> {
        let branch = self.branch.as_ref()?;
        let followed = app.source.as_ref()?.reference.as_deref()?;
        let name = followed.strip_prefix("refs/heads/").unwrap_or(followed);
        (!matches!(name, "" | "HEAD") && name != branch).then_some(followed)
    }
}

/// A question to one cluster, and what its answer is about.
struct Asked<'a> {
    question: Arc<Question>,
    /// The app whose folder the manifests are; `None` if no app is delivered from the repository.
    app: Option<AskedApp<'a>>,
}

/// An app, and how it is delivered.
struct AskedApp<'a> {
    app: &'a App,
    folder: Folder,
    delivered: Delivered,
}

/// The questions to all clusters.
#[derive(Default)]
struct Plan<'a> {
    /// By the name of the cluster.
    asked: BTreeMap<String, Vec<Asked<'a>>>,
    errors: Vec<ErrorRow>,
    warnings: Vec<CommandError>,
    /// True if a tool makes or changes the objects of an app.
    makes_objects: bool,
}

impl<'a> Plan<'a> {
    fn of(
        change: &Change,
        fleet: &FleetSnapshot,
        apps: &'a AppList,
        arguments: &ImpactArguments,
    ) -> Result<Plan<'a>, CommandError> {
        let asking = Asking {
            ignored: Arc::new(rules(arguments.ignore_rules.as_deref())?),
            jq: Arc::default(),
            schemas: Arc::default(),
            namespace: arguments.default_namespace.clone(),
            masked: arguments.mask_annotation.iter().cloned().collect(),
        };
        let mut plan = Plan::default();
        let mut is_any_delivered = false;
        for app in &apps.apps {
            let snapshot = |name: &str| fleet.snapshots.iter().find(|snapshot| snapshot.name() == name);
            let Some(clusters) = snapshot(&app.app.home).zip(snapshot(&app.app.target)) else { continue };
            let Some(folder) = delivered::folder_of(app, clusters.0, &change.places) else { continue };
            is_any_delivered = true;
            let trees = [&change.before, &change.after];
            let concern = delivered::concern(app, &folder, clusters, &change.paths, trees)?;
            if matches!(concern, Concern::None) {
                continue;
            }
            let name = format!("{}: {}", app.app.target, AppOfHome::from(&app.app));
            if let Some(other) = change.other_reference(app) {
                plan.warn(format!("{name} follows {other}, so the change does not reach it yet"));
                continue;
            }
            if app.suspended {
                plan.warn(format!("{name} is suspended: nothing becomes of its objects until it is resumed"));
            }
            plan.makes_objects |= matches!(concern, Concern::Untold(_));
            match plan.prepare(change, &asking, app, folder, concern)? {
                Ok(asked) => {
                    if asked.app.as_ref().is_some_and(|it| !it.delivered.is_automatic) {
                        plan.warn(format!(
                            "{name} has no automated sync: its objects change when somebody syncs it"
                        ));
                    }
                    plan.ask(&app.app.target, asked);
                }
                Err(message) => plan.errors.push(ErrorRow {
                    cluster: app.app.target.clone(),
                    scope: AppOfHome::from(&app.app).to_string(),
                    reason: UNTOLD.to_owned(),
                    message,
                }),
            }
        }
        if !is_any_delivered {
            let places: Vec<&str> = change.places.iter().map(|place| &**place).collect();
            let places =
                if places.is_empty() { "a repository without remotes".to_owned() } else { places.join(", ") };
            let read = if apps.errors.is_empty() { "" } else { " that could be read" };
            plan.warn(format!(
                "no app{read} is delivered from {places}: the changed manifests are compared with each cluster \
                 (--path names the folder of one)"
            ));
            plan.ask_each(change, fleet, &asking)?;
        }
        Ok(plan)
    }

    /// Prepares the question about an app; `Err` with the reason if there is none.
    fn prepare(
        &self,
        change: &Change,
        asking: &Asking,
        app: &'a App,
        folder: Folder,
        concern: Concern,
    ) -> Result<Result<Asked<'a>, String>, GitError> {
        let delivered = match concern {
            Concern::Delivered(delivered) if app.in_reach => delivered,
            Concern::Untold(why) => return Ok(Err(why)),
            Concern::Delivered(_) | Concern::None => {
                return Ok(Err("its objects are in a cluster that was not asked".to_owned()));
            }
        };
        let files = change.after.read_by_tool(&folder, delivered.extent);
        if files.is_empty() && !(delivered.prunes_all && change.after.has_files(&folder)) {
            let message = format!(
                "no manifests are left in {}: its tool reports an error, and deletes nothing",
                folder.shown()
            );
            return Ok(Err(message));
        }
        let files = match bounded(read(&files))? {
            Ok(files) => files,
            Err(why) => return Ok(Err(why)),
        };
        let is_marked = |file: &ReadFile| has(&file.content, delivered.untold_marker.as_bytes());
        if let Some(file) = files.iter().find(|file| is_marked(file)) {
            return Ok(Err(format!("{} has '{}'", file.path, delivered.untold_marker)));
        }
        let is_changed = |file: &&TreeFile| change.paths.contains(&file.path);
        let before = change.before.read_by_tool(&folder, delivered.extent).into_iter().filter(is_changed);
        let mut before = match bounded(read(&before.collect::<Vec<_>>()))? {
            Ok(files) => files,
            Err(why) => return Ok(Err(why)),
        };
        // What its tool did not read there, it did not have.
        before.retain(|file| !is_marked(file));
        let before = Before { files: before, changed: change.paths.clone(), asks_what_is_left: false };
        let question = asking.about_app(files, before, &delivered);
        Ok(Ok(Asked { question, app: Some(AskedApp { app, folder, delivered }) }))
    }

    fn warn(&mut self, message: String) {
        self.warnings.push(CommandError::unreadable(message).harmless());
    }

    fn ask(&mut self, cluster: &str, asked: Asked<'a>) {
        self.asked.entry(cluster.to_owned()).or_default().push(asked);
    }

    /// Asks each cluster about the manifests that changed.
    fn ask_each(&mut self, change: &Change, fleet: &FleetSnapshot, asking: &Asking) -> Result<(), GitError> {
        let mut others = BTreeSet::new();
        let mut manifests = |tree: &Tree| -> Result<Vec<ReadFile>, GitError> {
            let files = tree.read_by_tool(&Folder::root(), MANIFESTS);
            let files: Vec<&TreeFile> =
                files.into_iter().filter(|file| change.paths.contains(&file.path)).collect();
            let (manifests, more): (Vec<ReadFile>, Vec<ReadFile>) =
                read(&files)?.into_iter().partition(is_manifest);
            others.extend(more.into_iter().map(|file| file.path));
            Ok(manifests)
        };
        let (after, before) = (manifests(&change.after)?, manifests(&change.before)?);
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|path| &**path).collect();
            self.warn(format!("no manifests, so not compared: {}", names.join(", ")));
        }
        if after.is_empty() && before.is_empty() {
            return Ok(());
        }
        let before = Before { files: before, changed: change.paths.clone(), asks_what_is_left: true };
        let question = Arc::new(asking.question(after, before));
        for snapshot in &fleet.snapshots {
            self.ask(snapshot.name(), Asked { question: Arc::clone(&question), app: None });
        }
        Ok(())
    }
}

/// Returns true if a file may be a manifest: values of Helm, its templates and pipelines of CI are YAML, too.
fn is_manifest(file: &ReadFile) -> bool {
    let name = file.path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_of_tool =
        name.starts_with("kustomization") || name.starts_with("chart.") || has(&file.content, b"{{");
    !is_of_tool && has(&file.content, b"apiVersion") && has(&file.content, b"kind")
}

fn has(content: &[u8], text: &[u8]) -> bool {
    content.windows(text.len()).any(|window| window == text)
}

fn read(files: &[&TreeFile]) -> Result<Vec<ReadFile>, GitError> {
    let contents = git::contents(files)?;
    let read = |(file, content): (&&TreeFile, Vec<u8>)| ReadFile { path: file.path.clone(), content };
    Ok(files.iter().zip(contents).map(read).collect())
}

/// Separates the failure of a question that is too large, which concerns one app, from others.
fn bounded<T>(asked: Result<T, GitError>) -> Result<Result<T, String>, GitError> {
    match asked {
        Ok(answer) => Ok(Ok(answer)),
        Err(error @ GitError::TooLarge { .. }) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// The parts that all questions share.
struct Asking {
    ignored: Arc<Ignored>,
    jq: Arc<JqWorker>,
    schemas: Arc<OpenApiCache>,
    namespace: Option<String>,
    masked: BTreeSet<String>,
}

impl Asking {
    fn about_app(&self, files: Vec<ReadFile>, before: Before, delivered: &Delivered) -> Arc<Question> {
        Arc::new(Question {
            namespace: Some(delivered.namespace.clone()),
            manager: delivered.manager.to_owned(),
            marks: delivered.marks.clone(),
            ..self.question(files, before)
        })
    }

    fn question(&self, files: Vec<ReadFile>, before: Before) -> Question {
        Question {
            files,
            before,
            may_be_empty: true,
            namespace: self.namespace.clone(),
            manager: FIELD_MANAGER.to_owned(),
            marks: ToolMarks::default(),
            ignored: Arc::clone(&self.ignored),
            masked: self.masked.clone(),
            includes_additions: false,
            jq: Arc::clone(&self.jq),
            schemas: Arc::clone(&self.schemas),
        }
    }
}

/// The answers of all clusters.
#[derive(Default)]
struct Answer {
    rows: Vec<ImpactRow>,
    errors: Vec<ErrorRow>,
    warnings: Vec<CommandError>,
    /// True if not all clusters could be selected.
    is_incomplete: bool,
    /// True if a tool makes or changes the objects of an app.
    makes_objects: bool,
}

impl Answer {
    /// Asks the clusters, and takes their answers.
    fn take(
        &mut self,
        plan: Plan<'_>,
        fleet: &FleetSnapshot,
        source: &SourceArguments,
    ) -> Result<(), CommandError> {
        let Plan { asked, errors, warnings, makes_objects } = plan;
        self.makes_objects |= makes_objects;
        self.errors.extend(errors);
        self.warnings.extend(warnings);
        let limits = TimeLimits { total: TimeBudget::PerCluster(PATIENCE), request: source.request_timeout };
        let mut members = source::members(source)?.members;
        members.retain(|member| asked.contains_key(&member.name));
        let questions = |name: &str| {
            let asked = asked.get(name).into_iter().flatten();
            asked.map(|it| Arc::clone(&it.question)).collect::<Vec<_>>()
        };
        let answers = source::each(members, limits, |connector| {
            let questions = questions(&connector.member.name);
            async move { (connector.member.name.clone(), ask::compare(&connector, &questions).await) }
        })?;
        for (cluster, compared) in answers {
            let Some(snapshot) = fleet.snapshots.iter().find(|snapshot| snapshot.name() == cluster) else {
                continue;
            };
            for (asked, compared) in asked.get(&cluster).into_iter().flatten().zip(compared) {
                self.take_one(snapshot, asked, compared);
            }
        }
        Ok(())
    }

    fn take_one(&mut self, target: &Snapshot, asked: &Asked<'_>, compared: ClusterDiff) {
        if let Some(what) = compared.left_alone() {
            let what = format!("{}: {what}", compared.cluster);
            self.warnings.push(CommandError::unreadable(what).harmless());
        }
        let ClusterDiff { cluster, rows, errors, warnings, declared, left, same, .. } = compared;
        let app = asked.app.as_ref().map(|it| AppOfHome::from(&it.app.app));
        let folder = asked.app.as_ref().map(|it| it.folder.shown().to_owned());
        let row = |object: ObjectKey, effect: ImpactEffect, diff| ImpactRow {
            cluster: cluster.clone(),
            app: app.clone(),
            folder: folder.clone(),
            differs_already: differs(effect) && same.contains(&object),
            object,
            effect,
            reason: None,
            diff,
        };
        let stays = |key: ObjectKey, reason: String| ImpactRow {
            reason: Some(reason),
            ..row(key, ImpactEffect::Leave, None)
        };
        self.warnings.extend(warnings);
        // What is gone is known only where all manifests were read.
        let gone = match &asked.app {
            Some(it) if !declared.is_empty() || asked.question.files.is_empty() => {
                delivered::removed(it.app, target, &it.delivered, &declared)
            }
            _ => Vec::new(),
        };
        for (key, _) in gone.iter().filter(|(key, stays)| stays.is_none() && has_more(key)) {
            let what = format!(
                "{cluster}: what {} {} contains or delivers may be deleted with it, and is not listed",
                key.kind,
                key.path()
            );
            self.warnings.push(CommandError::unreadable(what).harmless());
        }
        self.rows.extend(rows.into_iter().map(|diff| row(diff.object.clone(), effect_of(&diff), Some(diff))));
        self.rows.extend(gone.into_iter().map(|(key, why)| match why {
            Some(why) => stays(key.clone(), why),
            None => row(key.clone(), ImpactEffect::Delete, None),
        }));
        let nobody = "no app is known that would delete it";
        self.rows.extend(left.into_iter().map(|key| stays(key, nobody.to_owned())));
        self.errors.extend(errors);
    }
}

fn differs(effect: ImpactEffect) -> bool {
    matches!(effect, ImpactEffect::Create | ImpactEffect::Change | ImpactEffect::Restart)
}

/// Returns true if other objects may be deleted with one of this kind.
fn has_more(key: &ObjectKey) -> bool {
    let kinds = [
        ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
        ("argoproj.io", "Application"),
        ("argoproj.io", "ApplicationSet"),
    ];
    kinds.contains(&(&*key.group, &*key.kind))
}

/// Returns what becomes of an object by its comparison.
fn effect_of(diff: &DiffRow) -> ImpactEffect {
    let has_template = diff.object.group == "apps"
        && matches!(&*diff.object.kind, "Deployment" | "StatefulSet" | "DaemonSet");
    let is_of_template = |path: &str| {
        path.strip_prefix("spec.template").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    match diff.result {
        DiffResult::Create => ImpactEffect::Create,
        DiffResult::Change if has_template && diff.fields.iter().any(|it| is_of_template(&it.path)) => {
            ImpactEffect::Restart
        }
        DiffResult::Change => ImpactEffect::Change,
        DiffResult::Unchanged => ImpactEffect::Unchanged,
        DiffResult::Unknown => ImpactEffect::Unknown,
    }
}

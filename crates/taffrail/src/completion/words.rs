//! Finds candidates for the values of arguments in the kubeconfig, and in the clusters or dumps that the command line
//! names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgMatches, Command, FromArgMatches, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use taffrail_apps::command::is_plain;
use taffrail_apps::{App, AppList, AppRef, Delivery, Objects, ReadQuery, Snapshot, SyncState, full_name};
use taffrail_cluster::{Cluster, Discovery, ListRequest, aside};
use taffrail_object::json::OwnedDocument;
use taffrail_object::kinds::names_kind;
use taffrail_object::{Object, Projection};
use taffrail_observe::{ClusterConnector, FleetMembers};
#[cfg(feature = "lua")]
use taffrail_rules::shipped_action_names;
use taffrail_status::Status;

use crate::cli::{GroupingArguments, Pdb, SourceArguments, ViewArguments, What};
use crate::commands::get;
use crate::commands::wait::ClusterArguments;
use crate::config::Config;
use crate::output::answer::Console;
use crate::output::printable;
use crate::rule_source::RuleSource;
use crate::source;

/// Time limit for reading each cluster for candidates.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of candidates from one cluster; further ones are left out, as the next letter narrows them down.
const MOST: usize = 1000;

/// Returns `root` with functions that find candidates at the arguments of all its commands; options are hidden unless
/// `current` begins with a dash. `before` is the line before the word being typed, `current` that word.
pub(super) fn attach(root: Command, before: &[OsString], current: &OsStr) -> Command {
    let home = std::env::home_dir();
    let words = TypedLine::new(&root, before, home).map(Arc::new);
    // As with kubectl, flags are for those who type a dash, or where nothing else can be said.
    let hides_flags = !current.as_encoded_bytes().starts_with(b"-");
    attach_below(root, words.as_ref(), hides_flags)
}

/// Does what [`attach`] does for `command` and the commands below it; `words` is the parsed line, `None` if it tells
/// nothing.
fn attach_below(mut command: Command, words: Option<&Arc<TypedLine>>, hides_flags: bool) -> Command {
    if hides_flags {
        command = command.disable_help_flag(true).disable_version_flag(true).mut_args(|argument| {
            let is_flag = argument.get_long().is_some();
            if is_flag { argument.hide(true) } else { argument }
        });
    }
    let name = command.get_name().to_owned();
    let ids: Vec<String> =
        command.get_arguments().map(|argument| argument.get_id().as_str().to_owned()).collect();
    for id in ids {
        let Some(find) = words_of(&name, &id) else { continue };
        let words = words.cloned();
        let is_context = id == "context";
        let is_ours = matches!(id.as_str(), "status" | "sync" | "columns" | "delivery");
        let find = move |current: &OsStr| {
            let (Some(words), Some(current)) = (&words, current.to_str()) else { return Vec::new() };
            let mut found = find(words, current);
            // What stands before the last of several contexts is the caller's own.
            let own = if is_context { last_of(current, &[',']).0.len() } else { 0 };
            found.retain(|candidate| {
                let word = candidate.get_value().as_encoded_bytes();
                word.starts_with(current.as_bytes()) && (is_ours || is_plain(&word[own..]))
            });
            found
        };
        command = command.mut_arg(&id, |argument| argument.add(ArgValueCompleter::new(find)));
    }
    command.mut_subcommands(|below| attach_below(below, words, hides_flags))
}

/// A function that finds the candidates for the word being typed.
type Find = fn(&TypedLine, &str) -> Vec<CompletionCandidate>;

/// Returns the function that finds the candidates of an argument of a command; `None` if its values cannot be
/// completed.
fn words_of(command: &str, argument: &str) -> Option<Find> {
    Some(match (command, argument) {
        (_, "context") => |line, current| behind_commas(current, line.contexts()),
        (_, "cluster") => |line, _| line.clusters(),
        (_, "namespace" | "in_namespace") => |line, current| line.namespaces(current),
        (_, "kind") => |line, current| line.kinds(last_of(current, &[',']).1, ""),
        (_, "name" | "upstream_of" | "downstream_of") => TypedLine::apps,
        ("explain" | "logs", "what") => TypedLine::apps_or_objects,
        ("status" | "why", "objects") | ("actions" | "action", "object") => TypedLine::objects,
        ("wait", "targets") => TypedLine::targets,
        (_, "delivery") => {
            |_, _| Delivery::ALL.iter().map(|it| CompletionCandidate::new(it.as_str())).collect()
        }
        #[cfg(feature = "lua")]
        ("action", "action") => {
            |_, _| shipped_action_names().into_iter().map(CompletionCandidate::new).collect()
        }
        (_, "sync") => |_, current| {
            let (before, _) = last_of(current, &[',', '!']);
            SyncState::ALL.iter().map(|state| CompletionCandidate::new(format!("{before}{state}"))).collect()
        },
        (_, "status") => |_, current| {
            let (before, _) = last_of(current, &[',', '!']);
            let all = [
                Status::Failed,
                Status::NotFound,
                Status::Unknown,
                Status::Terminating,
                Status::InProgress,
                Status::Current,
            ];
            all.iter().map(|status| CompletionCandidate::new(format!("{before}{}", status.word()))).collect()
        },
        ("get", "columns") => |line, _| {
            let what = line.said("what").first().and_then(|what| What::from_str(what, false).ok());
            let what = what.unwrap_or(What::Apps);
            get::column_names(what).into_iter().map(CompletionCandidate::new).collect()
        },
        _ => return None,
    })
}

/// Splits the value being typed after the last of its characters that is in `between`, and returns both parts: the
/// complete items with that character, and the item being typed.
fn last_of<'c>(current: &'c str, between: &[char]) -> (&'c str, &'c str) {
    current.rfind(between).map_or(("", current), |at| current.split_at(at + 1))
}

/// Returns the candidates for the comma-separated list `current`, in which each of `words` replaces the last item;
/// leaves out those of `words` that the list has already.
fn behind_commas(current: &str, words: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let (before, _) = last_of(current, &[',']);
    let are_told: BTreeSet<&[u8]> = before.split(',').map(str::as_bytes).collect();
    let is_new = |word: &CompletionCandidate| !are_told.contains(word.get_value().as_encoded_bytes());
    words.into_iter().filter(is_new).map(|word| word.add_prefix(before)).collect()
}

/// The parsed command line before the word being typed.
struct TypedLine {
    config: Config,
    view: ViewArguments,
    grouping: Option<GroupingArguments>,
    /// The arguments of the innermost subcommand, as clap parsed them.
    matches: ArgMatches,
}

impl TypedLine {
    /// Parses the line `before`, with the settings as defaults. Returns `None` if it has no subcommand that reads
    /// clusters, or is invalid.
    fn new(root: &Command, before: &[OsString], home: Option<std::path::PathBuf>) -> Option<TypedLine> {
        let lenient = |root: Command| {
            // An option whose value is being typed has none yet.
            let matches = root.clone().ignore_errors(true).try_get_matches_from(before).ok()?;
            let (name, mut inner) = matches.subcommand()?;
            while let Some((_, below)) = inner.subcommand() {
                inner = below;
            }
            Some((name.to_owned(), inner.clone()))
        };
        let (name, matches) = lenient(root.clone())?;
        // Of a command that reads nothing nothing is to be told.
        matches.try_contains_id("context").ok()?;
        let file = matches.try_get_one::<std::path::PathBuf>("config").ok().flatten();
        let config =
            Config::load(root, file.map(std::path::PathBuf::as_path), |name| std::env::var_os(name), home);
        let config = config.unwrap_or_default();
        let (_, matches) = lenient(config.apply(root.clone(), &name, None))?;
        let mut source = match matches.try_contains_id("from") {
            Ok(_) => SourceArguments::from_arg_matches(&matches).ok()?,
            Err(_) => ClusterArguments::from_arg_matches(&matches).ok()?.source(PATIENCE),
        };
        source.verbose = 0;
        source.timeout = source.timeout.min(PATIENCE);
        source.context = config.contexts(&source.context).unwrap_or_default();
        let has_labels = matches.try_contains_id("app_label").is_ok();
        let grouping = has_labels.then(|| GroupingArguments::from_arg_matches(&matches).ok()).flatten();
        let view = ViewArguments { pdb: Pdb::Advisory, rules: RuleSource::default(), watch: false, source };
        Some(TypedLine { config, view, grouping, matches })
    }

    fn namespace(&self) -> Option<String> {
        self.matches.try_get_one::<String>("namespace").ok().flatten().cloned()
    }

    /// Returns the values that the line gives for the argument with the id `argument`, else its defaults; empty if it
    /// has neither.
    fn said(&self, argument: &str) -> Vec<String> {
        let said = self.matches.try_get_raw(argument).ok().flatten();
        said.into_iter().flatten().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn contexts(&self) -> Vec<CompletionCandidate> {
        let fleets = self.config.fleets().map(|(fleet, contexts)| {
            CompletionCandidate::new(fleet).help(Some(printable(&contexts.join(", ")).to_string().into()))
        });
        let contexts = source::contexts(&self.view.source).unwrap_or_default();
        contexts.into_iter().map(CompletionCandidate::new).chain(fleets).collect()
    }

    /// Returns the names of the clusters that the line selects, or of the dumps if it has `--from`, as candidates.
    fn clusters(&self) -> Vec<CompletionCandidate> {
        let names: Vec<String> = if self.view.source.from.is_empty() {
            let members = source::members(&self.view.source).map(|it| it.members).unwrap_or_default();
            members.into_iter().map(|member| member.name).collect()
        } else {
            let dumps = source::dumps(&self.view.source, &Console::memory()).ok();
            let snapshots = dumps.iter().flat_map(|dumps| &dumps.snapshots);
            snapshots.map(|snapshot| snapshot.name().to_owned()).collect()
        };
        names.into_iter().map(CompletionCandidate::new).collect()
    }

    fn namespaces(&self, current: &str) -> Vec<CompletionCandidate> {
        let names: BTreeSet<String> = self.ask(
            current,
            |cluster| cluster.all().map(|object| object.key.namespace.to_owned()).collect(),
            |cluster, discovery, current| async move {
                names(&cluster, &discovery, "namespaces", None, &current).await.unwrap_or_default()
            },
        );
        names.into_iter().filter(|name| !name.is_empty()).map(CompletionCandidate::new).collect()
    }

    /// Returns the kinds of the selected clusters or dumps that begin with `current`, in lower case, each followed by
    /// `after`, such as `/`.
    fn kinds(&self, current: &str, after: &'static str) -> Vec<CompletionCandidate> {
        let kinds: BTreeSet<String> = self.ask(
            current,
            |cluster| cluster.all().map(|object| object.key.kind.to_lowercase()).collect(),
            |_, discovery, _| async move {
                discovery
                    .resources()
                    .iter()
                    .filter(|it| it.can_list())
                    .map(|it| it.kind.to_lowercase())
                    .collect()
            },
        );
        kinds.into_iter().map(|kind| CompletionCandidate::new(format!("{kind}{after}"))).collect()
    }

    /// Returns the words that begin with `current`, at most [`MOST`] of each dump or cluster: those that `dumped`
    /// returns for each dump, or `live` for each selected cluster. A cluster that does not answer within [`PATIENCE`]
    /// adds none.
    fn ask<F>(
        &self,
        current: &str,
        dumped: impl Fn(&Snapshot) -> BTreeSet<String>,
        live: impl Fn(Cluster, Discovery, String) -> F + Clone + Send + Sync + 'static,
    ) -> BTreeSet<String>
    where
        F: Future<Output = BTreeSet<String>> + Send + 'static,
    {
        let current = current.to_owned();
        let few = |words: BTreeSet<String>| -> Vec<String> {
            words.into_iter().filter(|word| word.starts_with(&current)).take(MOST).collect()
        };
        if !self.view.source.from.is_empty() {
            let Ok(fleet) = source::dumps(&self.view.source, &Console::memory()) else {
                return BTreeSet::new();
            };
            return fleet.snapshots.iter().flat_map(|cluster| few(dumped(cluster))).collect();
        }
        let Ok(FleetMembers { members, .. }) = source::members(&self.view.source) else {
            return BTreeSet::new();
        };
        let wanted = current.clone();
        let words = source::each(members, self.view.source.limits(), move |cluster: ClusterConnector| {
            let (live, wanted) = (live.clone(), wanted.clone());
            async move {
                let Ok(cluster) = cluster.connect().await else { return BTreeSet::new() };
                let Ok(discovery) = cluster.discover().await else { return BTreeSet::new() };
                live(cluster, discovery, wanted).await
            }
        });
        words.unwrap_or_default().into_iter().flat_map(few).collect()
    }

    fn apps(&self, current: &str) -> Vec<CompletionCandidate> {
        let namespace = self.namespace();
        let app_labels = self.grouping.as_ref().map(GroupingArguments::labels).unwrap_or_default();
        let asked = ReadQuery { namespace: namespace.clone(), app_labels, ..ReadQuery::default() };
        let Ok(fleet) = source::read(&self.view, &asked, &Console::memory()) else { return Vec::new() };
        let AppList { apps, .. } = fleet.apps(&[]);
        let inside = |own: &str| namespace.as_deref().is_none_or(|namespace| namespace == own);
        let apps: Vec<_> = apps.iter().filter(|app| inside(&app.app.namespace)).collect();
        // By each name, the first app of that name; nothing where there is another one.
        let mut alone: HashMap<&str, Option<&AppRef>> = HashMap::new();
        for App { app, .. } in apps.iter().copied() {
            let is_same = |first: &AppRef| first.delivery == app.delivery && first.namespace == app.namespace;
            let known = alone.entry(&app.name).or_insert(Some(app));
            *known = known.filter(|first| is_same(first));
        }
        let mut words: BTreeMap<&str, BTreeSet<(String, String)>> = BTreeMap::new();
        for app in &apps {
            let AppRef { delivery, namespace, name, home, .. } = &app.app;
            let is_alone = || alone.get(&**name).is_some_and(Option::is_some);
            let of_namespace = || format!("{namespace}/{name}");
            let word = match current.matches('/').count() {
                0 if is_alone() => name.clone(),
                1 if of_namespace().starts_with(current) => of_namespace(),
                _ => full_name(&app.app),
            };
            // What one cluster has in great number leaves out nothing of another.
            let words = words.entry(home).or_default();
            if word.starts_with(current) && words.len() < MOST {
                words.insert((word, format!("{delivery}, {}", app.effective().word())));
            }
        }
        let words: BTreeSet<(String, String)> = words.into_values().flatten().collect();
        words.into_iter().map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into()))).collect()
    }

    fn apps_or_objects(&self, current: &str) -> Vec<CompletionCandidate> {
        let apps = self.apps(current);
        match current.split_once('/') {
            Some((kind, name)) if apps.is_empty() => self
                .names(kind, name)
                .into_iter()
                .map(|name| CompletionCandidate::new(format!("{kind}/{name}")))
                .collect(),
            _ => apps,
        }
    }

    /// Returns the candidates for a target of `wait`: after `app/` names of apps, else objects.
    fn targets(&self, current: &str) -> Vec<CompletionCandidate> {
        match current.strip_prefix("app/") {
            Some(app) => self.apps(app).into_iter().map(|it| it.add_prefix("app/")).collect(),
            None => self.objects(current),
        }
    }

    /// Returns the names of objects of a kind, after `KIND/` or after the first word `KIND`, as candidates; else the
    /// kinds.
    fn objects(&self, current: &str) -> Vec<CompletionCandidate> {
        if let Some((kind, name)) = current.split_once('/') {
            return self
                .names(kind, name)
                .into_iter()
                .map(|name| CompletionCandidate::new(format!("{kind}/{name}")))
                .collect();
        }
        let said = [self.said("objects"), self.said("targets")].concat();
        match said.first() {
            Some(kind) if !kind.contains(['/', ',']) => {
                self.names(kind, current).into_iter().map(CompletionCandidate::new).collect()
            }
            Some(_) => self.kinds(current, "/"),
            None => self.kinds(current, ""),
        }
    }

    /// Returns the names that begin with `current` of the objects of a kind in the selected clusters or dumps: in the
    /// namespace of the line, with `-A` in all, else in that of the context, in dumps in all.
    fn names(&self, kind: &str, current: &str) -> BTreeSet<String> {
        let namespace = self.namespace();
        let everywhere =
            self.matches.try_get_one::<bool>("all_namespaces").ok().flatten().copied().unwrap_or_default();
        let (of_dumps, of_clusters) = (kind.to_owned(), kind.to_owned());
        let wanted = namespace.clone();
        self.ask(
            current,
            |cluster| {
                let inside = |own: &str| own.is_empty() || namespace.as_deref().is_none_or(|it| it == own);
                let all = cluster.all();
                all.filter(|it| names_kind(&of_dumps, it.key.group, it.key.kind) && inside(it.key.namespace))
                    .map(|it| it.key.name.to_owned())
                    .collect()
            },
            move |cluster, discovery, current| {
                let (kind, wanted) = (of_clusters.clone(), wanted.clone());
                async move {
                    let namespace = match wanted {
                        _ if everywhere => None,
                        Some(namespace) => Some(namespace),
                        None => Some(cluster.namespace().to_owned()),
                    };
                    let found = names(&cluster, &discovery, &kind, namespace.as_deref(), &current).await;
                    found.unwrap_or_default()
                }
            },
        )
    }
}

/// Returns the names of a cluster's objects of a kind that begin with `current`; `None` if they cannot be read.
async fn names(
    cluster: &Cluster,
    discovery: &Discovery,
    kind: &str,
    namespace: Option<&str>,
    current: &str,
) -> Option<BTreeSet<String>> {
    let resource = discovery.resolve(kind)?;
    let namespace = namespace.filter(|_| resource.namespaced);
    let request = ListRequest { namespace, projection: Projection::Metadata, ..ListRequest::all(&resource) };
    let listing = cluster.list(&request).await.ok()?;
    let name = |document: OwnedDocument| {
        let object = Object::new(document.root()).ok()?;
        Some(object.name().to_string()).filter(|name| name.starts_with(current))
    };
    let read = || {
        let in_time = listing.objects.into_iter().take_while(|_| cluster.in_time("complete a name").is_ok());
        in_time.filter_map(name).collect()
    };
    Some(aside(read))
}

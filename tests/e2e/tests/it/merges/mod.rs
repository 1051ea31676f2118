//! Differences by a merge of Taffrail's own beside those by the answer of a real API server to a dry run: of random
//! objects that several managers wrote, and random manifests for them.

mod draw;
mod history;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use taffrail_cluster::{Cluster, Deadline, Discovery, Kubeconfig, OpenApiCache};
use taffrail_merge::{GroupVersionKind, OpenApi, Type, built_in, equal};
use taffrail_object::ObjectKey;
use taffrail_observe::{ApplyAnswer, DeclaredManifest, ask_apply};
use taffrail_plan::diff::{
    DiffInput, DiffNote, DiffOptions, DiffOutcome, DryRun, FieldDifference, FieldPath, IgnoreRules, NoDryRun,
    ObjectDiff, ToldConflict, diff,
};
use taffrail_testkit::kube::{ControlPlane, Options};

use self::draw::Catalog;
use self::history::{Pair, kubectl_apply, write_all};
use crate::harness::{CLUSTER, unavailable};

/// The field manager whose applies are compared.
const MANAGER: &str = "taffrail";

/// The number of pairs, unless [`NUMBER`] states another one.
const PAIRS: usize = 40;

/// The variable with the number of pairs.
const NUMBER: &str = "TAFFRAIL_E2E_PAIRS";

/// The variable with the seed of an earlier run.
const SEED: &str = "TAFFRAIL_E2E_SEED";

const PATIENCE: Duration = Duration::from_secs(1800);

/// A server with the types of its kinds.
struct Server {
    cluster: Cluster,
    discovery: Discovery,
    types: BTreeMap<String, OpenApi>,
}

/// The types by which a merge is made.
#[derive(Clone, Copy, PartialEq)]
enum Types {
    /// The types that the server tells.
    Told,
    /// The types of Kubernetes itself, by which a dump is compared.
    BuiltIn,
}

/// The state of a pair on the server.
struct Seen {
    live: Option<Value>,
    dry_run: DryRun,
}

impl Server {
    async fn connect(plane: &ControlPlane) -> Server {
        let loaded = Kubeconfig::load(Some(plane.kubeconfig()), None, None).expect("a kubeconfig");
        let context = loaded.context(CLUSTER).expect("a context");
        let cluster = Cluster::connect(&context, Deadline::after(PATIENCE)).await.expect("a connection");
        let discovery = cluster.discover().await.expect("the kinds");
        Server { cluster, discovery, types: BTreeMap::new() }
    }

    /// Reads the types of an `apiVersion`, as soon as the server tells that of `kind`: it publishes those of new
    /// definitions after a moment.
    async fn read_types(&mut self, api_version: &str, kind: &str) {
        let started = Instant::now();
        while self.types.get(api_version).is_none_or(|it| it.type_of(&kind_of(api_version, kind)).is_none()) {
            assert!(started.elapsed() < Duration::from_secs(60), "the server never told the type of {kind}");
            let index = self.cluster.open_api_index().await.expect("the documents");
            if let Ok(document) = self.cluster.open_api(&index, api_version, &OpenApiCache::default()).await {
                let read = OpenApi::read(&document.document).expect("types");
                self.types.insert(api_version.to_owned(), read);
            }
            tokio::task::yield_now().await;
        }
    }

    async fn ask(&self, wanted: &Value) -> Seen {
        let text = |path: &str| wanted.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("/apiVersion");
        let (group, _) = api_version.split_once('/').unwrap_or_default();
        let key = ObjectKey::new(group, text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        let declared = DeclaredManifest { key: &key, api_version, value: wanted };
        let asked = ask_apply(&self.cluster, &self.discovery, declared, MANAGER).await;
        let asked = asked.unwrap_or_else(|failure| panic!("{}", failure.message));
        let dry_run = match asked.answer {
            ApplyAnswer::Object { object, conflicts } => {
                let conflicts = conflicts
                    .into_iter()
                    .map(|it| ToldConflict { path: it.path, manager: it.owner.map(|owner| owner.manager) });
                let conflicts = conflicts.collect();
                DryRun::Answered { object, conflicts }
            }
            ApplyAnswer::Refused(message) => DryRun::Refused { message },
            ApplyAnswer::NoRight | ApplyAnswer::NoDryRun => panic!("the server did not run it: {wanted}"),
            ApplyAnswer::NotFound(message) => panic!("{message}: {wanted}"),
        };
        Seen { live: asked.live, dry_run }
    }

    fn compare(&self, wanted: &Value, live: Option<&Value>, dry_run: &DryRun, types: Types) -> ObjectDiff {
        let text = |name: &str| wanted[name].as_str().unwrap_or_default();
        let api = match types {
            Types::Told => &self.types[text("apiVersion")],
            Types::BuiltIn => built_in(),
        };
        let of = api.type_of(&kind_of(text("apiVersion"), text("kind"))).expect("a type");
        diff(&DiffInput {
            wanted: Some(wanted),
            live,
            dry_run,
            of: Type::new(&api.schema, &of),
            manager: MANAGER,
            applied: None,
            rules: &IgnoreRules::default(),
            jq: None,
            options: &DiffOptions::default(),
        })
    }
}

fn kind_of(api_version: &str, kind: &str) -> GroupVersionKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
}

/// The result of a merge beside the server's one.
enum Verdict {
    Same,
    /// The merge says that it cannot tell all; the reason.
    Cannot(String),
    Differs(String),
}

fn judge(server: &ObjectDiff, merged: &ObjectDiff) -> Verdict {
    if merged.outcome == DiffOutcome::Unknown {
        return Verdict::Cannot(
            merged.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        );
    }
    let undecided: Vec<&FieldPath> = merged
        .notes
        .iter()
        .flat_map(|note| match note {
            DiffNote::Undecided { paths } => paths.as_slice(),
            _ => &[],
        })
        .collect();
    let is_decided = |it: &&FieldDifference| {
        let path = it.path.elements();
        !undecided.iter().any(|one| path.starts_with(one.elements()) || one.elements().starts_with(path))
    };
    let (told, expected): (Vec<_>, Vec<_>) = (
        merged.differences.iter().filter(is_decided).collect(),
        server.differences.iter().filter(is_decided).collect(),
    );
    let is_same =
        told.len() == expected.len() && told.iter().zip(&expected).all(|(one, other)| is_equal(one, other));
    if !is_same || (undecided.is_empty() && merged.outcome != server.outcome) {
        return Verdict::Differs(format!(
            "server {:?}\n{}merged {:?}\n{}notes {:?}",
            server.outcome,
            lines(&server.differences),
            merged.outcome,
            lines(&merged.differences),
            merged.notes
        ));
    }
    match undecided.first() {
        Some(path) => Verdict::Cannot(format!("undecided {path}")),
        None => Verdict::Same,
    }
}

/// Returns true if two differences are equal; 1 and 1.0 are.
fn is_equal(one: &FieldDifference, other: &FieldDifference) -> bool {
    let is_same = |one: &Option<Value>, other: &Option<Value>| match (one, other) {
        (Some(one), Some(other)) => equal(one, other),
        (one, other) => one.is_none() && other.is_none(),
    };
    (&one.path, &one.owners, one.class) == (&other.path, &other.owners, other.class)
        && is_same(&one.live, &other.live)
        && is_same(&one.wanted, &other.wanted)
}

fn lines(differences: &[FieldDifference]) -> String {
    let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    differences.iter().fold(String::new(), |mut all, it| {
        let owners: Vec<&str> = it.owners.iter().map(|owner| &*owner.manager).collect();
        let (live, wanted) = (text(&it.live), text(&it.wanted));
        let _ = writeln!(all, "  {}: {live} -> {wanted} {:?} {owners:?}", it.path, it.class);
        all
    })
}

/// Counts by a word.
#[derive(Default)]
struct Counts(BTreeMap<String, usize>);

impl Counts {
    fn add(&mut self, word: impl Into<String>) {
        *self.0.entry(word.into()).or_default() += 1;
    }

    fn sum(&self) -> usize {
        self.0.values().sum()
    }
}

/// The results of all comparisons of a run.
#[derive(Default)]
struct Results {
    outcomes: Counts,
    /// Pairs whose wanted object the server refused, by kind.
    refused: Counts,
    /// The reasons for which merges cannot tell.
    cannot: Counts,
    wrong: Vec<String>,
    /// The number of objects in which nothing but [emptied](is_emptied) maps differs after the apply.
    emptied: usize,
}

impl Results {
    /// Compares the merges with the server's answer; returns false if it refused the object.
    fn take(&mut self, server: &Server, pair: &Pair<'_>, seen: &Seen, when: &str) -> bool {
        let live = seen.live.as_ref();
        let answered = server.compare(&pair.wanted, live, &seen.dry_run, Types::Told);
        if let DryRun::Refused { message } = &seen.dry_run {
            self.refused.add(format!("{}: {message}", pair.kind.word()));
            return false;
        }
        self.outcomes.add(format!("{:?}", answered.outcome));
        let dumped = if pair.kind.custom { None } else { Some(Types::BuiltIn) };
        let mut reasons = BTreeSet::new();
        for types in [Some(Types::Told), dumped].into_iter().flatten() {
            let merged = server.compare(&pair.wanted, live, &DryRun::NotRun(NoDryRun::Offline), types);
            match judge(&answered, &merged) {
                Verdict::Same => {}
                Verdict::Cannot(why) => drop(reasons.insert(format!("{}: {why}", pair.kind.word()))),
                Verdict::Differs(how) => {
                    self.wrong.push(told(pair, seen, &format!("{when}: {how}")));
                    break;
                }
            }
        }
        reasons.into_iter().take(1).for_each(|why| self.cannot.add(why));
        true
    }
}

/// Returns true for the empty map of a manifest that a live object lacks. That is a known difference of API servers: when an
/// apply removes the last field of a map, structured-merge-diff removes the map too (`doMap` in `typed/remove.go`), although the
/// same apply declares it to be empty. The next apply adds it.
fn is_emptied(difference: &FieldDifference) -> bool {
    difference.live.is_none() && difference.wanted.as_ref().is_some_and(|wanted| *wanted == json!({}))
}

fn told(pair: &Pair<'_>, seen: &Seen, how: &str) -> String {
    let answer = match &seen.dry_run {
        DryRun::Answered { object, .. } => object,
        _ => &Value::Null,
    };
    let live = seen.live.as_ref().unwrap_or(&Value::Null);
    format!(
        "{} {}: {how}\nhistory\n  {}\nwanted {}\nlive {live}\nanswer {answer}\n",
        pair.kind.word(),
        pair.name,
        pair.told.join("\n  "),
        pair.wanted
    )
}

#[expect(clippy::print_stdout, reason = "shown where the test fails, and with --show-output")]
async fn compare_all(plane: &ControlPlane, pairs: &[Pair<'_>]) -> Results {
    let mut server = Server::connect(plane).await;
    let kinds: BTreeSet<(&str, &str)> = pairs
        .iter()
        .map(|pair| {
            let text = |name: &str| pair.wanted[name].as_str().unwrap_or_default();
            (text("apiVersion"), text("kind"))
        })
        .collect();
    for (api_version, kind) in kinds {
        server.read_types(api_version, kind).await;
    }
    let mut results = Results::default();
    let mut applied = Vec::new();
    for pair in pairs {
        let seen = server.ask(&pair.wanted).await;
        if results.take(&server, pair, &seen, "before") {
            applied.push(pair);
        }
    }
    // kubectl takes over what it applied on the client's side before, as a sync does.
    let manager = format!("--field-manager={MANAGER}");
    let objects: Vec<Value> = applied.iter().map(|pair| pair.wanted.clone()).collect();
    let refused = kubectl_apply(plane, &objects, &["--server-side", "--force-conflicts", &manager]);
    let mut after = Results::default();
    for pair in applied {
        let seen = server.ask(&pair.wanted).await;
        if !after.take(&server, pair, &seen, "after") {
            // kubectl let our manager own defaults of a Job that may not change: to apply without them is to remove them.
            continue;
        }
        let left = server.compare(&pair.wanted, seen.live.as_ref(), &seen.dry_run, Types::Told);
        if left.outcome == DiffOutcome::Change && left.differences.iter().all(is_emptied) {
            after.emptied += 1;
        } else if left.outcome != DiffOutcome::Unchanged {
            after.wrong.push(told(
                pair,
                &seen,
                &format!("left after the apply:\n{}", lines(&left.differences)),
            ));
        }
    }
    println!("before: {:?}; after: {:?}", results.outcomes.0, after.outcomes.0);
    let refused: Vec<&str> = refused.lines().filter(|line| !line.starts_with("Warning: ")).collect();
    after.wrong.extend(refused.iter().map(|line| format!("kubectl could not apply: {line}")));
    println!("{} objects lack an empty map, which a second apply adds", after.emptied);
    println!("refused after: {:#?}", after.refused.0);
    println!("cannot tell before: {:#?}", results.cannot.0);
    println!("cannot tell after: {:#?}", after.cannot.0);
    results.wrong.append(&mut after.wrong);
    assert!(after.emptied * 100 <= pairs.len().max(100), "too many maps are emptied");
    assert!(after.refused.sum() * 50 <= pairs.len().max(50), "the server refuses what it took before");
    results
}

#[test]
fn merges_name_what_the_server_answers_or_that_they_cannot() {
    if unavailable() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().expect("a number"));
    let seed = number(SEED).unwrap_or_else(|| fastrand::u64(..));
    let count = number(NUMBER).map_or(PAIRS, |it| usize::try_from(it).expect("a number of pairs"));
    println!("{SEED}={seed} {NUMBER}={count}");
    let mut random = Rng::with_seed(seed);
    let name = format!("e2e-merges-{}", std::process::id());
    let options = Options { name, clusters: 1, bare: 1, nodes: 0, flux_crds: false, ..Options::default() };
    let plane = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    plane.apply(CLUSTER, include_str!("../../data/pairs-definitions.yaml")).expect("the definitions");
    let names = ["crd/widgets.pairs.example.com", "crd/gadgets.pairs.example.com"];
    plane
        .wait(CLUSTER, &["--for=condition=Established", names[0], names[1]])
        .expect("the definitions are established");

    let catalog = Catalog::read();
    let mut pairs: Vec<Pair<'_>> = (0..count).map(|at| Pair::draw(&catalog, at, &mut random)).collect();
    let writes = write_all(&mut pairs, &plane);
    let refused: usize = pairs.iter().map(|pair| pair.refused).sum();
    println!("{writes} writes, {refused} of them refused");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let results = runtime.block_on(compare_all(&plane, &pairs));
    println!("refused: {:#?}", results.refused.0);
    let (wrong, cannot, not) = (results.wrong.len(), results.cannot.sum(), results.refused.sum());
    println!("{count} pairs: {wrong} wrong, {cannot} cannot tell, {not} refused");
    for it in results.wrong.iter().take(if count > PAIRS { 60 } else { 10 }) {
        println!("{it}");
    }
    assert_eq!(wrong, 0, "seed {seed}");
    assert!(refused * 5 < writes && not * 5 < count.max(20), "most writes are to be taken");
    assert!(cannot * 20 <= count.max(40), "merges cannot tell too much");
}

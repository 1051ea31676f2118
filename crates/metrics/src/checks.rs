//! Evaluates the checks that apps name: the query of each comes from the file of the hub, and the values from the app.
//!
//! * `board` is what each server told of a check, and the result that follows from it.
//! * `schedule` is the order of evaluation, in which each tenant has its turn.
//!
//! A check asks about the cluster that holds the objects of its app: each selector of its query gets a matcher of the cluster's name.

mod board;
mod schedule;

use std::collections::{BTreeMap, HashMap};
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taffrail_api::checks::{CheckedApp, EvaluatedCheck};
use taffrail_api::report::AppId;
use taffrail_apps::{CheckResult, ClusterId, DeclaredCheck, MetricValue, round_robin};
use tokio::task::JoinSet;

use crate::client::FreshClient;
use crate::clock::ServerClock;
use crate::config::{CheckConfig, MetricsConfig, ServerConfig};
use crate::error::whole_text;
use crate::reply::{Reply, ReplyReader};
use crate::template::matcher;
use board::{Board, Told};
use schedule::Schedule;

/// The interval at which the apps that name checks are asked for.
const LOOK: Duration = Duration::from_secs(5);

/// The interval at which results that need no server are told again, and the time for which they count.
const FAULTS: Duration = Duration::from_secs(60);
const FAULTS_LIVE: Duration = Duration::from_secs(180);

/// The number of intervals of a check for which a value counts.
const INTERVALS: u32 = 3;

/// The maximum number of checks that are evaluated of the apps that one cluster declares, and of all. As many again are told
/// that they are not.
const MAX_OF_HOME: usize = 2_000;
const MAX_CHECKS: usize = 100_000;

/// The maximum size of an answer, in bytes: one series is expected.
const MAX_ANSWER: usize = 256 << 10;

/// The apps whose checks are evaluated, and the place for the results.
pub trait CheckedApps: Send + Sync {
    /// Returns the apps that name checks.
    fn apps(&self) -> Vec<CheckedApp>;

    /// Takes results that were just evaluated.
    fn take(&self, evaluated: Vec<EvaluatedCheck>);
}

/// The number of queries that the checks of a server need in a minute, which are more than it may have.
#[derive(Debug, Clone, PartialEq)]
pub struct TooManyChecks {
    /// The name of the server.
    pub server: String,
    /// The number of checks.
    pub checks: usize,
    /// The number of queries in a minute that they need, and that are allowed.
    pub needed: u32,
    /// The number of queries in a minute that the configuration allows.
    pub allowed: u32,
}

/// Evaluates the checks of all apps by the servers of a configuration.
pub struct CheckRunner {
    servers: Vec<Arc<ServerConfig>>,
    rounds: Arc<Mutex<CheckRounds>>,
    apps: Arc<dyn CheckedApps>,
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
    events: Box<dyn Fn(TooManyChecks) + Send + Sync>,
}

impl CheckRunner {
    /// Makes a runner of the checks of `config`. `clock` returns the time since some start, by a clock that runs on while the
    /// machine sleeps; `events` is called when the checks of a server become too many.
    pub fn new(
        config: &MetricsConfig,
        apps: Arc<dyn CheckedApps>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
        events: impl Fn(TooManyChecks) + Send + Sync + 'static,
    ) -> CheckRunner {
        CheckRunner {
            servers: config.servers.iter().cloned().map(Arc::new).collect(),
            rounds: Arc::new(Mutex::new(CheckRounds::new(config))),
            apps,
            clock: Arc::new(clock),
            events: Box::new(events),
        }
    }

    /// Evaluates checks until the task is dropped. Must be called in a Tokio runtime.
    pub async fn run(self) {
        let CheckRunner { servers, rounds, apps, clock, events } = self;
        let mut tasks = JoinSet::new();
        for (place, config) in servers.into_iter().enumerate() {
            let (rounds, apps, clock) = (Arc::clone(&rounds), Arc::clone(&apps), Arc::clone(&clock));
            tasks.spawn(evaluate(place, config, rounds, apps, clock));
        }
        loop {
            let wanted = apps.apps();
            let (told, late) = lock(&rounds).set(wanted, clock());
            if !told.is_empty() {
                apps.take(told);
            }
            late.into_iter().for_each(&events);
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Evaluates the checks of one server, one after the other.
async fn evaluate(
    place: usize,
    config: Arc<ServerConfig>,
    rounds: Arc<Mutex<CheckRounds>>,
    apps: Arc<dyn CheckedApps>,
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
) {
    let pause = Duration::from_secs(60) / config.checks_per_minute.max(1);
    let replies = ReplyReader { kept: Arc::default(), key: RandomState::new() };
    let mut client = FreshClient::new(config, replies);
    loop {
        tokio::time::sleep(pause).await;
        let asked = clock();
        let Some(question) = lock(&rounds).next(place, asked) else { continue };
        let answer = match client.get(asked).await {
            Err(error) => Err(whole_text(&error)),
            Ok(client) => {
                let reply = client.query_within(&question.query, None, MAX_ANSWER).await;
                reply.map_err(|error| whole_text(&error))
            }
        };
        let evaluated = lock(&rounds).answer(place, &question, answer, asked, clock());
        if let Some(evaluated) = evaluated {
            apps.take(vec![evaluated]);
        }
    }
}

fn lock(rounds: &Mutex<CheckRounds>) -> MutexGuard<'_, CheckRounds> {
    rounds.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sorts apps so that their home clusters take turns, and in each of them its namespaces: who declares many checks displaces
/// none of others.
fn in_turns(mut apps: Vec<CheckedApp>) -> Vec<CheckedApp> {
    apps.sort_by(|a, b| a.app.cmp(&b.app));
    let mut homes: BTreeMap<ClusterId, Vec<CheckedApp>> = BTreeMap::new();
    for app in apps {
        homes.entry(app.app.home.clone()).or_default().push(app);
    }
    let of_homes = homes.into_values().flat_map(|apps| round_robin(apps, |app| &app.app.app.namespace));
    round_robin(of_homes.collect(), |app| &app.app.home.0)
}

/// A check of one app.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CheckKey {
    app: Arc<AppId>,
    name: Arc<str>,
}

/// A check that an app wants, with all that its query needs.
#[derive(Debug, Clone, PartialEq)]
struct WantedCheck {
    asked: DeclaredCheck,
    target: ClusterId,
    names: Arc<[String]>,
}

/// A query to send.
#[derive(Debug)]
struct Question {
    key: CheckKey,
    query: String,
    wanted: WantedCheck,
}

/// The state of the evaluation. Reads no clock.
struct CheckRounds {
    checks: BTreeMap<Arc<str>, CheckConfig>,
    servers: Vec<CheckedServer>,
    wanted: HashMap<CheckKey, WantedCheck>,
    board: Board<CheckKey>,
    /// The moment at which results that need no server were told last.
    told: Option<Duration>,
    /// The results that need no server, by the check, as they were told last.
    faults: HashMap<CheckKey, (WantedCheck, String)>,
}

struct CheckedServer {
    config: ServerConfig,
    schedule: Schedule<ClusterId, String, CheckKey>,
    clock: ServerClock,
    is_late: bool,
}

impl CheckRounds {
    fn new(config: &MetricsConfig) -> CheckRounds {
        let server = |config: &ServerConfig| CheckedServer {
            config: config.clone(),
            schedule: Schedule::default(),
            clock: ServerClock::default(),
            is_late: false,
        };
        CheckRounds {
            checks: config.checks.iter().map(|check| (check.name.as_str().into(), check.clone())).collect(),
            servers: config.servers.iter().map(server).collect(),
            wanted: HashMap::new(),
            board: Board::default(),
            told: None,
            faults: HashMap::new(),
        }
    }

    /// Replaces the apps whose checks are evaluated. Returns the results of those checks that no server needs to evaluate, because
    /// their declaration has a fault, and the servers whose checks have become too many.
    fn set(&mut self, apps: Vec<CheckedApp>, now: Duration) -> (Vec<EvaluatedCheck>, Vec<TooManyChecks>) {
        let mut wanted = HashMap::new();
        let mut faults = HashMap::new();
        let (mut of_homes, mut all) = (HashMap::<ClusterId, usize>::new(), 0);
        for CheckedApp { app, target, names, declared } in in_turns(apps) {
            let of_home = of_homes.entry(app.home.clone()).or_default();
            for asked in declared.checks.iter().filter(|check| check.fault.is_none()) {
                (*of_home, all) = (*of_home + 1, all + 1);
                if *of_home > 2 * MAX_OF_HOME || all > 2 * MAX_CHECKS {
                    continue;
                }
                let key = CheckKey { app: Arc::clone(&app), name: asked.name.as_str().into() };
                let check =
                    WantedCheck { asked: asked.clone(), target: target.clone(), names: Arc::clone(&names) };
                let too_many = || {
                    let is_beyond = *of_home > MAX_OF_HOME || all > MAX_CHECKS;
                    is_beyond.then(|| {
                        format!("the hub evaluates at most {MAX_OF_HOME} checks of a cluster, and {MAX_CHECKS} of all")
                    })
                };
                match self.fault(&check).or_else(too_many) {
                    Some(fault) => drop(faults.insert(key, (check, fault))),
                    None => drop(wanted.insert(key, check)),
                }
            }
        }
        // What a server told of another question does not count.
        let before = std::mem::replace(&mut self.wanted, wanted);
        self.board.retain(|key| self.wanted.get(key).is_some_and(|check| before.get(key) == Some(check)));
        let is_due = self.told.is_none_or(|told| now.saturating_sub(told) >= FAULTS);
        let old = std::mem::replace(&mut self.faults, faults);
        let news = self.faults.iter().filter(|(key, fault)| is_due || old.get(key) != Some(fault));
        let told = news.map(|(key, (check, fault))| EvaluatedCheck {
            app: Arc::clone(&key.app),
            target: check.target.clone(),
            asked: check.asked.clone(),
            result: CheckResult::no_data(&key.name, fault.as_str()),
            age: Duration::ZERO,
            live: FAULTS_LIVE,
        });
        let told = told.collect();
        self.told = if is_due { Some(now) } else { self.told };
        (told, self.schedule(now))
    }

    /// Schedules the wanted checks at their servers. Returns the servers whose checks have become too many.
    fn schedule(&mut self, now: Duration) -> Vec<TooManyChecks> {
        let mut late = Vec::new();
        for server in &mut self.servers {
            let of_server = self.wanted.keys().filter_map(|key| {
                let check = self.checks.get(&key.name)?;
                let is_asked = check.servers.is_empty() || check.servers.contains(&server.config.name);
                let tenant = (key.app.home.clone(), key.app.app.namespace.clone());
                is_asked.then(|| (tenant, key.clone(), check.interval))
            });
            server.schedule.set(of_server, now);
            let (checks, needed) = server.schedule.load();
            let allowed = server.config.checks_per_minute;
            let is_late = needed > f64::from(allowed);
            if is_late && !server.is_late {
                let needed = needed.ceil() as u32;
                late.push(TooManyChecks { server: server.config.name.clone(), checks, needed, allowed });
            }
            server.is_late = is_late;
        }
        late
    }

    /// Returns the reason why a check cannot be evaluated; `None` if it can.
    fn fault(&self, wanted: &WantedCheck) -> Option<String> {
        let DeclaredCheck { name, parameters, .. } = &wanted.asked;
        let Some(check) = self.checks.get(&**name) else {
            return Some("the hub has no such check".to_owned());
        };
        let needed = check.template.parameters();
        if let Some(missing) = needed.iter().find(|needed| !parameters.contains_key(**needed)) {
            return Some(format!("the check needs the parameter '{missing}'"));
        }
        if let Some(unknown) = parameters.keys().find(|given| !needed.contains(given.as_str())) {
            return Some(format!("the check has no parameter '{unknown}'"));
        }
        let is_nameless = wanted.names.is_empty();
        is_nameless.then(|| "the hub knows no cluster of the app that has a name of its own".to_owned())
    }

    /// Returns the next query for a server at the moment `now`; `None` if none is due.
    fn next(&mut self, place: usize, now: Duration) -> Option<Question> {
        let server = self.servers.get_mut(place)?;
        let key = server.schedule.next(now)?;
        let wanted = self.wanted.get(&key)?.clone();
        let check = self.checks.get(&key.name)?;
        let label = check.cluster_label.as_ref().unwrap_or(&server.config.cluster_label);
        let mut names: Vec<&str> = wanted.names.iter().map(String::as_str).collect();
        // Series without the label are about the cluster of the server.
        if server.config.cluster.as_deref().is_some_and(|own| names.contains(&own)) {
            names.push("");
        }
        let of_cluster = matcher(label, &names);
        let matchers = match server.config.matchers.trim() {
            "" => of_cluster,
            more => format!("{of_cluster},{more}"),
        };
        let value = |name: &str| match name {
            "app.cluster" => wanted.names.first().map(String::as_str),
            "app.namespace" => Some(&*key.app.app.namespace),
            "app.name" => Some(&*key.app.app.name),
            name => wanted.asked.parameters.get(name).map(String::as_str),
        };
        let query = check.template.query(&matchers, value).ok()?;
        Some(Question { key, query, wanted })
    }

    /// Takes the answer of a server to a question that was asked at the moment `asked`, or the reason why there is none. Returns the
    /// result; `None` if the app no longer asks so.
    fn answer(
        &mut self,
        place: usize,
        question: &Question,
        answer: Result<Reply, String>,
        asked: Duration,
        now: Duration,
    ) -> Option<EvaluatedCheck> {
        let Question { key, wanted, .. } = question;
        if self.wanted.get(key) != Some(wanted) {
            return None;
        }
        let check = self.checks.get(&key.name)?;
        let server = self.servers.get_mut(place)?;
        if let Some(time) = answer.as_ref().ok().and_then(|reply| reply.at) {
            server.clock.set(time, asked);
        }
        let window = check.interval * INTERVALS;
        let age = now.saturating_sub(asked) + server.clock.lag();
        let told = match answer {
            Ok(_) if age >= window => {
                Told::Failed(format!("the server answered with a value of {} s ago", age.as_secs()))
            }
            Ok(reply) => told(check, reply),
            Err(reason) => Told::Failed(reason),
        };
        let (result, live) = self.board.take(key.clone(), &key.name, (place, told), now, window);
        Some(EvaluatedCheck {
            app: Arc::clone(&key.app),
            target: wanted.target.clone(),
            asked: wanted.asked.clone(),
            result,
            age,
            live: live.saturating_sub(age),
        })
    }
}

/// Returns what an answer tells of a check.
fn told(check: &CheckConfig, reply: Reply) -> Told {
    let Reply { series, scalar, partial, .. } = reply;
    if let Some(partial) = partial {
        return Told::Failed(format!("the answer may be partial: {partial}"));
    }
    let number = match (scalar, series.as_slice()) {
        (Some(number), _) => number,
        (None, []) => return Told::Nothing("the query returned no series".to_owned()),
        (None, [series]) => series.value,
        (None, several) => {
            return Told::Failed(format!("the query returned {} series instead of one", several.len()));
        }
    };
    let Some(value) = MetricValue::new(number) else {
        return Told::Nothing("the value is not a number".to_owned());
    };
    let bound = |bound: f64| MetricValue::new(bound).map(|bound| bound.to_string()).unwrap_or_default();
    let reason = match (check.below, check.above) {
        (Some(below), _) if number >= below => format!("{value} is not below {}", bound(below)),
        (_, Some(above)) if number <= above => format!("{value} is not above {}", bound(above)),
        _ => String::new(),
    };
    Told::Value { value, is_true: reason.is_empty(), reason }
}

#[cfg(test)]
mod tests;

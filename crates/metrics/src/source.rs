//! Reads one server again and again, and sends the hub what it learned.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::report::{ReportStreams, SourceMessage, SourceReply};
use taffrail_apps::{ClusterId, round_robin};
use tokio::sync::mpsc;

use crate::client::{Client, FreshClient};
use crate::config::{ServerConfig, is_metric};
use crate::error::{QueryError, whole_text};
use crate::families::{HubMemory, Samples, ScopeReader, Selector, Telling, kept_labels, readers};
use crate::fleet::{MAX_APPS, MAX_CLUSTERS, MetricsFleet, ScopeFailure, ServerFacts, ServerRead};
use crate::reply::{Reply, ReplyReader};
use crate::sample::{NAME, Sample, Series, Target};

/// Maximum time between two looks at what is due.
const TICK: Duration = Duration::from_secs(1);

/// Time limit of one read of a server, with all its queries.
const READ: Duration = Duration::from_secs(60);

/// The maximum number of series in all answers of one read.
const MAX_TOTAL: usize = 600_000;

/// The maximum number of metrics that one regular expression may select.
const MAX_NAMES: usize = 64;

/// The clusters that the hub knows by other sources.
pub trait KnownClusters: Send + Sync {
    /// Returns their identities by each of their names and by the identity itself; without names that several have.
    fn clusters(&self) -> HashMap<String, ClusterId>;
}

/// Something about a server that people may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsEvent {
    /// The server, or a part of what it is read for, cannot be read any more.
    Failed {
        /// The scope, such as `metrics of flux`; `None` for the server as a whole.
        scope: Option<String>,
        /// The reason.
        message: String,
        /// The next step for the user, if one is known.
        hint: Option<&'static str>,
    },
    /// All that the server is read for is read again.
    Recovered,
    /// The server was read for the first time, or is scraped at other intervals than before.
    Window {
        /// The greatest age up to which a sample is live.
        window: Duration,
    },
}

/// A source of reports that reads one metrics server.
pub struct MetricsSource {
    config: Arc<ServerConfig>,
    known: Arc<dyn KnownClusters>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    events: Box<dyn Fn(MetricsEvent) + Send + Sync>,
    messages: mpsc::Sender<SourceMessage>,
    replies: mpsc::Receiver<SourceReply>,
}

impl MetricsSource {
    /// Makes a source of reports about the clusters that the server of `config` tells of. `known` has those that the hub knows
    /// by other sources; `clock` returns the time since some start, by a clock that runs on while the machine sleeps.
    pub fn new(
        config: ServerConfig,
        known: Arc<dyn KnownClusters>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
        messages: mpsc::Sender<SourceMessage>,
        replies: mpsc::Receiver<SourceReply>,
    ) -> MetricsSource {
        let config = Arc::new(config);
        MetricsSource { config, known, clock: Box::new(clock), events: Box::new(|_| {}), messages, replies }
    }

    /// Sets the function that is called with events.
    #[must_use]
    pub fn telling(self, events: impl Fn(MetricsEvent) + Send + Sync + 'static) -> MetricsSource {
        MetricsSource { events: Box::new(events), ..self }
    }

    /// Reads and reports until the receiver of messages or the sender of replies is gone.
    ///
    /// Must be called in a Tokio runtime.
    pub async fn run(self) {
        let MetricsSource { config, known, clock, events, messages, mut replies } = self;
        let interval = config.interval;
        let mut reports = MetricsReports::new(&config, known);
        let mut reader = MetricsReader::new(config);
        let mut read_at = Duration::ZERO;
        loop {
            // The read goes on while messages are sent.
            let began = clock();
            let read = {
                let reading = async {
                    tokio::time::sleep(read_at.saturating_sub(began)).await;
                    reader.read(clock()).await
                };
                tokio::pin!(reading);
                loop {
                    let now = clock();
                    reports.pass(now);
                    let wait = reports.next_deadline().map_or(TICK, |due| due.saturating_sub(now)).min(TICK);
                    let is_due = wait.is_zero();
                    tokio::select! {
                        biased;
                        reply = replies.recv() => match reply {
                            Some(reply) => reports.reply(&reply, clock()),
                            None => return,
                        },
                        permit = messages.reserve(), if is_due => {
                            let Ok(permit) = permit else { return };
                            if let Some(message) = reports.next_message(clock()) {
                                permit.send(message);
                            }
                        }
                        () = messages.closed(), if !is_due => return,
                        read = &mut reading => break read,
                        () = tokio::time::sleep(wait), if !is_due => {}
                    }
                }
            };
            let now = clock();
            read_at = now.max(read_at + interval);
            reports.take(read, now).into_iter().for_each(&*events);
        }
    }
}

/// The clusters of a server as far as they are known, and the streams in which that is reported. Reads no clock.
///
/// Moments are durations since some start, by a clock that runs on while the machine sleeps.
pub struct MetricsReports {
    server: ServerFacts,
    fleet: MetricsFleet,
    streams: ReportStreams,
    known: Arc<dyn KnownClusters>,
    /// The moment at which the freshness of something changes by time alone.
    change: Option<Duration>,
    /// The clusters that closer sources knew when the state was last passed on, and the moment of the last look.
    joined: HashMap<String, ClusterId>,
    looked: Duration,
    /// The longest window that was told.
    window: Duration,
}

impl MetricsReports {
    /// Makes the reports of a server that was not read yet. `known` has the clusters that the hub knows by other sources.
    pub fn new(config: &ServerConfig, known: Arc<dyn KnownClusters>) -> MetricsReports {
        MetricsReports {
            server: ServerFacts { name: config.name.clone(), ..ServerFacts::default() },
            fleet: MetricsFleet::new(config.interval),
            streams: ReportStreams::default(),
            known,
            change: None,
            joined: HashMap::new(),
            looked: Duration::ZERO,
            window: Duration::ZERO,
        }
    }

    /// Takes the outcome of a read at the moment `now`, and passes what it tells to the streams. Returns what people may want
    /// to know.
    pub fn take(&mut self, read: MetricsRead, now: Duration) -> Vec<MetricsEvent> {
        let MetricsRead { read, failures } = read;
        let is_read = read.is_some();
        let before: HashSet<String> = self.server.failures.drain(..).map(|failure| failure.scope).collect();
        match read {
            Some(read) => self.fleet.take(read),
            None => self.fleet.miss(),
        }
        let mut events = Vec::new();
        let mut fail = |failure: ScopeFailure| {
            if !before.contains(&failure.scope) {
                let ScopeFailure { scope, message, hint, .. } = failure.clone();
                events.push(MetricsEvent::Failed { scope: Some(scope).filter(|_| is_read), message, hint });
            }
            self.server.failures.push(failure);
        };
        failures.into_iter().for_each(&mut fail);
        if self.fleet.is_full {
            let message =
                format!("only {MAX_CLUSTERS} clusters and {MAX_APPS} apps are read, and there are more");
            let hint = Some("select fewer series with matchers");
            fail(ScopeFailure::blinding("clusters and apps".to_owned(), "TooManyApps", message, hint));
        }
        if !before.is_empty() && self.server.failures.is_empty() {
            events.push(MetricsEvent::Recovered);
        }
        let lost = self.server.failures.first().filter(|_| !is_read);
        self.server.lost = lost.map(|failure| failure.message.clone());
        let window = self.tell(now);
        // Scrapes are never exactly as far from each other as before.
        if window.is_some_and(|window| window.abs_diff(self.window) > self.window / 8) {
            self.window = window.unwrap_or_default();
            events.push(MetricsEvent::Window { window: self.window });
        }
        events
    }

    /// Passes to the streams what has changed since the last read: by time alone, or because a closer source has come to know a
    /// cluster.
    pub fn pass(&mut self, now: Duration) {
        // With many apps, something changes all the time.
        if self.is_empty() || now.saturating_sub(self.looked) < TICK {
            return;
        }
        self.looked = now;
        let is_due = self.change.is_some_and(|change| change <= now);
        if is_due || self.known.clusters() != self.joined {
            self.tell(now);
        }
    }

    /// Returns true if there is no cluster, and none that the hub still has.
    fn is_empty(&self) -> bool {
        self.fleet.is_empty() && self.streams.clusters().next().is_none()
    }

    /// Passes the present state to the streams. Returns the longest window of a cluster; `None` if there is none.
    fn tell(&mut self, now: Duration) -> Option<Duration> {
        if self.is_empty() {
            return None;
        }
        (self.joined, self.looked) = (self.known.clusters(), now);
        let window = self.fleet.tell(&mut self.streams, &self.joined, &self.server, now);
        self.change = self.fleet.next_change(now);
        Some(window)
    }

    /// Returns the moment at which the next message is due; `None` if there is none.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.streams.next_deadline()
    }

    /// Returns the next message for the hub; `None` if none is due at the moment `now`.
    pub fn next_message(&mut self, now: Duration) -> Option<SourceMessage> {
        self.streams.next_message(now)
    }

    /// Applies a reply of the hub.
    pub fn reply(&mut self, reply: &SourceReply, now: Duration) {
        self.streams.take(reply, now);
    }
}

/// The outcome of one read of a server.
pub struct MetricsRead {
    read: Option<ServerRead>,
    /// The failures, with hints; that of the whole server alone if `read` is `None`.
    failures: Vec<ScopeFailure>,
}

/// Reads a server when asked.
pub struct MetricsReader {
    config: Arc<ServerConfig>,
    readers: Vec<ScopeReader>,
    replies: ReplyReader,
    client: FreshClient,
    memory: HubMemory,
}

impl MetricsReader {
    /// Makes a reader of the server of `config`.
    pub fn new(config: Arc<ServerConfig>) -> MetricsReader {
        let replies = ReplyReader { kept: Arc::new(kept_labels(&config)), key: RandomState::new() };
        let readers = readers(&config);
        let client = FreshClient::new(Arc::clone(&config), replies.clone());
        MetricsReader { config, readers, replies, client, memory: HubMemory::default() }
    }

    /// Sends all queries at the moment `asked`, and tells facts by the answers.
    ///
    /// Must be called in a Tokio runtime.
    pub async fn read(&mut self, asked: Duration) -> MetricsRead {
        let name = self.config.name.clone();
        let failed = |reason, message, hint| MetricsRead {
            read: None,
            failures: vec![ScopeFailure::blinding(name, reason, message, hint)],
        };
        let client = match self.client.get(asked).await {
            Ok(client) => client,
            Err(error) => return failed("Unusable", whole_text(&error), None),
        };
        match tokio::time::timeout(READ, self.queries(&client, asked)).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                // The next one may have other secrets.
                self.client.forget();
                failed(error.reason(), whole_text(&error), error.hint())
            }
            Err(_) => {
                failed("Timeout", format!("all queries together took longer than {} s", READ.as_secs()), None)
            }
        }
    }

    async fn queries(&mut self, client: &Client, asked: Duration) -> Result<MetricsRead, QueryError> {
        let clock = client.query("time()", None).await?;
        let time = clock.scalar.filter(|time| time.is_finite()).ok_or(QueryError::NoData)?;
        let mut asking = Asking { client, config: &self.config, time, left: MAX_TOTAL, unnamed: 0 };
        let mut failures: Vec<ScopeFailure> = Vec::new();
        let of_error = |scope: String, error: &QueryError| {
            ScopeFailure::blinding(scope, error.reason(), whole_text(error), error.hint())
        };
        let (mut whole, mut partial) = (HashSet::new(), BTreeMap::new());
        let up = match asking.up().await {
            Ok((up, None)) => Some(up),
            Ok((up, Some(warning))) => {
                failures.push(ScopeFailure::new("metric up".to_owned(), "Partial", warning, None));
                Some(up)
            }
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                failures.push(of_error("metric up".to_owned(), &error));
                None
            }
        };
        let mut answered: Vec<(usize, Vec<Option<Samples>>)> = Vec::new();
        for (place, reader) in self.readers.iter().enumerate() {
            let mut samples = Vec::new();
            let (mut failure, mut warning) = (None, None);
            for selector in &reader.selectors {
                match asking.samples(selector).await {
                    Ok((found, partial)) => {
                        warning = warning.or(partial);
                        samples.push(Some(found));
                    }
                    Err(error) if is_final(&error) => return Err(error),
                    Err(error) => {
                        failure = failure.or(Some(error));
                        samples.push(None);
                    }
                }
            }
            let scope = reader.scope.clone();
            match (&failure, warning) {
                (None, None) => drop(whole.insert(scope)),
                (Some(error), _) => {
                    failures.push(of_error(scope.to_string(), error));
                    partial.insert(scope, whole_text(error));
                }
                (None, Some(warning)) => {
                    let name = scope.to_string();
                    failures.push(ScopeFailure::blinding(name, "Partial", warning.clone(), None));
                    partial.insert(scope, warning);
                }
            }
            answered.push((place, samples));
        }
        if asking.unnamed > 0 {
            let message = format!(
                "{} series are left out, because their metrics have odd names, or are more than {MAX_NAMES}",
                asking.unnamed
            );
            failures.push(ScopeFailure::new("series".to_owned(), "Unusable", message, None));
        }
        let mut telling = Telling::new(&self.config, &self.replies.key, &mut self.memory);
        for (place, samples) in answered {
            let Some(reader) = self.readers.get(place) else { continue };
            telling.tell(reader, &samples, whole.contains(&reader.scope));
        }
        let mut refused: BTreeMap<Box<str>, Vec<ScopeFailure>> = BTreeMap::new();
        for ((cluster, reason), count) in std::mem::take(&mut telling.refused) {
            let message = format!("{count} series are left out, because they {reason}");
            let failure = ScopeFailure::new("series".to_owned(), "Unusable", message, None);
            match cluster {
                Some(cluster) => refused.entry(cluster).or_default().push(failure),
                None => failures.push(failure),
            }
        }
        let Telling { facts, clusters, .. } = telling;
        let read = ServerRead { time, asked, up, facts, clusters, whole, partial, refused };
        Ok(MetricsRead { read: Some(read), failures })
    }
}

/// Returns true for an error after which no further query is worth its time limit.
fn is_final(error: &QueryError) -> bool {
    matches!(error, QueryError::Unreachable(_) | QueryError::Timeout { .. } | QueryError::Broken(_))
}

/// The queries of one read, all about one moment of the server's clock.
struct Asking<'a> {
    client: &'a Client,
    config: &'a ServerConfig,
    time: f64,
    /// The number of series that may still be read.
    left: usize,
    /// The number of series that are left out because of the names of their metrics.
    unnamed: usize,
}

impl Asking<'_> {
    async fn ask(&mut self, query: &str) -> Result<Reply, QueryError> {
        let reply = self.client.query(query, Some(self.time)).await?;
        let left = self.left.checked_sub(reply.series.len());
        self.left = left.ok_or(QueryError::TooManySeries { max: MAX_TOTAL })?;
        Ok(reply)
    }

    /// Returns the samples of a selector with their times, and a warning if some may be missing.
    async fn samples(&mut self, selector: &Selector) -> Result<(Samples, Option<String>), QueryError> {
        let Reply { series, mut partial, .. } = self.ask(&selector.query(&self.config.matchers)).await?;
        let mut of_name: BTreeMap<Box<str>, Vec<Series>> = BTreeMap::new();
        for series in series {
            of_name.entry(series.label(NAME).into()).or_default().push(series);
        }
        let mut samples = Vec::new();
        for (name, series) in self.named(of_name) {
            // A time is asked for by the name of the metric, because `timestamp()` drops the name.
            let name = if name.is_empty() { &*selector.name } else { &*name };
            let query = format!("timestamp({})", selector.query_of(name, &self.config.matchers));
            let times = self.ask(&query).await?;
            partial = partial.or(times.partial);
            let times: HashMap<u64, f64> = times.series.iter().map(|it| (it.sum, it.value)).collect();
            samples.extend(series.into_iter().filter_map(|series| {
                let at = times.get(&series.sum).copied().filter(|at| at.is_finite())?;
                // No sample is newer than the moment that was asked for.
                Some(Sample { at: at.min(self.time), series })
            }));
        }
        Ok((samples, partial))
    }

    /// Returns the series of at most [`MAX_NAMES`] metrics, whose names can stand in a query. Those of all jobs have their turns, so
    /// that one exporter with many names displaces none of another one; what is left out is counted.
    fn named(&mut self, of_name: BTreeMap<Box<str>, Vec<Series>>) -> Vec<(Box<str>, Vec<Series>)> {
        let is_plain = |name: &str| name.is_empty() || is_metric(name);
        let (plain, odd): (Vec<_>, Vec<_>) = of_name.into_iter().partition(|(name, _)| is_plain(name));
        let job = |(_, series): &(Box<str>, Vec<Series>)| -> String {
            series.first().map_or("", |series| series.label("job")).to_owned()
        };
        let jobs: Vec<_> = plain.into_iter().map(|named| (job(&named), named)).collect();
        let mut turns: Vec<_> =
            round_robin(jobs, |(job, _)| job).into_iter().map(|(_, named)| named).collect();
        let beyond = turns.split_off(turns.len().min(MAX_NAMES));
        self.unnamed += odd.iter().chain(&beyond).map(|(_, series)| series.len()).sum::<usize>();
        turns
    }

    /// Returns the newest sample of `up` of each target.
    async fn up(&mut self) -> Result<(Vec<(Target, f64, bool)>, Option<String>), QueryError> {
        let up = Selector { name: "up".into(), is_expression: false, matchers: String::new() };
        let (samples, partial) = self.samples(&up).await?;
        let mut newest: HashMap<Target, (f64, bool)> = HashMap::new();
        for sample in samples {
            let target = sample.series.target(&self.config.cluster_label);
            let new = (sample.at, sample.series.value == 1.0);
            let held = newest.entry(target).or_insert(new);
            // Of two replicas of a server one may not reach the target.
            let is_better = new.0 > held.0 || (new.0 == held.0 && !new.1);
            if is_better {
                *held = new;
            }
        }
        Ok((newest.into_iter().map(|(target, (at, is_up))| (target, at, is_up)).collect(), partial))
    }
}

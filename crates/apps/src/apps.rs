//! The judge of the apps of a fleet: the rolled-up status of the objects of each, and the revisions that its delivery
//! tool reports.

use std::cell::RefCell;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::assess::{Costs, Evidence, Unjudged, assess_for};
use taffrail_status::rollup::worst_of_app;
use taffrail_status::{ActiveRules, Presence, Status, Teacher, TeachingTime, Voice, cut};

use crate::agreement::{LargeMarks, is_large};
use crate::app::{App, AppError, AppList, OUT_OF_REACH, Resource, UNREADABLE, UnreadObjects};
use crate::checks::not_evaluated;
use crate::declaration::{Declaration, Destination};
use crate::delivery::{AppLabels, Declarations, argo, flux};
use crate::fleet::Fleet;
use crate::freshness::Freshness;
use crate::identity::{AppName, AppRef, Delivery};
use crate::memo::Memo;
use crate::noting::metadata_of;
use crate::objects::{Objects, freshness_of, freshness_of_home, suffices, why_unread};
use crate::problems;
use crate::read_errors::read_errors;
use crate::relations::Relations;
use crate::scope::{Scope, ScopeError};
use crate::sync::{ObjectSync, Source, SyncState};
use crate::teachers::{Standings, of_doubted, teachers};
use crate::unread::{unread_objects, unread_problem};
use crate::upstream::{MAX_UPSTREAMS, RelationType, Upstream, Upstreams};
use crate::words::{Said, Words};

/// The reason of the errors about namespaces with objects that were not judged because of a cost limit.
pub(crate) const NOT_JUDGED: &str = "NotJudged";

/// The maximum number of errors per cluster for namespaces with objects that were not judged; the last of them counts
/// the other namespaces.
const MOST_UNJUDGED: usize = 50;

/// Finds the apps in `clusters` and judges them at the time `now`.
///
/// A cluster under several names is shown once, under the first of them.
pub fn apps(clusters: &[&dyn Objects], rules: &ActiveRules<'_>, now: Timestamp) -> AppList {
    apps_by(&AppLabels::default(), clusters, rules, now)
}

/// Finds and judges the apps like [`apps()`]; `labels` are the labels that name the apps of objects that no tool
/// declares.
pub fn apps_by(
    labels: &AppLabels,
    clusters: &[&dyn Objects],
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> AppList {
    let fleet = Fleet::new(clusters);
    let found = Declarations::of(&fleet, labels, &rules.options.trust, now);
    list(&fleet, found, rules, now)
}

/// Makes one app of `objects` in each cluster, even if other apps declare them, and judges it at the time `now`.
pub fn declared(
    clusters: &[&dyn Objects],
    objects: &[ObjectKey],
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> AppList {
    let fleet = Fleet::new(clusters);
    let apps = (0..fleet.members.len()).map(|home| Declaration::of_objects(home, objects));
    list(&fleet, Declarations::of_apps(apps), rules, now)
}

/// Makes an app of each object in `objects`, in this order, and judges it like [`declared`].
pub fn declared_each(
    cluster: &dyn Objects,
    objects: &[ObjectKey],
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> AppList {
    let fleet = Fleet::new(&[cluster]);
    let apps = objects.iter().map(|key| Declaration::of_objects(0, std::slice::from_ref(key)));
    list(&fleet, Declarations::of_apps(apps), rules, now)
}

fn list(fleet: &Fleet<'_>, found: Declarations, rules: &ActiveRules<'_>, now: Timestamp) -> AppList {
    let judge = Judge::new(fleet, rules, now);
    let row = |app: Arc<Declaration>| {
        let via = app.delivered_by.and_then(|place| found.get(place));
        judge.row(Arc::unwrap_or_clone(app), via)
    };
    let shown = found.apps.iter().cloned().enumerate().filter(|(place, _)| !found.left_out.has_app(*place));
    let mut rows: Vec<(usize, App)> = shown.map(|(_, app)| row(app)).collect();
    rows.sort_by_cached_key(|(cluster, row)| order(*cluster, &row.app));
    let errors = errors(fleet, &found, &[], &judge);
    let left_out = found.left_out.names(fleet);
    let mut apps: Vec<App> = rows.into_iter().map(|(_, row)| row).collect();
    Relations::default().find_all(&mut apps);
    AppList { apps, errors, left_out }
}

/// Returns the sort key of an app: the index of the cluster that shows it, namespace, name, delivery, home cluster.
pub(crate) fn order(cluster: usize, app: &AppRef) -> (usize, String, String, Delivery, String) {
    let AppRef { namespace, name, delivery, home, .. } = app.clone();
    (cluster, namespace, name, delivery, home)
}

/// Returns the errors of reading the fleet, those of the declarations `found`, `more`, and one for each namespace with
/// objects that were not judged because of a cost limit; sorted, each once.
pub(crate) fn errors(
    fleet: &Fleet<'_>,
    found: &Declarations,
    more: &[(usize, ScopeError)],
    judge: &Judge<'_, '_>,
) -> Vec<AppError> {
    let mut errors = read_errors(fleet, found, &judge.rules.options.trust);
    errors.extend(found.errors.iter().chain(more).cloned());
    errors.extend(judge.costs.iter().enumerate().flat_map(|(at, it)| unjudged(at, it)));
    errors.sort();
    errors.dedup();
    let named = |(cluster, error): (usize, ScopeError)| AppError {
        cluster: fleet.objects(cluster).name().to_owned(),
        error,
    };
    errors.into_iter().map(named).collect()
}

/// Returns one error per namespace with objects that were not judged because of a cost limit, for the first 50
/// namespaces; the last error contains the number of further ones.
fn unjudged(cluster: usize, costs: &Costs) -> Vec<(usize, ScopeError)> {
    let unjudged = costs.unjudged();
    let more = unjudged.len().saturating_sub(MOST_UNJUDGED);
    let told = unjudged.into_iter().take(MOST_UNJUDGED).enumerate().map(|(at, (namespace, unjudged))| {
        let Unjudged { count, message } = unjudged;
        let (objects, were) = if count == 1 { ("object", "was") } else { ("objects", "were") };
        let mut message = format!("{count} {objects} {were} {message}");
        if more > 0 && at + 1 == MOST_UNJUDGED {
            message.push_str(&format!("; the same in {more} more namespaces"));
        }
        (cluster, ScopeError { scope: Scope::Namespace(namespace), reason: NOT_JUDGED.to_owned(), message })
    });
    told.collect()
}

/// Returns the freshness of the state of an app's objects: `freshness`, that of their observation, or if they are not
/// read and their state comes from what was read in the home, the worse one of the two.
pub(crate) fn of_objects(freshness: Freshness, home: Freshness, unread: Option<&UnreadObjects>) -> Freshness {
    if unread.is_some() { freshness.worst(home) } else { freshness }
}

/// The judge of the apps of a fleet in one computation, with its caches.
pub(crate) struct Judge<'f, 'a> {
    fleet: &'f Fleet<'a>,
    /// For each cluster of the fleet, the computing cost of its rules so far.
    costs: Vec<Costs>,
    rules: &'f ActiveRules<'f>,
    /// The time that rules of clusters took in this computation, which is limited.
    time_taken: TeachingTime,
    standings: Standings,
    now: Timestamp,
    /// For each cluster, the judged entries of objects that are large or not well, because several apps may declare
    /// them.
    judged: Vec<Memo<Arc<ObjectKey>, Resource>>,
    /// The judged entries that apps with equal [`SharingConditions`] share, by these conditions and the object.
    remembered: Memo<(SharingConditions, Arc<ObjectKey>), Resource>,
    /// A pool of the messages and cause steps of all entries, so that equal ones are stored once.
    said: RefCell<Said>,
    large: LargeMarks,
}

/// The conditions under which an entry may be shared: the index of the object's cluster, the Argo CD scripts that
/// judge it, and the namespace charged for the cost (of an app that lists the object without a mark on it).
type SharingConditions = (usize, Option<Lesson>, Option<String>);

/// The health scripts of one Argo CD, with the trust in them, as a part of [`SharingConditions`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lesson {
    home: usize,
    namespace: String,
    voice: Voice,
}

/// An object that an app declares, as it was found in its cluster.
#[derive(Clone, Copy)]
struct FoundObject<'a> {
    cluster: usize,
    key: &'a Arc<ObjectKey>,
    found: &'a Presence<'a>,
    /// The account of the app that pays for judging the object, see [`Judge::payer`]; `None` for an object with a
    /// confirmed claim, unless the rules that the app brings may not better its status.
    claimant: Option<&'a str>,
}

impl<'f, 'a> Judge<'f, 'a> {
    /// Makes a judge with empty caches.
    pub(crate) fn new(fleet: &'f Fleet<'a>, rules: &'f ActiveRules<'f>, now: Timestamp) -> Judge<'f, 'a> {
        let costs = fleet.members.iter().map(|_| Costs::default()).collect();
        let judged = fleet.members.iter().map(|_| Memo::default()).collect();
        let (time_taken, standings) = (TeachingTime::default(), Standings::default());
        let (remembered, said, large) = (Memo::default(), RefCell::default(), LargeMarks::default());
        Judge { fleet, costs, rules, time_taken, standings, now, judged, remembered, said, large }
    }

    /// Returns true if some object was not judged because of a cost limit.
    pub(crate) fn is_over(&self) -> bool {
        self.costs.iter().any(|costs| !costs.unjudged().is_empty())
    }

    pub(crate) fn name(&self, app: &Declaration) -> AppRef {
        AppRef {
            home: self.fleet.objects(app.home).name().to_owned(),
            target: self.fleet.objects(app.cluster().unwrap_or(app.home)).name().to_owned(),
            delivery: app.delivery,
            namespace: app.namespace.clone(),
            name: app.name.clone(),
        }
    }

    /// Judges the app that `app` declares; `via` is the app that delivers its objects in place of its own tool. Returns
    /// it with the index of the cluster in which its row is shown.
    ///
    /// [`Relations`] adds what other rows tell of it.
    pub(crate) fn row(&self, mut app: Declaration, via: Option<&Declaration>) -> (usize, App) {
        // Messages of delivery tools may have any length.
        app.message = cut(app.message).into_owned();
        app.trouble = app.trouble.map(|trouble| cut(trouble).into_owned());
        let cluster = app.cluster().unwrap_or(app.home);
        let name = self.name(&app);
        let (teachers, unheard) = teachers(self.fleet, &app, self.rules, &self.standings);
        let cluster_rules = |teachers: &[Teacher<'_>]| {
            self.rules.cluster_rules.and_then(|rules| rules.with_cluster_rules(teachers, &self.time_taken))
        };
        let taught = cluster_rules(&teachers);
        let rules = taught.as_deref().map_or(*self.rules, |rules| ActiveRules { rules, ..*self.rules });
        let of_doubted = taught.as_ref().and_then(|_| cluster_rules(&of_doubted(&teachers)));
        let of_doubted =
            of_doubted.as_deref().map_or(*self.rules, |rules| ActiveRules { rules, ..*self.rules });
        let lesson = self.lesson(&app, &teachers);
        let said = self.tool_says(&app);
        let resource = |key: &Arc<ObjectKey>| match &app.destination {
            Destination::Cluster(cluster) => {
                let found = self.fleet.objects(*cluster).get(ObjectKey::as_ref(key));
                let unconfirmed = app.claimant.lacks_agreement(*cluster, key, &found, &self.large);
                // The rules that an app brings apply only to its own objects.
                let is_doubted = unconfirmed
                    || taught.is_some() && !app.claimant.may_better(*cluster, key, &found, &self.large);
                // A claimant without the agreement of the object pays for judging it.
                let claimant = is_doubted.then(|| self.payer(&app, *cluster));
                let place =
                    FoundObject { cluster: *cluster, key, found: &found, claimant: claimant.as_deref() };
                let judged = match &taught {
                    Some(_) if is_doubted => self.judge_taught(place, &of_doubted, lesson.as_ref()),
                    Some(_) => self.judge_taught(place, &rules, lesson.as_ref()),
                    None => self.judge_once(place),
                };
                Resource { unconfirmed, ..judged }
            }
            Destination::OutOfReach(place) => Resource::out_of_reach(key.clone(), place, said.as_deref()),
        };
        let unread = unread_objects(self.fleet, &app, self.now);
        let resources: Vec<Resource> = match &unread {
            Some(_) => Vec::new(),
            None => app.objects.shared().iter().map(resource).collect(),
        };
        let declaring = app.declaring.as_ref().map(|key| self.declaring(&app, key));

        let unreadable = if unread.is_some() { None } else { self.unknown_objects(&app) };
        let unlisted = unreadable.iter().chain(unread.as_ref().map(|unread| &unread.health));
        let speaker = worst_of_app(&resources, unlisted.chain(&declaring));
        let health = speaker.map_or(Status::Current, |speaker| speaker.status);
        let not_well = speaker.filter(|_| health != Status::Current);
        let unsynced = self.unsynced(&app);
        let declared_checks = app.checks.clone();
        let freshness =
            freshness_of(self.fleet.objects(cluster), resources.iter().flat_map(Resource::grounds));
        let home_freshness = freshness_of_home(
            self.fleet.objects(app.home),
            app.delivery,
            &app.namespace,
            app.declaring.as_ref(),
        );
        let freshness = of_objects(freshness, home_freshness, unread.as_ref());
        let halves = [freshness, home_freshness];
        let mut problems =
            problems::of((&app, via), halves, not_well, &resources, &unsynced, self.fleet, self.now);
        if let Some(unread) = unread.as_ref().filter(|unread| not_well == Some(&unread.health)) {
            let own = unread_problem(unread);
            problems
                .iter_mut()
                .filter(|it| (it.axis, &it.state) == (own.axis, &own.state))
                .for_each(|it| it.object.clone_from(&own.object));
        }
        for problem in &mut problems {
            problem.message = self.said.borrow_mut().words(std::mem::take(&mut problem.message));
        }
        let via = via.map(|via| self.name(via));
        let upstreams = self.upstreams(&app, via.as_ref());
        let said = match (&app.trouble, app.sync.state) {
            (Some(trouble), SyncState::Failed | SyncState::Unknown) if !trouble.is_empty() => trouble.clone(),
            _ => app.message,
        };
        let message = not_well.map_or_else(|| Words::from(&*said), |speaker| speaker.message.clone());
        let is_unobserved =
            |it: &Resource| unread.as_ref().is_some_and(|own| !own.is_said && own.health == *it);
        let row = App {
            app: name,
            key: app.key,
            in_reach: matches!(app.destination, Destination::Cluster(_)),
            declaring: app.declaring,
            health,
            message,
            delivery_message: said,
            counts: resources.iter().map(|resource| resource.status).collect(),
            sync: app.sync,
            suspended: app.suspended,
            freshness,
            home_freshness,
            source: app.source.map(Source::without_password),
            delivered_by: via,
            upstreams,
            worst: not_well.filter(|it| !is_unobserved(it)).map(|speaker| (*speaker.key).clone()),
            speaker: not_well.cloned(),
            unheard,
            unreadable: app.unreadable.filter(|_| unread.is_none()).map(|(key, _)| key),
            unread,
            problems,
            checks: not_evaluated(&declared_checks),
            declared_checks,
            unsynced,
            resources,
        };
        (cluster, row)
    }

    /// Returns the account to which the cost of judging the objects of `app` is charged: the app's namespace, preceded
    /// by its home cluster if that is not `cluster`, the one with the objects.
    fn payer(&self, app: &Declaration, cluster: usize) -> String {
        match app.home == cluster {
            true => app.namespace.clone(),
            false => format!("{}/{}", self.fleet.objects(app.home).name(), app.namespace),
        }
    }

    /// Returns the health that the delivery tool reports for an app whose objects are in a cluster that was
    /// not queried: `Argo CD: Healthy`. `None` for other apps, and if Argo CD or Flux reports no health.
    fn tool_says(&self, app: &Declaration) -> Option<String> {
        if !matches!(app.destination, Destination::OutOfReach(_)) {
            return None;
        }
        let observed = self.fleet.objects(app.home).get(app.declaring.as_ref()?.as_ref()).present()?;
        match app.delivery {
            Delivery::ArgoApplication => {
                argo::health_word(&observed.object).map(|word| format!("Argo CD: {word}"))
            }
            Delivery::FluxKustomization | Delivery::FluxHelmRelease => {
                let ready = observed.object.condition("Ready")?.get("status")?;
                Some(if ready.is_str("True") { "Flux: Ready" } else { "Flux: not Ready" }.to_owned())
            }
            _ => None,
        }
    }

    /// Returns the apps that the declaration of `app` names as upstream: those that it depends on, and `via`, which
    /// delivers its objects.
    fn upstreams(&self, app: &Declaration, via: Option<&AppRef>) -> Upstreams {
        let is_flux = matches!(app.delivery, Delivery::FluxKustomization | Delivery::FluxHelmRelease);
        let home = self.fleet.objects(app.home);
        let declaring = app.declaring.as_ref().filter(|_| is_flux);
        let observed = declaring.and_then(|key| home.get(key.as_ref()).present());
        let (named, left_out) =
            observed.map(|observed| flux::depends_on(&observed, MAX_UPSTREAMS)).unwrap_or_default();
        // While the object is there, only its metadata matters: it changes seldom.
        let is_missing = |key: &ObjectKey| match metadata_of(home, key) {
            Presence::Present(_) => false,
            _ => matches!(home.get(key.as_ref()), Presence::Absent),
        };
        let depends_on = named.into_iter().map(|key| Upstream {
            relation: RelationType::DependsOn,
            home: home.name().to_owned(),
            is_missing: is_missing(&key),
            app: AppName { delivery: app.delivery, namespace: key.namespace, name: key.name },
        });
        let delivered_by = via.map(|via| Upstream {
            relation: RelationType::DeliveredBy,
            home: via.home.clone(),
            app: AppName::from(via),
            is_missing: false,
        });
        Upstreams { apps: depends_on.chain(delivered_by).collect(), left_out }
    }

    /// Returns the objects of an app that Argo CD reports as not synced; empty for apps of other delivery tools.
    fn unsynced(&self, app: &Declaration) -> Vec<ObjectSync> {
        let declaring = app.declaring.as_ref().filter(|_| app.delivery == Delivery::ArgoApplication);
        let observed = declaring.and_then(|key| self.fleet.objects(app.home).get(key.as_ref()).present());
        observed.map(|observed| argo::unsynced(&observed.object)).unwrap_or_default()
    }

    /// Returns an entry with status Unknown for the whole app if its objects cannot be found out; `None` if they
    /// are known.
    fn unknown_objects(&self, app: &Declaration) -> Option<Resource> {
        if let Some((key, message)) = &app.unreadable {
            let mut own = Resource::unjudged(key.clone().into(), Status::Unknown, message.clone());
            // The storage of a release is in the cluster into which a HelmRelease delivers.
            let is_declaring = app.declaring.as_ref() == Some(key);
            let cluster = app.cluster().filter(|_| !is_declaring).unwrap_or(app.home);
            let found = self.fleet.objects(cluster).get(key.as_ref());
            if matches!(found, Presence::Present(observed) if observed.projection == Projection::Full) {
                own = own.because(UNREADABLE);
            }
            return Some(match app.destination {
                Destination::Cluster(_) => own,
                Destination::OutOfReach(_) => own.because(OUT_OF_REACH),
            });
        }
        match (&app.destination, &app.declaring) {
            (Destination::OutOfReach(place), Some(key)) if app.objects.is_empty() => {
                Some(Resource::out_of_reach(key.clone().into(), place, self.tool_says(app).as_deref()))
            }
            _ => None,
        }
    }

    fn declaring(&self, app: &Declaration, key: &ObjectKey) -> Resource {
        let found = self.fleet.objects(app.home).get(key.as_ref());
        let key = &Arc::new(key.clone());
        let own = self.judge_once(FoundObject { cluster: app.home, key, found: &found, claimant: None });
        if app.never_reconciled && own.status == Status::Current {
            return own.turned(Status::InProgress, "waiting to be reconciled");
        }
        own
    }

    /// Judges an object by the rules that all apps share. Caches the result for all apps if the object is large or not
    /// well; if `place` names a claimant that pays for it, for that claimant alone.
    fn judge_once(&self, place: FoundObject<'_>) -> Resource {
        let FoundObject { cluster, key, claimant, .. } = place;
        let objects = self.fleet.objects(cluster);
        let judged = &self.judged[cluster];
        if let Some(resource) = judged.known(objects, key) {
            return resource;
        }
        // A result computed at the expense of a claimant may lack parts that cost too much, so others do not
        // use it.
        if claimant.is_some() {
            return self.judge_case(place, self.rules, None);
        }
        // The result for an unobserved object costs nothing to compute again.
        let costs_much = || matches!(place.found, Presence::Present(observed) if is_large(&observed.object));
        let is_kept = |resource: &Resource| {
            !resource.rule.is_empty() && (resource.status != Status::Current || costs_much())
        };
        judged.compute(objects, || key.clone(), || self.judge(place, self.rules), is_kept)
    }

    /// Returns the Argo CD scripts among `teachers`, the objects with rules for the app. `None` if there are none, or
    /// if the app's delivery tool is not Argo CD: the rules of other tools differ from app to app.
    fn lesson(&self, app: &Declaration, teachers: &[Teacher<'_>]) -> Option<Lesson> {
        // The rules of Kustomizations and HelmReleases are their own.
        let is_shared = app.delivery == Delivery::ArgoApplication;
        let settings = teachers.iter().find(|teacher| is_shared && teacher.object.kind() == "ConfigMap")?;
        Some(Lesson {
            home: app.home,
            namespace: settings.object.namespace().into_owned(),
            voice: settings.voice,
        })
    }

    /// Judges an object by `rules`; if these are the scripts of a `lesson`, uses the cache of its
    /// [`SharingConditions`].
    fn judge_taught(
        &self,
        place: FoundObject<'_>,
        rules: &ActiveRules<'_>,
        lesson: Option<&Lesson>,
    ) -> Resource {
        let Some(lesson) = lesson else { return self.judge(place, rules) };
        self.judge_case(place, rules, Some(lesson))
    }

    /// Returns the cached entry of an object for its [`SharingConditions`], or judges it and caches the entry.
    fn judge_case(
        &self,
        place: FoundObject<'_>,
        rules: &ActiveRules<'_>,
        lesson: Option<&Lesson>,
    ) -> Resource {
        let FoundObject { cluster, key, claimant, .. } = place;
        let case = (cluster, lesson.cloned(), claimant.map(str::to_owned));
        self.remembered.get(self.fleet.objects(cluster), (case, key.clone()), || self.judge(place, rules))
    }

    fn judge(&self, place: FoundObject<'_>, rules: &ActiveRules<'_>) -> Resource {
        let resource = self.judge_apart(place, rules);
        let mut said = self.said.borrow_mut();
        Resource { message: said.words(resource.message), chain: said.chain(resource.chain), ..resource }
    }

    fn judge_apart(&self, place: FoundObject<'_>, rules: &ActiveRules<'_>) -> Resource {
        let FoundObject { cluster, key, found, claimant } = place;
        let observed = match found {
            Presence::Present(observed) => observed,
            Presence::Absent => {
                return Resource::unjudged(
                    key.clone(),
                    Status::NotFound,
                    format!("{} {} not found", key.kind, key.path()),
                );
            }
            Presence::Unobserved(why) => {
                let message = format!("{} {} was not observed: {why}", key.kind, key.path());
                return Resource::unjudged(key.clone(), Status::Unknown, message);
            }
        };
        if !suffices(observed) {
            let why = why_unread(self.fleet.objects(cluster), ObjectKey::as_ref(key))
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            let message = format!("only the metadata of {} {} was read{why}", key.kind, key.path());
            return Resource::unjudged(key.clone(), Status::Unknown, message);
        }
        let (objects, costs) = (self.fleet.objects(cluster), &self.costs[cluster]);
        let evidence = Evidence::of(objects).at_cost(costs);
        let assessment = assess_for(claimant, &observed.object, evidence, rules, self.now);
        if let Some((log, _)) = objects.question_log() {
            costs.take_next().into_iter().for_each(|next| log.changes_at(next));
            log.takes(&costs.take_excess());
        }
        Resource {
            key: key.clone(),
            status: assessment.verdict.status,
            message: assessment.message.into(),
            rule: assessment.verdict.rule,
            since: assessment.since,
            flags: assessment.flags,
            chain: assessment.chain,
            unconfirmed: false,
        }
    }
}

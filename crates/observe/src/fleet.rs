//! Where the objects come from: dumps, or live clusters.
//!
//! Every view works on either; both end as [`Snapshot`]s.

mod dump;
mod ending;
mod follow;
#[cfg(feature = "demo")]
mod held;
#[path = "look.rs"]
mod live;
mod reading;
pub(crate) mod recording;
#[path = "../../taffrail/src/source/requests.rs"]
mod requests;
mod sameness;
#[path = "../../taffrail/src/source/stopwatch.rs"]
mod stopwatch;
mod timing;

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use taffrail_apps::{App, AppLabels, AppList, Asked, Objects, Snapshot, apps_by, declared};
use taffrail_object::ObjectKey;
use taffrail_status::assess::Budgets;
use taffrail_status::{ClusterState as _, Status};

use crate::cli::{GroupingArguments, SourceArguments, ViewArguments};
use crate::complaint::Complaint;
use crate::rule_source::{RuleSource, RulesWithOptions};

pub(crate) use follow::{Follow, Wanted};
#[cfg(feature = "demo")]
pub(crate) use held::Held;
#[cfg(feature = "lua")]
pub(crate) use live::Asking;
pub(crate) use live::{Failure, Live, Members, More, begun, catalog, contexts, each, go_on, members};
pub(crate) use requests::print_requests;

use stopwatch::Stopwatch;

/// Where a view reads: once, or what is followed, as often as it changes.
pub(crate) trait Source {
    /// What `asked` needs from where `arguments` say; of live clusters also what `more` wants when it sees what there is.
    fn read(&mut self, arguments: &ViewArguments, asked: &Asked, more: More<'_>)
    -> Result<&Fleet, Complaint>;

    /// Whether rows are wanted whatever their state, to tell what left a filtered list from what is gone.
    fn shows_all(&self) -> bool {
        false
    }

    /// What is followed, for a view that wants more than [`Source::read`] can say; nothing where it is read once. The
    /// truth says whether what is known is to be taken as it is: two answers are to be of the same state.
    fn followed(
        &mut self,
        arguments: &ViewArguments,
        asked: &Asked,
    ) -> Result<Option<(&mut Follow, bool)>, Complaint> {
        let _ = (arguments, asked);
        Ok(None)
    }
}

/// Wants nothing more.
pub(crate) const NOTHING_MORE: More<'static> = &|_, _| Vec::new();

/// Reads once.
#[derive(Default)]
pub(crate) struct Once(Option<Fleet>);

impl Source for Once {
    fn read(
        &mut self,
        arguments: &ViewArguments,
        asked: &Asked,
        more: More<'_>,
    ) -> Result<&Fleet, Complaint> {
        Ok(self.0.insert(Fleet::read_with(arguments, asked, more)?))
    }
}

/// What was read.
pub(crate) struct Fleet {
    /// Ended first, so that it does not count how long it takes to forget the rest.
    _answering: Option<Stopwatch>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// The time at which it is judged.
    pub(crate) now: Timestamp,
    /// The time from which ages are told: another one only where answers of different times are compared.
    pub(crate) aged: Timestamp,
    /// Who judges it.
    pub(crate) rules: RulesWithOptions,
    /// What went wrong outside of any cluster, such as in one of several kubeconfigs.
    pub(crate) complaints: Vec<Complaint>,
    /// The labels that name apps.
    labels: AppLabels,
}

impl Fleet {
    /// Reads what `asked` needs from where `arguments` say.
    pub(crate) fn read(arguments: &ViewArguments, asked: &Asked) -> Result<Fleet, Complaint> {
        Fleet::read_with(arguments, asked, NOTHING_MORE)
    }

    /// As [`Fleet::read`]; of live clusters then also what `more` wants when it sees what there is.
    fn read_with(arguments: &ViewArguments, asked: &Asked, more: More<'_>) -> Result<Fleet, Complaint> {
        let rules = arguments.rules();
        let arguments = &arguments.source;
        if !arguments.from.is_empty() {
            let fleet = dumps_for(arguments, asked, &rules)?;
            return Ok(Fleet { rules, labels: asked.app_labels.clone(), ..fleet });
        }
        let now = arguments.now.unwrap_or_else(Timestamp::now);
        let Members { members, complaints } = members(arguments)?;
        let asked = Asked { follow: asked.declarations && members.len() > 1, ..asked.clone() };
        let labels = asked.app_labels.clone();
        let lives = live::fleet(members, arguments.timeout, asked, now, rules.clone(), more)?;
        print_requests(arguments.verbose, lives.iter().filter_map(|(_, cluster)| cluster.as_ref()));
        let snapshots = lives.into_iter().map(|(snapshot, _)| snapshot).collect();
        Ok(Fleet {
            snapshots,
            now,
            aged: now,
            rules,
            complaints,
            labels,
            _answering: Stopwatch::start(arguments.verbose),
        })
    }

    /// Its apps; where objects are declared on the command line, the app that they make instead.
    pub(crate) fn apps(&self, objects: &[ObjectKey]) -> AppList {
        let mut list = if objects.is_empty() {
            apps_by(&self.labels, &self.clusters(), &self.rules.active(), self.now)
        } else {
            declared(&self.clusters(), objects, &self.rules.active(), self.now)
        };
        for app in &mut list.apps {
            let target = self.snapshots.iter().find(|snapshot| snapshot.name() == app.app.target);
            if let Some(dump) = target.filter(|snapshot| snapshot.is_dump()) {
                doubt_absence(app, dump);
            }
        }
        list
    }

    /// The clusters, as views take them.
    pub(crate) fn clusters(&self) -> Vec<&dyn Objects> {
        self.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect()
    }
}

/// What is said of an object that is not in a dump which has none of its kind.
pub(crate) const LEFT_OUT: &str = " (the kind may be left out of the dump)";

/// Adds to what is said of missing objects that a dump, which has none of their kind, may have left them out.
fn doubt_absence(app: &mut App, dump: &Snapshot) {
    let App { resources, speaker, message, worst, .. } = app;
    let missing = resources.iter_mut().chain(speaker).filter(|it| it.status == Status::NotFound);
    for resource in missing {
        let ObjectKey { group, kind, .. } = &resource.key;
        if dump.of_kind(group, kind, None).next().is_some() {
            continue;
        }
        if worst.as_ref() == Some(&resource.key) && *message == resource.message {
            *message = format!("{message}{LEFT_OUT}").into();
        }
        if let Some(last) = resource.chain.last_mut() {
            Arc::make_mut(last).message.push_str(LEFT_OUT);
        }
        resource.message = format!("{}{LEFT_OUT}", resource.message).into();
    }
}

/// What is to be read for the apps, or for the objects that are declared on the command line.
pub(crate) fn asked(
    namespace: Option<&String>,
    objects: &[ObjectKey],
    grouping: &GroupingArguments,
) -> Asked {
    if objects.is_empty() {
        Asked { namespace: namespace.cloned(), app_labels: grouping.labels(), ..Asked::default() }
    } else {
        Asked { declarations: false, objects: objects.to_vec(), ..Asked::default() }
    }
}

/// Reads the dumps that the arguments name.
pub(crate) fn dumps(arguments: &SourceArguments) -> Result<Fleet, Complaint> {
    let rules = RuleSource::default().with_options(Budgets::default(), arguments.timeout, &arguments.trust);
    dumps_for(arguments, &Asked::default(), &rules)
}

/// Reads the dumps that the arguments name, of each what `asked` says when it sees what there is: what could not be read when
/// it was written is told where that is wanted.
pub(crate) fn dumps_of(
    arguments: &SourceArguments,
    asked: &dyn Fn(&Snapshot) -> Asked,
) -> Result<Fleet, Complaint> {
    dumps_by(
        arguments,
        asked,
        &RuleSource::default().with_options(Budgets::default(), arguments.timeout, &arguments.trust),
    )
}

/// As [`dumps`]; a failure is reported where `asked` wants what could not be read when a dump was written.
fn dumps_for(
    arguments: &SourceArguments,
    asked: &Asked,
    rules: &RulesWithOptions,
) -> Result<Fleet, Complaint> {
    dumps_by(arguments, &|_| asked.clone(), rules)
}

fn dumps_by(
    arguments: &SourceArguments,
    asked: &dyn Fn(&Snapshot) -> Asked,
    rules: &RulesWithOptions,
) -> Result<Fleet, Complaint> {
    let started = Instant::now();
    let dump::Dumps { snapshots, complaints, now } =
        dump::read(&arguments.from, arguments.now, asked, &rules.active())?;
    if arguments.verbose > 0 {
        stopwatch::tell_read(&snapshots, started.elapsed());
    }
    let rules = rules.clone();
    let labels = AppLabels::default();
    let aged = now;
    let _answering = Stopwatch::start(arguments.verbose);
    Ok(Fleet { snapshots, now, aged, rules, complaints, labels, _answering })
}

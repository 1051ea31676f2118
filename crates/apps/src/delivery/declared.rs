//! The app that one object declares: before and after its target cluster is looked up in the fleet.

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_status::Observed;

use super::Declaration;
use super::argo::homes::Homes;
use super::destination::{Addresses, Target};
use super::flux::releases::ReleaseClaims;
use super::flux::sources::Sources;
use super::flux::stored::DeclaredRelease;
use super::most_apps::AppNumbers;
use crate::fleet::Fleet;
use crate::objects::Objects;

/// A declaring object, and the parts of its cluster that its declaration is read from.
pub(super) struct Declaring<'d, 'a> {
    /// The index of the cluster.
    pub(super) home: usize,
    pub(super) objects: &'a dyn Objects,
    pub(super) observed: &'d Observed<'a>,
    /// A cache of the Flux sources.
    pub(super) sources: &'d Sources,
    /// A cache of the addresses of target clusters.
    pub(super) addresses: &'d Addresses,
    /// The namespaces of the cluster in which an Argo CD is installed.
    pub(super) homes: &'d Homes,
    pub(super) now: Timestamp,
}

impl<'d, 'a> Declaring<'d, 'a> {
    /// Makes the declaring object `observed` of the cluster `home`, with the caches of the fleet.
    pub(super) fn of(
        fleet: &'d Fleet<'a>,
        home: usize,
        homes: &'d Homes,
        observed: &'d Observed<'a>,
        now: Timestamp,
    ) -> Declaring<'d, 'a> {
        let (objects, sources, addresses) = (fleet.objects(home), &fleet.sources, &fleet.addresses);
        Declaring { home, objects, observed, sources, addresses, homes, now }
    }
}

/// The app that an object declares, before the other clusters of the fleet are known.
#[derive(Debug)]
pub(super) struct Declared {
    /// The app, with its home as destination; the real one and some of its objects are not known yet.
    pub(super) app: Declaration,
    /// The cluster that the object names for the app.
    pub(super) target: Target,
    /// The release of a HelmRelease in the storage of its target cluster; `None` for other declaring objects.
    pub(super) release: Option<DeclaredRelease>,
}

/// The apps of one or more declaring objects, with their target clusters.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) apps: Vec<Arc<Declaration>>,
    /// The releases that a HelmRelease claims; `None` for other declaring objects, and if the target cluster was not
    /// queried.
    pub(super) releases: Option<Arc<ReleaseClaims>>,
    /// The numbers of apps, by namespace, that were not read because the cluster declares too many.
    pub(super) unread: AppNumbers,
}

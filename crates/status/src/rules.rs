//! The rules that judge objects.

use jiff::Timestamp;
use taffrail_object::{GroupKind, Object};

use crate::adverse;
use crate::compute::{Fork, compute};
use crate::config_sync;
use crate::costs::Costs;
use crate::flux;
use crate::named_cluster::NamedCluster;
use crate::options::Options;
use crate::teaching::{Teacher, TeachingTime};
use crate::verdict::{ComputeError, Verdict};

/// A set of rules that gives each object a verdict.
pub trait Rules: Send + Sync {
    /// Judges `object` at the time `now`; `context` has the facts that are not in the object's own fields.
    ///
    /// # Errors
    /// Returns an error if the object does not have the structure of its kind; views then call it `Unknown`.
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError>;

    /// Returns true if verdicts on objects of this kind may depend on the objects that name them as owner
    /// ([`ObjectContext::children`]). A caller that caches verdicts then judges an object again when one of those
    /// changes.
    ///
    /// The default is false.
    fn reads_children(&self, group: &str, kind: &str) -> bool {
        let _ = (group, kind);
        false
    }

    /// Lists the kinds whose objects stand for clusters, such as `Cluster` of Cluster API.
    ///
    /// The default is an empty list.
    fn cluster_kinds(&self) -> Vec<GroupKind> {
        Vec::new()
    }

    /// Returns the cluster that an object of one of these kinds names; `None` for other objects, which is the default.
    fn named_cluster(&self, object: &Object<'_>) -> Option<NamedCluster> {
        let _ = object;
        None
    }
}

/// The rule name in verdicts on objects that have no status yet, but whose controller may still write one; such a
/// verdict changes with time, without a change of the object.
pub const FIRST_STATUS_RULE: &str = "generic/first-status";

/// The rules that objects in a cluster define for other objects: Flux Kustomizations for the objects they deliver,
/// Argo CD settings for the objects that this Argo CD delivers.
pub trait ClusterRules: Send + Sync {
    /// Returns rules that extend these by those that `teachers`, objects such as Kustomizations, define for some
    /// objects; `None` if the teachers define no readable rule. `spent` records the time for reading them, and records
    /// and limits that for parsing their expressions and for judging by the returned rules.
    fn with_cluster_rules<'r>(
        &'r self,
        teachers: &[Teacher<'_>],
        spent: &'r TeachingTime,
    ) -> Option<Box<dyn Rules + 'r>>;

    /// Lists, as sentences, the requirements of `object` on its `dependencies` (`readyExpr` of Flux) that do not hold.
    /// `spent` records the time that this takes, and limits it; `goes_on` is called before each dependency and returns
    /// false when time is up.
    ///
    /// The default is an empty list.
    fn unmet_dependency(
        &self,
        object: &Object<'_>,
        dependencies: &[Object<'_>],
        spent: &TeachingTime,
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let _ = (object, dependencies, spent, goes_on);
        Vec::new()
    }
}

/// The rules in force and the user's settings: everything besides the objects that an assessment needs.
#[derive(Clone, Copy)]
pub struct ActiveRules<'r> {
    /// The rules that judge each object.
    pub rules: &'r dyn Rules,
    /// The source of additional rules from objects in clusters; `None` to ignore such rules.
    pub cluster_rules: Option<&'r dyn ClusterRules>,
    /// The user's settings.
    pub options: &'r Options,
}

impl<'r> ActiveRules<'r> {
    /// Returns `rules` with the default options, without rules from objects in clusters.
    pub fn new(rules: &'r dyn Rules) -> ActiveRules<'r> {
        ActiveRules { rules, cluster_rules: None, options: Options::DEFAULT }
    }
}

impl Default for ActiveRules<'_> {
    /// Returns the rules of [`Taffrail`] with the default options.
    fn default() -> Self {
        ActiveRules::new(&Taffrail)
    }
}

/// Facts about an object that are not in its own fields.
#[derive(Clone, Copy, Default)]
pub struct ObjectContext<'s> {
    /// True if the object's kind has a status subresource, so that a controller should write a status; `None` if
    /// unknown.
    pub has_status_subresource: Option<bool>,
    /// A function that returns the objects that were read and that name this object as owner; `None` if they cannot be
    /// looked up.
    pub children: Option<&'s dyn Fn() -> Vec<serde_json::Value>>,
    /// The cost so far of judging the objects of the same cluster; `None` for no limit.
    pub costs: Option<&'s Costs>,
    /// The namespace charged for the cost because its apps list the object without the object's agreement; `None` to
    /// charge the object's own namespace.
    pub claimant: Option<&'s str>,
}

/// The rules of kstatus, without changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kstatus {
    /// The variant of kstatus to follow.
    pub fork: Fork,
}

impl Rules for Kstatus {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        compute(object, now, context.costs, self.fork)
    }
}

/// The rules that Taffrail uses: those of kstatus (the Flux variant), except where kstatus is known to mislead.
///
/// While Flux retries a failure, its objects report `Ready=False` and `Reconciling=True`; kstatus calls that InProgress
/// for ever. Config Sync's objects report `Stalled=True` after `Reconciling=True`; kstatus stops at the first. And an
/// object is not green only because it reports `Ready=True` if it also reports `Degraded=True`, nor only because no
/// rule knows its kind if it reports `phase: Failed` (`generic/adverse`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Taffrail;

impl Rules for Taffrail {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        let verdict = match flux::judge(object).or_else(|| config_sync::judge(object)) {
            Some(verdict) => verdict,
            None => adverse::judge(object, compute(object, now, context.costs, Fork::Flux)?),
        };
        Ok(verdict.bounded())
    }
}

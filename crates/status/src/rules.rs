//! The rules that judge objects.

use jiff::Timestamp;
use taffrail_object::Object;

use crate::adverse;
use crate::compute::{Fork, compute};
use crate::config_sync;
use crate::costs::Costs;
use crate::flux;
use crate::options::Options;
use crate::teaching::{Look, Teacher};
use crate::verdict::{ComputeError, Verdict};

/// A set of rules that gives each object a verdict.
pub trait Rules: Send + Sync {
    /// Judges `object` at the time `now`, with the facts of `context` besides its own fields.
    ///
    /// # Errors
    /// Returns an error if the object does not have the structure of its kind; views then call it `Unknown`.
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError>;

    /// Returns true if the verdict on objects of a kind may depend on their [children](ObjectContext::children). A
    /// caller that keeps verdicts judges these again when a child changes.
    ///
    /// By default, no verdict does.
    fn reads_children(&self, group: &str, kind: &str) -> bool {
        let _ = (group, kind);
        false
    }
}

/// The rule of the verdict on an object that has no status yet, where its controller may still write the first: time alone changes it.
pub const FIRST_STATUS_RULE: &str = "generic/first-status";

/// The rules that objects of a cluster define for others: a Kustomization of Flux for the objects that it delivers, the
/// settings of an Argo CD for the objects that this delivers.
pub trait ClusterRules: Send + Sync {
    /// Returns these rules with those that `teachers` define, which apply to some of their objects; `None` if they
    /// define nothing that can be read. `look` limits and records the cost.
    fn with_cluster_rules<'r>(
        &'r self,
        teachers: &[Teacher<'_>],
        look: &'r Look,
    ) -> Option<Box<dyn Rules + 'r>>;

    /// Lists, as sentences, the requirements of `object` on its dependencies (`readyExpr` of Flux) that do not hold.
    /// `look` limits and records the cost; before each dependency, `goes_on` returns true if there is time for it.
    ///
    /// By default, nothing is required.
    fn unmet_dependency(
        &self,
        object: &Object<'_>,
        dependencies: &[Object<'_>],
        look: &Look,
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let _ = (object, dependencies, look, goes_on);
        Vec::new()
    }
}

/// The rules in force, with the choices of the user: all that an assessment needs beside the objects.
#[derive(Clone, Copy)]
pub struct ActiveRules<'r> {
    /// The rules that judge each object.
    pub rules: &'r dyn Rules,
    /// The reader of the rules that clusters state; `None` where those do not count.
    pub cluster_rules: Option<&'r dyn ClusterRules>,
    /// The choices of the user.
    pub options: &'r Options,
}

impl<'r> ActiveRules<'r> {
    /// Returns `rules` alone: with the default options, and deaf to the rules that clusters state.
    pub fn new(rules: &'r dyn Rules) -> ActiveRules<'r> {
        ActiveRules { rules, cluster_rules: None, options: Options::DEFAULT }
    }
}

impl Default for ActiveRules<'_> {
    /// Returns the rules of [`Taffrail`] alone.
    fn default() -> Self {
        ActiveRules::new(&Taffrail)
    }
}

/// Facts about an object that are not in its own fields.
#[derive(Clone, Copy, Default)]
pub struct ObjectContext<'s> {
    /// True if its kind has a status subresource, so that a controller should write a status; `None` if unknown.
    pub has_status_subresource: Option<bool>,
    /// Tells the objects that name it as their owner, as far as they are known.
    pub children: Option<&'s dyn Fn() -> Vec<serde_json::Value>>,
    /// The cost of judging its cluster so far; `None` without a limit.
    pub costs: Option<&'s Costs>,
    /// The namespace that pays for it, where the author of another one lists the object without its agreement.
    pub claimant: Option<&'s str>,
}

/// kstatus, to the letter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kstatus {
    /// The line of kstatus to follow.
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

/// The rules that Taffrail shows: kstatus (the Flux line), except where it is known to mislead.
///
/// Flux' own objects say `Ready=False` and `Reconciling=True` while they retry what fails; kstatus calls that
/// InProgress for ever. Config Sync's own objects say `Stalled=True` after `Reconciling=True`; kstatus stops at the
/// first. And an object that says `Degraded=True` or `phase: Failed` of itself is never green only because it says
/// `Ready=True`, or because no rule knows its kind (`generic/adverse`).
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

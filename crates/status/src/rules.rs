//! Who judges an object.

use jiff::Timestamp;
use taffrail_object::Object;

use crate::adverse;
use crate::assess::{Costs, Options, Patience};
use crate::compute::{ComputeError, Fork, compute};
use crate::config_sync;
use crate::flux;
use crate::teaching::{Look, Teacher, Trust};
use crate::verdict::Verdict;

/// A set of rules that gives each object a verdict.
pub trait Rules: Send + Sync {
    /// Judges `object` at the time `now`, in view of what `context` tells beside it.
    ///
    /// # Errors
    /// Fails when the object is not shaped as its kind is; views call it `Unknown` then.
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError>;

    /// These rules, with what other objects say of health before them: a Kustomization of Flux of what it delivers, the
    /// settings of an Argo CD of what that delivers. What it costs is taken down in `look`. `None`: nothing that these rules
    /// understand.
    fn taught_by<'r>(&'r self, teachers: &[Teacher<'_>], look: &'r Look) -> Option<Box<dyn Rules + 'r>> {
        let _ = (teachers, look);
        None
    }

    /// Whose word the user trusts beyond what clusters prove.
    fn trust(&self) -> &Trust {
        Trust::NONE
    }

    /// What `object` itself asks of its dependencies before it goes on, and does not find (`readyExpr` of Flux), as sentences about
    /// them; empty where it asks nothing, or nothing that these rules understand. What that costs is taken down in `look`; before
    /// each that is asked, `goes_on` tells if there is time for it.
    fn unmet_by(
        &self,
        object: &Object<'_>,
        dependencies: &[Object<'_>],
        look: &Look,
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let _ = (object, dependencies, look, goes_on);
        Vec::new()
    }

    /// How long the objects of a cluster may be judged by them, where somebody waits for it.
    fn patience(&self) -> Option<&Patience> {
        None
    }

    /// What they choose where people differ; it matters to [`crate::assess::assess`] only.
    fn options(&self) -> Options {
        Options::default()
    }
}

/// What is known around an object that its own text does not tell.
#[derive(Clone, Copy, Default)]
pub struct ObjectContext<'s> {
    /// Whether its kind has a status subresource, so that somebody is to write a status.
    pub has_status_subresource: Option<bool>,
    /// Tells the objects that name it as their owner, as far as they are known.
    pub children: Option<&'s dyn Fn() -> Vec<serde_json::Value>>,
    /// What judging its cluster has cost so far; nothing where that has no bound.
    pub costs: Option<&'s Costs>,
    /// The namespace that pays for it, where the author of another one lists the object without its agreement.
    pub claimant: Option<&'s str>,
}

/// Hands everything on to whoever is inside.
macro_rules! forward {
    () => {
        fn judge(
            &self,
            object: &Object<'_>,
            context: &ObjectContext<'_>,
            now: Timestamp,
        ) -> Result<Verdict, ComputeError> {
            (**self).judge(object, context, now)
        }

        fn taught_by<'r>(&'r self, teachers: &[Teacher<'_>], look: &'r Look) -> Option<Box<dyn Rules + 'r>> {
            (**self).taught_by(teachers, look)
        }

        fn trust(&self) -> &Trust {
            (**self).trust()
        }

        fn unmet_by(
            &self,
            object: &Object<'_>,
            dependencies: &[Object<'_>],
            look: &Look,
            goes_on: &dyn Fn() -> bool,
        ) -> Vec<String> {
            (**self).unmet_by(object, dependencies, look, goes_on)
        }

        fn patience(&self) -> Option<&Patience> {
            (**self).patience()
        }

        fn options(&self) -> Options {
            (**self).options()
        }
    };
}

impl<R: Rules + ?Sized> Rules for &R {
    forward!();
}

impl<R: Rules + ?Sized> Rules for Box<R> {
    forward!();
}

/// Rules, with choices of the caller.
#[derive(Debug, Clone, Default)]
pub struct Choosing<R> {
    /// The rules that judge.
    pub rules: R,
    /// The choices where people differ.
    pub options: Options,
    /// The time that judging a cluster may take; that of the rules where there is none.
    pub patience: Option<Patience>,
}

impl<R: Rules> Rules for Choosing<R> {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        self.rules.judge(object, context, now)
    }

    fn taught_by<'r>(&'r self, teachers: &[Teacher<'_>], look: &'r Look) -> Option<Box<dyn Rules + 'r>> {
        let rules = self.rules.taught_by(teachers, look)?;
        Some(Box::new(Choosing { rules, options: self.options, patience: self.patience.clone() }))
    }

    fn trust(&self) -> &Trust {
        self.rules.trust()
    }

    fn unmet_by(
        &self,
        object: &Object<'_>,
        dependencies: &[Object<'_>],
        look: &Look,
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<String> {
        self.rules.unmet_by(object, dependencies, look, goes_on)
    }

    fn patience(&self) -> Option<&Patience> {
        self.patience.as_ref().or_else(|| self.rules.patience())
    }

    fn options(&self) -> Options {
        self.options
    }
}

/// kstatus, to the letter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kstatus {
    /// Which line of kstatus to follow.
    pub fork: Fork,
}

impl Rules for Kstatus {
    fn judge(
        &self,
        object: &Object<'_>,
        _: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        compute(object, now, self.fork)
    }
}

/// What Taffrail shows: kstatus (the Flux line), except where it is known to mislead.
///
/// Flux' own objects say `Ready=False` and `Reconciling=True` while they retry what fails; kstatus
/// calls that InProgress for ever. Config Sync's own say `Stalled=True` after `Reconciling=True`; kstatus stops
/// at the first. And what says `Degraded=True` or `phase: Failed` of itself is never green only because it says
/// `Ready=True`, or because nobody knows its kind (`generic/adverse`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Taffrail;

impl Rules for Taffrail {
    fn judge(
        &self,
        object: &Object<'_>,
        _: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        let verdict = match flux::judge(object).or_else(|| config_sync::judge(object)) {
            Some(verdict) => verdict,
            None => adverse::judge(object, compute(object, now, Fork::Flux)?),
        };
        Ok(verdict.bounded())
    }
}

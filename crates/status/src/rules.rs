//! Who judges an object.

use jiff::Timestamp;

use crate::assess::Options;
use crate::compute::{ComputeError, Fork, compute};
use crate::config_sync;
use crate::flux;
use crate::object::Object;
use crate::verdict::Verdict;

/// A set of rules that gives each object a verdict.
pub trait Rules: Send + Sync {
    /// Judges `object` at the time `now`.
    ///
    /// # Errors
    /// When the object is not shaped as its kind is; whoever shows it calls it `Unknown`.
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Result<Verdict, ComputeError>;

    /// What they choose where people differ; it matters to [`crate::assess::assess`] only.
    fn options(&self) -> Options {
        Options::default()
    }
}

impl<R: Rules + ?Sized> Rules for &R {
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Result<Verdict, ComputeError> {
        (**self).judge(object, now)
    }

    fn options(&self) -> Options {
        (**self).options()
    }
}

/// Rules, with choices where people differ.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choosing<R> {
    /// Who judges.
    pub rules: R,
    /// What is chosen.
    pub options: Options,
}

impl<R: Rules> Rules for Choosing<R> {
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Result<Verdict, ComputeError> {
        self.rules.judge(object, now)
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
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Result<Verdict, ComputeError> {
        compute(object, now, self.fork)
    }
}

/// What Taffrail shows: kstatus (the Flux line), except where it is known to mislead.
///
/// Flux' own objects say `Ready=False` and `Reconciling=True` while they retry what fails; kstatus
/// calls that InProgress for ever. Config Sync's own say `Stalled=True` after `Reconciling=True`; kstatus stops
/// at the first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taffrail;

impl Rules for Taffrail {
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Result<Verdict, ComputeError> {
        match flux::judge(object).or_else(|| config_sync::judge(object)) {
            Some(verdict) => Ok(verdict),
            None => compute(object, now, Fork::Flux),
        }
    }
}

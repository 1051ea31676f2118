//! Limits on the cost of assessments, in steps and in time, per namespace of the objects.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::Object;

use crate::teaching::{Payer, Strikes, Teaching, TeachingTime};
use crate::verdict::{Status, Verdict};

/// Steps that the assessments of one namespace's objects may always take together. Looking up one object is one step.
const FREE_PER_NAMESPACE: u64 = 100_000;

/// Steps that each object adds to the limit of its namespace, and that its own assessment may always take: many times
/// those of a usual object, so that many usual objects stay below the limit.
const FREE_PER_OBJECT: u64 = 100;

/// The number of parts into which the time limit is divided: each namespace may take one part as long as time is
/// left. Beyond that, a namespace may not take more time than it leaves to others.
const NAMESPACE_SHARE: u32 = 20;

/// Number of steps after which the clock is read again.
const STEPS_PER_CLOCK_READ: u64 = 16;

/// The time limit for judging the objects of one cluster in one pass, measured by the caller's clock.
#[derive(Clone)]
pub struct Patience {
    limit: Duration,
    bound: Arc<str>,
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Patience {
    /// Creates a limit. `clock` returns the time since any fixed moment; `bound` names the limit for the user, such
    /// as `--timeout 5s`.
    pub fn new(
        limit: Duration,
        bound: impl Into<Arc<str>>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Patience {
        Patience { limit, bound: bound.into(), clock: Arc::new(clock) }
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience")
            .field("limit", &self.limit)
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}

/// The rule name in verdicts on objects that were not judged because a cost limit was reached.
pub const UNJUDGED: &str = "unjudged";

/// The account to which the cost of an assessment is charged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Account {
    /// The namespace whose apps list the objects without the objects' agreement, and which pays; `None` if the objects'
    /// own namespace pays.
    claimant: Option<String>,
    /// The namespace of the assessed objects; empty for cluster-scoped ones.
    namespace: String,
}

impl Account {
    pub(crate) fn new(claimant: Option<&str>, namespace: &str) -> Account {
        Account { claimant: claimant.map(str::to_owned), namespace: namespace.to_owned() }
    }
}

/// The cost charged to an account so far: steps, objects, and time.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    steps: u64,
    objects: u64,
    time: Duration,
}

/// The steps and time that assessing the objects of one cluster has taken in one pass, with their limits.
///
/// Each namespace has limits of its own. Beyond them its costliest objects are not judged; other namespaces are not
/// affected. The same holds for objects that a namespace lists in other namespaces without their agreement.
#[derive(Debug, Default)]
pub struct Costs {
    time: Cell<Duration>,
    accounts: RefCell<BTreeMap<Account, Spent>>,
    /// The time charged to each namespace whose apps list objects without the objects' agreement, by that namespace:
    /// the sum over the namespaces of those objects.
    claimants: RefCell<BTreeMap<String, Duration>>,
    unjudged: RefCell<BTreeMap<String, Unjudged>>,
    scripts: TeachingTime,
    /// For each of the user's scripts, by its number: how often it was stopped, for each kind and namespace of objects.
    /// After `MAX_STRIKES` stops it is not run on those objects again.
    strikes: RefCell<BTreeMap<usize, Arc<Strikes>>>,
    /// The earliest time at which a result changes without a change of an object; `None` if none was recorded.
    next: Cell<Option<Timestamp>>,
    /// Steps above `FREE_PER_OBJECT` that objects took, by account.
    excess: RefCell<BTreeMap<Account, u64>>,
}

/// The steps that objects took above `FREE_PER_OBJECT` each, summed up by account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExcessSteps(BTreeMap<Account, u64>);

impl ExcessSteps {
    /// Returns true if no object took more steps than each may take in any case.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the steps of `other`, account by account.
    pub fn add(&mut self, other: &ExcessSteps) {
        for (account, steps) in &other.0 {
            let own = self.0.entry(account.clone()).or_default();
            *own = own.saturating_add(*steps);
        }
    }

    /// Subtracts the steps of `other`, which were added before.
    pub fn subtract(&mut self, other: &ExcessSteps) {
        for (account, steps) in &other.0 {
            if let Some(own) = self.0.get_mut(account) {
                *own = own.saturating_sub(*steps);
            }
        }
        self.0.retain(|_, steps| *steps > 0);
    }

    /// Returns true if no account can reach its limit, in whichever order the objects are judged.
    pub fn is_within_bounds(&self) -> bool {
        self.0.values().all(|steps| *steps <= FREE_PER_NAMESPACE - FREE_PER_OBJECT)
    }
}

/// The objects of a namespace that were not judged because of their cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// The number of objects.
    pub count: usize,
    /// The limit that the first of these objects exceeded, as a sentence.
    pub message: String,
}

impl Costs {
    /// Starts a new pass over the same cluster: clears the costs, but keeps the counts of stopped scripts.
    pub fn begin(&mut self) {
        *self = Costs { strikes: std::mem::take(&mut self.strikes), ..Costs::default() };
    }

    /// Records that a result changes at `at` without a change of an object; the earliest such time is kept.
    pub fn changes_at(&self, at: Timestamp) {
        if self.next.get().is_none_or(|next| at < next) {
            self.next.set(Some(at));
        }
    }

    /// Returns the earliest time recorded by [`changes_at`](Costs::changes_at) since the last call, and clears it;
    /// `None` if none was recorded.
    pub fn take_next(&self) -> Option<Timestamp> {
        self.next.take()
    }

    /// Returns, by account, the steps that assessments took beyond `FREE_PER_OBJECT` each, and resets them.
    pub fn take_excess(&self) -> ExcessSteps {
        ExcessSteps(self.excess.take())
    }

    /// Runs the user's script `number` on an object through `run`, which returns the verdict, the computing time, and
    /// true if the script was stopped. Returns that verdict, `None` if the script gives none. Does not run it, and
    /// returns a verdict that says why, if the script was stopped too often for objects of this kind and namespace, or
    /// if the payer (`claimant`, else the object's namespace) has used up its time.
    pub fn run(
        &self,
        number: usize,
        object: &Object<'_>,
        claimant: Option<&str>,
        run: impl FnOnce() -> (Option<Verdict>, Duration, bool),
    ) -> Option<Verdict> {
        let payer = if claimant.is_some() { Payer::Claimant } else { Payer::Object };
        let own = Teaching { home: "", namespace: claimant.unwrap_or_default(), target: "", payer };
        let namespace = object.namespace();
        let strikes = self.strikes.borrow_mut().entry(number).or_default().clone();
        if let Some(verdict) = strikes.verdict(object, &namespace) {
            return Some(verdict);
        }
        if !self.scripts.has_room(&own, object) {
            let message = match claimant {
                Some(claimant) => format!(
                    "the object was not judged: scripts used up the computing time allowed for objects that apps of namespace {claimant} declare"
                ),
                None => {
                    "the object was not judged: scripts used up the computing time allowed for objects of this namespace"
                        .to_owned()
                }
            };
            return Some(Verdict::new(Status::Unknown, message, UNJUDGED));
        }
        let (verdict, took, was_stopped) = run();
        self.scripts.charge(&own, object, took);
        if let Some(verdict) = verdict.as_ref().filter(|_| was_stopped) {
            strikes.add(object, &namespace, verdict);
        }
        verdict
    }

    /// Returns the time that scripts and expressions took so far in this pass, by the namespace whose rules they are
    /// and by the namespace and kind of the judged objects.
    pub(crate) fn scripts(&self) -> &TeachingTime {
        &self.scripts
    }

    /// Returns how many objects were not judged and the limit they exceeded, by the namespace that pays; the key is
    /// empty for cluster-scoped objects.
    pub fn unjudged(&self) -> BTreeMap<String, Unjudged> {
        self.unjudged.borrow().clone()
    }
}

/// Returns the time from `at` to `now`. While it is less than `limit`, records in `costs` that the result changes at
/// `at + limit`.
pub fn elapsed(
    at: Timestamp,
    limit: SignedDuration,
    now: Timestamp,
    costs: Option<&Costs>,
) -> SignedDuration {
    let elapsed = now.duration_since(at);
    if let Some(costs) = costs.filter(|_| elapsed < limit)
        && let Ok(end) = at.checked_add(limit)
    {
        costs.changes_at(end);
    }
    elapsed
}

/// The cost of one assessment, charged to an account on drop.
#[derive(Debug)]
pub(crate) struct Bill<'c> {
    costs: Option<&'c Costs>,
    patience: Option<&'c Patience>,
    account: Account,
    began: Duration,
    /// Time spent before this assessment: on all objects of the cluster, and by the account that pays.
    before: [Duration; 2],
    /// Maximum time charged to the whole cluster: an overrun by one long step is not taken from the time of others.
    due: Duration,
    may_take: u64,
    steps: Cell<u64>,
    over: RefCell<Option<String>>,
}

impl<'c> Bill<'c> {
    /// Starts a bill for `account`, with the steps and the time that the limits leave.
    pub(crate) fn new(
        costs: Option<&'c Costs>,
        patience: Option<&'c Patience>,
        account: Account,
    ) -> Bill<'c> {
        let spent = costs.and_then(|costs| costs.accounts.borrow().get(&account).copied());
        let Spent { steps, objects, time } = spent.unwrap_or_default();
        let claimed = costs.zip(account.claimant.as_ref());
        let claimed = claimed.and_then(|(costs, own)| costs.claimants.borrow().get(own).copied());
        let time = claimed.unwrap_or(time);
        let own =
            FREE_PER_NAMESPACE.saturating_add(FREE_PER_OBJECT.saturating_mul(objects)).saturating_sub(steps);
        let began = patience.map(|patience| (patience.clock)()).unwrap_or_default();
        let all = costs.map(|costs| costs.time.get()).unwrap_or_default();
        let due = patience.map_or(Duration::MAX, |patience| {
            // The moment at which it has taken as much as is left.
            let equal = patience.limit.saturating_sub(all).saturating_sub(time) / 2;
            equal.max((patience.limit / NAMESPACE_SHARE).saturating_sub(time))
        });
        let bill = Bill {
            costs,
            patience,
            account,
            began,
            before: [all, time],
            due,
            may_take: costs.map_or(u64::MAX, |_| own.max(FREE_PER_OBJECT)),
            steps: Cell::new(0),
            over: RefCell::default(),
        };
        bill.look_at_clock(began);
        bill
    }

    /// Charges `steps` steps. Returns false if a limit is exceeded, now or before: the object is then not judged.
    pub(crate) fn charge(&self, steps: usize) -> bool {
        if self.is_over() {
            return false;
        }
        let before = self.steps.get();
        let taken = before.saturating_add(u64::try_from(steps).unwrap_or(u64::MAX));
        self.steps.set(taken);
        if taken > self.may_take {
            let message = format!(
                "not judged: assessing {} takes more than {FREE_PER_NAMESPACE} steps and {FREE_PER_OBJECT} more for each object",
                self.whose()
            );
            self.over.replace(Some(message));
            return false;
        }
        match self.patience {
            Some(patience) if taken / STEPS_PER_CLOCK_READ > before / STEPS_PER_CLOCK_READ => {
                self.look_at_clock((patience.clock)())
            }
            _ => true,
        }
    }

    /// Charges the steps of one long operation and reads the clock. Returns false if a limit is exceeded.
    pub(crate) fn charge_long(&self) -> bool {
        self.charge(usize::try_from(STEPS_PER_CLOCK_READ).unwrap_or(usize::MAX))
    }

    /// Returns the namespace that pays because its apps list the object without the object's agreement; `None` if the
    /// object's own namespace pays.
    pub(crate) fn claimant(&self) -> Option<&str> {
        self.account.claimant.as_deref()
    }

    /// Returns true if a limit on steps or time is exceeded.
    pub(crate) fn is_over(&self) -> bool {
        self.over.borrow().is_some()
    }

    /// Returns a message that names the exceeded limit; `None` if no limit is exceeded.
    pub(crate) fn over(&self) -> Option<String> {
        self.over.borrow().clone()
    }

    fn whose(&self) -> String {
        let objects = match &*self.account.namespace {
            "" => "objects without namespace".to_owned(),
            namespace => format!("the objects of namespace {namespace}"),
        };
        match &self.account.claimant {
            Some(claimant) => format!("{objects} that apps of namespace {claimant} declare"),
            None => objects,
        }
    }

    fn look_at_clock(&self, now: Duration) -> bool {
        let Some(patience) = self.patience else { return true };
        let own = now.saturating_sub(self.began);
        let [all, of_namespace] = self.before.map(|before| before.saturating_add(own));
        let message = if all >= patience.limit {
            format!("not judged within {}", patience.bound)
        } else if self.costs.is_some()
            && of_namespace >= patience.limit / NAMESPACE_SHARE
            && of_namespace >= patience.limit - all
        {
            format!(
                "not judged: assessing {} takes more than their share of {}",
                self.whose(),
                patience.bound
            )
        } else {
            return true;
        };
        self.over.replace(Some(message));
        false
    }
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        let Some(costs) = self.costs else { return };
        let time = self.patience.map(|patience| (patience.clock)().saturating_sub(self.began));
        let time = time.unwrap_or_default();
        costs.time.set(costs.time.get().saturating_add(time.min(self.due)));
        let account = std::mem::replace(&mut self.account, Account::new(None, ""));
        if let Some(message) = self.over.take() {
            let mut unjudged = costs.unjudged.borrow_mut();
            let namespace = account.claimant.as_ref().unwrap_or(&account.namespace);
            let own = unjudged.entry(namespace.clone()).or_insert(Unjudged { count: 0, message });
            own.count += 1;
        }
        if let Some(claimant) = &account.claimant {
            let mut claimants = costs.claimants.borrow_mut();
            let all = claimants.entry(claimant.clone()).or_default();
            *all = all.saturating_add(time);
        }
        let excess = self.steps.get().saturating_sub(FREE_PER_OBJECT);
        if excess > 0 {
            let mut all = costs.excess.borrow_mut();
            let own = all.entry(account.clone()).or_default();
            *own = own.saturating_add(excess);
        }
        let mut accounts = costs.accounts.borrow_mut();
        let spent = accounts.entry(account).or_default();
        spent.steps = spent.steps.saturating_add(self.steps.get());
        spent.objects += 1;
        spent.time = spent.time.saturating_add(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns, for each of `objects` objects of a namespace, true if it may take `steps` steps.
    fn may_each(costs: &Costs, namespace: &str, objects: usize, steps: usize) -> Vec<bool> {
        let one = |_| {
            let bill = Bill::new(Some(costs), None, Account::new(None, namespace));
            (0..steps).all(|_| bill.charge(1))
        };
        (0..objects).map(one).collect()
    }

    #[test]
    fn many_honest_objects_stay_below_the_bound() {
        let costs = Costs::default();
        assert!(may_each(&costs, "shop", 100_000, 90).into_iter().all(|may| may));
        assert!(may_each(&costs, "web", 100, 900).into_iter().all(|may| may));
        assert!(costs.unjudged().is_empty());
    }

    #[test]
    fn costliest_objects_are_skipped_first_within_their_namespace() {
        let costs = Costs::default();
        let tenant = may_each(&costs, "tenant", 200, 1_000);
        assert_eq!(tenant.iter().filter(|may| **may).count(), 111);
        assert!(may_each(&costs, "tenant", 50, 100).into_iter().all(|may| may));
        assert!(may_each(&costs, "shop", 50, 1_000).into_iter().all(|may| may));
        let unjudged = costs.unjudged();
        assert_eq!(unjudged.keys().collect::<Vec<_>>(), ["tenant"]);
        assert_eq!(unjudged["tenant"].count, 89);
    }

    #[test]
    fn slow_step_of_a_namespace_is_not_charged_to_others() {
        let now = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let clock = {
            let now = now.clone();
            move || Duration::from_millis(now.load(std::sync::atomic::Ordering::Relaxed))
        };
        let patience = Patience::new(Duration::from_secs(5), "--timeout 5s", clock);
        let costs = Costs::default();
        let judge = |namespace: &str, takes: u64| {
            let bill = Bill::new(Some(&costs), Some(&patience), Account::new(None, namespace));
            now.fetch_add(takes, std::sync::atomic::Ordering::Relaxed);
            !bill.is_over()
        };
        assert!(judge("tenant", 2_400));
        assert!(judge("tenant", 60_000));
        assert!(!judge("tenant", 0));
        assert!((0..8).all(|_| judge("shop", 100)));
        assert!((0..5).all(|_| judge("web", 100)));
        assert!((0..2).all(|_| judge("api", 100)));
        assert_eq!(costs.unjudged().keys().collect::<Vec<_>>(), ["tenant"]);
    }

    #[test]
    fn unconfirmed_claims_are_charged_to_the_claimant() {
        let costs = Costs::default();
        let claimed = (0..1_000).map(|_| {
            let bill = Bill::new(Some(&costs), None, Account::new(Some("tenant"), "shop"));
            (0..1_000).all(|_| bill.charge(1))
        });
        assert!(claimed.filter(|may| !may).count() > 800);
        assert!(may_each(&costs, "shop", 50, 1_000).into_iter().all(|may| may));
        assert!(may_each(&costs, "tenant", 50, 1_000).into_iter().all(|may| may));
        let unjudged = costs.unjudged();
        assert_eq!(unjudged.keys().collect::<Vec<_>>(), ["tenant"]);
        assert!(unjudged["tenant"].message.contains("that apps of namespace tenant declare"), "{unjudged:?}");
    }
}

//! The assessment of one object: the evaluations so far, and the limits of how far references to other objects are
//! followed.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::selector::selects;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};

use crate::Presence;
use crate::assess::edges::references;
use crate::assess::evidence::{Evidence, Owner};
use crate::assess::{Assessment, CauseStep, Flags, since};
use crate::costs::{Account, Bill, Costs, elapsed};
use crate::event::{Event, time};
use crate::rules::ActiveRules;
use crate::teaching::TeachingTime;
use crate::verdict::{Condition, ConditionType, Status, Verdict, cut};

/// Maximum length of the path of objects that one assessment follows; objects further away are not examined. The
/// longest real path has about ten.
const MAX_CHAIN: usize = 24;

/// Maximum number of objects that one assessment looks up because others name, share or use them; further ones are left
/// out, which is a fact of the assessment. Objects that an object controls do not count: they form a tree. The largest
/// real composition names some hundreds; objects that all name one another would otherwise each cost the square of
/// their number.
pub(super) const MAX_FOLLOWED: usize = 1_000;

/// Maximum number of dependents read per owner that name it as their controller without proof that they are its own,
/// see [`Assessor::unproven`]; further ones are ignored.
const MAX_STRANGERS: usize = 100;

/// The kind of a cause that does not go away by waiting. It turns an object in progress into a failed one, unless
/// kstatus' generic rule found that the controller has not observed the newest generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HardCause {
    ImagePull,
    Configuration,
    Crash,
    OutOfMemory,
    Unschedulable,
    Volume,
    Refused,
    NodeLost,
    JobFailed,
}

impl HardCause {
    fn rule(self) -> &'static str {
        match self {
            HardCause::ImagePull => "evidence/image-pull",
            HardCause::Configuration => "evidence/configuration",
            HardCause::Crash => "evidence/crash",
            HardCause::OutOfMemory => "evidence/out-of-memory",
            HardCause::Unschedulable => "evidence/unschedulable",
            HardCause::Volume => "evidence/volume",
            HardCause::Refused => "evidence/refused",
            HardCause::NodeLost => "evidence/node-lost",
            HardCause::JobFailed => "evidence/job-failed",
        }
    }
}

/// The evaluation of one object: its verdict, reason, message and facts, and the cause chain below it.
#[derive(Debug, Clone)]
pub(super) struct Evaluation {
    pub(super) name: ObjectKey,
    pub(super) verdict: Verdict,
    pub(super) reason: Cow<'static, str>,
    /// The object's own message: the verdict's, or a better one from evidence.
    pub(super) text: String,
    /// The time since when the object is not well; `None` if it is well or the time is unknown.
    pub(super) since: Option<Timestamp>,
    pub(super) facts: Facts,
    pub(super) hard: Option<HardCause>,
    /// The steps of the cause chain below this object, down to the root cause.
    pub(super) below: Vec<Arc<CauseStep>>,
    /// True if the object's own message names what it waits for; the final message is then this message and the
    /// cause's, or only the longer one if that contains the other.
    pub(super) says_what_it_awaits: bool,
}

/// Maximum number of facts kept about one object, because an author may write any number of events about it; further
/// ones are only counted.
const MAX_FACTS: usize = 50;

/// Facts about an object besides its own message, without duplicates.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    told: Vec<String>,
    left_out: usize,
}

impl Facts {
    fn add(&mut self, fact: String) {
        if self.told.len() == MAX_FACTS {
            self.left_out += 1;
            return;
        }
        let fact = cut(fact).into_owned();
        if !fact.trim().is_empty() && !self.told.contains(&fact) {
            self.told.push(fact);
        }
    }

    fn into_texts(self) -> Vec<String> {
        let mut texts = self.told;
        if self.left_out > 0 {
            texts.push(format!("and {} more", self.left_out));
        }
        texts
    }
}

impl Evaluation {
    pub(super) fn status(&self) -> Status {
        self.verdict.status
    }

    pub(super) fn is_current(&self) -> bool {
        self.status() == Status::Current
    }

    /// Returns true if the verdict is by kstatus' generic rule that the controller has not observed the newest
    /// generation: the object's dependents are then of an older one. False for Flux' objects, which have a rule of
    /// their own.
    pub(super) fn is_stale(&self) -> bool {
        self.verdict.rule == "generic/generation"
    }

    /// Replaces the verdict: sets the status, reason, message and condition, with `rule` as the rule that decided. If
    /// the status is Current, also clears the time, the hard cause and the chain below.
    pub(super) fn turn(&mut self, status: Status, reason: &str, text: impl Into<String>, rule: &'static str) {
        self.reason = Cow::Owned(cut(reason).into_owned());
        self.text = cut(text.into()).into_owned();
        let condition = match status {
            Status::Failed => Some(ConditionType::Stalled),
            Status::InProgress => Some(ConditionType::Reconciling),
            _ => None,
        };
        let condition = condition.map(|condition| Condition {
            condition,
            reason: self.reason.clone(),
            message: Cow::Owned(self.text.clone()),
        });
        let (suspended, conditions) = (self.verdict.suspended, condition.into_iter().collect());
        let verdict = Verdict::new(status, self.text.clone(), rule);
        self.verdict = Verdict { conditions, suspended, ..verdict };
        if status == Status::Current {
            (self.since, self.hard) = (None, None);
            self.below.clear();
        }
    }

    /// Sets a hard cause that lies in the object itself, with its reason and message, of which an empty one leaves the
    /// old value. An object in progress becomes Failed, unless [stale](Self::is_stale).
    pub(super) fn harden(&mut self, cause: HardCause, reason: &str, text: impl Into<String>) {
        self.hard = Some(cause);
        self.say(reason, text);
        self.fail_if_in_progress(cause, &self.text.clone());
    }

    /// Replaces the reason and the message; an empty one leaves the old value.
    pub(super) fn say(&mut self, reason: &str, text: impl Into<String>) {
        let text = text.into();
        if !reason.is_empty() {
            self.reason = Cow::Owned(cut(reason).into_owned());
        }
        if !text.trim().is_empty() {
            self.text = cut(text).into_owned();
        }
    }

    pub(super) fn fact(&mut self, fact: impl Into<String>) {
        self.facts.add(fact.into());
    }

    /// Adds the fact that an object does not exist; `called` is its kind and path. Appends it to the message too,
    /// unless that contains `name`.
    pub(super) fn lacks(&mut self, called: &str, name: &str) {
        let fact = format!("{called} does not exist");
        if !self.text.contains(name) {
            self.add(&fact);
        }
        self.fact(fact);
    }

    /// Appends `said` to the message, after a semicolon.
    pub(super) fn add(&mut self, said: &str) {
        let text = format!("{}; {said}", self.text);
        self.say("", text);
    }

    /// Sets the status Failed if the object is in progress and not [stale](Self::is_stale), with `text` in the
    /// condition. The object's own message stays: on the way to the cause it tells how far the object is, and the
    /// cause's message would only be repeated.
    fn fail_if_in_progress(&mut self, cause: HardCause, text: &str) {
        if self.status() == Status::InProgress && !self.is_stale() {
            let condition = Condition {
                condition: ConditionType::Stalled,
                reason: self.reason.clone(),
                message: Cow::Owned(text.to_owned()),
            };
            let verdict = Verdict::new(Status::Failed, self.verdict.message.clone(), cause.rule());
            let suspended = self.verdict.suspended;
            self.verdict = Verdict { conditions: vec![condition], suspended, ..verdict };
        }
    }

    /// Sets the chain below this object to that of the dependent that decides: among those not well, one with a hard
    /// cause first, then the worst status, then the one not well for longest. Does nothing if all are well.
    ///
    /// If this dependent has a hard cause, this object gets it too, and becomes Failed if in progress and not
    /// [stale](Self::is_stale).
    pub(super) fn follow(&mut self, dependents: impl IntoIterator<Item = Evaluation>) {
        let unwell = dependents.into_iter().filter(|dependent| !dependent.is_current());
        let rank = |finding: &Evaluation| {
            let since = finding.since.unwrap_or(Timestamp::MAX);
            (finding.hard.is_none(), finding.status(), since, finding.name.clone())
        };
        let Some(speaker) = unwell.min_by_key(rank) else { return };
        if let Some(cause) = speaker.hard {
            self.hard = Some(cause);
            let text = speaker.cause().to_owned();
            self.fail_if_in_progress(cause, &text);
        }
        self.below = speaker.into_links();
    }

    /// Replaces the chain below this object by `holder`, which blocks it, and the chain below that. If the holder is
    /// well itself, its reason becomes `InUse` and its message `how`.
    pub(super) fn held_by(&mut self, holder: Evaluation, how: &str) {
        let mut holder = holder;
        if holder.is_current() {
            (holder.reason, holder.text) = (Cow::Borrowed("InUse"), how.to_owned());
        }
        self.below = holder.into_links();
    }

    /// Returns the message of the deepest object in the chain that is not well, or this object's own.
    pub(super) fn cause(&self) -> &str {
        let unwell = self.below.iter().rev().find(|link| link.status != Status::Current);
        unwell.map_or(&self.text, |link| &link.message)
    }

    fn into_links(self) -> Vec<Arc<CauseStep>> {
        let link = CauseStep {
            object: self.name,
            status: self.verdict.status,
            reason: self.reason.into_owned(),
            message: self.text,
            since: self.since,
            rule: self.verdict.rule.into_owned(),
            facts: self.facts.into_texts(),
        };
        let mut links = vec![Arc::new(link)];
        links.extend(self.below);
        links
    }

    pub(super) fn into_assessment(self, mut flags: Flags) -> Assessment {
        flags.suspended |= self.verdict.suspended;
        let (own, cause) = (self.text.trim_end(), self.cause());
        let message = match self.says_what_it_awaits {
            // It quotes the cause, or there is nothing to quote.
            true if own.contains(cause) => own.to_owned(),
            true if !cause.contains(own) => format!("{own}: {cause}"),
            _ => cause.to_owned(),
        };
        if self.is_current() {
            let Evaluation { name, verdict, since, .. } = self;
            return Assessment { object: name, verdict, since, flags, chain: Vec::new(), message };
        }
        let (object, verdict, since) = (self.name.clone(), self.verdict.clone(), self.since);
        Assessment { object, verdict, since, flags, chain: self.into_links(), message }
    }
}

/// The state of one assessment: the evidence, the evaluations so far, and the limits that remain.
pub(super) struct Assessor<'e> {
    pub(super) evidence: Evidence<'e>,
    pub(super) rules: &'e ActiveRules<'e>,
    pub(super) now: Timestamp,
    /// The evaluations of objects examined already: each object is examined once, however many others lead to it.
    found: RefCell<HashMap<ObjectKey, Evaluation>>,
    /// The path of objects from the first one to the one being examined; detects circles of owners.
    way: RefCell<Vec<ObjectKey>>,
    /// Number of objects that may still be looked up; see [`MAX_FOLLOWED`].
    left: Cell<usize>,
    /// True if lookups were left out because of [`MAX_FOLLOWED`].
    is_cut_off: Cell<bool>,
    /// The account that pays for this assessment, with its limits.
    pub(super) bill: Bill<'e>,
}

impl<'e> Assessor<'e> {
    pub(super) fn new(evidence: Evidence<'e>, rules: &'e ActiveRules<'e>, now: Timestamp) -> Assessor<'e> {
        let (found, way, left) = (RefCell::default(), RefCell::default(), Cell::new(MAX_FOLLOWED));
        let (is_cut_off, bill) = (Cell::new(false), Bill::new(None, None, Account::new(None, "")));
        Assessor { evidence, rules, now, found, way, left, is_cut_off, bill }
    }

    /// Returns the assessor with a new bill: it charges the namespace of `object` (for a Namespace, that namespace
    /// itself), or the namespace `claimant` whose apps list the object without its agreement.
    pub(super) fn of(mut self, object: &Object<'_>, claimant: Option<&str>) -> Assessor<'e> {
        let place = match (object.group(), object.kind()) {
            // What is left in it belongs to it.
            ("", "Namespace") => object.name(),
            _ => object.namespace(),
        };
        let account = Account::new(claimant, &place);
        self.bill = Bill::new(self.evidence.costs(), self.rules.options.patience.as_ref(), account);
        self
    }

    /// Collects `listing` and charges a step for each item; returns an empty list if the cost limit is exceeded.
    fn charged<T>(&self, listing: impl Iterator<Item = T>) -> Vec<T> {
        if self.bill.is_over() {
            return Vec::new();
        }
        let all: Vec<T> = listing.collect();
        if self.bill.charge(all.len()) { all } else { Vec::new() }
    }

    /// Truncates `all` to the number of objects that may still be looked up, and reduces that number. Lookups always
    /// come in the same order, so the result does not depend on other assessments.
    pub(super) fn allowed<T>(&self, mut all: Vec<T>) -> Vec<T> {
        let left = self.left.get();
        self.is_cut_off.set(self.is_cut_off.get() || all.len() > left);
        all.truncate(left);
        self.left.set(left.saturating_sub(all.len()));
        all
    }

    /// Returns the keys of the objects that `object` names in its fields, up to the number that may still be looked
    /// up.
    pub(super) fn references(&self, object: &Object<'_>) -> Vec<ObjectKey> {
        // To find them costs as much as to follow them.
        if self.left.get() == 0 {
            self.is_cut_off.set(true);
            return Vec::new();
        }
        self.allowed(references(object).into_iter().map(|reference| reference.to).collect())
    }

    /// Evaluates an object by its own fields and, unless they make it Unknown, by the objects behind it. Returns `None`
    /// if the object is on the path already (a circle), the path is [`MAX_CHAIN`] long, or the cost limit is exceeded.
    pub(super) fn examine(&self, object: &Object<'_>) -> Option<Evaluation> {
        let name = ObjectKey::of(object);
        if let Some(finding) = self.found.borrow().get(&name) {
            return Some(finding.clone());
        }
        if self.way.borrow().len() >= MAX_CHAIN || self.way.borrow().contains(&name) || !self.bill.charge(1) {
            return None;
        }
        self.way.borrow_mut().push(name);
        let mut finding = self.own_evaluation(object);
        if finding.status() != Status::Unknown {
            super::examine(self, object, &mut finding);
        }
        if self.is_cut_off.get() && self.way.borrow().len() == 1 {
            finding.fact(format!(
                "{MAX_FOLLOWED} objects named by other objects were read; the rest were left out"
            ));
        }
        if !finding.is_current() && finding.text.trim().is_empty() {
            finding.text = without_words(object, &finding);
        }
        if finding.is_current() {
            finding.since = None;
        } else if finding.since.is_none() && !since::is_unobserved(&finding.verdict) {
            let evidence = finding.below.iter().find(|link| link.status != Status::Current);
            let begun = || since::rolled_out(object);
            let created = || time(object.at(&["metadata", "creationTimestamp"]));
            finding.since = evidence.and_then(|link| link.since).or_else(begun).or_else(created);
        }
        let name = self.way.borrow_mut().pop();
        // Nobody asks again for what the question began with.
        if let Some(name) = name.filter(|_| !self.way.borrow().is_empty()) {
            self.found.borrow_mut().insert(name, finding.clone());
        }
        Some(finding)
    }

    /// Returns the evaluation of an object by the rules alone. If it is not well and has no message, it gets one from a
    /// condition or a Warning event, else its reason or status.
    pub(super) fn own_evaluation(&self, object: &Object<'_>) -> Evaluation {
        let verdict = self.evidence.judge(self.rules.rules, object, self.bill.claimant(), self.now);
        let reason = verdict.conditions.first().map(|condition| condition.reason.clone());
        let mut finding = Evaluation {
            name: ObjectKey::of(object),
            reason: reason.unwrap_or_default(),
            text: verdict.message.clone().into_owned(),
            since: since::of(object, &verdict),
            facts: Facts::default(),
            hard: None,
            below: Vec::new(),
            says_what_it_awaits: false,
            verdict,
        };
        if finding.text.trim().is_empty() && !finding.is_current() {
            let words = self.words(object, finding.since);
            finding.text = words.unwrap_or_else(|| without_words(object, &finding));
        }
        finding
    }

    /// Returns a message for an object whose verdict has none: the first message of a condition that is not True, else
    /// that of the newest Warning event since `since`; `None` if there is neither.
    fn words(&self, object: &Object<'_>, since: Option<Timestamp>) -> Option<String> {
        let conditions = object.at(&["status", "conditions"]).and_then(Value::items);
        let mut said = conditions.into_iter().flatten().filter_map(|condition| {
            let not_true = !condition.get("status")?.is_str("True");
            let message = condition.get("message")?.as_str()?;
            (not_true && !message.trim().is_empty()).then(|| cut(message).into_owned())
        });
        said.next().or_else(|| Some(self.warnings(object, since).into_iter().next()?.message.into_owned()))
    }

    /// Returns the message of the newest Warning event since `since`, else of the first False condition with a message
    /// that changed since then; `None` if there is neither.
    pub(super) fn complaint_since(&self, object: &Object<'_>, since: Option<Timestamp>) -> Option<String> {
        if let Some(event) = self.warnings(object, since).into_iter().next() {
            return Some(event.message.into_owned());
        }
        let conditions = object.at(&["status", "conditions"]).and_then(Value::items);
        conditions.into_iter().flatten().find_map(|condition| {
            let changed = time(condition.get("lastTransitionTime")).filter(|changed| Some(*changed) >= since);
            let is_false = condition.get("status")?.is_str("False") && changed.is_some();
            let message = condition.get("message")?.as_str()?;
            (is_false && !message.trim().is_empty()).then(|| cut(message).into_owned())
        })
    }

    /// Returns the objects whose controller is `owner` and whose state may decide its status ([`Owner::hears`]), sorted
    /// by key; only those of the group and kind `wanted`, if given.
    pub(super) fn owned(&self, owner: &Object<'_>, wanted: Option<(&str, &str)>) -> Vec<Object<'e>> {
        let uid = owner.text(&["metadata", "uid"]);
        if uid.is_empty() {
            return Vec::new();
        }
        let is_wanted =
            |object: &Object<'_>| wanted.is_none_or(|kind| kind == (object.group(), object.kind()));
        let is_other = |object: &Object<'_>| object.text(&["metadata", "uid"]) != uid;
        let named = Owner::of(owner);
        let is_it = |object: &Object<'_>| is_wanted(object) && is_other(object) && named.hears(object);
        // Those that speak for it are in its namespace, or are objects of the cluster as it is.
        in_order(self.charged(self.evidence.owned(&uid, Some(&owner.namespace()))).into_iter().filter(is_it))
    }

    /// Returns the objects in namespaces that name the cluster-scoped `owner` as their controller, but may not decide
    /// its status ([`Owner::hears`]), sorted by key, at most [`MAX_STRANGERS`] and as many as may still be looked up;
    /// none for a namespaced `owner`. If `owner` is not well itself, their failures are a fact about it, and nothing
    /// else.
    pub(super) fn unproven(&self, owner: &Object<'_>) -> Vec<Object<'e>> {
        let uid = owner.text(&["metadata", "uid"]);
        if uid.is_empty() || !owner.namespace().is_empty() {
            return Vec::new();
        }
        let named = Owner::of(owner);
        let is_it = |object: &Object<'_>| named.can_own(object) && !named.hears(object);
        let naming = self.evidence.owned(&uid, None).filter(|object| !object.namespace().is_empty());
        self.allowed(in_order(self.charged(naming.take(MAX_STRANGERS)).into_iter().filter(is_it)))
    }

    /// Returns the objects of a kind, sorted by namespace and name. Without a namespace it lists all namespaces, but at
    /// most [`MAX_FOLLOWED`] objects.
    pub(super) fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Vec<Object<'e>> {
        let most = if namespace.is_some() { usize::MAX } else { MAX_FOLLOWED };
        in_order(self.charged(self.evidence.of_kind(group, kind, namespace).take(most)).into_iter())
    }

    /// Returns the PodDisruptionBudgets of a namespace whose selectors match Pods with `labels`, sorted by name.
    pub(super) fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Vec<Object<'e>> {
        let budgets = self.evidence.budgets(namespace, labels);
        in_order(
            self.charged(budgets)
                .into_iter()
                .filter(|budget| selects(budget.at(&["spec", "selector"]), labels)),
        )
    }

    /// Returns all objects in a namespace, sorted by key.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Object<'e>> {
        in_order(self.charged(self.evidence.in_namespace(namespace)).into_iter())
    }

    /// Returns the Pods that use the claim `namespace`/`claim`, finished ones included, sorted by name, up to the
    /// number of objects that may still be looked up.
    pub(super) fn users(&self, namespace: &str, claim: &str) -> Vec<Object<'e>> {
        if self.left.get() == 0 {
            self.is_cut_off.set(true);
            return Vec::new();
        }
        self.allowed(in_order(self.charged(self.evidence.users(namespace, claim)).into_iter()))
    }

    /// Returns true if a Pod that has not finished uses the claim `namespace`/`claim`, or if the cost limit is reached
    /// before all of its Pods were checked.
    pub(super) fn has_user(&self, namespace: &str, claim: &str) -> bool {
        // Each of them is looked at until one has not ended.
        self.evidence.users(namespace, claim).any(|user| !self.bill.charge(1) || !has_ended(&user))
    }

    pub(super) fn get(&self, name: &ObjectKey) -> Presence<'e, Object<'e>> {
        self.evidence.get(name.as_ref())
    }

    /// Looks up `name` as a cluster-scoped object, without its namespace: not every field tells the scope of its
    /// target.
    fn get_in_cluster(&self, name: &ObjectKey) -> Presence<'e, Object<'e>> {
        self.evidence.get(ObjectKeyRef { namespace: "", ..name.as_ref() })
    }

    /// Returns the objects that exist among those with these keys, until the cost limit is reached. A key with a
    /// namespace also finds a cluster-scoped object of that name.
    pub(super) fn named<'n>(&self, names: impl IntoIterator<Item = &'n ObjectKey>) -> Vec<Object<'e>> {
        let there = names
            .into_iter()
            .take_while(|_| self.bill.charge(1))
            .filter_map(|name| self.get(name).present().or_else(|| self.get_in_cluster(name).present()));
        there.collect()
    }

    /// Lists, as sentences, the requirements of `object` (`readyExpr` of Flux) that `dependencies` do not meet; empty
    /// if the rules in force have no [`ActiveRules::cluster_rules`].
    pub(super) fn unmet_dependency(&self, object: &Object<'_>, dependencies: &[Object<'_>]) -> Vec<String> {
        let Some(cluster_rules) = self.rules.cluster_rules else { return Vec::new() };
        let own = TeachingTime::default();
        let look = self.evidence.costs().map_or(&own, Costs::scripts);
        cluster_rules.unmet_dependency(object, dependencies, look, &|| self.bill.charge_long())
    }

    /// Returns the evaluations of the objects that exist among those with these keys.
    pub(super) fn examine_named<'n>(
        &self,
        names: impl IntoIterator<Item = &'n ObjectKey>,
    ) -> Vec<Evaluation> {
        self.named(names).iter().filter_map(|object| self.examine(object)).collect()
    }

    /// Returns true if certainly no object of that key exists, in its namespace or cluster-scoped: the scope was read,
    /// and the object is absent. Returns false if the cost limit is reached.
    pub(super) fn is_missing(&self, name: &ObjectKey) -> bool {
        if !self.bill.charge(1) {
            return false;
        }
        let lookups = [self.get(name), self.get_in_cluster(name)];
        let tells = |namespace| self.evidence.state().tells_absence(&name.group, &name.kind, namespace);
        !lookups.iter().any(|lookup| matches!(lookup, Presence::Present(_)))
            && lookups.iter().any(|lookup| matches!(lookup, Presence::Absent))
            && (tells(&name.namespace) || tells(""))
    }

    /// Returns the words for a missing object in a message: `Secret shop/db`, or `StorageClass fast` for a
    /// cluster-scoped one.
    pub(super) fn called(&self, name: &ObjectKey) -> String {
        let ObjectKey { group, kind, namespace, name } = name;
        let is_of_cluster = |definition: Object<'_>| definition.text(&["spec", "scope"]) == "Cluster";
        if namespace.is_empty() || self.evidence.definition(group, kind).is_some_and(is_of_cluster) {
            format!("{kind} {name}")
        } else {
            format!("{kind} {namespace}/{name}")
        }
    }

    /// Returns the objects with `owner`, which is being deleted, in any owner reference, as controller or not, sorted
    /// by key, up to the number of objects that may still be looked up. Of a cluster-scoped owner those in namespaces
    /// count only if the garbage collector waits for them.
    pub(super) fn dependents(&self, owner: &Object<'_>) -> Vec<Object<'e>> {
        let uid = owner.text(&["metadata", "uid"]);
        if uid.is_empty() || self.left.get() == 0 {
            return Vec::new();
        }
        let is_other = |object: &Object<'_>| object.text(&["metadata", "uid"]) != uid;
        let named = Owner::of(owner);
        let is_it = |object: &Object<'_>| is_other(object) && named.can_own(object);
        let namespace = owner.namespace();
        let most = if namespace.is_empty() { MAX_FOLLOWED } else { usize::MAX };
        let mut listing = self.charged(self.evidence.dependents(&uid, Some(&namespace)).take(most));
        // Any tenant can name a cluster-scoped owner.
        if namespace.is_empty() && waits_for_dependents(owner) {
            let all = self.evidence.dependents(&uid, None).take(MAX_FOLLOWED);
            let blocking =
                all.filter(|object| !object.namespace().is_empty() && blocks_deletion(object, &uid));
            listing.extend(self.charged(blocking));
        }
        self.allowed(in_order(listing.into_iter().filter(is_it)))
    }

    /// Returns the Warning events about an object since `since`, the time at which it ceased to be well, newest first;
    /// events without a time are included.
    pub(super) fn warnings(&self, about: &Object<'_>, since: Option<Timestamp>) -> Vec<Event<'e>> {
        let mut events = self.events(about, since);
        events.retain(|event| event.warning);
        events
    }

    /// Returns all events about an object since `since`, newest first; events without a time are included.
    pub(super) fn events(&self, about: &Object<'_>, since: Option<Timestamp>) -> Vec<Event<'e>> {
        let mut events = self.charged(self.evidence.events(about).into_iter());
        events.retain(|event| event.last.is_none() || event.last >= since);
        events.sort_by(|one, other| {
            let texts =
                || (&one.reason, &one.message, one.count).cmp(&(&other.reason, &other.message, other.count));
            other.last.cmp(&one.last).then_with(texts)
        });
        events
    }

    /// Returns true if an event last happened at most `within` before now; false if it has no time.
    pub(super) fn is_recent(&self, event: &Event<'_>, within: SignedDuration) -> bool {
        event.last.is_some_and(|last| self.is_within(last, within))
    }

    /// Returns the time from `at` to now. While it is less than `limit`, records that the result changes at `at +
    /// limit`; see [`elapsed`].
    pub(super) fn elapsed(&self, at: Timestamp, limit: SignedDuration) -> SignedDuration {
        elapsed(at, limit, self.now, self.evidence.costs())
    }

    /// Returns true if at most `limit` has passed since `at`; records when that ends, as [`elapsed`] does.
    pub(super) fn is_within(&self, at: Timestamp, limit: SignedDuration) -> bool {
        let beyond = limit.saturating_add(SignedDuration::from_nanos(1));
        self.elapsed(at, beyond) < beyond
    }

    /// Returns the age of an object, `None` without a creation time. Records when it reaches `limit`, as [`elapsed`]
    /// does.
    pub(super) fn age(&self, object: &Object<'_>, limit: SignedDuration) -> Option<SignedDuration> {
        time(object.at(&["metadata", "creationTimestamp"])).map(|created| self.elapsed(created, limit))
    }
}

pub(super) fn has_ended(pod: &Object<'_>) -> bool {
    pod.at(&["status", "phase"]).is_some_and(|phase| phase.is_str("Succeeded") || phase.is_str("Failed"))
}

/// Returns true if `owner`, which is being deleted, has the finalizer `foregroundDeletion`: the garbage collector keeps
/// it until dependents that block it are gone.
fn waits_for_dependents(owner: &Object<'_>) -> bool {
    let finalizers = owner.at(&["metadata", "finalizers"]).and_then(Value::items);
    finalizers.into_iter().flatten().any(|name| name.is_str("foregroundDeletion"))
}

/// Returns true if an owner reference of `object` has this UID and `blockOwnerDeletion: true`.
fn blocks_deletion(object: &Object<'_>, uid: &str) -> bool {
    let references = object.at(&["metadata", "ownerReferences"]).and_then(Value::items);
    references.into_iter().flatten().any(|reference| {
        let [own, blocks] = reference.pick(["uid", "blockOwnerDeletion"]);
        own.is_some_and(|own| own.is_str(uid)) && blocks.and_then(Value::as_bool) == Some(true)
    })
}

fn in_order<'e>(objects: impl Iterator<Item = Object<'e>>) -> Vec<Object<'e>> {
    let mut objects: Vec<_> = objects.collect();
    // Those of one namespace mostly come in this order.
    if !objects.is_sorted_by_key(|it| (it.group(), it.kind(), it.namespace(), it.name())) {
        objects.sort_by_cached_key(ObjectKey::of);
    }
    objects
}

/// Returns a message for an object that has none: type, status and reason of the first condition with the reason of
/// `finding`, else of a Ready that is not True; else that reason, else the status.
fn without_words(object: &Object<'_>, finding: &Evaluation) -> String {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::items);
    let text = |condition: Value<'_>, key| {
        condition.get(key).and_then(Value::as_str).unwrap_or_default().into_owned()
    };
    let has_reason =
        |condition: &Value<'_>| !finding.reason.is_empty() && text(*condition, "reason") == finding.reason;
    let decisive = conditions.into_iter().flatten().find(has_reason);
    let not_ready = || object.condition("Ready").filter(|ready| text(*ready, "status") != "True");
    match decisive.or_else(not_ready) {
        Some(condition) => {
            let [name, status, reason] = ["type", "status", "reason"].map(|key| text(condition, key));
            let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
            format!("{name} is {status}{reason}")
        }
        None if !finding.reason.is_empty() => finding.reason.clone().into_owned(),
        None => finding.status().to_string(),
    }
}

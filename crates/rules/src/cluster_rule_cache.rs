//! A cache of the health rules that objects in a cluster define for other objects: `healthCheckExprs`, `readyExpr` and
//! `argocd-cm`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::{
    ObjectContext, Payer, Status, Strikes, Teacher, Teaching, TeachingTime, Verdict, Voice,
};

use crate::cel::{Checks, Names, Predicate, PredicateAnswer, ReadExpression, ReadyExpr};
use crate::expressions::{Author, Expressions, Unread};
#[cfg(feature = "lua")]
use crate::lua::Customizations;
use crate::origin::Origin;
use crate::script::{Judged, Script, ScriptKind, computed, computed_since};

/// The maximum number of texts of rules that are cached; objects of one namespace with the same text share it. The
/// oldest are dropped first.
const MAX_CACHED_OBJECTS: usize = 4096;

/// The maximum total length of the cached texts, in bytes; the oldest are dropped first.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// The maximum length of the text of one object's rules, in bytes; longer rules are ignored. No API server stores more.
const MAX_OBJECT_RULES_BYTES: usize = 2 << 20;

/// The maximum number of dependencies for which the `readyExpr`s of one object are evaluated; a message counts the
/// others.
const MAX_EVALUATED_DEPENDENCIES: usize = 20;

/// The parser and cache of the health rules that objects in a cluster define for other objects.
#[derive(Debug)]
pub(crate) struct ClusterRuleCache {
    expressions: Expressions,
    read: Mutex<CachedRules>,
}

/// The cached rules. Their keys contain the cluster, the namespace and the whole text, so one cluster's rules are never
/// used for another.
#[derive(Debug, Default)]
struct CachedRules {
    /// The rules by source; `None` if the text has none or they are malformed.
    rules: HashMap<Arc<DefinedRules>, Option<Arc<ParsedRules>>>,
    /// The sources in the order in which they were parsed, oldest first.
    order: VecDeque<Arc<DefinedRules>>,
    /// The total length of the texts, in bytes.
    size: usize,
}

/// The text of the rules that one object defines, and the home cluster and namespace of that object.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DefinedRules {
    home: String,
    namespace: String,
    form: RuleForm,
    text: Vec<u8>,
}

/// The fields in which objects define health rules: `healthCheckExprs` of Flux, and the `data` of an `argocd-cm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RuleForm {
    HealthChecks,
    #[cfg(feature = "lua")]
    Customizations,
}

/// The parsed rules that one object defines for others.
#[derive(Debug)]
struct ParsedRules {
    body: RuleBody,
    /// Counts of stopped scripts, by the kind of the judged objects, and by the objects' namespace or the claimant's if
    /// that pays; all namespaces together if that of the rules pays.
    strikes: Strikes,
}

/// The rules that one object defines, by the field in which it does.
#[derive(Debug)]
enum RuleBody {
    /// Expressions as text: each is parsed when it is first needed.
    Checks { checks: Checks<String>, state: Mutex<CheckedState> },
    #[cfg(feature = "lua")]
    Scripts(Box<dyn Script>),
}

/// The progress of checking the expressions of one object, all of which must be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckedState {
    /// The number of expressions, from the first on, that are valid; the rest is not parsed yet.
    Read(usize),
    /// All expressions are valid.
    Valid,
    /// At least one expression is invalid: Flux then refuses all of them, and reports it.
    Invalid,
}

impl CachedRules {
    fn keep(&mut self, source: DefinedRules, parsed: Option<Arc<ParsedRules>>) {
        let source = Arc::new(source);
        self.size += source.text.len();
        self.order.push_back(source.clone());
        self.rules.insert(source, parsed);
        while self.order.len() > MAX_CACHED_OBJECTS || self.size > MAX_CACHED_BYTES {
            let Some(first) = self.order.pop_front() else { break };
            self.size -= first.text.len();
            self.rules.remove(&first);
        }
    }
}

impl ClusterRuleCache {
    pub(crate) fn new(reader: ReadExpression) -> ClusterRuleCache {
        ClusterRuleCache { expressions: Expressions::new(reader), read: Mutex::default() }
    }

    /// Returns the rules that `teacher` defines for other objects; `None` if it defines none, if their text is longer
    /// than [`MAX_OBJECT_RULES_BYTES`], or if an entry of its `healthCheckExprs` is malformed: Flux then refuses all
    /// and reports it. `spent` records the time for reading the rules, and records and limits that for parsing their
    /// expressions and for judging.
    pub(crate) fn taught_rules<'r>(
        &'r self,
        teacher: &Teacher<'_>,
        spent: &'r TeachingTime,
    ) -> Option<TaughtRules<'r>> {
        let parsed = self.parsed(teacher, spent)?;
        Some(TaughtRules {
            parsed,
            expressions: &self.expressions,
            spent,
            author: teacher.object.namespace().into_owned(),
            voice: teacher.voice,
            payer: teacher.payer,
            home: teacher.home.to_owned(),
            namespace: match teacher.payer {
                Payer::Claimant => teacher.claimant.clone().into_owned(),
                Payer::Object | Payer::Teacher => teacher.object.namespace().into_owned(),
            },
            target: teacher.target.to_owned(),
            called: format!(
                "{} {}/{}",
                teacher.object.kind(),
                teacher.object.namespace(),
                teacher.object.name()
            ),
        })
    }

    fn parsed(&self, teacher: &Teacher<'_>, spent: &TeachingTime) -> Option<Arc<ParsedRules>> {
        let object = &teacher.object;
        let (path, form): (&[&str], RuleForm) = match (object.group(), object.kind()) {
            _ if delivers(object) => (&["spec", "healthCheckExprs"], RuleForm::HealthChecks),
            #[cfg(feature = "lua")]
            ("", "ConfigMap") => (&["data"], RuleForm::Customizations),
            _ => return None,
        };
        let body = object.at(path).filter(|body| !body.is_null())?;
        let text = match body.text() {
            Some(text) => text.to_vec(),
            None => serde_json::to_vec(&body.to_tree().ok()?).ok()?,
        };
        if text.len() > MAX_OBJECT_RULES_BYTES {
            return None;
        }
        let (home, namespace) = (teacher.home.to_owned(), object.namespace().into_owned());
        let source = DefinedRules { home, namespace, form, text };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = read.rules.get(&source) {
            return parsed.clone();
        }
        let began = computed();
        let body = match form {
            RuleForm::HealthChecks => health_checks(object),
            #[cfg(feature = "lua")]
            RuleForm::Customizations => customizations(object),
        };
        spent.charge_reading(&source.home, &source.namespace, computed_since(began));
        let parsed = body.map(|body| Arc::new(ParsedRules { body, strikes: Strikes::default() }));
        read.keep(source, parsed.clone());
        parsed
    }

    /// Lists a message for each dependency of a Flux object, of the object's own kind, whose `readyExpr` is not true or
    /// cannot be evaluated, and one that counts those left out: beyond [`MAX_EVALUATED_DEPENDENCIES`], once the
    /// namespace's time is used up, or once `goes_on` returns false.
    pub(crate) fn unmet_dependency(
        &self,
        object: &Object<'_>,
        dependencies: &[Object<'_>],
        spent: &TeachingTime,
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let written = ready_exprs(object);
        let is_same_kind =
            |other: &&Object<'_>| (object.group(), object.kind()) == (other.group(), other.kind());
        let of = |dependency| {
            let text = written.get(&place(dependency)).filter(|text| !text.trim().is_empty())?;
            Some((dependency, text.as_str()))
        };
        let mut asked = dependencies.iter().filter(is_same_kind).filter_map(of).peekable();
        if asked.peek().is_none() {
            return Vec::new();
        }
        let namespace = object.namespace();
        let teaching = Teaching { home: "", namespace: &namespace, target: "", payer: Payer::Teacher };
        let author = Author { spent, home: "", namespace: &namespace };
        let began = computed();
        let Ok(own) = object.root().to_tree() else {
            return vec!["readyExpr was not evaluated: the object nests deeper than 128 levels".to_owned()];
        };
        let mut own_took = computed_since(began);
        let mut unmet = Vec::new();
        let mut count = 0;
        while let Some((dependency, text)) =
            asked.next_if(|_| count < MAX_EVALUATED_DEPENDENCIES && goes_on())
        {
            count += 1;
            let called = called(dependency);
            if !spent.has_room(&teaching, dependency) {
                unmet.push(format!(
                    "readyExpr was not evaluated for {called}: expressions of namespace {namespace} used up their \
                     computing time"
                ));
                break;
            }
            let answer = match self.expressions.read(text, Names::SelfAndDependency, author) {
                Ok(expression) => {
                    let (began, expression) = (computed(), ReadyExpr::of(expression));
                    let tree = dependency.root().to_tree();
                    let asked = tree.map(|dependency| expression.ask_at_cost(&own, &dependency));
                    let too_deep = |_| {
                        (
                            PredicateAnswer::Fault("the dependency nests deeper than 128 levels".to_owned()),
                            Duration::ZERO,
                        )
                    };
                    let (answer, took) = asked.unwrap_or_else(too_deep);
                    let took = took.saturating_add(computed_since(began));
                    spent.charge(&teaching, dependency, took.saturating_add(std::mem::take(&mut own_took)));
                    answer
                }
                Err(Unread::Invalid(why)) => PredicateAnswer::Fault(why.to_string()),
                Err(Unread::NotNow(why)) => {
                    unmet.push(format!("readyExpr was not evaluated for {called}: {why}"));
                    break;
                }
            };
            unmet.extend(match answer {
                PredicateAnswer::True => None,
                PredicateAnswer::False => Some(format!("readyExpr is not true of {called}: {text}")),
                PredicateAnswer::Missing(what) => {
                    Some(format!("readyExpr is not true of {called} yet, because {what}: {text}"))
                }
                PredicateAnswer::Fault(why) => {
                    Some(format!("readyExpr cannot be evaluated for {called}, because {why}: {text}"))
                }
            });
        }
        let more = asked.count();
        if more > 0 {
            unmet.push(format!(
                "readyExpr was not evaluated for {more} more dependencies: they exceed the limits on number and time"
            ));
        }
        unmet
    }
}

/// Returns the namespace and the name of an object, in this order.
fn place(object: &Object<'_>) -> (String, String) {
    (object.namespace().into_owned(), object.name().into_owned())
}

fn called(object: &Object<'_>) -> String {
    format!("{} {}/{}", object.kind(), object.namespace(), object.name())
}

/// Returns the texts of the `readyExpr`s of a Flux object, by namespace and name of the dependency; an empty text for a
/// dependency without one. If two entries name the same dependency, the first counts.
fn ready_exprs(object: &Object<'_>) -> HashMap<(String, String), String> {
    let mut written = HashMap::new();
    if !delivers(object) {
        return written;
    }
    let text = |entry: Value<'_>, key: &str| {
        entry.get(key).and_then(Value::as_str).map(|text| text.into_owned()).unwrap_or_default()
    };
    let entries = object.at(&["spec", "dependsOn"]).and_then(Value::items);
    for entry in entries.into_iter().flatten() {
        let namespace = Some(text(entry, "namespace")).filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| object.namespace().into_owned());
        written.entry((namespace, text(entry, "name"))).or_insert_with(|| text(entry, "readyExpr"));
    }
    written
}

/// Returns true if an object is a Flux Kustomization or HelmRelease, which deploy other objects.
fn delivers(object: &Object<'_>) -> bool {
    matches!(
        (object.group(), object.kind()),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("helm.toolkit.fluxcd.io", "HelmRelease")
    )
}

fn health_checks(teacher: &Object<'_>) -> Option<RuleBody> {
    let tree = teacher.root().to_tree().ok()?;
    let checks = Checks::written(&tree).ok()??;
    Some(RuleBody::Checks { checks, state: Mutex::new(CheckedState::Read(0)) })
}

/// Reads the health and action scripts of an `argocd-cm`; `None` if it has none. The caller decides which ConfigMap is
/// one.
#[cfg(feature = "lua")]
fn customizations(teacher: &Object<'_>) -> Option<RuleBody> {
    let scripts = Customizations::of_config_map_object(Origin::Cluster, teacher.root())?;
    Some(RuleBody::Scripts(Box::new(scripts)))
}

/// The rules that one object defines for others, with the accounts that pay for them in one pass over a cluster.
#[derive(Debug)]
pub(crate) struct TaughtRules<'r> {
    parsed: Arc<ParsedRules>,
    expressions: &'r Expressions,
    spent: &'r TeachingTime,
    /// The namespace of the object that defines them.
    author: String,
    voice: Voice,
    payer: Payer,
    home: String,
    namespace: String,
    target: String,
    /// The kind, namespace and name of the object that defines them, for messages.
    called: String,
}

impl TaughtRules<'_> {
    pub(crate) fn voice(&self) -> Voice {
        self.voice
    }

    fn read(&self, text: &str) -> Result<Arc<dyn Predicate>, Unread> {
        let author = Author { spent: self.spent, home: &self.home, namespace: &self.author };
        self.expressions.read(text, Names::Fields, author)
    }

    /// Returns true if all expressions are valid. Parses the rest of them first.
    ///
    /// # Errors
    /// If parsing exceeds its time in this pass over the cluster, or the parser fails: the reason, for people.
    fn are_valid(&self, checks: &Checks<String>, state: &Mutex<CheckedState>) -> Result<bool, String> {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if let CheckedState::Read(before) = *state {
            let mut count = before;
            for text in checks.texts().skip(before) {
                match self.read(text) {
                    Ok(_) => count += 1,
                    Err(Unread::Invalid(_)) => {
                        *state = CheckedState::Invalid;
                        return Ok(false);
                    }
                    Err(Unread::NotNow(why)) => {
                        *state = CheckedState::Read(count);
                        return Err(why);
                    }
                }
            }
            *state = CheckedState::Valid;
        }
        Ok(*state == CheckedState::Valid)
    }

    /// Judges as [`Script::judge_at_cost`]. If the rules were stopped too often for objects of this kind and the text
    /// `inside` ([`Strikes`]), returns the verdict of the first stopped run instead.
    fn judge_at(
        &self,
        object: &Object<'_>,
        inside: &str,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Judged {
        let ParsedRules { body, strikes } = &*self.parsed;
        if let Some(verdict) = strikes.verdict(object, inside) {
            return Judged { verdict: Some(verdict), ..Judged::default() };
        }
        let judged = match body {
            RuleBody::Checks { checks, state } => match self.are_valid(checks, state) {
                Ok(true) => checks.judge(Origin::Cluster, object, context, &|text| {
                    self.read(text).map_err(|why| match why {
                        Unread::Invalid(why) => why.to_string(),
                        Unread::NotNow(why) => self.unasked(&why),
                    })
                }),
                Ok(false) => Judged::default(),
                Err(why) => Judged { verdict: Some(self.over(self.unasked(&why))), ..Judged::default() },
            },
            #[cfg(feature = "lua")]
            RuleBody::Scripts(script) => script.judge_at_cost(object, context, now),
        };
        #[cfg(not(feature = "lua"))]
        let _ = now;
        if let Some(verdict) = judged.verdict.as_ref().filter(|_| judged.was_stopped) {
            strikes.add(object, inside, verdict);
        }
        judged
    }

    fn unasked(&self, why: &str) -> String {
        format!("the object was not judged: the expressions of {} were not parsed: {why}", self.called)
    }

    /// Returns the verdict Unknown, with `message`, for an object that was not judged because of a time limit or a
    /// failure of the parser.
    fn over(&self, message: String) -> Verdict {
        Verdict::new(Status::Unknown, message, format!("{}/budget", self.origin().as_str()))
    }
}

impl Script for TaughtRules<'_> {
    fn origin(&self) -> Origin {
        Origin::Cluster
    }

    fn kinds(&self) -> Vec<ScriptKind> {
        match &self.parsed.body {
            RuleBody::Checks { checks, .. } => checks.kinds(),
            #[cfg(feature = "lua")]
            RuleBody::Scripts(script) => script.kinds(),
        }
    }

    fn is_about(&self, object: &Object<'_>) -> bool {
        match &self.parsed.body {
            RuleBody::Checks { checks, .. } => checks.are_about(object),
            #[cfg(feature = "lua")]
            RuleBody::Scripts(script) => script.is_about(object),
        }
    }

    fn judge(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Option<Verdict> {
        if !self.is_about(object) {
            return None;
        }
        let TaughtRules { home, namespace, target, payer, .. } = self;
        let teaching = Teaching { home, namespace, target, payer: *payer };
        if !self.spent.has_room(&teaching, object) {
            let of = match payer {
                Payer::Claimant => format!("apps of namespace {namespace}"),
                Payer::Object | Payer::Teacher => "the objects of its namespace".to_owned(),
            };
            return Some(self.over(format!(
                "the object was not judged: the scripts of {} used up their computing time for {of}",
                self.called
            )));
        }
        let inside = match payer {
            // One tenant's object may be such that an honest script does not end on it.
            Payer::Object => object.namespace(),
            Payer::Teacher => "".into(),
            // A namespace cannot have such a name, so the counts of the objects' own namespaces stay as they are.
            Payer::Claimant => format!("by {namespace}").into(),
        };
        let judged = self.judge_at(object, &inside, context, now);
        self.spent.charge(&teaching, object, judged.took);
        judged.verdict
    }
}

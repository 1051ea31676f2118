//! What objects of a cluster say themselves of health.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use taffrail_status::json::Value;
use taffrail_status::{
    Look, Object, Payer, Status, Strikes, Surroundings, Teacher, Teaching, Verdict, Voice,
};

use crate::cel::{Answer, HealthChecks, ReadExpression, ReadyExpr};
use crate::layer::Origin;
#[cfg(not(target_family = "wasm"))]
use crate::lua::Customizations;
use crate::script::{Judged, Script, ScriptKind};

/// Of so many objects what was read is kept; what was read first goes first.
const KEPT: usize = 4096;

/// The texts that are kept take so much together, in bytes.
const KEPT_TEXT: usize = 64 << 20;

/// What one object says may be so long, in bytes: no API server keeps more.
const LONGEST: usize = 2 << 20;

/// Reads what objects say of health, each time they say something else.
#[derive(Debug)]
pub(crate) struct School {
    reader: ReadExpression,
    read: Mutex<Read>,
}

/// What was read. It is found by all of its text and by where that stands: another cluster's may never be taken for it.
#[derive(Debug, Default)]
struct Read {
    /// Nothing where it cannot be read.
    lessons: HashMap<Arc<Source>, Option<Arc<Lesson>>>,
    /// In the order in which they were read.
    order: VecDeque<Arc<Source>>,
    /// How long the texts are together.
    size: usize,
}

/// Where something is said, and what.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Source {
    home: String,
    namespace: String,
    form: Form,
    text: Vec<u8>,
}

/// In which form objects say something of health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    HealthChecks,
    #[cfg(not(target_family = "wasm"))]
    Customizations,
}

/// What an object says.
#[derive(Debug)]
struct Lesson {
    script: Box<dyn Script>,
    /// By namespace of the objects for which it was stopped.
    strikes: Strikes,
}

impl Read {
    fn keep(&mut self, source: Source, lesson: Option<Arc<Lesson>>) {
        let source = Arc::new(source);
        self.size += source.text.len();
        self.order.push_back(source.clone());
        self.lessons.insert(source, lesson);
        while self.order.len() > KEPT || self.size > KEPT_TEXT {
            let Some(first) = self.order.pop_front() else { break };
            self.size -= first.text.len();
            self.lessons.remove(&first);
        }
    }
}

impl School {
    pub(crate) fn new(reader: ReadExpression) -> School {
        School { reader, read: Mutex::default() }
    }

    /// What an object says of the health of others; `None` when it says nothing, or nothing that can be read: its own tool
    /// refuses it then and says so.
    pub(crate) fn heard<'r>(&self, teacher: &Teacher<'_>, look: &'r Look) -> Option<Heard<'r>> {
        let lesson = self.lesson(teacher)?;
        Some(Heard {
            lesson,
            look,
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

    fn lesson(&self, teacher: &Teacher<'_>) -> Option<Arc<Lesson>> {
        let object = &teacher.object;
        let (path, form): (&[&str], Form) = match (object.group(), object.kind()) {
            _ if delivers(object) => (&["spec", "healthCheckExprs"], Form::HealthChecks),
            #[cfg(not(target_family = "wasm"))]
            ("", "ConfigMap") => (&["data"], Form::Customizations),
            _ => return None,
        };
        let said = object.at(path).filter(|said| !said.is_null())?;
        let text = match said.text() {
            Some(text) => text.to_vec(),
            None => serde_json::to_vec(&said.to_tree().ok()?).ok()?,
        };
        if text.len() > LONGEST {
            return None;
        }
        let (home, namespace) = (teacher.home.to_owned(), object.namespace().into_owned());
        let source = Source { home, namespace, form, text };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lesson) = read.lessons.get(&source) {
            return lesson.clone();
        }
        let script = match form {
            Form::HealthChecks => health_checks(object, self.reader),
            #[cfg(not(target_family = "wasm"))]
            Form::Customizations => customizations(object),
        };
        let lesson = script.map(|script| Arc::new(Lesson { script, strikes: Strikes::default() }));
        read.keep(source, lesson.clone());
        lesson
    }

    /// What an object of Flux asks of one that it depends on, and does not find.
    pub(crate) fn unmet_by(&self, object: &Object<'_>, dependency: &Object<'_>) -> Option<String> {
        if !delivers(object) || (object.group(), object.kind()) != (dependency.group(), dependency.kind()) {
            return None;
        }
        let text = |entry: Value<'_>, key: &str| {
            entry.get(key).and_then(Value::as_str).map(|text| text.into_owned()).unwrap_or_default()
        };
        let is_meant = |entry: &Value<'_>| {
            let namespace = Some(text(*entry, "namespace")).filter(|namespace| !namespace.is_empty());
            text(*entry, "name") == dependency.name()
                && namespace.as_deref().unwrap_or(&object.namespace()) == dependency.namespace()
        };
        let entry = object.at(&["spec", "dependsOn"])?.items()?.find(is_meant)?;
        let written = text(entry, "readyExpr");
        if written.trim().is_empty() {
            return None;
        }
        let called = format!("{} {}/{}", dependency.kind(), dependency.namespace(), dependency.name());
        let asked = ReadyExpr::read(&written, &self.reader);
        let trees = || Some((object.root().to_tree().ok()?, dependency.root().to_tree().ok()?));
        let answer = match asked {
            Ok(asked) => trees().map(|(object, dependency)| asked.ask(&object, &dependency))?,
            Err(error) => Answer::Fault(error.to_string()),
        };
        match answer {
            Answer::True => None,
            Answer::False => Some(format!("readyExpr does not hold of {called}: {written}")),
            Answer::Missing(what) => {
                Some(format!("readyExpr does not hold of {called} yet, {what}: {written}"))
            }
            Answer::Fault(why) => Some(format!("readyExpr cannot be asked of {called}, {why}: {written}")),
        }
    }
}

/// Whether an object of Flux delivers others.
fn delivers(object: &Object<'_>) -> bool {
    matches!(
        (object.group(), object.kind()),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("helm.toolkit.fluxcd.io", "HelmRelease")
    )
}

fn health_checks(teacher: &Object<'_>, reader: ReadExpression) -> Option<Box<dyn Script>> {
    let tree = teacher.root().to_tree().ok()?;
    let checks = HealthChecks::of_object(Origin::Cluster, &tree, &reader).ok()??;
    Some(Box::new(checks))
}

/// What an `argocd-cm` says. Which ConfigMap that is, is known to who hands it over.
#[cfg(not(target_family = "wasm"))]
fn customizations(teacher: &Object<'_>) -> Option<Box<dyn Script>> {
    let scripts = Customizations::of_config_map_object(Origin::Cluster, teacher.root())?;
    Some(Box::new(scripts))
}

impl Lesson {
    /// As [`Script::judge_at_cost`], unless that was stopped too often for objects of this kind `inside` of a namespace.
    fn judge(
        &self,
        object: &Object<'_>,
        inside: &str,
        surroundings: &Surroundings<'_>,
        now: Timestamp,
    ) -> Judged {
        if let Some(verdict) = self.strikes.verdict(object, inside) {
            return Judged { verdict: Some(verdict), ..Judged::default() };
        }
        let judged = self.script.judge_at_cost(object, surroundings, now);
        if let Some(verdict) = judged.verdict.as_ref().filter(|_| judged.was_stopped) {
            self.strikes.add(object, inside, verdict);
        }
        judged
    }
}

/// What an object says, as far as it is heard in one look.
#[derive(Debug)]
pub(crate) struct Heard<'r> {
    lesson: Arc<Lesson>,
    look: &'r Look,
    voice: Voice,
    payer: Payer,
    home: String,
    namespace: String,
    target: String,
    /// What people call the object.
    called: String,
}

impl Heard<'_> {
    pub(crate) fn voice(&self) -> Voice {
        self.voice
    }
}

impl Script for Heard<'_> {
    fn origin(&self) -> Origin {
        self.lesson.script.origin()
    }

    fn kinds(&self) -> Vec<ScriptKind> {
        self.lesson.script.kinds()
    }

    fn is_about(&self, object: &Object<'_>) -> bool {
        self.lesson.script.is_about(object)
    }

    fn judge(&self, object: &Object<'_>, surroundings: &Surroundings<'_>, now: Timestamp) -> Option<Verdict> {
        if !self.is_about(object) {
            return None;
        }
        let Heard { home, namespace, target, payer, .. } = self;
        let teaching = Teaching { home, namespace, target, payer: *payer };
        if !self.look.has_room(&teaching, object) {
            let of = match payer {
                Payer::Claimant => format!("apps of namespace {namespace}"),
                Payer::Object | Payer::Teacher => "what is in its namespace".to_owned(),
            };
            let message = format!(
                "not judged: the scripts of {} have computed for too long in this look for {of}",
                self.called
            );
            return Some(Verdict::new(
                Status::Unknown,
                message,
                format!("{}/budget", self.origin().as_str()),
            ));
        }
        let inside = match payer {
            // One tenant's object may be such that an honest script does not end.
            Payer::Object => object.namespace(),
            Payer::Teacher => "".into(),
            // No namespace has such a name, and what is known of the objects there stays as it is.
            Payer::Claimant => format!("by {namespace}").into(),
        };
        let judged = self.lesson.judge(object, &inside, surroundings, now);
        self.look.charge(&teaching, object, judged.took);
        judged.verdict
    }
}

//! Judges single objects of manifests and clusters, and makes their rows or lines of JSON.

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_api::diff::{Comparable, KeyedRow};
use taffrail_api::{StatusCondition, StatusRow};
use taffrail_object::json::Parser;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::assess::{Evidence, UNJUDGED, assess};
use taffrail_status::{
    ComputeError, Condition, ConditionType, ObjectContext, Rules, Status, Verdict, augment,
};

use super::alone::{Alone, may_change};
use super::arguments::{StatusArguments, StatusOutput};
use super::line::write_line;
use super::now;
use crate::cli::TextOutput;
use crate::commands::rows::NamedRow;
use crate::commands::rules::why;
use crate::rule_source::RulesWithOptions;
use taffrail_observe::input::{self, Chunk, InputShape, Parsed};

/// The form in which statuses are returned to the printer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A line of JSON for each status.
    Lines,
    /// Rows, of which the printer makes a table or names.
    Rows,
    /// Whole objects as JSON, with the standard conditions added.
    Augmented,
}

impl From<&StatusArguments> for Form {
    fn from(arguments: &StatusArguments) -> Form {
        match arguments.output {
            _ if arguments.augment => Form::Augmented,
            StatusOutput::Jsonl | StatusOutput::Json | StatusOutput::Yaml => Form::Lines,
            StatusOutput::Table | StatusOutput::Wide | StatusOutput::Name => Form::Rows,
        }
    }
}

/// An object and its verdict.
#[derive(Clone, PartialEq)]
pub(super) struct Row {
    /// The name of the object's cluster; empty for manifests.
    pub(super) cluster: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) verdict: Verdict,
}

impl From<Row> for StatusRow {
    fn from(row: Row) -> StatusRow {
        let Row { group, version, kind, namespace, name, verdict, .. } = row;
        let Verdict { status, message, conditions, rule, suspended } = verdict;
        let condition = |it: Condition| StatusCondition {
            condition: it.condition.as_str().to_owned(),
            status: "True".to_owned(),
            reason: it.reason.into_owned(),
            message: it.message.into_owned(),
        };
        StatusRow {
            group,
            version,
            kind,
            namespace,
            name,
            status,
            message: message.into_owned(),
            conditions: conditions.into_iter().map(condition).collect(),
            rule: rule.into_owned(),
            suspended,
            error: None,
        }
    }
}

/// Converts a status that a hub told of `cluster`. The message of an object that could not be judged is the reason.
fn told_row(cluster: &str, told: &StatusRow) -> Row {
    let condition = |it: &StatusCondition| {
        let condition = ConditionType::ALL.into_iter().find(|own| own.as_str() == it.condition)?;
        Some(Condition { condition, reason: it.reason.clone().into(), message: it.message.clone().into() })
    };
    Row {
        cluster: cluster.to_owned(),
        group: told.group.clone(),
        version: told.version.clone(),
        kind: told.kind.clone(),
        namespace: told.namespace.clone(),
        name: told.name.clone(),
        verdict: Verdict {
            status: told.status,
            message: told.error.as_ref().unwrap_or(&told.message).clone().into(),
            conditions: told.conditions.iter().filter_map(condition).collect(),
            rule: told.rule.clone().into(),
            suspended: told.suspended,
        },
    }
}

/// An object or input that could not be read or judged.
#[derive(Clone, PartialEq)]
pub(super) struct Miss {
    /// The line in the manifest, from 1; 0 for an object of a cluster.
    pub(super) line: u64,
    pub(super) text: String,
}

/// The statuses of the objects of a chunk of input, or of an object of a cluster.
#[derive(Clone, PartialEq)]
pub(super) struct Answers {
    pub(super) source: Arc<str>,
    /// The lines of JSON, for [`Form::Lines`] and [`Form::Augmented`]; for `rules why` its output.
    pub(super) lines: Vec<u8>,
    pub(super) rows: Vec<Row>,
    pub(super) misses: Vec<Miss>,
    /// True if `lines` contain a line for each miss, so that it need not be printed again.
    pub(super) told: bool,
    pub(super) all_current: bool,
}

/// An object of a cluster, and its status.
#[derive(Clone, PartialEq)]
pub(super) struct Judged {
    pub(super) cluster: String,
    pub(super) key: ObjectKey,
    pub(super) answers: Answers,
}

impl Comparable for Judged {}

impl KeyedRow for Judged {
    type Key = (String, ObjectKey);

    fn key(&self) -> Self::Key {
        (self.cluster.clone(), self.key.clone())
    }
}

impl NamedRow for Judged {
    fn name(&self, several: bool) -> String {
        if several { format!("{}/{}", self.cluster, self.key) } else { self.key.to_string() }
    }
}

#[derive(Clone)]
pub(super) struct Judge {
    pub(super) rules: RulesWithOptions,
    /// The output format if `rules why` asks, whose output then replaces the statuses; `None` for `status`.
    pub(super) why: Option<TextOutput>,
    pub(super) now: Option<Timestamp>,
    pub(super) form: Form,
    /// True if only the object's own fields and rules count, as in kstatus; evidence such as Pods is ignored.
    pub(super) is_pure: bool,
}

/// The cluster state from which evidence about an object is taken.
#[derive(Clone, Copy)]
struct KnownObjects<'e> {
    evidence: Evidence<'e>,
    /// True if only the judged object is known, as for a manifest: then there is no evidence.
    is_alone: bool,
}

/// Returns the empty evidence for an object of a manifest.
fn alone() -> KnownObjects<'static> {
    KnownObjects { evidence: Evidence::from(&Alone), is_alone: true }
}

/// A rule set that returns this verdict for every object.
struct Fixed(Verdict);

impl Rules for Fixed {
    fn judge(&self, _: &Object<'_>, _: &ObjectContext<'_>, _: Timestamp) -> Result<Verdict, ComputeError> {
        Ok(self.0.clone())
    }
}

impl Answers {
    fn new(source: Arc<str>) -> Answers {
        Answers {
            source,
            lines: Vec::new(),
            rows: Vec::new(),
            misses: Vec::new(),
            told: false,
            all_current: true,
        }
    }
}

impl Judge {
    /// Returns the status of an object of `cluster`, in the form of the answer, judged with `evidence` of that cluster.
    pub(super) fn object(&self, cluster: &str, object: Object<'_>, evidence: Evidence<'_>) -> Answers {
        let mut answers = Answers::new(cluster.into());
        let known = KnownObjects { evidence, is_alone: false };
        self.one(Parsed::single(0, Ok(object)), now(self.now), true, known, &mut answers);
        for row in &mut answers.rows {
            row.cluster = cluster.to_owned();
        }
        answers
    }

    /// Returns the status of an object, judged with `evidence`; Unknown with the error if it cannot be judged.
    #[cfg(feature = "hub")]
    pub(super) fn row(&self, object: &Object<'_>, evidence: Evidence<'_>) -> StatusRow {
        let judged = self.verdict(object, now(self.now), KnownObjects { evidence, is_alone: false });
        let (verdict, error) = match judged {
            Ok(verdict) => (verdict, None),
            Err(error) => (Verdict::new(Status::Unknown, "", ""), Some(error.to_string())),
        };
        let row = Row {
            cluster: String::new(),
            group: object.group().to_owned(),
            version: object.version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().into_owned(),
            name: object.name().into_owned(),
            verdict,
        };
        StatusRow { error, ..row.into() }
    }

    /// Returns the status that a hub told of an object of `cluster`, in the form of the answer.
    pub(super) fn told(&self, cluster: &str, told: &StatusRow) -> Answers {
        let mut answers = Answers::new(cluster.into());
        let row = told_row(cluster, told);
        let error = told.error.as_deref();
        answers.all_current = error.is_none() && told.status == Status::Current;
        let slash = if row.namespace.is_empty() { "" } else { "/" };
        let reference = format!("{} {}{slash}{}", row.kind, row.namespace, row.name);
        let why = error.or_else(|| (told.rule == UNJUDGED).then_some(&*told.message));
        answers.misses.extend(why.map(|why| match (self.form, error) {
            (Form::Lines, Some(error)) => Miss { line: 0, text: error.to_owned() },
            _ => Miss { line: 0, text: format!("{reference}: {why}") },
        }));
        match self.form {
            Form::Lines => {
                let verdict = error.map_or(Ok(&row.verdict), Err);
                write_row(&row, verdict, &mut answers.lines);
            }
            Form::Rows | Form::Augmented => answers.rows.push(row),
        }
        answers
    }

    /// Returns `row`, which is that of an object that does not exist or was not read, in the form of the answer; for
    /// `rules why` and `--augment` as a miss.
    pub(super) fn absent(&self, row: Row) -> Answers {
        let mut answers = Answers::new(row.cluster.as_str().into());
        answers.all_current = false;
        match self.form {
            Form::Lines if self.why.is_some() => {
                answers
                    .misses
                    .push(Miss { line: 0, text: format!("{} {} does not exist", row.kind, row.name) });
            }
            Form::Lines => write_row(&row, Ok(&row.verdict), &mut answers.lines),
            Form::Rows => answers.rows.push(row),
            Form::Augmented => {
                let text = format!("{} {}: {}", row.kind, row.name, row.verdict.message);
                answers.misses.push(Miss { line: 0, text });
            }
        }
        answers
    }

    pub(super) fn chunk(&self, chunk: &Chunk, parser: &mut Parser) -> Answers {
        let mut answers = Answers::new(chunk.source.clone());
        if self.form != Form::Rows {
            answers.lines.reserve(chunk.text.len() / 2);
        }
        let now = now(self.now);
        // Each line must have an answer; of other shapes what is no object is told beside the answers.
        let exact = matches!(chunk.shape, InputShape::Lines { .. });
        answers.told = exact && self.form == Form::Lines;
        input::each(chunk, parser, |parsed| self.one(parsed, now, exact, alone(), &mut answers));
        answers
    }

    /// Judges an object as all views do: by the rules, then, unless only its own fields count, with other objects as
    /// evidence.
    fn verdict(
        &self,
        object: &Object<'_>,
        now: Timestamp,
        known: KnownObjects<'_>,
    ) -> Result<Verdict, ComputeError> {
        let verdict = self.rules.active().rules.judge(object, &ObjectContext::default(), now)?;
        self.seen(object, verdict, now, known)
    }

    /// Returns the verdict that views of apps show for an object to which the rules gave `verdict`: unchanged if only
    /// the object's own fields count, or if evidence cannot change it.
    fn seen(
        &self,
        object: &Object<'_>,
        verdict: Verdict,
        now: Timestamp,
        known: KnownObjects<'_>,
    ) -> Result<Verdict, ComputeError> {
        if self.is_pure || (known.is_alone && !may_change(object, &verdict)) {
            return Ok(verdict);
        }
        let assessment = assess(object, known.evidence, &self.rules.active(), now);
        let is_same = assessment.verdict.status == verdict.status;
        if is_same && (known.is_alone || verdict.status == Status::Current) {
            let suspended = verdict.suspended || assessment.flags.suspended;
            return Ok(Verdict { suspended, ..verdict });
        }
        let suspended = assessment.flags.suspended;
        Ok(Verdict { suspended, message: assessment.message.into(), ..assessment.verdict })
    }

    fn one(
        &self,
        parsed: Parsed<'_>,
        now: Timestamp,
        exact: bool,
        known: KnownObjects<'_>,
        answers: &mut Answers,
    ) {
        let line = parsed.line;
        let miss = |text: String, answers: &mut Answers| {
            answers.all_current = false;
            answers.misses.push(Miss { line, text });
        };
        let object = match parsed.object {
            Ok(object) => object,
            Err(fault) => {
                let text = fault.to_string();
                if self.form == Form::Lines && exact {
                    write_line(None, Err(&text), &mut answers.lines);
                }
                return miss(text, answers);
            }
        };
        if self.form == Form::Augmented {
            match self.augmented(&object, now, known) {
                Ok(text) => {
                    answers.lines.extend_from_slice(text.as_bytes());
                    answers.lines.push(b'\n');
                }
                Err(text) => miss(format!("{}: {text}", reference(&object)), answers),
            }
            return;
        }
        if let Some(form) = self.why
            && let Ok(verdict) = self.rules.active().rules.judge(&object, &ObjectContext::default(), now)
        {
            let seen = self.seen(&object, verdict.clone(), now, known).ok();
            return why::tell(form, self.rules.set(), &object, &verdict, seen.as_ref(), &mut answers.lines);
        }
        let verdict = self.verdict(&object, now, known);
        if let Ok(verdict) = &verdict
            && verdict.rule == UNJUDGED
        {
            miss(format!("{}: {}", reference(&object), verdict.message), answers);
        }
        answers.all_current &= matches!(&verdict, Ok(verdict) if verdict.status == Status::Current);
        if self.form == Form::Lines {
            match verdict {
                Ok(verdict) => write_line(Some(&object), Ok(&verdict), &mut answers.lines),
                Err(error) => {
                    let text = error.to_string();
                    write_line(Some(&object), Err(&text), &mut answers.lines);
                    miss(text, answers);
                }
            }
            return;
        }
        let verdict = verdict.unwrap_or_else(|error| {
            miss(format!("{}: {error}", reference(&object)), answers);
            Verdict::new(Status::Unknown, error.to_string(), "")
        });
        answers.rows.push(Row {
            cluster: String::new(),
            group: object.group().to_owned(),
            version: object.version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().into_owned(),
            name: object.name().into_owned(),
            verdict,
        });
    }

    fn augmented(
        &self,
        object: &Object<'_>,
        now: Timestamp,
        known: KnownObjects<'_>,
    ) -> Result<String, String> {
        let mut tree = object.to_tree().map_err(|error| error.to_string())?;
        let verdict = self.verdict(object, now, known).map_err(|error| error.to_string())?;
        augment(&mut tree, &Fixed(verdict), now).map_err(|error| error.to_string())?;
        Ok(tree.to_string())
    }
}

/// Returns the name of an object for messages: `Kind namespace/name`, or `Kind name` without a namespace.
fn reference(object: &Object<'_>) -> String {
    let (namespace, name) = (object.namespace(), object.name());
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{} {namespace}{slash}{name}", object.kind())
}

/// Appends the line of JSON about an object without its content: its name from `row`, and the verdict or the error.
fn write_row(row: &Row, verdict: Result<&Verdict, &str>, out: &mut Vec<u8>) {
    let object = serde_json::json!({
        "apiVersion": if row.group.is_empty() { row.version.clone() } else { format!("{}/{}", row.group, row.version) },
        "kind": row.kind,
        "metadata": {"namespace": row.namespace, "name": row.name},
    });
    if let Ok(object) = Object::new((&object).into()) {
        write_line(Some(&object), verdict, out);
    }
}

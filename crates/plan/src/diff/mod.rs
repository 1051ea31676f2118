//! Says which fields differ between a wanted object and the live one, and whose they are.
//!
//! [`diff`] compares the live object with what an apply would leave of it: with the API server's answer to a server-side
//! apply dry run, or where there is none with a merge of its own. Objects are normalised, rules that ignore fields are
//! applied to both sides, and values of Secrets are masked, before anything is compared: no result, error or message holds
//! such a value.

mod fields;
mod ignore;
mod mask;
mod normalise;
mod owners;
mod predict;
mod quantity;
mod report;
mod same;
mod stored;

use std::collections::BTreeSet;

use serde_json::{Map as JsonMap, Value};
use taffrail_merge::{FieldSet, ManagedEntry, Path, PathElement, Type, equal};
use taffrail_object::protobuf::schema::Message;
use taffrail_object::{GroupKind, LAST_APPLIED, ObjectKey, kinds};

pub use fields::FieldPath;
pub use ignore::{
    ArgoIgnoreRule, FailedRule, FluxIgnoreRule, FluxIgnoreTarget, IgnoreRuleProblem, IgnoreRules,
    InvalidIgnoreRule, JqError, JqPath, JqRunner, JqStep,
};
pub use mask::mask_together;
pub use owners::{DifferenceClass, FieldManager, ManagerOperation};
pub use report::{
    ClassifiedBy, DiffBasis, DiffNote, DiffOutcome, FieldDifference, IgnoredDifference, ObjectDiff,
    UnknownReason,
};

use fields::{
    covers, deduced, differences, find_all, has_long_paths, is_hollow, is_nothing, is_too_deep, is_zero,
    keeps_of, text_at, topmost,
};
use mask::Redactor;
use normalise::{LeftOut, ObjectForm, is_aggregated, normal, normalise, without_namespaces};
use owners::{Owned, Owners};
use predict::{Apply, without_additions};
use same::is_same;
use stored::{add_defaults, add_definition_defaults, has_no_defaults, message_of};

use crate::manifests::is_definition;

/// The maximum number of differences of one object that are told; [`ObjectDiff::omitted`] counts the others.
pub const MAX_DIFFERENCES: usize = 10_000;

/// The wanted and the live form of one object, and what is known about it.
///
/// It is not `Debug`: it may hold values of Secrets.
#[derive(Clone)]
pub struct DiffInput<'a> {
    /// The object of the manifest; `None` if no manifest has it.
    pub wanted: Option<&'a Value>,
    /// The live object, at the `apiVersion` of the manifest; `None` if there is none.
    pub live: Option<&'a Value>,
    /// The API server's answer to a server-side apply dry run, or the reason why there is none.
    pub dry_run: &'a DryRun,
    /// The type of the object; the deduced one if no schema is known.
    pub of: Type<'a>,
    /// The field manager that applies the manifest.
    pub manager: &'a str,
    /// The fields that the set applied last time, if it is known.
    pub applied: Option<&'a FieldSet>,
    /// The rules that ignore fields.
    pub rules: &'a IgnoreRules,
    /// Runs the jq expressions of rules.
    pub jq: Option<&'a dyn JqRunner>,
    /// The options.
    pub options: &'a DiffOptions,
}

/// Options of [`diff`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// Counts what defaults and webhooks add, change or remove where nobody declares a value.
    pub includes_additions: bool,
    /// Leaves out the rules of aggregated ClusterRoles, which a controller writes.
    pub ignores_aggregated_rules: bool,
    /// The annotations whose values are masked in all objects.
    pub masked_annotations: BTreeSet<String>,
}

/// The API server's answer to a server-side apply dry run of one object, or the reason why there is none.
///
/// It is not `Debug`: it may hold values of Secrets.
#[derive(Clone)]
pub enum DryRun {
    /// The server answered.
    Answered {
        /// The object that the apply would leave.
        object: Value,
        /// The conflicts that the server told before it was asked with force; empty if there were none.
        conflicts: Vec<ToldConflict>,
    },
    /// The server was not asked, or did not run it.
    NotRun(NoDryRun),
    /// The server does not know the object's namespace or kind yet (404): it comes with the set.
    CreatedLater {
        /// The object that comes first, such as `Namespace shop`.
        needs: String,
    },
    /// The server refused the object (422 and others).
    Refused {
        /// The message of the server.
        message: String,
    },
}

/// The reason why there is no dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NoDryRun {
    /// No server is asked.
    Offline,
    /// The user has no right to apply the object.
    NoRight,
    /// A webhook that has side effects does not take part in dry runs (400).
    Webhook,
}

/// A conflict that the API server told (409).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldConflict {
    /// The path of the field, as the server writes it: `.spec.replicas`.
    pub path: String,
    /// The manager that owns the field; `None` if the server does not name it.
    pub manager: Option<String>,
}

/// Compares the wanted with the live form of an object.
pub fn diff(input: &DiffInput<'_>) -> ObjectDiff {
    let answer = match input.dry_run {
        DryRun::Answered { object, .. } => Some(object),
        _ => None,
    };
    let sides: Vec<&Value> = [input.wanted, input.live, answer].into_iter().flatten().collect();
    let mut result = ObjectDiff {
        object: key_of(input),
        basis: DiffBasis::of(input.dry_run),
        outcome: DiffOutcome::Unchanged,
        reasons: Vec::new(),
        differences: Vec::new(),
        omitted: 0,
        ignored: Vec::new(),
        rewritten: Vec::new(),
        notes: Vec::new(),
        classified_by: match input.applied {
            Some(_) => ClassifiedBy::LastApply,
            None => ClassifiedBy::ManagedFields,
        },
    };
    result.outcome = match (input.wanted, input.live) {
        _ if sides.iter().any(|side| is_too_deep(side) || has_long_paths(side)) => {
            result.reasons.push(UnknownReason::TooDeep);
            DiffOutcome::Unknown
        }
        (None, None) => DiffOutcome::Unchanged,
        (None, Some(_)) => DiffOutcome::NotWanted,
        (Some(wanted), live) => {
            if let Err(reasons) = compare(input, wanted, answer, &mut result) {
                result.reasons = reasons;
                result.differences.clear();
            }
            match (result.reasons.is_empty(), live) {
                (false, _) => DiffOutcome::Unknown,
                (true, None) => DiffOutcome::Create,
                (true, Some(_)) if result.differences.is_empty() => DiffOutcome::Unchanged,
                (true, Some(_)) => DiffOutcome::Change,
            }
        }
    };
    let has_messages = matches!(result.basis, DiffBasis::Refused { .. })
        || !result.reasons.is_empty()
        || !result.notes.is_empty();
    if has_messages && result.reasons.first() != Some(&UnknownReason::TooDeep) {
        result.redact(&Redactor::new(&sides, &input.options.masked_annotations));
    } else if has_messages {
        // Values of objects that are too deep are not looked for.
        result.forget_message();
    }
    result
}

fn key_of(input: &DiffInput<'_>) -> ObjectKey {
    let Some(object) = input.wanted.or(input.live) else { return ObjectKey::new("", "", "", "") };
    let text = |pointer: &str| text_at(object, pointer);
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let namespace = input.live.or(input.wanted).map_or("", |object| text_at(object, "/metadata/namespace"));
    ObjectKey::new(group, text("/kind"), namespace, text("/metadata/name"))
}

/// The sides of an object, normalised.
struct Sides {
    wanted: Value,
    live: Value,
    answer: Option<Value>,
    /// The copy of the object that was last applied on the client's side.
    last_applied: Option<Value>,
    /// The parts that are left out of all of them.
    left_out: LeftOut,
}

fn compare(
    input: &DiffInput<'_>,
    wanted: &Value,
    answer: Option<&Value>,
    result: &mut ObjectDiff,
) -> Result<(), Vec<UnknownReason>> {
    if matches!(input.dry_run, DryRun::Refused { .. }) {
        return Err(vec![UnknownReason::Refused]);
    }
    let version = text_at(wanted, "/apiVersion");
    same_object(input, wanted, answer).map_err(|reason| vec![reason])?;
    let entries = entries_of(input.live, answer.is_some(), result).map_err(|reason| vec![reason])?;
    let are_unread = result.notes.iter().any(|note| matches!(note, DiffNote::ManagersUnreadable { .. }));
    let own_elsewhere = note_versions(&entries, version, input.manager, result);
    if own_elsewhere.is_none() && is_same(input, wanted, answer, &entries, &result.object) {
        if answer.is_none() && entries.is_empty() {
            result.notes.push(DiffNote::NoHistory);
        }
        return Ok(());
    }
    let answered = answer.and_then(|answer| ManagedEntry::read_all(answer).ok()).unwrap_or_default();
    let mut sides = normalised(input, wanted, answer, &answered, result);
    let of = type_for(input.of, &sides, result);

    let conflicts = match input.dry_run {
        DryRun::Answered { conflicts, .. } => {
            // Fields that our own manager wrote in another way are nobody else's.
            let others = conflicts.iter().filter(|it| it.manager.as_deref() != Some(input.manager));
            others.map(|conflict| conflict.path.clone()).collect()
        }
        _ => Vec::new(),
    };
    let kind = result.object.group_kind();
    let message = message_of(&kind, version);
    let last_applied = sides.last_applied.as_ref();
    let by_client = last_applied.and_then(|last| of.field_set(last).ok());
    let owners = Owners::new(&entries, input.manager, version, input.applied, by_client.as_ref(), conflicts);
    let apply = Apply { of, version, manager: input.manager, entries: &entries, last_applied };
    let is_merged = sides.answer.is_none();
    let mut declared = of.field_set(&sides.wanted).unwrap_or_default();
    let (mut predicted, is_defaulted) = match sides.answer.take() {
        Some(mut answer) => {
            result.rewritten = rewritten(of, &sides, &answer, &kind);
            let own = answered
                .iter()
                .filter(|it| it.is_applied && it.manager == input.manager && it.version == version);
            declared = own.fold(declared, |all, entry| all.union(&entry.fields));
            let left = apply.left_by_client(&answer, &sides.wanted).unwrap_or_else(|_| {
                result.notes.push(DiffNote::LastAppliedUnreadable);
                FieldSet::default()
            });
            if !left.is_empty() {
                answer = of.remove(&answer, &left);
            }
            (answer, left.is_empty())
        }
        None if input.live.is_none() => (sides.wanted.clone(), false),
        None => {
            if entries.is_empty() && sides.last_applied.is_none() {
                result.notes.push(DiffNote::NoHistory);
            }
            let merged = apply.merged(&sides.live, &sides.wanted);
            let merged =
                merged.map_err(|error| vec![UnknownReason::NotMergeable { message: error.to_string() }])?;
            (merged, false)
        }
    };
    // A merge leaves null where nothing is left.
    normalise(&mut predicted, &kind, sides.left_out, ObjectForm::Stored);
    let is_typed = !result.notes.iter().any(|note| matches!(note, DiffNote::NotOfItsType { .. }));
    let plain = (!is_defaulted && is_typed).then(|| predicted.clone());
    if plain.is_some() {
        match (message, predicted.as_object_mut()) {
            (Some(message), Some(fields)) => add_defaults(fields, message, of),
            _ => of.add_defaults(&mut predicted),
        }
        if is_definition(&result.object) {
            add_definition_defaults(&mut predicted);
        }
        normalise(&mut predicted, &kind, sides.left_out, ObjectForm::Stored);
    }
    if !input.options.includes_additions {
        let knows_own = own_elsewhere.is_none() && !are_unread;
        let own_fields = knows_own.then_some(&owners);
        let declared = Owned::new(&declared);
        predicted = without_additions(of, &sides.live, &predicted, plain.as_ref(), &declared, own_fields);
    }

    if input.live.is_some() {
        ignore(input, of, &mut predicted, &mut sides, &entries, &owners, result)?;
    } else {
        mask_together(&mut [&mut predicted, &mut sides.live], &input.options.masked_annotations);
    }
    let mut undecided = tell(
        of,
        &predicted,
        &sides,
        is_merged && !input.options.includes_additions,
        message,
        &owners,
        result,
    );
    if is_merged && message.is_none() && is_status_undecided(wanted, input.live, &entries) {
        undecided.push(FieldPath::new(status_path()));
    }
    if !undecided.is_empty() {
        result.notes.push(DiffNote::Undecided { paths: undecided.clone() });
    }
    let mut reasons = Vec::new();
    if result.differences.is_empty() && !undecided.is_empty() {
        reasons.push(UnknownReason::Undecided { paths: undecided });
    }
    if result.differences.is_empty() && is_merged && own_elsewhere.is_some() {
        reasons.extend(own_elsewhere.map(|api_version| UnknownReason::AppliedAtOtherVersion { api_version }));
    }
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

fn status_path() -> Path {
    vec![PathElement::Field("status".to_owned())]
}

/// Returns true if the manifest of a custom kind has another status than the live object, and nobody has shown by a write
/// if the kind has the subresource `status`, so that an apply leaves the status alone.
fn is_status_undecided(wanted: &Value, live: Option<&Value>, entries: &[ManagedEntry]) -> bool {
    let status = |object: &Value| object.get("status").filter(|status| !status.is_null()).cloned();
    let declared = status(wanted);
    declared.is_some()
        && declared != live.and_then(status)
        && !entries.iter().any(|entry| entry.subresource == "status")
}

/// Checks that all sides are forms of one object at one `apiVersion`.
fn same_object(input: &DiffInput<'_>, wanted: &Value, answer: Option<&Value>) -> Result<(), UnknownReason> {
    let text = |object: &Value, pointer: &str| text_at(object, pointer).to_owned();
    if let Some(live) = input.live {
        let (of_live, of_wanted) = (text(live, "/apiVersion"), text(wanted, "/apiVersion"));
        if of_live != of_wanted {
            return Err(UnknownReason::OtherVersion { live: of_live, wanted: of_wanted });
        }
        if text(live, "/kind") != text(wanted, "/kind") {
            return Err(UnknownReason::OtherObject);
        }
    }
    let Some(answer) = answer else { return Ok(()) };
    let is_same = |pointer| {
        let wanted = text_at(wanted, pointer);
        wanted.is_empty() || wanted == text_at(answer, pointer)
    };
    // Not all kinds have a namespace, and a new object may have any UID.
    let is_other = |pointer, known: &Value| {
        let (known, answer) = (text_at(known, pointer), text_at(answer, pointer));
        !known.is_empty() && !answer.is_empty() && known != answer
    };
    let is_other = is_other("/metadata/namespace", wanted)
        || input.live.is_some_and(|live| is_other("/metadata/uid", live));
    match ["/apiVersion", "/kind", "/metadata/name"].into_iter().all(is_same) && !is_other {
        true => Ok(()),
        false => Err(UnknownReason::OtherAnswer),
    }
}

/// Reads the managers of the live object. A merge needs them; the server's answer does not.
fn entries_of(
    live: Option<&Value>,
    is_answered: bool,
    result: &mut ObjectDiff,
) -> Result<Vec<ManagedEntry>, UnknownReason> {
    match live.map(ManagedEntry::read_all).transpose() {
        Ok(entries) => Ok(entries.unwrap_or_default()),
        Err(error) if is_answered => {
            result.notes.push(DiffNote::ManagersUnreadable { message: error.to_string() });
            Ok(Vec::new())
        }
        Err(error) => Err(UnknownReason::ManagersUnreadable { message: error.to_string() }),
    }
}

/// Notes the managers whose fields are at another `apiVersion`; returns that of our own one.
fn note_versions(
    entries: &[ManagedEntry],
    version: &str,
    manager: &str,
    result: &mut ObjectDiff,
) -> Option<String> {
    let mut own = None;
    let elsewhere = entries.iter().filter(|entry| entry.version != version && entry.subresource != "status");
    for entry in elsewhere {
        let api_version = entry.version.clone();
        if entry.is_applied && entry.manager == manager {
            own = Some(api_version.clone());
        }
        let note = DiffNote::OwnedAtOtherVersion { manager: entry.manager.clone(), api_version };
        if !result.notes.contains(&note) {
            result.notes.push(note);
        }
    }
    own
}

fn normalised(
    input: &DiffInput<'_>,
    wanted: &Value,
    answer: Option<&Value>,
    answered: &[ManagedEntry],
    result: &mut ObjectDiff,
) -> Sides {
    let kind = result.object.group_kind();
    let status = status_path();
    let owns_status = |entry: &ManagedEntry| {
        entry.manager == input.manager
            && entry.subresource.is_empty()
            && Owned::new(&entry.fields).touches(&status)
    };
    let all = [Some(wanted), input.live, answer];
    let left_out = LeftOut {
        status: !answered.iter().any(owns_status),
        rules: input.options.ignores_aggregated_rules && all.into_iter().flatten().any(is_aggregated),
    };
    let normal = |object: &Value| normal(object, &kind, left_out, ObjectForm::Stored);
    let mut sides = Sides {
        wanted: normalise::normal(wanted, &kind, left_out, ObjectForm::Declared),
        live: input.live.map_or_else(|| Value::Object(JsonMap::new()), normal),
        answer: answer.map(normal),
        last_applied: None,
        left_out,
    };
    match input.live.and_then(|live| live.pointer("/metadata/annotations")?.get(LAST_APPLIED)) {
        None => {}
        Some(text) => {
            let copy: Option<Value> = text.as_str().and_then(|text| serde_json::from_str(text).ok());
            let is_usable = |copy: &Value| {
                !is_too_deep(copy) && copy.is_object() && copy.get("apiVersion") == wanted.get("apiVersion")
            };
            sides.last_applied = copy.filter(is_usable).map(|copy| normal(&copy));
            if sides.last_applied.is_none() {
                result.notes.push(DiffNote::LastAppliedUnreadable);
            }
        }
    }
    let Sides { wanted, live, answer, last_applied, .. } = &mut sides;
    if input.live.is_some() {
        let mut all: Vec<&mut Value> = vec![wanted, live];
        all.extend(answer.iter_mut().chain(last_applied.iter_mut()));
        without_namespaces(&mut all, &kind);
    }
    sides
}

/// Returns the type if all sides are of it, else the deduced one.
fn type_for<'a>(of: Type<'a>, sides: &Sides, result: &mut ObjectDiff) -> Type<'a> {
    let others = [Some(&sides.live), sides.answer.as_ref(), sides.last_applied.as_ref()];
    let valid = others.into_iter().flatten().try_for_each(|side| of.validate(side, true));
    match of.validate(&sides.wanted, false).and(valid) {
        Ok(()) => of,
        Err(error) => {
            result.notes.push(DiffNote::NotOfItsType { message: error.to_string() });
            deduced()
        }
    }
}

/// Returns the fields that the manifest sets and that the server's answer has with other values, or not at all. A server
/// leaves out many fields that are zero.
fn rewritten(of: Type<'_>, sides: &Sides, answer: &Value, kind: &GroupKind) -> Vec<FieldPath> {
    let mut wanted = sides.wanted.clone();
    normalise(&mut wanted, kind, sides.left_out, ObjectForm::Stored);
    let differing = differences(of, &wanted, answer).into_iter().filter(|it| match (it.live, it.wanted) {
        (Some(wanted), Some(answer)) => !covers(answer, wanted),
        (Some(wanted), None) => !is_zero(wanted),
        _ => false,
    });
    differing.take(MAX_DIFFERENCES).map(|it| FieldPath::new(it.path)).collect()
}

/// Takes the fields of the rules from both sides, masks values, and tells which differences do not count.
fn ignore(
    input: &DiffInput<'_>,
    of: Type<'_>,
    predicted: &mut Value,
    sides: &mut Sides,
    entries: &[ManagedEntry],
    owners: &Owners,
    result: &mut ObjectDiff,
) -> Result<(), Vec<UnknownReason>> {
    if !input.rules.concern(&result.object, &sides.wanted) {
        mask_together(&mut [predicted, &mut sides.live], &input.options.masked_annotations);
        return Ok(());
    }
    let (before_live, before) = (sides.live.clone(), predicted.clone());
    let both = [&mut *predicted, &mut sides.live];
    let taken = input.rules.apply(&result.object, &sides.wanted, of, both, entries, input.jq);
    let taken =
        taken.map_err(|failed| failed.into_iter().map(UnknownReason::IgnoreRule).collect::<Vec<_>>())?;
    mask_together(&mut [&mut *predicted, &mut sides.live], &input.options.masked_annotations);
    for rule in taken {
        let paths = topmost(&rule.fields);
        let values = find_all(&before_live, &paths).into_iter().zip(find_all(&before, &paths));
        for (path, (live, wanted)) in paths.iter().zip(values) {
            let is_equal = match (live, wanted) {
                (Some(live), Some(wanted)) => equal(live, wanted),
                (live, wanted) => live.is_none() && wanted.is_none(),
            };
            if !is_equal && result.ignored.len() < MAX_DIFFERENCES {
                result.ignored.push(IgnoredDifference {
                    path: FieldPath::new(path.clone()),
                    rule: rule.rule.clone(),
                    owners: owners.others(path),
                });
            }
        }
    }
    Ok(())
}

/// Tells the differences. Returns those of lists and maps that are owned as a whole and of which a merge cannot tell if the
/// further fields of the live one are defaults or are to be removed.
fn tell(
    of: Type<'_>,
    predicted: &Value,
    sides: &Sides,
    leaves_defaults: bool,
    message: Option<&'static Message>,
    owners: &Owners,
    result: &mut ObjectDiff,
) -> Vec<FieldPath> {
    let is_custom = kinds::is_namespaced(&result.object.group, &result.object.kind).is_none();
    let ignored = Owned::new(&result.ignored.iter().map(|it| it.path.elements().to_vec()).collect());
    let mut found = differences(of, &sides.live, predicted);
    // Where a rule took a field, nothing but what was around it may be left.
    found.retain(|it| match (it.live, it.wanted) {
        (Some(one), None) | (None, Some(one)) => !(is_hollow(one) && ignored.touches(&it.path)),
        // A merge cannot tell if a server would write a custom resource again for this; its own answer can.
        (Some(one), Some(other)) => {
            !(is_custom && sides.answer.is_none() && is_nothing(one) && is_nothing(other))
        }
        (None, None) => true,
    });
    let paths: Vec<_> = found.iter().map(|it| it.path.clone()).collect();
    let last_applied = sides.last_applied.as_ref().map(|last| find_all(last, &paths));
    let mut undecided = Vec::new();
    for (at, it) in found.into_iter().enumerate() {
        let path = FieldPath::new(it.path.clone());
        if let (true, Some(live), Some(wanted)) = (leaves_defaults && !it.is_order, it.live, it.wanted)
            && (live.is_array() || live.is_object())
            && covers(live, wanted)
            && !message.is_some_and(|message| has_no_defaults(message, &it.path))
        {
            match last_applied.as_ref().map(|last| last.get(at).copied().flatten()) {
                Some(Some(last)) if keeps_of(last, live, wanted) => {}
                // It is as the client applied it, but for defaults.
                Some(Some(_)) if owners.is_by_client_alone(&it.path) => continue,
                _ => {
                    undecided.push(path);
                    continue;
                }
            }
        }
        if result.differences.len() == MAX_DIFFERENCES {
            result.omitted += 1;
            continue;
        }
        let others = owners.others(&it.path);
        let is_taken = leaves_defaults && owners.are_unnamed() && it.live.is_some() && !it.is_order;
        let has_others = !others.is_empty() || is_taken;
        let class = owners.class(&it.path, it.wanted.is_none(), has_others);
        result.differences.push(FieldDifference {
            path,
            wanted: it.wanted.cloned(),
            live: it.live.cloned(),
            owners: others,
            class,
        });
    }
    let told: BTreeSet<&FieldPath> = result.differences.iter().map(|it| &it.path).collect();
    result.ignored.retain(|it| !told.contains(&it.path));
    undecided
}

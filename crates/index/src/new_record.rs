//! Converts an object into a record whose parts are not yet in the pools.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::{Kind, Value, write_string};
use taffrail_object::{LAST_APPLIED, Object, ObjectDigest, Projection, TokenSeed, declared_digest};
use taffrail_status::assess::{claims, defined};
use taffrail_status::{FIRST_STATUS_RULE, Verdict};

use super::extract::{Extractor, ObjectFacts};
use super::record::{Body, Owner, Relation, Uid, flag};
use super::table::Seed;
use super::{IndexSettings, Refusal, Retention};

/// Maximum length in bytes of a name or namespace; an object with a longer one is refused. The API server accepts 253
/// bytes, for a few kinds somewhat more.
const LONGEST_NAME: usize = 1024;

/// Age of an object by which a controller must have written its first status.
pub(super) const FIRST_STATUS: SignedDuration = SignedDuration::from_mins(5);

/// A resource version: a number, or a text if it is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Version<'a> {
    Number(u64),
    Text(Cow<'a, str>),
}

/// A key by which an object is found in addition to its name, such as a mark or a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub(super) hash: u128,
    /// The text of the key, if queries list keys of this type.
    pub(super) name: Option<Cow<'a, str>>,
}

/// All parts of an object that the index keeps, before they are put into the pools and a slot.
#[derive(Debug)]
pub(super) struct NewRecord<'a> {
    pub(super) namespace: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) uid: Uid,
    pub(super) version: Version<'a>,
    pub(super) created: i64,
    pub(super) generation: i64,
    pub(super) digest: ObjectDigest,
    pub(super) flags: u8,
    pub(super) owners: Vec<Owner>,
    /// Keys other than UID and name by which other objects refer to this one as their owner.
    pub(super) owner_groups: Vec<Uid>,
    pub(super) labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) annotations: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) verdict: Verdict,
    pub(super) extract: Vec<u8>,
    pub(super) body: Option<Arc<Body>>,
    pub(super) keys: Vec<Key<'a>>,
}

/// Returns the key that stands for the UID of an object to which others refer by name.
pub(super) fn named(seed: Seed, group: &str, kind: &str, namespace: &str, name: &str) -> Uid {
    Uid::of_bits(seed.words(&["owner", group, kind, namespace, name]))
}

/// Returns the key under which the Pods that use a claim are found.
pub(super) fn users(seed: Seed, namespace: &str, claim: &str) -> u128 {
    seed.words(&["claim", namespace, claim])
}

/// Returns the key under which the terminating Pods on a node are found.
pub(super) fn terminating_on(seed: Seed, node: &str) -> u128 {
    seed.words(&["leaves", node])
}

/// Returns the key under which the CustomResourceDefinition of a kind is found.
pub(super) fn definition(seed: Seed, group: &str, kind: &str) -> u128 {
    seed.words(&["defines", group, kind])
}

/// Returns the key under which the objects with a mark are found.
pub(super) fn mark(seed: Seed, mark: &str) -> u128 {
    seed.words(&["mark", mark])
}

/// Settings and facts needed to convert an object into a record.
pub(super) struct ReadContext<'r> {
    pub(super) settings: &'r IndexSettings,
    pub(super) extractor: &'r Extractor,
    pub(super) seed: Seed,
    pub(super) token_seed: TokenSeed,
    /// True if bodies of the object's kind are kept.
    pub(super) is_kept: bool,
}

/// Converts an object into a record, or returns the reason why its name is refused; `verdict` is that of the rules on
/// it.
pub(super) fn read<'a>(
    object: &Object<'a>,
    projection: Projection,
    reading: &ReadContext<'_>,
    verdict: Verdict,
    now: Timestamp,
) -> Result<NewRecord<'a>, Refusal> {
    let ReadContext { settings, extractor, seed, token_seed, is_kept } = *reading;
    let (name, namespace) = (object.name(), object.namespace());
    if name.is_empty() {
        return Err(Refusal::NoName);
    }
    if name.len().max(namespace.len()) > LONGEST_NAME {
        return Err(Refusal::NameTooLong);
    }
    let is_secret = (object.group(), object.kind()) == ("", "Secret");
    let member = |key: &str| object.metadata().and_then(|metadata| metadata.get(key));
    let text = |key: &str| member(key).and_then(Value::as_str).unwrap_or_default();
    let uid_text = text("uid");
    let uid = Uid::new(&uid_text, seed);
    let mut flags = 0;
    let mut set = |flag: u8, is_set: bool| flags |= if is_set { flag } else { 0 };
    let has_odd_uid = !uid.is_none() && !uid.is_said_by(&uid_text);
    set(flag::ODD_UID, has_odd_uid);
    let created_text = text("creationTimestamp");
    let created = created_text.parse::<Timestamp>().ok();
    let has_odd_creation = !created_text.is_empty() && (created.is_none() || !is_usual(&created_text));
    set(flag::ODD_CREATION, has_odd_creation);
    let version = version(text("resourceVersion"));
    set(flag::ODD_VERSION, matches!(version, Version::Text(_)));
    set(flag::METADATA, projection == Projection::Metadata);
    let is_deleting = !text("deletionTimestamp").is_empty();
    set(flag::DELETING, is_deleting);
    let labels = pairs(member("labels"), |_| true);
    let annotations = member("annotations");
    let (owners, is_of_job) = owners(object, &labels, seed);
    let known = ObjectFacts {
        verdict: &verdict,
        is_deleting,
        is_metadata: projection == Projection::Metadata,
        is_new: created.is_some_and(|created| now.duration_since(created) < FIRST_STATUS),
        has_odd_uid,
        has_odd_creation,
        is_of_job,
        reads_children: settings.rules.reads_children(object.group(), object.kind()),
    };
    let extract = extractor.extract(object, &known);
    set(flag::PLAIN, extract.is_plain);
    let is_full = settings.retention == Retention::Full;
    // What is judged again, now or then, is judged whole.
    let is_judged_again =
        || known.reads_children || is_read_child(object, settings) || verdict.rule == FIRST_STATUS_RULE;
    let is_kept = || is_kept || (settings.keep)(object) || is_judged_again();
    let keeps = !is_full && projection == Projection::Full && !is_secret && is_kept();
    Ok(NewRecord {
        uid,
        version,
        created: created.map_or(i64::MIN, Timestamp::as_second),
        generation: member("generation").and_then(Value::as_i64).unwrap_or(i64::MIN),
        digest: declared_digest(object, projection, token_seed),
        flags,
        owner_groups: owner_groups(object, seed),
        annotations: pairs(annotations, |key| {
            key != LAST_APPLIED && settings.annotations.iter().any(|own| own == key)
        }),
        extract: if keeps || is_full { Vec::new() } else { extract.bytes },
        body: keeps.then(|| Arc::new(Body::Text(body(object, settings.managed_fields)))),
        keys: keys(object, settings, seed),
        namespace,
        name,
        owners,
        labels,
        verdict,
    })
}

/// Returns true if the rules read the children of the kind of at least one of the object's owners.
fn is_read_child(object: &Object<'_>, settings: &IndexSettings) -> bool {
    let references = object.metadata().and_then(|metadata| metadata.get("ownerReferences")?.items());
    references.into_iter().flatten().any(|reference| {
        let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        settings.rules.reads_children(group, &text("kind"))
    })
}

/// Returns true if a time has the API server's format, so that it can be stored as a number.
fn is_usual(time: &str) -> bool {
    let pattern = b"0000-00-00T00:00:00Z";
    let is_like = |(own, like): (u8, &u8)| if *like == b'0' { own.is_ascii_digit() } else { own == *like };
    // A leap second is another one when it is written again.
    time.len() == pattern.len() && time.bytes().zip(pattern).all(is_like) && &time[17..19] < "60"
}

fn version(text: Cow<'_, str>) -> Version<'_> {
    let is_number =
        text.len() < 20 && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    match text.parse() {
        Ok(number) if is_number => Version::Number(number),
        _ if text.is_empty() => Version::Number(0),
        _ => Version::Text(text),
    }
}

/// Returns the string members of an object whose keys satisfy `is_wanted`, sorted by key; of duplicate keys the last
/// counts.
fn pairs<'a>(
    value: Option<Value<'a>>,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    let members = value.and_then(Value::members).into_iter().flatten();
    let texts = members.filter(|(key, _)| is_wanted(key));
    let mut pairs: Vec<_> = texts.filter_map(|(key, value)| Some((key, value.as_str()?))).collect();
    pairs.reverse();
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    pairs.dedup_by(|(one, _), (other, _)| one == other);
    pairs
}

/// Returns the owners of an object, its controller first, and true if the controller is a Job. An owner is inferred
/// from a reference without UID, and for an object without usable references from names, labels or annotations.
fn owners(object: &Object<'_>, labels: &[(Cow<'_, str>, Cow<'_, str>)], seed: Seed) -> (Vec<Owner>, bool) {
    let mut owners = Vec::new();
    let mut is_of_job = false;
    let references = object.metadata().and_then(|metadata| metadata.get("ownerReferences")?.items());
    for reference in references.into_iter().flatten() {
        let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut uid = Uid::new(&text("uid"), seed);
        let is_controller = reference.get("controller").and_then(Value::as_bool) == Some(true);
        let mut relation = Relation::Owner;
        if uid.is_none() {
            let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
            if kind.is_empty() || name.is_empty() {
                continue;
            }
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            uid = named(seed, group, &kind, &object.namespace(), &name);
            relation = Relation::Inferred;
        } else if is_controller && owners.iter().all(|own: &Owner| own.relation != Relation::Controller) {
            relation = Relation::Controller;
            is_of_job = reference.get("kind").is_some_and(|kind| kind.is_str("Job"));
        }
        match owners.iter_mut().find(|own| own.uid == uid) {
            Some(own) => own.relation = own.relation.min(relation),
            None => owners.push(Owner { uid, relation }),
        }
    }
    if owners.is_empty() {
        owners.extend(inferred(object, labels, seed).map(|uid| Owner { uid, relation: Relation::Inferred }));
    }
    owners.sort_by_key(|owner| owner.relation);
    (owners, is_of_job)
}

/// Returns the key of the owner of an object without usable owner references, from its kind, name, labels and
/// annotations; `None` if these tell none. The owner need not exist.
fn inferred(object: &Object<'_>, labels: &[(Cow<'_, str>, Cow<'_, str>)], seed: Seed) -> Option<Uid> {
    let (namespace, name) = (object.namespace(), object.name());
    let annotation = |key: &str| object.at(&["metadata", "annotations", key]).and_then(Value::as_str);
    let label = |key: &str| labels.iter().find(|(own, _)| own == key).map(|(_, value)| value);
    match (object.group(), object.kind()) {
        ("", "Endpoints") => Some(named(seed, "", "Service", &namespace, &name)),
        ("discovery.k8s.io", "EndpointSlice") => {
            Some(named(seed, "", "Service", &namespace, label("kubernetes.io/service-name")?))
        }
        ("", "PersistentVolumeClaim") => {
            let (set, number) = name.rsplit_once('-')?;
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| claimed(seed, &namespace, set))
        }
        ("", "Secret") => {
            let account = annotation("kubernetes.io/service-account.name").filter(|name| !name.is_empty())?;
            match annotation("kubernetes.io/service-account.uid").filter(|uid| !uid.is_empty()) {
                Some(uid) => Some(Uid::new(&uid, seed)),
                None => Some(named(seed, "", "ServiceAccount", &namespace, &account)),
            }
        }
        ("operators.coreos.com", "ClusterServiceVersion") => {
            let group = annotation("olm.operatorGroup").filter(|name| !name.is_empty())?;
            let home = annotation("olm.operatorNamespace").unwrap_or_else(|| namespace.clone());
            Some(named(seed, "operators.coreos.com", "OperatorGroup", &home, &group))
        }
        _ => None,
    }
}

/// Returns the key of the StatefulSet whose claims have names such as `TEMPLATE-SET-0`.
fn claimed(seed: Seed, namespace: &str, template_and_set: &str) -> Uid {
    Uid::of_bits(seed.words(&["claims of", namespace, template_and_set]))
}

fn owner_groups(object: &Object<'_>, seed: Seed) -> Vec<Uid> {
    if (object.group(), object.kind()) != ("apps", "StatefulSet") {
        return Vec::new();
    }
    let (namespace, set) = (object.namespace(), object.name());
    let templates = object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::items).into_iter().flatten();
    let names = templates.filter_map(|template| template.at(&["metadata", "name"])?.as_str());
    names.map(|template| claimed(seed, &namespace, &format!("{template}-{set}"))).collect()
}

fn keys<'a>(object: &Object<'a>, settings: &IndexSettings, seed: Seed) -> Vec<Key<'a>> {
    let mut keys: Vec<Key<'a>> = Vec::new();
    (settings.mark)(object, &mut |name| {
        let hash = mark(seed, name);
        if !name.is_empty() && keys.iter().all(|key| key.hash != hash) {
            keys.push(Key { hash, name: Some(Cow::Owned(name.to_owned())) });
        }
    });
    let is_deleting = !object.text(&["metadata", "deletionTimestamp"]).is_empty();
    if is_deleting && (object.group(), object.kind()) == ("", "Pod") {
        let node = object.text(&["spec", "nodeName"]);
        keys.push(Key { hash: terminating_on(seed, &node), name: None });
    }
    match (object.group(), object.kind()) {
        ("", "Pod") if object.at(&["spec", "volumes"]).is_some_and(|volumes| may_claim(volumes)) => {
            let claims = claims(object);
            keys.extend(
                claims
                    .iter()
                    .map(|claim| Key { hash: users(seed, &claim.namespace, &claim.name), name: None }),
            );
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let (group, kind) = defined(object);
            keys.push(Key { hash: definition(seed, &group, &kind), name: None });
        }
        _ => {}
    }
    keys
}

/// Returns true if one of the volumes may use a claim; most Pods have no such volume.
fn may_claim(volumes: Value<'_>) -> bool {
    match volumes.text() {
        Some(text) => {
            let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
            // An escape may hide a word.
            has(b"ersistentVolumeClaim") || has(b"phemeral") || text.contains(&b'\\')
        }
        None => true,
    }
}

/// Returns a Secret as JSON with `apiVersion`, `kind` and `metadata` only, without its managed fields and without the
/// annotation in which kubectl stores a copy of the object.
pub(super) fn metadata_of_secret(object: &Object<'_>) -> Box<[u8]> {
    let mut out = Vec::new();
    write_object(object.root(), &mut out, &mut |key, value, out| match key {
        "apiVersion" | "kind" => {
            value.write(out);
            true
        }
        "metadata" => write_object(value, out, &mut |key, value, out| match key {
            "managedFields" => false,
            "annotations" => write_annotations(value, out),
            _ => {
                value.write(out);
                true
            }
        }),
        _ => false,
    });
    out.into_boxed_slice()
}

/// Writes annotations without [`LAST_APPLIED`], as an empty object if none remain; always returns true.
fn write_annotations(annotations: Value<'_>, out: &mut Vec<u8>) -> bool {
    write_object(annotations, out, &mut |key, value, out| {
        let is_kept = key != LAST_APPLIED;
        if is_kept {
            value.write(out);
        }
        is_kept
    })
}

/// Returns the JSON of an object without `resourceVersion`, `selfLink`, [`LAST_APPLIED`], the `lastHeartbeatTime` and
/// `lastProbeTime` of its conditions, and, unless `managed_fields` is true, `managedFields`.
fn body(object: &Object<'_>, managed_fields: bool) -> Box<[u8]> {
    let mut out = Vec::new();
    // Where a member occurs twice both are written: the last one counts for those who read it, too.
    write_object(object.root(), &mut out, &mut |key, value, out| match key {
        "metadata" => write_object(value, out, &mut |key, value, out| match key {
            "managedFields" if !managed_fields => false,
            "resourceVersion" | "selfLink" => false,
            "annotations" => write_annotations(value, out),
            _ => {
                value.write(out);
                true
            }
        }),
        "status" => write_object(value, out, &mut |key, value, out| {
            match value.items() {
                Some(conditions) if key == "conditions" => {
                    out.push(b'[');
                    for (at, condition) in conditions.enumerate() {
                        if at > 0 {
                            out.push(b',');
                        }
                        write_object(condition, out, &mut |key, value, out| {
                            let is_kept = !matches!(key, "lastHeartbeatTime" | "lastProbeTime");
                            if is_kept {
                                value.write(out);
                            }
                            is_kept
                        });
                    }
                    out.push(b']');
                }
                _ => value.write(out),
            }
            true
        }),
        _ => {
            value.write(out);
            true
        }
    });
    out.into_boxed_slice()
}

/// Writes an object through `write`, which is called for each member and returns true if it wrote it; writes other
/// values unchanged. Always returns true.
fn write_object(
    value: Value<'_>,
    out: &mut Vec<u8>,
    write: &mut dyn FnMut(&str, Value<'_>, &mut Vec<u8>) -> bool,
) -> bool {
    if value.kind() != Kind::Object {
        value.write(out);
        return true;
    }
    out.push(b'{');
    let start = out.len();
    for (key, value) in value.members().into_iter().flatten() {
        let before = out.len();
        if before > start {
            out.push(b',');
        }
        write_string(&key, out);
        out.push(b':');
        if !write(&key, value, out) {
            out.truncate(before);
        }
    }
    out.push(b'}');
    true
}

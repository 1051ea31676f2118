//! Saves an index to bytes, and loads it.
//!
//! The format is private: other versions and damaged files are refused. A file has the state at the time of saving;
//! after loading, every scope that was read is [`Stale`](ScopeState::Stale) until it is confirmed, and the others keep
//! their state.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::json::OwnedDocument;
use taffrail_object::{ApiResource, ObjectDigest, ObjectKey, TokenSeed};
use taffrail_status::{Condition, ConditionType, Status, Verdict};
use xxhash_rust::xxh3::xxh3_64;

use super::contents::{Contents, Snapshot};
use super::new_record::{Key, NewRecord, Version};
use super::pool::NONE;
use super::record::{Body, Health, Judged, Owner, Past, Record, Relation, Uid, flag};
use super::scope::{Scope, ScopeState};
use super::table::Seed;
use super::wire::{Damaged, Reader, Writer};
use super::{Index, IndexSettings, KindId, Retention};

/// The first bytes of a saved index.
const MAGIC: &[u8; 8] = b"TAFFIDX\n";
/// The version of the format of saved indexes; files of other versions are refused.
const VERSION: u32 = 6;

/// The reason why a saved index cannot be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReopenError {
    /// The file does not begin with `TAFFIDX`.
    #[error("the file is not a saved index: it does not begin with TAFFIDX")]
    Foreign,
    /// The file has another version of the format.
    #[error(
        "the saved index has the format {found}, but this version of Taffrail reads only format {VERSION}"
    )]
    OtherFormat {
        /// The version of the file's format.
        found: u32,
    },
    /// The file was saved with other settings, so it contains other fields.
    #[error("the saved index was made with other settings, so it contains other fields")]
    OtherSettings,
    /// The file is truncated, or its bytes were changed.
    #[error("the saved index is damaged: it is truncated, or its bytes were changed")]
    Damaged,
}

impl From<Damaged> for ReopenError {
    fn from(_: Damaged) -> ReopenError {
        ReopenError::Damaged
    }
}

/// Serializes a snapshot, to be [reopened](Index::reopen) later; `now` is stored as the time of saving.
pub fn save(snapshot: &Snapshot, now: Timestamp) -> Vec<u8> {
    let contents: &Contents = snapshot;
    let mut out = Writer::default();
    out.number(contents.settings.revision);
    out.number(contents.seed.number());
    out.number(contents.token_seed.number());
    out.time(Some(now));
    let told = contents.status_subresources.iter();
    out.list(contents.kinds.iter().zip(told), |out, (kind, has_status_subresource)| {
        let ApiResource { group, version, kind, plural, namespaced } = &**kind;
        [group, version, kind, plural].into_iter().for_each(|text| out.text(text));
        out.byte(u8::from(*namespaced));
        out.option(*has_status_subresource, |out, is_there| out.byte(u8::from(is_there)));
    });
    out.list(contents.scopes(), |out, (kind, namespace, scope)| {
        out.number(u64::from(kind.0));
        out.option(namespace, |out, namespace| out.text(namespace));
        out.byte(scope.state as u8);
        out.time(scope.since);
        out.text(&scope.reason);
        out.byte(u8::from(scope.is_complete));
    });
    out.slots(contents.texts.slots(), |out, text| out.text(text));
    out.slots(contents.sets.slots(), |out, set| {
        out.list(set.iter(), |out, (key, value)| {
            out.number(u64::from(*key));
            out.number(u64::from(*value));
        });
    });
    out.slots(contents.owners.slots(), |out, owners| {
        out.list(owners.iter(), |out, owner| {
            out.bits(owner.uid.bits());
            out.byte(owner.relation as u8);
        });
    });
    out.slots(contents.verdicts.slots(), |out, judged| write_verdict(out, &judged.0));
    out.slots(contents.healths.slots(), |out, health| {
        write_verdict(out, &health.verdict.0);
        out.text(&health.message);
        out.option(health.cause.as_ref(), |out, cause| {
            let ObjectKey { group, kind, namespace, name } = cause;
            [group, kind, namespace, name].into_iter().for_each(|text| out.text(text));
        });
    });
    out.slots(contents.extracts.slots(), |out, bytes| out.bytes(bytes));
    out.slots(contents.keys.slots(), |out, keys| {
        out.list(keys.iter(), |out, key| {
            out.bits(*key);
            let name = contents.postings.get(*key).and_then(|posting| posting.name.as_deref());
            out.option(name, |out, name| out.text(name));
        });
    });
    let slots: Vec<u32> = (0..contents.links.len()).filter(|at| contents.record(*at).is_some()).collect();
    out.list(slots.into_iter(), |out, slot| {
        if let Some(record) = contents.record(slot) {
            write_record(out, contents, slot, record);
        }
    });
    contents.events.write(&mut out);
    let payload = out.into_bytes();
    let head = [&MAGIC[..], &VERSION.to_le_bytes(), &xxh3_64(&payload).to_le_bytes()];
    head.concat().into_iter().chain(payload).collect()
}

fn write_verdict(out: &mut Writer, verdict: &Verdict) {
    let Verdict { status, message, conditions, rule, suspended } = verdict;
    out.byte(*status as u8);
    out.byte(u8::from(*suspended));
    out.text(message);
    out.text(rule);
    out.list(conditions.iter(), |out, condition| {
        out.byte(condition.condition as u8);
        out.text(&condition.reason);
        out.text(&condition.message);
    });
}

fn read_verdict(input: &mut Reader<'_>) -> Result<Verdict, Damaged> {
    let status = read_status(input)?;
    let suspended = input.byte()? == 1;
    let text = |input: &mut Reader<'_>| Ok::<_, Damaged>(Cow::Owned(input.text()?.to_owned()));
    let (message, rule) = (text(input)?, text(input)?);
    let conditions = input.list(|input| {
        let condition = match input.byte()? {
            0 => ConditionType::Reconciling,
            1 => ConditionType::Stalled,
            _ => return Err(Damaged),
        };
        Ok(Condition { condition, reason: text(input)?, message: text(input)? })
    })?;
    Ok(Verdict { status, message, conditions, rule, suspended })
}

fn read_status(input: &mut Reader<'_>) -> Result<Status, Damaged> {
    Status::ALL.get(usize::from(input.byte()?)).copied().ok_or(Damaged)
}

fn write_record(out: &mut Writer, contents: &Contents, slot: u32, record: &Record) {
    let (_, _, namespace, name) = contents.name_of(record);
    let kind = contents.buckets.get(record.bucket).map_or(NONE, |bucket| bucket.kind);
    out.number(u64::from(kind));
    out.text(namespace);
    out.text(name);
    out.bits(record.uid.bits());
    out.byte(record.flags);
    out.number(record.version);
    [record.created, record.generation, record.since, record.unwell_since]
        .into_iter()
        .for_each(|it| out.signed(it));
    out.bits(record.digest.bits());
    out.byte(record.status as u8);
    let pools = [record.labels, record.annotations, record.owners, record.verdict, record.health];
    pools
        .into_iter()
        .chain([record.extract, record.keys])
        .for_each(|at| out.number(u64::from(at.wrapping_add(1))));
    out.option(record.body.as_ref(), |out, body| out.bytes(body.text()));
    let past = record.past.iter().flat_map(|past| past.iter().flatten());
    out.list(past.collect::<Vec<_>>().into_iter(), |out, (status, since)| {
        out.byte(*status as u8);
        out.signed(*since);
    });
    let own = [record.uid, contents.key_of(record)];
    let made =
        contents.owner_groups_of(slot).map(|owner_group| owner_group.id).filter(|id| !own.contains(id));
    out.list(made.collect::<Vec<_>>().into_iter(), |out, id| out.bits(id.bits()));
}

/// The values of a file's pools, by slot; `None` for a vacant slot.
struct Pools<'b> {
    texts: Vec<Option<&'b str>>,
    sets: Vec<Option<Vec<(u32, u32)>>>,
    owners: Vec<Option<Vec<Owner>>>,
    verdicts: Vec<Option<Verdict>>,
    healths: Vec<Option<Health>>,
    extracts: Vec<Option<&'b [u8]>>,
    keys: Vec<Option<Vec<Key<'b>>>>,
}

fn at<T: Clone + Default>(values: &[Option<T>], slot: u32) -> Result<T, Damaged> {
    if slot == NONE {
        return Ok(T::default());
    }
    values.get(slot as usize).cloned().flatten().ok_or(Damaged)
}

type Pairs<'b> = Vec<(Cow<'b, str>, Cow<'b, str>)>;

impl<'b> Pools<'b> {
    fn read(input: &mut Reader<'b>) -> Result<Pools<'b>, Damaged> {
        Ok(Pools {
            texts: input.slots(|input| input.text())?,
            sets: input.slots(|input| input.list(|input| Ok((input.slot()?, input.slot()?))))?,
            owners: input.slots(|input| {
                input.list(|input| {
                    let uid = Uid::of_bits(input.bits()?);
                    let relation = match input.byte()? {
                        0 => Relation::Controller,
                        1 => Relation::Owner,
                        2 => Relation::Inferred,
                        _ => return Err(Damaged),
                    };
                    Ok(Owner { uid, relation })
                })
            })?,
            verdicts: input.slots(read_verdict)?,
            healths: input.slots(|input| {
                let verdict = Judged(read_verdict(input)?);
                let message = input.text()?.to_owned();
                let cause = input.option(|input| {
                    Ok(ObjectKey::new(input.text()?, input.text()?, input.text()?, input.text()?))
                })?;
                Ok(Health { verdict, message, cause })
            })?,
            extracts: input.slots(|input| input.bytes())?,
            keys: input.slots(|input| {
                input.list(|input| {
                    let hash = input.bits()?;
                    let name = input.option(|input| input.text())?;
                    Ok(Key { hash, name: name.map(Cow::Borrowed) })
                })
            })?,
        })
    }

    fn pairs(&self, slot: u32) -> Result<Pairs<'b>, Damaged> {
        let text = |slot| Ok(Cow::Borrowed(self.texts.get(slot as usize).copied().flatten().ok_or(Damaged)?));
        at(&self.sets, slot)?.into_iter().map(|(key, value)| Ok((text(key)?, text(value)?))).collect()
    }
}

/// The status of a saved object and its history, which cannot be computed from the other saved fields.
struct SavedStatus {
    status: Status,
    since: i64,
    unwell_since: i64,
    health: Option<Health>,
    past: Past,
}

fn read_record<'b>(
    input: &mut Reader<'b>,
    pools: &Pools<'b>,
    retention: Retention,
) -> Result<(KindId, NewRecord<'b>, SavedStatus), Damaged> {
    let kind = KindId(input.slot()?);
    let (namespace, name) = (input.text()?, input.text()?);
    let uid = Uid::of_bits(input.bits()?);
    let flags = input.byte()?;
    let version = match (flags & flag::ODD_VERSION != 0, input.number()?) {
        (false, number) => Version::Number(number),
        (true, slot) => {
            let slot = u32::try_from(slot).map_err(|_| Damaged)?;
            Version::Text(Cow::Borrowed(at(&pools.texts, slot)?))
        }
    };
    let [created, generation, since, unwell_since] =
        [input.signed()?, input.signed()?, input.signed()?, input.signed()?];
    let digest = ObjectDigest::of_bits(input.bits()?);
    let status = read_status(input)?;
    let mut slot = || {
        let slot = u32::try_from(input.number()?).map_err(|_| Damaged)?;
        Ok::<_, Damaged>(slot.wrapping_sub(1))
    };
    let [labels, annotations, owners, verdict, health, extract, keys] =
        [slot()?, slot()?, slot()?, slot()?, slot()?, slot()?, slot()?];
    let body = input.option(|input| input.bytes())?;
    let body = match retention {
        Retention::Compact => body.map(|text| Body::Text(text.into())),
        Retention::Full => body
            .map(|text| OwnedDocument::parse(text).map(Body::Document))
            .transpose()
            .map_err(|_| Damaged)?,
    };
    let mut past = Past::default();
    for (at, was) in input.list(|input| Ok((read_status(input)?, input.signed()?)))?.into_iter().enumerate() {
        *past.get_mut(at).ok_or(Damaged)? = Some(was);
    }
    let new_record = NewRecord {
        namespace: Cow::Borrowed(namespace),
        name: Cow::Borrowed(name),
        uid,
        version,
        created,
        generation,
        digest,
        flags,
        owners: at(&pools.owners, owners)?,
        owner_groups: input.list(|input| Ok(Uid::of_bits(input.bits()?)))?,
        labels: pools.pairs(labels)?,
        annotations: pools.pairs(annotations)?,
        verdict: pools.verdicts.get(verdict as usize).cloned().flatten().ok_or(Damaged)?,
        extract: at(&pools.extracts, extract)?.to_vec(),
        body: body.map(Arc::new),
        keys: at(&pools.keys, keys)?,
    };
    let health = match health {
        NONE => None,
        slot => Some(pools.healths.get(slot as usize).cloned().flatten().ok_or(Damaged)?),
    };
    Ok((kind, new_record, SavedStatus { status, since, unwell_since, health, past }))
}

impl Index {
    /// Loads a [saved](save) index. The objects have the statuses that were saved, and scopes that were read are stale
    /// until confirmed; `now` is the current time.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a saved index, or are damaged, of another format or of other settings; the
    /// caller then starts with an empty index.
    pub fn reopen(saved: &[u8], settings: IndexSettings, now: Timestamp) -> Result<Index, ReopenError> {
        let rest = saved.strip_prefix(MAGIC).ok_or(ReopenError::Foreign)?;
        let (version, rest) = rest.split_first_chunk().ok_or(ReopenError::Damaged)?;
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            return Err(ReopenError::OtherFormat { found });
        }
        let (sum, payload) = rest.split_first_chunk().ok_or(ReopenError::Damaged)?;
        if u64::from_le_bytes(*sum) != xxh3_64(payload) {
            return Err(ReopenError::Damaged);
        }
        let mut input = Reader::new(payload);
        if input.number()? != settings.revision {
            return Err(ReopenError::OtherSettings);
        }
        let retention = settings.retention;
        let seed = Seed::of_number(input.number()?);
        let mut index = Index::seeded(settings, seed, TokenSeed::of_number(input.number()?));
        let saved_at = input.time()?;
        index.read_kinds(&mut input)?;
        index.read_scopes(&mut input, saved_at)?;
        let pools = Pools::read(&mut input)?;
        for _ in 0..input.length()? {
            let (kind, new_record, shown) = read_record(&mut input, &pools, retention)?;
            index.restore(kind, new_record, shown, now)?;
        }
        index.read_events(&mut input)?;
        input.end()?;
        index.pending = super::Pending::default();
        index.reassess_restored(now);
        Ok(index)
    }

    fn read_kinds(&mut self, input: &mut Reader<'_>) -> Result<(), Damaged> {
        for at in 0..input.length()? {
            let [group, version, kind, plural] =
                [input.text()?, input.text()?, input.text()?, input.text()?].map(str::to_owned);
            let namespaced = input.byte()? != 0;
            let has_status_subresource = input.option(|input| Ok(input.byte()? != 0))?;
            let id = self.kind(&ApiResource { group, version, kind, plural, namespaced });
            if id.number() != at {
                return Err(Damaged);
            }
            self.set_status_subresource(id, has_status_subresource);
        }
        Ok(())
    }

    fn read_scopes(&mut self, input: &mut Reader<'_>, saved_at: Option<Timestamp>) -> Result<(), Damaged> {
        for _ in 0..input.length()? {
            let kind = KindId(input.slot()?);
            let namespace = input.option(|input| input.text())?;
            let state = match input.byte()? {
                0 => ScopeState::Unread,
                1..=3 => ScopeState::Stale,
                4 => ScopeState::Forbidden,
                5 => ScopeState::Broken,
                6 => ScopeState::Absent,
                _ => return Err(Damaged),
            };
            let since = input.time()?;
            let reason = Arc::from(input.text()?);
            let is_complete = input.byte()? != 0;
            let since = if state == ScopeState::Stale { saved_at.max(since) } else { since };
            *self.contents.scope_mut(kind, namespace).ok_or(Damaged)? =
                Scope { state, since, reason, is_complete };
        }
        Ok(())
    }

    fn restore(
        &mut self,
        kind: KindId,
        new_record: NewRecord<'_>,
        shown: SavedStatus,
        now: Timestamp,
    ) -> Result<(), Damaged> {
        let put = self.put(kind, new_record, now).map_err(|_| Damaged)?;
        let slot = put.handle().ok_or(Damaged)?.slot;
        let SavedStatus { status, since, unwell_since, health, past } = shown;
        let health = health.map_or(NONE, |health| {
            self.pools.healths.take(&mut self.contents.healths, &health, || Arc::new(health.clone())).0
        });
        let record = self.contents.records.get_mut(slot).and_then(Option::as_mut).ok_or(Damaged)?;
        // The same name twice would leave a health behind.
        if record.health != NONE {
            return Err(Damaged);
        }
        let (before, bucket) = (record.status, record.bucket);
        (record.status, record.since, record.unwell_since, record.health) =
            (status, since, unwell_since, health);
        record.past = past.iter().any(Option::is_some).then(|| Arc::new(past));
        if before != status {
            self.contents.change_status(slot, bucket, before, status);
        }
        Ok(())
    }
}

//! The object that an apply would leave.

use serde_json::Value;
use taffrail_merge::{
    FieldSet, ManagedEntry, ManagedFields, Managers, Path, Type, UpdateError, Updater, equal,
};

use super::fields::{Edit, edit, find_all, topmost};
use super::owners::{Owned, Owners, is_client_side};

/// An apply by one manager, with what is known of earlier ones.
#[derive(Clone, Copy)]
pub(super) struct Apply<'a> {
    pub(super) of: Type<'a>,
    pub(super) version: &'a str,
    pub(super) manager: &'a str,
    pub(super) entries: &'a [ManagedEntry],
    /// The object that `kubectl apply` or a tool like it applied last on the client's side.
    pub(super) last_applied: Option<&'a Value>,
}

impl Apply<'_> {
    /// Returns the live object as the apply would leave it, taking fields of others. What was last applied on the client's
    /// side counts as applied by our own manager: what is no longer wanted of it is removed unless others own it.
    ///
    /// # Errors
    /// [`UpdateError`] if an object is not of its type.
    pub(super) fn merged(self, live: &Value, wanted: &Value) -> Result<Value, UpdateError> {
        let id = self.id();
        let updater = Updater::new(self.of, self.version);
        let merged = updater.apply(live, wanted, &self.managers(&id)?, &id, true)?;
        Ok(merged.object.unwrap_or_else(|| live.clone()))
    }

    /// Returns the fields of the server's answer that were last applied on the client's side and are no longer wanted.
    ///
    /// # Errors
    /// [`UpdateError`] if an object is not of its type.
    pub(super) fn left_by_client(self, answer: &Value, wanted: &Value) -> Result<FieldSet, UpdateError> {
        if self.last_applied.is_none() {
            return Ok(FieldSet::default());
        }
        let merged = self.merged(answer, wanted)?;
        self.of.compare(answer, &merged).map(|it| it.removed).map_err(UpdateError::Live)
    }

    fn id(self) -> String {
        let entry = ManagedEntry {
            manager: self.manager.to_owned(),
            is_applied: true,
            version: self.version.to_owned(),
            subresource: String::new(),
            time: None,
            fields: FieldSet::default(),
        };
        entry.id()
    }

    fn managers(self, id: &str) -> Result<Managers, UpdateError> {
        let Some(last) = self.last_applied else { return Ok(ManagedEntry::managers(self.entries)) };
        let entries = self.entries.iter().filter(|entry| !is_client_side(entry)).cloned();
        let mut managers = ManagedEntry::managers(&entries.collect::<Vec<_>>());
        let mut fields = self.of.field_set(last).map_err(UpdateError::Live)?;
        let own = managers.remove(id).filter(|own| own.version == self.version);
        fields = own.map_or(FieldSet::default(), |own| own.fields).union(&fields);
        let own = ManagedFields { fields, version: self.version.to_owned(), is_applied: true };
        managers.insert(id.to_owned(), own);
        Ok(managers)
    }
}

/// Returns the server's answer with the live values of what neither the manifest nor our own manager declares: what defaults
/// and webhooks add, change or remove. `plain` is a merge before it got defaults: a field that it left as it was live stays so,
/// since a server of another release may have no such default. With `owners` as `None`, our own fields are not known, and all
/// that the apply removes stays removed.
pub(super) fn without_additions(
    of: Type<'_>,
    live: &Value,
    answer: &Value,
    plain: Option<&Value>,
    declared: &Owned,
    owners: Option<&Owners>,
) -> Value {
    let Ok(compared) = of.compare(live, answer) else { return answer.clone() };
    let is_foreign = |path: &Path| !declared.touches(path);
    // What is no longer declared may have taken its default.
    let is_restored = |path: &Path| is_foreign(path) && !owners.is_some_and(|owners| owners.is_own(path));
    let modified = compared.modified.paths();
    let as_before: Vec<bool> = match plain {
        None => vec![false; modified.len()],
        Some(plain) => {
            let values = find_all(live, &modified).into_iter().zip(find_all(plain, &modified));
            let is_equal = |(live, plain): (Option<&Value>, Option<&Value>)| match (live, plain) {
                (Some(live), Some(plain)) => equal(live, plain),
                _ => false,
            };
            values.map(is_equal).collect()
        }
    };
    let modified = modified.into_iter().zip(as_before);
    let modified = modified.filter(|(path, as_before)| *as_before || is_restored(path));
    let mut restored: Vec<Path> = modified.map(|(path, _)| path).collect();
    if let Some(owners) = owners {
        // A declared zero value is not stored.
        let is_kept = |path: &Path| is_foreign(path) && !owners.is_own(path);
        restored.extend(topmost(&compared.removed).into_iter().filter(is_kept));
    }
    restored.sort();
    let values: Vec<Option<Value>> =
        find_all(live, &restored).into_iter().map(|value| value.cloned()).collect();
    // What is removed in one form and added in another one is restored: of two edits, the first counts.
    let mut edits: Vec<Edit> =
        restored.into_iter().zip(values).filter(|(_, value)| value.is_some()).collect();
    edits.extend(compared.added.paths().into_iter().filter(is_foreign).map(|path| (path, None)));
    let mut left = answer.clone();
    edit(&mut left, edits);
    left
}

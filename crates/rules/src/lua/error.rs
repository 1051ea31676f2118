//! What goes wrong with scripts.

use std::fmt;
use std::time::Duration;

use taffrail_object::yaml::YamlError;

/// What goes wrong with a script, or with what should be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LuaError {
    /// Which script: its path in the folder, or its key in `argocd-cm`.
    pub script: String,
    /// On which of its lines, from 1, where that is known.
    pub line: Option<u32>,
    /// What.
    pub problem: LuaProblem,
}

/// What.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LuaProblem {
    /// It is no Lua.
    #[error("{0}")]
    Syntax(String),
    /// A jump to somewhere else than the end of a loop's body.
    #[error("'goto {0}' can be used only to go on with the next round of a loop")]
    Goto(String),
    /// It failed, or raised an error itself: what it says.
    #[error("{0}")]
    Raised(String),
    /// It computed for longer than it may.
    #[error("it was stopped after {} ms", .0.as_millis())]
    Time(Duration),
    /// It made more than it may.
    #[error("it was stopped because its values took more than {} MB", .0 >> 20)]
    Memory(usize),
    /// It returned something else than it should.
    #[error("{0}")]
    Returned(String),
    /// There is no such action for the kind.
    #[error("there is no action '{0}'")]
    NoAction(String),
    /// A key of `argocd-cm` that means nothing.
    #[error("{0}")]
    Key(&'static str),
    /// No YAML, or of another shape.
    #[error("it is no YAML of this shape")]
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

//! Runs scripts in a pool of Luau VMs. A VM in which a script exceeded a limit is dropped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value as LuaValue, VmState};
use rustc_hash::FxHashMap;
use serde_json::Value as Tree;
use taffrail_object::json::Value;
use taffrail_status::assess::Costs;

use super::libraries::Clock;
use super::values::{self, Unfit};
use super::watch::Watch;
use super::{Budget, LuaError, LuaProblem, libraries, syntax};
use crate::script::CHILDREN;

/// The maximum length of a script, in bytes; a longer one is refused, because the compiler cannot be stopped.
const MAX_SCRIPT_BYTES: usize = 64 << 10;

/// The memory of a VM in use after a run, in bytes, from which it is garbage-collected, and dropped if it still uses as
/// much.
const MAX_LEFTOVER_BYTES: usize = 2 << 20;

/// The maximum number of idle VMs kept for reuse; further ones are dropped.
const MAX_IDLE_VMS: usize = 16;

/// The number of stack levels that are searched for a line of the script itself.
const MAX_SEARCHED_LEVELS: usize = 8;

/// The maximum length of an error message, in bytes; the rest is cut off.
const MAX_MESSAGE_BYTES: usize = 1 << 10;

/// The chunk name of scripts inside the VM; messages to people do not contain it.
const CHUNK_NAME: &str = "script";

/// A compiled script.
pub(super) struct Code {
    /// The path of the script in its folder, or its key in `argocd-cm`.
    pub(super) name: String,
    number: usize,
    bytes: Vec<u8>,
    /// True if the script may read the children of the object; they are not built for one that does not.
    pub(super) asks_children: bool,
}

/// The input of a script: the object, its children and the action's parameters.
#[derive(Clone, Copy)]
pub(super) struct ScriptInput<'g> {
    pub(super) object: Value<'g>,
    /// The objects whose owner reference names this object, if they are known.
    pub(super) children: Option<Value<'g>>,
    pub(super) parameters: &'g BTreeMap<String, String>,
    /// Receives the time from which the result may differ without a change of the object; `None` to record nothing.
    pub(super) costs: Option<&'g Costs>,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The return value of a script, the last one if it returns several.
#[derive(Debug)]
pub(super) enum Returned {
    Nothing,
    Table(Tree),
    /// Another type of value; holds Lua's name of the type.
    Other(&'static str),
}

impl Code {
    /// Compiles a script.
    ///
    /// # Errors
    /// If it is too long, or is not Lua.
    pub(super) fn read(name: &str, text: &str) -> Result<Code, LuaError> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);

        let fault = |line, problem| LuaError { script: name.to_owned(), line, problem };
        if text.len() > MAX_SCRIPT_BYTES {
            let problem = format!("the script is longer than {} KB", MAX_SCRIPT_BYTES >> 10);
            return Err(fault(None, LuaProblem::Syntax(problem)));
        }
        let asks_children = text.contains(CHILDREN);
        let text = syntax::to_luau(text).map_err(|jump| fault(jump.line(), jump.problem()))?;
        let bytes = Compiler::new().compile(text.as_bytes()).map_err(|error| {
            let message = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            let read = message.trim_start_matches(':').split_once(':');
            let (line, message) =
                match read.and_then(|(line, rest)| Some((line.parse().ok()?, rest.trim_start()))) {
                    Some((line, rest)) => (Some(line), rest),
                    None => (None, &*message),
                };
            fault(line, LuaProblem::Syntax(message.to_owned()))
        })?;
        Ok(Code {
            name: name.to_owned(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            bytes,
            asks_children,
        })
    }

    fn fault(&self, line: Option<u32>, problem: LuaProblem) -> LuaError {
        LuaError { script: self.name.clone(), line, problem }
    }
}

/// Splits a message of the VM such as `script:3: no power` into the line number, 3, and the rest; `None` and the whole
/// message if it does not begin with a line.
fn positioned(message: &str) -> (Option<u32>, &str) {
    let position = message.strip_prefix(CHUNK_NAME).and_then(|rest| {
        let rest = rest.strip_prefix(':')?;
        let (line, rest) = rest.split_once(':')?;
        Some((line.parse().ok()?, rest.trim_start()))
    });
    position.map_or((None, message), |(line, rest)| (Some(line), rest))
}

/// A pool of Luau VMs that runs scripts; idle VMs are reused.
#[derive(Default)]
pub(super) struct Machine {
    pub(super) budget: Budget,
    idle: Mutex<Vec<LuauVm>>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl Machine {
    /// Runs a script on an object.
    ///
    /// # Errors
    /// If it fails or exceeds its budget, if the object cannot be converted to a Lua table, or if a returned table
    /// cannot be converted to JSON.
    pub(super) fn run(
        &self,
        code: &Code,
        given: ScriptInput<'_>,
        now: Timestamp,
    ) -> Result<Returned, LuaError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut state = match idle {
            Some(state) => state,
            None => LuauVm::new(self.budget)
                .map_err(|error| code.fault(None, LuaProblem::Raised(error.to_string())))?,
        };
        let returned = state.run(code, given, now, self.budget);
        let is_spent = match &returned {
            Ok(_) => false,
            Err(error) => matches!(error.problem, LuaProblem::Time(_) | LuaProblem::Memory(_)),
        };
        if !is_spent && state.clean() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE_VMS {
                idle.push(state);
            }
        }
        returned
    }
}

/// A Luau VM, with the scripts that it has loaded.
struct LuauVm {
    lua: Lua,
    watch: Arc<Watch>,
    clock: Arc<Clock>,
    /// The line of the script just before it was stopped; 0 if it is unknown.
    place: Arc<AtomicU32>,
    /// The function that creates the globals of one run.
    names: Function,
    /// An empty table that is the VM's globals between runs, so that no run sees the globals of another.
    none: Table,
    loaded: FxHashMap<usize, Function>,
}

impl LuauVm {
    fn new(budget: Budget) -> mlua::Result<LuauVm> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let watch = Arc::new(Watch::new());
        let clock = Arc::new(Clock::default());
        let native = libraries::native(&lua, &clock)?;
        let prelude = lua.load(include_str!("prelude.luau")).set_name("=prelude").set_mode(ChunkMode::Text);
        let names = prelude.call(native)?;
        lua.sandbox(true)?;
        let asked = watch.clone();
        let place = Arc::new(AtomicU32::new(0));
        let seen = place.clone();
        lua.set_interrupt(move |lua| {
            let is_over = asked.is_over();
            // An error that stops a script does not contain the line.
            if is_over || lua.used_memory() > budget.memory / 2 {
                seen.store(line(lua), Ordering::Relaxed);
            }
            if is_over { Err(mlua::Error::runtime("stopped")) } else { Ok(VmState::Continue) }
        });
        let none = lua.create_table()?;
        Ok(LuauVm { lua, watch, clock, place, names, none, loaded: FxHashMap::default() })
    }

    fn run(
        &mut self,
        code: &Code,
        given: ScriptInput<'_>,
        now: Timestamp,
        budget: Budget,
    ) -> Result<Returned, LuaError> {
        self.clock.set(now);
        let unfit = |unfit: Unfit| match unfit {
            Unfit::Size => code.fault(None, LuaProblem::Memory(budget.memory)),
            Unfit::Shape(words) => code.fault(None, LuaProblem::Returned(words.to_owned())),
            Unfit::Machine(error) => fault(code, &error, budget),
        };
        let machine = |error: mlua::Error| fault(code, &error, budget);
        // Values handed over are measured on the way, which is cheaper than a memory limit that the VM checks at each
        // allocation.
        self.lua.set_memory_limit(0).map_err(machine)?;
        let function = self.function(code).map_err(machine)?;
        // An empty table does not tell if it was an object or a list. They are held until the end, so that no other
        // table is allocated at the address of one of them.
        let mut empty = Vec::new();
        let mut enter = |value| values::to_lua(&self.lua, value, budget.memory / 4, &mut empty);
        let object = enter(given.object).map_err(unfit)?;
        let children = given.children.map_or(Ok(LuaValue::Nil), enter).map_err(unfit)?;
        let parameters = given.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let parameters = self.lua.create_table_from(parameters).map_err(machine)?;
        let names: Table = self.names.call((object, children, parameters)).map_err(machine)?;
        function.set_environment(names).map_err(machine)?;

        self.lua.set_memory_limit(budget.memory).map_err(machine)?;
        self.place.store(0, Ordering::Relaxed);
        self.watch.start(budget.time);
        let returned = function.call::<MultiValue>(());
        if let Some((costs, next)) = given.costs.zip(self.clock.next()) {
            costs.changes_at(next);
        }
        let is_over = self.watch.is_over();
        self.watch.stop();
        self.lua.set_memory_limit(0).map_err(machine)?;
        function.set_environment(self.none.clone()).map_err(machine)?;
        let mut returned = match returned {
            Ok(returned) => returned,
            Err(error) => {
                let mut fault =
                    if is_over { code.fault(None, LuaProblem::Time(budget.time)) } else { machine(error) };
                let place = self.place.load(Ordering::Relaxed);
                fault.line = fault.line.or((place > 0).then_some(place));
                return Err(fault);
            }
        };
        match returned.pop_back() {
            None | Some(LuaValue::Nil) => Ok(Returned::Nothing),
            Some(table @ LuaValue::Table(_)) => {
                values::to_json(&table, budget.memory / 3, &empty).map(Returned::Table).map_err(unfit)
            }
            Some(other) => Ok(Returned::Other(match other {
                LuaValue::Integer(_) => "number",
                LuaValue::UserData(_) | LuaValue::LightUserData(_) => "userdata",
                other => other.type_name(),
            })),
        }
    }

    fn function(&mut self, code: &Code) -> mlua::Result<Function> {
        if let Some(function) = self.loaded.get(&code.number) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(&code.bytes).set_name(format!("={CHUNK_NAME}")).set_mode(ChunkMode::Binary);
        let function = chunk.into_function()?;
        self.loaded.insert(code.number, function.clone());
        Ok(function)
    }

    /// Collects garbage if the VM uses [`MAX_LEFTOVER_BYTES`] or more; returns true if it uses less then, so that it
    /// can be reused.
    fn clean(&self) -> bool {
        let used = |lua: &Lua| lua.used_memory();
        used(&self.lua) < MAX_LEFTOVER_BYTES
            || self.lua.gc_collect().is_ok() && used(&self.lua) < MAX_LEFTOVER_BYTES
    }
}

/// Returns the line of the script that the VM executes; 0 if it executes none.
fn line(lua: &Lua) -> u32 {
    let of_level = |level| {
        lua.inspect_stack(level, |debug| {
            let is_script = debug.source().short_src.as_deref() == Some(CHUNK_NAME);
            debug.current_line().filter(|_| is_script).and_then(|line| line.try_into().ok())
        })
    };
    (0..MAX_SEARCHED_LEVELS).map_while(of_level).flatten().next().unwrap_or_default()
}

/// Converts an error of the VM to an error of the script: `Memory` if the VM ran out of memory, else `Raised`.
fn fault(code: &Code, error: &mlua::Error, budget: Budget) -> LuaError {
    let (line, message) = told(error);
    let is_memory = {
        let mut error = error;
        while let mlua::Error::CallbackError { cause, .. } = error {
            error = cause;
        }
        matches!(error, mlua::Error::MemoryError(_))
    };
    let problem = match message {
        _ if is_memory => LuaProblem::Memory(budget.memory),
        message => LuaProblem::Raised(message),
    };
    code.fault(line, problem)
}

/// Extracts the line of the script, `None` if it is unknown, and the message from an error of the VM.
fn told(error: &mlua::Error) -> (Option<u32>, String) {
    use mlua::Error::{CallbackError, MemoryError, RuntimeError};

    let (mut text, mut error) = (String::new(), error);
    while let CallbackError { cause, traceback } = error {
        text.push_str(traceback);
        error = cause;
    }
    let words = match error {
        RuntimeError(text) | MemoryError(text) => text.clone(),
        other => other.to_string(),
    };
    let (message, trace) = words.split_once("\nstack traceback:\n").unwrap_or((&words, &text));
    let of_trace = || trace.lines().find_map(|line| positioned(line.trim_start()).0);
    let (line, message) = positioned(message);
    // The script called a function of ours with an invalid argument: the line in our prelude means nothing to its
    // author.
    let ours = message.strip_prefix("prelude:").and_then(|rest| Some(rest.split_once(':')?.1.trim_start()));
    let message = ours.unwrap_or(message).trim_end();
    // The address of a value is meaningless, and differs each time.
    let value =
        ["table: 0x", "function: 0x", "userdata: 0x"].iter().find(|start| message.starts_with(**start));
    let message = match value {
        Some(value) => format!("the script raised a {} as its error", value.trim_end_matches(": 0x")),
        None => message.get(..message.floor_char_boundary(MAX_MESSAGE_BYTES)).unwrap_or(message).to_owned(),
    };
    (line.or_else(of_trace), message)
}

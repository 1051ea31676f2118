//! Converts objects to Lua tables and tables to JSON, both as Argo CD's Go does.

use mlua::{Lua, Table, Value as LuaValue};
use rustc_hash::FxHashSet;
use serde_json::{Map, Number, Value as Tree};
use taffrail_object::json::{Kind, Value};

/// The maximum nesting of a converted value; converting a deeper one fails.
const MAX_DEPTH: usize = 100;

/// The cost of a value besides its text, in bytes: about its size in either form.
const VALUE_OVERHEAD_BYTES: usize = 64;

/// The reasons a value cannot be converted.
#[derive(Debug)]
pub(super) enum Unfit {
    /// The value takes more bytes than the caller allows.
    Size,
    /// The value has a structure that cannot be converted; holds the reason, for people.
    Shape(&'static str),
    Machine(mlua::Error),
}

impl From<mlua::Error> for Unfit {
    fn from(error: mlua::Error) -> Unfit {
        Unfit::Machine(error)
    }
}

/// The remaining size that may be converted, in bytes.
struct Room(usize);

impl Room {
    fn take(&mut self, size: usize) -> Result<(), Unfit> {
        self.0 = self.0.checked_sub(size.saturating_add(VALUE_OVERHEAD_BYTES)).ok_or(Unfit::Size)?;
        Ok(())
    }
}

/// Converts JSON to a Lua value. `null` becomes nil, so tables and lists do not contain it. Fails if the value takes
/// more than `size` bytes or nests deeper than [`MAX_DEPTH`]. Adds the tables made of empty objects to `empty`.
pub(super) fn to_lua(
    lua: &Lua,
    value: Value<'_>,
    size: usize,
    empty: &mut Vec<Table>,
) -> Result<LuaValue, Unfit> {
    Reader { lua, room: Room(size), empty }.enter(value, 0)
}

/// A reader that makes Lua values of a JSON value, within a limit of bytes.
struct Reader<'a> {
    lua: &'a Lua,
    room: Room,
    empty: &'a mut Vec<Table>,
}

impl Reader<'_> {
    fn enter(&mut self, value: Value<'_>, depth: usize) -> Result<LuaValue, Unfit> {
        if depth > MAX_DEPTH {
            return Err(Unfit::Shape("the object nests deeper than 100 levels"));
        }
        Ok(match value.kind() {
            Kind::Null => LuaValue::Nil,
            Kind::Bool => LuaValue::Boolean(value.as_bool().unwrap_or_default()),
            Kind::Integer | Kind::Float => LuaValue::Number(value.as_f64().unwrap_or_default()),
            Kind::String => self.text(&value.as_str().unwrap_or_default())?,
            Kind::Array => {
                let mut items = Vec::new();
                for item in value.items().into_iter().flatten().filter(|item| !item.is_null()) {
                    self.room.take(0)?;
                    items.push(self.enter(item, depth + 1)?);
                }
                self.room.take(0)?;
                LuaValue::Table(self.lua.create_sequence_from(items)?)
            }
            Kind::Object => {
                let mut members = Vec::new();
                for (key, member) in value.members().into_iter().flatten() {
                    members.push((self.text(&key)?, self.enter(member, depth + 1)?));
                }
                self.room.take(0)?;
                let is_empty = members.is_empty();
                let table = self.lua.create_table_from(members)?;
                if is_empty {
                    self.empty.push(table.clone());
                }
                LuaValue::Table(table)
            }
        })
    }

    fn text(&mut self, text: &str) -> Result<LuaValue, Unfit> {
        self.room.take(text.len())?;
        Ok(LuaValue::String(self.lua.create_string(text)?))
    }
}

/// Converts a Lua value to JSON. An empty table becomes an empty list, unless it is inside the value and one of
/// `empty`. Fails if the value takes more than `size` bytes, nests deeper than [`MAX_DEPTH`], contains a table twice, a
/// function, userdata, NaN or infinity, or has keys that are neither all texts nor the numbers from 1 on.
pub(super) fn to_json(value: &LuaValue, size: usize, empty: &[Table]) -> Result<Tree, Unfit> {
    let empty = empty.iter().map(|table| table.to_pointer() as usize).collect();
    Writer { room: Room(size), seen: FxHashSet::default(), empty }.leave(value, 0)
}

/// A writer that makes a JSON tree of a Lua value, within a limit of bytes.
struct Writer {
    room: Room,
    seen: FxHashSet<usize>,
    empty: FxHashSet<usize>,
}

impl Writer {
    fn leave(&mut self, value: &LuaValue, depth: usize) -> Result<Tree, Unfit> {
        self.room.take(0)?;
        Ok(match value {
            LuaValue::Nil => Tree::Null,
            LuaValue::Boolean(truth) => Tree::Bool(*truth),
            LuaValue::Integer(number) => Tree::from(*number),
            LuaValue::Number(value) => number(*value)?,
            LuaValue::String(text) => Tree::String(self.text(text)?),
            LuaValue::Table(table) => self.table(table, depth)?,
            LuaValue::Function(_) => return Err(Unfit::Shape("cannot encode function to JSON")),
            _ => return Err(Unfit::Shape("cannot encode userdata to JSON")),
        })
    }

    fn text(&mut self, text: &mlua::LuaString) -> Result<String, Unfit> {
        let bytes = text.as_bytes();
        self.room.take(bytes.len())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<Tree, Unfit> {
        if depth > MAX_DEPTH || !self.seen.insert(table.to_pointer() as usize) {
            return Err(Unfit::Shape("cannot encode recursively nested tables to JSON"));
        }
        let length = table.raw_len();
        let (mut list, mut map) = (Vec::new(), Map::new());
        for at in 1..=length {
            list.push(self.leave(&table.raw_get(at)?, depth + 1)?);
        }
        for pair in table.pairs::<LuaValue, LuaValue>() {
            match pair? {
                (LuaValue::String(key), value) if length == 0 => {
                    let key = self.text(&key)?;
                    map.insert(key, self.leave(&value, depth + 1)?);
                }
                (LuaValue::Integer(at), _)
                    if usize::try_from(at).is_ok_and(|at| (1..=length).contains(&at)) => {}
                (LuaValue::Number(at), _) if at.fract() == 0.0 && at >= 1.0 && at <= length as f64 => {}
                (LuaValue::Integer(_) | LuaValue::Number(_), _) if map.is_empty() => {
                    return Err(Unfit::Shape("cannot encode sparse array"));
                }
                _ => return Err(Unfit::Shape("cannot encode mixed or invalid key types")),
            }
        }
        let is_list = map.is_empty() && !(length == 0 && depth > 0 && self.is_empty_object(table));
        Ok(if is_list { Tree::Array(list) } else { Tree::Object(map) })
    }

    fn is_empty_object(&self, table: &Table) -> bool {
        self.empty.contains(&(table.to_pointer() as usize))
    }
}

/// Converts a number to JSON, a whole one without a point; returns an error for an infinite number and for NaN.
fn number(value: f64) -> Result<Tree, Unfit> {
    const MAX_WHOLE: f64 = 9_223_372_036_854_775_808.0;
    if value.fract() == 0.0 && (-MAX_WHOLE..MAX_WHOLE).contains(&value) {
        return Ok(Tree::from(value as i64));
    }
    Number::from_f64(value).map(Tree::Number).ok_or(Unfit::Shape("cannot encode NaN or infinity to JSON"))
}

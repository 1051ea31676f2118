//! Functions for scripts: a clock that stands still, and replacements for the functions that Luau formats or searches
//! otherwise than Argo CD's Lua.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use mlua::chunk::ChunkMode;
use mlua::{Lua, LuaString, MultiValue, Table, Value as LuaValue};

use super::syntax;

/// The maximum length of a text that `loadstring` compiles, in bytes; for a longer one it returns nil and the reason.
/// The compiler cannot be stopped.
const MAX_LOADED_BYTES: usize = 64 << 10;

/// The maximum length of a format given to `os.date`, in bytes; a longer one is an error of the script.
const MAX_DATE_FORMAT_BYTES: usize = 4 << 10;

/// The clock of scripts: it stands still at a time in seconds since the epoch, and records if a run reads it.
#[derive(Debug, Default)]
pub(super) struct Clock {
    seconds: AtomicI64,
    was_read: AtomicBool,
}

impl Clock {
    pub(super) fn set(&self, now: Timestamp) {
        self.seconds.store(now.as_second(), Ordering::Relaxed);
        self.was_read.store(false, Ordering::Relaxed);
    }

    fn read(&self) -> i64 {
        self.was_read.store(true, Ordering::Relaxed);
        self.seconds.load(Ordering::Relaxed)
    }

    /// Returns the second after the clock's time if the run read the clock, as a run at that time may have another
    /// result; else `None`.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let next = self.seconds.load(Ordering::Relaxed).saturating_add(1);
        Timestamp::from_second(next).ok().filter(|_| self.was_read.load(Ordering::Relaxed))
    }
}

/// Returns a Lua table with the functions that the prelude builds upon; its time is that of `clock`.
pub(super) fn native(lua: &Lua, clock: &Arc<Clock>) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    native.set("os", os(lua, clock)?)?;
    native.set("number", lua.create_function(|_, value: f64| Ok(written(value)))?)?;
    native.set("find", lua.create_function(find)?)?;
    native.set("compile", lua.create_function(compile)?)?;
    Ok(native)
}

fn os(lua: &Lua, clock: &Arc<Clock>) -> mlua::Result<Table> {
    let os = lua.create_table()?;
    let now = clock.clone();
    let time = move |_: &Lua, of: Option<Table>| {
        let Some(of) = of else { return Ok(now.read()) };
        let field = |name: &str, default: i64| {
            Ok::<_, mlua::Error>(match of.raw_get::<LuaValue>(name)? {
                LuaValue::Integer(value) => value,
                LuaValue::Number(value) => value as i64,
                _ => default,
            })
        };
        let (year, month, day) = (field("year", -1)?, field("month", -1)?, field("day", -1)?);
        let (hour, minute, second) = (field("hour", 12)?, field("min", 0)?, field("sec", 0)?);
        let time = seconds([year, month, day, hour, minute, second]);
        time.ok_or_else(|| mlua::Error::runtime("the date given to os.time is out of range"))
    };
    os.set("time", lua.create_function(time)?)?;
    let now = clock.clone();
    let date = move |lua: &Lua, (form, at): (Option<String>, Option<f64>)| {
        let form = form.unwrap_or_else(|| "%c".to_owned());
        if form.len() > MAX_DATE_FORMAT_BYTES {
            return Err(mlua::Error::runtime("the format given to os.date is longer than 4 KiB"));
        }
        let at = at.map_or_else(|| now.read(), |at| at as i64);
        let at = Timestamp::from_second(at)
            .map_err(|_| mlua::Error::runtime("the time given to os.date is out of range"))?;
        let at = TimeZone::UTC.to_datetime(at);
        let form = form.trim_start_matches('!');
        if form.starts_with("*t") {
            return Ok(LuaValue::Table(parts(lua, at)?));
        }
        Ok(LuaValue::String(lua.create_string(date(at, form))?))
    };
    os.set("date", lua.create_function(date)?)?;
    Ok(os)
}

fn parts(lua: &Lua, at: DateTime) -> mlua::Result<Table> {
    let parts = lua.create_table()?;
    parts.set("year", at.year())?;
    parts.set("month", at.month())?;
    parts.set("day", at.day())?;
    parts.set("hour", at.hour())?;
    parts.set("min", at.minute())?;
    parts.set("sec", at.second())?;
    parts.set("wday", at.weekday().to_sunday_one_offset())?;
    parts.set("yday", 0)?;
    parts.set("isdst", false)?;
    Ok(parts)
}

/// Returns the time in seconds since the epoch for a year, month, day, hour, minute and second in UTC. Months and
/// smaller parts may exceed their ranges. Returns `None` if the time is out of range.
fn seconds([year, month, day, hour, minute, second]: [i64; 6]) -> Option<i64> {
    let month = month.checked_sub(1)?;
    let year = i16::try_from(year.checked_add(month.div_euclid(12))?).ok()?;
    let month = i8::try_from(month.rem_euclid(12) + 1).ok()?;
    let first = DateTime::new(year, month, 1, 0, 0, 0, 0).ok()?;
    let first = TimeZone::UTC.to_timestamp(first).ok()?.as_second();
    let days = day.checked_sub(1)?.checked_mul(86_400)?;
    let rest = hour.checked_mul(3600)?.checked_add(minute.checked_mul(60)?)?.checked_add(second)?;
    first.checked_add(days)?.checked_add(rest)
}

/// Formats a time as `os.date` of Argo CD does, which is not always as in C.
fn date(at: DateTime, form: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

    let (year, month, day) = (at.year(), at.month(), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    let weekday = at.weekday().to_sunday_zero_offset();
    let name = |names: &[&'static str], at: i8| {
        usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or_default()
    };
    let short = |name: &'static str| name.get(..3).unwrap_or(name);
    let (month_name, short_year) = (name(&MONTHS, month - 1), year.rem_euclid(100));
    let mut out = String::new();
    let mut rest = form.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        match rest.next() {
            None | Some('%') => out.push('%'),
            Some('a') => out.push_str("mon"),
            Some('A') => out.push_str(name(&DAYS, weekday)),
            Some('b') => out.push_str(short(month_name)),
            Some('B') => out.push_str(month_name),
            Some('c') => {
                let month = short(month_name);
                out.push_str(&format!("{day:02} {month} {short_year:02} {hour:02}:{minute:02} UTC"));
            }
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('F') => out.push_str(&format!("{year:04}-{month:02}-{day:02}")),
            Some('H') => out.push_str(&format!("{hour:02}")),
            Some('I') => out.push_str(&format!("{:02}", (hour + 11) % 12 + 1)),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('M') => out.push_str(&format!("{minute:02}")),
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('P') => out.push_str(if hour < 12 { "am" } else { "pm" }),
            Some('S') => out.push_str(&format!("{second:02}")),
            Some('x') => out.push_str(&format!("{hour:02}/{minute:02}/{second:02}")),
            Some('X') => out.push_str(&format!("{hour:02}:{minute:02}:{second:02}")),
            Some('y') => out.push_str(&format!("{short_year:02}")),
            Some('Y') => out.push_str(&format!("{year:04}")),
            Some('z') => out.push_str("+0000"),
            Some('Z') => out.push_str("UTC"),
            Some('w') => out.push_str(&weekday.to_string()),
            Some(other) => out.extend(['%', other]),
        }
    }
    out
}

/// Formats a number as Argo CD's Lua does: whole numbers without a point, others with an exponent from a million on and
/// below a ten-thousandth.
fn written(value: f64) -> String {
    const MAX_WHOLE: f64 = 9_223_372_036_854_775_808.0;
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value.fract() == 0.0 && (-MAX_WHOLE..MAX_WHOLE).contains(&value) {
        return (value as i64).to_string();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Finds `wanted` in `text` from position `first` (from 1, negative from the end), in linear time; returns the
/// positions of its first and last byte, or nil.
fn find(_: &Lua, (text, wanted, first): (LuaString, LuaString, Option<f64>)) -> mlua::Result<MultiValue> {
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    let length = text.len() as f64;
    let first = first.unwrap_or(1.0);
    let first = if first < 0.0 { (length + first + 1.0).max(1.0) } else { first.max(1.0) };
    let start = first as usize - 1;
    let found = text.get(start..).and_then(|rest| memchr::memmem::find(rest, &wanted));
    Ok(match found {
        Some(at) => {
            let at = start + at;
            MultiValue::from_iter([at + 1, at + wanted.len()].map(|at| LuaValue::Number(at as f64)))
        }
        None => MultiValue::from_iter([LuaValue::Nil]),
    })
}

/// Compiles a text as `loadstring` does: returns a function, or nil and the reason.
fn compile(
    lua: &Lua,
    (names, text, name): (Table, LuaValue, Option<String>),
) -> mlua::Result<(Option<mlua::Function>, Option<String>)> {
    let LuaValue::String(text) = text else {
        return Ok((None, Some("loadstring was given no text".to_owned())));
    };
    if text.as_bytes().len() > MAX_LOADED_BYTES {
        return Ok((None, Some("the text given to loadstring is longer than 64 KiB".to_owned())));
    }
    let Ok(text) = text.to_str().map(|text| text.to_owned()) else {
        return Ok((None, Some("the text given to loadstring is not UTF-8".to_owned())));
    };
    let text = match syntax::to_luau(&text) {
        Ok(text) => text.into_owned(),
        Err(jump) => return Ok((None, Some(jump.problem().to_string()))),
    };
    let name = name.unwrap_or_else(|| "=(loaded)".to_owned());
    let chunk = lua.load(text).set_name(name).set_mode(ChunkMode::Text).set_environment(names);
    Ok(match chunk.into_function() {
        Ok(function) => (Some(function), None),
        Err(error) => (None, Some(error.to_string())),
    })
}

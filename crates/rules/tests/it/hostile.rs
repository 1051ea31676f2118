//! Scripts that try to hang the process or to exhaust its memory. Each runs in a process of its own, so a hang is a
//! failed test.

use std::env;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use taffrail_object::Object;
use taffrail_rules::cel::{Names, Program, REQUIRED_STACK};
use taffrail_rules::lua::Customizations;
use taffrail_rules::{Origin, Script};
use taffrail_status::{ObjectContext, Status};

/// The scripts: a name, the text, and a part of the expected message, empty if the script may succeed.
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("endless loop", "while true do end", "stopped after"),
    ("endless repeat", "repeat until false", "stopped after"),
    ("endless recursion", "local function f() return 1 + f() end return f()", "stack overflow"),
    ("endless tail calls", "local function f() return f() end return f()", ""),
    ("a gigabyte", "return {status = ('x'):rep(2^30)}", "more than"),
    ("half of it doubled", "local s = 'x' while true do s = s .. s end", "stopped"),
    ("texts in a list", "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end", ""),
    ("numbers in a list", "local t = {} for i = 1, 1e9 do t[i] = i end", ""),
    ("names in a map", "local t = {} for i = 1, 1e9 do t['a' .. i] = true end", ""),
    ("tables in tables", "local t = {} while true do t = {t, t, {}} end", ""),
    ("nothing repeated", "return {status = (''):rep(2^31 - 1)}", ""),
    ("repeated in repeated", "local s = 'x' for i = 1, 1e9 do s = ('ab'):rep(1000):rep(1000):rep(i) end", ""),
    ("pattern in find", "return {status = tostring(('a'):rep(5e4):find(('a*'):rep(30) .. 'b'))}", ""),
    ("pattern in match", "return {status = tostring(('a'):rep(5e4):match(('a*'):rep(30) .. 'b'))}", ""),
    ("pattern in gmatch", "for x in ('a'):rep(5e4):gmatch(('a*'):rep(30) .. 'b') do end", ""),
    ("pattern in gsub", "return {status = ('a'):rep(5e4):gsub(('a-'):rep(30) .. 'b', '')}", ""),
    ("long set", "return {status = ('a'):rep(4e6):match('[' .. ('b'):rep(4e6) .. ']*')}", "too long"),
    ("plain search", "return {status = tostring(('a'):rep(1e7):find(('a'):rep(4e6) .. 'b', 1, true))}", ""),
    ("long walk", "return {status = ('a'):rep(1.5e7):match('.*.*.*b')}", ""),
    ("balanced", "return {status = ('('):rep(1e6):match('%b()')}", ""),
    ("back reference", "return {status = ('a'):rep(3000):match('(.-)(.-)(.-)(.-)%1%2%3%4b')}", ""),
    ("frontier", "local s = ('a '):rep(1e6) while true do s:gsub('%f[%w]%w+', '%0') end", ""),
    ("pcall around loop", "while true do pcall(function() while true do end end) end", "stopped after"),
    (
        "xpcall around loop",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "stopped after",
    ),
    (
        "pcall around memory",
        "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(1e6) end) end",
        "",
    ),
    ("pcall in pcall", "local function f() pcall(f) pcall(f) end while true do f() end", ""),
    ("errors in handlers", "local function h() error(h) end while true do xpcall(error, h) end", ""),
    ("error with a table", "error(setmetatable({}, {__tostring = function() while true do end end}))", ""),
    ("error with a function", "error(function() end)", ""),
    ("error with nothing", "error()", ""),
    ("long error", "error(('x'):rep(1e7))", ""),
    ("index of index", "local t = {} setmetatable(t, {__index = t}) return t.x", ""),
    (
        "functions of index",
        "local t = setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}) return t.a",
        "",
    ),
    (
        "comparison",
        "local m = {} m.__lt = function(a, b) return b < a end local a, b = setmetatable({}, m), setmetatable({}, m) return a < b",
        "",
    ),
    (
        "collected",
        "while true do setmetatable({}, {__gc = function() while true do end end, __mode = 'k'}) end",
        "stopped after",
    ),
    ("methods of texts", "getmetatable('').__index = function() while true do end end return ('x').y", ""),
    ("metatable of texts", "setmetatable('', {__index = {}})", "invalid argument"),
    (
        "sorted by nobody",
        "local t = {} for i = 1, 3e5 do t[i] = i end table.sort(t, function() return true end)",
        "",
    ),
    ("long sorted", "local t = {} for i = 1, 1e6 do t[i] = -i end table.sort(t)", ""),
    ("inserted first", "local t = {} for i = 1, 1e9 do table.insert(t, 1, i) end", ""),
    (
        "joined",
        "local t = {} for i = 1, 1e5 do t[i] = ('x'):rep(100) end while true do table.concat(t, ('y'):rep(100)) end",
        "",
    ),
    ("unpacked", "return {status = select('#', unpack({}, 1, 1e8))}", ""),
    ("wide format", "return {status = string.format('%1000000000d', 1)}", ""),
    ("precise format", "return {status = string.format('%.1000000000f', 1)}", ""),
    ("long format", "return {status = string.format(('%s'):rep(1e5), ('x'):rep(1e5))}", ""),
    ("format of formats", "local s = '%s' while true do s = string.format('%s%s', s, s) end", ""),
    ("bytes as code", "return loadstring('\\27Lua\\0\\0\\0')()", "attempt to call"),
    ("bytecode as code", "return loadstring('\\6\\3\\1\\0\\0\\0')()", "attempt to call"),
    ("code of code", "local s = 'return 1' while true do s = s .. ' + 1' loadstring(s) end", ""),
    (
        "deep code",
        "return loadstring('return ' .. ('('):rep(3e4) .. '1' .. (')'):rep(3e4))()",
        "attempt to call",
    ),
    (
        "deep tables in code",
        "return loadstring('return ' .. ('{'):rep(3e4) .. ('}'):rep(3e4))()",
        "attempt to call",
    ),
    (
        "deep functions in code",
        "return loadstring(('return function() '):rep(3000) .. ('end '):rep(3000))()",
        "",
    ),
    ("endless load", "return load(function() return ' ' end)", ""),
    ("wide result", "local t = {} for i = 1, 1e6 do t[i] = i end return t", ""),
    ("deep result", "local t = {} for i = 1, 1e5 do t = {t} end return t", ""),
    ("result in itself", "local t = {} t.t = t return t", "recursively"),
    ("result many times", "local t = {} for i = 1, 30 do t = {t, t} end return t", "recursively"),
    ("long result", "return {status = ('x'):rep(2e7)}", ""),
    (
        "names of the outside",
        "return {status = tostring(io) .. tostring(os.execute) .. tostring(getfenv) .. tostring(newproxy)}",
        "",
    ),
    (
        "a long time",
        "return {status = tostring(os.time({year = 1e300, month = -1e300, day = 0/0})) .. os.date('%Y', 1/0)}",
        "",
    ),
    ("long date", "return {status = os.date(('%c'):rep(1e6))}", ""),
    (
        "next without end",
        "local t = {} for i = 1, 1e5 do t[i] = i end while true do next(t, 5e4) end",
        "stopped after",
    ),
];

/// The expressions: a name and the text, in which `NESTED` stands for a 1 in three hundred brackets.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("nested", "NESTED == 1"),
    ("all of all", "object.list.all(a, object.list.all(b, a.number + b.number >= 0))"),
    ("all of all of all", "object.list.all(a, object.list.all(b, object.list.all(c, true)))"),
    ("none of none", "!object.list.exists(a, object.list.exists(b, a.number + b.number < 0))"),
    ("one of all", "object.list.exists_one(a, object.list.all(b, a.number <= b.number))"),
    ("map of map", "object.list.map(a, object.list.map(b, b)).size() > 0"),
    (
        "filter of filter",
        "object.list.filter(a, object.list.filter(b, b.number > a.number).size() > 0).size() > 0",
    ),
    ("errors", "object.list.all(a, object.list.all(b, a.none == b.none))"),
    ("long texts", "object.list.map(a, object.text + object.text).size() > 0"),
    (
        "doubled",
        "[object.text].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() > 0",
    ),
    ("large lists", "object.list.map(a, object.list + object.list).size() > 0"),
    (
        "made of nothing",
        "[1,1,1,1,1,1,1,1].map(a, [a,a,a,a,a,a,a,a].map(b, [b,b,b,b,b,b,b,b].map(c, [c,c,c,c,c,c,c,c].map(d, [d,d,d,d,d,d,d,d].map(e, [e,e,e,e,e,e,e,e].map(f, [f,f,f,f])))))).size() > 0",
    ),
    ("found in texts", "object.list.all(a, object.text.contains('b') == false)"),
    ("found in no time", "object.list.all(a, object.text.contains('aaaaaaab') == false)"),
    ("counted in texts", "object.list.all(a, object.text.size() > 0)"),
    ("begins with itself", "object.list.all(a, object.text.startsWith(object.text))"),
    ("less than itself", "object.list.all(a, object.text <= object.text)"),
    ("key of nothing", "object.list.all(a, !(object.text in {'a': 1}))"),
    ("index of nothing", "object.list.exists(a, {'a': true}[object.text])"),
    ("doubled and dropped", "object.list.map(a, object.text + object.text).size() > 0"),
    (
        "a pattern in a long text",
        "object.list[0].text.matches('b') || object.text.matches('(x+x+)+y|(a|aa)+$b')",
    ),
    ("read as a number", "object.list.exists(a, int(object.text) > 0 || double(object.text) > 0.0)"),
    ("read as a time", "object.list.exists(a, timestamp(object.text) > timestamp('2020-01-01T00:00:00Z'))"),
    ("compared", "object.list.all(a, object == object)"),
    ("large pattern", "object.text.matches('((((a{100}){100}){100}){100})')"),
    ("patterns", "object.list.all(a, object.text.matches('(a*)*b' + string(a.number)))"),
    ("a pattern for each", "object.list.all(a, a.text.matches('^(x|y)*z$'))"),
    ("texts of numbers", "object.list.map(a, string(a.number) + a.text).size() > 0"),
];

/// Long scripts that are expensive to compile: a beginning, a part that is repeated until the script is long, and an
/// end.
const LONG: &[(&str, &str, &str, &str)] = &[
    ("jumps out of blocks", "do ", "do goto x ", "::x::"),
    ("blocks in blocks", "", "do ", ""),
    ("jumps and labels", "", "while a do goto x ::x:: end ", ""),
    ("jumps over labels", "while a do goto x end ", "::x:: ", ""),
    ("jumps over arms", "", "while a do goto x ::x:: else ", ""),
    ("texts put together", "local a = 'TEXT' goto x ", "b = a .. a ", ""),
    ("texts of texts", "local a = 'TEXT' ", "b = `{a}{a}{a}` ", ""),
    ("functions", "", "local function f() return f end ", ""),
    ("functions in functions", "", "x = function() return y, ", ""),
    ("calls of calls", "x = f", "()", ""),
    ("methods of methods", "x = f", ":a()", ""),
    ("fields of fields", "x = f", ".a", ""),
    ("brackets", "x = ", "(", ""),
    ("tables", "x = {", "{},", "}"),
    ("tables in tables", "x = ", "{", ""),
    ("arms", "if a then ", "elseif a then ", "end"),
    ("a long sum", "x = 1", "+1", ""),
    ("a long text", "x = a", "..a", ""),
    ("a long condition", "x = a", " and a or a", ""),
    ("powers", "x = 2", "^2", ""),
    ("not", "x = ", "not ", "1"),
    ("types", "local x: ", "(a|", ""),
    ("types of types", "type a = ", "a<", ""),
    ("conditions in conditions", "x = ", "if a then ", ""),
    ("errors", "", "= ", ""),
    ("names", "local ", "a,", "a = 1"),
    ("loops", "", "for a = 1, 2 do end ", ""),
    ("unrolled loops", "", "for a = 1, 9 do b(a) end ", ""),
    ("assignments", "", "a, b, c, d = d, c, b, a ", ""),
    ("lines", "x = 1", "\n", "x = = 1"),
];

const NAME: &str = "TAFFRAIL_HOSTILE_SCRIPT";

/// Maximum CPU time that a script or an expression of this test may take, in milliseconds. The interpreter stops a
/// script after 50 ms; on a busy machine a thread's CPU time also counts what others push out of the caches.
const MAX_MILLISECONDS: u64 = 1000;

/// Maximum memory that a script of this test may take, in MiB.
const MAX_MEGABYTES: u64 = 64;

/// Runs one script, in a process of its own.
#[test]
fn one_script() {
    let Ok(name) = env::var(NAME) else { return };
    let (_, script, said) = SCRIPTS.iter().find(|(it, ..)| *it == name).unwrap();
    let scripts = Customizations::of_folder(
        Origin::User,
        [
            ("example.com/Hostile/health.lua", *script),
            ("example.com/Honest/health.lua", "return {status = 'Healthy', message = tostring(left)}"),
        ],
    );
    let judge = |kind: &str| {
        let object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}});
        let object = Object::new((&object).into()).unwrap();
        scripts.judge(&object, &ObjectContext::default(), Timestamp::UNIX_EPOCH)
    };
    let (before, began) = (memory("VmRSS:"), computed());
    // The peak is measured from here on.
    if std::fs::write("/proc/self/clear_refs", "5").is_err() {
        println!("skipped: the peak of memory, because the system does not count it anew");
    }
    let verdict = judge("Hostile");
    let (time, peak) = (computed() - began, memory("VmHWM:").saturating_sub(before));
    println!(
        "{name}: {} ms, {} KB: {:.150?}",
        time.as_millis(),
        peak,
        verdict.as_ref().map(|it| &it.message)
    );
    if !said.is_empty() {
        let verdict = verdict.unwrap();
        assert_eq!(verdict.status, Status::Unknown);
        assert!(verdict.message.starts_with("example.com/Hostile/health.lua"), "{}", verdict.message);
        assert!(verdict.message.contains(said), "{}", verdict.message);
    }
    for _ in 0..2 {
        let honest = judge("Honest").unwrap();
        assert_eq!((honest.status, &*honest.message), (Status::Current, "nil"));
    }
    assert!(time < Duration::from_millis(MAX_MILLISECONDS), "it took {} ms", time.as_millis());
    assert!(peak < MAX_MEGABYTES << 10, "it took {peak} KB");
}

/// Compiles one script, in a process of its own.
#[test]
fn one_reading() {
    /// The length of the longer script of each pair, in bytes; the other one has a quarter of it. The limit is between
    /// them.
    const LENGTH: usize = 250 << 10;

    let Ok(name) = env::var(NAME) else { return };
    let (_, begin, middle, end) = LONG.iter().find(|(it, ..)| *it == name).unwrap();
    let begin = begin.replace("TEXT", &"x".repeat(4000));
    let times = (LENGTH - begin.len() - end.len()) / middle.len();
    // One longer than the limit, and one just below it.
    for share in [1, 4] {
        let script = format!("{begin}{}{end}", middle.repeat(times / share));
        let (before, began) = (memory("VmRSS:"), computed());
        if std::fs::write("/proc/self/clear_refs", "5").is_err() {
            println!("skipped: the peak of memory, because the system does not count it anew");
        }
        let scripts = Customizations::of_folder(Origin::User, [("example.com/Hostile/health.lua", &*script)]);
        let object = json!({"apiVersion": "example.com/v1", "kind": "Hostile", "metadata": {"name": "a"}});
        let object = Object::new((&object).into()).unwrap();
        let verdict = scripts.judge(&object, &ObjectContext::default(), Timestamp::UNIX_EPOCH);
        let (time, peak) = (computed() - began, memory("VmHWM:").saturating_sub(before));
        let said = verdict.map(|it| it.message).unwrap_or_default();
        println!("{name}, {} KB: {} ms, {peak} KB: {said:.100}", script.len() >> 10, time.as_millis());
        assert!(time < Duration::from_millis(2 * MAX_MILLISECONDS), "it took {} ms", time.as_millis());
        assert!(peak < MAX_MEGABYTES << 10, "it took {peak} KB");
    }
}

/// Parses and evaluates one expression, in a process of its own, on a thread with the deep stack that callers must
/// provide.
#[test]
fn one_expression() {
    let Ok(name) = env::var(NAME) else { return };
    let (_, text) = EXPRESSIONS.iter().find(|(it, _)| *it == name).unwrap();
    let text = text.replace("NESTED", &format!("{}1{}", "(".repeat(300), ")".repeat(300)));
    let items: Vec<_> = (0..2000).map(|number| json!({"number": number, "text": "x".repeat(200)})).collect();
    let object = json!({"list": items, "text": "a".repeat(500_000)});
    let before = memory("VmRSS:");
    if std::fs::write("/proc/self/clear_refs", "5").is_err() {
        println!("skipped: the peak of memory, because the system does not count it anew");
    }
    let work = move || {
        let began = computed();
        let answer = Program::read(&text, Names::Object).map(|it| it.evaluate(&[("object", &object)]));
        (computed() - began, format!("{answer:?}"))
    };
    let (time, answer) =
        thread::Builder::new().stack_size(REQUIRED_STACK).spawn(work).unwrap().join().unwrap();
    let peak = memory("VmHWM:").saturating_sub(before);
    println!("{name}: {} ms, {peak} KB: {answer:.150}", time.as_millis());
    assert!(time < Duration::from_millis(MAX_MILLISECONDS), "it took {} ms", time.as_millis());
    assert!(peak < MAX_MEGABYTES << 10, "it took {peak} KB");
}

/// Returns the line `name` of this process' `/proc/self/status`, in KB; 0 if it is missing.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Returns the CPU time of this thread.
fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[test]
fn hostile_scripts_stay_within_time_and_memory() {
    all_end("hostile::one_script", SCRIPTS.iter().map(|(name, ..)| *name));
}

#[test]
fn long_scripts_compile_within_time_and_memory() {
    all_end("hostile::one_reading", LONG.iter().map(|(name, ..)| *name));
}

#[test]
fn hostile_expressions_stay_within_time_and_memory() {
    all_end("hostile::one_expression", EXPRESSIONS.iter().map(|(name, _)| *name));
}

/// Runs the test `test` once for each name, each in a process of its own, and checks that all end within the limits.
#[expect(clippy::print_stdout, reason = "what each took is worth seeing, and what was left out")]
fn all_end<'n>(test: &str, names: impl Iterator<Item = &'n str>) {
    if !cfg!(target_os = "linux") {
        println!("skipped: what a process took is asked of Linux");
        return;
    }
    let mut failed = Vec::new();
    for name in names {
        // What others do on the machine makes CPU time longer, never shorter: what keeps its limits once keeps them.
        let tries: Vec<_> = (0..3).map(|_| ends(test, name)).take_while(Result::is_err).collect();
        failed.extend(tries.into_iter().nth(2).and_then(Result::err));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Runs the test `test` for one name in a process of its own; returns what it printed if it fails.
#[expect(clippy::print_stdout, reason = "what each took is worth seeing")]
fn ends(test: &str, name: &str) -> Result<(), String> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(NAME, name);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (done, is_done) = mpsc::channel();
    let id = child.id();
    let (status, output) = thread::scope(|scope| {
        scope.spawn(move || {
            // Far more than needed even on a busy machine; a script that hangs never returns.
            if is_done.recv_timeout(Duration::from_secs(20)).is_err() {
                let id = rustix::process::Pid::from_raw(id.try_into().unwrap()).unwrap();
                rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
            }
        });
        let mut output = String::new();
        std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut output).unwrap();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut output).unwrap();
        let status = child.wait().unwrap();
        let _ = done.send(());
        (status, output)
    });
    let told = output.lines().find_map(|line| Some(line.split_once(&format!("{test} ... "))?.1));
    println!("{}", told.unwrap_or(name));
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}\n{output}")) }
}

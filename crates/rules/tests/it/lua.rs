//! Tests of Argo CD's Lua scripts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_rules::lua::{Budget, Customizations, HealthWord, LuaProblem, Operation, test_customizations};
use taffrail_rules::{Origin, RuleSet};
use taffrail_status::{ObjectContext, Rules, Status, Verdict};

const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);

/// Returns the files of a folder: paths in it, and texts.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut folders = vec![folder.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        (name, String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned())
    };
    files.iter().map(read).collect()
}

fn own() -> Vec<(String, String)> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/customizations"))
}

fn of_folder(files: &[(String, String)]) -> Customizations {
    Customizations::of_folder(Origin::User, files.iter().map(|(path, text)| (&**path, &**text)))
}

/// Returns scripts in which this is the health script of Things.
fn thing(script: &str) -> Customizations {
    Customizations::of_folder(Origin::User, [("example.com/Thing/health.lua", script)])
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

fn of_map(entries: &[(&str, &str)]) -> Customizations {
    Customizations::of_config_map(Origin::Cluster, &map(entries))
}

fn object(kind: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

fn judge(scripts: Customizations, object: &Value) -> Verdict {
    RuleSet::bare()
        .with_script(Box::new(scripts))
        .judge(&Object::new(object.into()).unwrap(), &ObjectContext::default(), NOW)
        .unwrap()
}

/// Runs a script and returns the message.
fn says(script: &str) -> String {
    says_of(script, &object("Thing", json!({})))
}

fn says_of(script: &str, object: &Value) -> String {
    match thing(script).health(&Object::new(object.into()).unwrap(), NOW) {
        Ok(health) => health.unwrap().message,
        Err(error) => error.to_string(),
    }
}

/// Returns a script whose message is the value of an expression.
fn evaluated(expression: &str) -> String {
    says(&format!("return {{status = 'Healthy', message = tostring({expression})}}"))
}

#[test]
fn scripts_pass_their_cases() {
    let report = test_customizations(&own());
    assert_eq!(
        (report.passed, &*report.failed, &*report.errors, &*report.faults),
        (14, &[][..], &[][..], &[][..])
    );
}

#[test]
fn failing_script_cases_are_reported() {
    let mut files = own();
    for (path, text) in &mut files {
        if path.ends_with("Door/health.lua") {
            *text = text.replace("'Shut'", "'Closed'").replace("\"Shut\"\n", "\"Closed\"\n");
        } else if path.ends_with("paint/action.lua") {
            *text = text.replace("spec.colour =", "spec.color =");
        } else if path.ends_with("open/action.lua") {
            *text = text.replace("obj.spec.open = true", "obj.metadata.name = 'b'");
        } else if path.ends_with("discovery.lua") {
            text.insert_str(0, "if true then return {burn = {}} end\n");
        }
    }
    files.retain(|(path, _)| !path.ends_with("paused.yaml"));
    let report = test_customizations(&files);
    let mut failed: Vec<_> =
        report.failed.iter().map(|it| format!("{}: {}: {}", it.file, it.name, it.why)).collect();
    failed.sort();
    assert_eq!(
        failed,
        [
            "doors.example.com/Door/actions/action_test.yaml: discovery of testdata/door.yaml: the discovery offers 'burn', which is not among the expected actions",
            "doors.example.com/Door/actions/action_test.yaml: open of testdata/door.yaml: the action changes Door b, which it should not",
            "doors.example.com/Door/actions/action_test.yaml: paint of testdata/door.yaml: Door front: spec.colour is null, not \"1\"",
            "doors.example.com/Door/health_test.yaml: ./testdata/../testdata/paused.yaml: there is no file doors.example.com/Door/testdata/paused.yaml",
            "doors.example.com/Door/health_test.yaml: testdata/shut.yaml: the script returns Healthy, \"Closed\", not Healthy, \"Shut\"",
        ]
    );
    assert_eq!(report.passed, 9);
}

#[test]
fn argo_cd_health_words_become_statuses_and_stay_in_the_rule_name() {
    for (word, status, suspended) in [
        ("Healthy", Status::Current, false),
        ("Progressing", Status::InProgress, false),
        ("Degraded", Status::Failed, false),
        ("Suspended", Status::Current, true),
        ("Missing", Status::NotFound, false),
        ("Unknown", Status::Unknown, false),
    ] {
        let script = format!("return {{status = '{word}', message = 'so it is'}}");
        let verdict = judge(thing(&script), &object("Thing", json!({})));
        assert_eq!((verdict.status, verdict.suspended, &*verdict.message), (status, suspended, "so it is"));
        assert_eq!(verdict.rule, format!("user/lua/example.com/Thing#{word}"));
    }
    let invalid = judge(thing("return {status = 'healthy'}"), &object("Thing", json!({})));
    assert_eq!(
        (invalid.status, &*invalid.message),
        (Status::Unknown, "Lua returned an invalid health status")
    );
    // A script that returns no health leaves the decision to other rules.
    for nothing in ["", "return nil", "return {}", "return {'Healthy'}", "return {status = 5}"] {
        assert_eq!(judge(thing(nothing), &object("Thing", json!({}))).rule, "fallback", "{nothing}");
    }
    // Go ignores the case of keys, and Argo CD takes the last of several values.
    let folded = judge(thing("return 1, {Status = 'Degraded', message = nil}"), &object("Thing", json!({})));
    assert_eq!((folded.status, &*folded.message), (Status::Failed, ""));
}

#[test]
fn script_error_has_a_line_and_affects_its_own_kind_only() {
    let files = [
        ("example.com/Broken/health.lua", "local a = 1\nlocal = 2\nreturn {}"),
        ("example.com/Jumping/health.lua", "::again::\nlocal a = 1\nif a == 1 then goto again end"),
        ("example.com/Raising/health.lua", "local a\n\nreturn a.b"),
        ("example.com/Shouting/health.lua", "\nerror('no way', 0)"),
        ("example.com/Table/health.lua", "error({code = 1})"),
        ("example.com/Text/health.lua", "return 'Healthy'"),
        ("example.com/Nested/health.lua", "local a = {} a.a = a return a"),
        ("example.com/Mixed/health.lua", "return {1, status = 'Healthy'}"),
        ("example.com/Given/health.lua", "\nreturn {status = ('x'):rep({})}"),
        ("example.com/Inside/health.lua", "local function f() return f.x.y end\n\nreturn f()"),
        ("example.com/Endless/health.lua", "local a = 1\nwhile a do ('x'):find('a') end"),
        ("example.com/Dated/health.lua", "\nreturn os.date('%c', 1e300)"),
        ("example.com/Well/health.lua", "return {status = 'Healthy'}"),
    ];
    let scripts = || Customizations::of_folder(Origin::User, files);
    let said: Vec<_> = scripts().errors().iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    for (kind, expected) in [
        ("Broken", "example.com/Broken/health.lua:2: "),
        (
            "Jumping",
            "example.com/Jumping/health.lua:3: 'goto again' may only jump to the end of a loop's body, to go on with \
             its next round",
        ),
        ("Raising", "example.com/Raising/health.lua:3: attempt to index nil with 'b'"),
        ("Shouting", "example.com/Shouting/health.lua:2: no way"),
        ("Table", "example.com/Table/health.lua:1: the script raised a table as its error"),
        ("Text", "example.com/Text/health.lua: expect table output from Lua script, not string"),
        ("Nested", "example.com/Nested/health.lua: cannot encode recursively nested tables to JSON"),
        ("Mixed", "example.com/Mixed/health.lua: cannot encode mixed or invalid key types"),
        ("Given", "example.com/Given/health.lua:2: invalid argument #2 to 'rep'"),
        ("Inside", "example.com/Inside/health.lua:1: attempt to index"),
        ("Endless", "example.com/Endless/health.lua:2: the script was stopped after 50 ms"),
        ("Dated", "example.com/Dated/health.lua:2: the time given to os.date is out of range"),
    ] {
        let verdict = judge(scripts(), &object(kind, json!({})));
        assert_eq!(verdict.status, Status::Unknown, "{kind}");
        assert!(verdict.message.starts_with(expected), "{kind}: {}", verdict.message);
        assert!(verdict.message.lines().count() == 1, "{kind}: {}", verdict.message);
    }
    assert_eq!(judge(scripts(), &object("Well", json!({}))).status, Status::Current);
}

#[test]
fn script_for_the_kind_comes_before_wildcards() {
    let healthy = |message: &str| format!("return {{status = 'Healthy', message = '{message}'}}");
    let (own, group, all, old, built_in) =
        (healthy("own"), healthy("group"), healthy("all"), healthy("old"), healthy("built in"));
    let yaml = format!(
        "old.example.com/Thing:\n  health.lua: |\n    {old}\n'*.example.org/*':\n  health.lua: {group:?}\n"
    );
    let scripts = of_map(&[
        ("resource.customizations.health.a.example.com_Thing", &own),
        ("resource.customizations.health.*.example.com_*", &group),
        ("resource.customizations.health.Lamp", &all),
        ("resource.customizations.useOpenLibs.Lamp", "true"),
        ("resource.customizations.health.b.example.com_Empty", ""),
        ("resource.customizations", &yaml),
        ("resource.customizations.ignoreDifferences.all", "jsonPointers: [/status]"),
        ("other", "x"),
    ]);
    assert_eq!(scripts.errors(), Vec::<&taffrail_rules::lua::LuaError>::new());
    let built_in = Customizations::of_folder(
        Origin::Cluster,
        [
            ("a.example.com/Thing/health.lua", &*built_in),
            ("c.example.net/Thing/health.lua", &*built_in),
            ("_.example.net/_/health.lua", &*group),
        ],
    );
    let scripts = scripts.over(built_in);
    for (version, kind, expected) in [
        ("a.example.com/v1", "Thing", Some("own")),
        ("a.example.com/v1", "Other", Some("group")),
        ("old.example.com/v1", "Thing", Some("old")),
        ("x.y.example.org/v1", "Thing", Some("group")),
        ("v1", "Lamp", Some("all")),
        ("lamps.example.net/v1", "Lamp", Some("group")),
        ("c.example.net/v1", "Thing", Some("built in")),
        ("b.example.com/v1", "Empty", Some("group")),
        ("example.com/v1", "Thing", None),
        ("v1", "Thing", None),
    ] {
        let object = json!({"apiVersion": version, "kind": kind});
        let health = scripts.health(&Object::new((&object).into()).unwrap(), NOW).unwrap();
        assert_eq!(health.map(|health| health.message).as_deref(), expected, "{version} {kind}");
    }
    let rule = judge(scripts, &json!({"apiVersion": "a.example.com/v1", "kind": "Other"})).rule;
    assert_eq!(rule, "cluster/lua/*.example.com/*#Healthy");
}

#[test]
fn invalid_config_map_key_affects_its_own_kind_only() {
    let scripts = of_map(&[
        ("resource.customizations.health.a_b_c", "return {}"),
        ("resource.customizations.actions.Lamp", "definitions: 5"),
        ("resource.customizations.health.Lamp", "return {status = 'Healthy'}"),
        ("resource.customizations", "a: [b"),
    ]);
    let mut said: Vec<_> = scripts.errors().iter().map(|error| error.script.clone()).collect();
    said.sort();
    assert_eq!(
        said,
        [
            "resource.customizations",
            "resource.customizations.actions.Lamp",
            "resource.customizations.health.a_b_c"
        ]
    );
    assert_eq!(judge(scripts, &json!({"apiVersion": "v1", "kind": "Lamp"})).status, Status::Current);
}

/// A key that holds neither a health script nor actions is not read.
#[test]
fn only_a_long_kind_in_a_config_map_key_is_refused() {
    let key = |sort: &str, length: usize| format!("resource.customizations.{sort}.{}", "a".repeat(length));
    for (key, refused) in [
        (key("ignoreDifferences", 300), 0),
        (key("health", 253), 0),
        (key("health", 254), 1),
        (key("actions", 254), 1),
    ] {
        assert_eq!(of_map(&[(&key, "")]).errors().len(), refused, "{key}");
    }
}

#[test]
fn config_map_actions_merge_built_in_actions_only_on_request() {
    let definitions = |merge: bool| {
        format!(
            "mergeBuiltinActions: {merge}\ndiscovery.lua: |\n  return {{open = {{disabled = true}}, burn = {{}}}}\n\
             definitions:\n- name: burn\n  action.lua: |\n    obj.spec.burnt = true\n    return obj\n"
        )
    };
    let door =
        json!({"apiVersion": "doors.example.com/v1", "kind": "Door", "metadata": {"name": "a"}, "spec": {}});
    let door = Object::new((&door).into()).unwrap();
    for (merges, expected) in [(false, "burn+ open-"), (true, "burn+ count+ duplicate+ open- paint+")] {
        let text = definitions(merges);
        let scripts = of_map(&[("resource.customizations.actions.doors.example.com_Door", &text)]);
        let scripts = scripts.over(of_folder(&own()));
        let found = scripts.discover(&door, NOW).unwrap();
        let told =
            found.iter().map(|action| format!("{}{}", action.name, if action.disabled { "-" } else { "+" }));
        assert_eq!(told.collect::<Vec<_>>().join(" "), expected);
        // A built-in action can be run even if it is not listed.
        for (action, field) in [("burn", json!({"burnt": true})), ("open", json!({"open": true}))] {
            let changes = scripts.run(action, &door, &BTreeMap::new(), NOW).unwrap();
            assert_eq!((changes.len(), &changes[0].object["spec"]), (1, &field));
        }
        let missing = scripts.run("close", &door, &BTreeMap::new(), NOW).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "doors.example.com/Door: no Lua script defines the action 'close' for this kind"
        );
    }
    let lamp = json!({"apiVersion": "v1", "kind": "Lamp"});
    let lamp = Object::new((&lamp).into()).unwrap();
    assert_eq!(of_folder(&own()).discover(&lamp, NOW), Ok(Vec::new()));
}

#[test]
fn action_returns_untouched_fields_unchanged() {
    let scripts = of_folder(&own());
    let door = json!({
        "apiVersion": "doors.example.com/v1", "kind": "Door", "metadata": {"name": "a", "namespace": "b"},
        "spec": {"map": {}, "list": [], "nested": [{"map": {}}], "number": 3, "half": 0.5, "null": null},
    });
    let read = Object::new((&door).into()).unwrap();
    let run = |action: &str, parameters: &[(&str, &str)]| scripts.run(action, &read, &map(parameters), NOW);
    let opened = &run("open", &[]).unwrap()[0];
    assert_eq!(opened.operation, Operation::Patch);
    assert_eq!(
        opened.object,
        json!({
            "apiVersion": "doors.example.com/v1", "kind": "Door",
            "metadata": {"name": "a", "namespace": "b", "annotations": {"doors.example.com/opened": "2023-11-14T22:13:20Z"}},
            "spec": {"map": {}, "list": [], "nested": [{"map": {}}], "number": 3, "half": 0.5, "open": true},
        })
    );
    let copy = &run("duplicate", &[]).unwrap()[0];
    assert_eq!(
        (copy.operation, &copy.object["metadata"]),
        (Operation::Create, &json!({"name": "a-2", "namespace": "b"}))
    );
    // An empty object stays one wherever it is moved: a server does not accept a list in its place.
    assert_eq!(
        copy.object["spec"],
        json!({"map": {}, "list": [], "nested": [{"map": {}}], "number": 3, "half": 0.5})
    );
    assert_eq!(run("paint", &[]).unwrap_err().problem, LuaProblem::Raised("which colour?".to_owned()));
    let parameter = &scripts.discover(&read, NOW).unwrap()[3].params[0];
    assert_eq!((&*parameter.name, &*parameter.default), ("colour", "red"));

    let scripts = Customizations::of_folder(
        Origin::User,
        [
            ("example.com/Thing/actions/a/action.lua", "return {{operation = 'delete', resource = obj}}"),
            ("example.com/Thing/actions/b/action.lua", "return {obj}"),
            ("example.com/Thing/actions/c/action.lua", "return {}"),
            ("example.com/Thing/actions/d/action.lua", "return {a = 1}"),
        ],
    );
    let thing = object("Thing", json!({}));
    let said = |action: &str| {
        let changes = scripts.run(action, &Object::new((&thing).into()).unwrap(), &BTreeMap::new(), NOW);
        changes.map(|changes| changes.len()).map_err(|error| error.problem.to_string())
    };
    assert_eq!(
        said("a"),
        Err("the action script returned the operation \"delete\", not 'create' or 'patch'".to_owned())
    );
    assert_eq!(
        said("b"),
        Err("the action script returned the operation null, not 'create' or 'patch'".to_owned())
    );
    assert_eq!(said("c"), Ok(0));
    assert_eq!(said("d"), Err("the object that the action script returned has no kind".to_owned()));
}

#[test]
fn script_runs_share_no_state() {
    let scripts = thing(
        "local seen = tostring(rawget(_G, 'left')) .. tostring(string.left) .. tostring(('').left) .. tostring(next(actionParams))\n\
         left = 1\n_G.other = 2\n\
         for _, change in ipairs({\n\
           function() string.left = 1 end, function() getmetatable('').__index.left = 1 end,\n\
           function() getmetatable(_G).__index = {left = 1} end, function() rawset(table, 'left', 1) end,\n\
           function() setmetatable(_G, nil) end, function() math.pi = 3 end,\n\
         }) do seen = seen .. tostring(pcall(change)):sub(1, 1) end\n\
         return {status = 'Healthy', message = seen .. tostring(other) .. tostring(left)}",
    );
    for _ in 0..3 {
        let thing = object("Thing", json!({}));
        let health = scripts.health(&Object::new((&thing).into()).unwrap(), NOW).unwrap().unwrap();
        assert_eq!((health.word, &*health.message), (HealthWord::Healthy, "nilnilnilnilffffff21"));
    }
}

#[test]
fn scripts_see_null_as_nil() {
    let object = object(
        "Thing",
        json!({"spec": {"none": null, "list": [1, null, 2], "empty": [], "deep": {"a": [{"b": null}]}}}),
    );
    let script = "local s = obj.spec\n\
        return {status = 'Healthy', message = tostring(s.none == nil) .. #s.list .. #s.empty .. tostring(next(s.deep.a[1])) .. tostring(obj.status)}";
    assert_eq!(says_of(script, &object), "true20nilnil");
}

#[test]
fn numbers_and_times_are_formatted_as_in_argo_cd() {
    for (expression, expected) in [
        ("3", "3"),
        ("3.0 .. ''", "3"),
        ("'' .. 100000", "100000"),
        ("'' .. 9007199254740992", "9007199254740992"),
        ("0.1", "0.1"),
        ("'' .. 1/3", "0.3333333333333333"),
        ("1234567.5", "1.2345675e+06"),
        ("123456.5", "123456.5"),
        ("1e15", "1000000000000000"),
        ("1e20", "1e+20"),
        ("0.00001", "1e-05"),
        ("-0.0", "0"),
        ("1/0", "+Inf"),
        ("0/0", "NaN"),
        (
            "string.format('%s %d %5.2f %s %s %q %v%%', 3, 3.7, 2.5, nil, true, 'a', 7)",
            "3 3  2.50 nil true \"a\" 7%",
        ),
        ("tonumber('0x10') + tonumber(' 5 ') + tonumber('10', 2)", "23"),
        ("tonumber('x')", "nil"),
        ("math.mod(5, 3) + math.pow(2, 3) + table.getn({1, 2})", "12"),
        ("select('#', unpack({1, 2, nil, 4}))", "4"),
        ("loadstring('return obj.kind .. 1')()", "Thing1"),
        ("loadstring('return +')", "nil"),
        ("loadstring('\\27Lua')", "nil"),
        ("load(function() return nil end)", "function"),
        ("os.time()", "1700000000"),
        ("os.time({year = 2023, month = 14, day = -1, hour = 5})", "1706590800"),
        ("os.time({year = 2023, month = 1, day = 1})", "1672574400"),
        (
            "os.date('!%a %A %b %B %c %d %F %H %I %m %M %p %P %S %x %X %y %Y %z %Z %w %j %% %')",
            "mon Tuesday Nov November 14 Nov 23 22:13 UTC 14 2023-11-14 22 10 11 13 PM pm 20 22/13/20 22:13:20 23 2023 +0000 UTC 2 %j % %",
        ),
        ("os.date('*t', 0).year .. os.date('!*t', 0).wday", "19705"),
        ("os.date('%Y', 0)", "1970"),
        (
            "tostring(os.exit) .. tostring(os.getenv) .. tostring(io) .. tostring(coroutine) .. tostring(debug)",
            "nilnilnilnilnil",
        ),
        ("require('os').time()", "1700000000"),
        ("select(2, pcall(require, 'io'))", "module io not found"),
        ("('a.b'):find('.', 1, true)", "2"),
        ("('x y z'):gsub('%s', '_')", "x_y_z"),
        ("table.concat({1, 2.5, 'a'}, ',')", "1,2.5,a"),
        ("string.gfind('abc', 'b')()", "b"),
        ("(function() local t = {3, 1, 2} table.sort(t) return table.concat(t) end)()", "123"),
        ("(('a'):rep(200000) .. 'b'):find('ab', 1, true)", "200000"),
        ("(('a'):rep(200000) .. 'b'):find('b', -3, true)", "200001"),
    ] {
        let found = evaluated(expression);
        let found = if expected == "function" { found.split(':').next().unwrap() } else { &found };
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn goto_the_end_of_a_loop_becomes_continue() {
    let told =
        |body: &str| says(&format!("local out = ''\n{body}\nreturn {{status = 'Healthy', message = out}}"));
    for (body, expected) in [
        ("for i = 1, 4 do if i % 2 == 0 then goto continue end out = out .. i ::continue:: end", "13"),
        (
            "for i = 1, 4 do if i < 3 then goto next else out = out .. i end out = out .. ';' ::next:: ; end",
            "3;4;",
        ),
        // The label stands at the end of a block that ends with the body.
        ("for i = 1, 3 do if true then if i == 2 then goto c end out = out .. i ::c:: end end", "13"),
        (
            "for i = 1, 3 do if i then if i == 2 then goto c end out = out .. i ::c:: else while true do end out = 'x' end end",
            "13",
        ),
        (
            "local i = 0 while i < 3 do i = i + 1 if i == 2 then goto continue end out = out .. i ::continue:: end",
            "13",
        ),
        (
            "local i = 0 repeat i = i + 1 if i == 2 then goto continue end out = out .. i ::continue:: until i == 3",
            "13",
        ),
        (
            "for i = 1, 2 do for j = 1, 2 do if j == 1 then goto continue end out = out .. i .. j ::continue:: end ::continue:: end",
            "1222",
        ),
        // Words in texts and comments are not part of the language.
        (
            "for i = 1, 2 do --[[ goto x end ]] local a = [==[ goto ]] ::y:: ]==] local b = 'goto \\' z' -- goto w\nif i == 1 then goto c end out = out .. i .. #a ::c:: end",
            "215",
        ),
        (
            "local f = function() for i = 1, 2 do if i == 1 then goto\ncontinue end out = out .. i\n::continue::\nend end f()",
            "2",
        ),
    ] {
        assert_eq!(told(body), expected, "{body}");
    }
    for (body, line) in [
        ("goto done\n::done::", 2),
        ("for i = 1, 2 do\n  for j = 1, 2 do\n    goto outer\n  end\n  ::outer::\nend", 4),
        ("for i = 1, 2 do goto c out = 'a' ::c:: out = 'b' end", 2),
        ("for i = 1, 2 do goto nowhere end", 2),
        ("for i = 1, 2 do (function() goto c end)() ::c:: end", 2),
    ] {
        let said = told(body);
        assert!(said.starts_with(&format!("example.com/Thing/health.lua:{line}: 'goto ")), "{body}: {said}");
    }
    // The text behind stays on its line.
    let said = told("for i = 1, 1 do\nif i == 2 then goto\n  c\nend\n\n::c::\nend\nlocal a = out.b.c");
    assert!(said.starts_with("example.com/Thing/health.lua:9: "), "{said}");
}

#[test]
fn too_long_or_too_deep_scripts_are_refused() {
    let long = format!("return {{}} -- {}", "x".repeat(300 << 10));
    assert_eq!(says(&long), "example.com/Thing/health.lua: the script is longer than 64 KB");
    let deep = (0..120).fold(json!({}), |inside, _| json!([inside]));
    assert_eq!(
        says_of("return {}", &object("Thing", json!({"spec": deep}))),
        "example.com/Thing/health.lua: the object nests deeper than 100 levels"
    );
    let brackets = format!("return {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(says(&brackets).starts_with("example.com/Thing/health.lua:1: "), "{}", says(&brackets));
    let calls = format!("local f = function() end return {}f{}", "f(".repeat(9_000), ")".repeat(9_000));
    assert!(says(&calls).starts_with("example.com/Thing/health.lua:1: "), "{}", says(&calls));
}

#[test]
fn budget_of_scripts_is_configurable() {
    let thing = |script: &str| {
        let scripts = thing(script);
        scripts.with_budget(Budget { time: Duration::from_secs(60), memory: 4 << 20 })
    };
    let large = judge(
        thing("local t = {}\n\nfor i = 1, 100 do t[i] = ('x'):rep(1e5) .. i end"),
        &object("Thing", json!({})),
    );
    let words = "the script was stopped because its values took more than 4 MB";
    assert_eq!(large.message, format!("example.com/Thing/health.lua:3: {words}"));
    let object = object("Thing", json!({"spec": "x".repeat(3 << 20)}));
    assert_eq!(judge(thing("return {}"), &object).message, format!("example.com/Thing/health.lua: {words}"));
    let result = "return {status = 'Healthy', message = ('x'):rep(2 * 1024 * 1024)}";
    assert_eq!(
        judge(thing(result), &json!({"apiVersion": "example.com/v1", "kind": "Thing"})).message,
        format!("example.com/Thing/health.lua: {words}")
    );
}

/// Runs Argo CD's own scripts and cases, if their folder is given: each must pass.
#[test]
fn argo_cds_own_cases_pass() {
    #[expect(clippy::disallowed_methods, reason = "they are no part of this repository")]
    let Some(folder) = std::env::var_os("TAFFRAIL_ARGOCD_CUSTOMIZATIONS") else {
        println!(
            "skipped: TAFFRAIL_ARGOCD_CUSTOMIZATIONS names no copy of Argo CD's resource_customizations"
        );
        return;
    };
    let report = test_customizations(&files(Path::new(&folder)));
    for failed in &report.failed {
        println!("{}: {}: {}", failed.file, failed.name, failed.why);
    }
    println!("{} passed, {} failed, {:?}", report.passed, report.failed.len(), report.errors);
    assert!(report.failed.is_empty() && report.errors.is_empty() && report.passed > 1_000);
}

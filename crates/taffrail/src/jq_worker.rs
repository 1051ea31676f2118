//! Runs jq expressions in a process of their own, which a bound of memory and a second of time end.
//!
//! The interpreter has neither a budget nor an interrupt, and rules come from whoever may write an Application. The worker
//! is this program again, called with [`NAME`]; it has no environment, opens nothing, and answers paths alone.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Ctx, Filter, Vars, data, unwrap_valr};
use jaq_json::Val;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use taffrail_plan::diff::{JqError, JqPath, JqRunner};

/// The argument that makes this program a worker.
const NAME: &str = "jq-worker";

/// Maximum time for one expression on one object, as Argo CD has it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum time until a worker has started.
const STARTING: Duration = Duration::from_secs(30);

/// Number of times that an expression may end its worker; then it is not run any more.
const MAX_FAILED: u32 = 3;

/// Maximum time for all expressions on all objects of a run.
const MAX_TOTAL: Duration = Duration::from_secs(120);

/// Number of requests after which a worker is replaced, so that its processor time is about the last ones.
const MAX_REQUESTS: u32 = 500;

/// Maximum processor time of a worker, in seconds: it ends one that nobody ends.
#[cfg(unix)]
const MAX_CPU: u64 = 600;

/// Maximum size of a worker's address space, in bytes.
#[cfg(unix)]
const MAX_MEMORY: u64 = 512 << 20;

/// Maximum length of a request, in bytes: more than an API server takes as an object.
const MAX_REQUEST: u64 = 16 << 20;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: u64 = 4 << 20;

/// The line that a worker writes as soon as it reads requests.
const READY: &[u8] = b"ready\n";

#[derive(Serialize, Deserialize)]
struct Request {
    expression: String,
    object: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    /// The paths that the expression names, or none because it failed on the object.
    Paths(Vec<JqPath>),
    /// The expression is none.
    NoExpression(String),
}

/// A worker, which is started when it is first needed, and again after it was ended.
#[derive(Default)]
pub(crate) struct JqWorker(Mutex<State>);

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// The number of times that each expression ended its worker.
    failed: HashMap<String, u32>,
    /// The time that all answers took.
    taken: Duration,
}

struct Running {
    child: Child,
    requests: ChildStdin,
    /// The lines that the worker writes.
    answers: Receiver<Vec<u8>>,
    /// The number of requests that it got.
    asked: u32,
}

impl JqRunner for JqWorker {
    fn paths(&self, expression: &str, object: &Value) -> Result<Vec<JqPath>, JqError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.taken > MAX_TOTAL || state.failed.get(expression).is_some_and(|times| *times >= MAX_FAILED) {
            return Err(JqError::TimedOut);
        }
        let request = Request { expression: expression.to_owned(), object: object.clone() };
        let unsent =
            |error: &dyn std::error::Error| JqError::Failed(format!("the worker does not run: {error}"));
        let mut request = serde_json::to_vec(&request).map_err(|error| unsent(&error))?;
        request.push(b'\n');
        let mut running = match state.running.take().filter(|running| running.asked < MAX_REQUESTS) {
            Some(running) => running,
            None => Running::start().map_err(|error| unsent(&error))?,
        };
        let begun = Instant::now();
        let answer = running.ask(&request, PATIENCE);
        state.taken += begun.elapsed();
        match answer {
            Ok(line) => {
                state.running = Some(running);
                match serde_json::from_slice(&line) {
                    Ok(Answer::Paths(paths)) => Ok(paths),
                    Ok(Answer::NoExpression(why)) => Err(JqError::Compile(why)),
                    Err(error) => Err(unsent(&error)),
                }
            }
            Err(error) => {
                *state.failed.entry(expression.to_owned()).or_default() += 1;
                Err(error)
            }
        }
    }
}

impl Running {
    fn start() -> io::Result<Running> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(NAME)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (requests, output) = (child.stdin.take(), child.stdout.take());
        let (requests, output) = requests.zip(output).ok_or(io::ErrorKind::BrokenPipe)?;
        let (sender, answers) = sync_channel(1);
        // The thread ends with the worker, or with the receiver.
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = output.by_ref().take(MAX_ANSWER).read_until(b'\n', &mut line);
                let is_whole = read.is_ok() && line.ends_with(b"\n");
                if !is_whole || sender.send(line).is_err() {
                    break;
                }
            }
        });
        let running = Running { child, requests, answers, asked: 0 };
        match running.answers.recv_timeout(STARTING) {
            Ok(line) if line == READY => Ok(running),
            _ => Err(io::Error::other("it did not start")),
        }
    }

    /// Asks the worker, and waits for its answer.
    fn ask(&mut self, request: &[u8], patience: Duration) -> Result<Vec<u8>, JqError> {
        self.asked += 1;
        // A worker that ended reads nothing, and its answer is missing.
        let sent = self.requests.write_all(request).and_then(|()| self.requests.flush());
        match self.answers.recv_timeout(patience) {
            Ok(line) if sent.is_ok() => Ok(line),
            Err(RecvTimeoutError::Timeout) => Err(JqError::TimedOut),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(JqError::OutOfMemory),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns true if this process is a worker.
pub(crate) fn is_this() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == NAME)
}

/// Answers the requests on stdin until it ends.
pub(crate) fn work() -> ExitCode {
    limit_memory();
    match answer_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer_all() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    output.write_all(READY)?;
    output.flush()?;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(MAX_REQUEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let Request { expression, object } = serde_json::from_slice(&line)?;
        let mut answer = serde_json::to_vec(&paths(&expression, &object))?;
        answer.push(b'\n');
        output.write_all(&answer)?;
        output.flush()?;
    }
}

#[cfg(unix)]
fn limit_memory() {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let at_most = |most| Rlimit { current: Some(most), maximum: Some(most) };
    // Where there is no such limit, time alone ends an expression.
    let _ = setrlimit(Resource::As, at_most(MAX_MEMORY));
    let _ = setrlimit(Resource::Cpu, at_most(MAX_CPU));
    // A worker that needs more aborts, and must leave no file.
    let _ = setrlimit(Resource::Core, at_most(0));
}

#[cfg(not(unix))]
fn limit_memory() {}

/// Definitions before each expression. `contains` of jq fails on values of two types, where that of the interpreter is false.
const PRELUDE: &str = "\
def _contains($x): contains($x);
def contains($x): if type == ($x | type) then _contains($x) else error(\"values of two types\") end;
";

/// Returns the paths that an expression names in an object. None if it fails on the object, or names the object itself:
/// Argo CD then ignores nothing, as where a list that it iterates over is missing.
fn paths(expression: &str, object: &Value) -> Answer {
    // It must be an expression by itself: a part of one could end the call that is made of it.
    if let Err(why) = compile(expression) {
        return Answer::NoExpression(why);
    }
    let filter = match compile(&format!("{PRELUDE}[path({expression})]")) {
        Ok(filter) => filter,
        Err(why) => return Answer::NoExpression(why),
    };
    let Ok(input) = jaq_json::read::parse_single(object.to_string().as_bytes()) else {
        return Answer::Paths(Vec::new());
    };
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let found = filter.id.run((context, input)).map(unwrap_valr).next().and_then(Result::ok);
    // Only what is text, a whole number or a slice leads to a field.
    let found: Option<Vec<JqPath>> = found.and_then(|found| serde_json::from_str(&found.to_string()).ok());
    let found = found.filter(|paths| paths.iter().all(|path| !path.is_empty()));
    Answer::Paths(found.unwrap_or_default())
}

/// Compiles a program.
///
/// # Errors
/// The reason, for people.
fn compile(code: &str) -> Result<Filter<data::JustLut<Val>>, String> {
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let loaded = Loader::new(definitions).load(&arena, File { code, path: () });
    let modules = loaded.map_err(|_| "it is no expression of jq".to_owned())?;
    jaq_core::Compiler::default().with_funs(functions).compile(modules).map_err(|unknown| {
        let names: Vec<&str> =
            unknown.iter().flat_map(|(_, found)| found).map(|(name, _)| *name).take(3).collect();
        format!("jq has no {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(expression: &str, object: Value) -> Value {
        serde_json::to_value(paths(expression, &object)).unwrap()
    }

    #[test]
    fn expressions_name_paths() {
        let pods = json!({"spec": {"containers": [{"name": "web"}, {"name": "log"}], "replicas": 2}});
        for (expression, expected) in [
            (".spec.replicas", json!([["spec", "replicas"]])),
            (".spec.containers[] | select(.name == \"log\")", json!([["spec", "containers", 1]])),
            (".spec.containers[1:]", json!([["spec", "containers", {"start": 1, "end": null}]])),
            (".status.a, .spec.replicas", json!([["status", "a"], ["spec", "replicas"]])),
            // These fail on the object.
            (".status.list[].a", json!([])),
            (".spec.replicas.a.b", json!([])),
            (".spec | select(.replicas | contains(\"2\"))", json!([])),
            // Argo CD cannot use an object without anything.
            (".", json!([])),
            ("select(.spec), .spec.replicas", json!([])),
        ] {
            assert_eq!(found(expression, pods.clone()), json!({"paths": expected}), "{expression}");
        }
        for expression in [".spec[", "nothing", ".a) | (.b", "empty), ([\"spec\"]", ""] {
            let told = found(expression, pods.clone());
            assert!(told["noExpression"].is_string(), "{expression}: {told}");
        }
    }
}

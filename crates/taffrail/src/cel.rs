//! Expressions in CEL about an object, from whomever they are.
//!
//! The interpreter recurses while it reads and evaluates, and knows neither a budget nor an interrupt. So size and nesting are
//! bounded before it sees an expression, and it runs on a thread of its own with a deep stack: what takes too long is
//! given up, and that thread left behind.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, ParseErrors, Program, Value};
use taffrail_apps::wait::{self, Answer};

/// By what name an expression speaks of the object.
const OBJECT: &str = "object";

/// Longer expressions are not read, in bytes.
const LONGEST: usize = 2048;

/// Nor are those with more of what may open another level: brackets, and the question mark of `a ? b : c`.
const OPENINGS: usize = 64;

/// How long reading an expression, or evaluating it once, may take. What is meant well takes microseconds.
const LIMIT: Duration = Duration::from_secs(2);

/// Enough for the deepest expression that the bounds let through, in bytes; what is not used costs nothing.
const STACK: usize = 64 << 20;

/// What is told of a value, at most, in characters.
const TOLD: usize = 200;

/// Names that the language itself has.
const OWN: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "optional",
    "optional_type",
    "string",
    "type",
];

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidExpression {
    /// Too long to be read.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// Too deep to be read.
    #[error("it has more than {OPENINGS} brackets and question marks")]
    TooDeep,
    /// It took too long to be read.
    #[error("to read it took longer than {0:?}")]
    TooSlow(Duration),
    /// No CEL.
    #[error("{message} (line {line}, column {column})")]
    Syntax {
        /// What is wrong.
        message: String,
        /// Where, counted from 1.
        line: isize,
        /// Where, counted from 1.
        column: isize,
    },
    /// It asks for something that nobody gives it.
    #[error(
        "it knows nothing called '{0}'; the object is called {OBJECT}, so write {OBJECT}.{0} for a field of it"
    )]
    UnknownName(String),
    /// The interpreter broke down, or the thread for it could not be had.
    #[error("it cannot be read: {0}")]
    Broken(String),
}

/// An expression that is true or false of an object.
pub(crate) struct Expression {
    text: String,
    limit: Duration,
    traits: Traits,
    /// Where it is evaluated; none once it took too long.
    worker: Mutex<Option<Sender<Job>>>,
}

/// What is known of an expression by its text alone.
#[derive(Debug, Clone, Copy)]
struct Traits {
    asks_for_metadata_only: bool,
}

/// An object, and where to send the answer.
struct Job {
    object: serde_json::Value,
    answer: SyncSender<Answer>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// When it is none, or too large.
    pub(crate) fn read(text: &str) -> Result<Expression, InvalidExpression> {
        if text.len() > LONGEST {
            return Err(InvalidExpression::TooLong);
        }
        // Those inside of strings count as well: who would tell them apart had to read the expression.
        if text.chars().filter(|it| matches!(it, '(' | '[' | '{' | '?')).count() > OPENINGS {
            return Err(InvalidExpression::TooDeep);
        }
        let broken = |why: &dyn fmt::Display| InvalidExpression::Broken(why.to_string());
        let (jobs, todo) = channel();
        let (read, outcome) = sync_channel(1);
        let own = text.to_owned();
        thread::Builder::new()
            .name("cel".to_owned())
            .stack_size(STACK)
            .spawn(move || work(&own, &read, &todo))
            .map_err(|error| broken(&error))?;
        let traits = match outcome.recv_timeout(LIMIT) {
            Ok(outcome) => outcome?,
            Err(RecvTimeoutError::Timeout) => return Err(InvalidExpression::TooSlow(LIMIT)),
            Err(RecvTimeoutError::Disconnected) => return Err(broken(&"the interpreter broke down")),
        };
        Ok(Expression { text: text.to_owned(), limit: LIMIT, traits, worker: Mutex::new(Some(jobs)) })
    }
}

impl wait::Expression for Expression {
    fn text(&self) -> &str {
        &self.text
    }

    fn asks_for_metadata_only(&self) -> bool {
        self.traits.asks_for_metadata_only
    }

    fn ask(&self, object: &serde_json::Value) -> Answer {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, outcome) = sync_channel(1);
        let sent =
            worker.as_ref().is_some_and(|jobs| jobs.send(Job { object: object.clone(), answer }).is_ok());
        let why = match outcome.recv_timeout(self.limit) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) => format!("its evaluation took longer than {:?}", self.limit),
            Err(RecvTimeoutError::Disconnected) if sent => "the interpreter broke down".to_owned(),
            Err(RecvTimeoutError::Disconnected) => "it was given up before".to_owned(),
        };
        *worker = None;
        Answer::Fault(why)
    }
}

/// Reads an expression and answers for one object after the other, until nobody asks any more.
fn work(text: &str, read: &SyncSender<Result<Traits, InvalidExpression>>, todo: &Receiver<Job>) {
    let env = Arc::new(Env::stdlib());
    let program = match env.compile(text) {
        Ok(program) => program,
        Err(errors) => return drop(read.send(Err(syntax(&errors)))),
    };
    let mut names = Names::default();
    names.look(program.expression(), &mut Vec::new());
    if let Some(name) = names.unknown {
        return drop(read.send(Err(InvalidExpression::UnknownName(name))));
    }
    let traits = Traits { asks_for_metadata_only: !names.asks_for_more };
    if read.send(Ok(traits)).is_err() {
        return;
    }
    while let Ok(job) = todo.recv() {
        // Who asked may have given up.
        let _ = job.answer.send(answer(&program, &env, &job.object));
    }
}

fn syntax(errors: &ParseErrors) -> InvalidExpression {
    let Some(first) = errors.errors.first() else {
        return InvalidExpression::Broken("no reason is known".to_owned());
    };
    let message = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    let (line, column) = first.pos;
    InvalidExpression::Syntax { message: short(message), line, column }
}

fn answer(program: &Program, env: &Arc<Env>, object: &serde_json::Value) -> Answer {
    let mut context = Context::with_env(Arc::clone(env));
    context.add_variable_from_value(OBJECT, value(object));
    match program.execute(&context) {
        Ok(Value::Bool(true)) => Answer::True,
        Ok(Value::Bool(false)) => Answer::False,
        Ok(other) => Answer::Fault(format!("it is a {}, neither true nor false", other.type_of())),
        Err(ExecutionError::NoSuchKey(key)) => Answer::Missing(format!("there is no '{}' yet", short(&key))),
        Err(error @ (ExecutionError::IndexOutOfBounds(_) | ExecutionError::NoSuchOverload(_))) => {
            // A field that is null now may be a number later.
            Answer::Missing(short(&error.to_string()))
        }
        Err(ExecutionError::UndeclaredReference(name)) => {
            Answer::Fault(format!("there is no function '{}'", short(&name)))
        }
        Err(error) => Answer::Fault(short(&error.to_string())),
    }
}

/// As CEL has it: whole numbers are of its type `int` as long as they fit.
fn value(tree: &serde_json::Value) -> Value {
    match tree {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(truth) => Value::Bool(*truth),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::Int(whole),
            (None, Some(whole)) => Value::UInt(whole),
            (None, None) => number.as_f64().map_or(Value::Null, Value::Float),
        },
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(items) => Value::List(Arc::new(items.iter().map(value).collect())),
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| (Key::from(key.as_str()), value(field)));
            Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The names that an expression uses without giving them itself.
#[derive(Debug, Default)]
struct Names {
    /// The first that nobody knows.
    unknown: Option<String>,
    /// Whether it asks for something else of the object than what metadata tell.
    asks_for_more: bool,
}

impl Names {
    /// Looks at an expression; `bound` are the variables that macros give it.
    fn look<'e>(&mut self, expression: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => {
                let name = name.as_str();
                if bound.contains(&name) {
                    return;
                }
                match name {
                    // The object as a whole: nobody knows what of it.
                    OBJECT => self.asks_for_more = true,
                    _ if name.starts_with('@') || OWN.contains(&name) => {}
                    _ => drop(self.unknown.get_or_insert_with(|| short(name))),
                }
            }
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name) if name == OBJECT && !bound.contains(&OBJECT) => {
                    self.asks_for_more |= !matches!(&*select.field, "apiVersion" | "kind" | "metadata");
                }
                _ => self.look(&select.operand, bound),
            },
            Expr::Call(call) => {
                call.target.iter().for_each(|target| self.look(target, bound));
                call.args.iter().for_each(|argument| self.look(argument, bound));
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.look(element, bound)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr, bound)),
            Expr::Struct(it) => it.entries.iter().for_each(|entry| self.entry(&entry.expr, bound)),
            Expr::Comprehension(it) => {
                self.look(&it.iter_range, bound);
                self.look(&it.accu_init, bound);
                let before = bound.len();
                bound.push(&it.iter_var);
                bound.extend(it.iter_var2.as_deref());
                bound.push(&it.accu_var);
                self.look(&it.loop_cond, bound);
                self.look(&it.loop_step, bound);
                self.look(&it.result, bound);
                bound.truncate(before);
            }
        }
    }

    fn entry<'e>(&mut self, entry: &'e EntryExpr, bound: &mut Vec<&'e str>) {
        match entry {
            EntryExpr::StructField(field) => self.look(&field.value, bound),
            EntryExpr::MapEntry(entry) => {
                self.look(&entry.key, bound);
                self.look(&entry.value, bound);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use taffrail_apps::wait::Expression as _;

    use super::*;

    fn read(text: &str) -> Result<Expression, InvalidExpression> {
        Expression::read(text)
    }

    #[test]
    fn an_object_is_asked() {
        let object = json!({
            "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"tier": "gold"}, "generation": 3},
            "spec": {"replicas": 3, "paused": false, "share": 0.5},
            "status": {"readyReplicas": 2, "nothing": null,
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]},
        });
        for (text, expected) in [
            ("object.status.readyReplicas >= 2", Some(Answer::True)),
            ("object.status.readyReplicas + 1 == object.spec.replicas", Some(Answer::True)),
            ("object.status.readyReplicas == object.spec.replicas", Some(Answer::False)),
            ("object.spec.share < 1", Some(Answer::True)),
            ("!object.spec.paused && object.metadata.labels.tier == 'gold'", Some(Answer::True)),
            ("object.metadata.labels['tier'].startsWith('go')", Some(Answer::True)),
            ("object.metadata.name.matches('^w.b$')", Some(Answer::True)),
            (
                "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
                Some(Answer::True),
            ),
            ("object.status.conditions.all(c, c.status == 'True')", Some(Answer::False)),
            (
                "object.status.conditions.filter(it, it.status == 'True').map(it, it.type) == ['Ready']",
                Some(Answer::True),
            ),
            ("has(object.status.phase)", Some(Answer::False)),
            ("object.?status.?phase.orValue('none') == 'none'", Some(Answer::True)),
            ("type(object.spec.replicas) == int", Some(Answer::True)),
            ("object.status.phase == 'Running'", Some(Answer::Missing("there is no 'phase' yet".to_owned()))),
            ("object.status.nothing > 1", None),
        ] {
            let said = read(text).unwrap().ask(&object);
            match expected {
                Some(expected) => assert_eq!(said, expected, "{text}"),
                None => assert!(matches!(said, Answer::Missing(_)), "{text}: {said:?}"),
            }
        }
        for (text, why) in [
            ("object.metadata.name", "it is a string, neither true nor false"),
            ("object.metadata.name.unheard()", "there is no function 'unheard'"),
            ("object.spec.replicas / 0 == 1", "ivi"),
        ] {
            let said = read(text).unwrap().ask(&object);
            assert!(matches!(&said, Answer::Fault(told) if told.contains(why)), "{text}: {said:?}");
        }
    }

    #[test]
    fn what_metadata_tell_is_told_apart() {
        for (text, only) in [
            ("object.metadata.labels.tier == 'gold' && object.kind == 'Secret'", true),
            ("object.metadata.finalizers.all(object, object.data == '')", true),
            ("!has(object.data.key)", false),
            ("object['data'].key == ''", false),
            ("size(object) > 3", false),
            ("object.metadata.finalizers.all(it, object.data == it)", false),
        ] {
            assert_eq!(read(text).unwrap().asks_for_metadata_only(), only, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        assert!(matches!(read("object.a =="), Err(InvalidExpression::Syntax { line: 1, .. })));
        assert_eq!(
            read("status.phase == 'Running'").map(drop),
            Err(InvalidExpression::UnknownName("status".to_owned()))
        );
        assert_eq!(read("object.a.all(c, d)").map(drop), Err(InvalidExpression::UnknownName("d".to_owned())));
        assert_eq!(read(&"x".repeat(3000)).map(drop), Err(InvalidExpression::TooLong));
    }

    /// An overflow of the stack would end the process.
    #[test]
    fn the_deepest_expressions_let_through_do_no_harm() {
        let long = |before: &str, unit: &str, behind: &str| {
            let times = (LONGEST - before.len() - behind.len()) / unit.len();
            format!("{before}{}{behind}", unit.repeat(times))
        };
        let nested = |open: &str, close: &str| {
            let times = OPENINGS / open.chars().filter(|it| "([{?".contains(*it)).count();
            format!("{}object.a{}", open.repeat(times), close.repeat(times))
        };
        for text in [
            nested("(", ")"),
            nested("[", "]"),
            nested("{'a':", "}"),
            nested("object.a[", "]"),
            nested("size(", ")"),
            nested("object.a.all(x, ", ")"),
            nested("(object.a ? ", " : 1)"),
            nested("object.a ? ", " : 1"),
            nested("object.a ? 1 : ", ""),
            nested("!(", ")"),
            nested("-(", ")"),
            "(".repeat(OPENINGS),
            "(".repeat(OPENINGS + 1),
            long("object", ".a", ""),
            long("", "!", "object.a"),
            long("", "-", "1 == 1"),
            long("1", "+1", " == 1"),
            long("1", "<1", ""),
            long("true", "||true", ""),
            long("true", "&&false||true", ""),
            long("object", ".a()", ""),
            long("object", ".?a", ""),
            long("[1", ",1", "]"),
            long("'", "(", "'"),
        ] {
            if let Ok(expression) = read(&text) {
                for object in [json!({}), json!({"a": true}), json!({"a": {"a": [1]}})] {
                    let _ = expression.ask(&object);
                }
            }
        }
    }

    #[test]
    fn what_takes_too_long_is_given_up() {
        let items: Vec<u32> = (0..250).collect();
        let text = "object.a.all(a, object.a.all(b, object.a.all(c, a + b + c >= 0)))";
        let expression = Expression { limit: Duration::from_millis(100), ..read(text).unwrap() };
        let object = json!({ "a": items });
        let said = expression.ask(&object);
        assert_eq!(said, Answer::Fault("its evaluation took longer than 100ms".to_owned()));
        assert_eq!(expression.ask(&object), Answer::Fault("it was given up before".to_owned()));
    }
}

//! Parses and evaluates expressions with the interpreter.
//!
//! The interpreter recurses while it parses and evaluates, and has no limits. So size and nesting are bounded
//! before it sees an expression, and the cost of an evaluation is bounded by [`budget`]. The caller must provide a deep
//! stack ([`REQUIRED_STACK`]).

use std::fmt;
use std::sync::{Arc, OnceLock};

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, ParseErrors, Value};
use taffrail_object::PredicateAnswer;

use super::budget;

/// The maximum length of an expression, in bytes; a longer one is refused.
pub const MAX_LENGTH: usize = 2048;

/// The maximum number of characters in an expression that may open another level: opening brackets, and the question
/// mark of `a ? b : c`. An expression with more is refused.
pub const MAX_OPENINGS: usize = 64;

/// The maximum number of operators, such as `+` and `&&`, in an expression: each is a level too. An expression with
/// more is refused.
pub const MAX_OPERATORS: usize = 256;

/// The stack that the deepest expression within the bounds needs, in bytes; unused stack costs nothing.
pub const REQUIRED_STACK: usize = 64 << 20;

/// The maximum length of a value in a message, in characters; the rest is cut off.
const MAX_SHOWN_CHARS: usize = 200;

/// The name by which an expression refers to the object.
const OBJECT_NAME: &str = "object";

/// The names that CEL itself defines.
const CEL_NAMES: [&str; 12] = [
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

/// The reasons why a text is not a valid expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidExpression {
    /// A text of more than [`MAX_LENGTH`] bytes.
    #[error("the expression is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// More than [`MAX_OPENINGS`] opening brackets and question marks, those in strings included.
    #[error("the expression has more than {MAX_OPENINGS} opening brackets and question marks")]
    TooDeep,
    /// More than [`MAX_OPERATORS`] operators, those in strings included.
    #[error("the expression has more than {MAX_OPERATORS} operators")]
    TooManyOperators,
    /// A syntax error.
    #[error("syntax error in the expression at line {line}, column {column}: {message}")]
    Syntax {
        /// The parser's message.
        message: String,
        /// The line, from 1.
        line: isize,
        /// The column, from 1.
        column: isize,
    },
    /// A name that is not defined for the expression.
    #[error("the expression uses the unknown name '{name}'; {known}")]
    UnknownName {
        /// The unknown name.
        name: String,
        /// A hint for people: the way to write a field of the object in this expression.
        known: String,
    },
    /// A crash of the interpreter, or no thread to run it on; the text is the reason.
    #[error("the CEL interpreter failed on the expression, which need not be wrong: {0}")]
    Broken(String),
    /// A parse that exceeded its time limit.
    #[error("parsing the expression took longer than {0:?}")]
    TooSlow(std::time::Duration),
}

/// The names that an expression may use for its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// `object`
    Object,
    /// `self` and `dep`
    SelfAndDependency,
    /// The fields of the object, each by its own name.
    Fields,
}

impl Names {
    fn knows(self, name: &str) -> bool {
        match self {
            Names::Object => name == "object",
            Names::SelfAndDependency => matches!(name, "self" | "dep"),
            Names::Fields => true,
        }
    }

    fn known(self, name: &str) -> String {
        match self {
            Names::Object => {
                format!("write object.{name} for a field of the object")
            }
            _ => format!(
                "write self.{name} for a field of the object, dep.{name} for one of what it depends on"
            ),
        }
    }
}

/// A parsed expression that evaluates to true or false.
pub struct Program {
    /// The expression, wrapped in the functions that count its cost.
    expression: IdedExpr,
    env: Arc<Env>,
    names: Names,
    asks_for_metadata_only: bool,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Program {
    /// Parses an expression. The caller needs a stack of [`REQUIRED_STACK`] bytes.
    ///
    /// # Errors
    /// If the text is not an expression, exceeds a limit, or uses a name that `names` does not allow.
    pub fn read(text: &str, names: Names) -> Result<Program, InvalidExpression> {
        check_size(text)?;
        let env = environment().map_err(InvalidExpression::Broken)?;
        let program = env.compile(text).map_err(|errors| syntax(&errors))?;
        let mut looked = Used::new(names);
        looked.collect_names(program.expression(), &mut Vec::new());
        if let Some(name) = looked.unknown {
            return Err(InvalidExpression::UnknownName { known: names.known(&name), name });
        }
        let expression = budget::counted(program.expression().clone());
        Ok(Program { expression, env, names, asks_for_metadata_only: !looked.asks_for_more })
    }

    /// Returns true if the expression reads only `apiVersion`, `kind` and `metadata` of the object. Meaningful for
    /// [`Names::Object`] alone: for other names it is always true.
    pub fn asks_for_metadata_only(&self) -> bool {
        self.asks_for_metadata_only
    }

    /// Evaluates the expression with these variables. Returns `Missing` if a field is absent or not of a usable type
    /// yet. Returns `Fault` if the result is neither true nor false, if a function is unknown, if the evaluation
    /// exceeds its budget, or after any other error. The caller needs a stack of [`REQUIRED_STACK`] bytes.
    pub fn evaluate(&self, variables: &[(&str, &serde_json::Value)]) -> PredicateAnswer {
        let mut context = Context::with_env(Arc::clone(&self.env));
        for (name, tree) in variables {
            context.add_variable_from_value(*name, value(tree));
        }
        budget::open();
        let said = Value::resolve(&self.expression, &context);
        if budget::is_overdrawn() {
            return PredicateAnswer::Fault("evaluating the expression costs too much".to_owned());
        }
        match said {
            Ok(Value::Bool(true)) => PredicateAnswer::True,
            Ok(Value::Bool(false)) => PredicateAnswer::False,
            Ok(other) => {
                PredicateAnswer::Fault(format!("its result is a {}, not true or false", other.type_of()))
            }
            Err(ExecutionError::NoSuchKey(key)) => {
                PredicateAnswer::Missing(format!("there is no '{}' yet", short(&key)))
            }
            Err(error @ (ExecutionError::IndexOutOfBounds(_) | ExecutionError::NoSuchOverload(_))) => {
                // A field that is null now may become a number later.
                PredicateAnswer::Missing(short(&error.to_string()))
            }
            // Names were checked before, so an undeclared one is a field of the object that is not there yet, unless it
            // is a function: the interpreter reports both the same way.
            Err(ExecutionError::UndeclaredReference(name))
                if self.names == Names::Fields && self.is_field(&name, variables) =>
            {
                PredicateAnswer::Missing(format!("there is no '{}' yet", short(&name)))
            }
            Err(ExecutionError::UndeclaredReference(name)) => {
                PredicateAnswer::Fault(format!("there is no function '{}'", short(&name)))
            }
            Err(error) => PredicateAnswer::Fault(short(&error.to_string())),
        }
    }

    /// Returns true if a name that the interpreter did not find is that of a field, and not that of a function.
    fn is_field(&self, name: &str, variables: &[(&str, &serde_json::Value)]) -> bool {
        let references = self.expression.references();
        !references.has_function(name)
            || (references.has_variable(name) && !variables.iter().any(|(field, _)| *field == name))
    }
}

/// Returns the shared CEL environment with the counting functions, or the error text if it could not be built.
fn environment() -> Result<Arc<Env>, String> {
    static ENVIRONMENT: OnceLock<Result<Arc<Env>, String>> = OnceLock::new();
    let make = || {
        let mut env = Env::stdlib();
        budget::declare(&mut env).map_err(|error| error.to_string())?;
        Ok(Arc::new(env))
    };
    ENVIRONMENT.get_or_init(make).clone()
}

/// Returns the number of operators in `text`, such as `+`, `&&` and `!`, also those inside strings; one of two
/// characters counts once.
fn operators(text: &str) -> usize {
    let mut characters = text.chars().peekable();
    let mut count = 0;
    while let Some(one) = characters.next() {
        if matches!(one, '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '&' | '|') {
            count += 1;
            // `!!` and `--` are two.
            let second = if matches!(one, '&' | '|') { one } else { '=' };
            characters.next_if_eq(&second);
        }
    }
    count
}

/// Checks that an expression exceeds none of [`MAX_LENGTH`] (bytes), [`MAX_OPENINGS`] (opening brackets and question
/// marks, also in strings) and [`MAX_OPERATORS`].
///
/// # Errors
/// If it exceeds one of them.
pub fn check_size(text: &str) -> Result<(), InvalidExpression> {
    if text.len() > MAX_LENGTH {
        return Err(InvalidExpression::TooLong);
    }
    // Brackets inside strings count as well: only the parser could tell them apart.
    if text.chars().filter(|it| matches!(it, '(' | '[' | '{' | '?')).count() > MAX_OPENINGS {
        return Err(InvalidExpression::TooDeep);
    }
    if operators(text) > MAX_OPERATORS {
        return Err(InvalidExpression::TooManyOperators);
    }
    Ok(())
}

fn syntax(errors: &ParseErrors) -> InvalidExpression {
    let Some(first) = errors.errors.first() else {
        return InvalidExpression::Broken("no reason is known".to_owned());
    };
    let message = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    let (line, column) = first.pos;
    InvalidExpression::Syntax { message: short(message), line, column }
}

/// Converts JSON to a CEL value; whole numbers become `int` if they fit, else `uint`.
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
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The free names that an expression uses.
#[derive(Debug)]
struct Used {
    names: Names,
    /// The first name that the expression uses and that is not defined; `None` if all are.
    unknown: Option<String>,
    /// True if the expression reads more of the object than its metadata.
    asks_for_more: bool,
}

impl Used {
    fn new(names: Names) -> Used {
        Used { names, unknown: None, asks_for_more: false }
    }

    /// Records the free names that an expression uses; `bound` are the variables that surrounding macros define.
    fn collect_names<'e>(&mut self, expression: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => {
                let name = name.as_str();
                if bound.contains(&name) {
                    return;
                }
                match name {
                    // The object as a whole: any field of it may be read.
                    OBJECT_NAME if self.names == Names::Object => self.asks_for_more = true,
                    _ if name.starts_with('@') || CEL_NAMES.contains(&name) || self.names.knows(name) => {}
                    _ => drop(self.unknown.get_or_insert_with(|| short(name))),
                }
            }
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name)
                    if self.names == Names::Object
                        && name == OBJECT_NAME
                        && !bound.contains(&OBJECT_NAME) =>
                {
                    self.asks_for_more |= !matches!(&*select.field, "apiVersion" | "kind" | "metadata");
                }
                _ => self.collect_names(&select.operand, bound),
            },
            Expr::Call(call) => {
                call.target.iter().for_each(|target| self.collect_names(target, bound));
                call.args.iter().for_each(|argument| self.collect_names(argument, bound));
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.collect_names(element, bound)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr, bound)),
            Expr::Struct(it) => it.entries.iter().for_each(|entry| self.entry(&entry.expr, bound)),
            Expr::Comprehension(it) => {
                self.collect_names(&it.iter_range, bound);
                self.collect_names(&it.accu_init, bound);
                let before = bound.len();
                bound.push(&it.iter_var);
                bound.extend(it.iter_var2.as_deref());
                bound.push(&it.accu_var);
                self.collect_names(&it.loop_cond, bound);
                self.collect_names(&it.loop_step, bound);
                self.collect_names(&it.result, bound);
                bound.truncate(before);
            }
        }
    }

    fn entry<'e>(&mut self, entry: &'e EntryExpr, bound: &mut Vec<&'e str>) {
        match entry {
            EntryExpr::StructField(field) => self.collect_names(&field.value, bound),
            EntryExpr::MapEntry(entry) => {
                self.collect_names(&entry.key, bound);
                self.collect_names(&entry.value, bound);
            }
        }
    }
}

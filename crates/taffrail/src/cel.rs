//! Parses and evaluates CEL expressions from users and clusters.
//!
//! The interpreter recurses while it parses and evaluates, so it runs on a thread of its own with a deep stack. The
//! cost of an evaluation is bounded; if one does not end all the same, that thread is abandoned and a new one takes its
//! place.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use taffrail_rules::cel::{
    InvalidExpression, Names, Predicate, PredicateAnswer, Program, REQUIRED_STACK, Reading, check_size,
};
use taffrail_rules::computed;

/// Time limit for parsing an expression, or evaluating it once. Either takes milliseconds at most; a busy machine may
/// delay them.
const LIMIT: Duration = Duration::from_secs(5);

/// Parses and evaluates expressions on a thread with a deep stack. Clones share the thread, which the first expression
/// starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interpreter {
    jobs: Arc<Mutex<Option<Sender<Job>>>>,
}

/// A parsed CEL expression, and the interpreter that evaluates it. A result other than true or false is a fault.
pub(crate) struct Expression {
    text: String,
    program: Arc<Program>,
    interpreter: Interpreter,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl Interpreter {
    /// Parses an expression that may use only the variables `names`.
    ///
    /// # Errors
    /// Fails if the text is not an expression, is too large, uses another variable, takes longer than [`LIMIT`] to
    /// parse, or if the interpreter's thread cannot be started or ends.
    pub(crate) fn read(&self, text: &str, names: Names) -> Result<Expression, InvalidExpression> {
        self.read_at_cost(text, names).0
    }

    /// Parses like [`Interpreter::read`]; also returns the CPU time that it took: [`LIMIT`] if it did not end in time,
    /// zero if the text is too large or the thread failed.
    fn read_at_cost(&self, text: &str, names: Names) -> (Result<Expression, InvalidExpression>, Duration) {
        if let Err(why) = check_size(text) {
            return (Err(why), Duration::ZERO);
        }
        let own = text.to_owned();
        match self.run(move || at_cost(|| Program::read(&own, names))) {
            Ok((program, took)) => {
                let read = |program| Expression {
                    text: text.to_owned(),
                    program: Arc::new(program),
                    interpreter: self.clone(),
                };
                (program.map(read), took)
            }
            Err(NoResult::TooSlow) => (Err(InvalidExpression::TooSlow(LIMIT)), LIMIT),
            Err(NoResult::Broken(why)) => (Err(InvalidExpression::Broken(why)), Duration::ZERO),
        }
    }

    /// Parses an expression from an object of a cluster, like [`Interpreter::read`]; the result also holds the CPU time
    /// that it took, which is charged to the object's author.
    pub(crate) fn read_of_cluster(&self, text: &str, names: Names) -> Reading {
        let (expression, took) = self.read_at_cost(text, names);
        Reading { expression: expression.map(|it| Box::new(it) as Box<dyn Predicate>), took }
    }

    /// Runs `work` on the interpreter's thread, starting it if there is none, and returns its result. Fails if the
    /// result, with what the thread does before, takes longer than [`LIMIT`], or the thread cannot be started or ends.
    fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, NoResult> {
        let broken = |why: &dyn fmt::Display| NoResult::Broken(why.to_string());
        let (result, outcome) = sync_channel(1);
        // The caller may have given up.
        let job: Job = Box::new(move || drop(result.send(work())));
        {
            let mut thread = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let unsent = match thread.as_ref() {
                Some(jobs) => jobs.send(job).err().map(|unsent| unsent.0),
                None => Some(job),
            };
            if let Some(job) = unsent {
                let jobs = start().map_err(|error| broken(&error))?;
                // The new thread waits for jobs, so sending cannot fail.
                let _ = jobs.send(job);
                *thread = Some(jobs);
            }
        }
        outcome.recv_timeout(LIMIT).map_err(|error| {
            *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = None;
            match error {
                RecvTimeoutError::Timeout => NoResult::TooSlow,
                RecvTimeoutError::Disconnected => {
                    broken(&"the CEL interpreter crashed while it worked on the expression")
                }
            }
        })
    }
}

impl Predicate for Expression {
    fn text(&self) -> &str {
        &self.text
    }

    fn asks_for_metadata_only(&self) -> bool {
        self.program.asks_for_metadata_only()
    }

    fn evaluate(&self, variables: &[(&str, &serde_json::Value)]) -> PredicateAnswer {
        self.evaluate_at_cost(variables).0
    }

    fn evaluate_at_cost(&self, variables: &[(&str, &serde_json::Value)]) -> (PredicateAnswer, Duration) {
        let variables: Vec<(String, serde_json::Value)> =
            variables.iter().map(|(name, tree)| ((*name).to_owned(), (*tree).clone())).collect();
        let program = Arc::clone(&self.program);
        let answer = self.interpreter.run(move || {
            at_cost(|| {
                let variables: Vec<_> = variables.iter().map(|(name, tree)| (name.as_str(), tree)).collect();
                program.evaluate(&variables)
            })
        });
        match answer {
            Ok(answer) => answer,
            Err(NoResult::TooSlow) => (
                PredicateAnswer::Fault(format!("evaluating the expression took longer than {LIMIT:?}")),
                LIMIT,
            ),
            Err(NoResult::Broken(why)) => (PredicateAnswer::Fault(why), Duration::ZERO),
        }
    }
}

/// Runs `work` on this thread; also returns the CPU time that it took, zero if that cannot be measured.
fn at_cost<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = computed();
    let done = work();
    (done, computed().zip(began).map_or(Duration::ZERO, |(now, began)| now.saturating_sub(began)))
}

/// The reason why the interpreter's thread returned no result: it took longer than [`LIMIT`] (`TooSlow`), or could not
/// be started or ended (`Broken`, with the reason).
enum NoResult {
    TooSlow,
    Broken(String),
}

/// A parse or an evaluation for the thread of the interpreter.
type Job = Box<dyn FnOnce() + Send>;

fn start() -> std::io::Result<Sender<Job>> {
    let (jobs, todo) = channel::<Job>();
    let work = move || todo.into_iter().for_each(|job| job());
    thread::Builder::new().name("cel".to_owned()).stack_size(REQUIRED_STACK).spawn(work)?;
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use taffrail_rules::cel::{MAX_LENGTH, MAX_OPENINGS, MAX_OPERATORS};

    use super::*;

    fn read(text: &str) -> Result<Expression, InvalidExpression> {
        Interpreter::default().read(text, Names::Object)
    }

    #[test]
    fn expressions_evaluate_on_an_object() {
        let object = json!({
            "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"tier": "gold"}, "generation": 3},
            "spec": {"replicas": 3, "paused": false, "share": 0.5},
            "status": {"readyReplicas": 2, "nothing": null,
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]},
        });
        for (text, expected) in [
            ("object.status.readyReplicas >= 2", Some(PredicateAnswer::True)),
            ("object.status.readyReplicas + 1 == object.spec.replicas", Some(PredicateAnswer::True)),
            ("object.status.readyReplicas == object.spec.replicas", Some(PredicateAnswer::False)),
            ("object.spec.share < 1", Some(PredicateAnswer::True)),
            ("!object.spec.paused && object.metadata.labels.tier == 'gold'", Some(PredicateAnswer::True)),
            ("object.metadata.labels['tier'].startsWith('go')", Some(PredicateAnswer::True)),
            ("object.metadata.name.matches('^w.b$')", Some(PredicateAnswer::True)),
            (
                "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
                Some(PredicateAnswer::True),
            ),
            ("object.status.conditions.all(c, c.status == 'True')", Some(PredicateAnswer::False)),
            (
                "object.status.conditions.filter(it, it.status == 'True').map(it, it.type) == ['Ready']",
                Some(PredicateAnswer::True),
            ),
            ("has(object.status.phase)", Some(PredicateAnswer::False)),
            ("object.?status.?phase.orValue('none') == 'none'", Some(PredicateAnswer::True)),
            ("type(object.spec.replicas) == int", Some(PredicateAnswer::True)),
            (
                "object.status.phase == 'Running'",
                Some(PredicateAnswer::Missing("there is no 'phase' yet".to_owned())),
            ),
            ("object.status.nothing > 1", None),
        ] {
            let said = read(text).unwrap().evaluate(&[("object", &object)]);
            match expected {
                Some(expected) => assert_eq!(said, expected, "{text}"),
                None => assert!(matches!(said, PredicateAnswer::Missing(_)), "{text}: {said:?}"),
            }
        }
        for (text, why) in [
            ("object.metadata.name", "its result is a string, not true or false"),
            ("object.metadata.name.unheard()", "there is no function 'unheard'"),
            ("object.spec.replicas / 0 == 1", "ivi"),
        ] {
            let said = read(text).unwrap().evaluate(&[("object", &object)]);
            assert!(matches!(&said, PredicateAnswer::Fault(told) if told.contains(why)), "{text}: {said:?}");
        }
    }

    #[test]
    fn expressions_on_metadata_alone_are_recognised() {
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
    fn invalid_expressions_are_refused_with_their_position() {
        assert!(matches!(read("object.a =="), Err(InvalidExpression::Syntax { line: 1, .. })));
        for (text, unknown) in [("status.phase == 'Running'", "status"), ("object.a.all(c, d)", "d")] {
            let said = read(text);
            assert!(
                matches!(&said, Err(InvalidExpression::UnknownName { name, .. }) if name == unknown),
                "{said:?}"
            );
        }
        assert_eq!(read(&"x".repeat(3000)).map(drop), Err(InvalidExpression::TooLong));
    }

    /// An overflow of the stack would end the process.
    #[test]
    fn deepest_accepted_expressions_do_not_overflow_the_stack() {
        let long = |before: &str, unit: &str, behind: &str| {
            let most = (MAX_LENGTH - before.len() - behind.len()) / unit.len();
            // Those with more of them are not let through.
            let is_operator = unit.contains(['!', '-', '+', '<', '|', '&']);
            let times = if is_operator { most.min(MAX_OPERATORS / 2) } else { most };
            format!("{before}{}{behind}", unit.repeat(times))
        };
        let nested = |open: &str, close: &str| {
            let times = MAX_OPENINGS / open.chars().filter(|it| "([{?".contains(*it)).count();
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
            "(".repeat(MAX_OPENINGS),
            "(".repeat(MAX_OPENINGS + 1),
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
                    let _ = expression.evaluate(&[("object", &object)]);
                }
            }
        }
    }

    #[test]
    fn costly_expression_is_aborted_and_the_next_one_runs() {
        let items: Vec<u32> = (0..250).collect();
        let object = json!({ "a": items });
        let costly = read("object.a.all(a, object.a.all(b, object.a.all(c, a + b + c >= 0)))").unwrap();
        for _ in 0..2 {
            assert_eq!(
                costly.evaluate(&[("object", &object)]),
                PredicateAnswer::Fault("evaluating the expression costs too much".to_owned())
            );
        }
        assert_eq!(
            read("object.a.all(a, a >= 0)").unwrap().evaluate(&[("object", &object)]),
            PredicateAnswer::True
        );
    }
}

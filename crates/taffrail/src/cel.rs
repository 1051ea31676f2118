//! Expressions in CEL, from whomever they are.
//!
//! The interpreter recurses while it reads and evaluates, and knows neither a budget nor an interrupt. So it runs on a thread of its
//! own with a deep stack: what takes too long is given up, and that thread left behind.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use taffrail_apps::wait;
use taffrail_rules::cel::{Answer, Ask, InvalidExpression, Names, Program, STACK, check_size};

/// How long reading an expression, or evaluating it once, may take. What is meant well takes microseconds.
const LIMIT: Duration = Duration::from_secs(2);

/// An expression that is true or false of what it is given.
pub(crate) struct Expression {
    text: String,
    limit: Duration,
    asks_for_metadata_only: bool,
    /// Where it is evaluated; none once it took too long.
    worker: Mutex<Option<Sender<Job>>>,
}

/// What an expression is asked about, by name.
type Variables = Vec<(String, serde_json::Value)>;

/// What it is asked about, and where to send the answer.
struct Job {
    variables: Variables,
    answer: SyncSender<Answer>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl Expression {
    /// Reads an expression that speaks of what it is given by these names.
    ///
    /// # Errors
    /// When it is none, or too large.
    pub(crate) fn read(text: &str, names: Names) -> Result<Expression, InvalidExpression> {
        check_size(text)?;
        let broken = |why: &dyn fmt::Display| InvalidExpression::Broken(why.to_string());
        let (jobs, todo) = channel();
        let (read, outcome) = sync_channel(1);
        let own = text.to_owned();
        thread::Builder::new()
            .name("cel".to_owned())
            .stack_size(STACK)
            .spawn(move || work(&own, names, &read, &todo))
            .map_err(|error| broken(&error))?;
        let asks_for_metadata_only = match outcome.recv_timeout(LIMIT) {
            Ok(outcome) => outcome?,
            Err(RecvTimeoutError::Timeout) => return Err(InvalidExpression::TooSlow(LIMIT)),
            Err(RecvTimeoutError::Disconnected) => return Err(broken(&"the interpreter broke down")),
        };
        let worker = Mutex::new(Some(jobs));
        Ok(Expression { text: text.to_owned(), limit: LIMIT, asks_for_metadata_only, worker })
    }
}

impl Ask for Expression {
    fn written(&self) -> &str {
        &self.text
    }

    fn answer(&self, variables: &[(&str, &serde_json::Value)]) -> Answer {
        let variables = variables.iter().map(|(name, tree)| ((*name).to_owned(), (*tree).clone())).collect();
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, outcome) = sync_channel(1);
        let sent = worker.as_ref().is_some_and(|jobs| jobs.send(Job { variables, answer }).is_ok());
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

impl wait::Expression for Expression {
    fn text(&self) -> &str {
        &self.text
    }

    fn asks_for_metadata_only(&self) -> bool {
        self.asks_for_metadata_only
    }

    fn ask(&self, object: &serde_json::Value) -> wait::Answer {
        match self.answer(&[("object", object)]) {
            Answer::True => wait::Answer::True,
            Answer::False => wait::Answer::False,
            Answer::Missing(what) => wait::Answer::Missing(what),
            Answer::Fault(why) => wait::Answer::Fault(why),
        }
    }
}

/// Reads an expression and answers for one thing after the other, until nobody asks any more.
fn work(text: &str, names: Names, read: &SyncSender<Result<bool, InvalidExpression>>, todo: &Receiver<Job>) {
    let program = match Program::read(text, names) {
        Ok(program) => program,
        Err(error) => return drop(read.send(Err(error))),
    };
    if read.send(Ok(program.asks_for_metadata_only())).is_err() {
        return;
    }
    while let Ok(job) = todo.recv() {
        let variables: Vec<_> = job.variables.iter().map(|(name, tree)| (name.as_str(), tree)).collect();
        // Who asked may have given up.
        let _ = job.answer.send(program.ask(&variables));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use taffrail_apps::wait::{Answer, Expression as _};
    use taffrail_rules::cel::{LONGEST, OPENINGS};

    use super::*;

    fn read(text: &str) -> Result<Expression, InvalidExpression> {
        Expression::read(text, Names::Object)
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

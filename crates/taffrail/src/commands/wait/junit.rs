//! Writes the JUnit XML report for CI systems, with a test case for each target.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use jiff::SignedDuration;
use taffrail_api::{WaitChange, WaitSummary};
use taffrail_apps::wait::{Row, WaitState};
use taffrail_status::Status;

use crate::program;

/// Writes the report. Each target comes with the time until it met the condition, or until the end.
pub(super) fn report<'r>(
    out: &mut impl Write,
    summary: &WaitSummary,
    rows: impl Iterator<Item = (&'r Row, &'r WaitChange, Duration)>,
) -> io::Result<()> {
    let mut cases = String::new();
    let (mut failures, mut errors) = (0, 0);
    for (row, item, took) in rows {
        let judgement = &row.judgement;
        let class = match judgement.subject.namespace() {
            "" => judgement.cluster.clone(),
            namespace => format!("{}.{namespace}", judgement.cluster),
        };
        let (class, name) = (escaped(&class), escaped(&item.target));
        let begin =
            format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{:.3}\"", took.as_secs_f64());
        let element = match judgement.verdict {
            WaitState::Met => {
                cases.push_str(&format!("{begin}/>\n"));
                continue;
            }
            // An unobserved target is an error, not a failure.
            WaitState::Unobserved => {
                errors += 1;
                "error"
            }
            WaitState::Waiting | WaitState::Hopeless => {
                failures += 1;
                "failure"
            }
        };
        let kind = match item.status {
            None => "Unobserved",
            // What was waited for is something else, such as a revision.
            Some(Status::Current) => "ConditionNotMet",
            Some(status) => status.as_str(),
        };
        let mut text = String::new();
        for link in &item.chain {
            let object = &link.object;
            let place =
                if object.namespace.is_empty() { String::new() } else { format!("{}/", object.namespace) };
            let reason = if link.reason.is_empty() { String::new() } else { format!(" {}", link.reason) };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{} {place}{} is {}{reason}: {}",
                object.kind, object.name, link.status, link.message
            );
        }
        for command in &item.next {
            let _ = writeln!(text, "$ {}", program::typed(command));
        }
        cases.push_str(&format!(
            "{begin}>\n      <{element} type=\"{kind}\" message=\"{}\">{}</{element}>\n    </testcase>\n",
            escaped(&item.message),
            escaped(&text)
        ));
    }
    let name = escaped(&format!("wait --for={}", summary.until));
    // JUnit's timestamp is the start of a suite.
    let took = SignedDuration::try_from_secs_f64(summary.seconds).unwrap_or_default();
    let start = summary.time.checked_sub(took).unwrap_or(summary.time).strftime("%Y-%m-%dT%H:%M:%SZ");
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{:.3}\"",
        summary.targets, summary.seconds
    );
    write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"taffrail\" {counts}>\n  <testsuite name=\"{name}\" \
         timestamp=\"{start}\" {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// Escapes a text for XML, and drops control characters other than tabs and line feeds, and U+FFFE and U+FFFF.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            _ if character.is_control() => {}
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn text_from_outside_breaks_no_report() {
        assert_eq!(escaped("a<b & \"c\">\u{1b}[31m\0\n"), "a&lt;b &amp; &quot;c&quot;&gt;[31m\n");
    }
}

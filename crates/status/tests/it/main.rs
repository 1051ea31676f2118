//! Tests of the status core from the outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set up its case fails")]
#![expect(clippy::disallowed_methods, reason = "the golden cases are files")]

#[macro_use]
#[path = "../../../../tests/cases.rs"]
mod cases;

mod assess;
mod augment;
mod config_sync;
mod flux;
mod golden;
mod kstatus;
mod rollup;

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_object::json::Parser;
use taffrail_status::{ObjectContext, Rules, Verdict};

/// The time at which objects are judged where the time does not matter.
const NOW: Timestamp = Timestamp::constant(1_772_366_400, 0);

/// Judges the object in `text`, once from its text and once from a parsed tree; asserts that both verdicts are equal
/// and returns it.
fn judge(rules: &dyn Rules, text: &str) -> Result<Verdict, String> {
    let mut parser = Parser::new();
    let document = parser.parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let object = Object::new(document.root()).map_err(|error| error.to_string())?;
    let verdict = rules.judge(&object, &ObjectContext::default(), NOW).map_err(|error| error.to_string());
    if let Ok(tree) = serde_json::from_str::<serde_json::Value>(text) {
        let object = Object::new((&tree).into()).map_err(|error| error.to_string())?;
        assert_eq!(
            rules.judge(&object, &ObjectContext::default(), NOW).map_err(|error| error.to_string()),
            verdict,
            "{text}"
        );
    }
    verdict
}

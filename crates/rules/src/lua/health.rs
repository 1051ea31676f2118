//! Converts the return values of health scripts.

use serde_json::Value as Tree;
use taffrail_status::Verdict;

use super::results::{Health, HealthWord};
use crate::script::cut;
use crate::yaml_rules;

/// Converts a returned table to a health, whose word is `Unknown` if `status` is not one of Argo CD's words. Returns
/// `None` if it is a list, or if `status` or `message` is neither a text nor null; ignores other keys.
pub(super) fn read(tree: &Tree) -> Option<Health> {
    let Tree::Object(fields) = tree else { return None };
    let (mut word, mut message) = ("", "");
    for (key, value) in fields {
        let field = match key.to_ascii_lowercase().as_str() {
            "status" => &mut word,
            "message" => &mut message,
            _ => continue,
        };
        *field = match value {
            Tree::String(text) => text,
            Tree::Null => "",
            _ => return None,
        };
    }
    Some(match HealthWord::read(word) {
        Some(word) => Health { word, message: cut(message.to_owned()) },
        None => {
            Health { word: HealthWord::Unknown, message: "Lua returned an invalid health status".to_owned() }
        }
    })
}

impl Health {
    /// Converts the health to a verdict. The verdict's rule is `rule`, `#` and Argo CD's word.
    pub(super) fn verdict(self, rule: &str) -> Verdict {
        let rule = format!("{rule}#{}", self.word);
        let reason = Some(self.word.as_str().to_owned());
        let suspended = self.word == HealthWord::Suspended;
        Verdict { suspended, ..yaml_rules::verdict(self.word.status(), self.message, reason, rule) }
    }
}

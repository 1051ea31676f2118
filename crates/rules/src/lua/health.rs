//! What scripts say of health.

use serde_json::Value as Tree;
use taffrail_status::Verdict;

use super::results::{Health, HealthWord};
use crate::form;
use crate::script::cut;

/// What a table says; `None`: nothing, as it is none of health.
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
    /// As one of our verdicts; `rule` is whose script said so, and Argo CD's word is put behind it.
    pub(super) fn verdict(self, rule: &str) -> Verdict {
        let rule = format!("{rule}#{}", self.word);
        let reason = Some(self.word.as_str().to_owned());
        let suspended = self.word == HealthWord::Suspended;
        Verdict { suspended, ..form::verdict(self.word.status(), self.message, reason, rule) }
    }
}

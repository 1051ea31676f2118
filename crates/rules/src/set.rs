//! All rules in their order.

use jiff::{SignedDuration, Timestamp};
use taffrail_status::json::Value;
use taffrail_status::{ComputeError, Object, Rules, Taffrail, Verdict};

use crate::form::{self, Ruling};
use crate::layer::{Found, Layer, Origin};
use crate::script::Script;

/// How long a controller may take before it writes the first status of a custom resource without rules of its own.
const UNSEEN: SignedDuration = SignedDuration::from_mins(5);

/// Rules in their order: the user's, the cluster's, those that are shipped, then what [`Taffrail`] says.
///
/// What the rules of one origin do not decide is asked of the next.
#[derive(Debug, Default)]
pub struct RuleSet {
    /// By origin.
    layers: Vec<Layer>,
    /// Those in other forms, by origin.
    scripts: Vec<Box<dyn Script>>,
}

impl RuleSet {
    /// No rules but those that are built in.
    pub fn bare() -> RuleSet {
        RuleSet::default()
    }

    /// With these rules too, in the place that their origin gives them; behind others of the same origin.
    pub fn with(mut self, layer: Layer) -> RuleSet {
        let behind = self.layers.partition_point(|it| it.origin() <= layer.origin());
        self.layers.insert(behind, layer);
        self
    }

    /// With these rules in another form too: they are asked before those of our own form of the same origin.
    pub fn with_script(mut self, script: Box<dyn Script>) -> RuleSet {
        let behind = self.scripts.partition_point(|it| it.origin() <= script.origin());
        self.scripts.insert(behind, script);
        self
    }

    /// The rules in other forms, in the order in which they are asked.
    pub fn scripts(&self) -> impl Iterator<Item = &dyn Script> {
        self.scripts.iter().map(|script| &**script)
    }

    /// The rules that are asked about a kind, in their order.
    pub fn find(&self, group: &str, kind: &str) -> impl Iterator<Item = Found<'_>> {
        self.layers.iter().filter_map(move |layer| layer.find(group, kind))
    }

    /// All rules in their order, of each origin by group and kind.
    pub fn all(&self) -> Vec<Found<'_>> {
        self.layers.iter().flat_map(Layer::all).collect()
    }

    /// Judges an object; `has_status_subresource` says whether it is a custom resource with a status subresource, which the
    /// object alone does not tell.
    ///
    /// # Errors
    /// As [`Rules::judge`].
    pub fn judge_knowing(
        &self,
        object: &Object<'_>,
        now: Timestamp,
        has_status_subresource: Option<bool>,
    ) -> Result<Verdict, ComputeError> {
        let is_deleted = || {
            object
                .metadata()
                .and_then(|metadata| metadata.get("deletionTimestamp"))
                .is_some_and(is_no_empty_text)
        };
        let mut found = self.find(object.group(), object.kind()).peekable();
        let is_unknown = found.peek().is_none() && self.scripts.is_empty();
        if is_unknown && has_status_subresource != Some(true) || is_deleted() {
            return Taffrail.judge(object, now);
        }
        let mut scripts = self.scripts.iter().peekable();
        let mut of_scripts = |origin: Origin| {
            while let Some(script) = scripts.next_if(|script| script.origin() <= origin) {
                if let Some(verdict) = script.judge(object, now) {
                    return Some(verdict);
                }
            }
            None
        };
        let mut expects_status = has_status_subresource == Some(true);
        for found in found {
            if let Some(verdict) = of_scripts(found.origin) {
                return Ok(verdict);
            }
            expects_status |= found.rules.unseen().is_some();
            match found.rules.judge(object, now) {
                Ruling::Branch(number, verdict) => {
                    let rule = format!("{}#{number}", found.name()).into();
                    return Ok(Verdict { rule, ..verdict });
                }
                Ruling::Early(verdict) => return Ok(verdict),
                Ruling::Undecided => {}
            }
        }
        if let Some(verdict) = of_scripts(Origin::Shipped) {
            return Ok(verdict);
        }
        if has_status_subresource == Some(true)
            && let Some(verdict) = form::first_status(object, now, UNSEEN)
        {
            return Ok(verdict);
        }
        let verdict = Taffrail.judge(object, now)?;
        if verdict.rule == "fallback" && expects_status && !form::has_status(object) {
            let message = "Resource is current, but no controller seems to look at it: it has no status";
            return Ok(Verdict { message: message.into(), ..verdict });
        }
        Ok(verdict)
    }
}

fn is_no_empty_text(value: Value<'_>) -> bool {
    !value.is_null() && !value.is_str("")
}

impl Rules for RuleSet {
    fn judge(&self, object: &Object<'_>, now: Timestamp) -> Result<Verdict, ComputeError> {
        self.judge_knowing(object, now, None)
    }
}

/// Whose rule decided: the origin that the name of a verdict's rule begins with.
pub fn origin_of(rule: &str) -> Option<Origin> {
    let (first, _) = rule.split_once('/')?;
    [Origin::User, Origin::Cluster, Origin::Shipped].into_iter().find(|origin| origin.as_str() == first)
}

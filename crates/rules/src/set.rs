//! The set of all rules, in the order in which they are consulted.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{GroupKind, Object};
use taffrail_status::assess::{Costs, Options};
use taffrail_status::{
    ActiveRules, ClusterRules, ComputeError, NamedCluster, ObjectContext, Rules, Taffrail, Teacher,
    TeachingTime, Verdict, Voice,
};

use crate::cel::{Names, Reading};
use crate::cluster_rule_cache::{ClusterRuleCache, TaughtRules};
use crate::layer::{FoundRules, Layer};
use crate::origin::Origin;
use crate::script::{Judged, Script, add_children};
use crate::yaml_rules::{self, KindRules, Ruling};

/// The age below which an object without a status counts as InProgress, if its kind has a status subresource and no
/// rules but those of [`Taffrail`] decide.
const FIRST_STATUS_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// All rules in their order: the user's, the cluster's, the shipped ones, then [`Taffrail`].
///
/// If the rules of one origin do not decide, the next are consulted. An object that is being deleted is judged by
/// [`Taffrail`] alone.
#[derive(Debug, Default)]
pub struct RuleSet {
    /// The rules in YAML, sorted by origin.
    layers: Vec<Layer>,
    /// The rules in foreign languages, sorted by origin.
    scripts: Vec<Box<dyn Script>>,
    cluster_rules: Option<ClusterRuleCache>,
}

impl RuleSet {
    /// Returns a set without YAML rules or scripts, which judges by the rules of [`Taffrail`] alone.
    pub fn bare() -> RuleSet {
        RuleSet::default()
    }

    /// Adds rules in YAML, after those of the same origin that were added before.
    pub fn with(mut self, layer: Layer) -> RuleSet {
        let behind = self.layers.partition_point(|it| it.origin() <= layer.origin());
        self.layers.insert(behind, layer);
        self
    }

    /// Adds rules in a foreign language. They are consulted before rules in YAML of the same origin, and after those in
    /// foreign languages of it that were added before.
    pub fn with_script(mut self, script: Box<dyn Script>) -> RuleSet {
        let behind = self.scripts.partition_point(|it| it.origin() <= script.origin());
        self.scripts.insert(behind, script);
        self
    }

    /// Enables the rules that objects in a cluster define for others ([`ClusterRules::with_cluster_rules`]); `reader`
    /// parses their expressions.
    pub fn teachable(mut self, reader: impl Fn(&str, Names) -> Reading + Send + Sync + 'static) -> RuleSet {
        self.cluster_rules = Some(ClusterRuleCache::new(Box::new(reader)));
        self
    }

    /// Lists the rules in foreign languages, in the order in which they are consulted.
    pub fn scripts(&self) -> impl Iterator<Item = &dyn Script> {
        self.scripts.iter().map(|script| &**script)
    }

    /// Lists the rules in YAML for a kind, in the order in which they are consulted.
    pub fn find(&self, group: &str, kind: &str) -> impl Iterator<Item = FoundRules<'_>> {
        self.layers.iter().filter_map(move |layer| layer.find(group, kind))
    }

    /// Returns these rules with `options`, and with the clusters' own rules if [`RuleSet::teachable`] has enabled them.
    pub fn active<'r>(&'r self, options: &'r Options) -> ActiveRules<'r> {
        ActiveRules { rules: self, cluster_rules: Some(self), options }
    }

    /// Lists all rules in YAML: by origin, then by group and kind.
    pub fn all(&self) -> Vec<FoundRules<'_>> {
        self.layers.iter().flat_map(Layer::all).collect()
    }

    /// Judges as [`Rules::judge`]; `taught` are the rules that objects in the cluster, such as a Kustomization, define
    /// for `object` among others.
    fn judge_taught(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        taught: &[TaughtRules<'_>],
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        // Messages contain texts from the object, which may have any length.
        self.judge_at_length(object, context, taught, now).map(Verdict::bounded)
    }

    fn judge_at_length(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        taught: &[TaughtRules<'_>],
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        let expects_status = context.has_status_subresource == Some(true);
        let mut found = self.find(object.group(), object.kind()).peekable();
        let is_unknown = found.peek().is_none() && self.scripts.is_empty() && taught.is_empty();
        if is_unknown && !expects_status || is_deleted(object) {
            return Taffrail.judge(object, context, now);
        }
        let users = self.scripts.partition_point(|script| script.origin() <= Origin::User);
        // Taught rules are charged to accounts of their own.
        let own = || self.scripts.iter().enumerate().map(|(number, script)| (Some(number), &**script));
        let taught = taught.iter().map(|script| (None, script as &dyn Script));
        let (users, others) = (own().take(users), own().skip(users));
        let mut scripts = users.chain(taught).chain(others).peekable();
        let mut of_scripts = |origin: Origin| {
            while let Some((number, script)) = scripts.next_if(|(_, script)| script.origin() <= origin) {
                let verdict = match number.zip(context.costs) {
                    Some((number, costs)) => at_cost(costs, number, script, object, context, now),
                    None => script.judge(object, context, now),
                };
                if verdict.is_some() {
                    return verdict;
                }
            }
            None
        };
        let mut awaits_status = expects_status;
        for found in found {
            if let Some(verdict) = of_scripts(found.origin) {
                return Ok(verdict);
            }
            awaits_status |= found.rules.unseen().is_some();
            let ruling = if found.rules.asks_children() {
                among_children(found.rules, object, context, now)
            } else {
                found.rules.judge(object, now, context.costs)
            };
            match ruling {
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
        if expects_status
            && let Some(verdict) = yaml_rules::first_status(object, now, FIRST_STATUS_TIMEOUT, context.costs)
        {
            return Ok(verdict);
        }
        let verdict = Taffrail.judge(object, context, now)?;
        if verdict.rule == "fallback" && awaits_status && !yaml_rules::has_status(object) {
            let message = "Resource is current, but no controller seems to look at it: it has no status";
            return Ok(Verdict { message: message.into(), ..verdict });
        }
        Ok(verdict)
    }
}

/// Runs the script with the index `number` within the limits of [`Costs::run`], if it is about the kind of `object`,
/// and charges its CPU time to the namespace of `object`, or to the claimant; `None` if it does not decide.
fn at_cost(
    costs: &Costs,
    number: usize,
    script: &dyn Script,
    object: &Object<'_>,
    context: &ObjectContext<'_>,
    now: Timestamp,
) -> Option<Verdict> {
    if !script.is_about(object) {
        return None;
    }
    costs.run(number, object, context.claimant, || {
        let Judged { verdict, took, was_stopped } = script.judge_at_cost(object, context, now);
        (verdict, took, was_stopped)
    })
}

/// Judges an object by rules that read its children; returns [`Ruling::Undecided`] if the children are unknown, or if
/// the object nests too deep to be copied.
fn among_children(
    rules: &KindRules,
    object: &Object<'_>,
    context: &ObjectContext<'_>,
    now: Timestamp,
) -> Ruling {
    let tree = context.children.and_then(|_| object.root().to_tree().ok());
    let Some(mut tree) = tree else { return Ruling::Undecided };
    add_children(&mut tree, context);
    Object::new((&tree).into()).map_or(Ruling::Undecided, |object| rules.judge(&object, now, context.costs))
}

fn is_deleted(object: &Object<'_>) -> bool {
    let deletion = object.metadata().and_then(|metadata| metadata.get("deletionTimestamp"));
    deletion.is_some_and(is_no_empty_text)
}

fn is_no_empty_text(value: Value<'_>) -> bool {
    !value.is_null() && !value.is_str("")
}

impl Rules for RuleSet {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        self.judge_taught(object, context, &[], now)
    }

    fn reads_children(&self, group: &str, kind: &str) -> bool {
        self.layers.iter().any(|layer| layer.reads_children(group, kind))
            || self.scripts.iter().any(|script| script.reads_children(group, kind))
    }

    fn cluster_kinds(&self) -> Vec<GroupKind> {
        let mut kinds = self.layers.iter().flat_map(Layer::cluster_kinds).cloned().collect::<Vec<_>>();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    fn named_cluster(&self, object: &Object<'_>) -> Option<NamedCluster> {
        let fields = self.layers.iter().find_map(|layer| layer.cluster_fields(object.group(), object.kind()));
        fields.map(|fields| fields.named(object))
    }
}

impl ClusterRules for RuleSet {
    fn with_cluster_rules<'r>(
        &'r self,
        teachers: &[Teacher<'_>],
        spent: &'r TeachingTime,
    ) -> Option<Box<dyn Rules + 'r>> {
        let cache = self.cluster_rules.as_ref()?;
        let taught = teachers.iter().filter_map(|teacher| cache.taught_rules(teacher, spent));
        let (scripts, warnings): (Vec<_>, Vec<_>) = taught.partition(|rules| rules.voice() == Voice::Full);
        let has_any = !(scripts.is_empty() && warnings.is_empty());
        has_any.then(|| Box::new(Taught { rules: self, scripts, warnings }) as Box<dyn Rules + 'r>)
    }

    fn unmet_dependency(
        &self,
        object: &Object<'_>,
        dependencies: &[Object<'_>],
        spent: &TeachingTime,
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let cache = self.cluster_rules.as_ref();
        cache.map(|cache| cache.unmet_dependency(object, dependencies, spent, goes_on)).unwrap_or_default()
    }
}

/// A [`RuleSet`], and the health rules that [teachers](Teacher) define for other objects.
struct Taught<'r> {
    rules: &'r RuleSet,
    scripts: Vec<TaughtRules<'r>>,
    /// The rules of [`Voice::OnlyWorse`]: the worst of their verdicts replaces a better one, except one by the user's
    /// own rules.
    warnings: Vec<TaughtRules<'r>>,
}

impl Rules for Taught<'_> {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        let verdict = self.rules.judge_taught(object, context, &self.scripts, now)?;
        // A verdict by the user's own rules is not changed by a cluster's.
        if self.warnings.is_empty() || is_deleted(object) || origin_of(&verdict.rule) == Some(Origin::User) {
            return Ok(verdict);
        }
        let others = self.warnings.iter().filter_map(|script| script.judge(object, context, now));
        Ok(others.fold(verdict, |worst, other| if other.status < worst.status { other } else { worst }))
    }

    fn reads_children(&self, group: &str, kind: &str) -> bool {
        let heard = || self.scripts.iter().chain(&self.warnings);
        self.rules.reads_children(group, kind) || heard().any(|script| script.reads_children(group, kind))
    }
}

/// Returns the origin that the first part of a rule name states (`user/…`, `cluster/…`, `shipped/…`); `None` for all
/// other rule names, such as `builtin/Pod` and `generic/ready`.
pub fn origin_of(rule: &str) -> Option<Origin> {
    let (first, _) = rule.split_once('/')?;
    [Origin::User, Origin::Cluster, Origin::Shipped].into_iter().find(|origin| origin.as_str() == first)
}

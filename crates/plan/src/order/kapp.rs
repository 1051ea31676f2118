//! kapp's groups of changes, and the rules that it has of its own: `pkg/kapp/config/default.go`.
//!
//! Changes are numbered: first the declared objects, which are upserted, then the pruned ones, which are deleted.

use std::collections::HashMap;

use taffrail_object::{GroupKind, ObjectKey};

use super::{OrderInput, is_namespace};
use crate::manifests::{ChangeAction, StatedChanges, is_definition};

/// The API groups whose kinds are not custom resources for kapp.
const BUILT_IN: [&str; 24] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "metrics.k8s.io",
    "migration.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    STORAGE_API,
];

const STORAGE_API: &str = "storage.k8s.io";
const RBAC_API: &str = "rbac.authorization.k8s.io";

/// The kinds of `pod-related`, each with the versions that count; no version stands for all.
const POD_RELATED: [(&str, &str, &[&str]); 12] = [
    ("extensions", "NetworkPolicy", &["v1beta1"]),
    ("networking.k8s.io", "NetworkPolicy", &["v1"]),
    ("", "ResourceQuota", &[]),
    ("", "LimitRange", &[]),
    ("extensions", "PodSecurityPolicy", &["v1beta1"]),
    ("policy", "PodSecurityPolicy", &["v1beta1"]),
    ("policy", "PodDisruptionBudget", &["v1beta1"]),
    ("scheduling.k8s.io", "PriorityClass", &[]),
    ("node.k8s.io", "RuntimeClass", &["v1alpha1", "v1beta1"]),
    ("", "ServiceAccount", &[]),
    ("", "Secret", &[]),
    ("", "ConfigMap", &[]),
];

/// The number of pairs of objects that stated rules may order; more are an error.
pub(super) const MAX_PAIRS: usize = 100_000;

/// A change of an object.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) key: &'a ObjectKey,
    /// The version; `None` for a pruned object.
    version: Option<&'a str>,
    pub(super) stated: &'a StatedChanges,
    pub(super) action: ChangeAction,
}

/// A rule that gives way where it would close a circle: a change comes before or after those of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Wish {
    pub(super) subject: usize,
    pub(super) is_before: bool,
    /// The index of the group.
    pub(super) group: usize,
}

/// The changes of a sync, by group.
pub(super) struct Changes<'a> {
    all: Vec<Change<'a>>,
    defines: Vec<Option<GroupKind>>,
    index: HashMap<(String, ChangeAction), usize>,
    /// The changes of each group.
    pub(super) groups: Vec<Vec<usize>>,
}

impl<'a> Changes<'a> {
    /// Sorts the changes into groups; `takes_part` returns true for the declared objects that a sync upserts.
    pub(super) fn of(input: &OrderInput<'a>, takes_part: impl Fn(usize) -> bool) -> Changes<'a> {
        let declared = input.objects.iter().map(|it| Change {
            key: &it.key,
            version: Some(it.api_version.rsplit('/').next().unwrap_or_default()),
            stated: &it.options.changes,
            action: ChangeAction::Upsert,
        });
        let pruned = input.pruned.iter().map(|it| Change {
            key: &it.key,
            version: None,
            stated: &it.changes,
            action: ChangeAction::Delete,
        });
        let defines = input.objects.iter().map(|it| it.defines());
        let mut changes = Changes {
            all: declared.chain(pruned).collect(),
            defines: defines.chain(input.pruned.iter().map(|it| it.defines.clone())).collect(),
            index: HashMap::new(),
            groups: Vec::new(),
        };
        for at in 0..changes.all.len() {
            if at >= input.objects.len() || takes_part(at) {
                changes.add(at);
            }
        }
        changes
    }

    pub(super) fn get(&self, at: usize) -> Option<&Change<'a>> {
        self.all.get(at)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    fn add(&mut self, at: usize) {
        let Change { key, action, stated, .. } = self.all[at];
        let defines = self.defines[at].as_ref();
        // What a live object misspells states nothing.
        let stated = stated.groups.iter().filter_map(|group| group.value.on(key, defines).ok());
        for name in stated.chain(self.built_in(at)).collect::<Vec<_>>() {
            let next = self.groups.len();
            let group = *self.index.entry((name, action)).or_insert(next);
            if group == next {
                self.groups.push(Vec::new());
            }
            if self.groups[group].last() != Some(&at) {
                self.groups[group].push(at);
            }
        }
    }

    /// Returns the index of a group that has changes of this sort.
    fn find(&self, name: String, action: ChangeAction) -> Option<usize> {
        self.index.get(&(name, action)).copied()
    }

    /// Returns the rules that a change states and that apply to it, each with its number and the changes of its group.
    pub(super) fn stated_rules(&self, at: usize) -> impl Iterator<Item = (usize, bool, usize)> {
        let change = self.all.get(at);
        let rules =
            change.into_iter().flat_map(|it| it.stated.rules.iter().enumerate().map(move |rule| (it, rule)));
        rules.filter_map(move |(change, (number, rule))| {
            let rule = &rule.value;
            let name = rule.group.on(change.key, self.defines[at].as_ref()).ok()?;
            let group = self.find(name, rule.target).filter(|_| rule.action == change.action)?;
            Some((number, rule.is_before, group))
        })
    }

    /// Returns the rules that give way, the ones that count most first: those of live objects, then kapp's own.
    ///
    /// kapp lets two of its own rules not give way, a Namespace and a definition before what needs them. Here they are
    /// implied as in all dialects.
    pub(super) fn wishes(&self, takes_part: impl Fn(usize) -> bool) -> Vec<Wish> {
        let mut wishes = Vec::new();
        for at in (0..self.all.len()).filter(|at| self.all[*at].action == ChangeAction::Delete) {
            let of_live = self.stated_rules(at);
            wishes.extend(of_live.map(|(_, is_before, group)| Wish { subject: at, is_before, group }));
        }
        // The later a rule stands in kapp's configuration, the more it counts.
        let all: Vec<usize> = (0..self.all.len()).filter(|at| takes_part(*at)).collect();
        for rule in OWN_RULES.iter().rev() {
            for &at in &all {
                self.add_own(rule, at, &mut wishes);
            }
        }
        wishes
    }

    fn add_own(&self, rule: &OwnRule, at: usize, wishes: &mut Vec<Wish>) {
        let change = &self.all[at];
        let is_skipped = rule.may_be_skipped && change.stated.skips_default_rules.is_some();
        if change.action != rule.action || is_skipped || !(rule.applies)(change) {
            return;
        }
        for group in rule.groups {
            let mut name = format!("{OWN}{group}");
            if *group == NAMESPACE {
                name.push_str(&change.key.namespace);
            }
            let wish = |group| Wish { subject: at, is_before: rule.is_before, group };
            wishes.extend(self.find(name, rule.action).map(wish));
        }
    }

    /// Returns the names of kapp's own groups that a change belongs to.
    fn built_in(&self, at: usize) -> Vec<String> {
        let change = &self.all[at];
        let mut names = Vec::new();
        let mut add = |name: &str| names.push(format!("{OWN}{name}"));
        if is_definition(change.key) {
            add("crds");
            if let Some(GroupKind { group, kind }) = &self.defines[at] {
                add(&format!("crds-{group}-{kind}"));
            }
        }
        if is_namespace(change.key) {
            add("namespaces");
            add(&format!("{NAMESPACE}{}", change.key.name));
        }
        let own: [(&str, Matches); 9] = [
            ("storage-class", is_storage_class),
            ("storage", is_storage),
            ("rbac-roles", is_role),
            ("rbac-role-bindings", is_binding),
            ("rbac", is_rbac),
            ("pod-related", is_pod_related),
            ("serviceaccount", is_service_account),
            ("kapp-controller-app", is_app),
            ("kapp-controller-packageinstall", is_package_install),
        ];
        own.into_iter().filter(|(_, is_in)| is_in(change)).for_each(|(name, _)| add(name));
        names
    }
}

/// A test for the changes that a rule or a group is about.
type Matches = fn(&Change<'_>) -> bool;

const OWN: &str = "change-groups.kapp.k14s.io/";

/// The start of the group of a Namespace, before its name.
const NAMESPACE: &str = "namespaces-";

/// A rule of kapp's own that gives way. The action of the changes in its groups is that of the rule.
struct OwnRule {
    applies: Matches,
    action: ChangeAction,
    is_before: bool,
    groups: &'static [&'static str],
    /// True if an annotation leaves the rule out for an object.
    may_be_skipped: bool,
}

const CONTROLLED: &[&str] = &["kapp-controller-packageinstall", "kapp-controller-app"];

/// kapp's own rules that give way, in the order of its configuration.
const OWN_RULES: [OwnRule; 8] = [
    OwnRule {
        applies: is_custom,
        action: ChangeAction::Delete,
        is_before: true,
        groups: &["crds"],
        may_be_skipped: true,
    },
    OwnRule {
        applies: |it| !is_custom(it) && !is_definition(it.key),
        action: ChangeAction::Delete,
        is_before: false,
        groups: &["crds"],
        may_be_skipped: true,
    },
    OwnRule {
        applies: is_service_account,
        action: ChangeAction::Delete,
        is_before: true,
        groups: &[NAMESPACE],
        may_be_skipped: true,
    },
    OwnRule {
        applies: is_binding,
        action: ChangeAction::Upsert,
        is_before: false,
        groups: &["rbac-roles"],
        may_be_skipped: true,
    },
    OwnRule {
        applies: |it| is_service_account(it) || is_rbac(it),
        action: ChangeAction::Upsert,
        is_before: true,
        groups: CONTROLLED,
        may_be_skipped: true,
    },
    OwnRule {
        applies: |it| is_service_account(it) || is_rbac(it),
        action: ChangeAction::Delete,
        is_before: false,
        groups: CONTROLLED,
        may_be_skipped: true,
    },
    OwnRule {
        applies: is_storage,
        action: ChangeAction::Upsert,
        is_before: false,
        groups: &["storage-class"],
        may_be_skipped: false,
    },
    OwnRule {
        applies: |it| {
            let is_first = is_storage_class(it) || is_storage(it) || is_rbac(it) || is_pod_related(it);
            !it.key.namespace.is_empty() && !is_first
        },
        action: ChangeAction::Upsert,
        is_before: false,
        groups: &["pod-related", "rbac", "storage-class", "storage"],
        may_be_skipped: false,
    },
];

fn is_of(change: &Change<'_>, group: &str, kinds: &[&str]) -> bool {
    change.key.group == group && kinds.contains(&&*change.key.kind)
}

fn is_custom(change: &Change<'_>) -> bool {
    !BUILT_IN.contains(&&*change.key.group)
}

/// Returns true for a StorageClass. kapp's configuration names it by an API group that does not exist, so that its rules
/// about it never apply; here they do.
fn is_storage_class(change: &Change<'_>) -> bool {
    is_of(change, STORAGE_API, &["StorageClass"])
}

fn is_storage(change: &Change<'_>) -> bool {
    is_of(change, "", &["PersistentVolume", "PersistentVolumeClaim"])
}

fn is_role(change: &Change<'_>) -> bool {
    is_of(change, RBAC_API, &["ClusterRole", "Role"])
}

fn is_binding(change: &Change<'_>) -> bool {
    is_of(change, RBAC_API, &["ClusterRoleBinding", "RoleBinding"])
}

fn is_rbac(change: &Change<'_>) -> bool {
    is_role(change) || is_binding(change)
}

fn is_service_account(change: &Change<'_>) -> bool {
    is_of(change, "", &["ServiceAccount"])
}

fn is_app(change: &Change<'_>) -> bool {
    is_of(change, "kappctrl.k14s.io", &["App"])
}

fn is_package_install(change: &Change<'_>) -> bool {
    is_of(change, "packaging.carvel.dev", &["PackageInstall"])
}

fn is_pod_related(change: &Change<'_>) -> bool {
    POD_RELATED.iter().any(|(group, kind, versions)| {
        let counts = |version: &str| versions.is_empty() || versions.contains(&version);
        is_of(change, group, &[kind]) && change.version.is_none_or(counts)
    })
}

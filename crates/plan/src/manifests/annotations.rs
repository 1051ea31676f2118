//! Options as annotations and labels state them.

use serde_json::{Map, Value};
use taffrail_object::ObjectKey;

use super::changes::{
    CHANGE_GROUP, CHANGE_RULE, ChangeAction, ChangeGroup, ChangeRule, InvalidGroup, PLACEHOLDERS,
};
use super::errors::{ManifestErrorKind as Kind, ManifestWarningKind, sort};
use super::near::{nearest, shown};
use super::options::{ApplyMode, HookDeletePolicy, HookPhase, Removal, Setting, SyncOptions};
use super::substitution;

/// The errors and warnings about the annotations of an object, with their lines.
#[derive(Default)]
pub(super) struct Report {
    pub(super) errors: Vec<(u64, Kind)>,
    pub(super) warnings: Vec<(u64, ManifestWarningKind)>,
}

/// An annotation that states options.
#[derive(Clone, Copy)]
enum Annotation {
    SyncOptions,
    SyncWave,
    Hook,
    HookDeletePolicy,
    CompareOptions,
    IgnoreHealthcheck,
    HelmHook,
    HelmHookWeight,
    HelmHookDeletePolicy,
    HelmResourcePolicy,
    FluxPrune,
    FluxReconcile,
    FluxSsa,
    FluxForce,
    Deletion,
    Mutation,
    OnRemove,
    DependsOn,
    ApplyTimeMutation,
    ChangeGroup,
    ChangeRule,
    ChangeDefaults,
    CreateStrategy,
    UpdateStrategy,
    DeleteStrategy,
    DisableWait,
    Exists,
    Noop,
}

const ARGO_CD: &str = "argocd.argoproj.io/";
const FLUX: &str = "kustomize.toolkit.fluxcd.io/";
const KAPP: &str = "kapp.k14s.io/";

/// The annotations that state options; those of Flux may be labels as well.
const KNOWN: [(&str, Annotation); 28] = [
    ("argocd.argoproj.io/sync-options", Annotation::SyncOptions),
    ("argocd.argoproj.io/sync-wave", Annotation::SyncWave),
    ("argocd.argoproj.io/hook", Annotation::Hook),
    ("argocd.argoproj.io/hook-delete-policy", Annotation::HookDeletePolicy),
    ("argocd.argoproj.io/compare-options", Annotation::CompareOptions),
    ("argocd.argoproj.io/ignore-healthcheck", Annotation::IgnoreHealthcheck),
    ("helm.sh/hook", Annotation::HelmHook),
    ("helm.sh/hook-weight", Annotation::HelmHookWeight),
    ("helm.sh/hook-delete-policy", Annotation::HelmHookDeletePolicy),
    ("helm.sh/resource-policy", Annotation::HelmResourcePolicy),
    ("kustomize.toolkit.fluxcd.io/prune", Annotation::FluxPrune),
    ("kustomize.toolkit.fluxcd.io/reconcile", Annotation::FluxReconcile),
    ("kustomize.toolkit.fluxcd.io/ssa", Annotation::FluxSsa),
    ("kustomize.toolkit.fluxcd.io/force", Annotation::FluxForce),
    ("client.lifecycle.config.k8s.io/deletion", Annotation::Deletion),
    ("client.lifecycle.config.k8s.io/mutation", Annotation::Mutation),
    ("cli-utils.sigs.k8s.io/on-remove", Annotation::OnRemove),
    ("config.kubernetes.io/depends-on", Annotation::DependsOn),
    ("config.kubernetes.io/apply-time-mutation", Annotation::ApplyTimeMutation),
    (CHANGE_GROUP, Annotation::ChangeGroup),
    (CHANGE_RULE, Annotation::ChangeRule),
    ("kapp.k14s.io/disable-default-change-group-and-rules", Annotation::ChangeDefaults),
    ("kapp.k14s.io/create-strategy", Annotation::CreateStrategy),
    ("kapp.k14s.io/update-strategy", Annotation::UpdateStrategy),
    ("kapp.k14s.io/delete-strategy", Annotation::DeleteStrategy),
    ("kapp.k14s.io/disable-wait", Annotation::DisableWait),
    ("kapp.k14s.io/exists", Annotation::Exists),
    ("kapp.k14s.io/noop", Annotation::Noop),
];

/// The annotations that may stand several times, each with a suffix of its own: `kapp.k14s.io/change-rule.first`.
const REPEATED: [&str; 3] = [CHANGE_GROUP, CHANGE_RULE, "kapp.k14s.io/versioned-explicit-ref"];

/// Annotations and labels of the same tools that state nothing about a sync.
const OTHERS: [&str; 43] = [
    "argocd.argoproj.io/ignore-restart-policy",
    "argocd.argoproj.io/tracking-id",
    "argocd.argoproj.io/installation-id",
    "argocd.argoproj.io/ignore-resource-updates",
    "argocd.argoproj.io/ignore-default-links",
    "argocd.argoproj.io/refresh",
    "argocd.argoproj.io/refresh-timestamp",
    "argocd.argoproj.io/application-set-refresh",
    "argocd.argoproj.io/hydrate",
    "argocd.argoproj.io/hydrate-timestamp",
    "argocd.argoproj.io/skip-reconcile",
    "argocd.argoproj.io/deletion-approved",
    "argocd.argoproj.io/manifest-generate-paths",
    "argocd.argoproj.io/client-side-apply-migration-manager",
    "argocd.argoproj.io/managed-by-url",
    "argocd.argoproj.io/secret-type",
    "helm.sh/chart",
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
    "kustomize.toolkit.fluxcd.io/checksum",
    "kustomize.toolkit.fluxcd.io/substitute",
    "cli-utils.sigs.k8s.io/inventory-id",
    "kapp.k14s.io/identity",
    "kapp.k14s.io/original",
    "kapp.k14s.io/original-diff-md5",
    "kapp.k14s.io/original-diff",
    "kapp.k14s.io/original-diff-full",
    "kapp.k14s.io/disable-original",
    "kapp.k14s.io/versioned",
    "kapp.k14s.io/versioned-keep-original",
    "kapp.k14s.io/versioned-explicit-ref",
    "kapp.k14s.io/num-versions",
    "kapp.k14s.io/nonce",
    "kapp.k14s.io/renew-duration",
    "kapp.k14s.io/last-renewed-time",
    "kapp.k14s.io/deploy-logs",
    "kapp.k14s.io/deploy-logs-container-names",
    "kapp.k14s.io/apps-v1-deployment-wait-minimum-replicas-available",
    "kapp.k14s.io/disable-associated-resources-wait",
    "kapp.k14s.io/disable-label-scoping",
    "kapp.k14s.io/disable-default-label-scoping-rules",
    "kapp.k14s.io/disable-default-ownership-label-rules",
    "kapp.k14s.io/owned-for-deletion",
];

const BOOLEANS: &[&str] = &["true", "false"];
const CONSENTS: &[&str] = &["true", "false", "confirm"];

/// The options of `sync-options` that Argo CD reads on objects, with their values.
const OPTIONS: [(&str, &[&str]); 8] = [
    ("Prune", CONSENTS),
    ("Delete", CONSENTS),
    ("PruneLast", BOOLEANS),
    ("Validate", BOOLEANS),
    ("SkipDryRunOnMissingResource", BOOLEANS),
    ("Replace", BOOLEANS),
    ("Force", BOOLEANS),
    ("ServerSideApply", BOOLEANS),
];

/// The options that Argo CD reads only in an Application's `syncPolicy`.
const OPTIONS_OF_APPS: [&str; 6] = [
    "ApplyOutOfSyncOnly",
    "CreateNamespace",
    "PrunePropagationPolicy",
    "ClientSideApplyMigration",
    "FailOnSharedResource",
    "RespectIgnoreDifferences",
];

/// The options of `compare-options` that have a value.
const COMPARE_OPTIONS: [&str; 2] = ["ServerSideDiff", "IncludeMutationWebhook"];

const IGNORE_EXTRANEOUS: &str = "IgnoreExtraneous";

/// Helm's hooks, with the phase that Argo CD runs them in. It applies `crd-install` as any object, and never the others.
const HELM_HOOKS: [(&str, Option<HookPhase>); 12] = [
    ("pre-install", Some(HookPhase::PreSync)),
    ("pre-upgrade", Some(HookPhase::PreSync)),
    ("post-install", Some(HookPhase::PostSync)),
    ("post-upgrade", Some(HookPhase::PostSync)),
    ("pre-delete", Some(HookPhase::PreDelete)),
    ("post-delete", Some(HookPhase::PostDelete)),
    (CRD_INSTALL, None),
    ("pre-rollback", None),
    ("post-rollback", None),
    ("test", None),
    ("test-success", None),
    ("test-failure", None),
];

const CRD_INSTALL: &str = "crd-install";

const HELM_POLICIES: [(&str, HookDeletePolicy); 3] = [
    ("before-hook-creation", HookDeletePolicy::BeforeHookCreation),
    ("hook-succeeded", HookDeletePolicy::HookSucceeded),
    ("hook-failed", HookDeletePolicy::HookFailed),
];

const MODES: [(&str, ApplyMode); 4] = [
    ("Override", ApplyMode::Override),
    ("Merge", ApplyMode::Merge),
    ("IfNotPresent", ApplyMode::IfNotPresent),
    ("Ignore", ApplyMode::Ignore),
];

/// Reads the options that the annotations and labels in an object's `metadata` state; adds what is wrong with them to
/// `report`. `line_of` returns the line of a path in the object.
pub(super) fn read(
    metadata: &Map<String, Value>,
    line_of: &dyn Fn([&str; 3]) -> u64,
    report: &mut Report,
) -> SyncOptions {
    let mut options = SyncOptions::default();
    for field in ["annotations", "labels"] {
        let is_label = field == "labels";
        let members = match metadata.get(field) {
            Some(Value::Object(members)) => members,
            None | Some(Value::Null) => continue,
            Some(other) => {
                let (field, line) = (format!("metadata.{field}"), line_of(["metadata", field, ""]));
                report.errors.push((line, Kind::WrongType { field, found: sort(other), expected: "a map" }));
                continue;
            }
        };
        for (key, value) in members.iter().filter(|(key, _)| !is_label || key.starts_with(FLUX)) {
            if !is_of_tools(key) {
                continue;
            }
            let line = line_of(["metadata", field, key]);
            let stem = without_suffix(key);
            let Some((key, annotation)) = KNOWN.iter().copied().find(|(known, _)| *known == stem) else {
                unknown(key, line, report);
                continue;
            };
            let text = match value {
                Value::String(text) => text,
                other => {
                    let found = sort(other);
                    let kind = Kind::WrongType { field: key.to_owned(), found, expected: "a string" };
                    report.errors.push((line, kind));
                    continue;
                }
            };
            Reader { key, line, options: &mut options, report }.take(annotation, text);
        }
    }
    options
}

impl SyncOptions {
    /// Reads the options that the `metadata` of a live object states. What is misspelt there states nothing, as with the tool
    /// that reads it.
    pub fn of_live(metadata: &Map<String, Value>) -> SyncOptions {
        read(metadata, &|_| 0, &mut Report::default())
    }
}

/// Returns the prefix of a key with its slash, and the rest.
fn split(key: &str) -> Option<(&str, &str)> {
    key.split_at_checked(key.find('/')? + 1)
}

/// Returns the key of an annotation that may stand several times without what tells it from the others.
fn without_suffix(key: &str) -> &str {
    let is_it = |known: &&&str| key.strip_prefix(**known).is_some_and(|rest| rest.starts_with('.'));
    REPEATED.iter().find(is_it).unwrap_or(&key)
}

/// Returns true if the prefix of a key is one of the known annotations.
fn is_of_tools(key: &str) -> bool {
    let prefix = split(key).map(|(prefix, _)| prefix);
    prefix.is_some_and(|prefix| KNOWN.iter().any(|(known, _)| known.starts_with(prefix)))
}

/// Reports an annotation with the prefix of a tool that the tool does not know.
fn unknown(key: &str, line: u64, report: &mut Report) {
    let Some((prefix, name)) = split(key).filter(|_| !OTHERS.contains(&without_suffix(key))) else { return };
    // A misspelt key may have a suffix, too, which no known key resembles.
    let name = if prefix == KAPP { name.split('.').next().unwrap_or(name) } else { name };
    let all = KNOWN.iter().map(|(known, _)| *known).chain(OTHERS);
    let near = nearest(name, all.filter_map(|known| known.strip_prefix(prefix)));
    if let Some(near) = near {
        let annotation = shown(key).into_owned();
        let kind = Kind::UnknownAnnotation { annotation, nearest: format!("{prefix}{near}") };
        report.errors.push((line, kind));
    } else if prefix == ARGO_CD {
        let kind = ManifestWarningKind::UnknownAnnotation(shown(key).into_owned());
        report.warnings.push((line, kind));
    }
}

/// Splits a list at its commas as Argo CD does: without white space around items, and without empty ones.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Reads the options of one annotation.
struct Reader<'r> {
    key: &'static str,
    line: u64,
    options: &'r mut SyncOptions,
    report: &'r mut Report,
}

impl Reader<'_> {
    fn take(mut self, annotation: Annotation, text: &str) {
        match annotation {
            Annotation::SyncOptions => items(text).for_each(|item| self.sync_option(item)),
            Annotation::CompareOptions => items(text).for_each(|item| self.compare_option(item)),
            Annotation::SyncWave | Annotation::HelmHookWeight => {
                if let Some(wave) = self.whole_number(text) {
                    // Argo CD's annotation comes first, by the order of keys.
                    self.options.wave.get_or_insert(wave);
                }
            }
            Annotation::Hook => {
                let all = HookPhase::ALL.map(|phase| (phase.as_str(), Some(phase)));
                let with_skip = [&all[..], &[("Skip", None)]].concat();
                let phases = self.words(text, &with_skip);
                self.hook(phases);
            }
            Annotation::HelmHook => {
                let phases = self.words(text, &HELM_HOOKS);
                let is_plain = items(text).all(|item| item == CRD_INSTALL);
                // Argo CD's annotation wins.
                if !is_plain && self.options.hook.is_none() {
                    self.hook(phases);
                }
            }
            Annotation::HookDeletePolicy => {
                let all = HookDeletePolicy::ALL.map(|policy| (policy.as_str(), policy));
                let policies = self.words(text, &all);
                self.hook_delete_policies(policies);
            }
            Annotation::HelmHookDeletePolicy => {
                let policies = self.words(text, &HELM_POLICIES);
                self.hook_delete_policies(policies);
            }
            Annotation::IgnoreHealthcheck => {
                let is_true = self.word(text, BOOLEANS, "").map(|word| word == "true");
                self.options.ignore_healthcheck = is_true.map(|value| self.setting(value));
            }
            Annotation::HelmResourcePolicy | Annotation::OnRemove => {
                if self.word(text, &["keep"], "").is_some() {
                    self.keep();
                }
            }
            Annotation::Deletion => {
                if self.word(text, &["detach"], "").is_some() {
                    self.keep();
                }
            }
            Annotation::Mutation => {
                if self.word(text, &["ignore"], "").is_some() {
                    self.apply_mode(ApplyMode::IfNotPresent);
                }
            }
            Annotation::FluxPrune => {
                if self.flux_word(text, &["disabled", "enabled"]) == Some("disabled") {
                    self.keep();
                }
            }
            Annotation::FluxReconcile => {
                if self.flux_word(text, &["disabled", "enabled"]) == Some("disabled") {
                    self.apply_mode(ApplyMode::Ignore);
                }
            }
            Annotation::FluxSsa => {
                let word = self.flux_word(text, &MODES.map(|(word, _)| word));
                if let Some((_, mode)) = MODES.iter().find(|(mode, _)| word == Some(mode)) {
                    self.apply_mode(*mode);
                }
            }
            Annotation::FluxForce => {
                if let Some(word) = self.flux_word(text, &["enabled", "disabled"]) {
                    self.boolean("Force", word == "enabled");
                }
            }
            Annotation::DependsOn => self.depends_on(text),
            Annotation::ApplyTimeMutation => match substitution::read(self.key, text) {
                Ok(list) => self.options.substitutions = Some(self.setting(list)),
                Err(kind) => self.fail(kind),
            },
            Annotation::ChangeGroup => {
                if let Some(group) = self.change_group(text) {
                    let stated = self.setting(group);
                    self.options.changes.groups.push(stated);
                }
            }
            Annotation::ChangeRule => self.change_rule(text),
            Annotation::ChangeDefaults => {
                self.options.changes.skips_default_rules = self.flag(text);
            }
            Annotation::CreateStrategy => {
                // A server-side apply takes an object that stands already in any case.
                self.strategy(text, &["fallback-on-update", "fallback-on-update-or-noop"]);
            }
            Annotation::UpdateStrategy => {
                match self.strategy(text, &["fallback-on-replace", "always-replace", "skip"]) {
                    Some("fallback-on-replace") => self.boolean("Force", true),
                    Some("always-replace") => {
                        self.boolean("Replace", true);
                        self.boolean("Force", true);
                    }
                    Some("skip") => self.apply_mode(ApplyMode::IfNotPresent),
                    _ => {}
                }
            }
            Annotation::DeleteStrategy => {
                if self.strategy(text, &["orphan"]) == Some("orphan") {
                    self.keep();
                }
            }
            Annotation::DisableWait => {
                if let Some(flag) = self.flag(text) {
                    self.options.ignore_healthcheck = Some(flag);
                }
            }
            Annotation::Exists | Annotation::Noop => {
                let Some(flag) = self.flag(text) else { return };
                self.apply_mode(ApplyMode::Ignore);
                match annotation {
                    Annotation::Exists => self.options.changes.is_foreign = Some(flag),
                    _ => self.options.changes.is_left_alone = Some(flag),
                }
            }
        }
    }

    fn fail(&mut self, kind: Kind) {
        self.report.errors.push((self.line, kind));
    }

    fn invalid(&mut self, value: &str, expected: String, nearest: Option<&'static str>) {
        let value = shown(value).into_owned();
        self.fail(Kind::InvalidValue { annotation: self.key, value, expected, nearest });
    }

    fn setting<T>(&self, value: T) -> Setting<T> {
        Setting { value, stated_by: self.key, line: self.line }
    }

    /// Returns the word of `known` that `text` is; reports any other text, as a value of `option`.
    fn word(&mut self, text: &str, known: &[&'static str], option: &str) -> Option<&'static str> {
        let found = known.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let of = if option.is_empty() { String::new() } else { format!(" for {option}") };
            let near = nearest(text, known.iter().copied());
            self.invalid(text, format!("{}{of}", known.join(" or ")), near);
        }
        found
    }

    /// Returns the word of `known` that `text` is in any case, as Flux reads it; reports any other text.
    fn flux_word(&mut self, text: &str, known: &[&'static str]) -> Option<&'static str> {
        let found = known.iter().copied().find(|word| word.eq_ignore_ascii_case(text));
        found.or_else(|| self.word(text, known, ""))
    }

    /// Returns the values of the words in a list; reports unknown words, and a list without any.
    fn words<T: Copy>(&mut self, text: &str, known: &[(&'static str, T)]) -> Vec<T> {
        let words: Vec<&'static str> = known.iter().map(|(word, _)| *word).collect();
        if items(text).next().is_none() {
            self.invalid(text, format!("one of {}", words.join(", ")), None);
        }
        let mut found = Vec::new();
        for item in items(text) {
            match known.iter().find(|(word, _)| *word == item) {
                Some((_, value)) => found.push(*value),
                None => {
                    let near = nearest(item, words.iter().copied());
                    self.invalid(item, format!("one of {}", words.join(", ")), near);
                }
            }
        }
        found
    }

    fn whole_number(&mut self, text: &str) -> Option<Setting<i64>> {
        let number = text.parse::<i64>().ok();
        if number.is_none() {
            self.invalid(text, "a whole number".to_owned(), None);
        }
        number.map(|number| self.setting(number))
    }

    fn sync_option(&mut self, item: &str) {
        let (name, value) = item.split_once('=').map_or((item, None), |(name, value)| (name, Some(value)));
        if let Some(option) = OPTIONS_OF_APPS.iter().find(|option| **option == name) {
            let kind = ManifestWarningKind::OptionOfApps(option);
            self.report.warnings.push((self.line, kind));
            return;
        }
        let known = OPTIONS.iter().map(|(option, _)| *option);
        let Some((option, values)) = OPTIONS.iter().copied().find(|(option, _)| *option == name) else {
            let all = known.clone().chain(OPTIONS_OF_APPS);
            let listed = known.collect::<Vec<_>>().join(", ");
            return self.unknown_option(name, nearest(name.trim(), all), listed);
        };
        let Some(word) = self.word(value.unwrap_or_default(), values, option) else { return };
        let consent = match word {
            "true" => Removal::Allowed,
            "false" => Removal::Never,
            _ => Removal::Confirmed,
        };
        let stated = self.setting(consent);
        match option {
            "Prune" => self.exclusive(option, stated, |options| &mut options.prune),
            "Delete" => self.exclusive(option, stated, |options| &mut options.delete),
            _ => self.boolean(option, word == "true"),
        }
    }

    fn compare_option(&mut self, item: &str) {
        if item == IGNORE_EXTRANEOUS {
            self.options.ignore_extraneous = Some(self.setting(true));
            return;
        }
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        let Some(option) = COMPARE_OPTIONS.iter().find(|option| **option == name) else {
            let all = [&COMPARE_OPTIONS[..], &[IGNORE_EXTRANEOUS]].concat();
            return self.unknown_option(item, nearest(name.trim(), all.iter().copied()), all.join(", "));
        };
        if let Some(word) = self.word(value, BOOLEANS, option) {
            self.boolean(option, word == "true");
        }
    }

    fn unknown_option(&mut self, option: &str, nearest: Option<&'static str>, known: String) {
        let option = shown(option).into_owned();
        self.fail(Kind::UnknownOption { annotation: self.key, option, nearest, known });
    }

    /// Sets an option that is true or false.
    fn boolean(&mut self, option: &'static str, value: bool) {
        let stated = self.setting(value);
        self.exclusive(option, stated, |options| match option {
            "PruneLast" => &mut options.prune_last,
            "Validate" => &mut options.validate,
            "SkipDryRunOnMissingResource" => &mut options.skip_dry_run_on_missing_resource,
            "Replace" => &mut options.replace,
            "Force" => &mut options.force,
            "ServerSideDiff" => &mut options.server_side_diff,
            "IncludeMutationWebhook" => &mut options.include_mutation_webhook,
            _ => &mut options.server_side_apply,
        });
    }

    /// Sets an option, and reports one that is set to another value already.
    fn exclusive<T: PartialEq>(
        &mut self,
        option: &'static str,
        stated: Setting<T>,
        slot: impl Fn(&mut SyncOptions) -> &mut Option<Setting<T>>,
    ) {
        match slot(self.options) {
            Some(before) if before.value != stated.value => {
                self.fail(Kind::Contradiction { annotation: self.key, option });
            }
            slot => *slot = Some(stated),
        }
    }

    /// Sets an option of which the strictest value counts.
    fn strictest<T: Ord>(stated: Setting<T>, slot: &mut Option<Setting<T>>) {
        if slot.as_ref().is_none_or(|before| before.value < stated.value) {
            *slot = Some(stated);
        }
    }

    /// Forbids to delete the object.
    fn keep(&mut self) {
        let never = self.setting(Removal::Never);
        Self::strictest(never.clone(), &mut self.options.prune);
        Self::strictest(never, &mut self.options.delete);
    }

    fn apply_mode(&mut self, mode: ApplyMode) {
        let stated = self.setting(mode);
        Self::strictest(stated, &mut self.options.apply_mode);
        if mode == ApplyMode::Ignore {
            // Flux deletes nothing that it does not apply.
            self.keep();
        }
    }

    /// Makes the object a hook of these phases; `None` stands for a hook that is not run.
    fn hook(&mut self, phases: Vec<Option<HookPhase>>) {
        let mut phases: Vec<HookPhase> = phases.into_iter().flatten().collect();
        phases.sort_unstable();
        phases.dedup();
        self.options.hook = Some(self.setting(phases));
    }

    fn hook_delete_policies(&mut self, mut policies: Vec<HookDeletePolicy>) {
        let before = self.options.hook_delete_policies.take();
        policies.extend(before.into_iter().flat_map(|before| before.value));
        policies.sort_unstable();
        policies.dedup();
        self.options.hook_delete_policies = Some(self.setting(policies));
    }

    /// Reads `group/Kind/name` and `group/namespaces/namespace/Kind/name`, separated by commas.
    fn depends_on(&mut self, text: &str) {
        let mut keys = Vec::new();
        for item in items(text) {
            let parts: Vec<&str> = item.split('/').collect();
            let key = match parts[..] {
                [group, kind, name] => ObjectKey::new(group, kind, "", name),
                [group, "namespaces", namespace, kind, name] => ObjectKey::new(group, kind, namespace, name),
                _ => ObjectKey::new("", "", "", ""),
            };
            match taffrail_object::names::check(&key) {
                Ok(()) => keys.push(key),
                Err(_) => {
                    let expected = "group/Kind/name or group/namespaces/namespace/Kind/name".to_owned();
                    self.invalid(item, expected, None);
                }
            }
        }
        self.options.depends_on = Some(self.setting(keys));
    }

    /// Reads a strategy of kapp; an empty one is the plain one, and states nothing.
    fn strategy(&mut self, text: &str, known: &[&'static str]) -> Option<&'static str> {
        if text.is_empty() { None } else { self.word(text, known, "") }
    }

    /// Reads an annotation that counts by being there. kapp ignores its value, so that a value that denies it is an error.
    fn flag(&mut self, text: &str) -> Option<Setting<bool>> {
        let is_set = text.is_empty() || self.word(text, &["true"], "").is_some();
        is_set.then(|| self.setting(true))
    }

    /// Reads `upsert after upserting GROUP`, with one space between words, as kapp does.
    fn change_rule(&mut self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let [action, order, target, group] = words[..] else {
            let expected = "a rule such as 'upsert after upserting apps.example.com/migrations'".to_owned();
            return self.invalid(text, expected, None);
        };
        // Each word that is wrong is an error.
        let action = self.word(action, &["upsert", "delete"], "");
        let order = self.word(order, &["before", "after"], "");
        let target = self.word(target, &["upserting", "deleting"], "");
        let group = self.change_group(group);
        let of = |word: &str| if word.starts_with('u') { ChangeAction::Upsert } else { ChangeAction::Delete };
        if let (Some(action), Some(order), Some(target), Some(group)) = (action, order, target, group) {
            let is_before = order == "before";
            let rule = ChangeRule { action: of(action), is_before, target: of(target), group };
            let stated = self.setting(rule);
            self.options.changes.rules.push(stated);
        }
    }

    /// Reads the name of a group; reports one that names none on any object.
    fn change_group(&mut self, group: &str) -> Option<ChangeGroup> {
        let group = ChangeGroup(group.to_owned());
        // An object on which each placeholder stands for something.
        let key = ObjectKey::new("example.com", "Kind", "namespace", "name");
        match group.on(&key, Some(&key.group_kind())) {
            Ok(_) => return Some(group),
            Err(InvalidGroup::Placeholder(placeholder)) => {
                let near = nearest(&placeholder, PLACEHOLDERS);
                self.invalid(&placeholder, format!("one of {}", PLACEHOLDERS.join(", ")), near);
            }
            Err(reason) => self.fail(reason.of(self.key, &group)),
        }
        None
    }
}

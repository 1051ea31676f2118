//! Findings: health rules in the cluster are ignored or limited, because their authors are not fully trusted.

use std::collections::BTreeMap;

use super::cluster_context::ClusterContext;
use super::{Finding, FindingCategory, Severity};

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, app) in cluster.list.apps.iter().enumerate().filter(|(_, app)| app.app.home == cluster.name())
    {
        if let Some(unheard) = &app.unheard {
            found.entry((&unheard.object, &unheard.setting, unheard.voice)).or_default().push(place);
        }
    }
    let finding = |((object, setting, voice), apps): ((_, &String, Option<_>), _)| {
        // Rules that can only make objects look worse cannot cause a wrong green.
        let (severity, how) = match voice {
            Some(_) => (Severity::Low, "can only make the status of objects worse, never better"),
            None => (Severity::Medium, "are ignored"),
        };
        let why = if setting.starts_with("argocd") {
            "no ClusterRoleBinding that may be read gives its application controller (of a ServiceAccount other than default) a \
             ClusterRole that may write everything (create, update, patch or * on all apiGroups and resources)"
        } else {
            "the objects are in another cluster"
        };
        let message =
            format!("the health rules in the object {how}: {why}; the setting {setting} lets them count");
        Finding::new(FindingCategory::Fallback, severity, "RulesUnheard")
            .object(object, None)
            .says(message)
            .of(apps)
    };
    found.into_iter().map(finding).collect()
}

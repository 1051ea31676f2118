//! kstatus' rule for CustomResourceDefinitions.

use super::Subject;
use crate::verdict::{ComputeError, Verdict};

pub(super) fn custom_resource_definition(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/apiextensions.k8s.io/CustomResourceDefinition";

    for condition in &subject.conditions {
        let refused = condition.is("NamesAccepted", "False")
            || (condition.is("Established", "False") && !condition.has_reason("Installing"));
        if refused {
            return Ok(Verdict::failed(condition.reason(), condition.message(), RULE));
        }
        if condition.is("Established", "True") {
            return Ok(Verdict::current("CRD is established", RULE));
        }
    }
    Ok(Verdict::in_progress("Installing", "Install in progress", RULE))
}

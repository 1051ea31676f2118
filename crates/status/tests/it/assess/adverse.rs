//! Tests of adverse conditions and phases of objects for whose kinds there are no rules.

use super::check;

/// Returns the YAML of a custom resource with these members of `status`.
fn widget(status: &str) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: blue, namespace: shop, generation: 2}}\nstatus: {status}"
    )
}

fn condition(name: &str, status: &str, rest: &str) -> String {
    format!(r#"{{type: {name}, status: "{status}"{rest}}}"#)
}

fn with(conditions: &[String]) -> String {
    widget(&format!("{{conditions: [{}]}}", conditions.join(", ")))
}

const IN_PROGRESS: &str = "InProgress < example.com/Widget/shop/blue";

#[test]
fn adverse_condition_is_never_green() {
    for name in ["Failing", "Degraded", "Error", "UpgradeFailed"] {
        let told = with(&[condition(name, "True", ", reason: Broken, message: it says why")]);
        check(&told, &format!("{IN_PROGRESS}: {name} is True: it says why"));
        check(&with(&[condition(name, "False", "")]), "Current");
        check(&with(&[condition(name, "Unknown", "")]), "Current");
    }
    for name in ["Available", "Synced", "Accepted", "Healthy", "Established", "NodesReady", "DatabaseReady"] {
        let told = with(&[condition(name, "False", ", reason: Broken")]);
        check(&told, &format!("{IN_PROGRESS}: {name} is False: Broken"));
        check(&with(&[condition(name, "True", "")]), "Current");
    }
    let failed =
        with(&[condition("Available", "False", ""), condition("Failed", "True", ", message: it is over")]);
    check(&failed, "Failed < example.com/Widget/shop/blue: Failed is True: it is over");
    for name in ["Progressing", "Upgradeable", "Paused", "Whatever"] {
        check(&with(&[condition(name, "True", "")]), "Current");
        check(&with(&[condition(name, "False", "")]), "Current");
    }
}

#[test]
fn few_adverse_conditions_count_beside_ready() {
    let ready = || condition("Ready", "True", "");
    for name in ["Available", "Accepted", "Healthy", "Established", "NodesReady"] {
        check(&with(&[ready(), condition(name, "False", "")]), "Current");
    }
    for name in ["Error", "UpgradeFailed"] {
        check(&with(&[ready(), condition(name, "True", "")]), "Current");
    }
    check(&with(&[ready(), condition("Failing", "True", "")]), IN_PROGRESS);
    check(&with(&[ready(), condition("Degraded", "True", "")]), IN_PROGRESS);
    check(&with(&[ready(), condition("Synced", "False", "")]), IN_PROGRESS);
    check(&with(&[condition("Failed", "True", ""), ready()]), "Failed < example.com/Widget/shop/blue");
    check(&widget("{phase: Failed, conditions: [{type: Ready, status: 'True'}]}"), "Current");
}

#[test]
fn names_that_negate_and_reasons_of_rest_are_good_news() {
    for name in ["DNSNotReady", "Unready", "UnReady", "NotReady", "NoNodesReady"] {
        check(&with(&[condition(name, "False", "")]), "Current");
    }
    check(&with(&[condition("NotFailed", "True", "")]), "Current");
    // That one negates nothing.
    check(&with(&[condition("NodesReady", "False", "")]), IN_PROGRESS);
    for reason in ["Disabled", "NotRequired", "NotApplicable", "Paused", "MetricsDisabled", "ReconcilePaused"]
    {
        check(&with(&[condition("MetricsReady", "False", &format!(", reason: {reason}"))]), "Current");
    }
    check(&with(&[condition("Available", "False", ", observedGeneration: 1")]), "Current");
    check(&with(&[condition("Available", "False", ", observedGeneration: 2")]), IN_PROGRESS);
}

#[test]
fn adverse_phase_or_state_is_never_green() {
    for word in ["Error", "Degraded", "Unavailable", "ERROR", "degraded"] {
        check(
            &widget(&format!("{{phase: {word}, message: it says why}}")),
            &format!("{IN_PROGRESS}: status.phase is {word}: it says why"),
        );
        check(&widget(&format!("{{state: {word}}}")), &format!("{IN_PROGRESS}: status.state is {word}"));
    }
    for word in ["Failed", "failed", "FAILED"] {
        check(
            &widget(&format!("{{phase: {word}}}")),
            &format!("Failed < example.com/Widget/shop/blue: status.phase is {word}"),
        );
    }
    for status in ["{phase: Running}", "{state: {failed: true}}", "{phase: FailedOver}", "{other: Failed}"] {
        check(&widget(status), "Current");
    }
    check(
        "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, status: {phase: Failed, message: cannot delete}}",
        "Failed < /PersistentVolume//pv: cannot delete",
    );
}

#[test]
fn since_is_the_transition_of_the_adverse_condition() {
    let yaml = with(&[condition("Degraded", "True", ", lastTransitionTime: '2026-03-01T11:00:00Z'")]);
    let objects = super::read(&yaml);
    let told = super::assess_all(
        &[super::name("example.com/Widget/shop/blue")],
        &super::dump(&objects),
        super::now(),
    );
    assert_eq!(told[0].since, "2026-03-01T11:00:00Z".parse().ok());
    assert_eq!(told[0].verdict.rule, "generic/adverse");
}

#[test]
fn unobserved_generation_does_not_fail() {
    let stale = widget("{observedGeneration: 1, phase: Failed}");
    check(&stale, "InProgress < example.com/Widget/shop/blue: generation is 2");
}

//! `-v`, `-vv` and `-vvv`: what is told of requests.

use taffrail_sim::Fault;
use taffrail_sim::Trouble;

use super::served::Served;

/// The context holds what a terminal would take for a command.
const CONTEXT: &str = "on\u{1b}[31me";

/// Returns what `get apps` with a flag tells on stderr.
fn told(served: &Served, flag: &str) -> String {
    let answer = served.ask(&["get", "apps", flag]);
    assert!(!answer.stderr.contains('\u{1b}'), "{:?}", answer.stderr);
    assert!(!answer.stderr.contains(&served.clusters[0].admin().token), "{}", answer.stderr);
    answer.stderr
}

#[test]
fn each_v_tells_more_of_requests() {
    let served = Served::start(&[CONTEXT], |_, _| ());
    let is_request = |line: &&str| line.starts_with("request{cluster=\"on");
    let sum = told(&served, "-v");
    assert!(sum.contains(" rounds, ") && sum.contains("answered in "), "{sum}");
    assert_eq!(sum.lines().filter(is_request).count(), 0, "{sum}");

    let each = told(&served, "-vv");
    let requests = each.lines().filter(is_request).count();
    assert!(each.contains(&format!(": {requests} requests in ")), "each request once, and their sum: {each}");
    assert!(
        each.contains(
            "method=GET path=\"/api/v1/namespaces/kube-system\" attempt=1}: answered status=200 bytes="
        ),
        "{each}"
    );
    assert!(!each.contains("purpose="), "{each}");

    let purposes = told(&served, "-vvv");
    assert!(purposes.contains(": sent purpose=\"get namespaces/kube-system\""), "{purposes}");
}

#[test]
fn attempts_and_failures_are_traced() {
    let served = Served::start(&["one"], |_, _| ());
    served.clusters[0]
        .fault(Fault::new(Trouble::ServerError("not now".to_owned())).path("/api/v1/namespaces/kube-system"));
    let each = told(&served, "-vv");
    for attempt in [1, 2] {
        assert!(each.contains(&format!("attempt={attempt}}}: answered status=500 bytes=")), "{each}");
    }
}

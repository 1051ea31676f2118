//! Kubeconfigs for tests.

use std::fmt::Write as _;

/// Returns a kubeconfig in YAML with a context for each triple of a name, the lines of its cluster and the lines of its
/// user. The first context is the current one.
pub fn kubeconfig(contexts: &[(&str, &str, &str)]) -> String {
    let [mut clusters, mut users, mut all] = ["clusters:\n", "users:\n", "contexts:\n"].map(str::to_owned);
    let indented = |lines: &str| lines.lines().fold(String::new(), |text, line| text + "    " + line + "\n");
    for (name, cluster, user) in contexts {
        // Writing into a string cannot fail.
        let _ = write!(clusters, "- name: {name}\n  cluster:\n{}", indented(cluster));
        let user = if user.is_empty() { "    {}\n".to_owned() } else { indented(user) };
        let _ = write!(users, "- name: {name}\n  user:\n{user}");
        let _ = writeln!(all, "- name: {name}\n  context: {{cluster: {name}, user: {name}}}");
    }
    let current = contexts.first().map_or("\"\"", |(name, ..)| name);
    format!("apiVersion: v1\nkind: Config\ncurrent-context: {current}\n{clusters}{users}{all}")
}

#[cfg(test)]
mod tests {
    use super::kubeconfig;

    #[test]
    fn context_has_a_cluster_and_a_user_of_its_name() {
        let text = kubeconfig(&[("a", "server: x", "exec:\n  command: y"), ("b", "server: z", "")]);
        let (_, rest) = text.split_once("current-context: a\n").expect("the first is current");
        assert_eq!(
            rest,
            "clusters:\n- name: a\n  cluster:\n    server: x\n- name: b\n  cluster:\n    server: z\n\
             users:\n- name: a\n  user:\n    exec:\n      command: y\n- name: b\n  user:\n    {}\n\
             contexts:\n- name: a\n  context: {cluster: a, user: a}\n- name: b\n  context: {cluster: b, user: b}\n"
        );
    }
}

//! Command lines that a user can copy.
//!
//! No command is built if a word from outside would be taken for an option.

use taffrail_status::is_unseen;

use crate::find::full_name;
use crate::freshness::Freshness;
use crate::identity::AppRef;

/// The options that the commands here contain. Any other word that begins with a dash comes from a cluster, and no
/// command is made with it.
const OPTIONS: &[&str] = &[
    "-A",
    "-c",
    "-l",
    "-o",
    "--all-containers",
    "--all-contexts",
    "--api-group",
    "--cluster",
    "--delivery",
    "--kube-context",
    "--previous",
    "--raw",
    "--show-managed-fields",
    "--suspended",
    "--sync",
    "--tail=50",
];

/// Returns a kubectl command line with `-n` (unless `namespace` is empty) and `--context` (if given); `None` if a
/// word could be taken for an option.
pub fn kubectl(words: &[&str], namespace: &str, context: Option<&str>) -> Option<String> {
    placed("kubectl", words, namespace, context)
}

/// Returns a helm command line with `-n` (unless `namespace` is empty) and `--kube-context` (if given); `None` if a
/// word could be taken for an option.
pub fn helm(words: &[&str], namespace: &str, context: Option<&str>) -> Option<String> {
    let mut words = words.to_vec();
    // Helm's option for the context has another name.
    words.extend(context.iter().flat_map(|context| ["--kube-context", context]));
    placed("helm", &words, namespace, None)
}

/// Returns a taffrail command line with `-n` (unless `namespace` is empty) and `--context` (if given); `None` if a
/// word could be taken for an option.
pub fn taffrail(words: &[&str], namespace: &str, context: Option<&str>) -> Option<String> {
    placed("taffrail", words, namespace, context)
}

/// Returns the command `taffrail WORDS` for an app, such as `explain` or `reconcile --sync`; if `must_name`, with
/// `--context` and the app's home and target cluster. `None` if a word could be taken for an option.
pub fn of_app(words: &[&str], app: &AppRef, must_name: bool) -> Option<String> {
    let contexts = match app.home == app.target {
        true => app.home.clone(),
        false => format!("{},{}", app.home, app.target),
    };
    taffrail(&[words, &[&full_name(app)]].concat(), "", must_name.then_some(&*contexts))
}

/// Returns the command to begin with where `cluster` is not live, as others that ask it would fail: `taffrail get
/// clusters`, which tells since when and why; or, if nothing was ever observed of it, kubectl's request for its readiness,
/// with `--context` if given. `None` if the name could be taken for an option.
pub fn of_connection(cluster: &str, freshness: Freshness, context: Option<&str>) -> Option<String> {
    match freshness.observed_at {
        Some(_) => taffrail(&["get", "clusters", "--cluster", cluster], "", None),
        None => kubectl(&["get", "--raw", "/readyz"], "", context),
    }
}

fn placed(program: &str, words: &[&str], namespace: &str, context: Option<&str>) -> Option<String> {
    let is_option = |word: &str| word.starts_with('-');
    let is_from_outside = |word: &&str| is_option(word) && !OPTIONS.contains(word);
    if words.iter().any(is_from_outside) || is_option(namespace) || context.is_some_and(is_option) {
        return None;
    }
    let mut line = vec![program];
    line.extend(words);
    if !namespace.is_empty() {
        line.extend(["-n", namespace]);
    }
    if let Some(context) = context {
        line.extend(["--context", context]);
    }
    Some(line.into_iter().map(quoted).collect::<Vec<_>>().join(" "))
}

/// Returns a kind as kubectl accepts it: `pod`, `deployment.apps`.
pub fn resource(group: &str, kind: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{}{dot}{group}", kind.to_lowercase())
}

/// Returns true if a word consists of ASCII letters, digits and `_.:/@-`, so that it needs no quotes in any shell, even
/// inside a line that a shell runs. True for an empty word.
pub fn is_plain(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.:/@-".contains(byte))
}

/// Returns a word for a POSIX shell: unchanged if it is not empty and consists of ASCII letters, digits and `-_./:@=,`;
/// else in single quotes and without invisible characters, as names come from outside and a copied command must do what
/// it seems to do.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@=,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let visible: String = word.chars().filter(|character| !is_unseen(*character)).collect();
    format!("'{}'", visible.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_the_shell() {
        let told = |words: &[&str], namespace, context| taffrail(words, namespace, context).unwrap();
        assert_eq!(
            told(&["app", "shop"], "web", Some("gke_p_eu-1_c")),
            "taffrail app shop -n web --context gke_p_eu-1_c"
        );
        assert_eq!(told(&["app", "a; rm -rf ~"], "$(id)", None), "taffrail app 'a; rm -rf ~' -n '$(id)'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("~root"), "'~root'");
        assert_eq!(quoted("a\nb\u{202e}c"), "'abc'");
    }

    #[test]
    fn names_that_look_like_options_make_no_command() {
        let evil = "--kubeconfig=/tmp/evil";
        assert_eq!(kubectl(&["describe", "deployment.apps", evil], "shop", None), None);
        assert_eq!(kubectl(&["get", evil, "-A"], "", None), None);
        assert_eq!(helm(&["history", evil], "shop", Some("prod")), None);
        assert_eq!(helm(&["history", "web"], evil, None), None);
        assert_eq!(taffrail(&["app", "web"], "", Some("-v")), None);
        let told = kubectl(&["logs", "web", "-c", "web", "--previous"], "shop", None);
        assert_eq!(told.as_deref(), Some("kubectl logs web -c web --previous -n shop"));
    }
}

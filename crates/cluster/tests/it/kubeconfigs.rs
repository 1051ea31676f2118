//! Tests of kubeconfig files, whole and broken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use taffrail_cluster::{Kubeconfig, KubeconfigError};

use crate::contexts::kubeconfig;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.0.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Returns a text without the path of this folder.
    fn short(&self, text: impl ToString) -> String {
        text.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn load(file: &Path) -> Result<Kubeconfig, KubeconfigError> {
    Kubeconfig::load(Some(file), None, None)
}

/// Returns an error and its causes, joined by `: `, as the command line prints them.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_line() {
    let folder = Folder::new();
    let cases: &[(&str, &[u8], &str)] = &[
        ("empty", b"", "kubeconfig empty is empty"),
        ("blank", b" \n\n", "kubeconfig blank is empty"),
        ("comment", b"# nothing\n", "kubeconfig comment is empty"),
        ("binary", b"\x7fELF\0\xff", "kubeconfig binary is not text"),
        ("none", b"apiVersion: v1\n", "kubeconfig none has no contexts"),
        ("half", b"contexts:\n- name: a\n  context: {cluster: [\n", "kubeconfig half:"),
        ("tab", b"contexts:\n\t- name: a\n", "kubeconfig tab:2: "),
        ("scalar", b"hello\n", "kubeconfig scalar:1: "),
        ("html", b"<!doctype html>\n<p>", "kubeconfig html:1: "),
        ("shape", b"apiVersion: v1\nusers: s3cret\n", "kubeconfig shape:2: "),
    ];
    for (name, text, expected) in cases {
        let error = load(&folder.file(name, text)).unwrap_err();
        let message = folder.short(whole(&error));
        assert!(message.starts_with(expected), "{name}: {message}");
        assert!(!message.contains("s3cret") && !message.contains('\n'), "{name}: {message}");
    }
    let missing = load(&folder.0.path().join("missing")).unwrap_err();
    assert_eq!(folder.short(missing), "kubeconfig missing does not exist");
    let unreadable = load(&folder.0.path().join("none/below")).unwrap_err();
    assert!(matches!(unreadable, KubeconfigError::Unreadable { .. }), "{unreadable:?}");
}

#[test]
fn an_alias_bomb_ends() {
    let mut text = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (this, before) in
        ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip(["a", "b", "c", "d", "e", "f", "g", "h"])
    {
        text.push_str(&format!("{this}: &{this} [{}]\n", vec![format!("*{before}"); 10].join(",")));
    }
    text.push_str("contexts: *i\n");
    let folder = Folder::new();
    assert!(matches!(load(&folder.file("bomb", text)), Err(KubeconfigError::Malformed { .. })));
}

#[test]
fn bad_context_leaves_others_usable() {
    let folder = Folder::new();
    let text = r#"apiVersion: v1
current-context: good
contexts:
- name: good
  context: {cluster: good, user: good, namespace: team}
- name: no-cluster-named
  context: {user: good}
- name: null-context
  context:
- name: cluster-missing
  context: {cluster: nowhere}
- name: user-missing
  context: {cluster: good, user: nobody}
- name: no-server
  context: {cluster: no-server}
- name: bad-ca
  context: {cluster: bad-ca}
- name: not-pem
  context: {cluster: not-pem}
- name: ca-file-missing
  context: {cluster: ca-file-missing}
- name: bad-url
  context: {cluster: bad-url}
- name: cluster-malformed
  context: {cluster: cluster-malformed}
- name: half-certificate
  context: {cluster: good, user: half-certificate}
- name: bad-key
  context: {cluster: good, user: bad-key}
- name: number-token
  context: {cluster: good, user: number-token}
- name: gcp
  context: {cluster: good, user: gcp}
- name: no-command
  context: {cluster: good, user: no-command}
- name: user-no
  context: {cluster: good, user: n}
- name: twice
  context: {cluster: good}
- name: twice
  context: {cluster: no-server}
- context: {cluster: good}
- name: y
clusters:
- name: good
  cluster: {server: "https://api.example:6443/k8s/clusters/c-1/"}
- name: no-server
  cluster: {}
- name: bad-ca
  cluster: {server: "https://a", certificate-authority-data: "s3cret!"}
- name: not-pem
  cluster: {server: "https://a", certificate-authority-data: "aGVsbG8="}
- name: ca-file-missing
  cluster: {server: "https://a", certificate-authority: pki/ca.crt}
- name: bad-url
  cluster: {server: "ftp://u:s3cret@a"}
- name: cluster-malformed
  cluster: {server: [s3cret]}
users:
- name: good
  user: {token: s3cret}
- name: half-certificate
  user: {client-certificate-data: "aGVsbG8="}
- name: bad-key
  user: {client-certificate-data: "s3cret!", client-key-data: "s3cret!"}
- name: number-token
  user: {token: 424242}
- name: gcp
  user: {auth-provider: {name: gcp, config: {access-token: s3cret}}}
- name: no-command
  user: {exec: {apiVersion: client.authentication.k8s.io/v1}}
"#;
    let config = load(&folder.file("config", text)).unwrap();
    let good = config.current().unwrap();
    assert_eq!((good.name(), good.namespace()), ("good", "team"));
    assert_eq!(good.server(), "https://api.example:6443/k8s/clusters/c-1");
    assert_eq!(config.names().count(), 18);

    let line = |name: &str| {
        let at = |what: &str| 1 + text[..text.find(what).unwrap()].lines().count();
        at(name)
    };
    let cluster_line = |name: &str| line(&format!("- name: {name}\n  cluster:"));
    let user_line = |name: &str| line(&format!("- name: {name}\n  user:"));
    let context_line = |name: &str| line(&format!("- name: {name}\n  context:"));
    for (name, at, what) in [
        ("no-cluster-named", context_line("no-cluster-named"), "it names no cluster"),
        ("null-context", context_line("null-context"), "it names no cluster"),
        ("cluster-missing", context_line("cluster-missing"), "its cluster \"nowhere\" is not defined"),
        ("user-missing", context_line("user-missing"), "its user \"nobody\" is not defined"),
        ("no-server", cluster_line("no-server"), "cluster \"no-server\" has no server"),
        ("bad-ca", cluster_line("bad-ca"), "certificate-authority-data of \"bad-ca\" is not valid base64"),
        ("not-pem", cluster_line("not-pem"), "certificate-authority of \"not-pem\" holds no PEM certificate"),
        (
            "ca-file-missing",
            cluster_line("ca-file-missing"),
            "cannot read certificate-authority pki/ca.crt: No such file or directory (os error 2)",
        ),
        ("bad-url", cluster_line("bad-url"), "server \"a\" is not an http or https URL"),
        (
            "cluster-malformed",
            cluster_line("cluster-malformed"),
            "cluster \"cluster-malformed\" is malformed: invalid type: sequence, expected a string",
        ),
        (
            "half-certificate",
            user_line("half-certificate"),
            "user \"half-certificate\" has a client certificate and no key",
        ),
        ("bad-key", user_line("bad-key"), "client-certificate-data of \"bad-key\" is not valid base64"),
        (
            "number-token",
            user_line("number-token"),
            "user \"number-token\" is malformed: invalid type: integer …, expected a string",
        ),
        (
            "gcp",
            user_line("gcp"),
            "user \"gcp\" has auth-provider \"gcp\", which Kubernetes has replaced by exec plugins",
        ),
        ("no-command", user_line("no-command"), "exec of user \"no-command\" has no command"),
        ("user-no", context_line("user-no"), "its user is not text: put it in quotes"),
        ("twice", context_line("twice"), "the context is defined twice in this file"),
    ] {
        let error = config.context(name).unwrap_err();
        assert_eq!(folder.short(whole(&error)), format!("context \"{name}\" (config:{at}): {what}"));
    }
    let debug = format!("{config:?} {good:?} {:?}", config.context("number-token"));
    assert!(!debug.contains("s3cret") && !debug.contains("424242"), "{debug}");
    let problems: Vec<String> = config.problems().iter().map(|problem| folder.short(problem)).collect();
    let nameless = line("- context: {cluster: good}");
    assert_eq!(
        problems,
        [
            format!("kubeconfig config:{nameless}: a context without a name"),
            // YAML's old truth value, for kubectl too.
            format!("kubeconfig config:{}: a context whose name is not text: put it in quotes", nameless + 1),
        ]
    );
}

#[test]
fn labels_of_a_cluster_come_from_the_extension_of_its_context() {
    let folder = Folder::new();
    let extended = |extension: &str| {
        let text = with_contexts(&["a"], "https://a:6443", "x");
        let contexts = text.replace("user: admin", &format!("user: admin, extensions: {extension}"));
        assert_ne!(contexts, text);
        let kubeconfig = load(&folder.file("config", contexts)).unwrap();
        let labels = kubeconfig.labels("a");
        kubeconfig.context("a").map(|_| labels).map_err(|error| whole(&error))
    };
    let other = "[{name: minikube, extension: {version: v1}}]";
    assert_eq!(extended(other).unwrap(), BTreeMap::new());
    let own = "[{name: minikube}, {name: taffrail.dev/labels, extension: {region: eu, env: prod}}]";
    let labels = [("env", "prod"), ("region", "eu")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(extended(own).unwrap(), BTreeMap::from(labels));
    let invalid = extended("[{name: taffrail.dev/labels, extension: {region: Europe West}}]").unwrap_err();
    assert!(
        invalid.contains("the label region of its extension taffrail.dev/labels: a valid label"),
        "{invalid}"
    );
    // A context that cannot be used has its labels.
    let broken = with_contexts(&["a"], "https://a:6443", "x").replace(
        "user: admin",
        "user: nobody, extensions: [{name: taffrail.dev/labels, extension: {region: eu}}]",
    );
    let broken = load(&folder.file("config", broken)).unwrap();
    assert!(broken.context("a").is_err());
    assert_eq!(broken.labels("a"), BTreeMap::from([("region".to_owned(), "eu".to_owned())]));
    let error = extended("[{name: taffrail.dev/labels, extension: {replicas: 3}}]").unwrap_err();
    assert!(
        error.ends_with("its extension taffrail.dev/labels is not a map of texts, such as region: eu"),
        "{error}"
    );
}

#[test]
fn an_unknown_context_names_the_nearest_ones_first() {
    let folder = Folder::new();
    let contexts: String =
        ["staging", "prod-eu", "prod-us"].iter().map(|name| format!("- name: {name}\n")).collect();
    let config = load(&folder.file("config", format!("contexts:\n{contexts}"))).unwrap();
    let error = config.context("prod-ue").unwrap_err();
    assert_eq!(error.to_string(), "there is no context \"prod-ue\"");
    assert!(error.hint().unwrap().ends_with("staging"), "{:?}", error.hint());
    assert!(error.hint().unwrap().starts_with("the contexts are: prod-"), "{:?}", error.hint());
    let none = config.current().unwrap_err();
    assert_eq!(folder.short(&none), "kubeconfig config has no current context");
}

#[test]
fn files_are_merged_as_kubectl_merges_them() {
    let folder = Folder::new();
    let one = folder.file(
        "one",
        "current-context: a\ncontexts:\n- {name: a, context: {cluster: x}}\nclusters:\n- {name: x, cluster: {server: 'https://one'}}\n",
    );
    std::fs::create_dir(folder.0.path().join("deep")).unwrap();
    let two = folder.file(
        "deep/two",
        "current-context: b\ncontexts:\n- {name: a, context: {cluster: second}}\n- {name: b, context: {cluster: x, user: u}}\n\
         clusters:\n- {name: x, cluster: {server: 'https://two'}}\n- {name: second, cluster: {server: 'https://second'}}\n\
         users:\n- {name: u, user: {tokenFile: token}}\n",
    );
    folder.file("deep/token", "t");
    let list = std::env::join_paths([
        folder.0.path().join("missing"),
        folder.file("empty", ""),
        PathBuf::new(),
        one.clone(),
        two.clone(),
    ])
    .unwrap();
    let config = Kubeconfig::load(None, Some(&list), None).unwrap();
    assert_eq!(config.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(config.current().unwrap().server(), "https://one");
    // The context is of the second file, its cluster of the first, its token beside the second.
    assert_eq!(config.context("b").unwrap().server(), "https://one");

    // What a spoilt file would have said is not known, but the rest is there.
    let spoilt = folder.file("spoilt", "contexts: [");
    let list = std::env::join_paths([&spoilt, &two]).unwrap();
    let config = Kubeconfig::load(None, Some(&list), None).unwrap();
    assert!(matches!(config.problems(), [KubeconfigError::Malformed { .. }]), "{:?}", config.problems());
    assert!(matches!(config.current(), Err(KubeconfigError::CurrentContextUnknown(file)) if file == spoilt));
    assert_eq!(config.context("b").unwrap().server(), "https://two");
    let list = std::env::join_paths([&two, &spoilt]).unwrap();
    assert_eq!(Kubeconfig::load(None, Some(&list), None).unwrap().current().unwrap().name(), "b");

    let list = std::env::join_paths([folder.0.path().join("m1"), folder.0.path().join("m2")]).unwrap();
    let error = Kubeconfig::load(None, Some(&list), Some(folder.0.path())).unwrap_err();
    assert_eq!(folder.short(error), "kubeconfig m1, m2 does not exist");
}

/// Returns a kubeconfig with contexts of these names, all of one cluster at this server and one user with this token.
fn with_contexts(names: &[&str], server: &str, token: &str) -> String {
    let context =
        |name: &&str| format!("- {{name: '{name}', context: {{cluster: kubernetes, user: admin}}}}\n");
    let contexts: String = names.iter().map(context).collect();
    format!(
        "current-context: '{}'\ncontexts:\n{contexts}clusters:\n- {{name: kubernetes, cluster: {{server: '{server}'}}}}\n\
         users:\n- {{name: admin, user: {{token: {token}}}}}\n",
        names[0]
    )
}

#[test]
fn each_file_of_a_folder_stands_alone() {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.path().join("fleet")).unwrap();
    let usual = "admin@kubernetes";
    folder.file("fleet/eu.prod.yaml", with_contexts(&[usual], "https://eu", "a"));
    folder.file("fleet/us", with_contexts(&[usual], "https://us", "b"));
    folder.file("fleet/asia.kubeconfig", with_contexts(&["tokyo", "seoul"], "https://asia", "c"));
    folder.file("fleet/us.yml", with_contexts(&[usual], "https://another", "d"));
    folder.file("fleet/README.md", "# Our clusters\n");
    folder.file("fleet/.hidden", with_contexts(&[usual], "https://hidden", "e"));
    folder.file("fleet/us~", with_contexts(&[usual], "https://copy", "e"));
    folder.file("fleet/us.yml.bak", with_contexts(&[usual], "https://copy", "e"));
    folder.file("fleet/broken.yaml", "contexts:\n- {name: admin@kubernetes, context: {cluster: none}}\n");
    std::fs::create_dir(folder.0.path().join("fleet/old")).unwrap();
    folder.file("fleet/old/eu", with_contexts(&[usual], "https://old", "f"));
    let fleet = folder.0.path().join("fleet");

    let config = load(&fleet).unwrap();
    assert_eq!(config.names().collect::<Vec<_>>(), ["asia/tokyo", "asia/seoul", "broken", "eu.prod", "us"]);
    let error = config.context("broken").unwrap_err();
    assert_eq!(
        folder.short(error),
        "context \"broken\" (fleet/broken.yaml:2): its cluster \"none\" is not defined"
    );
    for (name, server) in [("eu.prod", "https://eu"), ("us", "https://us"), ("asia/seoul", "https://asia")] {
        let context = config.context(name).unwrap();
        assert_eq!((context.name(), &*context.server()), (name, server));
    }
    let problems: Vec<String> = config.problems().iter().map(|problem| folder.short(problem)).collect();
    assert!(problems[0].starts_with("kubeconfig fleet/README.md"), "{problems:?}");
    assert_eq!(
        problems[1..],
        ["kubeconfig fleet/us.yml: its context \"us\" is left out: another one has this name"]
    );
    let none = config.current().unwrap_err();
    assert_eq!(folder.short(&none), "kubeconfig fleet has no current context");
    assert_eq!(
        none.hint().as_deref(),
        Some("choose a context with --context: asia/tokyo, asia/seoul, broken, eu.prod, us")
    );

    // A context of a file in a list is not replaced by one of a folder.
    let one = folder.file("one", with_contexts(&["us"], "https://one", "g"));
    let list = std::env::join_paths([&fleet, &one]).unwrap();
    let config = Kubeconfig::load(None, Some(&list), None).unwrap();
    assert_eq!(config.names().collect::<Vec<_>>(), ["us", "asia/tokyo", "asia/seoul", "broken", "eu.prod"]);
    assert_eq!(config.current().unwrap().server(), "https://one");

    std::fs::create_dir(folder.0.path().join("empty")).unwrap();
    let error = load(&folder.0.path().join("empty")).unwrap_err();
    assert_eq!(folder.short(error), "kubeconfig empty has no contexts");
}

#[test]
fn the_usual_file_is_in_the_home_folder() {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.path().join(".kube")).unwrap();
    folder.file(".kube/config", kubeconfig("server: api.example:6443\ninsecure-skip-tls-verify: true", ""));
    let config = Kubeconfig::load(None, Some("".as_ref()), Some(folder.0.path())).unwrap();
    // Without a scheme, settings for TLS mean TLS.
    assert_eq!(config.current().unwrap().server(), "https://api.example:6443");
}

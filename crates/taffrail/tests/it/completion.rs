//! Completions for shells and for kubectl.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::server::Server;

use super::bad_clusters::kubeconfig;
use super::{NOW, clean, command, golden_app, run, skip, taffrail};

/// A folder with the program under all its names.
fn programs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["taffrail", "kubectl-taffrail", "kubectl_complete-taffrail"] {
        symlink(env!("CARGO_BIN_EXE_taffrail"), folder.path().join(name)).unwrap();
    }
    folder
}

fn shell(name: &str, folder: &Path, script: &str) -> Option<String> {
    if Command::new(name).arg("--version").stdout(Stdio::null()).status().is_err() {
        skip(&format!("{name} is not installed"));
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(name);
    clean(&mut command);
    command.args(["-c", script]).env("PATH", path);
    let answer = run(command, b"");
    assert_eq!(answer.stderr, "", "{script}");
    Some(answer.stdout)
}

/// The words that bash has for the last one of a line.
fn bash(line: &[&str]) -> Option<Vec<String>> {
    let programs = programs();
    let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
    let last = words.last().unwrap();
    let script = format!(
        "source <(taffrail completion bash); COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; \
         _clap_complete_taffrail taffrail {last} ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len() - 1,
    );
    let words = shell("bash", programs.path(), &script)?;
    Some(words.lines().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect())
}

#[test]
fn bash_knows_commands_flags_and_values() {
    let Some(commands) = bash(&["taffrail", ""]) else { return };
    for command in ["get", "app", "explain", "completion", "config"] {
        assert!(commands.iter().any(|word| word == command), "{commands:?}");
    }
    let of = |line: &[&str]| bash(line).unwrap();
    assert_eq!(of(&["taffrail", "get", ""]), ["apps", "clusters", "resources"], "flags only after a dash");
    assert_eq!(of(&["taffrail", "get", "apps", "--all"]), ["--all-namespaces", "--all-contexts"]);
    assert_eq!(of(&["taffrail", "get", "apps", "-o", "w"]), ["wide"]);
    assert_eq!(of(&["taffrail", "get", "apps", "--status", "Ready,In"]), ["Ready,InProgress"]);
    assert_eq!(
        of(&["taffrail", "get", "apps", "--sync", "!Synced,Sy"]),
        ["!Synced,Synced", "!Synced,Syncing"]
    );
    let actions = of(&["taffrail", "action", "re"]);
    assert!(
        actions.iter().any(|action| action == "restart") && !actions.iter().any(|it| it == "scale"),
        "{actions:?}"
    );
    assert_eq!(of(&["taffrail", "get", "clusters", "--columns", "cluster,ver"]), ["cluster,version"]);
    assert_eq!(of(&["taffrail", "completion", ""]), ["bash", "zsh", "fish", "kubectl"]);
    assert_eq!(of(&["taffrail", "config", "view", "--show"]), ["--show-origin"]);
}

#[test]
fn bash_completes_from_dumps() {
    let from = golden_app("flux-in-motion");
    let Some(apps) = bash(&["taffrail", "app", "--from", &from, ""]) else { return };
    assert_eq!(apps, ["cache", "config", "db", "web"]);
    let of = |line: &[&str]| bash(line).unwrap();
    assert_eq!(of(&["taffrail", "app", "--from", &from, "web/"]), ["web/cache"]);
    assert_eq!(of(&["taffrail", "tree", "--from", &from, "-n", "flux-system", "c"]), ["config"]);
    assert_eq!(of(&["taffrail", "get", "apps", "--from", &from, "-n", "w"]), ["web"]);
    assert_eq!(of(&["taffrail", "get", "apps", "--from", &from, "--cluster", ""]), ["cluster"]);
    assert_eq!(
        of(&["taffrail", "get", "resources", "--from", &from, "--kind", "secret,helmr"]),
        ["secret,helmrelease", "secret,helmrepository"]
    );
    assert_eq!(of(&["taffrail", "status", "--from", &from, "deploym"]), ["deployment"]);
    assert_eq!(of(&["taffrail", "status", "--from", &from, "deploy/c"]), ["deploy/coredns"]);
    assert_eq!(of(&["taffrail", "status", "--from", &from, "deploy", "r"]), ["redis"]);
    assert_eq!(of(&["taffrail", "rules", "why", "--from", &from, "deploym"]), ["deployment"]);
    assert_eq!(of(&["taffrail", "rules", "why", "--from", &from, "deploy/c"]), ["deploy/coredns"]);
    assert_eq!(of(&["taffrail", "explain", "--from", &from, "deploy/w"]), ["deploy/web"]);
}

#[test]
fn contexts_and_fleets_come_from_files_and_nothing_is_said_of_what_fails() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| -> PathBuf {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let server = Server::hanging();
    let slow = server.url();
    let config = file("config.yaml", "fleets: {prod: [prod-eu]}\n");
    let kubeconfig = file("kubeconfig", &kubeconfig(&[("prod-eu", &slow), ("lab", &slow)]));
    let broken = file("broken", "contexts: [");
    let [config, kubeconfig, broken] = [&config, &kubeconfig, &broken].map(|path| path.to_str().unwrap());
    let Some(contexts) =
        bash(&["taffrail", "get", "apps", "--config", config, "--kubeconfig", kubeconfig, "--context", ""])
    else {
        return;
    };
    assert_eq!(contexts, ["prod-eu", "lab", "@prod"]);
    let listed = ["taffrail", "get", "apps", "--config", config, "--kubeconfig", kubeconfig, "--context"];
    let next = |word: &str| bash(&[&listed[..], &[word]].concat()).unwrap();
    assert_eq!(next("prod-eu,"), ["prod-eu,lab", "prod-eu,@prod"]);
    assert_eq!(next("prod-eu,l"), ["prod-eu,lab"]);
    let none: [&str; 0] = [];
    let of = |line: &[&str]| bash(line).unwrap();
    assert_eq!(
        of(&["taffrail", "hub", "serve", "--kubeconfig", kubeconfig, "--context", ""]),
        ["prod-eu", "lab"]
    );
    // Clusters that do not answer, files that cannot be read, lines that make no sense.
    assert_eq!(of(&["taffrail", "app", "--kubeconfig", kubeconfig, "--timeout", "1h", "s"]), none);
    assert_eq!(of(&["taffrail", "get", "apps", "--kubeconfig", broken, "-n", "s"]), none);
    assert_eq!(of(&["taffrail", "get", "apps", "--config", broken, "--context", "s"]), none);
    assert_eq!(of(&["taffrail", "get", "apps", "--from", "nowhere.yaml", "-n", "s"]), none);
    assert_eq!(of(&["taffrail", "nonsense", "--from", "no-such"]), none);
}

#[test]
fn zsh_and_fish_read_their_scripts() {
    let programs = programs();
    // zsh shows what it would complete only on a terminal; that it has a function for it must do.
    let zsh = "autoload -U compinit && compinit -D -u; source FILE; print -r -- ${_comps[taffrail]}";
    for (name, line, wanted) in
        [("zsh", zsh, "_taffrail"), ("fish", "source FILE; complete -C 'taffrail ge'", "get\t")]
    {
        let script = taffrail(&["completion", name], "");
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("_TAFFRAIL_COMPLETE"), "{}", script.stdout);
        let file = programs.path().join(name);
        fs::write(&file, script.stdout).unwrap();
        let line = line.replace("FILE", &format!("'{}'", file.display()));
        if let Some(answer) = shell(name, programs.path(), &line) {
            assert!(answer.contains(wanted), "{name}: {answer:?}");
        }
    }
    // What they ask for.
    for (name, line) in [("zsh", "get:"), ("fish", "get\t")] {
        let mut command = command(&["--", "taffrail", "ge"]);
        command.env("_TAFFRAIL_COMPLETE", name).env("_CLAP_COMPLETE_INDEX", "1");
        let answer = run(command, b"");
        assert!(answer.stdout.starts_with(line), "{name}: {:?}", answer.stdout);
    }
}

/// The real kubectl, where the control plane's programs were built.
fn kubectl() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?.join("taffrail/kube");
    let built = fs::read_dir(cache).ok()?.flatten().map(|entry| entry.path().join("bin/kubectl"));
    built.into_iter().find(|program| program.exists())
}

#[test]
fn kubectl_runs_it_as_a_plugin() {
    let from = golden_app("helm-well");
    let programs = programs();
    let own = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(programs.path().join(name));
        clean(&mut command);
        command.args(arguments);
        run(command, b"")
    };
    let help = own("kubectl-taffrail", &["get", "--help"]).stdout;
    assert!(
        help.contains("Usage: kubectl taffrail get") && help.contains("\n  kubectl taffrail get apps "),
        "{help}"
    );
    let unknown = own("kubectl-taffrail", &["app", "nope", "--from", &from]).stderr;
    assert!(unknown.contains("`kubectl taffrail get apps -o name --from "), "{unknown}");
    let words = own("kubectl_complete-taffrail", &["app", "--from", &from, "p"]).stdout;
    assert_eq!(words, "pg\thelm, Ready\n:4\n");

    let Some(kubectl) = kubectl() else {
        return skip("no kubectl was built; `cargo xtask kube up` builds one");
    };
    let mut command = Command::new(kubectl);
    clean(&mut command);
    command.env("PATH", programs.path());
    command.args(["taffrail", "get", "apps", "--from", &from, "--now", NOW, "-o", "name"]);
    assert_eq!(run(command, b"").stdout, "helm/data/pg\nhelm/edge/collector\n");
}

#[test]
fn completion_offers_no_shell_syntax() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let names = [
        "gke_project_europe-west1-b_prod",
        "arn:aws:eks:eu-1:1:cluster/a",
        "me@example.com",
        "a$(touch owned)",
        "a`id`",
        "a b",
        "a;id",
        "a'b",
        "a\\nb",
        "a\\u202eb",
        "~root",
        "a&b",
        "größe",
    ];
    let mut text = "apiVersion: v1\nkind: Config\nclusters:\n- {name: c, cluster: {server: \"http://127.0.0.1:1\"}}\ncontexts:\n".to_owned();
    for name in names {
        text.push_str(&format!("- {{name: \"{name}\", context: {{cluster: c}}}}\n"));
    }
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let Some(words) = bash(&["taffrail", "get", "apps", "--kubeconfig", file, "--context", ""]) else {
        return;
    };
    assert_eq!(words, &names[..3]);
}

/// Apps of one name in as many namespaces, as a dump.
fn many_apps(folder: &Path, file: &str, count: usize, name: impl Fn(usize) -> String) -> String {
    let app = |at: usize| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": format!("n{at}"), "name": name(at), "uid": format!("{file}{at}")},
            "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}}})
    };
    let items: Vec<Value> = (0..count).map(app).collect();
    let file = folder.join(file);
    fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The words for the last one of a line, without a shell of which there is none.
fn offered(line: &[&str]) -> (Vec<String>, Duration) {
    let mut command = command(&[&["--"], line].concat());
    command.env("_TAFFRAIL_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (line.len() - 1).to_string());
    command.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true");
    let begun = Instant::now();
    let answer = run(command, b"");
    let words = answer.stdout.lines().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty());
    (words.collect(), begun.elapsed())
}

#[test]
fn one_name_of_thousands_of_apps_costs_no_more_than_thousands_of_names() {
    let folder = tempfile::tempdir().unwrap();
    let many = many_apps(folder.path(), "evil.json", 2000, |_| "same".to_owned());
    let few = many_apps(folder.path(), "prod.json", 1, |_| "shop".to_owned());
    let line = |current| ["taffrail", "app", "--from", &*many, "--from", &*few, current];
    let (words, took) = offered(&line(""));
    // Generous, because other tests share the processors. Twice as many as are read, since completion gives up after
    // a few seconds.
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(words.len(), 1001, "as many as are read of one cluster, and all of the other");
    assert!(words.iter().any(|word| word == "shop"));
    assert_eq!(offered(&line("argo-application/n199")).0.len(), 11);
    assert_eq!(offered(&line("sh")).0, ["shop"]);
}

#[test]
fn completion_offers_a_bounded_number_of_names() {
    let folder = tempfile::tempdir().unwrap();
    let many = many_apps(folder.path(), "evil.json", 2000, |at| format!("a{at}"));
    let few = many_apps(folder.path(), "prod.json", 1, |_| "shop".to_owned());
    for words in [&["app"][..], &["status", "application"]] {
        let line = [&["taffrail"], words, &["--from", &many, "--from", &few, ""]].concat();
        let (words, _) = offered(&line);
        assert_eq!((words.len(), words.last().map(String::as_str)), (1001, Some("shop")));
    }
    let (words, _) = offered(&["taffrail", "app", "--from", &many, "a199"]);
    assert_eq!(words.len(), 11);
}

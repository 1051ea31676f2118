//! A view of a hub prints the same bytes as one of the clusters themselves, in every output.

use std::io::Write;
use std::time::{Duration, Instant};

use regex::Regex;

use super::demo::Demo;
use super::hub::Hub;
use super::{Answer, command, run};

/// Asks the hub and the clusters the same, and counts the answers that are equal.
struct Pairs<'d> {
    demo: &'d Demo,
    hub: &'d Hub,
    volatile: Vec<(Regex, &'static str)>,
    compared: usize,
}

/// The time for which a hub may be behind on a busy machine; an answer that is right takes none of it.
const BEHIND: Duration = Duration::from_secs(60);

/// The result for the user: stdout, stderr and the exit code.
type Seen = (String, String, i32);

impl Pairs<'_> {
    fn of<'d>(demo: &'d Demo, hub: &'d Hub) -> Pairs<'d> {
        // The time of an observation, and how a cluster was read, are those of another reader.
        let volatile = [
            (r#""observedAt": "[^"]*""#, "\"observedAt\": …"),
            (r"observedAt: .*", "observedAt: …"),
            (r#"(?s),\n      "reading": \{.*?\n      \}"#, ""),
            (r#""asOf": "[^"]*""#, "\"asOf\": …"),
            (r"asOf: .*", "asOf: …"),
            (r"as of [0-9]{4}[-0-9: ]* UTC", "as of … UTC"),
            (r"\n  reading:(\n {4}.*)+", ""),
        ];
        let volatile = volatile.map(|(pattern, text)| (Regex::new(pattern).unwrap(), text)).into();
        Pairs { demo, hub, volatile, compared: 0 }
    }

    fn ask(&self, arguments: &[&str], columns: Option<u16>, is_of_hub: bool) -> Seen {
        let time = ["--timeout", "60s"];
        let kubeconfig = self.demo.kubeconfig().to_str().unwrap();
        let url = self.hub.url();
        let place: Vec<&str> = match is_of_hub {
            true => vec!["--hub", &url],
            false => vec!["--kubeconfig", kubeconfig, "--all-contexts", "--request-timeout", "0"],
        };
        let mut command = command(&[arguments, &time, &place].concat());
        if let Some(columns) = columns {
            command.env("COLUMNS", columns.to_string());
        }
        command.env("TAFFRAIL_HUB_TOKEN", self.hub.token());
        let Answer { stdout, stderr, code } = run(command, b"");
        let still = |text: String| {
            self.volatile
                .iter()
                .fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
        };
        // A command to copy asks where its reader asked, and only without a hub do options read other clusters.
        let others = "; --context, --all-contexts or --from read others";
        let (kubeconfig, hub) = (format!(" --kubeconfig {kubeconfig}"), format!(" --hub {url}"));
        let places = [others, " --all-contexts", &kubeconfig, &hub];
        let placeless = |text: String| places.iter().fold(text, |text, place| text.replace(place, ""));
        (placeless(still(stdout)), placeless(stderr), code)
    }

    /// Compares the answers to a question; `seen` takes away what may differ.
    #[track_caller]
    fn compare_as(&mut self, arguments: &[&str], columns: Option<u16>, seen: impl Fn(Seen) -> Seen) -> Seen {
        // Ages go on between two answers, and what turns by time alone is followed a moment later: answers differ if they
        // still do after a while in which those of the clusters stood still.
        let mut direct = seen(self.ask(arguments, columns, false));
        let mut since = Instant::now();
        for _ in 0..1000 {
            let by_hub = seen(self.ask(arguments, columns, true));
            if by_hub == direct {
                self.compared += 1;
                return direct;
            }
            let after = seen(self.ask(arguments, columns, false));
            if after != direct {
                (direct, since) = (after, Instant::now());
            } else if since.elapsed() > BEHIND && by_hub != after {
                let show = |(stdout, stderr, code): Seen| format!("{code}\n{stdout}{stderr}");
                snapbox::assert_data_eq!(show(by_hub), snapbox::Data::text(show(direct)).raw());
                panic!("{arguments:?}");
            }
        }
        panic!("the answers to {arguments:?} never stand still");
    }

    #[track_caller]
    fn compare(&mut self, arguments: &[&str], columns: Option<u16>) -> Seen {
        self.compare_as(arguments, columns, |seen| seen)
    }

    /// Compares the answers in each of these outputs, and the tables also on narrow screens.
    #[track_caller]
    fn compare_outputs(&mut self, arguments: &[&str], outputs: &[&str]) {
        for columns in [Some(70), Some(140)] {
            self.compare(&[arguments, &["--color", "always"]].concat(), columns);
        }
        for output in outputs {
            self.compare(&[arguments, &["-o", output]].concat(), None);
        }
    }

    fn lists(&mut self) {
        self.compare_outputs(&["get", "apps"], &["table", "wide", "name", "json", "yaml"]);
        let (text, _, _) = self.compare(&["get", "apps", "--exit-status"], None);
        assert!(text.lines().count() > 20, "{text}");
        for filters in [
            &["--status", "!Ready"][..],
            &["--status", "Failed,Unknown", "--sort", "since"],
            &["--problems", "--sort", "status"],
            &["--problems=sync,source", "--exit-status"],
            &["--sync", "Failed,OutOfSync"],
            &["--delivery", "ks,hr", "--sort", "name"],
            &["--suspended", "--sort", "delivery"],
            &["-l", "team in (web,shop)"],
            &["--in-namespace", "accounts", "--no-headers"],
            &["--columns", "name,status,cluster", "--sort", "cluster"],
            &["-n", "flux-system"],
            &["-n", "accounts"],
            &["-n", "no-such-namespace", "--exit-status"],
            &["--downstream-of", "flux-kustomization/flux-system/flux-system"],
            &["--upstream-of", "accounts"],
            &["--status", "Terminating"],
            &["--cluster", "no-such-cluster"],
            &["no-such-app"],
            &["accounts", "--exit-status"],
        ] {
            self.compare(&[&["get", "apps"], filters].concat(), Some(120));
        }
        for options in [&[][..], &["--exit-status"], &["-n", "flux-system"], &["--cluster", "eu-1,ap-1"]] {
            let (text, _, _) = self.compare(&[&["overview"], options].concat(), Some(140));
            assert!(text.contains("Needs attention"), "{text}");
        }
        self.compare(&["overview", "--cluster", "no-such-cluster"], None);
        for options in
            [&["-o", "json"][..], &["-o", "yaml", "-n", "flux-system"], &["-o", "json", "--exit-status"]]
        {
            self.compare(&[&["overview"], options].concat(), None);
        }
        self.compare_outputs(&["get", "clusters"], &["name", "json", "yaml"]);
        for filters in [&["--status", "!Ready", "--exit-status"][..], &["--sort", "status"]] {
            self.compare(&[&["get", "clusters"], filters].concat(), None);
        }
        let columns = "cluster,id,aliases,status,apps,version,message";
        self.compare(&["get", "clusters", "--columns", columns], None);
        self.compare_outputs(&["get", "resources"], &["wide", "name", "json", "yaml"]);
        for filters in [
            &["--kind", "deploy", "--status", "!Ready"][..],
            &["--image", "nginx", "--sort", "name"],
            &["--in-namespace", "accounts", "--exit-status"],
            &["--kind", "Nothing"],
            &["-n", "accounts"],
            &["--orphaned", "-n", "accounts"],
            &["--orphaned", "--in-namespace", "no-such-namespace", "-o", "json"],
        ] {
            self.compare(&[&["get", "resources"], filters].concat(), Some(140));
        }
    }

    fn explained(&mut self) {
        self.compare_outputs(&["explain"], &["json", "yaml"]);
        let (text, _, _) = self.compare(&["explain", "--exit-status"], None);
        assert!(text.contains("\nCause\n") && text.contains("--context"), "{text}");
        for options in [
            &["--per-cluster", "--exit-status"][..],
            &["-n", "accounts"],
            &["-n", "no-such-namespace"],
            &["--cluster", "eu-1,ap-1", "-o", "json"],
            &["--cluster", "no-such-cluster"],
        ] {
            self.compare(&[&["explain"], options].concat(), Some(120));
        }
        self.compare_outputs(&["explain", "payments"], &["json", "yaml"]);
        self.compare_outputs(&["explain", "deploy/web", "-n", "shop"], &["json", "yaml"]);
        for names in [
            &["shop", "search", "--exit-status"][..],
            &["flux-kustomization/flux-system/shop", "--cluster", "eu-1"],
            &["eu-1/flux-kustomization/flux-system/shop", "-o", "json"],
            &["apps/Deployment/shop/web", "-o", "json"],
            &["eu-1/apps/Deployment/shop/web"],
            &["nowhere/apps/Deployment/shop/web"],
            &["ks/shop", "-n", "flux-system"],
            &["deploy/web"],
            &["node/no-such-node", "shop"],
            &["no-such-app"],
            &["/Service/shop/no-such-service"],
            &["gateway", "-n", "accounts"],
            &["a/b/c/d/e/f"],
        ] {
            self.compare(&[&["explain"], names].concat(), Some(120));
        }
    }

    fn objects(&mut self) {
        let outputs = ["wide", "name", "json", "jsonl", "yaml"];
        self.compare_outputs(&["status", "deploy/web", "-n", "shop"], &outputs);
        let (text, _, _) = self.compare(&["status", "deploy,sts", "-A", "--exit-status"], Some(160));
        assert!(text.lines().count() > 20, "{text}");
        for words in [
            &["deploy,svc", "-n", "accounts", "-o", "json"][..],
            &["deploy", "-A", "-l", "app.kubernetes.io/instance", "-o", "wide"],
            &["deploy/no-such-object", "-n", "shop", "--exit-status"],
            &["deploy", "-n", "no-such-namespace"],
            &["eu-1/apps/Deployment/shop/web", "-o", "json"],
            &["nowhere/apps/Deployment/shop/web"],
            &["deployy/web"],
            &["kustomization", "shop", "-n", "flux-system"],
            &["node", "-A"],
            &["deploy/web", "-A"],
            &["deploy", "svc/web"],
        ] {
            self.compare(&[&["status"], words].concat(), Some(140));
        }
    }

    fn named(&mut self) {
        self.compare_outputs(&["app", "shop"], &["json", "yaml"]);
        self.compare_outputs(&["tree", "shop"], &["json", "dot"]);
        for words in [
            &["eu-1/apps/Deployment/shop/web"][..],
            &["deploy/web", "-n", "shop", "-o", "json"],
            &["deploy/web", "-n", "shop", "--cluster", "eu-1,eu-2"],
            &["deploy/web", "-A", "--cluster", "eu-1"],
            &["deploy/no-such-object", "-n", "shop"],
            &["deployy/web"],
            &["nowhere/apps/Deployment/shop/web"],
        ] {
            self.compare(&[&["object"], words].concat(), None);
        }
        for name in
            ["payments", "search", "orders", "gateway", "tills", "kiosk", "flux-system", "no-such-app"]
        {
            self.compare(&["app", name, "--exit-status"], Some(120));
            self.compare(&["tree", name, "--exit-status"], Some(120));
            self.compare(&["events", name, "--per-cluster"], Some(120));
        }
        for options in [&["--compact"][..], &["--all", "--cluster", "eu-1,eu-2"], &["-n", "accounts"]] {
            self.compare(&[&["tree", "flux-system"], options].concat(), Some(140));
        }
        for options in [
            &["--status", "!Ready"][..],
            &["--status", "Ready", "--all"],
            &["--status", "!Current", "-o", "json"],
        ] {
            for name in ["shop", "flux-system", "gateway"] {
                self.compare(&[&["tree", name], options].concat(), Some(100));
            }
        }
        self.compare(&["app", "gateway", "--cluster", "eu-1"], None);
        self.compare_outputs(&["events"], &["json"]);
        self.compare(&["events", "--cluster", "eu-1", "--no-headers"], None);
        self.compare_outputs(&["trust"], &["wide", "name", "json", "yaml"]);
        for options in [
            &["shop"][..],
            &["--category", "suspended,disagreeing", "--exit-status"],
            &["-n", "flux-system", "--per-cluster"],
            &["--cluster", "ap-1", "-o", "json"],
        ] {
            self.compare(&[&["trust"], options].concat(), Some(120));
        }
    }
}

#[test]
fn a_hub_answers_views_with_the_bytes_of_the_direct_answers() {
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let hub = Hub::of(&demo);
    hub.wait_until_complete();
    let mut pairs = Pairs::of(&demo, &hub);
    pairs.lists();
    pairs.named();
    let _ = writeln!(std::io::stderr(), "{} pairs of answers are equal", pairs.compared);
}

#[test]
fn a_hub_explains_with_the_bytes_of_the_direct_answers() {
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let hub = Hub::of(&demo);
    hub.wait_until_complete();
    let mut pairs = Pairs::of(&demo, &hub);
    pairs.explained();
    pairs.objects();
    let _ = writeln!(std::io::stderr(), "{} pairs of explanations are equal", pairs.compared);
}

#[test]
fn a_hub_is_asked_without_what_belongs_to_clusters() {
    for arguments in [
        &["--all-contexts"][..],
        &["--context", "prod"],
        &["--kubeconfig", "/nowhere"],
        &["--from", "/nowhere"],
        &["--now", "2026-03-01T12:00:00Z"],
        &["--rules", "kstatus"],
        &["--pdb", "sufficient"],
        &["--app-label", "team"],
        &["--declared", "apps/Deployment/shop/web"],
        &["--request-timeout", "1s"],
    ] {
        let answer =
            super::taffrail(&[&["get", "apps", "--hub", "http://127.0.0.1:1"], arguments].concat(), "");
        assert_eq!((answer.code, &*answer.stdout), (2, ""), "{}", answer.stderr);
    }
    for arguments in [
        &["explain", "--declared", "apps/Deployment/shop/web"][..],
        &["logs", "shop", "--all-contexts"],
        &["logs", "shop", "--app-label", "team"],
        &["status", "deploy/web", "--rules", "kstatus"],
        &["status", "deploy/web", "--augment", "-o", "json"],
    ] {
        let answer = super::taffrail(&[arguments, &["--hub", "http://127.0.0.1:1"]].concat(), "");
        assert_eq!((answer.code, &*answer.stdout), (2, ""), "{}", answer.stderr);
    }
    let file = super::taffrail(&["status", "-f", "-", "--hub", "http://127.0.0.1:1"], "");
    snapbox::assert_data_eq!(
        file.stderr.lines().next().unwrap_or_default(),
        "error: the argument '--filename <FILE>' cannot be used with '--hub <URL>'"
    );
    assert_eq!(file.code, 2);
    let nobody = super::taffrail(&["get", "apps", "--hub", "http://127.0.0.1:1"], "");
    snapbox::assert_data_eq!(
        nobody.stderr,
        snapbox::str![[r#"
error: cannot ask the hub at http://127.0.0.1:1: Connection refused (os error 111)
 hint: check that the hub runs, and that its address is right: `taffrail hub serve` prints it

"#]]
    );
    assert_eq!(nobody.code, 3);
    let far = super::taffrail(&["get", "apps", "--hub", "http://hub.example.com"], "");
    snapbox::assert_data_eq!(
        far.stderr,
        snapbox::str![[r#"
error: invalid value 'http://hub.example.com' for '--hub <URL>': http is for hubs on this machine alone: 127.0.0.1, [::1] or localhost

For more information, try '--help'.

"#]]
    );
    assert_eq!(far.code, 2);
}

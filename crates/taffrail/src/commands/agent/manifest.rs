//! `taffrail agent manifest`: the objects with which an agent runs in a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use taffrail_api::agent_protocol::EnrolmentToken;
use taffrail_apps::{AppList, Delivery, ReadQuery};
use taffrail_cluster::{Discovery, ServedResource};
use taffrail_observe::{ClusterConnector, FleetMembers, Member, TimeBudget, TimeLimits};

use super::{HUB_URL_HELP, PATIENCE, one_member, read_token};
use crate::cli::{Pdb, SourceArguments, ViewArguments};
use crate::command_error::{CommandError, Exit, written};
use crate::commands::get;
use crate::commands::wait::ClusterArguments;
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::output::printable;
use crate::phrase;
use crate::rule_source::RuleSource;
use crate::runtime::block_on;
use crate::say;
use crate::source::{look, members};

/// The name of all objects of the manifest, and the first part of the names of some.
const NAME: &str = "taffrail-agent";

/// The name of the Secret with the enrolment token.
const TOKEN_SECRET: &str = "taffrail-agent-token";

/// The folder in the container at which the Secret with the enrolment token is mounted.
const TOKEN_FOLDER: &str = "/var/run/taffrail/token";

/// The verbs that the agent needs on what apps consist of.
const READ: [&str; 3] = ["get", "list", "watch"];

/// Print the objects with which an agent runs in a cluster, as YAML for `kubectl apply -f -`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail agent manifest --hub https://hub.example.com:7655 --token-file eu-1.token \\
     --image registry.example.com/taffrail:0.1.0 --context eu-1 | kubectl apply --context eu-1 -f -
  taffrail agent manifest --hub https://hub.example.com:7655      rights alone, for your own Deployment
  taffrail agent manifest --hub https://hub.example.com:7655 --without-secrets

The rights name every kind that the cluster serves now: get, list and watch, and the logs of
containers; besides them the agent may change one Secret, which keeps its key, and more only with
--allow-actions or --write-resourcegroup-status. Nothing is granted by *, which would include
pods/exec and nodes/proxy. Run the command again after new kinds were installed; until then
`taffrail trust` names them.

Exit codes: 0 done; 2 wrong usage; 3 the cluster could not be read.")]
pub(crate) struct ManifestArguments {
    // No doc comment, in which the URL would have to be a link.
    #[arg(long, value_name = "URL", value_parser = HubUrl::parse, help = HUB_URL_HELP)]
    hub: Box<HubUrl>,

    /// Put the enrolment token in this file into the manifest, as a Secret [default: $TAFFRAIL_ENROLMENT_TOKEN]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    /// Name under which the hub lists the cluster, unless the token has another one [default: that of the context]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Run this image, in which `taffrail` is the entry point; without it the manifest has no Deployment
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Namespace in which the agent runs
    #[arg(long, value_name = "NAMESPACE", default_value = "taffrail")]
    namespace: String,

    /// Grant no right to Secrets, except to the agent's own one. Releases of Helm, the addresses of Argo CD's clusters
    /// and declared Secrets are Unknown then; tells on stderr how many apps that concerns now
    #[arg(long)]
    without_secrets: bool,

    /// Let the agent run the operations that the hub asks for: grant it to patch the kinds of Flux, Applications of Argo CD
    /// and the kinds that have actions, and to create Jobs and Workflows
    #[arg(long)]
    allow_actions: bool,

    /// Let the agent write the statuses of kpt's ResourceGroups where nobody else does: grant it to get and patch that
    /// subresource alone
    #[arg(long)]
    write_resourcegroup_status: bool,

    #[command(flatten)]
    pub(super) clusters: ClusterArguments,
}

pub(super) fn run(arguments: &ManifestArguments, console: &Console) -> Result<Exit, CommandError> {
    super::refuse_http(&arguments.hub)?;
    let source = arguments.clusters.source(PATIENCE);
    let FleetMembers { members, .. } = members(&source)?;
    let member = one_member(&members)?;
    let token = read_token(arguments.token_file.as_deref(), true)?;
    let discovery = block_on(discover(member))??;
    for broken in discovery.broken() {
        console.tell(phrase!(
            "The kinds of {} are not known, and no right to them is granted: {}\n",
            printable(&broken.name),
            printable(&broken.reason)
        ));
    }
    if arguments.without_secrets {
        tell_concerned(source, console)?;
    }
    let name = arguments.name.as_deref().unwrap_or(&member.name);
    let manifest = Manifest { arguments, name, token };
    let mut out = io::stdout().lock();
    let documents = manifest.documents(discovery.resources());
    let print = documents.iter().enumerate().try_for_each(|(place, document)| {
        if place > 0 {
            say!(out, "---")?;
        }
        get::yaml(&mut out, document)
    });
    written(print.and_then(|()| out.flush()))?;
    Ok(Exit::Yes)
}

async fn discover(member: &Member) -> Result<Discovery, CommandError> {
    let limits = TimeLimits { total: TimeBudget::PerCluster(PATIENCE), request: None };
    let connector = ClusterConnector { member: member.clone(), limits };
    let cluster = connector.connect().await.map_err(|failure| CommandError::unreadable(failure.message))?;
    cluster.discover().await.map_err(|error| CommandError::unreadable(&error).hint(error.reason().hint()))
}

/// Tells how many apps are known only in part without a right to Secrets.
fn tell_concerned(source: SourceArguments, console: &Console) -> Result<(), CommandError> {
    let view = ViewArguments { pdb: Pdb::Advisory, rules: RuleSource::default(), watch: false, source };
    let fleet = block_on(look(&view, &ReadQuery::default(), taffrail_observe::NO_EXTRA, console))??;
    let concerned = Concerned::of(&fleet.apps(&[]));
    let Concerned { apps, releases, elsewhere, declaring } = concerned;
    console.tell(phrase!(
        "Without a right to Secrets less is known of {} of {} apps (releases of Helm: {}; Applications of Argo CD for \
         other clusters: {}; others that declare a Secret: {}).\n",
        releases + elsewhere + declaring,
        apps,
        releases,
        elsewhere,
        declaring
    ));
    Ok(())
}

/// The numbers of apps of which less is known without a right to Secrets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Concerned {
    /// All apps.
    apps: usize,
    /// The apps that are, or are delivered as, a release of Helm.
    releases: usize,
    /// The apps of Argo CD whose objects are in another cluster.
    elsewhere: usize,
    /// The other apps that declare a Secret.
    declaring: usize,
}

impl Concerned {
    fn of(list: &AppList) -> Concerned {
        let mut concerned = Concerned { apps: list.apps.len(), ..Concerned::default() };
        for app in &list.apps {
            let declares = app.resources.iter().any(|it| it.key.group.is_empty() && it.key.kind == "Secret");
            match app.app.delivery {
                Delivery::Helm | Delivery::FluxHelmRelease => concerned.releases += 1,
                Delivery::ArgoApplication if !app.in_reach || app.app.home != app.app.target => {
                    concerned.elsewhere += 1;
                }
                _ if declares => concerned.declaring += 1,
                _ => {}
            }
        }
        concerned
    }
}

/// The contents of a manifest.
struct Manifest<'a> {
    arguments: &'a ManifestArguments,
    /// The name under which the hub shall list the cluster.
    name: &'a str,
    token: Option<EnrolmentToken>,
}

impl Manifest<'_> {
    /// Returns the objects for a cluster that serves `resources`, in the order in which they are to be applied.
    fn documents(&self, resources: &[ServedResource]) -> Vec<Value> {
        let ManifestArguments { namespace, image, without_secrets, allow_actions, .. } = self.arguments;
        let mut granted = rules(resources, *without_secrets);
        if *allow_actions {
            granted.extend(rules_of_operations(resources));
        }
        if self.arguments.write_resourcegroup_status {
            granted.push(json!({
                "apiGroups": ["kpt.dev"],
                "resources": ["resourcegroups/status"],
                "verbs": ["get", "patch"],
            }));
        }
        let own = |kind: &str, api_version: &str| {
            json!({
                "apiVersion": api_version,
                "kind": kind,
                "metadata": { "name": NAME, "namespace": namespace, "labels": labels() },
            })
        };
        let subjects = json!([{ "kind": "ServiceAccount", "name": NAME, "namespace": namespace }]);
        let bound = |binding: Value, kind: &str| {
            let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME });
            with(with(binding, "roleRef", role), "subjects", subjects.clone())
        };
        const RBAC: &str = "rbac.authorization.k8s.io/v1";
        let everywhere = |kind: &str| {
            json!({
                "apiVersion": RBAC,
                "kind": kind,
                "metadata": { "name": NAME, "labels": labels() },
            })
        };
        let own_secret = json!([{
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [NAME],
            "verbs": ["get", "patch"],
        }]);
        let mut all = vec![
            json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": namespace, "labels": labels() },
            }),
            own("ServiceAccount", "v1"),
            with(everywhere("ClusterRole"), "rules", json!(granted)),
            bound(everywhere("ClusterRoleBinding"), "ClusterRole"),
            // The agent writes its key here; without data, another `apply` leaves what it wrote.
            with(own("Secret", "v1"), "type", json!("Opaque")),
            with(own("Role", RBAC), "rules", own_secret),
            bound(own("RoleBinding", RBAC), "Role"),
        ];
        if let Some(token) = &self.token {
            let mut secret = with(own("Secret", "v1"), "stringData", json!({ "token": token.to_string() }));
            secret["metadata"]["name"] = json!(TOKEN_SECRET);
            all.push(secret);
        }
        all.extend(
            image.as_deref().map(|image| with(own("Deployment", "apps/v1"), "spec", self.deployment(image))),
        );
        all
    }

    fn deployment(&self, image: &str) -> Value {
        let hub = format!("https://{}", self.arguments.hub.authority);
        let token = format!("{TOKEN_FOLDER}/token");
        let mut arguments = vec![
            "agent",
            "--hub",
            &hub,
            "--name",
            self.name,
            "--identity-secret",
            NAME,
            "--token-file",
            &token,
        ];
        arguments.extend(self.arguments.allow_actions.then_some("--allow-actions"));
        let writes = self.arguments.write_resourcegroup_status;
        arguments.extend(writes.then_some("--write-resourcegroup-status"));
        let container = json!({
            "name": "agent",
            "image": image,
            "args": arguments,
            "resources": { "requests": { "cpu": "20m", "memory": "64Mi" } },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": { "drop": ["ALL"] },
                "readOnlyRootFilesystem": true,
            },
            "volumeMounts": [{ "name": "token", "mountPath": TOKEN_FOLDER, "readOnly": true }],
        });
        json!({
            "replicas": 1,
            // Of two agents of one cluster one waits in any case.
            "strategy": { "type": "Recreate" },
            "selector": { "matchLabels": labels() },
            "template": {
                "metadata": { "labels": labels() },
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 65_532,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [container],
                    // An agent that has enrolled goes on when the token is gone.
                    "volumes": [{ "name": "token", "secret": { "secretName": TOKEN_SECRET, "optional": true } }],
                },
            },
        })
    }
}

fn labels() -> Value {
    json!({ "app.kubernetes.io/name": NAME })
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

/// Returns the rules of the ClusterRole: what the agent may read of these resources, by group and name.
fn rules(resources: &[ServedResource], without_secrets: bool) -> Vec<Value> {
    let is_secret = |resource: &ServedResource| resource.group.is_empty() && resource.plural == "secrets";
    let is_read = |it: &&ServedResource| it.can_list() && !(without_secrets && is_secret(it));
    let mut rules = by_name(resources.iter().filter(is_read), &READ);
    rules.push(json!({ "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] }));
    rules
}

/// The kinds of which actions create objects, by group.
const CREATED: [(&str, &str); 2] = [("batch", "Job"), ("argoproj.io", "Workflow")];

/// Returns the rules for operations: what the agent may change of these resources.
fn rules_of_operations(resources: &[ServedResource]) -> Vec<Value> {
    #[cfg(feature = "lua")]
    let with_actions = taffrail_rules::shipped_action_kinds();
    #[cfg(not(feature = "lua"))]
    let with_actions = BTreeSet::<(&str, &str)>::new();
    let is_of_verb = |group: &str, kind: &str| {
        group.ends_with(".toolkit.fluxcd.io") || (group, kind) == ("argoproj.io", "Application")
    };
    let is_patched = |it: &&ServedResource| {
        is_of_verb(&it.group, &it.kind) || with_actions.contains(&(&*it.group, &*it.kind))
    };
    let is_created = |it: &&ServedResource| CREATED.contains(&(&*it.group, &*it.kind));
    let mut rules = by_name(resources.iter().filter(is_patched), &["patch"]);
    rules.extend(by_name(resources.iter().filter(is_created), &["create"]));
    rules
}

/// Returns a rule for each API group and set of verbs: those of `verbs` that the resources have.
fn by_name<'r>(resources: impl Iterator<Item = &'r ServedResource>, verbs: &[&'static str]) -> Vec<Value> {
    let mut named: BTreeMap<(&str, Vec<&str>), BTreeSet<&str>> = BTreeMap::new();
    for ServedResource { group, plural, verbs: served, .. } in resources {
        // A name with `*` or `/` would grant more than it seems to.
        if plural.is_empty() || plural.contains(['*', '/']) || group.contains('*') {
            continue;
        }
        let verbs: Vec<&str> =
            verbs.iter().copied().filter(|verb| served.iter().any(|served| served == verb)).collect();
        if !verbs.is_empty() {
            named.entry((group, verbs)).or_default().insert(plural);
        }
    }
    let rule = |((group, verbs), names): ((&str, Vec<&str>), BTreeSet<&str>)| json!({ "apiGroups": [group], "resources": names, "verbs": verbs });
    named.into_iter().map(rule).collect()
}

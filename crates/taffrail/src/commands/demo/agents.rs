//! The agents of the demo: each reports a simulated cluster that the kubeconfig does not have, by TLS and after it has
//! enrolled, as `taffrail agent` does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use taffrail_agent::{Agent, AgentPauses, AgentSettings, HubAddress, HubTrust, IdentityFile, Spool};
use taffrail_api::agent_protocol::EnrolmentToken;
use taffrail_apps::ClusterId;
use taffrail_cluster::{BootClock, EnvironmentProxies};
use taffrail_hub::http::Tls;
use taffrail_observe::{FleetMembers, Member};
use taffrail_sim::Cluster;

use super::kubeconfig::write_private;
use crate::cli::SourceArguments;
use crate::command_error::CommandError;
use crate::commands::agent::ClusterOfAgent;
use crate::commands::hub::create_folder;
use crate::source::members;

/// The host by which agents know the hub, which its certificate names.
const HOST: &str = "127.0.0.1";

/// Time limit for a response of a simulated cluster to its agent.
const PATIENCE: Duration = Duration::from_secs(15);

/// Makes a certificate that is its own issuer, and writes it and its key into a folder, which is created.
pub(super) fn certificate(folder: &Path) -> Result<Tls, CommandError> {
    create_folder(folder)?;
    let cannot = |error: &dyn std::error::Error| {
        CommandError::unreadable("cannot make a certificate for the agents of the demo").with_source(error)
    };
    let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).map_err(|error| cannot(&error))?;
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    for (path, text) in [(&certificate, made.cert.pem()), (&key, made.signing_key.serialize_pem())] {
        write_private(path, &text).map_err(|error| cannot(&error))?;
    }
    Tls::read(&certificate, &key).map_err(|error| cannot(&error))
}

/// An agent that has not enrolled yet.
pub(super) struct DemoAgent {
    member: Member,
    cluster: ClusterId,
    source: SourceArguments,
    keeper: IdentityFile,
}

/// Makes the agents of these clusters, to which `kubeconfig` leads. They keep their files in `folder`.
pub(super) fn agents(
    clusters: &[Cluster],
    kubeconfig: &str,
    folder: &Path,
) -> Result<Vec<DemoAgent>, CommandError> {
    let path = folder.join("agents.kubeconfig");
    write_private(&path, kubeconfig).map_err(|error| {
        CommandError::unreadable("cannot write the kubeconfig of the demo's agents").with_source(&error)
    })?;
    let source = SourceArguments::of_kubeconfig(path, PATIENCE);
    let FleetMembers { members, .. } = members(&source)?;
    let agent = |member: Member| {
        let cluster = clusters.iter().find(|cluster| cluster.name() == member.name)?;
        let system = cluster.get("v1", "Namespace", "", "kube-system")?;
        let cluster = ClusterId(system["metadata"]["uid"].as_str()?.to_owned());
        let keeper = IdentityFile::in_folder(&folder.join("agents").join(&member.name));
        Some(DemoAgent { member, cluster, source: source.clone(), keeper })
    };
    Ok(members.into_iter().filter_map(agent).collect())
}

impl DemoAgent {
    /// Returns the name of the cluster.
    pub(super) fn name(&self) -> &str {
        &self.member.name
    }

    /// Enrols with `token` at the hub on this machine at `port`, and reports the cluster until that cannot go on.
    pub(super) async fn run(self, port: u16, token: EnrolmentToken) {
        let DemoAgent { member, cluster, source, keeper } = self;
        let clock = BootClock::default();
        let spool = Arc::new(Spool::in_memory(cluster.clone(), clock.clone()));
        let settings = AgentSettings {
            hub: HubAddress { host: HOST.to_owned(), port },
            trust: HubTrust::Enrolled,
            proxies: EnvironmentProxies::default(),
            keeper: Arc::new(keeper),
            token: Some(token),
            cluster: cluster.0.clone(),
            name: member.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            allows_actions: true,
            spool: Arc::clone(&spool),
            pauses: AgentPauses::default(),
        };
        // The screen has no room for what happens to an agent; the hub shows the cluster of one that is gone as lost.
        let Ok(agent) = Agent::enrolled(settings, |_| {}).await else { return };
        let of_agent = ClusterOfAgent {
            member,
            problems: Vec::new(),
            cluster,
            source: &source,
            clock,
            spool,
            has_ages: true,
            told_of_groups: None,
        };
        drop(of_agent.report(agent, None, |_| {}).await);
    }
}

//! The arguments of each program of a cluster, and the files that the programs read.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::state::{KUBECONFIG_MARK, Member};

/// The annotation of Pods whose kubelet has stopped: their status is no longer written, and they are not terminated.
pub(super) const STOPPED: &str = "taffrail.dev/kubelet=stopped";

/// The file in which an audited API server logs its requests, a JSON object a line.
pub const AUDIT_LOG: &str = "audit.log";

/// An audit policy that logs all requests without their bodies; long-running ones when they begin.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
";

/// Returns the arguments that make an API server log all requests; writes the policy file that they name.
pub(super) fn audit(folder: &Path) -> Result<Vec<String>> {
    let policy = folder.join("audit-policy.yaml");
    fs::write(&policy, AUDIT_POLICY).with_context(|| format!("cannot write {}", policy.display()))?;
    Ok(vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.join(AUDIT_LOG).display()),
        // Written immediately, so that readers do not wait for the next batch.
        "--audit-log-mode=blocking".to_owned(),
    ])
}

/// The tokens of one cluster's users.
pub(super) struct Tokens {
    /// The token of the administrator, who may do everything.
    pub(super) admin: String,
    /// The token of a user without any role.
    pub(super) reader: String,
}

impl Tokens {
    /// Creates new tokens and writes the file that kube-apiserver reads.
    pub(super) fn write(file: &Path) -> Result<Self> {
        let tokens = Self { admin: random()?, reader: random()? };
        let text =
            format!("{},admin,admin,system:masters\n{},reader,reader,readers\n", tokens.admin, tokens.reader);
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(tokens)
    }
}

/// Returns 128 random bits, in hex.
fn random() -> Result<String> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read random bytes from /dev/urandom")?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// The greatest size of a durable store in bytes.
const MAX_STORE: u64 = 8 << 30;

pub(super) fn etcd(data: &Path, client: u16, peer: u16, durable: bool) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client}");
    let peer = format!("http://127.0.0.1:{peer}");
    vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--log-level=warn".to_owned(),
        // The data does not outlive the processes, so it need not be durable to serve tests.
        if durable { format!("--quota-backend-bytes={MAX_STORE}") } else { "--unsafe-no-fsync".to_owned() },
    ]
}

pub(super) fn apiserver(folder: &Path, context: &str, etcd_port: u16, port: u16) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        // One etcd serves all clusters of a control plane: this costs a quarter of one etcd for each.
        format!("--etcd-prefix=/{context}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // Endpoints may not name loopback addresses, so the API server must not publish its own.
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--tls-cert-file={}", file("tls.crt")),
        format!("--tls-private-key-file={}", file("tls.key")),
        format!("--cert-dir={}", file("")),
        format!("--token-auth-file={}", file("tokens.csv")),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
    ]
}

pub(super) fn controller_manager(folder: &Path, port: u16) -> Vec<String> {
    let kubeconfig = folder.join("kubeconfig").display().to_string();
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--service-account-private-key-file={}", folder.join("sa.key").display()),
        format!("--root-ca-file={}", folder.join("ca.crt").display()),
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        // The defaults protect a shared server; a rollout of 200 would take half a minute with them.
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
    ]
}

pub(super) fn scheduler(folder: &Path, port: u16) -> Vec<String> {
    let kubeconfig = folder.join("kubeconfig").display().to_string();
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
    ]
}

pub(super) fn kwok(folder: &Path) -> Vec<String> {
    let stages = super::source_folder().join("stages");
    let mut arguments = vec![
        format!("--kubeconfig={}", folder.join("kubeconfig").display()),
        "--manage-all-nodes=true".to_owned(),
        "--node-ip=10.32.0.1".to_owned(),
        "--cidr=10.64.0.0/12".to_owned(),
        // Without a renewed lease, the controller-manager would give up every node after 40 s.
        "--node-lease-duration-seconds=40".to_owned(),
        format!("--disregard-status-with-annotation-selector={STOPPED}"),
    ];
    for name in ["node.yaml", "pod.yaml", "pod-faults.yaml", "pod-run-faults.yaml", "pod-start-faults.yaml"] {
        arguments.push(format!("--config={}", stages.join(name).display()));
    }
    arguments
}

/// Builds a kubeconfig with these clusters and the token of a user in each.
pub(super) fn kubeconfig(members: &[(&Member, &str)]) -> Result<String> {
    let lines = |(member, token): &(&Member, &str)| {
        let authority = member.folder.join("ca.crt");
        let authority =
            fs::read(&authority).with_context(|| format!("cannot read {}", authority.display()))?;
        let (server, authority) = (&member.server, STANDARD.encode(authority));
        let cluster = format!("server: {server}\ncertificate-authority-data: {authority}");
        Ok((cluster, format!("token: {token}")))
    };
    let lines: Vec<(String, String)> = members.iter().map(lines).collect::<Result<_>>()?;
    let contexts = members.iter().zip(&lines);
    let contexts: Vec<(&str, &str, &str)> =
        contexts.map(|((member, _), (cluster, user))| (&*member.context, &**cluster, &**user)).collect();
    Ok(format!("{KUBECONFIG_MARK}\n{}", crate::kubeconfig(&contexts)))
}

/// Returns the manifests of `count` Nodes, `node-1` and so on, that kwok simulates.
pub(super) fn nodes(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, index| {
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: node-{index}\n  labels:\n    kubernetes.io/hostname: \
             node-{index}\n    kubernetes.io/os: linux\n    kubernetes.io/arch: amd64\n    topology.kubernetes.io/zone: \
             zone-{}\n  annotations:\n    kwok.x-k8s.io/node: fake\n",
            (index - 1) % 3 + 1
        );
        text
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_node_is_a_document() {
        let text = super::nodes(3);
        assert_eq!(text.matches("---\n").count(), 3);
        assert!(text.contains("name: node-3\n  labels:\n    kubernetes.io/hostname: node-3\n"), "{text}");
    }
}

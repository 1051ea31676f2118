//! Operations on a running control plane: kubectl and helm of the same build, and the actions that tests use most.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

use super::ControlPlane;
use super::cluster::STOPPED;
use super::programs::Programs;

/// Returns a command for a client of this build that neither reads the user's own configuration nor writes caches to
/// the home folder: cached discovery of an earlier control plane on the same port would be wrong here.
pub(super) fn client(programs: &Programs, program: &str, folder: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(programs.path(program));
    command
        .env("KUBECONFIG", kubeconfig)
        .env("KUBECACHEDIR", folder.join("cache"))
        .env("KUBERC", "off")
        .env("HELM_CACHE_HOME", folder.join("helm/cache"))
        .env("HELM_CONFIG_HOME", folder.join("helm/config"))
        .env("HELM_DATA_HOME", folder.join("helm/data"))
        .stdin(Stdio::null());
    command
}

/// Runs a command with this standard input and returns its standard output.
///
/// # Errors
/// If it fails; with its standard error.
pub(super) fn run(command: &mut Command, input: &str) -> Result<String> {
    let shown = shown(command);
    let output = feed(command, input).with_context(|| format!("cannot run `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not write UTF-8"))
}

fn feed(command: &mut Command, input: &str) -> std::io::Result<Output> {
    if input.is_empty() {
        return command.stdin(Stdio::null()).output();
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // A command that does not read to the end reports the reason itself.
        let _ = pipe.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

/// Returns the program's name and its arguments, for messages.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

impl ControlPlane {
    /// Returns a kubectl command for a cluster, as the administrator.
    pub fn kubectl_command(&self, context: &str) -> Command {
        let mut command = client(&self.programs, "kubectl", &self.state.folder, self.kubeconfig());
        command.args(["--context", context]);
        command
    }

    /// Runs kubectl on a cluster as the administrator and returns its standard output; an error with its standard error
    /// if it fails.
    pub fn kubectl(&self, context: &str, arguments: &[&str]) -> Result<String> {
        run(self.kubectl_command(context).args(arguments), "")
    }

    /// Runs helm on a cluster as the administrator and returns its standard output; an error with its standard error if
    /// it fails.
    pub fn helm(&self, context: &str, arguments: &[&str]) -> Result<String> {
        let mut command = client(&self.programs, "helm", &self.state.folder, self.kubeconfig());
        run(command.args(["--kube-context", context]).args(arguments), "")
    }

    /// Applies manifests, without their status, as `kubectl apply --server-side --force-conflicts` does.
    pub fn apply(&self, context: &str, manifests: &str) -> Result<()> {
        run(
            self.kubectl_command(context).args(["apply", "--server-side", "--force-conflicts", "-f", "-"]),
            manifests,
        )?;
        Ok(())
    }

    /// Applies the status of manifests through the `/status` subresource, as a controller does.
    ///
    /// The objects must exist. Set `observedGeneration` to the generation that the object will have: 1 for one that was
    /// just created.
    pub fn apply_status(&self, context: &str, manifests: &str) -> Result<()> {
        let arguments = ["apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", "-"];
        run(self.kubectl_command(context).args(arguments), manifests)?;
        Ok(())
    }

    /// Applies manifests, and then the status of those that have one in the text, as if the controllers of their kinds
    /// had run.
    pub fn apply_with_status(&self, context: &str, manifests: &str) -> Result<()> {
        self.apply(context, manifests)?;
        let with_status: Vec<&str> =
            documents(manifests).filter(|document| document.contains("\nstatus:")).collect();
        if with_status.is_empty() { Ok(()) } else { self.apply_status(context, &with_status.join("\n---\n")) }
    }

    /// Waits as `kubectl wait` does, through a watch: `&["--for=condition=Available", "deployment/web", "-n", "shop"]`;
    /// at most 60 s, unless the arguments have `--timeout`.
    pub fn wait(&self, context: &str, arguments: &[&str]) -> Result<()> {
        let timeout: &[&str] = if arguments.iter().any(|argument| argument.starts_with("--timeout")) {
            &[]
        } else {
            &["--timeout=60s"]
        };
        run(self.kubectl_command(context).arg("wait").args(arguments).args(timeout), "")?;
        Ok(())
    }

    /// Stops a node of a cluster: its lease is no longer renewed, and its Pods stay as they are, even when they are
    /// deleted. The node lifecycle controller notices by itself, after its grace period of 50 s.
    pub fn stop_node(&self, context: &str, node: &str) -> Result<()> {
        self.annotate_pods_of(context, node, STOPPED)?;
        // kwok does not renew a lease of another holder before it expires.
        self.patch_lease(
            context,
            node,
            r#"{"spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 1000000}}"#,
        )
    }

    /// Undoes [`stop_node`](ControlPlane::stop_node): the node's lease is renewed and the status of its Pods written
    /// again.
    pub fn start_node(&self, context: &str, node: &str) -> Result<()> {
        self.patch_lease(context, node, r#"{"spec": {"holderIdentity": null}}"#)?;
        let key = STOPPED.split_once('=').map_or(STOPPED, |(key, _)| key);
        self.annotate_pods_of(context, node, &format!("{key}-"))
    }

    fn annotate_pods_of(&self, context: &str, node: &str, annotation: &str) -> Result<()> {
        let field = format!("--field-selector=spec.nodeName={node}");
        self.kubectl(context, &["annotate", "pods", "-A", &field, annotation]).map(drop)
    }

    fn patch_lease(&self, context: &str, node: &str, patch: &str) -> Result<()> {
        let arguments = ["patch", "lease", node, "-n", "kube-node-lease", "--type=merge", "-p", patch];
        self.kubectl(context, &arguments).map(drop)
    }

    /// Creates a namespace and waits until Pods can be created in it: they need its default ServiceAccount.
    pub fn create_namespace(&self, context: &str, name: &str) -> Result<()> {
        self.apply(context, &format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n"))?;
        self.wait(context, &["--for=create", "serviceaccount/default", "-n", name])
    }
}

/// Splits a YAML text into documents at lines of `---`.
fn documents(manifests: &str) -> impl Iterator<Item = &str> {
    manifests.split("\n---\n").map(|document| document.trim_start_matches("---\n"))
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn documents_are_split_at_separator_lines() {
        let parts: Vec<&str> = documents("---\na: 1\n---\nb: |\n  ---\n  c\n").collect();
        assert_eq!(parts, ["a: 1", "b: |\n  ---\n  c\n"]);
    }
}

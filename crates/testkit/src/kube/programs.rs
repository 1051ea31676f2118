//! The programs of the control plane: built once with Go from the modules beside this crate, and kept in the user's
//! cache.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const KUBERNETES: &str = include_str!("../../kube/kubernetes/go.mod");
const ETCD: &str = include_str!("../../kube/etcd/go.mod");
const TOOLS: &str = include_str!("../../kube/tools/go.mod");

/// The built programs of control planes, in a folder of the cache.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

/// The versions of the programs that the `go.mod` files in `kube/` require.
struct Versions {
    kubernetes: &'static str,
    etcd: &'static str,
    kwok: &'static str,
    helm: &'static str,
}

impl Versions {
    fn read() -> Result<Self> {
        Ok(Self {
            kubernetes: required(KUBERNETES, "k8s.io/kubernetes")?,
            etcd: required(ETCD, "go.etcd.io/etcd/server/v3")?,
            kwok: required(TOOLS, "sigs.k8s.io/kwok")?,
            helm: required(TOOLS, "helm.sh/helm/v3")?,
        })
    }

    fn key(&self) -> String {
        let Self { kubernetes, etcd, kwok, helm } = self;
        format!("kubernetes-{kubernetes}_etcd-{etcd}_kwok-{kwok}_helm-{helm}")
    }
}

/// Returns the version, without its `v`, that the text `go_mod` requires of a module; fails if it does not require the
/// module.
fn required(go_mod: &'static str, module: &str) -> Result<&'static str> {
    go_mod
        .lines()
        .map(|line| line.trim().trim_start_matches("require "))
        .find_map(|line| line.strip_prefix(module)?.strip_prefix(" v"))
        .and_then(|rest| rest.split_whitespace().next())
        .with_context(|| format!("the go.mod files of testkit do not require {module}"))
}

/// Returns the version of Kubernetes' sources from which control planes are built, such as `v1.36.3`.
///
/// # Errors
/// If the `go.mod` files in `kube/` do not require them.
pub fn kubernetes_version() -> Result<String> {
    Ok(format!("v{}", Versions::read()?.kubernetes))
}

impl Programs {
    /// Returns the programs, and builds them first if they are not in the cache.
    pub fn ensure() -> Result<Self> {
        let versions = Versions::read()?;
        let folder = cache()?.join("kube").join(versions.key());
        if folder.is_dir() {
            return Ok(Self { folder });
        }
        let parent = cache()?.join("kube");
        fs::create_dir_all(&parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let lock = parent.join(format!("{}.lock", versions.key()));
        let lock = File::create(&lock).with_context(|| format!("cannot create {}", lock.display()))?;
        lock.lock().context("cannot lock the cache of control plane programs")?;
        // Another process may have built them while this one waited for the lock.
        if !folder.is_dir() {
            build(&versions, &folder)?;
        }
        Ok(Self { folder })
    }

    /// Returns the programs if they are in the cache, else `None`.
    pub fn cached() -> Result<Option<Self>> {
        let folder = cache()?.join("kube").join(Versions::read()?.key());
        Ok(folder.is_dir().then_some(Self { folder }))
    }

    /// Returns the reason the programs are neither cached nor can be built; `None` if they are available.
    pub fn unavailable() -> Result<Option<String>> {
        if Self::cached()?.is_some() || go_version().is_ok() {
            return Ok(None);
        }
        Ok(Some(
            "the control plane is not in the cache, and `go`, which builds it, is not installed".to_owned(),
        ))
    }

    /// Returns the path of a program: `kube-apiserver`, `kubectl`, `helm`, …
    pub fn path(&self, program: &str) -> PathBuf {
        self.folder.join("bin").join(program)
    }
}

/// Returns Taffrail's folder in the user's cache.
///
/// # Errors
/// If neither `XDG_CACHE_HOME` nor the home folder is known.
pub fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| Path::new(value).is_absolute()) {
        Some(base) => PathBuf::from(base),
        None => std::env::home_dir()
            .filter(|home| home.is_absolute())
            .context("no folder for the cache: neither XDG_CACHE_HOME nor HOME is set to an absolute path")?
            .join(".cache"),
    };
    Ok(base.join("taffrail"))
}

fn go_version() -> Result<()> {
    match Command::new("go").arg("version").stdin(Stdio::null()).output() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "`go` is not on PATH, and it builds the control plane: install Go 1.26 or later (https://go.dev/dl, or \
             your system's package golang)"
        ),
        Err(error) => Err(error).context("`go version` could not be run"),
    }
}

/// Builds into a folder beside the final one and renames it, so that an interrupted build leaves nothing that looks
/// complete.
fn build(versions: &Versions, folder: &Path) -> Result<()> {
    go_version()?;
    let unfinished = folder.with_extension("building");
    let _ = fs::remove_dir_all(&unfinished);
    let bin = unfinished.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
    let _ = writeln!(
        io::stderr(),
        "Building Kubernetes {}, etcd {}, kwok {} and helm {} with Go into {}: once, about 8 minutes on 2 cores.",
        versions.kubernetes,
        versions.etcd,
        versions.kwok,
        versions.helm,
        folder.display()
    );
    let mut parts = versions.kubernetes.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // Clients refuse a server that does not know its own version.
    let stamp = "k8s.io/component-base/version";
    let stamped = format!(
        "-s -w -X {stamp}.gitVersion=v{} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}",
        versions.kubernetes
    );
    let plain = "-s -w";
    for (module, package, flags) in [
        ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", stamped.as_str()),
        ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", &stamped),
        ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", &stamped),
        ("kubernetes", "k8s.io/kubernetes/cmd/kubectl", &stamped),
        ("etcd", "go.etcd.io/etcd/server/v3", plain),
        ("tools", "sigs.k8s.io/kwok/cmd/kwok", plain),
        ("tools", "helm.sh/helm/v3/cmd/helm", plain),
    ] {
        let program = match module {
            "etcd" => "etcd",
            _ => package.rsplit('/').next().unwrap_or(package),
        };
        let built = Command::new("go")
            .args(["build", "-ldflags", flags, "-o"])
            .arg(bin.join(program))
            .arg(package)
            .current_dir(super::source_folder().join(module))
            .env("GOWORK", "off")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run `go build {package}`"))?;
        if !built.status.success() {
            bail!(
                "`go build {package}` in crates/testkit/kube/{module} failed ({}):\n{}",
                built.status,
                super::process::tail(&String::from_utf8_lossy(&built.stderr), 15)
            );
        }
    }
    fs::rename(&unfinished, folder)
        .with_context(|| format!("cannot move {} to {}", unfinished.display(), folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_go_modules() {
        let versions = Versions::read().expect("all four are required");
        assert!(versions.kubernetes.starts_with("1."), "{}", versions.kubernetes);
        assert_eq!(versions.key().matches("_").count(), 3);
    }

    #[test]
    fn go_mod_requirement_is_found_alone_and_in_a_block() {
        assert_eq!(required("require a.b/c v1.2.3\n", "a.b/c").expect("alone"), "1.2.3");
        assert_eq!(required("require (\n\ta.b/c v1.2.3 // indirect\n)\n", "a.b/c").expect("block"), "1.2.3");
        assert!(required("require a.b/cd v1.2.3\n", "a.b/c").is_err());
    }
}

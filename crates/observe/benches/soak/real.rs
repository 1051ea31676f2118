//! A real API server behind a proxy. Its processes belong to the program that starts this one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, Request, header};
use kube::config::KubeConfigOptions;
use serde_json::Value;
use taffrail_testkit::proxy::{Line, Proxy};

use crate::Outcome;
use crate::ground::{Change, Counts, NAMESPACE};

/// Maximum time of a write; a server may be away.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);

/// Minimum time for which a server's process stays stopped.
const HELD: Duration = Duration::from_secs(10);

pub(crate) struct Real {
    client: kube::Client,
    proxy: Proxy,
    kubeconfig: PathBuf,
    followed: PathBuf,
    words: tokio::sync::Mutex<()>,
    /// True while the server's process is stopped.
    held: AtomicBool,
    /// True if the server's state was saved, so that it can be restored.
    is_saved: AtomicBool,
    counts: Mutex<Counts>,
}

impl Real {
    pub(crate) async fn start(kubeconfig: &Path) -> Outcome<Real> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another one that was chosen meanwhile is as good.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let text = std::fs::read_to_string(kubeconfig)?;
        let read = kube::config::Kubeconfig::read_from(kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        let authority = config.cluster_url.authority().ok_or("a server without address")?.as_str().to_owned();
        let proxy = Proxy::open(authority.parse()?).await?;
        let followed = std::env::temp_dir().join(format!("taffrail-soak-{}", std::process::id()));
        std::fs::write(&followed, text.replace(&authority, &proxy.address.to_string()))?;
        Ok(Real {
            client: kube::Client::try_from(config)?,
            proxy,
            kubeconfig: kubeconfig.to_owned(),
            followed,
            words: tokio::sync::Mutex::default(),
            held: AtomicBool::new(false),
            is_saved: AtomicBool::new(false),
            counts: Mutex::default(),
        })
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn followed(&self) -> &Path {
        &self.followed
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, what: &str) -> String {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what.to_owned()).or_default() += 1;
        what.to_owned()
    }

    /// Asks the program that started this one, on standard output, to do `what` to the server's processes, and waits
    /// for its answer on standard input.
    async fn have_done(&self, what: &str) -> Outcome<()> {
        let _alone = self.words.lock().await;
        println!("do {what}");
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        let line = line.await??;
        match line.trim() {
            "done" => Ok(()),
            "" => Err(format!("nobody is there to {what}").into()),
            why => Err(format!("cannot {what}: {why}").into()),
        }
    }

    pub(crate) async fn write(&self, change: Change) -> Outcome<()> {
        match change {
            Change::Apply(object) => {
                let path = path_of(&object);
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let merge = "application/merge-patch+json";
                match self.send(Method::PATCH, &format!("{path}/{name}"), merge, &object).await {
                    Ok(404) => match self.send(Method::POST, &path, "application/json", &object).await? {
                        // Another writer was quicker.
                        200..300 | 409 => Ok(()),
                        code => Err(format!("{path}: {code}").into()),
                    },
                    Ok(200..300) => Ok(()),
                    Ok(code) => Err(format!("{path}/{name}: {code}").into()),
                    Err(error) => Err(error),
                }
            }
            Change::Delete { api_version, kind, name } => {
                let object = serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": NAMESPACE}});
                let path = format!("{}/{name}", path_of(&object));
                match self.send(Method::DELETE, &path, "application/json", &Value::Null).await? {
                    200..300 | 404 => Ok(()),
                    code => Err(format!("{path}: {code}").into()),
                }
            }
        }
    }

    async fn send(&self, method: Method, path: &str, form: &str, body: &Value) -> Outcome<u16> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let request =
            Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, form).body(body)?;
        let asked = tokio::time::timeout(WRITTEN_WITHIN, async {
            let response = self.client.send(request.map(kube::client::Body::from)).await?;
            let code = response.status().as_u16();
            // To its end, so that the connection can be used again.
            http_body_util::BodyExt::collect(response.into_body()).await?;
            Ok::<u16, kube::Error>(code)
        });
        Ok(asked.await??)
    }

    pub(crate) async fn trouble(&self, random: &mut fastrand::Rng) -> Outcome<String> {
        // What takes a server some seconds comes seldom.
        Ok(match random.u8(0..100) {
            0..3 => {
                self.have_done("restart kube-apiserver").await?;
                self.count("kube-apiserver killed")
            }
            3..6 => {
                self.have_done("restart etcd").await?;
                self.count("etcd killed")
            }
            6..30 => {
                self.proxy.cut();
                self.count("connections cut")
            }
            30..50 => {
                self.proxy.set(Line::Slow(Duration::from_millis(random.u64(1..500))));
                self.count("delayed")
            }
            50..65 => {
                self.proxy.set(Line::Dead);
                self.count("swallowed for a moment")
            }
            65..75 => {
                self.proxy.set(Line::Closed);
                self.count("refused")
            }
            75..90 => {
                self.proxy.cut_after(random.usize(0..20_000));
                self.count("cut in the middle")
            }
            _ => {
                self.proxy.set(Line::Open);
                self.count("healed")
            }
        })
    }

    pub(crate) async fn darken(&self, random: &mut fastrand::Rng) -> Outcome<String> {
        if random.u8(0..3) == 0 {
            self.have_done("hold kube-apiserver").await?;
            self.held.store(true, Ordering::Relaxed);
            return Ok(self.count("kube-apiserver held still"));
        }
        self.proxy.set(Line::Dead);
        Ok(self.count("swallowed"))
    }

    pub(crate) async fn lighten(&self, since: Instant) -> Outcome<()> {
        if self.held.load(Ordering::Relaxed) {
            tokio::time::sleep(HELD.saturating_sub(since.elapsed())).await;
        }
        self.heal().await
    }

    pub(crate) async fn heal(&self) -> Outcome<()> {
        self.proxy.cut_after(usize::MAX);
        self.proxy.set(Line::Open);
        if self.held.swap(false, Ordering::Relaxed) {
            self.have_done("release kube-apiserver").await?;
        }
        Ok(())
    }

    pub(crate) async fn finish_round(&self, random: &mut fastrand::Rng) -> Outcome<Option<String>> {
        match random.u8(0..40) {
            // What was saved is some rounds old when it is restored.
            0..4 => {
                self.have_done("save").await?;
                self.is_saved.store(true, Ordering::Relaxed);
            }
            4..7 if self.is_saved.load(Ordering::Relaxed) => {
                self.have_done("restore").await?;
                return Ok(Some(self.count("etcd restored")));
            }
            _ => {}
        }
        Ok(None)
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.followed);
    }
}

/// Returns the path of the API at which objects of this kind are created.
fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]).to_lowercase());
    let base = if api_version.contains('/') { "/apis" } else { "/api" };
    match text(&object["metadata"]["namespace"]) {
        namespace if namespace.is_empty() => format!("{base}/{api_version}/{kind}s"),
        namespace => format!("{base}/{api_version}/namespaces/{namespace}/{kind}s"),
    }
}

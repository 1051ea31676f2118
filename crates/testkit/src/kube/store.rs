//! The store of a control plane, read and written without its API servers.
//!
//! A test knows and changes the truth by it while an API server is paused, and no cache lies between. Only custom
//! resources are stored as JSON; objects of built-in kinds are Protobuf and cannot be read here.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::ControlPlane;
use crate::exchange;

/// The maximum time for which the store may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum time in which the store is compacted: gigabytes may be copied.
const COMPACTION: Duration = Duration::from_secs(300);

impl ControlPlane {
    /// Returns the custom resource at `path` (`GROUP/PLURAL/NAMESPACE/NAME`) in the store of a cluster; `None` if there
    /// is none.
    pub fn stored(&self, context: &str, path: &str) -> Result<Option<Value>> {
        let answer = self.ask_store("kv/range", &json!({"key": key(context, path)}), PATIENCE)?;
        let Some(text) = answer["kvs"][0]["value"].as_str() else { return Ok(None) };
        let bytes = STANDARD.decode(text).context("the store answered with a value that is not base64")?;
        let object = serde_json::from_slice(&bytes);
        object.map(Some).with_context(|| format!("{path} is not stored as JSON"))
    }

    /// Writes a custom resource to `path` (`GROUP/PLURAL/NAMESPACE/NAME`) in the store of a cluster, unchecked; its API
    /// server tells watches of it as of any other change.
    pub fn store(&self, context: &str, path: &str, object: &Value) -> Result<()> {
        let value = STANDARD.encode(object.to_string());
        self.ask_store("kv/put", &json!({"key": key(context, path), "value": value}), PATIENCE).map(drop)
    }

    /// Removes the custom resource at `path` (`GROUP/PLURAL/NAMESPACE/NAME`) from the store of a cluster, if it is
    /// there.
    pub fn unstore(&self, context: &str, path: &str) -> Result<()> {
        self.ask_store("kv/deleterange", &json!({"key": key(context, path)}), PATIENCE).map(drop)
    }

    /// Removes all versions of objects but the present ones from the store, and returns the space that they took to the
    /// file system, as `etcdctl compact` and `etcdctl defrag` do. The store answers nothing else meanwhile.
    pub fn compact_store(&self) -> Result<()> {
        let answer =
            self.ask_store("kv/range", &json!({"key": STANDARD.encode("/"), "limit": 1}), PATIENCE)?;
        let revision = &answer["header"]["revision"];
        self.ask_store("kv/compaction", &json!({"revision": revision, "physical": true}), COMPACTION)?;
        self.ask_store("maintenance/defragment", &json!({}), COMPACTION).map(drop)
    }

    /// Returns the path of the database file of the store, which all clusters share.
    pub fn store_file(&self) -> PathBuf {
        self.state.folder.join("etcd/member/snap/db")
    }

    fn ask_store(&self, what: &str, question: &Value, patience: Duration) -> Result<Value> {
        let store = self.processes().iter().find(|it| it.program == "etcd");
        let arguments = &store.context("no etcd runs")?.arguments;
        let port = arguments.iter().find_map(|it| it.strip_prefix("--listen-client-urls=http://127.0.0.1:"));
        let port: u16 = port.context("etcd listens on no port of this machine")?.parse()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let request = format!("POST /v3/{what}");
        let (status, body) = exchange(address, &request, "", &question.to_string(), patience)?;
        ensure!(status == 200, "the store refused {request} with {status}: {body}");
        serde_json::from_str(&body).context("the store did not answer in JSON")
    }
}

fn key(context: &str, path: &str) -> String {
    STANDARD.encode(format!("/{context}/{path}"))
}

//! A hub whose disk is full goes on reading, says that it saves nothing, and saves all of it once there is room.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fleet};

use super::command;
use super::hub::{Hub, wait_for};

/// The longest time that the hub takes to notice that its disk is full, or that there is room again.
const NOTICED: Duration = Duration::from_secs(60);

/// Mounts a file system of 8 MiB at the first argument, which only this process and its children see, and runs the
/// others as a program.
const ON_A_SMALL_DISK: &str = r#"mount -t tmpfs -o size=8m none "$1" && shift && exec "$@""#;

/// Makes the command that runs `inner` on a small disk mounted at `folder`.
fn on_a_small_disk(folder: &Path, inner: &Command) -> Command {
    let mut outer = Command::new("unshare");
    outer.args(["--map-root-user", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh"]);
    outer.arg(folder).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Writes zeros into a file until the disk is full.
fn fill(file: &Path) {
    let mut filler = File::create(file).unwrap();
    let full = loop {
        if let Err(error) = filler.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}

fn add_apps(cluster: &Cluster, round: usize, number: usize) {
    for app in 0..number {
        let name = format!("app-{round}-{app}");
        let labels = json!({"app.kubernetes.io/instance": name});
        let metadata = json!({"namespace": "default", "name": name, "labels": labels});
        cluster.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap();
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < NOTICED, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_full_disk_stops_saving_alone_until_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut probe = on_a_small_disk(folder.path(), &Command::new("true"));
    if !probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("skipped: unshare (util-linux) cannot mount a file system of its own here");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fleet = runtime.block_on(Fleet::builder().controllers(false).start()).unwrap();
    let cluster = runtime.block_on(fleet.cluster("one")).unwrap();
    add_apps(&cluster, 0, 1);
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(kubeconfig.path(), cluster.kubeconfig()).unwrap();

    let disk = folder.path().to_str().unwrap();
    let serve = ["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0", "--data", disk];
    let inner = command(&[&serve[..], &["--kubeconfig", kubeconfig.path().to_str().unwrap()]].concat());
    let hub = Hub::started(on_a_small_disk(folder.path(), &inner), 1);
    hub.wait_for_apps(1);
    hub.until_saved();
    let store = || {
        let ready: Value = serde_json::from_str(&hub.get("/readyz", "").1).unwrap();
        ready["store"].clone()
    };
    let well = json!({"writable": true, "full": false});
    assert_eq!(store(), well);

    let filler: PathBuf = format!("/proc/{}/root{disk}/filler", hub.pid()).into();
    fill(&filler);
    let mut apps = 1;
    let mut round = 0;
    until("the hub saves on a full disk", || {
        round += 1;
        add_apps(&cluster, round, 100);
        apps += 100;
        hub.wait_for_apps(apps);
        store() == json!({"writable": false, "full": true})
    });
    // What comes is shown, and what could not be saved is not told as history.
    round += 1;
    add_apps(&cluster, round, 1);
    hub.wait_for_apps(apps + 1);
    let last = format!("/api/v1/history/one/label/default/app-{round}-0");
    assert_eq!(hub.list(&last)["items"], json!([]));

    std::fs::remove_file(&filler).unwrap();
    until("the hub does not save though there is room", || store() == well);
    hub.until_saved();
    let saved = wait_for(&hub, &last, |list| list["items"].as_array().is_some_and(|items| items.len() == 1));
    assert_eq!(saved["items"][0]["after"]["effective"], "Current", "{saved:#}");
}

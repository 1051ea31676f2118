//! Objects in the terminal UI, by a hub over simulated clusters: their YAML and their actions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hub::Hub;
use super::served::Served;
use super::terminal::Terminal;
use super::{command, logs};

const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal UI that shows an app of a real hub.
struct Shown {
    served: Served,
    _hub: Hub,
    terminal: Terminal,
}

impl Shown {
    /// Starts simulated clusters, a hub of them, and the UI with the app `shop` of the cluster `eu`.
    fn start(names: &[&str]) -> Shown {
        let served = logs::shop(names);
        let hub = Hub::serving(&served.kubeconfig, names.len(), "127.0.0.1:0", &[]);
        hub.wait_until_complete();
        let mut command = command(&["tui", "--hub", &hub.url()]);
        command.env("TAFFRAIL_HUB_TOKEN", hub.token());
        let mut shown = Shown { served, _hub: hub, terminal: Terminal::start(command, 120, 40) };
        shown.press("", "live");
        shown.press(":apps shop cluster=eu\r", "MESSAGE");
        shown.press("\r", "Objects");
        shown
    }

    /// Types keys, and waits until the screen shows `wanted`. Only what differs is written, so a text is whole on a
    /// screen that is drawn anew.
    #[track_caller]
    fn press(&mut self, keys: &str, wanted: &str) {
        self.terminal.type_in(keys);
        let begun = Instant::now();
        for turn in 0.. {
            self.terminal.text.clear();
            self.terminal.resize(120 + turn % 2, 40);
            self.terminal.read_for(Duration::from_millis(150));
            if self.terminal.text.contains(wanted) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "no {wanted:?} after {keys:?}: {:?}", self.terminal.text);
        }
    }

    fn quit(mut self) {
        self.terminal.type_in("q");
        let (text, code) = self.terminal.end();
        assert_eq!(code, Some(0), "{text:?}");
    }
}

fn replicas(served: &Served, place: usize) -> Value {
    let cluster = &served.clusters[place];
    cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()["spec"]["replicas"].clone()
}

#[test]
fn an_object_of_a_hub_is_shown_as_yaml() {
    let mut shown = Shown::start(&["eu"]);
    let mut web = shown.served.clusters[0].get("apps/v1", "Deployment", "shop", "web").unwrap();
    web["metadata"]["annotations"]["note"] = json!("\u{1b}]0;title\u{7}\u{1b}[2Jevil\u{202e}");
    shown.served.clusters[0].apply(web).unwrap();
    shown.press("o", "Deployment");
    shown.press("/Deployment", "Deployment");
    shown.press("\r", "search Deployment");
    shown.press("y", "apiVersion: apps/v1");
    shown.press("", "evil");
    let text = shown.terminal.text.clone();
    assert!(!text.contains("\u{1b}]0;") && !text.contains('\u{7}') && !text.contains('\u{202e}'), "{text:?}");
    shown.press("\u{1b}", "Objects");
    shown.quit();
}

#[test]
fn an_action_of_a_hub_is_planned_confirmed_and_written() {
    let mut shown = Shown::start(&["eu", "us"]);
    shown.press("o", "Deployment");
    shown.press("/Deployment", "Deployment");
    shown.press("\r", "search Deployment");
    shown.press(".", "PARAMETERS");
    shown.press("/scale\r", "search scale");
    shown.press("\r", "replicas = ");
    shown.press("\u{7f}3\r", "+   replicas: 3");
    assert_eq!(replicas(&shown.served, 0), 2, "nothing is written before y");
    shown.press("y", "Done");
    assert_eq!((replicas(&shown.served, 0), replicas(&shown.served, 1)), (json!(3), json!(2)));
    shown.press("\u{1b}", "PARAMETERS");
    shown.quit();
}

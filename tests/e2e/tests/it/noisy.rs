//! Polls apps that change all the time: the short form of `cargo xtask truth`.

use anyhow::Result;
use serde_json::Value;
use taffrail_testkit::truth::{self, Eye};

use crate::harness::CLUSTER;
use crate::stage::{Stage, Who};

/// Runs Taffrail on a stage, and stores Kubernetes' own states of the same time in its recording.
struct OnStage<'a>(&'a mut Stage);

impl Eye for OnStage<'_> {
    fn look(&mut self, arguments: &[&str]) -> Result<Value> {
        let answer = self.0.taffrail(Who::Admin, arguments);
        assert_eq!(answer.code, 0, "{answer}");
        Ok(serde_json::from_str(&answer.stdout)?)
    }

    fn learn(&mut self, states: Value) {
        self.0.ask(|_| Ok(states));
    }
}

fn noisy_apps_are_shown_right_at_every_look(stage: &mut Stage) {
    let report = match stage.plane() {
        Some(plane) => {
            let folder = tempfile::tempdir().expect("a folder");
            let log = folder.path().join("looks.jsonl");
            let options = truth::Options { plane: &plane, context: CLUSTER, seconds: 30, log: &log };
            truth::look(&options, &mut OnStage(stage))
        }
        None => {
            let mut looks = Vec::new();
            while !stage.is_over() {
                let shown = OnStage(stage).look(&truth::arguments(CLUSTER)).expect("JSON");
                looks.push((shown, stage.ask(|_| Ok(Value::Null))));
            }
            truth::judge_again(&looks)
        }
    };
    let report = report.unwrap_or_else(|error| panic!("{error:#}"));
    assert!(report.wrong.is_empty(), "{report}");
    // A run without changes would prove nothing. On a busy machine there are few looks, so any will do.
    assert!(
        ["evicted", "zero", "paused", "mended"].iter().any(|app| report.moved(app)),
        "nothing moved\n{report}"
    );
}

scenarios![1: noisy_apps_are_shown_right_at_every_look];

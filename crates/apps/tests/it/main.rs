//! Tests of the apps crate from the outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set up its case fails")]
#![expect(clippy::disallowed_methods, reason = "the golden cases are files")]
#![allow(clippy::print_stdout, reason = "what was compared is counted")]

#[macro_use]
#[path = "../../../../tests/cases.rs"]
mod cases;

#[path = "../../../../tests/verdicts.rs"]
mod verdicts;

mod agreement;
mod aliases;
mod argo;
mod bodies;
mod bounds;
mod budgets;
mod changes;
mod claims;
mod copies;
mod costs;
mod declarations;
mod detail;
mod dump;
mod events;
mod evidence;
mod filter;
mod find;
mod flux;
mod golden;
mod group_status;
mod halves;
mod helm;
mod homes;
mod identity;
mod indexed;
mod indexes;
mod inventory;
mod most_apps;
mod nodes;
mod one_verdict;
mod patches;
mod porch;
mod problem;
mod propagation;
mod random;
mod reads;
mod relations;
mod resource_groups;
mod round_trip;
mod rows;
mod secret_clusters;
mod server;
mod shares;
mod snapshot;
mod stuck;
mod teachers;
mod tree;
mod trust;
mod unconfirmed;
mod verbs;
mod view;
mod wait;

//! Rules for the health of Kubernetes objects, besides those of kstatus.
//!
//! kstatus knows a dozen kinds. This crate has rules for others: in a short form of YAML ([`yaml_rules`]), as Flux and
//! kapp write them, and a library for widely used kinds. A [`RuleSet`] consults the user's rules first, then those of
//! the cluster, then the library, then [`taffrail_status`]; its verdicts name the rule that decided.
//!
//! ```
//! use taffrail_rules::{Layer, Origin, RuleSet};
//! use taffrail_object::Object;
//! use taffrail_status::{ObjectContext, Rules, Status};
//!
//! let rules = "
//! group: example.com
//! source: https://example.com/docs
//! kinds:
//!   Widget:
//!     rules:
//!     - {status: Failed, field: status.phase, is: Broken, message: 'broken: {status.why}'}
//!     - {status: Current, condition: Ready, is: 'True'}
//! ";
//! let rules = RuleSet::bare().with(Layer::read(Origin::User, [("widgets.yaml", rules)])?);
//! let widget = serde_json::json!({
//!     "apiVersion": "example.com/v1", "kind": "Widget", "status": {"phase": "Broken", "why": "no power"},
//! });
//! let now = jiff::Timestamp::UNIX_EPOCH;
//! let verdict = rules.judge(&Object::new((&widget).into())?, &ObjectContext::default(), now)?;
//! assert_eq!((verdict.status, &*verdict.message), (Status::Failed, "broken: no power"));
//! assert_eq!(verdict.rule, "user/example.com/Widget#1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It does no I/O and reads no clock, like the crate below it.
//!
//! * [`yaml_rules`] reads rules in YAML into tests with compiled paths, which read an object in place.
//! * The folder `library` has the shipped rules, a folder for each API group (`_` for the `*` of a group family) with
//!   `rules.yaml` and `cases.yaml`. The build script includes them; a group is parsed when its first object is judged.
//! * `set` has the order in which rules are consulted.
//! * `lua` runs Argo CD's scripts: `mod.rs` has the limits of a script, `machine.rs` the pool of Luau VMs,
//!   `prelude.luau` the names that a script sees.
//! * The folder `actions` has the actions on objects of a kind, as scripts in Argo CD's layout with their cases. The
//!   command `taffrail action` runs, shows and writes them.
//! * [`cel`] and [`kapp`] evaluate Flux' expressions and kapp's `waitRules`.
//!
//! The feature `lua` (default) adds Argo CD's scripts: `lua`, the actions of the library, and the health scripts of an
//! `argocd-cm`. Luau is C++, and it reads a clock to stop a script, so the feature does not build for wasm32.

pub mod cel;
mod cluster_rule_cache;
mod expressions;
pub mod kapp;
mod layer;
mod library;
#[cfg(feature = "lua")]
pub mod lua;
mod origin;
mod rule_tests;
mod script;
mod set;
pub mod yaml_rules;

pub use layer::{FoundRules, Layer, RuleErrors};
#[cfg(feature = "lua")]
pub use library::{shipped_action_kinds, shipped_action_names, shipped_actions};
pub use origin::Origin;
pub use rule_tests::{FailedCase, Fault, Folder, RuleTestReport, test_rules};
pub use script::{Judged, Script, ScriptKind, computed};
pub use set::{RuleSet, origin_of};

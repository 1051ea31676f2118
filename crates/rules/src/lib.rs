//! What do people's rules say of a Kubernetes object?
//!
//! kstatus knows a dozen kinds. Here are rules for the others: in a short form of YAML ([`form`]), as Flux and kapp have
//! them, and a library of rules for what people run. A [`RuleSet`] asks the user's rules first, then those of the
//! cluster, then the library, then what [`taffrail_status`] knows by itself; its verdicts name the rule that decided.
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
//! It does no I/O and reads no clock, as the crate it stands on.
//!
//! The feature `lua` (default) brings Argo CD's scripts: `lua`, the actions of the library, and what an `argocd-cm` says of health.
//! It is C++ and asks a clock when to stop a script, so it is not for wasm32.

pub mod cel;
mod cluster_rule_cache;
mod expressions;
pub mod form;
pub mod kapp;
mod layer;
mod library;
#[cfg(feature = "lua")]
pub mod lua;
mod script;
mod set;
mod trial;

pub use layer::{Found, Layer, Origin, RuleErrors};
#[cfg(feature = "lua")]
pub use library::{shipped_action_names, shipped_actions};
pub use script::{Judged, Script, ScriptKind, computed};
pub use set::{RuleSet, origin_of};
pub use trial::{FailedCase, Fault, Folder, Trial, try_rules};

//! The HTTP API of the hub.
//!
//! [`router()`] serves the paths of one table (`endpoint.rs`) with the parameters of another (`query.rs`); the OpenAPI
//! document `docs/openapi.json` is made of both and of the types of [`taffrail_api`]. Answers about the present are
//! computed from the last published state of the fleet, those about the past from the store; [`Ask`](crate::Ask)
//! answers the questions of views. Before every path stands a guard (`guard.rs`) that knows the [`Limits`] and the
//! [`Access`].

mod access;
mod app_path;
mod body;
mod compression;
mod cursor;
mod elements;
mod endpoint;
mod guard;
mod limits;
mod lists;
mod logs;
mod metrics;
#[cfg(test)]
mod openapi;
mod operations;
mod page;
mod past;
mod probes;
mod problem;
mod query;
mod questions;
mod request;
mod routes;
mod serve;
mod stream;
mod tls;

pub use self::access::Access;
pub use self::limits::Limits;
pub use self::request::HubApi;
pub use self::routes::router;
pub use self::serve::{Door, serve};
pub use self::tls::{Tls, TlsError};

#[cfg(test)]
mod tests;

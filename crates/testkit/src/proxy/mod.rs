//! Proxies before API servers, for disturbances that a server itself cannot cause.
//!
//! [`Proxy`] forwards bytes and knows nothing of them. [`Gate`] ends TLS with a certificate of its own, so that it can
//! tell requests apart, and answer in place of the server.

mod gate;
mod line;
mod times;

pub use gate::{Backend, DeadAnswer, Gate, Manner, PassingWrite, WriteStage};
pub use line::{Line, Proxy};

//! The bounds of what requests may cost.

use std::time::Duration;

/// The bounds of what requests may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The greatest length of a URL's path and query, in bytes; the hub refuses a longer one with 414.
    pub url: usize,
    /// The greatest length of the names and values of all headers of a request, in bytes; the hub refuses more with
    /// 431.
    pub headers: usize,
    /// The greatest length of the body of a request, in bytes; the hub refuses a longer one with 413.
    pub body: usize,
    /// The greatest length in bytes of the answer to a view's question that is a list, such as that of `get apps`; the
    /// hub refuses a question with a longer one with 422.
    pub answer: usize,
    /// The greatest length in bytes of the answer to any other view's question, such as that of `tree`; the hub refuses
    /// a question with a longer one with 422. Also that of the lines of logs that are not followed; the hub leaves out
    /// further ones, and says so.
    pub drill_down: usize,
    /// The greatest number of requests that the hub answers at one time, event streams not counted; it refuses further
    /// ones with 503. Requests that need no token (probes, opening a session) have as many places of their own.
    pub requests: usize,
    /// The greatest number of event streams and answers about logs; the hub refuses further ones with 503.
    pub streams: usize,
    /// The greatest number of open connections, those of agents not counted; further ones wait.
    pub connections: usize,
    /// The greatest number of connected agents; the hub closes the connections of further ones.
    pub agents: usize,
    /// The time limit for a TLS handshake and for sending the head of a request, beyond which the hub closes the
    /// connection, and for computing an answer, beyond which it refuses the request with 503. A client that takes
    /// nothing of an answer for three times as long is disconnected.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // The cursor of a page fits, whatever names the apps have.
            url: 16 * 1024,
            headers: 32 * 1024,
            body: 16 * 1024,
            answer: 64 << 20,
            drill_down: 16 << 20,
            requests: 64,
            streams: 128,
            connections: 512,
            agents: 20_000,
            time: Duration::from_secs(10),
        }
    }
}

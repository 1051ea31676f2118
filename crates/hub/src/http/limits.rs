//! The bounds of what requests may cost.

use std::time::Duration;

/// The bounds of what requests may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The greatest length of a URL, in bytes.
    pub url: usize,
    /// The greatest length of all headers of a request, in bytes.
    pub headers: usize,
    /// The greatest length of the body of a request, in bytes.
    pub body: usize,
    /// The greatest length of the answer to the question of a list, in bytes.
    pub answer: usize,
    /// The greatest length of the answer to another question, for which clusters are asked, in bytes.
    pub drill_down: usize,
    /// The greatest number of requests that are answered at one time; others are refused.
    pub requests: usize,
    /// The greatest number of event streams.
    pub streams: usize,
    /// The greatest number of connections; others wait.
    pub connections: usize,
    /// The time in which an answer must be ready, and in which a client must take each part of it.
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
            time: Duration::from_secs(10),
        }
    }
}

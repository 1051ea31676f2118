//! One exchange by HTTP without TLS, for servers on this machine.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Sends a request with these header lines (each with its line end) and this body to a server on this machine, and
/// returns the status and the body of its answer.
///
/// The request is one of HTTP/1.0, so that the answer is never sent in chunks.
///
/// # Errors
/// If the server cannot be reached, is silent for longer than `patience`, or does not answer in UTF-8 by HTTP.
pub fn exchange(
    address: SocketAddr,
    request: &str,
    headers: &str,
    body: &str,
    patience: Duration,
) -> Result<(u16, String)> {
    let cannot = || format!("{request} at {address}");
    let mut stream = TcpStream::connect_timeout(&address, patience).with_context(cannot)?;
    stream.set_read_timeout(Some(patience)).with_context(cannot)?;
    let length = body.len();
    let head = format!("{request} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).with_context(cannot)?;
    stream.write_all(body.as_bytes()).with_context(cannot)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(cannot)?;
    let (head, body) = answer.split_once("\r\n\r\n").with_context(cannot)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).with_context(cannot)?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn status_and_body_are_those_of_the_answer() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a request");
            let (mut asked, mut buffer) = (String::new(), [0; 256]);
            while !asked.ends_with("{}") {
                let length = stream.read(&mut buffer).expect("more");
                asked.push_str(&String::from_utf8_lossy(&buffer[..length]));
            }
            stream.write_all(b"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\nnone").expect("sent");
            asked
        });
        let answer =
            exchange(address, "POST /x", "C: d\r\n", "{}", Duration::from_secs(20)).expect("an answer");
        assert_eq!(answer, (404, "none".to_owned()));
        let asked = server.join().expect("the server ends");
        assert_eq!(
            asked,
            format!("POST /x HTTP/1.0\r\nHost: {address}\r\nContent-Length: 2\r\nC: d\r\n\r\n{{}}")
        );
    }
}

//! A server that answers as a hostile hub might.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A server on a free port of this machine that sends for each request what a function writes.
pub(super) struct FakeHub {
    pub(super) url: String,
}

impl FakeHub {
    /// Starts the server. `answer` gets the path of each request, its body and the connection.
    pub(super) fn start(answer: impl Fn(&str, &str, &mut TcpStream) + Send + Sync + 'static) -> FakeHub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(answer);
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(mut stream), answer) = (stream, Arc::clone(&answer)) else { continue };
                std::thread::spawn(move || {
                    let (path, body) = request(&stream);
                    answer(&path, &body, &mut stream);
                });
            }
        });
        FakeHub { url }
    }
}

/// Reads a request, and returns its path and its body.
fn request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        match header.to_ascii_lowercase().trim_end().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (path, String::from_utf8(body).unwrap())
}

/// Sends a JSON document as the answer.
pub(super) fn send_json(stream: &mut TcpStream, body: &serde_json::Value) {
    let body = body.to_string();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", body.len());
    // The client may have gone.
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
}

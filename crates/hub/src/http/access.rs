//! Access: tokens, sessions of browsers, and the checks that keep pages of other origins out.
//!
//! On loopback any program of any user, and any page that a browser shows, can send requests. A request, unless it is a
//! probe, is answered only if its `Host` is the hub's own (else a foreign name that resolves to 127.0.0.1 would do),
//! its `Origin`, if it has one, is the hub's own, and it has a token (in its body if it opens a session), or the cookie
//! of a session together with `Sec-Fetch-Site`, with which browsers say that no other site sent it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, RwLock};

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, header};
use jiff::Timestamp;

use super::problem::Refusal;
use crate::store::{StoreError, Token, TokenHash, TokenRecord};

/// The greatest number of open sessions; opening another one ends the oldest.
const MAX_SESSIONS: usize = 64;

/// The tokens and sessions that may read from a hub, and the host names under which it is reached.
#[derive(Debug)]
pub struct Access {
    /// The values of `Host` that name the hub, in lower case.
    hosts: Vec<String>,
    /// The scheme of the hub's own origin.
    scheme: &'static str,
    /// The name of the cookie that holds a browser's session.
    cookie: String,
    /// The hash of the token in the URL that the hub prints at its start; `None` for a hub behind TLS.
    run: Option<TokenHash>,
    tokens: RwLock<Vec<TokenRecord>>,
    sessions: Mutex<VecDeque<Session>>,
}

/// The rights of the sender of a request, beyond reading the status of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rights {
    /// True if the logs of containers may be read.
    logs: bool,
    /// True if operations may be run.
    acts: bool,
}

impl Rights {
    /// The rights of the token of this run of a hub, and of all clients of a hub without access rules.
    pub(super) const ALL: Rights = Rights { logs: true, acts: true };
    /// The rights of a request that no guard has let pass.
    pub(super) const NONE: Rights = Rights { logs: false, acts: false };

    /// Refuses (with 403) to read logs without the right to.
    pub(super) fn check_logs(self) -> Result<(), Refusal> {
        match self.logs {
            true => Ok(()),
            false => Err(Refusal::forbidden("the token does not allow to read logs")
                .hint("'taffrail hub token create NAME --logs' makes a token that does")),
        }
    }

    /// Refuses (with 403) to run operations without the right to.
    pub(super) fn check_acts(self) -> Result<(), Refusal> {
        match self.acts {
            true => Ok(()),
            false => Err(Refusal::forbidden("the token does not allow to run operations")
                .hint("'taffrail hub token create NAME --act' makes a token that does")),
        }
    }
}

/// A session that a token opened, and that ends with it.
#[derive(Debug)]
struct Session {
    /// The hash of the value of the session's cookie.
    cookie: TokenHash,
    token: TokenHash,
}

impl Access {
    /// Makes the access rules of a hub on loopback at `port`, with a new random token for this run, and returns both.
    /// Put the token into the fragment of the URL that the user sees: browsers do not send fragments, so no log has it.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn loopback(port: u16) -> Result<(Access, Token), StoreError> {
        let token = Token::generate()?;
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        let access = Access {
            hosts: hosts.into(),
            scheme: "http",
            // Cookies do not know ports: hubs on other ports have others.
            cookie: format!("taffrail-{port}"),
            run: Some(TokenHash::of(token.as_str())),
            tokens: RwLock::default(),
            sessions: Mutex::default(),
        };
        Ok((access, token))
    }

    /// Makes the access rules of a hub behind TLS that clients reach by the names `hosts`, such as `hub.example.com`,
    /// or `hub.example.com:8443` for another port than 443. Only the given `tokens` are valid, until
    /// [`set_tokens`](Access::set_tokens) replaces them.
    pub fn behind_tls(hosts: impl IntoIterator<Item = String>, tokens: Vec<TokenRecord>) -> Access {
        Access {
            hosts: hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect(),
            scheme: "https",
            cookie: "__Host-taffrail".to_owned(),
            run: None,
            tokens: RwLock::new(tokens),
            sessions: Mutex::default(),
        }
    }

    /// Replaces all tokens but that of this run. The sessions that a removed token opened end.
    pub fn set_tokens(&self, tokens: Vec<TokenRecord>) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Refuses a request (with 403) whose host is missing, repeated, contradictory or not one of the hub's, or whose
    /// `Origin` is not the hub's.
    pub(super) fn check_origin(&self, parts: &Parts) -> Result<(), Refusal> {
        let named = parts.uri.authority().map(|authority| authority.as_str());
        let mut hosts = parts.headers.get_all(header::HOST).iter().map(HeaderValue::to_str);
        let host = match (hosts.next(), hosts.next()) {
            (None, _) => named,
            (Some(Ok(host)), None) if named.is_none_or(|named| named.eq_ignore_ascii_case(host)) => {
                Some(host)
            }
            _ => None,
        };
        if !host.is_some_and(|host| self.is_own(host)) {
            let hint = format!("the hub is reached by these hosts: {}", self.hosts.join(", "));
            return Err(Refusal::forbidden("the header Host does not name this hub").hint(hint));
        }
        let is_own = |origin: &HeaderValue| {
            let host =
                origin.to_str().ok().and_then(|origin| origin.strip_prefix(self.scheme)?.strip_prefix("://"));
            host.is_some_and(|host| self.is_own(host))
        };
        match parts.headers.get_all(header::ORIGIN).iter().all(is_own) {
            true => Ok(()),
            false => Err(Refusal::forbidden(
                "the hub refuses the request, because it comes from a page of another origin",
            )),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }

    /// Returns the rights of a request. Refuses one that has neither a token that is valid at `now` nor the cookie of
    /// an open session (401), and one with such a cookie but without a `Sec-Fetch-Site` of `same-origin`, or `none` for
    /// GET and HEAD (403). If it has a token, only that decides.
    pub(super) fn check_reader(&self, parts: &Parts, now: Timestamp) -> Result<Rights, Refusal> {
        if let Some(token) = bearer(&parts.headers)? {
            let rights = self.rights(TokenHash::of(token), now);
            return rights.ok_or_else(|| Refusal::unauthorized("the access token is unknown or has expired"));
        }
        let Some(session) = self.session(&parts.headers, now) else {
            let refusal = Refusal::unauthorized("the request has neither a token nor a session");
            return Err(refusal.hint(match self.prints_url() {
                true => {
                    "send 'Authorization: Bearer TOKEN', or open the URL with a token, as the hub printed it"
                }
                false => "send 'Authorization: Bearer TOKEN'; 'taffrail hub token create' makes a token",
            }));
        };
        let Some(rights) = session else {
            return Err(Refusal::unauthorized("the session has ended").hint(match self.prints_url() {
                true => "begin a new session: open the URL with a token again, as the hub printed it",
                false => "open a session with a token: POST /api/v1/session",
            }));
        };
        let site = parts.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_read = matches!(parts.method, Method::GET | Method::HEAD);
        match site {
            Some(b"same-origin") => Ok(rights),
            // The user typed the address.
            Some(b"none") if is_read => Ok(rights),
            Some(_) => Err(Refusal::forbidden("the hub refuses the request, because another site sent it")),
            None => Err(Refusal::forbidden(
                "the request has a session cookie, but not the header Sec-Fetch-Site, which browsers send",
            )),
        }
    }

    /// Returns the name of the token with which an admitted request was sent; `None` for the token of this run. Refuses
    /// (401) a request whose token is not valid at `now` any more.
    pub(super) fn name(&self, parts: &Parts, now: Timestamp) -> Result<Option<String>, Refusal> {
        let hash = match bearer(&parts.headers)? {
            Some(token) => Some(TokenHash::of(token)),
            None => self.session_token(&parts.headers).flatten(),
        };
        let gone = || Refusal::unauthorized("the access token is unknown or has expired");
        let hash = hash.ok_or_else(gone)?;
        if self.run == Some(hash) {
            return Ok(None);
        }
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |record: &&TokenRecord| record.hash == hash && record.is_valid(now);
        tokens.iter().find(is_meant).map(|record| Some(record.name.clone())).ok_or_else(gone)
    }

    /// Returns true if the hub prints a URL with a token at its start.
    fn prints_url(&self) -> bool {
        self.run.is_some()
    }

    /// Opens a session if `token` is valid at `now`, else refuses with 401. Returns the value of `Set-Cookie`. If there
    /// are [`MAX_SESSIONS`], the oldest one ends.
    pub(super) fn open_session(&self, token: &str, now: Timestamp) -> Result<HeaderValue, Refusal> {
        let hash = TokenHash::of(token);
        if self.rights(hash, now).is_none() {
            return Err(Refusal::unauthorized("the access token is unknown or has expired"));
        }
        let session = Token::generate().map_err(|_| Refusal::internal())?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(Session { cookie: TokenHash::of(session.as_str()), token: hash });
        let secure = if self.scheme == "https" { "; Secure" } else { "" };
        let cookie =
            format!("{}={}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie, session.as_str());
        HeaderValue::from_str(&cookie).map_err(|_| Refusal::internal())
    }

    /// Returns the rights of the token with this hash: that of this run, or a known one that has not expired at `now`;
    /// `None` if there is none. Compares hashes in constant time.
    fn rights(&self, hash: TokenHash, now: Timestamp) -> Option<Rights> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let of_record = |record: &TokenRecord| record.hash == hash && record.is_valid(now);
        let known = tokens.iter().fold(None, |known, record| match of_record(record) {
            true => Some(Rights { logs: record.reads_logs(), acts: record.acts() }),
            false => known,
        });
        if self.run == Some(hash) { Some(Rights::ALL) } else { known }
    }

    /// Returns the rights of the session that one of the first four session cookies is of and whose token is still
    /// valid at `now`; the inner `None` if none is, the outer one without a session cookie.
    fn session(&self, headers: &HeaderMap, now: Timestamp) -> Option<Option<Rights>> {
        Some(self.session_token(headers)?.and_then(|token| self.rights(token, now)))
    }

    /// Returns the hash of the token that opened the session that one of the first four session cookies is of; the inner
    /// `None` if none is, the outer one without a session cookie.
    fn session_token(&self, headers: &HeaderMap) -> Option<Option<TokenHash>> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let cookies = cookies.flat_map(|cookies| cookies.split(';'));
        let own = cookies.filter_map(|cookie| cookie.trim().strip_prefix(&*self.cookie)?.strip_prefix('='));
        // A page of another port may have set a cookie of this name; each of a few may be the own one.
        let mut hashes = own.take(4).map(TokenHash::of).peekable();
        hashes.peek()?;
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        Some(hashes.fold(None, |found, hash| {
            let token = |session: &Session| (session.cookie == hash).then_some(session.token);
            sessions.iter().fold(found, |found, session| token(session).or(found))
        }))
    }
}

/// Returns the token of the header `Authorization: Bearer TOKEN`; `None` without the header. Refuses other forms, and
/// two headers.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    match token.filter(|_| values.next().is_none()) {
        Some(token) => Ok(Some(token)),
        None => Err(Refusal::unauthorized("the header Authorization is not 'Bearer TOKEN'")),
    }
}

//! Agents, their enrolment and their authority.

use jiff::{SignedDuration, Timestamp};
use taffrail_api::agent_protocol::KeyHash;
use taffrail_apps::ClusterId;

use super::Fixture;
use crate::store::{
    AgentRecord, AuthorityRecord, Batch, EnrolmentRecord, SpoolRecord, Store, Token, TokenHash,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(1_800_000_000 + seconds)).unwrap()
}

fn agent(key: &[u8], cluster: &str, name: &str) -> AgentRecord {
    AgentRecord {
        public_key: key.to_vec(),
        cluster: ClusterId(cluster.to_owned()),
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        enrolled: at(0),
        seen: at(0),
        expires: at(86_400),
        is_proxied: false,
        revoked: None,
    }
}

pub(crate) async fn agents_enrol_once_for_each_token_and_stay_revoked(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let token = |cluster: Option<&str>, expires| {
        let hash = TokenHash::of(Token::generate().unwrap().as_str());
        EnrolmentRecord { hash, cluster: cluster.map(str::to_owned), created: at(-10), expires, used: None }
    };
    let (good, late) = (token(Some("eu ö"), at(10)), token(None, at(0)));
    for token in [&good, &late] {
        store.add_enrolment(token.clone()).await.unwrap();
    }
    assert_eq!(store.enrolment(good.hash).await.unwrap(), Some(good.clone()));
    assert_eq!(store.enrolment(TokenHash::of("other")).await.unwrap(), None);
    let (one, two) = (agent(b"one", "uid-1", "eu"), agent(b"two", "uid-2", "ap"));
    // Of two at once one is enrolled, and with a token that has expired or that nobody made none.
    let both = tokio::join!(store.enrol(good.hash, one.clone()), store.enrol(good.hash, two.clone()));
    let enrolled = [both.0.unwrap(), both.1.unwrap()];
    assert_eq!(enrolled.iter().filter(|it| **it).count(), 1, "{enrolled:?}");
    assert!(!store.enrol(late.hash, agent(b"three", "uid-3", "us")).await.unwrap());
    assert!(!store.enrol(TokenHash::of("other"), agent(b"three", "uid-3", "us")).await.unwrap());
    assert_eq!(store.enrolment(good.hash).await.unwrap().unwrap().used, Some(at(0)));
    let first = if enrolled[0] { one } else { two };
    assert_eq!(store.agents().await.unwrap(), std::slice::from_ref(&first));

    // A second one of the cluster, and what changes with time.
    let second = AgentRecord { public_key: b"more".to_vec(), enrolled: at(5), ..first.clone() };
    store.save_agent(second.clone()).await.unwrap();
    let seen = AgentRecord { seen: at(7), is_proxied: true, version: "0.2.0".to_owned(), ..first.clone() };
    store.save_agent(seen.clone()).await.unwrap();
    assert_eq!(store.agents().await.unwrap(), [seen.clone(), second.clone()]);
    assert_eq!(store.revoke_agents("nobody".to_owned(), at(8)).await.unwrap(), 0);
    assert_eq!(store.revoke_agents(first.name.clone(), at(8)).await.unwrap(), 2);
    assert_eq!(store.revoke_agents(first.name.clone(), at(9)).await.unwrap(), 0);
    // What was under way when it was revoked does not bring it back.
    store.save_agent(seen.clone()).await.unwrap();
    fixture.close(store).await;

    let store = fixture.open().await;
    let revoked = |agent: AgentRecord| AgentRecord { revoked: Some(at(8)), ..agent };
    assert_eq!(store.agents().await.unwrap(), [revoked(seen), revoked(second)]);
}

pub(crate) async fn spools_of_agents_keep_their_place_and_last_gap(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let record =
        |last, gap| SpoolRecord { cluster: ClusterId("uid-ö".to_owned()), spool: u64::MAX, last, gap };
    let gap = Some(at(1)..at(2));
    for spool in [record(5, None), record(7, gap.clone()), record(9, None)] {
        store.write(Batch { spools: vec![spool], ..Batch::default() }).await.unwrap();
    }
    fixture.close(store).await;
    assert_eq!(fixture.open().await.spools().await.unwrap(), [record(9, gap)]);
}

pub(crate) async fn one_authority_and_the_last_keys_of_the_hub_are_kept(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let authority = |key: &str| AuthorityRecord { key: key.to_owned(), certificate: format!("of {key}") };
    assert_eq!(store.authority(authority("one")).await.unwrap(), authority("one"));
    assert_eq!(store.authority(authority("two")).await.unwrap(), authority("one"));
    assert!(!format!("{:?}", authority("secret")).contains("key: \"secret\""));
    assert_eq!(store.pins().await.unwrap(), []);
    let pins = [3, 1, 2].map(|byte| KeyHash([byte; 32]));
    store.set_pins(pins.to_vec()).await.unwrap();
    store.set_pins(pins[..2].to_vec()).await.unwrap();
    fixture.close(store).await;
    let store = fixture.open().await;
    assert_eq!(store.pins().await.unwrap(), pins[..2]);
    assert_eq!(store.authority(authority("two")).await.unwrap(), authority("one"));
}

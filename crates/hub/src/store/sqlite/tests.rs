//! Tests of the file: kills, damage, versions, modes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use sqlx::{ConnectOptions as _, Connection as _};

use super::{OpenError, Opened, Settings, SqliteStore, options, restore, schema};
use crate::store::conformance::{Fixture, all_pairs, at, batch_of, conformance, pair, pair_id};
use crate::store::{Batch, Store as _, StoreError};

/// A file in a folder of its own.
struct InFolder(tempfile::TempDir);

impl InFolder {
    fn new() -> InFolder {
        InFolder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("hub.db")
    }
}

impl Fixture for InFolder {
    type Store = SqliteStore;

    async fn open(&self) -> SqliteStore {
        // Tests write one after the other, and would wait for the end of each group.
        let settings = Settings { group: Duration::from_millis(2), ..Settings::default() };
        let Opened { store, set_aside } = SqliteStore::open_with(&self.path(), settings).await.unwrap();
        assert_eq!(set_aside, None);
        store
    }

    async fn open_nearly_full(&self) -> SqliteStore {
        let settings = Settings { group: Duration::from_millis(2), max_pages: Some(150) };
        SqliteStore::open_with(&self.path(), settings).await.unwrap().store
    }

    async fn close(&self, store: SqliteStore) {
        store.close().await;
    }

    async fn restore(&self, backup: &Path) {
        restore(backup, &self.path()).await.unwrap();
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }
}

conformance! { InFolder::new }

/// Names the store to the process that [`acknowledged_writes_survive_kill_9`] kills.
const VICTIM: &str = "TAFFRAIL_TEST_STORE";

/// Writes until it is killed, and prints the number of each write that was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn victim() {
    let Ok(path) = std::env::var(VICTIM) else { return };
    let store = SqliteStore::open(Path::new(&path)).await.unwrap().store;
    let first = all_pairs(&store, 10_000).await.len();
    let writers = (0..8).map(|writer| {
        let store = &store;
        async move {
            for number in (first + writer..).step_by(8) {
                store.write(batch_of(number, number as i64)).await.unwrap();
                // In one write, so that lines do not mix.
                std::io::stdout().write_all(format!("acknowledged {number}\n").as_bytes()).unwrap();
            }
        }
    });
    futures::future::join_all(writers).await;
}

#[tokio::test]
async fn acknowledged_writes_survive_kill_9() {
    let fixture = InFolder::new();
    let mut acknowledged = Vec::new();
    for round in 1..=3 {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .args(["--exact", "store::sqlite::tests::victim", "--nocapture"])
            .env(VICTIM, fixture.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = lines.map_while(Result::ok).filter_map(|line| {
            // The harness writes the name of the test in front of the first line.
            line.rsplit_once("acknowledged ")?.1.parse::<usize>().ok()
        });
        let mut killed = false;
        for number in numbers {
            acknowledged.push(number);
            if !killed && acknowledged.len() >= round * 30 {
                child.kill().unwrap();
                killed = true;
            }
        }
        child.wait().unwrap();
        assert!(killed);
        let store = fixture.open().await;
        let found = all_pairs(&store, 10_000).await;
        for &number in &acknowledged {
            assert!(found.contains(&pair(number, number)), "pair {number} is lost");
            assert!(store.state_at(pair_id(number), at(number as i64)).await.unwrap().is_some());
        }
        store.close().await;
    }
    assert!(acknowledged.len() >= 90);
}

/// Copies the files of a store as they are, as a kill would leave them.
fn copy(from: &Path, to: &Path) {
    for suffix in ["", "-wal"] {
        let [from, to] = [from, to].map(|path| super::files::named(path, suffix));
        fs::copy(from, to).unwrap();
    }
}

#[tokio::test]
async fn a_torn_log_loses_only_its_end() {
    let fixture = InFolder::new();
    let store = fixture.open().await;
    for number in 0..20 {
        store.write(batch_of(number, 5)).await.unwrap();
    }
    let torn = InFolder::new();
    let mut most = 0;
    for parts in 0..=40 {
        copy(&fixture.path(), &torn.path());
        let log = super::files::named(&torn.path(), "-wal");
        let length = fs::metadata(&log).unwrap().len();
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(length * parts / 40).unwrap();
        let Opened { store, set_aside } = SqliteStore::open(&torn.path()).await.unwrap();
        assert_eq!(set_aside, None, "cut to {parts}/40");
        let found = all_pairs(&store, 100).await;
        // A prefix of the writes, none of them in part.
        let expected: Vec<_> = (0..found.len()).map(|number| pair(number, 5)).collect();
        assert_eq!(found, expected);
        for number in 0..found.len() {
            assert!(store.state_at(pair_id(number), at(5)).await.unwrap().is_some());
        }
        assert!(found.len() >= most);
        most = found.len();
        store.write(batch_of(50, 5)).await.unwrap();
        store.close().await;
        fs::remove_file(torn.path()).unwrap();
    }
    assert_eq!(most, 20);
    store.close().await;
}

/// When the power fails, a disk may leave a log without its end, or with other bytes in its place.
#[tokio::test]
async fn a_log_that_ends_in_garbage_loses_only_its_end() {
    const CHECKPOINTED: usize = 10;
    const ALL: usize = 30;
    let fixture = InFolder::new();
    let store = fixture.open().await;
    for number in 0..CHECKPOINTED {
        store.write(batch_of(number, 5)).await.unwrap();
    }
    // Moves the log into the file.
    store.close().await;
    let store = fixture.open().await;
    for number in CHECKPOINTED..ALL {
        store.write(batch_of(number, 5)).await.unwrap();
    }
    let (torn, mut met) = (InFolder::new(), std::collections::BTreeSet::new());
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        copy(&fixture.path(), &torn.path());
        let log = super::files::named(&torn.path(), "-wal");
        let mut bytes = fs::read(&log).unwrap();
        let from = random.usize(..bytes.len());
        // A disk writes sectors in any order: garbage in the middle may have whole frames behind it.
        let to = if random.bool() { bytes.len() } else { random.usize(from..bytes.len()) };
        bytes[from..to].iter_mut().for_each(|byte| *byte = random.u8(..));
        bytes.truncate(random.usize(to..=bytes.len()));
        fs::write(&log, bytes).unwrap();
        let Opened { store, set_aside } = SqliteStore::open(&torn.path()).await.unwrap();
        assert_eq!(set_aside, None, "seed {seed}");
        let found = all_pairs(&store, 100).await;
        let expected: Vec<_> = (0..found.len()).map(|number| pair(number, 5)).collect();
        assert_eq!(found, expected, "seed {seed}");
        assert!((CHECKPOINTED..=ALL).contains(&found.len()), "seed {seed}: {}", found.len());
        // Of each write either both the pair and its history are there, or neither.
        for number in 0..ALL {
            let state = store.state_at(pair_id(number), at(5)).await.unwrap();
            assert_eq!(state.is_some(), number < found.len(), "seed {seed}, pair {number}");
        }
        met.insert(found.len());
        store.write(batch_of(50, 5)).await.unwrap();
        store.close().await;
        fs::remove_file(torn.path()).unwrap();
    }
    assert!(met.len() > 10, "the logs were cut at few places: {met:?}");
    store.close().await;
}

#[tokio::test]
async fn a_damaged_file_is_set_aside() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 3] = [
        ("a header of zeros", |bytes| bytes[..100].fill(0)),
        ("another file", |bytes| *bytes = b"kind: ConfigMap\n".repeat(500)),
        ("pages overwritten", |bytes| {
            let middle = bytes.len() / 2;
            bytes[8_192..middle].fill(0x5a);
        }),
    ];
    for (name, damage) in damages {
        let fixture = InFolder::new();
        let store = fixture.open().await;
        store
            .write(Batch { pairs: (0..500).map(|it| pair(it, it)).collect(), ..Batch::default() })
            .await
            .unwrap();
        store.close().await;
        let mut bytes = fs::read(fixture.path()).unwrap();
        damage(&mut bytes);
        fs::write(fixture.path(), &bytes).unwrap();
        let beside = SqliteStore::open_beside(&fixture.path()).await;
        assert!(matches!(beside, Err(OpenError::Damaged(_))), "{name}: {beside:?}");
        let Opened { store, set_aside } = SqliteStore::open(&fixture.path()).await.unwrap();
        let set_aside = set_aside.unwrap_or_else(|| panic!("{name} was not found"));
        assert_eq!(fs::read(&set_aside.path).unwrap(), bytes, "{name}");
        assert!(!set_aside.damage.is_empty());
        assert_eq!(all_pairs(&store, 10).await, []);
        store.write(batch_of(1, 1)).await.unwrap();
        store.close().await;
        let store = fixture.open().await;
        assert_eq!(all_pairs(&store, 10).await.len(), 1);
        store.close().await;
    }
}

async fn run(path: &Path, sql: &'static str) {
    let mut connection = options(path).create_if_missing(true).connect().await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn files_of_newer_versions_and_other_programs_are_refused() {
    let fixture = InFolder::new();
    fixture.open().await.close().await;
    run(&fixture.path(), "PRAGMA user_version = 99").await;
    let before = fs::read(fixture.path()).unwrap();
    let error = SqliteStore::open(&fixture.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::NewerSchema { found: 99, known: 4, .. }), "{error:?}");
    assert!(error.to_string().contains("newer version of Taffrail"), "{error}");
    assert!(restore(&fixture.path(), &fixture.folder().join("other.db")).await.is_err());
    assert_eq!(fs::read(fixture.path()).unwrap(), before);

    let fixture = InFolder::new();
    run(&fixture.path(), "CREATE TABLE notes (text TEXT)").await;
    let error = SqliteStore::open(&fixture.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    assert!(restore(&fixture.path(), &fixture.folder().join("other.db")).await.is_err());
    assert!(!fixture.folder().join("other.db").exists());
}

#[tokio::test]
async fn what_cannot_be_read_is_told_and_never_shown() {
    let fixture = InFolder::new();
    let store = fixture.open().await;
    store.write(Batch { pairs: vec![pair(1, 1), pair(7, 1)], ..Batch::default() }).await.unwrap();
    // A detail in the form of another version.
    run(&fixture.path(), "UPDATE details SET detail = json_set(detail, '$.colour', 'green')").await;
    let first = async || store.pairs(NonZeroUsize::MIN.saturating_add(9)).next().await.unwrap();
    let page = first().await.unwrap();
    assert_eq!((page.pairs, page.unreadable), (vec![pair(1, 1)], 1));
    run(&fixture.path(), "UPDATE summaries SET health = 17").await;
    let error = first().await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("17"), "{error}");
    store.close().await;
}

#[tokio::test]
async fn an_upgrade_takes_all_steps_or_none() {
    let fixture = InFolder::new();
    let store = fixture.open().await;
    store.write(batch_of(1, 1)).await.unwrap();
    store.close().await;
    let mut connection = options(&fixture.path()).connect().await.unwrap();
    let extra = "CREATE TABLE extra (id INTEGER)";
    let failing = [&schema::STEPS[..], &[extra, extra]].concat();
    let known = schema::STEPS.len() as i64;
    schema::upgrade(&mut connection, &fixture.path(), &failing).await.unwrap_err();
    let version = schema::version(&mut connection, &fixture.path()).await.unwrap();
    assert_eq!(version, known);
    schema::upgrade(&mut connection, &fixture.path(), &failing[..schema::STEPS.len() + 1]).await.unwrap();
    sqlx::raw_sql("INSERT INTO extra VALUES (1)").execute(&mut connection).await.unwrap();
    let version: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await.unwrap();
    assert_eq!(version, known + 1);
    let pairs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM pairs").fetch_one(&mut connection).await.unwrap();
    assert_eq!(pairs, 1);
}

#[tokio::test]
async fn two_hubs_cannot_use_one_file() {
    let fixture = InFolder::new();
    let store = fixture.open().await;
    let error = SqliteStore::open(&fixture.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    let error = restore(&fixture.path(), &fixture.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    // A command beside the hub can change tokens.
    let beside = SqliteStore::open_beside(&fixture.path()).await.unwrap();
    let token = crate::store::Token::generate().unwrap();
    beside.add_token(token.record("ci", at(1))).await.unwrap();
    beside.close().await;
    assert_eq!(store.tokens().await.unwrap().len(), 1);
    store.write(batch_of(1, 1)).await.unwrap();
    store.close().await;
    fixture.open().await.close().await;
}

#[test]
fn store_keeps_its_files_if_another_cannot_take_its_place() {
    let fixture = InFolder::new();
    let names = ["hub.db", "hub.db-wal"];
    names.iter().for_each(|name| fs::write(fixture.folder().join(name), name).unwrap());
    let missing = fixture.folder().join("missing");
    let error = super::files::replace(&missing, &fixture.path()).unwrap_err();
    assert!(matches!(error, OpenError::File { .. }), "{error:?}");
    names.iter().for_each(|name| assert_eq!(fs::read_to_string(fixture.folder().join(name)).unwrap(), *name));
    assert_eq!(fs::read_dir(fixture.folder()).unwrap().count(), names.len());
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = InFolder::new();
    fs::write(fixture.path(), "").unwrap();
    fs::set_permissions(fixture.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let store = fixture.open().await;
    store.write(batch_of(1, 1)).await.unwrap();
    let backup = fixture.folder().join("backup");
    store.backup(&backup).await.unwrap();
    let mut names = Vec::new();
    for file in fs::read_dir(fixture.folder()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.path().display());
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["backup", "hub.db", "hub.db-shm", "hub.db-wal", "hub.db.lock"]);
    store.close().await;
    let former = restore(&backup, &fixture.path()).await.unwrap().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(&fixture.path()), mode(&former)], [0o600, 0o600]);
}

#[tokio::test]
async fn writes_of_one_moment_share_a_commit() {
    let fixture = InFolder::new();
    let store = SqliteStore::open(&fixture.path()).await.unwrap().store;
    let size = || fs::metadata(super::files::named(&fixture.path(), "-wal")).unwrap().len();
    let before = size();
    let writes = (0..200).map(|number| store.write(batch_of(number, 5)));
    futures::future::join_all(writes).await.into_iter().for_each(|done| done.unwrap());
    // Each commit writes each page that it changed: 200 commits of about 10 pages are 8 MiB.
    assert!(size() - before < 1 << 20, "{}", size() - before);
    store.close().await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let fixture = InFolder::new();
    let store = fixture.open().await;
    store.writer.close().await;
    store.readers.close().await;
    let errors = [
        store.write(batch_of(1, 1)).await.unwrap_err(),
        store.tokens().await.unwrap_err(),
        store.drop_history(at(1)).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::Closed), "{error:?}");
    }
}

/// Prints bytes per pair and rows per second: `cargo test -p taffrail-hub --lib figures -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures, which differ from machine to machine"]
async fn figures() {
    const PAIRS: usize = 10_000;
    let fixture = InFolder::new();
    let store = SqliteStore::open(&fixture.path()).await.unwrap().store;
    let timed = async |name: &str, batch: Batch, rows: usize| {
        let start = Instant::now();
        store.write(batch).await.unwrap();
        let took = start.elapsed();
        println!("{name}: {rows} rows in {took:?}, {:.0} rows/s", rows as f64 / took.as_secs_f64());
    };
    let pairs =
        |revision| Batch { pairs: (0..PAIRS).map(|it| pair(it, revision)).collect(), ..Batch::default() };
    timed("new pairs", pairs(0), PAIRS).await;
    let backup = fixture.folder().join("0");
    store.backup(&backup).await.unwrap();
    let bytes = fs::metadata(&backup).unwrap().len() as f64;
    println!("{:.0} bytes per pair in a compact file", bytes / PAIRS as f64);
    timed("all pairs at a new revision", pairs(1), PAIRS).await;
    let transitions = |day: i64| Batch {
        transitions: (0..PAIRS)
            .flat_map(|it| batch_of(it, day * 86_400_000_000 + it as i64).transitions)
            .collect(),
        ..Batch::default()
    };
    for day in 0..30 {
        timed("transitions", transitions(day), PAIRS).await;
    }
    let start = Instant::now();
    assert_eq!(all_pairs(&store, 5_000).await.len(), PAIRS);
    println!("all pairs read in {:?}", start.elapsed());
    let start = Instant::now();
    for number in 0..100 {
        store.state_at(pair_id(number * 7), at(15 * 86_400_000_000)).await.unwrap();
    }
    println!("state_at: {:?} each", start.elapsed() / 100);
    let backup = fixture.folder().join("1");
    store.backup(&backup).await.unwrap();
    let with_history = fs::metadata(&backup).unwrap().len() as f64;
    println!("{:.0} bytes per transition", (with_history - bytes) / (30 * PAIRS) as f64);
    let start = Instant::now();
    let dropped = store.drop_history(at(29 * 86_400_000_000)).await.unwrap();
    println!("{dropped:?} in {:?}", start.elapsed());
    store.close().await;
}

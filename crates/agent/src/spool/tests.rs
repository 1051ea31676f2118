use std::fs;

use taffrail_api::AppName;
use taffrail_api::report::{AppId, AppTransition, HalfThen};
use taffrail_apps::Delivery;

use super::*;

fn own() -> ClusterId {
    ClusterId("uid-1".to_owned())
}

fn note(spool: &Spool, name: &str) {
    let app = AppName { delivery: Delivery::Kpt, namespace: "shop".to_owned(), name: name.to_owned() };
    let app = AppId { home: own(), app };
    let transition = AppTransition { app, declared: Some(HalfThen::Gone), observed: None };
    spool.note(&own(), Noted::Changed(vec![transition]));
}

/// Makes a file with the transitions of two apps, and returns its contents.
fn written(folder: &Path) -> Vec<u8> {
    let (spool, _) = Spool::in_folder(own(), BootClock::default(), folder).unwrap();
    let path = folder.join("spool");
    let empty = fs::read(&path).unwrap().len();
    spool.note(&own(), Noted::Begun);
    note(&spool, "one");
    note(&spool, "two");
    let begun = std::time::Instant::now();
    loop {
        let text = fs::read(&path).unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("spool"), &text).unwrap();
        if text.len() > empty && names(other.path()).0.len() == 3 {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the file was not written");
        std::thread::yield_now();
    }
}

/// Opens a spool, and returns what it would send, and if a damaged file was set aside.
fn names(folder: &Path) -> (Vec<String>, bool) {
    let (spool, set_aside) = loop {
        match Spool::in_folder(own(), BootClock::default(), folder) {
            // The thread of one that was dropped may still write.
            Err(SpoolError::InUse(_)) => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    let entries = spool.next_message().map(|message| message.entries).unwrap_or_default();
    let name = |entry: SpoolEntry| match entry.entry {
        Some(spool_entry::Entry::Transition(it)) => it.app.unwrap().name,
        Some(spool_entry::Entry::Gap(_)) => "gap".to_owned(),
        None => panic!(),
    };
    (entries.into_iter().map(name).collect(), set_aside.is_some())
}

#[test]
fn a_file_that_was_not_written_whole_loses_its_end_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = written(folder.path());
    let all = ["gap", "one", "two"];
    for length in (0..text.len()).step_by(5) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("spool"), &text[..length]).unwrap();
        let (found, is_damaged) = names(folder.path());
        assert_eq!(found, all[..found.len()], "{length}");
        // Without its beginning nothing is known of it.
        assert!(!is_damaged || found.is_empty(), "{length}");
    }
}

#[test]
fn a_damaged_file_is_set_aside_and_never_read_as_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let text = written(folder.path());
    let all = ["gap", "one", "two"];
    for at in (0..text.len()).step_by(3) {
        let folder = tempfile::tempdir().unwrap();
        let mut text = text.clone();
        text[at] ^= 0x55;
        fs::write(folder.path().join("spool"), &text).unwrap();
        let (found, is_damaged) = names(folder.path());
        assert!(found.len() < 3 && found == all[..found.len()], "{at}: {found:?}");
        assert_eq!(folder.path().join("spool.damaged").exists(), is_damaged);
        // It goes on with a new one.
        assert!(!names(folder.path()).1);
    }
    // That of another cluster is not taken over.
    let (_, set_aside) =
        Spool::in_folder(ClusterId("uid-2".to_owned()), BootClock::default(), folder.path()).unwrap();
    assert!(set_aside.is_some());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_spool() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("of/agent");
    written(&folder);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("spool"))), (0o700, 0o600));
}

#[test]
fn what_is_too_old_or_was_reported_is_dropped() {
    let clock = BootClock::default();
    let spool = Spool::in_memory(own(), clock.clone());
    note(&spool, "one");
    clock.sleep(MAX_AGE + Duration::from_secs(1));
    note(&spool, "two");
    spool.connected();
    let message = spool.next_message().unwrap();
    let [gap, two] = &message.entries[..] else { panic!("{message:?}") };
    assert_eq!((gap.age_millis / 1000, message.first), (MAX_AGE.as_secs() + 1, 1));
    assert!(matches!(gap.entry, Some(spool_entry::Entry::Gap(Gap { lasted_millis: Some(0) }))));
    assert!(two.age_millis < 60_000);
    // What another spool, or one that was not sent, confirms changes nothing.
    spool.recorded(message.spool + 1, 2);
    spool.recorded(message.spool, 3);
    assert_eq!(spool.next_message().unwrap().entries.len(), 2);
    spool.recorded(message.spool, 2);
    assert_eq!(spool.next_message(), None);
    // While the agent is connected reports tell what changes.
    note(&spool, "three");
    assert_eq!(spool.next_message(), None);
    clock.sleep(UNCERTAIN + Duration::from_secs(1));
    spool.prune();
    assert_eq!(spool.counts(), SpoolCounts { entries: 0, bytes: 0, dropped: 1 });
}

#[test]
fn messages_are_short_and_in_order() {
    let spool = Spool::in_memory(own(), BootClock::default());
    for number in 0..2_000 {
        note(&spool, &format!("{}{number:04}", "x".repeat(200)));
    }
    spool.connected();
    let (mut next, mut messages) = (1, 0);
    while let Some(message) = spool.next_message() {
        assert!(message.encoded_len() <= MAX_MESSAGE && message.first == next);
        next += message.entries.len() as u64;
        messages += 1;
        spool.recorded(message.spool, next - 1);
    }
    assert_eq!((next, messages > 5), (2_001, true));
}

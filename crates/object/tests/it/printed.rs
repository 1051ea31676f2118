//! Tests of lists in which some objects try to break out of their YAML, as Go's libraries print them
//! (`tests/printed/print`).

use std::fs;
use std::path::Path;

use serde_json::Value;
use taffrail_object::yaml;

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/printed").join(name)).unwrap()
}

fn printed(name: &str) -> Vec<(Value, String)> {
    let lists =
        file("lists.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>();
    let text = file(name);
    let documents = text.strip_prefix("---\n").unwrap().split("\n---\n").map(|text| format!("{text}\n"));
    let both: Vec<(Value, String)> = lists.into_iter().zip(documents).collect();
    assert_eq!((both.len(), text.split("\n---\n").count()), (both.len(), both.len()));
    assert!(both.len() > 200);
    both
}

/// Describes the differences between each printed list and the list that was read.
fn differences(name: &str) -> String {
    let mut told = String::new();
    for (expected, text) in printed(name) {
        match yaml::read_tree(&text) {
            Ok(read) if (&read.tree, &read.repeated) == (&expected, &None) => {}
            Ok(read) => {
                let items = expected["items"].as_array().unwrap().iter().enumerate();
                let other = items.filter(|(at, item)| read.tree["items"][at] != **item).map(|(at, _)| at);
                let other: Vec<usize> = other.collect();
                told += &format!(
                    "{:?} {other:?}\n{}\n",
                    expected["items"][1]["zzz"], read.tree["items"][1]["zzz"]
                );
            }
            Err(error) => told += &format!("{:?} {error}\n", expected["items"][1]["zzz"]),
        }
    }
    told
}

#[test]
fn kubectl_yaml_is_read_unchanged() {
    assert_eq!(differences("lists-2.yaml"), "");
}

#[test]
fn go_yaml_3_output_is_read_unchanged() {
    // For a text that begins with spaces or line breaks, that library writes a wrong indent and cannot read its own
    // output.
    let own = |told: &&str| {
        !told.ends_with("wrongly indented line in block scalar")
            && !told.ends_with("did not find expected key")
    };
    let told = differences("lists-3.yaml");
    assert_eq!(told.lines().filter(own).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(told.lines().count() < 15, "{told}");
}

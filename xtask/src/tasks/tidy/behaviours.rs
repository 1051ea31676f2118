//! Checks that each behaviour that other tools have, and that Taffrail claims, has its tests: `docs/behaviours.md` lists
//! them, and is the only list.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;

use anyhow::{Context, Result};
use taffrail_testkit::binary::workspace;

/// The table of behaviours and tests.
const TABLE: &str = "docs/behaviours.md";

/// The numbers that Taffrail claims, by their source. A further list of behaviours needs its range here and its rows in
/// [`TABLE`].
const CLAIMED: [(&str, RangeInclusive<u32>); 2] = [("argo-cd", 26..=42), ("kstatus", 139..=139)];

/// The packages whose tests a row may name, and their folders.
const PACKAGES: [(&str, &str); 3] =
    [("plan", "crates/plan"), ("taffrail", "crates/taffrail"), ("e2e", "tests/e2e")];

/// The number of a behaviour and the tests that prove it.
#[derive(Debug, PartialEq, Eq)]
struct Proven {
    /// The source and the number, such as `argo-cd 26`.
    number: String,
    tests: Vec<String>,
}

/// Prints the tests of each behaviour; adds a fault for each behaviour without a test that is run.
pub(super) fn check(faults: &mut Vec<String>) -> Result<()> {
    let table =
        fs::read_to_string(workspace().join(TABLE)).with_context(|| format!("cannot read {TABLE}"))?;
    let source_of = |file: &str| fs::read_to_string(workspace().join(file)).ok();
    let proven = read(&table, &CLAIMED, &source_of, faults);
    for Proven { number, tests } in &proven {
        println!("  {number}: {}", tests.join(", "));
    }
    Ok(())
}

/// Reads the rows of a table; adds a fault for each number of `claimed` that it does not prove once. `source_of` returns
/// the text of a source file.
fn read(
    table: &str,
    claimed: &[(&str, RangeInclusive<u32>)],
    source_of: &dyn Fn(&str) -> Option<String>,
    faults: &mut Vec<String>,
) -> Vec<Proven> {
    let mut proven = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (at, line) in table.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let Some(cells) = row(line, claimed) else { continue };
        let mut fault = |what: String| faults.push(format!("{TABLE}:{at}: {what}"));
        let [number, _, pure, simulated, real] = &cells[..] else {
            fault(format!(
                "{} cells where a number, a behaviour and three kinds of tests belong",
                cells.len()
            ));
            continue;
        };
        let number = (*number).to_owned();
        if !is_claimed(&number, claimed) {
            fault(format!("{number} is in no range of CLAIMED in xtask/src/tasks/tidy/behaviours.rs"));
        }
        if let Some(first) = lines.insert(number.clone(), at) {
            fault(format!("{number} has a second row; the first is line {first}"));
        }
        let [pure, simulated, real] = [pure, simulated, real].map(|cell| names(cell));
        if pure.is_empty() && simulated.is_empty() {
            fault(format!("{number} has no test"));
        }
        if simulated.is_empty() != real.is_empty() {
            fault(format!("{number} is tested on one of the simulated and the real server alone"));
        }
        let of_e2e = |test: &&String| test.starts_with("e2e::");
        let misplaced =
            pure.iter().chain(&simulated).filter(of_e2e).chain(real.iter().filter(|test| !of_e2e(test)));
        for test in misplaced {
            fault(format!("{number}: {test} stands in the column of another server"));
        }
        let tests = [pure, simulated, real].concat();
        for test in &tests {
            if let Err(why) = find(test, source_of) {
                fault(format!("{number}: {test} {why}"));
            }
        }
        proven.push(Proven { number, tests });
    }
    for (source, range) in claimed {
        let numbers = range.clone().map(|number| format!("{source} {number}"));
        let missing = numbers.filter(|number| !lines.contains_key(number));
        faults.extend(missing.map(|number| format!("{TABLE}: {number} has no row")));
    }
    proven
}

/// Returns the cells of a row of behaviours; `None` for other lines.
fn row<'t>(line: &'t str, claimed: &[(&str, RangeInclusive<u32>)]) -> Option<Vec<&'t str>> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
    let source = cells.first()?.split(' ').next()?;
    claimed.iter().any(|(name, _)| *name == source).then_some(cells)
}

fn is_claimed(number: &str, claimed: &[(&str, RangeInclusive<u32>)]) -> bool {
    let Some((source, number)) = number.split_once(' ') else { return false };
    let number: Option<u32> = number.parse().ok();
    number
        .is_some_and(|number| claimed.iter().any(|(name, range)| *name == source && range.contains(&number)))
}

/// Returns the names in backticks of a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Finds the test `package::module::name` in the sources; the scenario `package::module::scenario::real`, too.
///
/// # Errors
/// The reason why no test of this name is run.
fn find(test: &str, source_of: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    let parts: Vec<&str> = test.split("::").collect();
    let [package, module, name, rest @ ..] = &parts[..] else {
        return Err("is not named as package::module::test".to_owned());
    };
    let Some((_, folder)) = PACKAGES.iter().find(|(known, _)| known == package) else {
        return Err(format!("is of a package that is not among PACKAGES: {package}"));
    };
    let main = source_of(&format!("{folder}/tests/it/main.rs")).unwrap_or_default();
    if !main.lines().any(|line| line == format!("mod {module};")) {
        return Err(format!("is in a module that {folder}/tests/it/main.rs does not have"));
    }
    let file = format!("{folder}/tests/it/{module}.rs");
    let text = source_of(&file).ok_or_else(|| format!("is not found: there is no {file}"))?;
    match rest {
        [] => function(&text, name).ok_or_else(|| format!("is not found in {file}"))?,
        ["real" | "replayed"] if is_scenario(&text, name) => Ok(()),
        _ => Err(format!("is not found in {file}")),
    }
}

/// Looks for a function that is a test; `None` if there is none of this name.
fn function(text: &str, name: &str) -> Option<Result<(), String>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &&str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|line| line.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    };
    let at = lines.iter().position(is_it)?;
    let before = lines.iter().take(at).rev().take_while(|line| !line.is_empty() && **line != "}");
    let attributes: Vec<&&str> = before.filter(|line| !line.starts_with("//")).collect();
    let has = |start: &str| attributes.iter().any(|line| line.starts_with(start));
    Some(match () {
        () if !has("#[test]") && !has("#[tokio::test") => Err("is a function, but not a test".to_owned()),
        () if has("#[ignore") || has("#[cfg_attr") => Err("is ignored".to_owned()),
        () if has("#[cfg") => Err("is not compiled everywhere".to_owned()),
        () => Ok(()),
    })
}

/// Returns true if a scenario of this name is among those of a file, which the macro `scenarios` makes tests of.
fn is_scenario(text: &str, name: &str) -> bool {
    let lists = text.split("scenarios![").skip(1).filter_map(|rest| rest.split(']').next());
    let names = lists.flat_map(|list| list.split_once(':').map_or("", |(_, names)| names).split(','));
    names.into_iter().any(|it| it.trim() == name)
}

#[cfg(test)]
mod tests {
    use super::{CLAIMED, Proven, read};

    const MAIN: &str = "mod diff;\nmod status;\n";

    const DIFF: &str = "\
#[test]
fn equal() {
}

/// Async.
#[tokio::test(flavor = \"multi_thread\")]
async fn later() {}

#[test]
#[ignore = \"slow\"]
fn slow() {}

#[test]
#[cfg(target_os = \"linux\")]
fn elsewhere() {}

// #[test]
fn helper() {}

scenarios![2: one_of_two, other];
";

    fn source_of(file: &str) -> Option<String> {
        match file {
            "crates/plan/tests/it/main.rs"
            | "crates/taffrail/tests/it/main.rs"
            | "tests/e2e/tests/it/main.rs" => Some(MAIN.to_owned()),
            "crates/plan/tests/it/diff.rs"
            | "crates/taffrail/tests/it/diff.rs"
            | "tests/e2e/tests/it/diff.rs" => Some(DIFF.to_owned()),
            "crates/plan/tests/it/other.rs" => Some(DIFF.to_owned()),
            _ => None,
        }
    }

    /// Returns the rows of a table, and the faults without the name of the file.
    fn of(rows: &[&str]) -> (Vec<Proven>, Vec<String>) {
        let table = format!("| | behaviour | | | |\n|---|---|---|---|---|\n{}\n", rows.join("\n"));
        let mut faults = Vec::new();
        let proven = read(&table, &[("argo-cd", 1..=2), ("kstatus", 7..=7)], &source_of, &mut faults);
        let faults = faults.iter().map(|fault| fault.trim_start_matches("docs/behaviours.md").to_owned());
        (proven, faults.collect())
    }

    const ONE: &str = "| argo-cd 1 | Equal objects | `plan::diff::equal` | | |";
    const TWO: &str =
        "| argo-cd 2 | Servers | | `taffrail::diff::later` | `e2e::diff::other::real`, `e2e::diff::equal` |";
    const SEVEN: &str = "| kstatus 7 | Both | `plan::diff::equal`, `plan::diff::later` | | |";

    #[track_caller]
    fn assert_fault(row: &str, fault: &str) {
        assert_eq!(of(&[row, TWO, SEVEN]).1, [fault]);
    }

    #[test]
    fn numbers_are_listed_with_their_tests() {
        let (proven, faults) = of(&[ONE, TWO, SEVEN]);
        assert_eq!(faults, [""; 0]);
        let of = |number: &str, tests: &[&str]| Proven {
            number: number.to_owned(),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
        };
        let expected = [
            of("argo-cd 1", &["plan::diff::equal"]),
            of("argo-cd 2", &["taffrail::diff::later", "e2e::diff::other::real", "e2e::diff::equal"]),
            of("kstatus 7", &["plan::diff::equal", "plan::diff::later"]),
        ];
        assert_eq!(proven, expected);
    }

    #[test]
    fn number_without_a_row_is_a_fault() {
        assert_eq!(of(&[ONE, SEVEN]).1, [": argo-cd 2 has no row"]);
        assert_eq!(of(&[ONE, TWO]).1, [": kstatus 7 has no row"]);
        let all: usize = CLAIMED.iter().map(|(_, range)| range.clone().count()).sum();
        let mut faults = Vec::new();
        read("", &CLAIMED, &source_of, &mut faults);
        assert_eq!(faults.len(), all);
    }

    #[test]
    fn number_with_two_rows_is_a_fault() {
        let faults = of(&[ONE, TWO, SEVEN, ONE]).1;
        assert_eq!(faults, [":6: argo-cd 1 has a second row; the first is line 3"]);
    }

    #[test]
    fn number_without_a_test_is_a_fault() {
        assert_fault("| argo-cd 1 | Equal objects | | | |", ":3: argo-cd 1 has no test");
        let alone = ":3: argo-cd 1 is tested on one of the simulated and the real server alone";
        assert_fault(
            "| argo-cd 1 | Equal objects | `plan::diff::equal` | `taffrail::diff::equal` | |",
            alone,
        );
        assert_fault("| argo-cd 1 | Equal objects | `plan::diff::equal` | | `e2e::diff::equal` |", alone);
    }

    #[test]
    fn number_that_nobody_claims_is_a_fault() {
        for number in ["argo-cd 3", "argo-cd 1, argo-cd 2", "argo-cd one"] {
            let row = format!("| {number} | Equal objects | `plan::diff::equal` | | |");
            let fault =
                format!(":6: {number} is in no range of CLAIMED in xtask/src/tasks/tidy/behaviours.rs");
            assert_eq!(of(&[ONE, TWO, SEVEN, &row]).1, [fault]);
        }
    }

    #[test]
    fn row_with_other_columns_is_a_fault() {
        let fault = ":6: 3 cells where a number, a behaviour and three kinds of tests belong";
        assert_eq!(of(&[ONE, TWO, SEVEN, "| argo-cd 1 | Equal objects | `plan::diff::equal` |"]).1, [fault]);
        let misplaced = "| argo-cd 1 | Equal objects | `e2e::diff::equal` | | |";
        assert_fault(misplaced, ":3: argo-cd 1: e2e::diff::equal stands in the column of another server");
    }

    #[test]
    fn test_that_is_not_run_is_a_fault() {
        for (test, why) in [
            ("plan::diff::equals", "is not found in crates/plan/tests/it/diff.rs"),
            ("plan::diff::equal::real", "is not found in crates/plan/tests/it/diff.rs"),
            ("plan::status::equal", "is not found: there is no crates/plan/tests/it/status.rs"),
            ("plan::other::equal", "is in a module that crates/plan/tests/it/main.rs does not have"),
            ("merge::diff::equal", "is of a package that is not among PACKAGES: merge"),
            ("equal", "is not named as package::module::test"),
            ("plan::diff::slow", "is ignored"),
            ("plan::diff::elsewhere", "is not compiled everywhere"),
            ("plan::diff::helper", "is a function, but not a test"),
        ] {
            let row = format!("| argo-cd 1 | Equal objects | `plan::diff::equal`, `{test}` | | |");
            assert_fault(&row, &format!(":3: argo-cd 1: {test} {why}"));
        }
    }
}

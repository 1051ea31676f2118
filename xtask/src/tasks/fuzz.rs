//! `cargo xtask fuzz`: compares the verdicts of Taffrail and of Go's kstatus on damaged objects.
//!
//! Both must accept the same objects and return the same verdicts. Lines are made from the committed seeds by a few
//! mutations each, so that many of them are damaged in just one place.

use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::peers;

/// Compare Taffrail with Go's kstatus on damaged objects.
#[derive(Args)]
pub(crate) struct Fuzz {
    /// Number of lines to try.
    #[arg(long, default_value_t = 1_000_000)]
    lines: usize,
    /// Seed of the random numbers; the same seed makes the same lines.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use the unoptimised binary, which exists after a test run.
    #[arg(long)]
    dev: bool,
}

/// Compares a sample of 50,000 lines, as a part of `cargo xtask test`; prints that it is skipped if Go is missing.
pub(crate) fn sample() -> Result<()> {
    const LINES: usize = 50_000;

    if !peers::can_build() {
        println!(
            "skipped: the comparison with Go's kstatus needs `go`, which is not installed (https://go.dev/dl)"
        );
        return Ok(());
    }
    Fuzz { lines: LINES, seed: 1, dev: true }.run()
}

/// The number of lines that are made, judged and compared at once.
const BATCH: usize = 50_000;

const SEEDS: [&str; 2] = ["crates/status/tests/golden/kstatus/objects.jsonl", "fuzz/corpus/json.jsonl"];

impl Fuzz {
    pub(crate) fn run(self) -> Result<()> {
        let taffrail = binary::build(if self.dev { Profile::Dev } else { Profile::Release })?;
        let peer = peers::build("kstatus")?;
        let seeds = seeds(binary::workspace())?;
        let folder = binary::workspace().join("target/fuzz");
        fs::create_dir_all(&folder)?;
        let input = folder.join("lines.jsonl");

        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut tally = Tally::default();
        while tally.lines < self.lines {
            let mut file = BufWriter::new(fs::File::create(&input)?);
            for _ in 0..BATCH.min(self.lines - tally.lines) {
                file.write_all(&mutant(&seeds, &mut random))?;
                file.write_all(b"\n")?;
            }
            file.flush()?;
            drop(file);
            let ours = ["status", "--rules", "kstatus", "--input", "jsonl", "-o", "jsonl", "-f"];
            compare(
                BufReader::new(fs::File::open(&input)?),
                run(&taffrail, &ours, &input)?,
                run(&peer, &[], &input)?,
                &mut tally,
            )?;
        }
        println!(
            "{} lines: {} judged alike, {} refused by both, {} on which Go's kstatus crashed and Taffrail did not",
            tally.lines, tally.judged, tally.refused, tally.crashed
        );
        Ok(())
    }
}

#[derive(Default)]
struct Tally {
    lines: usize,
    judged: usize,
    refused: usize,
    crashed: usize,
}

fn seeds(workspace: &Path) -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for file in SEEDS {
        let text =
            fs::read(workspace.join(file)).with_context(|| format!("cannot read the seeds in {file}"))?;
        seeds.extend(text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec));
    }
    Ok(seeds)
}

/// Returns the standard output of a program that judges the lines of the file `input`.
fn run(program: &Path, arguments: &[&str], input: &Path) -> Result<Vec<u8>> {
    let output = Command::new(program)
        .args(arguments)
        .arg(input)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    // Exit code 3 says that some lines could not be judged, which is the point here.
    ensure!(
        matches!(output.status.code(), Some(0 | 3)),
        "{} ended with {}",
        program.display(),
        output.status
    );
    Ok(output.stdout)
}

fn compare(lines: impl BufRead, ours: Vec<u8>, theirs: Vec<u8>, tally: &mut Tally) -> Result<()> {
    let mut ours = ours.split(|&byte| byte == b'\n');
    let mut theirs = theirs.split(|&byte| byte == b'\n');
    for line in lines.split(b'\n') {
        let line = line?;
        tally.lines += 1;
        let (Some(our), Some(their)) = (ours.next(), theirs.next()) else {
            bail!("Taffrail or kstatus printed fewer results than there are input lines");
        };
        let parse = |answer: &[u8]| {
            serde_json::from_slice::<Value>(answer)
                .with_context(|| format!("the result is not JSON: {}", answer.escape_ascii()))
        };
        let (our, their) = (parse(our)?, parse(their)?);
        let error = |answer: &Value| answer.get("error").and_then(Value::as_str).map(str::to_owned);
        let alike = match (error(&our), error(&their)) {
            (_, Some(error)) if error.starts_with("panic:") => {
                tally.crashed += 1;
                true
            }
            (Some(_), Some(_)) => {
                tally.refused += 1;
                our["status"] == "Unknown"
            }
            (None, None) => {
                tally.judged += 1;
                ["status", "message", "conditions", "namespace", "name"]
                    .iter()
                    .all(|key| our[key] == their[key])
            }
            _ => false,
        };
        ensure!(
            alike,
            "Taffrail and Go's kstatus differ\n line:     {}\n Taffrail: {our}\n kstatus:  {their}",
            line.escape_ascii()
        );
    }
    Ok(())
}

/// Pieces that random mutations insert: they are rare in random bytes and matter to a JSON reader.
const PIECES: [&[u8]; 40] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\t",
    b"\r",
    b"\x00",
    b"\x1f",
    b"\x7f",
    b"\xff",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\\u0000",
    b"\\ud800",
    b"\\ud83d\\ude00",
    b"\\udc00",
    b"\\u00e9",
    b"\\/",
    b"\\x",
    b"null",
    b"true",
    b"false",
    b"0",
    b"-0",
    b"1.0",
    b"1e5",
    b"1e999",
    b"9223372036854775808",
    b"-",
    b"01",
    b"{}",
    b"[]",
    b"\"\"",
    b"\"kind\":\"Pod\",",
    b"\"status\":{},",
];

/// Returns a random seed with one to three mutations; it never contains a line end.
fn mutant(seeds: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut line = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..[1, 1, 1, 2, 3][random.usize(..5)] {
        mutate(&mut line, seeds, random);
    }
    for byte in &mut line {
        if *byte == b'\n' {
            *byte = b' ';
        }
    }
    line
}

fn mutate(line: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut fastrand::Rng) {
    let at = random.usize(..=line.len());
    let to = (at + random.usize(..16)).min(line.len());
    match random.u8(..9) {
        0 => drop(line.drain(at..to)),
        1 => line.truncate(at),
        2 if at < line.len() => line[at] = random.u8(..),
        3 if at < line.len() => line[at] ^= 1 << random.u8(..8),
        4 | 5 => {
            let piece = PIECES[random.usize(..PIECES.len())];
            line.splice(at..at, piece.iter().copied());
        }
        6 => {
            let piece = PIECES[random.usize(..PIECES.len())];
            line.splice(at..to, piece.iter().copied());
        }
        7 => {
            // A member or an item once more, perhaps elsewhere: keys become duplicates.
            let commas: Vec<usize> =
                line.iter().enumerate().filter(|(_, byte)| **byte == b',').map(|(at, _)| at).collect();
            if commas.len() > 2 {
                let first = random.usize(..commas.len() - 1);
                let copy = line[commas[first]..commas[first + 1]].to_vec();
                let place = commas[random.usize(..commas.len())];
                line.splice(place..place, copy);
            }
        }
        _ => {
            // The end of another seed.
            let other = &seeds[random.usize(..seeds.len())];
            let from = random.usize(..=other.len());
            line.truncate(at);
            line.extend_from_slice(&other[from..]);
        }
    }
}

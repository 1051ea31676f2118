//! Mutations of manifests: of bytes, lines, indentation, quotes, anchors, tags, numbers, merge keys, duplicate keys and
//! separators.

use fastrand::Rng;

/// The maximum size of a text that is mutated, in bytes; of a larger one a part is.
const MAX_BYTES: usize = 6_000;

/// Bytes that mean something to a reader of YAML or JSON, or end one.
const BYTES: &[&[u8]] = &[
    b" ",
    b"  ",
    b"\t",
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b":",
    b": ",
    b" #",
    b"#",
    b"-",
    b"- ",
    b"? ",
    b"&",
    b"*",
    b"!",
    b"!!",
    b"|",
    b">",
    b"%",
    b"@",
    b"`",
    b"'",
    b"''",
    b"\"",
    b"\\",
    b"\\n",
    b"\\x41",
    b"\\u00e9",
    b"\\ud83d\\ude00",
    b"\\/",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"0",
    b"~",
    b"\0",
    b"\x07",
    b"\x7f",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xc2\xa0",
    b"\xef\xbb\xbf",
    b"\xef\xbf\xbe",
    b"\xf0\x9f\x98\x80",
    b"\xc3\xa9",
    b"\xff",
    b"\xc3",
];

/// Scalars that one reader or another takes for something else than their text.
const SCALARS: &[&str] = &[
    "010",
    "0o10",
    "0O10",
    "08",
    "0x1F",
    "-0x1f",
    "0b11",
    "-0b1",
    "1_000",
    "_1",
    "1__0",
    "0_7",
    "+1",
    "-1",
    "-0",
    "+0",
    "0",
    "00",
    "-010",
    "1e3",
    "1E3",
    "1e+3",
    "1.5e-3",
    ".5",
    "5.",
    "-.5",
    "+.5",
    "1.0",
    "-1.0",
    "1.50",
    "0.1",
    "0.0",
    "-0.0",
    "1e21",
    "1e-7",
    "1e20",
    "123456.789",
    "1e999",
    "-1e999",
    "1e-999",
    ".",
    "..",
    "-",
    "+",
    "-.",
    "1.2.3",
    "1e",
    "0x",
    "0b",
    "0b2",
    "0xg",
    "1:30",
    "1:30:00",
    "190:20:30.5",
    "-1:30",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "0xffffffffffffffff",
    "0x1ffffffffffffffff",
    "3.4028236e38",
    "1.7976931348623157e308",
    "0.1234567890123456789",
    "100000000000000000000000.5",
    "y",
    "Y",
    "n",
    "N",
    "yes",
    "Yes",
    "YES",
    "yEs",
    "no",
    "No",
    "on",
    "On",
    "off",
    "OFF",
    "true",
    "True",
    "TRUE",
    "tRUE",
    "false",
    "~",
    "null",
    "Null",
    "NULL",
    "nULL",
    ".inf",
    "-.inf",
    "+.Inf",
    ".INF",
    ".nan",
    ".NaN",
    "inf",
    "nan",
    "NaN",
    "Infinity",
    "2001-12-14",
    "2001-12-14t21:59:43.10-05:00",
    "2001-12-14 21:59:43.10 -5",
    "2001-1-1",
    "=",
    "<<",
    "''",
    "\"\"",
    "'010'",
    "\"yes\"",
    "'it''s'",
    "\"a\\tb\"",
    "\"\\u0041\"",
    "\"\\x41\\0\"",
    "\"\\e\"",
    "\"a\\\n  b\"",
    "\"a\n  b\"",
    "'a\n  b'",
    "\"a\n\n  b\"",
    "a\n  b",
    "{}",
    "[]",
    "{a: 1}",
    "{a: 1,}",
    "{a, b: }",
    "{\"a\":1}",
    "{? a : b}",
    "[a, b,]",
    "[a: b]",
    "[a: b, c]",
    "[[1, [2]], {a: {b: [c]}}]",
    "[,]",
    "{,}",
    "{a: 1, a: 2}",
    "{1: a, yes: b}",
    "{1.5: a}",
    "{null: a}",
    "{[a]: b}",
    "{{a: b}: c}",
    "|\n  a\n  b",
    "|-\n  a\n",
    "|+\n  a\n\n",
    "|2\n    a",
    ">\n  a\n  b\n\n  c",
    ">-\n  a",
    ">+\n  a\n\n",
    "|\n",
    ">1-\n  a",
    "|-1\n a",
    "| # c\n  a",
    "|\n\ta",
    "!!str 1",
    "!!str yes",
    "!!str",
    "!!int 1",
    "!!int '1'",
    "!!int x",
    "!!int 1.5",
    "!!float 1",
    "!!float '1.5'",
    "!!float x",
    "!!bool yes",
    "!!bool 'true'",
    "!!bool x",
    "!!null ''",
    "!!null x",
    "!!null null",
    "!!binary aGk=",
    "!!binary '%'",
    "!!binary gIE=",
    "!!timestamp 2001-12-14",
    "!!timestamp x",
    "!!map {a: 1}",
    "!!seq [1]",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!map [1]",
    "!!seq {a: 1}",
    "!!merge x",
    "!x 1",
    "!x {a: 1}",
    "! 1",
    "! yes",
    "!<tag:yaml.org,2002:str> 1",
    "!<tag:yaml.org,2002:int> '1'",
    "!e!x 1",
    "!!x 1",
    "&a 1",
    "&a",
    "&a {b: 1, c: 2}",
    "&a [b: 1]",
    "&a {<<: {d: 1}}",
    "*a",
    "[*a, *a]",
    "{*a : 1}",
    "{a: *a}",
    "&a [*a]",
    "&a &b 1",
    "&a !!str 1",
    "!!str &a 1",
    "*a x",
    "&a:b 1",
    "a #b",
    "a # b",
    "a: b",
    "a:b",
    "a:",
    ": a",
    "- a",
    "-a",
    "? a",
    "%a",
    "@a",
    "`a",
    "a&b",
    "a*b",
    "a!b",
    "#a",
    "a, b",
    "a]",
    "a}",
    "a\tb",
    "\ta",
    "a\t",
    "a\t#b",
    "\"a\" b",
    "\"a\"b",
    "'a'#b",
    "\"a\" # b",
];

/// Lines that are no ordinary part of a manifest.
const LINES: &[&str] = &[
    "---",
    "--- ",
    "---\t",
    "--- # c",
    "---#c",
    "--- x",
    "--- {a: 1}",
    "---x",
    "----",
    "...",
    "... ",
    "... # c",
    "...x",
    "%YAML 1.1",
    "%YAML 1.2",
    "%YAML 2.0",
    "%TAG !e! tag:e,2000:",
    "%X y",
    "# c",
    "  # c",
    "\t# c",
    "\t",
    " ",
    "",
    "{}",
    "{\"a\": 1}",
    "{\"a\": 1}{\"b\": 2}",
    "[1]",
    "null",
    "~",
    "x",
    "<<: *a",
    "<<: {m: 1}",
    "<<: [*a, {m: 1}]",
    "<<: [{m: 1}, {m: 2}]",
    "<<: 1",
    "<<: []",
    "'<<': {m: 1}",
    "!!merge <<: {m: 1}",
    "!!merge '<<': {m: 1}",
    "! \"<<\": {m: 1}",
    "!!str <<: {m: 1}",
    "!x <<: {m: 1}",
    "&m <<: {m: 1}",
    "? a",
    "? a\n: b",
    "? [a, b]\n: c",
    "? {a: b}",
    ": x",
    "? ",
    "a: &a {b: 1, m: 0}",
    "c: *a",
    "d: &a 1",
    "e: *a",
    "*a : 1",
    "&a k: 1",
    "!!str k: 1",
    "yes: 1",
    "on: 1",
    "1: a",
    "010: a",
    "0x1F: a",
    "1.5: a",
    "1e3: a",
    "1e21: a",
    "1.0: a",
    "0.00001: a",
    "null: a",
    "~: a",
    "\"\": a",
    ": a",
    "-1: a",
    ".inf: a",
    "2001-12-14: a",
    "9223372036854775808: a",
    "true: a",
    "True: a",
    "kind: b",
    "metadata: {}",
    "metadata:",
    "\"a\\u0062\": 1",
    "a b: 1",
    "a: b: c",
    "- a",
    "- - a",
    "-   a: 1",
    "- a: 1\n  b: 2",
    "-\ta",
    "-",
    "- ",
    "key: - a",
    "\"k\": v",
    "'k': v",
    "'k':v",
    "\"k\":v",
    "k : v",
    "k:",
    "k: |\n  t",
    "\u{feff}a: 1",
    "a: \u{85}b",
    "{\"a\": 1, \"a\": 2}",
];

/// Returns a part of a text that is small enough to be mutated often.
pub(super) fn part<'t>(random: &mut Rng, text: &'t [u8]) -> &'t [u8] {
    if text.len() <= MAX_BYTES {
        return text;
    }
    let starts: Vec<usize> =
        (0..text.len()).filter(|at| *at == 0 || text.get(at - 1..at + 3) == Some(b"\n---")).collect();
    let start = *random.choice(&starts).unwrap();
    let rest = text.get(start..).unwrap();
    let end = rest.len().min(MAX_BYTES);
    let end = rest.get(..end).unwrap().iter().rposition(|byte| *byte == b'\n').map_or(end, |at| at + 1);
    rest.get(..end).unwrap()
}

/// Returns a text with one to three mutations.
pub(super) fn mutant(random: &mut Rng, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..*random.choice(&[1, 1, 1, 2, 3]).unwrap() {
        match random.u8(0..20) {
            0..3 => of_bytes(random, &mut text),
            19 => of_all(random, &mut text),
            _ => {
                let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                of_lines(random, &mut lines);
                text = lines.join(&b'\n');
            }
        }
    }
    text
}

fn of_bytes(random: &mut Rng, text: &mut Vec<u8>) {
    let at = random.usize(0..=text.len());
    let piece = *random.choice(BYTES).unwrap();
    match random.u8(0..4) {
        0 | 1 => drop(text.splice(at..at, piece.iter().copied())),
        2 => drop(text.splice(at..(at + random.usize(1..4)).min(text.len()), piece.iter().copied())),
        _ => drop(text.drain(at..(at + random.usize(1..8)).min(text.len()))),
    }
}

fn of_all(random: &mut Rng, text: &mut Vec<u8>) {
    let replace = |text: &mut Vec<u8>, from: u8, to: &[u8]| {
        *text = text.iter().flat_map(|byte| if *byte == from { to.to_vec() } else { vec![*byte] }).collect();
    };
    match random.u8(0..10) {
        8 => text.extend(bomb(random).bytes()),
        9 => {
            let levels = random.usize(1..400);
            let (open, close) = *random.choice(&[("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")]).unwrap();
            text.extend(format!("\nk: {}x{}\n", open.repeat(levels), close.repeat(levels)).bytes());
        }
        0 => replace(text, b'\n', b"\r\n"),
        1 => replace(text, b'\n', b"\r"),
        2 => drop(text.splice(0..0, *b"\xef\xbb\xbf")),
        3 => text.truncate(random.usize(0..=text.len())),
        4 => text.extend(text.clone()),
        5 => {
            text.extend(b"\n---\n");
            text.extend(text.clone());
        }
        6 => drop(text.splice(0..0, random.choice(LINES).unwrap().bytes().chain(*b"\n"))),
        _ => text.extend(random.choice(LINES).unwrap().bytes()),
    }
}

/// Returns members whose aliases repeat each other.
fn bomb(random: &mut Rng) -> String {
    let (levels, width) = (random.usize(1..7), random.usize(1..9));
    let mut members = "\na0: &a0 {k: [v, v]}\n".to_owned();
    for level in 1..=levels {
        let before = format!("*a{}, ", level - 1).repeat(width);
        members += &format!("a{level}: &a{level} {{k: [{before}1]}}\n");
    }
    members
}

fn of_lines(random: &mut Rng, lines: &mut Vec<Vec<u8>>) {
    let at = random.usize(0..lines.len());
    let indent = |line: &[u8]| line.iter().take_while(|byte| **byte == b' ').count();
    let line = lines.get(at).unwrap().clone();
    let own = indent(&line);
    let scalar = |random: &mut Rng| random.choice(SCALARS).unwrap().as_bytes().to_vec();
    // What stands behind the key or the dash.
    let value = line.windows(2).position(|pair| pair == b": " || pair == b"- ").map(|at| at + 2);
    let replaced = match random.u8(0..16) {
        0 => {
            lines.remove(at);
            if lines.is_empty() {
                lines.push(Vec::new());
            }
            return;
        }
        1 => {
            lines.insert(at, line);
            return;
        }
        2 => {
            let other = random.usize(0..lines.len());
            lines.swap(at, other);
            return;
        }
        3 => {
            let to = random.usize(0..=lines.len());
            lines.insert(to, line);
            return;
        }
        4 | 5 => {
            let new = random.choice(LINES).unwrap().as_bytes();
            let spaces = *random.choice(&[0, own, own, own, own + 2, own + 1]).unwrap();
            [" ".repeat(spaces).as_bytes(), new].concat()
        }
        6 => [" ".repeat(random.usize(1..4)).as_bytes(), &line].concat(),
        7 => line.get(random.usize(0..=own)..).unwrap().to_vec(),
        8 => [&b"\t"[..], &line].concat(),
        9 => match value {
            Some(value) => {
                let quote = *random.choice(b"'\"").unwrap();
                let (key, value) = line.split_at(value);
                [key, &[quote], value, &[quote]].concat()
            }
            None => line.iter().copied().filter(|byte| !b"'\"".contains(byte)).collect(),
        },
        10 => match value {
            Some(value) => {
                let before = random.choice(&[
                    "&a ",
                    "!!str ",
                    "!!int ",
                    "!!binary ",
                    "!x ",
                    "&a !!map ",
                    "? ",
                    "- ",
                    "| ",
                    "> ",
                ]);
                let (key, value) = line.split_at(value);
                [key, before.unwrap().as_bytes(), value].concat()
            }
            None => [&line[..], b" # c"].concat(),
        },
        11 => match line.iter().position(|byte| *byte == b':') {
            Some(colon) => {
                let key = scalar(random);
                [&line[..own], &key, &line[colon..]].concat()
            }
            None => [&line[..own], &scalar(random)].concat(),
        },
        _ => {
            let end = value.unwrap_or_else(|| random.usize(own..=line.len()));
            [line.get(..end).unwrap(), &scalar(random)].concat()
        }
    };
    // In place of the line, or before it.
    let from = if random.u8(0..3) == 0 { at } else { at + 1 };
    lines.splice(at..from, [replaced]);
}

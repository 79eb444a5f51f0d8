//! The records' two definitions, in C and in Rust, must be one. The C header is read as text: the compiler that made
//! the object read the same file.

use std::collections::BTreeMap;
use trace::kernel::wire::{
    self, Kind, STRUCTS, call_flag, fault_flag, feature, file_flag, fork_flag, request_flag, turn_flag,
};
use trace::kernel::{CWD_ARG, NO_ARG, SPEC_BYTES, SPECS, spec_flag};

const WIRE: &str = include_str!("../../src/bpf/wire.h");
const SPEC: &str = include_str!("../../src/bpf/spec.h");

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        out.push_str(before);
        rest = comment.split_once("*/").expect("the comment's end").1;
    }
    out + rest
}

/// Fields of each structure, with their bytes; natural alignment must leave no holes.
fn structs(text: &str) -> BTreeMap<String, Vec<(String, usize)>> {
    let text = without_comments(text);
    let mut all = BTreeMap::new();
    let mut rest = &text[..];
    while let Some(at) = rest.find("\nstruct ") {
        let (name, tail) = rest[at + 8..].split_once(" {").expect("a body");
        let (body, tail) = tail.split_once("};").expect("its end");
        rest = tail;
        let mut fields = Vec::new();
        for field in body.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let (ty, name) = field.rsplit_once(' ').expect("a type and a name");
            let (name, count) = match name.split_once('[') {
                Some((name, count)) => (name, count.trim_end_matches(']').parse().expect("a number")),
                None => (name, 1),
            };
            let bytes = match ty {
                "u8" => 1,
                "u16" => 2,
                "u32" | "s32" => 4,
                "u64" | "s64" => 8,
                "struct wire_head" => 8,
                other => panic!("a type unknown here: {other}"),
            };
            let offset: usize = fields.iter().map(|&(_, bytes)| bytes).sum();
            assert_eq!(offset % bytes.min(8), 0, "{name} leaves a hole");
            fields.push((name.to_owned(), bytes * count));
        }
        all.insert(name.to_owned(), fields);
    }
    all
}

/// Numbers of enumerations: `NAME = 1 << 2` or `NAME = 3`.
fn constants(text: &str) -> BTreeMap<String, u64> {
    let text = without_comments(text);
    let mut all = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        let Some((name, value)) = line.trim_end_matches(',').split_once(" = ") else { continue };
        let value = match value.split_once(" << ") {
            Some((one, shift)) => one.parse::<u64>().expect("1") << shift.parse::<u32>().expect("a shift"),
            None => value.parse().expect("a number"),
        };
        all.insert(name.to_owned(), value);
    }
    for line in text.lines().filter_map(|line| line.strip_prefix("#define ")) {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(value)) = (words.next(), words.next()) {
            let number = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => value.parse().ok(),
            };
            all.extend(number.map(|number| (name.to_owned(), number)));
        }
    }
    all
}

#[test]
fn structures_are_the_same() {
    let c = structs(WIRE);
    assert!(!STRUCTS.is_empty());
    for &(name, fields) in STRUCTS {
        let theirs = c.get(name).unwrap_or_else(|| panic!("wire.h has no {name}"));
        let body: Vec<(&str, usize)> =
            theirs.iter().filter(|(field, _)| field != "head").map(|(field, bytes)| (&field[..], *bytes)).collect();
        assert_eq!(body, fields, "{name}");
    }
    let known: Vec<&str> = STRUCTS.iter().map(|&(name, _)| name).chain(["wire_head"]).collect();
    for name in c.keys() {
        assert!(known.contains(&&name[..]), "wire.rs has no {name}");
    }
    assert_eq!(c["wire_head"].iter().map(|&(_, bytes)| bytes).sum::<usize>(), wire::HEAD_BYTES);
}

#[test]
fn numbers_are_the_same() {
    let c = constants(WIRE);
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    ours.extend(Kind::ALL.iter().map(|&(kind, name)| (name.to_owned(), kind as u64)));
    let flags = [call_flag::ALL, file_flag::ALL, fork_flag::ALL, fault_flag::ALL, request_flag::ALL, turn_flag::ALL];
    for all in flags.into_iter().chain([feature::ALL]) {
        ours.extend(all.iter().map(|&(flag, name)| (name.to_owned(), u64::from(flag))));
    }
    ours.insert("WIRE_VERSION".into(), u64::from(wire::VERSION));
    ours.insert("WIRE_IN_BYTES".into(), wire::IN_BYTES as u64);
    ours.insert("WIRE_OUT_BYTES".into(), wire::OUT_BYTES as u64);
    assert_eq!(c, ours);
}

#[test]
fn specifications_are_the_same() {
    let c = constants(SPEC);
    let flags = [
        ("SPEC_RECORDED", spec_flag::RECORDED),
        ("SPEC_RETURNS_FD", spec_flag::RETURNS_FD),
        ("SPEC_IOV", spec_flag::IOV),
        ("SPEC_CLOSES", spec_flag::CLOSES),
        ("SPEC_EXEC", spec_flag::EXEC),
        ("SPEC_NEEDS_FD", spec_flag::NEEDS_FD),
        ("SPEC_IN_IF", spec_flag::IN_IF),
        ("SPEC_MOVES", spec_flag::MOVES),
        ("NO_ARG", NO_ARG),
        ("CWD_ARG", CWD_ARG),
    ];
    for (name, number) in flags {
        assert_eq!(c.get(name), Some(&u64::from(number)), "{name}");
    }
    assert_eq!(c.keys().filter(|name| name.starts_with("SPEC_")).count(), 8);
    assert_eq!(c.get("SPECS"), Some(&(SPECS as u64)));
    let fields = &structs(SPEC)["spec"];
    assert_eq!(fields.iter().map(|&(_, bytes)| bytes).sum::<usize>(), SPEC_BYTES);
}

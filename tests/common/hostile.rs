//! Hostile components, a line each: a part of `hostile.wat` is replaced.

use std::path::Path;

use switchyard_core::policy::FaultKind;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use Ends::{Faults, KeepsState, Refused, Serves, TakesNoState};

const LOOP: &str = "(loop $on (br $on))";
const TRAP: &str = "(unreachable)";
const DEEP: &str = "(drop (call $deep (i64.const 0)))";

/// The end of a case.
pub(crate) enum Ends {
    /// The loader's reason contains this.
    Refused(&'static str),
    /// Every window ends with this fault.
    Faults(FaultKind, &'static str),
    /// Windows are served.
    Serves,
    /// Save fails with these words; windows are served.
    KeepsState(&'static str),
    /// Restore fails with these words; windows are served.
    TakesNoState(&'static str),
}

/// A part of `hostile.wat`, its text, and the end.
pub(crate) const PARTS: [(&str, &str, &str, Ends); 33] = [
    ("loops in start", "start", LOOP, Refused("overrun")),
    ("loops in describe", "describe", LOOP, Refused("overrun")),
    ("loops in configure", "configure", LOOP, Refused("overrun")),
    ("loops in realloc", "realloc", LOOP, Refused("overrun")),
    (
        "loops in schedule",
        "schedule",
        LOOP,
        Faults(FaultKind::Overrun, "cut"),
    ),
    ("loops in save", "save", LOOP, KeepsState("overrun")),
    ("loops in restore", "restore", LOOP, TakesNoState("overrun")),
    ("traps in start", "start", TRAP, Refused("trap")),
    ("traps in describe", "describe", TRAP, Refused("trap")),
    ("traps in configure", "configure", TRAP, Refused("trap")),
    ("traps in realloc", "realloc", TRAP, Refused("trap")),
    (
        "traps in schedule",
        "schedule",
        TRAP,
        Faults(FaultKind::Trap, "trapped"),
    ),
    ("traps in save", "save", TRAP, KeepsState("trap")),
    ("traps in restore", "restore", TRAP, TakesNoState("trap")),
    ("recurses in start", "start", DEEP, Refused("stack")),
    ("recurses in describe", "describe", DEEP, Refused("stack")),
    ("recurses in configure", "configure", DEEP, Refused("stack")),
    (
        "recurses in schedule",
        "schedule",
        DEEP,
        Faults(FaultKind::Stack, "stack"),
    ),
    ("recurses in save", "save", DEEP, KeepsState("stack")),
    (
        "recurses in restore",
        "restore",
        DEEP,
        TakesNoState("stack"),
    ),
    (
        "reallocs beyond its memory",
        "realloc",
        "(return (i32.const 0x7fff0000))",
        Refused("trap"),
    ),
    (
        "reallocs unaligned",
        "realloc",
        "(return (i32.const 70001))",
        Refused("trap"),
    ),
    (
        "grows a page a window",
        "schedule",
        "(drop (memory.grow (i32.const 1)))",
        Serves,
    ),
    (
        "grows by 3 GiB, in vain",
        "schedule",
        "(drop (memory.grow (i32.const 49152)))",
        Serves,
    ),
    ("starts with 3 GiB", "pages", "49152", Refused("memory")),
    (
        "lists beyond its memory",
        "data",
        r#"(data (i32.const 2064) "\00\00\01\00\00\00\00\10")"#,
        Faults(FaultKind::Trap, ""),
    ),
    (
        "reasons beyond all bounds",
        "data",
        r#"(data (i32.const 2120) "\00\00\01\00\ff\ff\ff\ff")"#,
        Faults(FaultKind::Trap, ""),
    ),
    (
        "wakes in the past",
        "data",
        r#"(data (i32.const 2104) "\01\00\00\00\00\00\00\00\01")"#,
        Serves,
    ),
    (
        "wakes at the end of time",
        "data",
        r#"(data (i32.const 2104) "\01\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff")"#,
        Serves,
    ),
    (
        "an option that is neither",
        "data",
        r#"(data (i32.const 2104) "\07")"#,
        Faults(FaultKind::Trap, ""),
    ),
    (
        "a result that is neither",
        "data",
        r#"(data (i32.const 2048) "\07")"#,
        Faults(FaultKind::Trap, ""),
    ),
    (
        "an error in no UTF-8",
        "data",
        r#"(data (i32.const 2048) "\01\00\00\00\00\00\00\00\00\0c\00\00\04") (data (i32.const 3072) "\ff\fe\fd\fc")"#,
        Faults(FaultKind::Trap, ""),
    ),
    (
        "a name in no UTF-8",
        "data",
        r#"(data (i32.const 96) "\ff\fe\fd")"#,
        Refused(""),
    ),
];

/// All placeholders of the template.
const PLACES: [&str; 10] = [
    "pages",
    "data",
    "start",
    "realloc",
    "describe",
    "configure",
    "schedule",
    "save",
    "restore",
    "more",
];

/// The component with this part.
pub(crate) fn hostile(part: &str, text: &str) -> Vec<u8> {
    let mut wat = include_str!("hostile.wat").to_owned();
    for place in PLACES {
        let usual = if place == "pages" { "32" } else { "" };
        let text = if place == part { text } else { usual };
        wat = wat.replace(&format!("{{{place}}}"), text);
    }
    component_of(wat::parse_str(wat).unwrap(), "../../wit/0.1")
}

/// A component of the world `policy` of a contract's folder, around a module with its functions.
pub(crate) fn component_of(mut module: Vec<u8>, contract: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(contract);
    let (package, _) = resolve.push_dir(folder).unwrap();
    let world = resolve.select_world(&[package], Some("policy")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}

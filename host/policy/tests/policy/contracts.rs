//! The same catalog and window, as components of each contract version see them.

use std::path::Path;

use switchyard_core::catalog::{Capabilities, Catalog, Task};
use switchyard_core::cost::Cost;
use switchyard_core::estimate::Slowdown;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::Plan;
use switchyard_core::policy::Policy;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{
    Completion, End, PlacedState, RequestCost, RequestProgress, Resident, Window,
};
use switchyard_policy::history::ContentHash;
use switchyard_policy::loader::PolicyTrial;

use crate::hostile_parts::component_of;
use crate::support::{ask, catalog, guest, load, loader, patient, window};

/// Hashes of the contracts without their comments.
const FROZEN_0_1: &str = "f82b62ee7e5581a2c3f664b4b021218bcdcde261f683d5518f5a861b3b3c8af3";
const FROZEN_0_2: &str = "6a1e8e0d0de3f9013eef3d409afae97069ac7c560d2ffdc05a2a4e734ee0fa90";

/// A guest that shows its catalog and its last window as text.
fn shows(name: &str, catalog: &Catalog) -> Box<dyn Policy> {
    let trial = PolicyTrial {
        catalog,
        windows: &[],
    };
    loader(patient()).load(&guest(name), trial).unwrap().policy
}

fn shown(policy: &mut dyn Policy, window: &Window) -> String {
    ask(policy, window).unwrap();
    String::from_utf8(policy.save().unwrap()).unwrap()
}

/// An app that embeds, whose variant has an unknown quality, next to one that classifies.
fn two_tasks() -> Catalog {
    let mut catalog = catalog();
    let mut embed = catalog.apps[0].clone();
    embed.name = "embed".to_owned();
    embed.task = Task::Embed;
    embed.classes = vec!["any".to_owned()];
    embed.prior = vec![1.0];
    embed.frequencies = vec![1.0];
    catalog.apps.push(embed);
    let mut variant = catalog.variants[0].clone();
    variant.name = "minilm".to_owned();
    variant.app = AppId(1);
    variant.quality_unknown = true;
    variant.exits[0].accuracy = 0.5;
    variant.exits[0].recall = vec![0.5];
    catalog.variants.push(variant);
    catalog
}

/// A window with every field that contract 0.1 has.
fn full() -> Window {
    let mut window = window(7, 3);
    let requests = &mut window.requests;
    requests.min_accuracy[1] = 0.75;
    requests.progress.push(RequestProgress {
        index: 1,
        worker: WorkerId(0),
        variant: VariantId(0),
        stages_run: 1,
    });
    requests.evidence_index.push(2);
    requests.evidence_counts.extend([3, 2]);
    window.workers.parked[0] = 1;
    let arrival = Time(6_900_000);
    window.placed.push(
        RequestId(90),
        AppId(0),
        arrival,
        arrival + Micros(100_000),
        WorkerId(1),
        VariantId(0),
        BatchId(12),
        PlacedState::Queued,
    );
    window.residents.push(Resident {
        worker: WorkerId(1),
        variant: VariantId(0),
    });
    window.arrival_rate = vec![20.0];
    window.completions.push(Completion {
        id: RequestId(80),
        app: AppId(0),
        end: End::Late,
        variant: Some(VariantId(0)),
        exit: Some(ExitId(0)),
        latency: Micros(120_000),
    });
    window
}

/// Adds the fields that contract 0.1 does not have.
fn extended(mut window: Window) -> Window {
    window.requests.costs.push(RequestCost {
        index: 1,
        cost: Cost::from_f64(2.5),
    });
    window.slowdown = vec![Slowdown::between(Micros(1_000), Micros(2_000))];
    window.workers.incarnation[1] = 3;
    window
}

#[test]
fn a_component_of_contract_0_1_sees_its_windows_as_ever() {
    let before = shown(shows("shows-0-1", &catalog()).as_mut(), &full());
    insta::assert_snapshot!("contract_0_1", before);
    // Whatever later versions add is not there.
    let mut catalog = catalog();
    catalog.workers[0].can = Capabilities {
        stage_ranges: false,
        exits: false,
        parking: false,
    };
    catalog.workers[0].transfer = Micros(250);
    catalog.variants[0].quality_unknown = true;
    catalog.apps[0].task = Task::Regress;
    let after = shown(shows("shows-0-1", &catalog).as_mut(), &extended(full()));
    assert_eq!(before, after);
}

#[test]
fn a_worker_that_came_or_left_is_a_change_in_contract_0_1_and_a_cause_of_its_own_in_0_2() {
    let mut lost = window(1, 1);
    lost.because.arrival = false;
    lost.because.workers = true;
    let cause = |name: &str| {
        let text = shown(shows(name, &catalog()).as_mut(), &lost);
        let at = text.find("because: ").unwrap();
        text[at..].lines().nth(1).unwrap().trim().to_owned()
    };
    assert_eq!(cause("shows-0-1"), "CHANGED,");
    assert_eq!(cause("shows"), "WORKERS,");
}

#[test]
fn a_component_of_contract_0_2_sees_quality_tasks_costs_slowdown_and_capabilities() {
    let mut catalog = two_tasks();
    catalog.workers[1].can.parking = false;
    catalog.workers[1].transfer = Micros(250);
    let mut window = extended(full());
    window.arrival_rate.push(0.0);
    let text = shown(shows("shows", &catalog).as_mut(), &window);
    insta::assert_snapshot!("contract_0_2", text);
}

#[test]
fn parts_without_content_are_absent_in_contract_0_2() {
    let mut policy = shows("shows", &catalog());
    let text = shown(policy.as_mut(), &window(1, 0));
    let absent = [
        "requests",
        "progress",
        "cost",
        "evidence",
        "placed",
        "residents",
        "slowdown",
        "completions",
    ];
    for field in absent {
        assert!(text.contains(&format!("{field}: None")), "{field}: {text}");
    }
    let text = shown(policy.as_mut(), &window(2, 1));
    assert!(text.contains("requests: Some("), "{text}");
    assert!(text.contains("cost: None"), "every request costs 1: {text}");
}

/// A component without any bindings: its state is its memory, in which the host has laid out the window,
/// with the window's address in the first four bytes.
fn by_hand(module: &str, wit: &str) -> Box<dyn Policy> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("by-hand.wasm");
    let module = wat::parse_str(module).unwrap();
    std::fs::write(&file, component_of(module, wit)).unwrap();
    let policy = load(&loader(patient()), &file).unwrap().policy;
    assert_eq!(policy.description().label(), "by-hand@1.0.0");
    policy
}

/// The bytes of a list whose pointer and length lie at `at`.
fn list(memory: &[u8], at: usize, size: usize) -> &[u8] {
    let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().unwrap()) as usize;
    let (start, len) = (word(at), word(at + 4));
    &memory[start..start + len * size]
}

fn bytes_u64(column: &[u64]) -> Vec<u8> {
    column
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn bytes_u32(column: &[u32]) -> Vec<u8> {
    column
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn the_memory_layout_of_a_window_of_contract_0_1_is_frozen() {
    let mut policy = by_hand(include_str!("by_hand.wat"), "../../wit/0.1");
    let window = extended(full());
    assert_eq!(ask(policy.as_mut(), &window).unwrap(), Plan::default());
    let memory = policy.save().unwrap();
    let at = u32::from_le_bytes(memory[..4].try_into().unwrap()) as usize;
    assert_eq!(memory[at..at + 8], window.id.to_le_bytes());
    assert_eq!(memory[at + 8..at + 16], window.now.0.to_le_bytes());
    let (requests, workers, placed) = (&window.requests, &window.workers, &window.placed);
    for (offset, column) in [
        (20, &requests.id),
        (36, &requests.arrival),
        (44, &requests.deadline),
        (92, &workers.busy_until),
        (100, &workers.free_at),
        (108, &workers.running_since),
        (140, &workers.free_memory),
        (156, &placed.id),
        (172, &placed.arrival),
        (180, &placed.deadline),
        (204, &placed.batch),
    ] {
        assert_eq!(list(&memory, at + offset, 8), bytes_u64(column), "{offset}");
    }
    for (offset, column) in [
        (28, &requests.app),
        (52, &requests.priority),
        (76, &requests.evidence_index),
        (84, &requests.evidence_counts),
        (116, &workers.running_variant),
        (124, &workers.queued),
        (132, &workers.parked),
        (164, &placed.app),
        (188, &placed.worker),
        (196, &placed.variant),
    ] {
        assert_eq!(list(&memory, at + offset, 4), bytes_u32(column), "{offset}");
    }
    assert_eq!(list(&memory, at + 148, 1), workers.up);
    assert_eq!(list(&memory, at + 212, 1), placed.state);
    assert_eq!(
        list(&memory, at + 68, 16),
        bytes_u32(&[1, 0, 0, 1]),
        "progress"
    );
    assert_eq!(list(&memory, at + 220, 8), bytes_u32(&[1, 0]), "residents");
    assert_eq!(
        list(&memory, at + 228, 8),
        20.0_f64.to_le_bytes(),
        "arrival-rate"
    );
    assert_eq!(list(&memory, at + 236, 40).len(), 40, "completions");
}

/// The fields, types and order of a frozen folder. Comments may become more precise.
fn without_comments(version: &str) -> ContentHash {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../wit")
        .join(version);
    let texts = ["world.wit", "scheduling.wit", "host.wit"].map(|file| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let lines = text
            .lines()
            .map(|line| line.split("//").next().unwrap().trim());
        let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        lines.join("\n")
    });
    ContentHash::of(&texts.each_ref().map(String::as_bytes))
}

#[test]
fn released_contracts_are_frozen() {
    for (version, frozen) in [("0.1", FROZEN_0_1), ("0.2", FROZEN_0_2)] {
        assert_eq!(
            without_comments(version).to_hex(),
            frozen,
            "wit/{version} is frozen: a change of it needs a folder of its own"
        );
    }
}

#[test]
fn the_memory_layout_of_a_window_of_contract_0_2_is_frozen() {
    let mut policy = by_hand(include_str!("by_hand_0_2.wat"), "../../wit/0.2");
    assert!(policy.description().changed_workers);
    let mut window = extended(full());
    assert_eq!(ask(policy.as_mut(), &window).unwrap(), Plan::default());
    let memory = policy.save().unwrap();
    let at = u32::from_le_bytes(memory[..4].try_into().unwrap()) as usize;
    assert_eq!(memory[at..at + 8], window.id.to_le_bytes());
    assert_eq!(memory[at + 8..at + 16], window.now.0.to_le_bytes());
    assert_eq!(memory[at + 16], 2, "because: arrival");
    let presence = |memory: &[u8], at: usize| {
        let tags = [20, 72, 84, 96, 116, 192, 260, 280, 292];
        tags.map(|tag| memory[at + tag])
    };
    assert_eq!(presence(&memory, at), [1, 1, 1, 1, 0, 1, 1, 1, 1]);
    let (requests, workers, placed) = (&window.requests, &window.workers, &window.placed);
    for (offset, column) in [
        (24, &requests.id),
        (40, &requests.arrival),
        (48, &requests.deadline),
        (128, &workers.busy_until),
        (136, &workers.free_at),
        (144, &workers.running_since),
        (176, &workers.free_memory),
        (196, &placed.id),
        (212, &placed.arrival),
        (220, &placed.deadline),
        (244, &placed.batch),
        (296, &vec![80]),
        (336, &vec![120_000]),
    ] {
        assert_eq!(list(&memory, at + offset, 8), bytes_u64(column), "{offset}");
    }
    for (offset, column) in [
        (32, &requests.app),
        (56, &requests.priority),
        (76, &vec![1, 0, 0, 1]),
        (100, &requests.evidence_index),
        (108, &requests.evidence_counts),
        (152, &workers.running_variant),
        (160, &workers.queued),
        (168, &workers.parked),
        (184, &vec![1, 3]),
        (204, &placed.app),
        (228, &placed.worker),
        (236, &placed.variant),
        (264, &vec![1, 0]),
        (304, &vec![0]),
        (320, &vec![0]),
        (328, &vec![0]),
    ] {
        // A list of records is as long as its rows.
        let rows = list(&memory, at + offset, 1).len();
        let size = column.len() * 4 / rows.max(1);
        let found = list(&memory, at + offset, size);
        assert_eq!(found, bytes_u32(column), "{offset}");
    }
    let floats = |column: &[f32]| {
        column
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&memory, at + 64, 4), floats(&requests.min_accuracy));
    assert_eq!(list(&memory, at + 88, 4), floats(&[1.0, 2.5, 1.0]));
    assert_eq!(list(&memory, at + 252, 1), placed.state);
    assert_eq!(list(&memory, at + 272, 8), 20.0_f64.to_le_bytes());
    assert_eq!(list(&memory, at + 284, 8), 2.0_f64.to_le_bytes());
    assert_eq!(list(&memory, at + 312, 1), [1], "late");

    // The next window has a row for the worker that changed.
    window.workers.queued[1] = 7;
    ask(policy.as_mut(), &window).unwrap();
    let memory = policy.save().unwrap();
    let at = u32::from_le_bytes(memory[..4].try_into().unwrap()) as usize;
    assert_eq!(presence(&memory, at)[4], 1, "workers.index");
    assert_eq!(list(&memory, at + 120, 4), bytes_u32(&[1]));
    assert_eq!(list(&memory, at + 160, 4), bytes_u32(&[7]));
    assert_eq!(list(&memory, at + 184, 4), bytes_u32(&[3]));
    assert_eq!(list(&memory, at + 264, 8), bytes_u32(&[1, 0]), "residents");
}

//! From the zoo's model cards to the core's catalog.

use std::sync::Arc;
use std::time::Duration;

use candle_core::Device;
use switchyard_core::catalog::{App, Confusion, Exit, Penalty, SneakPeekModel, Task, Variant};
use switchyard_core::ids::AppId;
use switchyard_core::time::Micros;
use switchyard_models::card::{self, Datatype, TensorCard};
use switchyard_models::zoo::{Zoo, ZooApp, ZooVariant};
use switchyard_models::{Precision, load_variant_at};
use thiserror::Error;

pub use crate::choice::{AppChoice, EvidenceChoice, Prior};
use crate::job::InputType;
use crate::source::{InputSpec, OpenDimension};
use crate::zoo::{CardContract, ZooEntry, ZooSource};

/// The catalog's apps and variants, and the source that loads the variants.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// In the order of the choices.
    pub apps: Vec<App>,
    /// App by app.
    pub variants: Vec<Variant>,
    /// Loads `variants`, by position.
    pub source: Arc<ZooSource>,
}

/// Why the zoo cannot be served as chosen.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {reason}")]
pub struct ManifestError {
    /// The choice at fault, such as `app heart, variant cnn`.
    pub field: String,
    /// The reason.
    pub reason: String,
}

// === impl Manifest ===

impl Manifest {
    /// All apps and variants of the zoo, with the settings of their cards.
    ///
    /// # Errors
    /// A card cannot be served.
    pub fn all(zoo: &Zoo) -> Result<Self, ManifestError> {
        let choices: Vec<_> = zoo
            .apps
            .iter()
            .map(|app| AppChoice::new(&app.card.name))
            .collect();
        Self::choose(zoo, &choices)
    }

    /// The chosen apps and variants of the zoo.
    ///
    /// # Errors
    /// The zoo lacks an app or variant, or a card cannot be served.
    pub fn choose(zoo: &Zoo, choices: &[AppChoice]) -> Result<Self, ManifestError> {
        let (mut apps, mut variants) = (Vec::new(), Vec::new());
        let mut entries = Vec::new();
        for (i, choice) in choices.iter().enumerate() {
            let at = format!("app {}", choice.app);
            let known = zoo.apps.iter().map(|app| app.card.name.as_str());
            let app = zoo
                .app(&choice.app)
                .ok_or_else(|| unknown(&at, &zoo.dir.display().to_string(), known))?;
            let inputs: Arc<[InputSpec]> = app.card.inputs.iter().map(input_of).collect();
            for (variant, precision) in chosen_variants(&at, app, choice)? {
                let core = variant_of(&at, variant, AppId(i as u32), &app.card.classes)?;
                let core = match precision {
                    Precision::F32 => core,
                    narrow => narrowed(&at, core, variant, narrow)?,
                };
                entries.push(ZooEntry {
                    name: format!("{}/{}", choice.app, core.name),
                    dir: variant.dir.clone(),
                    precision,
                    inputs: Arc::clone(&inputs),
                    reads: reads(&inputs, variant),
                    memory_bytes: core.memory_bytes,
                    contract: CardContract::of(&variant.card),
                });
                variants.push(core);
            }
            apps.push(app_of(&at, app, choice)?);
        }
        Ok(Self {
            apps,
            variants,
            source: ZooSource::new(entries),
        })
    }

    /// Some of its variants, by position, with all apps.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let entries = self.source.entries().iter().enumerate();
        let entries = entries.filter(|(at, _)| is_kept(*at));
        let variants = self.variants.iter().enumerate();
        let variants = variants.filter(|(at, _)| is_kept(*at));
        Self {
            apps: self.apps.clone(),
            variants: variants.map(|(_, variant)| variant.clone()).collect(),
            source: ZooSource::new(entries.map(|(_, entry)| entry.clone()).collect()),
        }
    }
}

// === from model cards ===

fn app_of(at: &str, app: &ZooApp, choice: &AppChoice) -> Result<App, ManifestError> {
    let card = &app.card;
    if let Prior::Strong {
        requests_per_window,
    } = choice.prior
        && !(requests_per_window.is_finite() && requests_per_window > 0.0)
    {
        return Err(ManifestError {
            field: format!("{at}, prior, requests_per_window"),
            reason: format!("{requests_per_window} is not a positive number"),
        });
    }
    // Saturates; the card was checked to be finite and positive.
    let slo = Duration::try_from_secs_f64(card.slo_ms / 1e3).unwrap_or(Duration::MAX);
    Ok(App {
        name: card.name.clone(),
        task: task_of(card.task),
        classes: card.classes.clone(),
        slo: choice.slo.unwrap_or_else(|| Micros::from(slo)),
        penalty: choice.penalty.unwrap_or(match card.penalty {
            card::Penalty::Step => Penalty::Step,
            card::Penalty::Linear => Penalty::Linear,
            card::Penalty::Sigmoid => Penalty::Sigmoid,
        }),
        prior: choice.prior.alpha(card),
        frequencies: card.validation.frequencies.clone(),
        sneakpeek: match &card.sneakpeek {
            Some(sneakpeek) => {
                let classes = &card.classes;
                Some(evidence_of(at, sneakpeek, choice.evidence, classes)?)
            }
            None => None,
        },
        late: choice.late,
    })
}

fn task_of(task: card::Task) -> Task {
    match task {
        card::Task::Classify => Task::Classify,
        card::Task::Embed => Task::Embed,
        card::Task::Regress => Task::Regress,
        card::Task::Score => Task::Score,
        card::Task::Tensors => Task::Tensors,
    }
}

fn evidence_of(
    at: &str,
    card: &card::SneakPeekCard,
    choice: EvidenceChoice,
    classes: &[String],
) -> Result<SneakPeekModel, ManifestError> {
    let refuse = |reason: &str| ManifestError {
        field: format!("{at}, evidence"),
        reason: reason.to_owned(),
    };
    let measured = (card.accuracy, &card.recall, &card.confusion);
    let (neighbours, (accuracy, recall, confusion)) = match (choice, &card.vote) {
        (EvidenceChoice::Card, _) => (clamp(card.k), measured),
        (EvidenceChoice::Neighbours(0), _) => {
            return Err(refuse("0 neighbours, must be at least 1"));
        }
        // The card's figures, measured with the card's k, stand for other k too.
        (EvidenceChoice::Neighbours(k), _) => (k, measured),
        (EvidenceChoice::Vote, Some(vote)) => (1, (vote.accuracy, &vote.recall, &vote.confusion)),
        (EvidenceChoice::Vote, None) => {
            return Err(refuse(
                "its card has no classifier that votes; `switchyard train` makes one",
            ));
        }
    };
    Ok(SneakPeekModel {
        neighbours,
        accuracy,
        recall: recall.clone(),
        confusion: confusion_of(&format!("{at}, SneakPeek model"), confusion, classes)?,
    })
}

fn variant_of(
    at: &str,
    variant: &ZooVariant,
    app: AppId,
    classes: &[String],
) -> Result<Variant, ManifestError> {
    let card = &variant.card;
    let exits = card.exits.iter().map(|exit| {
        let at = format!("{at}, variant {}, exit {}", card.name, exit.name);
        Ok(Exit {
            name: exit.name.clone(),
            after_stage: clamp(exit.after_stage),
            accuracy: exit.accuracy,
            recall: exit.recall.clone(),
            confusion: confusion_of(&at, &exit.confusion, classes)?,
        })
    });
    Ok(Variant {
        name: card.name.clone(),
        app,
        stages: clamp(card.stages),
        exits: exits.collect::<Result<_, ManifestError>>()?,
        memory_bytes: card.weight_bytes(),
        max_batch: clamp(card.max_batch),
        quality_unknown: card.quality_unknown,
    })
}

/// The variant with narrower weights. It is loaded once, which tells its memory and whether it can
/// be loaded at all. Its accuracies are the card's until they are measured
/// ([`ProfileFile::add_confusions`](switchyard_profile::ProfileFile::add_confusions)).
fn narrowed(
    at: &str,
    core: Variant,
    variant: &ZooVariant,
    precision: Precision,
) -> Result<Variant, ManifestError> {
    let name = precision.of_variant(&core.name);
    let loaded = load_variant_at(&variant.dir, precision, &Device::Cpu);
    let loaded = loaded.map_err(|error| ManifestError {
        field: format!("{at}, variant {name}"),
        reason: error.to_string(),
    })?;
    let exits = core.exits.into_iter().map(|exit| Exit {
        confusion: None,
        ..exit
    });
    Ok(Variant {
        name,
        exits: exits.collect(),
        memory_bytes: loaded.bytes,
        ..core
    })
}

/// The matrix of counts as shares; `None` if the card has no counts.
fn confusion_of(
    at: &str,
    counts: &[Vec<u64>],
    classes: &[String],
) -> Result<Option<Confusion>, ManifestError> {
    if counts.is_empty() {
        return Ok(None);
    }
    let shares = Confusion::from_counts(counts).map_err(|error| {
        let class = classes.get(error.class).map_or("unknown", String::as_str);
        ManifestError {
            field: format!("{at}, class {class}, confusion"),
            reason: error.reason,
        }
    })?;
    Ok(Some(shares))
}

fn input_of(card: &TensorCard) -> InputSpec {
    InputSpec {
        name: card.name.clone(),
        datatype: card.datatype,
        input_type: match card.datatype {
            datatype if !card.is_flat() => InputType::Raw(datatype),
            Datatype::Fp32 => InputType::F32,
            Datatype::Int64 => InputType::I64,
            Datatype::Uint8 => InputType::Bytes,
            Datatype::Bytes => InputType::Text,
            other => InputType::Raw(other),
        },
        row_shape: card.typical_shape(),
        open: card.open_dimensions().map(open).collect(),
    }
}

fn open((axis, largest): (usize, usize)) -> OpenDimension {
    OpenDimension { axis, largest }
}

/// Positions of the inputs that a variant reads; the zoo has checked their names.
fn reads(inputs: &[InputSpec], variant: &ZooVariant) -> Vec<usize> {
    let Some(names) = &variant.card.inputs else {
        return (0..inputs.len()).collect();
    };
    let position = |name: &String| inputs.iter().position(|input| input.name == *name);
    names.iter().filter_map(position).collect()
}

fn chosen_variants<'a>(
    at: &str,
    app: &'a ZooApp,
    choice: &AppChoice,
) -> Result<Vec<(&'a ZooVariant, Precision)>, ManifestError> {
    let Some(names) = &choice.variants else {
        let all = app.variants.iter();
        return Ok(all.map(|variant| (variant, Precision::F32)).collect());
    };
    let find = |name: &String| {
        let at = format!("{at}, variant {name}");
        Precision::split(name).map_err(|reason| ManifestError {
            field: at.clone(),
            reason,
        })?;
        app.variant_at(name).ok_or_else(|| {
            let known = app
                .variants
                .iter()
                .map(|variant| variant.card.name.as_str());
            unknown(&at, &app.dir.display().to_string(), known)
        })
    };
    names.iter().map(find).collect()
}

fn unknown<'a>(at: &str, folder: &str, known: impl Iterator<Item = &'a str>) -> ManifestError {
    let known: Vec<_> = known.collect();
    ManifestError {
        field: at.to_owned(),
        reason: format!("not in {folder}, which has: {}", known.join(", ")),
    }
}

/// Counts on cards are far below `u32::MAX`, which is more than any batch or stage.
fn clamp(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

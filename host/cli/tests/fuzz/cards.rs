//! Cards of the zoo, and tokenizers.

use std::path::{Path, PathBuf};

use switchyard_models::card::{APP_CARD, VARIANT_CARD};
use switchyard_models::{AppCard, VariantCard, tokenizer_of};
use tempfile::TempDir;

use super::mutate::Form;
use super::target::{Target, seeds};
use crate::text_zoo::{self, Answers};

pub(crate) fn read_app(folder: &Path, text: &[u8]) -> Result<(), String> {
    let file = folder.join(APP_CARD);
    std::fs::write(&file, text).unwrap();
    let card = AppCard::read(&file).map_err(|error| error.to_string())?;
    let mut again = card.clone();
    if again.classes_file.is_some() || !again.task.is_classify() {
        again.classes.clear();
    }
    std::fs::write(&file, toml::to_string(&again).unwrap()).unwrap();
    assert_eq!(
        AppCard::read(&file).map_err(|error| error.to_string()),
        Ok(card)
    );
    Ok(())
}

#[test]
fn cards_of_apps() {
    let folder = TempDir::new().unwrap();
    let target = Target {
        name: "card of an app",
        seeds: seeds(&[
            "models/zoo/heart/app.toml",
            "models/zoo/fall/app.toml",
            "models/zoo/voice/app.toml",
        ]),
        form: Form::Text,
        executions: 1_000,
        accepted_min: 0.05,
        memory_max: (8 << 20, 256),
    };
    target.run(|text| read_app(folder.path(), text));
}

pub(crate) fn read_variant(folder: &Path, text: &[u8]) -> Result<(), String> {
    let file = folder.join(VARIANT_CARD);
    std::fs::write(&file, text).unwrap();
    let card = VariantCard::read(&file).map_err(|error| error.to_string())?;
    std::fs::write(&file, toml::to_string(&card).unwrap()).unwrap();
    assert_eq!(
        VariantCard::read(&file).map_err(|error| error.to_string()),
        Ok(card)
    );
    Ok(())
}

#[test]
fn cards_of_variants() {
    let folder = TempDir::new().unwrap();
    let target = Target {
        name: "card of a variant",
        seeds: seeds(&[
            "models/zoo/heart/cnn/model.toml",
            "models/zoo/heart/resnet/model.toml",
            "models/zoo/fall/fusion/model.toml",
            "models/zoo/fall/video-l/model.toml",
            "models/zoo/voice/mobilenet/model.toml",
        ]),
        form: Form::Text,
        executions: 1_200,
        accepted_min: 0.04,
        memory_max: (8 << 20, 256),
    };
    target.run(|text| read_variant(folder.path(), text));
}

/// The folder of an encoder.
pub(crate) fn encoder() -> (TempDir, PathBuf) {
    let zoo = TempDir::new().unwrap();
    text_zoo::write_app(zoo.path(), "mood", Answers::Classes, &["small"]);
    let folder = zoo.path().join("mood/small");
    (zoo, folder)
}

pub(crate) fn read_tokenizer(folder: &Path, text: &[u8]) -> Result<(), String> {
    std::fs::write(folder.join("tokenizer.json"), text).unwrap();
    let tokenizer = tokenizer_of(folder).map_err(|error| error.to_string())?;
    let tokenizer = tokenizer.unwrap();
    let ids = tokenizer.ids("w4 w5, caf\u{e9} w99 unknown \u{4e2d}w6")?;
    assert!(ids.len() <= tokenizer.max_tokens());
    Ok(())
}

#[test]
fn tokenizers() {
    let (_zoo, folder) = encoder();
    let json = text_zoo::tokenizer();
    let target = Target {
        name: "tokenizer",
        seeds: vec![
            json.to_string().into_bytes(),
            serde_json::to_vec_pretty(&json).unwrap(),
        ],
        form: Form::Text,
        executions: 800,
        accepted_min: 0.05,
        memory_max: (8 << 20, 512),
    };
    target.run(|text| read_tokenizer(&folder, text));
}

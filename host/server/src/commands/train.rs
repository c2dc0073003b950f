//! `switchyard train`: make an app's data, train its variants, write weights and cards.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use switchyard_models::train::{TrainOptions, TrainReport, train_heart};

use super::Failure;

/// Make an app's data, train its variants, write weights and model cards
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard train heart
  switchyard train heart --quick --out /tmp/zoo/heart")]
pub(super) struct TrainArgs {
    #[command(subcommand)]
    app: App,
}

#[derive(Debug, Subcommand)]
enum App {
    Heart(HeartArgs),
}

/// Heart monitoring: 7 beat classes, beats from a dynamical ECG model
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard train heart
  switchyard train heart --out /tmp/zoo/heart --quick
  switchyard train heart --seed 7 --variant resnet")]
struct HeartArgs {
    /// Folder of the app in a zoo; its last part must be `heart`
    #[arg(long, value_name = "DIR", default_value = "models/zoo/heart")]
    out: PathBuf,
    /// Seed of weights and data
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds in the place of minutes, poor models in the place of good ones
    #[arg(long)]
    quick: bool,
    /// Train only this variant; may be given again
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
}

/// Trains and prints what came of it.
pub(super) fn run(args: &TrainArgs) -> Result<(), Failure> {
    let App::Heart(heart) = &args.app;
    if heart.out.file_name().is_none_or(|name| name != "heart") {
        // Found out now, not by whoever opens the zoo after minutes of training.
        let out = heart.out.display();
        return Err(Failure::input(format!(
            "--out: {out}: its last part must be `heart`"
        )));
    }
    let options = TrainOptions {
        out: heart.out.clone(),
        seed: heart.seed,
        quick: heart.quick,
        variants: (!heart.variants.is_empty()).then(|| heart.variants.clone()),
    };
    let style = ProgressStyle::with_template("{prefix:>10} {wide_bar} {pos}/{len} {msg} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    let report = train_heart(&options, &bar).map_err(Failure::input)?;
    bar.finish_and_clear();
    println!("{}", table(&report));
    println!("written to {}", heart.out.display());
    Ok(())
}

fn table(report: &TrainReport) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["variant", "parameters", "loss", "accuracy per exit"]);
    for variant in &report.variants {
        let accuracies = variant.exit_accuracies.iter();
        let accuracies: Vec<_> = accuracies.map(|a| format!("{a:.3}")).collect();
        table.add_row([
            variant.name.clone(),
            variant.parameters.to_string(),
            format!("{:.3} -> {:.3}", variant.first_loss, variant.last_loss),
            accuracies.join("  "),
        ]);
    }
    if let Some(accuracy) = report.sneakpeek_accuracy {
        table.add_row([
            "sneakpeek".to_owned(),
            String::new(),
            String::new(),
            format!("{accuracy:.3}"),
        ]);
    }
    table
}

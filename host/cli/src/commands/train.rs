//! `switchyard train`: make an app's data, train its variants, write weights and cards.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use switchyard_training::train::{APPS, TrainOptions, TrainReport, train};

use super::Failure;

/// Make an app's data, train its variants, write weights and model cards
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard train heart
  switchyard train heart --quick --out /tmp/zoo/heart
  switchyard train heart --seed 7 --variant resnet")]
pub(super) struct TrainArgs {
    /// The app
    #[arg(value_parser = PossibleValuesParser::new(APPS))]
    app: String,
    /// Folder of the app in a zoo; its last part must be the app's name [default: models/zoo/APP]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of weights and data
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds in the place of minutes, poor models in the place of good ones
    #[arg(long)]
    quick: bool,
    /// Train only this variant, or `sneakpeek` for the evidence; may be given again
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
}

/// Trains and prints what came of it.
pub(super) fn run(args: &TrainArgs) -> Result<(), Failure> {
    let app = args.app.as_str();
    let default = || PathBuf::from("models/zoo").join(app);
    let out = args.out.clone().unwrap_or_else(default);
    if out.file_name().is_none_or(|name| name != app) {
        // Found out now, not by whoever opens the zoo after minutes of training.
        let out = out.display();
        return Err(Failure::input(format!(
            "--out: {out}: its last part must be `{app}`"
        )));
    }
    let options = TrainOptions {
        out: out.clone(),
        seed: args.seed,
        quick: args.quick,
        variants: (!args.variants.is_empty()).then(|| args.variants.clone()),
    };
    let style = ProgressStyle::with_template("{prefix:>12} {wide_bar} {pos}/{len} {msg} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    let report = train(app, &options, &bar).map_err(Failure::input)?;
    bar.finish_and_clear();
    println!("{}", table(&report));
    println!("written to {}", out.display());
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

//! `switchyard train`: make an app's data, train its variants, write weights and cards.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use switchyard_training::train::{APPS, TrainOptions, TrainReport, train};

use super::failure::Failure;
use super::output::check_folder;
use super::print;

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
    /// Folder of the app in a zoo, which must be named after the app [default: models/zoo/APP]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of weights and data
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Train for seconds instead of minutes; the models are poor
    #[arg(long)]
    quick: bool,
    /// Train only this variant, or `sneakpeek` for the evidence; repeat the option for more
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
}

/// Trains and prints a table of the variants.
pub(super) fn run(args: &TrainArgs) -> Result<(), Failure> {
    let app = args.app.as_str();
    let default = || PathBuf::from("models/zoo").join(app);
    let out = args.out.clone().unwrap_or_else(default);
    if out.file_name().is_none_or(|name| name != app) {
        // A zoo with another name would be refused only after minutes of training.
        let out = out.display();
        return Err(Failure::input(format!(
            "--out: {out}: its last part must be `{app}`"
        )));
    }
    check_folder("--out", &out)?;
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
    print::line(table(&report))?;
    print::line(format_args!("written to {}", out.display()))
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

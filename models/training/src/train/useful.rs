//! The exits that a card offers. A policy in a hurry takes the shallowest one, so it must be worth taking.

use switchyard_models::Architecture;
use switchyard_models::card::ExitCard;

/// Least accuracy of an exit that is offered, as a share of the last exit's.
pub const USEFUL_SHARE: f64 = 0.5;

/// The network and the exits of its card without exits below [`USEFUL_SHARE`]. Their heads stay in the
/// weights. A network whose architecture names no exits keeps all.
pub(super) fn useful(
    architecture: &Architecture,
    exits: Vec<ExitCard>,
) -> (Architecture, Vec<ExitCard>) {
    let best = exits.last().map_or(0.0, |last| last.accuracy);
    let is_useful = |exit: &ExitCard| exit.accuracy >= USEFUL_SHARE * best;
    let kept: Vec<bool> = exits.iter().map(is_useful).collect();
    let Some(architecture) = architecture.with_exits(&kept) else {
        return (architecture.clone(), exits);
    };
    let exits = exits.into_iter().filter(is_useful);
    let exits = exits.zip(architecture.exits());
    let exits = exits.map(|(exit, after_stage)| ExitCard {
        after_stage,
        ..exit
    });
    let exits = exits.collect();
    (architecture, exits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::recipes::recipe;

    #[test]
    fn an_exit_below_half_of_the_last_ones_accuracy_is_left_out() {
        let images = recipe("images").expect("a shipped app");
        let network = &images.variants()[0].architecture;
        let exits = |accuracies: [f64; 3]| -> Vec<ExitCard> {
            let cards = network.exits().into_iter().zip(accuracies).enumerate();
            let card = |(i, (after_stage, accuracy))| ExitCard {
                name: format!("exit{}", i + 1),
                after_stage,
                accuracy,
                recall: Vec::new(),
                confusion: Vec::new(),
            };
            cards.map(card).collect()
        };
        let all = exits([0.3, 0.4, 0.6]);
        assert_eq!(useful(network, all.clone()), (network.clone(), all));

        let (left, offered) = useful(network, exits([0.29, 0.4, 0.6]));
        let names: Vec<&str> = offered.iter().map(|exit| exit.name.as_str()).collect();
        assert_eq!(names, ["exit2", "exit3"]);
        let after: Vec<usize> = offered.iter().map(|exit| exit.after_stage).collect();
        assert_eq!(after, left.exits());
    }
}

//! Scripts of the subjects: a motion drawn for a label.
//!
//! The kinds of both labels overlap deliberately. A hard sit and a flop onto a bed hit as hard as a
//! soft fall; a faint descends as slowly as lying down on a mat; sliding down a wall ends like
//! sitting on the floor.

mod daily;
mod falls;
mod subject;

use rand_pcg::Pcg64;

use super::motion::Motion;

/// A motion of a fall or of an activity of daily living.
pub(super) fn draw(fall: bool, rng: &mut Pcg64) -> Motion {
    if fall {
        falls::draw(rng)
    } else {
        daily::draw(rng)
    }
}

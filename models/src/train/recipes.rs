//! The recipes of the shipped applications.

pub(crate) mod heart;

use super::recipe::Recipe;

/// Every application that can be trained, in order of name.
pub const APPS: [&str; 1] = ["heart"];

/// The recipe of application `name`.
pub fn recipe(name: &str) -> Option<&'static dyn Recipe> {
    match name {
        "heart" => Some(&heart::HeartRecipe),
        _ => None,
    }
}

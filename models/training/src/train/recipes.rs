//! The recipes of the shipped applications.

mod fall;
mod heart;
mod images;
mod voice;

use super::recipe::Recipe;

/// Every application that can be trained, in order of name.
pub const APPS: [&str; 4] = ["fall", "heart", "images", "voice"];

/// The recipe of application `name`.
pub fn recipe(name: &str) -> Option<&'static dyn Recipe> {
    match name {
        "fall" => Some(&fall::FallRecipe),
        "heart" => Some(&heart::HeartRecipe),
        "images" => Some(&images::ImagesRecipe),
        "voice" => Some(&voice::VoiceRecipe),
        _ => None,
    }
}

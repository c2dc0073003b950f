//! Apps that the configuration does not name and a folder of its zoo has, added on request.

use crossbeam_channel::Sender;
use tokio::sync::oneshot;

/// Asks for an app by the name of its folder.
pub struct AddApp {
    /// The name: letters, digits, `-`, `_` and `.`, not first.
    pub name: String,
    /// Takes the end.
    pub done: oneshot::Sender<Result<(), NotAdded>>,
}

/// Why an app is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdded {
    /// No folder has it.
    Unknown,
    /// It cannot be served, and why.
    Refused(String),
}

/// The way to the thread that changes the pools.
#[derive(Clone, Debug, Default)]
pub struct Additions(Option<Sender<AddApp>>);

// === impl Additions ===

impl Additions {
    /// By this channel.
    pub fn to(thread: Sender<AddApp>) -> Self {
        Self(Some(thread))
    }

    /// Serves the app, if a folder has it.
    pub(super) async fn add(&self, name: &str) -> Result<(), NotAdded> {
        let Some(thread) = self.0.clone().filter(|_| is_plain(name)) else {
            return Err(NotAdded::Unknown);
        };
        let (done, end) = oneshot::channel();
        let asked = AddApp {
            name: name.to_owned(),
            done,
        };
        let sent = tokio::task::spawn_blocking(move || thread.send(asked).is_ok());
        if !sent.await.unwrap_or(false) {
            return Err(NotAdded::Unknown);
        }
        let stopping = || NotAdded::Refused("the server is shutting down".to_owned());
        end.await.unwrap_or_else(|_| Err(stopping()))
    }
}

/// Whether a name from a client leads to a folder of the zoo and nowhere else.
fn is_plain(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_out_of_the_zoo_is_unknown() {
        let (send, asked) = crossbeam_channel::unbounded();
        let additions = Additions::to(send);
        for name in [
            "", ".", "..", "../up", "a/b", "/etc", ".hidden", "a\\b", "a\0",
        ] {
            assert_eq!(additions.add(name).await, Err(NotAdded::Unknown), "{name}");
        }
        assert!(asked.is_empty());
        assert_eq!(Additions::default().add("a").await, Err(NotAdded::Unknown));
    }
}

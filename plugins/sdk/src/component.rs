//! From the calls of the contract to a [`Policy`], and the macro that exports one.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::plan::PlanBuilder;
use crate::policy::{Policy, WindowFields};
use crate::window::{Index, KeptWorkers, Window};

/// A configured policy and the buffers its views need.
pub struct Runner<P> {
    catalog: Catalog,
    policy: P,
    index: Index,
    /// Present if the policy asks for the workers that changed.
    kept: Option<KeptWorkers>,
}

/// Where an exported policy lives. Implemented by [`export_policy!`](crate::export_policy).
#[doc(hidden)]
pub trait Slot: 'static {
    type Policy: Policy;

    fn with<R>(f: impl FnOnce(&mut Option<Runner<Self::Policy>>) -> R) -> R;
}

/// Exports a [`Policy`](crate::Policy) as the component's one policy, with an allocator for the
/// lists that cross the boundary. Does nothing in native builds, where the policy is an ordinary
/// library.
#[macro_export]
macro_rules! export_policy {
    ($policy:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Exported;

            #[global_allocator]
            static MEMORY: $crate::memory::FreeLists = $crate::memory::FreeLists::new();

            ::std::thread_local! {
                static SLOT: ::std::cell::RefCell<
                    ::std::option::Option<$crate::component::Runner<$policy>>,
                > = const { ::std::cell::RefCell::new(::std::option::Option::None) };
            }

            impl $crate::component::Slot for Exported {
                type Policy = $policy;

                fn with<R>(
                    f: impl FnOnce(&mut ::std::option::Option<$crate::component::Runner<$policy>>) -> R,
                ) -> R {
                    SLOT.with_borrow_mut(f)
                }
            }

            $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };
    };
}

// === impl Runner ===

impl<P: Policy> Runner<P> {
    /// Makes the policy for a catalog.
    ///
    /// # Errors
    /// The catalog does not hold together, or the policy refuses it or its settings.
    pub fn new(catalog: raw::Catalog, settings: &str) -> Result<Self, String> {
        let catalog = Catalog::new(catalog)?;
        let keeps = P::describe().wants.contains(WindowFields::CHANGED_WORKERS);
        Ok(Self {
            policy: P::configure(&catalog, settings)?,
            catalog,
            index: Index::default(),
            kept: keeps.then(KeptWorkers::new),
        })
    }

    /// Decides one window. Its workers, if only those that changed, are completed; afterwards the columns
    /// of the workers have no particular content.
    ///
    /// # Errors
    /// The window does not fit the catalog; or the policy's own error.
    pub fn schedule(&mut self, window: &mut raw::Window) -> Result<raw::Plan, String> {
        let kept = self.kept.as_mut();
        let changed = kept.map(|kept| kept.complete(&mut window.workers));
        let changed = changed.transpose()?.flatten();
        let plan = self.decide(window, changed)?;
        if let Some(kept) = &mut self.kept {
            kept.keep(&mut window.workers);
        }
        Ok(plan)
    }

    fn decide(
        &mut self,
        window: &raw::Window,
        changed: Option<Vec<u32>>,
    ) -> Result<raw::Plan, String> {
        self.index.fill_changed(&self.catalog, window, changed)?;
        if self.policy.follows_slowdown() {
            self.catalog.follow(window.slowdown.as_deref());
        }
        let view = Window::new(&self.catalog, window, &self.index);
        let mut plan = PlanBuilder::new(view);
        self.policy.schedule(&view, &mut plan)?;
        Ok(plan.finish())
    }

    /// The policy itself.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy itself, for its state.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }
}

/// Configures a slot. The policy in it hands its state over; if the new one cannot use the state,
/// it starts fresh.
///
/// # Errors
/// As [`Runner::new`]; the slot keeps its policy.
pub(crate) fn configure<P: Policy>(
    slot: &mut Option<Runner<P>>,
    catalog: raw::Catalog,
    settings: &str,
) -> Result<(), String> {
    let mut fresh = Runner::<P>::new(catalog, settings)?;
    if let Some(before) = slot {
        let state = before.policy.save();
        if !state.is_empty() && fresh.policy.restore(&state).is_err() {
            fresh.policy = P::configure(&fresh.catalog, settings)?;
        }
    }
    *slot = Some(fresh);
    Ok(())
}

const NOT_CONFIGURED: &str = "called before it was configured";

impl<S: Slot> raw::Guest for S {
    fn describe() -> raw::Description {
        S::Policy::describe()
    }

    fn configure(catalog: raw::Catalog, settings: String) -> Result<(), String> {
        S::with(|slot| configure(slot, catalog, &settings))
    }

    fn schedule(mut window: raw::Window) -> Result<raw::Plan, String> {
        S::with(|slot| slot.as_mut().ok_or(NOT_CONFIGURED)?.schedule(&mut window))
    }

    fn save() -> Vec<u8> {
        S::with(|slot| {
            slot.as_ref()
                .map(|runner| runner.policy.save())
                .unwrap_or_default()
        })
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        S::with(|slot| slot.as_mut().ok_or(NOT_CONFIGURED)?.policy.restore(&state))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ids::{ExitId, VariantId, WorkerId};
    use crate::policy::Description;
    use crate::testing::{CatalogBuilder, WindowBuilder};

    /// Keeps the latency that it sees, as observed or as profiled.
    struct Looks<const FOLLOWS: bool>(u64);

    impl<const FOLLOWS: bool> Policy for Looks<FOLLOWS> {
        fn describe() -> Description {
            Description::new("looks", "1.0.0", "")
        }

        fn configure(_: &Catalog, _: &str) -> Result<Self, String> {
            Ok(Self(0))
        }

        fn schedule(&mut self, window: &Window, _: &mut PlanBuilder) -> Result<(), String> {
            let catalog = window.catalog();
            self.0 = catalog
                .latency_us(WorkerId(0), VariantId(0), ExitId(0), 1)
                .unwrap();
            Ok(())
        }

        fn follows_slowdown(&self) -> bool {
            FOLLOWS
        }
    }

    /// The latencies seen in windows with a slowdown of 1.5, without one, and with it again.
    fn seen<const FOLLOWS: bool>() -> Vec<u64> {
        let catalog = CatalogBuilder::new()
            .app("a", &["x"])
            .variant("v", &[0.9])
            .latency_at(1, 1_001)
            .worker("cpu");
        let mut runner = Runner::<Looks<FOLLOWS>>::new(catalog.clone().raw(), "{}").unwrap();
        let catalog = catalog.build();
        let plain = WindowBuilder::new(&catalog).request("a");
        let slow = plain.clone().slowdown(0, 1.5);
        let windows = [slow.clone(), plain, slow];
        let seen = windows.into_iter().map(|window| {
            runner.schedule(&mut window.build()).unwrap();
            runner.policy().0
        });
        seen.collect()
    }

    #[test]
    fn latencies_follow_the_slowdown_only_if_the_policy_asks() {
        assert_eq!(seen::<false>(), [1_001; 3]);
        assert_eq!(seen::<true>(), [1_501, 1_001, 1_501]);
    }
}

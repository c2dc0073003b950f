//! Typed ids. Those of apps, variants, exits, workers and kinds are positions in the catalog.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// As a position in a list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A request, unique for as long as the host runs.
    RequestId(u64)
);
id!(
    /// A batch, unique for as long as the host runs, from 1; 0 stands for no batch.
    BatchId(u64)
);
id!(
    /// An app, by position in the catalog.
    AppId(u32)
);
id!(
    /// A model variant, by position in the catalog (across all apps).
    VariantId(u32)
);
id!(
    /// An exit, by position in its variant.
    ExitId(u32)
);
id!(
    /// A worker, by position in the catalog.
    WorkerId(u32)
);
id!(
    /// A kind of worker: workers of one kind share a profile.
    KindId(u32)
);

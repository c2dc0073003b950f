//! The parts of the catalog that the policy uses: the variant for an app's requests on a worker.

use guest_base::contract::Catalog;

/// A variant, run to its last exit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariantEnd {
    pub(crate) variant: u32,
    pub(crate) stages: u32,
    pub(crate) exit: u32,
    pub(crate) batch_max: u32,
}

/// Workers, apps and variants.
#[derive(Debug)]
pub(crate) struct CatalogFacts {
    workers: usize,
    apps: usize,
    /// Worker by worker, app by app; none if no variant of the app fits the worker.
    variants: Vec<Option<VariantEnd>>,
    /// By variant.
    ends: Vec<VariantEnd>,
}

impl CatalogFacts {
    pub(crate) const fn new() -> Self {
        Self {
            workers: 0,
            apps: 0,
            variants: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub(crate) fn of(catalog: &Catalog) -> Self {
        let ends = (0u32..)
            .zip(&catalog.variants)
            .map(|(id, variant)| VariantEnd {
                variant: id,
                stages: variant.stages,
                exit: variant.exits.len() as u32 - 1,
                batch_max: variant.max_batch,
            });
        let ends: Vec<VariantEnd> = ends.collect();
        let apps = catalog.apps.len();
        let variants = catalog.workers.iter().flat_map(|worker| {
            let ends = &ends;
            (0..apps).map(move |app| {
                let mut variants = catalog.variants.iter().zip(ends);
                let fits = variants.find(|(variant, _)| {
                    variant.app as usize == app && variant.memory_bytes <= worker.memory_bytes
                });
                fits.map(|(_, end)| *end)
            })
        });
        Self {
            workers: catalog.workers.len(),
            apps,
            variants: variants.collect(),
            ends,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.workers == 0
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    pub(crate) fn variants(&self) -> usize {
        self.ends.len()
    }

    /// The variant for an app's requests on a worker.
    pub(crate) fn variant_for(&self, worker: usize, app: u32) -> Option<VariantEnd> {
        assert!(worker < self.workers, "worker {worker} of {}", self.workers);
        self.variants[worker * self.apps + app as usize]
    }

    pub(crate) fn end(&self, variant: u32) -> VariantEnd {
        self.ends[variant as usize]
    }
}

//! What is kept of the catalog: how an app's requests are run on a worker.

use guest_base::contract::Catalog;

/// To the end of a variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) variant: u32,
    pub(crate) stages: u32,
    pub(crate) exit: u32,
    pub(crate) batch_max: u32,
}

/// Workers, apps and variants.
#[derive(Debug)]
pub(crate) struct Yard {
    workers: usize,
    apps: usize,
    /// Worker by worker, app by app; none where no variant of the app fits.
    ways: Vec<Option<Way>>,
    /// Of each variant.
    ends: Vec<Way>,
}

impl Yard {
    pub(crate) const fn new() -> Self {
        Self {
            workers: 0,
            apps: 0,
            ways: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub(crate) fn of(catalog: &Catalog) -> Self {
        let ends = (0u32..).zip(&catalog.variants).map(|(id, variant)| Way {
            variant: id,
            stages: variant.stages,
            exit: variant.exits.len() as u32 - 1,
            batch_max: variant.max_batch,
        });
        let ends: Vec<Way> = ends.collect();
        let apps = catalog.apps.len();
        let ways = catalog.workers.iter().flat_map(|worker| {
            let ends = &ends;
            (0..apps).map(move |app| {
                let mut variants = catalog.variants.iter().zip(ends);
                let fits = variants.find(|(variant, _)| {
                    variant.app as usize == app && variant.memory_bytes <= worker.memory_bytes
                });
                fits.map(|(_, way)| *way)
            })
        });
        Self {
            workers: catalog.workers.len(),
            apps,
            ways: ways.collect(),
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

    /// How an app's requests run on a worker.
    pub(crate) fn way(&self, worker: usize, app: u32) -> Option<Way> {
        assert!(worker < self.workers, "worker {worker} of {}", self.workers);
        self.ways[worker * self.apps + app as usize]
    }

    pub(crate) fn end(&self, variant: u32) -> Way {
        self.ends[variant as usize]
    }
}

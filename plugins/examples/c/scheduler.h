// Earliest deadline first, independent of WebAssembly.
//
// It reads the contract's structures, whose header is generated from wit/; the native tests fill such
// structures by hand.

#ifndef SCHEDULER_H
#define SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#include "bindings/policy.h"

typedef exports_switchyard_policy_scheduling_catalog_t catalog_t;
typedef exports_switchyard_policy_scheduling_requests_t requests_t;
typedef exports_switchyard_policy_scheduling_window_t window_t;

// `running_variant` of an idle worker.
#define NOTHING UINT32_MAX

// One batch: the next `size` members, which are positions in the window's columns.
typedef struct {
  uint32_t worker;
  uint32_t variant;
  uint32_t from_stage;
  uint32_t to_stage;
  uint32_t exit;
  uint32_t size;
} batch_t;

// Data computed from the catalog once.
typedef struct scheduler scheduler_t;

scheduler_t *scheduler_new(const catalog_t *catalog);
void scheduler_free(scheduler_t *scheduler);

// Writes the batches to start now, at most one per worker, and their members, at most one per
// request. Returns the number of batches. Other requests stay pending.
size_t scheduler_run(const scheduler_t *scheduler, const window_t *window, batch_t *batches,
                     uint32_t *members);

// Zeroed memory; aborts if there is none.
void *allocate(size_t count, size_t size);

#endif

// Earliest deadline first: what to run where, decided without knowing about WebAssembly.
//
// It reads the contract's own structures, whose header is made from wit/ (see README.md), so the
// tests fill such structures by hand and are compiled for this machine.

#ifndef SCHEDULER_H
#define SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#include "bindings/policy.h"

typedef exports_switchyard_policy_scheduling_catalog_t catalog_t;
typedef exports_switchyard_policy_scheduling_window_t window_t;

// `running_variant` of a worker that runs nothing.
#define NOTHING UINT32_MAX

// Requests that run together: the next `size` of the members, which are positions in the window's
// columns.
typedef struct {
  uint32_t worker;
  uint32_t variant;
  uint32_t from_stage;
  uint32_t to_stage;
  uint32_t exit;
  uint32_t size;
} batch_t;

// What the catalog says, worked out once.
typedef struct scheduler scheduler_t;

scheduler_t *scheduler_new(const catalog_t *catalog);
void scheduler_free(scheduler_t *scheduler);

// Writes the batches to start now, at most one per worker, and their members, at most one per
// request. Returns how many batches there are. What is in none of them stays pending.
size_t scheduler_run(const scheduler_t *scheduler, const window_t *window, batch_t *batches,
                     uint32_t *members);

// Zeroed memory; ends the program when there is none.
void *allocate(size_t count, size_t size);

#endif

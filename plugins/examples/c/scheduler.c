#include "scheduler.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef exports_switchyard_policy_scheduling_profile_row_t row_t;
typedef exports_switchyard_policy_scheduling_progress_t progress_t;

// Stands for an unknown quality, so that such variants compare by latency.
#define UNKNOWN_QUALITY 0.5

// One variant of an app on one worker, run to its last exit.
typedef struct {
  uint32_t variant;
  double quality;
  // Microseconds, of batches of 1, 2, ...
  uint64_t *latencies;
  uint32_t batch_max;
} choice_t;

// The variants that can serve an app on a worker, by quality, then by latency.
typedef struct {
  choice_t *choices;
  size_t len;
  uint32_t batch_max;
} menu_t;

typedef struct {
  uint32_t stages;
  uint32_t last_exit;
  uint32_t max_batch;
} variant_t;

struct scheduler {
  size_t apps;
  size_t workers;
  size_t variants_len;
  variant_t *variants;
  // One per app, worker by worker.
  menu_t *menus;
};

// A request that has run no stage.
typedef struct {
  uint64_t deadline;
  uint32_t position;
  bool taken;
} waiting_t;

typedef struct {
  uint64_t busy_until;
  uint32_t worker;
} idle_t;

void *allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) abort();
  return memory;
}

// ---- the catalog --------------------------------------------------------------------------------

// Latency of one batch, interpolated as the host does: linear, rounded up to the microsecond; 0 above
// the largest measured batch.
static uint64_t interpolate(const row_t *const *rows, size_t len, uint32_t batch) {
  const row_t *below = NULL, *above = NULL;
  for (size_t i = 0; i < len; i++) {
    if (rows[i]->batch < batch && (!below || rows[i]->batch > below->batch)) below = rows[i];
    if (rows[i]->batch >= batch && (!above || rows[i]->batch < above->batch)) above = rows[i];
  }
  if (!above) return 0;
  if (!below || above->batch == batch) return above->latency;
  uint64_t span = above->batch - below->batch, into = batch - below->batch;
  if (above->latency < below->latency)
    return below->latency - (below->latency - above->latency) * into / span;
  return below->latency + ((above->latency - below->latency) * into + span - 1) / span;
}

// Fills a choice from the rows that measure all stages. False if there are none.
static bool choice_of(const catalog_t *catalog, uint32_t kind, uint32_t index, choice_t *choice) {
  const exports_switchyard_policy_scheduling_model_variant_t *variant = &catalog->variants.ptr[index];
  const row_t **rows = allocate(catalog->profile.len, sizeof *rows);
  size_t len = 0;
  for (size_t i = 0; i < catalog->profile.len; i++) {
    const row_t *row = &catalog->profile.ptr[i];
    bool whole = row->from_stage == 0 && row->to_stage == variant->stages && row->exit.is_some;
    if (whole && row->kind == kind && row->variant == index) rows[len++] = row;
  }
  choice->variant = index;
  const exports_switchyard_policy_scheduling_model_exit_t *last =
      &variant->exits.ptr[variant->exits.len - 1];
  choice->quality = last->quality.is_some ? last->quality.val : UNKNOWN_QUALITY;
  choice->latencies = allocate(variant->max_batch, sizeof(uint64_t));
  choice->batch_max = 0;
  for (uint32_t batch = 1; batch <= variant->max_batch; batch++) {
    uint64_t latency = interpolate(rows, len, batch);
    if (latency == 0) break;
    choice->latencies[choice->batch_max++] = latency;
  }
  free(rows);
  if (choice->batch_max == 0) free(choice->latencies);
  return choice->batch_max > 0;
}

static bool is_better(const choice_t *a, const choice_t *b) {
  if (a->quality != b->quality) return a->quality > b->quality;
  return a->latencies[0] < b->latencies[0];
}

static menu_t menu_of(const catalog_t *catalog, size_t worker, uint32_t app) {
  menu_t menu = {allocate(catalog->variants.len, sizeof(choice_t)), 0, 0};
  for (uint32_t index = 0; index < catalog->variants.len; index++) {
    bool fits = catalog->variants.ptr[index].memory_bytes <= catalog->workers.ptr[worker].memory_bytes;
    choice_t choice;
    if (catalog->variants.ptr[index].app != app || !fits) continue;
    if (!choice_of(catalog, catalog->workers.ptr[worker].kind, index, &choice)) continue;
    size_t at = menu.len++;
    for (; at > 0 && is_better(&choice, &menu.choices[at - 1]); at--)
      menu.choices[at] = menu.choices[at - 1];
    menu.choices[at] = choice;
    if (choice.batch_max > menu.batch_max) menu.batch_max = choice.batch_max;
  }
  return menu;
}

scheduler_t *scheduler_new(const catalog_t *catalog) {
  scheduler_t *scheduler = allocate(1, sizeof *scheduler);
  scheduler->apps = catalog->apps.len;
  scheduler->workers = catalog->workers.len;
  scheduler->variants_len = catalog->variants.len;
  scheduler->variants = allocate(catalog->variants.len, sizeof(variant_t));
  for (size_t i = 0; i < catalog->variants.len; i++) {
    uint32_t last_exit = (uint32_t)catalog->variants.ptr[i].exits.len - 1;
    scheduler->variants[i] = (variant_t){
        catalog->variants.ptr[i].stages, last_exit, catalog->variants.ptr[i].max_batch};
  }
  scheduler->menus = allocate(scheduler->workers * scheduler->apps, sizeof(menu_t));
  for (size_t worker = 0; worker < scheduler->workers; worker++)
    for (uint32_t app = 0; app < scheduler->apps; app++)
      scheduler->menus[worker * scheduler->apps + app] = menu_of(catalog, worker, app);
  return scheduler;
}

void scheduler_free(scheduler_t *scheduler) {
  if (!scheduler) return;
  for (size_t i = 0; i < scheduler->workers * scheduler->apps; i++) {
    for (size_t j = 0; j < scheduler->menus[i].len; j++) free(scheduler->menus[i].choices[j].latencies);
    free(scheduler->menus[i].choices);
  }
  free(scheduler->menus);
  free(scheduler->variants);
  free(scheduler);
}

// ---- a window -----------------------------------------------------------------------------------

// The largest batch that meets the deadline, on the most accurate variant that meets it. If none
// does: the largest batch, on the fastest variant.
static const choice_t *choose(const menu_t *menu, uint32_t waiting, uint64_t now, uint64_t deadline,
                              uint32_t *size) {
  uint32_t most = waiting < menu->batch_max ? waiting : menu->batch_max;
  uint64_t slack = deadline > now ? deadline - now : 0;
  for (*size = most; *size > 0; --*size)
    for (size_t i = 0; i < menu->len; i++) {
      const choice_t *choice = &menu->choices[i];
      if (*size <= choice->batch_max && choice->latencies[*size - 1] <= slack) return choice;
    }
  const choice_t *fastest = NULL;
  for (size_t i = 0; i < menu->len; i++) {
    const choice_t *choice = &menu->choices[i];
    if (choice->batch_max < most) continue;
    if (!fastest || choice->latencies[most - 1] < fastest->latencies[most - 1]) fastest = choice;
  }
  *size = most;
  return fastest;
}

// The oldest request parked on this worker, with those at the same stage. False if there is none.
static bool resume(const scheduler_t *scheduler, const window_t *window, uint32_t worker,
                   batch_t *batch, uint32_t *members) {
  const progress_t *progress = window->progress.val.ptr, *first = NULL;
  size_t len = window->progress.is_some ? window->progress.val.len : 0;
  for (size_t i = 0; i < len; i++)
    if (progress[i].worker == worker && (!first || progress[i].index < first->index))
      first = &progress[i];
  if (!first) return false;
  const variant_t *variant = &scheduler->variants[first->variant];
  *batch = (batch_t){worker, first->variant, first->stages_run, variant->stages, variant->last_exit, 0};
  for (size_t i = 0; i < len; i++) {
    bool joins = progress[i].worker == worker && progress[i].variant == first->variant &&
                 progress[i].stages_run == first->stages_run;
    if (joins && batch->size < variant->max_batch) members[batch->size++] = progress[i].index;
  }
  return true;
}

// The request with the earliest deadline that this worker can run chooses the app. False if there is
// none.
static bool start(const scheduler_t *scheduler, const window_t *window, uint32_t worker,
                  waiting_t *waiting, size_t len, batch_t *batch, uint32_t *members) {
  const uint32_t *app = window->requests.val.app.ptr;
  const menu_t *menus = &scheduler->menus[worker * scheduler->apps];
  size_t first = 0;
  while (first < len && (waiting[first].taken || menus[app[waiting[first].position]].len == 0)) first++;
  if (first == len) return false;
  uint32_t chosen = app[waiting[first].position], count = 0, size;
  for (size_t i = first; i < len; i++)
    count += !waiting[i].taken && app[waiting[i].position] == chosen;
  const choice_t *choice =
      choose(&menus[chosen], count, window->now, waiting[first].deadline, &size);
  const variant_t *variant = &scheduler->variants[choice->variant];
  *batch = (batch_t){worker, choice->variant, 0, variant->stages, variant->last_exit, 0};
  for (size_t i = first; i < len && batch->size < size; i++)
    if (!waiting[i].taken && app[waiting[i].position] == chosen) {
      waiting[i].taken = true;
      members[batch->size++] = waiting[i].position;
    }
  return true;
}

static int by_deadline(const void *left, const void *right) {
  const waiting_t *a = left, *b = right;
  if (a->deadline != b->deadline) return a->deadline < b->deadline ? -1 : 1;
  return a->position < b->position ? -1 : 1;
}

static int by_idle_time(const void *left, const void *right) {
  const idle_t *a = left, *b = right;
  if (a->busy_until != b->busy_until) return a->busy_until < b->busy_until ? -1 : 1;
  return a->worker < b->worker ? -1 : 1;
}

// The requests that have run no stage, by deadline.
static size_t fresh(const window_t *window, waiting_t *waiting) {
  const requests_t *requests = &window->requests.val;
  size_t all = window->requests.is_some ? requests->id.len : 0, len = 0;
  bool *begun = allocate(all, sizeof *begun);
  size_t parked = window->progress.is_some ? window->progress.val.len : 0;
  for (size_t i = 0; i < parked; i++) begun[window->progress.val.ptr[i].index] = true;
  for (uint32_t i = 0; i < all; i++)
    if (!begun[i]) waiting[len++] = (waiting_t){requests->deadline.ptr[i], i, false};
  free(begun);
  qsort(waiting, len, sizeof *waiting, by_deadline);
  return len;
}

// The idle workers, the one that has been idle longest first.
static size_t idle_workers(const window_t *window, idle_t *idle) {
  size_t len = 0;
  for (uint32_t i = 0; i < window->workers.up.len; i++) {
    bool free_now = window->workers.running_variant.ptr[i] == NOTHING &&
                    window->workers.queued.ptr[i] == 0 && window->workers.up.ptr[i] != 0;
    if (free_now) idle[len++] = (idle_t){window->workers.busy_until.ptr[i], i};
  }
  qsort(idle, len, sizeof *idle, by_idle_time);
  return len;
}

size_t scheduler_run(const scheduler_t *scheduler, const window_t *window, batch_t *batches,
                     uint32_t *members) {
  size_t pending = window->requests.is_some ? window->requests.val.id.len : 0;
  idle_t *idle = allocate(window->workers.up.len, sizeof *idle);
  waiting_t *waiting = allocate(pending, sizeof *waiting);
  size_t idle_len = pending ? idle_workers(window, idle) : 0;
  size_t waiting_len = idle_len ? fresh(window, waiting) : 0, len = 0;
  for (size_t i = 0; i < idle_len; i++) {
    uint32_t worker = idle[i].worker;
    batch_t *batch = &batches[len];
    // Parked requests first: only this worker has their activations.
    if (resume(scheduler, window, worker, batch, members) ||
        start(scheduler, window, worker, waiting, waiting_len, batch, members)) {
      members += batch->size;
      len++;
    }
  }
  free(waiting);
  free(idle);
  return len;
}

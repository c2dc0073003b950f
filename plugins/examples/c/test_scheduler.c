// make test

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler.h"

#define LEN(array) (sizeof(array) / sizeof *(array))

typedef exports_switchyard_policy_scheduling_model_exit_t exit_t;
typedef exports_switchyard_policy_scheduling_model_variant_t variant_t;
typedef exports_switchyard_policy_scheduling_profile_row_t row_t;
typedef exports_switchyard_policy_scheduling_progress_t progress_t;

static int failures;

#define EXPECT(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      failures++; \
    } \
  } while (0)

// App 0 has a large and a small variant; app 1 has one variant with three stages. The large variant
// does not fit on worker 1.
static scheduler_t *make(void) {
  static exit_t exits[] = {
      {.quality = {true, 0.9}}, {.quality = {true, 0.7}}, {.quality = {true, 0.8}}};
  static variant_t variants[] = {
      {.app = 0, .stages = 1, .memory_bytes = 8, .max_batch = 4, .exits = {&exits[0], 1}},
      {.app = 0, .stages = 1, .memory_bytes = 1, .max_batch = 4, .exits = {&exits[1], 1}},
      {.app = 1, .stages = 3, .memory_bytes = 1, .max_batch = 4, .exits = {&exits[2], 1}},
  };
  static exports_switchyard_policy_scheduling_worker_t workers[] = {{.memory_bytes = 9},
                                                                    {.memory_bytes = 5}};
  static exports_switchyard_policy_scheduling_app_t apps[2];
  static const uint64_t ends[3][2] = {{40, 100}, {10, 16}, {30, 60}};
  static row_t rows[6];
  for (uint32_t i = 0; i < LEN(rows); i++) {
    rows[i] = (row_t){.variant = i / 2, .to_stage = variants[i / 2].stages};
    rows[i].exit.is_some = true;
    rows[i].batch = i % 2 ? 4 : 1;
    rows[i].latency = ends[i / 2][i % 2];
  }
  catalog_t catalog;
  memset(&catalog, 0, sizeof catalog);
  catalog.apps.ptr = apps, catalog.apps.len = LEN(apps);
  catalog.variants.ptr = variants, catalog.variants.len = LEN(variants);
  catalog.workers.ptr = workers, catalog.workers.len = LEN(workers);
  catalog.profile.ptr = rows, catalog.profile.len = LEN(rows);
  return scheduler_new(&catalog);
}

static batch_t batches[2];
static uint32_t members[8];

// Requests as apps and deadlines in order of arrival; the time is 100.
static size_t plan(size_t len, uint32_t *apps, uint64_t *deadlines, uint32_t second_runs,
                   progress_t *progress) {
  uint64_t ids[8] = {0}, busy_until[2] = {0};
  uint32_t running[2] = {NOTHING, second_runs}, queued[2] = {0}, up[2] = {1, 1};
  window_t window;
  memset(&window, 0, sizeof window);
  window.now = 100;
  requests_t *requests = &window.requests.val;
  window.requests.is_some = len > 0;
  requests->id.ptr = ids, requests->id.len = len;
  requests->app.ptr = apps, requests->app.len = len;
  requests->deadline.ptr = deadlines, requests->deadline.len = len;
  window.progress.is_some = progress != NULL;
  window.progress.val.ptr = progress, window.progress.val.len = 1;
  window.workers.busy_until.ptr = busy_until, window.workers.busy_until.len = 2;
  window.workers.running_variant.ptr = running, window.workers.running_variant.len = 2;
  window.workers.queued.ptr = queued, window.workers.queued.len = 2;
  window.workers.up.ptr = up, window.workers.up.len = 2;
  scheduler_t *scheduler = make();
  size_t found = scheduler_run(scheduler, &window, batches, members);
  scheduler_free(scheduler);
  return found;
}

static void the_most_urgent_request_chooses_the_app(void) {
  EXPECT(plan(3, (uint32_t[]){0, 1, 0}, (uint64_t[]){900, 300, 800}, NOTHING, NULL) == 2);
  EXPECT(batches[0].worker == 0 && batches[0].variant == 2 && batches[0].to_stage == 3);
  EXPECT(batches[0].size == 1 && members[0] == 1);
  // The large variant does not fit on worker 1. Within the app, by deadline.
  EXPECT(batches[1].worker == 1 && batches[1].variant == 1 && batches[1].size == 2);
  EXPECT(members[1] == 2 && members[2] == 0);
}

static void the_batch_and_then_the_accuracy_are_as_large_as_the_deadline_allows(void) {
  EXPECT(plan(1, (uint32_t[]){0}, (uint64_t[]){140}, 1, NULL) == 1);
  EXPECT(batches[0].variant == 0 && batches[0].size == 1);
  // Only the small variant meets the deadline with two.
  EXPECT(plan(2, (uint32_t[]){0, 0}, (uint64_t[]){140, 150}, 1, NULL) == 1);
  EXPECT(batches[0].variant == 1 && batches[0].size == 2);
}

static void a_missed_deadline_gets_the_fastest_variant(void) {
  EXPECT(plan(1, (uint32_t[]){0}, (uint64_t[]){50}, 1, NULL) == 1);
  EXPECT(batches[0].variant == 1);
}

static void parked_requests_resume_on_their_worker(void) {
  progress_t parked = {.index = 1, .worker = 0, .variant = 2, .stages_run = 1};
  EXPECT(plan(2, (uint32_t[]){0, 1}, (uint64_t[]){120, 900}, NOTHING, &parked) == 2);
  EXPECT(batches[0].worker == 0 && batches[0].from_stage == 1 && batches[0].to_stage == 3);
  EXPECT(members[0] == 1 && members[1] == 0 && batches[1].worker == 1);
}

static void latencies_between_measured_batches_are_rounded_up(void) {
  // Large variant: 60 for two, 80 for three.
  EXPECT(plan(3, (uint32_t[]){0, 0, 0}, (uint64_t[]){180, 180, 180}, 1, NULL) == 1);
  EXPECT(batches[0].variant == 0 && batches[0].size == 3);
  // Small variant: 14 for three, 16 for four.
  EXPECT(plan(4, (uint32_t[]){0, 0, 0, 0}, (uint64_t[]){115, 115, 115, 115}, 1, NULL) == 1);
  EXPECT(batches[0].variant == 1 && batches[0].size == 3);
}

static void a_window_without_requests_gets_no_batches(void) {
  EXPECT(plan(0, NULL, NULL, NOTHING, NULL) == 0);
}

int main(void) {
  the_most_urgent_request_chooses_the_app();
  the_batch_and_then_the_accuracy_are_as_large_as_the_deadline_allows();
  a_missed_deadline_gets_the_fastest_variant();
  parked_requests_resume_on_their_worker();
  latencies_between_measured_batches_are_rounded_up();
  a_window_without_requests_gets_no_batches();
  printf("%s\n", failures ? "failed" : "passed");
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

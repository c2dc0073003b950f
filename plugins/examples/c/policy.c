// The component: the contract's five functions around the scheduler.
//
// Each function owns its arguments and frees them; the bindings free its results.

#include <stdlib.h>
#include <string.h>

#include "scheduler.h"

typedef exports_switchyard_policy_scheduling_description_t description_t;
typedef exports_switchyard_policy_scheduling_dispatch_t dispatch_t;
typedef exports_switchyard_policy_scheduling_plan_t plan_t;

// Position in a worker's queue.
#define AT_THE_END UINT32_MAX

static scheduler_t *scheduler;

void exports_switchyard_policy_scheduling_describe(description_t *ret) {
  memset(ret, 0, sizeof *ret);
  policy_string_dup(&ret->name, "earliest-deadline");
  policy_string_dup(&ret->version, "0.1.0");
  policy_string_dup(&ret->summary, "earliest deadline first, the most accurate variant that is in time");
  ret->on = EXPORTS_SWITCHYARD_POLICY_SCHEDULING_EVENTS_ARRIVAL |
            EXPORTS_SWITCHYARD_POLICY_SCHEDULING_EVENTS_WORKER_IDLE;
}

bool exports_switchyard_policy_scheduling_configure(catalog_t *catalog, policy_string_t *settings,
                                                    policy_string_t *err) {
  // An unknown setting is mostly a misspelt name: refuse it.
  bool none = memchr(settings->ptr, ':', settings->len) == NULL;
  if (none) {
    scheduler_free(scheduler);
    scheduler = scheduler_new(catalog);
  } else {
    policy_string_dup(err, "settings: this policy has none");
  }
  exports_switchyard_policy_scheduling_catalog_free(catalog);
  policy_string_free(settings);
  return none;
}

bool exports_switchyard_policy_scheduling_schedule(window_t *window, plan_t *ret,
                                                   policy_string_t *err) {
  (void)err;
  // Parts of a window without content are absent.
  const requests_t *requests = window->requests.is_some ? &window->requests.val : NULL;
  batch_t *batches = allocate(window->workers.up.len, sizeof *batches);
  uint32_t *members = allocate(requests ? requests->id.len : 0, sizeof *members);
  size_t len = scheduler_run(scheduler, window, batches, members), total = 0;
  for (size_t i = 0; i < len; i++) total += batches[i].size;

  memset(ret, 0, sizeof *ret);
  // The bindings free nothing for an empty list.
  if (len > 0) {
    ret->dispatches.ptr = allocate(len, sizeof(dispatch_t));
    ret->dispatches.len = len;
    ret->members.ptr = allocate(total, sizeof(uint64_t));
    ret->members.len = total;
  }
  for (size_t i = 0; i < len; i++) {
    dispatch_t *dispatch = &ret->dispatches.ptr[i];
    dispatch->worker = batches[i].worker;
    dispatch->variant = batches[i].variant;
    dispatch->from_stage = batches[i].from_stage;
    dispatch->to_stage = batches[i].to_stage;
    dispatch->exit.is_some = true;
    dispatch->exit.val = batches[i].exit;
    dispatch->place = AT_THE_END;
    dispatch->size = batches[i].size;
  }
  for (size_t i = 0; i < total; i++) ret->members.ptr[i] = requests->id.ptr[members[i]];

  free(members);
  free(batches);
  exports_switchyard_policy_scheduling_window_free(window);
  return true;
}

void exports_switchyard_policy_scheduling_save(policy_list_u8_t *ret) {
  ret->ptr = NULL;
  ret->len = 0;
}

bool exports_switchyard_policy_scheduling_restore(policy_list_u8_t *state, policy_string_t *err) {
  (void)err;
  policy_list_u8_free(state);
  return true;
}

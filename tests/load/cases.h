/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations, each with one way in which it ends. A case has the scene as it found it when
 * it returns, sees that what it fetched is right, and tells how it ended and how long that
 * took: from the call that was to end it, or that was it, to its entry or return.
 */
#ifndef LOAD_CASES_H
#define LOAD_CASES_H

#include <errno.h>
#include "scene.h"

typedef int (*case_fn)(struct scene *scene, uint64_t *took_ns);

/* What a case tells when it was not as it should be, though nothing failed */
#define WRONG (-ENOTRECOVERABLE)

static inline uint64_t since(uint64_t began)
{
	return rdmatensor_now_ns() - began;
}

/* cases.c */

/* A fetch's, which may have ended already */
void cancel(struct scene *scene, uint64_t number);

int fetch_ok(struct scene *scene, uint64_t *took_ns);
int fetch_kept(struct scene *scene, uint64_t *took_ns);
int fetch_proxied(struct scene *scene, uint64_t *took_ns);
int fetch_proxied_cancel(struct scene *scene, uint64_t *took_ns);
int fetch_deadline(struct scene *scene, uint64_t *took_ns);
int fetch_deadline_writing(struct scene *scene, uint64_t *took_ns);
int fetch_cancel(struct scene *scene, uint64_t *took_ns);
int fetch_cancel_writing(struct scene *scene, uint64_t *took_ns);
int fetch_failed(struct scene *scene, uint64_t *took_ns);
int fetch_abort_here(struct scene *scene, uint64_t *took_ns);
int fetch_abort_there(struct scene *scene, uint64_t *took_ns);
int fetch_self(struct scene *scene, uint64_t *took_ns);
int publish_used(struct scene *scene, uint64_t *took_ns);
int publish_withdrawn(struct scene *scene, uint64_t *took_ns);
int publish_copied(struct scene *scene, uint64_t *took_ns);
int publish_withdrawn_read(struct scene *scene, uint64_t *took_ns);
int publish_aborted(struct scene *scene, uint64_t *took_ns);
int list_ok(struct scene *scene, uint64_t *took_ns);
int list_self(struct scene *scene, uint64_t *took_ns);
int list_deadline(struct scene *scene, uint64_t *took_ns);
int list_cancel(struct scene *scene, uint64_t *took_ns);
int gather_ok(struct scene *scene, uint64_t *took_ns);
int gather_deadline(struct scene *scene, uint64_t *took_ns);
int gather_cancel(struct scene *scene, uint64_t *took_ns);
int gather_range(struct scene *scene, uint64_t *took_ns);
int gather_retracted(struct scene *scene, uint64_t *took_ns);
int connect_ok(struct scene *scene, uint64_t *took_ns);
int connect_nobody(struct scene *scene, uint64_t *took_ns);
int connect_name(struct scene *scene, uint64_t *took_ns);
int connect_unread(struct scene *scene, uint64_t *took_ns);
int disconnect_idle(struct scene *scene, uint64_t *took_ns);
int disconnect_busy(struct scene *scene, uint64_t *took_ns);
int close_busy(struct scene *scene, uint64_t *took_ns);
int kill_busy(struct scene *scene, uint64_t *took_ns);
int pool_create(struct scene *scene, uint64_t *took_ns);
int pool_register(struct scene *scene, uint64_t *took_ns);
int pool_import(struct scene *scene, uint64_t *took_ns);
int pool_alloc(struct scene *scene, uint64_t *took_ns);
int pool_destroy(struct scene *scene, uint64_t *took_ns);
int pool_destroy_busy(struct scene *scene, uint64_t *took_ns);
int table_export(struct scene *scene, uint64_t *took_ns);
int table_unexport(struct scene *scene, uint64_t *took_ns);
int table_open(struct scene *scene, uint64_t *took_ns);
int table_open_lanes(struct scene *scene, uint64_t *took_ns);
int table_unknown(struct scene *scene, uint64_t *took_ns);
int table_close(struct scene *scene, uint64_t *took_ns);

/* parts.c: slices, elements with gaps, steps, generations */
int fetch_slice(struct scene *scene, uint64_t *took_ns);
int fetch_spread(struct scene *scene, uint64_t *took_ns);
int fetch_spread_cancel(struct scene *scene, uint64_t *took_ns);
int fetch_newest(struct scene *scene, uint64_t *took_ns);
int fetch_now(struct scene *scene, uint64_t *took_ns);
int publish_view(struct scene *scene, uint64_t *took_ns);
int generation_revealed(struct scene *scene, uint64_t *took_ns);
int generation_withdrawn(struct scene *scene, uint64_t *took_ns);

#endif

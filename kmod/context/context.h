/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contexts: one open file of /dev/rdmatensor.
 *
 * Room context: who owns what, and in which order it begins and ends: start and close, the
 * device's removal, the channels, dispatch of what they receive, the list of all contexts. It
 * calls all rooms below; only api, and module load and unload, call it.
 */
#ifndef RDMATENSOR_CONTEXT_H
#define RDMATENSOR_CONTEXT_H

#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/xarray.h>
#include "context/context_list.h"
#include "context/holdings.h"
#include "core/core.h"
#include "gather/export.h"
#include "gather/gather.h"
#include "memory/adapter.h"
#include "memory/pool.h"
#include "transport/cm.h"

/**
 * struct rdmatensor_context - one worker
 * @setup: serialises START from its checks to its success or failure. Taken before @lock
 * @device_use: for reading: objects are created or destroyed on the device, which may take
 *              long; for writing: all use of the device ends. Taken before @lock
 * @lock: guards the start, @gone, and the number of tables. Held shortly, except by START:
 *        neither in SUBMIT, nor while memory is allocated or registered
 * @net: the opener's network namespace, referenced
 * @memcg: the opener's memory cgroup, referenced; NULL: the kernel has none. What peers make
 *         the context allocate is charged to it
 * @listed: place in the list of contexts
 * @comm: its command
 * @started: START has succeeded; the members below are valid (release/acquire)
 * @gone: the device is being removed, or was, since @adapter was bound
 * @removal: waiters that @gone must wake
 * @poll_wait: poll(), of the ring as well (rdmatensor_core_init()), but from open() on
 * @adapter: device, port, GID
 * @holdings: pools, and what else the domain has; a reference
 * @domain: PD and registrations of @holdings, referenced; NULL: all use of the device has
 *          ended. Changed with @device_use and @lock, valid with either
 * @cm: listener
 * @core: ring, rendezvous table, operations
 * @params: of its channels, which point to it
 * @max_channels: bound on @nr_channels
 * @worker: its name
 * @chosen: device, port and GID, and by which rule: START's answer
 * @incarnation: random
 * @exports: rows that peers may read, by name
 * @tables: opened tables by id; and exports, which are tagged 1
 * @nr_tables: in @tables, or about to be, or just out of it
 * @next_table: where the search for an id goes on
 * @gathers: what all gathers share
 * @channels: by id
 * @next_channel: where the search for an id goes on
 * @nr_channels: in @channels, or about to be, less those whose end is being reported
 * @down_wq: teardowns
 */
struct rdmatensor_context {
	struct mutex setup;
	struct rw_semaphore device_use;
	struct mutex lock;
	struct net *net;
	struct mem_cgroup *memcg;
	struct rdmatensor_context_listed listed;
	char comm[TASK_COMM_LEN];
	bool started;
	bool gone;
	wait_queue_head_t removal;
	wait_queue_head_t poll_wait;
	struct rdmatensor_adapter adapter;
	struct rdmatensor_holdings *holdings;
	struct rdmatensor_domain *domain;
	struct rdmatensor_cm cm;
	struct rdmatensor_core core;
	struct rdmatensor_channel_params params;
	u32 max_channels;
	char worker[RDMATENSOR_WORKER_MAX];
	char chosen[sizeof_field(struct rdmatensor_start, cause)];
	u64 incarnation;
	struct rdmatensor_exports exports;
	struct xarray tables;
	u32 nr_tables;
	u32 next_table;
	struct rdmatensor_gathers gathers;
	struct xarray channels;
	u32 next_channel;
	atomic_t nr_channels;
	struct workqueue_struct *down_wq;
};

struct rdmatensor_context *rdmatensor_context_open(void);
void rdmatensor_context_close(struct rdmatensor_context *context);

static inline bool rdmatensor_context_started(struct rdmatensor_context *context)
{
	/* Pairs with START's release: the members are valid */
	return smp_load_acquire(&context->started);
}

/* A pool of its domain, held for the caller to put; NULL: none. It has been started */
static inline struct rdmatensor_pool *
rdmatensor_context_pool(struct rdmatensor_context *context, u32 id)
{
	return rdmatensor_holdings_pool(context->holdings, id);
}

/*
 * START, with its struct in kernel memory; errors as in the ABI's header. @joined: of the domain
 * that it joins, with a reference of the caller's; NULL: it makes its own
 */
int rdmatensor_context_start(struct rdmatensor_context *context, struct rdmatensor_start *start,
			     struct rdmatensor_holdings *joined);
/* CONNECT, with its struct in kernel memory; errors as in the ABI's header */
int rdmatensor_context_connect(struct rdmatensor_context *context,
			       struct rdmatensor_connect *connect);

/* tables.c: what the context exports, and what it has opened, by id */

/*
 * Reserves a place among the tables, and an id under which there is no table yet. Return: 0,
 * -ENODEV, -EUSERS, -ENOMEM
 */
int rdmatensor_context_tables_reserve(struct rdmatensor_context *context, u32 *id);
/* Frees a place that was reserved and not used */
void rdmatensor_context_tables_unreserve(struct rdmatensor_context *context, u32 id);
/* Takes over the caller's reference, into a reserved place. It may be removed at once */
void rdmatensor_context_tables_add_export(struct rdmatensor_context *context, u32 id,
					  struct rdmatensor_export *export);
void rdmatensor_context_tables_add_opened(struct rdmatensor_context *context, u32 id,
					  struct rdmatensor_table *table);
/* Removes and puts a table; withdraws an export. Return: 0, -ENOENT */
int rdmatensor_context_tables_remove(struct rdmatensor_context *context, u32 id);
/* An opened table, held for the caller to put; NULL: none */
struct rdmatensor_table *rdmatensor_context_table(struct rdmatensor_context *context, u32 id);
/* Describes the table after *@id, which is set to its id. False: there is none */
bool rdmatensor_context_next_table(struct rdmatensor_context *context, unsigned long *id,
				   struct rdmatensor_table_shown *shown);
/* Withdraws all exports: no peer reads rows any more. With device_use, for writing */
void rdmatensor_context_tables_withdraw(struct rdmatensor_context *context);
/* Removes all tables of a context that is closing */
void rdmatensor_context_tables_free(struct rdmatensor_context *context);

#endif /* RDMATENSOR_CONTEXT_H */

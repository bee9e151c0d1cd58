// SPDX-License-Identifier: GPL-2.0
/* The control ioctls, and how any of them is made wrongly */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <rdmatensor/netlink.h>
#include "threads.h"

int call(struct worker *w, int fd, unsigned long cmd, void *arg, const char *name)
{
	int ret;

	enter(w, name);
	ret = ioctl(fd, cmd, arg) ? -errno : 0;
	leave(w);
	return ret;
}

static uint64_t value(struct worker *w, struct life *life)
{
	switch (below(w, 9)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return UINT64_MAX - below(w, 3);
	case 3:
		return (1ull << below(w, 64)) - below(w, 2);
	case 4:
		return rnd(w);
	case 5:
		return below(w, 1024);
	case 6:
		return life->channels[below(w, NR_CHANNELS)];
	case 7:
		return life->pools[below(w, NR_POOLS)].id;
	default:
		return (uintptr_t)w->pages + below(w, 3 * PAGE);
	}
}

void mutate(struct worker *w, struct life *life, void *at, size_t from, size_t bytes)
{
	unsigned int n = 1 + below(w, 3);

	while (n--) {
		size_t width = 1u << (1 + below(w, 3));
		size_t offset = from + below(w, (bytes - from) / width) * width;
		uint64_t v = value(w, life);

		if (offset + width <= bytes)
			memcpy((char *)at + offset, &v, width);
	}
}

int call_somehow(struct worker *w, struct life *life, unsigned long cmd, void *arg, uint32_t size,
		 const char *name, bool *untold)
{
	char *at = w->pages + PAGE - size;
	uint32_t other = size;
	bool ignored = false;
	int ret;

	untold = untold ?: &ignored;
	*untold = true;
	switch (below(w, 64)) {
	case 0:
		return call(w, life->fd, cmd, (void *)(uintptr_t)value(w, life), name);
	case 1: /* its end, or all of it, where nothing can be written */
		at += 1 + below(w, size);
		break;
	case 2:
		at = w->pages + 2 * PAGE - below(w, size + 1);
		break;
	case 3:
		other = value(w, life);
		break;
	default:
		*untold = false;
	}
	memcpy(arg, &other, sizeof(other));
	if (at + size > w->pages + PAGE) {
		size_t there = at < w->pages + PAGE ? w->pages + PAGE - at : 0;

		memcpy(at, arg, there);
		return call(w, life->fd, cmd, at, name);
	}
	memcpy(at, arg, size);
	ret = call(w, life->fd, cmd, at, name);
	memcpy(arg, at, size);
	return ret;
}

#define ARG(_struct) \
	struct rdmatensor_##_struct arg = { .size = sizeof(arg) }

/* Every eighth one is not as it should be */
#define MUTATE() \
	do { \
		if (one_in(w, 8)) \
			mutate(w, life, &arg, 4, sizeof(arg)); \
	} while (0)

#define CALL(_CALL) \
	call_somehow(w, life, RDMATENSOR_##_CALL, &arg, sizeof(arg), #_CALL, NULL)

static uint32_t channel_of(struct worker *w, struct life *life)
{
	return one_in(w, 32) ? below(w, 64) : life->channels[below(w, NR_CHANNELS)];
}

static uint32_t pool_of(struct worker *w, struct life *life)
{
	return one_in(w, 32) ? below(w, 64) : life->pools[below(w, NR_POOLS)].id;
}

static int query(struct worker *w, struct life *life)
{
	ARG(query);

	MUTATE();
	return CALL(QUERY);
}

static int configure(struct worker *w, struct life *life)
{
	ARG(configure);

	arg.mask = RDMATENSOR_CONFIGURE_VALIDATE;
	arg.flags = one_in(w, 3);
	MUTATE();
	return CALL(CONFIGURE);
}

static int stats(struct worker *w, struct life *life)
{
	uint64_t counters[RDMATENSOR_STAT_NR];

	ARG(stats);

	arg.channel = one_in(w, 2) ? 0 : channel_of(w, life);
	arg.nr = below(w, RDMATENSOR_STAT_NR + 1);
	arg.counters_uptr = (uintptr_t)counters;
	if (one_in(w, 8))
		arg.counters_uptr = (uintptr_t)w->pages + 2 * PAGE;
	return CALL(STATS);
}

static void pool_forget(struct life *life, uint32_t pool)
{
	int i;

	for (i = 0; i < NR_REGIONS; i++)
		if (life->regions[i].pool == pool)
			life->regions[i].pool = 0;
}

/* One for one, or there would soon be no memory. The first stays: it has the rows */
static int pool_make_place(struct worker *w, struct life *life, unsigned int *slot)
{
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy) };
	int ret;

	*slot = 1 + below(w, NR_POOLS - 1);
	destroy.pool_id = life->pools[*slot].id;
	if (!destroy.pool_id)
		return 0;
	ret = count(w, POOL_DESTROY, call(w, life->fd, RDMATENSOR_POOL_DESTROY, &destroy,
					  "POOL_DESTROY"));
	if (ret && ret != -ENOENT)
		return ret;
	pool_forget(life, destroy.pool_id);
	return 0;
}

/* What peers may do with it: most often all */
static uint32_t pool_peers(struct worker *w)
{
	return one_in(w, 4) ? 1 + below(w, 2) : RDMATENSOR_POOL_PEERS_WRITE;
}

/* Of memory that is there already: regions of it are the process's to choose */
static void pool_own(struct worker *w, struct life *life, unsigned int slot, uint32_t id,
		     uint64_t bytes)
{
	unsigned int i;

	life->pools[slot].id = id;
	life->pools[slot].bytes = bytes;
	life->pools[slot].mmap_offset = (uint64_t)id * PAGE;
	for (i = 0; i < 4; i++) {
		unsigned int region = below(w, NR_REGIONS);
		uint64_t offset = below(w, bytes);

		life->regions[region].offset = offset;
		life->regions[region].bytes = 1 + below(w, bytes - offset);
		life->regions[region].pool = id;
	}
}

/* Parts of the arena, from anywhere in it */
static int pool_register(struct worker *w, struct life *life)
{
	unsigned int slot;
	int ret;

	ARG(pool_register);

	ret = pool_make_place(w, life, &slot);
	if (ret)
		return ret;
	arg.addr = (uintptr_t)arena + below(w, ARENA_BYTES / PAGE) * PAGE;
	arg.bytes = PAGE * (1 + below(w, one_in(w, 8) ? 600 : 32));
	arg.peers = pool_peers(w);
	arg.flags = arg.peers && one_in(w, 2) ? RDMATENSOR_REGISTER_READ_ONLY : 0;
	MUTATE();
	arena_bound(&arg.addr, &arg.bytes);
	ret = CALL(POOL_REGISTER);
	if (!ret)
		pool_own(w, life, slot, arg.out_pool_id, arg.bytes);
	return ret;
}

static int pool_import(struct worker *w, struct life *life)
{
	unsigned int slot;
	int ret;

	ARG(pool_import);

	ret = pool_make_place(w, life, &slot);
	if (ret)
		return ret;
	arg.fd = bufs[below(w, NR_BUFS)];
	arg.peers = pool_peers(w);
	arg.flags = arg.peers && one_in(w, 2) ? RDMATENSOR_IMPORT_READ_ONLY : 0;
	MUTATE();
	ret = CALL(POOL_IMPORT);
	if (!ret)
		pool_own(w, life, slot, arg.out_pool_id, arg.out_bytes);
	return ret;
}

static int pool_create(struct worker *w, struct life *life)
{
	unsigned int slot;
	int ret;

	ARG(pool_create);

	ret = pool_make_place(w, life, &slot);
	if (ret)
		return ret;
	arg.peers = pool_peers(w);
	arg.bytes = 1 + below(w, one_in(w, 8) ? 2 * POOL_BYTES : POOL_BYTES / 8);
	if (one_in(w, 8)) {
		mutate(w, life, &arg, 4, sizeof(arg));
		if (arg.bytes > POOL_BYTES && arg.bytes <= 1ull << 40)
			arg.bytes = POOL_BYTES;
	}
	ret = CALL(POOL_CREATE);
	if (!ret) {
		life->pools[slot].id = arg.out_pool_id;
		life->pools[slot].bytes = arg.bytes;
		life->pools[slot].mmap_offset = arg.out_mmap_offset;
	}
	return ret;
}

static int pool_destroy(struct worker *w, struct life *life)
{
	int ret;

	ARG(pool_destroy);

	arg.pool_id = pool_of(w, life);
	MUTATE();
	ret = CALL(POOL_DESTROY);
	if (!ret)
		pool_forget(life, arg.pool_id);
	return ret;
}

static int region_alloc(struct worker *w, struct life *life, uint32_t pool, uint64_t bytes)
{
	unsigned int slot = below(w, NR_REGIONS);
	struct rdmatensor_op op;
	int ret;

	ARG(pool_alloc);

	arg.pool_id = pool;
	arg.bytes = bytes;
	MUTATE();
	rdmatensor_prep_free(&op, life->regions[slot].pool, life->regions[slot].offset);
	if (op.pool_id)
		submit_plain(w, life, &op);
	life->regions[slot].pool = 0;
	ret = CALL(POOL_ALLOC);
	if (!ret) {
		life->regions[slot].offset = arg.out_offset;
		life->regions[slot].bytes = arg.bytes;
		life->regions[slot].pool = arg.pool_id;
	}
	return ret;
}

static void addr_of(struct worker *w, struct sockaddr_in *in)
{
	unsigned int place = below(w, MAINS + PEERS);

	in->sin_family = AF_INET;
	in->sin_addr = own_ip;
	in->sin_port = htons(shared->ports[place]);
	if (one_in(w, 12)) /* to nobody */
		in->sin_port = htons(1 + below(w, 1000));
	else if (one_in(w, 24))
		in->sin_addr.s_addr = htonl(ntohl(own_ip.s_addr) + 1 + below(w, 100));
}

static int connect_to(struct worker *w, struct life *life)
{
	int ret;

	ARG(connect);

	addr_of(w, (void *)arg.addr);
	if (one_in(w, 8))
		snprintf(arg.worker, sizeof(arg.worker), "handle%u", (unsigned int)below(w, MAINS));
	arg.timeout_ms = one_in(w, 8) ? 1 + below(w, 20) : SETUP_MS;
	arg.flags = one_in(w, 4) ? 0 : RDMATENSOR_CONNECT_NOWAIT;
	MUTATE();
	if (!arg.timeout_ms || arg.timeout_ms > SETUP_MS)
		arg.timeout_ms = SETUP_MS;
	ret = CALL(CONNECT);
	if (!ret)
		life->channels[below(w, NR_CHANNELS)] = arg.out_channel;
	return ret;
}

static int disconnect(struct worker *w, struct life *life)
{
	ARG(disconnect);

	arg.channel = channel_of(w, life);
	MUTATE();
	return CALL(DISCONNECT);
}

static int channel_query(struct worker *w, struct life *life)
{
	int ret;

	ARG(channel_query);

	if (one_in(w, 2)) {
		arg.flags = RDMATENSOR_CHANNEL_NEXT;
		arg.channel = one_in(w, 2) ? 0 : channel_of(w, life);
	} else {
		arg.channel = channel_of(w, life);
	}
	MUTATE();
	ret = CALL(CHANNEL_QUERY);
	if (!ret)
		life->channels[below(w, NR_CHANNELS)] = arg.channel;
	return ret;
}

/* A step is aborted for good, so it is seldom one of those that are fetched */
static int step_abort(struct worker *w, struct life *life)
{
	ARG(step_abort);

	arg.status = -1 - (int)below(w, 4095);
	arg.step_id = one_in(w, 8) ? below(w, STEPS) : STEPS + below(w, 1000);
	arg.text_uptr = (uintptr_t)long_words;
	arg.text_len = below(w, sizeof(long_words) + 1);
	MUTATE();
	return CALL(STEP_ABORT);
}

/*
 * Tables: "whole" has all rows, of "parts" every other handle has the one half and the
 * others the other.
 */
static int table_export(struct worker *w, struct life *life, bool whole)
{
	uint64_t half = life->slot % 2 * (ROWS / 2);
	unsigned int slot = below(w, NR_TABLES);
	int ret;

	ARG(table_export);

	arg.name_uptr = (uintptr_t)(whole ? "whole" : "parts");
	arg.name_len = 5;
	arg.pool_id = life->pools[0].id;
	arg.offset = whole ? 0 : half * ROW_BYTES;
	arg.row_start = whole ? 0 : half;
	arg.row_end = whole ? ROWS : half + ROWS / 2;
	arg.row_bytes = ROW_BYTES;
	arg.data_type = RDMATENSOR_DT_UINT8;
	MUTATE();
	ret = CALL(TABLE_EXPORT);
	if (!ret)
		life->exports[slot] = arg.out_table;
	return ret;
}

static int table_open(struct worker *w, struct life *life)
{
	uint32_t channels[2] = { channel_of(w, life), channel_of(w, life) }, old;
	unsigned int slot = below(w, NR_TABLES);
	struct rdmatensor_table_close close = { .size = sizeof(close) };
	bool whole = !one_in(w, 3);
	int ret;

	ARG(table_open);

	if (one_in(w, 3))
		channels[0] = RDMATENSOR_CHANNEL_SELF;
	arg.name_uptr = (uintptr_t)(whole ? "whole" : "parts");
	arg.name_len = 5;
	arg.channels_uptr = (uintptr_t)channels;
	arg.nr_channels = whole ? 1 : 2;
	arg.timeout_ms = 1 + below(w, SETUP_MS);
	arg.flags = one_in(w, 4) ? 0 : RDMATENSOR_TABLE_NOWAIT;
	MUTATE();
	if (!arg.timeout_ms || arg.timeout_ms > SETUP_MS)
		arg.timeout_ms = SETUP_MS;
	ret = CALL(TABLE_OPEN);
	if (ret)
		return ret;
	old = life->tables[slot];
	life->tables[slot] = arg.out_table;
	close.table = old;
	if (old)
		count(w, TABLE_CLOSE, call(w, life->fd, RDMATENSOR_TABLE_CLOSE, &close,
					   "TABLE_CLOSE"));
	return 0;
}

static int table_close(struct worker *w, struct life *life)
{
	unsigned int slot = below(w, NR_TABLES);

	ARG(table_close);

	arg.table = one_in(w, 4) ? life->exports[slot] : life->tables[slot];
	MUTATE();
	return CALL(TABLE_CLOSE);
}

/* Mostly of those that are kept; what comes is right or nothing, whoever fails meanwhile */
static int status_text(struct worker *w, struct life *life)
{
	char text[RDMATENSOR_STATUS_TEXT_MAX];

	ARG(status_text);

	/* The last one that was told, which most often is still there, or about as many as are kept */
	arg.text_id = life->text_id;
	if (below(w, 2))
		arg.text_id -= below(w, RDMATENSOR_STATUS_TEXTS + 8);
	MUTATE();
	/* What is written to stays ours: any other address may be a thread's stack */
	arg.text_uptr = one_in(w, 8) ? (uintptr_t)w->pages + 2 * PAGE - below(w, 64) :
				       (uintptr_t)text;
	arg.text_len = below(w, sizeof(text) + 1);
	return CALL(STATUS_TEXT);
}

int domains[NR_DOMAINS];

bool domains_make(void)
{
	unsigned int i;

	for (i = 0; i < NR_DOMAINS; i++) {
		domains[i] = fcntl(null_fd, F_DUPFD_CLOEXEC, 0);
		if (domains[i] < 0)
			return false;
	}
	return true;
}

void domains_end(void)
{
	unsigned int i;

	for (i = 0; i < NR_DOMAINS; i++)
		close(domains[i]);
}

/* Looked at; or ended, for another one or for none */
static int domain(struct worker *w, struct life *life)
{
	struct rdmatensor_domain_create create = {
		.size = sizeof(create), .flags = RDMATENSOR_DOMAIN_CLOEXEC,
	};
	struct rdmatensor_domain_query look = { .size = sizeof(look) };
	int fd = domains[below(w, NR_DOMAINS)], ret;

	if (one_in(w, 2)) {
		if (one_in(w, 8))
			mutate(w, life, &look, 4, sizeof(look));
		return call(w, fd, RDMATENSOR_DOMAIN_QUERY, &look, "DOMAIN_QUERY");
	}
	life->common = true;
	if (one_in(w, 8))
		mutate(w, life, &create, 8, sizeof(create));
	ret = call(w, life->fd, RDMATENSOR_DOMAIN_CREATE, &create, "DOMAIN_CREATE");
	enter(w, "close a domain");
	if (!ret) {
		if (dup3(create.out_fd, fd, O_CLOEXEC) < 0)
			wrong("dup3: %s", strerror(errno));
		close(create.out_fd);
	} else if (one_in(w, 4)) {
		dup3(null_fd, fd, O_CLOEXEC);
	}
	leave(w);
	return ret;
}

static int pool_query(struct worker *w, struct life *life)
{
	ARG(pool_query);

	arg.pool_id = one_in(w, 2) ? 0 : pool_of(w, life);
	arg.flags = below(w, 2);
	MUTATE();
	return CALL(POOL_QUERY);
}

static int lasting_query(struct worker *w, struct life *life)
{
	ARG(lasting_query);

	arg.cursor = one_in(w, 2) ? 0 : below(w, 64);
	MUTATE();
	return CALL(LASTING_QUERY);
}

static uint64_t unwritable(struct worker *w)
{
	switch (below(w, 4)) {
	case 0:
		return (uintptr_t)w->pages + 2 * PAGE - below(w, 64);
	case 1:
		return UINT64_MAX - below(w, 64);
	case 2:
		return 1ull << 63;
	default:
		return 0;
	}
}

static int dump(struct worker *w, struct life *life)
{
	static __thread char room[RDMATENSOR_DUMP_ROOM_MAX];
	ARG(dump);
	int ret;

	arg.command = 1 + below(w, RDMATENSOR_NL_CMD_TENSOR_GET);
	arg.room = sizeof(room);
	MUTATE();
	/* What is written to stays ours: any other address may be the allocator's */
	arg.buf_uptr = one_in(w, 8) ? unwritable(w) : (uintptr_t)room;
	/* From where the last call has come to */
	do {
		ret = CALL(DUMP);
	} while (!ret && arg.out_bytes && one_in(w, 2));
	return ret;
}

int do_control(struct worker *w, struct life *life, enum kind kind)
{
	switch (kind) {
	case QUERY:
		return query(w, life);
	case CONFIGURE:
		return configure(w, life);
	case STATS:
		return stats(w, life);
	case POOL_CREATE:
		return pool_create(w, life);
	case POOL_REGISTER:
		return pool_register(w, life);
	case POOL_IMPORT:
		return pool_import(w, life);
	case POOL_ALLOC:
		return region_alloc(w, life, pool_of(w, life),
				    1 + below(w, one_in(w, 8) ? 1 << 19 : 1 << 14));
	case POOL_DESTROY:
		return pool_destroy(w, life);
	case CONNECT:
		return connect_to(w, life);
	case DISCONNECT:
		return disconnect(w, life);
	case CHANNEL_QUERY:
		return channel_query(w, life);
	case STEP_ABORT:
		return step_abort(w, life);
	case TABLE_EXPORT:
		return table_export(w, life, one_in(w, 2));
	case TABLE_OPEN:
		return table_open(w, life);
	case STATUS_TEXT:
		return status_text(w, life);
	case DOMAIN:
		return domain(w, life);
	case POOL_QUERY:
		return pool_query(w, life);
	case LASTING_QUERY:
		return lasting_query(w, life);
	case DUMP:
		return dump(w, life);
	default:
		return table_close(w, life);
	}
}

/* A pool with rows, which are offered, so that there is something to work with */
int first_objects(struct worker *w, struct life *life)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = POOL_BYTES };
	struct rdmatensor_pool_alloc alloc = { .size = sizeof(alloc), .bytes = ROWS * ROW_BYTES };
	int ret, i;

	ret = call(w, life->fd, RDMATENSOR_POOL_CREATE, &create, "POOL_CREATE");
	if (ret)
		return ret;
	life->pools[0].id = create.out_pool_id;
	life->pools[0].bytes = create.bytes;
	life->pools[0].mmap_offset = create.out_mmap_offset;
	alloc.pool_id = create.out_pool_id;
	ret = call(w, life->fd, RDMATENSOR_POOL_ALLOC, &alloc, "POOL_ALLOC");
	if (ret)
		return ret;
	for (i = 0; i < 4; i++)
		count(w, POOL_ALLOC, region_alloc(w, life, create.out_pool_id,
						  1 + below(w, 1 << 14)));
	count(w, TABLE_EXPORT, table_export(w, life, true));
	count(w, TABLE_EXPORT, table_export(w, life, false));
	return 0;
}

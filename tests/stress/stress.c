// SPDX-License-Identifier: GPL-2.0
/*
 * stress [--seconds N] [--seed N] [--threads N]: threads on several contexts, on all
 * processors at once. Every thread uses every context: publishes, fetches, cancels,
 * withdraws, aborts steps, exports and opens tables, gathers from them, makes and
 * destroys pools, connects and disconnects, and closes contexts under the others' feet.
 * Only right calls are made (fuzz/calls makes the others), so what they do can be held
 * to account:
 *
 * - a fetch that succeeds has the bytes of the tensor that was asked for, a gather those
 *   of the rows;
 * - each fetch and gather that was taken ends once, and each buffer that was published
 *   comes back once, unless its context was closed;
 * - at the end, when all has been cancelled and withdrawn, every pool can be destroyed:
 *   nothing holds a region any more.
 *
 * Threads race, so a seed repeats the calls of each thread, not their interleaving.
 */
#include <rdmatensor/rdmatensor.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONTEXTS 5
#define THREADS_MAX 32
#define CHANNELS 8
#define NAMES 48
#define STEPS 6
#define POOL_BYTES (8u << 20)
#define SMALL_POOL (256u << 10)
#define TENSOR_MAX 60000
/* Operations of one context's life, after which it is made again */
#define LIFE_MAX 200000
#define STUCK_S 60
/* Of each table, in two halves: every other context has the one, the others the other */
#define ROWS 1024
#define ROW_BYTES 256
#define GATHER_MAX 200
#define TABLES 4

enum act {
	PUBLISH, FETCH, GATHER, CANCEL, WITHDRAW, ABORT, POOL, TABLE, EXPORT, TABLE_WRONG,
	CONNECT, DISCONNECT, REAP, QUERY, CLOSE,
	NR_ACTS
};

static const struct {
	const char *name;
	unsigned int weight;
} acts[NR_ACTS] = {
	[PUBLISH] = { "publish", 600 }, [FETCH] = { "fetch", 900 }, [GATHER] = { "gather", 200 },
	[CANCEL] = { "cancel", 80 }, [WITHDRAW] = { "withdraw", 60 },
	[ABORT] = { "step abort", 12 }, [POOL] = { "pool create and destroy", 10 },
	[TABLE] = { "table open", 40 }, [EXPORT] = { "table export", 4 },
	[TABLE_WRONG] = { "table calls that are wrong", 20 },
	[CONNECT] = { "connect", 20 },
	[DISCONNECT] = { "disconnect", 4 }, [REAP] = { "reap", 300 },
	[QUERY] = { "query and stats", 20 }, [CLOSE] = { "close", 1 },
};

/* What a number of an operation stands for, until it has ended: by the type of its entry */
struct pending {
	enum rdmatensor_cqe_type type;
	bool open;
	uint64_t offset;
	unsigned int name;
	int64_t step;
	uint64_t *ids;
	unsigned int nr_ids;
	/* An id is not the table's */
	bool refused;
};

/**
 * struct context - one worker, made again from time to time
 * @life: held for reading by who uses it, for writing by who closes it
 * @reaper: one at a time
 * @rows: what @export offers
 * @tables: that are open; 0: none
 * @next: number of the next operation
 */
static struct context {
	pthread_rwlock_t life;
	pthread_mutex_t reaper;
	struct rdmatensor *rt;
	struct rdmatensor_pool pool, rows;
	unsigned int port;
	uint32_t channels[CHANNELS];
	uint32_t export, tables[TABLES];
	uint32_t next;
	struct pending pending[LIFE_MAX];
} contexts[CONTEXTS];

static struct worker {
	pthread_t thread;
	uint64_t random;
	uint64_t done[NR_ACTS], refused[NR_ACTS];
	uint64_t total;
	enum act now;
} workers[THREADS_MAX];

static bool stop;
static int failures;
static uint64_t taken, fetched, gathered, ended_early, returned, lives;

static void wrong(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("# ");
	vprintf(fmt, args);
	printf("\n");
	va_end(args);
	__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

static void add(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint32_t below(struct worker *w, uint32_t most)
{
	return mix(w->random += 0x9e3779b97f4a7c15) % most;
}

/*
 * Tensors: the name says which bytes and how many, whoever publishes it. So a fetch
 * can be checked without knowing whose it was.
 */
static uint64_t tensor_bytes(unsigned int name, int64_t step)
{
	return 8 * (1 + mix(name * 1000 + step) % (TENSOR_MAX / 8));
}

static void tensor_fill(uint64_t *at, unsigned int name, int64_t step)
{
	uint64_t words = tensor_bytes(name, step) / 8, i;

	for (i = 0; i < words; i++)
		at[i] = (i + 1) * 0x9e3779b97f4a7c15 + name * 1000 + step;
}

static bool tensor_right(const uint64_t *at, unsigned int name, int64_t step)
{
	uint64_t words = tensor_bytes(name, step) / 8, i;

	for (i = 0; i < words; i++)
		if (at[i] != (i + 1) * 0x9e3779b97f4a7c15 + name * 1000 + step)
			return false;
	return true;
}

static void row_fill(uint64_t *at, uint64_t row)
{
	unsigned int i;

	for (i = 0; i < ROW_BYTES / 8; i++)
		at[i] = mix(row * 100 + i);
}

static bool row_right(const uint64_t *at, uint64_t row)
{
	unsigned int i;

	for (i = 0; i < ROW_BYTES / 8; i++)
		if (at[i] != mix(row * 100 + i))
			return false;
	return true;
}

static void name_of(unsigned int name, char *text)
{
	sprintf(text, "tensor %u", name);
}

/*
 * Entries
 */

/* Its destination is the process's, however it has ended */
static void gather_ended(struct context *c, struct pending *p, int result)
{
	const char *at = (char *)c->pool.base + p->offset;
	unsigned int i;

	if (!result && p->refused)
		wrong("a gather of a row that the table has not was whole");
	for (i = 0; !result && i < p->nr_ids; i++)
		if (!row_right((const uint64_t *)(at + i * ROW_BYTES), p->ids[i]))
			wrong("a gather has another row for %llu", (unsigned long long)p->ids[i]);
	free(p->ids);
	p->ids = NULL;
	add(result ? &ended_early : &gathered);
	if (rdmatensor_pool_free(c->rt, &c->pool, p->offset))
		wrong("the destination of a gather that has ended is still held");
}

static void entry(struct context *c, const struct rdmatensor_cqe *cqe)
{
	struct pending *p = &c->pending[cqe->user_data % LIFE_MAX];
	uint64_t *at;

	if (cqe->type == RDMATENSOR_CQE_CHANNEL_DOWN && cqe->result == -EPROTO)
		wrong("a channel between two honest workers ended by a breach: %.*s",
		      (int)cqe->text_len, cqe->text);
	if (cqe->type != RDMATENSOR_CQE_FETCH && cqe->type != RDMATENSOR_CQE_PUBLISH &&
	    cqe->type != RDMATENSOR_CQE_GATHER)
		return;
	if (!p->open || p->type != cqe->type) {
		wrong("an entry of type %u, number %llu, that nothing waits for", cqe->type,
		      (unsigned long long)cqe->user_data);
		return;
	}
	p->open = false;
	if (cqe->type == RDMATENSOR_CQE_GATHER) {
		gather_ended(c, p, cqe->result);
		return;
	}
	if (cqe->type == RDMATENSOR_CQE_PUBLISH) {
		add(&returned);
		if (rdmatensor_pool_free(c->rt, &c->pool, p->offset))
			wrong("a buffer that came back is still held");
		return;
	}
	if (cqe->result) {
		add(&ended_early);
		return;
	}
	add(&fetched);
	at = (uint64_t *)((char *)c->pool.base + cqe->offset);
	if (cqe->tensor_bytes != tensor_bytes(p->name, p->step) ||
	    !tensor_right(at, p->name, p->step))
		wrong("a fetch of tensor %u, step %lld, has other bytes", p->name,
		      (long long)p->step);
	if (rdmatensor_pool_free(c->rt, &c->pool, cqe->offset))
		wrong("a region that was allocated for a fetch is still held");
}

static int reap(struct context *c)
{
	struct rdmatensor_cqe cqes[64];
	int n, i;

	pthread_mutex_lock(&c->reaper);
	n = rdmatensor_reap(c->rt, cqes, 64);
	for (i = 0; i < n; i++)
		entry(c, &cqes[i]);
	pthread_mutex_unlock(&c->reaper);
	return n;
}

/*
 * Acts. Under the context's lock for reading, but for the last
 */

/* A number for an operation; NULL: this life has had enough of them */
static struct pending *begin(struct context *c, enum rdmatensor_cqe_type type, uint32_t *number)
{
	struct pending *p;

	*number = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
	if (*number >= LIFE_MAX)
		return NULL;
	p = &c->pending[*number];
	p->type = type;
	p->open = true;
	return p;
}

static int submit(struct context *c, struct rdmatensor_op *op)
{
	unsigned int done;

	return rdmatensor_submit(c->rt, op, 1, 0, 0, &done);
}

static int do_publish(struct worker *w, struct context *c)
{
	unsigned int name = below(w, NAMES);
	int64_t step = below(w, STEPS);
	uint64_t bytes = tensor_bytes(name, step);
	struct rdmatensor_op op;
	uint64_t dim = bytes / 8;
	struct pending *p;
	uint64_t offset;
	uint32_t number;
	char text[32];
	int ret;

	ret = rdmatensor_pool_alloc(c->rt, &c->pool, bytes, &offset);
	if (ret)
		return ret;
	p = begin(c, RDMATENSOR_CQE_PUBLISH, &number);
	if (!p) {
		rdmatensor_pool_free(c->rt, &c->pool, offset);
		return -EAGAIN;
	}
	p->offset = offset;
	tensor_fill((uint64_t *)((char *)c->pool.base + offset), name, step);
	name_of(name, text);
	rdmatensor_prep_publish(&op, text, step, c->pool.id, offset, bytes,
				RDMATENSOR_DT_UINT64, 1, &dim, 1 + below(w, 3), number);
	ret = submit(c, &op);
	if (ret) {
		p->open = false;
		if (rdmatensor_pool_free(c->rt, &c->pool, offset))
			wrong("a buffer that was not taken is held");
	}
	return ret;
}

static int do_fetch(struct worker *w, struct context *c)
{
	uint32_t channel = below(w, 8) ? c->channels[below(w, CHANNELS)] :
					 RDMATENSOR_CHANNEL_SELF;
	unsigned int name = below(w, NAMES);
	struct rdmatensor_op op;
	struct pending *p;
	uint32_t number;
	char text[32];
	int ret;

	if (!channel)
		return -ENOTCONN;
	p = begin(c, RDMATENSOR_CQE_FETCH, &number);
	if (!p)
		return -EAGAIN;
	p->name = name;
	p->step = below(w, STEPS);
	name_of(name, text);
	rdmatensor_prep_fetch_alloc(&op, channel, text, p->step, c->pool.id, 0,
				    rdmatensor_deadline_ms(5 + below(w, 400)), number);
	ret = submit(c, &op);
	if (ret)
		p->open = false;
	else
		add(&taken);
	return ret;
}

static int do_gather(struct worker *w, struct context *c)
{
	uint32_t table = __atomic_load_n(&c->tables[below(w, TABLES)], __ATOMIC_RELAXED), number;
	unsigned int nr = below(w, GATHER_MAX) + 1, i;
	struct rdmatensor_op op;
	struct pending *p;
	uint64_t offset;
	int ret;

	if (!table)
		return -ENOENT;
	ret = rdmatensor_pool_alloc(c->rt, &c->pool, nr * ROW_BYTES, &offset);
	if (ret)
		return ret;
	p = begin(c, RDMATENSOR_CQE_GATHER, &number);
	if (!p) {
		rdmatensor_pool_free(c->rt, &c->pool, offset);
		return -EAGAIN;
	}
	p->offset = offset;
	p->nr_ids = nr;
	p->ids = malloc(nr * sizeof(*p->ids));
	if (!p->ids)
		abort();
	for (i = 0; i < nr; i++)
		p->ids[i] = below(w, ROWS);
	p->refused = !below(w, 32);
	if (p->refused)
		p->ids[below(w, nr)] = ROWS + below(w, 1000);
	rdmatensor_prep_gather(&op, table, p->ids, nr, c->pool.id, offset, nr * ROW_BYTES,
			       rdmatensor_deadline_ms(5 + below(w, 400)), number);
	ret = submit(c, &op);
	if (ret) {
		p->open = false;
		free(p->ids);
		p->ids = NULL;
		if (rdmatensor_pool_free(c->rt, &c->pool, offset))
			wrong("the destination of a gather that was not taken is held");
	} else {
		add(&taken);
	}
	return ret;
}

/* Over two channels, or one and what is the context's own; in the place of another one */
static int do_table(struct worker *w, struct context *c)
{
	struct rdmatensor_table_open open = {
		.timeout_ms = 2000,
		.flags = below(w, 8) ? RDMATENSOR_TABLE_NOWAIT : 0,
	};
	uint32_t channels[2], old;
	int ret, i;

	for (i = 0; i < 2; i++)
		channels[i] = below(w, 4) ? c->channels[below(w, CHANNELS)] :
					    RDMATENSOR_CHANNEL_SELF;
	ret = rdmatensor_table_open(c->rt, "rows", channels, 2, &open);
	if (ret)
		return ret;
	if (open.out_rows != ROWS || open.out_row_bytes != ROW_BYTES)
		wrong("a table of %llu rows of %u bytes", (unsigned long long)open.out_rows,
		      open.out_row_bytes);
	old = __atomic_exchange_n(&c->tables[below(w, TABLES)], open.out_table, __ATOMIC_RELAXED);
	if (old && rdmatensor_table_close(c->rt, old))
		wrong("a table that was open cannot be closed");
	return 0;
}

static uint64_t first_row(const struct context *c)
{
	return (c - contexts) % 2 * ROWS / 2;
}

static int export_rows(struct context *c)
{
	uint64_t start = first_row(c);

	return rdmatensor_table_export(c->rt, "rows", &c->rows, 0, start, start + ROWS / 2, ROW_BYTES,
				       0, RDMATENSOR_DT_UINT64, &c->export);
}

/* Withdrawn under the readers' hands, and offered again */
static int do_export(struct context *c)
{
	uint32_t old = __atomic_exchange_n(&c->export, 0, __ATOMIC_RELAXED);

	if (!old)
		return -EBUSY;
	if (rdmatensor_table_close(c->rt, old))
		wrong("a table that is offered cannot be taken back");
	return export_rows(c);
}

/* Calls that no context can grant, whatever the others do at the same time */
static int do_table_wrong(struct worker *w, struct context *c)
{
	uint32_t channel = c->channels[below(w, CHANNELS)], out, none = 1 << 20;
	struct rdmatensor_table_cache beyond = {
		.row_start = 0, .row_end = ROWS, .offset = 1ull << 40, .pool_id = c->pool.id,
	};
	struct rdmatensor_table_open open = { .timeout_ms = 200 };
	unsigned int what = below(w, 6);
	int ret;

	switch (what) {
	case 0:
		ret = rdmatensor_table_open(c->rt, "nobody's", &channel, 1, &open);
		break;
	case 1:
		ret = rdmatensor_table_open(c->rt, "rows", &none, 1, &open);
		break;
	case 2:
		open.caches_uptr = (uintptr_t)&beyond;
		open.nr_caches = 1;
		ret = rdmatensor_table_open(c->rt, "rows", &channel, 1, &open);
		break;
	case 3:
		ret = rdmatensor_table_export(c->rt, "other", &c->rows, 0, 0, ROWS, 0, 0,
					      RDMATENSOR_DT_UINT64, &out);
		break;
	case 4:
		ret = rdmatensor_table_export(c->rt, "other", &c->rows, 1ull << 40, 0, 1, ROW_BYTES,
					      0, RDMATENSOR_DT_UINT64, &out);
		break;
	default:
		ret = rdmatensor_table_close(c->rt, none);
		break;
	}
	if (!ret)
		wrong("wrong table call %u was granted", what);
	return 0;
}

static int do_cancel(struct worker *w, struct context *c)
{
	uint32_t next = __atomic_load_n(&c->next, __ATOMIC_RELAXED);
	struct rdmatensor_op op;

	rdmatensor_prep_cancel(&op, next > 40 ? next - 1 - below(w, 40) : 0);
	return submit(c, &op);
}

static int do_withdraw(struct worker *w, struct context *c)
{
	struct rdmatensor_op op;
	char text[32];

	name_of(below(w, NAMES), text);
	rdmatensor_prep_withdraw(&op, text, below(w, STEPS), LIFE_MAX);
	return submit(c, &op);
}

static int do_pool(struct worker *w, struct context *c)
{
	struct rdmatensor_pool pool;
	uint64_t offset;
	int ret;

	ret = rdmatensor_pool_create(c->rt, SMALL_POOL, &pool);
	if (ret)
		return ret;
	memset(pool.base, below(w, 256), SMALL_POOL);
	if (rdmatensor_pool_alloc(c->rt, &pool, SMALL_POOL / 2, &offset))
		wrong("an empty pool has no room");
	else if (rdmatensor_pool_destroy(c->rt, &pool) && rdmatensor_pool_free(c->rt, &pool, offset))
		wrong("a region of a pool that nobody else knows is held");
	else if (pool.base && rdmatensor_pool_destroy(c->rt, &pool))
		wrong("a pool that nobody else knows cannot be destroyed");
	return 0;
}

static int do_connect(struct worker *w, struct context *c)
{
	unsigned int port = contexts[below(w, CONTEXTS)].port;
	const char *ip = getenv("LAB_IP");
	struct rdmatensor_connect connect = {
		.timeout_ms = 5000,
		.flags = below(w, 8) ? RDMATENSOR_CONNECT_NOWAIT : 0,
	};
	char addr[64];
	int ret;

	snprintf(addr, sizeof(addr), "%s:%u", ip ? ip : "10.0.0.1", port);
	rdmatensor_parse_addr(addr, 0, 0, connect.addr, NULL, 0);
	ret = rdmatensor_connect_raw(c->rt, &connect);
	if (!ret)
		c->channels[below(w, CHANNELS)] = connect.out_channel;
	return ret;
}

static int do_query(struct context *c)
{
	struct rdmatensor_channel_query query = { .flags = RDMATENSOR_CHANNEL_NEXT };
	uint64_t counters[RDMATENSOR_STAT_NR];

	while (!rdmatensor_channel_query(c->rt, &query))
		query.flags = RDMATENSOR_CHANNEL_NEXT;
	return rdmatensor_stats(c->rt, 0, counters, RDMATENSOR_STAT_NR) < 0 ? -EIO : 0;
}

static int open_rows(struct context *c)
{
	uint64_t offset, i;
	int ret;

	ret = rdmatensor_pool_create(c->rt, ROWS / 2 * ROW_BYTES, &c->rows);
	if (!ret)
		ret = rdmatensor_pool_alloc(c->rt, &c->rows, ROWS / 2 * ROW_BYTES, &offset);
	if (ret)
		return ret;
	for (i = 0; i < ROWS / 2; i++)
		row_fill((uint64_t *)((char *)c->rows.base + offset + i * ROW_BYTES),
			 first_row(c) + i);
	return export_rows(c);
}

static int context_open(struct worker *w, struct context *c)
{
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	const char *ip = getenv("LAB_IP");
	char addr[64];
	int ret;

	ret = rdmatensor_open(NULL, &c->rt);
	if (ret)
		return ret;
	rdmatensor_start_init(&start, "stress");
	snprintf(addr, sizeof(addr), "%s:0", ip ? ip : "10.0.0.1");
	rdmatensor_start_listen(&start, addr, NULL, 0);
	start.lanes = 1 + below(w, 3);
	start.msg_slots = 1u << below(w, 7);
	start.stripe_bytes = 1 + below(w, TENSOR_MAX);
	start.max_channels = 32;
	ret = rdmatensor_start(c->rt, &start);
	if (!ret)
		ret = rdmatensor_query(c->rt, &query);
	if (!ret)
		ret = rdmatensor_pool_create(c->rt, POOL_BYTES, &c->pool);
	if (!ret)
		ret = open_rows(c);
	if (ret) {
		wrong("a context cannot be made: %d, %s", ret, start.cause);
		rdmatensor_close(c->rt);
		c->rt = NULL;
		return ret;
	}
	c->port = query.listen_port;
	c->next = 0;
	memset(c->channels, 0, sizeof(c->channels));
	memset(c->tables, 0, sizeof(c->tables));
	memset(c->pending, 0, sizeof(c->pending));
	add(&lives);
	return 0;
}

/*
 * Takes all publications back, and cancels all else. To be repeated until all has ended: a WITHDRAW
 * needs a place in the ring, which the fetches may have, and takes one of two tensors of a name, as
 * there are when a cancelled fetch has given one back after the next was published. Return: what a
 * WITHDRAW was refused with last
 */
static int end_all(struct context *c, uint32_t next)
{
	struct rdmatensor_op op;
	unsigned int name;
	int64_t step;
	char text[32];
	int ret, last = 0;
	uint32_t i;

	for (i = 0; i < next; i++)
		if (c->pending[i].open && c->pending[i].type != RDMATENSOR_CQE_PUBLISH) {
			rdmatensor_prep_cancel(&op, i);
			submit(c, &op);
		}
	for (name = 0; name < NAMES; name++)
		for (step = 0; step < STEPS; step++) {
			name_of(name, text);
			rdmatensor_prep_withdraw(&op, text, step, LIFE_MAX);
			ret = submit(c, &op);
			if (ret && ret != -ENOENT)
				last = ret;
			reap(c);
		}
	return last;
}

/* What the kernel has of all contexts, for who reads the log */
static void dump(void)
{
	static const char *const whats[] = { "contexts", "channels", "requests", "pools", "tables" };
	const char *build = getenv("LAB_BUILD");
	char command[512];
	unsigned int i;

	fflush(stdout);
	for (i = 0; build && i < sizeof(whats) / sizeof(whats[0]); i++) {
		snprintf(command, sizeof(command), "echo '# %s'; %s/ulib/bin/rdmatensor show %s -j | sed 's/^/# /'",
			 whats[i], build, whats[i]);
		if (system(command))
			printf("# %s: they cannot be shown\n", whats[i]);
	}
}

/* All that it was told has an end, and then nothing is held. Alone with it */
static void context_settle(struct context *c)
{
	uint64_t end = rdmatensor_deadline_ms(STUCK_S * 1000ull);
	uint32_t next = c->next < LIFE_MAX ? c->next : LIFE_MAX, i;
	int refused = end_all(c, next);

	for (i = 0; i < next; i++) {
		while (c->pending[i].open) {
			rdmatensor_wait(c->rt, 1, rdmatensor_deadline_ms(100));
			reap(c);
			if (!c->pending[i].open)
				break;
			refused = end_all(c, next);
			if (rdmatensor_deadline_ms(0) > end) {
				wrong("number %u, of type %u, does not end; WITHDRAW: %d", i,
				      c->pending[i].type, refused);
				dump();
				return;
			}
		}
	}
	i = rdmatensor_pool_destroy(c->rt, &c->pool);
	if (i)
		wrong("the pool cannot be destroyed when all has ended: %d", (int)i);
	for (i = 0; i < TABLES; i++)
		if (c->tables[i] && rdmatensor_table_close(c->rt, c->tables[i]))
			wrong("a table cannot be closed when all has ended");
	if (c->export && rdmatensor_table_close(c->rt, c->export))
		wrong("rows cannot be taken back when all has ended");
	i = rdmatensor_pool_destroy(c->rt, &c->rows);
	if (i)
		wrong("the rows cannot be destroyed when nobody has them: %d", (int)i);
}

/* With it end all its operations, whose ids nobody reads any more */
static void context_close(struct context *c)
{
	uint32_t next = c->next < LIFE_MAX ? c->next : LIFE_MAX, i;

	rdmatensor_close(c->rt);
	c->rt = NULL;
	for (i = 0; i < next; i++)
		if (c->pending[i].open)
			free(c->pending[i].ids);
}

static int do_close(struct worker *w, struct context *c)
{
	pthread_rwlock_wrlock(&c->life);
	/* Now with all that is in flight, now in order */
	if (c->rt && below(w, 2))
		context_settle(c);
	if (c->rt)
		context_close(c);
	context_open(w, c);
	pthread_rwlock_unlock(&c->life);
	return 0;
}

static int act(struct worker *w, struct context *c, enum act what)
{
	switch (what) {
	case PUBLISH:
		return do_publish(w, c);
	case FETCH:
		return do_fetch(w, c);
	case GATHER:
		return do_gather(w, c);
	case TABLE:
		return do_table(w, c);
	case EXPORT:
		return do_export(c);
	case TABLE_WRONG:
		return do_table_wrong(w, c);
	case CANCEL:
		return do_cancel(w, c);
	case WITHDRAW:
		return do_withdraw(w, c);
	case ABORT:
		return rdmatensor_step_abort(c->rt, below(w, STEPS), -ECANCELED, "stress");
	case POOL:
		return do_pool(w, c);
	case CONNECT:
		return do_connect(w, c);
	case DISCONNECT:
		return rdmatensor_disconnect(c->rt, c->channels[below(w, CHANNELS)]);
	case REAP:
		reap(c);
		return 0;
	default:
		return do_query(c);
	}
}

static enum act choose(struct worker *w)
{
	unsigned int sum = 0, i, n;

	for (i = 0; i < NR_ACTS; i++)
		sum += acts[i].weight;
	n = below(w, sum);
	for (i = 0; n >= acts[i].weight; i++)
		n -= acts[i].weight;
	return i;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct context *c = &contexts[below(w, CONTEXTS)];
		enum act what = choose(w);
		int ret;

		w->now = what;
		if (__atomic_load_n(&c->next, __ATOMIC_RELAXED) >= LIFE_MAX)
			what = CLOSE;
		if (what == CLOSE) {
			ret = do_close(w, c);
		} else {
			pthread_rwlock_rdlock(&c->life);
			ret = c->rt ? act(w, c, what) : -ENODEV;
			pthread_rwlock_unlock(&c->life);
		}
		if (ret)
			w->refused[what]++;
		else
			w->done[what]++;
		__atomic_fetch_add(&w->total, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static uint64_t total(unsigned int threads)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < threads; i++)
		sum += __atomic_load_n(&workers[i].total, __ATOMIC_RELAXED);
	return sum;
}

/* Calls that take longer than any bound of the module's do not end */
static void watch(unsigned int threads, unsigned int seconds)
{
	uint64_t seen[THREADS_MAX] = {}, now;
	unsigned int since[THREADS_MAX] = {}, t, i;

	for (t = 0; t < seconds && !__atomic_load_n(&stop, __ATOMIC_RELAXED); t++) {
		sleep(1);
		for (i = 0; i < threads; i++) {
			now = __atomic_load_n(&workers[i].total, __ATOMIC_RELAXED);
			since[i] = now == seen[i] ? since[i] + 1 : 0;
			seen[i] = now;
			if (since[i] > STUCK_S) {
				printf("not ok 0 - thread %u is stuck in: %s\n", i,
				       acts[workers[i].now].name);
				exit(1);
			}
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	unsigned int seconds = 20, threads = 8, i, j;
	uint64_t seed = 1, did[NR_ACTS] = {}, not[NR_ACTS] = {};
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'r' },
		{ "threads", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	bool each = true;
	int option;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			seconds = atoi(optarg);
		else if (option == 'r')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			threads = atoi(optarg);
		else
			return 2;
	}
	if (!threads || threads > THREADS_MAX) {
		fprintf(stderr, "stress: 1 to %d threads\n", THREADS_MAX);
		return 2;
	}
	printf("# seed %llu, %u s, %u threads, %ld processors\n", (unsigned long long)seed,
	       seconds, threads, sysconf(_SC_NPROCESSORS_ONLN));

	for (i = 0; i < threads; i++)
		workers[i].random = mix(seed) + i;
	for (i = 0; i < CONTEXTS; i++) {
		pthread_rwlock_init(&contexts[i].life, NULL);
		pthread_mutex_init(&contexts[i].reaper, NULL);
		if (context_open(&workers[0], &contexts[i]))
			return 1;
	}
	for (i = 0; i < threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	watch(threads, seconds);
	for (i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < CONTEXTS; i++) {
		if (!contexts[i].rt)
			continue;
		context_settle(&contexts[i]);
		context_close(&contexts[i]);
	}

	for (j = 0; j < NR_ACTS; j++) {
		for (i = 0; i < threads; i++) {
			did[j] += workers[i].done[j];
			not[j] += workers[i].refused[j];
		}
		printf("# %-24s %9llu done %9llu refused\n", acts[j].name,
		       (unsigned long long)did[j], (unsigned long long)not[j]);
		each = each && did[j];
	}
	printf("# %llu fetches and gathers taken: %llu and %llu came, %llu ended otherwise, the rest with their contexts; %llu buffers came back; %llu contexts lived\n",
	       (unsigned long long)taken, (unsigned long long)fetched,
	       (unsigned long long)gathered, (unsigned long long)ended_early, (unsigned long long)returned,
	       (unsigned long long)lives);
	printf("%s 1 - what has ended, ended once and rightly\n", failures ? "not ok" : "ok");
	printf("%s 2 - each kind of call succeeded, and tensors and rows came\n",
	       each && fetched && gathered ? "ok" : "not ok");
	printf("operations %llu\n", (unsigned long long)total(threads));
	return failures || !each || !fetched || !gathered;
}

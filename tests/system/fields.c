// SPDX-License-Identifier: GPL-2.0
/*
 * Every field of every ioctl and of every operation: at 0, at its limits, one
 * beyond, naming what is not there, and pointing to where nothing is. What is
 * wrong is one line of a table; the rest of the argument is right. After each
 * refusal the same call with nothing wrong must succeed, so whatever a refused
 * one had changed or kept would show.
 */
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdmatensor/netlink.h>
#include <rdmatensor/params.h>
#include "exporter.h"
#include "harness.h"

#define PAGE 4096
#define KERNEL_ADDR 0xffff888000000000ull
#define POOL_BYTES (1 << 20)

union arg {
	uint32_t size;
	struct rdmatensor_query query;
	struct rdmatensor_start start;
	struct rdmatensor_configure configure;
	struct rdmatensor_stats stats;
	struct rdmatensor_pool_create pool_create;
	struct rdmatensor_pool_register pool_register;
	struct rdmatensor_pool_import pool_import;
	struct rdmatensor_pool_destroy pool_destroy;
	struct rdmatensor_pool_alloc pool_alloc;
	struct rdmatensor_connect connect;
	struct rdmatensor_disconnect disconnect;
	struct rdmatensor_channel_query channel_query;
	struct rdmatensor_step_abort step_abort;
	struct rdmatensor_submit submit;
	struct rdmatensor_table_export table_export;
	struct rdmatensor_table_open table_open;
	struct rdmatensor_table_close table_close;
	struct rdmatensor_status_text status_text;
	struct rdmatensor_domain_create domain_create;
	struct rdmatensor_pool_query pool_query;
	struct rdmatensor_lasting_query lasting_query;
	struct rdmatensor_dump dump;
	char bytes[2 * PAGE];
};

/* @b of the pair is the caller; it has a channel to @a. @third is nobody's peer but @a's */
static struct pair p;
static struct side third;
static struct rdmatensor *fresh;
static uint32_t dead_pool, dead_channel, others_pool, others_channel;
static uint64_t region, destination, free_region;
static __u64 counters[RDMATENSOR_STAT_NR];
static const char long_name[RDMATENSOR_NAME_MAX + 1] = "long";
static const char text[RDMATENSOR_STATUS_TEXT_MAX + 1] = "text";
static char said[RDMATENSOR_STATUS_TEXT_MAX];
static uint32_t text_id, share;
static const uint64_t dims[RDMATENSOR_DIMS_MAX + 1] = { 64 };
static uint32_t default_gid;
static struct rdmatensor_pool rows_pool;
static uint32_t own_table, rows_table;
/* A dma-buf */
static int own_buf;
static uint64_t rows_wanted;
static const uint32_t self = RDMATENSOR_CHANNEL_SELF;
/* A page that can be used, one that can only be read; nothing behind either */
static char *edge, *read_only;

static void *page_before_nothing(void)
{
	char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	CHECK(at != MAP_FAILED);
	/* Kept, so that nothing else is mapped there */
	CHECK(!mprotect(at + PAGE, PAGE, PROT_NONE));
	return at;
}

static uint32_t pool_of(struct side *side, int nr)
{
	struct rdmatensor_pool pool;

	do
		EQ(rdmatensor_pool_create(side->rt, PAGE, &pool), 0);
	while (--nr);
	return pool.id;
}

static void open_all(void)
{
	struct rdmatensor_query query;
	struct rdmatensor_pool pool;
	struct rdmatensor_table_open table = {};
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t rows_at;
	int i;

	pair_open(&p, POOL_BYTES, NULL);
	side_open(&third, "third", PAGE, 1, NULL);
	publish(&p.a, "t", 5, 64, 1, 0, 0);
	/* Of 0 bytes, as the pool's are counted below */
	rdmatensor_prep_publish(&op, "last", 9, 0, 0, 0, RDMATENSOR_DT_STRING, 0, NULL, 0, 0);
	EQ(side_do(&p.b, &op), 0);
	region = side_alloc(&p.b, 64);
	destination = side_alloc(&p.b, 64);
	free_region = side_alloc(&p.b, 4096);
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, free_region), 0);

	EQ(rdmatensor_pool_create(p.b.rt, PAGE, &pool), 0);
	dead_pool = pool.id;
	EQ(rdmatensor_pool_destroy(p.b.rt, &pool), 0);
	others_pool = pool_of(&third, 8);

	dead_channel = p.b.channel;
	EQ(rdmatensor_disconnect(p.b.rt, dead_channel), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ESHUTDOWN);
	side_connect(&p.b, &p.a);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	/* a's ids run ahead of b's, so that its last one is none of b's */
	for (others_channel = 0; others_channel < 4 + p.b.channel;) {
		side_connect(&third, &p.a);
		EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
		others_channel = cqe.channel;
	}

	EQ(rdmatensor_query(p.b.rt, &query), 0);
	default_gid = query.gid_index;
	EQ(rdmatensor_open(NULL, &fresh), 0);
	own_buf = exporter_next(NULL)->export(2 * PAGE, O_RDWR);
	CHECK(own_buf >= 0);
	EQ(rdmatensor_pool_create(p.b.rt, 2 * PAGE, &rows_pool), 0);
	EQ(rdmatensor_pool_alloc(p.b.rt, &rows_pool, 2 * PAGE, &rows_at), 0);
	EQ(rows_at, 0);
	EQ(rdmatensor_table_export(p.b.rt, "own", &rows_pool, PAGE, 0, 8, 512, 0,
				   RDMATENSOR_DT_FLOAT, &own_table), 0);
	/* For GATHER; closed with the context */
	for (i = 0; i < 8; i++)
		memset((char *)rows_pool.base + PAGE + i * 512, 'a' + i, 512);
	EQ(rdmatensor_table_open(p.b.rt, "own", &self, 1, &table), 0);
	rows_table = table.out_table;
	edge = page_before_nothing();
	read_only = page_before_nothing();

	/* Before the rows that are exported */
	fill(rows_pool.base, 64, 2);
	rdmatensor_prep_publish(&op, "s", 6, rows_pool.id, 0, 64, RDMATENSOR_DT_UINT8, 1, dims, 0,
				0);
	op.flags |= RDMATENSOR_OP_SHARE;
	EQ(side_do(&p.b, &op), 0);
	share = 0;

	rdmatensor_prep_publish_failed(&op, "failed", 0, -EIO, NULL, 1, 0);
	op.text_uptr = rdmatensor_op_ptr(text);
	op.text_len = sizeof(said);
	EQ(side_do(&p.b, &op), 0);
	EQ(rdmatensor_fetch(p.b.rt, self, "failed", 0, &p.b.pool, destination, 64, 0, &cqe), -EIO);
	text_id = cqe.text_id;
	EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, 0, NULL), 0);
}

static void close_all(void)
{
	struct rdmatensor_channel_query query = { .channel = others_channel };

	/* Nobody has reached what is not his */
	EQ(rdmatensor_channel_query(p.a.rt, &query), 0);
	EQ(query.state, RDMATENSOR_CHANNEL_UP);
	rdmatensor_close(fresh);
	munmap(edge, 2 * PAGE);
	munmap(read_only, 2 * PAGE);
}

/*
 * The calls, each with arguments that are right, and what undoes a success.
 */

static void good_query(union arg *arg)
{
	(void)arg;
}

static void no_undo(const union arg *arg)
{
	(void)arg;
}

static void good_start(union arg *arg)
{
	struct rdmatensor_start *start = &arg->start;

	rdmatensor_start_init(start, "fields");
	/* All of them, so that what they stand for is looked at; the domain is what domains.c has */
	start->flags = RDMATENSOR_START_FLAGS & ~RDMATENSOR_START_DOMAIN;
	start->gid_index = default_gid;
	start->retry_count = 7;
}

static void undo_start(const union arg *arg)
{
	(void)arg;
	rdmatensor_close(fresh);
	EQ(rdmatensor_open(NULL, &fresh), 0);
}

static void good_configure(union arg *arg)
{
	arg->configure.mask = RDMATENSOR_CONFIGURE_VALIDATE;
}

static void good_stats(union arg *arg)
{
	arg->stats.nr = RDMATENSOR_STAT_NR;
	arg->stats.counters_uptr = rdmatensor_op_ptr(counters);
}

static void good_pool_create(union arg *arg)
{
	arg->pool_create.bytes = 1;
}

static void destroy_pool(uint32_t id)
{
	struct rdmatensor_pool_destroy destroy = { .size = sizeof(destroy), .pool_id = id };

	EQ(ioctl(rdmatensor_fd(p.b.rt), RDMATENSOR_POOL_DESTROY, &destroy), 0);
}

static void undo_pool_create(const union arg *arg)
{
	destroy_pool(arg->pool_create.out_pool_id);
}

static unsigned char own_pages[2 * PAGE] __attribute__((aligned(PAGE)));

static void good_pool_register(union arg *arg)
{
	arg->pool_register.addr = rdmatensor_op_ptr(own_pages);
	arg->pool_register.bytes = sizeof(own_pages);
}

static void undo_pool_register(const union arg *arg)
{
	EQ(arg->pool_register.cause[0], 0);
	destroy_pool(arg->pool_register.out_pool_id);
}

static void good_pool_import(union arg *arg)
{
	arg->pool_import.fd = own_buf;
}

static void undo_pool_import(const union arg *arg)
{
	EQ(arg->pool_import.cause[0], 0);
	EQ(arg->pool_import.out_bytes, 2 * PAGE);
	destroy_pool(arg->pool_import.out_pool_id);
}

/* A pool that is there already if the last call was refused */
static uint32_t victim;

static void good_pool_destroy(union arg *arg)
{
	struct rdmatensor_pool_create create = { .size = sizeof(create), .bytes = PAGE };

	if (!victim) {
		EQ(ioctl(rdmatensor_fd(p.b.rt), RDMATENSOR_POOL_CREATE, &create), 0);
		victim = create.out_pool_id;
	}
	arg->pool_destroy.pool_id = victim;
}

static void undo_pool_destroy(const union arg *arg)
{
	(void)arg;
	victim = 0;
}

static void good_pool_alloc(union arg *arg)
{
	arg->pool_alloc.pool_id = p.b.pool.id;
	arg->pool_alloc.bytes = 1;
}

static void undo_pool_alloc(const union arg *arg)
{
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, arg->pool_alloc.out_offset), 0);
}

static void good_connect(union arg *arg)
{
	char addr[64];

	test_addr(addr, sizeof(addr), p.a.port);
	EQ(rdmatensor_parse_addr(addr, 0, 0, arg->connect.addr, NULL, 0), 0);
	strcpy(arg->connect.worker, "a");
	arg->connect.user_data = 99;
}

static void undo_connect(const union arg *arg)
{
	EQ(rdmatensor_disconnect(p.b.rt, arg->connect.out_channel), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, arg->connect.user_data, NULL),
	   -ESHUTDOWN);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
}

static uint32_t spare_channel;

static void good_disconnect(union arg *arg)
{
	uint32_t kept = p.b.channel;

	if (!spare_channel) {
		side_connect(&p.b, &p.a);
		spare_channel = p.b.channel;
		p.b.channel = kept;
	}
	arg->disconnect.channel = spare_channel;
}

static void undo_disconnect(const union arg *arg)
{
	(void)arg;
	spare_channel = 0;
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ESHUTDOWN);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_UP, 0, NULL), 0);
	EQ(side_next(&p.a, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), -ECONNRESET);
}

static void good_channel_query(union arg *arg)
{
	arg->channel_query.channel = p.b.channel;
}

static void undo_channel_query(const union arg *arg)
{
	EQ(arg->channel_query.channel, p.b.channel);
	EQ(arg->channel_query.state, RDMATENSOR_CHANNEL_UP);
}

static void good_step_abort(union arg *arg)
{
	arg->step_abort.status = -EIO;
	arg->step_abort.step_id = 1000;
	arg->step_abort.text_uptr = rdmatensor_op_ptr(text);
	arg->step_abort.text_len = 4;
}

static struct rdmatensor_op publish_op[2];

static void good_submit(union arg *arg)
{
	rdmatensor_prep_publish(&publish_op[0], "n", 1, p.b.pool.id, region, 64,
				RDMATENSOR_DT_UINT8, 1, dims, 1, 1);
	arg->submit.op_size = sizeof(publish_op[0]);
	arg->submit.ops_uptr = rdmatensor_op_ptr(publish_op);
	arg->submit.nr_ops = 1;
}

static void withdraw(const char *name, uint32_t len, int64_t step)
{
	struct rdmatensor_op op;

	rdmatensor_prep_withdraw(&op, "", step, 2);
	op.name_uptr = rdmatensor_op_ptr(name);
	op.name_len = len;
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, 2, NULL), 0);
}

static void undo_submit(const union arg *arg)
{
	if (!arg->submit.nr_ops)
		return;
	EQ(arg->submit.out_done, 1);
	EQ(arg->submit.out_error, 0);
	withdraw("n", 1, 1);
	EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, 1, NULL), -ECANCELED);
}

static void good_table_export(union arg *arg)
{
	arg->table_export.name_uptr = rdmatensor_op_ptr("rows");
	arg->table_export.name_len = 4;
	arg->table_export.pool_id = rows_pool.id;
	arg->table_export.row_end = 8;
	arg->table_export.row_bytes = 512;
	arg->table_export.data_type = RDMATENSOR_DT_FLOAT;
}

static void undo_table_export(const union arg *arg)
{
	EQ(rdmatensor_table_close(p.b.rt, arg->table_export.out_table), 0);
}

static void good_table_open(union arg *arg)
{
	arg->table_open.name_uptr = rdmatensor_op_ptr("own");
	arg->table_open.name_len = 3;
	arg->table_open.channels_uptr = rdmatensor_op_ptr(&self);
	arg->table_open.nr_channels = 1;
	arg->table_open.timeout_ms = 300;
}

static void undo_table_open(const union arg *arg)
{
	EQ(arg->table_open.out_row_bytes, 512);
	EQ(rdmatensor_table_close(p.b.rt, arg->table_open.out_table), 0);
}

static void good_table_close(union arg *arg)
{
	arg->table_close.table = own_table;
}

static void undo_table_close(const union arg *arg)
{
	(void)arg;
	EQ(rdmatensor_table_export(p.b.rt, "own", &rows_pool, PAGE, 0, 8, 512, 0,
				   RDMATENSOR_DT_FLOAT, &own_table), 0);
}

static void good_status_text(union arg *arg)
{
	arg->status_text.text_id = text_id;
	arg->status_text.text_uptr = rdmatensor_op_ptr(said);
	arg->status_text.text_len = sizeof(said);
}

static void good_domain_create(union arg *arg)
{
	arg->domain_create.flags = RDMATENSOR_DOMAIN_CLOEXEC;
}

static void undo_domain_create(const union arg *arg)
{
	EQ(close(arg->domain_create.out_fd), 0);
}

static void good_pool_query(union arg *arg)
{
	arg->pool_query.pool_id = rows_pool.id;
}

static void undo_pool_query(const union arg *arg)
{
	EQ(arg->pool_query.bytes, arg->pool_query.pool_id == rows_pool.id ? 2 * PAGE : POOL_BYTES);
}

static void good_lasting_query(union arg *arg)
{
	arg->lasting_query.cursor = 0;
}

static void undo_lasting_query(const union arg *arg)
{
	EQ(arg->lasting_query.name_len, 4);
	EQ(arg->lasting_query.step_id, 9);
}

static char dumped[RDMATENSOR_DUMP_ROOM_MIN];

static void good_dump(union arg *arg)
{
	arg->dump.command = RDMATENSOR_NL_CMD_CONTEXT_GET;
	arg->dump.buf_uptr = (uint64_t)(uintptr_t)dumped;
	arg->dump.room = sizeof(dumped);
}

static void undo_dump(const union arg *arg)
{
	CHECK(arg->dump.out_bytes <= sizeof(dumped));
	CHECK(arg->dump.context || arg->dump.out_bytes);
}

static void undo_status_text(const union arg *arg)
{
	EQ(arg->status_text.text_len, sizeof(said));
}

enum { QUERY, START, CONFIGURE, STATS, POOL_CREATE, POOL_REGISTER, POOL_IMPORT, POOL_DESTROY,
	POOL_ALLOC, CONNECT, DISCONNECT, CHANNEL_QUERY, STEP_ABORT, SUBMIT, TABLE_EXPORT, TABLE_OPEN, TABLE_CLOSE,
	STATUS_TEXT, DOMAIN_CREATE, POOL_QUERY, LASTING_QUERY, DUMP };

static const struct call {
	const char *name;
	unsigned long cmd;
	uint32_t size;
	uint32_t least;		/* what programs of the first version of the struct say */
	int written;
	void (*good)(union arg *arg);
	void (*undo)(const union arg *arg);
} calls[] = {
#define CALL(_CALL, _call, _written, _undo) \
	GROWN(_CALL, _call, sizeof(struct rdmatensor_##_call), _written, _undo)
#define GROWN(_CALL, _call, _least, _written, _undo) \
	[_CALL] = { #_CALL, RDMATENSOR_##_CALL, sizeof(struct rdmatensor_##_call), _least, \
		    _written, good_##_call, _undo }
	CALL(QUERY, query, 1, no_undo),
	/* A struct of any later length is between these; params.c has what it means */
	GROWN(START, start, offsetof(struct rdmatensor_start, lane_bytes), 1, undo_start),
	CALL(CONFIGURE, configure, 0, no_undo),
	CALL(STATS, stats, 1, no_undo),
	CALL(POOL_CREATE, pool_create, 1, undo_pool_create),
	CALL(POOL_REGISTER, pool_register, 1, undo_pool_register),
	CALL(POOL_IMPORT, pool_import, 1, undo_pool_import),
	CALL(POOL_DESTROY, pool_destroy, 0, undo_pool_destroy),
	CALL(POOL_ALLOC, pool_alloc, 1, undo_pool_alloc),
	CALL(CONNECT, connect, 1, undo_connect),
	CALL(DISCONNECT, disconnect, 0, undo_disconnect),
	CALL(CHANNEL_QUERY, channel_query, 1, undo_channel_query),
	CALL(STEP_ABORT, step_abort, 0, no_undo),
	GROWN(SUBMIT, submit, offsetof(struct rdmatensor_submit, flags), 1, undo_submit),
	CALL(TABLE_EXPORT, table_export, 1, undo_table_export),
	CALL(TABLE_OPEN, table_open, 1, undo_table_open),
	CALL(TABLE_CLOSE, table_close, 0, undo_table_close),
	CALL(STATUS_TEXT, status_text, 1, undo_status_text),
	CALL(DOMAIN_CREATE, domain_create, 1, undo_domain_create),
	CALL(POOL_QUERY, pool_query, 1, undo_pool_query),
	CALL(LASTING_QUERY, lasting_query, 1, undo_lasting_query),
	CALL(DUMP, dump, 1, undo_dump),
};

#define NR_CALLS (sizeof(calls) / sizeof(*calls))

static void prepare(const struct call *call, union arg *arg)
{
	memset(arg, 0, sizeof(*arg));
	call->good(arg);
	arg->size = call->size;
}

static int make(const struct call *call, void *arg)
{
	struct rdmatensor *rt = call == &calls[START] ? fresh : p.b.rt;

	return ioctl(rdmatensor_fd(rt), call->cmd, arg) ? -errno : 0;
}

static void succeeds(const struct call *call, union arg *arg, const char *what)
{
	int ret = make(call, arg);

	if (ret)
		test_fail(__FILE__, __LINE__, "%s, %s: %d, expected 0 (%.100s)", call->name, what,
			  ret, call == &calls[START] ? arg->start.cause :
			  call == &calls[CONNECT] ? arg->connect.cause : "");
	call->undo(arg);
}

static void refused(const struct call *call, void *arg, const char *what, int error)
{
	union arg good;
	int ret = make(call, arg);

	if (ret != error)
		test_fail(__FILE__, __LINE__, "%s, %s: %d, expected %d", call->name, what, ret,
			  error);
	prepare(call, &good);
	succeeds(call, &good, "right again after a refusal");
}

static void *at_end_of(char *page, const union arg *arg, uint32_t size)
{
	return memcpy(page + PAGE - size, arg, size);
}

TEST(calls_of_any_length)
{
	const struct call *call;
	union arg arg;

	open_all();
	for (call = calls; call < calls + NR_CALLS; call++) {
		printf("# %s\n", call->name);
		prepare(call, &arg);
		arg.size = 0;
		refused(call, &arg, "size 0", -EINVAL);
		prepare(call, &arg);
		arg.size = call->least - 1;
		refused(call, &arg, "a byte short", -EINVAL);
		prepare(call, &arg);
		arg.size = call->least;
		succeeds(call, &arg, "as short as may be");
		prepare(call, &arg);
		arg.size = call->size + 1;
		arg.bytes[call->size] = 1;
		refused(call, &arg, "a byte longer, not zero", -E2BIG);
		prepare(call, &arg);
		arg.size = PAGE;
		arg.bytes[PAGE - 1] = 1;
		refused(call, &arg, "a page long, the last byte not zero", -E2BIG);
		prepare(call, &arg);
		arg.size = PAGE + 1;
		refused(call, &arg, "longer than a page", -E2BIG);
		prepare(call, &arg);
		arg.size = UINT32_MAX;
		refused(call, &arg, "size of all ones", -E2BIG);
		prepare(call, &arg);
		arg.size = call->size + 1;
		succeeds(call, &arg, "a byte longer, zero");
		EQ(arg.size, call->size + 1);
		prepare(call, &arg);
		arg.size = PAGE;
		succeeds(call, &arg, "a page long");
	}
	close_all();
}

TEST(calls_at_the_edge_of_memory)
{
	static void *const nowhere[] = { NULL, (void *)8, (void *)KERNEL_ADDR,
					 (void *)(~0ul - 3), (void *)(~0ul - 100) };
	const struct call *call;
	union arg arg;
	unsigned int i;
	uint32_t size;
	void *at;

	open_all();
	for (call = calls; call < calls + NR_CALLS; call++) {
		printf("# %s\n", call->name);
		for (i = 0; i < sizeof(nowhere) / sizeof(*nowhere); i++)
			refused(call, nowhere[i], "no memory", -EFAULT);

		prepare(call, &arg);
		at = at_end_of(edge, &arg, call->size);
		EQ(make(call, at), 0);
		call->undo(at);
		/* One byte is missing, all but the size, and half of the size */
		for (i = 0; i < 3; i++) {
			prepare(call, &arg);
			size = i == 0 ? call->size - 1 : i == 1 ? 4 : 2;
			refused(call, at_end_of(edge, &arg, size), "half in no memory", -EFAULT);
		}
		/* A tail that this kernel does not know is read all the same */
		prepare(call, &arg);
		arg.size = call->size + 8;
		refused(call, at_end_of(edge, &arg, call->size + 4), "its tail in no memory",
			-EFAULT);

		/* Not written to: refused before anything is done, if there is an answer */
		prepare(call, &arg);
		CHECK(!mprotect(read_only, PAGE, PROT_READ | PROT_WRITE));
		at = at_end_of(read_only, &arg, call->size);
		CHECK(!mprotect(read_only, PAGE, PROT_READ));
		if (call->written) {
			refused(call, at, "in memory that cannot be written", -EFAULT);
		} else {
			EQ(make(call, at), 0);
			call->undo(at);
		}
	}
	close_all();
}

#define FIELD(_call, _field) \
	offsetof(struct rdmatensor_##_call, _field), \
	sizeof(((struct rdmatensor_##_call *)NULL)->_field)
#define ROW(_CALL, _call, _field, _value, _error) \
	{ _CALL, _error, #_field " " #_value, FIELD(_call, _field), (uint64_t)(_value), NULL }
#define NAMES(_CALL, _call, _field, _id, _error) \
	{ _CALL, _error, #_field " of " #_id, FIELD(_call, _field), 0, &(_id) }

/* A field that is longer than 8 bytes is filled with the value's lowest byte */
static const struct row {
	int call;
	int error;
	const char *what;
	size_t offset;
	size_t width;
	uint64_t value;
	const uint32_t *id;
} rows[] = {
	ROW(QUERY, query, __reserved, 1, -EINVAL),
	ROW(QUERY, query, __reserved, UINT64_MAX, -EINVAL),
	ROW(QUERY, query, flags, UINT32_MAX, 0),

	ROW(START, start, flags, 0, 0),
	ROW(START, start, flags, RDMATENSOR_START_FLAGS + 1, -EINVAL),
	ROW(START, start, flags, RDMATENSOR_START_LISTEN | RDMATENSOR_START_DOMAIN, -EINVAL),
	ROW(START, start, domain_fd, INT32_MIN, 0),
	ROW(START, start, flags, UINT32_MAX, -EINVAL),
	ROW(START, start, worker, 0, -EINVAL),
	ROW(START, start, worker, 'x', -EINVAL),
	ROW(START, start, worker[RDMATENSOR_WORKER_MAX - 1], 'x', 0),
	ROW(START, start, device_name, 'x', -EINVAL),
	ROW(START, start, device_name[0], 'x', -ENODEV),
	ROW(START, start, port, 1, 0),
	ROW(START, start, port, 2, -EINVAL),
	ROW(START, start, port, UINT32_MAX, -EINVAL),
	ROW(START, start, gid_index, UINT32_MAX, -EINVAL),
	ROW(START, start, listen_addr, 0xff, -EINVAL),
	ROW(START, start, listen_addr[0], AF_UNIX, -EINVAL),
	ROW(START, start, listen_addr[0], AF_IB, -EINVAL),
	ROW(START, start, listen_addr[1], 1, -EINVAL),
	ROW(START, start, listen_addr[0], AF_INET6, 0),
	ROW(START, start, ring_entries, 0, 0),
	ROW(START, start, ring_entries, 15, -EINVAL),
	ROW(START, start, ring_entries, 16, 0),
	ROW(START, start, ring_entries, 17, 0),
	ROW(START, start, ring_entries, 1 << 20, 0),
	ROW(START, start, ring_entries, (1 << 20) + 1, -EINVAL),
	ROW(START, start, ring_entries, UINT32_MAX, -EINVAL),
	ROW(START, start, pkey_index, 0, 0),
	ROW(START, start, pkey_index, 1 << 16, -EINVAL),
	ROW(START, start, pkey_index, UINT32_MAX, -EINVAL),
	ROW(START, start, queue_depth, 0, 0),
	ROW(START, start, queue_depth, 15, -EINVAL),
	ROW(START, start, queue_depth, 2 * 64 + 7, -EINVAL),
	ROW(START, start, queue_depth, 2 * 64 + 8, 0),
	ROW(START, start, queue_depth, 16385, -EINVAL),
	ROW(START, start, queue_depth, UINT32_MAX, -EINVAL),
	ROW(START, start, timeout, 1, 0),
	ROW(START, start, timeout, 31, 0),
	ROW(START, start, timeout, 32, -EINVAL),
	ROW(START, start, timeout, UINT32_MAX, -EINVAL),
	ROW(START, start, retry_count, 0, 0),
	ROW(START, start, retry_count, 8, -EINVAL),
	ROW(START, start, retry_count, UINT32_MAX, -EINVAL),
	ROW(START, start, rnr_retry, 0, 0),
	ROW(START, start, rnr_retry, 7, 0),
	ROW(START, start, rnr_retry, 8, -EINVAL),
	ROW(START, start, rnr_retry, UINT32_MAX, -EINVAL),
	ROW(START, start, sl, 7, 0),
	ROW(START, start, sl, 8, -EINVAL),
	ROW(START, start, sl, UINT32_MAX, -EINVAL),
	ROW(START, start, traffic_class, 255, 0),
	ROW(START, start, traffic_class, 256, -EINVAL),
	ROW(START, start, traffic_class, UINT32_MAX, -EINVAL),
	ROW(START, start, mtu, 1, -EINVAL),
	ROW(START, start, mtu, 255, -EINVAL),
	ROW(START, start, mtu, 256, 0),
	ROW(START, start, mtu, 4096, 0),
	ROW(START, start, mtu, 4097, -EINVAL),
	ROW(START, start, mtu, 8192, -EINVAL),
	ROW(START, start, mtu, UINT32_MAX, -EINVAL),
	ROW(START, start, msg_slots, 1, 0),
	ROW(START, start, msg_slots, 63, -EINVAL),
	ROW(START, start, msg_slots, 256, 0),
	ROW(START, start, msg_slots, 512, -EINVAL),
	ROW(START, start, msg_slots, 1024, -EINVAL),
	ROW(START, start, msg_slots, 2048, -EINVAL),
	ROW(START, start, msg_slots, UINT32_MAX, -EINVAL),
	ROW(START, start, msg_slot_bytes, 512, -EINVAL),
	ROW(START, start, msg_slot_bytes, 1023, -EINVAL),
	ROW(START, start, msg_slot_bytes, 1024, 0),
	ROW(START, start, msg_slot_bytes, 32768, 0),
	ROW(START, start, msg_slot_bytes, 65536, -EINVAL),
	ROW(START, start, msg_slot_bytes, 1u << 31, -EINVAL),
	ROW(START, start, ack_batch, 1, 0),
	ROW(START, start, ack_batch, 64, 0),
	ROW(START, start, ack_batch, 65, -EINVAL),
	ROW(START, start, ack_batch, 1025, -EINVAL),
	ROW(START, start, ack_batch, UINT32_MAX, -EINVAL),
	ROW(START, start, lanes, 8, 0),
	ROW(START, start, lanes, 9, -EINVAL),
	ROW(START, start, lanes, UINT32_MAX, -EINVAL),
	ROW(START, start, stripe_bytes, 1, 0),
	ROW(START, start, stripe_bytes, UINT32_MAX - 1, 0),
	ROW(START, start, stripe_bytes, UINT32_MAX, -EINVAL),
	ROW(START, start, stripe_bytes, 1ull << 32, -EINVAL),
	ROW(START, start, stripe_bytes, UINT64_MAX, -EINVAL),
	ROW(START, start, max_channels, 1, 0),
	ROW(START, start, max_channels, 4096, 0),
	ROW(START, start, max_channels, 4097, -EINVAL),
	ROW(START, start, max_channels, UINT32_MAX, -EINVAL),
	ROW(START, start, handshake_ms, 99, -EINVAL),
	ROW(START, start, handshake_ms, 100, 0),
	ROW(START, start, handshake_ms, 600000, 0),
	ROW(START, start, handshake_ms, 600001, -EINVAL),
	ROW(START, start, handshake_ms, UINT32_MAX, -EINVAL),
	ROW(START, start, cancel_ms, 99, -EINVAL),
	ROW(START, start, cancel_ms, 100, 0),
	ROW(START, start, cancel_ms, 600000, 0),
	ROW(START, start, cancel_ms, 600001, -EINVAL),
	ROW(START, start, cancel_ms, UINT32_MAX, -EINVAL),
	ROW(START, start, max_pools, 1, 0),
	ROW(START, start, max_pools, 65536, 0),
	ROW(START, start, max_pools, 65537, -EINVAL),
	ROW(START, start, max_pools, UINT32_MAX, -EINVAL),
	ROW(START, start, cq_poll, 1, 0),
	ROW(START, start, cq_poll, 2, 0),
	ROW(START, start, cq_poll, 3, -EINVAL),
	ROW(START, start, cq_poll, UINT32_MAX, -EINVAL),
	/* Each alone, with 0 in its field, or what good_start() has there */
#define SET_ROW(_name, _value, _least, _most, _kind, _set, ...) \
	ROW(START, start, set, _set, (_least) ? -EINVAL : 0),
	RDMATENSOR_PARAMS(SET_ROW)
	RDMATENSOR_PARAM_SWITCHES(SET_ROW)
	ROW(START, start, set, RDMATENSOR_SET_ALL + 1, -EINVAL),
	ROW(START, start, set, 1ull << 63, -EINVAL),
	ROW(START, start, set, UINT64_MAX, -EINVAL),
	ROW(START, start, lane_bytes, 65535, -EINVAL),
	ROW(START, start, lane_bytes, 65536, 0),
	ROW(START, start, lane_bytes, 67108864, 0),
	ROW(START, start, lane_bytes, 67108865, -EINVAL),
	ROW(START, start, lane_bytes, UINT32_MAX, -EINVAL),
	ROW(START, start, mr_page_bytes, 2048, -EINVAL),
	ROW(START, start, mr_page_bytes, 4096, 0),
	ROW(START, start, mr_page_bytes, 12288, -EINVAL),
	ROW(START, start, mr_page_bytes, 2097152, 0),
	ROW(START, start, mr_page_bytes, 4194304, -EINVAL),
	ROW(START, start, mr_page_bytes, UINT32_MAX, -EINVAL),
	ROW(START, start, mr_mode, RDMATENSOR_MR_MODE_POOL, 0),
	ROW(START, start, mr_mode, RDMATENSOR_MR_MODE_STRICT, 0),
	ROW(START, start, mr_mode, 3, -EINVAL),
	ROW(START, start, mr_mode, UINT32_MAX, -EINVAL),
	ROW(START, start, list_mode, RDMATENSOR_LIST_MODE_ALL, 0),
	ROW(START, start, list_mode, RDMATENSOR_LIST_MODE_NONE, 0),
	ROW(START, start, list_mode, 3, -EINVAL),
	ROW(START, start, list_mode, UINT32_MAX, -EINVAL),
	ROW(START, start, __reserved, 1, -EINVAL),
	ROW(START, start, probe_ms, 9, -EINVAL),
	ROW(START, start, probe_ms, 10, 0),
	ROW(START, start, probe_ms, 600000, 0),
	ROW(START, start, probe_ms, 600001, -EINVAL),
	ROW(START, start, probe_ms, UINT32_MAX, -EINVAL),
	ROW(START, start, cause, 0xff, 0),

	ROW(CONFIGURE, configure, mask, 0, 0),
	ROW(CONFIGURE, configure, mask, 2, -EINVAL),
	ROW(CONFIGURE, configure, mask, UINT32_MAX, -EINVAL),
	ROW(CONFIGURE, configure, flags, 2, -EINVAL),
	ROW(CONFIGURE, configure, flags, UINT32_MAX, -EINVAL),
	ROW(CONFIGURE, configure, __reserved, 1, -EINVAL),

	ROW(STATS, stats, channel, UINT32_MAX, -ENOENT),
	NAMES(STATS, stats, channel, p.b.channel, 0),
	NAMES(STATS, stats, channel, dead_channel, -ENOENT),
	NAMES(STATS, stats, channel, others_channel, -ENOENT),
	ROW(STATS, stats, nr, 0, 0),
	ROW(STATS, stats, nr, UINT32_MAX, 0),
	ROW(STATS, stats, __reserved, 1, -EINVAL),
	ROW(STATS, stats, counters_uptr, 0, -EFAULT),
	ROW(STATS, stats, counters_uptr, 8, -EFAULT),
	ROW(STATS, stats, counters_uptr, KERNEL_ADDR, -EFAULT),
	ROW(STATS, stats, counters_uptr, UINT64_MAX, -EFAULT),

	ROW(POOL_CREATE, pool_create, flags, 1, -EINVAL),
	ROW(POOL_CREATE, pool_create, flags, UINT32_MAX, -EINVAL),
	ROW(POOL_CREATE, pool_create, bytes, 0, -EINVAL),
	ROW(POOL_CREATE, pool_create, bytes, PAGE + 1, 0),
	ROW(POOL_CREATE, pool_create, bytes, 1ull << 43, -EOVERFLOW),
	ROW(POOL_CREATE, pool_create, bytes, (1ull << 43) + 1, -EINVAL),
	ROW(POOL_CREATE, pool_create, bytes, UINT64_MAX, -EINVAL),
	ROW(POOL_CREATE, pool_create, bytes, 1ull << 63, -EINVAL),
	ROW(POOL_CREATE, pool_create, out_pool_id, UINT32_MAX, 0),
	ROW(POOL_CREATE, pool_create, peers, 3, -EINVAL),
	ROW(POOL_CREATE, pool_create, peers, UINT32_MAX, -EINVAL),
	ROW(POOL_CREATE, pool_create, out_mmap_offset, UINT64_MAX, 0),

	ROW(POOL_REGISTER, pool_register, flags, RDMATENSOR_REGISTER_FLAGS + 1, -EINVAL),
	ROW(POOL_REGISTER, pool_register, flags, RDMATENSOR_REGISTER_READ_ONLY, -EINVAL),
	ROW(POOL_REGISTER, pool_register, flags, UINT32_MAX, -EINVAL),
	ROW(POOL_REGISTER, pool_register, addr, 0, -EFAULT),
	ROW(POOL_REGISTER, pool_register, addr, 1, -EINVAL),
	ROW(POOL_REGISTER, pool_register, addr, UINT64_MAX, -EINVAL),
	ROW(POOL_REGISTER, pool_register, addr, UINT64_MAX & ~(PAGE - 1ull), -EFAULT),
	ROW(POOL_REGISTER, pool_register, bytes, 0, -EINVAL),
	ROW(POOL_REGISTER, pool_register, bytes, PAGE - 1, -EINVAL),
	ROW(POOL_REGISTER, pool_register, bytes, PAGE, 0),
	ROW(POOL_REGISTER, pool_register, bytes, UINT64_MAX, -EINVAL),
	ROW(POOL_REGISTER, pool_register, bytes, UINT64_MAX & ~(PAGE - 1ull), -EFAULT),
	ROW(POOL_REGISTER, pool_register, peers, RDMATENSOR_POOL_PEERS_READ, 0),
	ROW(POOL_REGISTER, pool_register, peers, RDMATENSOR_POOL_PEERS_READ + 1, -EINVAL),
	ROW(POOL_REGISTER, pool_register, peers, UINT32_MAX, -EINVAL),

	ROW(POOL_IMPORT, pool_import, flags, RDMATENSOR_IMPORT_FLAGS + 1, -EINVAL),
	ROW(POOL_IMPORT, pool_import, flags, RDMATENSOR_IMPORT_READ_ONLY, -EINVAL),
	ROW(POOL_IMPORT, pool_import, flags, UINT32_MAX, -EINVAL),
	ROW(POOL_IMPORT, pool_import, fd, -1, -EBADF),
	ROW(POOL_IMPORT, pool_import, fd, 0, -EINVAL),
	ROW(POOL_IMPORT, pool_import, fd, INT32_MAX, -EBADF),
	ROW(POOL_IMPORT, pool_import, fd, INT32_MIN, -EBADF),
	ROW(POOL_IMPORT, pool_import, peers, RDMATENSOR_POOL_PEERS_READ, 0),
	ROW(POOL_IMPORT, pool_import, peers, RDMATENSOR_POOL_PEERS_READ + 1, -EINVAL),
	ROW(POOL_IMPORT, pool_import, peers, UINT32_MAX, -EINVAL),

	ROW(DOMAIN_CREATE, domain_create, flags, 0, 0),
	ROW(DOMAIN_CREATE, domain_create, flags, RDMATENSOR_DOMAIN_CLOEXEC << 1, -EINVAL),
	ROW(DOMAIN_CREATE, domain_create, flags, UINT32_MAX, -EINVAL),
	ROW(DOMAIN_CREATE, domain_create, out_fd, INT32_MAX, 0),
	ROW(DOMAIN_CREATE, domain_create, __reserved, 1, -EINVAL),

	ROW(POOL_QUERY, pool_query, pool_id, 0, -ENOENT),
	ROW(POOL_QUERY, pool_query, pool_id, UINT32_MAX, -ENOENT),
	NAMES(POOL_QUERY, pool_query, pool_id, dead_pool, -ENOENT),
	NAMES(POOL_QUERY, pool_query, pool_id, others_pool, -ENOENT),
	ROW(POOL_QUERY, pool_query, flags, RDMATENSOR_POOL_NEXT << 1, -EINVAL),
	ROW(POOL_QUERY, pool_query, flags, UINT32_MAX, -EINVAL),
	ROW(POOL_QUERY, pool_query, bytes, UINT64_MAX, 0),

	ROW(LASTING_QUERY, lasting_query, cursor, UINT32_MAX, -ENOENT),
	ROW(LASTING_QUERY, lasting_query, cursor, UINT32_MAX + 1ull, -EINVAL),
	ROW(LASTING_QUERY, lasting_query, cursor, UINT64_MAX, -EINVAL),
	ROW(LASTING_QUERY, lasting_query, flags, UINT32_MAX, 0),
	ROW(LASTING_QUERY, lasting_query, __reserved, 1, -EINVAL),

	ROW(DUMP, dump, command, 0, -EINVAL),
	ROW(DUMP, dump, command, RDMATENSOR_NL_CMD_EVENT, -EINVAL),
	ROW(DUMP, dump, command, RDMATENSOR_NL_CMD_TENSOR_GET + 1, -EINVAL),
	ROW(DUMP, dump, command, UINT32_MAX, -EINVAL),
	ROW(DUMP, dump, context, UINT32_MAX, 0),
	ROW(DUMP, dump, buf_uptr, 0, -EFAULT),
	ROW(DUMP, dump, buf_uptr, UINT64_MAX, -EFAULT),
	ROW(DUMP, dump, room, 0, -EINVAL),
	ROW(DUMP, dump, room, RDMATENSOR_DUMP_ROOM_MIN - 1, -EINVAL),
	ROW(DUMP, dump, room, UINT32_MAX, 0),
	ROW(DUMP, dump, flags, UINT32_MAX, 0),
	ROW(DUMP, dump, out_bytes, UINT32_MAX, 0),
	ROW(DUMP, dump, generation, UINT32_MAX, 0),
	ROW(DUMP, dump, __reserved, 1, -EINVAL),

	ROW(POOL_DESTROY, pool_destroy, pool_id, 0, -ENOENT),
	ROW(POOL_DESTROY, pool_destroy, pool_id, UINT32_MAX, -ENOENT),
	NAMES(POOL_DESTROY, pool_destroy, pool_id, dead_pool, -ENOENT),
	NAMES(POOL_DESTROY, pool_destroy, pool_id, others_pool, -ENOENT),

	ROW(POOL_ALLOC, pool_alloc, pool_id, 0, -ENOENT),
	ROW(POOL_ALLOC, pool_alloc, pool_id, UINT32_MAX, -ENOENT),
	NAMES(POOL_ALLOC, pool_alloc, pool_id, dead_pool, -ENOENT),
	NAMES(TABLE_EXPORT, table_export, pool_id, dead_pool, -ENOENT),
	NAMES(TABLE_EXPORT, table_export, pool_id, others_pool, -ENOENT),
	NAMES(POOL_ALLOC, pool_alloc, pool_id, others_pool, -ENOENT),
	ROW(POOL_ALLOC, pool_alloc, bytes, 0, -EINVAL),
	ROW(POOL_ALLOC, pool_alloc, bytes, POOL_BYTES - 128, 0),
	ROW(POOL_ALLOC, pool_alloc, bytes, POOL_BYTES - 127, -ENOSPC),
	ROW(POOL_ALLOC, pool_alloc, bytes, POOL_BYTES + 1, -ENOSPC),
	ROW(POOL_ALLOC, pool_alloc, bytes, 1ull << 63, -ENOSPC),
	ROW(POOL_ALLOC, pool_alloc, bytes, UINT64_MAX, -ENOSPC),
	ROW(POOL_ALLOC, pool_alloc, out_offset, UINT64_MAX, 0),

	ROW(CONNECT, connect, flags, RDMATENSOR_CONNECT_NOWAIT, 0),
	ROW(CONNECT, connect, flags, 2, -EINVAL),
	ROW(CONNECT, connect, flags, UINT32_MAX, -EINVAL),
	ROW(CONNECT, connect, addr, 0, -EINVAL),
	ROW(CONNECT, connect, addr, 0xff, -EINVAL),
	ROW(CONNECT, connect, addr[0], AF_UNIX, -EINVAL),
	ROW(CONNECT, connect, addr[0], AF_IB, -EINVAL),
	ROW(CONNECT, connect, out_channel, UINT32_MAX, 0),
	ROW(CONNECT, connect, worker, 0, 0),
	ROW(CONNECT, connect, worker, 'a', -EINVAL),
	ROW(CONNECT, connect, worker[0], 'b', -ENOENT),
	ROW(CONNECT, connect, user_data, UINT64_MAX, 0),
	ROW(CONNECT, connect, timeout_ms, UINT32_MAX, 0),
	ROW(CONNECT, connect, timeout_ms, INT32_MAX, 0),
	ROW(CONNECT, connect, __reserved, 1, -EINVAL),
	ROW(CONNECT, connect, cause, 0xff, 0),

	ROW(DISCONNECT, disconnect, channel, 0, -ENOENT),
	ROW(DISCONNECT, disconnect, channel, UINT32_MAX, -ENOENT),
	NAMES(DISCONNECT, disconnect, channel, dead_channel, -ENOENT),
	NAMES(DISCONNECT, disconnect, channel, others_channel, -ENOENT),

	ROW(CHANNEL_QUERY, channel_query, channel, 0, -ENOENT),
	ROW(CHANNEL_QUERY, channel_query, channel, UINT32_MAX, -ENOENT),
	NAMES(CHANNEL_QUERY, channel_query, channel, dead_channel, -ENOENT),
	NAMES(CHANNEL_QUERY, channel_query, channel, others_channel, -ENOENT),
	/* There is none after this one */
	ROW(CHANNEL_QUERY, channel_query, flags, RDMATENSOR_CHANNEL_NEXT, -ENOENT),
	ROW(CHANNEL_QUERY, channel_query, flags, 2, -EINVAL),
	ROW(CHANNEL_QUERY, channel_query, flags, UINT32_MAX, -EINVAL),

	ROW(STEP_ABORT, step_abort, status, 0, -EINVAL),
	ROW(STEP_ABORT, step_abort, status, 1, -EINVAL),
	ROW(STEP_ABORT, step_abort, status, -1, 0),
	ROW(STEP_ABORT, step_abort, status, -4095, 0),
	ROW(STEP_ABORT, step_abort, status, -EAGAIN, -EINVAL),
	ROW(STEP_ABORT, step_abort, status, -4096, -EINVAL),
	ROW(STEP_ABORT, step_abort, status, INT_MAX, -EINVAL),
	ROW(STEP_ABORT, step_abort, status, INT_MIN, -EINVAL),
	ROW(STEP_ABORT, step_abort, step_id, INT64_MIN, 0),
	ROW(STEP_ABORT, step_abort, step_id, INT64_MAX, 0),
	ROW(STEP_ABORT, step_abort, text_uptr, 0, -EFAULT),
	ROW(STEP_ABORT, step_abort, text_uptr, KERNEL_ADDR, -EFAULT),
	ROW(STEP_ABORT, step_abort, text_uptr, UINT64_MAX - 1, -EFAULT),
	ROW(STEP_ABORT, step_abort, text_len, 0, 0),
	ROW(STEP_ABORT, step_abort, text_len, RDMATENSOR_TEXT_MAX, 0),
	ROW(STEP_ABORT, step_abort, text_len, RDMATENSOR_TEXT_MAX + 1, 0),
	ROW(STEP_ABORT, step_abort, text_len, RDMATENSOR_STATUS_TEXT_MAX, 0),
	ROW(STEP_ABORT, step_abort, text_len, RDMATENSOR_STATUS_TEXT_MAX + 1, -EINVAL),
	ROW(STEP_ABORT, step_abort, text_len, UINT32_MAX, -EINVAL),
	ROW(STEP_ABORT, step_abort, __reserved, 1, -EINVAL),

	ROW(SUBMIT, submit, op_size, 0, -EINVAL),
	/* What its first version had is enough */
	ROW(SUBMIT, submit, op_size, offsetof(struct rdmatensor_op, ids_uptr) - 1, -EINVAL),
	ROW(SUBMIT, submit, op_size, offsetof(struct rdmatensor_op, ids_uptr), 0),
	ROW(SUBMIT, submit, op_size, sizeof(struct rdmatensor_op) + 8, 0),
	ROW(SUBMIT, submit, op_size, PAGE + 1, -E2BIG),
	ROW(SUBMIT, submit, op_size, UINT32_MAX, -E2BIG),
	ROW(SUBMIT, submit, ops_uptr, 0, -EFAULT),
	ROW(SUBMIT, submit, ops_uptr, 8, -EFAULT),
	ROW(SUBMIT, submit, ops_uptr, KERNEL_ADDR, -EFAULT),
	ROW(SUBMIT, submit, ops_uptr, UINT64_MAX - 7, -EFAULT),
	ROW(SUBMIT, submit, nr_ops, 0, 0),
	ROW(SUBMIT, submit, nr_ops, RDMATENSOR_SUBMIT_MAX + 1, -EINVAL),
	ROW(SUBMIT, submit, nr_ops, UINT32_MAX, -EINVAL),
	ROW(SUBMIT, submit, wait_nr, 4097, -EINVAL),
	ROW(SUBMIT, submit, wait_nr, UINT32_MAX, -EINVAL),
	ROW(SUBMIT, submit, flags, 2, -EINVAL),
	ROW(SUBMIT, submit, flags, UINT32_MAX, -EINVAL),
	/* Head 0 has been reached */
	ROW(SUBMIT, submit, flags, RDMATENSOR_SUBMIT_HEAD, 0),
	ROW(SUBMIT, submit, wait_head, 1, -EINVAL),
	ROW(SUBMIT, submit, wait_head, UINT32_MAX, -EINVAL),
	ROW(SUBMIT, submit, deadline_ns, 1, 0),
	ROW(SUBMIT, submit, deadline_ns, UINT64_MAX, 0),
	ROW(SUBMIT, submit, out_done, UINT32_MAX, 0),
	ROW(SUBMIT, submit, out_error, 1, 0),

	ROW(TABLE_EXPORT, table_export, flags, 1, -EINVAL),
	ROW(TABLE_EXPORT, table_export, name_uptr, 0, -EFAULT),
	ROW(TABLE_EXPORT, table_export, name_uptr, KERNEL_ADDR, -EFAULT),
	ROW(TABLE_EXPORT, table_export, name_len, 0, -EINVAL),
	ROW(TABLE_EXPORT, table_export, name_len, RDMATENSOR_NAME_MAX + 1, -EINVAL),
	ROW(TABLE_EXPORT, table_export, pool_id, 0, -ENOENT),
	ROW(TABLE_EXPORT, table_export, offset, 64, -EINVAL),
	ROW(TABLE_EXPORT, table_export, offset, PAGE, 0),
	ROW(TABLE_EXPORT, table_export, offset, 2 * PAGE, -EINVAL),
	ROW(TABLE_EXPORT, table_export, offset, 0 - (uint64_t)PAGE, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_start, 8, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_start, UINT64_MAX, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_end, 0, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_end, 17, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_end, INT64_MAX, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_end, UINT64_MAX, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_bytes, 0, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_bytes, 1, 0),
	ROW(TABLE_EXPORT, table_export, row_bytes, RDMATENSOR_ROW_MAX + 1, -EINVAL),
	ROW(TABLE_EXPORT, table_export, row_bytes, (1ull << 32) + 512, -EINVAL),
	ROW(TABLE_EXPORT, table_export, stride, 511, -EINVAL),
	ROW(TABLE_EXPORT, table_export, stride, 1024, 0),
	ROW(TABLE_EXPORT, table_export, stride, 1ull << 62, -EINVAL),
	ROW(TABLE_EXPORT, table_export, stride, UINT64_MAX, -EINVAL),
	ROW(TABLE_EXPORT, table_export, data_type, 0, -EINVAL),
	ROW(TABLE_EXPORT, table_export, data_type, RDMATENSOR_DT_MAX + 1, -EINVAL),

	ROW(TABLE_OPEN, table_open, flags, RDMATENSOR_TABLE_NOWAIT, 0),
	ROW(TABLE_OPEN, table_open, flags, 8, -EINVAL),
	ROW(TABLE_OPEN, table_open, flags, 3, -EINVAL),
	ROW(TABLE_OPEN, table_open, flags, RDMATENSOR_TABLE_ORDER, -EINVAL),
	ROW(TABLE_OPEN, table_open, name_uptr, 8, -EFAULT),
	ROW(TABLE_OPEN, table_open, name_len, 0, -EINVAL),
	ROW(TABLE_OPEN, table_open, name_len, 2, -ENOENT),
	ROW(TABLE_OPEN, table_open, name_len, UINT32_MAX, -EINVAL),
	ROW(TABLE_OPEN, table_open, channels_uptr, 0, -EFAULT),
	ROW(TABLE_OPEN, table_open, channels_uptr, KERNEL_ADDR, -EFAULT),
	ROW(TABLE_OPEN, table_open, nr_channels, 0, -EINVAL),
	ROW(TABLE_OPEN, table_open, nr_channels, RDMATENSOR_OWNERS_MAX + 1, -EINVAL),
	ROW(TABLE_OPEN, table_open, nr_caches, 1, -EFAULT),
	ROW(TABLE_OPEN, table_open, nr_caches, UINT32_MAX, -EINVAL),
	ROW(TABLE_OPEN, table_open, order_nr, 1, -EINVAL),
	ROW(TABLE_OPEN, table_open, order_pool_id, 1, -EINVAL),
	ROW(TABLE_OPEN, table_open, order_offset, 64, -EINVAL),
	ROW(TABLE_OPEN, table_open, timeout_ms, UINT32_MAX, 0),
	ROW(TABLE_OPEN, table_open, __reserved, 1, -EINVAL),

	ROW(STATUS_TEXT, status_text, text_id, 0, -ENOENT),
	ROW(STATUS_TEXT, status_text, text_id, UINT32_MAX, -ENOENT),
	ROW(STATUS_TEXT, status_text, text_uptr, 0, -EFAULT),
	ROW(STATUS_TEXT, status_text, text_uptr, KERNEL_ADDR, -EFAULT),
	ROW(STATUS_TEXT, status_text, text_uptr, UINT64_MAX - 1, -EFAULT),
	ROW(STATUS_TEXT, status_text, text_len, 0, 0),
	ROW(STATUS_TEXT, status_text, text_len, UINT32_MAX, 0),
	ROW(STATUS_TEXT, status_text, __reserved, 1, -EINVAL),

	ROW(TABLE_CLOSE, table_close, table, 0, -ENOENT),
	ROW(TABLE_CLOSE, table_close, table, UINT32_MAX, -ENOENT),
};

static void set_field(void *at, size_t width, uint64_t value)
{
	if (width > 8)
		memset(at, (int)value, width);
	else
		memcpy(at, &value, width);
}

TEST(fields_of_calls)
{
	const struct row *row;
	union arg arg;

	open_all();
	for (row = rows; row < rows + sizeof(rows) / sizeof(*rows); row++) {
		const struct call *call = &calls[row->call];

		prepare(call, &arg);
		set_field(arg.bytes + row->offset, row->width, row->id ? *row->id : row->value);
		if (row->error)
			refused(call, &arg, row->what, row->error);
		else
			succeeds(call, &arg, row->what);
	}
	printf("# %zu values\n", sizeof(rows) / sizeof(*rows));

	/* Arrays that end where memory does */
	prepare(&calls[STATS], &arg);
	arg.stats.counters_uptr = rdmatensor_op_ptr(edge + PAGE - sizeof(counters) + 8);
	refused(&calls[STATS], &arg, "counters half in no memory", -EFAULT);
	prepare(&calls[STEP_ABORT], &arg);
	arg.step_abort.text_uptr = rdmatensor_op_ptr(edge + PAGE - 3);
	refused(&calls[STEP_ABORT], &arg, "text half in no memory", -EFAULT);
	prepare(&calls[SUBMIT], &arg);
	memcpy(edge + PAGE - 100, publish_op, 100);
	arg.submit.ops_uptr = rdmatensor_op_ptr(edge + PAGE - 100);
	refused(&calls[SUBMIT], &arg, "operation half in no memory", -EFAULT);
	EQ(arg.submit.out_error, -EFAULT);
	EQ(arg.submit.out_done, 0);
	prepare(&calls[SUBMIT], &arg);
	arg.submit.op_size = sizeof(publish_op[0]) + 8;
	set_field(&publish_op[1], 8, 1ull << 63);
	refused(&calls[SUBMIT], &arg, "operation with a tail that is not zero", -E2BIG);
	memset(publish_op, 0, sizeof(publish_op));
	close_all();
}

/*
 * The operations of SUBMIT, in the same way.
 */

enum {
	PUBLISH, DEAD, FAILED, WITHDRAW, FETCH, ALLOC, CANCEL, FREE, GATHER, SHARED, RELEASE,
	PROXIED, LIST, SLICED, REVEAL, STRIDED, VIEW,
};

static int offered, pending, held, hidden;
static uint64_t held_at;

static void good_publish(struct rdmatensor_op *op)
{
	rdmatensor_prep_publish(op, "p", 1, p.b.pool.id, region, 64, RDMATENSOR_DT_UINT8, 1, dims,
				1, 1);
}

static void good_dead(struct rdmatensor_op *op)
{
	rdmatensor_prep_publish_dead(op, "p", 1, RDMATENSOR_DT_UINT8, 1, dims, 1, 1);
}

static void good_failed(struct rdmatensor_op *op)
{
	rdmatensor_prep_publish_failed(op, "p", 1, -EIO, "text", 1, 1);
}

static void undo_publish(const struct rdmatensor_op *op)
{
	withdraw((const char *)(uintptr_t)op->name_uptr, op->name_len, op->step_id);
	if (op->uses)
		EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, op->user_data, NULL),
		   op->flags & RDMATENSOR_OP_COPY ? 0 : -ECANCELED);
}

static void good_withdraw(struct rdmatensor_op *op)
{
	if (!offered) {
		good_publish(op);
		op->uses = 0;
		EQ(side_do(&p.b, op), 0);
		offered = 1;
	}
	rdmatensor_prep_withdraw(op, "p", 1, 2);
}

static void undo_withdraw(const struct rdmatensor_op *op)
{
	offered = 0;
	EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, op->user_data, NULL), 0);
}

static void good_fetch(struct rdmatensor_op *op)
{
	rdmatensor_prep_fetch(op, p.b.channel, "t", 5, p.b.pool.id, destination, 64, 0, 3);
}

static void undo_fetch(const struct rdmatensor_op *op)
{
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, op->user_data, NULL), 0);
	CHECK(filled(side_at(&p.b, destination), 64, 1));
	memset(side_at(&p.b, destination), 0, 64);
}

/* Of 64 bytes with one dim */
static const struct rdmatensor_range middle = { 8, 16 };

static void good_sliced(struct rdmatensor_op *op)
{
	good_fetch(op);
	rdmatensor_prep_slice(op, &middle, 1);
}

static void undo_sliced(const struct rdmatensor_op *op)
{
	unsigned char whole[64];

	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, op->user_data, NULL), op->ndims > 1 ? -ERANGE : 0);
	fill(whole, 64, 1);
	CHECK(op->ndims > 1 || !memcmp(side_at(&p.b, destination), whole + 8, 16));
	memset(side_at(&p.b, destination), 0, 64);
}

static void good_alloc(struct rdmatensor_op *op)
{
	rdmatensor_prep_fetch_alloc(op, p.b.channel, "t", 5, p.b.pool.id, 0, 0, 3);
}

static void undo_alloc(const struct rdmatensor_op *op)
{
	struct rdmatensor_cqe cqe;

	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, op->user_data, &cqe), 0);
	CHECK(filled(side_at(&p.b, cqe.offset), 64, 1));
	EQ(rdmatensor_pool_free(p.b.rt, &p.b.pool, cqe.offset), 0);
}

/* Where nothing could be registered */
static unsigned char anywhere[65];

static void good_proxied(struct rdmatensor_op *op)
{
	rdmatensor_prep_fetch_memory(op, p.b.channel, "t", 5, anywhere + 1, 64, p.b.pool.id, 0, 3);
}

static void undo_proxied(const struct rdmatensor_op *op)
{
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, op->user_data, NULL), 0);
	CHECK(filled(anywhere + 1, 64, 1));
	memset(anywhere, 0, sizeof(anywhere));
}

static void good_list(struct rdmatensor_op *op)
{
	rdmatensor_prep_list(op, p.b.channel, "t", p.b.pool.id, rows_wanted, 1024, 0, 0, 6);
}

static void undo_list(const struct rdmatensor_op *op)
{
	const struct rdmatensor_list_entry *entry = (void *)side_at(&p.b, rows_wanted);
	struct rdmatensor_cqe cqe;

	EQ(side_next(&p.b, RDMATENSOR_CQE_LIST, op->user_data, &cqe), 0);
	EQ(cqe.cursor, 0);
	/* Behind the last one there is none, and the peer has no other one */
	if (!op->target && op->channel == p.b.channel) {
		EQ(cqe.tensor_bytes, entry->bytes);
		CHECK(!strcmp(rdmatensor_list_name(entry), "t"));
	}
	memset(side_at(&p.b, rows_wanted), 0, 1024);
}

static void good_cancel(struct rdmatensor_op *op)
{
	if (!pending) {
		rdmatensor_prep_fetch(op, p.b.channel, "never", 1, p.b.pool.id, destination, 64, 0,
				      77);
		EQ(side_do(&p.b, op), 0);
		pending = 1;
	}
	rdmatensor_prep_cancel(op, 77);
}

static void undo_cancel(const struct rdmatensor_op *op)
{
	pending = 0;
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, op->target, NULL), -ECANCELED);
}

static void good_free(struct rdmatensor_op *op)
{
	if (!held) {
		held_at = side_alloc(&p.b, 256);
		held = 1;
	}
	rdmatensor_prep_free(op, p.b.pool.id, held_at);
}

static void undo_free(const struct rdmatensor_op *op)
{
	(void)op;
	held = 0;
}

/* Rows 3 and 0, of 64 bits; of 32, and in this order of bytes, they would be 3, 0 too */
static const uint64_t ids[2] = { 3, 0 };

static void good_gather(struct rdmatensor_op *op)
{
	rdmatensor_prep_gather(op, rows_table, ids, 2, p.b.pool.id, rows_wanted, 1024, 0, 4);
}

static void undo_gather(const struct rdmatensor_op *op)
{
	struct rdmatensor_cqe cqe;

	EQ(side_next(&p.b, RDMATENSOR_CQE_GATHER, op->user_data, &cqe), 0);
	EQ(cqe.tensor_bytes, 1024);
	CHECK(!memcmp(side_at(&p.b, rows_wanted), (char *)rows_pool.base + PAGE + 3 * 512, 512));
	CHECK(!memcmp(side_at(&p.b, rows_wanted + 512), (char *)rows_pool.base + PAGE, 512));
	memset(side_at(&p.b, rows_wanted), 0, 1024);
}

static void good_reveal(struct rdmatensor_op *op)
{
	if (!hidden) {
		rdmatensor_prep_publish_failed(op, "g", 1, -EIO, NULL, 0, 0);
		rdmatensor_prep_in_generation(op, 3);
		EQ(side_do(&p.b, op), 0);
		hidden = 1;
	}
	rdmatensor_prep_reveal(op, 3, 1, 9);
}

static void undo_reveal(const struct rdmatensor_op *op)
{
	struct rdmatensor_op withdraw;

	EQ(side_next(&p.b, RDMATENSOR_CQE_REVEAL, op->user_data, NULL), 0);
	hidden = 0;
	rdmatensor_prep_withdraw_generation(&withdraw, 3, 1, 10);
	EQ(side_do(&p.b, &withdraw), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_WITHDRAW, 10, NULL), 0);
}

static void good_shared(struct rdmatensor_op *op)
{
	rdmatensor_prep_fetch_shared(op, "s", 6, 0, 5);
}

static uint32_t next_share(uint64_t user_data)
{
	struct rdmatensor_cqe cqe;

	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, user_data, &cqe), 0);
	EQ(cqe.pool_id, rows_pool.id);
	CHECK(filled((unsigned char *)rows_pool.base + cqe.offset, 64, 2));
	return cqe.share_id;
}

static void undo_shared(const struct rdmatensor_op *op)
{
	struct rdmatensor_op release;

	rdmatensor_prep_release(&release, next_share(op->user_data));
	EQ(side_do(&p.b, &release), 0);
}

static void good_release(struct rdmatensor_op *op)
{
	if (!share) {
		good_shared(op);
		EQ(side_do(&p.b, op), 0);
		share = next_share(op->user_data);
	}
	rdmatensor_prep_release(op, share);
}

/* Of 64 bytes, which lie together */
static const struct rdmatensor_stride together = { 1, 64 };

static void good_strided(struct rdmatensor_op *op)
{
	good_fetch(op);
	rdmatensor_prep_strides(op, &together, 1);
}

static void good_view(struct rdmatensor_op *op)
{
	good_publish(op);
	rdmatensor_prep_strides(op, &together, 1);
}

static void undo_release(const struct rdmatensor_op *op)
{
	EQ(side_do(&p.b, op), -ENOENT);
	share = 0;
}

static const struct kind {
	const char *name;
	void (*good)(struct rdmatensor_op *op);
	void (*undo)(const struct rdmatensor_op *op);
} kinds[] = {
	[PUBLISH] = { "PUBLISH", good_publish, undo_publish },
	[DEAD] = { "PUBLISH, dead", good_dead, undo_publish },
	[FAILED] = { "PUBLISH, failed", good_failed, undo_publish },
	[WITHDRAW] = { "WITHDRAW", good_withdraw, undo_withdraw },
	[FETCH] = { "FETCH", good_fetch, undo_fetch },
	[ALLOC] = { "FETCH, allocating", good_alloc, undo_alloc },
	[CANCEL] = { "CANCEL", good_cancel, undo_cancel },
	[FREE] = { "FREE", good_free, undo_free },
	[GATHER] = { "GATHER", good_gather, undo_gather },
	[SHARED] = { "FETCH, shared", good_shared, undo_shared },
	[RELEASE] = { "RELEASE", good_release, undo_release },
	[PROXIED] = { "FETCH, proxied", good_proxied, undo_proxied },
	[LIST] = { "LIST", good_list, undo_list },
	[SLICED] = { "FETCH of a slice", good_sliced, undo_sliced },
	[REVEAL] = { "REVEAL", good_reveal, undo_reveal },
	[STRIDED] = { "FETCH with strides", good_strided, undo_fetch },
	[VIEW] = { "PUBLISH with strides", good_view, undo_publish },
};

#define NR_KINDS (sizeof(kinds) / sizeof(*kinds))

/* What tells whether an operation was taken, wholly or in part */
static void look(uint64_t seen[6])
{
	struct rdmatensor_query query;

	EQ(rdmatensor_query(p.b.rt, &query), 0);
	seen[0] = side_stat(&p.b, RDMATENSOR_STAT_PUBLISHED);
	seen[1] = side_stat(&p.b, RDMATENSOR_STAT_FETCHES);
	seen[2] = side_stat(&p.b, RDMATENSOR_STAT_RELEASED);
	seen[3] = side_stat(&p.b, RDMATENSOR_STAT_FETCH_ERRORS);
	seen[4] = side_stat(&p.b, RDMATENSOR_STAT_GATHERS);
	seen[5] = side_stat(&p.b, RDMATENSOR_STAT_LISTS);
}

/*
 * Between two others that are right: the first is taken, this one and the third are
 * not, nothing of it is seen, and without the fault it is taken.
 */
static void op_refused(const struct kind *kind, const struct rdmatensor_op *bad, const char *what,
		       int error)
{
	struct rdmatensor_op ops[3], good;
	uint64_t before[6], after[6];
	unsigned int done = 9;
	int i, ret;

	rdmatensor_prep_publish_failed(&ops[0], "first", 1, -EIO, NULL, 0, 0);
	ops[1] = *bad;
	rdmatensor_prep_publish_failed(&ops[2], "third", 1, -EIO, NULL, 0, 0);
	look(before);
	ret = rdmatensor_submit(p.b.rt, ops, 3, 0, 0, &done);
	if (ret != error || done != 1)
		test_fail(__FILE__, __LINE__, "%s, %s: %d, %u done, expected %d", kind->name,
			  what, ret, done, error);
	look(after);
	EQ(after[0], before[0] + 1);
	for (i = 1; i < 6; i++)
		EQ(after[i], before[i]);
	withdraw("first", 5, 1);
	rdmatensor_prep_withdraw(&ops[0], "third", 1, 0);
	EQ(side_do(&p.b, &ops[0]), -ENOENT);

	/* Alone, it is the call's own error */
	ret = side_do(&p.b, bad);
	if (ret != error)
		test_fail(__FILE__, __LINE__, "%s, %s, alone: %d, expected %d", kind->name, what,
			  ret, error);
	kind->good(&good);
	ret = side_do(&p.b, &good);
	if (ret)
		test_fail(__FILE__, __LINE__, "%s, right again after %s: %d", kind->name, what,
			  ret);
	kind->undo(&good);
}

#define K(_kind) (1 << (_kind))
#define PUBLISHES (K(PUBLISH) | K(DEAD) | K(FAILED))
#define FETCHES (K(FETCH) | K(ALLOC) | K(PROXIED))
#define NAMED (PUBLISHES | FETCHES | K(SHARED) | K(WITHDRAW))
#define ALL (NAMED | K(CANCEL) | K(FREE) | K(GATHER) | K(RELEASE) | K(LIST) | K(REVEAL))
#define TIMED (FETCHES | K(SHARED) | K(GATHER) | K(LIST))
#define MAY_SHARE (K(PUBLISH) | K(DEAD) | K(SHARED))
#define PLACELESS (K(FAILED) | K(WITHDRAW) | K(CANCEL) | K(SHARED) | K(RELEASE) | K(REVEAL))
#define TARGETED (K(WITHDRAW) | K(CANCEL) | K(RELEASE) | K(LIST) | K(REVEAL))
#define PLACED (K(PUBLISH) | K(FETCH) | K(GATHER) | K(LIST))

#define OP(_kinds, _field, _value, _error) \
	{ _kinds, _error, #_field " " #_value, FIELD(op, _field), (uint64_t)(_value), NULL }
#define OP_NAMES(_kinds, _field, _id, _error) \
	{ _kinds, _error, #_field " of " #_id, FIELD(op, _field), 0, &(_id) }

static const struct row op_rows[] = {
	OP(ALL, opcode, RDMATENSOR_OP_REVEAL + 1, -EOPNOTSUPP),
	OP(ALL, opcode, UINT16_MAX, -EOPNOTSUPP),
	OP(ALL & ~K(GATHER), flags, RDMATENSOR_OP_IDS32, -EINVAL),
	OP(K(GATHER), flags, RDMATENSOR_OP_IDS32, 0),
	OP(ALL & ~(K(PUBLISH) | K(DEAD)), flags, RDMATENSOR_OP_COPY, -EINVAL),
	OP(K(PUBLISH), flags, RDMATENSOR_OP_COPY, 0),
	OP(ALL & ~FETCHES, flags, RDMATENSOR_OP_KEEP, -EINVAL),
	OP(K(FETCH), flags, RDMATENSOR_OP_KEEP, 0),
	OP(K(ALLOC), flags, RDMATENSOR_OP_KEEP | RDMATENSOR_OP_ALLOC, -EINVAL),
	OP(ALL & ~(K(WITHDRAW) | K(REVEAL)), flags, RDMATENSOR_OP_QUIET, -EINVAL),
	OP(ALL & ~(FETCHES | K(SHARED)), flags, RDMATENSOR_OP_NEWEST, -EINVAL),
	OP(K(FETCH), flags, RDMATENSOR_OP_NEWEST, 0),
	OP(K(FETCH), flags, RDMATENSOR_OP_NEWEST | RDMATENSOR_OP_KEEP, -EINVAL),
	OP(K(PROXIED), flags, RDMATENSOR_OP_NEWEST | RDMATENSOR_OP_PROXY, 0),
	OP(K(SHARED), flags, RDMATENSOR_OP_NEWEST | RDMATENSOR_OP_SHARE, 0),
	OP(ALL & ~(FETCHES | K(SHARED)), flags, RDMATENSOR_OP_NOWAIT, -EINVAL),
	OP(K(FETCH), flags, RDMATENSOR_OP_NOWAIT | RDMATENSOR_OP_KEEP, 0),
	/* One that is used up, and names that a generation has none of */
	OP(ALL, flags, RDMATENSOR_OP_GENERATION, -EINVAL),
	OP(K(DEAD), flags, RDMATENSOR_OP_GENERATION | RDMATENSOR_OP_DEAD, -EINVAL),
	OP(K(FAILED), flags, RDMATENSOR_OP_GENERATION | RDMATENSOR_OP_FAILED, -EINVAL),
	OP(ALL & ~K(PROXIED), flags, RDMATENSOR_OP_PROXY, -EINVAL),
	OP(K(PROXIED), flags, RDMATENSOR_OP_PROXY | RDMATENSOR_OP_KEEP, 0),
	OP(K(PROXIED), flags, RDMATENSOR_OP_PROXY | RDMATENSOR_OP_ALLOC, -EINVAL),
	OP(K(PROXIED), flags, RDMATENSOR_OP_PROXY | RDMATENSOR_OP_SHARE, -EINVAL),
	OP(K(PROXIED), flags, 0, -EINVAL),
	OP(K(PROXIED), proxy_pool_id, 0, -EINVAL),
	OP(K(PROXIED), proxy_pool_id, UINT32_MAX, -EINVAL),
	OP_NAMES(K(PROXIED), proxy_pool_id, dead_pool, -EINVAL),
	OP_NAMES(K(PROXIED), proxy_pool_id, others_pool, -EINVAL),
	OP(ALL & ~K(PROXIED), proxy_pool_id, 1, -EINVAL),
	OP(ALL & ~K(PROXIED), proxy_pool_id, 1u << 31, -EINVAL),
	OP_NAMES(K(PROXIED), pool_id, dead_pool, -EINVAL),
	OP(K(PROXIED), offset, KERNEL_ADDR, -EFAULT),
	OP(K(PROXIED), offset, UINT64_MAX, -EFAULT),
	OP(K(PROXIED), offset, 8, -EFAULT),
	OP(K(PROXIED), bytes, UINT64_MAX, -EFAULT),
	OP(K(PROXIED), bytes, 1ull << 63, -EFAULT),
	OP(ALL & ~(FETCHES | K(SHARED)), flags, RDMATENSOR_OP_SLICE, -EINVAL),
	OP(K(FETCH), flags, RDMATENSOR_OP_SLICE, -EFAULT),
	OP(K(ALLOC), flags, RDMATENSOR_OP_SLICE | RDMATENSOR_OP_ALLOC, -EFAULT),
	OP(K(PROXIED), flags, RDMATENSOR_OP_SLICE | RDMATENSOR_OP_PROXY, -EFAULT),
	OP(FETCHES, flags, RDMATENSOR_OP_SLICE | RDMATENSOR_OP_KEEP, -EINVAL),
	OP(K(SHARED), flags, RDMATENSOR_OP_SLICE | RDMATENSOR_OP_SHARE, -EINVAL),
	OP(K(SLICED), flags, 0, -EINVAL),
	OP(K(SLICED), flags, RDMATENSOR_OP_SLICE | RDMATENSOR_OP_KEEP, -EINVAL),
	OP(K(SLICED), flags, RDMATENSOR_OP_SLICE | RDMATENSOR_OP_SHARE, -EINVAL),
	OP(K(SLICED), flags, RDMATENSOR_OP_SLICE | RDMATENSOR_OP_COPY, -EINVAL),
	OP(K(SLICED), ndims, 0, 0),
	OP(K(SLICED), ndims, RDMATENSOR_DIMS_MAX + 1, -EINVAL),
	OP(K(SLICED), ndims, UINT32_MAX, -EINVAL),
	OP(K(SLICED), dims_uptr, 0, -EFAULT),
	OP(K(SLICED), dims_uptr, KERNEL_ADDR, -EFAULT),
	OP(K(SLICED), data_type, 1, -EINVAL),
	OP(K(SLICED), target, 1, -EINVAL),
	OP(ALL & ~(K(PUBLISH) | K(DEAD) | FETCHES), flags, RDMATENSOR_OP_STRIDES, -EINVAL),
	/* None, of one dim */
	OP(K(PUBLISH), flags, RDMATENSOR_OP_STRIDES, -ERANGE),
	OP(K(DEAD), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_DEAD, -ERANGE),
	OP(K(FAILED), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_FAILED, -EINVAL),
	OP(K(FETCH), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_KEEP, -EINVAL),
	OP(K(PROXIED), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_KEEP | RDMATENSOR_OP_PROXY,
	   -EINVAL),
	OP(K(ALLOC), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_ALLOC, -EINVAL),
	OP(K(SHARED), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_SHARE, -EINVAL),
	OP(K(STRIDED) | K(VIEW), flags, 0, -EINVAL),
	OP(K(STRIDED) | K(VIEW), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_SHARE, -EINVAL),
	OP(K(VIEW), flags, RDMATENSOR_OP_STRIDES | RDMATENSOR_OP_COPY, 0),
	OP(K(STRIDED) | K(VIEW), strides_uptr, 0, -EFAULT),
	OP(K(STRIDED) | K(VIEW), strides_uptr, KERNEL_ADDR, -EFAULT),
	OP(K(STRIDED) | K(VIEW), nr_strides, RDMATENSOR_DIMS_MAX + 1, -EINVAL),
	OP(K(STRIDED) | K(VIEW), nr_strides, UINT32_MAX, -EINVAL),
	OP(K(VIEW), nr_strides, 0, -ERANGE),
	OP(K(STRIDED), status, -1, -EINVAL),
	OP(ALL, flags, 1 << 14, -EINVAL),
	OP(ALL, flags, 1 << 15, -EINVAL),
	OP(ALL, flags, UINT16_MAX, -EINVAL),
	OP(ALL & ~FETCHES, flags, RDMATENSOR_OP_ALLOC, -EINVAL),
	OP(ALL & ~PUBLISHES, flags, RDMATENSOR_OP_DEAD, -EINVAL),
	OP(ALL & ~K(FAILED), flags, RDMATENSOR_OP_FAILED, -EINVAL),
	OP(PUBLISHES, flags, RDMATENSOR_OP_DEAD | RDMATENSOR_OP_FAILED, -EINVAL),
	OP(ALL & ~MAY_SHARE, flags, RDMATENSOR_OP_SHARE, -EINVAL),
	OP(K(PUBLISH), flags, RDMATENSOR_OP_SHARE, 0),
	OP(K(PUBLISH), flags, RDMATENSOR_OP_SHARE | RDMATENSOR_OP_COPY, -EINVAL),
	OP(K(SHARED), flags, RDMATENSOR_OP_SHARE | RDMATENSOR_OP_KEEP, -EINVAL),
	OP(K(DEAD), flags, RDMATENSOR_OP_SHARE | RDMATENSOR_OP_DEAD, 0),
	OP(K(FAILED), flags, RDMATENSOR_OP_SHARE | RDMATENSOR_OP_FAILED, -EINVAL),
	OP(FETCHES | K(SHARED), flags, RDMATENSOR_OP_SHARE | RDMATENSOR_OP_ALLOC, -EINVAL),
	OP(K(SHARED), flags, 0, -EINVAL),
	/* 64 bytes, and dead */
	OP(K(PUBLISH), flags, RDMATENSOR_OP_DEAD, -EINVAL),
	/* 64 bytes are said, there are none */
	OP(K(DEAD), flags, 0, -EINVAL),
	OP(ALL, __reserved, 1, -EINVAL),
	OP(ALL, __reserved, 1u << 31, -EINVAL),
	/* Its own offset is not named when the destination is to be allocated */
	OP(K(ALLOC), offset, 64, -EINVAL),

	OP(FETCHES | K(LIST), channel, UINT32_MAX, -ENOTCONN),
	OP_NAMES(FETCHES | K(LIST), channel, dead_channel, -ENOTCONN),
	OP_NAMES(FETCHES | K(LIST), channel, others_channel, -ENOTCONN),
	OP(K(LIST), channel, RDMATENSOR_CHANNEL_SELF, 0),

	OP(NAMED | K(LIST), name_uptr, 0, -EFAULT),
	OP(NAMED | K(LIST), name_uptr, 8, -EFAULT),
	OP(NAMED | K(LIST), name_uptr, KERNEL_ADDR, -EFAULT),
	OP(NAMED | K(LIST), name_uptr, UINT64_MAX, -EFAULT),
	OP(NAMED, name_len, 0, -EINVAL),
	OP(NAMED | K(LIST), name_len, RDMATENSOR_NAME_MAX + 1, -EINVAL),
	OP(NAMED | K(LIST), name_len, UINT32_MAX, -EINVAL),
	OP(PUBLISHES, step_id, INT64_MIN, 0),
	OP(PUBLISHES, step_id, INT64_MAX, 0),
	OP(K(WITHDRAW), step_id, INT64_MIN, -ENOENT),
	OP(K(WITHDRAW), step_id, 2, -ENOENT),
	OP(ALL, user_data, 1ull << 40, 0),

	OP(K(PUBLISH) | K(FETCH) | K(ALLOC) | K(FREE) | K(GATHER) | K(LIST), pool_id, 0, -EINVAL),
	OP(K(PUBLISH) | FETCHES | K(FREE) | K(GATHER) | K(LIST), pool_id, UINT32_MAX, -EINVAL),
	OP_NAMES(K(PUBLISH) | FETCHES | K(FREE) | K(GATHER) | K(LIST), pool_id, dead_pool, -EINVAL),
	OP_NAMES(K(PUBLISH) | FETCHES | K(FREE) | K(GATHER) | K(LIST), pool_id, others_pool, -EINVAL),

	OP(PLACED, offset, 1, -EINVAL),
	OP(PLACED, offset, 63, -EINVAL),
	OP(PLACED, offset, POOL_BYTES - 64, -EINVAL),
	OP(PLACED, offset, POOL_BYTES, -EINVAL),
	OP(PLACED, offset, 1ull << 63, -EINVAL),
	OP(PLACED, offset, UINT64_MAX - 63, -EINVAL),
	OP(PLACED, offset, UINT64_MAX, -EINVAL),
	OP(K(FREE), offset, 1, -ENOENT),
	OP(K(FREE), offset, POOL_BYTES - 64, -ENOENT),
	OP(K(FREE), offset, POOL_BYTES, -ENOENT),
	OP(K(FREE), offset, UINT64_MAX, -ENOENT),

	OP(K(PUBLISH), bytes, 0, -EINVAL),
	OP(K(PUBLISH), bytes, 63, -EINVAL),
	OP(K(PUBLISH), bytes, 65, -EINVAL),
	OP(K(PUBLISH), bytes, INT64_MAX, -EINVAL),
	OP(K(PUBLISH) | K(DEAD), bytes, UINT64_MAX, -EINVAL),
	OP(K(DEAD), bytes, 1, -EINVAL),
	OP(K(FETCH), bytes, 65, -EINVAL),
	OP(K(FETCH) | K(GATHER), bytes, POOL_BYTES + 1, -EINVAL),
	OP(K(FETCH) | K(GATHER), bytes, UINT64_MAX, -EINVAL),
	OP(K(FETCH) | K(GATHER), bytes, UINT64_MAX - 63, -EINVAL),
	OP(K(GATHER), bytes, 0, -EMSGSIZE),
	OP(K(GATHER), bytes, 1023, -EMSGSIZE),
	OP(K(GATHER) | K(LIST), bytes, 1025, -EINVAL),
	OP(K(LIST), bytes, 0, -EINVAL),
	OP(K(LIST), bytes, RDMATENSOR_LIST_ENTRY_MAX, 0),
	OP(K(LIST), bytes, POOL_BYTES + 1, -EINVAL),
	OP(K(LIST), bytes, UINT64_MAX, -EINVAL),
	OP(K(LIST), bytes, UINT64_MAX - 63, -EINVAL),
	OP(K(ALLOC), bytes, 64, 0),
	OP(K(ALLOC), bytes, UINT64_MAX, 0),
	OP(TIMED, deadline_ns, INT64_MAX, 0),
	OP(TIMED, deadline_ns, UINT64_MAX, 0),

	OP(K(PUBLISH) | K(DEAD), data_type, RDMATENSOR_DT_INVALID, -EINVAL),
	OP(K(PUBLISH) | K(DEAD), data_type, RDMATENSOR_DT_MAX + 1, -EINVAL),
	OP(K(PUBLISH) | K(DEAD), data_type, 0x10000 + RDMATENSOR_DT_UINT8, -EINVAL),
	OP(K(PUBLISH) | K(DEAD), data_type, UINT32_MAX, -EINVAL),
	OP(K(PUBLISH), data_type, RDMATENSOR_DT_FLOAT, -EINVAL),
	OP(K(PUBLISH), data_type, RDMATENSOR_DT_STRING, 0),
	OP(K(PUBLISH), ndims, 0, -EINVAL),
	OP(K(PUBLISH) | K(DEAD), ndims, RDMATENSOR_DIMS_MAX + 1, -EINVAL),
	OP(K(PUBLISH) | K(DEAD), ndims, 0x100 + 1, -EINVAL),
	OP(K(PUBLISH) | K(DEAD), ndims, UINT32_MAX, -EINVAL),
	OP(K(DEAD), ndims, RDMATENSOR_DIMS_MAX, 0),
	OP(K(PUBLISH) | K(DEAD), dims_uptr, 0, -EFAULT),
	OP(K(PUBLISH) | K(DEAD), dims_uptr, KERNEL_ADDR, -EFAULT),
	OP(K(PUBLISH) | K(DEAD), dims_uptr, UINT64_MAX, -EFAULT),
	OP(PUBLISHES, uses, 0, 0),
	OP(PUBLISHES, uses, UINT32_MAX, 0),

	OP(K(FAILED), status, 0, -EINVAL),
	OP(K(FAILED), status, 1, -EINVAL),
	OP(K(FAILED), status, -4095, 0),
	OP(K(FAILED), status, -4096, -EINVAL),
	OP(K(FAILED), status, INT_MIN, -EINVAL),
	OP(K(FAILED), text_uptr, 0, -EFAULT),
	OP(K(FAILED), text_uptr, KERNEL_ADDR, -EFAULT),
	OP(K(FAILED), text_len, 0, 0),
	OP(K(FAILED), text_len, RDMATENSOR_STATUS_TEXT_MAX + 1, -EINVAL),
	OP(K(FAILED), text_len, 0x10000, -EINVAL),
	OP(K(FAILED), text_len, UINT32_MAX, -EINVAL),

	OP(K(GATHER), table, 0, -ENOENT),
	OP(K(GATHER), table, UINT32_MAX, -ENOENT),
	OP_NAMES(K(GATHER), table, own_table, -ENOENT),
	OP(K(GATHER), nr_ids, 3, -EMSGSIZE),
	OP(K(GATHER), nr_ids, UINT64_MAX, -EMSGSIZE),
	/* That many rows have 1024 bytes, modulo 2^64 */
	OP(K(GATHER), nr_ids, (1ull << 55) + 2, -EMSGSIZE),

	OP(K(REVEAL), step_id, 2, -ENOENT),
	OP(K(REVEAL), step_id, INT64_MIN, -ENOENT),
	OP(K(REVEAL), target, 0, -ENOENT),
	OP(K(REVEAL), target, UINT64_MAX, -ENOENT),
	OP(K(CANCEL), target, 0, -ENOENT),
	OP(K(WITHDRAW), target, 0, 0),
	OP(K(WITHDRAW), target, 1, -ENOENT),
	OP(K(WITHDRAW), target, UINT64_MAX, -ENOENT),
	OP(K(CANCEL), target, 78, -ENOENT),
	OP(K(RELEASE), target, 0, -ENOENT),
	OP(K(RELEASE), target, UINT32_MAX, -ENOENT),
	OP(K(RELEASE), target, (1ull << 32) + 1, -ENOENT),
	OP(K(RELEASE), target, UINT64_MAX, -ENOENT),
	OP(K(CANCEL), target, UINT64_MAX, -ENOENT),
	OP(K(LIST), target, UINT64_MAX, 0),
	OP(K(LIST), target, 1ull << 63, 0),

	/* Fields that the operation does not name */
	OP(ALL & ~(FETCHES | K(LIST)), channel, 1, -EINVAL),
	OP(ALL & ~(FETCHES | K(LIST)), channel, 1u << 31, -EINVAL),
	OP(ALL & ~(NAMED | K(LIST)), name_uptr, 1, -EINVAL),
	OP(ALL & ~(NAMED | K(LIST)), name_len, 1, -EINVAL),
	OP(ALL & ~(NAMED | K(REVEAL)), step_id, 1, -EINVAL),
	OP(PLACELESS, pool_id, 1, -EINVAL),
	OP(PLACELESS, offset, 64, -EINVAL),
	OP(PLACELESS | K(FREE), bytes, 1, -EINVAL),
	OP(ALL & ~TIMED, deadline_ns, 1, -EINVAL),
	OP(ALL & ~TIMED, deadline_ns, 1ull << 63, -EINVAL),
	OP(ALL & ~(K(PUBLISH) | K(DEAD)), data_type, 1, -EINVAL),
	OP(ALL & ~(K(PUBLISH) | K(DEAD)), ndims, 1, -EINVAL),
	OP(ALL & ~(K(PUBLISH) | K(DEAD)), dims_uptr, 8, -EINVAL),
	OP(ALL & ~PUBLISHES, uses, 1, -EINVAL),
	OP(ALL & ~K(FAILED), status, -1, -EINVAL),
	OP(ALL & ~K(FAILED), text_uptr, 8, -EINVAL),
	OP(ALL & ~K(FAILED), text_len, 1, -EINVAL),
	OP(ALL & ~TARGETED, target, 1, -EINVAL),
	OP(ALL & ~TARGETED, target, 1ull << 63, -EINVAL),
	OP(ALL & ~K(GATHER), table, 1, -EINVAL),
	OP(ALL & ~K(GATHER), ids_uptr, 8, -EINVAL),
	OP(ALL & ~K(GATHER), nr_ids, 1, -EINVAL),
};

TEST(fields_of_operations)
{
	static const uint64_t no_ids[] = { 0, 8, KERNEL_ADDR, UINT64_MAX - 7 };
	const struct kind *kind;
	struct rdmatensor_op op;
	const struct row *row;
	int nr = 0, ret;
	size_t i;

	open_all();
	rows_wanted = side_alloc(&p.b, 1024);
	for (row = op_rows; row < op_rows + sizeof(op_rows) / sizeof(*op_rows); row++) {
		for (kind = kinds; kind < kinds + NR_KINDS; kind++) {
			if (!(row->call & K(kind - kinds)))
				continue;
			kind->good(&op);
			set_field((char *)&op + row->offset, row->width,
				  row->id ? *row->id : row->value);
			nr++;
			if (row->error) {
				op_refused(kind, &op, row->what, row->error);
				continue;
			}
			ret = side_do(&p.b, &op);
			if (ret)
				test_fail(__FILE__, __LINE__, "%s, %s: %d", kind->name, row->what,
					  ret);
			kind->undo(&op);
		}
	}
	printf("# %d values\n", nr);

	/* The longest name and text that there are, and one that ends where memory does */
	good_failed(&op);
	op.name_uptr = rdmatensor_op_ptr(long_name);
	op.name_len = RDMATENSOR_NAME_MAX;
	op.text_uptr = rdmatensor_op_ptr(text);
	op.text_len = RDMATENSOR_STATUS_TEXT_MAX;
	EQ(side_do(&p.b, &op), 0);
	undo_publish(&op);
	good_publish(&op);
	op.name_uptr = rdmatensor_op_ptr(edge + PAGE - 2);
	op.name_len = 3;
	op_refused(&kinds[PUBLISH], &op, "a name half in no memory", -EFAULT);
	good_dead(&op);
	op.dims_uptr = rdmatensor_op_ptr(edge + PAGE - 8);
	op.ndims = 2;
	op_refused(&kinds[DEAD], &op, "dims half in no memory", -EFAULT);
	good_failed(&op);
	op.text_uptr = rdmatensor_op_ptr(edge + PAGE - 2);
	op_refused(&kinds[FAILED], &op, "a text half in no memory", -EFAULT);

	/* Ids are looked at when the gather is in flight */
	good_gather(&op);
	for (i = 0; i < sizeof(no_ids) / sizeof(no_ids[0]); i++) {
		op.ids_uptr = no_ids[i];
		EQ(side_do(&p.b, &op), 0);
		EQ(side_next(&p.b, RDMATENSOR_CQE_GATHER, op.user_data, NULL), -EFAULT);
	}
	op.ids_uptr = rdmatensor_op_ptr(edge + PAGE - 8);
	EQ(side_do(&p.b, &op), 0);
	EQ(side_next(&p.b, RDMATENSOR_CQE_GATHER, op.user_data, NULL), -EFAULT);

	/* What is in use */
	good_withdraw(&op);
	good_publish(&op);
	EQ(side_do(&p.b, &op), -EEXIST);
	rdmatensor_prep_fetch(&op, p.b.channel, "t", 5, p.b.pool.id, region, 64, 0, 3);
	op_refused(&kinds[FETCH], &op, "where something is offered", -EINVAL);
	good_gather(&op);
	op.offset = region;
	op_refused(&kinds[GATHER], &op, "where something is offered", -EINVAL);
	rdmatensor_prep_free(&op, p.b.pool.id, region);
	op_refused(&kinds[FREE], &op, "where something is offered", -EBUSY);
	good_withdraw(&op);
	EQ(side_do(&p.b, &op), 0);
	undo_withdraw(&op);
	good_cancel(&op);
	rdmatensor_prep_free(&op, p.b.pool.id, destination);
	op_refused(&kinds[FREE], &op, "where something is fetched", -EBUSY);
	good_publish(&op);
	op.offset = destination;
	op_refused(&kinds[PUBLISH], &op, "where something is fetched", -EINVAL);
	good_cancel(&op);
	EQ(side_do(&p.b, &op), 0);
	undo_cancel(&op);
	close_all();
}

// SPDX-License-Identifier: GPL-2.0
/* SUBMIT: operations in arrays, right ones and wrong ones, and waits */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "threads.h"

#define OPS_MAX 8
#define IDS_MAX 200
#define GROUPS 2

const char words[] = "abcdefghijklmnopqrstuvwxyz";
const char long_words[RDMATENSOR_STATUS_TEXT_MAX] = "a long story";

/* Read by the kernel until a gather has ended, so they are nobody's and stay */
static uint64_t ids[1 << 14];

__attribute__((constructor)) static void ids_fill(void)
{
	unsigned int i;

	for (i = 0; i < 1 << 14; i++)
		ids[i] = mix(i) % ROWS;
}

/* One that is right, and of which nobody needs to know */
int submit_plain(struct worker *w, struct life *life, struct rdmatensor_op *op)
{
	struct rdmatensor_submit submit = {
		.size = sizeof(submit), .op_size = sizeof(*op),
		.ops_uptr = (uintptr_t)op, .nr_ops = 1,
	};

	return call(w, life->fd, RDMATENSOR_SUBMIT, &submit, "SUBMIT");
}

static uint32_t channel_of(struct worker *w, struct life *life)
{
	if (one_in(w, 4))
		return RDMATENSOR_CHANNEL_SELF;
	return one_in(w, 64) ? below(w, 64) : life->channels[below(w, NR_CHANNELS)];
}

static uint64_t deadline(struct worker *w)
{
	return one_in(w, 16) ? 0 : rdmatensor_now_ns() + below(w, 100000000);
}

/* One that there is, in nearly all cases */
static unsigned int region_of(struct worker *w, struct life *life, uint64_t bytes)
{
	unsigned int region = below(w, NR_REGIONS), n = NR_REGIONS;

	while ((!life->regions[region].pool || life->regions[region].bytes < bytes) && --n)
		region = (region + 1) % NR_REGIONS;
	return region;
}

static uint32_t pool_of(struct worker *w, struct life *life)
{
	unsigned int pool = below(w, NR_POOLS), n = NR_POOLS;

	while (!life->pools[pool].id && --n)
		pool = (pool + 1) % NR_POOLS;
	return life->pools[pool].id;
}

/* Something that has not ended, if it is young */
static uint64_t target_of(struct worker *w, struct life *life)
{
	uint32_t serial = life->next - below(w, 16), n;
	uint64_t target = 0;

	for (n = 0; !target && n < 64; n++)
		target = life->pending[(serial - n) % NR_PENDING];
	return target;
}

/* Of one dim: dense, with gaps, and, of what is read, the same again and again */
static const struct rdmatensor_stride strides[] = {
	{ 1, RDMATENSOR_RANGE_REST }, { 3, RDMATENSOR_RANGE_REST }, { 2, 1000 }, { 0, 1 << 20 },
};

static void make_strided(struct worker *w, struct rdmatensor_op *op)
{
	op->flags |= RDMATENSOR_OP_STRIDES;
	op->nr_strides = 1;
	op->strides_uptr = (uintptr_t)&strides[below(w, sizeof(strides) / sizeof(*strides))];
}

static void make_publish(struct worker *w, struct life *life, struct rdmatensor_op *op,
			 uint64_t *dims)
{
	unsigned int region = region_of(w, life, 1);

	op->opcode = RDMATENSOR_OP_PUBLISH;
	op->uses = one_in(w, 3) ? 0 : 1 + below(w, 3);
	if (one_in(w, 16)) {
		op->flags = RDMATENSOR_OP_FAILED;
		op->status = -1 - (int)below(w, 200);
		op->text_uptr = (uintptr_t)long_words;
		op->text_len = below(w, sizeof(long_words) + 1);
		return;
	}
	op->data_type = RDMATENSOR_DT_UINT8;
	op->ndims = 1;
	op->dims_uptr = (uintptr_t)dims;
	if (one_in(w, 16)) {
		op->flags = RDMATENSOR_OP_DEAD;
		dims[0] = below(w, 100);
		return;
	}
	if (!one_in(w, 3))
		op->flags = RDMATENSOR_OP_SHARE;
	op->pool_id = life->regions[region].pool;
	op->offset = life->regions[region].offset;
	op->bytes = life->regions[region].bytes;
	if (one_in(w, 8))
		op->bytes = below(w, op->bytes + 1);
	if (one_in(w, 3))
		op->flags = RDMATENSOR_OP_COPY;
	if (one_in(w, 4)) {
		op->flags &= ~RDMATENSOR_OP_SHARE;
		op->bytes /= 3;
		make_strided(w, op);
	}
	dims[0] = op->bytes;
	if (!op->uses && !one_in(w, 3)) {
		op->flags |= RDMATENSOR_OP_GENERATION;
		op->target = below(w, GROUPS);
	}
}

/* A REVEAL, or a WITHDRAW of all of a generation */
static void make_generation(struct worker *w, struct rdmatensor_op *op)
{
	op->opcode = RDMATENSOR_OP_REVEAL;
	if (one_in(w, 4)) {
		op->opcode = RDMATENSOR_OP_WITHDRAW;
		op->flags = RDMATENSOR_OP_GENERATION;
	}
	if (one_in(w, 4))
		op->flags |= RDMATENSOR_OP_QUIET;
	op->target = below(w, GROUPS);
	op->step_id = below(w, STEPS);
}

/*
 * Written by the kernel until a fetch has ended, so it is nobody's and stays. In its second
 * half nobody can write
 */
#define SOMEWHERE_BYTES (1u << 17)
static char *somewhere;

__attribute__((constructor)) static void somewhere_make(void)
{
	somewhere = mmap(NULL, 2 * SOMEWHERE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (somewhere == MAP_FAILED ||
	    mprotect(somewhere + SOMEWHERE_BYTES, SOMEWHERE_BYTES, PROT_NONE))
		abort();
}

/* What is written to stays ours, whatever an operation was changed to */
static void somewhere_bound(struct rdmatensor_op *op)
{
	uint64_t from = (uintptr_t)somewhere, end = from + 2 * SOMEWHERE_BYTES;

	/* Above all that a process has, and the page at 0, are nobody's */
	if (op->offset >= 1ull << 56 || op->offset < PAGE)
		return;
	if (op->offset < from || op->offset >= end)
		op->offset = from + op->offset % SOMEWHERE_BYTES;
	if (op->bytes > end - op->offset && op->bytes < 1ull << 40)
		op->bytes = end - op->offset;
}

/* To where peers cannot write: memory of the process, or a pool of any kind */
static void make_proxied(struct worker *w, struct life *life, struct rdmatensor_op *op)
{
	op->flags |= RDMATENSOR_OP_PROXY;
	op->proxy_pool_id = pool_of(w, life);
	if (one_in(w, 4))
		return;
	op->pool_id = 0;
	op->offset = (uintptr_t)somewhere + below(w, SOMEWHERE_BYTES / 2);
	op->bytes = below(w, SOMEWHERE_BYTES / 2);
	if (one_in(w, 32)) /* partly where nobody can write */
		op->offset = (uintptr_t)somewhere + SOMEWHERE_BYTES - 64;
}

/* Of one dim, or of bytes; the last one fits nothing that there is */
static const struct rdmatensor_range ranges[] = {
	{ 0, RDMATENSOR_RANGE_REST }, { 1, 100 }, { 63, RDMATENSOR_RANGE_REST }, { 5, 0 },
	{ 1 << 30, 1 },
};

static void make_fetch(struct worker *w, struct life *life, struct rdmatensor_op *op)
{
	unsigned int region = region_of(w, life, 1);

	op->opcode = RDMATENSOR_OP_FETCH;
	op->deadline_ns = deadline(w);
	if (one_in(w, 4))
		op->flags = RDMATENSOR_OP_NEWEST;
	if (one_in(w, 8))
		op->flags |= RDMATENSOR_OP_NOWAIT;
	if (one_in(w, 4)) {
		op->flags |= RDMATENSOR_OP_SHARE;
		return;
	}
	op->channel = channel_of(w, life);
	if (one_in(w, 3)) {
		op->flags |= RDMATENSOR_OP_SLICE;
		op->ndims = below(w, 2);
		op->dims_uptr = (uintptr_t)&ranges[below(w, sizeof(ranges) / sizeof(*ranges))];
	}
	if (!one_in(w, 4)) {
		op->flags |= RDMATENSOR_OP_ALLOC;
		op->pool_id = pool_of(w, life);
		return;
	}
	op->pool_id = life->regions[region].pool;
	op->offset = life->regions[region].offset;
	op->bytes = life->regions[region].bytes;
	if (one_in(w, 4))
		make_strided(w, op);
	if (!op->flags && one_in(w, 2))
		op->flags = RDMATENSOR_OP_KEEP;
	if (one_in(w, 2))
		make_proxied(w, life, op);
}

static void make_gather(struct worker *w, struct life *life, struct rdmatensor_op *op)
{
	unsigned int region = region_of(w, life, ROW_BYTES), table = below(w, NR_TABLES);
	unsigned int n = NR_TABLES;
	uint64_t rows;

	while (!life->tables[table] && --n)
		table = (table + 1) % NR_TABLES;
	rows = life->regions[region].bytes / ROW_BYTES;
	op->opcode = RDMATENSOR_OP_GATHER;
	op->table = life->tables[table];
	op->pool_id = life->regions[region].pool;
	op->offset = life->regions[region].offset;
	op->bytes = life->regions[region].bytes;
	op->nr_ids = below(w, (rows < IDS_MAX ? rows : IDS_MAX) + 1);
	op->ids_uptr = (uintptr_t)(ids + below(w, (1 << 14) - IDS_MAX));
	if (one_in(w, 32)) /* where there are none */
		op->ids_uptr = (uintptr_t)w->pages + 2 * PAGE - 64;
	op->deadline_ns = deadline(w);
}

static void make_list(struct worker *w, struct life *life, struct rdmatensor_op *op)
{
	unsigned int region = region_of(w, life, 8);

	op->opcode = RDMATENSOR_OP_LIST;
	op->channel = one_in(w, 4) ? RDMATENSOR_CHANNEL_SELF : channel_of(w, life);
	op->name_uptr = (uintptr_t)words + below(w, NAMES);
	op->name_len = below(w, 2);
	op->pool_id = life->regions[region].pool;
	op->offset = life->regions[region].offset;
	op->bytes = life->regions[region].bytes;
	op->target = one_in(w, 4) ? rnd(w) : below(w, 2);
	op->deadline_ns = deadline(w);
}

static void make_op(struct worker *w, struct life *life, struct rdmatensor_op *op, uint64_t *dims)
{
	unsigned int region = region_of(w, life, 1);

	memset(op, 0, sizeof(*op));
	switch (below(w, 29)) {
	case 0 ... 4:
		make_publish(w, life, op, dims);
		break;
	case 5 ... 8:
		op->opcode = RDMATENSOR_OP_WITHDRAW;
		op->flags = one_in(w, 4) ? RDMATENSOR_OP_QUIET : 0;
		op->target = one_in(w, 8) ? target_of(w, life) : 0;
		break;
	case 9 ... 15:
		make_fetch(w, life, op);
		break;
	case 16 ... 18:
		op->opcode = RDMATENSOR_OP_CANCEL;
		op->target = one_in(w, 16) ? rnd(w) : target_of(w, life);
		break;
	case 19 ... 20:
		op->opcode = RDMATENSOR_OP_FREE;
		op->pool_id = life->regions[region].pool;
		op->offset = life->regions[region].offset;
		break;
	case 21:
		/* It stays where it is: what is not taken has not given it back */
		op->opcode = RDMATENSOR_OP_RELEASE;
		op->target = one_in(w, 16) ? below(w, 1024) : life->shares[below(w, NR_SHARES)];
		break;
	case 22 ... 23:
		make_list(w, life, op);
		break;
	case 24 ... 25:
		make_generation(w, op);
		break;
	default:
		make_gather(w, life, op);
		break;
	}
	if (op->opcode <= RDMATENSOR_OP_FETCH &&
	    !(op->opcode == RDMATENSOR_OP_WITHDRAW && op->flags & RDMATENSOR_OP_GENERATION)) {
		/* Few, so that they meet */
		op->name_uptr = (uintptr_t)words + below(w, NAMES);
		op->name_len = 1;
		op->step_id = below(w, STEPS);
	}
	if (one_in(w, 16)) {
		mutate(w, life, op, 0, sizeof(*op));
		/* What is not withdrawn by name before a handle retires */
		if (op->opcode == RDMATENSOR_OP_PUBLISH)
			op->uses = 0;
	}
	if (op->flags & RDMATENSOR_OP_PROXY && !op->pool_id)
		somewhere_bound(op);
	op->user_data = 0;
}

/* Those that make an entry of their own */
static bool has_end(const struct rdmatensor_op *op)
{
	return op->opcode == RDMATENSOR_OP_FETCH || op->opcode == RDMATENSOR_OP_GATHER ||
	       op->opcode == RDMATENSOR_OP_LIST ||
	       ((op->opcode == RDMATENSOR_OP_WITHDRAW || op->opcode == RDMATENSOR_OP_REVEAL) &&
		!(op->flags & RDMATENSOR_OP_QUIET)) ||
	       (op->opcode == RDMATENSOR_OP_PUBLISH && op->uses);
}

static void op_done(struct worker *w, struct life *life, const struct rdmatensor_op *op, int error)
{
	unsigned int i;

	if (op->opcode < NR_OPCODES)
		w->ops[op->opcode][-error < ERRNO_MAX ? -error : ERRNO_MAX]++;
	if (error)
		return;
	if (op->opcode == RDMATENSOR_OP_FETCH || op->opcode == RDMATENSOR_OP_GATHER)
		add(&shared->taken, 1);
	for (i = 0; op->opcode == RDMATENSOR_OP_FREE && i < NR_REGIONS; i++)
		if (life->regions[i].pool == op->pool_id &&
		    life->regions[i].offset == op->offset)
			life->regions[i].pool = 0;
}

int do_submit(struct worker *w, struct life *life)
{
	struct rdmatensor_submit arg = { .size = sizeof(arg) };
	struct rdmatensor_op ops[OPS_MAX];
	uint64_t dims[OPS_MAX] = {};
	uint32_t i, n;
	bool untold;
	int ret;

	/* The first that is refused ends it, so most are short */
	n = below(w, one_in(w, 4) ? OPS_MAX + 1 : 3);
	for (i = 0; i < n; i++) {
		make_op(w, life, &ops[i], &dims[i]);
		if (!has_end(&ops[i]))
			continue;
		ops[i].user_data = pending_begin(life, ops[i].opcode);
		if (!ops[i].user_data)
			break;
	}
	n = i;
	arg.op_size = sizeof(*ops);
	arg.ops_uptr = (uintptr_t)ops;
	arg.nr_ops = n;
	if (one_in(w, 8)) {
		if (one_in(w, 2)) {
			arg.wait_nr = 1 + below(w, 8);
		} else {
			arg.flags = RDMATENSOR_SUBMIT_HEAD;
			arg.wait_head = below(w, 10000);
		}
		/* Those without an end are ended by a signal */
		arg.deadline_ns = one_in(w, 32) ? 0 : deadline(w);
	}
	ret = call_somehow(w, life, RDMATENSOR_SUBMIT, &arg, sizeof(arg), "SUBMIT", &untold);
	if (untold) {
		for (i = 0; i < n; i++)
			if (ops[i].user_data)
				pending_doubt(life, ops[i].user_data);
		return ret;
	}
	if (ret && ret != -ETIME && ret != -EINTR && arg.out_done) {
		wrong("SUBMIT ended with %d and took %u operations", ret, arg.out_done);
		return ret;
	}
	for (i = 0; i < n; i++) {
		if (i < arg.out_done)
			op_done(w, life, &ops[i], 0);
		else if (i == arg.out_done && arg.out_error)
			op_done(w, life, &ops[i], arg.out_error);
		if (i >= arg.out_done && ops[i].user_data)
			pending_refused(life, ops[i].user_data);
	}
	return ret;
}

int do_wait(struct worker *w, struct life *life)
{
	struct rdmatensor_submit arg = {
		.size = sizeof(arg), .wait_nr = 1 + below(w, 4),
		.deadline_ns = rdmatensor_now_ns() + below(w, 100000000),
	};

	return call(w, life->fd, RDMATENSOR_SUBMIT, &arg, "SUBMIT that waits");
}

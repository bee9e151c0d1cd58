// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A context is a memfd: the ring at offset 0, pool n at n << 32.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"
#include "tool/common/message.h"
#include "tool/common/published.h"
#include "lib/ring.h"

#ifdef __SANITIZE_ADDRESS__
/* The compiler brings the function, and not always its header */
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

#define CONTEXTS 8
#define POOLS 16
#define PUBLICATIONS 4096
#define FLYING 512

struct fake fake;

struct fake_pool {
	char *base;
	uint64_t bytes;
	uint64_t next;
	/* Of each 64 bytes, whether a region that can be freed begins there */
	bool begins[1024];
	bool registered;
};

/* A fetch that has not ended */
struct fake_flying {
	struct rdmatensor_op op;
	char name[RDMATENSOR_NAME_MAX + 1];
};

struct fake_context {
	bool used;
	bool listens;
	int fd;
	struct rdmatensor_ring *ring;
	/* Entries behind the head, which the next wait shows */
	unsigned int hidden;
	unsigned int channels;
	/* Numbers that were given to channels, and a bit of each that is down */
	uint32_t last_channel;
	uint64_t down;
	/* The last byte of each one's address, which tells one worker from another */
	uint8_t worker[64];
	struct fake_flying flying[FLYING];
	unsigned int nr_flying;
	/* The last channel that was fetched by, and the last one of before a channel went down */
	uint32_t newest;
	uint32_t before;
	/* So many CONNECTs there are with one after the last end of a channel */
	unsigned int connects_wanted;
	unsigned int disconnects_wanted;
	struct fake_pool pools[POOLS];
	uint64_t counters[RDMATENSOR_STAT_NR];
};

struct publication {
	bool used;
	struct rdmatensor_op op;
	char name[RDMATENSOR_NAME_MAX + 1];
	uint64_t dims[RDMATENSOR_DIMS_MAX];
	const char *content;
	struct fake_context *owner;
};

static struct fake_context contexts[CONTEXTS];
static struct publication publications[PUBLICATIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout);
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
struct json_object *__real_json_tokener_parse_ex(struct json_tokener *tok, const char *text,
						 int len);
struct json_object *__wrap_json_tokener_parse_ex(struct json_tokener *tok, const char *text,
						 int len);

/* The entry that has not come yet, and for whom */
static struct fake_context *late_for;
static struct rdmatensor_cqe late;
static unsigned int late_from;
/* The same of a withdrawal */
static struct fake_context *withdrawn_for;
static struct rdmatensor_cqe withdrawn;

void fake_reset(void)
{
	pthread_mutex_lock(&lock);
	tool_name = "test";
	memset(&fake, 0, sizeof(fake));
	late_for = NULL;
	memset(publications, 0, sizeof(publications));
	pthread_mutex_unlock(&lock);
}

unsigned int fake_published(void)
{
	unsigned int i, nr = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < PUBLICATIONS; i++)
		nr += publications[i].used;
	pthread_mutex_unlock(&lock);
	return nr;
}

unsigned int fake_open(void)
{
	unsigned int i, nr = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < CONTEXTS; i++)
		nr += contexts[i].used && lseek(contexts[i].fd, 0, SEEK_CUR) >= 0;
	pthread_mutex_unlock(&lock);
	return nr;
}

static size_t ring_bytes(uint32_t entries)
{
	return 4096 + entries * sizeof(struct rdmatensor_cqe);
}

/* A number that the system gives again is no context's any more */
static void forget(int fd)
{
	int i;

	for (i = 0; i < CONTEXTS; i++)
		if (contexts[i].fd == fd)
			contexts[i].used = false;
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;
	int i, fd;

	if (strcmp(path, FAKE_PATH)) {
		va_start(args, flags);
		if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
			mode = va_arg(args, mode_t);
		va_end(args);
		if (fake.no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
			errno = EOPNOTSUPP;
			return -1;
		}
		if (fake.no_files) {
			errno = EMFILE;
			return -1;
		}
		if (fake.rename_from && rename(fake.rename_from, fake.rename_to))
			return -1;
		fake.rename_from = NULL;
		fd = __real_open(path, flags, mode);
		forget(fd);
		return fd;
	}
	if (fake.open_error) {
		errno = -fake.open_error;
		return -1;
	}
	fd = memfd_create("fake", MFD_CLOEXEC);
	forget(fd);
	/* A slot whose file was closed since is free again */
	for (i = 0; i < CONTEXTS - 1; i++)
		if (!contexts[i].used || lseek(contexts[i].fd, 0, SEEK_CUR) < 0)
			break;
	memset(&contexts[i], 0, sizeof(contexts[i]));
	contexts[i].used = true;
	contexts[i].fd = fd;
	return fd;
}

static bool has_room(const struct fake_context *ctx)
{
	return ctx->ring->head + ctx->hidden - ctx->ring->tail + ctx->channels + ctx->nr_flying <
	       ctx->ring->entries;
}

static bool is_down(const struct fake_context *ctx, uint32_t channel)
{
	return ctx->down >> channel % 64 & 1;
}

static void show(struct fake_context *ctx)
{
	__atomic_store_n(&ctx->ring->head, ctx->ring->head + ctx->hidden, __ATOMIC_RELEASE);
	ctx->hidden = 0;
}

static void push(struct fake_context *ctx, const struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_ring *ring = ctx->ring;
	char *entries = (char *)ring + ring->entries_offset;

	memcpy(entries + ((ring->head + ctx->hidden) % ring->entries) * sizeof(*cqe), cqe,
	       sizeof(*cqe));
	ctx->hidden++;
	if (!fake.lazy)
		show(ctx);
}

void fake_event(int type, uint32_t channel)
{
	struct rdmatensor_cqe cqe = { .type = type, .channel = channel };
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < CONTEXTS; i++)
		if (contexts[i].used && contexts[i].listens)
			push(&contexts[i], &cqe);
	pthread_mutex_unlock(&lock);
}

/* Any file is a domain's that was made as one: an empty memfd that is sealed */
static int do_domain_create(struct rdmatensor_domain_create *arg)
{
	arg->out_fd = memfd_create("fake-domain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (arg->out_fd < 0)
		return -errno;
	return fcntl(arg->out_fd, F_ADD_SEALS, F_SEAL_GROW) ? -errno : 0;
}

static bool is_domain(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_GROW;
}

static int do_domain_query(int fd, struct rdmatensor_domain_query *query)
{
	int i;

	if (!is_domain(fd))
		return -ENOTTY;
	query->flags = fake.device_gone ? RDMATENSOR_DOMAIN_DEVICE_GONE : 0;
	for (i = 0; i < PUBLICATIONS; i++)
		query->lasting += publications[i].used;
	return 0;
}

static int do_lasting_query(struct rdmatensor_lasting_query *query)
{
	const struct publication *pub;

	while (query->cursor < PUBLICATIONS && !publications[query->cursor].used)
		query->cursor++;
	if (query->cursor == PUBLICATIONS)
		return -ENOENT;
	pub = &publications[query->cursor++];
	query->step_id = pub->op.step_id;
	query->bytes = pub->op.bytes;
	query->data_type = pub->op.data_type;
	query->ndims = pub->op.ndims;
	memcpy(query->dims, pub->dims, pub->op.ndims * sizeof(pub->dims[0]));
	query->name_len = pub->op.name_len;
	memcpy(query->name, pub->name, pub->op.name_len);
	return 0;
}

static int do_start(struct fake_context *ctx, struct rdmatensor_start *start)
{
	uint32_t entries;

	if (start->flags & RDMATENSOR_START_DOMAIN && !is_domain(start->domain_fd))
		return -EINVAL;
	strcpy(start->cause, "fake0 was chosen");
	if (ctx->ring)
		return -EISCONN;
	entries = start->ring_entries ? start->ring_entries : FAKE_RING;
	if (ftruncate(ctx->fd, (off_t)ring_bytes(entries)))
		return -errno;
	ctx->ring = mmap(NULL, ring_bytes(entries), PROT_READ | PROT_WRITE, MAP_SHARED,
			 ctx->fd, 0);
	ctx->ring->entries = entries;
	ctx->ring->entry_bytes = sizeof(struct rdmatensor_cqe);
	ctx->ring->entries_offset = 4096;
	/* Both indices wrap around in every test */
	ctx->ring->head = UINT32_MAX - 1;
	ctx->ring->tail = UINT32_MAX - 1;
	ctx->listens = start->flags & RDMATENSOR_START_LISTEN;
	return 0;
}

static int do_query(struct fake_context *ctx, struct rdmatensor_query *query)
{
	if (query->size != sizeof(*query))
		return -EINVAL;
	query->abi_version = RDMATENSOR_ABI_VERSION;
	if (!ctx->ring)
		return 0;
	query->flags = RDMATENSOR_QUERY_STARTED;
	strcpy(query->device_name, "fake0");
	query->ring_entries = ctx->ring->entries;
	query->port = 1;
	query->gid_index = 2;
	query->gid[10] = 0xff;
	query->gid[11] = 0xff;
	query->gid[12] = 10;
	query->gid[15] = 1;
	query->listen_port = ctx->listens ? 18521 : 0;
	return 0;
}

static int do_pool_create(struct fake_context *ctx,
			  struct rdmatensor_pool_create *arg)
{
	uint32_t id;

	if (fake.pool_error)
		return fake.pool_error;
	for (id = 1; id < POOLS && ctx->pools[id].base; id++)
		;
	if (id == POOLS)
		return -ENOMEM;
	arg->bytes = (arg->bytes + 4095) / 4096 * 4096;
	arg->out_pool_id = id;
	arg->out_mmap_offset = (uint64_t)id << 32;
	if (ftruncate(ctx->fd, (off_t)((uint64_t)POOLS << 32)))
		return -errno;
	ctx->pools[id].bytes = arg->bytes;
	ctx->pools[id].next = 0;
	ctx->pools[id].base = mmap(NULL, arg->bytes, PROT_READ | PROT_WRITE,
				   MAP_SHARED, ctx->fd,
				   (off_t)arg->out_mmap_offset);
	return 0;
}

static int do_pool_register(struct fake_context *ctx, struct rdmatensor_pool_register *arg)
{
	uint32_t id;

	for (id = 1; id < POOLS && ctx->pools[id].base; id++)
		;
	if (fake.pool_error || id == POOLS) {
		strcpy(arg->cause, "POOL_REGISTER: as the test wants");
		return fake.pool_error ? fake.pool_error : -ENOMEM;
	}
	arg->out_pool_id = id;
	ctx->pools[id] = (struct fake_pool) {
		.base = (void *)(uintptr_t)arg->addr,
		.bytes = arg->bytes,
		.next = arg->bytes,
		.registered = true,
	};
	return 0;
}

/* Any file is a dma-buf */
static int do_pool_import(struct fake_context *ctx, struct rdmatensor_pool_import *arg)
{
	struct rdmatensor_pool_register reg = { .size = sizeof(reg) };
	struct stat stat;
	int err;

	if (fstat(arg->fd, &stat))
		return -errno;
	reg.bytes = (uint64_t)stat.st_size;
	reg.addr = (uintptr_t)ctx;
	err = do_pool_register(ctx, &reg);
	if (err)
		strcpy(arg->cause, "POOL_IMPORT: as the test wants");
	arg->out_bytes = reg.bytes;
	arg->out_flags = RDMATENSOR_IMPORTED_UNREACHABLE;
	arg->out_pool_id = reg.out_pool_id;
	return err;
}

static int do_pool_destroy(struct fake_context *ctx, uint32_t id)
{
	if (!id || id >= POOLS || !ctx->pools[id].base)
		return -ENOENT;
	if (!ctx->pools[id].registered) {
		memset(ctx->pools[id].base, 0, ctx->pools[id].bytes);
		munmap(ctx->pools[id].base, ctx->pools[id].bytes);
	}
	ctx->pools[id] = (struct fake_pool) { 0 };
	return 0;
}

static int do_pool_alloc(struct fake_context *ctx,
			 struct rdmatensor_pool_alloc *arg)
{
	struct fake_pool *pool = &ctx->pools[arg->pool_id];
	uint64_t bytes = (arg->bytes + 63) / 64 * 64;

	if (pool->next + bytes > pool->bytes)
		return -ENOSPC;
	arg->out_offset = pool->next;
	pool->next += bytes;
	return 0;
}

static struct publication *find(const char *name, uint32_t len, int64_t step)
{
	int i;

	for (i = 0; i < PUBLICATIONS; i++)
		if (publications[i].used &&
		    publications[i].op.step_id == step &&
		    publications[i].op.name_len == len &&
		    !memcmp(publications[i].name, name, len))
			return &publications[i];
	return NULL;
}

static int do_publish(struct fake_context *ctx, const struct rdmatensor_op *op)
{
	const void *name = (void *)(uintptr_t)op->name_uptr;
	struct rdmatensor_cqe cqe = {
		.user_data = op->user_data,
		.type = RDMATENSOR_CQE_PUBLISH,
	};
	struct publication *pub = publications;

	if (!op->name_len || op->name_len > RDMATENSOR_NAME_MAX)
		return -EINVAL;
	if (find(name, op->name_len, op->step_id))
		return -EEXIST;
	if (op->uses && !fake.hold) {
		push(ctx, &cqe);
		return 0;
	}
	while (pub->used)
		pub++;
	pub->used = true;
	pub->op = *op;
	pub->owner = ctx;
	memcpy(pub->name, name, op->name_len);
	if (op->ndims)
		memcpy(pub->dims, (void *)(uintptr_t)op->dims_uptr,
		       op->ndims * sizeof(pub->dims[0]));
	pub->content = ctx->pools[op->pool_id].base + op->offset;
	return 0;
}

static int do_withdraw(struct fake_context *ctx, const struct rdmatensor_op *op)
{
	struct rdmatensor_cqe cqe = { .user_data = op->user_data };
	struct publication *pub;

	if (op->target && fake.old)
		return -EINVAL;
	pub = find((void *)(uintptr_t)op->name_uptr, op->name_len, op->step_id);
	if (!pub || (op->target && op->target != pub->op.user_data))
		return -ENOENT;
	if (pub->op.uses) {
		cqe.type = RDMATENSOR_CQE_PUBLISH;
		cqe.user_data = pub->op.user_data;
		cqe.result = fake.taken ? 0 : -ECANCELED;
		push(ctx, &cqe);
	}
	pub->used = false;
	if (op->flags & RDMATENSOR_OP_QUIET)
		return 0;
	cqe.type = RDMATENSOR_CQE_WITHDRAW;
	cqe.user_data = op->user_data;
	cqe.result = 0;
	if (fake.late_withdrawal) {
		fake.late_withdrawal = false;
		withdrawn_for = ctx;
		withdrawn = cqe;
	} else {
		push(ctx, &cqe);
	}
	return 0;
}

void fake_late(void)
{
	struct rdmatensor_cqe other = { .type = RDMATENSOR_CQE_CHANNEL_UP };

	for (; fake.extra; fake.extra--)
		push(withdrawn_for, &other);
	push(withdrawn_for, &withdrawn);
}

static void copy(struct fake_context *ctx, const struct publication *pub,
		 const struct rdmatensor_op *op, struct rdmatensor_cqe *cqe)
{
	struct fake_pool *pool = &ctx->pools[op->pool_id];

	cqe->flags = RDMATENSOR_CQE_META;
	cqe->tensor_bytes = pub->op.bytes;
	cqe->data_type = pub->op.data_type;
	cqe->ndims = (uint16_t)pub->op.ndims;
	memcpy(cqe->dims, pub->dims, sizeof(cqe->dims));
	if (op->flags & RDMATENSOR_OP_ALLOC && !pub->op.bytes) {
		/* It has no region, as in the kernel */
		cqe->offset = 0;
		cqe->pool_id = 0;
	} else if (op->flags & RDMATENSOR_OP_ALLOC) {
		cqe->offset = pool->next;
		pool->begins[pool->next / 64 % 1024] = true;
		fake.regions++;
		pool->next += (pub->op.bytes + 63) / 64 * 64;
		if (pool->next > pool->bytes) {
			cqe->result = -ENOSPC;
			return;
		}
	} else if (op->bytes < pub->op.bytes) {
		cqe->result = -EMSGSIZE;
		return;
	}
	if (pub->op.bytes)
		memcpy(pool->base + cqe->offset, pub->content, pub->op.bytes);
	ctx->counters[RDMATENSOR_STAT_FETCHED]++;
	ctx->counters[RDMATENSOR_STAT_TX_MESSAGES]++;
	ctx->counters[RDMATENSOR_STAT_RX_CONTENTS]++;
}

static bool is_index(const struct rdmatensor_op *op)
{
	return op->name_len == strlen(INDEX_NAME) &&
	       !memcmp((void *)(uintptr_t)op->name_uptr, INDEX_NAME, op->name_len);
}

/* Once: the next one has it */
static bool lacks(const struct fake_context *ctx, const struct rdmatensor_op *op)
{
	if (!fake.lacking || ctx->worker[op->channel % 64] != fake.lacking_worker ||
	    op->name_len != strlen(fake.lacking) ||
	    memcmp((void *)(uintptr_t)op->name_uptr, fake.lacking, op->name_len))
		return false;
	fake.lacking = NULL;
	return true;
}

static bool has_failed(const struct rdmatensor_op *op)
{
	if (!fake.failed || !memmem((void *)(uintptr_t)op->name_uptr, op->name_len, fake.failed,
				    strlen(fake.failed)))
		return false;
	fake.failures++;
	return true;
}

/* What a fetch of another tensor has, which is published as the one that found no room ends */
static bool is_crowded(const struct rdmatensor_op *op, struct rdmatensor_cqe *cqe)
{
	if (!fake.crowded)
		return false;
	if (op->flags & RDMATENSOR_OP_PROXY) {
		cqe->result = -ENOSPC;
		return true;
	}
	cqe->flags = fake.crowded->flags;
	cqe->tensor_bytes = fake.crowded->tensor_bytes;
	cqe->data_type = fake.crowded->data_type;
	cqe->ndims = fake.crowded->ndims;
	memcpy(cqe->dims, fake.crowded->dims, sizeof(cqe->dims));
	fake.crowded = NULL;
	return true;
}

/* The others go on meanwhile */
static int wait_in_vain(uint64_t until_ns)
{
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000),
	};

	pthread_mutex_unlock(&lock);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	pthread_mutex_lock(&lock);
	return -ETIMEDOUT;
}

static int nobody(const struct rdmatensor_connect *connect)
{
	if (!(connect->flags & RDMATENSOR_CONNECT_NOWAIT))
		wait_in_vain(rdmatensor_deadline_ms(connect->timeout_ms));
	return -ECONNREFUSED;
}

static bool is_strange(const struct fake_context *ctx, uint32_t channel)
{
	return channel != RDMATENSOR_CHANNEL_SELF &&
	       (fake.stranger == FAKE_EVERYBODY ||
		(fake.stranger && ctx->worker[channel % 64] == fake.stranger));
}

static int end_fetch(struct fake_context *ctx, const struct rdmatensor_op *op)
{
	struct rdmatensor_cqe cqe = {
		.user_data = op->user_data,
		.type = RDMATENSOR_CQE_FETCH,
		.step_id = op->step_id,
		.offset = op->offset,
		.pool_id = op->pool_id,
		.channel = op->channel,
	};
	struct publication *pub;
	bool strange = is_strange(ctx, op->channel);

	if (is_crowded(op, &cqe)) {
		push(ctx, &cqe);
		return 0;
	}
	pub = find((void *)(uintptr_t)op->name_uptr, op->name_len, op->step_id);
	if (is_down(ctx, op->channel) && !fake.ghosts)
		cqe.result = fake.down_error ?: -ECONNRESET;
	else if (strange && (fake.silent || !(op->flags & RDMATENSOR_OP_NOWAIT)))
		cqe.result = wait_in_vain(op->deadline_ns);
	else if (lacks(ctx, op))
		cqe.result = -ETIMEDOUT;
	else if (has_failed(op))
		cqe.result = -ECANCELED;
	else if (pub && !strange && (is_index(op) || fake.other_type || !fake.empty_channel ||
				     op->channel != fake.empty_channel))
		copy(ctx, pub, op, &cqe);
	else
		cqe.result = op->flags & RDMATENSOR_OP_NOWAIT ? -ENOENT : -ETIMEDOUT;
	if (!is_index(op) && fake.other_type && op->channel == fake.empty_channel)
		cqe.data_type++;
	if (!cqe.result && cqe.tensor_bytes && is_down(ctx, op->channel))
		ctx->pools[op->pool_id].base[cqe.offset] ^= 1;
	if (!cqe.result && is_index(op) && fake.other_index_from &&
	    op->channel >= fake.other_index_from)
		ctx->pools[op->pool_id].base[cqe.offset + cqe.tensor_bytes - 1] ^= 1;
	if (fake.late) {
		fake.late = false;
		late_for = ctx;
		late_from = fake.waits + 1;
		late = cqe;
	} else {
		push(ctx, &cqe);
	}
	return 0;
}

/* Whoever lists is known by nothing but how long it takes */
static int do_list(struct fake_context *ctx, const struct rdmatensor_op *op)
{
	struct rdmatensor_cqe cqe = {
		.user_data = op->user_data, .type = RDMATENSOR_CQE_FETCH, .channel = op->channel,
	};

	fake.lists++;
	if (!is_strange(ctx, op->channel) || !fake.silent)
		return -EINVAL;
	cqe.result = wait_in_vain(op->deadline_ns);
	push(ctx, &cqe);
	return 0;
}

static int do_fetch(struct fake_context *ctx, const struct rdmatensor_op *op)
{
	struct fake_flying *flying;

	if (!fake.flies)
		return end_fetch(ctx, op);
	if (op->channel > ctx->newest)
		ctx->newest = op->channel;
	flying = &ctx->flying[ctx->nr_flying++];
	flying->op = *op;
	memcpy(flying->name, (void *)(uintptr_t)op->name_uptr, op->name_len);
	return 0;
}

static bool is_stalled(const struct fake_context *ctx)
{
	if (!fake.stalls)
		return false;
	return fake.connects < ctx->connects_wanted ||
	       (fake.other_index_from && fake.disconnects < ctx->disconnects_wanted);
}

static bool may_land(const struct fake_context *ctx, uint32_t channel)
{
	if (is_down(ctx, channel))
		return ctx->newest > ctx->before;
	return !is_stalled(ctx) || channel > ctx->before;
}

/* The oldest that may, or nr_flying */
static unsigned int next_landing(const struct fake_context *ctx)
{
	unsigned int i;

	for (i = 0; i < ctx->nr_flying && !may_land(ctx, ctx->flying[i].op.channel); i++)
		;
	return i;
}

static bool can_land(const struct fake_context *ctx)
{
	return next_landing(ctx) < ctx->nr_flying;
}

static void land(struct fake_context *ctx)
{
	unsigned int i = next_landing(ctx);
	struct fake_flying one = ctx->flying[i];

	one.op.name_uptr = (uintptr_t)one.name;
	ctx->nr_flying--;
	memmove(ctx->flying + i, ctx->flying + i + 1, (ctx->nr_flying - i) * sizeof(one));
	end_fetch(ctx, &one.op);
	fake.landed++;
	usleep(fake.land_ms * 1000);
}

/* All of them end before the channel does, if they are no ghosts */
static void channel_down(struct fake_context *ctx, uint32_t channel)
{
	struct rdmatensor_cqe down = {
		.type = RDMATENSOR_CQE_CHANNEL_DOWN,
		.result = fake.down_error ?: -ECONNRESET,
		.channel = channel,
	};
	unsigned int i, left = 0, nr = ctx->nr_flying;
	struct fake_flying one;

	ctx->down |= 1ull << channel % 64;
	ctx->channels--;
	for (i = 0; i < nr; i++) {
		one = ctx->flying[i];
		one.op.name_uptr = (uintptr_t)one.name;
		if (one.op.channel != channel || fake.ghosts) {
			ctx->flying[left++] = one;
			continue;
		}
		ctx->nr_flying--;
		end_fetch(ctx, &one.op);
	}
	push(ctx, &down);
}

static size_t allocated(void)
{
#ifdef __SANITIZE_ADDRESS__
	return __sanitizer_get_current_allocated_bytes();
#else
	return mallinfo2().uordblks;
#endif
}

/* Nothing of a tree is freed while it grows, so what it takes at its end is the most */
struct json_object *__wrap_json_tokener_parse_ex(struct json_tokener *tok, const char *text,
						 int len)
{
	size_t before = allocated();
	struct json_object *tree = __real_json_tokener_parse_ex(tok, text, len);

	fake.tree_bytes = allocated() - before;
	return tree;
}

static int do_op(struct fake_context *ctx, const struct rdmatensor_op *op)
{
	struct rdmatensor_cqe other = {
		.type = RDMATENSOR_CQE_CHANNEL_DOWN,
	};

	for (; fake.extra && has_room(ctx); fake.extra--) {
		other.user_data = fake.extra;
		push(ctx, &other);
	}
	if (!has_room(ctx))
		return -EAGAIN;
	switch (op->opcode) {
	case RDMATENSOR_OP_PUBLISH:
		return do_publish(ctx, op);
	case RDMATENSOR_OP_WITHDRAW:
		if (fake.fail_withdrawals) {
			fake.fail_withdrawals--;
			return -ENOMEM;
		}
		return fake.busy ? 0 : do_withdraw(ctx, op);
	case RDMATENSOR_OP_FETCH:
		if (fake.fetches_until_down && !--fake.fetches_until_down) {
			ctx->connects_wanted = fake.connects + 1;
			ctx->disconnects_wanted = fake.disconnects + 1;
			ctx->before = ctx->last_channel;
			channel_down(ctx, op->channel);
			fake.fetches_until_down = fake.fetches_each;
		}
		return is_down(ctx, op->channel) ? -ENOTCONN : do_fetch(ctx, op);
	case RDMATENSOR_OP_LIST:
		return do_list(ctx, op);
	case RDMATENSOR_OP_FREE: {
		bool *begins = &ctx->pools[op->pool_id].begins[op->offset / 64 % 1024];

		if (op->offset % 64)
			return -ENOENT;
		fake.bad_frees += !*begins;
		fake.frees += *begins;
		*begins = false;
		return 0;
	}
	default:
		return -EINVAL;
	}
}

static int do_submit(struct fake_context *ctx, struct rdmatensor_submit *arg)
{
	const struct rdmatensor_op *ops = (void *)(uintptr_t)arg->ops_uptr;
	struct rdmatensor_cqe other = { .type = RDMATENSOR_CQE_CHANNEL_UP };
	unsigned int flying;
	bool by_head;

	if (!ctx->ring)
		return -ENOTCONN;
	/* The rest of the struct is not zero */
	if (fake.old && arg->size > offsetof(struct rdmatensor_submit, flags) &&
	    (arg->flags || arg->wait_head)) {
		fake.too_big++;
		return -E2BIG;
	}
	if (arg->nr_ops > RDMATENSOR_SUBMIT_MAX || arg->wait_nr > ctx->ring->entries)
		return -EINVAL;
	fake.submits++;
	ctx->counters[RDMATENSOR_STAT_SUBMITS]++;
	arg->out_error = 0;
	for (arg->out_done = 0; arg->out_done < arg->nr_ops; arg->out_done++) {
		arg->out_error = do_op(ctx, &ops[arg->out_done]);
		if (arg->out_error)
			return arg->out_done ? 0 : arg->out_error;
	}
	flying = ctx->ring->head + ctx->hidden - ctx->ring->tail;
	if (flying > fake.flying_most)
		fake.flying_most = flying;
	by_head = arg->flags & RDMATENSOR_SUBMIT_HEAD;
	if (!arg->wait_nr && !by_head)
		return 0;
	fake.waits++;
	/* What is late comes between the look at the ring and the wait, if that is not the first */
	if (late_for && fake.waits > late_from) {
		push(late_for, &late);
		late_for = NULL;
	}
	if (fake.busy)
		push(ctx, &other);
	show(ctx);
	if (fake.wait_errors) {
		fake.wait_errors--;
		return fake.wait_error;
	}
	do {
		if (by_head ? (int32_t)(ctx->ring->head - arg->wait_head) >= 0 :
			      ctx->ring->head - ctx->ring->tail >= arg->wait_nr)
			return 0;
	} while (can_land(ctx) && (land(ctx), show(ctx), true));
	if (arg->deadline_ns)
		return -ETIME;
	/* Nothing will come in one process: the test waits for what is not */
	fprintf(stderr, "fake: a wait without an end\n");
	abort();
}

static int dispatch(struct fake_context *ctx, unsigned long request, void *arg)
{
	switch (request) {
	case RDMATENSOR_QUERY:
		return do_query(ctx, arg);
	case RDMATENSOR_START:
		return do_start(ctx, arg);
	case RDMATENSOR_DOMAIN_CREATE:
		return do_domain_create(arg);
	case RDMATENSOR_LASTING_QUERY:
		return do_lasting_query(arg);
	case RDMATENSOR_POOL_CREATE:
		return do_pool_create(ctx, arg);
	case RDMATENSOR_POOL_REGISTER:
		return do_pool_register(ctx, arg);
	case RDMATENSOR_POOL_IMPORT:
		return do_pool_import(ctx, arg);
	case RDMATENSOR_POOL_DESTROY:
		return do_pool_destroy(ctx, ((struct rdmatensor_pool_destroy *)
					     arg)->pool_id);
	case RDMATENSOR_POOL_ALLOC:
		return do_pool_alloc(ctx, arg);
	case RDMATENSOR_CONNECT: {
		struct rdmatensor_connect *connect = arg;
		int error = fake.connect_error;

		if (*(uint16_t *)connect->addr == AF_INET6)
			error = fake.connect_error_v6;
		fake.connected = *connect;
		fake.connects++;
		fake.connects_to[connect->addr[7]]++;
		if (fake.absent && connect->addr[7] == fake.absent)
			error = nobody(connect);
		if (fake.connects_most && fake.connects > fake.connects_most)
			error = -ECONNREFUSED;
		if (fake.landed < fake.connects_landed && ctx->last_channel >= 2)
			error = -ECONNREFUSED;
		if (fake.connect_bad == fake.connects)
			error = fake.connect_bad_error;
		if (fake.connects_until && fake.connects >= fake.connects_until &&
		    (error == -ECONNREFUSED || error == -EINTR))
			error = 0;
		usleep(fake.connect_ms * 1000);
		/* The channel's end has a place in the ring */
		ctx->channels += !error;
		strcpy(connect->cause, error ?
		       "connect: nobody listens there: start the peer" :
		       "connect: up");
		connect->out_channel = error ? 0 : ++ctx->last_channel;
		ctx->down &= ~(1ull << connect->out_channel % 64);
		ctx->worker[connect->out_channel % 64] = connect->addr[7];
		return error;
	}
	case RDMATENSOR_DISCONNECT: {
		struct rdmatensor_disconnect *disconnect = arg;

		fake.disconnects++;
		if (!is_down(ctx, disconnect->channel))
			channel_down(ctx, disconnect->channel);
		return 0;
	}
	case RDMATENSOR_CHANNEL_QUERY: {
		struct rdmatensor_channel_query *query = arg;

		if (query->flags && query->channel)
			return -ENOENT;
		if (query->flags)
			query->channel = 1;
		query->state = is_down(ctx, query->channel) ? RDMATENSOR_CHANNEL_DOWN :
							      RDMATENSOR_CHANNEL_UP;
		query->incarnation = 1 + ctx->worker[query->channel % 64];
		if (fake.restarts)
			query->incarnation = 1000 + query->channel;
		query->lanes = 1;
		strcpy(query->worker, "peer \"quoted\"");
		return 0;
	}
	case RDMATENSOR_STATS: {
		struct rdmatensor_stats *stats = arg;

		memcpy((void *)(uintptr_t)stats->counters_uptr, ctx->counters,
		       stats->nr * sizeof(uint64_t));
		return 0;
	}
	case RDMATENSOR_STATUS_TEXT: {
		struct rdmatensor_status_text *ask = arg;
		unsigned int n;

		if (ask->text_id != FAKE_TEXT_ID)
			return -ENOENT;
		for (n = 0; n < FAKE_TEXT_LEN && n < ask->text_len; n++)
			((char *)(uintptr_t)ask->text_uptr)[n] = 'y';
		ask->text_len = FAKE_TEXT_LEN;
		return 0;
	}
	case RDMATENSOR_SUBMIT:
		return do_submit(ctx, arg);
	default:
		return -ENOTTY;
	}
}

static struct fake_context *context_of(int fd)
{
	int i;

	for (i = 0; i < CONTEXTS; i++)
		if (contexts[i].used && contexts[i].fd == fd)
			return &contexts[i];
	return NULL;
}

static bool is_readable(int fd)
{
	struct fake_context *ctx;
	bool readable = false;

	pthread_mutex_lock(&lock);
	ctx = context_of(fd);
	if (ctx && ctx->ring) {
		show(ctx);
		if (ctx->ring->head == ctx->ring->tail && can_land(ctx)) {
			land(ctx);
			show(ctx);
		}
		readable = ctx->ring->head != ctx->ring->tail;
	}
	pthread_mutex_unlock(&lock);
	return readable;
}

/* A context's file is readable when its ring has entries; others' files are what they are */
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	nfds_t i, context = nr;
	int ready, fd;

	for (i = 0; i < nr; i++)
		if (context_of(fds[i].fd))
			context = i;
	if (context == nr)
		return __real_poll(fds, nr, timeout);
	fd = fds[context].fd;
	do {
		fds[context].fd = -1;
		ready = __real_poll(fds, nr, 1);
		fds[context].fd = fd;
		fds[context].revents = is_readable(fd) ? POLLIN : 0;
		ready += fds[context].revents == POLLIN;
	} while (!ready && timeout < 0);
	return ready;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct fake_context *ctx;
	va_list args;
	void *arg;
	int err;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	ctx = context_of(fd);
	if (!ctx && request != RDMATENSOR_DOMAIN_QUERY)
		return __real_ioctl(fd, request, arg);
	pthread_mutex_lock(&lock);
	err = ctx ? dispatch(ctx, request, arg) : do_domain_query(fd, arg);
	pthread_mutex_unlock(&lock);
	if (!err)
		return 0;
	/* Nobody spins who waits for long: a node's reaper does */
	if (err == -ETIME)
		usleep(1000);
	errno = -err;
	return -1;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Handles, and what must come of operations on them: each that makes an entry makes one.
 * A life that retires is alone with who retires it, and then has to end whatever it was
 * told; one that is closed under the others' hands takes with it what had not ended.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "threads.h"

static struct {
	pthread_mutex_t lock;
	struct life *life;
	bool raw;
} handles[HANDLES];
static unsigned int nr_handles;

struct life *life_get(unsigned int slot)
{
	struct life *life;

	pthread_mutex_lock(&handles[slot].lock);
	life = handles[slot].life;
	if (life)
		__atomic_fetch_add(&life->refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&handles[slot].lock);
	return life;
}

void life_put(struct life *life)
{
	unsigned int i;

	if (__atomic_sub_fetch(&life->refs, 1, __ATOMIC_ACQ_REL))
		return;
	/* It would hold the context, which is not closed then */
	for (i = 0; i < NR_MAPS; i++)
		if (life->maps[i].at)
			wrong("handle %u: a mapping is left", life->slot);
	close(life->fd);
	pthread_mutex_destroy(&life->reaper);
	pthread_mutex_destroy(&life->maps_lock);
	free(life);
}

/*
 * What is to end. user_data is a serial number, the opcode and a place in the table; a
 * place holds the user_data itself.
 */
#define DOUBT (1ull << 63)

static bool place_change(struct life *life, uint64_t user_data, uint64_t from, uint64_t to)
{
	return (user_data & 0xffff) < NR_PENDING &&
	       __atomic_compare_exchange_n(&life->pending[user_data & 0xffff], &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

uint64_t pending_begin(struct life *life, unsigned int opcode)
{
	unsigned int tries;

	for (tries = 0; tries < 64; tries++) {
		uint64_t serial = __atomic_add_fetch(&life->next, 1, __ATOMIC_RELAXED);
		uint64_t user_data = serial << 24 | (opcode + 1) << 16 | serial % NR_PENDING;

		if (place_change(life, user_data, 0, user_data))
			return user_data;
	}
	return 0;
}

static bool pending_take(struct life *life, uint64_t user_data)
{
	return user_data && !(user_data & DOUBT) &&
	       (place_change(life, user_data, user_data, 0) ||
		place_change(life, user_data, user_data | DOUBT, 0));
}

void pending_refused(struct life *life, uint64_t user_data)
{
	if (!pending_take(life, user_data))
		wrong("operation %llx was refused, and has ended",
		      (unsigned long long)user_data);
}

void pending_doubt(struct life *life, uint64_t user_data)
{
	place_change(life, user_data, user_data, user_data | DOUBT);
}

static unsigned int opcode_of(uint64_t user_data)
{
	return (user_data >> 16 & 0xff) - 1;
}

static bool brings(uint64_t user_data)
{
	return opcode_of(user_data) == RDMATENSOR_OP_FETCH ||
	       opcode_of(user_data) == RDMATENSOR_OP_GATHER;
}

/* A region that came with a tensor takes the place of another one, which is returned */
static void keep_region(struct worker *w, struct life *life, const struct rdmatensor_cqe *cqe)
{
	unsigned int slot = below(w, NR_REGIONS);
	struct rdmatensor_op op;

	rdmatensor_prep_free(&op, life->regions[slot].pool, life->regions[slot].offset);
	life->regions[slot].pool = cqe->pool_id;
	life->regions[slot].offset = cqe->offset;
	life->regions[slot].bytes = cqe->tensor_bytes;
	if (op.pool_id)
		submit_plain(w, life, &op);
}

static void release(struct worker *w, struct life *life, uint32_t share_id)
{
	struct rdmatensor_op op;

	if (!share_id)
		return;
	rdmatensor_prep_release(&op, share_id);
	submit_plain(w, life, &op);
}

/* One that has come takes the place of another one, which is returned */
static void keep_share(struct worker *w, struct life *life, uint32_t share_id)
{
	release(w, life, __atomic_exchange_n(&life->shares[below(w, NR_SHARES)], share_id,
					     __ATOMIC_RELAXED));
}

static void release_all(struct worker *w, struct life *life)
{
	unsigned int i;

	for (i = 0; i < NR_SHARES; i++)
		release(w, life, __atomic_exchange_n(&life->shares[i], 0, __ATOMIC_RELAXED));
}

static void entry(struct worker *w, struct life *life, const struct rdmatensor_cqe *cqe)
{
	static const unsigned char types[NR_OPCODES] = {
		[RDMATENSOR_OP_PUBLISH] = RDMATENSOR_CQE_PUBLISH,
		[RDMATENSOR_OP_WITHDRAW] = RDMATENSOR_CQE_WITHDRAW,
		[RDMATENSOR_OP_FETCH] = RDMATENSOR_CQE_FETCH,
		[RDMATENSOR_OP_GATHER] = RDMATENSOR_CQE_GATHER,
		[RDMATENSOR_OP_LIST] = RDMATENSOR_CQE_LIST,
		[RDMATENSOR_OP_REVEAL] = RDMATENSOR_CQE_REVEAL,
	};
	unsigned int opcode = opcode_of(cqe->user_data);
	int i;

	switch (cqe->type) {
	case RDMATENSOR_CQE_CHANNEL_UP:
		life->channels[below(w, NR_CHANNELS)] = cqe->channel;
		return;
	case RDMATENSOR_CQE_CHANNEL_DOWN:
		for (i = 0; i < NR_CHANNELS; i++)
			if (life->channels[i] == cqe->channel)
				life->channels[i] = 0;
		if (cqe->result != -EPROTO)
			return;
		add(&shared->breaches, 1);
		printf("# a channel ended by an error of the protocol: %.*s\n",
		       cqe->text_len > RDMATENSOR_TEXT_MAX ? 0 : cqe->text_len, cqe->text);
		return;
	}
	if (!pending_take(life, cqe->user_data) || opcode >= NR_OPCODES ||
	    types[opcode] != cqe->type) {
		wrong("handle %u: an entry of type %u, %llx, that nothing waits for", life->slot,
		      cqe->type, (unsigned long long)cqe->user_data);
		return;
	}
	if (!brings(cqe->user_data))
		return;
	if (cqe->flags & RDMATENSOR_CQE_MORE)
		life->text_id = cqe->text_id;
	if (cqe->result) {
		add(&shared->ended, 1);
		return;
	}
	add(cqe->type == RDMATENSOR_CQE_FETCH ? &shared->fetched : &shared->gathered, 1);
	add(&shared->bytes, cqe->tensor_bytes);
	if (peer_number)
		add(&shared->peer_bytes, cqe->tensor_bytes);
	if (cqe->flags & RDMATENSOR_CQE_SHARED)
		keep_share(w, life, cqe->share_id);
	else if (cqe->type == RDMATENSOR_CQE_FETCH && cqe->tensor_bytes)
		keep_region(w, life, cqe);
}

/* Return: entries that were read */
int do_reap(struct worker *w, struct life *life)
{
	struct rdmatensor_cqe cqes[32];
	int n = 0, i;

	pthread_mutex_lock(&life->reaper);
	if (life->ring) {
		uint32_t tail = __atomic_load_n(&life->ring->tail, __ATOMIC_RELAXED);
		uint32_t head = __atomic_load_n(&life->ring->head, __ATOMIC_ACQUIRE);
		const struct rdmatensor_cqe *all = (void *)((char *)life->ring + PAGE);

		for (; n < 32 && tail != head; tail++, n++)
			cqes[n] = all[tail & (life->entries - 1)];
		__atomic_store_n(&life->ring->tail, tail, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&life->reaper);
	for (i = 0; i < n; i++)
		entry(w, life, &cqes[i]);
	return n;
}

/*
 * START
 */

static void start_init(struct worker *w, unsigned int slot, struct rdmatensor_start *start)
{
	struct sockaddr_in *in = (void *)start->listen_addr;
	char name[32];

	snprintf(name, sizeof(name), "%s%u", peer_number ? "peer" : "handle", slot + peer_number);
	rdmatensor_start_init(start, name);
	start->flags |= RDMATENSOR_START_LISTEN;
	in->sin_family = AF_INET;
	in->sin_addr = own_ip;
	start->ring_entries = 128 << below(w, 4);
	start->msg_slots = 1 << below(w, 7);
	start->msg_slot_bytes = 1024 << below(w, 3);
	start->queue_depth = 2 * start->msg_slots + 8 + below(w, 256);
	start->lanes = 1 + below(w, 3);
	start->stripe_bytes = 1 + below(w, 1 << 15);
	start->max_channels = 8 + below(w, 16);
	start->handshake_ms = SETUP_MS;
	start->cancel_ms = 500 + below(w, 1500);
	start->cq_poll = 1 + below(w, 2);
	start->gather_lanes = 1 + below(w, 3);
	start->cq_mod = 1 << below(w, 7);
	if (one_in(w, 4))
		start->flags |= RDMATENSOR_START_VALIDATE;
	if (one_in(w, 3)) {
		start->flags |= RDMATENSOR_START_DOMAIN;
		start->domain_fd = domains[below(w, NR_DOMAINS)];
	}
}

static void most(uint32_t *v, uint32_t more_than_there_is)
{
	if (*v > more_than_there_is)
		*v = more_than_there_is;
}

int do_start(struct worker *w, struct life *life, enum kind kind)
{
	struct rdmatensor_start start;
	int ret;

	start_init(w, life->slot, &start);
	if (kind == START_LATE) {
		/* Longer than a segment: refused when the adapter is bound already */
		start.msg_slots = 1024;
		start.queue_depth = 4096;
		start.msg_slot_bytes = 4096;
		start.ack_batch = 0;
	} else if (kind == START_BAD) {
		if (one_in(w, 4))
			strcpy(start.device_name, "none");
		mutate(w, life, &start, 4, sizeof(start) - sizeof(start.cause));
		most(&start.ring_entries, 4096);
		most(&start.handshake_ms, SETUP_MS);
		most(&start.cancel_ms, 2000);
	}
	ret = kind == START_BAD ?
		call_somehow(w, life, RDMATENSOR_START, &start, sizeof(start), "START", NULL) :
		call(w, life->fd, RDMATENSOR_START, &start, "START");
	/* There is no device for a moment, in which nothing is to be learnt */
	if (ret == -ENODEV)
		poll(NULL, 0, 2);
	if (kind == START_LATE && !ret && life->raw)
		wrong("START took a message buffer that is longer than a segment: %s", start.cause);
	return ret;
}

/*
 * Lives
 */

static int ring_map(struct worker *w, struct life *life)
{
	struct rdmatensor_query query = { .size = sizeof(query) };
	int ret = call(w, life->fd, RDMATENSOR_QUERY, &query, "QUERY");
	void *at;

	if (ret)
		return ret;
	life->port = query.listen_port;
	life->entries = query.ring_entries;
	life->ring_bytes = PAGE + (size_t)life->entries * sizeof(struct rdmatensor_cqe);
	life->ring_bytes = (life->ring_bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	at = mmap(NULL, life->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, life->fd,
		  RDMATENSOR_MMAP_RING);
	if (at == MAP_FAILED)
		return -errno;
	life->ring = at;
	return 0;
}

/* What holds the file from the side of memory */
static void life_unmap(struct life *life)
{
	pthread_mutex_lock(&life->reaper);
	if (life->ring)
		munmap(life->ring, life->ring_bytes);
	life->ring = NULL;
	pthread_mutex_unlock(&life->reaper);
	maps_drop(life);
}

static int life_new(struct worker *w, unsigned int slot, struct life **out)
{
	struct life *life = calloc(1, sizeof(*life));
	struct rdmatensor_start start;
	int ret = 0;

	if (!life)
		return -ENOMEM;
	life->refs = 1;
	life->slot = slot;
	life->raw = handles[slot].raw;
	pthread_mutex_init(&life->reaper, NULL);
	pthread_mutex_init(&life->maps_lock, NULL);
	enter(w, "open");
	life->fd = open(RDMATENSOR_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	leave(w);
	if (life->fd < 0) {
		ret = -errno;
		free(life);
		return ret;
	}
	if (!life->raw) {
		start_init(w, slot, &start);
		life->common = start.flags & RDMATENSOR_START_DOMAIN;
		ret = call(w, life->fd, RDMATENSOR_START, &start, "START");
		if (ret && life->common) {
			/* There is no domain there, or none with a device */
			life->common = false;
			start.flags &= ~RDMATENSOR_START_DOMAIN;
			ret = call(w, life->fd, RDMATENSOR_START, &start, "START");
		}
		if (!ret)
			ret = ring_map(w, life);
		if (!ret)
			ret = first_objects(w, life);
	}
	if (ret) {
		/* A domain without room: with the last context it ends */
		if (life->common)
			dup3(null_fd, start.domain_fd, O_CLOEXEC);
		life_unmap(life);
		enter(w, "close");
		life_put(life);
		leave(w);
		return ret;
	}
	*out = life;
	return 0;
}

static void announce(const struct life *life)
{
	unsigned int place = peer_number ? MAINS + peer_number - 1 : life->slot;

	if (place < MAINS + PEERS)
		shared->ports[place] = life->port;
}

/* The protocol's errors that the kernel has counted. Under others' hands: as of now */
static void tally(struct worker *w, struct life *life)
{
	uint64_t counters[RDMATENSOR_STAT_NR] = {};
	struct rdmatensor_stats stats = {
		.size = sizeof(stats), .nr = RDMATENSOR_STAT_NR,
		.counters_uptr = (uintptr_t)counters,
	};

	if (!life->raw && !call(w, life->fd, RDMATENSOR_STATS, &stats, "STATS") &&
	    counters[RDMATENSOR_STAT_PROTOCOL_ERRORS])
		add(&shared->breaches, counters[RDMATENSOR_STAT_PROTOCOL_ERRORS]);
}

static int replace(struct worker *w, unsigned int slot, struct life *life, struct life **old)
{
	pthread_mutex_lock(&handles[slot].lock);
	*old = handles[slot].life;
	handles[slot].life = life;
	pthread_mutex_unlock(&handles[slot].lock);
	if (life && !life->raw)
		announce(life);
	if (*old)
		tally(w, *old);
	return 0;
}

static void life_close(struct worker *w, struct life *life)
{
	/* First: who maps something now drops it, or has it dropped here */
	__atomic_store_n(&life->closed, true, __ATOMIC_RELEASE);
	life_unmap(life);
	/* What it refers to ends here, or when the last has left its call */
	enter(w, "close");
	if (dup2(null_fd, life->fd) < 0)
		wrong("dup2: %s", strerror(errno));
	life_put(life);
	leave(w);
}

int do_reopen(struct worker *w, unsigned int slot)
{
	struct life *life, *old;
	int ret;

	ret = life_new(w, slot, &life);
	if (ret) {
		/* No device: it comes back */
		poll(NULL, 0, 20);
		return ret;
	}
	replace(w, slot, life, &old);
	if (old)
		life_close(w, old);
	return 0;
}

/* All that a ring can hold, or less */
static void reap_all(struct worker *w, struct life *life)
{
	uint32_t n = 0;
	int ret;

	do {
		ret = do_reap(w, life);
		n += ret;
	} while (ret && n < life->entries);
}

static void life_withdraw(struct worker *w, struct life *life)
{
	struct rdmatensor_op op;
	unsigned int name;
	int64_t step;

	for (name = 0; name < NAMES; name++)
		for (step = 0; step < STEPS; step++) {
			rdmatensor_prep(&op, RDMATENSOR_OP_WITHDRAW, NULL, step, 0);
			op.name_uptr = rdmatensor_op_ptr(words + name);
			op.name_len = 1;
			op.user_data = pending_begin(life, op.opcode);
			if (op.user_data && submit_plain(w, life, &op))
				pending_refused(life, op.user_data);
			reap_all(w, life);
		}
}

/* Fetches and gathers are cancelled. Return: one that has not ended, 0: none */
static uint64_t life_cancel(struct worker *w, struct life *life)
{
	struct rdmatensor_op op;
	uint64_t open = 0;
	unsigned int i;

	for (i = 0; i < NR_PENDING; i++) {
		uint64_t user_data = __atomic_load_n(&life->pending[i], __ATOMIC_ACQUIRE);

		if (!user_data || user_data & DOUBT)
			continue;
		if (life->common && (opcode_of(user_data) == RDMATENSOR_OP_WITHDRAW ||
				     opcode_of(user_data) == RDMATENSOR_OP_REVEAL))
			continue;
		open = user_data;
		if (!brings(user_data))
			continue;
		rdmatensor_prep_cancel(&op, user_data);
		submit_plain(w, life, &op);
	}
	return open;
}

void tell_why(void)
{
	const char *command = getenv("THREADS_TELL");

	fflush(stdout);
	if (command && system(command))
		puts("# nothing more is known");
}

/* Alone with it: whatever it was told has one end */
static void life_settle(struct worker *w, struct life *life)
{
	static const char *const names[NR_OPCODES] = {
		"PUBLISH", "WITHDRAW", "FETCH", "", "", "GATHER", "", "LIST", "REVEAL",
	};
	uint64_t end = rdmatensor_deadline_ms(patience_s * 1000ull), open;
	struct rdmatensor_submit wait = { .size = sizeof(wait), .wait_nr = 1 };

	if (life->raw)
		return;
	while ((open = life_cancel(w, life))) {
		/*
		 * Again and again: a tensor whose taker gives it back is offered once more, beside
		 * one of the name that was published since, and a WITHDRAW takes one
		 */
		life_withdraw(w, life);
		release_all(w, life);
		if (rdmatensor_now_ns() > end) {
			wrong("handle %u: %s %llx does not end", life->slot, names[opcode_of(open)],
			      (unsigned long long)open);
			tell_why();
			return;
		}
		wait.deadline_ns = rdmatensor_deadline_ms(20);
		call(w, life->fd, RDMATENSOR_SUBMIT, &wait, "SUBMIT that waits");
		reap_all(w, life);
	}
	/* One that was told twice comes after the first */
	reap_all(w, life);
	add(&shared->settled, 1);
}

int do_retire(struct worker *w, unsigned int slot)
{
	struct life *life, *old;
	int ret;

	ret = life_new(w, slot, &life);
	if (ret) {
		poll(NULL, 0, 20);
		return ret;
	}
	replace(w, slot, life, &old);
	if (!old)
		return 0;
	enter(w, "waiting for the others' calls");
	while (__atomic_load_n(&old->refs, __ATOMIC_ACQUIRE) > 1)
		poll(NULL, 0, 1);
	leave(w);
	life_settle(w, old);
	life_close(w, old);
	return 0;
}

int handles_open(struct worker *w, unsigned int mains, unsigned int raws)
{
	unsigned int i;
	int ret;

	nr_handles = mains + raws;
	for (i = 0; i < nr_handles; i++) {
		pthread_mutex_init(&handles[i].lock, NULL);
		handles[i].raw = i >= mains;
		ret = do_reopen(w, i);
		if (ret)
			return ret;
	}
	return 0;
}

void handles_close(struct worker *w)
{
	struct life *old;
	unsigned int i;

	for (i = 0; i < nr_handles; i++) {
		replace(w, i, NULL, &old);
		if (!old)
			continue;
		if (old->refs != 1)
			wrong("handle %u: %d threads have it that are no more", i, old->refs - 1);
		life_settle(w, old);
		life_close(w, old);
	}
}

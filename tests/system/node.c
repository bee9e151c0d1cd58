// SPDX-License-Identifier: GPL-2.0
/* The short way: nodes that offer tensors, and get those of others */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <rdmatensor/node.h>
#include "harness.h"

#define THREADS 6
#define ROUNDS 30
#define MANY 256

static struct rdmatensor_node *a, *b;

static void node_open(struct rdmatensor_node **node, unsigned int port, int listen)
{
	char addr[64];

	snprintf(addr, sizeof(addr), "%s:%u", test_ip(), port);
	if (rdmatensor_node_open(node, listen ? addr : NULL))
		test_fail(__FILE__, __LINE__, "%s", rdmatensor_node_error());
}

/* @a listens */
static void nodes_open(void)
{
	node_open(&a, 0, 1);
	node_open(&b, 0, 0);
	CHECK(rdmatensor_node_port(a));
	EQ(rdmatensor_node_port(b), 0);
}

static void nodes_close(void)
{
	rdmatensor_node_close(a);
	rdmatensor_node_close(b);
}

static const char *at_a(const char *name)
{
	static _Thread_local char from[128];

	snprintf(from, sizeof(from), "%s:%u/%s", test_ip(), rdmatensor_node_port(a), name);
	return from;
}

static struct rdmatensor_tensor floats(void *data, uint64_t nr)
{
	return (struct rdmatensor_tensor){
		.data = data, .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1, .dims = { nr },
	};
}

static int says(const char *part)
{
	return strstr(rdmatensor_node_error(), part) != NULL;
}

TEST(node_offers_and_gets)
{
	float own[4] = { 1, 2, 3, 4 }, got[5] = { 0 };
	struct rdmatensor_tensor t = floats(own, 4), place = { .data = got, .bytes = sizeof(got) };
	struct rdmatensor_tensor found = { .step = 0 };

	nodes_open();
	EQ(rdmatensor_offer(a, "layer/0/w", &t), 0);
	/* It was copied */
	own[0] = 9;
	EQ(rdmatensor_get(b, at_a("layer/0/w"), &found), 0);
	EQ(found.bytes, 16);
	EQ(found.data_type, RDMATENSOR_DT_FLOAT);
	CHECK(found.ndims == 1 && found.dims[0] == 4);
	CHECK(((float *)found.data)[0] == 1 && ((float *)found.data)[3] == 4);
	EQ(rdmatensor_node_free(b, found.data), 0);
	EQ(rdmatensor_node_free(b, found.data), -ENOENT);
	CHECK(says("not the first byte"));
	EQ(rdmatensor_get(b, at_a("layer/0/w"), &place), 0);
	CHECK(got[0] == 1 && got[3] == 4 && got[4] == 0);
	EQ(place.bytes, 16);
	/* Of oneself */
	memset(&found, 0, sizeof(found));
	EQ(rdmatensor_get(a, "/layer/0/w", &found), 0);
	CHECK(((float *)found.data)[2] == 3);
	EQ(rdmatensor_node_free(a, found.data), 0);

	/* As it is, and changed in place between two steps */
	t.data = rdmatensor_node_alloc(a, 16);
	memcpy(t.data, (float[]){ 5, 6, 7, 8 }, 16);
	t.step = 3;
	EQ(rdmatensor_offer(a, "layer/0/w", &t), 0);
	EQ(rdmatensor_node_free(a, t.data), -EBUSY);
	place.bytes = sizeof(got);
	place.step = 3;
	EQ(rdmatensor_get(b, at_a("layer/0/w"), &place), 0);
	CHECK(got[0] == 5);
	EQ(rdmatensor_withdraw_offer(a, "layer/0/w", 3), 0);
	EQ(rdmatensor_node_free(a, t.data), 0);
	EQ(rdmatensor_withdraw_offer(a, "layer/0/w", 3), -ENOENT);
	CHECK(says("it is not offered"));
	EQ(rdmatensor_withdraw_offer(a, "layer/0/w", 0), 0);
	nodes_close();
}

TEST(node_says_what_is_wrong)
{
	float own[4] = { 1, 2, 3, 4 }, small[2];
	struct rdmatensor_tensor t = floats(own, 4), place = { .data = small, .bytes = 8 };
	struct rdmatensor_tensor found = { .step = 0 };
	char name[RDMATENSOR_NAME_MAX + 2] = "";

	EQ(rdmatensor_node_open(&a, "nowhere:x"), -EINVAL);
	CHECK(says("port is a number"));
	nodes_open();
	EQ(rdmatensor_offer(a, "w", &t), 0);
	EQ(rdmatensor_offer(a, "w", &t), -EEXIST);
	CHECK(says("as another step"));
	t.bytes = 15;
	EQ(rdmatensor_offer(a, "x", &t), -EINVAL);
	CHECK(says("15 bytes are not"));
	t.bytes = 0;
	t.dims[0] = UINT64_MAX / 2;
	EQ(rdmatensor_offer(a, "x", &t), -EINVAL);
	t = floats(NULL, 4);
	EQ(rdmatensor_offer(a, "x", &t), -EINVAL);
	t = floats(own, 4);
	t.ndims = RDMATENSOR_DIMS_MAX + 1;
	EQ(rdmatensor_offer(a, "x", &t), -EINVAL);
	CHECK(says("17 dimensions are more than 16"));
	t = floats(own, 4);
	t.data_type = RDMATENSOR_DT_MAX + 1;
	EQ(rdmatensor_offer(a, "x", &t), -EINVAL);
	CHECK(says("data_type 26 is none"));
	t.data_type = RDMATENSOR_DT_INVALID;
	EQ(rdmatensor_offer(a, "x", &t), -EINVAL);
	CHECK(says("data_type 0 is none"));
	t = floats(own, 4);
	EQ(rdmatensor_offer(a, "", &t), -EINVAL);
	CHECK(says("a name of 0 bytes: give it 1 to 512"));
	memset(name, 'n', sizeof(name) - 1);
	EQ(rdmatensor_offer(a, name, &t), -EINVAL);
	CHECK(says("nnn...\": a name of 513 bytes: give it 1 to 512"));
	name[RDMATENSOR_NAME_MAX] = '\0';
	EQ(rdmatensor_offer(a, name, &t), 0);
	EQ(rdmatensor_get(b, at_a("w"), &place), -EMSGSIZE);
	EQ(place.bytes, 16);
	EQ(rdmatensor_get(b, "host", &found), -EINVAL);
	CHECK(says("HOST[:PORT]/NAME"));
	EQ(rdmatensor_get(b, "host/", &found), -EINVAL);
	EQ(rdmatensor_get(b, "no.such.host.invalid/x", &found), -EADDRNOTAVAIL);
	rdmatensor_node_timeout(b, 200);
	EQ(rdmatensor_get(b, at_a("nothing"), &found), -ETIMEDOUT);
	CHECK(says("has not published it"));
	CHECK(!found.data);
	CHECK(!rdmatensor_node_alloc(a, 0));
	/* The line is of the last call */
	EQ(rdmatensor_get(b, at_a("w"), &found), 0);
	CHECK(!*rdmatensor_node_error());
	nodes_close();
}

TEST(node_of_what_is_hardly_a_tensor)
{
	struct rdmatensor_tensor none = { .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2,
					  .dims = { 3, 0 } };
	struct rdmatensor_tensor scalar = { .data_type = RDMATENSOR_DT_INT32 };
	int32_t number = 4711;
	struct rdmatensor_tensor found = { .step = 0 };

	nodes_open();
	EQ(rdmatensor_offer(a, "none", &none), 0);
	scalar.data = &number;
	EQ(rdmatensor_offer(a, "scalar", &scalar), 0);
	EQ(rdmatensor_get(b, at_a("none"), &found), 0);
	CHECK(!found.data && !found.bytes && found.ndims == 2 && found.dims[0] == 3);
	memset(&found, 0, sizeof(found));
	EQ(rdmatensor_get(b, at_a("scalar"), &found), 0);
	CHECK(!found.ndims && *(int32_t *)found.data == 4711);
	nodes_close();
}

/* One SUBMIT, and what one of them lacks keeps none of the others */
TEST(node_gets_many_at_once)
{
	static struct rdmatensor_tensor tensors[MANY];
	static const char *names[MANY];
	static char texts[MANY][8];
	static int errors[MANY];
	char peer[64];
	uint64_t submits, counters[RDMATENSOR_STAT_NR];
	unsigned int i;

	nodes_open();
	for (i = 0; i < MANY; i++) {
		float own[MANY];
		struct rdmatensor_tensor t = floats(own, i + 1);

		own[0] = own[i] = i;
		snprintf(texts[i], sizeof(texts[i]), "t%u", i);
		names[i] = texts[i];
		if (i != 100)
			EQ(rdmatensor_offer(a, names[i], &t), 0);
	}
	snprintf(peer, sizeof(peer), "%s:%u", test_ip(), rdmatensor_node_port(a));
	memset(tensors, 0, sizeof(tensors));
	/* Of the one that does not come; the others have it too, on a machine that is busy */
	rdmatensor_node_timeout(b, 4000);
	EQ(rdmatensor_get_many(b, peer, names, tensors, 2), 0);
	EQ(rdmatensor_stats(rdmatensor_node_handle(b), 0, counters, RDMATENSOR_STAT_NR), 0);
	submits = counters[RDMATENSOR_STAT_SUBMITS];
	memset(tensors, 0, sizeof(tensors));
	memset(errors, 1, sizeof(errors));
	EQ(rdmatensor_get_each(b, peer, names, tensors, MANY, errors), -ETIMEDOUT);
	CHECK(says("/t100, step 0"));
	for (i = 0; i < MANY; i++) {
		EQ(errors[i], i == 100 ? -ETIMEDOUT : 0);
		if (i == 100) {
			CHECK(!tensors[i].data);
			continue;
		}
		EQ(tensors[i].bytes, 4 * (i + 1));
		CHECK(((float *)tensors[i].data)[i] == i);
	}
	/* And few waits, those of the node's thread among them */
	EQ(rdmatensor_stats(rdmatensor_node_handle(b), 0, counters, RDMATENSOR_STAT_NR), 0);
	CHECK(counters[RDMATENSOR_STAT_SUBMITS] - submits < 30);

	/* Of several errors each tensor has its own; one that ends all of them is everyone's */
	for (i = 0; i < 4; i++)
		tensors[i] = (struct rdmatensor_tensor){ .flags = RDMATENSOR_TENSOR_NOWAIT };
	names[1] = "nosuch";
	tensors[2].slice = &(const struct rdmatensor_range){ 0, 4 };
	tensors[2].slice_ndims = 1;
	EQ(rdmatensor_get_each(b, peer, names, tensors, 4, errors), -ENOENT);
	CHECK(says("/nosuch, step 0"));
	CHECK(says("and 1 others of this call failed"));
	EQ(errors[0], 0);
	EQ(errors[1], -ENOENT);
	EQ(errors[2], -ERANGE);
	EQ(errors[3], 0);
	EQ(rdmatensor_get_each(b, "nobody.invalid", names, tensors, 4, errors), errors[0]);
	for (i = 0; i < 4; i++)
		CHECK(errors[i] < 0 && errors[i] == errors[0]);
	nodes_close();
}

static void nothing(int sig)
{
	(void)sig;
}

/* @b has the least ring: 16 entries, of which one is the channel's */
static void small_ring_open(unsigned int offered)
{
	float own[1] = { 7 };
	struct rdmatensor_tensor t = floats(own, 1);
	char name[16];
	unsigned int i;

	setenv("RDMATENSOR_RING_ENTRIES", "16", 1);
	node_open(&b, 0, 0);
	unsetenv("RDMATENSOR_RING_ENTRIES");
	node_open(&a, 0, 1);
	for (i = 0; i < offered; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		EQ(rdmatensor_offer(a, name, &t), 0);
	}
}

/**
 * struct lacking - a thread that gets what nobody offers, and what is
 * @none: how many names there are that nobody offers, the first ones
 * @some: and that are offered
 * @ret: what came of it
 * @came: tensors that came
 */
struct lacking {
	unsigned int none, some;
	int ret;
	unsigned int came;
};

static void *get_lacking(void *arg)
{
	static struct rdmatensor_tensor tensors[MANY];
	static const char *names[MANY];
	static char texts[MANY][16];
	struct lacking *lacking = arg;
	unsigned int i, nr = lacking->none + lacking->some;
	char peer[64];

	for (i = 0; i < nr; i++) {
		snprintf(texts[i], sizeof(texts[i]), i < lacking->none ? "none%u" : "t%u",
			 i < lacking->none ? i : i - lacking->none);
		names[i] = texts[i];
	}
	memset(tensors, 0, sizeof(tensors));
	snprintf(peer, sizeof(peer), "%s:%u", test_ip(), rdmatensor_node_port(a));
	lacking->ret = rdmatensor_get_many(b, peer, names, tensors, nr);
	for (i = 0, lacking->came = 0; i < nr; i++)
		lacking->came += tensors[i].data && *(float *)tensors[i].data == 7;
	return NULL;
}

/* The same of one, which get_lacking() may do meanwhile */
static void *get_lacking_one(void *arg)
{
	struct rdmatensor_tensor found = { .step = 0 };
	struct lacking *lacking = arg;

	lacking->ret = rdmatensor_get(b, at_a("none"), &found);
	return NULL;
}

/* Many times more than there is room for, behind some that never come */
TEST(node_whose_ring_is_small)
{
	struct lacking lacking = { .none = 2, .some = MANY - 2 };

	small_ring_open(MANY);
	rdmatensor_node_timeout(b, 3000);
	get_lacking(&lacking);
	EQ(lacking.ret, -ETIMEDOUT);
	EQ(lacking.came, lacking.some);
	CHECK(says("/none0, step 0: "));
	CHECK(says("has not published it"));
	CHECK(says("; and 1 others of this call failed"));
	nodes_close();
}

/* The ends that a call has not looked at, as it waits for its last one, keep no room from others */
TEST(node_whose_ring_is_full_of_ends)
{
	struct lacking lacking = { .none = 1, .some = 14 };
	struct rdmatensor_tensor found = { .step = 0 };
	pthread_t thread;
	uint64_t counters[RDMATENSOR_STAT_NR], began;
	unsigned int i;

	small_ring_open(16);
	EQ(rdmatensor_get(b, at_a("t0"), &found), 0);
	rdmatensor_node_timeout(b, 10000);
	EQ(pthread_create(&thread, NULL, get_lacking, &lacking), 0);
	do
		EQ(rdmatensor_stats(rdmatensor_node_handle(b), 0, counters, RDMATENSOR_STAT_NR), 0);
	while (counters[RDMATENSOR_STAT_FETCHED] < 1 + 14);
	began = rdmatensor_now_ns();
	for (i = 0; i < 50; i++) {
		memset(&found, 0, sizeof(found));
		EQ(rdmatensor_get(b, at_a("t15"), &found), 0);
	}
	CHECK(ms_since(began) < 8000);
	EQ(pthread_join(thread, NULL), 0);
	EQ(lacking.ret, -ETIMEDOUT);
	EQ(lacking.came, 14);
	nodes_close();
}

static void *withdraw_own(void *arg)
{
	*(int *)arg = rdmatensor_withdraw_offer(b, "own", 0);
	return NULL;
}

static void signals_end(pthread_t thread)
{
	while (pthread_tryjoin_np(thread, NULL)) {
		usleep(20000);	/* between two signals */
		pthread_kill(thread, SIGUSR1);
	}
}

/* What waits for room says so, in words that are its own, and a signal ends it */
TEST(node_whose_ring_is_full)
{
	struct lacking lacking = { .none = 100, .some = 0 }, other = { .none = 1, .some = 0 };
	struct sigaction action = { .sa_handler = nothing };
	struct rdmatensor_tensor found = { .step = 0 };
	uint64_t counters[RDMATENSOR_STAT_NR], began;
	float own[1] = { 1 };
	struct rdmatensor_tensor t = floats(own, 1);
	pthread_t thread, waiting;

	small_ring_open(1);
	EQ(rdmatensor_get(b, at_a("t0"), &found), 0);
	EQ(rdmatensor_offer(b, "own", &t), 0);
	rdmatensor_node_timeout(b, 6000);
	EQ(pthread_create(&thread, NULL, get_lacking, &lacking), 0);
	do
		EQ(rdmatensor_stats(rdmatensor_node_handle(b), 0, counters, RDMATENSOR_STAT_NR), 0);
	while (counters[RDMATENSOR_STAT_FETCHES] < 1 + 15);
	rdmatensor_node_timeout(b, 100);
	EQ(rdmatensor_get(b, at_a("t0"), &found), -ETIMEDOUT);
	CHECK(says("the completion ring had no room"));
	CHECK(!says("has not published"));
	EQ(rdmatensor_withdraw_offer(b, "own", 0), -EAGAIN);
	CHECK(says("withdraw: \"own\", step 0: the completion ring had no room"));

	sigaction(SIGUSR1, &action, NULL);
	rdmatensor_node_interruptible(b, 1);
	rdmatensor_node_timeout(b, -1);
	began = rdmatensor_now_ns();
	EQ(pthread_create(&waiting, NULL, get_lacking_one, &other), 0);
	signals_end(waiting);
	EQ(other.ret, -EINTR);
	EQ(pthread_create(&waiting, NULL, withdraw_own, &other.ret), 0);
	signals_end(waiting);
	EQ(other.ret, -EINTR);
	CHECK(ms_since(began) < 5000);
	EQ(pthread_join(thread, NULL), 0);
	EQ(lacking.ret, -ETIMEDOUT);
	EQ(rdmatensor_withdraw_offer(b, "own", 0), 0);
	nodes_close();
}

/* More than the first pools hold; what was given back is used again */
TEST(node_memory_grows)
{
	const uint64_t bytes = 20 << 20;
	struct rdmatensor_tensor t = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
				       .dims = { bytes } };
	struct rdmatensor_tensor found[3] = { 0 };
	struct rdmatensor_query query;
	unsigned int i, round;

	nodes_open();
	for (i = 0; i < 2; i++) {
		t.step = i;
		t.data = rdmatensor_node_alloc(a, bytes);
		fill(t.data, bytes, i);
		EQ(rdmatensor_offer(a, "big", &t), 0);
	}
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++) {
			memset(&found[i], 0, sizeof(found[i]));
			found[i].step = i % 2;
			EQ(rdmatensor_get(b, at_a("big"), &found[i]), 0);
			CHECK(filled(found[i].data, bytes, i % 2));
		}
		for (i = 0; i < 3; i++)
			EQ(rdmatensor_node_free(b, found[i].data), 0);
	}
	EQ(rdmatensor_query(rdmatensor_node_handle(b), &query), 0);
	CHECK(query.pools <= 3);
	nodes_close();
}

static unsigned int pools_of(struct rdmatensor_node *node)
{
	struct rdmatensor_query query;

	EQ(rdmatensor_query(rdmatensor_node_handle(node), &query), 0);
	return query.pools;
}

/* Together more than the first pool has, and each less: no more pools than are needed */
TEST(node_gets_more_than_there_is_room)
{
	const uint64_t bytes = 3 << 20;
	static struct rdmatensor_tensor tensors[20];
	static const char *names[20];
	struct rdmatensor_tensor t = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
				       .dims = { bytes } };
	char peer[64];
	unsigned int i;

	nodes_open();
	t.data = rdmatensor_node_alloc(a, bytes);
	fill(t.data, bytes, 6);
	EQ(rdmatensor_offer(a, "x", &t), 0);
	memset(tensors, 0, sizeof(tensors));
	for (i = 0; i < 20; i++)
		names[i] = "x";
	snprintf(peer, sizeof(peer), "%s:%u", test_ip(), rdmatensor_node_port(a));
	EQ(rdmatensor_get_many(b, peer, names, tensors, 20), 0);
	for (i = 0; i < 20; i++)
		CHECK(filled(tensors[i].data, bytes, 6));
	/* 16, 32 and 64 MiB */
	CHECK(pools_of(b) <= 3);
	nodes_close();
}

/* Longer than any pool that is there, to where no peer can write */
TEST(node_gets_to_long_memory_of_ones_own)
{
	const uint64_t bytes = 20 << 20;
	struct rdmatensor_tensor t = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
				       .dims = { bytes } };
	struct rdmatensor_tensor place = { .data = malloc(bytes), .bytes = bytes };

	CHECK(place.data);
	nodes_open();
	t.data = rdmatensor_node_alloc(a, bytes);
	fill(t.data, bytes, 7);
	EQ(rdmatensor_offer(a, "x", &t), 0);
	EQ(rdmatensor_get(b, at_a("x"), &place), 0);
	CHECK(filled(place.data, bytes, 7));
	CHECK(pools_of(b) <= 2);
	free(place.data);
	nodes_close();
}

/* Errnos that this side knows as its own: nothing is tried again, and nothing is made for it */
TEST(node_whose_peer_says_such_an_errno)
{
	static const int errnos[] = { -ENOSPC, -ECONNRESET, -ENOTCONN, -ESHUTDOWN, -EINTR };
	struct rdmatensor_tensor found;
	struct rdmatensor_query query;
	struct rdmatensor_op op;
	unsigned int i;
	char name[8];

	nodes_open();
	rdmatensor_node_timeout(b, -1);
	rdmatensor_node_interruptible(b, 1);
	for (i = 0; i < sizeof(errnos) / sizeof(*errnos); i++) {
		snprintf(name, sizeof(name), "e%u", i);
		rdmatensor_prep_publish_failed(&op, name, 0, errnos[i], NULL, 0, 0);
		EQ(rdmatensor_submit(rdmatensor_node_handle(a), &op, 1, 0, 0, NULL), 0);
		memset(&found, 0, sizeof(found));
		EQ(rdmatensor_get(b, at_a(name), &found),
		   errnos[i] == -EINTR ? -EREMOTEIO : errnos[i]);
		CHECK(says(strerror(-errnos[i])));
	}
	/* Its own time was over, not this node's */
	rdmatensor_node_timeout(b, 30000);
	rdmatensor_prep_publish_failed(&op, "late", 0, -ETIMEDOUT, NULL, 0, 0);
	EQ(rdmatensor_submit(rdmatensor_node_handle(a), &op, 1, 0, 0, NULL), 0);
	EQ(rdmatensor_get(b, at_a("late"), &found), -ETIMEDOUT);
	CHECK(!says("has not published"));
	EQ(pools_of(b), 1);
	EQ(rdmatensor_query(rdmatensor_node_handle(b), &query), 0);
	EQ(query.channels, 1);
	nodes_close();
}

/* What begins where no region can is copied, to and from */
TEST(node_parts_of_its_memory)
{
	struct rdmatensor_tensor t, found = { .step = 0 }, place;
	float *own;

	nodes_open();
	own = rdmatensor_node_alloc(a, 400);
	own[33] = 4;
	t = floats(own + 33, 1);
	EQ(rdmatensor_offer(a, "part", &t), 0);
	own[33] = 5;
	own[16] = 6;
	t = floats(own + 16, 1);
	EQ(rdmatensor_offer(a, "aligned", &t), 0);
	EQ(rdmatensor_get(b, at_a("part"), &found), 0);
	EQ(*(float *)found.data, 4);
	place = (struct rdmatensor_tensor){ .data = found.data, .bytes = 4 };
	EQ(rdmatensor_get(b, at_a("aligned"), &place), 0);
	EQ(*(float *)found.data, 6);
	EQ(rdmatensor_node_free(b, found.data), 0);
	nodes_close();
}

static struct rdmatensor_tensor interrupted[3];

static void *get_nothing(void *arg)
{
	static const char *const names[] = { "w", "nothing", "nobody" };
	char peer[64];

	memset(interrupted, 0, sizeof(interrupted));
	snprintf(peer, sizeof(peer), "%s:%u", test_ip(), rdmatensor_node_port(a));
	*(int *)arg = rdmatensor_get_many(b, peer, names, interrupted, 3);
	return NULL;
}

/* What has come by then stays, and the memory of all others is free */
TEST(node_whose_get_is_interrupted)
{
	struct sigaction action = { .sa_handler = nothing };
	float own[1] = { 1 };
	struct rdmatensor_tensor t = floats(own, 1), found = { .step = 0 };
	pthread_t thread;
	int ret = 0;

	sigaction(SIGUSR1, &action, NULL);
	nodes_open();
	EQ(rdmatensor_offer(a, "w", &t), 0);
	EQ(rdmatensor_get(b, at_a("w"), &found), 0);
	rdmatensor_node_interruptible(b, 1);
	rdmatensor_node_timeout(b, -1);
	EQ(pthread_create(&thread, NULL, get_nothing, &ret), 0);
	signals_end(thread);
	EQ(ret, -EINTR);
	CHECK(!interrupted[1].data && !interrupted[2].data);
	/* Which the first signal may have met, or not */
	CHECK(!interrupted[0].data || *(float *)interrupted[0].data == 1);
	nodes_close();
}

/* The way to a peer that is not there belongs to another thread, and this one waits for it */
static void *get_from_nobody(void *arg)
{
	struct rdmatensor_tensor found = { .step = 0 };
	char from[64];

	snprintf(from, sizeof(from), "%s:1/w", test_ip());
	*(int *)arg = rdmatensor_get(b, from, &found);
	return NULL;
}

TEST(node_whose_threads_wait_for_one_peer)
{
	struct sigaction action = { .sa_handler = nothing };
	struct rdmatensor_channel_query query = { .flags = RDMATENSOR_CHANNEL_NEXT };
	int first_ret = 0, second_ret = 0, late_ret = 0;
	pthread_t first, second, late;
	uint64_t began;

	sigaction(SIGUSR1, &action, NULL);
	nodes_open();
	rdmatensor_node_interruptible(b, 1);
	rdmatensor_node_timeout(b, -1);
	EQ(pthread_create(&first, NULL, get_from_nobody, &first_ret), 0);
	while (rdmatensor_channel_query(rdmatensor_node_handle(b), &query))
		usleep(1000);	/* until it connects, which no event tells */
	EQ(pthread_create(&second, NULL, get_from_nobody, &second_ret), 0);
	signals_end(second);
	EQ(second_ret, -EINTR);
	EQ(pthread_tryjoin_np(first, NULL), EBUSY);

	rdmatensor_node_timeout(b, 50);
	began = rdmatensor_now_ns();
	EQ(pthread_create(&late, NULL, get_from_nobody, &late_ret), 0);
	EQ(pthread_join(late, NULL), 0);
	EQ(late_ret, -ETIMEDOUT);
	CHECK(ms_since(began) < 10000);
	EQ(pthread_tryjoin_np(first, NULL), EBUSY);
	signals_end(first);
	EQ(first_ret, -EINTR);
	nodes_close();
}

/* Of one thread, in place of the node's */
TEST(node_whose_thread_has_a_deadline)
{
	struct rdmatensor_tensor found = { .step = 0 };
	struct lacking lacking = { .none = 1, .some = 0 };
	float own[1] = { 1 };
	struct rdmatensor_tensor t = floats(own, 1);
	pthread_t thread;
	uint64_t began;
	int i;

	nodes_open();
	EQ(rdmatensor_offer(a, "w", &t), 0);
	rdmatensor_node_timeout(b, -1);
	began = rdmatensor_now_ns();
	rdmatensor_node_until(rdmatensor_deadline_ms(100));
	for (i = 0; i < 3; i++)
		EQ(rdmatensor_get(b, at_a("none"), &found), -ETIMEDOUT);
	CHECK(ms_since(began) < 10000);
	rdmatensor_node_until(0);
	EQ(rdmatensor_get(b, at_a("w"), &found), 0);
	rdmatensor_node_timeout(b, 100);
	rdmatensor_node_until(rdmatensor_deadline_ms(100000));
	EQ(pthread_create(&thread, NULL, get_lacking, &lacking), 0);
	EQ(pthread_join(thread, NULL), 0);
	EQ(lacking.ret, -ETIMEDOUT);
	rdmatensor_node_until(0);
	nodes_close();
}

static unsigned int port;

static void *come_later(void *arg)
{
	float own[1] = { 42 };
	struct rdmatensor_tensor t = floats(own, 1);

	usleep(300000);		/* while the other side tries to connect */
	node_open(&a, port, 1);
	usleep(300000);		/* while it waits for the tensor */
	*(int *)arg = rdmatensor_offer(a, "w", &t);
	return NULL;
}

/* A peer that goes and comes back on the same port, and one that comes late */
TEST(node_whose_peer_comes_back)
{
	struct rdmatensor_tensor found = { .step = 0 };
	pthread_t thread;
	char from[64];
	float own[1] = { 41 };
	struct rdmatensor_tensor t = floats(own, 1);
	int i, ret = 1;

	nodes_open();
	port = rdmatensor_node_port(a);
	snprintf(from, sizeof(from), "%s:%u/w", test_ip(), port);
	EQ(rdmatensor_offer(a, "w", &t), 0);
	for (i = 0; i < 2; i++) {
		memset(&found, 0, sizeof(found));
		EQ(rdmatensor_get(b, from, &found), 0);
		CHECK(*(float *)found.data == 41 + i);
		EQ(rdmatensor_node_free(b, found.data), 0);
		if (i)
			break;
		rdmatensor_node_close(a);
		EQ(pthread_create(&thread, NULL, come_later, &ret), 0);
	}
	EQ(pthread_join(thread, NULL), 0);
	EQ(ret, 0);
	nodes_close();
}

static void *get_of_a(void *arg)
{
	struct rdmatensor_tensor found = { .step = 0 };

	*(int *)arg = rdmatensor_get(b, at_a("w"), &found);
	/* What was tried in vain is not to be read of a call that has not failed */
	if (!*(int *)arg && *rdmatensor_node_error())
		*(int *)arg = -EPROTO;
	return NULL;
}

/*
 * Its channel has gone down, and the place is another's: perhaps its own former one's, which the
 * peer still counts. It is waited for; who comes for the first time is told at once.
 */
TEST(node_whose_place_is_taken)
{
	struct rdmatensor_channel_query query = { .flags = RDMATENSOR_CHANNEL_NEXT };
	struct rdmatensor_tensor found = { .step = 0 };
	struct rdmatensor_node *newcomer;
	float own[1] = { 1 };
	struct rdmatensor_tensor t = floats(own, 1);
	char cause[256], addr[64];
	struct side rival;
	pthread_t thread;
	uint64_t began;
	int i, ret = 1;

	setenv("RDMATENSOR_MAX_CHANNELS", "1", 1);
	node_open(&a, 0, 1);
	unsetenv("RDMATENSOR_MAX_CHANNELS");
	node_open(&b, 0, 0);
	side_open(&rival, "rival", 4096, 0, NULL);
	EQ(rdmatensor_offer(a, "w", &t), 0);
	EQ(get_of_a(&ret), NULL);
	EQ(ret, 0);
	EQ(rdmatensor_channel_query(rdmatensor_node_handle(a), &query), 0);
	EQ(rdmatensor_disconnect(rdmatensor_node_handle(a), query.channel), 0);
	snprintf(addr, sizeof(addr), "%s:%u", test_ip(), rdmatensor_node_port(a));
	EQ(rdmatensor_connect(rival.rt, addr, NULL, 0, &rival.channel, cause, sizeof(cause)), 0);

	/* And so does the call after one that has waited in vain */
	rdmatensor_node_timeout(b, 3000);
	for (i = 0; i < 2; i++) {
		began = rdmatensor_now_ns();
		EQ(rdmatensor_get(b, at_a("w"), &found), -EUSERS);
		CHECK(says("max_channels"));
		CHECK(ms_since(began) >= 3000);
	}
	rdmatensor_node_timeout(b, 100000);
	EQ(pthread_create(&thread, NULL, get_of_a, &ret), 0);
	EQ(rdmatensor_disconnect(rival.rt, rival.channel), 0);
	EQ(pthread_join(thread, NULL), 0);
	EQ(ret, 0);

	node_open(&newcomer, 0, 0);
	rdmatensor_node_timeout(newcomer, 100000);
	began = rdmatensor_now_ns();
	EQ(rdmatensor_get(newcomer, at_a("w"), &found), -EUSERS);
	CHECK(ms_since(began) < 10000);
	rdmatensor_node_close(newcomer);
	side_close(&rival);
	nodes_close();
}

struct worker {
	pthread_t thread;
	unsigned int nr;
	unsigned int bad;
};

static void *offer_and_get(void *arg)
{
	struct worker *w = arg;
	unsigned int i;
	char name[16];

	for (i = 0; i < ROUNDS; i++) {
		float own[64] = { 0 }, got[64] = { 0 };
		struct rdmatensor_tensor t = floats(own, 64), found = { .step = 0 };
		struct rdmatensor_tensor place = { .data = got, .bytes = sizeof(got) };

		own[0] = w->nr;
		own[63] = i;
		snprintf(name, sizeof(name), "own%u", w->nr);
		w->bad += rdmatensor_offer(a, name, &t) != 0;
		w->bad += rdmatensor_get(b, at_a(name), &found) || !found.data;
		if (found.data) {
			w->bad += ((float *)found.data)[0] != w->nr ||
				  ((float *)found.data)[63] != i;
			w->bad += rdmatensor_node_free(b, found.data) != 0;
		}
		w->bad += rdmatensor_get(b, at_a(name), &place) || got[63] != i;
		w->bad += rdmatensor_withdraw_offer(a, name, 0) != 0;
	}
	return NULL;
}

TEST(node_of_many_threads)
{
	struct worker workers[THREADS] = {};
	unsigned int i;

	nodes_open();
	for (i = 0; i < THREADS; i++) {
		workers[i].nr = i;
		EQ(pthread_create(&workers[i].thread, NULL, offer_and_get, &workers[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		EQ(pthread_join(workers[i].thread, NULL), 0);
		EQ(workers[i].bad, 0);
	}
	nodes_close();
}

/* ---- rows --------------------------------------------------------------------- */

#define ROWS 3000
#define COLUMNS 33
#define WANTED 500

static struct rdmatensor_node *c;

/* What column @k of row @i has */
static float in_row(uint64_t i, unsigned int k, float of)
{
	return (float)(i * COLUMNS + k) + of;
}

static void fill_rows(float *data, uint64_t first, uint64_t end, float of)
{
	uint64_t i;
	unsigned int k;

	for (i = first; i < end; i++)
		for (k = 0; k < COLUMNS; k++)
			*data++ = in_row(i, k, of);
}

static struct rdmatensor_tensor part(void *data, uint64_t nr)
{
	return (struct rdmatensor_tensor){
		.data = data, .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .dims = { nr, COLUMNS },
	};
}

static char at_own[2][64];

/* @a has rows 0 to 999, copied; @c all others, as they are */
static float *owners_open(unsigned int port, const char *owners[2])
{
	static float own[1000 * COLUMNS];
	struct rdmatensor_tensor rows = part(own, 1000);
	float *data;

	nodes_open();
	node_open(&c, port, 1);
	fill_rows(own, 0, 1000, 0);
	EQ(rdmatensor_offer_rows(a, "t", &rows, 0), 0);
	own[0] = 77;
	data = rdmatensor_node_alloc_rows(c, (ROWS - 1000) * COLUMNS * sizeof(float));
	CHECK(data);
	fill_rows(data, 1000, ROWS, 0);
	rows = part(data, ROWS - 1000);
	EQ(rdmatensor_offer_rows(c, "t", &rows, 1000), 0);
	snprintf(at_own[0], sizeof(at_own[0]), "%s:%u", test_ip(), rdmatensor_node_port(a));
	snprintf(at_own[1], sizeof(at_own[1]), "%s:%u", test_ip(), rdmatensor_node_port(c));
	owners[0] = at_own[0];
	owners[1] = at_own[1];
	return data;
}

static void are_rows(const struct rdmatensor_tensor *got, const uint64_t *ids, uint64_t nr, float of)
{
	const float *data = got->data;
	uint64_t i;
	unsigned int k;

	CHECK(got->ndims == 2 && got->dims[0] == nr && got->dims[1] == COLUMNS);
	EQ(got->bytes, nr * COLUMNS * sizeof(float));
	EQ(got->data_type, RDMATENSOR_DT_FLOAT);
	for (i = 0; i < nr; i++)
		for (k = 0; k < COLUMNS; k++)
			if (data[i * COLUMNS + k] != in_row(ids[i], k, of))
				test_fail(__FILE__, __LINE__, "row %llu, column %u: %f",
					  (unsigned long long)ids[i], k,
					  (double)data[i * COLUMNS + k]);
}

static void random_ids(uint64_t *ids, unsigned int nr, unsigned int *seed)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		ids[i] = (uint64_t)rand_r(seed) % ROWS;
}

TEST(node_rows)
{
	struct rdmatensor_tensor got = { .bytes = 0 }, shape, place, rows;
	static float own[WANTED * COLUMNS];
	struct rdmatensor_node_table *table;
	uint64_t ids[WANTED], far[] = { 1, ROWS };
	unsigned int seed = 1;
	const char *owners[2];
	float *data;

	data = owners_open(0, owners);
	EQ(rdmatensor_node_table_open(b, "t", owners, 2, NULL, &table), 0);
	rdmatensor_node_table_shape(table, &shape);
	CHECK(shape.ndims == 2 && shape.dims[0] == ROWS && shape.dims[1] == COLUMNS);
	EQ(shape.bytes, COLUMNS * sizeof(float));
	random_ids(ids, WANTED, &seed);
	ids[3] = ids[2];
	EQ(rdmatensor_get_rows(table, ids, WANTED, &got), 0);
	are_rows(&got, ids, WANTED, 0);
	EQ(rdmatensor_node_free(b, got.data), 0);
	/* The caller's memory, and its limits */
	place = (struct rdmatensor_tensor){ .data = own, .bytes = sizeof(own) };
	EQ(rdmatensor_get_rows(table, ids, WANTED, &place), 0);
	are_rows(&place, ids, WANTED, 0);
	place.bytes = sizeof(own) - 1;
	EQ(rdmatensor_get_rows(table, ids, WANTED, &place), -EMSGSIZE);
	EQ(place.bytes, sizeof(own));
	CHECK(says("there is room for"));
	EQ(rdmatensor_get_rows(table, far, 2, &place), -ERANGE);
	CHECK(says("\"t\""));
	got.data = NULL;
	EQ(rdmatensor_get_rows(table, ids, 0, &got), 0);
	CHECK(!got.data && !got.bytes && got.ndims == 2);
	/* What is read in place, the owner changes in place */
	fill_rows(data, 1000, 1001, 5);
	EQ(rdmatensor_get_rows(table, (uint64_t[]){ 1000 }, 1, &place), 0);
	CHECK(own[0] == in_row(1000, 0, 5));
	EQ(rdmatensor_node_free(c, data), -EBUSY);
	CHECK(says("withdraw"));
	EQ(rdmatensor_withdraw_rows(c, "t"), 0);
	EQ(rdmatensor_withdraw_rows(c, "t"), -ENOENT);
	EQ(rdmatensor_node_free(c, data), 0);
	EQ(rdmatensor_node_free(c, data), -ENOENT);
	rdmatensor_node_timeout(b, 300);
	place.bytes = sizeof(own);
	EQ(rdmatensor_get_rows(table, (uint64_t[]){ 2000 }, 1, &place), -ENOENT);
	EQ(rdmatensor_get_rows(table, (uint64_t[]){ 1 }, 1, &place), -ENOENT);
	CHECK(says("does not export"));
	rdmatensor_node_table_close(table);
	EQ(rdmatensor_node_table_open(b, "t", owners, 2, NULL, &table), -ENOENT);
	CHECK(says("table \"t\": could not ask") && !table);
	EQ(rdmatensor_node_table_open(b, "t", owners, 0, NULL, &table), -EINVAL);
	/* Of one's own, without a channel */
	EQ(rdmatensor_node_table_open(a, "t", (const char *[]){ "" }, 1, NULL, &table), 0);
	EQ(rdmatensor_get_rows(table, (uint64_t[]){ 999 }, 1, &place), 0);
	CHECK(own[0] == in_row(999, 0, 0));
	rdmatensor_node_table_close(table);
	/* What cannot be offered */
	rows = part(own, 3);
	rows.bytes = 7;
	EQ(rdmatensor_offer_rows(a, "u", &rows, 0), -EINVAL);
	rows = part(own, 0);
	EQ(rdmatensor_offer_rows(a, "u", &rows, 0), -EINVAL);
	rows = part(own, 3);
	EQ(rdmatensor_offer_rows(a, "u", &rows, UINT64_MAX - 1), -EINVAL);
	EQ(rdmatensor_offer_rows(a, "t", &rows, 5000), -EEXIST);
	CHECK(says("withdraw the rows"));
	rdmatensor_node_close(c);
	nodes_close();
}

TEST(node_rows_kept)
{
	struct rdmatensor_node_table_options options = { .cache_first = 990, .cache_end = 1100 };
	struct rdmatensor_tensor got = { .bytes = 0 }, shape;
	uint64_t ids[] = { 0, 989, 990, 1000, 1099, 1100 }, order[ROWS / 2], i;
	struct rdmatensor_node_table *table;
	const char *owners[2];
	float *data;

	data = owners_open(0, owners);
	EQ(rdmatensor_node_table_open(b, "t", owners, 2, &options, &table), 0);
	EQ(rdmatensor_get_rows(table, ids, 6, &got), 0);
	are_rows(&got, ids, 6, 0);
	EQ(rdmatensor_node_free(b, got.data), 0);
	/* Copies stay as they were read */
	fill_rows(data, 1000, ROWS, 3);
	got.data = NULL;
	EQ(rdmatensor_get_rows(table, &ids[4], 2, &got), 0);
	CHECK(((float *)got.data)[0] == in_row(1099, 0, 0));
	CHECK(((float *)got.data)[COLUMNS] == in_row(1100, 0, 3));
	EQ(rdmatensor_node_free(b, got.data), 0);
	rdmatensor_node_table_close(table);
	/* Every second row, the last one first */
	for (i = 0; i < ROWS / 2; i++)
		order[i] = ROWS - 1 - 2 * i;
	options.order = order;
	options.order_nr = ROWS / 2;
	EQ(rdmatensor_node_table_open(b, "t", owners, 2, &options, &table), 0);
	rdmatensor_node_table_shape(table, &shape);
	EQ(shape.dims[0], ROWS / 2);
	got.data = NULL;
	EQ(rdmatensor_get_rows(table, (uint64_t[]){ 0, 1499 }, 2, &got), 0);
	CHECK(((float *)got.data)[0] == in_row(ROWS - 1, 0, 3));
	CHECK(((float *)got.data)[COLUMNS] == in_row(1, 0, 0));
	EQ(rdmatensor_node_free(b, got.data), 0);
	got.data = NULL;
	EQ(rdmatensor_get_rows(table, (uint64_t[]){ 1500 }, 1, &got), -ERANGE);
	CHECK(!got.data);
	rdmatensor_node_table_close(table);
	options.cache_end = ROWS + 1;
	EQ(rdmatensor_node_table_open(b, "t", owners, 2, &options, &table), -EINVAL);
	CHECK(says("the table has 3000"));
	rdmatensor_node_close(c);
	nodes_close();
}

static int ending;
static uint64_t gathers[THREADS];
/* What is added to the rows that @c has now, or is about to have */
static unsigned int generation;
static struct rdmatensor_node_table *shared;

/* Every thread has got rows, and again */
static void more_gathers(void)
{
	uint64_t from[THREADS];
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		from[i] = __atomic_load_n(&gathers[i], __ATOMIC_ACQUIRE);
	for (i = 0; i < THREADS; i++)
		while (__atomic_load_n(&gathers[i], __ATOMIC_ACQUIRE) - from[i] < 2)
			usleep(1000);
}

/* It is whole, and of an owner that was there during the call */
static void is_row(const float *row, uint64_t id, unsigned int least, unsigned int most)
{
	unsigned int of = least, k;

	if (id < 1000)
		of = most = 0;
	while (of < most && row[0] != in_row(id, 0, (float)of))
		of++;
	for (k = 0; k < COLUMNS; k++)
		if (row[k] != in_row(id, k, (float)of))
			test_fail(__FILE__, __LINE__, "row %llu, column %u: %f of owners %u to %u",
				  (unsigned long long)id, k, (double)row[k], least, most);
}

/* Rows, until it is told to end; all are right, whichever owner has them */
static void *gather_rows(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	static _Thread_local float own[WANTED * COLUMNS];
	struct rdmatensor_tensor got;
	unsigned int own_nr = seed - 1, least, i;
	uint64_t ids[WANTED];

	while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
		random_ids(ids, WANTED, &seed);
		got = (struct rdmatensor_tensor){ .data = own, .bytes = sizeof(own) };
		least = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
		if (rdmatensor_get_rows(shared, ids, WANTED, &got))
			test_fail(__FILE__, __LINE__, "%s", rdmatensor_node_error());
		EQ(got.bytes, sizeof(own));
		for (i = 0; i < WANTED; i++)
			is_row(&own[i * COLUMNS], ids[i], least,
			       __atomic_load_n(&generation, __ATOMIC_ACQUIRE));
		__atomic_add_fetch(&gathers[own_nr], 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

TEST(node_rows_of_owners_that_restart)
{
	struct rdmatensor_node_table_options options = { .cache_first = 100, .cache_end = 200 };
	struct rdmatensor_tensor rows;
	pthread_t threads[THREADS];
	const char *owners[2];
	unsigned int i, port;
	float *data;

	owners_open(0, owners);
	port = rdmatensor_node_port(c);
	rdmatensor_node_timeout(b, 30000);
	EQ(rdmatensor_node_table_open(b, "t", owners, 2, &options, &shared), 0);
	ending = 0;
	generation = 0;
	for (i = 0; i < THREADS; i++)
		EQ(pthread_create(&threads[i], NULL, gather_rows, (void *)(uintptr_t)(i + 1)), 0);
	for (i = 0; i < 4; i++) {
		more_gathers();
		rdmatensor_node_close(c);
		node_open(&c, port, 1);
		data = rdmatensor_node_alloc_rows(c, (ROWS - 1000) * COLUMNS * sizeof(float));
		fill_rows(data, 1000, ROWS, (float)(i + 1));
		rows = part(data, ROWS - 1000);
		__atomic_store_n(&generation, i + 1, __ATOMIC_RELEASE);
		EQ(rdmatensor_offer_rows(c, "t", &rows, 1000), 0);
	}
	more_gathers();
	__atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* One that comes back with other rows is not taken for the former */
	rdmatensor_node_close(c);
	node_open(&c, port, 1);
	data = rdmatensor_node_alloc_rows(c, 4096);
	rows = part(data, 3);
	EQ(rdmatensor_offer_rows(c, "t", &rows, 1000), 0);
	rows = (struct rdmatensor_tensor){ .bytes = 0 };
	EQ(rdmatensor_get_rows(shared, (uint64_t[]){ 1001 }, 1, &rows), -ESTALE);
	CHECK(says("open it again"));
	rdmatensor_node_table_close(shared);
	rdmatensor_node_close(c);
	nodes_close();
}

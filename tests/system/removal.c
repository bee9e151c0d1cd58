// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device goes, and comes again: what those hear who poll, wait or call, in quiet and
 * beside bulk. Each case leaves a device behind, also if it fails.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "device.h"
#include "harness.h"

static struct pair p;

static void device_back(void)
{
	const char *device = getenv("LAB_RDMA_DEV");
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", device ? device : "rxe0");
	if (access(path, F_OK) && device_add())
		printf("# there is no RDMA device for the cases that come\n");
}

#define POLLERS 6

/* Return: what poll() says of @arg's descriptor, when it says something */
static void *poller(void *arg)
{
	struct pollfd pfd = { .fd = rdmatensor_fd(arg), .events = POLLIN };

	return (void *)(long)(poll(&pfd, 1, 30000) == 1 ? pfd.revents : 0);
}

/* The same of those of whom an entry wakes one alone */
static void *exclusive_poller(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int fd = epoll_create1(EPOLL_CLOEXEC), got;

	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, rdmatensor_fd(arg), &event))
		return NULL;
	got = epoll_wait(fd, &event, 1, 30000);
	close(fd);
	return (void *)(long)(got == 1 ? (int)event.events : 0);
}

static int polled(const struct side *side)
{
	return (long)poller(side->rt);
}

TEST(after_the_device_has_gone)
{
	struct rdmatensor_channel_query channel = { .flags = RDMATENSOR_CHANNEL_NEXT };
	struct rdmatensor_query query;
	struct rdmatensor_pool pool, kept;
	char addr[64], cause[256];
	struct rdmatensor_start start;
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	uint64_t counters[RDMATENSOR_STAT_NR];
	pthread_t pollers[POLLERS];
	struct rdmatensor *alone;
	void *revents;
	uint32_t id;
	int why, i;

	test_at_end(device_back);
	pair_open(&p, 1 << 20, NULL);
	/* Whoever has neither channel nor operation hears of it too, in each of its threads */
	rdmatensor_start_init(&start, "alone");
	EQ(rdmatensor_open(NULL, &alone), 0);
	EQ(rdmatensor_start(alone, &start), 0);
	for (i = 0; i < POLLERS; i++)
		EQ(pthread_create(&pollers[i], NULL, i % 2 ? exclusive_poller : poller, alone), 0);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	EQ(fetch(&p.b, "t", 0, 64, NULL, &cqe), 0);
	EQ(rdmatensor_pool_create(p.b.rt, 4096, &kept), 0);
	rdmatensor_prep_fetch_alloc(&op, p.b.channel, "never", 0, p.b.pool.id, 0, 0, 5);
	EQ(side_do(&p.b, &op), 0);
	publish(&p.b, "own", 0, 64, 1, 1, 6);

	EQ(device_del(), 0);
	/* The peer's context hears of it in its own time, perhaps first */
	why = side_next(&p.b, RDMATENSOR_CQE_FETCH, 5, NULL);
	CHECK(why == -ENODEV || why == -ECONNRESET);
	EQ(side_next(&p.b, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL), why);
	for (i = 0; i < POLLERS; i++) {
		EQ(pthread_join(pollers[i], &revents), 0);
		EQ((long)revents, POLLERR);
	}
	rdmatensor_close(alone);
	/* All of that is read, and only what follows of its own is news */
	EQ(polled(&p.b), POLLERR);

	EQ(rdmatensor_query(p.b.rt, &query), 0);
	EQ(query.flags, RDMATENSOR_QUERY_STARTED | RDMATENSOR_QUERY_DEVICE_GONE);
	EQ(query.channels, 0);
	rdmatensor_start_init(&start, "again");
	EQ(rdmatensor_start(p.b.rt, &start), -EISCONN);
	EQ(rdmatensor_pool_create(p.b.rt, 4096, &pool), -ENODEV);
	test_addr(addr, sizeof(addr), p.a.port);
	EQ(rdmatensor_connect(p.b.rt, addr, NULL, 0, &id, cause, sizeof(cause)), -ENODEV);
	CHECK(strstr(cause, "gone"));
	EQ(rdmatensor_disconnect(p.b.rt, p.b.channel), -ENOENT);
	EQ(rdmatensor_channel_query(p.b.rt, &channel), -ENOENT);
	EQ(rdmatensor_stats(p.b.rt, 0, counters, RDMATENSOR_STAT_NR) >= 0, 1);
	EQ(rdmatensor_stats(p.b.rt, p.b.channel, counters, RDMATENSOR_STAT_NR), -ENOENT);
	EQ(side_do(&p.b, &op), -ENOTCONN);
	EQ(rdmatensor_step_abort(p.b.rt, 5, -EIO, NULL), 0);
	EQ(rdmatensor_configure(p.b.rt, 1, 1), 0);
	/* Memory and what is published is the context's own */
	side_alloc(&p.b, 64);
	rdmatensor_prep_fetch_alloc(&op, RDMATENSOR_CHANNEL_SELF, "own", 0, p.b.pool.id, 0,
				    rdmatensor_deadline_ms(5000), 7);
	EQ(side_do(&p.b, &op), 0);
	CHECK(polled(&p.b) & POLLERR);
	EQ(side_next(&p.b, RDMATENSOR_CQE_FETCH, 7, &cqe), 0);
	CHECK(filled(side_at(&p.b, cqe.offset), 64, 1));
	EQ(side_next(&p.b, RDMATENSOR_CQE_PUBLISH, 6, NULL), 0);
	EQ(rdmatensor_pool_destroy(p.b.rt, &kept), 0);
	side_close(&p.a);
	side_close(&p.b);

	EQ(rdmatensor_open(NULL, &p.a.rt), 0);
	rdmatensor_start_init(&start, "none");
	EQ(rdmatensor_start(p.a.rt, &start), -ENODEV);
	rdmatensor_close(p.a.rt);
	EQ(device_add(), 0);
	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	EQ(fetch(&p.b, "t", 0, 64, NULL, &cqe), 0);
}

#define REAPERS 4
#define TENSORS 4
/* Of several lengths, so that not all fetches end at once */
#define TENSOR_BYTES(nr) (((nr) % TENSORS + 1) * (1ull << 20))
#define FETCHES 16
/* Of a tensor that nobody publishes: whatever has been served by then, it is in flight */
#define NEVER FETCHES

/**
 * struct bulk - what all reapers of one side share
 * @side: whose ring it is
 * @progress: once for each fetch that brought its bytes, and for each reaper that ends
 * @lock: of reaping, and of all that follows
 * @pending: fetches without an entry
 * @fetched: those that brought their bytes
 * @cut: those that ended with -ENODEV or -ECONNRESET
 * @down: the channel's end was read
 * @wrong: what a reaper was first to find, after which all of them end
 */
struct bulk {
	struct side *side;
	sem_t progress;
	pthread_mutex_t lock;
	unsigned int pending, fetched, cut;
	bool down;
	const char *wrong;
};

/* Not of the stack: reapers of a case that failed may live on */
static struct bulk bulk[2];

static const char *bulk_fetch(struct bulk *bulk, uint64_t nr)
{
	struct rdmatensor_op op;
	char name[16];
	int err;

	if (nr == NEVER)
		strcpy(name, "never");
	else
		snprintf(name, sizeof(name), "bulk-%u", (unsigned int)nr % TENSORS);
	rdmatensor_prep_fetch_alloc(&op, bulk->side->channel, name, 0, bulk->side->pool.id,
				    TENSOR_BYTES(nr), 0, nr);
	/* Its entry, which may be there before SUBMIT returns, is not taken before it counts */
	pthread_mutex_lock(&bulk->lock);
	err = rdmatensor_submit(bulk->side->rt, &op, 1, 0, 0, NULL);
	if (!err)
		bulk->pending++;
	pthread_mutex_unlock(&bulk->lock);
	return !err || err == -ENOTCONN || err == -ENODEV ? NULL : strerror(-err);
}

/* What a fetch has brought is looked at without the lock, and fetched once more */
static const char *bulk_again(struct bulk *bulk, const struct rdmatensor_cqe *cqe)
{
	struct side *side = bulk->side;

	if (!filled(side_at(side, cqe->offset), cqe->tensor_bytes, cqe->user_data % TENSORS))
		return "other bytes than were published";
	if (rdmatensor_pool_free(side->rt, &side->pool, cqe->offset))
		return "FREE failed";
	return bulk_fetch(bulk, cqe->user_data);
}

/* Takes an entry. Return: there was one; @again: it has brought bytes */
static bool bulk_take(struct bulk *bulk, struct rdmatensor_cqe *cqe, bool *again)
{
	bool taken;

	*again = false;
	pthread_mutex_lock(&bulk->lock);
	taken = rdmatensor_reap(bulk->side->rt, cqe, 1);
	if (taken && cqe->type == RDMATENSOR_CQE_CHANNEL_DOWN) {
		bulk->down = true;
	} else if (taken && cqe->type == RDMATENSOR_CQE_FETCH) {
		bulk->pending--;
		*again = !cqe->result;
		if (*again)
			bulk->fetched++;
		else if (cqe->result == -ENODEV || cqe->result == -ECONNRESET)
			bulk->cut++;
		else if (!bulk->wrong)
			bulk->wrong = strerror(-cqe->result);
	}
	pthread_mutex_unlock(&bulk->lock);
	return taken;
}

/*
 * What the removal ends is in the ring before poll() tells of the removal. The number of channels is
 * asked for at once: while this thread reaps, late ends could still come
 */
static const char *bulk_over(struct bulk *bulk)
{
	struct rdmatensor_query now;
	const char *wrong = NULL;
	struct rdmatensor_cqe cqe;
	bool again;

	if (rdmatensor_query(bulk->side->rt, &now))
		return "QUERY failed";
	if (now.channels)
		return "poll() told of a removal while there was a channel";
	while (bulk_take(bulk, &cqe, &again))
		;
	pthread_mutex_lock(&bulk->lock);
	if (!bulk->down || bulk->pending)
		wrong = "poll() told of a removal whose entries were not there";
	pthread_mutex_unlock(&bulk->lock);
	return wrong;
}

/* One of several threads that poll a handle and reap */
static void *bulk_reaper(void *arg)
{
	struct bulk *bulk = arg;
	struct pollfd pfd = { .fd = rdmatensor_fd(bulk->side->rt), .events = POLLIN };
	const char *wrong = NULL;
	struct rdmatensor_cqe cqe;
	bool over = false, again;

	while (!over && !wrong) {
		if (poll(&pfd, 1, 30000) != 1) {
			wrong = "poll() is silent for half a minute";
		} else if (pfd.revents & POLLERR) {
			wrong = bulk_over(bulk);
			over = true;
		} else if (bulk_take(bulk, &cqe, &again) && again) {
			wrong = bulk_again(bulk, &cqe);
			sem_post(&bulk->progress);
		}
		pthread_mutex_lock(&bulk->lock);
		if (!bulk->wrong)
			bulk->wrong = wrong;
		over |= !!bulk->wrong;
		pthread_mutex_unlock(&bulk->lock);
	}
	sem_post(&bulk->progress);
	return NULL;
}

/* Bulk goes both ways, and several threads reap on each side's one handle */
TEST(the_device_goes_beside_bulk)
{
	struct side *sides[] = { &p.a, &p.b };
	pthread_t reapers[2][REAPERS];
	struct rdmatensor_cqe cqe;
	int i, j, err = 0, nr = 0;
	const char *why = NULL;
	char name[16];

	test_at_end(device_back);
	/* Twice what is in use, for regions of several lengths */
	pair_open(&p, 128 << 20, NULL);
	memset(bulk, 0, sizeof(bulk));
	for (i = 0; i < 2; i++) {
		EQ(pthread_mutex_init(&bulk[i].lock, NULL), 0);
		EQ(sem_init(&bulk[i].progress, 0, 0), 0);
		bulk[i].side = sides[i];
		for (j = 0; j < TENSORS; j++) {
			snprintf(name, sizeof(name), "bulk-%d", j);
			publish(sides[i], name, 0, TENSOR_BYTES(j), j, 0, 0);
		}
	}
	/* Nothing fails before all of them have ended, which they do when the device has gone */
	for (i = 0; i < 2; i++) {
		for (j = 0; j < REAPERS && !err; j++) {
			err = pthread_create(&reapers[i][j], NULL, bulk_reaper, &bulk[i]);
			nr += !err;
		}
		for (j = 0; j <= NEVER && !why; j++)
			why = bulk_fetch(&bulk[i], j);
	}
	for (i = 0; i < 2 && !err && !why; i++) {
		for (j = 0; j < REAPERS; j++)
			sem_wait(&bulk[i].progress);
	}
	err |= device_del();
	for (i = 0; i < nr; i++)
		err |= pthread_join(reapers[i / REAPERS][i % REAPERS], NULL);

	EQ(err, 0);
	if (why)
		test_fail(__FILE__, __LINE__, "fetch: %s", why);
	for (i = 0; i < 2; i++) {
		if (bulk[i].wrong)
			test_fail(__FILE__, __LINE__, "side %d: %s", i, bulk[i].wrong);
		if (!bulk[i].down || !bulk[i].cut || bulk[i].pending)
			test_fail(__FILE__, __LINE__,
				  "side %d: the channel is %s, %u fetched, %u cut, %u pending", i,
				  bulk[i].down ? "down" : "up", bulk[i].fetched, bulk[i].cut,
				  bulk[i].pending);
		printf("# side %d: %u fetched, %u cut\n", i, bulk[i].fetched, bulk[i].cut);
		EQ(polled(sides[i]), POLLERR);
		side_close(sides[i]);
	}
	EQ(device_add(), 0);
	pair_open(&p, 1 << 20, NULL);
	publish(&p.a, "t", 0, 64, 1, 0, 0);
	EQ(fetch(&p.b, "t", 0, 64, NULL, &cqe), 0);
}

// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "exporter.h"
#include "cases.h"

/* A fetch to scene->at. Return: its number */
static uint64_t fetch_begin(struct scene *scene, const char *name, int64_t step,
			    uint64_t bytes, uint64_t deadline_ns)
{
	uint64_t number = worker_number();
	struct rdmatensor_op op;

	rdmatensor_prep_fetch(&op, scene->w.channel, name, step, scene->w.pool.id, scene->at,
			      bytes, deadline_ns, number);
	worker_submit(&scene->w, &op);
	return number;
}

static int fetch_end(struct scene *scene, uint64_t number)
{
	return scene_next(scene, RDMATENSOR_CQE_FETCH, number, NULL);
}

void cancel(struct scene *scene, uint64_t number)
{
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_cancel(&op, number);
	ret = rdmatensor_submit(scene->w.rt, &op, 1, 0, 0, NULL);
	/* It has ended meanwhile */
	if (ret && ret != -ENOENT)
		die("CANCEL: %s", strerror(-ret));
}

int fetch_ok(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	char name[48];
	int ret;

	ret = fetch_end(scene, fetch_begin(scene, perf_name(SMALL_BYTES, name), 0,
					   SMALL_BYTES, 0));
	*took_ns = since(began);
	if (!ret && !perf_is(worker_at(&scene->w, scene->at), SMALL_BYTES))
		return WRONG;
	return ret;
}

/* The second one, of whose destination the peer has been told by the first */
int fetch_kept(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = 0, began = 0;
	struct rdmatensor_op op;
	char name[48];
	int ret = 0, i;

	for (i = 0; i < 2 && !ret; i++) {
		memset(worker_at(&scene->w, scene->at), 0, SMALL_BYTES);
		number = worker_number();
		rdmatensor_prep_fetch(&op, scene->w.channel, perf_name(SMALL_BYTES, name), 0,
				      scene->w.pool.id, scene->at, SMALL_BYTES, 0, number);
		op.flags |= RDMATENSOR_OP_KEEP;
		began = rdmatensor_now_ns();
		worker_submit(&scene->w, &op);
		ret = fetch_end(scene, number);
		if (!ret && !perf_is(worker_at(&scene->w, scene->at), SMALL_BYTES))
			return WRONG;
	}
	*took_ns = since(began);
	return ret;
}

/* To an odd address of the driver's own memory */
static unsigned char elsewhere[SMALL_BYTES + 1];

static uint64_t proxied_begin(struct scene *scene, const char *name, int64_t step)
{
	uint64_t number = worker_number();
	struct rdmatensor_op op;

	rdmatensor_prep_fetch_memory(&op, scene->w.channel, name, step, elsewhere + 1, SMALL_BYTES,
				     scene->w.pool.id, 0, number);
	worker_submit(&scene->w, &op);
	return number;
}

int fetch_proxied(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	char name[48];
	int ret;

	memset(elsewhere, 0, sizeof(elsewhere));
	ret = fetch_end(scene, proxied_begin(scene, perf_name(SMALL_BYTES, name), 0));
	*took_ns = since(began);
	return !ret && !perf_is(elsewhere + 1, SMALL_BYTES) ? WRONG : ret;
}

int fetch_proxied_cancel(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = proxied_begin(scene, "nobody's", scene->step++), began;
	int ret;

	began = rdmatensor_now_ns();
	cancel(scene, number);
	ret = fetch_end(scene, number);
	*took_ns = since(began);
	return ret;
}

/* From the deadline on */
int fetch_deadline(struct scene *scene, uint64_t *took_ns)
{
	uint64_t deadline = rdmatensor_deadline_ms(50), now;
	int ret;

	ret = fetch_end(scene, fetch_begin(scene, "nobody's", scene->step++, SMALL_BYTES,
					   deadline));
	now = rdmatensor_now_ns();
	if (now < deadline) {
		printf("# ended with %d, %" PRIu64 " us before its deadline\n", ret,
		       (deadline - now) / 1000);
		return WRONG;
	}
	*took_ns = now - deadline;
	return ret;
}

int fetch_deadline_writing(struct scene *scene, uint64_t *took_ns)
{
	uint64_t deadline = rdmatensor_deadline_ms(20);
	char name[48];
	int ret;

	ret = fetch_end(scene, fetch_begin(scene, perf_name(LONG_BYTES, name), 0, LONG_BYTES,
					   deadline));
	*took_ns = rdmatensor_now_ns() < deadline ? 0 : since(deadline);
	return ret;
}

int fetch_cancel(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = fetch_begin(scene, "nobody's", scene->step++, SMALL_BYTES, 0), began;
	int ret;

	began = rdmatensor_now_ns();
	cancel(scene, number);
	ret = fetch_end(scene, number);
	*took_ns = since(began);
	return ret;
}

/* Another one to the same place is whole: nothing is written any more by the first */
int fetch_cancel_writing(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number, began;
	char name[48];
	int ret, next;

	number = fetch_begin(scene, perf_name(LONG_BYTES, name), 0, LONG_BYTES, 0);
	began = rdmatensor_now_ns();
	cancel(scene, number);
	ret = fetch_end(scene, number);
	*took_ns = since(began);
	memset(worker_at(&scene->w, scene->at), 0, LONG_BYTES);
	number = worker_number();
	next = fetch_end(scene, fetch_begin(scene, perf_name(SMALL_BYTES, name), 0,
					    SMALL_BYTES, 0));
	if (next || !perf_is(worker_at(&scene->w, scene->at), SMALL_BYTES))
		return WRONG;
	for (began = SMALL_BYTES; began < LONG_BYTES; began++)
		if (((const char *)worker_at(&scene->w, scene->at))[began])
			return WRONG;
	return ret;
}

int fetch_failed(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	int ret;

	ret = fetch_end(scene, fetch_begin(scene, "broken", 0, SMALL_BYTES, 0));
	*took_ns = since(began);
	return ret;
}

int fetch_abort_here(struct scene *scene, uint64_t *took_ns)
{
	int64_t step = scene->step++;
	uint64_t number = fetch_begin(scene, "nobody's", step, SMALL_BYTES, 0);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	ret = rdmatensor_step_abort(scene->w.rt, step, -EDOM, "as it should");
	if (ret)
		die("STEP_ABORT: %s", strerror(-ret));
	ret = fetch_end(scene, number);
	*took_ns = since(began);
	return ret;
}

/* With the order's way to the peer */
int fetch_abort_there(struct scene *scene, uint64_t *took_ns)
{
	int64_t step = scene->step++;
	uint64_t number = fetch_begin(scene, "nobody's", step, SMALL_BYTES, 0);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	scene_order(scene, "abort %lld", (long long)step);
	ret = fetch_end(scene, number);
	*took_ns = since(began);
	return ret;
}

static uint64_t publish_begin(struct scene *scene, const char *name, int64_t step,
			      uint64_t bytes, uint64_t offset)
{
	uint64_t number = worker_number();
	struct rdmatensor_op op;
	uint64_t dim = bytes;

	rdmatensor_prep_publish(&op, name, step, scene->w.pool.id, offset, bytes,
				RDMATENSOR_DT_UINT8, 1, &dim, 1, number);
	worker_submit(&scene->w, &op);
	return number;
}

int fetch_self(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns(), number;
	struct rdmatensor_op op;
	int64_t step = scene->step++;
	int ret;

	memcpy(worker_at(&scene->w, scene->lent), worker_at(&scene->w, scene->own), SMALL_BYTES);
	number = publish_begin(scene, "mine", step, SMALL_BYTES, scene->lent);
	rdmatensor_prep_fetch(&op, RDMATENSOR_CHANNEL_SELF, "mine", step, scene->w.pool.id,
			      scene->at, SMALL_BYTES, 0, number);
	worker_submit(&scene->w, &op);
	ret = fetch_end(scene, number);
	*took_ns = since(began);
	if (scene_next(scene, RDMATENSOR_CQE_PUBLISH, number, NULL) ||
	    !perf_is(worker_at(&scene->w, scene->at), SMALL_BYTES))
		return WRONG;
	return ret;
}

/* From the order to the peer to fetch it */
int publish_used(struct scene *scene, uint64_t *took_ns)
{
	int64_t step = scene->step++;
	uint64_t number = publish_begin(scene, "lent", step, SMALL_BYTES, scene->lent);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	scene_order(scene, "get lent %lld", (long long)step);
	ret = scene_next(scene, RDMATENSOR_CQE_PUBLISH, number, NULL);
	*took_ns = since(began);
	return ret;
}

static int withdraw(struct scene *scene, const char *name, int64_t step, uint64_t *took_ns)
{
	uint64_t number = worker_number(), began = rdmatensor_now_ns();
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_withdraw(&op, name, step, number);
	ret = rdmatensor_submit(scene->w.rt, &op, 1, 0, 0, NULL);
	if (!ret)
		ret = scene_next(scene, RDMATENSOR_CQE_WITHDRAW, number, NULL);
	*took_ns = since(began);
	return ret;
}

int publish_withdrawn(struct scene *scene, uint64_t *took_ns)
{
	int64_t step = scene->step++;
	uint64_t number = publish_begin(scene, "lent", step, SMALL_BYTES, scene->lent);
	int ret = withdraw(scene, "lent", step, took_ns);

	if (scene_next(scene, RDMATENSOR_CQE_PUBLISH, number, NULL) != -ECANCELED)
		return WRONG;
	return ret;
}

/* Its memory is free again while nobody has asked for it */
int publish_copied(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = worker_number(), began = rdmatensor_now_ns(), ignored;
	int64_t step = scene->step++;
	uint64_t dim = SMALL_BYTES;
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_publish(&op, "lent", step, scene->w.pool.id, scene->lent, SMALL_BYTES,
				RDMATENSOR_DT_UINT8, 1, &dim, 1, number);
	op.flags |= RDMATENSOR_OP_COPY;
	worker_submit(&scene->w, &op);
	ret = scene_next(scene, RDMATENSOR_CQE_PUBLISH, number, NULL);
	*took_ns = since(began);
	return withdraw(scene, "lent", step, &ignored) ? WRONG : ret;
}

/* Used up already: -ENOENT. Else what is on its way arrives, or is published no more */
int publish_withdrawn_read(struct scene *scene, uint64_t *took_ns)
{
	int64_t step = scene->step++;
	uint64_t number = publish_begin(scene, "lent", step, LONG_BYTES, scene->lent);
	int ret, used;

	scene_order(scene, "get lent %lld", (long long)step);
	ret = withdraw(scene, "lent", step, took_ns);
	used = scene_next(scene, RDMATENSOR_CQE_PUBLISH, number, NULL);
	return used && used != -ECANCELED ? WRONG : ret;
}

int publish_aborted(struct scene *scene, uint64_t *took_ns)
{
	int64_t step = scene->step++;
	uint64_t number = publish_begin(scene, "lent", step, SMALL_BYTES, scene->lent);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	ret = rdmatensor_step_abort(scene->w.rt, step, -EDOM, NULL);
	if (ret)
		die("STEP_ABORT: %s", strerror(-ret));
	ret = scene_next(scene, RDMATENSOR_CQE_PUBLISH, number, NULL);
	*took_ns = since(began);
	return ret;
}

static uint64_t gather_begin(struct scene *scene, const uint64_t *ids, uint64_t nr,
			     uint64_t deadline_ns)
{
	uint64_t number = worker_number();
	struct rdmatensor_op op;

	rdmatensor_prep_gather(&op, scene->table, ids, nr, scene->w.pool.id, scene->rows,
			       ROWS * ROW_BYTES, deadline_ns, number);
	worker_submit(&scene->w, &op);
	return number;
}

int gather_ok(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	int ret;

	ret = scene_next(scene, RDMATENSOR_CQE_GATHER,
			 gather_begin(scene, scene->ids, 256, 0), NULL);
	*took_ns = since(began);
	return !ret && !scene_rows_are(scene, scene->rows, 256) ? WRONG : ret;
}

static uint64_t list_begin(struct scene *scene, uint32_t channel, uint64_t deadline_ns)
{
	uint64_t number = worker_number();
	struct rdmatensor_op op;

	rdmatensor_prep_list(&op, channel, "", scene->w.pool.id, scene->rows, ROWS * ROW_BYTES, 0,
			     deadline_ns, number);
	worker_submit(&scene->w, &op);
	return number;
}

/* How often the list has that name */
static unsigned int list_has(struct scene *scene, const struct rdmatensor_cqe *cqe, const char *name)
{
	const void *list = worker_at(&scene->w, scene->rows);
	const struct rdmatensor_list_entry *entry;
	unsigned int nr = 0;

	for (entry = NULL; (entry = rdmatensor_list_next(list, cqe->tensor_bytes, entry));)
		nr += !strcmp(rdmatensor_list_name(entry), name);
	return nr;
}

int list_ok(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	struct rdmatensor_cqe cqe = { 0 };
	char name[48];
	int ret;

	ret = scene_next(scene, RDMATENSOR_CQE_LIST, list_begin(scene, scene->w.channel, 0), &cqe);
	*took_ns = since(began);
	return !ret && list_has(scene, &cqe, perf_name(SMALL_BYTES, name)) != 1 ? WRONG : ret;
}

int list_self(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	int ret;

	ret = scene_next(scene, RDMATENSOR_CQE_LIST,
			 list_begin(scene, RDMATENSOR_CHANNEL_SELF, 0), NULL);
	*took_ns = since(began);
	return ret;
}

int list_deadline(struct scene *scene, uint64_t *took_ns)
{
	uint64_t deadline = rdmatensor_now_ns() + 1000;
	int ret;

	ret = scene_next(scene, RDMATENSOR_CQE_LIST,
			 list_begin(scene, scene->w.channel, deadline), NULL);
	*took_ns = rdmatensor_now_ns() < deadline ? 0 : since(deadline);
	return ret;
}

int list_cancel(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = list_begin(scene, scene->w.channel, 0);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	cancel(scene, number);
	ret = scene_next(scene, RDMATENSOR_CQE_LIST, number, NULL);
	*took_ns = since(began);
	return ret;
}

int gather_deadline(struct scene *scene, uint64_t *took_ns)
{
	uint64_t deadline = rdmatensor_deadline_ms(20);
	int ret;

	ret = scene_next(scene, RDMATENSOR_CQE_GATHER,
			 gather_begin(scene, scene->ids, ROWS, deadline), NULL);
	*took_ns = rdmatensor_now_ns() < deadline ? 0 : since(deadline);
	return ret;
}

int gather_cancel(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = gather_begin(scene, scene->ids, ROWS, 0);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	cancel(scene, number);
	ret = scene_next(scene, RDMATENSOR_CQE_GATHER, number, NULL);
	*took_ns = since(began);
	return ret;
}

int gather_range(struct scene *scene, uint64_t *took_ns)
{
	uint64_t ids[] = { 1, ROWS, 2 }, began = rdmatensor_now_ns();
	int ret;

	ret = scene_next(scene, RDMATENSOR_CQE_GATHER, gather_begin(scene, ids, 3, 0), NULL);
	*took_ns = since(began);
	return ret;
}

/* With the order's way to the peer */
int gather_retracted(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = gather_begin(scene, scene->ids, ROWS, 0);
	uint64_t began = rdmatensor_now_ns();
	int ret;

	scene_order(scene, "retract");
	ret = scene_next(scene, RDMATENSOR_CQE_GATHER, number, NULL);
	*took_ns = since(began);
	if (!ret && !scene_rows_are(scene, scene->rows, ROWS))
		ret = WRONG;
	scene_order(scene, "offer");
	rdmatensor_table_close(scene->w.rt, scene->table);
	scene_table_open(scene);
	return ret;
}

/* Its entry is read here, so that the ring does not fill */
static void forget_channel(struct scene *scene)
{
	scene_next(scene, RDMATENSOR_CQE_CHANNEL_DOWN, 0, NULL);
}

static int timed_connect(struct scene *scene, const char *peer, const char *name,
			 uint32_t *channel, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	char cause[256];
	int ret;

	ret = rdmatensor_connect(scene->w.rt, peer, name, 0, channel, cause, sizeof(cause));
	*took_ns = since(began);
	return ret;
}

int connect_ok(struct scene *scene, uint64_t *took_ns)
{
	uint32_t channel;
	int ret = timed_connect(scene, scene->peer, NULL, &channel, took_ns);

	if (!ret) {
		rdmatensor_disconnect(scene->w.rt, channel);
		forget_channel(scene);
	}
	return ret;
}

int connect_nobody(struct scene *scene, uint64_t *took_ns)
{
	struct rdmatensor_connect connect = { .flags = RDMATENSOR_CONNECT_NOWAIT };
	uint64_t began;
	int ret;

	if (rdmatensor_parse_addr(scene->nobody, 0, 0, connect.addr, NULL, 0))
		return -EINVAL;
	began = rdmatensor_now_ns();
	ret = rdmatensor_connect_raw(scene->w.rt, &connect);
	*took_ns = since(began);
	if (ret != -ECONNREFUSED)
		printf("# %s\n", connect.cause);
	return ret;
}

int connect_name(struct scene *scene, uint64_t *took_ns)
{
	uint32_t channel;

	return timed_connect(scene, scene->peer, "somebody else", &channel, took_ns);
}

/* Until the peer's ring is full, which must not take long; the time is that of the refusal */
int connect_unread(struct scene *scene, uint64_t *took_ns)
{
	uint32_t channel;
	int ret, i;

	for (i = 0; i <= PEER_RING / 2; i++) {
		ret = timed_connect(scene, scene->peer, NULL, &channel, took_ns);
		if (ret)
			return ret;
		rdmatensor_disconnect(scene->w.rt, channel);
		forget_channel(scene);
	}
	return 0;
}

int disconnect_idle(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began;
	uint32_t channel;
	int ret = timed_connect(scene, scene->peer, NULL, &channel, took_ns);

	if (ret)
		die("CONNECT: %s", strerror(-ret));
	began = rdmatensor_now_ns();
	ret = rdmatensor_disconnect(scene->w.rt, channel);
	*took_ns = since(began);
	forget_channel(scene);
	return ret;
}

/* Fetches of all kinds: two whose content is written, one that waits */
static void busy_begin(struct worker *w, uint64_t at, uint64_t numbers[3])
{
	struct rdmatensor_op op;
	char name[48];
	int i;

	for (i = 0; i < 3; i++) {
		numbers[i] = worker_number();
		rdmatensor_prep_fetch(&op, w->channel,
				      i < 2 ? perf_name(LONG_BYTES, name) : "nobody's", 0,
				      w->pool.id, at, LONG_BYTES, 0, numbers[i]);
		worker_submit(w, &op);
		at += LONG_BYTES;
	}
}

/* A worker of its own, on a channel of its own, with such fetches */
static void busy_open(struct scene *scene, struct worker *w, const char *name,
		      uint64_t numbers[3])
{
	worker_open(w, name, 3 * LONG_BYTES, NULL);
	worker_connect(w, scene->peer);
	busy_begin(w, worker_alloc(w, 3 * LONG_BYTES), numbers);
}

int disconnect_busy(struct scene *scene, uint64_t *took_ns)
{
	uint64_t numbers[3], began;
	struct rdmatensor_cqe cqe;
	struct worker w;
	int ret, i;

	busy_open(scene, &w, "busy", numbers);
	began = rdmatensor_now_ns();
	ret = rdmatensor_disconnect(w.rt, w.channel);
	*took_ns = since(began);
	/* All entries are there by then */
	for (i = 0; i < 3; i++) {
		if (!worker_next(&w, RDMATENSOR_CQE_FETCH, numbers[i], rdmatensor_now_ns(),
				 &cqe) ||
		    (cqe.result != -ESHUTDOWN && (i == 2 || cqe.result)))
			ret = WRONG;
	}
	if (!worker_next(&w, RDMATENSOR_CQE_CHANNEL_DOWN, 0, rdmatensor_now_ns(), &cqe) ||
	    cqe.result != -ESHUTDOWN)
		ret = WRONG;
	worker_close(&w);
	return ret;
}

int close_busy(struct scene *scene, uint64_t *took_ns)
{
	uint64_t numbers[3], began;
	struct worker w;

	busy_open(scene, &w, "busy", numbers);
	began = rdmatensor_now_ns();
	worker_close(&w);
	*took_ns = since(began);
	return 0;
}

int kill_busy(struct scene *scene, uint64_t *took_ns)
{
	uint64_t numbers[3], began;
	int fds[2], status;
	struct worker w;
	char c;
	pid_t pid;

	if (pipe(fds))
		die("pipe: %m");
	pid = fork();
	if (pid < 0)
		die("fork: %m");
	if (!pid) {
		busy_open(scene, &w, "killed", numbers);
		if (write(fds[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) != 1)
		die("who was to be killed has ended");
	close(fds[0]);
	began = rdmatensor_now_ns();
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid: %m");
	*took_ns = since(began);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : WRONG;
}

int pool_create(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	struct rdmatensor_pool pool;
	int ret = rdmatensor_pool_create(scene->w.rt, LONG_BYTES, &pool);

	*took_ns = since(began);
	if (!ret)
		ret = rdmatensor_pool_destroy(scene->w.rt, &pool);
	return ret;
}

/* To an odd place of a pool, which is mapped at @at. The fetch's end, or WRONG */
static int fetch_into(struct scene *scene, const struct rdmatensor_pool *pool, const char *at)
{
	uint64_t number = worker_number();
	struct rdmatensor_op op;
	char name[48];
	int ret;

	rdmatensor_prep_fetch(&op, scene->w.channel, perf_name(SMALL_BYTES, name), 0, pool->id,
			      4096 - 24, SMALL_BYTES, 0, number);
	worker_submit(&scene->w, &op);
	ret = fetch_end(scene, number);
	return ret || perf_is(at + 4096 - 24, SMALL_BYTES) ? ret : WRONG;
}

/* Unmapped before it is destroyed */
int pool_register(struct scene *scene, uint64_t *took_ns)
{
	void *at = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	uint64_t began = rdmatensor_now_ns();
	struct rdmatensor_pool pool;
	int ret, end;

	if (at == MAP_FAILED)
		die("mmap: %m");
	ret = rdmatensor_pool_register(scene->w.rt, at, LONG_BYTES, RDMATENSOR_POOL_PEERS_WRITE,
				       0, &pool, NULL, 0);
	*took_ns = since(began);
	end = ret ?: fetch_into(scene, &pool, at);
	munmap(at, LONG_BYTES);
	if (!ret)
		ret = rdmatensor_pool_destroy(scene->w.rt, &pool);
	return end ?: ret;
}

/* Of the first exporter that there is; closed before it is fetched into */
int pool_import(struct scene *scene, uint64_t *took_ns)
{
	struct rdmatensor_pool pool;
	uint64_t began;
	int ret, end, fd;
	void *at;

	fd = exporter_next(NULL)->export(LONG_BYTES, O_RDWR);
	at = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || at == MAP_FAILED)
		die("a dma-buf: %m");
	began = rdmatensor_now_ns();
	ret = rdmatensor_pool_import(scene->w.rt, fd, RDMATENSOR_POOL_PEERS_WRITE, 0, &pool, NULL,
				     NULL, 0);
	*took_ns = since(began);
	close(fd);
	end = ret ?: fetch_into(scene, &pool, at);
	munmap(at, LONG_BYTES);
	if (!ret)
		ret = rdmatensor_pool_destroy(scene->w.rt, &pool);
	return end ?: ret;
}

int pool_alloc(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns(), at;
	int ret = rdmatensor_pool_alloc(scene->w.rt, &scene->w.pool, 100000, &at);

	*took_ns = since(began);
	if (!ret)
		ret = rdmatensor_pool_free(scene->w.rt, &scene->w.pool, at);
	return ret;
}

int pool_destroy(struct scene *scene, uint64_t *took_ns)
{
	struct rdmatensor_pool pool;
	uint64_t began;
	int ret = rdmatensor_pool_create(scene->w.rt, LONG_BYTES, &pool);

	began = rdmatensor_now_ns();
	if (!ret)
		ret = rdmatensor_pool_destroy(scene->w.rt, &pool);
	*took_ns = since(began);
	return ret;
}

/* A fetch into it, or the peer's right to write there, keeps it; and no longer */
int pool_destroy_busy(struct scene *scene, uint64_t *took_ns)
{
	uint64_t number = worker_number(), began;
	struct rdmatensor_pool pool;
	struct rdmatensor_op op;
	int ret = rdmatensor_pool_create(scene->w.rt, SMALL_BYTES, &pool);

	if (ret)
		return ret;
	rdmatensor_prep_fetch_alloc(&op, scene->w.channel, "nobody's", scene->step++, pool.id, 0,
				    0, number);
	worker_submit(&scene->w, &op);
	began = rdmatensor_now_ns();
	ret = rdmatensor_pool_destroy(scene->w.rt, &pool);
	*took_ns = since(began);
	cancel(scene, number);
	if (fetch_end(scene, number) != -ECANCELED ||
	    (ret && rdmatensor_pool_destroy(scene->w.rt, &pool)))
		return WRONG;
	return ret;
}

static int export(struct scene *scene, uint32_t *table)
{
	return rdmatensor_table_export(scene->w.rt, "mine", &scene->w.pool,
				       (scene->page + 4095) & ~UINT64_C(4095), 0, 128, ROW_BYTES, 0,
				       RDMATENSOR_DT_UINT64, table);
}

int table_export(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began = rdmatensor_now_ns();
	uint32_t table;
	int ret = export(scene, &table);

	*took_ns = since(began);
	if (!ret)
		ret = rdmatensor_table_close(scene->w.rt, table);
	return ret;
}

int table_unexport(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began;
	uint32_t table;
	int ret = export(scene, &table);

	began = rdmatensor_now_ns();
	if (!ret)
		ret = rdmatensor_table_close(scene->w.rt, table);
	*took_ns = since(began);
	return ret;
}

static int timed_open(struct worker *w, const char *name, uint32_t *table, uint64_t *took_ns)
{
	struct rdmatensor_table_open open = { .flags = RDMATENSOR_TABLE_NOWAIT };
	uint64_t began = rdmatensor_now_ns();
	int ret = rdmatensor_table_open(w->rt, name, &w->channel, 1, &open);

	*took_ns = since(began);
	*table = open.out_table;
	return ret;
}

int table_open(struct scene *scene, uint64_t *took_ns)
{
	uint32_t table;
	int ret = timed_open(&scene->w, "rows", &table, took_ns);

	if (!ret)
		ret = rdmatensor_table_close(scene->w.rt, table);
	return ret;
}

/* By one who has no lanes to the owner yet */
int table_open_lanes(struct scene *scene, uint64_t *took_ns)
{
	struct worker w;
	uint32_t table;
	int ret;

	worker_open(&w, "reader", 4096, NULL);
	worker_connect(&w, scene->peer);
	ret = timed_open(&w, "rows", &table, took_ns);
	worker_close(&w);
	return ret;
}

int table_unknown(struct scene *scene, uint64_t *took_ns)
{
	uint32_t table;

	return timed_open(&scene->w, "nobody's", &table, took_ns);
}

int table_close(struct scene *scene, uint64_t *took_ns)
{
	uint64_t began;
	uint32_t table;
	int ret = timed_open(&scene->w, "rows", &table, took_ns);

	began = rdmatensor_now_ns();
	if (!ret)
		ret = rdmatensor_table_close(scene->w.rt, table);
	*took_ns = since(began);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * A writer of generations that is killed at any moment: readers have the former generation whole,
 * or the new one, and the next writer goes on from there.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include "crash.h"
#include "harness.h"

#define NAMES 6
#define BYTES 3000
#define SLOTS 3
#define GROUP 9

static struct pair p;
static int domain;
/* Of the reader's side: memory of SLOTS generations, which outlive their writers */
static uint64_t slots[SLOTS][NAMES];

static const char *const names[NAMES] = { "w0", "w1", "w2", "w3", "w4", "w5" };

/* In the reader's domain, without a pool of its own: that would stay there */
static void join(struct side *writer)
{
	struct rdmatensor_start start;

	memset(writer, 0, sizeof(*writer));
	EQ(rdmatensor_open(NULL, &writer->rt), 0);
	side_adopt(writer);
	rdmatensor_start_init(&start, "writer");
	EQ(rdmatensor_start_domain(&start, domain), 0);
	EQ(rdmatensor_start(writer->rt, &start), 0);
}

/* Into the memory of the generation before the last one, which nobody reads any more */
static void make_generation(struct side *writer, struct rdmatensor_pool *pool, int64_t step)
{
	const uint64_t dim = BYTES;
	struct rdmatensor_op op;
	int i;

	for (i = 0; i < NAMES; i++) {
		uint64_t at = slots[step % SLOTS][i];

		fill((unsigned char *)pool->base + at, BYTES, step * NAMES + i);
		rdmatensor_prep_publish(&op, names[i], step, pool->id, at, BYTES,
					RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
		rdmatensor_prep_in_generation(&op, GROUP);
		EQ(side_do(writer, &op), 0);
	}
	rdmatensor_prep_reveal(&op, GROUP, step, 1);
	EQ(side_do(writer, &op), 0);
	EQ(side_next(writer, RDMATENSOR_CQE_REVEAL, 1, NULL), 0);
}

/* From @step on, until it is killed */
static void victim(int fd, uint32_t pool_id, int64_t step)
{
	struct rdmatensor_pool pool;
	struct side writer;

	join(&writer);
	EQ(rdmatensor_pool_open(writer.rt, pool_id, &pool), 0);
	if (write(fd, "x", 1) != 1)
		_exit(1);
	for (;; step++)
		make_generation(&writer, &pool, step);
}

/* One tensor, to the reader's own place. Return: the fetch's result; *step: what came */
static int get(const char *name, unsigned int flags, uint64_t to, int64_t *step)
{
	struct rdmatensor_cqe cqe;
	struct rdmatensor_op op;
	int ret;

	rdmatensor_prep_fetch(&op, p.b.channel, name, *step, p.b.pool.id, to, BYTES,
			      rdmatensor_deadline_ms(20000), 5);
	op.flags |= flags;
	EQ(side_do(&p.b, &op), 0);
	ret = side_next(&p.b, RDMATENSOR_CQE_FETCH, 5, &cqe);
	*step = cqe.step_id;
	return ret;
}

/* All of the newest generation, each byte of it; -1: another one has taken its place meanwhile */
static int64_t read_whole(uint64_t to)
{
	int64_t step = 0;
	int i, ret;

	EQ(get(names[0], RDMATENSOR_OP_NEWEST, to, &step), 0);
	for (i = 0; i < NAMES; i++) {
		ret = i ? get(names[i], RDMATENSOR_OP_NOWAIT, to, &step) : 0;
		if (ret == -ESTALE)
			return -1;
		EQ(ret, 0);
		if (!filled(side_at(&p.b, to), BYTES, step * NAMES + i))
			test_fail(__FILE__, __LINE__, "%s of step %lld is of another one", names[i],
				  (long long)step);
		test_checks++;
	}
	return step;
}

/* Nothing can be seen of what was not revealed */
static bool is_hidden_gone(void)
{
	struct rdmatensor_lasting_query query = { .size = sizeof(query) };
	bool gone = true;

	while (!rdmatensor_lasting_query(p.a.rt, &query))
		gone &= !(query.flags & RDMATENSOR_LASTING_HIDDEN);
	return gone;
}

static int64_t one_killing(int64_t last, uint64_t to, unsigned long *reads)
{
	uint64_t until;
	int64_t step;
	int fds[2];
	char c;
	pid_t pid;

	CHECK(!pipe(fds));
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(fds[0]);
		victim(fds[1], p.a.pool.id, last + 1);
	}
	close(fds[1]);
	EQ(read(fds[0], &c, 1), 1);
	close(fds[0]);
	until = rdmatensor_now_ns() + below(4000000);
	/* In half of the cases nobody reads meanwhile */
	while (below(2) && rdmatensor_now_ns() < until)
		*reads += read_whole(to) >= 0;
	while (rdmatensor_now_ns() < until)
		usleep(50);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	step = read_whole(to);
	CHECK(step >= last);
	CHECK(is_hidden_gone());
	return step;
}

TEST(writers_are_killed_at_any_moment)
{
	long rounds = amount("CRASH_WRITERS", 16), i;
	unsigned long reads = 0;
	int64_t last = 1, made;
	uint64_t to;
	int s, n;

	memset(&p, 0, sizeof(p));
	pair_open(&p, 1 << 20, NULL);
	EQ(rdmatensor_domain_create(p.a.rt, RDMATENSOR_DOMAIN_CLOEXEC, &domain), 0);
	for (s = 0; s < SLOTS; s++)
		for (n = 0; n < NAMES; n++)
			slots[s][n] = side_alloc(&p.a, BYTES);
	to = side_alloc(&p.b, BYTES);
	make_generation(&p.a, &p.a.pool, last);
	for (i = 0; i < rounds; i++) {
		last = one_killing(last, to, &reads);
		test_alive();
	}
	made = last - 1;
	printf("# %ld killed, %lld generations revealed, %lu had whole meanwhile\n", rounds,
	       (long long)made, reads);
	CHECK(made > 0);
	close(domain);
}

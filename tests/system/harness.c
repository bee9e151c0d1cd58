// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define TIME_LIMIT 60
/* What took so long says so: that is where the time of a run goes */
#define SLOW_MS 1000
#define SIDES_MAX 16
#define KEPT_MAX 8192

static struct test *tests, **tests_end = &tests;
static jmp_buf test_end;
static struct side *open_sides[SIDES_MAX];
static const char *running;
static const char *own_ip;

unsigned long test_checks;

int test_on_uml(void)
{
	const char *kernel = getenv("LAB_KERNEL");

	return kernel && !strncmp(kernel, "uml", 3);
}

int test_strict(void)
{
	return getenv("TEST_STRICT") != NULL;
}

void test_register(struct test *test)
{
	*tests_end = test;
	tests_end = &test->next;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	printf("# %s:%d: %s: ", file, line, running);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	longjmp(test_end, 1);
}

int file_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ok;

	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

void test_param(const char *name, unsigned int value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/module/rdmatensor/parameters/%s", name);
	file = fopen(path, "w");
	CHECK(file);
	fprintf(file, "%u", value);
	EQ(fclose(file), 0);
}

pid_t test_child_begin(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		/* Not on to the next test */
		if (setjmp(test_end)) {
			fflush(stdout);
			_exit(255);
		}
		status = fn();
		_exit(status & 255 ? status & 255 : !!status);
	}
	return pid;
}

int test_child(int (*fn)(void))
{
	pid_t pid = test_child_begin(fn);
	int status;

	EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* What user_runs() is to do */
static struct {
	uint64_t bytes;
	int (*fn)(void);
} user;

static int user_runs(void)
{
	struct rlimit limit = { user.bytes, user.bytes };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setreuid(65534, 65534))
		return 255;
	return user.fn();
}

void test_as_user(const char *file, uint64_t bytes, unsigned int memlock, int (*fn)(void))
{
	int line;

	user.bytes = bytes;
	user.fn = fn;
	test_param("memlock", memlock);
	line = test_child(user_runs);
	test_param("memlock", 0);
	if (line)
		test_fail(file, line, "not within the limit");
}

static void expired(int sig)
{
	(void)sig;
	dprintf(1, "not ok 0 - %s: no end within %d s\n", running, TIME_LIMIT);
	_exit(1);
}

uint64_t ms_since(uint64_t began_ns)
{
	return (rdmatensor_now_ns() - began_ns) / 1000000;
}

void test_alive(void)
{
	alarm(TIME_LIMIT);
}

const char *test_ip(void)
{
	const char *ip = own_ip ? own_ip : getenv("LAB_IP");

	return ip ? ip : "10.0.0.1";
}

void test_set_ip(const char *ip)
{
	own_ip = ip;
}

void test_addr(char *addr, size_t room, uint32_t port)
{
	snprintf(addr, room, strchr(test_ip(), ':') ? "[%s]:%u" : "%s:%u", test_ip(), port);
}

void side_adopt(struct side *side)
{
	int i;

	for (i = 0; i < SIDES_MAX && open_sides[i]; i++)
		;
	CHECK(i < SIDES_MAX);
	open_sides[i] = side;
	side->kept = calloc(KEPT_MAX, sizeof(*side->kept));
	CHECK(side->kept);
}

static int open_nr(void)
{
	int i, nr = 0;

	for (i = 0; i < SIDES_MAX; i++)
		nr += open_sides[i] != NULL;
	return nr;
}

unsigned int keys_of(uint64_t bytes)
{
	unsigned int keys = 0;
	char command[256];
	FILE *shown;
	int nr;

	snprintf(command, sizeof(command),
		 "\"$LAB_BUILD\"/ulib/bin/rdmatensor show pools -j | "
		 "jq 'map(select(.bytes == %llu)) | .[].segments'", (unsigned long long)bytes);
	shown = popen(command, "r");
	CHECK(shown);
	nr = fscanf(shown, "%u", &keys);
	EQ(pclose(shown), 0);
	EQ(nr, 1);
	return keys;
}

long number_in(const char *path, const char *before, const char *after)
{
	FILE *file = fopen(path, "r");
	size_t len = strlen(before);
	char line[512], *end;
	long nr = -1, found;

	CHECK(file);
	while (nr < 0 && fgets(line, sizeof(line), file)) {
		if (strncmp(line, before, len))
			continue;
		found = strtol(line + len, &end, 10);
		if (end != line + len && !strncmp(end, after, strlen(after)))
			nr = found;
	}
	fclose(file);
	CHECK(nr >= 0);
	return nr;
}

static void (*make_pool)(struct side *side, uint64_t bytes);

void side_pools_by(void (*make)(struct side *side, uint64_t bytes))
{
	make_pool = make;
}

void side_open(struct side *side, const char *worker, uint64_t pool_bytes, int listen,
	       void (*tune)(struct rdmatensor_start *start))
{
	struct rdmatensor_start start;
	struct rdmatensor_query query;
	char addr[64];
	int ret;

	memset(side, 0, sizeof(*side));
	EQ(rdmatensor_open(NULL, &side->rt), 0);
	side_adopt(side);
	rdmatensor_start_init(&start, worker);
	if (listen) {
		test_addr(addr, sizeof(addr), 0);
		EQ(rdmatensor_start_listen(&start, addr, NULL, 0), 0);
	}
	/* Long pools are met with keys of either length: every second context has them short */
	if (open_nr() % 2 == 0)
		start.mr_page_bytes = 4096;
	if (tune)
		tune(&start);
	ret = rdmatensor_start(side->rt, &start);
	if (ret)
		test_fail(__FILE__, __LINE__, "START: %d: %s", ret, start.cause);
	/* A case that sets the parameter and leaves it makes all that follow cases of the other mode */
	if (!tune)
		EQ(start.mr_mode, test_strict() ? RDMATENSOR_MR_MODE_STRICT : RDMATENSOR_MR_MODE_POOL);
	EQ(rdmatensor_query(side->rt, &query), 0);
	side->port = query.listen_port;
	if (make_pool)
		make_pool(side, pool_bytes);
	else
		EQ(rdmatensor_pool_create(side->rt, pool_bytes, &side->pool), 0);
}

void side_close(struct side *side)
{
	int i;

	for (i = 0; i < SIDES_MAX; i++)
		if (open_sides[i] == side)
			open_sides[i] = NULL;
	rdmatensor_close(side->rt);
	free(side->kept);
	memset(side, 0, sizeof(*side));
}

void side_connect(struct side *from, struct side *to)
{
	char addr[64], cause[256];
	int ret;

	test_addr(addr, sizeof(addr), to->port);
	ret = rdmatensor_connect(from->rt, addr, NULL, 0, &from->channel, cause,
				 sizeof(cause));
	if (ret)
		test_fail(__FILE__, __LINE__, "CONNECT: %d: %s", ret, cause);
}

void pair_open(struct pair *pair, uint64_t pool_bytes,
	       void (*tune)(struct rdmatensor_start *start))
{
	struct rdmatensor_cqe cqe;

	memset(pair, 0, sizeof(*pair));
	side_open(&pair->a, "a", pool_bytes, 1, tune);
	side_open(&pair->b, "b", pool_bytes, 1, tune);
	side_connect(&pair->b, &pair->a);
	EQ(side_next(&pair->a, RDMATENSOR_CQE_CHANNEL_UP, 0, &cqe), 0);
	pair->a.channel = cqe.channel;
}

uint64_t side_alloc(struct side *side, uint64_t bytes)
{
	uint64_t at = side->used;

	if (side->whole) {
		/* Aligned as regions are, and not given back */
		side->used += (bytes + 4095) / 4096 * 4096;
		CHECK(side->used <= side->pool.bytes);
		return at;
	}
	EQ(rdmatensor_pool_alloc(side->rt, &side->pool, bytes ? bytes : 1, &at), 0);
	return at;
}

unsigned char *side_at(struct side *side, uint64_t offset)
{
	return (unsigned char *)side->pool.base + offset;
}

static unsigned char pattern(uint64_t i, unsigned int seed)
{
	return (unsigned char)(i * 31 + (i >> 8) * 7 + (i >> 16) * 3 + seed * 101 + 1);
}

void fill(unsigned char *at, uint64_t bytes, unsigned int seed)
{
	uint64_t i;

	for (i = 0; i < bytes; i++)
		at[i] = pattern(i, seed);
}

int filled(const unsigned char *at, uint64_t bytes, unsigned int seed)
{
	uint64_t i;

	for (i = 0; i < bytes; i++) {
		if (at[i] != pattern(i, seed)) {
			printf("# byte %llu is %u, expected %u\n", (unsigned long long)i,
			       at[i], pattern(i, seed));
			return 0;
		}
	}
	return 1;
}

int side_do(struct side *side, const struct rdmatensor_op *op)
{
	unsigned int done;

	return rdmatensor_submit(side->rt, op, 1, 0, 0, &done);
}

static int side_kept(struct side *side, int type, uint64_t user_data,
		     struct rdmatensor_cqe *cqe)
{
	unsigned int i;

	for (i = 0; i < side->nr_kept; i++) {
		if (side->kept[i].type != type || side->kept[i].user_data != user_data)
			continue;
		*cqe = side->kept[i];
		memmove(&side->kept[i], &side->kept[i + 1],
			(side->nr_kept - i - 1) * sizeof(*side->kept));
		side->nr_kept--;
		return 1;
	}
	return 0;
}

static int side_wait(struct side *side, int type, uint64_t user_data,
		     struct rdmatensor_cqe *cqe, uint64_t deadline)
{
	for (;;) {
		if (side->nr_kept == KEPT_MAX)
			test_fail(__FILE__, __LINE__, "%d entries that nobody asked for", KEPT_MAX);
		side->nr_kept += rdmatensor_reap(side->rt, &side->kept[side->nr_kept],
						 KEPT_MAX - side->nr_kept);
		if (side_kept(side, type, user_data, cqe))
			return 1;
		if (rdmatensor_wait(side->rt, 1, deadline))
			return 0;
	}
}

int side_next(struct side *side, int type, uint64_t user_data, struct rdmatensor_cqe *cqe)
{
	struct rdmatensor_cqe own;

	if (!cqe)
		cqe = &own;
	if (!side_wait(side, type, user_data, cqe, rdmatensor_deadline_ms(20000)))
		test_fail(__FILE__, __LINE__, "no entry of type %d, user_data %llu came", type,
			  (unsigned long long)user_data);
	return cqe->result;
}

void side_none(struct side *side, int type, uint64_t user_data, int ms)
{
	struct rdmatensor_cqe cqe;

	if (side_wait(side, type, user_data, &cqe, rdmatensor_deadline_ms(ms)))
		test_fail(__FILE__, __LINE__, "an entry of type %d, user_data %llu: %d", type,
			  (unsigned long long)user_data, cqe.result);
}

void side_forget(struct side *side, int type)
{
	unsigned int i, left = 0;

	for (i = 0; i < side->nr_kept; i++)
		if (side->kept[i].type != type)
			side->kept[left++] = side->kept[i];
	side->nr_kept = left;
}

uint64_t side_stat(struct side *side, int stat)
{
	uint64_t counters[RDMATENSOR_STAT_NR];

	CHECK(rdmatensor_stats(side->rt, 0, counters, RDMATENSOR_STAT_NR) >= 0);
	return counters[stat];
}

uint64_t publish(struct side *side, const char *name, int64_t step, uint64_t bytes,
		 unsigned int seed, uint32_t uses, uint64_t user_data)
{
	uint64_t at = side_alloc(side, bytes);
	struct rdmatensor_op op;
	uint64_t dim = bytes;

	fill(side_at(side, at), bytes, seed);
	rdmatensor_prep_publish(&op, name, step, side->pool.id, at, bytes,
				RDMATENSOR_DT_UINT8, 1, &dim, uses, user_data);
	EQ(side_do(side, &op), 0);
	return at;
}

int fetch(struct side *side, const char *name, int64_t step, uint64_t room, uint64_t *at,
	  struct rdmatensor_cqe *cqe)
{
	uint64_t offset = side_alloc(side, room);

	if (at)
		*at = offset;
	return rdmatensor_fetch(side->rt, side->channel, name, step, &side->pool, offset, room,
				rdmatensor_deadline_ms(20000), cqe);
}

static void (*at_end)(void);

void test_at_end(void (*fn)(void))
{
	at_end = fn;
}

static int run(struct test *test)
{
	int failed, i;

	running = test->name;
	own_ip = NULL;
	alarm(TIME_LIMIT);
	test_checks = 0;
	failed = setjmp(test_end);
	if (!failed) {
		test->fn();
		if (!test_checks)
			test_fail(__FILE__, __LINE__, "nothing was checked");
	}
	for (i = 0; i < SIDES_MAX; i++)
		if (open_sides[i])
			side_close(open_sides[i]);
	if (at_end)
		at_end();
	at_end = NULL;
	alarm(0);
	return failed;
}

/* By its name, or by that of its file, as in "slices.c" */
static int is_wanted(const struct test *test, int nr, char *const *patterns)
{
	const char *file = strrchr(test->file, '/');
	int i;

	file = file ? file + 1 : test->file;
	for (i = 0; i < nr; i++)
		if (!fnmatch(patterns[i], test->name, 0) || !fnmatch(patterns[i], file, 0))
			return 1;
	return !nr;
}

int main(int argc, char **argv)
{
	int number = 0, failures = 0;
	struct test *test;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, expired);
	for (test = tests; test; test = test->next) {
		uint64_t began = rdmatensor_now_ns(), ms;
		int failed;

		if (!is_wanted(test, argc - 1, argv + 1))
			continue;
		failed = run(test);
		failures += failed;
		printf("%s %d - %s\n", failed ? "not ok" : "ok", ++number, test->name);
		ms = ms_since(began);
		if (ms >= SLOW_MS)
			printf("# %s: %llu ms\n", test->name, (unsigned long long)ms);
		/* A mutant needs one that notices */
		if (failed && getenv("RDMATENSOR_TEST_STOP"))
			break;
	}
	printf("1..%d\n", number);
	return failures || !number;
}

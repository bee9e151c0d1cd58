// SPDX-License-Identifier: GPL-2.0
/*
 * threads [--seconds N] [--seed N] [--threads N] [--patience N] [--keep-device]: threads that
 * make random calls on a few shared handles, all that there are, right and wrong, while
 * handles are closed under their hands and made again, peers are killed, and the RDMA
 * device is unplugged. What goes in at the same time matters, not what comes out of one
 * call: fuzz/calls looks at arguments, stress at contents.
 *
 * What it holds against the module, beside what the kernel itself finds: each call ends
 * within --patience seconds (60; a slower kernel gets more, and what lasts here lasts longer
 * there); each operation that was taken on a handle that retires
 * in order ends once, and none ends twice on any; no channel ends by an error of the
 * protocol; each kind of call can succeed, and tensors and rows come.
 *
 * Threads race, so a seed repeats the calls of each thread, not their interleaving.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "threads.h"

enum scene { MIXED, DATA, STARTS, LIVES, NR_SCENES };

/* Of one scene at a time, for half a second; what is rare in all of them is expensive */
static const struct {
	const char *name;
	unsigned short weights[NR_SCENES];
} kinds[NR_KINDS] = {
	[QUERY] =		{ "QUERY",			{ 10, 2, 20, 10 } },
	[START_LATE] =		{ "START, refused late",	{ 30, 0, 600, 10 } },
	[START_BAD] =		{ "START, mutated",		{ 10, 0, 40, 5 } },
	[START_GOOD] =		{ "START",			{ 5, 0, 60, 5 } },
	[CONFIGURE] =		{ "CONFIGURE",			{ 10, 2, 5, 5 } },
	[STATS] =		{ "STATS",			{ 15, 5, 5, 10 } },
	[POOL_CREATE] =		{ "POOL_CREATE",		{ 20, 2, 0, 10 } },
	[POOL_REGISTER] =	{ "POOL_REGISTER",		{ 20, 2, 0, 10 } },
	[POOL_IMPORT] =		{ "POOL_IMPORT",		{ 20, 2, 0, 10 } },
	[POOL_ALLOC] =		{ "POOL_ALLOC",			{ 60, 60, 0, 20 } },
	[POOL_DESTROY] =	{ "POOL_DESTROY",		{ 10, 1, 0, 10 } },
	[CONNECT] =		{ "CONNECT",			{ 30, 10, 5, 100 } },
	[DISCONNECT] =		{ "DISCONNECT",			{ 5, 1, 0, 50 } },
	[CHANNEL_QUERY] =	{ "CHANNEL_QUERY",		{ 30, 10, 5, 50 } },
	[STEP_ABORT] =		{ "STEP_ABORT",			{ 6, 2, 0, 5 } },
	[TABLE_EXPORT] =	{ "TABLE_EXPORT",		{ 20, 5, 0, 10 } },
	[TABLE_OPEN] =		{ "TABLE_OPEN",			{ 30, 30, 0, 20 } },
	[TABLE_CLOSE] =		{ "TABLE_CLOSE",		{ 10, 3, 0, 20 } },
	[STATUS_TEXT] =		{ "STATUS_TEXT",		{ 20, 20, 0, 10 } },
	[DOMAIN] =		{ "DOMAIN_CREATE, DOMAIN_QUERY",	{ 8, 2, 2, 10 } },
	[POOL_QUERY] =		{ "POOL_QUERY",			{ 10, 2, 2, 10 } },
	[LASTING_QUERY] =	{ "LASTING_QUERY",		{ 10, 2, 2, 10 } },
	[DUMP] =		{ "DUMP",			{ 10, 5, 5, 10 } },
	[SUBMIT] =		{ "SUBMIT",			{ 400, 800, 50, 300 } },
	[WAIT] =		{ "SUBMIT that waits",		{ 10, 5, 0, 5 } },
	[REAP] =		{ "reap",			{ 150, 250, 20, 100 } },
	[POLL] =		{ "poll",			{ 10, 5, 5, 5 } },
	[MAP] =			{ "mmap",			{ 30, 5, 0, 20 } },
	[MADVISE] =		{ "madvise",			{ 20, 2, 0, 10 } },
	[MUNMAP] =		{ "munmap",			{ 15, 2, 0, 10 } },
	[ARENA] =		{ "registered memory changed",	{ 40, 5, 0, 10 } },
	[NETLINK] =		{ "netlink dump",		{ 20, 5, 10, 20 } },
	[REOPEN] =		{ "close under others' hands",	{ 1, 0, 20, 5 } },
	[RETIRE] =		{ "close in order",		{ 3, 1, 0, 8 } },
	[FORK] =		{ "fork",			{ 2, 0, 2, 2 } },
	[EXEC] =		{ "fork and exec",		{ 1, 0, 0, 1 } },
	/* Of others than the threads */
	[PEER] =		{ "a peer that was killed",	{ 0, 0, 0, 0 } },
	[UNPLUG] =		{ "the device unplugged",	{ 0, 0, 0, 0 } },
};

struct shared *shared;
int shared_fd, null_fd;
struct in_addr own_ip;
unsigned int peer_number;
unsigned int patience_s = 60, slowness = 1;
bool stop;

static unsigned int mains = MAINS, raws = RAWS, nr_threads = 8;
static enum scene scene;
/* After the threads: who sees to peers, who to the device, who to the first and last of handles */
enum { PEERS_WORKER = THREADS_MAX, DEVICE_WORKER, HANDLES_WORKER, NR_WORKERS };

static struct worker workers[NR_WORKERS];

void wrong(const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (__atomic_fetch_add(&shared->failures, 1, __ATOMIC_RELAXED) < 20)
		printf("# wrong%s: %s\n", peer_number ? " in a peer" : "", text);
}

void enter(struct worker *w, const char *doing)
{
	w->doing = doing;
	__atomic_store_n(&w->since, rdmatensor_now_ns(), __ATOMIC_RELEASE);
}

void leave(struct worker *w)
{
	__atomic_store_n(&w->since, 0, __ATOMIC_RELEASE);
}

int count(struct worker *w, enum kind kind, int ret)
{
	w->errors[kind][ret >= 0 ? 0 : -ret < ERRNO_MAX ? -ret : ERRNO_MAX]++;
	return ret;
}

/*
 * Threads
 */

static enum kind choose(struct worker *w)
{
	enum scene now = __atomic_load_n(&scene, __ATOMIC_RELAXED);
	unsigned int all = 0, at;
	enum kind kind;

	for (kind = 0; kind < NR_KINDS; kind++)
		all += kinds[kind].weights[now];
	at = below(w, all);
	for (kind = 0; at >= kinds[kind].weights[now]; kind++)
		at -= kinds[kind].weights[now];
	return kind;
}

static unsigned int slot_for(struct worker *w, enum kind kind)
{
	bool raw = kind >= START_LATE && kind <= START_GOOD ? !one_in(w, 16) :
		   kind == REOPEN ? !one_in(w, 4) : kind != RETIRE && one_in(w, 32);

	return raw && raws ? mains + below(w, raws) : below(w, mains);
}

static int do_poll(struct worker *w, struct life *life)
{
	struct pollfd pfd = { .fd = life->fd, .events = below(w, 0x40) };
	int ret;

	enter(w, "poll");
	ret = poll(&pfd, 1, below(w, 20)) < 0 ? -errno : 0;
	leave(w);
	return ret;
}

static int act_on(struct worker *w, struct life *life, enum kind kind)
{
	switch (kind) {
	case START_LATE:
	case START_BAD:
	case START_GOOD:
		return do_start(w, life, kind);
	case SUBMIT:
		return do_submit(w, life);
	case WAIT:
		return do_wait(w, life);
	case REAP:
		return do_reap(w, life);
	case POLL:
		return do_poll(w, life);
	case MAP:
		return do_map(w, life);
	case MADVISE:
		return do_madvise(w, life);
	case ARENA:
		return do_arena(w);
	case MUNMAP:
		return do_munmap(w, life);
	case FORK:
		return do_fork(w, life);
	case EXEC:
		return do_exec(w, life);
	default:
		return do_control(w, life, kind);
	}
}

/* Its device has gone, or what is to be tried with it has been: one thread makes another */
static void renew(struct worker *w, unsigned int slot)
{
	static bool renewing[HANDLES];

	if (__atomic_exchange_n(&renewing[slot], true, __ATOMIC_ACQUIRE))
		return;
	if (one_in(w, 2))
		count(w, RETIRE, do_retire(w, slot));
	else
		count(w, REOPEN, do_reopen(w, slot));
	__atomic_store_n(&renewing[slot], false, __ATOMIC_RELEASE);
}

static void act(struct worker *w)
{
	enum kind kind = choose(w);
	unsigned int slot = slot_for(w, kind);
	struct life *life;
	int ret;

	w->now = kind;
	__atomic_store_n(&w->began, rdmatensor_now_ns(), __ATOMIC_RELAXED);
	if (kind == REOPEN || kind == RETIRE) {
		count(w, kind, kind == RETIRE ? do_retire(w, slot) : do_reopen(w, slot));
		return;
	}
	if (kind == NETLINK) {
		count(w, kind, do_netlink(w));
		return;
	}
	life = life_get(slot);
	ret = count(w, kind, act_on(w, life, kind));
	if (kind == START_GOOD && !ret && one_in(w, 2))
		ret = -ENODEV;
	life_put(life);
	if (ret == -ENODEV || (kind == START_LATE && slot >= mains && ret == -EISCONN))
		renew(w, slot);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = syscall(SYS_gettid);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		act(w);
	__atomic_store_n(&w->gone, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Who watches
 */

static void print_stack(const char *pid, const char *tid)
{
	char path[128], text[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.32s/task/%.32s/stack", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return;
	text[n] = 0;
	if (strstr(text, "rdmatensor") || strstr(text, "rxe_") || strstr(text, "cma_") ||
	    strstr(text, "ib_"))
		printf("# task %s of %s:\n%s", tid, pid, text);
}

/* All that hang in the module or below it: what a call waits for is often another's */
static void print_stacks(void)
{
	struct dirent *pid, *tid;
	DIR *pids = opendir("/proc"), *tids;
	char path[128];

	while (pids && (pid = readdir(pids))) {
		if (pid->d_name[0] < '0' || pid->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.32s/task", pid->d_name);
		tids = opendir(path);
		while (tids && (tid = readdir(tids)))
			if (tid->d_name[0] != '.')
				print_stack(pid->d_name, tid->d_name);
		if (tids)
			closedir(tids);
	}
	if (pids)
		closedir(pids);
}

static bool overdue(const struct worker *w, uint64_t now)
{
	uint64_t since = __atomic_load_n(&w->since, __ATOMIC_ACQUIRE);

	uint64_t began = __atomic_load_n(&w->began, __ATOMIC_RELAXED);

	if (since && now > since && now - since > patience_s * 1000000000ull)
		return true;
	/* Many calls, each of which ends: a handle that retires has its own patience */
	return began && now > began && now - began > 4 * patience_s * 1000000000ull;
}

/* Nobody has done it, and somebody should have */
static bool is_missing(enum kind kind, unsigned int seconds, bool unplugs)
{
	unsigned int t;

	if (kind == START_LATE || kind == START_BAD ||
	    (kind == UNPLUG && (!unplugs || seconds < 15 * slowness)))
		return false;
	for (t = 0; t < NR_WORKERS; t++)
		if (__atomic_load_n(&workers[t].errors[kind][0], __ATOMIC_RELAXED))
			return false;
	return true;
}

/* Nobody's operation of this kind went well */
static bool is_opcode_missing(unsigned int opcode)
{
	unsigned int t;

	for (t = 0; t < NR_WORKERS; t++)
		if (__atomic_load_n(&workers[t].ops[opcode][0], __ATOMIC_RELAXED))
			return false;
	return true;
}

static bool is_any_missing(unsigned int seconds, bool unplugs)
{
	unsigned int opcode, t;
	uint64_t late = 0;
	enum kind kind;

	for (kind = 0; kind < NR_KINDS; kind++)
		if (is_missing(kind, seconds, unplugs))
			return true;
	for (opcode = 0; opcode < NR_OPCODES; opcode++)
		if (is_opcode_missing(opcode))
			return true;
	for (t = 0; t < NR_WORKERS; t++)
		late |= __atomic_load_n(&workers[t].errors[START_LATE][EINVAL], __ATOMIC_RELAXED);
	return !late || !__atomic_load_n(&shared->fetched, __ATOMIC_RELAXED) ||
	       !__atomic_load_n(&shared->gathered, __ATOMIC_RELAXED) ||
	       !__atomic_load_n(&shared->peer_bytes, __ATOMIC_RELAXED);
}

/*
 * Scenes change, calls are interrupted now and then, and each has to end. What is rare and has not
 * been done when the time is over has as much time again
 */
static void watch(unsigned int seconds, uint64_t seed, bool unplugs)
{
	uint64_t end = rdmatensor_deadline_ms(seconds * 1000ull), next = 0;
	uint64_t last = rdmatensor_deadline_ms(seconds * 2000ull);
	struct worker own = { .random = ~seed };
	bool running = true;
	unsigned int i;

	while (running) {
		uint64_t now = rdmatensor_now_ns();

		if (now >= end && (now >= last || !is_any_missing(seconds, unplugs)))
			__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		if (now >= next) {
			__atomic_store_n(&scene, below(&own, NR_SCENES), __ATOMIC_RELAXED);
			next = now + slowness * 500000000ull;
		}
		running = false;
		for (i = 0; i < NR_WORKERS; i++) {
			struct worker *w = &workers[i];

			if (!w->thread || __atomic_load_n(&w->gone, __ATOMIC_ACQUIRE))
				continue;
			running = true;
			if (overdue(w, now)) {
				printf("# thread %u (%d), in %s: %s\n", i, w->tid,
				       kinds[w->now].name, w->doing);
				print_stacks();
				printf("not ok 1 - %s has not ended in %u s\n", w->doing, patience_s);
				_exit(1);
			}
			if (i < nr_threads && one_in(&own, 64 * slowness))
				pthread_kill(w->thread, SIGUSR1);
		}
		poll(NULL, 0, 10);
	}
}

/*
 * The verdict
 */

static int number, failures;

static void result(bool ok, const char *what)
{
	printf("%s %d - %s\n", ok ? "ok" : "not ok", ++number, what);
	failures += !ok;
}

/* A line of outcomes. Return: how many succeeded */
static uint64_t print_outcomes(const char *name, const uint64_t *errors, uint64_t *all)
{
	uint64_t sum = 0;
	int e;

	for (e = 0; e <= ERRNO_MAX; e++)
		sum += errors[e];
	printf("# %-26s %8llu, %3llu %% done;", name, (unsigned long long)sum,
	       (unsigned long long)(sum ? errors[0] * 100 / sum : 0));
	for (e = 1; e <= ERRNO_MAX; e++)
		if (errors[e])
			printf(" %s %llu", strerrorname_np(e) ?: "other",
			       (unsigned long long)errors[e]);
	printf("\n");
	*all += sum;
	return errors[0];
}

static void report(unsigned int seconds, bool unplugs)
{
	static const char *const opcodes[NR_OPCODES] = {
		"PUBLISH", "WITHDRAW", "FETCH", "CANCEL", "FREE", "GATHER",
		"RELEASE", "LIST", "REVEAL",
	};
	static uint64_t errors[NR_KINDS][ERRNO_MAX + 1], ops[NR_OPCODES][ERRNO_MAX + 1];
	unsigned int t, i, e, never = 0;
	uint64_t all = 0, operations = 0;
	char what[256];

	for (t = 0; t < NR_WORKERS; t++)
		for (e = 0; e <= ERRNO_MAX; e++) {
			for (i = 0; i < NR_KINDS; i++)
				errors[i][e] += workers[t].errors[i][e];
			for (i = 0; i < NR_OPCODES; i++)
				ops[i][e] += workers[t].ops[i][e];
		}
	for (i = 0; i < NR_KINDS; i++) {
		print_outcomes(kinds[i].name, errors[i], &all);
		if (!is_missing(i, seconds, unplugs))
			continue;
		printf("# never done: %s\n", kinds[i].name);
		never++;
	}
	for (i = 0; i < NR_OPCODES; i++)
		if (!print_outcomes(opcodes[i], ops[i], &operations)) {
			printf("# never taken: %s\n", opcodes[i]);
			never++;
		}
	result(true, "every call ended");
	result(!never, "each kind of call and operation succeeded");
	result(errors[START_LATE][EINVAL], "START was refused when the device was bound already");
	snprintf(what, sizeof(what),
		 "of %llu fetches and gathers %llu and %llu brought something, %llu bytes; %llu ended otherwise",
		 (unsigned long long)shared->taken, (unsigned long long)shared->fetched,
		 (unsigned long long)shared->gathered, (unsigned long long)shared->bytes,
		 (unsigned long long)shared->ended);
	result(shared->fetched && shared->gathered && shared->bytes, what);
	snprintf(what, sizeof(what), "peers that were killed had been brought %llu bytes",
		 (unsigned long long)shared->peer_bytes);
	result(shared->peer_bytes, what);
	result(!shared->failures, "whatever ended, ended once");
	snprintf(what, sizeof(what), "%llu handles ended with nothing left to come",
		 (unsigned long long)shared->settled);
	result(shared->settled >= mains, what);
	result(!shared->breaches, "no channel ended by an error of the protocol");
	printf("calls %llu, operations %llu\n", (unsigned long long)all,
	       (unsigned long long)operations);
}

/* In kB, what this process is charged for */
static long locked(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kb, sum = 0;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmLck: %ld", &kb) == 1 || sscanf(line, "VmPin: %ld", &kb) == 1)
			sum += kb;
	if (status)
		fclose(status);
	return sum;
}

/* What this process has of the module: mappings, and descriptors */
static void tell_own(void)
{
	fflush(stdout);
	if (system("{ grep -F " RDMATENSOR_DEVICE_PATH " /proc/$PPID/maps; ls -l /proc/$PPID/fd; } | sed 's/^/# /'"))
		puts("# nothing is known of this process");
}

/* Pools whose last user cannot sleep are freed by the module's workqueue, soon after their end */
static bool charges_end(void)
{
	uint64_t until = rdmatensor_deadline_ms(10000);
	long kb;

	while ((kb = locked()) && rdmatensor_now_ns() < until)
		poll(NULL, 0, 10);
	if (kb) {
		printf("# %ld kB are charged\n", kb);
		tell_own();
		tell_why();
	}
	return !kb;
}

/*
 * The whole
 */

static void interrupted(int sig)
{
	(void)sig;
}

/* This program's own fault, or memory of its that the kernel has written to: who it was in */
static void faulted(int sig, siginfo_t *info, void *context)
{
	char text[160];
	unsigned int i;
	int n;

	(void)context;
	for (i = 0; i < NR_WORKERS - 1 && workers[i].tid != (int)syscall(SYS_gettid); i++)
		;
	n = snprintf(text, sizeof(text), "not ok 1 - signal %d at %p%s, in %s\n", sig,
		     info->si_addr, peer_number ? " in a peer" : "",
		     workers[i].tid ? kinds[workers[i].now % NR_KINDS].name : "no thread of calls");
	if (write(STDOUT_FILENO, text, n) != n)
		_exit(2);
	_exit(1);
}

static bool prepare(uint64_t seed)
{
	struct sigaction action = { .sa_handler = interrupted };
	struct sigaction fault = { .sa_sigaction = faulted, .sa_flags = SA_SIGINFO };
	const char *ip = getenv("LAB_IP");
	unsigned int i;

	if (inet_aton(ip ?: "10.0.0.1", &own_ip) != 1)
		return false;
	if (!shared_fd) {
		shared_fd = memfd_create("threads", 0);
		if (shared_fd < 0 || ftruncate(shared_fd, PAGE))
			return false;
	}
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (shared == MAP_FAILED || null_fd < 0 || !domains_make() || !arena_make())
		return false;
	for (i = 0; i < NR_WORKERS; i++) {
		struct worker *w = &workers[i];

		w->random = mix(seed) + mix(i);
		w->pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (w->pages == MAP_FAILED || mprotect(w->pages + PAGE, PAGE, PROT_READ) ||
		    mprotect(w->pages + 2 * PAGE, PAGE, PROT_NONE))
			return false;
	}
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	return true;
}

static void begin(unsigned int i, void *(*fn)(void *arg))
{
	if (pthread_create(&workers[i].thread, NULL, fn, &workers[i])) {
		perror("threads: pthread_create");
		exit(1);
	}
}

static void *close_all(void *arg)
{
	struct worker *w = arg;

	handles_close(w);
	__atomic_store_n(&w->gone, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Until it is killed */
static int peer_main(void)
{
	struct worker *w = &workers[HANDLES_WORKER];
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mains = 1;
	raws = 0;
	while (handles_open(w, mains, raws))
		poll(NULL, 0, 20);
	for (i = 0; i < 2; i++)
		begin(i, work);
	for (;;) {
		scene = one_in(w, 4) ? LIVES : DATA;
		poll(NULL, 0, 200);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'r' },
		{ "threads", required_argument, NULL, 't' },
		{ "patience", required_argument, NULL, 'p' },
		{ "keep-device", no_argument, NULL, 'k' },
		{ "peer", required_argument, NULL, 'P' },
		{ "shared", required_argument, NULL, 'S' },
		{ "heir", required_argument, NULL, 'H' },
		{ NULL, 0, NULL, 0 },
	};
	struct worker *w = &workers[HANDLES_WORKER];
	unsigned int seconds = 20, i;
	bool unplugs = true;
	uint64_t seed = 1;
	int option;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			seconds = atoi(optarg);
			break;
		case 'r':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			nr_threads = atoi(optarg);
			break;
		case 'p':
			patience_s = atoi(optarg);
			slowness = (patience_s + 59) / 60;
			break;
		case 'k':
			unplugs = false;
			break;
		case 'P':
			peer_number = atoi(optarg);
			break;
		case 'S':
			shared_fd = atoi(optarg);
			break;
		case 'H':
			return heir_main(atoi(optarg));
		default:
			return 2;
		}
	}
	if (!nr_threads || nr_threads > THREADS_MAX || !seconds) {
		fprintf(stderr, "threads: 1 to %d threads\n", THREADS_MAX);
		return 2;
	}
	if (!prepare(seed)) {
		perror("threads");
		return 1;
	}
	if (peer_number)
		return peer_main();

	printf("# seed %llu, %u s, %u threads, %ld processors\n", (unsigned long long)seed, seconds,
	       nr_threads, sysconf(_SC_NPROCESSORS_ONLN));
	if (unplugs && !device_prepare()) {
		perror("threads: who unplugs the device");
		return 1;
	}
	if (handles_open(w, mains, raws)) {
		result(false, "handles to begin with");
		return 1;
	}
	for (i = 0; i < nr_threads; i++)
		begin(i, work);
	begin(PEERS_WORKER, peers_work);
	if (unplugs)
		begin(DEVICE_WORKER, device_work);
	watch(seconds, seed, unplugs);
	for (i = 0; i < NR_WORKERS; i++)
		if (workers[i].thread)
			pthread_join(workers[i].thread, NULL);
	begin(HANDLES_WORKER, close_all);
	watch(0, seed, unplugs);
	pthread_join(w->thread, NULL);
	domains_end();
	report(seconds, unplugs);
	result(charges_end(), "no memory is charged that was returned");
	printf("1..%d\n", number);
	return failures ? 1 : 0;
}

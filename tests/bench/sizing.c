// SPDX-License-Identifier: GPL-2.0
/*
 * sizing WHAT N: makes N of something between two contexts of its own, for sizing.sh to count the
 * memory. It says "begin" when all is there but these N, makes them when it reads a line, and says
 * "made"; with the next line it ends. The first context listens at LAB_IP and publishes, the second
 * one connects and fetches; both take their parameters from the environment. All is the process's
 * and ends with it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmatensor/rdmatensor.h>

#define MOST 16384
/* Bytes of a tensor, and of a row; those of a pool, which has room for MOST of them */
#define SHORT 64
#define POOL (UINT64_C(1) << 20)
#define BATCH 128

static struct rdmatensor *owner, *reader;
static struct rdmatensor_pool shared, into;
static uint32_t channels[MOST];
static char addr[64];

static void die(const char *what, int err, const char *why)
{
	fprintf(stderr, "sizing: %s: %s (%d)%s%s\n", what, strerror(-err), err, why ? ": " : "",
		why ? why : "");
	exit(1);
}

static struct rdmatensor *started(const char *listen)
{
	struct rdmatensor_start start;
	struct rdmatensor *rt;
	char cause[256];
	int err;

	err = rdmatensor_open_cause(NULL, &rt, cause, sizeof(cause));
	if (err)
		die("open", err, cause);
	rdmatensor_start_init(&start, listen ? "owner" : "reader");
	err = rdmatensor_start_from_env(&start, cause, sizeof(cause));
	if (!err && listen)
		err = rdmatensor_start_listen(&start, listen, cause, sizeof(cause));
	if (err)
		die("start", err, cause);
	err = rdmatensor_start(rt, &start);
	if (err)
		die("start", err, start.cause);
	return rt;
}

static void pool(struct rdmatensor *rt, uint64_t bytes, struct rdmatensor_pool *made)
{
	int err = rdmatensor_pool_create(rt, bytes, made);

	if (err)
		die("pool", err, NULL);
}

/* A region of all of it */
static void pool_whole(struct rdmatensor *rt, struct rdmatensor_pool *made)
{
	uint64_t offset;
	int err;

	pool(rt, POOL, made);
	err = rdmatensor_pool_alloc(rt, made, POOL, &offset);
	if (err)
		die("region", err, NULL);
}

static void connect_some(unsigned int nr)
{
	char cause[256];
	unsigned int i;
	int err;

	for (i = 0; i < nr; i++) {
		err = rdmatensor_connect(reader, addr, NULL, 60000, &channels[i], cause,
					 sizeof(cause));
		if (err)
			die("connect", err, cause);
	}
}

static void name_of(unsigned int i, char name[18])
{
	snprintf(name, 18, "tensor.%06u", i);
}

static void publish_some(unsigned int nr)
{
	struct rdmatensor_op op;
	uint64_t dim = SHORT;
	char name[18];
	unsigned int i;
	int err;

	for (i = 0; i < nr; i++) {
		name_of(i, name);
		rdmatensor_prep_publish(&op, name, 0, shared.id, 0, SHORT, RDMATENSOR_DT_UINT8, 1,
					&dim, 0, 0);
		err = rdmatensor_submit(owner, &op, 1, 0, 0, NULL);
		if (err)
			die("publish", err, NULL);
	}
}

static void fetch_begin(unsigned int i)
{
	struct rdmatensor_op op;
	char name[18];
	int err;

	name_of(i, name);
	rdmatensor_prep_fetch(&op, channels[0], name, 0, into.id, (uint64_t)i * SHORT, SHORT, 0, i);
	err = rdmatensor_submit(reader, &op, 1, 0, 0, NULL);
	if (err)
		die("fetch", err, NULL);
}

/* They wait at the owner, which has published nothing */
static void wait_some(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		fetch_begin(i);
}

/* Each name once: the reader learns its meta-data */
static void fetch_some(unsigned int nr)
{
	struct rdmatensor_cqe cqes[BATCH];
	unsigned int i, done = 0, got, j;
	int err;

	for (i = 0; i < nr; i++) {
		fetch_begin(i);
		err = rdmatensor_wait(reader, 1, 0);
		if (err)
			die("wait", err, NULL);
		got = rdmatensor_reap(reader, cqes, BATCH);
		for (j = 0; j < got; j++)
			if (cqes[j].result)
				die("fetch", cqes[j].result, NULL);
		done += got;
	}
	if (done != nr)
		die("fetch", -EIO, "entries are missing");
}

static void export_one(unsigned int i)
{
	char name[18];
	uint32_t table;
	int err;

	name_of(i, name);
	err = rdmatensor_table_export(owner, name, &shared, 0, 0, 4, SHORT, 0,
				      RDMATENSOR_DT_UINT8, &table);
	if (err)
		die("export", err, NULL);
}

static void open_one(unsigned int i, uint32_t channel)
{
	struct rdmatensor_table_open open = { 0 };
	char name[18];
	int err;

	name_of(i, name);
	err = rdmatensor_table_open(reader, name, &channel, 1, &open);
	if (err)
		die("table", err, open.cause);
}

static void make_contexts(unsigned int nr)
{
	while (nr--)
		started(NULL);
}

static void make_pools(unsigned int nr)
{
	struct rdmatensor_pool made;

	while (nr--)
		pool(owner, POOL, &made);
}

static void make_exports(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		export_one(i);
}

/* One table after the other of an owner that has lanes for READs already */
static void make_tables(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		open_one(i, channels[0]);
}

/* The same table over one channel after the other, each of which gets its lanes for READs */
static void make_owners(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		open_one(0, channels[i]);
}

static void before_tables(unsigned int nr)
{
	connect_some(1);
	make_exports(nr);
	open_one(0, channels[0]);
}

static void before_owners(unsigned int nr)
{
	connect_some(nr);
	export_one(0);
}

static void before_waits(unsigned int nr)
{
	(void)nr;
	connect_some(1);
}

static void before_fetches(unsigned int nr)
{
	connect_some(1);
	publish_some(nr);
}

static const struct {
	const char *what;
	void (*before)(unsigned int nr);
	void (*make)(unsigned int nr);
} kinds[] = {
	{ "context", NULL, make_contexts },
	{ "channel", NULL, connect_some },
	{ "pool", NULL, make_pools },
	{ "tensor", NULL, publish_some },
	{ "waiting", before_waits, wait_some },
	{ "known", before_fetches, fetch_some },
	{ "export", NULL, make_exports },
	{ "table", before_tables, make_tables },
	{ "owner", before_owners, make_owners },
};

static void say_and_wait(const char *word)
{
	puts(word);
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
}

int main(int argc, char **argv)
{
	unsigned int nr = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;
	struct rdmatensor_query query;
	const char *ip = getenv("LAB_IP");
	char listen[64];
	size_t i = 0;

	while (argc > 2 && i < sizeof(kinds) / sizeof(*kinds) && strcmp(kinds[i].what, argv[1]))
		i++;
	if (argc != 3 || i == sizeof(kinds) / sizeof(*kinds) || !nr || nr > MOST || !ip) {
		fprintf(stderr, "usage: LAB_IP=ADDR sizing WHAT N, N up to %d\n", MOST);
		return 1;
	}
	snprintf(listen, sizeof(listen), "%s:0", ip);
	owner = started(listen);
	if (rdmatensor_query(owner, &query))
		return 1;
	snprintf(addr, sizeof(addr), "%s:%u", ip, query.listen_port);
	reader = started(NULL);
	pool_whole(owner, &shared);
	pool_whole(reader, &into);
	if (kinds[i].before)
		kinds[i].before(nr);
	say_and_wait("begin");
	kinds[i].make(nr);
	say_and_wait("made");
	return 0;
}

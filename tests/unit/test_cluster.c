// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A cluster finds itself: what each source makes of what it is given, good or bad, and what is waited
 * for, by whom, and for how long. Ranks are contexts of the fake in this process.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "fake.h"
#include "lib/cluster/cluster.h"
#include "unit.h"

static char folder[64], hosts_file[96], store[96];
static struct rdmatensor_cluster *cluster;

static const char *const variables[] = {
	"RDMATENSOR_CLUSTER", "RDMATENSOR_JOB", "RDMATENSOR_HOSTS", "RDMATENSOR_RANK", "RDMATENSOR_STORE",
	"RDMATENSOR_ADDRESS", "TF_CONFIG", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
	"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "PMIX_NAMESPACE", "PMIX_RANK",
};

static int setup(void **state)
{
	size_t i;

	(void)state;
	fake_reset();
	for (i = 0; i < NR(variables); i++)
		unsetenv(variables[i]);
	setenv("RDMATENSOR_DEVICE_PATH", FAKE_PATH, 1);
	snprintf(folder, sizeof(folder), "/tmp/cluster.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(hosts_file, sizeof(hosts_file), "%s/hosts", folder);
	snprintf(store, sizeof(store), "file:%s", folder);
	cluster = NULL;
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(fake_open(), 0);
	return system(command);
}

static void write_hosts(const char *text, size_t len)
{
	FILE *file = fopen(hosts_file, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	setenv("RDMATENSOR_HOSTS", hosts_file, 1);
}

static int open_cluster(int64_t timeout_ms)
{
	struct rdmatensor_cluster_options options = {
		.timeout_ms = timeout_ms, .flags = RDMATENSOR_CLUSTER_QUIET,
	};

	return rdmatensor_cluster_open(&cluster, &options);
}

/* It is refused, and the line says why */
static void refused(int err, const char *words)
{
	assert_int_equal(open_cluster(0), err);
	assert_null(cluster);
	assert_contains(rdmatensor_node_error(), words);
	/* What it may have offered by then */
	fake_reset();
}

static void address_is(unsigned int rank, const char *expected)
{
	char address[RDMATENSOR_CLUSTER_ADDRESS_MAX];

	assert_int_equal(rdmatensor_cluster_address(cluster, rank, address, sizeof(address)), 0);
	assert_string_equal(address, expected);
}

static void name_is(unsigned int rank, const char *expected)
{
	char name[160];
	unsigned int found;

	assert_int_equal(rdmatensor_cluster_name(cluster, rank, name, sizeof(name)), 0);
	assert_string_equal(name, expected);
	assert_int_equal(rdmatensor_cluster_find(cluster, expected, &found), 0);
	assert_int_equal(found, rank);
}

/* It ends: what it offers is the fake's, and would stay */
static void part(struct rdmatensor_cluster *joined)
{
	char name[TOKEN_ROOM];

	cluster_token(joined, "hello", joined->rank, name);
	rdmatensor_withdraw_offer(joined->node, name, 0);
	cluster_token(joined, "whole", joined->rank, name);
	rdmatensor_withdraw_offer(joined->node, name, 0);
	rdmatensor_cluster_close(joined);
}

static void close_cluster(void)
{
	part(cluster);
	cluster = NULL;
}

static void test_nothing(void **state)
{
	(void)state;
	refused(-ENOENT, "start it by mpirun");
	setenv("PMI_RANK", "3", 1);
	refused(-ENOENT, "PMI_RANK=3 is of a launcher without PMIx");
	unsetenv("PMI_RANK");
	setenv("RDMATENSOR_CLUSTER", "mpi", 1);
	refused(-EINVAL, "hosts, torchrun, tf_config or pmix");
	setenv("RDMATENSOR_CLUSTER", "hosts", 1);
	refused(-EINVAL, "RDMATENSOR_HOSTS is not set");
	setenv("RDMATENSOR_CLUSTER", "tf_config", 1);
	refused(-EINVAL, "TF_CONFIG is not set");
	setenv("RDMATENSOR_CLUSTER", "torchrun", 1);
	refused(-ENOENT, "WORLD_SIZE is not set");
}

static void test_options(void **state)
{
	struct {
		struct rdmatensor_cluster_options options;
		uint64_t more;
	} later = { .options = { .source = 6 } };

	(void)state;
	assert_int_equal(rdmatensor_cluster_open(&cluster, &later.options), -EINVAL);
	assert_contains(rdmatensor_node_error(), "source 6");
	later.options.source = 0;
	later.options.flags = 1 << 7;
	assert_int_equal(rdmatensor_cluster_open(&cluster, &later.options), -EINVAL);
	later.options.flags = 0;
	later.more = 1;
	assert_int_equal(rdmatensor_cluster_open_sized(&cluster, (void *)&later, sizeof(later)), -E2BIG);
	assert_contains(rdmatensor_node_error(), "later one");
	/* Without a store, nobody can be found */
	later.options.source = RDMATENSOR_CLUSTER_GIVEN;
	assert_int_equal(rdmatensor_cluster_open(&cluster, &later.options), -ERANGE);
	later.options.size = 2;
	assert_int_equal(rdmatensor_cluster_open(&cluster, &later.options), -EINVAL);
	assert_contains(rdmatensor_node_error(), "RDMATENSOR_STORE=file:/FOLDER");
	/* Another one's program is older, and its struct shorter */
	setenv("RDMATENSOR_HOSTS", hosts_file, 1);
	write_hosts("127.0.0.1\n", 10);
	later.options.source = 0;
	assert_int_equal(rdmatensor_cluster_open_sized(&cluster, &later.options, 24), 0);
	close_cluster();
}

#define HOSTS(text) write_hosts(text, sizeof(text) - 1)

static void test_hosts(void **state)
{
	(void)state;
	HOSTS("# the first\n10.0.0.7:7000\n\n  [fd00::1]:7001 # and another\nname\n-\n10.0.0.1\r\n");
	setenv("RDMATENSOR_RANK", "4", 1);
	assert_int_equal(open_cluster(1), 0);
	assert_int_equal(rdmatensor_cluster_rank(cluster), 4);
	assert_int_equal(rdmatensor_cluster_size(cluster), 5);
	assert_string_equal(rdmatensor_cluster_source_name(cluster), "hosts");
	address_is(0, "10.0.0.7:7000");
	address_is(1, "[fd00::1]:7001");
	address_is(4, "10.0.0.1:18521");
	name_is(3, "3");
	assert_int_equal(rdmatensor_cluster_address(cluster, 3, NULL, 0), -ENOENT);
	assert_contains(rdmatensor_node_error(), "rank 3 has left");
	assert_int_equal(rdmatensor_cluster_address(cluster, 5, NULL, 0), -ERANGE);
	assert_contains(rdmatensor_node_error(), "0 to 4");
	assert_int_equal(rdmatensor_cluster_address(cluster, 0, NULL, 0), -EMSGSIZE);
	assert_int_equal(rdmatensor_cluster_find(cluster, "5", (unsigned int[1]){ 0 }), -ENOENT);
	close_cluster();
	/* By an address of this host's, which others reach by its device's */
	unsetenv("RDMATENSOR_RANK");
	HOSTS("192.0.2.1\n127.0.0.1:7002");
	assert_int_equal(open_cluster(1), 0);
	assert_int_equal(rdmatensor_cluster_rank(cluster), 1);
	address_is(1, "10.0.0.1:7002");
	close_cluster();
}

static void test_bad_hosts(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *words;
	} bad[] = {
		{ "", -EINVAL, "has no host" },
		{ "# nothing\n\n", -EINVAL, "has no host" },
		{ "127.0.0.1\nhost slots=4\n", -EINVAL, "line 2: more than one word" },
		{ "127.0.0.1:0\n", -EINVAL, "line 1: address 127.0.0.1:0 is refused" },
		{ "127.0.0.1:65536\n", -EINVAL, "65535" },
		{ "127.0.0.1:x\n", -EINVAL, "the port is a number" },
		{ "a/b\n", -EINVAL, "is no host" },
		{ ":18521\n", -EINVAL, "is no host" },
		{ "[::1\n", -EINVAL, "write host:port or [v6]:port" },
		{ "127.0.0.1\n192.0.2.1\n127.0.0.1:18521\n", -ENOTUNIQ, "ranks 0 and 2" },
		{ "127.0.0.1\n[fd00:0::1]\n[FD00::1]:18521\n", -ENOTUNIQ, "ranks 1 and 2" },
		{ "127.0.0.1\nnode.invalid\nNODE.invalid:18521\n", -ENOTUNIQ, "ranks 1 and 2" },
		{ "127.0.0.1:1\n127.0.0.1:2\n", -EINVAL, "set RDMATENSOR_RANK" },
		{ "192.0.2.1\n", -ENOENT, "no address of this host" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < NR(bad); i++) {
		write_hosts(bad[i].text, strlen(bad[i].text));
		refused(bad[i].err, bad[i].words);
	}
	HOSTS("127.0.0.1\0\n");
	refused(-EINVAL, "zero byte");
	HOSTS("127.0.0.1\n-\n");
	setenv("RDMATENSOR_RANK", "2", 1);
	refused(-ERANGE, "0 to 1");
	setenv("RDMATENSOR_RANK", "1", 1);
	refused(-ENOENT, "write its address there");
	setenv("RDMATENSOR_RANK", "-1", 1);
	refused(-EINVAL, "RDMATENSOR_RANK=-1 is refused");
	setenv("RDMATENSOR_HOSTS", "/none/hosts", 1);
	refused(-ENOENT, "/none/hosts: No such file");
	setenv("RDMATENSOR_HOSTS", folder, 1);
	refused(-EIO, "cannot be read");
}

static void test_refresh(void **state)
{
	(void)state;
	setenv("RDMATENSOR_RANK", "1", 1);
	HOSTS("10.0.0.1\n10.0.0.2\n");
	assert_int_equal(open_cluster(1), 0);
	HOSTS("10.0.0.1\n10.0.0.2\n10.0.0.3\n");
	assert_int_equal(rdmatensor_cluster_refresh(cluster), 0);
	assert_int_equal(rdmatensor_cluster_size(cluster), 3);
	address_is(2, "10.0.0.3:18521");
	HOSTS("10.0.0.4\n10.0.0.2\n-\n");
	assert_int_equal(rdmatensor_cluster_refresh(cluster), 0);
	address_is(0, "10.0.0.4:18521");
	assert_int_equal(rdmatensor_cluster_address(cluster, 2, NULL, 0), -ENOENT);
	/* What is wrong changes nothing */
	HOSTS("10.0.0.4\n10.0.0.2\n");
	assert_int_equal(rdmatensor_cluster_refresh(cluster), -ESTALE);
	assert_contains(rdmatensor_node_error(), "has 2 ranks, and had 3");
	HOSTS("10.0.0.4\n10.0.0.5\n-\n");
	assert_int_equal(rdmatensor_cluster_refresh(cluster), -ESTALE);
	HOSTS("10.0.0.4\n-\n-\n");
	assert_int_equal(rdmatensor_cluster_refresh(cluster), -ESTALE);
	HOSTS("10.0.0.4\n10.0.0.2\n10.0.0.4\n");
	assert_int_equal(rdmatensor_cluster_refresh(cluster), -ENOTUNIQ);
	assert_int_equal(rdmatensor_cluster_size(cluster), 3);
	address_is(0, "10.0.0.4:18521");
	close_cluster();
}

static void test_tf_config(void **state)
{
	(void)state;
	setenv("TF_CONFIG", "{\"task\": {\"index\": 1, \"type\": \"worker\"}, \"cluster\": {"
	       "\"worker\": [\"w0:7000\", \"w1:7001\"], \"ps\": {\"3\": \"p3\", \"0\": \"p0:7002\"},"
	       "\"chief\": [\"c:7003\"]}, \"environment\": \"cloud\"}\n", 1);
	assert_int_equal(open_cluster(1), 0);
	assert_string_equal(rdmatensor_cluster_source_name(cluster), "tf_config");
	assert_int_equal(rdmatensor_cluster_size(cluster), 5);
	assert_int_equal(rdmatensor_cluster_rank(cluster), 4);
	name_is(0, "chief/0");
	name_is(1, "ps/0");
	name_is(2, "ps/3");
	name_is(3, "worker/0");
	name_is(4, "worker/1");
	address_is(0, "c:7003");
	address_is(2, "p3:18521");
	assert_int_equal(rdmatensor_cluster_find(cluster, "ps/1", (unsigned int[1]){ 0 }), -ENOENT);
	assert_contains(rdmatensor_node_error(), "are called \"chief/0\" to \"worker/1\"");
	close_cluster();
}

static unsigned int asked;

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);

/* Names of the test's are this host's */
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	asked++;
	return __real_getaddrinfo(strncmp(node, "host-", 5) ? node : "127.0.0.1", service, hints, list);
}

/* A rank that is connected to is got from without a name server, which may have gone */
static void test_names_once(void **state)
{
	static const char config[] =
		"{\"cluster\": {\"worker\": [\"host-a:2222\", \"host-b:2223\"]},"
		" \"task\": {\"type\": \"worker\", \"index\": %u}}";
	struct rdmatensor_tensor tensor = {
		.data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 4 }, .data = "four",
	};
	char text[200], address[RDMATENSOR_CLUSTER_ADDRESS_MAX], content[4];
	struct rdmatensor_cluster *other;
	const char *name = "t";
	unsigned int i;

	(void)state;
	snprintf(text, sizeof(text), config, 1u);
	setenv("TF_CONFIG", text, 1);
	assert_int_equal(open_cluster(1000), 0);
	other = cluster;
	assert_int_equal(rdmatensor_offer(rdmatensor_cluster_node(other), name, &tensor), 0);
	snprintf(text, sizeof(text), config, 0u);
	setenv("TF_CONFIG", text, 1);
	assert_int_equal(open_cluster(1000), 0);
	asked = 0;
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), 0);
	assert_true(asked > 0);
	asked = 0;
	for (i = 0; i < 3; i++) {
		struct rdmatensor_tensor got = { .data = content, .bytes = sizeof(content) };

		assert_int_equal(rdmatensor_cluster_get_many(cluster, 1, &name, &got, 1), 0);
		assert_memory_equal(content, "four", 4);
	}
	assert_int_equal(rdmatensor_cluster_address(cluster, 1, address, sizeof(address)), 0);
	assert_int_equal(asked, 0);
	rdmatensor_cluster_close(other);
	close_cluster();
}

/* What programs of one process are given, too: it hides no other source */
static void test_tf_config_without_cluster(void **state)
{
	static const char *const texts[] = {
		"{}", "{\"environment\": \"cloud\"}", "{\"cluster\": {}}",
		"{\"cluster\": {}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
	};
	size_t i;

	(void)state;
	for (i = 0; i < NR(texts); i++) {
		setenv("TF_CONFIG", texts[i], 1);
		refused(-ENOENT, "start it by mpirun");
	}
	setenv("TF_CONFIG", "{\"cluster\": 1}", 1);
	refused(-EINVAL, "has no \"cluster\"");
	setenv("TF_CONFIG", "{\"sparseCluster\": {\"ps\": [\"p0:1\"], \"worker\": {\"1\": \"w1:1\"}},"
	       " \"task\": {\"type\": \"worker\", \"index\": 1}}", 1);
	refused(-EINVAL, "ranks need all tasks");
	setenv("TF_CONFIG", "{", 1);
	refused(-EINVAL, "is no JSON");
}

#define TASK ", \"task\": {\"type\": \"worker\", \"index\": 0}}"

static void test_bad_tf_config(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *words;
	} bad[] = {
		{ "{", -EINVAL, "is no JSON: at byte" },
		{ "{\"cluster\"", -EINVAL, "is no JSON" },
		{ "nothing", -EINVAL, "is no JSON" },
		{ "[]", -EINVAL, "has no \"cluster\"" },
		{ "null", -EINVAL, "is no JSON" },
		{ "7 8", -EINVAL, "something follows" },
		{ "{\"cluster\": []" TASK, -EINVAL, "has no \"cluster\"" },
		{ "{\"cluster\": {}" TASK, -EINVAL, "has no task" },
		{ "{\"cluster\": {\"worker\": \"a:1\"}" TASK, -EINVAL, "cluster.worker is no list" },
		{ "{\"cluster\": {\"worker\": [1]}" TASK, -EINVAL, "cluster.worker[0] is no text" },
		{ "{\"cluster\": {\"worker\": {\"x\": \"a:1\"}}" TASK, -EINVAL, "tasks are numbers" },
		{ "{\"cluster\": {\"worker\": {\"0\": \"a:1\", \"00\": \"b:1\"}}" TASK, -EINVAL, "twice" },
		{ "{\"cluster\": {\"worker\": [\"a:0\"]}" TASK, -EINVAL, "worker/0: address a:0 is refused" },
		{ "{\"cluster\": {\"worker\": [\"\"]}" TASK, -EINVAL, "is no host" },
		{ "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\", \"a:1\"]}" TASK, -ENOTUNIQ, "ranks 0 and 2" },
		{ "{\"cluster\": {\"ps\": [\"a:1\"]}" TASK, -ERANGE, "no task worker/0" },
		{ "{\"cluster\": {\"worker\": [\"a:1\"]}}", -EINVAL, "no \"task\"" },
		{ "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\"}}", -EINVAL,
		  "task.index is no number" },
		{ "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": -1}}",
		  -EINVAL, "task.index is no number" },
		{ "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": \"1\"}}",
		  -ERANGE, "no task worker/1" },
		{ "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"index\": 0}}", -EINVAL, "\"type\"" },
	};
	size_t i;

	(void)state;
	setenv("RDMATENSOR_CLUSTER", "tf_config", 1);
	for (i = 0; i < NR(bad); i++) {
		setenv("TF_CONFIG", bad[i].text, 1);
		refused(bad[i].err, bad[i].words);
	}
}

static void test_torchrun(void **state)
{
	static const struct {
		const char *rank;
		const char *size;
		const char *store;
		int err;
		const char *words;
	} bad[] = {
		{ "0", "0", "file:/tmp", -ERANGE, "RANK=0 is none of the WORLD_SIZE=0" },
		{ "2", "2", "file:/tmp", -ERANGE, "RANK=2" },
		{ "x", "2", "file:/tmp", -EINVAL, "RANK=x is refused" },
		{ "0", "99999999", "file:/tmp", -EINVAL, "WORLD_SIZE=99999999 is refused" },
		{ "0", "2", NULL, -EINVAL, "there is no store" },
		{ "0", "2", "redis://x", -EINVAL, "only file:/FOLDER" },
		{ "0", "2", "file:tmp", -EINVAL, "the whole path" },
		{ "0", "2", "file:/none", -ENOENT, "/none: No such file" },
		{ "0", "2", "file:/etc/passwd", -ENOTDIR, "Not a directory" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < NR(bad); i++) {
		setenv("RANK", bad[i].rank, 1);
		setenv("WORLD_SIZE", bad[i].size, 1);
		if (bad[i].store)
			setenv("RDMATENSOR_STORE", bad[i].store, 1);
		else
			unsetenv("RDMATENSOR_STORE");
		refused(bad[i].err, bad[i].words);
	}
	setenv("RDMATENSOR_STORE", store, 1);
	setenv("RDMATENSOR_ADDRESS", "[x", 1);
	refused(-EINVAL, "RDMATENSOR_ADDRESS");
	setenv("RDMATENSOR_ADDRESS", ":5", 1);
	refused(-EINVAL, "names no host");
}

/* A worker group starts again on all hosts, and counts on that one whose worker failed */
static void test_torchrun_starts_again(void **state)
{
	struct rdmatensor_cluster *other;
	struct rdmatensor_cluster_options options = { .flags = RDMATENSOR_CLUSTER_QUIET, .timeout_ms = 50 };

	(void)state;
	setenv("RDMATENSOR_STORE", store, 1);
	setenv("TORCHELASTIC_RUN_ID", "run", 1);
	setenv("WORLD_SIZE", "2", 1);
	setenv("RANK", "0", 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "0", 1);
	setenv("RDMATENSOR_ADDRESS", "10.0.0.1", 1);
	assert_int_equal(rdmatensor_cluster_open(&cluster, &options), 0);
	setenv("RANK", "1", 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
	setenv("RDMATENSOR_ADDRESS", "10.0.0.2", 1);
	assert_int_equal(rdmatensor_cluster_open(&other, &options), 0);
	address_is(1, "10.0.0.2:18521");
	assert_int_equal(rdmatensor_cluster_connect(cluster, (unsigned int[]){ 1 }, 1), 0);
	part(other);
	close_cluster();
}

/* A rank of a job of @size, at 10.0.0.@rank+1 */
static int try_join(unsigned int rank, unsigned int size, int64_t timeout_ms,
		    struct rdmatensor_cluster **joined)
{
	struct rdmatensor_cluster_options options = {
		.source = RDMATENSOR_CLUSTER_GIVEN, .rank = rank, .size = size, .timeout_ms = timeout_ms,
		.flags = RDMATENSOR_CLUSTER_QUIET, .job = "unit test/1",
	};
	char address[32];

	snprintf(address, sizeof(address), "10.0.0.%u", rank + 1);
	setenv("RDMATENSOR_ADDRESS", address, 1);
	setenv("RDMATENSOR_STORE", store, 1);
	return rdmatensor_cluster_open(joined, &options);
}

static struct rdmatensor_cluster *join(unsigned int rank, unsigned int size, int64_t timeout_ms)
{
	struct rdmatensor_cluster *joined;

	if (try_join(rank, size, timeout_ms, &joined))
		fail_msg("%s", rdmatensor_node_error());
	return joined;
}

static unsigned int files(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	unsigned int nr = 0;

	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return nr;
}

/* Of a job whose name cannot be a folder's: @cleaned is what can, and the hash tells it from others */
static void job_folder(char path[160], const char *job, const char *cleaned)
{
	snprintf(path, 160, "%s/rdmatensor-%u/_%s-%016llx", folder, (unsigned int)geteuid(), cleaned,
		 (unsigned long long)rdmatensor_group(job));
}

static void test_jobs_of_like_names(void **state)
{
	struct rdmatensor_cluster_options options = {
		.source = RDMATENSOR_CLUSTER_GIVEN, .rank = 1, .size = 2, .timeout_ms = 50,
		.flags = RDMATENSOR_CLUSTER_QUIET,
	};
	char longer[2][256], address[RDMATENSOR_CLUSTER_ADDRESS_MAX];
	const char *like[][2] = {
		{ "a/b", "a_b" }, { "a/b", "a b" }, { longer[0], longer[1] },
	};
	struct rdmatensor_cluster *other;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		memset(longer[i], 'x', 255);
		longer[i][255] = '\0';
		longer[i][254] = (char)('0' + i);
	}
	setenv("RDMATENSOR_STORE", store, 1);
	for (i = 0; i < NR(like); i++) {
		setenv("RDMATENSOR_ADDRESS", "10.0.0.1", 1);
		options.job = like[i][0];
		assert_int_equal(rdmatensor_cluster_open(&other, &options), 0);
		setenv("RDMATENSOR_ADDRESS", "10.0.0.2", 1);
		options.job = like[i][1];
		options.rank = 0;
		assert_int_equal(rdmatensor_cluster_open(&cluster, &options), 0);
		assert_int_equal(rdmatensor_cluster_address(cluster, 1, address, sizeof(address)),
				 -ETIMEDOUT);
		options.rank = 1;
		part(other);
		close_cluster();
	}
}

static void test_store(void **state)
{
	struct rdmatensor_cluster *other;
	char path[160];

	(void)state;
	cluster = join(0, 3, 50);
	/* It never fills */
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -ETIMEDOUT);
	assert_contains(rdmatensor_node_error(), "rank 1 has not come within the timeout");
	assert_contains(rdmatensor_node_error(), "and 1 other ranks of 2");
	other = join(1, 3, 50);
	address_is(1, "10.0.0.2:18521");
	assert_int_equal(rdmatensor_cluster_connect(cluster, (unsigned int[]){ 1 }, 1), 0);
	job_folder(path, "unit test/1", "unit_test_1");
	assert_int_equal(files(path), 2);
	/* Who was met and has left is not waited for */
	assert_int_equal(rdmatensor_cluster_leave(other), 0);
	assert_int_equal(files(path), 1);
	fake.connect_error = -ECONNREFUSED;
	rdmatensor_cluster_close(other);
	fake_reset();
	fake.connect_error = -ECONNREFUSED;
	assert_int_equal(cluster_reach(cluster, 1, false, rdmatensor_deadline_ms(20000)), -ENOENT);
	assert_contains(rdmatensor_node_error(), "has left");
	close_cluster();
	assert_int_equal(files(folder), 0);
}

/* Others may have made the folder, or what is in it: only what is the user's own is believed */
static void test_store_of_another(void **state)
{
	char path[160], other[200], address[RDMATENSOR_CLUSTER_ADDRESS_MAX];
	FILE *file;

	(void)state;
	cluster = join(0, 2, 50);
	job_folder(path, "unit test/1", "unit_test_1");
	snprintf(other, sizeof(other), "%s/elsewhere", folder);
	strcat(path, "/rank.1");
	/* A link to a file of the user's own, by either kind, and what nobody writes to */
	file = fopen(other, "w");
	fputs("10.0.0.2:18521", file);
	fclose(file);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(rdmatensor_cluster_address(cluster, 1, address, sizeof(address)), -ELOOP);
	assert_contains(rdmatensor_node_error(), "no plain file that a rank of this user has made");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(link(other, path), 0);
	assert_int_equal(rdmatensor_cluster_address(cluster, 1, address, sizeof(address)), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(rdmatensor_cluster_address(cluster, 1, address, sizeof(address)), -EPERM);
	assert_int_equal(unlink(path), 0);
	/* It is one when it is its own; and another's is none */
	assert_int_equal(rename(other, path), 0);
	address_is(1, "10.0.0.2:18521");
	close_cluster();
	cluster = join(0, 2, 50);
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(rdmatensor_cluster_address(cluster, 1, address, sizeof(address)),
				 -EPERM);
		assert_contains(rdmatensor_node_error(), "name another folder by RDMATENSOR_STORE");
	}
	assert_int_equal(unlink(path), 0);
	close_cluster();
	/* What a killed process of this number has left is no hindrance, and is not written to */
	cluster = join(0, 2, 50);
	path[strlen(path) - 1] = '0';
	assert_int_equal(gethostname(address, sizeof(address)), 0);
	snprintf(other, sizeof(other), "%s.%.16s.%d", path, address, (int)getpid());
	close_cluster();
	job_folder(path, "unit test/1", "unit_test_1");
	snprintf(address, sizeof(address), "mkdir -p %s", path);
	assert_int_equal(system(address), 0);
	assert_int_equal(mkfifo(other, 0600), 0);
	cluster = join(0, 2, 50);
	close_cluster();
	assert_int_equal(files(folder), 0);
}

/* The folder for which the next mkdir() finds no parent, once */
static const char *taken_away;

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

int __wrap_mkdir(const char *path, mode_t mode)
{
	if (!taken_away || strcmp(path, taken_away))
		return __real_mkdir(path, mode);
	taken_away = NULL;
	errno = ENOENT;
	return -1;
}

/* The last rank of a former job takes the folders away while this one makes them */
static void test_folders_go(void **state)
{
	char path[160];

	(void)state;
	job_folder(path, "unit test/1", "unit_test_1");
	taken_away = path;
	cluster = join(0, 2, 50);
	assert_null(taken_away);
	assert_int_equal(files(path), 1);
	close_cluster();
	assert_int_equal(files(folder), 0);
}

static void test_what_is_in_a_store(void **state)
{
	static const struct {
		const char *content;
		int err;
		const char *words;
	} bad[] = {
		{ "10.0.0.1:18521", -ENOTUNIQ, "ranks 0 and 1 both have the address 10.0.0.1:18521" },
		{ "nowhere:x", -EINVAL, "rank.1: address nowhere:x is refused" },
		{ "", -EINVAL, "is no host" },
	};
	char path[160], longer[600];
	FILE *file;
	size_t i;

	(void)state;
	cluster = join(0, 2, 50);
	job_folder(path, "unit test/1", "unit_test_1");
	strcat(path, "/rank.1");
	for (i = 0; i < NR(bad); i++) {
		file = fopen(path, "w");
		fputs(bad[i].content, file);
		fclose(file);
		assert_int_equal(rdmatensor_cluster_address(cluster, 1, longer, sizeof(longer)),
				 bad[i].err);
		assert_contains(rdmatensor_node_error(), bad[i].words);
	}
	memset(longer, 'x', sizeof(longer));
	file = fopen(path, "w");
	fwrite(longer, 1, sizeof(longer), file);
	fclose(file);
	assert_int_equal(rdmatensor_cluster_address(cluster, 1, longer, sizeof(longer)), -EMSGSIZE);
	assert_contains(rdmatensor_node_error(), "reading");
	close_cluster();
}

struct late {
	struct rdmatensor_cluster *joined;
	pthread_t thread;
};

static void *join_late(void *arg)
{
	struct late *late = arg;

	usleep(30000);
	late->joined = join(1, 2, 10000);
	return NULL;
}

/* Any order of start, and one that comes back elsewhere */
static void test_late(void **state)
{
	struct late late;

	(void)state;
	cluster = join(0, 2, 10000);
	pthread_create(&late.thread, NULL, join_late, &late);
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), 0);
	pthread_join(late.thread, NULL);
	part(late.joined);
	/* Not before its address is another one does it answer */
	fake.connect_error = -ECONNREFUSED;
	fake.connects_until = fake.connects + 4;
	late.joined = join(1, 2, 10000);
	assert_int_equal(cluster_reach(cluster, 1, true, rdmatensor_deadline_ms(10000)), 0);
	rdmatensor_cluster_close(late.joined);
	close_cluster();
}

/* A restarted rank's former address, which is this one's now, is in the store until it comes */
static void test_stale(void **state)
{
	struct late late;
	char path[160];
	FILE *file;

	(void)state;
	cluster = join(0, 2, 10000);
	job_folder(path, "unit test/1", "unit_test_1");
	strcat(path, "/rank.1");
	file = fopen(path, "w");
	fputs("10.0.0.1:18521", file);
	fclose(file);
	pthread_create(&late.thread, NULL, join_late, &late);
	assert_int_equal(rdmatensor_cluster_connect(cluster, (unsigned int[]){ 1 }, 1), 0);
	pthread_join(late.thread, NULL);
	address_is(1, "10.0.0.2:18521");
	part(late.joined);
	close_cluster();
}

/* What one rank is told and the others look up are of one form */
static void test_own_spelling(void **state)
{
	static const char *const spelled[][2] = {
		{ "FD00:0::1", "[fd00::1]:18521" },
		{ "fe80:0::1%Eth0", "[fe80::1%Eth0]:18521" },
		{ "Node-A", "node-a:18521" },
	};
	struct rdmatensor_cluster_options options = { .flags = RDMATENSOR_CLUSTER_QUIET };
	size_t i;

	(void)state;
	setenv("RDMATENSOR_STORE", store, 1);
	setenv("TORCHELASTIC_RUN_ID", "run", 1);
	setenv("WORLD_SIZE", "1", 1);
	setenv("RANK", "0", 1);
	for (i = 0; i < NR(spelled); i++) {
		setenv("RDMATENSOR_ADDRESS", spelled[i][0], 1);
		assert_int_equal(rdmatensor_cluster_open(&cluster, &options), 0);
		address_is(0, spelled[i][1]);
		close_cluster();
	}
}

/* A rank that has died: the others end within the bound, and say which */
static void test_dead(void **state)
{
	struct rdmatensor_tensor tensor = { .data_type = RDMATENSOR_DT_UINT8 };
	const char *name = "w";
	uint64_t begun = rdmatensor_now_ns();

	(void)state;
	HOSTS("10.0.0.1\n10.0.0.2\n");
	setenv("RDMATENSOR_RANK", "0", 1);
	assert_int_equal(open_cluster(200), 0);
	fake.connect_error = -ECONNREFUSED;
	assert_int_equal(rdmatensor_cluster_get_many(cluster, 1, &name, &tensor, 1), -ECONNREFUSED);
	assert_contains(rdmatensor_node_error(), "rank 1 (10.0.0.2:18521): connect: nobody listens");
	assert_int_equal(rdmatensor_cluster_barrier(cluster), -ECONNREFUSED);
	assert_in_range(rdmatensor_now_ns() - begun, 400000000, UINT64_C(10000000000));
	/* It answers, and is none of this job */
	fake.connect_error = 0;
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -ETIMEDOUT);
	assert_contains(rdmatensor_node_error(), "rank 1 (10.0.0.2:18521): get: ");
	/* What no time mends is told at once */
	fake.connect_error = -EACCES;
	begun = rdmatensor_now_ns();
	close_cluster();
	assert_int_equal(open_cluster(60000), 0);
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -EACCES);
	assert_true(rdmatensor_now_ns() - begun < UINT64_C(30000000000));
	close_cluster();
}

static int get_w(int *error)
{
	struct rdmatensor_tensor got = { .data = NULL };
	const char *name = "w";
	int err = rdmatensor_cluster_get_each(cluster, 1, &name, &got, 1, error);

	if (!err) {
		assert_string_equal(got.data, "own");
		rdmatensor_node_free(cluster->node, got.data);
	}
	return err;
}

/*
 * A channel that has gone down may lead to somebody else when it is there again, from whom nothing is got
 * before it has proven that it is the rank. The fake lists nothing: who it is is not told
 */
static void test_another_takes_its_place(void **state)
{
	struct rdmatensor_cluster *one = join(1, 2, 10000);
	struct rdmatensor_tensor tensor = {
		.data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 4 }, .data = "own",
	};
	unsigned int connects, i;
	char token[TOKEN_ROOM];
	const char *name = "w";
	uint64_t bytes = 1;
	void *list = &i;
	int error = 1;

	(void)state;
	cluster = join(0, 2, 100);
	assert_int_equal(rdmatensor_offer(one->node, "w", &tensor), 0);
	assert_int_equal(rdmatensor_cluster_get_each(cluster, 2, &name, &tensor, 1, &error), -ERANGE);
	assert_int_equal(error, -ERANGE);
	for (i = 0; i < 3; i++)
		assert_int_equal(get_w(&error), 0);
	assert_int_equal(error, 0);
	connects = fake.connects;
	/* Its name is there behind the next channel, and its proof is not */
	cluster_token(one, "hello", 1, token);
	assert_int_equal(rdmatensor_withdraw_offer(one->node, token, 0), 0);
	fake.fetches_until_down = 1;
	for (i = 0; i < 3; i++) {
		assert_int_equal(get_w(&error), -ETIMEDOUT);
		assert_int_equal(error, -ETIMEDOUT);
		assert_contains(rdmatensor_node_error(), "cluster: rank 1 (10.0.0.2:18521): get: ");
		assert_contains(rdmatensor_node_error(), "hello.1");
		assert_int_equal(rdmatensor_cluster_list(cluster, 1, NULL, &list, &bytes), -ETIMEDOUT);
		assert_null(list);
		assert_int_equal(bytes, 0);
	}
	assert_int_equal(fake.connects, connects + 1);
	/* The rank itself is there again: then in the midst of a get, too */
	assert_int_equal(cluster_offer_probes(one), -EEXIST);
	assert_int_equal(get_w(&error), 0);
	fake.fetches_until_down = 1;
	assert_int_equal(get_w(&error), 0);
	assert_string_equal(rdmatensor_node_error(), "");
	assert_int_equal(fake.connects, connects + 2);
	part(one);
	close_cluster();
}

int __real_node_connect(struct rdmatensor_node *node, const char *host, uint32_t dead,
			uint64_t deadline_ns, uint32_t *channel);
int __wrap_node_connect(struct rdmatensor_node *node, const char *host, uint32_t dead,
			uint64_t deadline_ns, uint32_t *channel);

/* Gets of this thread that begin until that is called, whose rank has proven who it is by then */
static _Thread_local struct {
	unsigned int gets;
	void (*call)(void);
} when_begun;

int __wrap_node_connect(struct rdmatensor_node *node, const char *host, uint32_t dead,
			uint64_t deadline_ns, uint32_t *channel)
{
	if (!dead && when_begun.gets && !--when_begun.gets)
		when_begun.call();
	return __real_node_connect(node, host, dead, deadline_ns, channel);
}

/* By another thread, which does not ask who that is */
static void *get_where_it_was(void *ms)
{
	struct rdmatensor_tensor got = { .data = NULL };
	const char *name = "w";

	rdmatensor_node_until(rdmatensor_deadline_ms(*(unsigned int *)ms));
	return (void *)(intptr_t)rdmatensor_get_many(cluster->node, "10.0.0.2:18521", &name, &got, 1);
}

static struct rdmatensor_cluster *leaver;

/* Another thread sees the channel go down, and nobody at its address any more */
static void leave_behind_its_back(void)
{
	unsigned int ms = 50;
	pthread_t thread;
	void *err;

	assert_int_equal(rdmatensor_cluster_leave(leaver), 0);
	fake.fetches_until_down = 1;
	fake.connect_error = -ECONNREFUSED;
	assert_int_equal(pthread_create(&thread, NULL, get_where_it_was, &ms), 0);
	assert_int_equal(pthread_join(thread, &err), 0);
	assert_int_equal((intptr_t)err, -ECONNREFUSED);
	assert_int_equal(node_channel(cluster->node, "10.0.0.2:18521"), 0);
}

/*
 * A get that has begun finds that another thread's attempt to connect has left no channel. It asks where
 * the rank is before it connects, and does not wait for it where it was
 */
static void test_channel_gone_before_the_get(void **state)
{
	static const char *const names[] = { "w", "w2" };
	struct rdmatensor_tensor tensor = {
		.data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 4 }, .data = "own", .step = 7,
	};
	struct rdmatensor_tensor got[2];
	uint64_t bytes, begun;
	int64_t step;
	unsigned int turn;
	void *list;
	int err;

	(void)state;
	for (turn = 0; turn < 4; turn++) {
		leaver = join(1, 2, 60000);
		cluster = join(0, 2, 60000);
		tensor.step = turn ? 7 : 0;
		assert_int_equal(rdmatensor_offer(leaver->node, "w", &tensor), 0);
		assert_int_equal(rdmatensor_offer(leaver->node, "w2", &tensor), 0);
		assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), 0);
		begun = rdmatensor_now_ns();
		when_begun.call = leave_behind_its_back;
		/* Of a generation: before its first tensor, and before the others */
		when_begun.gets = turn == 3 ? 2 : 1;
		memset(got, 0, sizeof(got));
		/* The fake knows no newest step but this */
		step = 7;
		if (turn == 0)
			err = get_w(NULL);
		else if (turn == 1)
			err = rdmatensor_cluster_list(cluster, 1, NULL, &list, &bytes);
		else
			err = rdmatensor_cluster_get_generation(cluster, 1, names, got, 2, &step);
		assert_int_equal(when_begun.gets, 0);
		assert_int_equal(err, -ENOENT);
		assert_string_equal(rdmatensor_node_error(), "cluster: rank 1 (10.0.0.2:18521) has left: go on without it, or start it again");
		assert_null(got[0].data);
		assert_null(got[1].data);
		/* Until a deadline would be more */
		assert_true(rdmatensor_now_ns() - begun < UINT64_C(30000000000));
		fake_reset();
		fake.connect_error = -ECONNREFUSED;
		rdmatensor_cluster_close(leaver);
		close_cluster();
		fake_reset();
	}
}

/* What the store has of a rank, whatever that has said itself; NULL: nothing */
static void store_says(unsigned int rank, const char *address)
{
	char path[160];
	FILE *file;

	job_folder(path, "unit test/1", "unit_test_1");
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/rank.%u", rank);
	if (!address) {
		assert_int_equal(unlink(path), 0);
		return;
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(address, file);
	assert_int_equal(fclose(file), 0);
}

/* Rank 1, which offers "w", and this one, which has met it and whose channel to it is going down */
static struct rdmatensor_cluster *meet(int64_t timeout_ms)
{
	struct rdmatensor_cluster *one = join(1, 2, 10000);
	struct rdmatensor_tensor tensor = {
		.data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 4 }, .data = "own",
	};

	cluster = join(0, 2, timeout_ms);
	assert_int_equal(rdmatensor_offer(one->node, "w", &tensor), 0);
	assert_int_equal(get_w(NULL), 0);
	assert_int_equal(fake.connects_to[2], 1);
	fake.fetches_until_down = 1;
	return one;
}

static void no_more(struct rdmatensor_cluster *one)
{
	fake_reset();
	part(one);
	close_cluster();
	fake_reset();
}

static bool is_soon(uint64_t begun)
{
	return rdmatensor_now_ns() - begun < UINT64_C(2000000000);
}

/**
 * struct said - what a store says of rank 1
 * @times: so often where it was
 * @then: then that; NULL: nothing
 */
struct said {
	int times;
	const char *then;
};

static int get_said(void *arg, const char *key, char *value, size_t room)
{
	struct said *said = arg;

	(void)key;
	if (said->times) {
		said->times--;
		snprintf(value, room, "10.0.0.2:18521");
		return 0;
	}
	if (!said->then)
		return -ENOENT;
	snprintf(value, room, "%s", said->then);
	return 0;
}

/* In place of what the store has. Return: the former one */
static struct rdmatensor_cluster_store say_instead(struct said *said)
{
	struct rdmatensor_cluster_store former = cluster->store;

	cluster->store.get = get_said;
	cluster->store.arg = said;
	return former;
}

/* Who has come where it was, or hangs there, or waits for it there, does not keep a get from where it is */
static void test_has_moved(void **state)
{
	struct said said = { .times = 1, .then = "10.0.0.9:18521" };
	struct rdmatensor_cluster_store former;
	struct rdmatensor_cluster *one;
	unsigned int ms = 2500;
	pthread_t thread;
	void *err;

	(void)state;
	one = meet(1000);
	store_says(1, "10.0.0.9:18521");
	fake.stranger = 2;
	assert_int_equal(get_w(NULL), -ECONNRESET);
	assert_int_equal(get_w(NULL), 0);
	assert_int_equal(fake.connects_to[2], 1);
	assert_int_equal(fake.connects_to[9], 1);
	no_more(one);

	one = meet(2000);
	store_says(1, "10.0.0.9:18521");
	fake.stranger = 2;
	fake.silent = true;
	assert_int_equal(get_w(NULL), -ECONNRESET);
	assert_int_equal(get_w(NULL), 0);
	no_more(one);

	/* It is said to be where it was, until it says itself where it is */
	one = meet(2000);
	former = say_instead(&said);
	fake.stranger = 2;
	assert_int_equal(get_w(NULL), -ECONNRESET);
	assert_int_equal(get_w(NULL), 0);
	assert_int_equal(fake.connects_to[2], 2);
	assert_int_equal(fake.connects_to[9], 1);
	cluster->store = former;
	no_more(one);

	/* It says the one address, where it has not been met, and then the other */
	one = meet(500);
	store_says(1, "10.0.0.9:18521");
	fake.stranger = 9;
	fake.silent = true;
	assert_int_equal(get_w(NULL), -ETIMEDOUT);
	assert_int_equal(fake.connects_to[9], 1);
	store_says(1, "10.0.0.10:18521");
	rdmatensor_node_timeout(cluster->node, 10000);
	assert_int_equal(get_w(NULL), 0);
	assert_int_equal(fake.connects_to[10], 1);
	no_more(one);

	one = meet(2000);
	store_says(1, "10.0.0.9:18521");
	fake.absent = 2;
	/* As soon as that one has begun to wait, who is where it was is not its business */
	fake.fetches_until_down = 0;
	assert_int_equal(rdmatensor_disconnect(cluster->node->rt, node_channel(cluster->node, "10.0.0.2:18521")), 0);
	assert_int_equal(pthread_create(&thread, NULL, get_where_it_was, &ms), 0);
	while (__atomic_load_n(&fake.connects_to[2], __ATOMIC_RELAXED) < 2)
		usleep(1000);
	assert_int_equal(get_w(NULL), 0);
	assert_int_equal(fake.connects_to[9], 1);
	assert_int_equal(fake.connects_to[2], 2);
	assert_int_equal(fake.lists, 0);
	assert_int_equal(pthread_join(thread, &err), 0);
	assert_int_equal((intptr_t)err, -ECONNREFUSED);
	no_more(one);
}

/* That it has left is told at once, whoever is there now, and whatever was said of it in between */
static void test_has_left(void **state)
{
	struct rdmatensor_cluster_store former;
	struct rdmatensor_cluster *one;
	struct said said = { .times = 1 };
	uint64_t begun;

	(void)state;
	one = meet(60000);
	store_says(1, NULL);
	fake.stranger = 2;
	begun = rdmatensor_now_ns();
	assert_int_equal(get_w(NULL), -ENOENT);
	assert_contains(rdmatensor_node_error(), "has left");
	assert_true(is_soon(begun));
	no_more(one);

	/* The channel of the get goes down, and then, when it has just left, that of its proof */
	one = meet(60000);
	former = say_instead(&said);
	fake.fetches_each = 1;
	fake.absent = 2;
	fake.connects_until = fake.connects + 1;
	fake.connects_most = fake.connects + 1;
	begun = rdmatensor_now_ns();
	assert_int_equal(get_w(NULL), -ENOENT);
	assert_contains(rdmatensor_node_error(), "has left");
	assert_true(is_soon(begun));
	assert_int_equal(fake.connects_to[2], 2);
	cluster->store = former;
	no_more(one);

	one = meet(300);
	store_says(1, "10.0.0.9:18521");
	fake.connect_error = -ECONNREFUSED;
	assert_int_equal(get_w(NULL), -ECONNREFUSED);
	address_is(1, "10.0.0.9:18521");
	store_says(1, NULL);
	rdmatensor_node_timeout(cluster->node, 60000);
	begun = rdmatensor_now_ns();
	assert_int_equal(get_w(NULL), -ENOENT);
	assert_contains(rdmatensor_node_error(), "has left");
	assert_true(is_soon(begun));
	no_more(one);
}

static int full_set(void *arg, const char *key, const char *value)
{
	(void)key;
	return value ? *(int *)arg : 0;
}

static int broken_get(void *arg, const char *key, char *value, size_t room)
{
	(void)key;
	(void)value;
	(void)room;
	return *(int *)arg;
}

/* What the store says ends a generation too, and is no word of the peer's; errno and line are of one thing */
static void test_source_fails(void **state)
{
	struct rdmatensor_tensor got[2] = { { .data = NULL }, { .data = NULL } };
	static const char *const names[] = { "w", "v" };
	static char content[64 << 20];
	struct rdmatensor_tensor large = {
		.data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { sizeof(content) }, .data = content,
	};
	struct rdmatensor_cluster_store former;
	static const int errs[] = { -EPIPE, -EAGAIN, -ENOTUNIQ };
	int err = -ESTALE, errors[2];
	size_t i;
	struct rdmatensor_cluster *one;
	int64_t step = INT64_MIN;
	uint64_t begun;

	(void)state;
	one = meet(60000);
	former = cluster->store;
	cluster->store = (struct rdmatensor_cluster_store) {
		.set = full_set, .get = broken_get, .arg = &err,
	};
	fake.absent = 2;
	begun = rdmatensor_now_ns();
	assert_int_equal(rdmatensor_cluster_get_generation(cluster, 1, names, got, 2, &step), -ESTALE);
	assert_contains(rdmatensor_node_error(), "rank.1: Stale file handle");
	assert_true(is_soon(begun));
	assert_in_range(fake.connects_to[2], 2, 3);
	/* It is needed for no more than that: the rank is where it was, and what it says means nothing of ranks */
	for (i = 0; i < NR(errs); i++) {
		err = errs[i];
		fake.absent = 0;
		fake.connects_to[2] = 0;
		assert_int_equal(get_w(NULL), 0);
		fake.fetches_until_down = 1;
		assert_int_equal(get_w(NULL), 0);
		assert_int_equal(fake.connects_to[2], 2);
		fake.absent = 2;
		fake.fetches_until_down = 1;
		begun = rdmatensor_now_ns();
		assert_int_equal(get_w(NULL), i ? -EIO : -EPIPE);
		assert_contains(rdmatensor_node_error(), "rank.1: ");
		assert_true(is_soon(begun));
	}
	/* But what ends the call ends it */
	err = -ECANCELED;
	fake.absent = 0;
	assert_int_equal(get_w(NULL), -ECANCELED);
	cluster->store = former;
	no_more(one);

	/* The first tensor is not there, and the channel goes down when the second has got its room */
	one = meet(60000);
	assert_int_equal(rdmatensor_offer(one->node, "v", &large), 0);
	store_says(1, NULL);
	fake.lacking = "w";
	fake.lacking_worker = 2;
	fake.absent = 2;
	fake.fetches_until_down = 3;
	assert_int_equal(rdmatensor_cluster_get_each(cluster, 1, names, got, 2, errors), -ENOENT);
	assert_int_equal(errors[0], -ETIMEDOUT);
	assert_int_equal(errors[1], -ENOENT);
	assert_string_equal(rdmatensor_node_error(), "cluster: rank 1 (10.0.0.2:18521) has left: go on without it, or start it again");
	no_more(one);
}

/* Two ranks were started anew, each where the other was */
static void test_swapped(void **state)
{
	struct rdmatensor_cluster *others[2];
	unsigned int i;
	uint32_t channel;
	char address[ADDRESS_ROOM];

	(void)state;
	cluster = join(0, 3, 2000);
	for (i = 0; i < 2; i++)
		others[i] = join(i + 1, 3, 2000);
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(rdmatensor_cluster_address(cluster, i + 1, address, sizeof(address)), 0);
		channel = node_channel(cluster->node, address);
		assert_int_equal(rdmatensor_disconnect(cluster->node->rt, channel), 0);
	}
	store_says(1, "10.0.0.3:18521");
	store_says(2, "10.0.0.2:18521");
	assert_int_equal(cluster_reach(cluster, 1, false, rdmatensor_deadline_ms(10000)), 0);
	assert_int_equal(cluster_reach(cluster, 2, false, rdmatensor_deadline_ms(10000)), 0);
	address_is(1, "10.0.0.3:18521");
	address_is(2, "10.0.0.2:18521");
	/* Of one that is there the address is no other's */
	store_says(2, "10.0.0.3:18521");
	channel = node_channel(cluster->node, "10.0.0.2:18521");
	assert_int_equal(rdmatensor_disconnect(cluster->node->rt, channel), 0);
	assert_int_equal(cluster_reach(cluster, 2, false, rdmatensor_deadline_ms(100)), -ENOTUNIQ);
	assert_contains(rdmatensor_node_error(), "ranks 1 and 2 both have the address 10.0.0.3:18521");
	for (i = 0; i < 2; i++)
		part(others[i]);
	close_cluster();
}

/* A channel that goes down between the two probes, or in one of them */
static void test_down_while_probing(void **state)
{
	struct rdmatensor_cluster *one;
	unsigned int i;

	(void)state;
	for (i = 1; i < 5; i++) {
		one = join(1, 2, 10000);
		cluster = join(0, 2, 10000);
		fake.fetches_until_down = i;
		assert_int_equal(cluster_reach(cluster, 1, true, rdmatensor_deadline_ms(10000)), 0);
		assert_int_equal(fake.connects_to[2], i < 3 ? 2 : 1);
		no_more(one);
	}
}

/* Who has another channel than it was met by, and is silent there, takes the time of the others' proofs */
static void test_silent_proofs(void **state)
{
	struct rdmatensor_cluster *all[5];
	unsigned int i, ranks[4];
	uint32_t channel;
	char address[ADDRESS_ROOM];
	struct cluster_place place;
	uint64_t begun;

	(void)state;
	for (i = 0; i < NR(all); i++)
		all[i] = join(i, NR(all), 60000);
	cluster = all[0];
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), 0);
	for (i = 1; i < NR(all); i++) {
		ranks[i - 1] = i;
		assert_int_equal(rdmatensor_cluster_address(cluster, i, address, sizeof(address)), 0);
		channel = node_channel(cluster->node, address);
		assert_int_equal(rdmatensor_disconnect(cluster->node->rt, channel), 0);
		assert_int_equal(node_connect(cluster->node, address, channel,
					      rdmatensor_deadline_ms(1000), &channel), 0);
	}
	fake.stranger = FAKE_EVERYBODY;
	fake.silent = true;
	begun = rdmatensor_now_ns();
	cluster_await_quietly(cluster, ranks, NR(ranks), "past", 1, rdmatensor_deadline_ms(200));
	assert_true(is_soon(begun));
	assert_int_equal(fake.lists, 0);
	/* For who says at once that it is somebody else nobody waits */
	fake.silent = false;
	begun = rdmatensor_now_ns();
	cluster_await_quietly(cluster, ranks, NR(ranks), "past", 1, rdmatensor_deadline_ms(10000));
	assert_true(is_soon(begun));
	/* The first takes its share, and the others prove who they are */
	fake.stranger = 2;
	fake.silent = true;
	begun = rdmatensor_now_ns();
	cluster_await_quietly(cluster, ranks, NR(ranks), "past", 1, rdmatensor_deadline_ms(3000));
	assert_true(is_soon(begun));
	for (i = 1; i < NR(all); i++) {
		assert_true(cluster_member_reached(cluster, i, &place));
		assert_int_equal(place.channel == node_channel(cluster->node, place.address), i > 1);
	}
	fake.stranger = 0;
	for (i = 1; i < NR(all); i++)
		part(all[i]);
	close_cluster();
}

/* Who asks again and again for what is not there has no list of all that is there for each time */
static void *get_in_vain(void *arg)
{
	struct rdmatensor_tensor tensor = { .bytes = 0 };
	const char *name = "w";

	rdmatensor_get_many(cluster->node, "10.0.0.2:18521", &name, &tensor, 1);
	*(bool *)arg = !!strstr(rdmatensor_node_error(), "Connection timed out");
	return NULL;
}

static void test_words_are_rare(void **state)
{
	struct rdmatensor_cluster *one = join(1, 2, 10000);
	pthread_t threads[4];
	bool late[4];
	unsigned int i;

	(void)state;
	cluster = join(0, 2, 10000);
	fake.stranger = 2;
	fake.silent = true;
	/* This one connects */
	rdmatensor_node_timeout(cluster->node, 500);
	get_in_vain(late);
	assert_true(*late);
	assert_int_equal(fake.lists, 1);
	/* Threads at the same moment, and one again and again */
	rdmatensor_node_timeout(cluster->node, 100);
	cluster->node->words_ns = rdmatensor_now_ns();
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, get_in_vain, &late[i]), 0);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_true(late[i]);
	}
	assert_int_equal(fake.lists, 2);
	for (i = 0; i < 4; i++) {
		get_in_vain(late);
		assert_true(*late);
	}
	assert_int_equal(fake.lists, 2);
	/* Nor never any more */
	cluster->node->words_ns = rdmatensor_now_ns();
	get_in_vain(late);
	assert_int_equal(fake.lists, 3);
	no_more(one);
}

/* Ranks at a time, what is told of them, and in which order */
static struct {
	unsigned int now, most, calls, last_done;
	pthread_mutex_t lock;
} busy = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int be_busy(struct rdmatensor_cluster *of, unsigned int rank, bool again, void *arg)
{
	uint64_t until_ns;

	(void)of;
	assert_false(again);
	pthread_mutex_lock(&busy.lock);
	busy.now++;
	if (busy.now > busy.most)
		busy.most = busy.now;
	pthread_mutex_unlock(&busy.lock);
	/* As many as may come, and time for one more */
	until_ns = rdmatensor_deadline_ms(10000);
	do
		usleep(2000);
	while (__atomic_load_n(&busy.most, __ATOMIC_RELAXED) < 4 && rdmatensor_now_ns() < until_ns);
	pthread_mutex_lock(&busy.lock);
	busy.now--;
	pthread_mutex_unlock(&busy.lock);
	return arg && rank % 3 == 2 ? node_fail(-EREMOTEIO, "rank %u is odd", rank) : 0;
}

static void tell(void *arg, const struct rdmatensor_cluster_progress *progress)
{
	(void)arg;
	busy.calls++;
	assert_int_equal(progress->done, busy.last_done + 1);
	busy.last_done = progress->done;
	assert_int_equal(progress->total, 20);
	assert_int_equal(progress->stage, RDMATENSOR_CLUSTER_CHECKING);
}

static void test_round(void **state)
{
	struct rdmatensor_cluster fits = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .telling = PTHREAD_MUTEX_INITIALIZER,
		.options = { .connects = 4, .progress = tell },
	};
	unsigned int ranks[20], i;
	int errors[20];
	struct cluster_round round = {
		.work = be_busy, .ranks = ranks, .nr = 20, .errors = errors,
		.stage = RDMATENSOR_CLUSTER_CHECKING,
	};

	(void)state;
	for (i = 0; i < 20; i++)
		ranks[i] = 100 - i;
	assert_int_equal(cluster_run(&fits, &round), 0);
	assert_null(round.first);
	assert_int_equal(busy.most, 4);
	assert_int_equal(busy.calls, 20);
	busy.last_done = 0;
	round.arg = &busy;
	/* 98, 95, ... 83: the first of them is told, whichever failed first */
	assert_int_equal(cluster_run(&fits, &round), 6);
	assert_string_equal(round.first, "rank 98 is odd");
	assert_int_equal(errors[2], -EREMOTEIO);
	assert_int_equal(errors[3], 0);
	free(round.first);
	round.nr = 0;
	assert_int_equal(cluster_run(&fits, &round), 0);
}

static int be_ended(struct rdmatensor_cluster *of, unsigned int rank, bool again, void *arg)
{
	const uint64_t *deadline_ns = arg;

	(void)of;
	if (rank == 5 && again)
		return node_fail(-ECANCELED, "the store of rank 5 has ended it");
	if (rdmatensor_now_ns() >= *deadline_ns)
		return node_fail(-ETIMEDOUT, "rank %u was waited for", rank);
	return CLUSTER_LATER;
}

/* What a source ends the call by is not one rank's: nobody else is waited for, nor begun */
static void test_round_ended(void **state)
{
	struct rdmatensor_cluster fits = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .telling = PTHREAD_MUTEX_INITIALIZER,
		.options = { .connects = 4 },
	};
	static const unsigned int flags[] = { 0, RDMATENSOR_CLUSTER_INTERRUPTIBLE };
	unsigned int ranks[8], i;
	int errors[8];
	uint64_t begun, deadline_ns;
	struct cluster_round round = {
		.work = be_ended, .ranks = ranks, .nr = 8, .errors = errors, .arg = &deadline_ns,
		.stage = RDMATENSOR_CLUSTER_CONNECTING,
	};

	(void)state;
	for (i = 0; i < 8; i++)
		ranks[i] = i;
	for (i = 0; i < NR(flags); i++) {
		fits.options.flags = flags[i];
		begun = rdmatensor_now_ns();
		deadline_ns = begun + UINT64_C(20000000000);
		assert_int_equal(cluster_run(&fits, &round), -ECANCELED);
		assert_string_equal(rdmatensor_node_error(), "the store of rank 5 has ended it");
		assert_true(rdmatensor_now_ns() - begun < UINT64_C(10000000000));
		free(round.first);
	}
}

/* Ranks that are not there before all others are, and one of them never */
#define ABSENT 6
#define PRESENT 14
#define AT_A_TIME 2

static struct {
	unsigned int there, nr, done;
	unsigned int attempts[ABSENT + PRESENT];
	/* Attempts before the last rank was begun */
	unsigned int before_all;
	uint64_t deadline_ns;
	pthread_mutex_t lock;
} awaited = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int be_absent(struct rdmatensor_cluster *of, unsigned int rank, bool again, void *arg)
{
	unsigned int begun = 0, i;
	bool later;

	(void)of;
	(void)arg;
	pthread_mutex_lock(&awaited.lock);
	assert_int_equal(again, awaited.attempts[rank] > 0);
	awaited.attempts[rank]++;
	for (i = 0; i < ABSENT + PRESENT; i++)
		begun += awaited.attempts[i] > 0;
	awaited.nr++;
	if (begun == ABSENT + PRESENT && !awaited.before_all)
		awaited.before_all = awaited.nr;
	awaited.there += rank >= ABSENT;
	later = rank < ABSENT && awaited.there < PRESENT;
	pthread_mutex_unlock(&awaited.lock);
	if (!rank && rdmatensor_now_ns() >= awaited.deadline_ns)
		return node_fail(-ETIMEDOUT, "rank 0 has not come");
	return later || !rank ? CLUSTER_LATER : 0;
}

static void tell_once(void *arg, const struct rdmatensor_cluster_progress *progress)
{
	(void)arg;
	assert_int_equal(progress->done, ++awaited.done);
}

static void test_absent(void **state)
{
	struct rdmatensor_cluster fits = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .telling = PTHREAD_MUTEX_INITIALIZER,
		.options = { .connects = AT_A_TIME, .progress = tell_once },
	};
	unsigned int ranks[ABSENT + PRESENT], i;
	int errors[ABSENT + PRESENT];
	struct cluster_round round = {
		.work = be_absent, .ranks = ranks, .nr = ABSENT + PRESENT, .errors = errors,
		.stage = RDMATENSOR_CLUSTER_CONNECTING,
	};

	(void)state;
	awaited.deadline_ns = rdmatensor_deadline_ms(400);
	round.deadline_ns = awaited.deadline_ns;
	for (i = 0; i < ABSENT + PRESENT; i++)
		ranks[i] = i;
	assert_int_equal(cluster_run(&fits, &round), 1);
	/* More are absent than there are threads, and yet all are begun; those that are due take turns */
	assert_in_range(awaited.before_all, ABSENT + PRESENT, 2 * (ABSENT + PRESENT) + AT_A_TIME);
	assert_int_equal(errors[0], -ETIMEDOUT);
	assert_string_equal(round.first, "rank 0 has not come");
	for (i = 1; i < ABSENT + PRESENT; i++) {
		assert_int_equal(errors[i], 0);
		assert_true(i < ABSENT || awaited.attempts[i] == 1);
	}
	assert_int_equal(awaited.done, ABSENT + PRESENT);
	/* After pauses that grow, of which the last one ends at the deadline */
	assert_in_range(awaited.attempts[0], 2, 8);
	free(round.first);
}

/* One that refused at first is tried again although others keep the threads, one after the other */
static struct {
	unsigned int begun;
	/* Of the others, when the first one was tried again */
	unsigned int before;
} silent;

static int be_silent(struct rdmatensor_cluster *of, unsigned int rank, bool again, void *arg)
{
	(void)of;
	(void)arg;
	if (!rank) {
		silent.before = silent.begun;
		return again ? 0 : CLUSTER_LATER;
	}
	silent.begun++;
	usleep(100000);
	return node_fail(-ETIMEDOUT, "rank %u is silent", rank);
}

static void test_silent(void **state)
{
	struct rdmatensor_cluster fits = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .telling = PTHREAD_MUTEX_INITIALIZER,
		.options = { .connects = 1 },
	};
	unsigned int ranks[9], i;
	int errors[9];
	struct cluster_round round = {
		.work = be_silent, .ranks = ranks, .nr = 9, .errors = errors,
		.stage = RDMATENSOR_CLUSTER_CONNECTING,
	};

	(void)state;
	for (i = 0; i < NR(ranks); i++)
		ranks[i] = i;
	assert_int_equal(cluster_run(&fits, &round), 8);
	assert_int_equal(errors[0], 0);
	assert_int_equal(silent.begun, 8);
	/* By then not all of the others had been begun */
	assert_in_range(silent.before, 1, 5);
	free(round.first);
}

/* What nobody has come for costs no more the more there are */
static int be_away(struct rdmatensor_cluster *of, unsigned int rank, bool again, void *arg)
{
	(void)of;
	(void)rank;
	(void)again;
	__atomic_add_fetch((unsigned int *)arg, 1, __ATOMIC_RELAXED);
	return rdmatensor_now_ns() < awaited.deadline_ns ? CLUSTER_LATER :
							   node_fail(-ETIMEDOUT, "it is away");
}

static void test_pace(void **state)
{
	struct rdmatensor_cluster fits = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .telling = PTHREAD_MUTEX_INITIALIZER,
		.options = { .connects = 1 },
	};
	unsigned int ranks[40], attempts = 0, i;
	int errors[40];
	struct cluster_round round = {
		.work = be_away, .arg = &attempts, .ranks = ranks, .nr = 40, .errors = errors,
		.stage = RDMATENSOR_CLUSTER_CONNECTING,
	};

	(void)state;
	awaited.deadline_ns = rdmatensor_deadline_ms(500);
	round.deadline_ns = awaited.deadline_ns;
	for (i = 0; i < NR(ranks); i++)
		ranks[i] = i;
	assert_int_equal(cluster_run(&fits, &round), 40);
	/* The first and the last of each, and 500 / 64 between them */
	assert_in_range(attempts, NR(ranks), 3 * NR(ranks));
	free(round.first);
}

static void nothing(int sig)
{
	(void)sig;
}

static void signals_begin(void)
{
	struct itimerval often = { .it_interval = { .tv_usec = 5000 }, .it_value = { .tv_usec = 20000 } };
	struct sigaction action = { .sa_handler = nothing };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void signals_end(void)
{
	struct itimerval never = { .it_value = { .tv_usec = 0 } };

	setitimer(ITIMER_REAL, &never, NULL);
}

static void test_interrupted(void **state)
{
	uint64_t begun = rdmatensor_now_ns();

	(void)state;
	cluster = join(0, 2, 60000);
	cluster->options.flags |= RDMATENSOR_CLUSTER_INTERRUPTIBLE;
	rdmatensor_node_interruptible(cluster->node, 1);
	signals_begin();
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -EINTR);
	assert_int_equal(rdmatensor_cluster_address(cluster, 1, NULL, 0), -EINTR);
	signals_end();
	assert_contains(rdmatensor_node_error(), "a signal has ended it");
	assert_true(rdmatensor_now_ns() - begun < UINT64_C(20000000000));
	close_cluster();
}

static void offer_numbers(struct rdmatensor_cluster *of, const char *kind, int *numbers, size_t nr)
{
	struct rdmatensor_tensor tensor = {
		.data = numbers, .step = of->checks + 1, .data_type = RDMATENSOR_DT_INT32, .ndims = 1,
		.dims = { nr },
	};
	char name[TOKEN_ROOM];

	cluster_call_token(of, kind, of->rank, name);
	assert_int_equal(rdmatensor_offer(of->node, name, &tensor), 0);
}

/* It has come to its next check */
static void tell_row(struct rdmatensor_cluster *of, int *row, size_t nr)
{
	offer_numbers(of, "row", row, nr);
	cluster_offer_token(of, "checked", of->checks + 1);
}

/* The other ranks have come here before, as far as this one can tell */
static void test_check(void **state)
{
	struct rdmatensor_cluster *one = join(1, 3, 50), *two = join(2, 3, 50);
	int row_one[3] = { 0, 0, -ETIMEDOUT }, row_two[3] = { 5, -ECONNREFUSED, 7 }, errors[9];
	char *text;

	(void)state;
	cluster = join(0, 3, 2000);
	tell_row(one, row_one, 3);
	tell_row(two, row_two, 3);
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), 3);
	assert_int_equal(errors[1] | errors[2] | errors[3] | errors[4], 0);
	assert_int_equal(errors[5], -ETIMEDOUT);
	/* What is no errno is not taken for one */
	assert_int_equal(errors[6], -EPROTO);
	assert_int_equal(errors[7], -ECONNREFUSED);
	assert_int_equal(errors[8], 0);
	text = rdmatensor_cluster_matrix(cluster, errors, 3);
	assert_contains(text, "3 of 6 pairs of 3 ranks work:");
	assert_contains(text, "Connection timed out: 1->2: the second hangs");
	assert_contains(text, "Connection refused: 2->1: ");
	free(text);
	rdmatensor_cluster_close(one);
	rdmatensor_cluster_close(two);
	close_cluster();
}

/* Of a rank that cannot be reached by this one, another one tells */
static void test_check_by_others(void **state)
{
	struct rdmatensor_cluster *one = join(1, 3, 50);
	int row_one[3] = { 0 }, table[9] = { 0, 0, 0, 0, 0, 0, -EHOSTUNREACH, 0, 0 }, errors[9];
	char *text;

	(void)state;
	cluster = join(0, 3, 800);
	offer_numbers(one, "row", row_one, 3);
	offer_numbers(one, "table", table, 9);
	cluster_offer_token(one, "checked", 1);
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), 2);
	assert_int_equal(errors[2], -ETIMEDOUT);
	assert_int_equal(errors[6], -EHOSTUNREACH);
	assert_int_equal(errors[7], 0);
	/* Without that, it is not known */
	rdmatensor_cluster_close(one);
	fake_reset();
	one = join(1, 3, 50);
	close_cluster();
	cluster = join(0, 3, 400);
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), 5);
	assert_int_equal(errors[3], -ENODATA);
	assert_int_equal(errors[6], -ENODATA);
	text = rdmatensor_cluster_matrix(cluster, errors, 3);
	assert_contains(text, "1 of 6 pairs of 3 ranks work:");
	assert_contains(text, "no pair of rank 2 works");
	assert_contains(text, "Not known: 1->0 1->2 2->0 2->1: the first has not told");
	free(text);
	rdmatensor_cluster_close(one);
	close_cluster();
	/* One rank alone has no pairs */
	fake_reset();
	cluster = join(0, 1, 50);
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 1), 0);
	text = rdmatensor_cluster_matrix(cluster, errors, 1);
	assert_string_equal(text, "0 of 0 pairs of 1 ranks work\n");
	free(text);
	/* One that was made for others */
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), -ESTALE);
	assert_contains(rdmatensor_node_error(), "there are 1 ranks, and the matrix is of 3");
	assert_null(rdmatensor_cluster_matrix(cluster, errors, 3));
	assert_contains(rdmatensor_node_error(), "there are 1 ranks, and it is of 3");
	assert_int_equal(rdmatensor_cluster_barrier(cluster), 0);
	close_cluster();
}

/* It says where rank 1 is so often, and then ends what asks; of others it says nothing */
static int get_or_end(void *arg, const char *key, char *value, size_t room)
{
	int *times = arg;

	if (!strstr(key, "rank.1"))
		return -ENOENT;
	if (!*times)
		return -ECANCELED;
	--*times;
	snprintf(value, room, "10.0.0.2:18521");
	return 0;
}

/* Numbers that this cluster offers of its check of a step. Return: their bytes; as rdmatensor_get_many() */
static int get_offered(const char *kind, int64_t step, int *numbers, size_t nr)
{
	struct rdmatensor_tensor tensor = {
		.data = numbers, .bytes = nr * sizeof(*numbers), .step = step,
		.flags = RDMATENSOR_TENSOR_NOWAIT,
	};
	char token[TOKEN_ROOM];
	const char *name = token;
	int err;

	cluster_call_token(cluster, kind, cluster->rank, token);
	err = rdmatensor_get_many(cluster->node, "", &name, &tensor, 1);
	return err ? err : (int)tensor.bytes;
}

/* Nobody has to wait for this rank: it has offered its row, its table or an empty one, and that it has checked */
static void has_ended_early(int64_t step, int to_one, int to_two, unsigned int table_bytes)
{
	int row[3], table[9];

	assert_int_equal(get_offered("row", step, row, 3), sizeof(row));
	assert_int_equal(row[0], 0);
	assert_int_equal(row[1], to_one);
	assert_int_equal(row[2], to_two);
	assert_int_equal(get_offered("table", step, table, 9), table_bytes);
	assert_int_equal(get_offered("checked", step, NULL, 0), 0);
}

static void has_nothing(int64_t step)
{
	int row[3], table[9];

	assert_int_equal(get_offered("row", step, row, 3), -ENOENT);
	assert_int_equal(get_offered("table", step, table, 9), -ENOENT);
	assert_int_equal(get_offered("checked", step, NULL, 0), -ENOENT);
}

/* In a check's last part, when all rows are there that can be had: the channel is lost, and the store ends it */
static void test_check_ended(void **state)
{
	struct rdmatensor_cluster *one = join(1, 3, 50);
	int row_one[3] = { 0, 0, -ETIMEDOUT }, table[9] = { 0 }, errors[9], times = 1;
	struct rdmatensor_cluster_store former;

	(void)state;
	cluster = join(0, 3, 1000);
	offer_numbers(one, "row", row_one, 3);
	offer_numbers(one, "table", table, 9);
	cluster_offer_token(one, "checked", 1);
	former = cluster->store;
	cluster->store.get = get_or_end;
	cluster->store.arg = &times;
	/* hello, whole, row, and this is the table */
	fake.fetches_until_down = 4;
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), -ECANCELED);
	assert_contains(rdmatensor_node_error(), "rank.1");
	assert_int_equal(times, 0);
	assert_int_equal(fake.connects_to[2], 1);
	/* The row had come before */
	assert_int_equal(errors[5], -ETIMEDOUT);
	assert_int_equal(errors[6], -ENODATA);
	has_ended_early(1, 0, -ETIMEDOUT, sizeof(table));
	cluster->store = former;
	rdmatensor_cluster_close(one);
	close_cluster();
}

/*
 * What a peer's tensor has failed with, or its aborted step, is not what the source ends a call with: of that
 * pair it is the error, and the other ranks are gone on with
 */
static void fail_tensor(const char *name, int err)
{
	struct rdmatensor_cluster *one = join(1, 3, 50), *two = join(2, 3, 50);
	int row[3] = { 0 }, table[9] = { 0 }, errors[9];

	cluster = join(0, 3, 1000);
	cluster->options.connects = 1;
	tell_row(one, row, 3);
	tell_row(two, row, 3);
	offer_numbers(two, "table", table, 9);
	fake.failed = name;
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), err);
	assert_int_equal(rdmatensor_node_error()[0] != '\0', err != 0);
	assert_int_equal(fake.connects_to[3], 1);
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), !!err);
	assert_int_equal(errors[1], err);
	assert_int_equal(errors[2] | errors[3] | errors[5], 0);
	assert_int_equal(errors[6] | errors[7], 0);
	rdmatensor_cluster_close(one);
	rdmatensor_cluster_close(two);
	close_cluster();
	fake_reset();
}

static void test_peer_fails(void **state)
{
	struct rdmatensor_cluster *one, *two;

	(void)state;
	/* In the first part, and a rank's row, which another one has */
	fail_tensor(".hello.1", -EREMOTEIO);
	fail_tensor(".row.3.1", 0);
	/* A connection that its host rejects with it */
	fake.connect_bad = 1;
	fake.connect_bad_error = -ECANCELED;
	one = join(1, 3, 50);
	two = join(2, 3, 50);
	cluster = join(0, 3, 1000);
	cluster->options.connects = 1;
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -EREMOTEIO);
	assert_int_equal(fake.connects_to[3], 1);
	rdmatensor_cluster_close(one);
	rdmatensor_cluster_close(two);
	close_cluster();
}

/* It says where rank 1 is, and ends what asks for rank 2 */
static int get_one_or_end(void *arg, const char *key, char *value, size_t room)
{
	(void)arg;
	if (!strstr(key, "rank.1"))
		return -ECANCELED;
	snprintf(value, room, "10.0.0.2:18521");
	return 0;
}

/* Those that are not NULL have come to it. Return: as rdmatensor_cluster_check() */
static int check_with(struct rdmatensor_cluster *one, struct rdmatensor_cluster *two, int64_t step)
{
	struct rdmatensor_cluster *const others[] = { one, two };
	int row[3] = { 0 }, errors[9];
	unsigned int i;

	for (i = 0; i < 2 && others[i]; i++) {
		others[i]->checks = step - 1;
		tell_row(others[i], row, 3);
	}
	return rdmatensor_cluster_check(cluster, errors, 3);
}

/* Who ends a check early keeps nobody: what it has is there, also for who is behind by a few */
static void test_check_says_what_it_has(void **state)
{
	struct rdmatensor_cluster *one = join(1, 3, 50), *two;
	int row[3], errors[9], times = 0;
	struct rdmatensor_cluster_store former;
	int64_t step;

	(void)state;
	cluster = join(0, 3, 1000);
	cluster->options.connects = 1;
	former = cluster->store;
	/* In the first part, when nothing is known */
	cluster->store.get = get_or_end;
	cluster->store.arg = &times;
	for (step = 1; step < 4; step++) {
		assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), -ECANCELED);
		assert_contains(rdmatensor_node_error(), "rank.1");
	}
	for (step = 1; step < 4; step++)
		has_ended_early(step, -ENODATA, -ENODATA, 0);
	/* When one was tried */
	cluster->store.get = get_one_or_end;
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), -ECANCELED);
	assert_contains(rdmatensor_node_error(), "rank.2");
	has_ended_early(4, 0, -ENODATA, 0);
	/* In the second part */
	cluster->store.get = get_or_end;
	fake.fetches_until_down = 3;
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), -ECANCELED);
	assert_contains(rdmatensor_node_error(), "rank.1");
	has_ended_early(5, 0, -ETIMEDOUT, 0);
	has_ended_early(1, -ENODATA, -ENODATA, 0);
	assert_int_equal(cluster->checks_kept, 1);
	/* Where not all have come, who is behind by a few still has it */
	cluster->store = former;
	assert_int_equal(check_with(one, NULL, 6), 3);
	has_nothing(1);
	has_ended_early(2, -ENODATA, -ENODATA, 0);
	assert_int_equal(get_offered("row", 6, row, 3), sizeof(row));
	assert_int_equal(get_offered("table", 6, errors, 9), sizeof(errors));
	/* One is there, and has not begun this check */
	two = join(2, 3, 50);
	assert_int_equal(check_with(one, NULL, 7), 2);
	assert_int_equal(cluster->checks_kept, 3);
	/* The table is large, and gives way */
	assert_int_equal(get_offered("row", 6, row, 3), sizeof(row));
	assert_int_equal(get_offered("table", 6, errors, 9), 0);
	assert_int_equal(get_offered("table", 7, errors, 9), sizeof(errors));
	/* Once all have come, nobody needs it; what could not be withdrawn goes with the next */
	fake.fail_withdrawals = 2;
	assert_int_equal(check_with(one, two, 8), 0);
	assert_int_equal(cluster->checks_kept, 3);
	assert_int_equal(check_with(one, two, 9), 0);
	assert_int_equal(cluster->checks_kept, 9);
	for (step = 2; step < 9; step++)
		has_nothing(step);
	rdmatensor_cluster_close(one);
	rdmatensor_cluster_close(two);
	close_cluster();
}

/* Ranks 1 and 2 of 4, which have not reached rank 3, and what they know of its row */
static int check_of_four(int *errors, int said_by_one, int said_by_two, const char *failed)
{
	struct rdmatensor_cluster *one = join(1, 4, 50), *two = join(2, 4, 50);
	int row[4] = { 0, 0, 0, -EHOSTUNREACH }, table[16] = { 0 }, i, nr;

	cluster = join(0, 4, 1000);
	tell_row(one, row, 4);
	tell_row(two, row, 4);
	for (i = 12; i < 16; i++)
		table[i] = said_by_one;
	offer_numbers(one, "table", table, 16);
	for (i = 12; i < 16; i++)
		table[i] = said_by_two;
	offer_numbers(two, "table", table, 16);
	fake.failed = failed;
	nr = rdmatensor_cluster_check(cluster, errors, 4);
	rdmatensor_cluster_close(one);
	rdmatensor_cluster_close(two);
	close_cluster();
	return nr;
}

static void test_check_tables(void **state)
{
	int errors[16];

	(void)state;
	/* The first table knows it, or has failed, or does not know it either: then the second one is asked */
	assert_int_equal(check_of_four(errors, -EIO, 0, NULL), 6);
	assert_int_equal(errors[12], -EIO);
	fake_reset();
	assert_int_equal(check_of_four(errors, -EIO, -EBADMSG, ".table.4.1"), 6);
	assert_int_equal(fake.failures, 1);
	assert_int_equal(errors[12], -EBADMSG);
	fake_reset();
	assert_int_equal(check_of_four(errors, -ENODATA, -EIO, NULL), 6);
	assert_int_equal(errors[12], -EIO);
	fake_reset();
	assert_int_equal(check_of_four(errors, -ENODATA, -ENODATA, NULL), 6);
	assert_int_equal(errors[12], -ENODATA);
	fake_reset();
}

/* Who tells that it does not know its own row is not asked for at others */
static void test_check_of_who_knows_nothing(void **state)
{
	struct rdmatensor_cluster *one = join(1, 3, 50), *two = join(2, 3, 50);
	int row_one[3] = { -ENODATA, 0, -ENODATA }, row_two[3] = { 0 }, errors[9];

	(void)state;
	cluster = join(0, 3, 1000);
	tell_row(one, row_one, 3);
	tell_row(two, row_two, 3);
	fake.failed = ".table.";
	assert_int_equal(rdmatensor_cluster_check(cluster, errors, 3), 2);
	assert_int_equal(errors[3], -ENODATA);
	assert_int_equal(errors[5], -ENODATA);
	assert_int_equal(fake.failures, 0);
	rdmatensor_cluster_close(one);
	rdmatensor_cluster_close(two);
	close_cluster();
}

static void test_large_matrix(void **state)
{
	unsigned int i, size = 40;
	int *errors = calloc((size_t)size * size, sizeof(*errors));
	char *text;

	(void)state;
	cluster = join(0, size, 50);
	for (i = 1; i < size; i++)
		errors[i] = -ETIMEDOUT;
	text = rdmatensor_cluster_matrix(cluster, errors, size);
	assert_contains(text, "1521 of 1560 pairs of 40 ranks work:");
	assert_contains(text, "16 more ranks have such pairs");
	assert_contains(text, "0->8 and 31 more: ");
	free(text);
	errors[1] = -EADDRNOTAVAIL;
	errors[2] = -EHOSTUNREACH;
	text = rdmatensor_cluster_matrix(cluster, errors, size);
	assert_contains(text, "0->1: the second's host name does not resolve at the first (correct it, ");
	assert_contains(text, "0->2: there is no way from the first's RDMA device");
	free(text);
	free(errors);
	close_cluster();
}

static void test_barrier(void **state)
{
	struct rdmatensor_cluster *one = join(1, 2, 50);

	(void)state;
	cluster = join(0, 2, 100);
	assert_int_equal(rdmatensor_cluster_barrier(cluster), -ETIMEDOUT);
	assert_contains(rdmatensor_node_error(), "rank 1 (10.0.0.2:18521) has not come to the barrier");
	cluster_offer_token(one, "barrier0", 2);
	cluster_offer_token(one, "past", 2);
	assert_int_equal(rdmatensor_cluster_barrier(cluster), 0);
	rdmatensor_cluster_close(one);
	close_cluster();
}

/* A probe that is not what it must be */
static void test_wrong_bytes(void **state)
{
	struct rdmatensor_cluster *one = join(1, 2, 50);
	struct rdmatensor_tensor wrong = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 1024 } };
	uint8_t bytes[1024] = { 1 };
	char name[TOKEN_ROOM];

	(void)state;
	cluster = join(0, 2, 100);
	cluster_token(one, "hello", 1, name);
	assert_int_equal(rdmatensor_withdraw_offer(one->node, name, 0), 0);
	wrong.data = bytes;
	assert_int_equal(rdmatensor_offer(one->node, name, &wrong), 0);
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -EBADMSG);
	assert_contains(rdmatensor_node_error(), "rank 1 (10.0.0.2:18521): 1024 bytes came, and not");
	rdmatensor_cluster_close(one);
	close_cluster();
}

static void test_own_store(void **state)
{
	int err = -ENOSPC;
	struct rdmatensor_cluster_store own = { .set = full_set, .arg = &err };
	struct rdmatensor_cluster_options options = {
		.source = RDMATENSOR_CLUSTER_GIVEN, .size = 2, .store = &own, .timeout_ms = 10,
	};

	(void)state;
	assert_int_equal(rdmatensor_cluster_open(&cluster, &options), -EINVAL);
	own.get = broken_get;
	assert_int_equal(rdmatensor_cluster_open(&cluster, &options), -ENOSPC);
	assert_contains(rdmatensor_node_error(), "rdmatensor/_given/rank.0: No space left");
	fake_reset();
	err = 0;
	assert_int_equal(rdmatensor_cluster_open(&cluster, &options), 0);
	err = -EPIPE;
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -EPIPE);
	assert_contains(rdmatensor_node_error(), "Broken pipe");
	close_cluster();
}

#ifdef HAVE_PMIX
#include <dlfcn.h>
#include <pmix.h>

/* PMIx, as two ranks of it would have it */
static struct {
	bool absent;
	const char *lacking;
	pmix_status_t init, fence, fenced, get;
	bool never_fenced;
	unsigned int inits, finalized;
	char put[288];
	pmix_op_cbfunc_t callback;
	void *callback_arg;
} pmix;

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *handle, const char *name);

void *__wrap_dlopen(const char *name, int flags)
{
	assert_string_equal(name, "libpmix.so.2");
	assert_true(flags & RTLD_NOW);
	return pmix.absent ? NULL : &pmix;
}

static pmix_status_t pmix_init(pmix_proc_t *proc, pmix_info_t *info, size_t nr)
{
	(void)info;
	(void)nr;
	strcpy(proc->nspace, "job.7");
	proc->rank = 1;
	pmix.inits += !pmix.init;
	return pmix.init;
}

static pmix_status_t pmix_finalize(const pmix_info_t *info, size_t nr)
{
	(void)info;
	(void)nr;
	pmix.finalized++;
	return PMIX_SUCCESS;
}

static pmix_status_t pmix_put(pmix_scope_t scope, const char *key, pmix_value_t *value)
{
	assert_int_equal(scope, PMIX_GLOBAL);
	assert_string_equal(key, "rdmatensor.address");
	snprintf(pmix.put, sizeof(pmix.put), "%s", value->data.string);
	return PMIX_SUCCESS;
}

static pmix_status_t pmix_commit(void)
{
	return PMIX_SUCCESS;
}

static pmix_status_t pmix_fence_nb(const pmix_proc_t *procs, size_t nr, const pmix_info_t *info,
				   size_t nr_info, pmix_op_cbfunc_t callback, void *arg)
{
	/* Slurm's server knows no other ones than of the job as a whole */
	assert_int_equal(nr, 0);
	assert_null(procs);
	assert_int_equal(nr_info, 1);
	assert_string_equal(info->key, PMIX_COLLECT_DATA);
	if (!pmix.fence && !pmix.never_fenced)
		callback(pmix.fenced, arg);
	pmix.callback = callback;
	pmix.callback_arg = arg;
	return pmix.fence;
}

static pmix_status_t pmix_get(const pmix_proc_t *proc, const char *key, const pmix_info_t *info,
			      size_t nr, pmix_value_t **value)
{
	(void)info;
	(void)nr;
	assert_string_equal(proc->nspace, "job.7");
	if (pmix.get)
		return pmix.get;
	*value = calloc(1, sizeof(**value));
	if (proc->rank == PMIX_RANK_WILDCARD) {
		assert_string_equal(key, PMIX_JOB_SIZE);
		(*value)->type = PMIX_UINT32;
		(*value)->data.uint32 = 2;
	} else {
		assert_int_equal(proc->rank, 0);
		(*value)->type = PMIX_STRING;
		(*value)->data.string = strdup("10.0.0.9:18521");
	}
	return PMIX_SUCCESS;
}

static const char *pmix_error_string(pmix_status_t status)
{
	return status == PMIX_ERR_UNREACH ? "UNREACHABLE" : "ANOTHER";
}

void *__wrap_dlsym(void *handle, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} all[] = {
		{ "PMIx_Init", pmix_init }, { "PMIx_Finalize", pmix_finalize }, { "PMIx_Put", pmix_put },
		{ "PMIx_Commit", pmix_commit }, { "PMIx_Fence_nb", pmix_fence_nb },
		{ "PMIx_Get", pmix_get }, { "PMIx_Error_string", pmix_error_string },
	};
	size_t i;

	assert_ptr_equal(handle, &pmix);
	for (i = 0; i < NR(all); i++)
		if (!strcmp(all[i].name, name) && (!pmix.lacking || strcmp(pmix.lacking, name)))
			return all[i].function;
	return NULL;
}

static void test_pmix(void **state)
{
	char address[RDMATENSOR_CLUSTER_ADDRESS_MAX];

	(void)state;
	memset(&pmix, 0, sizeof(pmix));
	setenv("PMIX_NAMESPACE", "job.7", 1);
	setenv("PMIX_RANK", "1", 1);
	assert_int_equal(open_cluster(50), 0);
	assert_int_equal(rdmatensor_cluster_rank(cluster), 1);
	assert_int_equal(rdmatensor_cluster_size(cluster), 2);
	assert_string_equal(rdmatensor_cluster_source_name(cluster), "pmix");
	assert_string_equal(pmix.put, "10.0.0.1:18521");
	address_is(0, "10.0.0.9:18521");
	address_is(1, "10.0.0.1:18521");
	close_cluster();
	assert_int_equal(pmix.inits, pmix.finalized);
	/* A rank that never comes to the fence */
	pmix.never_fenced = true;
	assert_int_equal(open_cluster(50), 0);
	assert_int_equal(rdmatensor_cluster_address(cluster, 0, address, sizeof(address)), -ETIMEDOUT);
	assert_contains(rdmatensor_node_error(), "not all ranks have come to the fence");
	/* Nor does that keep a signal from ending a wait, which is of a thread of the library's */
	cluster->options.flags |= RDMATENSOR_CLUSTER_INTERRUPTIBLE;
	rdmatensor_node_interruptible(cluster->node, 1);
	rdmatensor_node_timeout(cluster->node, -1);
	signals_begin();
	assert_int_equal(rdmatensor_cluster_connect(cluster, NULL, 0), -EINTR);
	signals_end();
	/* The fence ends when nobody has the cluster any more */
	close_cluster();
	assert_int_equal(pmix.inits, pmix.finalized);
	pmix.callback(PMIX_SUCCESS, pmix.callback_arg);
	pmix.never_fenced = false;
	pmix.fence = PMIX_OPERATION_SUCCEEDED;
	assert_int_equal(open_cluster(50), 0);
	address_is(0, "10.0.0.9:18521");
	pmix.get = PMIX_ERR_NOT_FOUND;
	close_cluster();
	pmix.fence = PMIX_SUCCESS;
	refused(-EPROTO, "the number of ranks: ANOTHER");
	assert_int_equal(pmix.inits, pmix.finalized);
}

static void test_bad_pmix(void **state)
{
	char address[RDMATENSOR_CLUSTER_ADDRESS_MAX];

	(void)state;
	memset(&pmix, 0, sizeof(pmix));
	setenv("RDMATENSOR_CLUSTER", "pmix", 1);
	pmix.absent = true;
	refused(-ELIBACC, "install libpmix");
	pmix.absent = false;
	pmix.lacking = "PMIx_Fence_nb";
	refused(-ELIBACC, "has no PMIx_Fence_nb");
	pmix.lacking = NULL;
	pmix.init = PMIX_ERR_UNREACH;
	refused(-EPROTO, "UNREACHABLE: is this process started by mpirun");
	assert_int_equal(pmix.finalized, 0);
	pmix.init = PMIX_SUCCESS;
	pmix.fence = PMIX_ERR_UNREACH;
	refused(-EPROTO, "the fence: UNREACHABLE");
	pmix.fence = PMIX_SUCCESS;
	pmix.fenced = PMIX_ERR_UNREACH;
	assert_int_equal(open_cluster(50), 0);
	assert_int_equal(rdmatensor_cluster_address(cluster, 0, address, sizeof(address)), -EPROTO);
	assert_contains(rdmatensor_node_error(), "the fence: UNREACHABLE");
	close_cluster();
	pmix.fenced = PMIX_ERR_PARTIAL_SUCCESS;
	assert_int_equal(open_cluster(50), 0);
	assert_int_equal(rdmatensor_cluster_address(cluster, 0, address, sizeof(address)), -ECONNRESET);
	assert_contains(rdmatensor_node_error(), "a rank has ended before all had come");
	close_cluster();
	assert_int_equal(pmix.inits, pmix.finalized);
}
#else
static void test_no_pmix(void **state)
{
	(void)state;
	setenv("PMIX_NAMESPACE", "job.7", 1);
	setenv("PMIX_RANK", "1", 1);
	refused(-EOPNOTSUPP, "built without PMIx");
}
#endif

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_nothing),
		TEST(test_options),
		TEST(test_hosts),
		TEST(test_bad_hosts),
		TEST(test_refresh),
		TEST(test_tf_config),
		TEST(test_bad_tf_config),
		TEST(test_tf_config_without_cluster),
		TEST(test_names_once),
		TEST(test_torchrun),
		TEST(test_torchrun_starts_again),
		TEST(test_jobs_of_like_names),
		TEST(test_store),
		TEST(test_store_of_another),
		TEST(test_folders_go),
		TEST(test_what_is_in_a_store),
		TEST(test_late),
		TEST(test_stale),
		TEST(test_own_spelling),
		TEST(test_dead),
		TEST(test_another_takes_its_place),
		TEST(test_channel_gone_before_the_get),
		TEST(test_has_moved),
		TEST(test_has_left),
		TEST(test_source_fails),
		TEST(test_swapped),
		TEST(test_down_while_probing),
		TEST(test_silent_proofs),
		TEST(test_words_are_rare),
		TEST(test_round),
		TEST(test_round_ended),
		TEST(test_absent),
		TEST(test_silent),
		TEST(test_pace),
		TEST(test_interrupted),
		TEST(test_check),
		TEST(test_check_by_others),
		TEST(test_check_ended),
		TEST(test_peer_fails),
		TEST(test_check_says_what_it_has),
		TEST(test_check_tables),
		TEST(test_check_of_who_knows_nothing),
		TEST(test_large_matrix),
		TEST(test_barrier),
		TEST(test_wrong_bytes),
		TEST(test_own_store),
#ifdef HAVE_PMIX
		TEST(test_pmix),
		TEST(test_bad_pmix),
#else
		TEST(test_no_pmix),
#endif
	};

	return cmocka_run_group_tests_name("cluster", tests, NULL, NULL);
}

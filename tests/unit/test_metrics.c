// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * metrics: what it makes of the module's messages, which come from here, in both formats; the file
 * that it writes; and what it answers over HTTP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdmatensor/netlink.h>
#include <rdmatensor/rdmatensor.h>

#include "capture.h"
#include "tool/cmd/commands.h"
#include "tool/common/message.h"
#include "tool/common/netlink.h"
#include "unit.h"

/**
 * struct module - what there is in the module
 * @contexts: their number; they are 7, 8 and so on
 * @channels: of each context
 * @worker: name of each context
 * @peer: name of each peer
 * @gone: devices have gone
 * @counters: that it tells, from the first on, by a number of their own each
 * @errors: fetches have ended with errors
 * @attempts: that a dump takes
 * @newcomer: there is a channel of one more context, which is not told of
 * @whole: the last of them comes whole
 * @own: they are of the user's own contexts
 * @error: it cannot be asked
 */
static struct module {
	unsigned int contexts;
	unsigned int channels;
	const char *worker;
	const char *peer;
	bool gone;
	int counters;
	bool errors;
	unsigned int attempts;
	bool newcomer;
	bool whole;
	bool own;
	bool error;
} module;

static char dir[256], path[300], whole_text[1 << 22];

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	module = (struct module){
		.contexts = 1, .channels = 1, .worker = "trainer-3", .peer = "server",
		.counters = RDMATENSOR_STAT_NR, .attempts = 1, .whole = true,
	};
	snprintf(dir, sizeof(dir), "%s/metrics-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/it", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	/* Nothing else may be left behind */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

/* ---- the module ------------------------------------------------------------- */

static void put_values(struct nl_msg *msg, int type, const uint64_t *values, int nr)
{
	struct nlattr *nest = nla_nest_start(msg, type);
	int i;

	for (i = 0; i < nr; i++)
		if (values[i])
			assert_int_equal(nla_put_u64(msg, 1 + i, values[i]), 0);
	nla_nest_end(msg, nest);
}

/* @base: what sets its numbers apart from those of others */
static void put_sums(struct nl_msg *msg, uint64_t base)
{
	uint64_t counters[2 * RDMATENSOR_STAT_NR], latency[RDMATENSOR_NL_LATENCY_NR] = { 0 };
	uint64_t errors[RDMATENSOR_NL_ERRORS_NR] = { 0 };
	int i;

	for (i = 0; i < module.counters; i++)
		counters[i] = base + (uint64_t)i;
	put_values(msg, RDMATENSOR_NL_A_COUNTERS, counters, module.counters);
	latency[0] = 1;
	latency[10] = 20;
	latency[RDMATENSOR_NL_LATENCY_NR - 1] = 300;
	put_values(msg, RDMATENSOR_NL_A_LATENCY, latency, RDMATENSOR_NL_LATENCY_NR);
	if (!module.errors)
		return;
	errors[0] = base + 2;
	errors[ETIMEDOUT] = base + 1;
	put_values(msg, RDMATENSOR_NL_A_ERRORS, errors, RDMATENSOR_NL_ERRORS_NR);
}

static void put_context(struct nl_msg *msg, uint32_t context)
{
	const uint8_t gid[16] = { [10] = 255, 255, 10, 0, 0, 1 };

	nla_put_u32(msg, RDMATENSOR_NL_A_CONTEXT, context);
	nla_put_string(msg, RDMATENSOR_NL_A_WORKER, module.worker);
	nla_put_u32(msg, RDMATENSOR_NL_A_PID, 4711);
	nla_put_string(msg, RDMATENSOR_NL_A_COMM, "python3");
	nla_put_u32(msg, RDMATENSOR_NL_A_CHANNELS, module.channels);
	nla_put_u32(msg, RDMATENSOR_NL_A_POOLS, 3);
	if (!module.gone) {
		nla_put_string(msg, RDMATENSOR_NL_A_DEVICE, "rxe0");
		nla_put_u32(msg, RDMATENSOR_NL_A_PORT, 1);
		nla_put(msg, RDMATENSOR_NL_A_GID, sizeof(gid), gid);
		nla_put_u32(msg, RDMATENSOR_NL_A_MTU, 4096);
	}
	put_sums(msg, context * UINT64_C(1000));
}

static void put_channel(struct nl_msg *msg, uint32_t context, uint32_t channel)
{
	const uint8_t addr[28] = { AF_INET & 255, AF_INET >> 8, 0x48, 0x59, 10, 0, 0, 2 };

	nla_put_u32(msg, RDMATENSOR_NL_A_CONTEXT, context);
	nla_put_string(msg, RDMATENSOR_NL_A_WORKER, module.worker);
	nla_put_u32(msg, RDMATENSOR_NL_A_CHANNEL, channel);
	nla_put_u32(msg, RDMATENSOR_NL_A_STATE, RDMATENSOR_CHANNEL_UP);
	nla_put_string(msg, RDMATENSOR_NL_A_PEER, module.peer);
	nla_put(msg, RDMATENSOR_NL_A_ADDR, sizeof(addr), addr);
	nla_put_u32(msg, RDMATENSOR_NL_A_REQUESTS, 5);
	nla_put_u32(msg, RDMATENSOR_NL_A_RESPONSES, 6);
	nla_put_u32(msg, RDMATENSOR_NL_A_MSG_SLOTS, 16);
	nla_put_u32(msg, RDMATENSOR_NL_A_SENT, 3);
	nla_put_u32(msg, RDMATENSOR_NL_A_CONSUMED, UINT32_MAX - 3);
	nla_put_string(msg, RDMATENSOR_NL_A_MR_MODE, "pool");
	put_sums(msg, context * UINT64_C(1000) + channel * UINT64_C(1000000));
}

static void put_domain(struct nl_msg *msg)
{
	nla_put_u32(msg, RDMATENSOR_NL_A_DOMAIN, 2);
	nla_put_string(msg, RDMATENSOR_NL_A_WORKER, module.worker);
	nla_put_string(msg, RDMATENSOR_NL_A_DEVICE, "rxe0");
	nla_put_u32(msg, RDMATENSOR_NL_A_CONTEXTS, module.contexts);
	nla_put_u32(msg, RDMATENSOR_NL_A_POOLS, 3);
	nla_put_u64(msg, RDMATENSOR_NL_A_BYTES, UINT64_C(1) << 40);
	nla_put_u32(msg, RDMATENSOR_NL_A_LASTING, 9);
	/* Shorter than it should be: is skipped */
	nla_put_u16(msg, RDMATENSOR_NL_A_CONTEXT, 1);
	nla_put_string(msg, RDMATENSOR_NL_A_MR_MODE, "pool");
}

/* @context 0: it is of a domain */
static void tell(const struct dump_reader *reader, void *arg, int cmd, uint32_t context,
		 uint32_t channel)
{
	struct nl_msg *msg = nlmsg_alloc_size(16384);

	assert_non_null(genlmsg_put(msg, 0, 0, 32, 0, NLM_F_MULTI, (uint8_t)cmd, 1));
	if (channel)
		put_channel(msg, context, channel);
	else if (context)
		put_context(msg, context);
	else
		put_domain(msg);
	reader->message(msg, arg);
	nlmsg_free(msg);
}

int __wrap_dump_messages(int cmd, uint32_t context, const struct dump_reader *reader, void *arg,
			 struct dump_extent *extent);

int __wrap_dump_messages(int cmd, uint32_t context, const struct dump_reader *reader, void *arg,
			 struct dump_extent *extent)
{
	unsigned int i, k, attempt;

	assert_int_equal(context, 0);
	if (module.error)
		return failed("netlink: as the test wants");
	for (attempt = 0; attempt < module.attempts; attempt++) {
		reader->begin(arg);
		if (cmd == RDMATENSOR_NL_CMD_DOMAIN_GET)
			tell(reader, arg, cmd, 0, 0);
		for (i = 0; cmd == RDMATENSOR_NL_CMD_CONTEXT_GET && i < module.contexts; i++)
			tell(reader, arg, cmd, 7 + i, 0);
		for (i = 0; cmd == RDMATENSOR_NL_CMD_CHANNEL_GET && i < module.contexts; i++)
			for (k = 0; k < module.channels; k++)
				tell(reader, arg, cmd, 7 + i, 1 + k);
		if (cmd == RDMATENSOR_NL_CMD_CHANNEL_GET && module.newcomer)
			tell(reader, arg, cmd, 7 + module.contexts, 1);
	}
	*extent = (struct dump_extent){ .whole = module.whole, .own = module.own };
	return EXIT_OK;
}

/* ---- its text --------------------------------------------------------------- */

/* Of one series, 0 for one that is not there */
static double value_of(const char *said, const char *series)
{
	size_t len = strlen(series);
	const char *at = said;

	while ((at = strstr(at, series))) {
		if ((at == said || at[-1] == '\n') && at[len] == ' ')
			return strtod(at + len, NULL);
		at += len;
	}
	fail_msg("no %s in %.2000s", series, said);
	return 0;
}

#define assert_value(_series, _value)						\
	do {									\
		if (value_of(whole_text, _series) != (double)(_value))		\
			fail_msg("%s is not %s", _series, #_value);		\
	} while (0)

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void assert_unlike(char **list, size_t nr)
{
	size_t i;

	qsort(list, nr, sizeof(*list), compare);
	for (i = 1; i < nr; i++)
		if (!strcmp(list[i - 1], list[i]))
			fail_msg("%s is there twice", list[i]);
}

/*
 * Each family has a head, with help, and all of its series below it; no family and no series is
 * there twice. Return: how many series there are
 */
static size_t count_series(const char *said)
{
	static char *series[200000], *families[1000];
	char *copy = strdup(said), *line, *save, *end, *value;
	size_t nr = 0, nr_families = 0;

	for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "# HELP ", 7)) {
			families[nr_families] = line + 7;
			end = strchr(line + 7, ' ');
			assert_non_null(end);
			*end = '\0';
			assert_int_equal(end[strlen(end + 1)], '.');
			nr_families++;
			continue;
		}
		if (*line == '#')
			continue;
		assert_true(nr_families > 0);
		if (strncmp(line, families[nr_families - 1], strlen(families[nr_families - 1])))
			fail_msg("%s is below the head of %s", line, families[nr_families - 1]);
		value = strrchr(line, ' ');
		assert_non_null(value);
		strtod(value + 1, &end);
		assert_true(end > value + 1 && !*end);
		*value = '\0';
		series[nr++] = line;
	}
	assert_unlike(families, nr_families);
	assert_unlike(series, nr);
	free(copy);
	return nr;
}

/* Runs it into whole_text, which holds more than capture.h's text does */
static int run_to_text(char *const *args)
{
	char output[320];
	int argc = 0, saved, fd, ret;

	while (args[argc])
		argc++;
	snprintf(output, sizeof(output), "%s-out", path);
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	fd = open(output, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	optind = 0;
	ret = cmd_metrics(argc, (char **)args);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	memset(whole_text, 0, sizeof(whole_text));
	assert_true(pread(fd, whole_text, sizeof(whole_text) - 1, 0) >= 0);
	close(fd);
	unlink(output);
	return ret;
}

#define METRICS(...) run_to_text((char *[]){ "rdmatensor metrics", ##__VA_ARGS__, NULL })

#define CONTEXT "{context=\"7\",worker=\"trainer-3\",device=\"rxe0\""
#define DOMAIN "{domain=\"2\",worker=\"trainer-3\",device=\"rxe0\""
#define LATENCY "_fetch_latency_seconds"
#define CHANNEL CONTEXT ",channel=\"1\",peer=\"server\""

/* What promtool says of a file, in @messages. -1: there is none here */
static int promtool(const char *arguments, const char *file)
{
	char command[1024];
	int copy, saved, ret;

	if (system("command -v promtool >/dev/null"))
		return -1;
	snprintf(command, sizeof(command), "promtool %s <%s >&2", arguments, file);
	copy = capture_begin(STDERR_FILENO, &saved);
	ret = system(command);
	capture_end(STDERR_FILENO, saved, copy, messages, sizeof(messages));
	return ret;
}

/* ---- tests ------------------------------------------------------------------ */

static void test_numbers(void **state)
{
	(void)state;
	assert_int_equal(METRICS(), EXIT_OK);
	count_series(whole_text);
	assert_value("rdmatensor_context_fetches_total" CONTEXT "}", 7000);
	assert_value("rdmatensor_context_served_bytes_total" CONTEXT "}",
		     7000 + RDMATENSOR_STAT_SERVED_BYTES);
	assert_value("rdmatensor_channel_list_errors_total" CHANNEL "}",
		     1007000 + RDMATENSOR_STAT_LIST_ERRORS);
	assert_value("rdmatensor_context_pools" CONTEXT "}", 3);
	assert_value("rdmatensor_channel_up" CHANNEL "}", 1);
	assert_value("rdmatensor_channel_requests" CHANNEL "}", 5);
	assert_value("rdmatensor_channel_responses" CHANNEL "}", 6);
	assert_value("rdmatensor_channel_message_slots" CHANNEL "}", 16);
	/* Over the end of 32 bits */
	assert_value("rdmatensor_channel_messages_unconsumed" CHANNEL "}", 7);
	assert_value("rdmatensor_domain_pool_bytes" DOMAIN "}", UINT64_C(1) << 40);
	assert_contains(whole_text, "rdmatensor_context_info" CONTEXT
			",pid=\"4711\",comm=\"python3\",port=\"1\",gid=\"10.0.0.1\",mtu=\"4096\"} 1\n");
	assert_contains(whole_text, "rdmatensor_channel_info" CHANNEL
			",address=\"10.0.0.2:18521\",mr_mode=\"pool\"} 1\n");
	assert_value("rdmatensor_scrape_incomplete", 0);
	assert_value("rdmatensor_scrape_own_only", 0);
	assert_value("rdmatensor_scrape_series_left_out", 0);
	/* A context's own business is no channel's */
	assert_null(strstr(whole_text, "rdmatensor_channel_published_total"));
	assert_null(strstr(whole_text, "fetch_failures_total{"));
}

static void test_latency(void **state)
{
	(void)state;
	assert_int_equal(METRICS(), EXIT_OK);
	assert_value("rdmatensor_context" LATENCY "_bucket" CONTEXT ",le=\"1e-06\"}", 1);
	assert_value("rdmatensor_context" LATENCY "_bucket" CONTEXT ",le=\"0.000512\"}",
		     1);
	assert_value("rdmatensor_context" LATENCY "_bucket" CONTEXT ",le=\"0.001024\"}",
		     21);
	assert_value("rdmatensor_context" LATENCY "_bucket" CONTEXT ",le=\"1073.741824\"}",
		     21);
	assert_value("rdmatensor_channel" LATENCY "_bucket" CHANNEL ",le=\"+Inf\"}",
		     321);
	assert_value("rdmatensor_channel" LATENCY "_count" CHANNEL "}", 321);
}

/* Each counter of the library has a family with a help text of its own */
static void test_all_counters(void **state)
{
	char head[128];
	int i;

	(void)state;
	assert_int_equal(METRICS(), EXIT_OK);
	for (i = 0; i < RDMATENSOR_STAT_NR; i++) {
		snprintf(head, sizeof(head), "# HELP rdmatensor_context_%s_total ",
			 rdmatensor_stat_name(i));
		assert_contains(whole_text, head);
		snprintf(head, sizeof(head), "# TYPE rdmatensor_context_%s_total counter\n",
			 rdmatensor_stat_name(i));
		assert_contains(whole_text, head);
		snprintf(head, sizeof(head), "rdmatensor_context_%s_total" CONTEXT "}",
			 rdmatensor_stat_name(i));
		assert_value(head, 7000 + i);
	}
	assert_null(strstr(whole_text, "(null)"));
}

static void test_openmetrics(void **state)
{
	size_t len;

	(void)state;
	module.errors = true;
	assert_int_equal(METRICS("--format", "openmetrics"), EXIT_OK);
	count_series(whole_text);
	len = strlen(whole_text);
	assert_string_equal(whole_text + len - 6, "# EOF\n");
	assert_contains(whole_text, "# TYPE rdmatensor_context_fetched_bytes counter\n"
			"# UNIT rdmatensor_context_fetched_bytes bytes\n"
			"rdmatensor_context_fetched_bytes_total" CONTEXT "} 7003\n");
	assert_contains(whole_text, "# TYPE rdmatensor_context info\nrdmatensor_context_info{");
	assert_contains(whole_text, "# UNIT rdmatensor_channel_fetch_latency_seconds seconds\n");
	/* A count goes with a sum, which the module does not have */
	assert_null(strstr(whole_text, "latency_seconds_count"));
	assert_int_equal(METRICS("--format", "prometheus"), EXIT_OK);
	assert_null(strstr(whole_text, "# EOF"));
	assert_null(strstr(whole_text, "# UNIT"));
	assert_contains(whole_text, "# TYPE rdmatensor_context_info gauge\n");
}

static void test_errors(void **state)
{
	(void)state;
	module.errors = true;
	assert_int_equal(METRICS(), EXIT_OK);
	assert_value("rdmatensor_context_fetch_failures_total" CONTEXT ",errno=\"ETIMEDOUT\"}",
		     7001);
	assert_value("rdmatensor_channel_fetch_failures_total" CHANNEL ",errno=\"other\"}",
		     1007002);
}

/* Names of files and peers: nothing of theirs is taken for a label, a line or another encoding */
static void test_labels(void **state)
{
	(void)state;
	module.worker = "a\"} 1\nb\\\xff\xe6\x97\xa5\033\xc2\x9b";
	module.peer = "";
	assert_int_equal(METRICS(), EXIT_OK);
	count_series(whole_text);
	assert_contains(whole_text, "rdmatensor_channel_up{context=\"7\","
			"worker=\"a\\\"} 1\\nb\\\\\xef\xbf\xbd\xe6\x97\xa5\xef\xbf\xbd\xef\xbf\xbd\","
			"device=\"rxe0\",channel=\"1\"} 1\n");
	module.gone = true;
	assert_int_equal(METRICS(), EXIT_OK);
	count_series(whole_text);
	assert_null(strstr(whole_text, "gid="));
	assert_null(strstr(whole_text, "device=\"\""));
}

/* Whole contexts and channels, the first ones, and how much more there is */
static void test_bound(void **state)
{
	size_t all, some;

	(void)state;
	module.contexts = 20;
	module.channels = 20;
	assert_int_equal(METRICS(), EXIT_OK);
	all = count_series(whole_text);
	assert_value("rdmatensor_scrape_series_left_out", 0);
	assert_value("rdmatensor_scrape_series", all - 6);
	assert_int_equal(METRICS("--max-series", "10000"), EXIT_OK);
	some = count_series(whole_text);
	assert_in_range(some, 9900, 10005);
	assert_value("rdmatensor_scrape_series", some - 6);
	assert_value("rdmatensor_scrape_series_left_out", all - some);
	assert_contains(whole_text, "rdmatensor_context_fetches_total{context=\"26\",");
	value_of(whole_text, "rdmatensor_channel_fetches_total" CHANNEL "}");
	assert_null(strstr(whole_text, "rdmatensor_channel_up{context=\"26\""));
	/* Its last series is there, too */
	value_of(whole_text, "rdmatensor_channel" LATENCY "_count" CHANNEL "}");
	assert_int_equal(METRICS("--max-series", "0"), EXIT_OK);
	assert_int_equal(count_series(whole_text), 6);
	assert_value("rdmatensor_scrape_series_left_out", all - 6);
}

/* A module that is older or newer than the tool, and one whose objects come and go */
static void test_modules(void **state)
{
	(void)state;
	module.counters = RDMATENSOR_STAT_LISTS;
	assert_int_equal(METRICS(), EXIT_OK);
	value_of(whole_text, "rdmatensor_context_tx_short_requests_total" CONTEXT "}");
	assert_null(strstr(whole_text, "rdmatensor_context_lists_total{"));
	module.counters = 2 * RDMATENSOR_STAT_NR;
	module.attempts = 3;
	module.whole = false;
	module.own = true;
	assert_int_equal(METRICS(), EXIT_OK);
	count_series(whole_text);
	value_of(whole_text, "rdmatensor_context_lists_total" CONTEXT "}");
	assert_value("rdmatensor_scrape_incomplete", 1);
	assert_value("rdmatensor_scrape_own_only", 1);
	/* Of a context that came between the two dumps nothing is known yet, and so nothing is told */
	module.whole = true;
	module.newcomer = true;
	assert_int_equal(METRICS(), EXIT_OK);
	count_series(whole_text);
	assert_non_null(strstr(whole_text, "rdmatensor_channel_up" CHANNEL "}"));
	assert_null(strstr(whole_text, "device=\"\""));
	assert_value("rdmatensor_scrape_incomplete", 1);
	module.newcomer = false;
	module.contexts = 0;
	assert_int_equal(METRICS(), EXIT_OK);
	count_series(whole_text);
	module.error = true;
	assert_int_equal(run(cmd_metrics, (char *[]){ NULL }), EXIT_FAILED);
	assert_contains(messages, "netlink: as the test wants");
	assert_string_equal(text, "");
}

static void read_path(char *to, size_t len)
{
	int fd = open(path, O_RDONLY);
	ssize_t got;

	assert_true(fd >= 0);
	got = read(fd, to, len - 1);
	assert_true(got >= 0);
	to[got] = '\0';
	close(fd);
}

static void test_file(void **state)
{
	struct stat before, after;

	(void)state;
	assert_int_equal(METRICS("--file", path), EXIT_OK);
	assert_string_equal(whole_text, "");
	read_path(whole_text, sizeof(whole_text));
	count_series(whole_text);
	value_of(whole_text, "rdmatensor_context_fetches_total" CONTEXT "}");
	assert_int_equal(stat(path, &before), 0);
	/* Another file with the same name, which readers of the first one do not see */
	module.peer = "other";
	assert_int_equal(METRICS("-f", path, "--format", "openmetrics"), EXIT_OK);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino != after.st_ino && before.st_mode == after.st_mode);
	read_path(whole_text, sizeof(whole_text));
	assert_contains(whole_text, "peer=\"other\"");
	assert_contains(whole_text, "# EOF");
	/* What it had stays when there is nothing new */
	module.error = true;
	assert_int_equal(RUN(cmd_metrics, "-f", path), EXIT_FAILED);
	read_path(whole_text, sizeof(whole_text));
	assert_contains(whole_text, "# EOF");
	module.error = false;
	assert_int_equal(RUN(cmd_metrics, "-f", dir), EXIT_FAILED);
	assert_contains(messages, "Is a directory");
}

static void test_usage(void **state)
{
	(void)state;
	assert_int_equal(RUN(cmd_metrics, "7"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_metrics, "--format", "xml"), EXIT_USAGE);
	assert_contains(messages, "--format xml is refused: give prometheus or openmetrics");
	assert_int_equal(RUN(cmd_metrics, "--file", path, "--listen", ":0"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_metrics, "--listen", ":0", "--format", "openmetrics"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_metrics, "--listen", "unix:"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_metrics, "--listen", "127.0.0.1:http"), EXIT_USAGE);
	assert_int_equal(RUN(cmd_metrics, "--listen", "192.0.2.1:9"), EXIT_FAILED);
	assert_contains(messages, "name an address of this machine");
	assert_int_equal(RUN(cmd_metrics, "--listen", "unix:/nowhere/metrics"), EXIT_FAILED);
	assert_contains(messages, "listen on unix:/nowhere/metrics: No such file");
}

/* By Prometheus itself: the checks of its own, and its reader of OpenMetrics, which wants times */
static void test_promtool(void **state)
{
	char command[700];
	int ret;

	(void)state;
	module.contexts = 3;
	module.channels = 4;
	module.errors = true;
	module.worker = "a\"} 1\nb\\\xff\xe6\x97\xa5";
	assert_int_equal(METRICS("--file", path), EXIT_OK);
	ret = promtool("check metrics", path);
	if (ret < 0)
		skip();
	assert_string_equal(messages, "");
	assert_int_equal(ret, 0);
	assert_int_equal(METRICS("--file", path, "--format", "openmetrics"), EXIT_OK);
	snprintf(command, sizeof(command), "sed -i '/^#/!s/$/ 1700000000/' %s", path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "tsdb create-blocks-from openmetrics %s %s/blocks", path,
		 dir);
	ret = promtool(command, "/dev/null");
	if (ret)
		fail_msg("%s", messages);
	snprintf(command, sizeof(command), "rm -r %s/blocks", dir);
	assert_int_equal(system(command), 0);
}

/* ---- what is made of them ------------------------------------------------------ */

static char *read_whole(const char *file)
{
	static char bytes[1 << 20];
	int fd = open(file, O_RDONLY);
	ssize_t got;

	if (fd < 0)
		fail_msg("%s: %s", file, strerror(errno));
	got = read(fd, bytes, sizeof(bytes) - 1);
	assert_in_range(got, 1, sizeof(bytes) - 2);
	bytes[got] = '\0';
	close(fd);
	return bytes;
}

/* Each word that begins as series do is one. Return: how many there are */
static size_t assert_series_exist(const char *file)
{
	const char *at = read_whole(file), *end;
	char series[160], other[160];
	size_t nr = 0;

	for (; (at = strstr(at, "rdmatensor_")); at = end) {
		end = at + strspn(at, "abcdefghijklmnopqrstuvwxyz_");
		snprintf(series, sizeof(series), "\n%.*s{", (int)(end - at), at);
		snprintf(other, sizeof(other), "\n%.*s ", (int)(end - at), at);
		if (!strstr(whole_text, series) && !strstr(whole_text, other))
			fail_msg("%s: there is no series %.*s", file, (int)(end - at), at);
		nr++;
	}
	return nr;
}

#define PACKAGING TOP "/packaging/metrics/"
#define ALERTS_TEST TOP "/tests/unit/alerts.yml"

static void test_dashboard(void **state)
{
	struct json_object *root, *panels, *panel, *targets, *value;
	size_t i, k, nr = 0;

	(void)state;
	module.errors = true;
	assert_int_equal(METRICS(), EXIT_OK);
	assert_in_range(assert_series_exist(PACKAGING "grafana-dashboard.json"), 20, 200);
	root = json_tokener_parse(read_whole(PACKAGING "grafana-dashboard.json"));
	assert_true(json_object_object_get_ex(root, "panels", &panels));
	for (i = 0; i < json_object_array_length(panels); i++) {
		panel = json_object_array_get_idx(panels, i);
		assert_true(json_object_object_get_ex(panel, "targets", &targets));
		assert_true(json_object_object_get_ex(panel, "gridPos", &value));
		for (k = 0; k < json_object_array_length(targets); k++) {
			value = json_object_array_get_idx(targets, k);
			assert_true(json_object_object_get_ex(value, "expr", &value));
			assert_contains(json_object_get_string(value), "rdmatensor_");
			nr++;
		}
	}
	assert_in_range(nr, 20, 200);
	json_object_put(root);
}

/* Each alert has a case where it is there and one where it is not, by Prometheus itself */
static void test_alerts(void **state)
{
	char *rules, *cases, *at, *end;
	char name[128], words[256];

	(void)state;
	module.errors = true;
	assert_int_equal(METRICS(), EXIT_OK);
	assert_in_range(assert_series_exist(PACKAGING "alerts.yml"), 12, 100);
	rules = strdup(read_whole(PACKAGING "alerts.yml"));
	cases = read_whole(ALERTS_TEST);
	for (at = rules; (at = strstr(at, "- alert: ")); at = end) {
		at += strlen("- alert: ");
		end = at + strcspn(at, "\n");
		snprintf(name, sizeof(name), "alertname: %.*s\n", (int)(end - at), at);
		snprintf(words, sizeof(words), "%s        eval_time: ", name);
		assert_contains(cases, words);
		assert_non_null(strstr(strstr(cases, name) + 1, name));
	}
	free(rules);
	if (promtool("check rules " PACKAGING "alerts.yml", "/dev/null") < 0)
		skip();
	if (promtool("test rules " ALERTS_TEST, "/dev/null"))
		fail_msg("%s", messages);
}

/* ---- HTTP ------------------------------------------------------------------- */

/**
 * struct listener - the command as a process of its own
 * @child: it
 * @says: the end of a pipe with its standard output
 */
struct listener {
	pid_t child;
	int says;
};

/* Returns when it says that it listens */
static void listener_start(struct listener *listener, const char *address)
{
	char *args[] = { "rdmatensor metrics", "--listen", (char *)address, NULL };
	int pipes[2];
	ssize_t got;

	assert_int_equal(pipe(pipes), 0);
	fflush(stdout);
	listener->child = fork();
	assert_true(listener->child >= 0);
	if (!listener->child) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		optind = 0;
		exit(cmd_metrics(3, args));
	}
	close(pipes[1]);
	listener->says = pipes[0];
	got = read(listener->says, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	assert_contains(text, "rdmatensor: metrics at ");
}

static void listener_end(struct listener *listener)
{
	int status;

	assert_int_equal(kill(listener->child, SIGTERM), 0);
	assert_int_equal(waitpid(listener->child, &status, 0), listener->child);
	assert_int_equal(status, 0);
	close(listener->says);
}

static int connect_to(const char *at)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", at);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)))
		fail_msg("%s: %s", at, strerror(errno));
	return fd;
}

/* What is answered to that comes into whole_text */
static void ask(int fd, const char *method, const char *more)
{
	char request[512];
	size_t bytes = 0;
	ssize_t got;
	int len;

	len = snprintf(request, sizeof(request),
		       "%s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s\r\n", method, more);
	assert_int_equal(write(fd, request, (size_t)len), len);
	while ((got = read(fd, whole_text + bytes, sizeof(whole_text) - 1 - bytes)) > 0)
		bytes += (size_t)got;
	assert_int_equal(got, 0);
	whole_text[bytes] = '\0';
	close(fd);
}

static void test_listen(void **state)
{
	struct listener listener;
	char address[400];
	char *body;
	int idle;

	(void)state;
	snprintf(address, sizeof(address), "unix:%s", path);
	listener_start(&listener, address);
	assert_contains(text, address);
	/* One that says nothing keeps nobody waiting */
	idle = connect_to(path);
	ask(connect_to(path), "GET /metrics", "");
	assert_contains(whole_text, "HTTP/1.1 200 OK\r\n");
	assert_contains(whole_text, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	body = strstr(whole_text, "\r\n\r\n");
	assert_non_null(body);
	assert_int_equal(count_series(body + 4),
			 value_of(body + 4, "rdmatensor_scrape_series") + 6);
	ask(connect_to(path), "GET /metrics",
	    "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n");
	assert_contains(whole_text, "Content-Type: application/openmetrics-text; version=1.0.0");
	assert_contains(whole_text, "\n# EOF\n");
	ask(connect_to(path), "HEAD /metrics", "");
	assert_contains(whole_text, "HTTP/1.1 200 OK\r\n");
	assert_null(strstr(whole_text, "# HELP"));
	ask(connect_to(path), "GET /", "");
	assert_contains(whole_text, "HTTP/1.1 404 Not Found\r\n");
	ask(connect_to(path), "DELETE /metrics", "");
	assert_contains(whole_text, "HTTP/1.1 405 Method Not Allowed\r\n");
	assert_contains(whole_text, "Allow: GET, HEAD\r\n");
	/* It is in use */
	assert_int_equal(RUN(cmd_metrics, "--listen", address), EXIT_FAILED);
	assert_contains(messages, "Address already in use: end what listens there");
	listener_end(&listener);
	close(idle);
	assert_int_not_equal(access(path, F_OK), 0);
}

/* A module that cannot be asked is the request's error; the socket that a crash leaves is none */
static void test_listen_again(void **state)
{
	struct listener listener, other;
	char address[400];
	int status;

	(void)state;
	snprintf(address, sizeof(address), "unix:%s", path);
	listener_start(&listener, address);
	kill(listener.child, SIGKILL);
	waitpid(listener.child, &status, 0);
	close(listener.says);
	assert_int_equal(access(path, F_OK), 0);
	module.error = true;
	listener_start(&listener, address);
	ask(connect_to(path), "GET /metrics", "");
	assert_contains(whole_text, "HTTP/1.1 503 Service Unavailable\r\n");
	assert_null(strstr(whole_text, "# HELP"));
	/* Of one that has come in its place it takes nothing away */
	assert_int_equal(unlink(path), 0);
	listener_start(&other, address);
	listener_end(&listener);
	ask(connect_to(path), "GET /metrics", "");
	/* And one that lives is not replaced */
	assert_int_equal(RUN(cmd_metrics, "--listen", address), EXIT_FAILED);
	assert_contains(messages, "Address already in use: end what listens there");
	listener_end(&other);
	assert_int_equal(access(path, F_OK), -1);
	/* Nor is what is no socket */
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(RUN(cmd_metrics, "--listen", address), EXIT_FAILED);
	assert_contains(messages, "File exists: it is no socket");
	assert_int_equal(access(path, F_OK), 0);
	listener_start(&listener, "127.0.0.1:0");
	assert_contains(text, "http://127.0.0.1:");
	listener_end(&listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_latency, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_counters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_openmetrics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_usage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_promtool, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dashboard, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alerts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listen_again, setup, teardown),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}

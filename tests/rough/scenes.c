// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdmatensor/rdmatensor.h>

#include "rough.h"
#include "safetensors/safetensors.h"

/*
 * Those that look at what all do come first: a channel of a client that has ended goes a
 * moment after it. @serve, @perf, @gather, @nodes: a peer; @here: where it listens itself
 */
const struct scene scenes[] = {
	{ .name = "show contexts", .line = "rdmatensor show contexts" },
	{ .name = "show channels", .line = "rdmatensor show channels -j", .quick = true },
	{ .name = "show pools", .line = "rdmatensor show pools -j" },
	{ .name = "show tables", .line = "rdmatensor show tables" },
	{ .name = "show requests", .line = "rdmatensor show requests -j" },
	{ .name = "show params", .line = "rdmatensor show params -v" },
	{ .name = "show params as JSON", .line = "rdmatensor show params -j lanes" },
	{ .name = "set", .line = "rdmatensor set lanes 1" },
	{ .name = "top", .line = "rdmatensor top -d 0.01 -n 1" },
	{ .name = "top as JSON", .line = "rdmatensor top -d 0.01 -n 2 -j", .killed = true },
	{ .name = "metrics", .line = "rdmatensor metrics" },
	{ .name = "monitor", .line = "rdmatensor monitor", .ends = ENDS_HEARD, .killed = true,
	  .quick = true },
	{ .name = "monitor as JSON", .line = "rdmatensor monitor -j", .ends = ENDS_HEARD },
	{ .name = "info", .line = "rdmatensor info" },
	{ .name = "info of a start", .line = "rdmatensor info -S -j" },
	{ .name = "info of a peer", .line = "rdmatensor info @serve", .quick = true },
	{ .name = "doctor", .line = "rdmatensor doctor @perf", .sparse = 4 },
	{ .name = "doctor as JSON", .line = "rdmatensor doctor -j", .sparse = 16 },
	{ .name = "serve", .line = "rdmatensor serve @model --listen @here",
	  .beside = "rdmatensor fetch @here --all --wait 0.5 -o @beside", .ends = ENDS_TOLD,
	  .killed = true, .quick = true },
	{ .name = "perf --server", .line = "rdmatensor perf --server --max-size 64K --listen @here",
	  .ends = ENDS_TOLD, .killed = true, .sparse = 8 },
	{ .name = "gather --server",
	  .line = "rdmatensor gather --server --rows 0:64 --listen @here", .ends = ENDS_TOLD,
	  .killed = true },
	{ .name = "perf", .line = "rdmatensor perf @perf -s 4096 -n 8", .killed = true },
	{ .name = "perf as JSON", .line = "rdmatensor perf @perf -s 512,4096 -n 8 -j" },
	{ .name = "gather", .line = "rdmatensor gather @gather -n 2 -r 16", .killed = true,
	  .quick = true },
	{ .name = "gather as JSON", .line = "rdmatensor gather @gather -n 4 -r 16 -j -k power" },
	{ .name = "ls", .line = "rdmatensor ls @serve", .killed = true },
	{ .name = "ls as JSON", .line = "rdmatensor ls -j @serve l" },
	{ .name = "fetch over a file", .line = "rdmatensor fetch @serve --all -o @output",
	  .writes = WRITES_OVER, .killed = true, .quick = true },
	{ .name = "fetch to a new file",
	  .line = "rdmatensor fetch -j @serve long none -o @output", .writes = WRITES_NEW,
	  .killed = true },
	{ .name = "fetch of slices", .line = "rdmatensor fetch @serve long none --slice long=0:1 -o @output",
	  .writes = WRITES_NEW, .killed = true, .sparse = 4 },
	{ .name = "fetch over a file where files have names",
	  .line = "rdmatensor fetch @serve --all -o @output", .writes = WRITES_OVER,
	  .no_tmpfile = true, .killed = true, .quick = true },
	{ .name = "fetch to a new file where files have names",
	  .line = "rdmatensor fetch @serve --all --alloc --steps 2 -o @output",
	  .writes = WRITES_NEW, .no_tmpfile = true, .killed = true },
	{ .name = "the first program, as publisher", .line = "first", .quick = true },
	{ .name = "the first program, as fetcher", .line = "first @tensor", .quick = true },
	{ .name = "neighbours serve", .line = "neighbours serve @here 0 64",
	  .ends = ENDS_TOLD },
	{ .name = "neighbours sample", .line = "neighbours sample @graph @nodes" },
};

const size_t nr_scenes = sizeof(scenes) / sizeof(scenes[0]);

static const struct {
	const char *word;
	const char *value;
	unsigned int port;
} words[] = {
	{ "@output", OUTPUT, 0 }, { "@model", MODEL, 0 }, { "@graph", GRAPH, 0 },
	{ "@beside", BESIDE, 0 }, { "@address", NULL, 0 }, { "@serve", NULL, 7000 },
	{ "@perf", NULL, 7001 }, { "@gather", NULL, 7002 }, { "@nodes", NULL, 7003 },
	{ "@here", NULL, 7010 }, { "@tensor", "none", 7000 },
};

static const char *const peers[] = {
	"rdmatensor serve @model --listen @serve --steps 2",
	"rdmatensor perf --server --max-size 64K --listen @perf",
	"rdmatensor gather --server --rows 0:64 --listen @gather",
	"neighbours serve @nodes 0 64",
};

#define NR_PEERS (sizeof(peers) / sizeof(peers[0]))

static const char *folder, *preload, *address;
static pid_t pids[NR_PEERS];
static struct rdmatensor *held;


static char *word_of(const char *text)
{
	char *made = NULL;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i].word))
			continue;
		if (words[i].value && !words[i].port)
			return strdup(words[i].value);
		if (!words[i].port)
			return strdup(address);
		/* A tensor's, if there is one */
		if (asprintf(&made, words[i].value ? "%s:%u/%s" : "%s:%u", address, words[i].port,
			     words[i].value) < 0)
			die("asprintf");
		return made;
	}
	return strdup(text);
}

void scene_argv(const char *line, char *argv[ARGS])
{
	char *copy = strdup(line), *save, *at;
	int nr = 0;

	for (at = strtok_r(copy, " ", &save); at; at = strtok_r(NULL, " ", &save))
		argv[nr++] = word_of(at);
	at = argv[0];
	if (asprintf(&argv[0], "%s/%s", folder, at) < 0)
		die("asprintf");
	free(at);
	free(copy);
	argv[nr] = NULL;
}

/* Of no bytes, of some, and of more than one write takes */
static void make_model(void)
{
	struct st_tensor tensors[] = {
		{ .name = "none", .data_type = RDMATENSOR_DT_FLOAT, .ndims = 1 },
		{ .name = "few", .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { 13 } },
		{ .name = "long", .data_type = RDMATENSOR_DT_FLOAT, .ndims = 2, .dims = { 300, 251 } },
	};
	char error[ST_ERROR_MAX];
	struct st_file file;
	uint64_t i;
	int fd;

	if (st_make(tensors, 3, NULL, &file, error, sizeof(error)))
		die(error);
	fd = open(MODEL, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || st_write_header(fd, &file))
		die(MODEL);
	for (i = 0; i < file.data_bytes; i++)
		if (pwrite(fd, &(unsigned char){ (unsigned char)(i * 7 + i / 256) }, 1,
			   (off_t)(st_data_offset(&file) + i)) != 1)
			die(MODEL);
	close(fd);
	st_free(&file);
}

/* A context with a channel, for whoever is to show some */
static void hold(void)
{
	struct rdmatensor_start start;
	char cause[512] = "";
	uint32_t channel;
	char *peer = word_of("@serve");

	rdmatensor_start_init(&start, "held");
	if (rdmatensor_open(NULL, &held) || rdmatensor_start(held, &start) ||
	    rdmatensor_connect(held, peer, NULL, 0, &channel, cause, sizeof(cause)))
		die(*cause ? cause : start.cause);
	free(peer);
}

void scenes_begin(const char *bin, const char *fail, const char *ip)
{
	char *argv[ARGS], word[512];
	struct pollfd ready = { .events = POLLIN };
	FILE *graph;
	size_t i;
	int k;

	folder = bin;
	preload = fail;
	address = ip;
	setenv("ROUGH_PRELOAD", preload, 1);
	if (mkdir(FOLDER, 0755))
		die(FOLDER);
	make_model();
	graph = fopen(GRAPH, "we");
	if (!graph || fputs("63 0\n5 7\n", graph) < 0 || fclose(graph))
		die(GRAPH);
	for (i = 0; i < NR_PEERS; i++) {
		scene_argv(peers[i], argv);
		pids[i] = spawn(argv, NULL, &ready.fd, -1, -1);
		/* Its first word says that it is ready */
		if (poll(&ready, 1, 30000) != 1 || read(ready.fd, word, sizeof(word)) <= 0)
			die(peers[i]);
		for (k = 0; argv[k]; k++)
			free(argv[k]);
	}
	hold();
}

void scenes_end(void)
{
	size_t i;

	rdmatensor_close(held);
	for (i = 0; i < NR_PEERS; i++) {
		kill(pids[i], SIGTERM);
		result(wait_end(pids[i], 30000000000), "ends when it is told: %s", peers[i]);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <rdmatensor/rdmatensor.h>

#include "option_table.h"

#define DIGITS_OF(_number) #_number
#define DIGITS(_number) DIGITS_OF(_number)

const struct command commands[NR_COMMANDS] = {
	[COMMAND_SERVE] = {
		.name = "serve",
		.what = "publish every tensor of a safetensors model",
		.usage =
		"Usage: rdmatensor serve [OPTION]... MODEL\n"
		"Read a safetensors file, or a folder with model.safetensors.index.json and its\n"
		"shards, into a pool and publish every tensor of it by its name, for any number of\n"
		"fetches, until SIGINT or SIGTERM.\n",
	},
	[COMMAND_FETCH] = {
		.name = "fetch",
		.what = "fetch tensors by name into a safetensors file",
		.usage =
		"Usage: rdmatensor fetch [OPTION]... PEER NAME... -o OUT.safetensors\n"
		"       rdmatensor fetch [OPTION]... PEER[,PEER]... --all -o {OUT.safetensors | DIR/}\n"
		"Fetch tensors of a peer by name and write them into a safetensors file, or the\n"
		"shards of a model with their index into a folder.\n"
		"PEER is host, host:port or [v6]:port; the default port is "
		DIGITS(RDMATENSOR_PORT) ".\n"
		"Of several PEERs, each tensor comes from one that has it; they must serve the\n"
		"same content.\n",
	},
	[COMMAND_LS] = {
		.name = "ls",
		.what = "list the tensors that a worker offers",
		.usage =
		"Usage: rdmatensor ls [OPTION]... PEER [PREFIX]\n"
		"List the tensors that a PEER offers, or those of them whose names begin with\n"
		"PREFIX, in the order in which it came to know the names.\n"
		"PEER is host, host:port or [v6]:port; the default port is "
		DIGITS(RDMATENSOR_PORT) ".\n",
	},
	[COMMAND_PERF] = {
		.name = "perf",
		.what = "measure bandwidth and latency between two workers",
		.usage =
		"Usage: rdmatensor perf --server [OPTION]...\n"
		"       rdmatensor perf [OPTION]... PEER\n"
		"Measure how fast tensors of a PEER are fetched. The server has every power of\n"
		"two up to --max-size; give both sides the same --size for others.\n",
	},
	[COMMAND_GATHER] = {
		.name = "gather",
		.what = "measure how fast rows are gathered from several workers",
		.usage =
		"Usage: rdmatensor gather --server --rows START:END [OPTION]...\n"
		"       rdmatensor gather [OPTION]... PEER...\n"
		"Measure how fast rows of a table are gathered that is partitioned over the PEERs,\n"
		"each of which is a server that exports some of the rows. Every row of the last\n"
		"gathers is compared.\n",
	},
	[COMMAND_INFO] = {
		.name = "info",
		.what = "show module, device, channel and counters",
		.usage =
		"Usage: rdmatensor info [OPTION]... [PEER]\n"
		"Show the module, and with --start or a PEER the device that is chosen, the\n"
		"channel to the peer, and the counters.\n",
	},
	[COMMAND_DOCTOR] = {
		.name = "doctor",
		.what = "say what is wrong, and what to do about it",
		.usage =
		"Usage: rdmatensor doctor [OPTION]... [PEER]\n"
		"       rdmatensor doctor --cluster FILE [-j] [-t SEC]\n"
		"Look at all that has to be right for tensors to go over RDMA: module, device file,\n"
		"memory limit, RDMA devices, their ports and GIDs, MTU, a fetch over the device from\n"
		"itself, and with a PEER the route, a channel, and fetches of a short and of a long\n"
		"tensor from it, if it runs `rdmatensor perf --server`; from a `serve`, of its\n"
		"index. Each line is OK, WARN or FAIL, with what to do about it. Exit status 0: all\n"
		"are OK.\n"
		"Or, run once on each host of FILE: try all pairs of them, and measure latency and\n"
		"bandwidth of each pair. Exit status 0: all work, and none is odd.\n",
	},
	[COMMAND_DOMAIN] = {
		.name = "domain",
		.what = "show or end what serve --keep has left",
		.usage =
		"Usage: rdmatensor domain show [-j] SOCKET\n"
		"       rdmatensor domain end SOCKET\n"
		"Show the domain that `rdmatensor serve --keep SOCKET` has left, or end it: its\n"
		"memory is free when the last server that serves from it has ended.\n",
	},
	[COMMAND_SHOW] = {
		.name = "show",
		.what = "show contexts, channels, domains, pools, requests, tensors, tables and parameters",
		.usage =
		"Usage: rdmatensor show {contexts | channels | pools | requests | tensors |\n"
		"                       tables} [-j] [CONTEXT]\n"
		"       rdmatensor show domains [-j]\n"
		"       rdmatensor show params [-j] [-v] [NAME]...\n"
		"Show what all processes of this network namespace do with the module, or one of\n"
		"their contexts; or the parameters that new contexts take. START's fields and the\n"
		"environment override those for one context. Without CAP_NET_ADMIN it is what this\n"
		"user opened, in this PID namespace.\n",
	},
	[COMMAND_TOP] = {
		.name = "top",
		.what = "show the rates of all channels, live",
		.usage =
		"Usage: rdmatensor top [-j] [-d SECONDS] [-n COUNT] [CONTEXT]\n"
		"Show what goes over the channels of this network namespace, or of one context, in\n"
		"each second: fetches and bytes in, served contents and bytes out, messages that\n"
		"had to wait (STALL), fetches that failed (ERR), and how long fetches took. The\n"
		"busiest comes first. q ends it. Without CAP_NET_ADMIN it is what this user opened.\n",
	},
	[COMMAND_METRICS] = {
		.name = "metrics",
		.what = "give counters, histograms and numbers to a monitor",
		.usage =
		"Usage: rdmatensor metrics [--format FORMAT] [--file FILE] [--max-series N]\n"
		"       rdmatensor metrics --listen {ADDR:PORT | unix:PATH} [--max-series N]\n"
		"Print what the contexts, domains and channels of this network namespace have\n"
		"counted, as Prometheus and others read it; or write it to a file for node_exporter,\n"
		"or answer those that ask for /metrics over HTTP, until SIGINT or SIGTERM. Without\n"
		"CAP_NET_ADMIN it is what this user opened, and rdmatensor_scrape_own_only is 1.\n",
	},
	[COMMAND_SET] = {
		.name = "set",
		.what = "set a parameter",
		.usage =
		"Usage: rdmatensor set NAME VALUE\n"
		"Set a parameter of the module: contexts that start from now on take it.\n",
	},
	[COMMAND_MONITOR] = {
		.name = "monitor",
		.what = "print events as they happen",
		.usage =
		"Usage: rdmatensor monitor [-j]\n"
		"Show what happens to the contexts of this network namespace, with the time, until\n"
		"it is interrupted: contexts start and end, channels come up and go down and why,\n"
		"peers misbehave, devices go, requests time out, CONNECT waits for a peer.\n",
	},
};

#define IN(_command) (1u << COMMAND_##_command)

/* Those that open a context of their own */
#define WITH_CONTEXT (IN(SERVE) | IN(FETCH) | IN(LS) | IN(PERF) | IN(GATHER) | IN(INFO) | IN(DOCTOR))
#define WITHOUT_CONTEXT (IN(DOMAIN) | IN(SHOW) | IN(TOP) | IN(METRICS) | IN(SET) | \
			 IN(MONITOR))

#define START_TEXT(_field) ((int64_t)sizeof(((struct rdmatensor_start *)NULL)->_field) - 1)

#define OWN(_commands, _id, _name) \
	.commands = (_commands), .section = SECTION_OWN, .id = OPT_##_id, .name = (_name)
#define DEVICE(_id, _name) \
	.commands = WITH_CONTEXT, .section = SECTION_DEVICE, .id = OPT_##_id, .name = (_name)
#define OUTPUT(_id, _name) \
	.commands = WITH_CONTEXT, .section = SECTION_OUTPUT, .id = OPT_##_id, .name = (_name)
#define SETTING(_param) \
	.arg = "N", .kind = OPTION_PARAM, .param = (_param)

/* In the order of a section's help */
const struct option_row option_rows[] = {
	/* fetch */
	{
		OWN(IN(FETCH), ALL, "all"), .letter = 'a',
		.help = "all tensors that `rdmatensor serve` has there",
	}, {
		OWN(IN(FETCH), OUTPUT, "output"), .letter = 'o',
		.arg = "FILE", .kind = OPTION_TEXT, .words = WORDS_FILES,
		.help = "file to write; with --all also DIR/, for shards as they are",
		.man = "File to write, see OUTPUT FILE; or with --all a folder, DIR/ with a slash "
			"at its end, see SHARDS.",
	}, {
		OWN(IN(FETCH), FILTER, "filter"),
		.arg = "GLOB", .kind = OPTION_OWN,
		.help = "with --all: only tensors whose name matches; repeatable",
		.man = "With --all: fetch only tensors whose name matches this pattern of glob(7), "
			"in which * stands for slashes and points, too. Given several times: those "
			"that match any of them.",
	}, {
		OWN(IN(FETCH), SLICE, "slice"),
		.arg = "NAME=RANGES", .kind = OPTION_OWN,
		.help = "of the tensor NAME only this part: START:STOP of its first\n"
			"dimensions, as w=0:1024,: ; repeatable; not with --all",
		.man = "Of the tensor NAME, which is one of those that are fetched, only a part: of its "
			"first dimensions the ranges START:STOP, separated by commas, of those behind "
			"them all. A side that is left out is the tensor's; a number alone is one element "
			"of a dimension, which stays, with length 1. There is no step, and nothing "
			"counts from the end. No other bytes cross the network; the file has the part as a "
			"tensor of that name. Not with --all.",
	}, {
		OWN(IN(LS), FILTER, "filter"),
		.arg = "GLOB", .kind = OPTION_OWN,
		.help = "only tensors whose name matches; repeatable",
		.man = "List only tensors whose name matches this pattern of glob(7), in which * "
			"stands for slashes and points, too. Given several times: those that match "
			"any of them. A PREFIX is compared by the peer, which then sends no others; "
			"a pattern is compared here.",
	}, {
		OWN(IN(SERVE), FILTER, "filter"),
		.arg = "GLOB", .kind = OPTION_OWN,
		.help = "only tensors whose name matches; repeatable",
		.man = "Publish only tensors whose name matches this pattern of glob(7), in which * "
			"stands for slashes and points, too. Given several times: those that match "
			"any of them.",
	},
	/* serve and fetch */
	{
		OWN(IN(SERVE), STEP, "step"),
		.arg = "S", .kind = OPTION_NUMBER, .most = INT64_MAX / 2, .preset = "0",
		.help = "step number to publish under (default {default})",
	}, {
		OWN(IN(FETCH), STEP, "step"),
		.arg = "S", .kind = OPTION_NUMBER, .most = INT64_MAX / 2, .preset = "0",
		.help = "step number (default {default})",
	}, {
		OWN(IN(SERVE), STEPS, "steps"),
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = 1000000, .preset = "1",
		.help = "publish under N steps from S on (default {default})",
		.man = "Publish under N steps from S on (default {default}). All steps share the "
			"same memory.",
	}, {
		OWN(IN(FETCH), STEPS, "steps"),
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = 1000000, .preset = "1",
		.help = "fetch N steps from S on, write the last (default {default})",
		.man = "Fetch N steps from S on, one after the other, each into cleared memory, "
			"and write the last (default {default}).",
	},
	/* servers, and clients that measure */
	{
		OWN(IN(SERVE), EXIT_AFTER, "exit-after"),
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = INT32_MAX,
		.help = "end when N channels have gone down",
	}, {
		OWN(IN(PERF), SERVER, "server"),
		.help = "be the side that publishes",
	}, {
		OWN(IN(GATHER), SERVER, "server"),
		.help = "be a side that exports rows",
	}, {
		OWN(IN(GATHER), ROWS, "rows"),
		.arg = "START:END", .kind = OPTION_OWN,
		.help = "server: which ones, without END",
		.man = "Server: which rows to export; row END is not one of them.",
	}, {
		OWN(IN(GATHER), ROW_BYTES, "row-bytes"),
		.arg = "N", .kind = OPTION_SIZE, .most = RDMATENSOR_ROW_MAX, .preset = "512",
		.help = "server: of a row, a multiple of 8 (default {default})",
		.man = "Server: bytes of a row, a multiple of 8 (default {default}).",
	}, {
		OWN(IN(PERF) | IN(GATHER), EXIT_AFTER, "exit-after"),
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = INT32_MAX,
		.help = "server: end when N channels have gone down",
	}, {
		OWN(IN(PERF), MODE, "mode"), .letter = 'm',
		.arg = "bw|lat", .kind = OPTION_OWN, .preset = "bw",
		.help = "many in flight, or one at a time (default {default})",
	}, {
		OWN(IN(PERF) | IN(FETCH), MEMORY, "memory"), .letter = 'M',
		.arg = "KIND", .kind = OPTION_OWN, .preset = "kernel",
		.help = "from or into: kernel, anon, memfd, huge, dmabuf (default {default})",
		.man = "What is published from, or fetched into: kernel (pages of the kernel, which "
			"the process maps), anon (anonymous memory of the process, registered in "
			"place), memfd (of memfd_create(2)), huge (of hugetlbfs, in pages of the "
			"default size, of which there must be enough), or dmabuf (of the system's "
			"dma-buf heap, /dev/dma_heap/system) (default {default}).",
	}, {
		OWN(IN(SERVE), MEMORY, "memory"), .letter = 'M',
		.arg = "KIND", .kind = OPTION_OWN, .preset = "kernel",
		.help = "from: kernel, anon, memfd, huge, dmabuf, file (default {default})",
		.man = "What is published from: kernel (pages of the kernel, which the process "
			"maps), anon (anonymous memory of the process, registered in place), memfd "
			"(of memfd_create(2)), huge (of hugetlbfs, in pages of the default size, of "
			"which there must be enough), dmabuf (of the system's dma-buf heap, "
			"/dev/dma_heap/system), or file (the file's own pages in the page "
			"cache: nothing is copied, and the file must not be written to meanwhile) "
			"(default {default}).",
	}, {
		OWN(IN(SERVE), KEEP, "keep"),
		.arg = "SOCKET", .kind = OPTION_TEXT, .words = WORDS_FILES,
		.help = "leave the model in memory; take it up from there;\n"
			"SOCKET `systemd`: the service manager keeps it",
		.man = "Leave the model in memory, published, when the server ends, and take it up "
			"from there when there is one already. With `systemd` for SOCKET the service "
			"manager keeps it; see KEEPING A MODEL.",
	}, {
		OWN(IN(PERF), SIZE, "size"), .letter = 's',
		.arg = "N[,N]...", .kind = OPTION_OWN,
		.help = "bytes of a tensor, as 4K,8M (client: 64K,1M,8M; lat: 4K)",
		.man = "Bytes of a tensor; K, M, G and T stand for powers of 1024 (default "
			"64K,1M,8M; lat: 4K).",
	}, {
		OWN(IN(PERF), MAX_SIZE, "max-size"),
		.arg = "N", .kind = OPTION_SIZE, .most = INT64_C(1) << 40, .preset = "64M",
		.help = "server: largest power of two it has (default {default})",
		.man = "Server: the largest power of two that it publishes (default {default}). "
			"It takes as much memory, or as the largest --size takes.",
	}, {
		OWN(IN(PERF), SETTING, "lanes"), .letter = 'l', SETTING("lanes"),
		.help = "queue pairs of the channel (default: the module's)",
		.man = "Queue pairs of the channel (default: the module's parameter lanes, which is "
			"{default} unless it was set).",
	}, {
		OWN(IN(GATHER), TABLE, "table"),
		.arg = "NAME", .kind = OPTION_OWN, .preset = "rdmatensor.gather",
		.help = "of the table (default {default})",
		.man = "Name of the table (default {default}).",
	}, {
		OWN(IN(GATHER), KIND, "kind"), .letter = 'k',
		.arg = "KIND", .kind = OPTION_OWN, .preset = "random",
		.help = "ids: random, sorted, power: few rows are wanted often,\n"
			"or apart: each row once, and none that are neighbours\n"
			"(default {default})",
		.man = "Which ids: random; sorted: random, in order; power: few of them often; or "
			"apart: each at most once and none beside another, so that each row is a "
			"READ of its own (default {default}).",
	}, {
		OWN(IN(GATHER), IDS, "ids"), .letter = 'r',
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = INT32_MAX,
		.preset = "100000",
		.help = "of one gather (default {default})",
		.man = "Ids of one gather (default {default}).",
	}, {
		OWN(IN(FETCH), IN_FLIGHT, "in-flight"), .letter = 'q',
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = 65536, .preset = "64",
		.help = "fetches at the same time (default {default})",
	}, {
		OWN(IN(PERF), IN_FLIGHT, "in-flight"), .letter = 'q',
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = 65536,
		.help = "fetches at the same time (default 8; lat: 1)",
	}, {
		OWN(IN(GATHER), IN_FLIGHT, "in-flight"), .letter = 'q',
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = 1024, .preset = "2",
		.help = "gathers at the same time (default {default})",
	}, {
		OWN(IN(PERF), BATCH, "batch"),
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = 65536,
		.help = "ends that one system call waits for (default: a\n"
			"quarter of --in-flight)",
		.man = "Completions that one system call waits for (default: a quarter of "
			"--in-flight).",
	}, {
		OWN(IN(PERF), ITERS, "iters"), .letter = 'n',
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = INT64_MAX,
		.help = "fetches to measure",
	}, {
		OWN(IN(GATHER), ITERS, "iters"), .letter = 'n',
		.arg = "N", .kind = OPTION_NUMBER, .least = 1, .most = INT64_MAX,
		.help = "gathers to measure",
	}, {
		OWN(IN(PERF), DURATION, "duration"), .letter = 'D',
		.arg = "SEC", .kind = OPTION_SECONDS, .least = 1, .most = 1000000000, .preset = "2",
		.help = "or time to measure for (default {default})",
		.man = "Time to measure for without --iters (default {default}).",
	}, {
		OWN(IN(GATHER), DURATION, "duration"), .letter = 'D',
		.arg = "SEC", .kind = OPTION_SECONDS, .most = 1000000000, .preset = "2",
		.help = "or time to measure for (default {default})",
		.man = "Time to measure for without --iters (default {default}).",
	}, {
		OWN(IN(FETCH), TIMEOUT, "timeout"), .letter = 't',
		.arg = "SEC", .kind = OPTION_SECONDS, .most = 1000000000, .preset = "30",
		.help = "bound on each fetch, and on connecting again without\n"
			"progress, 0: none (default {default})",
		.man = "Bound on each fetch, and on how long, without any tensor arriving, another "
			"channel is tried after one went down; 0 is no bound (default {default}).",
	}, {
		OWN(IN(LS), TIMEOUT, "timeout"), .letter = 't',
		.arg = "SEC", .kind = OPTION_SECONDS, .most = 1000000000, .preset = "30",
		.help = "bound on the list, 0: none (default {default})",
		.man = "Bound on the whole list, without the time to connect; 0 is no bound "
			"(default {default}).",
	}, {
		OWN(IN(DOCTOR), CLUSTER, "cluster"),
		.arg = "FILE", .kind = OPTION_TEXT, .words = WORDS_FILES,
		.help = "be a rank of the cluster whose hosts FILE has, a line each",
		.man = "Be a rank of the cluster whose hosts FILE has: a line for each, host or host:port, "
			"the same on all. Own rank is the only line with an address of this host, or "
			"RDMATENSOR_RANK. See CLUSTER.",
	}, {
		OWN(IN(DOCTOR), TIMEOUT, "timeout"), .letter = 't',
		.arg = "SEC", .kind = OPTION_SECONDS, .most = 1000000000, .preset = "60",
		.help = "with --cluster: bound on each wait for others, 0: none\n"
			"(default {default}); start all within a quarter of it",
		.man = "With --cluster: bound on each wait for other ranks, all of which have to be "
			"started within a quarter of it; 0 is no bound (default {default}).",
	}, {
		OWN(IN(GATHER), TIMEOUT, "timeout"), .letter = 't',
		.arg = "SEC", .kind = OPTION_SECONDS, .most = 1000000000, .preset = "0",
		.help = "bound on each gather (default {default}: none)",
		.man = "Bound on each gather (default {default}: none). A gather that exceeds it "
			"ends when the device no longer writes to its destination.",
	}, {
		OWN(IN(FETCH), ALLOC, "alloc"),
		.help = "let the kernel find the tensors' places",
		.man = "Let the kernel allocate the tensors' regions in the pool.",
	}, {
		OWN(IN(INFO), START, "start"), .letter = 'S',
		.help = "choose a device, port and GID and show them",
	}, {
		OWN(IN(FETCH) | IN(LS) | IN(PERF) | IN(INFO), PEER_WORKER, "peer-worker"),
		.arg = "NAME", .kind = OPTION_TEXT,
		.help = "name that the PEER must have",
	}, {
		OWN(IN(FETCH) | IN(LS) | IN(PERF) | IN(GATHER), WAIT, "wait"),
		.arg = "SEC", .kind = OPTION_SECONDS, .most = 1000000000,
		.help = "wait so long for a PEER that is not up yet, 0: try once\n"
			"(default: handshake_ms, 10)",
		.man = "Wait that long for a PEER that is not up yet; 0 tries once, which takes "
			"handshake_ms at most where nothing answers (default: the parameter "
			"handshake_ms, which is 10 seconds).",
	},
	/* Commands without a context */
	{
		OWN(IN(TOP), DELAY, "delay"), .letter = 'd',
		.arg = "SECONDS", .kind = OPTION_SECONDS, .least = 10, .most = 3600000,
		.preset = "1",
		.help = "between two samples (default: {default})",
		.man = "Time between two samples (default {default}).",
	}, {
		OWN(IN(TOP), COUNT, "count"), .letter = 'n',
		.arg = "COUNT", .kind = OPTION_NUMBER, .least = 1, .most = INT32_MAX,
		.help = "end after so many",
		.man = "End after COUNT samples.",
	}, {
		OWN(IN(METRICS), FILE, "file"), .letter = 'f',
		.arg = "FILE", .kind = OPTION_TEXT, .words = WORDS_FILES,
		.help = "write to FILE, which is replaced as a whole",
		.man = "Write to FILE, which is replaced as a whole: who reads it finds the former "
			"content or the new one. It keeps its former content if the command fails.",
	}, {
		OWN(IN(METRICS), LISTEN, "listen"),
		.arg = "ADDR", .kind = OPTION_TEXT,
		.help = "answer GET /metrics at ADDR:PORT or unix:PATH",
		.man = "Answer GET /metrics over HTTP at ADDR, ADDR:PORT or :PORT, or at unix:PATH, "
			"a Unix socket; see LISTENING. Without ADDR every IPv4 address; [::] is every "
			"address, of IPv6 too. Without PORT, or with port 0, any free port, which is "
			"printed.",
	}, {
		OWN(IN(METRICS), FORMAT, "format"),
		.arg = "FORMAT", .kind = OPTION_OWN, .preset = "prometheus",
		.help = "prometheus or openmetrics (default {default})",
		.man = "Either prometheus (the text format 0.0.4) or openmetrics (1.0.0) (default "
			"{default}, which node_exporter and `promtool check metrics` read). With "
			"--listen each reader has what it asks for.",
	}, {
		OWN(IN(METRICS), MAX_SERIES, "max-series"),
		.arg = "N", .kind = OPTION_NUMBER, .most = 10000000, .preset = "50000",
		.help = "leave out what goes beyond N series (default {default})",
		.man = "At most N series of contexts, domains and channels (default {default}); see "
			"SERIES.",
	}, {
		OWN(IN(DOMAIN) | IN(SHOW), JSON, "json"), .letter = 'j',
		.help = "JSON on standard output, with all there is",
	}, {
		OWN(IN(TOP), JSON, "json"), .letter = 'j',
		.help = "a line of JSON for each",
		.man = "A line of JSON for each sample.",
	}, {
		OWN(IN(MONITOR), JSON, "json"), .letter = 'j',
		.help = "a line of JSON for each",
		.man = "A line of JSON for each event.",
	}, {
		OWN(IN(SHOW), VERBOSE, "verbose"), .letter = 'v',
		.help = "params: what each is, and its variable",
		.man = "With `params`: also what each parameter does, and its environment "
			"variables.",
	}, {
		OWN(WITHOUT_CONTEXT, HELP, "help"), .letter = 'h',
		.kind = OPTION_HELP,
		.help = "this text",
		.man = "Help on the command.",
	},
	/* Commands with a context */
	{
		DEVICE(DEVICE, "device"), .letter = 'd',
		.arg = "NAME", .kind = OPTION_BYTES, .most = START_TEXT(device_name),
		.words = WORDS_DEVICES, .variable = "RDMA_DEVICE",
		.help = "RDMA device, its network device or IP address\n"
			"(default: the only active one)",
		.man = "RDMA device, its network device, or one of its IP addresses (default: the "
			"only active one).",
	}, {
		DEVICE(SETTING, "port"), .letter = 'i', SETTING("port"),
		.help = "its port, from 1 (default: the first active one)",
	}, {
		DEVICE(SETTING, "gid-index"), .letter = 'x', SETTING("gid_index"),
		.help = "index of its GID (default: found by address)",
	}, {
		DEVICE(LISTEN, "listen"),
		.arg = "ADDR:PORT", .kind = OPTION_TEXT,
		.help = "where peers connect to",
		.man = "Where peers connect to: ADDR, ADDR:PORT or :PORT. Without ADDR every IPv4 "
			"address; [::] is every address, of IPv6 too. Without PORT, or with port 0, "
			"any free port. Without this option a server listens on :"
			DIGITS(RDMATENSOR_PORT) ", doctor on any free port, and the others do not.",
	}, {
		DEVICE(WORKER, "worker"),
		.arg = "NAME", .kind = OPTION_BYTES, .most = START_TEXT(worker),
		.help = "this worker's name (default: host-pid)",
		.man = "This worker's name (default: the host's name and the process id).",
	}, {
		/* That of perf is its own, with a letter */
		.commands = WITH_CONTEXT & ~IN(PERF), .section = SECTION_DEVICE, .id = OPT_SETTING,
		.name = "lanes", SETTING("lanes"),
		.help = "queue pairs of a channel, {range}",
		.man = "Queue pairs of a channel that this side connects, {range}.",
	}, {
		DEVICE(SETTING, "msg-slots"), SETTING("msg_slots"),
		.help = "message slots, a power of two up to {most}",
		.man = "Slots of the message buffers, a power of two up to {most}.",
	}, {
		DEVICE(SETTING, "slot-bytes"), SETTING("msg_slot_bytes"),
		.help = "bytes of a slot, a power of two, {range}",
	}, {
		DEVICE(SETTING, "ack-batch"), SETTING("ack_batch"),
		.help = "messages that one ack reports",
		.man = "Consumed messages that one acknowledgement reports.",
	}, {
		DEVICE(SETTING, "ring-entries"), SETTING("ring_entries"),
		.help = "entries of the completion ring",
	}, {
		DEVICE(SETTING, "stripe-bytes"), SETTING("stripe_bytes"),
		.help = "cut longer tensors over the lanes",
	}, {
		DEVICE(SETTING, "queue-depth"), SETTING("queue_depth"),
		.help = "work requests of a send queue",
		.man = "Work requests of a lane's send queue.",
	}, {
		DEVICE(SETTING, "mtu"), SETTING("mtu"),
		.help = "256, 512, 1024, 2048 or 4096",
		.man = "Path MTU: 256, 512, 1024, 2048 or 4096.",
	}, {
		DEVICE(SETTING, "rnr-retry"), SETTING("rnr_retry"),
		.help = "receiver-not-ready retries, {range}",
	}, {
		DEVICE(SETTING, "gather-lanes"), SETTING("gather_lanes"),
		.help = "queue pairs to each owner of a table, {range}",
	}, {
		DEVICE(SETTING, "cq-mod"), SETTING("cq_mod"),
		.help = "reads of a gather that are posted at once",
		.man = "Reads of a gather that are posted at once, the last of them signalled.",
	}, {
		DEVICE(SETTING, "validate"),
		.kind = OPTION_PARAM, .param = "validate",
		.help = "check every content by CRC32C",
		.man = "Data-validation mode: every content that a peer sends carries a CRC32C, "
			"which is checked on arrival. Loopback fetches and gathered rows are not "
			"checked.",
	}, {
		DEVICE(PARAM, "param"),
		.arg = "NAME=VALUE", .kind = OPTION_OWN,
		.help = "any of rdmatensor-params(7), as sl=0 or mtu=auto",
		.man = "Any parameter of rdmatensor-params(7) but the host's, `max_contexts` and "
			"`memlock`, for this context, including the values 0 and auto where its range "
			"has them.",
	}, {
		DEVICE(DEVICE_FILE, "device-file"),
		.arg = "FILE", .kind = OPTION_TEXT, .words = WORDS_FILES,
		.variable = "RDMATENSOR_DEVICE_PATH",
		.help = "instead of /dev/rdmatensor",
	}, {
		OUTPUT(JSON, "json"), .letter = 'j',
		.help = "JSON on standard output",
		.man = "JSON on standard output, see JSON.",
	}, {
		OUTPUT(VERBOSE, "verbose"), .letter = 'v',
		.help = "notes on standard error",
	}, {
		OUTPUT(HELP, "help"), .letter = 'h',
		.kind = OPTION_HELP,
		.help = "this text",
		.man = "Help on the command.",
	},
};

const size_t nr_option_rows = sizeof(option_rows) / sizeof(option_rows[0]);

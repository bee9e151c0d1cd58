// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files that neighbours is given for a graph. Whatever comes: what is taken is a graph all of
 * whose edges lead to its nodes, and is read as the same when it has been written; batches of
 * it are nodes of it, and fit where they are put.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* Memory of this machine: a node of a great number is an answer, and not the end */
#define MEMORY_MAX (UINT64_C(1) << 20)

static void *allocate(size_t nr, size_t bytes)
{
	return bytes && nr > MEMORY_MAX / bytes ? NULL : calloc(nr, bytes);
}

#define main neighbours_main
#define calloc allocate
#define fopen(_path, _mode) open_graph(_path)
static FILE *open_graph(const char *path);
#include "examples/neighbours.c"
#undef main
#undef calloc
#undef fopen

static const uint8_t *text;
static size_t text_len;
static unsigned int kind_graph, kind_edges, kind_sample, kind_line, kind_memory;

void fuzz_init(void)
{
	kind_graph = to_reach("a graph is taken");
	kind_edges = to_reach("one of several edges is taken");
	kind_sample = to_reach("batches of one");
	kind_line = to_reach("a line is no edge");
	kind_memory = to_reach("a node of a great number");
}

static FILE *open_graph(const char *path)
{
	HOLDS(!strcmp(path, "graph"));
	/* Of no bytes it makes none */
	return text_len ? fmemopen((void *)text, text_len, "r") : tmpfile();
}

/* Numbers in lines of two: as many lines as edges. A zero hides what is behind it in its line */
static void check_text(const struct graph *graph)
{
	uint64_t lines = text[text_len - 1] != '\n';
	size_t i;

	for (i = 0; i < text_len; i++) {
		lines += text[i] == '\n';
		HOLDS(strchr("0123456789 \t\r\n", text[i]) || memchr(text, 0, i));
	}
	HOLDS(lines == graph->edges);
}

static void check_graph(const struct graph *graph)
{
	uint64_t i;

	HOLDS(graph->nodes && graph->nodes <= NODES_MAX && graph->edges);
	HOLDS(!graph->first[0] && graph->first[graph->nodes] == graph->edges);
	for (i = 0; i < graph->nodes; i++)
		HOLDS(graph->first[i] <= graph->first[i + 1]);
	for (i = 0; i < graph->edges; i++)
		HOLDS(graph->to[i] < graph->nodes);
}

static void check_same(const struct graph *graph)
{
	char *out = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&out, &len);
	struct graph again;
	uint64_t i, k;

	HOLDS(file);
	for (i = 0; i < graph->nodes; i++)
		for (k = graph->first[i]; k < graph->first[i + 1]; k++)
			fprintf(file, "%llu\t%llu\n", (unsigned long long)i,
				(unsigned long long)graph->to[k]);
	HOLDS(!fclose(file));
	text = (void *)out;
	text_len = len;
	HOLDS(!read_graph("graph", &again));
	HOLDS(again.nodes == graph->nodes && again.edges == graph->edges);
	HOLDS(!memcmp(again.first, graph->first, (graph->nodes + 1) * sizeof(*graph->first)));
	HOLDS(!memcmp(again.to, graph->to, graph->edges * sizeof(*graph->to)));
	free_graph(&again);
	free(out);
}

static void check_batch(const struct graph *graph)
{
	uint64_t nr = sample(graph, nodes), i;

	HOLDS(nr >= BATCH && nr <= MOST);
	for (i = 0; i < nr; i++)
		HOLDS(nodes[i] < graph->nodes);
	reached(kind_sample);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	static unsigned int nr;
	struct graph graph;
	struct said said;
	int err;

	text = data;
	text_len = size;
	said_begin(&said);
	err = read_graph("graph", &graph);
	said_end(&said);
	if (err) {
		HOLDS(err == -EINVAL || err == -ENOMEM || err == -ENODATA);
		HOLDS((err == -EINVAL) == !!said.err_len);
		if (err != -ENODATA)
			reached(err == -EINVAL ? kind_line : kind_memory);
	} else {
		reached(kind_graph);
		if (graph.edges > 1)
			reached(kind_edges);
		check_text(&graph);
		check_graph(&graph);
		check_same(&graph);
		/* They take long: of some */
		if (nr++ % 64 == 0)
			check_batch(&graph);
		free_graph(&graph);
	}
	said_free(&said);
}

void fuzz_seeds(void)
{
	static const char *const graphs[] = {
		"", "0 1\n", "0 1\n1 0\n2 2\n", "0\t1\r\n 3  2\t\n", "7 7", "-1 0\n",
		"-18446744073709551615 0\n",
		"0 4294967295\n",
		"4294967296 0\n", "0 18446744073709551616\n", "1\n", "1 2 3\n", "\n", "a b\n",
		"0000000000000000000000000000000000000000000000000000000000000000000000000001 2\n",
		"100000 100000\n0 99999\n", "0 0\n0 1\n0 2\n0 3\n0 4\n5 0\n5 1\n9 5\n9 0\n",
	};
	size_t i;

	for (i = 0; i < NR(graphs); i++)
		seed(graphs[i], strlen(graphs[i]));
	seed("0 1\0\n2 3\n", 9);
}

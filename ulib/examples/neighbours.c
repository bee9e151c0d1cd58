/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Neighbour sampling, as graph neural networks train with it: of each node of a batch some
 * neighbours, of those some, and the features of all of them, which are partitioned over
 * several workers.
 *
 *	neighbours serve ADDRESS START END	features of nodes START..END - 1
 *	neighbours sample GRAPH PEER...		batches of GRAPH (see debian-graph)
 *
 * Every row that was gathered is compared with what the features of its node must be.
 */
#include <rdmatensor/rdmatensor.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEATURES 128
#define ROW (FEATURES * sizeof(float))
#define BATCH 512
#define BATCHES 20
#define HOPS 2
#define FANOUT 10
/* A batch with all that is sampled of it */
#define MOST (BATCH * (1 + FANOUT + FANOUT * FANOUT))
/* A graph has fewer */
#define NODES_MAX (1ull << 32)

static float feature(uint64_t node, unsigned int i)
{
	return (float)((node * 2654435761u + i * 40503u) % 65536) / 65536;
}

static int fail(const char *what, int err, const char *cause)
{
	fprintf(stderr, "neighbours: %s: %s\n", what, cause && *cause ? cause : strerror(-err));
	return 1;
}

static int serve(const char *listen, uint64_t start, uint64_t end)
{
	struct rdmatensor_start arg;
	struct rdmatensor_pool pool;
	struct rdmatensor *rt;
	uint64_t at, node;
	uint32_t table;
	unsigned int i;
	sigset_t set;
	float *rows;
	int err;

	if (start >= end || end > NODES_MAX)
		return fail("serve", -EINVAL, "give START before END, below 2^32");
	rdmatensor_start_init(&arg, NULL);
	err = rdmatensor_start_listen(&arg, listen, arg.cause, sizeof(arg.cause));
	if (err || (err = rdmatensor_open(NULL, &rt)) || (err = rdmatensor_start(rt, &arg)))
		return fail("start", err, arg.cause);
	/* What is exported is whole pages */
	if ((err = rdmatensor_pool_create_peers(rt, (end - start) * ROW + 4095,
						RDMATENSOR_POOL_PEERS_READ, &pool)) ||
	    (err = rdmatensor_pool_alloc(rt, &pool, pool.bytes, &at)))
		return fail("pool", err, NULL);
	rows = (void *)((char *)pool.base + at);
	for (node = start; node < end; node++)
		for (i = 0; i < FEATURES; i++)
			rows[(node - start) * FEATURES + i] = feature(node, i);
	err = rdmatensor_table_export(rt, "features", &pool, at, start, end, ROW, 0,
				      RDMATENSOR_DT_FLOAT, &table);
	if (err)
		return fail("export", err, NULL);
	/* From the first word on */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("serving the features of nodes %llu..%llu\n", (unsigned long long)start,
	       (unsigned long long)end - 1);
	if (fflush(stdout))
		return fail("stdout", -errno, NULL);
	sigwait(&set, &err);
	rdmatensor_close(rt);
	return 0;
}

/* Neighbours of node n are to[first[n]] to to[first[n + 1] - 1] */
struct graph {
	uint64_t nodes;
	uint64_t edges;
	uint64_t *first;
	uint64_t *to;
};

static void free_graph(struct graph *graph)
{
	free(graph->first);
	free(graph->to);
}

/* One of both ends. 0, or -1 at the end, or a negative errno; -EINVAL: no line of a graph */
static int read_edge(FILE *file, uint64_t *from, uint64_t *to)
{
	char line[64], *second, *end;
	size_t len = 0;
	int c;

	while (len < sizeof(line) - 1 && (c = getc(file)) != EOF) {
		line[len++] = (char)c;
		if (c == '\n')
			break;
	}
	line[len] = '\0';
	if (ferror(file))
		return -errno;
	if (!len)
		return -1;
	/* Longer than two numbers are; or with a zero, or a sign, which strtoull() takes */
	if ((line[len - 1] != '\n' && !feof(file)) ||
	    strspn(line, "0123456789 \t\r\n") != len)
		return -EINVAL;
	*from = strtoull(line, &second, 10);
	*to = strtoull(second, &end, 10);
	return second != line && end != second && !end[strspn(end, " \t\r\n")] &&
	       *from < NODES_MAX && *to < NODES_MAX ? 0 : -EINVAL;
}

/* Pairs of both ends, and the number of nodes */
static int read_edges(FILE *file, struct graph *graph, uint64_t **edges)
{
	uint64_t room = 0, *more, edge[2] = { 0 };
	int err;

	while (!(err = read_edge(file, &edge[0], &edge[1]))) {
		if (graph->edges == room) {
			room = room ? 2 * room : 1024;
			more = reallocarray(*edges, room, sizeof(edge));
			if (!more)
				return -ENOMEM;
			*edges = more;
		}
		memcpy(&(*edges)[2 * graph->edges++], edge, sizeof(edge));
		if (edge[0] >= graph->nodes)
			graph->nodes = edge[0] + 1;
		if (edge[1] >= graph->nodes)
			graph->nodes = edge[1] + 1;
	}
	if (err == -EINVAL)
		fprintf(stderr, "neighbours: line %llu is no pair of nodes below %llu\n",
			(unsigned long long)graph->edges + 1, NODES_MAX);
	return err != -1 ? err : graph->edges ? 0 : -ENODATA;
}

/* The same, by their first ends */
static int index_edges(struct graph *graph, const uint64_t *edges)
{
	uint64_t *next = calloc(graph->nodes + 1, sizeof(*next)), i;

	graph->first = calloc(graph->nodes + 1, sizeof(*graph->first));
	graph->to = calloc(graph->edges, sizeof(*graph->to));
	if (!graph->first || !graph->to || !next) {
		free(next);
		return -ENOMEM;
	}
	for (i = 0; i < graph->edges; i++)
		graph->first[edges[2 * i] + 1]++;
	for (i = 0; i < graph->nodes; i++)
		graph->first[i + 1] += graph->first[i];
	memcpy(next, graph->first, graph->nodes * sizeof(*next));
	for (i = 0; i < graph->edges; i++)
		graph->to[next[edges[2 * i]]++] = edges[2 * i + 1];
	free(next);
	return 0;
}

static int read_graph(const char *path, struct graph *graph)
{
	uint64_t *edges = NULL;
	FILE *file = fopen(path, "r");
	int err;

	memset(graph, 0, sizeof(*graph));
	if (!file)
		return -errno;
	err = read_edges(file, graph, &edges);
	fclose(file);
	if (!err)
		err = index_edges(graph, edges);
	free(edges);
	if (err)
		free_graph(graph);
	return err;
}

static uint64_t random_state = 88172645463325252u;

/* 0 to most - 1; 0 of nothing */
static uint64_t random_below(uint64_t most)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return most ? random_state % most : 0;
}

/* A batch and its neighbours, hop by hop. Returns how many nodes */
static uint64_t sample(const struct graph *graph, uint64_t *batch)
{
	uint64_t nr = BATCH, begin = 0, end, i, degree;
	int hop, k;

	for (i = 0; i < BATCH; i++)
		batch[i] = random_below(graph->nodes);
	for (hop = 0; hop < HOPS; hop++, begin = end) {
		end = nr;
		for (i = begin; i < end; i++) {
			degree = graph->first[batch[i] + 1] - graph->first[batch[i]];
			for (k = 0; degree && k < FANOUT; k++)
				batch[nr++] = graph->to[graph->first[batch[i]] +
							random_below(degree)];
		}
	}
	return nr;
}

static int check(const float *rows, const uint64_t *batch, uint64_t nr)
{
	uint64_t i;
	unsigned int k;

	for (i = 0; i < nr; i++)
		for (k = 0; k < FEATURES; k++)
			if (rows[i * FEATURES + k] != feature(batch[i], k)) {
				fprintf(stderr, "neighbours: feature %u of node %llu is wrong\n", k,
					(unsigned long long)batch[i]);
				return 1;
			}
	return 0;
}

/* What one batch may need; its nodes */
static uint64_t nodes[MOST];
static uint32_t channels[RDMATENSOR_OWNERS_MAX];

static int train(const struct graph *graph, char **peers, int nr_peers)
{
	uint64_t rows = 0, at, nr, begun, spent = 0;
	struct rdmatensor_table_open open = { 0 };
	struct rdmatensor_start start;
	struct rdmatensor_pool pool;
	struct rdmatensor_cqe cqe;
	struct rdmatensor *rt;
	int err, i;

	if (nr_peers > RDMATENSOR_OWNERS_MAX)
		return fail("owners", -EUSERS, "there are more than one table can have");
	rdmatensor_start_init(&start, NULL);
	if ((err = rdmatensor_open(NULL, &rt)) || (err = rdmatensor_start(rt, &start)))
		return fail("start", err, start.cause);
	for (i = 0; i < nr_peers; i++)
		if ((err = rdmatensor_connect(rt, peers[i], NULL, 0, &channels[i], start.cause,
					      sizeof(start.cause))))
			return fail(peers[i], err, start.cause);
	if ((err = rdmatensor_table_open(rt, "features", channels, (unsigned int)nr_peers, &open)))
		return fail("features", err, open.cause);
	if (open.out_rows < graph->nodes)
		return fail("features", -ERANGE, "there are fewer of them than the graph has nodes");
	if ((err = rdmatensor_pool_create(rt, MOST * ROW, &pool)) ||
	    (err = rdmatensor_pool_alloc(rt, &pool, MOST * ROW, &at)))
		return fail("pool", err, NULL);
	for (i = 0; i < BATCHES; i++) {
		nr = sample(graph, nodes);
		begun = rdmatensor_now_ns();
		err = rdmatensor_gather(rt, open.out_table, nodes, nr, &pool, at, nr * ROW,
					rdmatensor_deadline_ms(60000), &cqe);
		if (err)
			return fail("gather", err, !cqe.type ? NULL :
				    rdmatensor_cqe_text(&cqe, start.cause, sizeof(start.cause)));
		spent += rdmatensor_now_ns() - begun;
		rows += nr;
		if (check((void *)((char *)pool.base + at), nodes, nr))
			return 1;
	}
	printf("graph of %llu nodes and %llu edges: %d batches, %llu rows, all right, %.0f rows/s\n",
	       (unsigned long long)graph->nodes, (unsigned long long)graph->edges, BATCHES,
	       (unsigned long long)rows, (double)rows / ((double)spent / 1e9));
	rdmatensor_close(rt);
	return 0;
}

int main(int argc, char **argv)
{
	struct graph graph;
	int err;

	if (argc == 5 && !strcmp(argv[1], "serve"))
		return serve(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	if (argc >= 4 && !strcmp(argv[1], "sample")) {
		err = read_graph(argv[2], &graph);
		if (err)
			return fail(argv[2], err, NULL);
		err = train(&graph, argv + 3, argc - 3);
		free_graph(&graph);
		return err;
	}
	fprintf(stderr, "Usage: neighbours serve ADDRESS START END\n"
			"       neighbours sample GRAPH PEER...\n");
	return 2;
}

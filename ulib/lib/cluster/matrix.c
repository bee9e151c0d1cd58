// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a check has found, as text: for people, so of many ranks only those are shown that have to
 * do with a pair that does not work, and of many pairs some.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

/* Ranks of the table: it is as wide as a terminal */
#define RANKS_SHOWN 24
/* Pairs of a line */
#define PAIRS_SHOWN 8

/**
 * struct matrix - what is shown
 * @cluster: whose
 * @errors: of a check
 * @size: number of ranks
 * @bad: of each rank, how many pairs do not work that it is one of
 * @pairs: that do not work, or are not known to
 */
struct matrix {
	struct rdmatensor_cluster *cluster;
	const int *errors;
	unsigned int size;
	unsigned int *bad;
	unsigned int pairs;
};

static int error_of(const struct matrix *matrix, unsigned int from, unsigned int to)
{
	return matrix->errors[(size_t)from * matrix->size + to];
}

static void count(struct matrix *matrix)
{
	unsigned int from, to;

	for (from = 0; from < matrix->size; from++) {
		for (to = 0; to < matrix->size; to++) {
			if (!error_of(matrix, from, to))
				continue;
			matrix->bad[from]++;
			matrix->bad[to]++;
			matrix->pairs++;
		}
	}
}

static char sign_of(const struct matrix *matrix, unsigned int from, unsigned int to)
{
	int err = error_of(matrix, from, to);

	if (from == to)
		return '-';
	return !err ? '.' : err == -ENODATA ? '?' : 'X';
}

static void table(const struct matrix *matrix, FILE *file)
{
	unsigned int shown[RANKS_SHOWN], nr = 0, all = 0, rank, from, to;

	for (rank = 0; rank < matrix->size; rank++) {
		if (!matrix->bad[rank])
			continue;
		if (nr < RANKS_SHOWN)
			shown[nr++] = rank;
		all++;
	}
	fprintf(file, "\n  from \\ to");
	for (to = 0; to < nr; to++)
		fprintf(file, " %5u", shown[to]);
	for (from = 0; from < nr; from++) {
		fprintf(file, "\n  %9u", shown[from]);
		for (to = 0; to < nr; to++)
			fprintf(file, " %5c", sign_of(matrix, shown[from], shown[to]));
	}
	fprintf(file, "\n  (. works, X does not, ? is not known");
	if (all > nr)
		fprintf(file, "; %u more ranks have such pairs", all - nr);
	else if (all < matrix->size)
		fprintf(file, "; the other ranks have no such pairs");
	fprintf(file, ")\n");
}

static const char *remedy(int err)
{
	switch (err) {
	case -ENODATA:
		return "the first has not told: it has died, hangs, is reached by nobody, or its own check was ended";
	case -ETIMEDOUT:
		return "the second hangs, has not opened the cluster, or packets are lost: `rdmatensor doctor ADDRESS` at the first";
	case -EADDRINUSE:
		return "another worker answers at the second's address: a rank with another number or of another job, or none at all. Compare what tells the two who is where (TF_CONFIG, the file of hosts), and look what uses the port";
	case -ECONNREFUSED:
		return "the second does not run, or listens elsewhere: look for its own error";
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -EXDEV:
		return "there is no way from the first's RDMA device to that address: name one of the second's RDMA device";
	case -EADDRNOTAVAIL:
		return "the second's host name does not resolve at the first (correct it, or write an address), or the first's RDMA device has no way to that address: name one of the second's RDMA device";
	case -EBADMSG:
		return "what came was not what was sent: do not use that path";
	case -ENOENT:
		return "the second has left";
	case -EREMOTEIO:
		return "the second, or the first itself, has aborted step 0, by which ranks know each other: abort others";
	default:
		return "`rdmatensor doctor ADDRESS` at the first says more";
	}
}

/* All pairs of one kind */
static void kind(const struct matrix *matrix, FILE *file, int err)
{
	unsigned int from, to, nr = 0;

	fprintf(file, "  %s:", err == -ENODATA ? "Not known" : strerror(-err));
	for (from = 0; from < matrix->size; from++) {
		for (to = 0; to < matrix->size; to++) {
			if (error_of(matrix, from, to) != err)
				continue;
			if (nr++ < PAIRS_SHOWN)
				fprintf(file, " %u->%u", from, to);
		}
	}
	if (nr > PAIRS_SHOWN)
		fprintf(file, " and %u more", nr - PAIRS_SHOWN);
	fprintf(file, ": %s\n", remedy(err));
}

/* True: no pair before this one is of its kind */
static bool is_first(const struct matrix *matrix, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++)
		if (matrix->errors[i] == matrix->errors[at])
			return false;
	return true;
}

static void kinds(const struct matrix *matrix, FILE *file)
{
	size_t all = (size_t)matrix->size * matrix->size, i;
	/* Of one kind there are runs, and only their beginnings are looked for */
	int last = 0;

	for (i = 0; i < all; i++) {
		if (matrix->errors[i] && matrix->errors[i] != last && is_first(matrix, i))
			kind(matrix, file, matrix->errors[i]);
		if (matrix->errors[i])
			last = matrix->errors[i];
	}
}

/* Of whom no pair works, it is likely the one that is wrong */
static void lost(const struct matrix *matrix, FILE *file)
{
	unsigned int rank, nr = 0;
	char said[SAID_ROOM];

	for (rank = 0; rank < matrix->size; rank++) {
		if (matrix->bad[rank] < 2 * (matrix->size - 1))
			continue;
		if (nr++ < PAIRS_SHOWN)
			fprintf(file, "  no pair of %s works\n",
				cluster_said(matrix->cluster, rank, said));
	}
	if (nr > PAIRS_SHOWN)
		fprintf(file, "  nor of %u other ranks\n", nr - PAIRS_SHOWN);
}

char *rdmatensor_cluster_matrix(struct rdmatensor_cluster *cluster, const int *errors,
				unsigned int size)
{
	struct matrix matrix = { .cluster = cluster, .errors = errors, .size = size };
	unsigned int all = size * (size - 1), nr = rdmatensor_cluster_size(cluster);
	char *text = NULL;
	size_t len;
	FILE *file;

	node_clear_error();
	/* They never get fewer */
	if (!size || size > nr) {
		node_fail(-ERANGE, "cluster: the matrix: there are %u ranks, and it is of %u: give what rdmatensor_cluster_check() had",
			  nr, size);
		return NULL;
	}
	matrix.bad = calloc(matrix.size, sizeof(*matrix.bad));
	file = matrix.bad ? open_memstream(&text, &len) : NULL;
	if (file) {
		count(&matrix);
		fprintf(file, "%u of %u pairs of %u ranks work%s\n", all - matrix.pairs, all, matrix.size,
			matrix.pairs ? ":" : "");
		if (matrix.pairs) {
			table(&matrix, file);
			lost(&matrix, file);
			kinds(&matrix, file);
		}
		if (fclose(file)) {
			free(text);
			text = NULL;
		}
	}
	free(matrix.bad);
	if (!text)
		node_fail(-ENOMEM, "cluster: the matrix: out of memory");
	return text;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each rank of a job offers 1 MB for each other one, and gets what the others have for it. Every
 * byte is compared.
 *
 *	mpirun -n 8 alltoall [STEPS [TIMEOUT_MS]]	or by srun, torchrun, TF_CONFIG, RDMATENSOR_HOSTS
 *
 * First it checks that each pair of ranks works, and rank 0 prints what does not, as does each that
 * has not reached it.
 */
#include <rdmatensor/cluster.h>

#include <stdio.h>
#include <stdlib.h>

#define BYTES (1u << 20)

static struct rdmatensor_cluster *cluster;
static unsigned int rank, size;
/* What this rank offers, to each */
static unsigned char *parts;

static int fail(void)
{
	fprintf(stderr, "alltoall: rank %u: %s\n", rank, rdmatensor_node_error());
	return 1;
}

static unsigned char byte_of(unsigned int from, unsigned int to, int64_t step, size_t at)
{
	return (unsigned char)(from * 31 + to * 57 + (unsigned int)step * 13 + at * 7 + (at >> 8));
}

/* Return: 0; 1: a pair does not work, or the check failed itself */
static int check(void)
{
	int *errors = calloc((size_t)size * size, sizeof(*errors)), bad = -1;
	char *text = NULL;

	if (errors)
		bad = rdmatensor_cluster_check(cluster, errors, size);
	if (bad >= 0)
		text = rdmatensor_cluster_matrix(cluster, errors, size);
	/* All have found the same, unless they do not reach each other: one is enough that says it */
	if (text && (rank == 0 || errors[(size_t)rank * size])) {
		printf("%s", text);
		fflush(stdout);
	} else if (bad > 0) {
		fprintf(stderr, "alltoall: rank %u: %d pairs do not work: rank 0 says which\n",
			rank, bad);
	}
	free(text);
	free(errors);
	return bad < 0 ? fail() : bad > 0;
}

static int offer_all(int64_t step)
{
	struct rdmatensor_node *node = rdmatensor_cluster_node(cluster);
	struct rdmatensor_tensor tensor = {
		.step = step, .data_type = RDMATENSOR_DT_UINT8, .ndims = 1, .dims = { BYTES },
	};
	unsigned int to;
	char name[32];
	size_t i;

	/* Offered as it is, and filled anew in the next step */
	if (!parts)
		parts = rdmatensor_node_alloc(node, (uint64_t)size * BYTES);
	if (!parts)
		return fail();
	for (to = 0; to < size; to++) {
		tensor.data = parts + (size_t)to * BYTES;
		for (i = 0; i < BYTES; i++)
			parts[(size_t)to * BYTES + i] = byte_of(rank, to, step, i);
		snprintf(name, sizeof(name), "to.%u", to);
		if (rdmatensor_offer(node, name, &tensor))
			return fail();
	}
	return 0;
}

/* After the barrier nobody reads them any more */
static int withdraw_all(int64_t step)
{
	struct rdmatensor_node *node = rdmatensor_cluster_node(cluster);
	unsigned int to;
	char name[32];

	for (to = 0; to < size; to++) {
		snprintf(name, sizeof(name), "to.%u", to);
		if (rdmatensor_withdraw_offer(node, name, step))
			return fail();
	}
	return 0;
}

static int get_all(int64_t step)
{
	struct rdmatensor_node *node = rdmatensor_cluster_node(cluster);
	unsigned int distance, from;
	const char *name;
	char text[32];
	size_t i;

	snprintf(text, sizeof(text), "to.%u", rank);
	name = text;
	/* Not all of the same one at the same time */
	for (distance = 0; distance < size; distance++) {
		struct rdmatensor_tensor tensor = { .step = step };
		const unsigned char *part;

		from = (rank + distance) % size;
		if (rdmatensor_cluster_get_many(cluster, from, &name, &tensor, 1))
			return fail();
		part = tensor.data;
		for (i = 0; i < BYTES; i++) {
			if (tensor.bytes == BYTES && part[i] == byte_of(from, rank, step, i))
				continue;
			fprintf(stderr, "alltoall: rank %u: byte %zu of rank %u, step %lld, is wrong\n",
				rank, i, from, (long long)step);
			return 1;
		}
		rdmatensor_node_free(node, tensor.data);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct rdmatensor_cluster_options options = {
		.timeout_ms = argc > 2 ? atoll(argv[2]) : 0,
	};
	int64_t step, steps = argc > 1 ? atoll(argv[1]) : 1;
	uint64_t begun, ns = 0;
	int failed;

	if (rdmatensor_cluster_open(&cluster, &options)) {
		fprintf(stderr, "alltoall: %s\n", rdmatensor_node_error());
		return 1;
	}
	rank = rdmatensor_cluster_rank(cluster);
	size = rdmatensor_cluster_size(cluster);
	failed = check();
	for (step = 0; !failed && step < steps; step++) {
		failed = offer_all(step);
		begun = rdmatensor_now_ns();
		failed = failed || get_all(step);
		ns += rdmatensor_now_ns() - begun;
		/* Nobody goes on, or leaves, before all have all */
		failed = failed || (rdmatensor_cluster_barrier(cluster) ? fail() : 0);
		failed = failed || withdraw_all(step);
	}
	if (!failed && rank == 0)
		printf("%u ranks: %lld steps of %u MB each, all right, %.0f MB/s at rank 0\n", size,
		       (long long)steps, size, (double)steps * size * BYTES / ((double)(ns ? ns : 1) / 1000));
	rdmatensor_cluster_close(cluster);
	return failed;
}

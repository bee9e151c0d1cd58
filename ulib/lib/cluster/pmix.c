// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PMIx: what mpirun and srun --mpi=pmix tell the processes that they start. The address is put, and
 * a fence that nobody waits for in the call exchanges it: who looks for a rank waits for the
 * fence's end. PMIx tells fences apart by who takes part, and counts who has come to each: this one
 * is of the job as a whole, as MPI_Init's is. It cannot name the ranks one by one to be another one, as
 * slurm's server (22.05) fails where a fence does.
 *
 * libpmix is loaded when a program asks for it, so that the library does not depend on it: what it
 * is built with is the header. A process that uses MPI has it already, and PMIx counts who uses it.
 *
 * Ownership: struct pmix lives until the fence has ended, or as long as the process where it never
 * does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster.h"

static bool is_there(void)
{
	return cluster_env("PMIX_NAMESPACE") && cluster_env("PMIX_RANK");
}

#ifdef HAVE_PMIX
#include <pmix.h>

#define LIBRARY "libpmix.so.2"
#define ADDRESS_KEY "rdmatensor.address"

enum fence {
	FENCE_NONE,
	FENCE_BEGUN,
	FENCE_OVER,
	FENCE_ABANDONED,
};

/**
 * struct pmix - PMIx, as this process uses it
 * @library: of dlopen()
 * @self: this process
 * @fenced: is posted when the fence has ended, and by each who has waited for it
 * @fence_status: how
 * @fence: where it is: who is the last one to need the struct gives it back
 * @init: and the others: libpmix's functions
 */
struct pmix {
	void *library;
	pmix_proc_t self;
	sem_t fenced;
	pmix_status_t fence_status;
	enum fence fence;
	typeof(PMIx_Init) *init;
	typeof(PMIx_Finalize) *finalize;
	typeof(PMIx_Put) *put;
	typeof(PMIx_Commit) *commit;
	typeof(PMIx_Fence_nb) *fence_nb;
	typeof(PMIx_Get) *get;
	typeof(PMIx_Error_string) *error_string;
};

static int failed(const struct pmix *pmix, int err, const char *what, pmix_status_t status)
{
	return node_fail(err, "cluster: pmix: %s: %s: is this process started by mpirun, or by srun --mpi=pmix?",
			 what, pmix->error_string(status));
}

static int load(struct pmix *pmix)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "PMIx_Init", &pmix->init },
		{ "PMIx_Finalize", &pmix->finalize },
		{ "PMIx_Put", &pmix->put },
		{ "PMIx_Commit", &pmix->commit },
		{ "PMIx_Fence_nb", &pmix->fence_nb },
		{ "PMIx_Get", &pmix->get },
		{ "PMIx_Error_string", &pmix->error_string },
	};
	void *function;
	size_t i;

	/* For components that it loads itself, and which want its symbols */
	pmix->library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
	if (!pmix->library)
		return node_fail(-ELIBACC, "cluster: pmix: %s: install libpmix (Debian: libpmix2)", dlerror());
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		function = dlsym(pmix->library, functions[i].name);
		if (!function)
			return node_fail(-ELIBACC, "cluster: pmix: %s has no %s: install another libpmix", LIBRARY,
					 functions[i].name);
		memcpy(functions[i].to, &function, sizeof(function));
	}
	return 0;
}

/*
 * What @value has and the value itself are the caller's to free; libpmix allocates them by malloc()
 */
static pmix_status_t get(struct pmix *pmix, pmix_rank_t rank, const char *key, pmix_value_t **value)
{
	pmix_proc_t proc = { .rank = rank };

	memcpy(proc.nspace, pmix->self.nspace, sizeof(proc.nspace));
	*value = NULL;
	return pmix->get(&proc, key, NULL, 0, value);
}

static int job_size(struct pmix *pmix, unsigned int *size)
{
	pmix_value_t *value;
	pmix_status_t status;
	int err = 0;

	status = get(pmix, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &value);
	if (status != PMIX_SUCCESS)
		return failed(pmix, -EPROTO, "the number of ranks", status);
	if (value->type == PMIX_UINT32)
		*size = value->data.uint32;
	else
		err = node_fail(-EPROTO, "cluster: pmix: the number of ranks is of PMIx's type %d, not of %d: use another libpmix",
				(int)value->type, PMIX_UINT32);
	free(value);
	return err;
}

static void forget(struct pmix *pmix)
{
	sem_destroy(&pmix->fenced);
	free(pmix);
}

static int find(struct rdmatensor_cluster *cluster)
{
	struct pmix *pmix = calloc(1, sizeof(*pmix));
	pmix_status_t status;
	unsigned int size = 0;
	int err;

	if (!pmix)
		return node_fail(-ENOMEM, "cluster: pmix: out of memory");
	sem_init(&pmix->fenced, 0, 0);
	err = load(pmix);
	if (!err) {
		status = pmix->init(&pmix->self, NULL, 0);
		if (status != PMIX_SUCCESS)
			err = failed(pmix, -EPROTO, "it does not begin", status);
	}
	if (err) {
		forget(pmix);
		return err;
	}
	cluster->source_data = pmix;
	err = job_size(pmix, &size);
	if (err)
		return err;
	cluster->rank = pmix->self.rank;
	if (cluster->rank >= size)
		return node_fail(-ERANGE, "cluster: pmix: rank %u is none of %u ranks", cluster->rank, size);
	cluster->job = strndup(pmix->self.nspace, sizeof(pmix->self.nspace));
	if (!cluster->job)
		return node_fail(-ENOMEM, "cluster: pmix: out of memory");
	return cluster_members_make(&cluster->members, "pmix", size);
}

/* A thread of libpmix's */
static void fenced(pmix_status_t status, void *arg)
{
	struct pmix *pmix = arg;

	pmix->fence_status = status;
	if (__atomic_exchange_n(&pmix->fence, FENCE_OVER, __ATOMIC_ACQ_REL) == FENCE_ABANDONED)
		forget(pmix);
	else
		sem_post(&pmix->fenced);
}

static int publish(struct rdmatensor_cluster *cluster, const char *address)
{
	struct pmix *pmix = cluster->source_data;
	pmix_value_t value = { .type = PMIX_STRING };
	pmix_info_t collect = { .key = PMIX_COLLECT_DATA };
	pmix_status_t status;

	collect.value.type = PMIX_BOOL;
	collect.value.data.flag = true;
	/* It is only read: libpmix makes a copy */
	value.data.string = (char *)(uintptr_t)address;
	status = pmix->put(PMIX_GLOBAL, ADDRESS_KEY, &value);
	if (status == PMIX_SUCCESS)
		status = pmix->commit();
	if (status != PMIX_SUCCESS)
		return failed(pmix, -EPROTO, "leaving the address", status);
	/* Before: it may be over before the call returns */
	pmix->fence = FENCE_BEGUN;
	status = pmix->fence_nb(NULL, 0, &collect, 1, fenced, pmix);
	/* It has ended already, and nobody is called */
	if (status == PMIX_OPERATION_SUCCEEDED) {
		fenced(PMIX_SUCCESS, pmix);
		return 0;
	}
	if (status == PMIX_SUCCESS)
		return 0;
	pmix->fence = FENCE_NONE;
	return failed(pmix, -EPROTO, "the fence", status);
}

static int lookup(struct rdmatensor_cluster *cluster, unsigned int rank, uint64_t deadline_ns,
		  char address[ADDRESS_ROOM])
{
	struct pmix *pmix = cluster->source_data;
	pmix_value_t *value;
	pmix_status_t status;
	int err;

	err = node_turn(&pmix->fenced, deadline_ns);
	if (err == -EINTR)
		return node_interrupted("cluster", "pmix");
	if (err)
		return node_fail(err, "cluster: pmix: not all ranks have come to the fence within the timeout: look which of them hang or have not started");
	/* For the next one who looks */
	sem_post(&pmix->fenced);
	status = pmix->fence_status;
	if (status == PMIX_ERR_PARTIAL_SUCCESS || status == PMIX_ERR_LOST_CONNECTION)
		return node_fail(-ECONNRESET, "cluster: pmix: a rank has ended before all had come: look for its own error");
	if (status != PMIX_SUCCESS)
		return failed(pmix, -EPROTO, "the fence", status);
	status = get(pmix, rank, ADDRESS_KEY, &value);
	if (status != PMIX_SUCCESS)
		return node_fail(-EPROTO, "cluster: pmix: rank %u has left no address: %s: all ranks have to open the cluster",
				 rank, pmix->error_string(status));
	err = value->type == PMIX_STRING && value->data.string ?
	      cluster_tidy("pmix", value->data.string, address) :
	      node_fail(-EPROTO, "cluster: pmix: the address of rank %u is no text", rank);
	if (value->type == PMIX_STRING)
		free(value->data.string);
	free(value);
	return err;
}

static void end(struct rdmatensor_cluster *cluster)
{
	struct pmix *pmix = cluster->source_data;
	enum fence fence;

	if (!pmix)
		return;
	/* Whether or not all have come: a launcher ends the job of a process that ends without */
	pmix->finalize(NULL, 0);
	/* If others in this process use PMIx, its end may come yet, and then has the struct */
	fence = __atomic_exchange_n(&pmix->fence, FENCE_ABANDONED, __ATOMIC_ACQ_REL);
	if (fence == FENCE_BEGUN)
		return;
	/* Whose call is over or will be in a moment */
	while (fence == FENCE_OVER && sem_wait(&pmix->fenced))
		;
	forget(pmix);
}
#else
static int find(struct rdmatensor_cluster *cluster)
{
	(void)cluster;
	return node_fail(-EOPNOTSUPP, "cluster: pmix: this library was built without PMIx: build it where pmix.h is (Debian: libpmix-dev), or start the ranks with RDMATENSOR_HOSTS or RDMATENSOR_STORE");
}
#endif

const struct cluster_source cluster_pmix = {
	.name = "pmix",
	.is_there = is_there,
	.find = find,
#ifdef HAVE_PMIX
	.publish = publish,
	.lookup = lookup,
	.end = end,
#endif
};

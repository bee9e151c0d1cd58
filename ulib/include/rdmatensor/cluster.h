/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A cluster: the ranks of one job, each of which has a node (<rdmatensor/node.h>), and finds the
 * others by what has started it: PMIx (mpirun, srun), TF_CONFIG, torchrun, or a file of hosts. See
 * Documentation/cluster.md for what to set for each.
 *
 * Errors: a call that fails returns a negative errno; rdmatensor_node_error() then says which rank,
 * what failed and what to do, in one line.
 *
 * Threads: any number of threads may use one cluster, and its node, at once. Calls that are said to
 * be collective are made by one thread at a time, in the same order on all ranks, and not beside
 * rdmatensor_cluster_refresh(). rdmatensor_cluster_close() runs alone. A forked child must leave the cluster alone.
 */
#ifndef RDMATENSOR_CLUSTER_H
#define RDMATENSOR_CLUSTER_H

#include <rdmatensor/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct rdmatensor_cluster - this process, as a rank among others */
struct rdmatensor_cluster;

/**
 * enum rdmatensor_cluster_source - what tells a rank who it is, and where the others are
 * @RDMATENSOR_CLUSTER_FOUND: the first of these that the environment has: RDMATENSOR_HOSTS, RANK
 *                            and WORLD_SIZE, TF_CONFIG, PMIx; or the one that RDMATENSOR_CLUSTER
 *                            names
 * @RDMATENSOR_CLUSTER_PMIX: PMIx, "pmix"
 * @RDMATENSOR_CLUSTER_TF_CONFIG: TensorFlow's variable, "tf_config"
 * @RDMATENSOR_CLUSTER_TORCHRUN: torchrun's variables and a store, "torchrun"
 * @RDMATENSOR_CLUSTER_HOSTS: a file of hosts, "hosts"
 * @RDMATENSOR_CLUSTER_GIVEN: the options' rank, size and store
 */
enum rdmatensor_cluster_source {
	RDMATENSOR_CLUSTER_FOUND = 0,
	RDMATENSOR_CLUSTER_PMIX = 1,
	RDMATENSOR_CLUSTER_TF_CONFIG = 2,
	RDMATENSOR_CLUSTER_TORCHRUN = 3,
	RDMATENSOR_CLUSTER_HOSTS = 4,
	RDMATENSOR_CLUSTER_GIVEN = 5,
};

/**
 * struct rdmatensor_cluster_store - where ranks leave their addresses for each other
 * @set: leaves @value under @key, in place of what is there; @value NULL: takes it away. Return: 0;
 *       a negative errno
 * @get: what is there now, without waiting, as a string of less than @room bytes. Return: 0;
 *       -ENOENT: nothing yet; -ECANCELED: the call that asks ends by it; another negative errno. A call
 *       that has lost a rank asks in its midst, and takes as long as this does
 * @arg: for both
 *
 * Both are called by any thread, also by several at once, until rdmatensor_cluster_close() returns.
 * Its size is final.
 */
struct rdmatensor_cluster_store {
	int (*set)(void *arg, const char *key, const char *value);
	int (*get)(void *arg, const char *key, char *value, size_t room);
	void *arg;
};

/**
 * enum rdmatensor_cluster_stage - what a cluster is doing
 * @RDMATENSOR_CLUSTER_CONNECTING: finding ranks, connecting to them, and having 1024 bytes of each
 * @RDMATENSOR_CLUSTER_CHECKING: the same and 32 KiB more, which is more than a packet
 * @RDMATENSOR_CLUSTER_GATHERING: having what each has found
 */
enum rdmatensor_cluster_stage {
	RDMATENSOR_CLUSTER_CONNECTING = 0,
	RDMATENSOR_CLUSTER_CHECKING = 1,
	RDMATENSOR_CLUSTER_GATHERING = 2,
};

/**
 * struct rdmatensor_cluster_progress - how far a call is
 * @stage: enum rdmatensor_cluster_stage
 * @done: ranks that are done with
 * @total: of so many
 * @failed: so many of those that are done failed
 *
 * Later versions of the library may have more members behind these.
 */
struct rdmatensor_cluster_progress {
	uint32_t stage;
	uint32_t done;
	uint32_t total;
	uint32_t failed;
};

/**
 * struct rdmatensor_cluster_options - how a rank joins; all 0: as the environment says
 * @source: enum rdmatensor_cluster_source
 * @flags: RDMATENSOR_CLUSTER_QUIET: no line of progress on stderr, which there is without @progress
 *         if stderr is a terminal; RDMATENSOR_CLUSTER_INTERRUPTIBLE: a signal ends calls that wait,
 *         and those of the node, with -EINTR (rdmatensor_node_interruptible()), at the latest when
 *         connections have been made or refused that are under way, within ten seconds, and what a
 *         name server or the store is asked has come; they can be repeated, but for collective ones,
 *         which are over then, for the other ranks go on
 * @rank: own rank, with RDMATENSOR_CLUSTER_GIVEN
 * @size: number of ranks, with RDMATENSOR_CLUSTER_GIVEN
 * @timeout_ms: bound on each call that waits for others, and the node's
 *              (rdmatensor_node_timeout()); 0: 60000; negative: none
 * @connects: connections that a call makes at a time; 0: 16
 * @__pad: 0
 * @listen: "HOST:PORT" or ":PORT" where this rank listens, or "HOST", port RDMATENSOR_PORT; NULL: the
 *          port that the source says, else any
 * @job: tells jobs from each other that would meet in a store or at a port; NULL: RDMATENSOR_JOB of
 *       the environment, or what the source says: RDMATENSOR_CLUSTER_HOSTS and RDMATENSOR_CLUSTER_GIVEN
 *       have all jobs alike
 * @store: with RDMATENSOR_CLUSTER_GIVEN, or with RDMATENSOR_CLUSTER_TORCHRUN in place of the one
 *         that RDMATENSOR_STORE names; NULL: none. The struct is copied
 * @progress: called by any thread of the library's as a call goes on, one call at a time; it must
 *            not call the library. NULL: none
 * @progress_arg: for it
 *
 * Strings are copied.
 */
struct rdmatensor_cluster_options {
	uint32_t source;
	uint32_t flags;
#define RDMATENSOR_CLUSTER_QUIET (1 << 0)
#define RDMATENSOR_CLUSTER_INTERRUPTIBLE (1 << 1)
	uint32_t rank;
	uint32_t size;
	int64_t timeout_ms;
	uint32_t connects;
	uint32_t __pad;
	const char *listen;
	const char *job;
	const struct rdmatensor_cluster_store *store;
	void (*progress)(void *arg, const struct rdmatensor_cluster_progress *progress);
	void *progress_arg;
};

int rdmatensor_cluster_open_sized(struct rdmatensor_cluster **out,
				  const struct rdmatensor_cluster_options *options, size_t size);

/**
 * rdmatensor_cluster_open() - join the job as a rank
 * @out: the cluster, for rdmatensor_cluster_close(); NULL if the call fails
 * @options: or NULL: all as the environment says
 *
 * Finds out who this rank is, opens its node, and lets others know where that listens. It waits for
 * no other rank, so ranks may start in any order.
 *
 * Return: 0; -ENOENT: nothing says who this rank is; -EINVAL: what does is wrong; -ERANGE: the rank
 * is none of the job's; -ENOTUNIQ: two ranks have one address; -EOPNOTSUPP: the library was built
 * without PMIx; -ELIBACC: libpmix is not there; as rdmatensor_node_open().
 */
static inline int rdmatensor_cluster_open(struct rdmatensor_cluster **out,
					  const struct rdmatensor_cluster_options *options)
{
	return rdmatensor_cluster_open_sized(out, options, sizeof(*options));
}

/**
 * rdmatensor_cluster_leave() - tell the others that this rank does not take part any more
 * @cluster: the cluster
 *
 * Takes its address out of the store, if there is one: who waits for this rank and has met it is
 * told at once that it has left. What its node offers stays until rdmatensor_cluster_close().
 *
 * Return: 0; what the store says.
 */
int rdmatensor_cluster_leave(struct rdmatensor_cluster *cluster);

/**
 * rdmatensor_cluster_close() - leave, and end the node
 * @cluster: or NULL
 *
 * As rdmatensor_cluster_leave() and rdmatensor_node_close(). Peers that are getting something of
 * this rank's fail: where all have to have it, rdmatensor_cluster_barrier() comes before.
 */
void rdmatensor_cluster_close(struct rdmatensor_cluster *cluster);

/**
 * rdmatensor_cluster_node() - this rank's node
 * @cluster: the cluster
 *
 * Return: the node, which offers and gets. It is the cluster's: do not close it.
 */
struct rdmatensor_node *rdmatensor_cluster_node(struct rdmatensor_cluster *cluster);

/**
 * rdmatensor_cluster_rank() - who this rank is
 * @cluster: the cluster
 *
 * Return: 0 to rdmatensor_cluster_size() - 1.
 */
unsigned int rdmatensor_cluster_rank(struct rdmatensor_cluster *cluster);

/**
 * rdmatensor_cluster_size() - how many ranks there are
 * @cluster: the cluster
 *
 * Return: their number, which only rdmatensor_cluster_refresh() changes.
 */
unsigned int rdmatensor_cluster_size(struct rdmatensor_cluster *cluster);

/**
 * rdmatensor_cluster_source_name() - by what this rank was told who it is
 * @cluster: the cluster
 *
 * Return: "pmix", "tf_config", "torchrun", "hosts" or "given".
 */
const char *rdmatensor_cluster_source_name(struct rdmatensor_cluster *cluster);

/**
 * rdmatensor_cluster_name() - what a rank is called
 * @cluster: the cluster
 * @rank: the rank
 * @text: out: as "ps/0" by TF_CONFIG, else its number
 * @text_len: its length
 *
 * Return: 0; -ERANGE: there is no such rank.
 */
int rdmatensor_cluster_name(struct rdmatensor_cluster *cluster, unsigned int rank, char *text,
			    size_t text_len);

/**
 * rdmatensor_cluster_find() - the rank that is called so
 * @cluster: the cluster
 * @name: as rdmatensor_cluster_name() has it
 * @rank: out
 *
 * Return: 0; -ENOENT: no rank is called so.
 */
int rdmatensor_cluster_find(struct rdmatensor_cluster *cluster, const char *name,
			    unsigned int *rank);

/**
 * rdmatensor_cluster_address() - where a rank is
 * @cluster: the cluster
 * @rank: the rank
 * @text: out: "HOST:PORT", for the calls of <rdmatensor/node.h>
 * @text_len: its length; RDMATENSOR_CLUSTER_ADDRESS_MAX is enough for all
 *
 * Waits until the rank has said so, if that is not known yet. What is known is asked for again unless there
 * is a channel by which the rank has proven who it is.
 * Whether the rank answers there is not tried, and a node gets from whoever does.
 *
 * Return: 0; -ERANGE: there is no such rank; -ETIMEDOUT: it has not come; -ENOENT: it has left;
 * -EMSGSIZE: the text has no room; -EINTR; what the store says.
 */
int rdmatensor_cluster_address(struct rdmatensor_cluster *cluster, unsigned int rank, char *text,
			       size_t text_len);
#define RDMATENSOR_CLUSTER_ADDRESS_MAX 288

/**
 * rdmatensor_cluster_connect() - wait for ranks, and connect to them
 * @cluster: the cluster
 * @ranks: which, or NULL: all others
 * @nr: their number; not read without @ranks
 *
 * Each has come, is this rank of this job, and 1024 bytes of its have arrived here. No more than
 * the options' connects are under way at a time; one that is not up yet makes way for others. It is
 * not needed: what is got connects by itself.
 *
 * Return: 0; the error of the first that failed, and rdmatensor_node_error() says how many more
 * did: as rdmatensor_cluster_address(); -ETIMEDOUT: it does not answer; -EADDRINUSE: another worker
 * answers at its address; -EREMOTEIO: it, or this rank, has aborted step 0 with -ECANCELED, of which the tensor
 * is by which it is known; as rdmatensor_get().
 */
int rdmatensor_cluster_connect(struct rdmatensor_cluster *cluster, const unsigned int *ranks,
			       unsigned int nr);

/**
 * rdmatensor_cluster_get_many() - have several tensors of a rank
 * @cluster: the cluster
 * @rank: the rank; its own number: this rank itself
 * @names: as for rdmatensor_get_many()
 * @tensors: as for rdmatensor_get_many()
 * @nr: their number
 *
 * Waits for the rank to come up. One that came back at another address is found again. Nothing is got by
 * a channel by which the rank has not proven that it is that rank of this job: if one goes down, the rest
 * is got by the next one once the rank has proven it there, too; -ECONNRESET: it has come back elsewhere
 * meanwhile.
 *
 * Return: as rdmatensor_cluster_connect() and rdmatensor_get_many().
 */
int rdmatensor_cluster_get_many(struct rdmatensor_cluster *cluster, unsigned int rank,
				const char *const *names, struct rdmatensor_tensor *tensors,
				unsigned int nr);

/**
 * rdmatensor_cluster_get_each() - have several tensors of a rank, and the error of each
 * @cluster: the cluster
 * @rank: as for rdmatensor_cluster_get_many()
 * @names: as for rdmatensor_get_each()
 * @tensors: as for rdmatensor_get_each()
 * @nr: their number
 * @errors: as for rdmatensor_get_each(), also of a rank that was not reached
 *
 * Return: as rdmatensor_cluster_get_many().
 */
int rdmatensor_cluster_get_each(struct rdmatensor_cluster *cluster, unsigned int rank,
				const char *const *names, struct rdmatensor_tensor *tensors,
				unsigned int nr, int *errors);

/**
 * rdmatensor_cluster_get_generation() - have several tensors of a rank, all of the newest generation
 * @cluster: the cluster
 * @rank: as for rdmatensor_cluster_get_many()
 * @names: as for rdmatensor_get_generation()
 * @tensors: as for rdmatensor_get_generation()
 * @nr: their number, at least 1
 * @step: as for rdmatensor_get_generation()
 *
 * Return: as rdmatensor_cluster_connect() and rdmatensor_get_generation().
 */
int rdmatensor_cluster_get_generation(struct rdmatensor_cluster *cluster, unsigned int rank,
				      const char *const *names, struct rdmatensor_tensor *tensors,
				      unsigned int nr, int64_t *step);

/**
 * rdmatensor_cluster_list() - what a rank offers
 * @cluster: the cluster
 * @rank: as for rdmatensor_cluster_get_many()
 * @prefix: as for rdmatensor_list()
 * @out: as for rdmatensor_list()
 * @bytes: as for rdmatensor_list()
 *
 * Return: as rdmatensor_cluster_connect() and rdmatensor_list().
 */
int rdmatensor_cluster_list(struct rdmatensor_cluster *cluster, unsigned int rank,
			    const char *prefix, void **out, uint64_t *bytes);

/**
 * rdmatensor_cluster_barrier() - wait until all ranks have come here
 * @cluster: the cluster
 *
 * Collective. When it returns 0 all ranks have called it, and any may close its cluster. Each rank
 * connects to twice as many others as the number of ranks has binary digits, and not to all.
 * Where a rank was started again 0 proves nothing: its own call may return at once.
 *
 * Return: 0; an error, and the line names the rank that did not come.
 */
int rdmatensor_cluster_barrier(struct rdmatensor_cluster *cluster);

/**
 * rdmatensor_cluster_check() - try each pair of ranks
 * @cluster: the cluster
 * @errors: out: of rank @from that has 1024 bytes and 32 KiB of rank @to: at [@from * size + @to],
 *          0: it has them, and they are right; a negative errno; -ENODATA: rank @from has not told.
 *          Array of @size squared
 * @size: rdmatensor_cluster_size()
 *
 * Collective. Each rank tries all others, and has from them what they found: of one that it does
 * not reach by those that do. A rank that does not answer is given up after half of the timeout, so
 * the call ends within the timeout, and all ranks have to call it within a quarter of that.
 * If the call fails at a rank, by a signal or its store, the others have from it what it has found by
 * then, and do not wait for it as long as it does not close the cluster, and is no more than four checks
 * ahead of them. From one that is two ahead they have its row, and not those that it had of others.
 * A rank that was started again may have the former matrix.
 *
 * Return: how many pairs do not work, or are not known to; a negative errno: the call itself
 * failed; -ESTALE: there is another number of ranks.
 */
int rdmatensor_cluster_check(struct rdmatensor_cluster *cluster, int *errors, unsigned int size);

/**
 * rdmatensor_cluster_matrix() - what a check has found, as text
 * @cluster: the cluster
 * @errors: from rdmatensor_cluster_check()
 * @size: as for that, also if ranks have joined since
 *
 * A line that says how many pairs work; if not all do, a table of those ranks that have to do with
 * one that does not, and a line for each kind of failure, with the ranks and the remedy.
 *
 * Return: for free(); NULL: out of memory, or there are fewer ranks.
 */
char *rdmatensor_cluster_matrix(struct rdmatensor_cluster *cluster, const int *errors,
				unsigned int size);

/**
 * rdmatensor_cluster_refresh() - ask again who takes part
 * @cluster: the cluster
 *
 * Reads the file of hosts again: lines that were added are ranks that have joined, a host in the
 * place of another is where that rank is now, and "-" in its place says that it has left. With
 * other sources the ranks are always the same. Where their number has changed, all ranks call it
 * before the next collective call.
 *
 * Return: 0; an error, and nothing has changed: -EINVAL, -ENOTUNIQ: the file is wrong; -ESTALE: it
 * has fewer ranks than before, or this rank at another address.
 */
int rdmatensor_cluster_refresh(struct rdmatensor_cluster *cluster);

#ifdef __cplusplus
}
#endif

#endif /* RDMATENSOR_CLUSTER_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of a cluster share. open.c has its life, members.c the table of ranks, and one
 * file each a source: pmix.c, tf_config.c, torchrun.c, hosts.c, given.c. store.c is what ranks
 * leave addresses in, address.c the own one; connect.c reaches ranks, check.c, matrix.c and
 * barrier.c use it, round.c does something with many at a time, progress.c tells how far it is.
 *
 * Sources know the table and nothing of connecting; what connects asks the source through its
 * struct cluster_source alone. Errors go into the line of the short way (node_fail()).
 */
#ifndef RDMATENSOR_LIB_CLUSTER_H
#define RDMATENSOR_LIB_CLUSTER_H

#include "../node/node.h"

#pragma GCC visibility push(default)
#include <rdmatensor/cluster.h>
#pragma GCC visibility pop

/* Ranks that a job may have: the matrix of a check is their square */
#define RANKS_MAX 16384
#define ADDRESS_ROOM RDMATENSOR_CLUSTER_ADDRESS_MAX
/* Longest name of a rank in a message */
#define SAID_ROOM 192

/**
 * struct cluster_member - a rank
 * @name: "ps/0"; NULL: its number
 * @address: "HOST:PORT"; NULL: not known yet
 * @met: it was reached at that address
 * @channel: by which it has proven there who it is; another one may lead to somebody else
 * @local: that is a loopback address, and stands for the own host
 * @left: its source says that it takes no part any more
 */
struct cluster_member {
	char *name;
	char *address;
	uint32_t channel;
	bool met;
	bool local;
	bool left;
};

/**
 * struct cluster_members - the table of ranks
 * @at: the ranks
 * @nr: their number
 */
struct cluster_members {
	struct cluster_member *at;
	unsigned int nr;
};

/**
 * struct cluster_source - what tells a rank who it is, and where the others are
 * @name: as RDMATENSOR_CLUSTER has it
 * @is_there: the environment has it
 * @find: sets rank, job and members; their addresses, if they are known from the start
 * @publish: lets others know the own address, which is among the members'; NULL: they know it
 * @lookup: asks where a rank is. Return: 0, and @address has it; -EAGAIN: it has not said so yet;
 *          or an error, and the line is stored. NULL: the table has it
 * @leave: takes the own address back. Return: 0; an error, and the line is stored; or NULL
 * @refresh: finds out anew who takes part; NULL: that does not change
 * @end: gives back what @find has taken, or NULL
 */
struct cluster_source {
	const char *name;
	bool (*is_there)(void);
	int (*find)(struct rdmatensor_cluster *cluster);
	int (*publish)(struct rdmatensor_cluster *cluster, const char *address);
	int (*lookup)(struct rdmatensor_cluster *cluster, unsigned int rank,
		      uint64_t deadline_ns, char address[ADDRESS_ROOM]);
	int (*leave)(struct rdmatensor_cluster *cluster);
	int (*refresh)(struct rdmatensor_cluster *cluster);
	void (*end)(struct rdmatensor_cluster *cluster);
};

extern const struct cluster_source cluster_pmix, cluster_tf_config, cluster_torchrun,
	cluster_hosts, cluster_given;

/**
 * struct rdmatensor_cluster
 * @node: this rank's
 * @source: what has told
 * @options: the program's; its strings and its store are copies, or NULL
 * @store: the options', or the one of RDMATENSOR_STORE
 * @store_dir: that one's folder; NULL: there is none
 * @store_user: who has opened it, whose part of the folder is used
 * @store_owner: the same, as the folder's file system has it
 * @own_host: the address of this host's that others reach it by
 * @job: tells it from other jobs: text of the source's, or of the options
 * @rank: own one
 * @published: the own address was published
 * @lock: guards @members, which refresh replaces
 * @members: all ranks
 * @source_data: what the source keeps
 * @checks: so many were begun by as many ranks as there are
 * @checks_kept: from this one on, what was offered in checks is there
 * @barriers: as @checks, of these
 * @telling: one thread at a time tells progress
 */
struct rdmatensor_cluster {
	struct rdmatensor_node *node;
	const struct cluster_source *source;
	struct rdmatensor_cluster_options options;
	struct rdmatensor_cluster_store store;
	char *store_dir;
	uid_t store_user;
	uid_t store_owner;
	char own_host[ADDRESS_ROOM];
	char *job;
	unsigned int rank;
	bool published;
	pthread_mutex_t lock;
	struct cluster_members members;
	void *source_data;
	int64_t checks;
	int64_t checks_kept;
	int64_t barriers;
	pthread_mutex_t telling;
};

/* A variable that is set and not empty, or NULL */
const char *cluster_env(const char *name);
/* A variable that must be a number. Return: 0; -ENOENT, -EINVAL, and the line is stored */
int cluster_env_number(const char *source, const char *name, uint64_t most, unsigned int *out);

/* Of @nr ranks, without names and addresses. Return: 0; -ENOMEM, -ERANGE, and the line is stored */
int cluster_members_make(struct cluster_members *members, const char *source, unsigned int nr);
void cluster_members_free(struct cluster_members *members);
/* No two ranks have one address. Return: 0; -ENOTUNIQ, and the line is stored */
int cluster_members_check(const struct cluster_members *members, const char *source);
/*
 * Where a rank is now, which no other one may be. Return: 0; -ENOTUNIQ: *@other was met there; -ENOMEM; and
 * the line is stored
 */
int cluster_member_place(struct rdmatensor_cluster *cluster, unsigned int rank,
			 const char *address, unsigned int *other);
/* It may be elsewhere by now than where it was met by that channel */
void cluster_member_lost(struct rdmatensor_cluster *cluster, unsigned int rank, uint32_t channel);
/* What the table has. Return: 0; -EAGAIN: no address yet; -ENOENT: it has left */
int cluster_member_address(struct rdmatensor_cluster *cluster, unsigned int rank,
			   char address[ADDRESS_ROOM]);
/*
 * It was reached at @placed, if the table still has it there, which is @address for the node, by
 * @channel
 */
void cluster_member_met(struct rdmatensor_cluster *cluster, unsigned int rank, const char *placed,
			const char *address, uint32_t channel);
/**
 * struct cluster_place - where a rank was reached
 * @placed: as the table has it
 * @address: for the node, without asking a name server
 * @channel: by which; 0: it was reached nowhere yet
 */
struct cluster_place {
	char placed[ADDRESS_ROOM];
	char address[ADDRESS_ROOM];
	uint32_t channel;
};

/* False: it was reached nowhere yet, or has left */
bool cluster_member_reached(struct rdmatensor_cluster *cluster, unsigned int rank,
			    struct cluster_place *place);
/* "rank 3 (ps/0, 10.0.0.1:18521)", for messages */
const char *cluster_said(struct rdmatensor_cluster *cluster, unsigned int rank,
			 char said[SAID_ROOM]);
/* Return: 0; -ERANGE, and the line is stored */
int cluster_has(struct rdmatensor_cluster *cluster, unsigned int rank);

/*
 * "HOST[:PORT]" of a source's as "HOST:PORT", without asking a name server. Return: 0; -EINVAL, and
 * the line begins with @where
 */
int cluster_tidy(const char *where, const char *text, char address[ADDRESS_ROOM]);
/* Finds the own host, once the node is open. Return: 0; an error, and the line is stored */
int cluster_own_host(struct rdmatensor_cluster *cluster);
/*
 * HOST or HOST:PORT of RDMATENSOR_ADDRESS. Return: 0: it is not set; 1; -EINVAL, and the line is
 * stored
 */
int cluster_own_override(char host[ADDRESS_ROOM], unsigned int *port);
/* Where ranks of this host reach what its source calls so: not at a loopback address. May ask a name server */
void cluster_reachable(const struct rdmatensor_cluster *cluster, char address[ADDRESS_ROOM]);
/* The own host in place of the one of an address */
void cluster_localize(const struct rdmatensor_cluster *cluster, char address[ADDRESS_ROOM]);
/* True: an address of this host, as far as can be told without its RDMA device */
bool cluster_is_own(const char *address);
/* The host of "HOST:PORT", without brackets, and the port */
void cluster_split(const char *address, char host[ADDRESS_ROOM], unsigned int *port);
/* And back */
void cluster_join(char address[ADDRESS_ROOM], const char *host, unsigned int port);

/* RDMATENSOR_STORE, or the options' store. Return: 0; an error, and the line is stored */
int cluster_store_open(struct rdmatensor_cluster *cluster, const char *source);
void cluster_store_close(struct rdmatensor_cluster *cluster);
/* What sources with a store have */
int cluster_store_publish(struct rdmatensor_cluster *cluster, const char *address);
int cluster_store_lookup(struct rdmatensor_cluster *cluster, unsigned int rank,
			 uint64_t deadline_ns, char address[ADDRESS_ROOM]);
int cluster_store_leave(struct rdmatensor_cluster *cluster);

/* Of what a call does for one rank: it ends the call for all */
bool cluster_ends_call(int err);
/* When a call that begins now ends; 0: never */
uint64_t cluster_deadline(const struct rdmatensor_cluster *cluster);
/* The earlier one of two, of which 0 is never */
uint64_t cluster_earlier(uint64_t a_ns, uint64_t b_ns);
/* Waits until a rank has come, and where to. Return: 0; an error, and the line is stored */
int cluster_locate(struct rdmatensor_cluster *cluster, unsigned int rank, uint64_t deadline_ns,
		   char address[ADDRESS_ROOM]);
/* rdmatensor_cluster_get_many() until then */
int cluster_get(struct rdmatensor_cluster *cluster, unsigned int rank, const char *const *names,
		struct rdmatensor_tensor *tensors, unsigned int nr, uint64_t deadline_ns);
/* What a rank offers to all others: of this job, this kind, and of itself */
#define TOKEN_ROOM 96
void cluster_token(const struct rdmatensor_cluster *cluster, const char *kind, unsigned int rank,
		   char name[TOKEN_ROOM]);
/*
 * The same of a call that all ranks make: they have to agree on how many they are, so that one that has
 * joined counts such calls with the others
 */
void cluster_call_token(struct rdmatensor_cluster *cluster, const char *kind,
			unsigned int rank, char name[TOKEN_ROOM]);
/* Offers what others try this rank by. Return: 0; an error, and the line is stored */
int cluster_offer_probes(struct rdmatensor_cluster *cluster);
/* Reaches a rank; @whole: with full packets too. Return: 0; an error, and the line is stored */
int cluster_reach(struct rdmatensor_cluster *cluster, unsigned int rank, bool whole,
		  uint64_t deadline_ns);
/* A rank is not there yet, before the deadline: try it again. No errno; the stored line says nothing */
#define CLUSTER_LATER (-5000)
/* As cluster_reach(), in one attempt, or CLUSTER_LATER. @again: it is not the first one */
int cluster_try_reach(struct rdmatensor_cluster *cluster, unsigned int rank, bool whole, bool again,
		      uint64_t deadline_ns);

/* It proves, by the place's channel and no other, that it is that rank */
bool cluster_is_there(struct rdmatensor_cluster *cluster, unsigned int rank,
		      const struct cluster_place *place, uint64_t until_ns);

/**
 * struct cluster_round - something that is done with many ranks, some of them at a time
 * @work: with one of them, in any thread. Return: 0; an error, and the line is stored; or
 *        CLUSTER_LATER: it is done again, with @again, after a pause and other ranks
 * @arg: for it
 * @deadline_ns: no pause before another attempt goes beyond it; 0: none
 * @ranks: with which
 * @nr: their number
 * @stage: enum rdmatensor_cluster_stage
 * @errors: out: of each of @ranks
 * @first: out: the line of the first of @ranks that failed, for free(); NULL: none did
 */
struct cluster_round {
	int (*work)(struct rdmatensor_cluster *cluster, unsigned int rank, bool again, void *arg);
	void *arg;
	uint64_t deadline_ns;
	const unsigned int *ranks;
	unsigned int nr;
	uint32_t stage;
	int *errors;
	char *first;
};

/*
 * Return: how many failed; -ENOMEM, -EAGAIN: not begun; -EINTR: a signal has ended it. Then the
 * line is stored
 */
int cluster_run(struct rdmatensor_cluster *cluster, struct cluster_round *round);

/* Tells how far a round is; its last call has @done == @total, unless the round was ended */
void cluster_tell(struct rdmatensor_cluster *cluster,
		  const struct rdmatensor_cluster_progress *progress);

/*
 * Until ranks offer a token, of this job, kind and step, or their channels go down, or the
 * deadline. Of whom there is no channel to is not waited for
 */
void cluster_await_quietly(struct rdmatensor_cluster *cluster, const unsigned int *ranks,
			   unsigned int nr, const char *kind, int64_t step, uint64_t deadline_ns);
/* An empty tensor. Return: 0; an error, and the line is stored */
int cluster_offer_token(struct rdmatensor_cluster *cluster, const char *kind, int64_t step);
/* What is offered under such a token. Return: there is nothing of it any more */
bool cluster_withdraw(struct rdmatensor_cluster *cluster, const char *kind, int64_t step);

#endif

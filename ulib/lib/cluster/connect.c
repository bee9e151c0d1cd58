// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks are found, reached, and got from. To reach one is to have a tensor of its that says which rank of
 * which job it is: a worker at its address that is none of the job's, or another rank, is not taken for it.
 * That holds for the channel by which it came: before a get goes on by another one, its guard has the rank
 * prove it again.
 *
 * Who is not up refuses at once. Before a channel that was lost is made again, and between two attempts, it
 * is asked again where the rank is, as one that was started anew may be elsewhere. A connection that is being
 * made is not cut short for that: on a host where many ranks start it takes its time. What is got of a rank
 * that was reached takes as long as it takes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define HELLO_BYTES 1024
/* More than a packet of any path MTU */
#define WHOLE_BYTES 32768
/* Of one connection, and of the probe that follows, for which the channel is kept */
#define CONNECT_MS 10000
#define PROBE_MS 4000
/* For words only, so it may not take long: it may be after the deadline */
#define WHO_MS 1000
#define PREFIX "rdmatensor.cluster."

bool cluster_ends_call(int err)
{
	return err == -EINTR || err == -ECANCELED;
}

uint64_t cluster_deadline(const struct rdmatensor_cluster *cluster)
{
	return node_deadline(cluster->node);
}

uint64_t cluster_earlier(uint64_t a_ns, uint64_t b_ns)
{
	if (!a_ns || !b_ns)
		return a_ns ? a_ns : b_ns;
	return a_ns < b_ns ? a_ns : b_ns;
}

static bool is_over(uint64_t deadline_ns)
{
	return deadline_ns && rdmatensor_now_ns() >= deadline_ns;
}

void cluster_token(const struct rdmatensor_cluster *cluster, const char *kind, unsigned int rank,
		   char name[TOKEN_ROOM])
{
	snprintf(name, TOKEN_ROOM, PREFIX "%016" PRIx64 ".%s.%u", rdmatensor_group(cluster->job), kind,
		 rank);
}

void cluster_call_token(struct rdmatensor_cluster *cluster, const char *kind,
			unsigned int rank, char name[TOKEN_ROOM])
{
	char of[48];

	snprintf(of, sizeof(of), "%s.%u", kind, rdmatensor_cluster_size(cluster));
	cluster_token(cluster, of, rank, name);
}

static void fill(uint8_t *bytes, size_t nr, unsigned int rank)
{
	size_t i;

	for (i = 0; i < nr; i++)
		bytes[i] = (uint8_t)(rank * 131 + i * 7 + (i >> 8));
}

static int offer_probe(struct rdmatensor_cluster *cluster, const char *kind, size_t bytes)
{
	struct rdmatensor_tensor tensor = { .data_type = RDMATENSOR_DT_UINT8, .ndims = 1 };
	char name[TOKEN_ROOM];
	uint8_t content[WHOLE_BYTES];

	fill(content, bytes, cluster->rank);
	tensor.data = content;
	tensor.dims[0] = bytes;
	cluster_token(cluster, kind, cluster->rank, name);
	return rdmatensor_offer(cluster->node, name, &tensor);
}

int cluster_offer_probes(struct rdmatensor_cluster *cluster)
{
	int err = offer_probe(cluster, "hello", HELLO_BYTES);

	return err ? err : offer_probe(cluster, "whole", WHOLE_BYTES);
}

int cluster_offer_token(struct rdmatensor_cluster *cluster, const char *kind, int64_t step)
{
	struct rdmatensor_tensor tensor = {
		.step = step, .data_type = RDMATENSOR_DT_UINT8, .ndims = 1,
	};
	char name[TOKEN_ROOM];

	cluster_call_token(cluster, kind, cluster->rank, name);
	return rdmatensor_offer(cluster->node, name, &tensor);
}

bool cluster_withdraw(struct rdmatensor_cluster *cluster, const char *kind, int64_t step)
{
	char name[TOKEN_ROOM];
	int err;

	cluster_call_token(cluster, kind, cluster->rank, name);
	err = rdmatensor_withdraw_offer(cluster->node, name, step);
	return !err || err == -ENOENT;
}

/**
 * struct asked - a call of the node's by one channel alone
 * @guard: of the node
 * @channel: that one
 * @guard_before: the thread's
 * @until_before: the thread's
 */
struct asked {
	struct node_guard guard;
	uint32_t channel;
	struct node_guard *guard_before;
	uint64_t until_before;
};

/* Who is behind the next one is found out anew, and may be elsewhere */
static int stay(struct node_guard *guard, uint64_t deadline_ns, uint32_t *channel)
{
	const struct asked *asked = (const struct asked *)guard;

	(void)deadline_ns;
	return *channel == asked->channel ? 0 : node_fail(-ENOTCONN, "the channel has gone down");
}

static void ask_by(struct asked *asked, uint32_t channel, uint64_t until_ns)
{
	*asked = (struct asked) {
		.guard.prove = stay, .guard.probes = true, .channel = channel,
		.until_before = rdmatensor_node_until(until_ns ? until_ns : UINT64_MAX),
	};
	asked->guard_before = node_guard(&asked->guard);
}

static void ask_by_any(const struct asked *asked)
{
	node_guard(asked->guard_before);
	rdmatensor_node_until(asked->until_before);
}

/*
 * What a tensor has failed with, or a connection was rejected with, ends no call for other ranks: -ECANCELED
 * is of a step that the peer has aborted, or this context, or the peer's own
 */
static int answered(int err)
{
	return err == -ECANCELED ? -EREMOTEIO : err;
}

/* Before the line of the node's */
static int fail(struct rdmatensor_cluster *cluster, unsigned int rank, int err, const char *more)
{
	char said[SAID_ROOM], cause[1024];

	snprintf(cause, sizeof(cause), "%s", rdmatensor_node_error());
	return node_fail(err, "cluster: %s: %s%s", cluster_said(cluster, rank, said), cause, more);
}

static int not_come(struct rdmatensor_cluster *cluster, unsigned int rank)
{
	char said[SAID_ROOM];

	return node_fail(-ETIMEDOUT, "cluster: %s has not come within the timeout: start it, look for its own error, or raise the timeout",
			 cluster_said(cluster, rank, said));
}

static bool is_up(struct rdmatensor_cluster *cluster, const struct cluster_place *place)
{
	return place->channel && place->channel == node_channel(cluster->node, place->address) &&
	       !node_is_down(cluster->node, place->channel, -ENOTCONN);
}

/*
 * Where its source says that a rank is now. One that was met there before it is asked for again unless it
 * is still there. Return: as of a source's lookup(); -ENOTUNIQ: as cluster_member_place()
 */
static int look_up(struct rdmatensor_cluster *cluster, unsigned int rank, uint64_t deadline_ns,
		   char placed[ADDRESS_ROOM])
{
	int err = cluster->source->lookup(cluster, rank, deadline_ns, placed);
	struct cluster_place place;
	unsigned int other;

	if (err)
		return err;
	err = cluster_member_place(cluster, rank, placed, &other);
	if (err == -ENOTUNIQ && other != cluster->rank &&
	    cluster_member_reached(cluster, other, &place) && !is_up(cluster, &place))
		cluster_member_lost(cluster, other, place.channel);
	return err;
}

/* The source has failed: it has not said anything of a rank, and has not ended the call */
static bool may_do_without(int err)
{
	return err != -EAGAIN && err != -ENOTUNIQ && !cluster_ends_call(err);
}

/* As cluster_locate(), at this moment; or CLUSTER_LATER: nobody knows yet. @anew: what is known may be wrong */
static int try_locate(struct rdmatensor_cluster *cluster, unsigned int rank, bool anew,
		      uint64_t deadline_ns, struct cluster_place *place)
{
	bool reached = cluster_member_reached(cluster, rank, place);
	bool asks = cluster->source->lookup && rank != cluster->rank;
	char said[SAID_ROOM], found[ADDRESS_ROOM];
	int err, asked;

	if (reached && !anew && (!asks || is_up(cluster, place)))
		return 0;
	err = cluster_member_address(cluster, rank, place->placed);
	if (err == -ENOENT)
		return node_fail(err, "cluster: %s has left: go on without it, or start it again and say so in the file of hosts",
				 cluster_said(cluster, rank, said));
	if (asks) {
		asked = look_up(cluster, rank, deadline_ns, found);
		if (asked == -EAGAIN && !err)
			return node_fail(-ENOENT, "cluster: %s has left: go on without it, or start it again",
					 cluster_said(cluster, rank, said));
		if (!asked)
			rt_copy_string(place->placed, ADDRESS_ROOM, found);
		/* A source that fails does not keep it from where it may still be */
		if (asked && !err && !anew && may_do_without(asked))
			node_clear_error();
		else
			err = asked;
	}
	if (err == -EAGAIN)
		return is_over(deadline_ns) ? not_come(cluster, rank) : CLUSTER_LATER;
	/* A rank that was started again is about to say another one than it had before */
	if (err == -ENOTUNIQ && !is_over(deadline_ns))
		return CLUSTER_LATER;
	/* Where it was met no name server is asked again */
	if (!err && (anew || !cluster_member_reached(cluster, rank, place))) {
		rt_copy_string(place->address, ADDRESS_ROOM, place->placed);
		cluster_reachable(cluster, place->address);
	}
	return err;
}

/* Before another attempt. Return: 0; -EINTR, and the line is stored */
static int pause_before(struct rdmatensor_cluster *cluster, unsigned int rank, unsigned int *vain,
			uint64_t deadline_ns)
{
	char said[SAID_ROOM];

	if (!rt_stopped() && !node_pause(cluster->node, ++*vain, deadline_ns))
		return 0;
	return node_interrupted("cluster", cluster_said(cluster, rank, said));
}

int cluster_locate(struct rdmatensor_cluster *cluster, unsigned int rank, uint64_t deadline_ns,
		   char address[ADDRESS_ROOM])
{
	struct cluster_place place;
	unsigned int vain = 0;
	int err;

	while ((err = try_locate(cluster, rank, false, deadline_ns, &place)) == CLUSTER_LATER) {
		err = pause_before(cluster, rank, &vain, deadline_ns);
		if (err)
			break;
	}
	if (!err)
		rt_copy_string(address, ADDRESS_ROOM, place.address);
	return err;
}

/* What another address, or another moment, may mend */
static bool may_come(int err)
{
	return err == -ETIMEDOUT || err == -ECONNREFUSED || err == -EHOSTUNREACH ||
	       err == -ENETUNREACH || err == -EADDRNOTAVAIL || err == -ECONNRESET ||
	       err == -ENOTCONN || err == -EXDEV;
}

/* Who else than a rank answers at its address, to be appended. False: it does itself, or nobody tells */
static bool who_is_there(struct rdmatensor_cluster *cluster, unsigned int rank,
			 const struct cluster_place *place, char *text, size_t len)
{
	const struct rdmatensor_list_entry *entry;
	char hello[TOKEN_ROOM], own[TOKEN_ROOM], sought[TOKEN_ROOM];
	struct asked asked;
	uint64_t bytes = 0;
	void *list = NULL;
	size_t same;
	const char *name;

	text[0] = '\0';
	ask_by(&asked, place->channel, rdmatensor_deadline_ms(WHO_MS));
	cluster_token(cluster, "hello", rank, sought);
	cluster_token(cluster, "hello", 0, own);
	same = strlen(own) - 1;
	if (!rdmatensor_list(cluster->node, place->address, PREFIX, &list, &bytes)) {
		snprintf(text, len, "; a worker answers there that is of no cluster, or has not opened its own yet: look what uses the port");
		for (entry = NULL; (entry = rdmatensor_list_next(list, bytes, entry));) {
			name = rdmatensor_list_name(entry);
			snprintf(hello, sizeof(hello), "%s", name);
			if (!strcmp(hello, sought))
				text[0] = '\0';
			else if (!strncmp(hello, own, same))
				snprintf(text, len, "; rank %.20s of this job answers there: correct who is where",
					 hello + same);
			else if (strstr(hello, ".hello."))
				snprintf(text, len, "; a rank of another job answers there, or one that was told of other ranks: end that, use another port, or correct who is where");
			else
				continue;
			break;
		}
	}
	free(list);
	ask_by_any(&asked);
	return *text;
}

/*
 * Has the probe of a kind by the place's channel, and looks at it. @flags: of struct rdmatensor_tensor.
 * Return: 0; an error, and the line is stored
 */
static int probe(struct rdmatensor_cluster *cluster, unsigned int rank,
		 const struct cluster_place *place, const char *kind, size_t bytes, uint32_t flags,
		 uint64_t until_ns)
{
	uint8_t expected[WHOLE_BYTES], got[WHOLE_BYTES] = { 0 };
	struct rdmatensor_tensor tensor = { .data = got, .bytes = bytes, .flags = flags };
	char token[TOKEN_ROOM];
	const char *name = token;
	struct asked asked;
	int err;

	cluster_token(cluster, kind, rank, token);
	ask_by(&asked, place->channel, until_ns);
	err = rdmatensor_get_many(cluster->node, place->address, &name, &tensor, 1);
	ask_by_any(&asked);
	if (err)
		return answered(err);
	fill(expected, bytes, rank);
	if (tensor.bytes != bytes || memcmp(got, expected, bytes))
		return node_fail(-EBADMSG, "%" PRIu64 " bytes came, and not the %zu that it has sent: do not use this path before you know why (RDMATENSOR_VALIDATE=1 checks all that comes)",
				 tensor.bytes, bytes);
	return 0;
}

/*
 * @place: in: its address; out: the channel by which the proof came. A worker that does not have the proof
 * says so at once: the rank may be elsewhere
 */
static int say_hello(struct rdmatensor_cluster *cluster, unsigned int rank,
		     struct cluster_place *place, uint64_t deadline_ns)
{
	uint64_t until_ns = cluster_earlier(deadline_ns, rdmatensor_deadline_ms(CONNECT_MS));
	char token[TOKEN_ROOM];
	int err = 0;

	place->channel = node_channel(cluster->node, place->address);
	if (!is_up(cluster, place))
		err = node_connect_now(cluster->node, place->address, place->channel, until_ns,
				       &place->channel);
	if (err)
		return answered(err);
	until_ns = cluster_earlier(deadline_ns, rdmatensor_deadline_ms(PROBE_MS));
	err = probe(cluster, rank, place, "hello", HELLO_BYTES, RDMATENSOR_TENSOR_NOWAIT, until_ns);
	if (err != -ENOENT)
		return err;
	cluster_token(cluster, "hello", rank, token);
	return node_fail(-ETIMEDOUT, "get: %s/%s: the worker that answers does not have it, and so is not that rank",
			 place->address, token);
}

/* Before the line of the node's, and behind it who answers there in its place */
static int not_reached(struct rdmatensor_cluster *cluster, unsigned int rank,
		       const struct cluster_place *place, int err)
{
	char line[1400], who[200];

	if (err == -EINTR)
		return err;
	fail(cluster, rank, err, "");
	if (err == -ETIMEDOUT && is_up(cluster, place)) {
		snprintf(line, sizeof(line), "%s", rdmatensor_node_error());
		if (who_is_there(cluster, rank, place, who, sizeof(who)))
			err = -EADDRINUSE;
		node_fail(err, "%s%s", line, who);
	}
	return err;
}

static int have_whole(struct rdmatensor_cluster *cluster, unsigned int rank,
		      const struct cluster_place *place, uint64_t deadline_ns)
{
	int err = probe(cluster, rank, place, "whole", WHOLE_BYTES, 0, deadline_ns);

	if (err && err != -EINTR)
		fail(cluster, rank, err, err == -ETIMEDOUT ?
		     "; short ones come, and full packets do not: give all network devices and switches on the way one MTU, or set RDMA_MTU=1024" :
		     "");
	return err;
}

/* One attempt, there. Return: 0; CLUSTER_LATER; an error, and the line is stored */
static int try_at(struct rdmatensor_cluster *cluster, unsigned int rank, bool whole,
		  uint64_t deadline_ns, struct cluster_place *place)
{
	int err = say_hello(cluster, rank, place, deadline_ns);

	if (!err) {
		cluster_member_met(cluster, rank, place->placed, place->address, place->channel);
		err = whole ? have_whole(cluster, rank, place, deadline_ns) : 0;
		return err == -ENOTCONN && !is_over(deadline_ns) ? CLUSTER_LATER : err;
	}
	if ((may_come(err) || (err == -EUSERS && node_met(cluster->node, place->address))) &&
	    !is_over(deadline_ns))
		return CLUSTER_LATER;
	return not_reached(cluster, rank, place, err);
}

static int reach(struct rdmatensor_cluster *cluster, unsigned int rank, bool whole,
		 uint64_t deadline_ns, struct cluster_place *place)
{
	unsigned int vain = 0;
	bool tried = false;
	int err;

	for (;;) {
		err = try_locate(cluster, rank, tried, deadline_ns, place);
		if (!err) {
			/* Who has just come answers soon */
			vain = tried ? vain : 0;
			tried = true;
			err = try_at(cluster, rank, whole, deadline_ns, place);
		}
		if (err != CLUSTER_LATER)
			return err;
		err = pause_before(cluster, rank, &vain, deadline_ns);
		if (err)
			return err;
	}
}

int cluster_reach(struct rdmatensor_cluster *cluster, unsigned int rank, bool whole,
		  uint64_t deadline_ns)
{
	struct cluster_place place;

	return rank == cluster->rank ? 0 : reach(cluster, rank, whole, deadline_ns, &place);
}

int cluster_try_reach(struct rdmatensor_cluster *cluster, unsigned int rank, bool whole, bool again,
		      uint64_t deadline_ns)
{
	struct cluster_place place;
	int err;

	if (rank == cluster->rank)
		return 0;
	err = try_locate(cluster, rank, again, deadline_ns, &place);
	return err ? err : try_at(cluster, rank, whole, deadline_ns, &place);
}

bool cluster_is_there(struct rdmatensor_cluster *cluster, unsigned int rank,
		      const struct cluster_place *place, uint64_t until_ns)
{
	if (probe(cluster, rank, place, "hello", HELLO_BYTES, RDMATENSOR_TENSOR_NOWAIT, until_ns))
		return false;
	cluster_member_met(cluster, rank, place->placed, place->address, place->channel);
	return true;
}

/* It has proven who it is by the channel that what is got from there comes by */
static bool is_proven(struct rdmatensor_cluster *cluster, unsigned int rank,
		      struct cluster_place *place)
{
	return cluster_member_reached(cluster, rank, place) && is_up(cluster, place);
}

/* Another rank, where and by which channel it has proven who it is. Return: as reach() */
static int be_sure(struct rdmatensor_cluster *cluster, unsigned int rank, uint64_t deadline_ns,
		   struct cluster_place *place)
{
	int err;

	if (is_proven(cluster, rank, place))
		return 0;
	do {
		err = reach(cluster, rank, false, deadline_ns, place);
		if (err)
			return err;
		if (cluster_member_reached(cluster, rank, place))
			return 0;
		/* It has left, or the table has it elsewhere by now */
	} while (!is_over(deadline_ns));
	return not_come(cluster, rank);
}

/**
 * struct asking - a call that goes to one rank
 * @guard: of the node
 * @cluster: the cluster
 * @rank: the rank
 * @place: where it has proven who it is, and by which channel
 * @begun: the node was called, and has set all errors
 */
struct asking {
	struct node_guard guard;
	struct rdmatensor_cluster *cluster;
	unsigned int rank;
	struct cluster_place place;
	bool begun;
};

/* The channel has gone down, or another thread has made the next one */
static int prove(struct node_guard *guard, uint64_t deadline_ns, uint32_t *channel)
{
	struct asking *asking = (struct asking *)guard;
	struct cluster_place place;
	char said[SAID_ROOM];
	int err;

	if (*channel == asking->place.channel)
		return 0;
	err = be_sure(asking->cluster, asking->rank, deadline_ns, &place);
	if (err)
		return err;
	/* The call has its address */
	if (strcmp(asking->place.address, place.address))
		return node_fail(-ECONNRESET, "cluster: %s has come back at another address: get it again",
				 cluster_said(asking->cluster, asking->rank, said));
	*channel = asking->place.channel = place.channel;
	return 0;
}

/**
 * struct wanted - what is asked for, of one of the kinds
 * @names: of tensors
 * @tensors: their places
 * @nr: their number
 * @errors: of each, or NULL
 * @step: of a generation
 * @prefix: of a list
 * @list: where it goes
 * @bytes: its length
 */
struct wanted {
	const char *const *names;
	struct rdmatensor_tensor *tensors;
	unsigned int nr;
	int *errors;
	int64_t *step;
	const char *prefix;
	void **list;
	uint64_t *bytes;
};

static int have_each(struct rdmatensor_node *node, const char *peer, const struct wanted *wanted)
{
	return rdmatensor_get_each(node, peer, wanted->names, wanted->tensors, wanted->nr,
				   wanted->errors);
}

static int have_generation(struct rdmatensor_node *node, const char *peer,
			   const struct wanted *wanted)
{
	return rdmatensor_get_generation(node, peer, wanted->names, wanted->tensors, wanted->nr,
					 wanted->step);
}

static int have_list(struct rdmatensor_node *node, const char *peer, const struct wanted *wanted)
{
	return rdmatensor_list(node, peer, wanted->prefix, wanted->list, wanted->bytes);
}

/* Until the deadline, of that rank and nobody else. @asking: out: how far it came */
static int ask(struct asking *asking, struct rdmatensor_cluster *cluster, unsigned int rank,
	       uint64_t deadline_ns,
	       int (*have)(struct rdmatensor_node *node, const char *peer,
			   const struct wanted *wanted),
	       const struct wanted *wanted)
{
	struct node_guard *former = NULL;
	uint64_t former_ns;
	int err = 0;

	*asking = (struct asking) { .guard.prove = prove, .cluster = cluster, .rank = rank };
	if (rank != cluster->rank) {
		err = be_sure(cluster, rank, deadline_ns, &asking->place);
		if (err)
			return err;
		former = node_guard(&asking->guard);
	}
	asking->begun = true;
	former_ns = rdmatensor_node_until(deadline_ns ? deadline_ns : UINT64_MAX);
	err = have(cluster->node, asking->place.address, wanted);
	rdmatensor_node_until(former_ns);
	if (rank != cluster->rank)
		node_guard(former);
	/* The guard has said all that there is to be said */
	if (err && err != -EINTR && !asking->guard.err)
		fail(cluster, rank, err, "");
	return err;
}

int cluster_get(struct rdmatensor_cluster *cluster, unsigned int rank, const char *const *names,
		struct rdmatensor_tensor *tensors, unsigned int nr, uint64_t deadline_ns)
{
	struct wanted wanted = { .names = names, .tensors = tensors, .nr = nr };
	struct asking asking;
	int err = ask(&asking, cluster, rank, deadline_ns, have_each, &wanted);

	return asking.begun && !asking.guard.err ? answered(err) : err;
}

/* As ask(), by the cluster's deadline */
static int ask_of(struct rdmatensor_cluster *cluster, unsigned int rank,
		  int (*have)(struct rdmatensor_node *node, const char *peer,
			      const struct wanted *wanted),
		  const struct wanted *wanted)
{
	struct asking asking = { .begun = false };
	unsigned int i;
	int err;

	node_clear_error();
	err = cluster_has(cluster, rank);
	if (!err)
		err = ask(&asking, cluster, rank, cluster_deadline(cluster), have, wanted);
	for (i = 0; !asking.begun && wanted->errors && i < wanted->nr; i++)
		wanted->errors[i] = err;
	return err;
}

int rdmatensor_cluster_get_each(struct rdmatensor_cluster *cluster, unsigned int rank,
				const char *const *names, struct rdmatensor_tensor *tensors,
				unsigned int nr, int *errors)
{
	struct wanted wanted = { .names = names, .tensors = tensors, .nr = nr, .errors = errors };

	return ask_of(cluster, rank, have_each, &wanted);
}

int rdmatensor_cluster_get_many(struct rdmatensor_cluster *cluster, unsigned int rank,
				const char *const *names, struct rdmatensor_tensor *tensors,
				unsigned int nr)
{
	return rdmatensor_cluster_get_each(cluster, rank, names, tensors, nr, NULL);
}

int rdmatensor_cluster_get_generation(struct rdmatensor_cluster *cluster, unsigned int rank,
				      const char *const *names, struct rdmatensor_tensor *tensors,
				      unsigned int nr, int64_t *step)
{
	struct wanted wanted = { .names = names, .tensors = tensors, .nr = nr, .step = step };

	return ask_of(cluster, rank, have_generation, &wanted);
}

int rdmatensor_cluster_list(struct rdmatensor_cluster *cluster, unsigned int rank,
			    const char *prefix, void **out, uint64_t *bytes)
{
	struct wanted wanted = { .prefix = prefix, .list = out, .bytes = bytes };

	*out = NULL;
	*bytes = 0;
	return ask_of(cluster, rank, have_list, &wanted);
}

int rdmatensor_cluster_address(struct rdmatensor_cluster *cluster, unsigned int rank, char *text,
			       size_t text_len)
{
	char address[ADDRESS_ROOM];
	int err;

	node_clear_error();
	err = cluster_has(cluster, rank);
	if (!err)
		err = cluster_locate(cluster, rank, cluster_deadline(cluster), address);
	if (err)
		return err;
	if (strlen(address) >= text_len)
		return node_fail(-EMSGSIZE, "cluster: the address of rank %u has %zu bytes: give room for RDMATENSOR_CLUSTER_ADDRESS_MAX",
				 rank, strlen(address));
	memcpy(text, address, strlen(address) + 1);
	return 0;
}

static int connect_one(struct rdmatensor_cluster *cluster, unsigned int rank, bool again, void *arg)
{
	return cluster_try_reach(cluster, rank, false, again, *(const uint64_t *)arg);
}

/* Those of @ranks that are others; @ranks NULL: all */
static int others(struct rdmatensor_cluster *cluster, const unsigned int *ranks, unsigned int nr,
		  unsigned int **out, unsigned int *nr_out)
{
	unsigned int i, rank;
	int err;

	if (!ranks)
		nr = rdmatensor_cluster_size(cluster);
	*nr_out = 0;
	*out = calloc(nr ? nr : 1, sizeof(**out));
	if (!*out)
		return node_fail(-ENOMEM, "cluster: out of memory");
	for (i = 0; i < nr; i++) {
		rank = ranks ? ranks[i] : i;
		err = cluster_has(cluster, rank);
		if (err)
			return err;
		if (rank != cluster->rank)
			(*out)[(*nr_out)++] = rank;
	}
	return 0;
}

int rdmatensor_cluster_connect(struct rdmatensor_cluster *cluster, const unsigned int *ranks,
			       unsigned int nr)
{
	uint64_t deadline_ns = cluster_deadline(cluster);
	struct cluster_round round = {
		.work = connect_one, .arg = &deadline_ns, .deadline_ns = deadline_ns,
		.stage = RDMATENSOR_CLUSTER_CONNECTING,
	};
	unsigned int *wanted, i;
	int err;

	node_clear_error();
	err = others(cluster, ranks, nr, &wanted, &round.nr);
	if (err)
		goto out;
	round.ranks = wanted;
	round.errors = calloc(round.nr + 1, sizeof(*round.errors));
	if (!round.errors) {
		err = node_fail(-ENOMEM, "cluster: out of memory");
		goto out;
	}
	err = cluster_run(cluster, &round);
	if (err > 0) {
		node_fail(0, "%s", round.first ? round.first : "cluster: out of memory");
		if (err > 1)
			node_fail_more("; and %d other ranks of %u", err - 1, round.nr);
		for (i = 0; !round.errors[i]; i++)
			;
		err = round.errors[i];
	}
	free(round.first);
	free(round.errors);
out:
	free(wanted);
	return err;
}

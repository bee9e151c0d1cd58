/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The short way into librdmatensor: a node offers tensors by name, and gets those of other nodes
 * from "HOST[:PORT]/NAME". It has a context, pools that grow as they are used, channels that are
 * kept and made again, and a thread that reaps. Whatever the short calls do not say, the thin ones
 * of <rdmatensor/rdmatensor.h> do, on rdmatensor_node_handle().
 *
 * Errors: a call that fails returns a negative errno, or NULL; rdmatensor_node_error() then says why
 * and what to do, in one line.
 *
 * The environment: RDMA_DEVICE and all variables of rdmatensor-params(7) are honoured. Where several
 * devices are active and none is named, the first that leads to a peer is taken.
 *
 * Threads: any number of threads may use one node at once. rdmatensor_node_close() runs alone. A
 * forked child must leave the node alone.
 */
#ifndef RDMATENSOR_NODE_H
#define RDMATENSOR_NODE_H

#include <rdmatensor/rdmatensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct rdmatensor_node - a worker that offers and gets */
struct rdmatensor_node;

/**
 * struct rdmatensor_tensor - a tensor in this process
 * @data: first byte
 * @bytes: length; 0 in a tensor that is offered: that of its shape
 * @step: its step, 0 where there are none
 * @data_type: enum rdmatensor_data_type
 * @ndims: length of @dims, 0: a scalar
 * @dims: the shape
 * @slice: of one that is got: its part that is wanted, as rdmatensor_prep_slice() has it, which @dims and
 *         @bytes then describe; NULL: all of it
 * @slice_room: the length of @slice is that of 64 bits on any machine
 * @slice_ndims: number of ranges at @slice, up to RDMATENSOR_DIMS_MAX; 0: one, of bytes
 * @flags: of one that is got: RDMATENSOR_TENSOR_NEWEST: the newest step from @step on, and @step is set
 *         to it; RDMATENSOR_TENSOR_NOWAIT: -ENOENT if the peer does not offer it now
 * @strides: its elements do not lie together at @data: of each dim, the slowest first, the distance in bytes
 *           from one to the next and how many have a place, @ndims of them, as rdmatensor_prep_strides() has
 *           it; NULL: they lie together. Of one that is got to @data: @ndims says before the call how many
 *           dims come, @data_type of which type (0: any), and @bytes are those from the first element to
 *           the last, 0: as many as the places take
 * @strides_room: the length of @strides is that of 64 bits on any machine
 *
 * Columns 0 to 511 of an array of 64 by 4096 floats, which come from a peer:
 *
 *	struct rdmatensor_stride strides[2] = { { 4096 * 4, 64 }, { 4, 512 } };
 *	struct rdmatensor_tensor columns = { .data = array, .strides = strides, .ndims = 2,
 *					     .data_type = RDMATENSOR_DT_FLOAT };
 *
 * Clear it before the members are set, and set @data and @bytes again before each rdmatensor_get(), and
 * with @strides @ndims and @data_type: they are in and out. Its size is final.
 */
struct rdmatensor_tensor {
	void *data;
	uint64_t bytes;
	int64_t step;
	uint32_t data_type;
	uint32_t ndims;
	uint64_t dims[RDMATENSOR_DIMS_MAX];
	union {
		const struct rdmatensor_range *slice;
		uint64_t slice_room;
	};
	uint64_t slice_ndims;
	uint64_t flags;
#define RDMATENSOR_TENSOR_NEWEST (1 << 0)
#define RDMATENSOR_TENSOR_NOWAIT (1 << 1)
	union {
		const struct rdmatensor_stride *strides;
		uint64_t strides_room;
	};
};

/**
 * rdmatensor_node_open() - make a node
 * @out: the node, for rdmatensor_node_close(); NULL if the call fails
 * @listen: "HOST:PORT" or ":PORT" where peers come to get what is offered; "HOST": port
 *          RDMATENSOR_PORT; port 0: any, see rdmatensor_node_port(); NULL: this node only gets
 *
 * Return: 0; as rdmatensor_open(), rdmatensor_start_from_env() and rdmatensor_start(); -ENOTUNIQ
 * only if @listen is there: a node that only gets may find its device later.
 */
int rdmatensor_node_open(struct rdmatensor_node **out, const char *listen);

/**
 * rdmatensor_node_close() - end a node
 * @node: or NULL
 *
 * What it offered, its memory and its channels are gone when this returns, in bounded time, as
 * rdmatensor_close() does. No other thread may be in a call of the node's.
 */
void rdmatensor_node_close(struct rdmatensor_node *node);

/**
 * rdmatensor_node_error() - why this thread's last short call failed
 *
 * Return: a line with operation, object, cause and remedy, valid until the thread's next short call;
 * "" if that has not failed, which rdmatensor_node_free() and rdmatensor_node_free_many() leave as it is.
 */
const char *rdmatensor_node_error(void);

/**
 * rdmatensor_node_timeout() - how long calls wait that get something
 * @node: the node
 * @ms: at least 1 to have a chance; for all of a call: until the peer has come up and offered the tensor,
 *      and it has arrived; until the list is complete; negative: for ever. At first 10000
 *
 * For rdmatensor_get(), rdmatensor_get_many(), rdmatensor_get_generation(), rdmatensor_wait_generation(),
 * rdmatensor_list(), rdmatensor_node_table_open() and rdmatensor_get_rows(), and for
 * rdmatensor_offer_generation(), rdmatensor_withdraw_generation() and rdmatensor_withdraw_offer() that
 * find the completion ring full.
 *
 * If a tensor has not come by then, or with RDMATENSOR_TENSOR_NOWAIT is not there, the peer is asked what it
 * offers of a like name, for up to 250 ms more. One thread of the node does that at a time, and then none for
 * eight times of what it took.
 */
void rdmatensor_node_timeout(struct rdmatensor_node *node, int64_t ms);

/**
 * rdmatensor_node_until() - when this thread's calls end that rdmatensor_node_timeout() bounds
 * @deadline_ns: CLOCK_MONOTONIC, as from rdmatensor_deadline_ms(), in place of the timeouts of all nodes;
 *               UINT64_MAX: never; 0, which is also rdmatensor_deadline_ms(-1): the timeouts count again
 *
 * Of one that has passed, calls end with -ETIMEDOUT as soon as they would have to wait.
 *
 * For the calling thread alone, until it says otherwise: one bound for several calls, or for one that is
 * repeated after a signal.
 *
 * Return: what was set before.
 */
uint64_t rdmatensor_node_until(uint64_t deadline_ns);

/**
 * rdmatensor_node_interruptible() - whether a signal ends calls that get something
 * @node: the node
 * @on: 1: they return -EINTR; 0, as at first: they go on
 *
 * For the next calls of all threads, those that rdmatensor_node_timeout() names. The signal's handler must
 * have been installed without SA_RESTART; a signal that comes right before the call, or between two
 * waits of it, does not end it. Waiting for a peer to come up ends by a signal in either case. What a
 * publisher has failed with is never -EINTR: -EREMOTEIO stands for that. The node's own thread takes no
 * signals.
 */
void rdmatensor_node_interruptible(struct rdmatensor_node *node, int on);

/**
 * rdmatensor_node_handle() - the context of a node, for the thin calls
 * @node: the node
 *
 * The node's own thread reaps, so use blocking calls on it (rdmatensor_run(), rdmatensor_fetch(),
 * rdmatensor_gather(), rdmatensor_publish(), rdmatensor_withdraw()), and do not submit and reap.
 *
 * Return: the handle; NULL: the node has not found its device yet.
 */
struct rdmatensor *rdmatensor_node_handle(struct rdmatensor_node *node);

/**
 * rdmatensor_node_port() - where peers reach a node that listens
 * @node: the node
 *
 * Return: the port; 0: it does not listen.
 */
unsigned int rdmatensor_node_port(struct rdmatensor_node *node);

/**
 * rdmatensor_node_alloc() - memory that can be offered without being copied
 * @node: the node
 * @bytes: at least 1
 *
 * No peer can write to it. Aligned to RDMATENSOR_REGION_ALIGN, not cleared.
 *
 * Return: for rdmatensor_node_free(); NULL.
 */
void *rdmatensor_node_alloc(struct rdmatensor_node *node, uint64_t bytes);

/**
 * rdmatensor_node_alloc_out() - memory that is got to without being copied
 * @node: the node
 * @bytes: at least 1
 *
 * Peers write to it while rdmatensor_get() has a tensor come to it, or to a part of it: one that begins at
 * a multiple of RDMATENSOR_REGION_ALIGN, or any with strides. Aligned to that, not cleared. What is offered
 * from there is copied.
 *
 * Return: for rdmatensor_node_free(); NULL.
 */
void *rdmatensor_node_alloc_out(struct rdmatensor_node *node, uint64_t bytes);

/**
 * rdmatensor_node_free() - give memory of the node's back
 * @node: the node
 * @data: from rdmatensor_node_alloc(), _alloc_out() or _alloc_rows(), or of a tensor or rows that
 *        rdmatensor_get() or rdmatensor_get_rows() had a place for; or NULL
 *
 * Return: 0; -EBUSY: it is offered; -ENOENT: it is not the node's, or no first byte.
 */
int rdmatensor_node_free(struct rdmatensor_node *node, void *data);

/**
 * rdmatensor_node_free_many() - give several pieces of memory back, by one system call
 * @node: the node
 * @data: each as for rdmatensor_node_free(), but not NULL
 * @nr: their number
 *
 * Return: 0; else the error of the first that is not, and all others are given back.
 */
int rdmatensor_node_free_many(struct rdmatensor_node *node, void *const *data, unsigned int nr);

/**
 * rdmatensor_offer() - let peers get a tensor, as often as they want
 * @node: the node
 * @name: the tensor's: up to RDMATENSOR_NAME_MAX bytes, any but 0
 * @tensor: what is offered
 *
 * Memory of rdmatensor_node_alloc(), or a part of it that begins at a multiple of
 * RDMATENSOR_REGION_ALIGN or has strides, is offered as it is, and must not change until
 * rdmatensor_withdraw_offer() has returned. Any other is copied, and is the caller's at once.
 *
 * Return: 0; -EEXIST: the name is offered for that step already; -EINVAL: shape and length do not
 * fit, the name, the type or the number of dims is none that there is, or a slice is set; -ENOMEM.
 */
int rdmatensor_offer(struct rdmatensor_node *node, const char *name,
		     const struct rdmatensor_tensor *tensor);

/**
 * rdmatensor_withdraw_offer() - end an offer
 * @node: the node
 * @name: the tensor's
 * @step: its step
 *
 * Waits for peers that are getting it. Return: 0; -ENOENT: it is not offered; -EAGAIN: the completion
 * ring had no room for it within the timeout, and the offer goes on; -EINTR: so it does by a signal that
 * came while the ring had none (rdmatensor_node_interruptible()).
 */
int rdmatensor_withdraw_offer(struct rdmatensor_node *node, const char *name, int64_t step);

/**
 * rdmatensor_get() - get a peer's tensor
 * @node: the node
 * @from: "HOST[:PORT]/NAME", port RDMATENSOR_PORT if none is there; "/NAME": of this node itself
 * @tensor: in: @step; @data: where it goes, of @bytes; NULL: the node finds a place, and
 *          rdmatensor_node_free() gives that back. Out: all members
 *
 * Connects to the peer if there is no channel, and again if it went down. If all channels are taken
 * then (-EUSERS), here or at the peer, it tries again until the timeout, for either side may still
 * count the channel that went down, and returns -EUSERS at its end. A peer that has no place for a
 * first channel is not waited for.
 *
 * A place of the caller's own costs a copy by the processor: peers write to the node's memory only.
 *
 * A signal ends it if rdmatensor_node_interruptible() says so: its fetches are cancelled first.
 *
 * Return: 0; -EINTR; -ENOENT: with RDMATENSOR_TENSOR_NOWAIT: it is not offered now; -ESTALE: a newer
 * generation has taken the place of that step; -ETIMEDOUT: no such tensor within the timeout, or no
 * room in the completion ring (RDMATENSOR_RING_ENTRIES), as rdmatensor_node_error() says; -EMSGSIZE: it is longer than its place,
 * and @tensor says how long; -ERANGE: it has no such slice; -EINVAL: @from names no host, or no tensor, or
 * more ranges of a slice than there are dims; -EOPNOTSUPP: the peer's module knows no slices, or none of
 * the @flags; or as rdmatensor_connect().
 */
int rdmatensor_get(struct rdmatensor_node *node, const char *from,
		   struct rdmatensor_tensor *tensor);

/**
 * rdmatensor_get_many() - have several tensors of a peer, in flight at once as far as the ring has room
 * @node: the node
 * @peer: "HOST[:PORT]"; "": this node itself
 * @names: of the tensors
 * @tensors: each as for rdmatensor_get()
 * @nr: their number
 *
 * What does not come keeps none of the others: as long as the completion ring (RDMATENSOR_RING_ENTRIES)
 * has room for more, more are asked for.
 *
 * Return: 0: all are there; else the error of the first that is not, and rdmatensor_node_error() says how
 * many more are not. What came has its place all the same: a tensor that did not come has no @data, if it
 * had none before.
 */
int rdmatensor_get_many(struct rdmatensor_node *node, const char *peer,
			const char *const *names, struct rdmatensor_tensor *tensors,
			unsigned int nr);

/**
 * rdmatensor_get_each() - rdmatensor_get_many(), with an error of each tensor
 * @node: the node
 * @peer: "HOST[:PORT]"; "": this node itself
 * @names: of the tensors
 * @tensors: each as for rdmatensor_get()
 * @nr: their number
 * @errors: out: of each tensor 0, or a negative errno as of rdmatensor_get(); what ended the whole call
 *          (-EINTR, no such peer, -ENOMEM) is that of each tensor that had not ended. May be NULL
 *
 * Return: as rdmatensor_get_many().
 */
int rdmatensor_get_each(struct rdmatensor_node *node, const char *peer,
			const char *const *names, struct rdmatensor_tensor *tensors,
			unsigned int nr, int *errors);

/**
 * rdmatensor_offer_generation() - let peers get a set of tensors in place of the former set
 * @node: the node
 * @group: name of the set, which all its generations share: any string that is not empty
 * @step: number of this generation. A number must never come back with other content: a reader that is
 *        getting the former one of that number would have some of both
 * @names: of the tensors, each once
 * @tensors: each as for rdmatensor_offer(), but for @step, which is not read
 * @nr: their number, at least 1
 *
 * All of them become visible in one moment, in which those of the group's former generation cease to be:
 * who asks for the newest step gets the former one or this one, and rdmatensor_get_generation() gets all
 * of one. No other offer may have these names. Memory of rdmatensor_node_alloc() is offered as it is, and must not change until
 * rdmatensor_wait_generation() has returned after the next generation; any other is copied, and the
 * copies are given back when no peer reads them any more: there are two generations at least, and more
 * with slow readers. The generation ends with the node, or with its process.
 *
 * Return: 0; an error: nothing has changed, and the former generation is visible: -EEXIST: this step is
 * visible already, or a name is offered for it; -ENOSPC: peers still read RDMATENSOR_GENERATIONS_MAX
 * former ones; -EBUSY: another process of the domain fills this step; -EINVAL, -ENOMEM: as for
 * rdmatensor_offer(); -EAGAIN, -EINTR: as for rdmatensor_withdraw_offer().
 */
int rdmatensor_offer_generation(struct rdmatensor_node *node, const char *group, int64_t step,
				const char *const *names, const struct rdmatensor_tensor *tensors,
				unsigned int nr);

/**
 * rdmatensor_wait_generation() - until what a group's generations have replaced is not read any more
 * @node: the node that has offered them
 * @group: name of the group
 *
 * Memory of all its tensors but those of the visible generation is the caller's again then.
 *
 * Return: 0; -ETIMEDOUT: a peer still reads some, within the node's timeout; -EINTR: a signal.
 */
int rdmatensor_wait_generation(struct rdmatensor_node *node, const char *group);

/**
 * rdmatensor_withdraw_generation() - end a group's visible generation
 * @node: the node that has offered it
 * @group: name of the group
 *
 * As rdmatensor_withdraw_offer(). Return: 0; -ENOENT: it offers none; -EAGAIN, -EINTR.
 */
int rdmatensor_withdraw_generation(struct rdmatensor_node *node, const char *group);

/**
 * rdmatensor_get_generation() - have several tensors of a peer, all of the newest generation
 * @node: the node
 * @peer: "HOST[:PORT]"; "": this node itself
 * @names: of the tensors, all of one group; the first one says which generation is the newest, and is
 *         waited for
 * @tensors: each as for rdmatensor_get(), but for @step and @flags, which are not read
 * @nr: their number, at least 1
 * @step: in: the least step that will do, INT64_MIN: any; out: that of all tensors
 *
 * Waits for a generation from that step on. If another one takes its place before all have come, it
 * begins anew: what it returns is never of two, as long as no number comes back. Of a writer that has gone
 * back to an older step there is nothing from a newer one on: ask for any.
 *
 * Return: 0; an error: as rdmatensor_get_many(), but nothing has come: @step is as it was, what the node
 * had a place for is given back, and places of the caller's may have been written to. -ENOENT: that
 * generation has no tensor of one of the other names.
 */
int rdmatensor_get_generation(struct rdmatensor_node *node, const char *peer,
			      const char *const *names, struct rdmatensor_tensor *tensors,
			      unsigned int nr, int64_t *step);

/**
 * rdmatensor_list() - what a peer offers
 * @node: the node
 * @peer: "HOST[:PORT]"; "": this node itself
 * @prefix: names that begin with it; NULL or "": all names
 * @out: out: one struct rdmatensor_list_entry after the other, for rdmatensor_list_next(), in the order
 *       of RDMATENSOR_OP_LIST; for free(). NULL: there is none, or the call fails
 * @bytes: out: length of *@out
 *
 * Connects as rdmatensor_get() does. It does not wait for tensors: what is not offered is not in the
 * list, and neither are tables of rows. A name that is offered all the time is there once for each step.
 *
 * Return: 0; -EINTR; -ETIMEDOUT; -EACCES: the peer does not tell (its parameter list_mode); -EOPNOTSUPP:
 * its module or this host's is too old; -EMSGSIZE: the list has more than 256 MiB; -EINVAL: the prefix is longer than
 * RDMATENSOR_NAME_MAX; or as rdmatensor_connect().
 */
int rdmatensor_list(struct rdmatensor_node *node, const char *peer, const char *prefix, void **out,
		    uint64_t *bytes);

/**
 * rdmatensor_node_alloc_rows() - memory whose rows can be offered without being copied
 * @node: the node
 * @bytes: at least 1
 *
 * Peers can read what is offered of it, and nobody can write to it. It begins with a page, and is not
 * cleared.
 *
 * Return: for rdmatensor_node_free(); NULL.
 */
void *rdmatensor_node_alloc_rows(struct rdmatensor_node *node, uint64_t bytes);

/**
 * rdmatensor_offer_rows() - let peers read rows of a table, which other nodes have parts of, too
 * @node: the node, which listens
 * @name: the table's, the same at all its owners: up to RDMATENSOR_NAME_MAX bytes, any but 0
 * @rows: @data, @data_type, and the shape: the first dim is the number of rows, the others are those
 *        of a row, of 1 to 1048576 bytes
 * @first: number of the first row in the table
 *
 * Memory of rdmatensor_node_alloc_rows(), or a part of it that begins at a multiple of 4096, is
 * offered as it is, up to the end of the last row's page: peers read it without a word to this
 * process, so one that writes to it meanwhile has them read some of both. Any other is copied, and
 * is the caller's at once.
 *
 * Return: 0; -EEXIST: the node offers rows of that name; -EINVAL: shape and length do not fit;
 * -ENOMEM; as rdmatensor_table_export().
 */
int rdmatensor_offer_rows(struct rdmatensor_node *node, const char *name,
			  const struct rdmatensor_tensor *rows, uint64_t first);

/**
 * rdmatensor_withdraw_rows() - end an offer of rows
 * @node: the node
 * @name: the table's
 *
 * When it returns, peers cannot read them any more: their gathers fail. The memory of a copy goes when
 * no table of this node itself has its rows any more. Return: 0; -ENOENT: they are not offered.
 */
int rdmatensor_withdraw_rows(struct rdmatensor_node *node, const char *name);

/** struct rdmatensor_node_table - a table whose rows can be got */
struct rdmatensor_node_table;

/**
 * struct rdmatensor_node_table_options - how a table is read
 * @cache_first: number of the first row of which a copy is kept
 * @cache_end: number after the last one; not beyond @cache_first: none are
 * @order: array that turns ids into row numbers, which is copied; NULL: ids are row numbers
 * @order_nr: its length: ids are 0..order_nr - 1
 * @__reserved: 0
 *
 * Its size is final.
 */
struct rdmatensor_node_table_options {
	uint64_t cache_first;
	uint64_t cache_end;
	const uint64_t *order;
	uint64_t order_nr;
	uint64_t __reserved[4];
};

/**
 * rdmatensor_node_table_open() - find a table that is partitioned over nodes
 * @node: the node
 * @name: the table's
 * @owners: "HOST[:PORT]" of each; "": this node itself
 * @nr: their number
 * @options: or NULL: no cache, no order
 * @out: for rdmatensor_node_table_close(); NULL if the call fails
 *
 * Waits for the owners to come up and to offer their rows, within the node's timeout. Rows of a
 * cache are read once, now: what owners change later is not in it.
 *
 * Return: 0; -EINTR: a signal; -ENOMEM; as rdmatensor_connect() and rdmatensor_table_open().
 */
int rdmatensor_node_table_open(struct rdmatensor_node *node, const char *name,
			       const char *const *owners, unsigned int nr,
			       const struct rdmatensor_node_table_options *options,
			       struct rdmatensor_node_table **out);

/**
 * rdmatensor_node_table_shape() - what a table is
 * @table: the table
 * @shape: out: two dims, the number of ids, which is that of the rows without an order, and the
 *         elements of a row; @data_type, and @bytes of a row; @data is NULL
 */
void rdmatensor_node_table_shape(const struct rdmatensor_node_table *table,
				 struct rdmatensor_tensor *shape);

/**
 * rdmatensor_get_rows() - get rows of a table
 * @table: the table
 * @ids: which, in the order in which they are wanted; the same may be wanted twice
 * @nr: their number
 * @rows: in: @data: where they go, of @bytes; NULL: the node finds a place, and
 *        rdmatensor_node_free() gives that back. Out: all members: two dims, @nr and the elements
 *        of a row
 *
 * Any number of threads may get rows of one table. If an owner has gone, one of them opens the table
 * again, within the node's timeout, which bounds all of the call. A place of the caller's own costs a
 * copy by the processor.
 *
 * Return: 0; -ERANGE: an id that the table has not; -EMSGSIZE: @rows has less room, and its @bytes
 * says how much they take; -ESTALE: an owner came back with other rows: open the table again;
 * -ETIMEDOUT: an owner has gone, and another thread still waits for it; -EINTR: a signal, if
 * rdmatensor_node_interruptible() says so; as rdmatensor_gather() and
 * rdmatensor_node_table_open().
 */
int rdmatensor_get_rows(struct rdmatensor_node_table *table, const uint64_t *ids, uint64_t nr,
			struct rdmatensor_tensor *rows);

/**
 * rdmatensor_node_table_close() - end the use of a table
 * @table: or NULL
 *
 * Before rdmatensor_node_close(). No other thread may be in a call with it.
 */
void rdmatensor_node_table_close(struct rdmatensor_node_table *table);

#ifdef __cplusplus
}
#endif

#endif /* RDMATENSOR_NODE_H */

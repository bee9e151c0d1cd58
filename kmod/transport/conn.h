/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections: an rdma_cm id and its queue pair, seen from either end.
 *
 * All lanes are connected by the same steps, those of channels (cm.c) and those for READs
 * (readlane.c). The side that connects resolves the address and the route, makes its queue
 * pair, and asks; the other side makes its own and accepts, or refuses with an errno. What a
 * connection is for, and what its failure takes along, is its owner's business: see struct
 * rdmatensor_conn_ops.
 */
#ifndef RDMATENSOR_CONN_H
#define RDMATENSOR_CONN_H

#include <linux/wait.h>
#include "transport/qp.h"

struct net;
struct rdmatensor_conn;

/**
 * struct rdmatensor_conn_ops - the owner of a connection
 * @open: makes the queue pair, conn->qp, on the device of conn->id. Return: 0, or a negative
 *        errno with nothing left behind
 * @describe: fills @private for the request or the answer; @mtu is the one to name
 * @alive: whether what a handler makes is still of use. If so, the connection is not taken
 *         apart until the handler returns
 * @answer: checks the peer's answer, of this protocol and version, and @terms, which both sides
 *          agree to. Return: 0, or a negative errno and @why
 * @up: the connection is established
 * @failed: it could not be established, or has broken; @text is constant. Any number of times
 * @left: the peer has disconnected
 * @refusal: what the peer's refusal with @error counts as. NULL: as that
 * @stopped: what ends the set-up from outside, once conn->wait is woken. Return: 0: nothing;
 *           a negative errno
 *
 * All but @open, @describe and @stopped are called in rdma_cm's handler of the id alone. None
 * is called under a lock of the connection's.
 */
struct rdmatensor_conn_ops {
	int (*open)(struct rdmatensor_conn *conn);
	void (*describe)(const struct rdmatensor_conn *conn, u8 mtu,
			 struct rdmatensor_wire_private *private);
	bool (*alive)(struct rdmatensor_conn *conn);
	int (*answer)(struct rdmatensor_conn *conn,
		      const struct rdmatensor_wire_private *private,
		      const struct rdmatensor_qp_terms *terms, const char **why);
	void (*up)(struct rdmatensor_conn *conn);
	void (*failed)(struct rdmatensor_conn *conn, int error, const char *text);
	void (*left)(struct rdmatensor_conn *conn);
	int (*refusal)(struct rdmatensor_conn *conn, int error);
	int (*stopped)(struct rdmatensor_conn *conn);
};

/**
 * struct rdmatensor_conn - one connection, embedded in a lane
 * @ops: the owner's
 * @params: of the channel that it belongs to
 * @wait: woken when a step has ended; the owner wakes it when its stopped() changes
 * @active: this side connects it
 * @reads_in: READs of the peer that this side answers at the same time, at most
 * @reads_out: READs of this side that are in flight at the same time, at most
 * @id: rdma_cm's; NULL: there is none
 * @qp: the queue pair; qp.qp is NULL while there is none
 * @step_done: the step that was begun has ended (release/acquire)
 * @step_error: how, a negative errno or 0. After a failure it stays until the next step begins:
 *              the connection has ended, or never was established
 * @answered: a program at the other end has accepted the connection, or refused it
 *
 * The owner sets the members before @id, once; all others are zero then.
 */
struct rdmatensor_conn {
	const struct rdmatensor_conn_ops *ops;
	const struct rdmatensor_channel_params *params;
	wait_queue_head_t *wait;
	bool active;
	u8 reads_in;
	u8 reads_out;
	struct rdma_cm_id *id;
	struct rdmatensor_qp qp;
	bool step_done;
	int step_error;
	bool answered;
};

/**
 * struct rdmatensor_conn_target - where a connection is to lead, and for how long to try
 * @net: network namespace
 * @adapter: the device and port that it must go over
 * @peer: the peer's listener
 * @deadline: in jiffies, for all steps
 * @stop: ends the set-up when it is not 0 and conn->wait is woken; NULL: a signal does
 */
struct rdmatensor_conn_target {
	struct net *net;
	const struct rdmatensor_adapter *adapter;
	const struct sockaddr *peer;
	unsigned long deadline;
	const int *stop;
};

/**
 * rdmatensor_conn_connect - connect to a listener
 * @conn: without an id
 * @to: the listener
 * @step: out: the step that is being done, for the user: "could not @step"
 *
 * Process context. Return: 0: the connection is established; -EINTR: a signal, or @to->stop;
 * what stopped() returned; -ETIMEDOUT: the deadline; -EXDEV: the route leads over another
 * device or port; -EAFNOSUPPORT: the adapter has no address of the peer's family;
 * -ECONNREFUSED, or the peer's errno: refused; another negative errno. The owner ends what has
 * been made so far, by rdmatensor_conn_disconnect() and rdmatensor_conn_destroy().
 */
int rdmatensor_conn_connect(struct rdmatensor_conn *conn,
			    const struct rdmatensor_conn_target *to, const char **step);

/**
 * rdmatensor_conn_adopt - take the id of a connection request
 * @conn: without an id
 * @id: its events come to @conn from here on
 *
 * In rdma_cm's handler of the listener, which holds back all other handlers of @id. Atomic.
 */
void rdmatensor_conn_adopt(struct rdmatensor_conn *conn, struct rdma_cm_id *id);

/**
 * rdmatensor_conn_prepare - make the queue pair that the peer asks for
 * @conn: with the id of the request
 * @adapter: bounds the path
 * @peer: the request, with checked private data
 * @terms: out: what both sides agree to
 *
 * In the same handler. Return: 0: the queue pair can receive and send; a negative errno: the
 * owner frees the queue pair if there is one.
 */
int rdmatensor_conn_prepare(struct rdmatensor_conn *conn,
			    const struct rdmatensor_adapter *adapter,
			    const struct rdma_conn_param *peer,
			    struct rdmatensor_qp_terms *terms);

/* Answers the request, with those terms. In the same handler. Return: 0, a negative errno */
int rdmatensor_conn_accept(struct rdmatensor_conn *conn,
			   const struct rdmatensor_qp_terms *terms);

/* Refuses a request; the peer reads the negative errno @error from the reject's private data */
void rdmatensor_conn_reject(struct rdma_cm_id *id, int error);

/* What the user can do about a set-up that ended with @error, or a refusal with it */
const char *rdmatensor_conn_remedy(int error);

/*
 * Waits for handlers that are making something, then begins to end what is in flight, and
 * notifies the peer. The owner's alive() is false by then. Process context. No-op without an id
 */
void rdmatensor_conn_disconnect(struct rdmatensor_conn *conn);
/* The id goes; the queue pair has been freed. No handler runs then. Process context */
void rdmatensor_conn_destroy(struct rdmatensor_conn *conn);

#endif /* RDMATENSOR_CONN_H */

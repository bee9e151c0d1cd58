/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections of channels: the listener, and the lanes of a channel from either end.
 */
#ifndef RDMATENSOR_CM_H
#define RDMATENSOR_CM_H

#include "memory/adapter.h"
#include "transport/channel.h"

struct net;

/**
 * struct rdmatensor_cm_ops - what incoming connections need of their owner
 * @accept: lane 0 of a new channel: make it, with its message buffer, and enter
 *          it in the owner's table. Return: a reference, or ERR_PTR: the reject's errno
 * @accept_read: a lane for READs of a channel that is UP. Return: 0: @id is taken; the
 *          reject's errno
 * @find: the channel of a nonce, for lanes 1 and up. Return: a reference or NULL
 */
struct rdmatensor_cm_ops {
	struct rdmatensor_channel *(*accept)(struct rdmatensor_context *owner,
					     const struct rdmatensor_wire_private *private,
					     const struct sockaddr *peer);
	struct rdmatensor_channel *(*find)(struct rdmatensor_context *owner, u64 nonce);
	int (*accept_read)(struct rdmatensor_context *owner,
			   const struct rdmatensor_wire_private *private,
			   struct rdma_cm_id *id, const struct rdma_cm_event *event);
};

/**
 * struct rdmatensor_cm - a context's side of connection management
 * @owner: the context
 * @ops: its functions
 * @adapter: where connections must come from and go to
 * @domain: where queue pairs are made
 * @net: network namespace, referenced by the owner
 * @listener: NULL: not listening
 * @listen_addr: what it is bound to; family 0: it never listened. Stays when it has gone, as
 *               a connect reads it without a lock
 * @listen_port: its port, host order
 */
struct rdmatensor_cm {
	struct rdmatensor_context *owner;
	const struct rdmatensor_cm_ops *ops;
	struct rdmatensor_adapter *adapter;
	struct rdmatensor_domain *domain;
	struct net *net;
	struct rdma_cm_id *listener;
	struct sockaddr_storage listen_addr;
	u16 listen_port;
};

/* @addr: family 0: the adapter's address. Return: 0, -EADDRINUSE, ..., with @cause */
int rdmatensor_cm_listen(struct rdmatensor_cm *cm, const struct sockaddr *addr,
			 char *cause, size_t room);
/* No accept() or find() runs or will run when it returns */
void rdmatensor_cm_unlisten(struct rdmatensor_cm *cm);

/**
 * rdmatensor_cm_connect - set up all lanes of an active channel, and say HELLO
 * @cm: of the owner
 * @channel: CONNECTING, with a message buffer
 * @addr: the peer's listener
 * @timeout_ms: for everything
 * @cause: line for the user
 * @room: bytes of it
 * @absent: out: no worker at the other end has answered, so one may come later
 *
 * Return: 0: the channel was UP; else a negative errno, and the channel has been
 * failed.
 */
int rdmatensor_cm_connect(struct rdmatensor_cm *cm, struct rdmatensor_channel *channel,
			  const struct sockaddr *addr, u32 timeout_ms, char *cause,
			  size_t room, bool *absent);

/* Ends all lanes of a CLOSING channel: when it returns, the peer can write nothing */
void rdmatensor_cm_teardown(struct rdmatensor_channel *channel);

#endif /* RDMATENSOR_CM_H */

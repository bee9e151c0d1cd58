// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of channels: the listener, the lanes of a channel, HELLO, and how a channel
 * leaves.
 *
 * A connection belongs to its lane from the moment that it has an id, and only
 * rdmatensor_cm_teardown() destroys it then. Handlers fail the channel, whose owner runs
 * the teardown in process context. A connection request that finds no lane is refused, and
 * returned to rdma_cm by the handler's return value.
 *
 * An active channel's set-up runs in the process that connects. The teardown waits for its
 * end, which a failed channel brings about at the next step.
 *
 * Handlers and the teardown meet at two places: a handler looks at the channel's
 * state under its lock before it makes anything, and the teardown passes once
 * through the id's handler lock before it takes anything apart. Before that it may
 * disconnect, and wait for the handlers to report what came of it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/inet.h>
#include <net/ipv6.h>
#include "core/fault.h"
#include "memory/domain.h"
#include "transport/cm.h"
#include "transport/conn.h"
#include "transport/lane.h"

#define CM_RD_ATOMIC_MAX 16
#define CM_BACKLOG 128

__printf(3, 4)
static void cm_cause(char *cause, size_t room, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(cause, room, fmt, args);
	va_end(args);
}

static struct rdmatensor_lane *cm_lane_of(struct rdmatensor_conn *conn)
{
	return container_of(conn, struct rdmatensor_lane, conn);
}

static void cm_describe(const struct rdmatensor_conn *conn, u8 mtu,
			struct rdmatensor_wire_private *private)
{
	const struct rdmatensor_lane *lane = container_of_const(conn, struct rdmatensor_lane, conn);
	const struct rdmatensor_channel *channel = lane->channel;
	const struct rdmatensor_channel_params *params = channel->params;

	rdmatensor_wire_init_private(private, lane->index, channel->nr_lanes, channel->nonce,
				     mtu);
	if (!lane->index) {
		const struct rdmatensor_registration *reg = &channel->msgbuf.rx.reg;

		private->msgbuf_addr = cpu_to_le64(reg->iova);
		private->msgbuf_rkey = cpu_to_le32(reg->mrs[0].rkey);
	}
	private->msg_slots = cpu_to_le16(params->msg_slots);
	private->msg_slot_bytes = cpu_to_le32(params->msg_slot_bytes);
	private->ack_batch = cpu_to_le16(params->ack_batch);
	private->max_requests = cpu_to_le32(params->max_requests);
}

static bool cm_alive(struct rdmatensor_conn *conn)
{
	struct rdmatensor_channel *channel = cm_lane_of(conn)->channel;
	bool alive;

	spin_lock_bh(&channel->lock);
	alive = channel->state < RDMATENSOR_CHANNEL_CLOSING;
	spin_unlock_bh(&channel->lock);
	return alive;
}

static int cm_answer(struct rdmatensor_conn *conn, const struct rdmatensor_wire_private *private,
		     const struct rdmatensor_qp_terms *terms, const char **why)
{
	struct rdmatensor_lane *lane = cm_lane_of(conn);
	struct rdmatensor_channel *channel = lane->channel;

	if (private->flags || le64_to_cpu(private->nonce) != channel->nonce ||
	    private->lane != lane->index || private->lanes != channel->nr_lanes)
		return -EPROTO;
	return lane->index ? 0 : rdmatensor_channel_set_peer(channel, private, why);
}

static void cm_up(struct rdmatensor_conn *conn)
{
	struct rdmatensor_lane *lane = cm_lane_of(conn);

	if (!cm_alive(conn))
		return;
	if (!rdmatensor_qp_query(&conn->qp, &conn->qp.attr))
		/* Pairs with netlink_put_lane() */
		smp_store_release(&conn->qp.queried, true);
	/* An accepted lane counts since before its accept */
	if (conn->active)
		rdmatensor_channel_lane_connected(lane);
}

static void cm_failed(struct rdmatensor_conn *conn, int error, const char *text)
{
	rdmatensor_channel_fail(cm_lane_of(conn)->channel, error, text);
}

static void cm_left(struct rdmatensor_conn *conn)
{
	rdmatensor_hold("peer_left");
	/* A leave lets what this side has posted complete: nothing has failed yet */
	rdmatensor_channel_leave(cm_lane_of(conn)->channel, -ECONNRESET,
				 "the peer disconnected");
}

static int cm_open(struct rdmatensor_conn *conn)
{
	struct rdmatensor_lane *lane = cm_lane_of(conn);

	return rdmatensor_lane_open(lane, lane->channel->msgbuf.rx.reg.domain->pd);
}

/* The channel's end, and why: a failure of this lane comes first */
static int cm_stopped(struct rdmatensor_conn *conn)
{
	struct rdmatensor_channel *channel = cm_lane_of(conn)->channel;

	/* Pairs with channel_try_move() */
	if (smp_load_acquire(&channel->state) < RDMATENSOR_CHANNEL_CLOSING)
		return 0;
	return READ_ONCE(conn->step_error) ?: READ_ONCE(channel->error);
}

static const struct rdmatensor_conn_ops cm_conn_ops = {
	.open = cm_open,
	.describe = cm_describe,
	.alive = cm_alive,
	.answer = cm_answer,
	.up = cm_up,
	.failed = cm_failed,
	.left = cm_left,
	.stopped = cm_stopped,
};

static void cm_prepare(struct rdmatensor_lane *lane, bool active)
{
	struct rdmatensor_conn *conn = &lane->conn;

	conn->ops = &cm_conn_ops;
	conn->params = lane->channel->params;
	conn->wait = &lane->channel->wait;
	conn->active = active;
	conn->reads_in = CM_RD_ATOMIC_MAX;
	conn->reads_out = CM_RD_ATOMIC_MAX;
}

/* Why a connection was refused, and what to do about it */
static const char *cm_refusal(int error)
{
	switch (error) {
	case -EPROTO:
		return "the peer speaks otherwise: compare the versions on both sides";
	case -EXDEV:
		return "it came over another RDMA device than the worker's: connect to that one";
	case -EUSERS:
		return "all max_channels are in use: raise the parameter, or disconnect some";
	case -EAGAIN:
		return "the completion ring has no room for its events: raise ring_entries";
	default:
		return "see the errno: the worker is ending, or short of memory";
	}
}

/* The id is the lane's when this has returned 0: failures end with the channel from then on */
static int cm_take_lane(struct rdmatensor_channel *channel, struct rdma_cm_id *id,
			const struct rdmatensor_wire_private *private)
{
	struct rdmatensor_lane *lane = &channel->lanes[private->lane];
	int ret = 0;

	spin_lock_bh(&channel->lock);
	if (channel->state >= RDMATENSOR_CHANNEL_CLOSING)
		ret = -ECONNRESET;
	else if (channel->state != RDMATENSOR_CHANNEL_CONNECTING ||
		 private->lanes != channel->nr_lanes || lane->conn.id)
		ret = -EPROTO;
	if (!ret) {
		cm_prepare(lane, false);
		rdmatensor_conn_adopt(&lane->conn, id);
	}
	spin_unlock_bh(&channel->lock);
	return ret;
}

static int cm_accept(struct rdmatensor_cm *cm, struct rdmatensor_lane *lane,
		     const struct rdma_conn_param *peer)
{
	struct rdmatensor_qp_terms terms;
	int ret;

	rdmatensor_hold("lane_taken");
	ret = rdmatensor_conn_prepare(&lane->conn, cm->adapter, peer, &terms);
	if (ret)
		return ret;
	/*
	 * The HELLO makes the channel UP, and contents are posted to all lanes then: not before
	 * this one can send. Nor after the accept: the peer's HELLO can be here before that returns
	 */
	rdmatensor_channel_lane_connected(lane);
	return rdmatensor_conn_accept(&lane->conn, &terms);
}

/* A lane of a channel. Return: 0: the id is taken; the reject's errno */
static int cm_request_lane(struct rdmatensor_cm *cm, struct rdma_cm_id *id,
			   const struct rdma_conn_param *peer)
{
	const struct rdmatensor_wire_private *private = peer->private_data;
	struct sockaddr *addr = (struct sockaddr *)&id->route.addr.dst_addr;
	struct rdmatensor_channel *channel;
	int ret;

	if (!private->lane)
		channel = cm->ops->accept(cm->owner, private, addr);
	else
		/* NULL: it has gone, or will never be */
		channel = cm->ops->find(cm->owner, le64_to_cpu(private->nonce)) ?:
			  ERR_PTR(-ECONNRESET);
	if (IS_ERR(channel))
		return PTR_ERR(channel);

	ret = cm_take_lane(channel, id, private);
	if (ret)
		goto out_put_channel;
	ret = cm_accept(cm, &channel->lanes[private->lane], peer);
	if (ret) {
		pr_info_ratelimited("accept lane %u from %pISpc: making its queue pair failed (%d), the channel ends; see the device's limits: rdma resource\n",
				    private->lane, addr, ret);
		rdmatensor_conn_reject(id, ret);
		rdmatensor_channel_fail(channel, ret, "accepting a lane failed");
		ret = 0;
	}
out_put_channel:
	rdmatensor_channel_put(channel);
	return ret;
}

static int cm_request(struct rdmatensor_cm *cm, struct rdma_cm_id *id,
		      struct rdma_cm_event *event)
{
	const struct rdmatensor_wire_private *private = event->param.conn.private_data;
	int ret;

	ret = rdmatensor_wire_check_private(private, event->param.conn.private_data_len);
	if (!ret && id->device != cm->adapter->ibdev)
		ret = -EXDEV;
	if (!ret)
		ret = private->flags ? cm->ops->accept_read(cm->owner, private, id, event) :
		      cm_request_lane(cm, id, &event->param.conn);
	if (!ret)
		return 0;

	pr_info_ratelimited("accept a connection from %pISpc: refused (%d): %s\n",
			    &id->route.addr.dst_addr, ret, cm_refusal(ret));
	rdmatensor_conn_reject(id, ret);
	/* rdma_cm destroys the id */
	return ret;
}

static int cm_listen_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdmatensor_cm *cm = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return cm_request(cm, id, event);

	/*
	 * The device's removal ends the context, and the listener with it. A changed hardware
	 * address changes nothing: connections are identified by IP address and port, and each
	 * takes the hardware address from its own request
	 */
	pr_debug("listener: event %s\n", rdma_event_msg(event->event));
	return 0;
}

/*
 * rdma_cm reports -EADDRINUSE only where both listeners name the same address: binding a port
 * that is in use on all addresses, or all addresses on a port in use, is -EADDRNOTAVAIL
 */
static bool cm_port_taken(struct rdmatensor_cm *cm, const struct sockaddr *addr)
{
	struct sockaddr_storage any_port = {};
	struct rdma_cm_id *id;
	bool taken;

	memcpy(&any_port, addr, rdma_addr_size((struct sockaddr *)addr));
	/* At the same place for both families */
	((struct sockaddr_in *)&any_port)->sin_port = 0;
	id = rdma_create_id(cm->net, cm_listen_event, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return false;
	taken = !rdma_bind_addr(id, (struct sockaddr *)&any_port);
	rdma_destroy_id(id);
	return taken;
}

static const char *cm_bind_remedy(int error)
{
	switch (error) {
	case -EADDRINUSE:
		return "the port is in use: stop who listens there, or choose another one";
	case -EADDRNOTAVAIL:
		return "no RDMA device has that address; see 'rdma link' and 'ip address'";
	case -EACCES:
		return "a port below 1024 takes CAP_NET_BIND_SERVICE: choose a higher one";
	default:
		return "see 'rdma link' and 'ip address'";
	}
}

static int cm_check_listen_addr(const struct sockaddr *addr, char *cause, size_t room)
{
	/* AF_IB would be taken by rdma_cm, and is longer than what the caller has */
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6) {
		cm_cause(cause, room, "listen: address family %u is neither AF_INET nor AF_INET6",
			 addr->sa_family);
		return -EINVAL;
	}
	/* rdma_cm takes it for any device, but no peer can connect to it */
	if (rdmatensor_adapter_is_loopback(addr)) {
		cm_cause(cause, room,
			 "listen on %pISpc: no RDMA device has a loopback address: name an address of the device's network interface, or none",
			 addr);
		return -EADDRNOTAVAIL;
	}
	return 0;
}

int rdmatensor_cm_listen(struct rdmatensor_cm *cm, const struct sockaddr *addr,
			 char *cause, size_t room)
{
	struct sockaddr_storage any = { .ss_family = AF_INET };
	struct rdma_cm_id *id;
	int ret;

	if (!addr->sa_family) {
		if (cm->adapter->has_addr)
			any = cm->adapter->addr;
		addr = (struct sockaddr *)&any;
	}
	ret = cm_check_listen_addr(addr, cause, room);
	if (ret)
		return ret;

	id = rdma_create_id(cm->net, cm_listen_event, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		cm_cause(cause, room, "listen: making an rdma_cm id failed");
		return PTR_ERR(id);
	}

	ret = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (ret == -EADDRNOTAVAIL && cm_port_taken(cm, addr))
		ret = -EADDRINUSE;
	if (ret) {
		cm_cause(cause, room, "listen on %pISpc: bind failed (%d): %s", addr, ret,
			 cm_bind_remedy(ret));
		goto out_destroy_id;
	}
	if (id->device && id->device != cm->adapter->ibdev) {
		ret = -EXDEV;
		cm_cause(cause, room,
			 "listen on %pISpc: the address belongs to device %s, the context is bound to %s; name one of its addresses or the other device",
			 addr, id->device->name, cm->adapter->ibdev->name);
		goto out_destroy_id;
	}

	ret = rdmatensor_fault(-ENOMEM) ?: rdma_listen(id, CM_BACKLOG);
	if (ret) {
		cm_cause(cause, room, "listen on %pISpc failed (%d)", addr, ret);
		goto out_destroy_id;
	}

	cm->listener = id;
	cm->listen_addr = id->route.addr.src_addr;
	cm->listen_port = be16_to_cpu(((struct sockaddr_in *)&id->route.addr.src_addr)->sin_port);
	return 0;

out_destroy_id:
	rdma_destroy_id(id);
	return ret;
}

void rdmatensor_cm_unlisten(struct rdmatensor_cm *cm)
{
	if (!cm->listener)
		return;
	rdma_destroy_id(cm->listener);
	cm->listener = NULL;
}

/* Whether a listener that is bound to @bound can be reached at @own */
static bool cm_covers(const struct sockaddr *bound, const struct sockaddr *own)
{
	/* IPv6's covers IPv4, unless the host keeps them apart and refuses the connection */
	if (rdmatensor_adapter_is_unspecified(bound))
		return bound->sa_family == AF_INET6 || own->sa_family == AF_INET;
	if (bound->sa_family != own->sa_family)
		return false;
	if (bound->sa_family == AF_INET6)
		return ipv6_addr_equal(&((struct sockaddr_in6 *)bound)->sin6_addr,
				       &((struct sockaddr_in6 *)own)->sin6_addr);
	return ((struct sockaddr_in *)bound)->sin_addr.s_addr ==
	       ((struct sockaddr_in *)own)->sin_addr.s_addr;
}

/* The port at which the peer of @id can reach this side's listener; 0: it cannot */
static u16 cm_own_port(const struct rdmatensor_cm *cm, const struct rdma_cm_id *id)
{
	const struct sockaddr *own = (struct sockaddr *)&id->route.addr.src_addr;
	const struct sockaddr *bound = (struct sockaddr *)&cm->listen_addr;

	/* Not by the listener: the device's removal may be taking it away */
	return bound->sa_family && cm_covers(bound, own) ? cm->listen_port : 0;
}

static int cm_connect_lane(struct rdmatensor_cm *cm, struct rdmatensor_lane *lane,
			   const struct sockaddr *addr, unsigned long deadline,
			   const char **step)
{
	const struct rdmatensor_conn_target to = {
		.net = cm->net,
		.adapter = cm->adapter,
		.peer = addr,
		.deadline = deadline,
	};
	int ret;

	cm_prepare(lane, true);
	ret = rdmatensor_conn_connect(&lane->conn, &to, step);
	if (!ret && !lane->index)
		lane->channel->listen_port = cm_own_port(cm, lane->conn.id);
	return ret;
}

static const char *cm_remedy(int error)
{
	switch (error) {
	case -EUSERS:
		return "the peer has all channels that it allows; raise max_channels there";
	case -EAGAIN:
		return "the peer's completion ring has no room; raise ring_entries there";
	default:
		return rdmatensor_conn_remedy(error);
	}
}

/*
 * What a peer that is not up yet looks like. Whatever somebody at the other end has said counts,
 * and so does what this side lacks
 */
static bool cm_absent(const struct rdmatensor_channel *channel, int error)
{
	switch (error) {
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ETIMEDOUT:
		return !channel->lanes[0].conn.answered;
	default:
		return false;
	}
}

int rdmatensor_cm_connect(struct rdmatensor_cm *cm, struct rdmatensor_channel *channel,
			  const struct sockaddr *addr, u32 timeout_ms, char *cause,
			  size_t room, bool *absent)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	const char *step = "connect";
	int ret = 0, i;
	long left;

	for (i = 0; !ret && i < channel->nr_lanes; i++)
		ret = cm_connect_lane(cm, &channel->lanes[i], addr, deadline, &step);

	if (!ret) {
		step = "exchange HELLO";
		rdmatensor_channel_hello(channel);
		left = deadline - jiffies;
		left = wait_event_interruptible_timeout(channel->wait,
							READ_ONCE(channel->state) !=
							RDMATENSOR_CHANNEL_CONNECTING,
							max(left, 1L));
		ret = left < 0 ? -EINTR : left ? 0 : -ETIMEDOUT;
	}

	spin_lock_bh(&channel->lock);
	if (!ret && channel->state == RDMATENSOR_CHANNEL_UP)
		channel->announced = true;
	else if (!ret)
		ret = channel->error;
	/* The peer may have left already, and wait for its content */
	if (ret && channel->state < RDMATENSOR_CHANNEL_CLOSING)
		rdmatensor_channel_fail_locked(channel, ret, "the set-up failed");
	spin_unlock_bh(&channel->lock);
	/* Before setup_done: the teardown releases the lanes after it */
	*absent = cm_absent(channel, ret);
	complete_all(&channel->setup_done);

	if (ret == -ENOENT && channel->worker[0])
		cm_cause(cause, room,
			 "connect to %pISpc: the worker is '%s', not '%s'; check address or name",
			 addr, channel->worker, channel->want_worker);
	else if (ret)
		cm_cause(cause, room, "connect to %pISpc: could not %s (%d): %s", addr, step,
			 ret, cm_remedy(ret));
	else
		cm_cause(cause, room, "connected to worker '%s' at %pISpc, lanes: %u",
			 channel->worker, addr, channel->nr_lanes);
	return ret;
}

/* All that this side has posted has completed, and rdma_cm has heard of both ends of each lane */
static bool cm_may_part(struct rdmatensor_channel *channel)
{
	int i;

	for (i = 0; i < channel->nr_lanes; i++)
		/* Pairs with conn_step_ended() */
		if (!smp_load_acquire(&channel->lanes[i].conn.step_done))
			return false;
	return rdmatensor_channel_is_idle(channel);
}

static bool cm_has_parted(const struct rdmatensor_channel *channel)
{
	int i;

	for (i = 0; i < channel->nr_lanes; i++)
		if (!READ_ONCE(channel->lanes[i].conn.step_error))
			return false;
	return true;
}

static long cm_leave_left(const struct rdmatensor_channel *channel)
{
	return max_t(long, channel->leave_until - jiffies, 0);
}

/*
 * The end of a channel whose transport still works. A content that the peer has is not
 * delivered until its device's acknowledgment is here, and the peer may have read it and left
 * by then: its queue pair, which would acknowledge, must not go before. So each side lets its
 * own writes complete, disconnects then, and keeps its queue pairs until the other end has done
 * so too: rdma_cm reports the peer's disconnect, or its answer to this one. What is late
 * fails, as it does where a channel breaks; so does all if rdma_cm loses a message, which it
 * sends again after four seconds only.
 *
 * The HELLOs may be faster than the last message of a connection's set-up. Before that, rdma_cm
 * does not disconnect, and reports no error.
 */
static void cm_leave(struct rdmatensor_channel *channel)
{
	int i;

	if (!wait_event_timeout(channel->wait, cm_may_part(channel) ||
				!READ_ONCE(channel->leaves), cm_leave_left(channel)))
		return;
	for (i = 0; i < channel->nr_lanes; i++)
		rdma_disconnect(channel->lanes[i].conn.id);
	wait_event_timeout(channel->wait, cm_has_parted(channel) ||
			   !READ_ONCE(channel->leaves), cm_leave_left(channel));
}

void rdmatensor_cm_teardown(struct rdmatensor_channel *channel)
{
	int i;

	might_sleep();
	wait_for_completion(&channel->setup_done);
	if (READ_ONCE(channel->leaves)) {
		cm_leave(channel);
		rdmatensor_channel_left(channel);
	}
	for (i = 0; i < channel->nr_lanes; i++)
		rdmatensor_conn_disconnect(&channel->lanes[i].conn);
	for (i = 0; i < channel->nr_lanes; i++) {
		rdmatensor_lane_close(&channel->lanes[i]);
		rdmatensor_conn_destroy(&channel->lanes[i].conn);
	}
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Connection management.
 *
 * An rdma_cm id belongs to its lane from the moment that the lane points to it,
 * and only rdmatensor_cm_teardown() destroys it then. Handlers never destroy
 * their own id: they fail the channel, whose owner runs the teardown in process
 * context. Only a connection request that found no lane is returned to
 * rdma_cm, by the handler's return value.
 *
 * An active channel's set-up runs in its process; the teardown waits until that
 * has left, which a failed channel makes it do at its next step.
 *
 * A lane's queue pair is not rdma_cm's (qp.c): what connects gets the peer's answer as it
 * comes, and the connection stands when that has been accepted in turn.
 *
 * Handlers and teardown meet at two places: a handler looks at the channel's
 * state under its lock before it makes anything, and the teardown passes once
 * through the id's handler lock before it takes anything apart. Before that it may
 * disconnect, and wait for handlers to tell what came of it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/inet.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>
#include "core/fault.h"
#include "transport/cm.h"
#include "transport/lane.h"
#include "transport/qp.h"

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

static void cm_private(const struct rdmatensor_lane *lane, u8 mtu,
		       struct rdmatensor_wire_private *private)
{
	const struct rdmatensor_channel *channel = lane->channel;
	const struct rdmatensor_channel_params *params = channel->params;

	rdmatensor_wire_init_private(private, lane->index, channel->nr_lanes, channel->nonce,
				     mtu);
	if (!lane->index) {
		const struct rdmatensor_segment *segment = &channel->msgbuf.segments[0];

		private->msgbuf_addr = cpu_to_le64(segment->iova);
		private->msgbuf_rkey = cpu_to_le32(segment->mr->rkey);
	}
	private->msg_slots = cpu_to_le16(params->msg_slots);
	private->msg_slot_bytes = cpu_to_le32(params->msg_slot_bytes);
	private->ack_batch = cpu_to_le16(params->ack_batch);
	private->max_requests = cpu_to_le32(params->max_requests);
}

static void cm_reject(struct rdma_cm_id *id, int error)
{
	struct rdmatensor_wire_reject reject = {
		.magic = cpu_to_le32(RDMATENSOR_WIRE_MAGIC),
		.major = RDMATENSOR_WIRE_MAJOR,
		.minor = RDMATENSOR_WIRE_MINOR,
		.error = cpu_to_le16(-error),
	};

	rdma_reject(id, &reject, sizeof(reject), IB_CM_REJ_CONSUMER_DEFINED);
}

/* The peer's refusal as an errno of ours */
static int cm_rejected(struct rdmatensor_lane *lane, struct rdma_cm_event *event)
{
	const struct rdmatensor_wire_reject *reject;
	u8 len = 0;

	reject = rdma_consumer_reject_data(lane->id, event, &len);
	/* Not by a consumer: rdma_cm itself found no listener */
	if (!reject)
		return -ECONNREFUSED;
	if (len < sizeof(*reject)) {
		lane->answered = true;
		return -EPROTO;
	}
	/* Nor this: ib_cm's words for a request whose listener is just being closed */
	if (!memchr_inv(reject, 0, sizeof(*reject)))
		return -ECONNREFUSED;
	lane->answered = true;
	if (reject->magic != cpu_to_le32(RDMATENSOR_WIRE_MAGIC))
		return -EPROTO;
	if (reject->major != RDMATENSOR_WIRE_MAJOR)
		return -EPROTONOSUPPORT;
	return rdmatensor_wire_errno(-le16_to_cpu(reject->error));
}

/* True: the teardown waits for the handler that asks, and the queue pair is there */
static bool cm_alive(struct rdmatensor_channel *channel)
{
	bool alive;

	spin_lock_bh(&channel->lock);
	alive = channel->state < RDMATENSOR_CHANNEL_CLOSING;
	spin_unlock_bh(&channel->lock);
	return alive;
}

static void cm_query(struct rdmatensor_lane *lane)
{
	if (rdmatensor_qp_query(&lane->qp, &lane->qp.attr))
		return;
	/* Pairs with netlink_put_lane() */
	smp_store_release(&lane->qp.queried, true);
}

/* The peer has accepted: with what it takes the connection is made to stand */
static int cm_response(struct rdmatensor_lane *lane, struct rdma_cm_event *event,
		       const char **why)
{
	const struct rdmatensor_wire_private *private = event->param.conn.private_data;
	struct rdmatensor_channel *channel = lane->channel;
	struct rdmatensor_qp_terms terms;
	int ret;

	lane->answered = true;
	*why = "the channel is ending";
	if (!cm_alive(channel))
		return -ECONNRESET;

	*why = "the peer's answer is not one of this protocol";
	ret = rdmatensor_wire_check_private(private, event->param.conn.private_data_len);
	if (!ret && (private->flags || le64_to_cpu(private->nonce) != channel->nonce ||
		     private->lane != lane->index || private->lanes != channel->nr_lanes))
		ret = -EPROTO;
	if (!ret && !lane->index)
		ret = rdmatensor_channel_set_peer(channel, private, why);
	if (ret)
		return ret;

	*why = "setting the queue pair up failed";
	rdmatensor_qp_propose(&terms, lane->id, CM_RD_ATOMIC_MAX, CM_RD_ATOMIC_MAX);
	rdmatensor_qp_agree(&terms, &event->param.conn, private);
	ret = rdmatensor_qp_ready(&lane->qp, lane->id, &terms, channel->params) ?:
	      rdma_accept(lane->id, NULL);
	if (ret)
		return ret;
	cm_query(lane);
	rdmatensor_channel_lane_connected(lane);
	return 0;
}

static void cm_step_ended(struct rdmatensor_lane *lane, int error)
{
	/* Pairs with cm_has_parted() */
	if (error)
		WRITE_ONCE(lane->cm_gone, true);
	lane->cm_error = error;
	/* After the error and all that the step has set up; pairs with cm_wait() */
	smp_store_release(&lane->cm_done, true);
	wake_up_all(&lane->channel->wait);
}

static void cm_step_done(struct rdmatensor_lane *lane, int error, const char *text)
{
	if (error)
		rdmatensor_channel_fail(lane->channel, error, text);
	cm_step_ended(lane, error);
}

static int cm_lane_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdmatensor_lane *lane = id->context;
	const char *why;
	int ret;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		cm_step_done(lane, 0, NULL);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		cm_step_done(lane, event->status == -ETIMEDOUT ? -EHOSTUNREACH :
			     event->status ?: -EHOSTUNREACH, "address resolution failed");
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		cm_step_done(lane, -ENETUNREACH, "route resolution failed");
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		cm_step_done(lane, -ETIMEDOUT, "the peer does not answer");
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		cm_step_done(lane, -ECONNRESET, "connection error");
		break;
	case RDMA_CM_EVENT_REJECTED:
		/* One that stood already: the other end went before it knew that */
		if (!lane->channel->active || smp_load_acquire(&lane->cm_done))
			cm_step_done(lane, -ECONNRESET, "the peer disconnected");
		else
			cm_step_done(lane, cm_rejected(lane, event),
				     "the peer refused the connection");
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		ret = cm_response(lane, event, &why);
		cm_step_done(lane, ret, why);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* Of an accepted one; the other end has it with the answer */
		if (cm_alive(lane->channel))
			cm_query(lane);
		cm_step_done(lane, 0, NULL);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdmatensor_hold("peer_left");
		/* It waits for what this side has posted; nothing has failed yet */
		rdmatensor_channel_leave(lane->channel, -ECONNRESET, "the peer disconnected");
		cm_step_ended(lane, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		cm_step_done(lane, -ENODEV, "the RDMA device was removed");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* A bond has failed over: what is in flight leads nowhere, and nobody says so */
		cm_step_done(lane, -ECONNRESET,
			     "the network device's hardware address has changed");
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		/* Of a connection that has ended */
		break;
	default:
		/* Of multicast, of other transports or of later kernels: none is asked for */
		pr_debug("channel %u, lane %u: event %s\n", lane->channel->id, lane->index,
			 rdma_event_msg(event->event));
		break;
	}
	return 0;
}

static int cm_accept(struct rdmatensor_cm *cm, struct rdmatensor_lane *lane,
		     const struct rdma_conn_param *peer)
{
	const struct rdmatensor_channel_params *params = lane->channel->params;
	struct rdmatensor_wire_private private;
	struct rdmatensor_qp_terms terms;
	struct rdma_conn_param param;
	int ret;

	rdmatensor_qp_set_path(lane->id, cm->adapter, params);
	ret = rdmatensor_lane_open(lane, cm->domain->pd);
	if (ret)
		return ret;

	rdmatensor_qp_propose(&terms, lane->id, CM_RD_ATOMIC_MAX, CM_RD_ATOMIC_MAX);
	rdmatensor_qp_agree(&terms, peer, peer->private_data);
	ret = rdmatensor_qp_ready(&lane->qp, lane->id, &terms, params);
	if (ret)
		return ret;

	cm_private(lane, terms.mtu, &private);
	rdmatensor_qp_param(&param, &lane->qp, &terms, params, &private);
	return rdmatensor_fault(-ENOMEM) ?: rdma_accept(lane->id, &param);
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

static int cm_request(struct rdmatensor_cm *cm, struct rdma_cm_id *id,
		      struct rdma_cm_event *event)
{
	const struct rdmatensor_wire_private *private = event->param.conn.private_data;
	struct sockaddr *peer = (struct sockaddr *)&id->route.addr.dst_addr;
	struct rdmatensor_channel *channel;
	struct rdmatensor_lane *lane;
	int ret;

	ret = rdmatensor_wire_check_private(private, event->param.conn.private_data_len);
	if (ret)
		goto out_reject;
	if (id->device != cm->adapter->ibdev) {
		ret = -EXDEV;
		goto out_reject;
	}

	if (private->flags) {
		ret = cm->ops->accept_read(cm->owner, private, id, event);
		if (ret)
			goto out_reject;
		return 0;
	}
	if (!private->lane) {
		channel = cm->ops->accept(cm->owner, private, peer);
		ret = PTR_ERR_OR_ZERO(channel);
	} else {
		channel = cm->ops->find(cm->owner, le64_to_cpu(private->nonce));
		/* It has gone, or will never be */
		ret = channel ? 0 : -ECONNRESET;
	}
	if (ret)
		goto out_reject;

	spin_lock_bh(&channel->lock);
	lane = &channel->lanes[private->lane];
	if (channel->state >= RDMATENSOR_CHANNEL_CLOSING)
		ret = -ECONNRESET;
	else if (channel->state != RDMATENSOR_CHANNEL_CONNECTING ||
		 private->lanes != channel->nr_lanes || lane->id)
		ret = -EPROTO;
	if (ret) {
		spin_unlock_bh(&channel->lock);
		goto out_put_channel;
	}
	lane->id = id;
	/* Before the accept: the peer's HELLO can be here before that returns */
	channel->lanes_open++;
	spin_unlock_bh(&channel->lock);

	/* From here on the id is the lane's: failures end with the channel */
	id->context = lane;
	id->event_handler = cm_lane_event;
	ret = cm_accept(cm, lane, &event->param.conn);
	if (ret) {
		pr_info_ratelimited("accept lane %u from %pISpc: making its queue pair failed (%d), the channel ends; see the device's limits: rdma resource\n",
				    lane->index, peer, ret);
		cm_reject(id, ret);
		rdmatensor_channel_fail(channel, ret, "accepting a lane failed");
	}
	rdmatensor_channel_put(channel);
	return 0;

out_put_channel:
	rdmatensor_channel_put(channel);
out_reject:
	pr_info_ratelimited("accept a connection from %pISpc: refused (%d): %s\n", peer, ret,
			    cm_refusal(ret));
	cm_reject(id, ret);
	return ret;
}

static int cm_listen_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdmatensor_cm *cm = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return cm_request(cm, id, event);

	/*
	 * The device's removal ends the context, and the listener with it. A changed hardware
	 * address changes nothing: connections are told apart by IP address and port, and each
	 * takes the hardware address from its own request
	 */
	pr_debug("listener: event %s\n", rdma_event_msg(event->event));
	return 0;
}

/*
 * rdma_cm tells the one from the other only where both listeners name the same address: to
 * bind a port on which one listens on all addresses, or on one of all, is -EADDRNOTAVAIL
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
	default:
		return "see 'rdma link' and 'ip address'";
	}
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
	/* AF_IB would be taken by rdma_cm, and is longer than what the caller has */
	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6) {
		cm_cause(cause, room, "listen: address family %u is neither AF_INET nor AF_INET6",
			 addr->sa_family);
		return -EINVAL;
	}
	/* To rdma_cm it may be any device's, but nobody gets there by it */
	if (rdmatensor_adapter_is_loopback(addr)) {
		cm_cause(cause, room,
			 "listen on %pISpc: no RDMA device has a loopback address: name an address of the device's network interface, or none",
			 addr);
		return -EADDRNOTAVAIL;
	}

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

static bool cm_covers(const struct sockaddr *bound, const struct sockaddr *own)
{
	const struct sockaddr_in6 *bound6 = (struct sockaddr_in6 *)bound;
	const struct sockaddr_in *bound4 = (struct sockaddr_in *)bound;

	/* IPv4's too, unless the host keeps them apart: then a connection to it is refused */
	if (bound->sa_family == AF_INET6 && ipv6_addr_any(&bound6->sin6_addr))
		return true;
	if (bound->sa_family != own->sa_family)
		return false;
	if (bound->sa_family == AF_INET6)
		return ipv6_addr_equal(&bound6->sin6_addr,
				       &((struct sockaddr_in6 *)own)->sin6_addr);
	return bound4->sin_addr.s_addr == htonl(INADDR_ANY) ||
	       bound4->sin_addr.s_addr == ((struct sockaddr_in *)own)->sin_addr.s_addr;
}

static void cm_begin(struct rdmatensor_lane *lane)
{
	lane->cm_error = 0;
	WRITE_ONCE(lane->cm_done, false);
}

static bool cm_has_ended(const struct rdmatensor_lane *lane)
{
	/* Pairs with cm_step_done() */
	if (smp_load_acquire(&lane->cm_done))
		return true;
	/* Pairs with channel_move() */
	return smp_load_acquire(&lane->channel->state) >= RDMATENSOR_CHANNEL_CLOSING;
}

/* Waits for the step that was begun; @error is what beginning it returned */
static int cm_wait(struct rdmatensor_lane *lane, int error, unsigned long deadline)
{
	struct rdmatensor_channel *channel = lane->channel;
	long left = deadline - jiffies;

	if (error)
		return error;
	left = wait_event_interruptible_timeout(channel->wait, cm_has_ended(lane), max(left, 1L));
	if (left < 0)
		return -EINTR;
	if (!left)
		return -ETIMEDOUT;
	return lane->cm_done && lane->cm_error ? lane->cm_error : READ_ONCE(channel->error);
}

/* Where whoever @id leads to can reach the own listener at @id's own address; 0: nowhere */
static u16 cm_own_port(const struct rdmatensor_cm *cm, const struct rdma_cm_id *id)
{
	const struct sockaddr *own = (struct sockaddr *)&id->route.addr.src_addr;
	const struct sockaddr *bound = (struct sockaddr *)&cm->listen_addr;

	/* Not by the listener: the device's removal may be taking it away */
	return bound->sa_family && cm_covers(bound, own) ? cm->listen_port : 0;
}

static int cm_connect_lane(struct rdmatensor_cm *cm, struct rdmatensor_lane *lane,
			   struct sockaddr *src, const struct sockaddr *addr,
			   unsigned long deadline, const char **step)
{
	const struct rdmatensor_channel_params *params = lane->channel->params;
	struct rdmatensor_adapter *adapter = cm->adapter;
	int timeout_ms = jiffies_to_msecs(max_t(long, deadline - jiffies, 1));
	struct rdmatensor_wire_private private;
	struct rdmatensor_qp_terms terms;
	struct rdma_conn_param param;
	struct rdma_cm_id *id;
	int ret;

	*step = "make an rdma_cm id";
	id = rdma_create_id(cm->net, cm_lane_event, lane, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	lane->id = id;

	*step = "resolve the address";
	if (params->traffic_class != RDMATENSOR_AS_RESOLVED)
		rdma_set_service_type(id, params->traffic_class);
	cm_begin(lane);
	ret = rdmatensor_fault(-ENODEV) ?:
	      rdma_resolve_addr(id, src->sa_family ? src : NULL, addr, timeout_ms);
	ret = cm_wait(lane, ret, deadline);
	if (ret)
		return ret;
	if (id->device != adapter->ibdev || id->port_num != adapter->port) {
		*step = "reach it over the context's device";
		return -EXDEV;
	}

	*step = "resolve the route";
	cm_begin(lane);
	ret = rdmatensor_fault(-ENOMEM) ?: rdma_resolve_route(id, timeout_ms);
	ret = cm_wait(lane, ret, deadline);
	if (ret)
		return ret;

	rdmatensor_qp_set_path(id, adapter, params);

	*step = "make the queue pair";
	ret = rdmatensor_lane_open(lane, cm->domain->pd);
	if (ret)
		return ret;

	*step = "connect";
	cm_begin(lane);
	rdmatensor_qp_propose(&terms, id, CM_RD_ATOMIC_MAX, CM_RD_ATOMIC_MAX);
	cm_private(lane, terms.mtu, &private);
	rdmatensor_qp_param(&param, &lane->qp, &terms, params, &private);
	ret = rdmatensor_fault(-ENOMEM) ?: rdma_connect(id, &param);
	ret = cm_wait(lane, ret, deadline);
	if (!ret && !lane->index)
		lane->channel->listen_port = cm_own_port(cm, id);
	return ret;
}

static const char *cm_remedy(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return "nobody listens there; start the peer, and check the port";
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		return "no route or no neighbour; check the address and 'ip route get'";
	case -ETIMEDOUT:
		return "no answer in time; check that the peer runs and UDP port 4791 is open";
	case -EPROTONOSUPPORT:
		return "the peer speaks another wire version; use the same release on both";
	case -EPROTO:
		return "what answered is not rdmatensor; check the port";
	case -EUSERS:
		return "all channels are in use; raise max_channels";
	case -EXDEV:
		return "the route leads over another RDMA device or port; START on that one";
	case -EAFNOSUPPORT:
		return "the port has no GID of that address family, or gid_index names another";
	case -EAGAIN:
		return "the completion ring has no room; reap it or raise ring_entries";
	case -EINTR:
		return "interrupted by a signal";
	default:
		return "see the kernel log of both sides";
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
		return !channel->lanes[0].answered;
	default:
		return false;
	}
}

int rdmatensor_cm_connect(struct rdmatensor_cm *cm, struct rdmatensor_channel *channel,
			  const struct sockaddr *addr, u32 timeout_ms, char *cause,
			  size_t room, bool *absent)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout_ms);
	const char *step = "choose a source address";
	struct sockaddr_storage src;
	long left;
	int ret, i;

	ret = rdmatensor_adapter_source(cm->adapter, cm->net, addr->sa_family, &src);
	for (i = 0; !ret && i < channel->nr_lanes; i++)
		ret = cm_connect_lane(cm, &channel->lanes[i], (struct sockaddr *)&src, addr,
				      deadline, &step);

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
	/* Before the teardown, which lets go of the lanes */
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
		/* Pairs with cm_step_ended() */
		if (!smp_load_acquire(&channel->lanes[i].cm_done))
			return false;
	return rdmatensor_channel_is_idle(channel);
}

static bool cm_has_parted(const struct rdmatensor_channel *channel)
{
	int i;

	for (i = 0; i < channel->nr_lanes; i++)
		if (!READ_ONCE(channel->lanes[i].cm_gone))
			return false;
	return true;
}

static long cm_leave_left(const struct rdmatensor_channel *channel)
{
	return max_t(long, channel->leave_until - jiffies, 0);
}

/*
 * The end of a channel over which both sides can still talk. A content that the peer has is not
 * delivered until its device's acknowledgment is here, and the peer may have read it and gone
 * by then: its queue pair, which would acknowledge, must not go before. So each side lets its
 * own writes complete, disconnects then, and keeps its queue pairs until the other end has done
 * so too: rdma_cm tells that by the peer's disconnect, or by its answer to this one. What is late
 * fails, as it does where a channel breaks; so does all if rdma_cm loses a message, which it
 * sends again after four seconds only.
 *
 * The HELLOs may be faster than the last message of a connection's set-up. Before that, rdma_cm
 * disconnects nobody, and does not say so.
 */
static void cm_leave(struct rdmatensor_channel *channel)
{
	int i;

	if (!wait_event_timeout(channel->wait, cm_may_part(channel) ||
				!READ_ONCE(channel->leaves), cm_leave_left(channel)))
		return;
	for (i = 0; i < channel->nr_lanes; i++)
		rdma_disconnect(channel->lanes[i].id);
	wait_event_timeout(channel->wait, cm_has_parted(channel) ||
			   !READ_ONCE(channel->leaves), cm_leave_left(channel));
}

void rdmatensor_cm_teardown(struct rdmatensor_channel *channel)
{
	int i;

	might_sleep();
	wait_for_completion(&channel->setup_done);
	if (READ_ONCE(channel->leaves))
		cm_leave(channel);
	for (i = 0; i < channel->nr_lanes; i++) {
		struct rdma_cm_id *id = READ_ONCE(channel->lanes[i].id);

		if (!id)
			continue;
		/* A handler that saw the channel alive has finished making things */
		rdma_lock_handler(id);
		rdma_unlock_handler(id);
		if (channel->lanes[i].qp.qp)
			rdmatensor_qp_disconnect(&channel->lanes[i].qp, id);
	}
	for (i = 0; i < channel->nr_lanes; i++) {
		struct rdmatensor_lane *lane = &channel->lanes[i];

		if (!lane->id)
			continue;
		rdmatensor_lane_close(lane);
		rdma_destroy_id(lane->id);
		lane->id = NULL;
	}
}

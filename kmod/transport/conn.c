// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting and accepting, step by step.
 *
 * Each step of the side that connects is begun in process context and ends in rdma_cm's
 * handler, which stores the outcome and wakes the waiter. A failure reaches the owner first
 * and the waiter then, so that the waiter finds the owner's state changed.
 *
 * The queue pair is not rdma_cm's (qp.c): the side that connects gets the peer's answer as it
 * comes, moves its queue pair on, and accepts the answer in turn. Only then is the connection
 * established.
 *
 * Handlers never destroy their id: the owner does so in process context, after it has passed
 * through the handler lock once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <rdma/ib_cm.h>
#include "core/fault.h"
#include "memory/adapter.h"
#include "transport/conn.h"

/* Of one attempt to resolve an address */
#define CONN_RESOLVE_MS 2000U

static void conn_begin(struct rdmatensor_conn *conn)
{
	WRITE_ONCE(conn->step_error, 0);
	WRITE_ONCE(conn->step_done, false);
}

/* The first failure ends the connection, whatever events are still on their way */
static void conn_note_error(struct rdmatensor_conn *conn, int error)
{
	if (!conn->step_error)
		WRITE_ONCE(conn->step_error, error);
}

static void conn_step_ended(struct rdmatensor_conn *conn)
{
	/* After the error and all that the step has set up; pairs with conn_step_is_over() */
	smp_store_release(&conn->step_done, true);
	wake_up_all(conn->wait);
}

static void conn_failed(struct rdmatensor_conn *conn, int error, const char *text)
{
	/* Before the owner's state, which ends the wait for this step as well */
	conn_note_error(conn, error);
	conn->ops->failed(conn, error, text);
	conn_step_ended(conn);
}

/* The peer's refusal as an errno of this side's */
static int conn_refusal(struct rdmatensor_conn *conn, struct rdma_cm_event *event)
{
	const struct rdmatensor_wire_reject *reject;
	u8 len = 0;

	reject = rdma_consumer_reject_data(conn->id, event, &len);
	/* Not by a consumer: rdma_cm itself found no listener */
	if (!reject)
		return -ECONNREFUSED;
	if (len < sizeof(*reject)) {
		conn->answered = true;
		return -EPROTO;
	}
	/* Nor this: ib_cm's words for a request whose listener is just being closed */
	if (!memchr_inv(reject, 0, sizeof(*reject)))
		return -ECONNREFUSED;
	conn->answered = true;
	if (reject->magic != cpu_to_le32(RDMATENSOR_WIRE_MAGIC))
		return -EPROTO;
	if (reject->major != RDMATENSOR_WIRE_MAJOR)
		return -EPROTONOSUPPORT;
	return rdmatensor_wire_errno(-le16_to_cpu(reject->error));
}

static void conn_rejected(struct rdmatensor_conn *conn, struct rdma_cm_event *event)
{
	int error;

	/* One that was established: the other end went before it knew that */
	if (!conn->active || smp_load_acquire(&conn->step_done)) {
		conn_failed(conn, -ECONNRESET, "the peer disconnected");
		return;
	}
	error = conn_refusal(conn, event);
	if (conn->ops->refusal)
		error = conn->ops->refusal(conn, error);
	conn_failed(conn, error, "the peer refused the connection");
}

static void conn_propose(const struct rdmatensor_conn *conn, struct rdmatensor_qp_terms *terms)
{
	rdmatensor_qp_propose(terms, conn->id, conn->reads_in, conn->reads_out);
}

/* The peer has accepted: the connection is established on the terms of its answer */
static int conn_response(struct rdmatensor_conn *conn, const struct rdma_cm_event *event,
			 const char **why)
{
	const struct rdmatensor_wire_private *private = event->param.conn.private_data;
	struct rdmatensor_qp_terms terms;
	int ret;

	conn->answered = true;
	*why = "the channel is ending";
	if (!conn->ops->alive(conn))
		return -ECONNRESET;

	*why = "the peer's answer is not one of this protocol";
	ret = rdmatensor_wire_check_private(private, event->param.conn.private_data_len);
	if (ret)
		return ret;
	conn_propose(conn, &terms);
	rdmatensor_qp_agree(&terms, &event->param.conn, private);
	ret = conn->ops->answer(conn, private, &terms, why);
	if (ret)
		return ret;

	*why = "setting the queue pair up failed";
	ret = rdmatensor_qp_ready(&conn->qp, conn->id, &terms, conn->params) ?:
	      rdma_accept(conn->id, NULL);
	if (!ret)
		conn->ops->up(conn);
	return ret;
}

static void conn_answered(struct rdmatensor_conn *conn, const struct rdma_cm_event *event)
{
	const char *why;
	int ret;

	ret = conn_response(conn, event, &why);
	if (ret)
		conn_failed(conn, ret, why);
	else
		conn_step_ended(conn);
}

static int conn_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdmatensor_conn *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		conn_step_ended(conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		/* Of one attempt: who waits for it knows whether there is another */
		if (event->status == -ETIMEDOUT) {
			conn_note_error(conn, -ETIMEDOUT);
			conn_step_ended(conn);
			break;
		}
		conn_failed(conn, event->status ?: -EHOSTUNREACH, "address resolution failed");
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		conn_failed(conn, -ENETUNREACH, "route resolution failed");
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		conn_failed(conn, -ETIMEDOUT, "the peer does not answer");
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		conn_failed(conn, -ECONNRESET, "connection error");
		break;
	case RDMA_CM_EVENT_REJECTED:
		conn_rejected(conn, event);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		conn_answered(conn, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* Of an accepted one; the other end has it with the answer */
		conn->ops->up(conn);
		conn_step_ended(conn);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		conn_note_error(conn, -ECONNRESET);
		conn->ops->left(conn);
		conn_step_ended(conn);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		conn_failed(conn, -ENODEV, "the RDMA device was removed");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* A bond has failed over: what is in flight is lost, and no completion says so */
		conn_failed(conn, -ECONNRESET,
			    "the network device's hardware address has changed");
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		/* Of a connection that has ended */
		break;
	default:
		/* Of multicast, of other transports or of later kernels: none is asked for */
		pr_debug("connection to %pISpc: event %s\n", &id->route.addr.dst_addr,
			 rdma_event_msg(event->event));
		break;
	}
	return 0;
}

static bool conn_step_is_over(struct rdmatensor_conn *conn, const int *stop)
{
	/* Pairs with conn_step_ended() */
	return smp_load_acquire(&conn->step_done) || conn->ops->stopped(conn) ||
	       (stop && READ_ONCE(*stop));
}

/* Waits for the step that was begun; @error is what beginning it returned */
static int conn_wait(struct rdmatensor_conn *conn, const struct rdmatensor_conn_target *to,
		     int error)
{
	long left = max_t(long, to->deadline - jiffies, 1);

	if (error)
		return error;
	if (to->stop)
		left = wait_event_timeout(*conn->wait, conn_step_is_over(conn, to->stop), left);
	else
		left = wait_event_interruptible_timeout(*conn->wait,
							conn_step_is_over(conn, NULL), left);
	/* What has been reached by then counts: the next step ends by it */
	if (left < 0 || (to->stop && READ_ONCE(*to->stop) && !smp_load_acquire(&conn->step_done)))
		return -EINTR;
	if (!left)
		return -ETIMEDOUT;
	return conn->ops->stopped(conn) ?: READ_ONCE(conn->step_error);
}

/*
 * An address that does not answer for the three seconds that a neighbour is asked for is not asked
 * for again by the same attempt, although the link may be back by then. rdma_cm says that its time
 * is over, of each attempt
 */
static int conn_resolve_addr(struct rdmatensor_conn *conn, const struct rdmatensor_conn_target *to,
			     struct sockaddr *src)
{
	long left;
	int ret;

	do {
		left = max_t(long, to->deadline - jiffies, 1);
		conn_begin(conn);
		ret = rdmatensor_fault(-ENODEV) ?:
		      rdma_resolve_addr(conn->id, src, to->peer,
					min(jiffies_to_msecs(left), CONN_RESOLVE_MS));
		ret = conn_wait(conn, to, ret);
	} while (ret == -ETIMEDOUT && time_before(jiffies, to->deadline));
	return ret == -ETIMEDOUT ? -EHOSTUNREACH : ret;
}

/* The address and the route, which must lead over the adapter */
static int conn_resolve(struct rdmatensor_conn *conn, const struct rdmatensor_conn_target *to,
			int timeout_ms, const char **step)
{
	const struct rdmatensor_adapter *adapter = to->adapter;
	struct rdma_cm_id *id = conn->id;
	struct sockaddr_storage src;
	int ret;

	*step = "choose a source address";
	ret = rdmatensor_adapter_source(adapter, to->net, to->peer->sa_family, &src);
	if (ret)
		return ret;

	*step = "resolve the address";
	if (conn->params->traffic_class != RDMATENSOR_AS_RESOLVED)
		rdma_set_service_type(id, conn->params->traffic_class);
	ret = conn_resolve_addr(conn, to, src.ss_family ? (struct sockaddr *)&src : NULL);
	if (ret)
		return ret;
	if (id->device != adapter->ibdev || id->port_num != adapter->port) {
		*step = "reach it over the context's device";
		return -EXDEV;
	}

	*step = "resolve the route";
	conn_begin(conn);
	ret = rdmatensor_fault(-ENOMEM) ?: rdma_resolve_route(id, timeout_ms);
	ret = conn_wait(conn, to, ret);
	if (!ret)
		rdmatensor_qp_set_path(id, adapter, conn->params);
	return ret;
}

int rdmatensor_conn_connect(struct rdmatensor_conn *conn,
			    const struct rdmatensor_conn_target *to, const char **step)
{
	int timeout_ms = jiffies_to_msecs(max_t(long, to->deadline - jiffies, 1));
	struct rdmatensor_wire_private private;
	struct rdmatensor_qp_terms terms;
	struct rdma_conn_param param;
	struct rdma_cm_id *id;
	int ret;

	*step = "make an rdma_cm id";
	id = rdma_create_id(to->net, conn_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->id = id;
	conn->answered = false;
	ret = conn_resolve(conn, to, timeout_ms, step);
	if (ret)
		return ret;

	*step = "make the queue pair";
	ret = conn->ops->open(conn);
	if (ret)
		return ret;

	*step = "connect";
	conn_propose(conn, &terms);
	conn->ops->describe(conn, terms.mtu, &private);
	rdmatensor_qp_param(&param, &conn->qp, &terms, conn->params, &private);
	conn_begin(conn);
	ret = rdmatensor_fault(-ENOMEM) ?: rdma_connect(id, &param);
	return conn_wait(conn, to, ret);
}

void rdmatensor_conn_adopt(struct rdmatensor_conn *conn, struct rdma_cm_id *id)
{
	id->context = conn;
	id->event_handler = conn_event;
	WRITE_ONCE(conn->id, id);
}

int rdmatensor_conn_prepare(struct rdmatensor_conn *conn,
			    const struct rdmatensor_adapter *adapter,
			    const struct rdma_conn_param *peer,
			    struct rdmatensor_qp_terms *terms)
{
	int ret;

	rdmatensor_qp_set_path(conn->id, adapter, conn->params);
	ret = conn->ops->open(conn);
	if (ret)
		return ret;
	conn_propose(conn, terms);
	rdmatensor_qp_agree(terms, peer, peer->private_data);
	return rdmatensor_qp_ready(&conn->qp, conn->id, terms, conn->params);
}

int rdmatensor_conn_accept(struct rdmatensor_conn *conn, const struct rdmatensor_qp_terms *terms)
{
	struct rdmatensor_wire_private private;
	struct rdma_conn_param param;

	conn->ops->describe(conn, terms->mtu, &private);
	rdmatensor_qp_param(&param, &conn->qp, terms, conn->params, &private);
	return rdmatensor_fault(-ENOMEM) ?: rdma_accept(conn->id, &param);
}

void rdmatensor_conn_reject(struct rdma_cm_id *id, int error)
{
	struct rdmatensor_wire_reject reject = {
		.magic = cpu_to_le32(RDMATENSOR_WIRE_MAGIC),
		.major = RDMATENSOR_WIRE_MAJOR,
		.minor = RDMATENSOR_WIRE_MINOR,
		.error = cpu_to_le16(-error),
	};

	rdma_reject(id, &reject, sizeof(reject), IB_CM_REJ_CONSUMER_DEFINED);
}

const char *rdmatensor_conn_remedy(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return "nobody listens there; start the peer, and check the port";
	case -ENETUNREACH:
		return "no route; check the address, 'ip route get', and the subnet manager";
	case -ENODEV:
		return "the RDMA device is gone";
	case -EHOSTUNREACH:
		return "no neighbour answers; check the host, 'ip route get', and 'ip neighbour'";
	case -ETIMEDOUT:
		return "no answer in time; check that the peer runs and UDP port 4791 is open";
	case -EPROTONOSUPPORT:
		return "the peer speaks another wire version; use the same release on both";
	case -EPROTO:
		return "what answered is not rdmatensor; check the port";
	case -EXDEV:
		return "the route leads over another RDMA device or port; START on that one";
	case -EAFNOSUPPORT:
		return "the port has no GID of that address family, or gid_index names another";
	case -EINTR:
		return "interrupted by a signal";
	default:
		return "see the kernel log of both sides";
	}
}

void rdmatensor_conn_disconnect(struct rdmatensor_conn *conn)
{
	struct rdma_cm_id *id = READ_ONCE(conn->id);

	if (!id)
		return;
	/* A handler that saw the owner alive has finished making things */
	rdma_lock_handler(id);
	rdma_unlock_handler(id);
	if (conn->qp.qp)
		rdmatensor_qp_disconnect(&conn->qp, id);
}

void rdmatensor_conn_destroy(struct rdmatensor_conn *conn)
{
	if (!conn->id)
		return;
	rdma_destroy_id(conn->id);
	conn->id = NULL;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * The verbs of a peer that lies. Each work request is waited for, so a program that
 * is ended by its own time limit, and not by the module, says which one it was.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <asm/byteorder.h>
#include "liar.h"

#define RECVS 512
#define SENDS 64
#define COMPLETION_MS 20000
/* 7 would be for ever: who is lied to goes without a word that reaches these queue pairs */
#define RETRIES 6

unsigned long long liar_connections, liar_messages;

static void fatal(const char *what)
{
	printf("not ok 0 - liar: %s: %s\n", what, strerror(errno));
	exit(1);
}

uint32_t liar_features = RDMATENSOR_WIRE_FEATURE_ERROR_NAMED;

void liar_init(struct liar *liar, unsigned int lanes)
{
	static uint64_t nonce = 0x6c69617200000000;

	memset(liar, 0, sizeof(*liar));
	liar->nr_lanes = lanes;
	liar->nr_recvs = RECVS;
	liar->features = liar_features;
	if (posix_memalign((void **)&liar->memory, 4096, LIAR_BYTES))
		fatal("memory");
	memset(liar->memory, 0, LIAR_BYTES);
	liar->own = (struct rdmatensor_wire_private){
		.magic = cpu_to_le32(RDMATENSOR_WIRE_MAGIC),
		.major = RDMATENSOR_WIRE_MAJOR,
		.minor = RDMATENSOR_WIRE_MINOR,
		.lanes = lanes,
		.nonce = cpu_to_le64(++nonce + ((uint64_t)getpid() << 32)),
		.msgbuf_addr = cpu_to_le64((uintptr_t)liar->memory),
		.msg_slot_bytes = cpu_to_le32(LIAR_SLOT_BYTES),
		.msg_slots = cpu_to_le16(LIAR_SLOTS),
		.ack_batch = cpu_to_le16(LIAR_ACK_BATCH),
		.max_requests = cpu_to_le32(LIAR_REQUESTS),
		.mtu = RDMATENSOR_WIRE_MTU_MOST,
	};
}

/* The next completion; or none within @ms, or before the other end has gone */
static int completion(struct rdma_cm_id *id, struct ibv_cq *cq,
		      struct ibv_comp_channel *channel, struct ibv_wc *wc, int ms)
{
	struct pollfd fds[] = {
		{ .fd = channel->fd, .events = POLLIN },
		{ .fd = id->channel->fd, .events = cq == id->recv_cq ? POLLIN : 0 },
	};
	void *context;
	int ret;

	for (;;) {
		ret = ibv_poll_cq(cq, 1, wc);
		if (ret)
			return ret;
		ibv_req_notify_cq(cq, 0);
		ret = ibv_poll_cq(cq, 1, wc);
		if (ret || poll(fds, 2, ms) <= 0)
			return ret;
		if (!fds[0].revents) {
			/* Nothing but a disconnect comes when a connection stands */
			wc->status = IBV_WC_WR_FLUSH_ERR;
			return 1;
		}
		if (ibv_get_cq_event(channel, &cq, &context))
			fatal("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}

static void make_qp(struct liar *liar, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = SENDS, .max_recv_wr = RECVS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;
	unsigned int i;

	if (rdma_create_qp(id, NULL, &attr))
		fatal("rdma_create_qp");
	for (i = 0; i < liar->nr_recvs; i++)
		if (ibv_post_recv(id->qp, &wr, &bad))
			fatal("ibv_post_recv");
	if (liar->mr)
		return;
	liar->qp = id->qp;
	liar->mr = ibv_reg_mr(id->pd, liar->memory, LIAR_BYTES,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ);
	if (!liar->mr)
		fatal("ibv_reg_mr");
	if (!liar->own.msgbuf_rkey)
		liar->own.msgbuf_rkey = cpu_to_le32(liar->mr->rkey);
}

/* Whoever refuses says why, or is not one of ours */
static int refusal(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event = id->event;
	const struct rdmatensor_wire_reject *reject;

	if (!event || event->event != RDMA_CM_EVENT_REJECTED)
		return event && event->event == RDMA_CM_EVENT_UNREACHABLE ? -ETIMEDOUT :
		       -ECONNREFUSED;
	reject = event->param.conn.private_data;
	if (!reject || event->param.conn.private_data_len < sizeof(*reject) ||
	    reject->magic != cpu_to_le32(RDMATENSOR_WIRE_MAGIC))
		return -ECONNREFUSED;
	return -le16_to_cpu(reject->error);
}

int liar_connect_lane(struct liar *liar, const char *ip, unsigned int port, unsigned int lane,
		      size_t private_len)
{
	struct rdmatensor_wire_private private;
	struct rdma_conn_param param = {
		.private_data = &private, .private_data_len = private_len,
		.retry_count = RETRIES, .rnr_retry_count = RETRIES,
		.responder_resources = 1, .initiator_depth = 1,
	};
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	/* 67 ms, seven times: a machine that is busy is not a peer that is gone */
	uint8_t ack_timeout = 14;
	struct rdma_cm_id *id;
	char service[16];
	int ret;

	snprintf(service, sizeof(service), "%u", port);
	if (rdma_getaddrinfo(ip, service, &hints, &to))
		fatal("rdma_getaddrinfo");
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		fatal("rdma_create_id");
	liar->ids[lane] = id;
	if (rdma_resolve_addr(id, NULL, to->ai_dst_addr, 2000) || rdma_resolve_route(id, 2000))
		fatal("resolving the address");
	rdma_freeaddrinfo(to);
	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
			sizeof(ack_timeout));
	make_qp(liar, id);

	liar_connections++;
	private = liar->own;
	private.lane += lane;
	if (lane) {
		private.msgbuf_addr = 0;
		private.msgbuf_rkey = 0;
	}
	if (rdma_connect(id, private_len ? &param : NULL)) {
		ret = refusal(id);
		rdma_destroy_qp(id);
		rdma_destroy_id(id);
		liar->ids[lane] = NULL;
		return ret;
	}
	if (!lane && id->event &&
	    id->event->param.conn.private_data_len >= sizeof(liar->peer))
		memcpy(&liar->peer, id->event->param.conn.private_data, sizeof(liar->peer));
	return 0;
}

int liar_connect(struct liar *liar, const char *ip, unsigned int port)
{
	unsigned int lane;
	int ret = 0;

	for (lane = 0; !ret && lane < liar->nr_lanes; lane++)
		ret = liar_connect_lane(liar, ip, port, lane, sizeof(liar->own));
	return ret;
}

int liar_listen(struct liar *liar, const char *ip, unsigned int *port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE };
	struct rdma_addrinfo *at;

	if (rdma_getaddrinfo(ip, NULL, &hints, &at))
		fatal("rdma_getaddrinfo");
	if (rdma_create_id(NULL, &liar->listener, NULL, RDMA_PS_TCP))
		fatal("rdma_create_id");
	if (rdma_bind_addr(liar->listener, at->ai_src_addr) || rdma_listen(liar->listener, 8))
		fatal("listening");
	rdma_freeaddrinfo(at);
	*port = ntohs(rdma_get_src_port(liar->listener));
	return 0;
}

static struct rdma_cm_id *requested(struct liar *liar)
{
	struct rdma_cm_id *id;

	if (rdma_get_request(liar->listener, &id))
		fatal("rdma_get_request");
	liar_connections++;
	if (id->event->param.conn.private_data_len >= sizeof(liar->peer))
		memcpy(&liar->peer, id->event->param.conn.private_data, sizeof(liar->peer));
	return id;
}

int liar_accept(struct liar *liar, bool same_nonce, size_t private_len)
{
	struct rdma_conn_param param = {
		.private_data = &liar->own, .private_data_len = private_len,
		.retry_count = RETRIES, .rnr_retry_count = RETRIES,
		.responder_resources = 1, .initiator_depth = 1,
	};
	struct rdma_cm_id *id = requested(liar);

	liar->ids[0] = id;
	if (same_nonce)
		liar->own.nonce = liar->peer.nonce;
	make_qp(liar, id);
	if (rdma_accept(id, &param))
		return -errno;
	return 0;
}

int liar_accept_read(struct liar *liar, unsigned int lane)
{
	struct rdmatensor_wire_private private;
	struct rdma_conn_param param = {
		.private_data = &private, .private_data_len = sizeof(private),
		.retry_count = RETRIES, .rnr_retry_count = RETRIES,
		.responder_resources = 1,
	};
	struct rdma_cm_id *id = requested(liar);

	liar->ids[lane] = id;
	make_qp(liar, id);
	/* What was asked for: number, nonce and flag */
	private = liar->peer;
	return rdma_accept(id, &param) ? -errno : 0;
}

void liar_ignore(struct liar *liar, unsigned int lane)
{
	liar->ids[lane] = requested(liar);
}

int liar_reject(struct liar *liar, const void *private, size_t private_len)
{
	struct rdma_cm_id *id = requested(liar);
	int ret = rdma_reject(id, private, private_len) ? -errno : 0;

	rdma_destroy_id(id);
	return ret;
}

bool liar_is_asked(struct liar *liar, int ms)
{
	struct pollfd asked = { .fd = liar->listener->channel->fd, .events = POLLIN };

	return poll(&asked, 1, ms) == 1;
}

void liar_break_read(struct liar *liar, unsigned int lane)
{
	rdma_destroy_qp(liar->ids[lane]);
	rdma_destroy_id(liar->ids[lane]);
	liar->ids[lane] = NULL;
}

void liar_leave(struct liar *liar)
{
	unsigned int lane;

	for (lane = 0; lane < liar->nr_lanes; lane++) {
		struct rdma_cm_id *id = liar->ids[lane];
		struct ibv_qp *qp = id->qp;

		/* librdmacm takes what it finds there to the state of error */
		id->qp = NULL;
		rdma_disconnect(id);
		id->qp = qp;
	}
}

void liar_fail(struct liar *liar)
{
	rdma_disconnect(liar->ids[0]);
}

bool liar_is_left(struct liar *liar, int ms)
{
	struct pollfd left = { .fd = liar->ids[0]->channel->fd, .events = POLLIN };

	return poll(&left, 1, ms) == 1;
}

void liar_hurry(struct liar *liar)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 12 };	/* 0.64 ms, where rdma_cm has 655 */

	if (ibv_modify_qp(liar->qp, &attr, IBV_QP_MIN_RNR_TIMER))
		fatal("ibv_modify_qp");
}

void liar_recv(struct liar *liar)
{
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

	if (ibv_post_recv(liar->qp, &wr, &bad))
		fatal("ibv_post_recv");
}

void liar_close(struct liar *liar)
{
	unsigned int lane;

	/* The region belongs to the device's domain, so its queue pairs go first */
	for (lane = 0; lane < LIAR_LANES; lane++)
		if (liar->ids[lane] && liar->ids[lane]->qp)
			rdma_destroy_qp(liar->ids[lane]);
	if (liar->mr)
		ibv_dereg_mr(liar->mr);
	for (lane = 0; lane < LIAR_LANES; lane++)
		if (liar->ids[lane])
			rdma_destroy_id(liar->ids[lane]);
	if (liar->listener)
		rdma_destroy_id(liar->listener);
	free(liar->memory);
	memset(liar, 0, sizeof(*liar));
}

int liar_post(struct liar *liar, unsigned int lane, enum ibv_wr_opcode opcode, uint64_t at,
	      uint32_t len, uint64_t remote_addr, uint32_t rkey, uint32_t imm)
{
	struct rdma_cm_id *id = liar->ids[lane];
	struct ibv_sge sge = {
		.addr = (uintptr_t)liar->memory + at, .length = len, .lkey = liar->mr->lkey,
	};
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = len != 0, .opcode = opcode }, *bad;
	struct pollfd gone = { .fd = id->channel->fd, .events = POLLIN };
	struct ibv_wc wc;

	/* To who has disconnected it would be tried again and again */
	if (!liar->stays && poll(&gone, 1, 0))
		return IBV_WC_WR_FLUSH_ERR;
	switch (opcode) {
	case IBV_WR_SEND_WITH_INV:
		wr.invalidate_rkey = rkey;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr.wr.atomic.remote_addr = remote_addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
		break;
	default:
		wr.imm_data = htonl(imm);
		wr.wr.rdma.remote_addr = remote_addr;
		wr.wr.rdma.rkey = rkey;
		break;
	}
	if (ibv_post_send(id->qp, &wr, &bad))
		return IBV_WC_GENERAL_ERR;
	if (completion(id, id->send_cq, id->send_cq_channel, &wc, COMPLETION_MS) != 1) {
		errno = ETIMEDOUT;
		fatal("a work request does not end");
	}
	return wc.status;
}

int liar_content(struct liar *liar, unsigned int lane, uint32_t index, uint32_t len,
		 uint64_t remote_addr, uint32_t rkey)
{
	return liar_post(liar, lane, IBV_WR_RDMA_WRITE_WITH_IMM, LIAR_FROM, len, remote_addr,
			 rkey, index);
}

int liar_ack(struct liar *liar)
{
	liar->tell += LIAR_ACK_BATCH;
	return liar_post(liar, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0, 0, RDMATENSOR_IMM_ACK);
}

void liar_say_bytes(struct liar *liar, const void *bytes, uint32_t len)
{
	uint32_t slots = le16_to_cpu(liar->peer.msg_slots);
	uint64_t slot = liar->sent++ % (slots ? slots : 1);

	memmove(liar->memory + LIAR_FROM, bytes, len);
	liar_messages++;
	liar_post(liar, 0, IBV_WR_RDMA_WRITE_WITH_IMM, LIAR_FROM, len,
		  le64_to_cpu(liar->peer.msgbuf_addr) +
		  slot * le32_to_cpu(liar->peer.msg_slot_bytes),
		  le32_to_cpu(liar->peer.msgbuf_rkey), RDMATENSOR_IMM_MESSAGE);
}

void liar_say(struct liar *liar, const struct rdmatensor_msg *msg)
{
	char bytes[LIAR_SLOT_BYTES] __attribute__((aligned(8)));
	int len = rdmatensor_wire_encode(msg, bytes, sizeof(bytes));

	if (len < 0) {
		errno = -len;
		fatal("encoding");
	}
	if (!liar->lie_count)
		liar->tell = liar->heard;
	rdmatensor_wire_set_consumed(bytes, liar->tell);
	liar_say_bytes(liar, bytes, len);
}

void liar_hello(struct liar *liar)
{
	struct rdmatensor_msg msg = {
		.type = RDMATENSOR_WIRE_HELLO, .incarnation = 1, .max_requests = LIAR_REQUESTS,
		.features = liar->features, .text = "liar", .text_len = 4,
	};

	liar_say(liar, &msg);
}

int liar_hear(struct liar *liar, struct rdmatensor_msg *msg, int ms)
{
	struct rdma_cm_id *id = liar->ids[0];
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;
	const char *why = "";
	struct ibv_wc wc;
	uint32_t imm;

	if (completion(id, id->recv_cq, id->recv_cq_channel, &wc, ms) != 1)
		return LIAR_SILENCE;
	if (wc.status != IBV_WC_SUCCESS) {
		liar->ended = wc.status;
		return LIAR_END;
	}
	if (!liar->still)
		ibv_post_recv(id->qp, &wr, &bad);
	imm = ntohl(wc.imm_data);
	if (imm == RDMATENSOR_IMM_ACK)
		return LIAR_ACK;
	memset(msg, 0, sizeof(*msg));
	if (imm != RDMATENSOR_IMM_MESSAGE) {
		msg->request_index = imm;
		return LIAR_CONTENT;
	}
	/* By the module's own decoder. Who lies of credits finds later words in a slot */
	if (rdmatensor_wire_decode(liar->memory + liar->heard++ % LIAR_SLOTS * LIAR_SLOT_BYTES,
				   wc.byte_len, msg, &why)) {
		memset(msg, 0, sizeof(*msg));
		return LIAR_GARBLED;
	}
	return msg->type;
}

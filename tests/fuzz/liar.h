/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A peer in user space, over verbs: it connects like a worker, or is connected to,
 * and then says and writes whatever the test wants. It keeps to the protocol only
 * where it is asked to.
 */
#ifndef RDMATENSOR_TEST_LIAR_H
#define RDMATENSOR_TEST_LIAR_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "core/wire.h"

#define LIAR_SLOTS 64
#define LIAR_SLOT_BYTES 4096
#define LIAR_ACK_BATCH 4
#define LIAR_REQUESTS 256
#define LIAR_LANES 8
/* Its memory: the message buffer, room to write from, room for the content it asks for */
#define LIAR_FROM (LIAR_SLOTS * LIAR_SLOT_BYTES)
#define LIAR_DEST (LIAR_FROM + (256 << 10))
#define LIAR_BYTES (LIAR_DEST + (256 << 10))

/**
 * struct liar - one connection
 * @ids: one a lane
 * @nr_lanes: of them
 * @listener: where it was connected to, or NULL
 * @memory: LIAR_BYTES, registered for remote writes
 * @mr: of @memory
 * @qp: the first lane's
 * @own: what it has said of itself
 * @features: what its HELLO will say of that
 * @peer: what the other end has said
 * @sent: messages that it has written
 * @nr_recvs: receives that it posts to each lane; liar_init() says many
 * @still: it posts none again in the place of one that was used
 * @stays: it goes on when the other end has said that it leaves
 * @heard: messages that it has read, which its own say that it consumed
 * @tell: how many of them it has told of; with @lie_count the test sets it
 * @ended: how the work request ended with which liar_hear() said LIAR_END, enum ibv_wc_status
 */
struct liar {
	struct rdma_cm_id *ids[LIAR_LANES];
	unsigned int nr_lanes;
	struct rdma_cm_id *listener;
	char *memory;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct rdmatensor_wire_private own;
	uint32_t features;
	struct rdmatensor_wire_private peer;
	unsigned int nr_recvs;
	bool still;
	bool stays;
	uint32_t sent;
	uint32_t heard;
	uint32_t tell;
	bool lie_count;
	int ended;
};

/* What liar_hear() has heard beside types of messages */
enum { LIAR_SILENCE = 0, LIAR_ACK = 100, LIAR_CONTENT, LIAR_END, LIAR_GARBLED };

/* Connections and messages of all liars, for the tally */
extern unsigned long long liar_connections, liar_messages;

/* Memory and an honest @own for @lanes lanes, nothing connected */
void liar_init(struct liar *liar, unsigned int lanes);
/*
 * Connects a lane, with @own as private data and @private_len bytes of it. Return: 0,
 * the errno of the refusal, or -ECONNREFUSED if there was none
 */
int liar_connect_lane(struct liar *liar, const char *ip, unsigned int port, unsigned int lane,
		      size_t private_len);
/* All lanes of an honest connection */
int liar_connect(struct liar *liar, const char *ip, unsigned int port);
/* Listens; *port: where. Then takes one connection and answers with @own. 0 or -errno */
int liar_listen(struct liar *liar, const char *ip, unsigned int *port);
int liar_accept(struct liar *liar, bool same_nonce, size_t private_len);
/* A lane for reads of the connection that stands, as number @lane of its own */
int liar_accept_read(struct liar *liar, unsigned int lane);
/* Takes a request for number @lane of its own, and answers nothing */
void liar_ignore(struct liar *liar, unsigned int lane);
int liar_reject(struct liar *liar, const void *private, size_t private_len);
/* A connection is asked for within @ms */
bool liar_is_asked(struct liar *liar, int ms);
/* Ends the lane for reads */
void liar_break_read(struct liar *liar, unsigned int lane);
/*
 * Says that it leaves, over each lane, and the queue pairs stay as they are. Returns when the
 * other end has answered, or does not any more
 */
void liar_leave(struct liar *liar);
/* As one does whose channel has failed: its queue pair is in error when the other end hears it */
void liar_fail(struct liar *liar);
/* The other end has said that it leaves, within @ms */
bool liar_is_left(struct liar *liar, int ms);
/* Goes without a word: its queue pairs are destroyed */
void liar_close(struct liar *liar);

/* Messages as struct rdmatensor_msg; the next slot, whether it is free or not */
void liar_say(struct liar *liar, const struct rdmatensor_msg *msg);
void liar_say_bytes(struct liar *liar, const void *bytes, uint32_t len);
/* Who finds no receive on lane 0 tries again soon */
void liar_hurry(struct liar *liar);
/* One receive more on lane 0 */
void liar_recv(struct liar *liar);
/* What liar_init() has it say in its HELLO */
extern uint32_t liar_features;
void liar_hello(struct liar *liar);
/*
 * What comes next, within @ms: the type of a message, in @msg until the next call; an
 * ack; content, its index in msg->request_index; the end of the connection; silence;
 * what is no message
 */
int liar_hear(struct liar *liar, struct rdmatensor_msg *msg, int ms);

/*
 * A work request of any kind on a lane, from or to @at in its own memory. Waits for
 * its end. Return: enum ibv_wc_status
 */
int liar_post(struct liar *liar, unsigned int lane, enum ibv_wr_opcode opcode, uint64_t at,
	      uint32_t len, uint64_t remote_addr, uint32_t rkey, uint32_t imm);
int liar_content(struct liar *liar, unsigned int lane, uint32_t index, uint32_t len,
		 uint64_t remote_addr, uint32_t rkey);
/* Tells of LIAR_ACK_BATCH more, whether it has heard them or not */
int liar_ack(struct liar *liar);

#endif

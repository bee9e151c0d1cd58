/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Message buffers: slots, and the credits that say when one is free again.
 *
 * struct rdmatensor_credits is pure arithmetic on counts of 64 bits, of which the
 * wire carries the lower 32. Both sides of a channel keep the same count of acknowledged
 * messages ("told") for each direction, because all that acknowledges is sent on lane 0, in
 * order:
 *  - every message carries the count of messages consumed so far;
 *  - content for request r on lane 0 acknowledges everything up to r's last request
 *    message;
 *  - an ack acknowledges ack_batch more.
 * The side that acknowledges counts when it posts, the other one when it receives.
 */
#ifndef RDMATENSOR_MSGBUF_H
#define RDMATENSOR_MSGBUF_H

#include "memory/registration.h"

/**
 * struct rdmatensor_credits - both directions of one channel
 *
 * Out:
 * @window: messages that may be unconsumed, in either direction: the lesser of
 *          both sides' slots
 * @peer_ack_batch: messages that an ack from the peer acknowledges
 * @sent: messages posted
 * @sent_done: of those, writes that completed here
 * @peer_told: messages that the peer is known to have consumed
 *
 * In:
 * @ack_batch: messages that an ack of ours acknowledges; as many make one due
 * @eager: a window of one: every message is acked before it is acted upon
 * @consumed: messages consumed
 * @told: of those, how many have been acknowledged to the peer
 */
struct rdmatensor_credits {
	u32 window;
	u32 peer_ack_batch;
	u64 sent;
	u64 sent_done;
	u64 peer_told;

	u32 ack_batch;
	bool eager;
	u64 consumed;
	u64 told;
};

void rdmatensor_credits_init(struct rdmatensor_credits *credits, u32 slots, u32 ack_batch);
/*
 * The peer's side, from the connection's private data. Both batches are cut to the window,
 * by the same rule on both sides
 */
void rdmatensor_credits_peer(struct rdmatensor_credits *credits, u32 own_slots,
			     u32 peer_slots, u32 peer_ack_batch);

/* Out. A slot is free when its write completed and the peer consumed it */
bool rdmatensor_credits_can_send(const struct rdmatensor_credits *credits);
/* Return: the message's number, from 1; slots need its lower 32 bits only */
u64 rdmatensor_credits_sent(struct rdmatensor_credits *credits);
void rdmatensor_credits_sent_done(struct rdmatensor_credits *credits);
/* Return: 0, -EPROTO: the peer acknowledges what was never sent, or less than before */
int rdmatensor_credits_told_count(struct rdmatensor_credits *credits, u32 consumed);
int rdmatensor_credits_told_ack(struct rdmatensor_credits *credits);
void rdmatensor_credits_told_upto(struct rdmatensor_credits *credits, u64 seq);

/* In. Return: the message's sequence number, from 1 */
u64 rdmatensor_credits_consume(struct rdmatensor_credits *credits);
/* Return: what the wire carries */
u32 rdmatensor_credits_tell_count(struct rdmatensor_credits *credits);
void rdmatensor_credits_tell_upto(struct rdmatensor_credits *credits, u64 seq);
bool rdmatensor_credits_ack_due(const struct rdmatensor_credits *credits);
void rdmatensor_credits_tell_ack(struct rdmatensor_credits *credits);

/**
 * struct rdmatensor_slots - slots in one direction
 * @memory: coherent; NULL: there is none
 * @reg: all of it, in one memory region
 */
struct rdmatensor_slots {
	struct rdmatensor_memory *memory;
	struct rdmatensor_registration reg;
};

/**
 * struct rdmatensor_msgbuf - slots of one channel
 * @slots: in each direction
 * @slot_bytes: a power of two
 * @rx: received into, open to the peer
 * @tx: sent from
 * @scratch: private copy of the slot that is being consumed
 * @rkeys: private space for the keys of the message that is being encoded, or its entries of a list
 */
struct rdmatensor_msgbuf {
	u32 slots;
	u32 slot_bytes;
	struct rdmatensor_slots rx;
	struct rdmatensor_slots tx;
	void *scratch;
	__le32 *rkeys;
};

/* May sleep. Return: 0, -ENOMEM, or what registration failed with */
int rdmatensor_msgbuf_alloc(struct rdmatensor_msgbuf *msgbuf,
			    struct rdmatensor_domain *domain, u32 slots, u32 slot_bytes);
/* No peer can write any more. Idempotent */
void rdmatensor_msgbuf_free(struct rdmatensor_msgbuf *msgbuf);

void *rdmatensor_msgbuf_tx_slot(struct rdmatensor_msgbuf *msgbuf, u32 seq);
/* Local address and key of the slot, for the write */
void rdmatensor_msgbuf_tx_sge(struct rdmatensor_msgbuf *msgbuf, u32 seq, u32 bytes,
			      struct ib_sge *sge);
/* Copies a received message out of its slot, once. Return: 0, -EPROTO: length */
int rdmatensor_msgbuf_copy_out(struct rdmatensor_msgbuf *msgbuf, u32 seq, u32 bytes);

#endif /* RDMATENSOR_MSGBUF_H */

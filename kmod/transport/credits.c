// SPDX-License-Identifier: GPL-2.0
/*
 * Credits of a message buffer: arithmetic only, no memory, no device. The
 * channel's lock is held by the caller in all of them.
 *
 * Counts are 64 bits here and 32 on the wire: both sides count from 0, and what is acknowledged
 * lies within a window of what is known. A fetch may wait while any number of messages
 * pass, which must not make the number of its request look new.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <kunit/visibility.h>
#include "transport/msgbuf.h"

void rdmatensor_credits_init(struct rdmatensor_credits *credits, u32 slots, u32 ack_batch)
{
	memset(credits, 0, sizeof(*credits));
	credits->window = slots;
	credits->ack_batch = ack_batch;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_init);

void rdmatensor_credits_peer(struct rdmatensor_credits *credits, u32 own_slots,
			     u32 peer_slots, u32 peer_ack_batch)
{
	credits->window = min(own_slots, peer_slots);
	/* A batch beyond the window would never become due */
	credits->ack_batch = min(credits->ack_batch, credits->window);
	credits->peer_ack_batch = min(peer_ack_batch, credits->window);
	credits->eager = credits->window == 1;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_peer);

bool rdmatensor_credits_can_send(const struct rdmatensor_credits *credits)
{
	return credits->sent - credits->peer_told < credits->window &&
	       credits->sent - credits->sent_done < credits->window;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_can_send);

u64 rdmatensor_credits_sent(struct rdmatensor_credits *credits)
{
	return ++credits->sent;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_sent);

void rdmatensor_credits_sent_done(struct rdmatensor_credits *credits)
{
	credits->sent_done++;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_sent_done);

int rdmatensor_credits_told_count(struct rdmatensor_credits *credits, u32 consumed)
{
	u32 more = consumed - (u32)credits->peer_told;

	/* Between what is known and what was sent */
	if (more > credits->sent - credits->peer_told)
		return -EPROTO;
	credits->peer_told += more;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_told_count);

int rdmatensor_credits_told_ack(struct rdmatensor_credits *credits)
{
	return rdmatensor_credits_told_count(credits, (u32)credits->peer_told +
						      credits->peer_ack_batch);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_told_ack);

void rdmatensor_credits_told_upto(struct rdmatensor_credits *credits, u64 seq)
{
	credits->peer_told = max(credits->peer_told, seq);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_told_upto);

u64 rdmatensor_credits_consume(struct rdmatensor_credits *credits)
{
	return ++credits->consumed;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_consume);

u32 rdmatensor_credits_tell_count(struct rdmatensor_credits *credits)
{
	credits->told = credits->consumed;
	return credits->told;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_tell_count);

void rdmatensor_credits_tell_upto(struct rdmatensor_credits *credits, u64 seq)
{
	credits->told = max(credits->told, seq);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_tell_upto);

bool rdmatensor_credits_ack_due(const struct rdmatensor_credits *credits)
{
	return credits->consumed - credits->told >= credits->ack_batch;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_ack_due);

void rdmatensor_credits_tell_ack(struct rdmatensor_credits *credits)
{
	credits->told += credits->ack_batch;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_credits_tell_ack);

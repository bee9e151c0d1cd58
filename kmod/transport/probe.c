// SPDX-License-Identifier: GPL-2.0
/*
 * Probes: empty RDMA WRITEs without immediate, which the peer's device alone answers.
 *
 * A peer that stops without a word, with its machine, would never be missed while this side only
 * waits: nothing that it has sent lacks an answer. So a quiet channel is given something to answer,
 * over lane 0, every probe_ms.
 *
 * A queue pair can sleep over what was posted to it. soft-RoCE pauses when too many of its packets
 * are with the network device, and the wake-up is lost if all of them are sent before it has noted
 * down that it waits. What was sent is answered then, and the transport's timer finds nothing to
 * repeat: Linux 6.12 wakes the queue pair by it all the same, after the ack timeout, and 6.1 does
 * not: the rest waits until something is posted. So a lane is given a probe when none of what is
 * posted to it completes for a tenth of probe_ms. A device that is merely slow, or repeats what was
 * lost, completes the probe behind the rest.
 *
 * Probes have places of their own in a send queue: one that is full needs them most. Both timers
 * hold the channel's lock, under which all is posted. Nothing arms them once it is CLOSING and
 * has left: what a leave waits for can be asleep as well.
 */
#include <kunit/visibility.h>
#include "transport/channel.h"
#include "transport/probe.h"

/* Not more often, however often a peer is probed; and not later, however seldom */
#define PROBE_PAUSE_LEAST_MS 10
#define PROBE_PAUSE_MOST_MS 5000

unsigned long rdmatensor_probe_pause(const struct rdmatensor_channel_params *params)
{
	return msecs_to_jiffies(clamp_t(u32, params->probe_ms / 10, PROBE_PAUSE_LEAST_MS,
					PROBE_PAUSE_MOST_MS));
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_probe_pause);

/* A lane can sleep over a probe as well, which then hides that its peer does not answer */
static bool probe_has_posted(const struct rdmatensor_lane *lane)
{
	return lane->sendq_free != lane->channel->params->queue_depth || lane->probes;
}

static void probe_look_later(struct rdmatensor_channel *channel)
{
	if (!timer_pending(&channel->lanes_timer))
		mod_timer(&channel->lanes_timer, jiffies + rdmatensor_probe_pause(channel->params));
}

/* Return: false: the channel ends by it */
static bool probe_post(struct rdmatensor_lane *lane)
{
	struct rdmatensor_channel *channel = lane->channel;

	if (channel->lane_ops->post_probe(lane)) {
		rdmatensor_channel_fail_locked(channel, -ECONNRESET,
					       "posting to the send queue failed");
		return false;
	}
	lane->probes++;
	rdmatensor_count(&channel->counters, RDMATENSOR_STAT_TX_PROBES);
	return true;
}

static void probe_peer(struct timer_list *timer)
{
	struct rdmatensor_channel *channel = from_timer(channel, timer, probe_timer);
	struct rdmatensor_lane *lane = &channel->lanes[0];

	spin_lock_bh(&channel->lock);
	if (channel->state != RDMATENSOR_CHANNEL_UP)
		goto out_unlock;
	/* One that has not been answered is as good as a second one, if the lane does not sleep */
	if (!channel->heard && !lane->probes) {
		if (!probe_post(lane))
			goto out_unlock;
		lane->completes = true;
		probe_look_later(channel);
	}
	channel->heard = false;
	mod_timer(&channel->probe_timer, jiffies + msecs_to_jiffies(channel->params->probe_ms));
out_unlock:
	spin_unlock_bh(&channel->lock);
}

static void probe_lanes(struct timer_list *timer)
{
	struct rdmatensor_channel *channel = from_timer(channel, timer, lanes_timer);
	bool posted = false;
	int i;

	spin_lock_bh(&channel->lock);
	if (rdmatensor_channel_over(channel))
		goto out_unlock;
	for (i = 0; i < channel->nr_lanes; i++) {
		struct rdmatensor_lane *lane = &channel->lanes[i];

		if (!probe_has_posted(lane))
			continue;
		posted = true;
		if (!lane->completes && lane->probes < RDMATENSOR_PROBES && !probe_post(lane))
			goto out_unlock;
		lane->completes = false;
	}
	if (posted)
		probe_look_later(channel);
out_unlock:
	spin_unlock_bh(&channel->lock);
}

void rdmatensor_probe_init(struct rdmatensor_channel *channel)
{
	timer_setup(&channel->probe_timer, probe_peer, 0);
	timer_setup(&channel->lanes_timer, probe_lanes, 0);
}

void rdmatensor_probe_begin(struct rdmatensor_channel *channel)
{
	lockdep_assert_held(&channel->lock);
	mod_timer(&channel->probe_timer, jiffies + msecs_to_jiffies(channel->params->probe_ms));
}

void rdmatensor_probe_end(struct rdmatensor_channel *channel)
{
	timer_delete_sync(&channel->probe_timer);
	timer_delete_sync(&channel->lanes_timer);
}

void rdmatensor_probe_watch(struct rdmatensor_lane *lane)
{
	struct rdmatensor_channel *channel = lane->channel;

	lockdep_assert_held(&channel->lock);
	/* The timer may run for another lane, and this one has been idle until now */
	if (!probe_has_posted(lane))
		lane->completes = true;
	probe_look_later(channel);
}

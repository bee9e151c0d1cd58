// SPDX-License-Identifier: GPL-2.0
/*
 * CONNECT, whose peer may not be up yet: workers start in any order.
 *
 * Each try is a channel of its own: a try that fails leaves nothing behind. Between two tries
 * neither a channel nor device_use is held, so that a removal does not wait for them; it wakes
 * a CONNECT that pauses. A peer's refusal is final: waiting would not change it.
 *
 * Many workers may wait for the same peer, as all do for the last one of a cluster. Pauses are
 * of random length, so that their tries do not coincide.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/wait.h>
#include "context/channels.h"
#include "context/context.h"
#include "core/nl_event.h"

/* Pauses: twice as long each time, and cut by up to a half at random */
#define CONNECT_PAUSE_FIRST_MS 20U
#define CONNECT_PAUSE_MOST_MS 1000U

/**
 * struct connect_tries - a CONNECT
 * @context: of the caller
 * @connect: the ioctl's argument
 * @addr: address in @connect
 * @timeout_ms: for all tries, in milliseconds
 * @begun: start in jiffies
 * @deadline: end in jiffies
 * @nr: tries that have ended
 * @error: of the last try that nobody answered
 */
struct connect_tries {
	struct rdmatensor_context *context;
	struct rdmatensor_connect *connect;
	const struct sockaddr *addr;
	u32 timeout_ms;
	unsigned long begun;
	unsigned long deadline;
	u32 nr;
	int error;
};

static u32 connect_left_ms(const struct connect_tries *tries)
{
	u32 past_ms = jiffies_to_msecs(jiffies - tries->begun);

	return tries->timeout_ms - min(past_ms, tries->timeout_ms - 1);
}

/* One try. *@absent: nobody has answered */
static int connect_try(struct connect_tries *tries, bool *absent)
{
	struct rdmatensor_connect *connect = tries->connect;
	struct rdmatensor_context *context = tries->context;
	struct rdmatensor_channel *channel;
	u32 left_ms = connect_left_ms(tries);
	int ret;

	*absent = false;
	channel = ERR_PTR(-ENODEV);
	down_read(&context->device_use);
	if (!READ_ONCE(context->gone))
		channel = rdmatensor_context_channel_add(context, connect, left_ms,
							 context->params.lanes, get_random_u64(),
							 tries->addr);
	up_read(&context->device_use);
	if (IS_ERR(channel)) {
		ret = PTR_ERR(channel);
		snprintf(connect->cause, sizeof(connect->cause),
			 "connect to %pISpc: making the channel failed (%d): %s", tries->addr, ret,
			 ret == -EUSERS ? "max_channels are in use: disconnect some, or raise it" :
			 ret == -EDQUOT ? "the RDMA cgroup allows no more: raise rdma.max" :
			 ret == -EAGAIN ? "the ring is full: reap it, or raise ring_entries" :
			 ret == -ENODEV ? "the RDMA device is gone" : "out of memory");
		return ret;
	}

	ret = rdmatensor_cm_connect(&context->cm, channel, tries->addr, left_ms, connect->cause,
				    sizeof(connect->cause), absent);
	if (ret)
		wait_for_completion(&channel->gone);
	else
		connect->out_channel = channel->id;
	rdmatensor_channel_put(channel);
	return ret;
}

static const char *connect_why(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return "nobody listens there yet";
	case -EHOSTUNREACH:
		return "there is no neighbour of that address yet";
	case -ENETUNREACH:
		return "there is no route to it yet";
	default:
		return "it does not answer yet";
	}
}

/* In the log and to monitors; once */
static void connect_say(const struct connect_tries *tries, int error)
{
	const struct rdmatensor_context *context = tries->context;
	const char *peer = tries->connect->worker;
	u32 wait_ms = connect_left_ms(tries);
	struct rdmatensor_nl_event_args event = {
		.what = RDMATENSOR_NL_EVENT_CONNECT_WAITS,
		.context = context->listed.id,
		.worker = context->worker,
		.peer = *peer ? peer : NULL,
		.addr = tries->addr,
		.wait_ms = wait_ms,
		.error = error,
		.text = connect_why(error),
	};

	pr_info_ratelimited("worker '%s': connect to '%s' at %pISpc: %s (%d): waiting for it, up to %u ms\n",
			    context->worker, *peer ? peer : "any worker", tries->addr,
			    connect_why(error), error, wait_ms);
	rdmatensor_nl_event_send(context->net, &event, GFP_KERNEL);
}

/* Until the next try. Return: 0: it is time; -ETIMEDOUT: there is none left; -EINTR, -ENODEV */
static int connect_pause(const struct connect_tries *tries)
{
	u32 most = min(CONNECT_PAUSE_FIRST_MS << min(tries->nr - 1, 10U), CONNECT_PAUSE_MOST_MS);
	u32 pause_ms = most / 2 + get_random_u32() % (most / 2 + 1);
	unsigned long until = jiffies + msecs_to_jiffies(pause_ms) + 1;
	struct rdmatensor_context *context = tries->context;
	long ret;

	if (time_after_eq(until, tries->deadline))
		until = tries->deadline;
	ret = wait_event_interruptible_timeout(context->removal, READ_ONCE(context->gone),
					       max_t(long, until - jiffies, 1));
	if (ret)
		return ret < 0 ? -EINTR : -ENODEV;
	return time_after_eq(jiffies, tries->deadline) ? -ETIMEDOUT : 0;
}

/* How the wait ended: appended to the last try's cause, or in its place */
static void connect_tell_wait(const struct connect_tries *tries, int error)
{
	struct rdmatensor_connect *connect = tries->connect;
	u32 waited_ms = jiffies_to_msecs(jiffies - tries->begun);
	size_t len;

	if (error == -EINTR || error == -ENODEV)
		snprintf(connect->cause, sizeof(connect->cause),
			 "connect to %pISpc: %s (%d): %s", tries->addr,
			 connect_why(tries->error), tries->error,
			 error == -EINTR ? "interrupted by a signal" : "the RDMA device is gone");
	len = strnlen(connect->cause, sizeof(connect->cause));
	snprintf(connect->cause + len, sizeof(connect->cause) - len,
		 "; waited %u ms for it, %u tries", waited_ms, tries->nr);
}

static int connect_all(struct connect_tries *tries)
{
	char *cause = tries->connect->cause;
	bool absent;
	int ret, end;

	for (;;) {
		ret = connect_try(tries, &absent);
		tries->nr++;
		if (!absent || tries->connect->flags & RDMATENSOR_CONNECT_NOWAIT)
			break;
		/* A try that the deadline cut short knows less than the one before it */
		if ((ret == -ETIMEDOUT || ret == -EHOSTUNREACH) && tries->error &&
		    time_after_eq(jiffies, tries->deadline)) {
			ret = tries->error;
			snprintf(cause, sizeof(tries->connect->cause),
				 "connect to %pISpc: %s (%d): start the peer, and check address and port",
				 tries->addr, connect_why(ret), ret);
			break;
		}
		tries->error = ret;
		if (time_after_eq(jiffies, tries->deadline))
			break;
		if (tries->nr == 1)
			connect_say(tries, ret);
		end = connect_pause(tries);
		if (end == -ETIMEDOUT)
			break;
		if (end) {
			ret = end;
			break;
		}
	}
	if (tries->nr > 1 || (tries->error && (ret == -EINTR || ret == -ENODEV)))
		connect_tell_wait(tries, ret);
	return ret;
}

int rdmatensor_context_connect(struct rdmatensor_context *context,
			       struct rdmatensor_connect *connect)
{
	struct connect_tries tries = {
		.context = context,
		.connect = connect,
		.addr = (struct sockaddr *)connect->addr,
		.begun = jiffies,
	};

	memset(connect->cause, 0, sizeof(connect->cause));
	if (connect->flags & ~RDMATENSOR_CONNECT_NOWAIT || connect->__reserved)
		return -EINVAL;
	/* The name goes to the log, and no worker has such a name */
	if (*connect->worker &&
	    !rdmatensor_wire_worker_ok(connect->worker,
				       strnlen(connect->worker, sizeof(connect->worker)))) {
		snprintf(connect->cause, sizeof(connect->cause),
			 "CONNECT: the worker name is longer than %zu bytes, or has control characters",
			 sizeof(connect->worker) - 1);
		return -EINVAL;
	}
	if (tries.addr->sa_family != AF_INET && tries.addr->sa_family != AF_INET6)
		return -EINVAL;
	if (!rdmatensor_context_started(context))
		return -ENOTCONN;
	/*
	 * A loopback address: rdma_cm searches for a device that has it; soft-RoCE that was
	 * asked to send to ::1 connects no peer any more
	 */
	if (rdmatensor_adapter_is_loopback(tries.addr) ||
	    rdmatensor_adapter_is_unspecified(tries.addr)) {
		snprintf(connect->cause, sizeof(connect->cause),
			 "connect to %pISpc: no RDMA device has a loopback address: name an address of the device's network interface",
			 tries.addr);
		return -EADDRNOTAVAIL;
	}
	tries.timeout_ms = connect->timeout_ms ?: context->params.connect_ms;
	tries.deadline = jiffies + msecs_to_jiffies(tries.timeout_ms);
	return connect_all(&tries);
}

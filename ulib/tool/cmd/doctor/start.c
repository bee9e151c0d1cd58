// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What doctor tries with a context alone: the choice of the device, and a fetch from itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "content.h"
#include "say.h"
#include "start.h"
#include "sysfs.h"
#include "tool/common/context.h"
#include "tool/common/params.h"
#include "tool/common/published.h"
#include "tool/common/store.h"

#define NO_OBJECTS \
	"raise hca_object in rdma.max of this process's cgroup (/proc/self/cgroup); its rdma.current has what is used"

/* The tensor that it fetches from itself */
#define OWN_NAME "rdmatensor.doctor"

/* Network device of its GID; empty: none is known */
static void netdev_of(const struct rdmatensor_query *query, char *netdev, size_t len)
{
	sysfs_line(netdev, len, SYSFS_DEVICES "/%.63s/ports/%u/gid_attrs/ndevs/%u",
		   query->device_name, query->port, query->gid_index);
}

static void say_mtu(struct doctor *doctor, const struct rdmatensor_query *query)
{
	char text[32] = "";

	if (*doctor->netdev)
		sysfs_line(text, sizeof(text), SYSFS_NETDEVS "/%s/mtu", doctor->netdev);
	if (query->mtu < 1024)
		doctor_say(doctor, VERDICT_WARN, "mtu",
			   "give the network device an MTU of 1500 or more (4200 for 4096), and do not set the parameter mtu",
			   "path MTU %u%s%s: short packets cost bandwidth", query->mtu,
			   *text ? ", network device's " : "", text);
	else
		doctor_say(doctor, VERDICT_OK, "mtu", NULL, "path MTU %u%s%s%s%s", query->mtu,
			   *text ? ", " : "", *text ? doctor->netdev : "", *text ? " has " : "",
			   text);
}

/* Beginning of START's cause, the check it belongs to, and the remedy */
static const struct {
	const char *cause;
	const char *check;
	const char *remedy;
} refusals[] = {
	{ "START: mtu ", "mtu",
	  "unset RDMA_QP_MTU and set the parameter mtu to auto, or raise the network device's MTU: ip link set NETDEV mtu 4200" },
	{ "", "start", "set what it names: rdmatensor set NAME VALUE, or for one command its option or --param NAME=VALUE" },
};

static void say_start(struct doctor *doctor, int err)
{
	const struct rdmatensor_start *start = &doctor->options.start;
	char device[64], remedy[160];
	size_t i = 0;

	/* The module has not said why */
	if (!start->cause[0]) {
		doctor_say(doctor, VERDICT_FAIL, "start", "see the kernel log", "start: %s",
			   strerror(-err));
		return;
	}
	while (strncmp(start->cause, refusals[i].cause, strlen(refusals[i].cause)))
		i++;
	snprintf(remedy, sizeof(remedy), "%s", refusals[i].remedy);
	if (err == -EDQUOT)
		snprintf(remedy, sizeof(remedy), "%s", NO_OBJECTS);
	else if (err == -ENOMEM)
		snprintf(remedy, sizeof(remedy), "raise the limit that it names, or for one command --ring-entries 256");
	/* Without --device it is the module's parameter that names the device */
	if (strstr(start->cause, "is no RDMA device") && *start->device_name)
		snprintf(remedy, sizeof(remedy), "give --device one that `rdma link` lists, or drop it for the only active one");
	else if (!strncmp(start->cause, "listen ", 7))
		snprintf(remedy, sizeof(remedy), "give another address with --listen, or drop it for all");
	else if (strstr(start->cause, "is no RDMA device") &&
		 !param_read("device", device, sizeof(device)))
		snprintf(remedy, sizeof(remedy), "the module's parameter device is %s: rdmatensor set device NAME, or '' for the only active one",
			 device);
	doctor_say(doctor, VERDICT_FAIL, refusals[i].check, remedy, "%s", start->cause);
}

bool doctor_start(struct doctor *doctor)
{
	struct rdmatensor_start *start = &doctor->options.start;
	struct rdmatensor_query query;
	char cause[512], where[80];
	int err;

	err = rdmatensor_start_listen(start, doctor->options.listen ? doctor->options.listen : ":0",
				      cause, sizeof(cause));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "listen", "see --listen", "%s", cause);
		return false;
	}
	err = rdmatensor_open_cause(context_path(&doctor->options), &doctor->rt, cause,
				    sizeof(cause));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "start",
			   "it was there a moment ago: is the module being unloaded?", "%s", cause);
		return false;
	}
	err = rdmatensor_start(doctor->rt, start);
	if (err) {
		say_start(doctor, err);
		goto fail;
	}
	err = rdmatensor_query(doctor->rt, &query);
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "start", "see the kernel log", "query: %s",
			   strerror(-err));
		goto fail;
	}
	netdev_of(&query, doctor->netdev, sizeof(doctor->netdev));
	doctor_say(doctor, VERDICT_OK, "choice", NULL, "%s", start->cause);
	say_mtu(doctor, &query);
	doctor_say(doctor, VERDICT_OK, "listen", NULL, "%s",
		   context_listen_text(doctor->rt, &doctor->options, where, sizeof(where)));
	return true;

fail:
	rdmatensor_close(doctor->rt);
	doctor->rt = NULL;
	return false;
}

/* A tensor of CONTENT_LONG bytes at the beginning of @store, of which the rest is free */
static int publish_own(struct doctor *doctor, const struct store *store)
{
	uint64_t *words = (void *)((char *)store->pool.base + store->offset);
	struct rdmatensor_op op;
	uint64_t dim = CONTENT_LONG;
	uint64_t i;

	for (i = 0; i < CONTENT_LONG / 8; i++)
		words[i] = perf_word(i);
	rdmatensor_prep_publish(&op, OWN_NAME, 0, store->pool.id, store->offset, CONTENT_LONG,
				RDMATENSOR_DT_UINT8, 1, &dim, 0, 0);
	return rdmatensor_submit(doctor->rt, &op, 1, 0, 0, NULL);
}

/* rdma_cm cannot connect to the same machine by a link-local address */
static bool is_link_local(struct doctor *doctor)
{
	struct rdmatensor_query query;

	return !rdmatensor_query(doctor->rt, &query) && query.gid[0] == 0xfe &&
	       (query.gid[1] & 0xc0) == 0x80;
}

/* A limit has nothing to do with the link */
static const char *itself_remedy(int err)
{
	switch (err) {
	case -EDQUOT:
		return NO_OBJECTS;
	case -ENOMEM:
		return "raise the limit that it names";
	default:
		return "was the link down, or the address removed? soft-RoCE takes no connections after that: rdma link del, then rdma link add it again; else see the kernel log";
	}
}

void doctor_itself(struct doctor *doctor)
{
	struct store from, to;
	char cause[512] = "", where[80];
	uint32_t channel;
	uint64_t ns;
	int err;

	if (store_create_cause(doctor->rt, CONTENT_LONG, RDMATENSOR_POOL_PEERS_NONE, &from,
			       cause, sizeof(cause)) ||
	    store_create_cause(doctor->rt, CONTENT_LONG, RDMATENSOR_POOL_PEERS_WRITE, &to,
			       cause, sizeof(cause))) {
		content_no_memory(doctor, cause);
		return;
	}
	if (is_link_local(doctor)) {
		doctor_say(doctor, VERDICT_WARN, "itself",
			   "try a PEER on the link, as [fe80::1%eth0]:port",
			   "not tried: nobody can connect to itself by a link-local address");
		return;
	}
	context_listen_text(doctor->rt, &doctor->options, where, sizeof(where));
	err = publish_own(doctor, &from);
	if (!err)
		err = connect_within(doctor->rt, 0, where, NULL, &channel, cause, sizeof(cause));
	if (err) {
		doctor_say(doctor, VERDICT_FAIL, "itself", itself_remedy(err), "%s",
			   *cause ? cause : strerror(-err));
		return;
	}
	err = content_fetch(doctor, channel, OWN_NAME, &to, CONTENT_LONG, &ns);
	if (err)
		doctor_say(doctor, VERDICT_FAIL, "itself", itself_remedy(err),
			   "a fetch from itself over the device: %s", strerror(-err));
	else
		doctor_say(doctor, VERDICT_OK, "itself", NULL,
			   "fetched %d bytes from itself over the device in %.0f us", CONTENT_LONG,
			   (double)ns / 1e3);
	rdmatensor_disconnect(doctor->rt, channel);
}

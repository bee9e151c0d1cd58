/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exposures: that a peer may write to a region of a pool.
 *
 * In pool mode an exposure is a look-up: the keys are the pool's, which all peers of the context
 * can use at any time (design 7.4). In strict mode it has memory regions of its own, in the
 * protection domain of one channel, over exactly its bytes:
 *
 *	begin -> extend, until it is whole -> registered -> close -> invalidated -> end
 *
 * They come from a pool of the channel's domain, are mapped one by one, and are registered by
 * work requests that the channel posts before the message that names their keys; in a domain that
 * registers apart, by rdmatensor_exposure_register(). The channel takes the keys back by work
 * requests in either case, and calls @closed when the device has done them all. Only then may the
 * memory regions be mapped again, and only then does the region belong to the process alone.
 */
#ifndef RDMATENSOR_EXPOSURE_H
#define RDMATENSOR_EXPOSURE_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

struct rdmatensor_domain;
struct rdmatensor_registration;

/**
 * struct rdmatensor_exposure - what a peer needs to write to a region
 * @iova: address of the first byte
 * @first: index of the first memory region; pool mode
 * @nr_rkeys: memory regions that the range touches; 0 for 0 bytes
 * @seg_shift: log2 of the distance at which rkeys change
 * @domain: strict mode: the channel's. NULL: the keys are the pool's. The others are of strict
 *          mode, and guarded by the channel's lock once the exposure can be posted, but while
 *          rdmatensor_exposure_register() has it:
 * @offset: of the region in the pool
 * @bytes: of the region
 * @mrs: its memory regions so far, in the order of addresses, by their qp_entry
 * @nr_mrs: of them
 * @closing: what was registered is being invalidated
 * @at: in @mrs: what was posted last, registrations and then invalidations; @mrs: nothing
 * @nr_registered: registrations that have been posted
 * @nr_invalidated: invalidations that have been posted
 * @nr_open: registrations that have been posted and whose invalidation has not completed
 * @item: in the channel's queue of those that end
 * @cqe: of the invalidations
 * @closed: the last one has completed; the channel's lock is held. rdmatensor_exposure_end() is
 *          the owner's
 */
struct rdmatensor_exposure {
	u64 iova;
	u32 first;
	u32 nr_rkeys;
	u8 seg_shift;
	struct rdmatensor_domain *domain;
	u64 offset;
	u64 bytes;
	struct list_head mrs;
	u32 nr_mrs;
	bool closing;
	struct list_head *at;
	u32 nr_registered;
	u32 nr_invalidated;
	u32 nr_open;
	struct list_head item;
	struct ib_cqe cqe;
	void (*closed)(struct rdmatensor_exposure *exposure);
};

/**
 * rdmatensor_exposure_begin - addresses for a region that is to be exposed alone
 * @exposure: filled but for @closed; without memory regions, unless it needs none
 * @domain: of the channel; outlives the exposure
 * @offset: of the region in its pool
 * @bytes: of the region
 *
 * Any context.
 */
void rdmatensor_exposure_begin(struct rdmatensor_exposure *exposure,
			       struct rdmatensor_domain *domain, u64 offset, u64 bytes);

/**
 * rdmatensor_exposure_extend - map the next memory region
 * @exposure: begun, not whole
 * @reg: the pool's registration, whose addresses the device has
 * @gfp: for a list of what is mapped
 *
 * Any context that @gfp allows. Return: 0; -EAGAIN: the domain has no memory region left:
 * rdmatensor_exposure_grow(); -ENOMEM; -EIO, or an errno of the driver's: it could not be mapped.
 */
int rdmatensor_exposure_extend(struct rdmatensor_exposure *exposure,
			       const struct rdmatensor_registration *reg, gfp_t gfp);

static inline bool rdmatensor_exposure_is_whole(const struct rdmatensor_exposure *exposure)
{
	return !exposure->domain || exposure->nr_mrs == exposure->nr_rkeys;
}

/**
 * rdmatensor_exposure_reserve - have a process pay for its exposures
 * @domain: of the channel
 * @nr: memory regions that one more may take
 * @sum: with those that all of the channel's may take
 * @most: exposures that there are at one time
 *
 * May sleep. Return: 0; -EDQUOT: rdma.max of the RDMA cgroup; -ENOMEM.
 */
int rdmatensor_exposure_reserve(struct rdmatensor_domain *domain, u32 nr, u64 sum, u32 most);
/*
 * One memory region more for the domain's exposures. May sleep. Return: 0; -EDQUOT: rdma.max, or
 * there are as many as a channel may have; another negative errno
 */
int rdmatensor_exposure_grow(struct rdmatensor_domain *domain);

/* What is to be registered, or when it is closing invalidated, next; NULL: nothing is left */
struct ib_mr *rdmatensor_exposure_next(const struct rdmatensor_exposure *exposure);
/**
 * rdmatensor_exposure_register - have the device register what is mapped, and wait for it
 * @exposure: whole, of a domain that registers apart; nobody else touches it meanwhile
 *
 * May sleep. Return: 0; -EIO, or an errno of the driver's: what is registered is not known, and
 * the channel has to end.
 */
int rdmatensor_exposure_register(struct rdmatensor_exposure *exposure);

/*
 * Nobody can pay for what is owed of the domain's keys: those that are idle are freed for it, and
 * the debt with them, as far as they go. A channel whose peer had a long tensor once would have
 * no key for short ones until it ends. With the domain's keys_lock
 */
void rdmatensor_exposure_free_owed(struct rdmatensor_domain *domain);

/* What next() has said has been posted */
void rdmatensor_exposure_posted(struct rdmatensor_exposure *exposure);
/* No more is registered, and what is will be invalidated: next() begins again */
void rdmatensor_exposure_close(struct rdmatensor_exposure *exposure);

/*
 * Gives the memory regions back. The device has invalidated all that was posted, or the queue
 * pairs and with them the domain's use have ended. Any context
 */
void rdmatensor_exposure_end(struct rdmatensor_exposure *exposure);

#endif /* RDMATENSOR_EXPOSURE_H */

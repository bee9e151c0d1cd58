// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the message buffers.
 *
 * The receive half is open to the peer for as long as the channel lives: it can
 * write anything anywhere in it at any time. So a message is copied out once,
 * into scratch, and nothing is decided on the shared bytes. The memory is coherent: no
 * moment is right to sync it for the CPU while the peer keeps writing.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include "core/wire.h"
#include "transport/msgbuf.h"

#define MSGBUF_RX 0
#define MSGBUF_TX 1

int rdmatensor_msgbuf_alloc(struct rdmatensor_msgbuf *msgbuf,
			    struct rdmatensor_domain *domain, u32 slots, u32 slot_bytes)
{
	u32 bytes = PAGE_ALIGN(slots * slot_bytes);
	int ret, i, registered = 0;
	u64 iova;

	memset(msgbuf, 0, sizeof(*msgbuf));
	msgbuf->slots = slots;
	msgbuf->slot_bytes = slot_bytes;

	ret = -ENOMEM;
	msgbuf->scratch = kmalloc(slot_bytes, GFP_KERNEL_ACCOUNT);
	msgbuf->rkeys = kmalloc(slot_bytes, GFP_KERNEL_ACCOUNT);
	if (!msgbuf->scratch || !msgbuf->rkeys)
		goto out_free;

	for (i = 0; i < ARRAY_SIZE(msgbuf->segments); i++) {
		struct rdmatensor_segment *segment = &msgbuf->segments[i];

		ret = rdmatensor_segment_alloc_coherent(segment, domain->ibdev, bytes, slot_bytes);
		if (ret) {
			segment->bytes = 0;
			goto out_unregister;
		}

		ret = -ENOSPC;
		iova = rdmatensor_domain_iova(domain, bytes);
		if (iova)
			ret = rdmatensor_domain_register(domain, segment, 1, iova,
							 IB_ACCESS_LOCAL_WRITE |
							 (i == MSGBUF_RX ?
							  IB_ACCESS_REMOTE_WRITE : 0));
		if (ret) {
			rdmatensor_segment_free(segment);
			segment->bytes = 0;
			goto out_unregister;
		}
		registered++;
	}

	kref_get(&domain->ref);
	msgbuf->domain = domain;
	return 0;

out_unregister:
	while (registered--) {
		rdmatensor_domain_unregister(domain, &msgbuf->segments[registered], 1);
		rdmatensor_segment_free(&msgbuf->segments[registered]);
	}
out_free:
	kfree(msgbuf->rkeys);
	kfree(msgbuf->scratch);
	memset(msgbuf, 0, sizeof(*msgbuf));
	return ret;
}

void rdmatensor_msgbuf_free(struct rdmatensor_msgbuf *msgbuf)
{
	int i;

	if (!msgbuf->domain)
		return;

	for (i = 0; i < ARRAY_SIZE(msgbuf->segments); i++) {
		rdmatensor_domain_unregister(msgbuf->domain, &msgbuf->segments[i], 1);
		rdmatensor_segment_free(&msgbuf->segments[i]);
	}
	kfree(msgbuf->rkeys);
	kfree(msgbuf->scratch);
	rdmatensor_domain_put(msgbuf->domain);
	memset(msgbuf, 0, sizeof(*msgbuf));
}

static u32 msgbuf_offset(const struct rdmatensor_msgbuf *msgbuf, u32 seq)
{
	return ((seq - 1) & (msgbuf->slots - 1)) * msgbuf->slot_bytes;
}

void *rdmatensor_msgbuf_tx_slot(struct rdmatensor_msgbuf *msgbuf, u32 seq)
{
	return rdmatensor_segment_addr(&msgbuf->segments[MSGBUF_TX],
				       msgbuf_offset(msgbuf, seq), NULL);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_msgbuf_tx_slot);

void rdmatensor_msgbuf_tx_sge(struct rdmatensor_msgbuf *msgbuf, u32 seq, u32 bytes,
			      struct ib_sge *sge)
{
	const struct rdmatensor_segment *segment = &msgbuf->segments[MSGBUF_TX];

	sge->addr = segment->iova + msgbuf_offset(msgbuf, seq);
	sge->length = bytes;
	sge->lkey = segment->mr->lkey;
}

int rdmatensor_msgbuf_copy_out(struct rdmatensor_msgbuf *msgbuf, u32 seq, u32 bytes)
{
	const void *slot = rdmatensor_segment_addr(&msgbuf->segments[MSGBUF_RX],
						   msgbuf_offset(msgbuf, seq), NULL);

	if (bytes < sizeof(struct rdmatensor_wire_hdr) || bytes > msgbuf->slot_bytes)
		return -EPROTO;
	memcpy(msgbuf->scratch, slot, bytes);
	return 0;
}

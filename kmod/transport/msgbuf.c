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
#include "core/limits.h"
#include "core/wire.h"
#include "memory/domain.h"
#include "memory/memory.h"
#include "transport/msgbuf.h"

static void slots_free(struct rdmatensor_slots *slots)
{
	rdmatensor_registration_end(&slots->reg);
	/* A device that may still write is worse than memory that is lost */
	if (rdmatensor_registration_free(&slots->reg))
		rdmatensor_memory_free(slots->memory);
	slots->memory = NULL;
}

/* slots_free() is the caller's if it fails */
static int slots_alloc(struct rdmatensor_slots *slots, struct rdmatensor_domain *domain, u32 bytes,
		       u32 slot_bytes, int access)
{
	const struct rdmatensor_span all = { .bytes = bytes, .most = 1 };
	struct rdmatensor_memory *memory;

	memory = rdmatensor_coherent_alloc(domain->ibdev, bytes, slot_bytes);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	slots->memory = memory;
	return rdmatensor_registration_begin(&slots->reg, domain, memory, &all, access);
}

int rdmatensor_msgbuf_alloc(struct rdmatensor_msgbuf *msgbuf,
			    struct rdmatensor_domain *domain, u32 slots, u32 slot_bytes)
{
	u32 bytes = PAGE_ALIGN(slots * slot_bytes);
	int ret;

	memset(msgbuf, 0, sizeof(*msgbuf));
	msgbuf->slots = slots;
	msgbuf->slot_bytes = slot_bytes;

	ret = -ENOMEM;
	msgbuf->scratch = kmalloc(slot_bytes, RDMATENSOR_GFP_SPARING);
	msgbuf->rkeys = kmalloc(slot_bytes, RDMATENSOR_GFP_SPARING);
	if (!msgbuf->scratch || !msgbuf->rkeys)
		goto out_free;
	ret = slots_alloc(&msgbuf->rx, domain, bytes, slot_bytes,
			  IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE) ?:
	      slots_alloc(&msgbuf->tx, domain, bytes, slot_bytes, IB_ACCESS_LOCAL_WRITE);
	if (!ret)
		return 0;

out_free:
	rdmatensor_msgbuf_free(msgbuf);
	return ret;
}

void rdmatensor_msgbuf_free(struct rdmatensor_msgbuf *msgbuf)
{
	slots_free(&msgbuf->rx);
	slots_free(&msgbuf->tx);
	kfree(msgbuf->rkeys);
	kfree(msgbuf->scratch);
	memset(msgbuf, 0, sizeof(*msgbuf));
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_msgbuf_free);

static u32 msgbuf_offset(const struct rdmatensor_msgbuf *msgbuf, u32 seq)
{
	return ((seq - 1) & (msgbuf->slots - 1)) * msgbuf->slot_bytes;
}

void *rdmatensor_msgbuf_tx_slot(struct rdmatensor_msgbuf *msgbuf, u32 seq)
{
	return rdmatensor_memory_addr(msgbuf->tx.memory, msgbuf_offset(msgbuf, seq), NULL);
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_msgbuf_tx_slot);

void rdmatensor_msgbuf_tx_sge(struct rdmatensor_msgbuf *msgbuf, u32 seq, u32 bytes,
			      struct ib_sge *sge)
{
	const struct rdmatensor_registration *reg = &msgbuf->tx.reg;

	sge->addr = reg->iova + msgbuf_offset(msgbuf, seq);
	sge->length = bytes;
	sge->lkey = reg->mrs[0].lkey;
}

int rdmatensor_msgbuf_copy_out(struct rdmatensor_msgbuf *msgbuf, u32 seq, u32 bytes)
{
	const void *slot = rdmatensor_memory_addr(msgbuf->rx.memory, msgbuf_offset(msgbuf, seq),
						  NULL);

	if (bytes < sizeof(struct rdmatensor_wire_hdr) || bytes > msgbuf->slot_bytes)
		return -EPROTO;
	memcpy(msgbuf->scratch, slot, bytes);
	return 0;
}

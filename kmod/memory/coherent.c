// SPDX-License-Identifier: GPL-2.0
/*
 * Coherent memory: for one device, and mapped for it as long as it is there. It has no pages
 * that could be asked for, and no process maps it.
 */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <kunit/visibility.h>
#include <rdma/ib_verbs.h>
#include "core/limits.h"
#include "memory/memory.h"

/* A chunk, unless a block is longer: short enough to be allocated when memory is fragmented */
#define COHERENT_CHUNK SZ_32K

/**
 * struct coherent_chunk - contiguous for the CPU and for the device
 * @cpu: address for the CPU; NULL: not allocated
 * @dma: address for the device
 */
struct coherent_chunk {
	void *cpu;
	dma_addr_t dma;
};

/**
 * struct coherent - memory that device and CPU see alike at any time
 * @memory: the base
 * @ibdev: the device; it is there for longer than the memory
 * @chunk_bytes: of each chunk
 * @nr: chunks
 * @chunks: from the first byte on
 */
struct coherent {
	struct rdmatensor_memory memory;
	struct ib_device *ibdev;
	u32 chunk_bytes;
	u32 nr;
	struct coherent_chunk chunks[] __counted_by(nr);
};

static struct coherent *to_coherent(struct rdmatensor_memory *memory)
{
	return container_of(memory, struct coherent, memory);
}

/* As dma_alloc_coherent(); devices in software take the CPU's addresses */
static void coherent_alloc_chunk(const struct coherent *coherent, struct coherent_chunk *chunk)
{
	const gfp_t gfp = RDMATENSOR_GFP_SPARING | __GFP_ZERO;
	struct ib_device *ibdev = coherent->ibdev;

	if (!ib_uses_virt_dma(ibdev)) {
		chunk->cpu = dma_alloc_coherent(ibdev->dma_device, coherent->chunk_bytes,
						&chunk->dma, gfp);
		return;
	}
	chunk->cpu = alloc_pages_exact(coherent->chunk_bytes, gfp);
	chunk->dma = (uintptr_t)chunk->cpu;
}

static void coherent_free_chunk(const struct coherent *coherent,
				const struct coherent_chunk *chunk)
{
	struct ib_device *ibdev = coherent->ibdev;

	if (!chunk->cpu)
		return;
	if (!ib_uses_virt_dma(ibdev))
		dma_free_coherent(ibdev->dma_device, coherent->chunk_bytes, chunk->cpu,
				  chunk->dma);
	else
		free_pages_exact(chunk->cpu, coherent->chunk_bytes);
}

static void coherent_free(struct rdmatensor_memory *memory)
{
	struct coherent *coherent = to_coherent(memory);
	u32 i;

	for (i = 0; i < coherent->nr; i++)
		coherent_free_chunk(coherent, &coherent->chunks[i]);
	kfree(coherent);
}

static void *coherent_addr(const struct rdmatensor_memory *memory, u64 offset, u32 *contiguous)
{
	const struct coherent *coherent = container_of_const(memory, struct coherent, memory);
	u32 at = (u32)offset % coherent->chunk_bytes;

	if (contiguous)
		*contiguous = coherent->chunk_bytes - at;
	return coherent->chunks[(u32)offset / coherent->chunk_bytes].cpu + at;
}

/* What is mapped is all there is: a list of addresses, of whole chunks */
static int coherent_map(struct rdmatensor_memory *memory, u64 offset, u32 bytes,
			struct ib_device *ibdev, enum dma_data_direction dir,
			struct sg_table *sgt)
{
	const struct coherent *coherent = to_coherent(memory);
	struct scatterlist *sg;
	int ret;
	u32 i;

	if (WARN_ON_ONCE(offset || bytes != memory->bytes || ibdev != coherent->ibdev))
		return -EINVAL;
	ret = sg_alloc_table(sgt, coherent->nr, RDMATENSOR_GFP_SPARING);
	if (ret)
		return ret;
	for_each_sgtable_sg(sgt, sg, i) {
		sg->length = coherent->chunk_bytes;
		sg_dma_address(sg) = coherent->chunks[i].dma;
		sg_dma_len(sg) = coherent->chunk_bytes;
	}
	return 0;
}

static void coherent_unmap(struct rdmatensor_memory *memory, struct ib_device *ibdev,
			   enum dma_data_direction dir, struct sg_table *sgt)
{
	sg_free_table(sgt);
}

static const struct rdmatensor_memory_ops coherent_ops = {
	.name = "coherent",
	.map = coherent_map,
	.unmap = coherent_unmap,
	.addr = coherent_addr,
	.free = coherent_free,
};

struct rdmatensor_memory *rdmatensor_coherent_alloc(struct ib_device *ibdev, u32 bytes,
						    u32 block)
{
	struct coherent *coherent;
	u32 chunk, i;

	might_sleep();
	chunk = min(max3(block, (u32)PAGE_SIZE, (u32)COHERENT_CHUNK), bytes);
	if (WARN_ON_ONCE(!bytes || !is_power_of_2(block) || !IS_ALIGNED(bytes, chunk) ||
			 !IS_ALIGNED(chunk, PAGE_SIZE)))
		return ERR_PTR(-EINVAL);
	coherent = kzalloc(struct_size(coherent, chunks, bytes / chunk), RDMATENSOR_GFP_SPARING);
	if (!coherent)
		return ERR_PTR(-ENOMEM);
	coherent->memory.ops = &coherent_ops;
	coherent->memory.bytes = bytes;
	coherent->memory.page_shift = PAGE_SHIFT;
	coherent->ibdev = ibdev;
	coherent->chunk_bytes = chunk;
	coherent->nr = bytes / chunk;
	for (i = 0; i < coherent->nr; i++) {
		coherent_alloc_chunk(coherent, &coherent->chunks[i]);
		if (!coherent->chunks[i].cpu) {
			coherent_free(&coherent->memory);
			return ERR_PTR(-ENOMEM);
		}
	}
	return &coherent->memory;
}
EXPORT_SYMBOL_IF_KUNIT(rdmatensor_coherent_alloc);

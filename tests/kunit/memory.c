// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for devices: which are refused, what is mapped for what, slices of pages, and coherent
 * memory, on a device that does not exist and reaches memory by the platform's own means.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <kunit/device.h>
#include <kunit/test.h>
#include "memory/domain.h"
#include "memory/memory.h"
#include "memory/pool.h"

/* As a PCI device with so many address lines */
static struct device *device_of(struct kunit *test, unsigned int bits)
{
	struct device *dev = kunit_device_register(test, "rdmatensor");
	static u64 mask;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	mask = DMA_BIT_MASK(bits);
	dev->dma_mask = &mask;
	dev->coherent_dma_mask = mask;
	return dev;
}

static void devices_that_reach_all_memory(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, rdmatensor_domain_unfit(device_of(test, 64)));
}

static void devices_that_would_bounce(struct kunit *test)
{
	KUNIT_EXPECT_NOT_NULL(test, rdmatensor_domain_unfit(device_of(test, 24)));
}

static const struct mapped_case {
	const char *name;
	struct rdmatensor_mapped mapped;
	bool shared;
} mapped_cases[] = {
	{ "direct", { .coherent = true }, true },
	{ "direct, to be synced", { .coherent = true, .need_sync = true }, false },
	{ "direct, caches not coherent", { .need_sync = true }, false },
	{ "translated", { .translated = true, .coherent = true, .in_place = true }, true },
	{ "translated by operations that could sync",
	  { .translated = true, .coherent = true, .in_place = true, .need_sync = true }, true },
	{ "translated, to a bounce buffer", { .translated = true, .coherent = true }, false },
	{ "translated, caches not coherent", { .translated = true, .in_place = true }, false },
};

KUNIT_ARRAY_PARAM_DESC(mapped, mapped_cases, name);

static void memory_that_both_see(struct kunit *test)
{
	const struct mapped_case *param = test->param_value;

	KUNIT_EXPECT_EQ(test, rdmatensor_domain_shared(&param->mapped), param->shared);
}

/* The device does no more with memory than its access needs */
static void directions(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rdmatensor_registration_dir(IB_ACCESS_REMOTE_READ), DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, rdmatensor_registration_dir(0), DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, rdmatensor_registration_dir(IB_ACCESS_LOCAL_WRITE),
			DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_registration_dir(IB_ACCESS_LOCAL_WRITE |
							  IB_ACCESS_REMOTE_WRITE),
			DMA_BIDIRECTIONAL);
}

/* It takes the CPU's addresses */
static struct ib_device *software(struct kunit *test)
{
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	return ibdev;
}

/* Of a pool nobody may read at large, and who may not write cannot */
static void access_of_peers(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_WRITE, true),
			IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_NONE, true),
			IB_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_READ, true),
			IB_ACCESS_LOCAL_WRITE);
	/* What the process may only read, nothing writes to */
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_NONE, false), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_READ, false), 0);
}

#define PAGES_NR 203
#define PAGES_SLICE_SHIFT (PAGE_SHIFT + 5)
#define PAGES_ROUNDS 300
#define PAGES_TAKEN 1024

/* The scatter list of a range has its pages, all of them, in order. Return: its entries */
static u32 check_range(struct kunit *test, struct rdmatensor_memory *memory,
		       struct ib_device *ibdev, u32 first, u32 nr)
{
	u64 at = (u64)first << PAGE_SHIFT, end = at + ((u64)nr << PAGE_SHIFT);
	struct scatterlist *sg;
	struct sg_table sgt;
	u32 i, done;
	int ret;

	ret = memory->ops->map(memory, at, end - at, ibdev, DMA_TO_DEVICE, &sgt);
	KUNIT_ASSERT_EQ(test, ret, 0);
	for_each_sgtable_dma_sg(&sgt, sg, i)
		for (done = 0; done < sg_dma_len(sg); done += PAGE_SIZE, at += PAGE_SIZE) {
			KUNIT_ASSERT_LT(test, at, end);
			KUNIT_EXPECT_PTR_EQ(test, (void *)(uintptr_t)(sg_dma_address(sg) + done),
					    rdmatensor_memory_addr(memory, at, NULL));
		}
	KUNIT_EXPECT_EQ(test, at, end);
	i = sgt.nents;
	memory->ops->unmap(memory, ibdev, DMA_TO_DEVICE, &sgt);
	return i;
}

/*
 * Ranges that begin and end anywhere in a slice, and go over several. Pages that are free one
 * by one, because their neighbours are not, are those that single pages are taken from: so
 * slices have many chunks
 */
static void check_ranges(struct kunit *test, unsigned int max_order)
{
	struct page **taken = kunit_kcalloc(test, PAGES_TAKEN, sizeof(*taken), GFP_KERNEL);
	struct ib_device *ibdev = software(test);
	struct rdmatensor_memory *memory;
	u32 first, entries, i;
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, taken);
	for (i = 0; i < PAGES_TAKEN; i++) {
		taken[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, taken[i]);
	}
	for (i = 0; i < PAGES_TAKEN; i += 2)
		__free_page(taken[i]);
	memory = rdmatensor_kernel_pages_alloc(PAGES_NR << PAGE_SHIFT, PAGES_SLICE_SHIFT,
					       max_order, NULL);
	for (i = 1; i < PAGES_TAKEN; i += 2)
		__free_page(taken[i]);
	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));

	prandom_seed_state(&rnd, 16);
	for (i = 0; i < PAGES_NR; i++) {
		KUNIT_EXPECT_NULL(test, memchr_inv(rdmatensor_memory_addr(memory, i << PAGE_SHIFT,
									  NULL),
						   0, PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, check_range(test, memory, ibdev, i, 1), 1);
	}
	entries = check_range(test, memory, ibdev, 0, PAGES_NR);
	kunit_info(test, "%u entries for %u pages", entries, PAGES_NR);
	if (!max_order)
		KUNIT_EXPECT_GT(test, entries, PAGES_NR / 4);
	for (i = 0; i < PAGES_ROUNDS; i++) {
		first = prandom_u32_state(&rnd) % PAGES_NR;
		check_range(test, memory, ibdev, first,
			    prandom_u32_state(&rnd) % (PAGES_NR - first) + 1);
	}
	rdmatensor_memory_free(memory);
}

static void ranges_of_long_chunks(struct kunit *test)
{
	check_ranges(test, MAX_PAGE_ORDER);
}

static void ranges_of_single_pages(struct kunit *test)
{
	check_ranges(test, 0);
}

/* It gives up before it begins */
static void pages_that_are_stopped(struct kunit *test)
{
	struct rdmatensor_memory *memory;
	bool stop = true;

	memory = rdmatensor_kernel_pages_alloc(SZ_1M, PAGES_SLICE_SHIFT, 0, &stop);
	KUNIT_EXPECT_EQ(test, PTR_ERR(memory), -ENODEV);
}

static const struct coherent_case {
	const char *name;
	u32 bytes;
	u32 block;
} coherent_cases[] = {
	{ "one page of small slots", PAGE_SIZE, 1024 },
	{ "slots of a page", SZ_256K, PAGE_SIZE },
	{ "slots longer than a chunk", SZ_256K, SZ_64K },
	{ "one slot", SZ_64K, SZ_64K },
};

KUNIT_ARRAY_PARAM_DESC(coherent, coherent_cases, name);

/* @dma: of a device that has its own view of memory; NULL: of one in software */
static void check_coherent(struct kunit *test, const struct coherent_case *param,
			   struct device *dma)
{
	struct ib_device *ibdev = software(test);
	struct rdmatensor_memory *memory;
	u32 at, contiguous, i;
	struct scatterlist *sg;
	struct sg_table sgt;
	u8 *cpu;

	ibdev->dma_device = dma;
	memory = rdmatensor_coherent_alloc(ibdev, param->bytes, param->block);
	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	KUNIT_EXPECT_EQ(test, memory->bytes, param->bytes);
	for (at = 0; at < param->bytes; at += param->block) {
		cpu = rdmatensor_memory_addr(memory, at, &contiguous);
		KUNIT_EXPECT_GE(test, contiguous, param->block);
		KUNIT_EXPECT_NULL(test, memchr_inv(cpu, 0, param->block));
		memset(cpu, at / param->block + 1, param->block);
	}
	/* The device has the same bytes in the same order, and is told of nothing else */
	KUNIT_ASSERT_EQ(test, memory->ops->map(memory, 0, param->bytes, ibdev, DMA_BIDIRECTIONAL,
					       &sgt), 0);
	at = 0;
	for_each_sgtable_sg(&sgt, sg, i) {
		cpu = dma ? phys_to_virt(sg_dma_address(sg)) : (u8 *)(uintptr_t)sg_dma_address(sg);
		KUNIT_EXPECT_PTR_EQ(test, cpu, (u8 *)rdmatensor_memory_addr(memory, at, NULL));
		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(sg_dma_address(sg), PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, cpu[sg_dma_len(sg) - 1],
				(u8)((at + sg_dma_len(sg) - 1) / param->block + 1));
		at += sg_dma_len(sg);
	}
	KUNIT_EXPECT_EQ(test, at, param->bytes);
	memory->ops->unmap(memory, ibdev, DMA_BIDIRECTIONAL, &sgt);
	rdmatensor_memory_free(memory);
}

static void coherent_memory(struct kunit *test)
{
	check_coherent(test, test->param_value, device_of(test, 64));
}

static void coherent_memory_of_software(struct kunit *test)
{
	check_coherent(test, test->param_value, NULL);
}

static struct kunit_case memory_cases[] = {
	KUNIT_CASE(devices_that_reach_all_memory),
	KUNIT_CASE(devices_that_would_bounce),
	KUNIT_CASE_PARAM(memory_that_both_see, mapped_gen_params),
	KUNIT_CASE(directions),
	KUNIT_CASE(access_of_peers),
	KUNIT_CASE(ranges_of_long_chunks),
	KUNIT_CASE(ranges_of_single_pages),
	KUNIT_CASE(pages_that_are_stopped),
	KUNIT_CASE_PARAM(coherent_memory, coherent_gen_params),
	KUNIT_CASE_PARAM(coherent_memory_of_software, coherent_gen_params),
	{}
};

static struct kunit_suite memory_suite = {
	.name = "rdmatensor_memory",
	.test_cases = memory_cases,
};

kunit_test_suite(memory_suite);

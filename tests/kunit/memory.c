// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for devices: which are refused, what is mapped for what, and coherent segments, on
 * a device that does not exist and reaches memory by the platform's own means.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/sizes.h>
#include <kunit/device.h>
#include <kunit/test.h>
#include "memory/domain.h"

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
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_dir(IB_ACCESS_REMOTE_READ), DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_dir(0), DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_dir(IB_ACCESS_LOCAL_WRITE), DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_dir(IB_ACCESS_LOCAL_WRITE |
						    IB_ACCESS_REMOTE_WRITE), DMA_BIDIRECTIONAL);
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
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	struct rdmatensor_segment segment;
	struct scatterlist *sg;
	u32 at, contiguous, i;
	u8 *cpu;

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->dma_device = dma;
	KUNIT_ASSERT_EQ(test, rdmatensor_segment_alloc_coherent(&segment, ibdev, param->bytes,
								param->block), 0);
	KUNIT_EXPECT_EQ(test, segment.bytes, param->bytes);
	for (at = 0; at < param->bytes; at += param->block) {
		cpu = rdmatensor_segment_addr(&segment, at, &contiguous);
		KUNIT_EXPECT_GE(test, contiguous, param->block);
		KUNIT_EXPECT_NULL(test, memchr_inv(cpu, 0, param->block));
		memset(cpu, at / param->block + 1, param->block);
	}
	/* The device has the same bytes in the same order, and is told of nothing else */
	at = 0;
	for_each_sgtable_sg(&segment.sgt, sg, i) {
		cpu = dma ? phys_to_virt(sg_dma_address(sg)) : (u8 *)(uintptr_t)sg_dma_address(sg);
		KUNIT_EXPECT_PTR_EQ(test, cpu, (u8 *)rdmatensor_segment_addr(&segment, at, NULL));
		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(sg_dma_address(sg), PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, cpu[sg_dma_len(sg) - 1],
				(u8)((at + sg_dma_len(sg) - 1) / param->block + 1));
		at += sg_dma_len(sg);
	}
	KUNIT_EXPECT_EQ(test, at, param->bytes);
	rdmatensor_segment_free(&segment);
	rdmatensor_segment_free(&segment);
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
	KUNIT_CASE_PARAM(coherent_memory, coherent_gen_params),
	KUNIT_CASE_PARAM(coherent_memory_of_software, coherent_gen_params),
	{}
};

static struct kunit_suite memory_suite = {
	.name = "rdmatensor_memory",
	.test_cases = memory_cases,
};

kunit_test_suite(memory_suite);

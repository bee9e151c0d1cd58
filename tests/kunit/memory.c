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
#include "memory/adapter.h"
#include "memory/domain.h"
#include "memory/memory.h"
#include "memory/pages.h"
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
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_WRITE, true, false),
			IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_NONE, true, false),
			IB_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_READ, true, false),
			IB_ACCESS_LOCAL_WRITE);
	/* In strict mode peers write by the keys of an exposure */
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_WRITE, true, true),
			IB_ACCESS_LOCAL_WRITE);
	/* What the process may only read, nothing writes to */
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_NONE, false, false), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_pool_access(RDMATENSOR_POOL_PEERS_READ, false, false), 0);
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

/* The longest pages that it consists of, tried one by one */
static u8 longest_pages(const struct rdmatensor_memory *memory)
{
	u8 shift;

	for (shift = RDMATENSOR_MEMORY_PAGE_SHIFT_MAX; shift > PAGE_SHIFT; shift--) {
		u64 mask = BIT_ULL(shift) - 1, at;
		phys_addr_t phys, first = 0;

		for (at = 0; at < memory->bytes; at += PAGE_SIZE) {
			phys = virt_to_phys(rdmatensor_memory_addr(memory, at, NULL));
			if (!(at & mask))
				first = phys;
			if (first & mask || phys != first + (at & mask))
				break;
		}
		if (at >= memory->bytes)
			break;
	}
	return shift;
}

static const struct long_case {
	const char *name;
	u64 bytes;
	unsigned int max_order;
	u8 shift;
} long_cases[] = {
	{ "long ones and an end", SZ_4M + SZ_1M + 3 * PAGE_SIZE, MAX_PAGE_ORDER, 21 },
	{ "an end of a page", 2 * SZ_1M + PAGE_SIZE, MAX_PAGE_ORDER, 21 },
	{ "long ones alone", SZ_4M, MAX_PAGE_ORDER, 21 },
	/* Neighbours may happen to follow each other: at least so long */
	{ "of 64 KiB", SZ_4M, 16 - PAGE_SHIFT, 16 },
	{ "single ones", 3 * SZ_1M, 0, PAGE_SHIFT },
};

KUNIT_ARRAY_PARAM_DESC(long, long_cases, name);

static void long_pages(struct kunit *test)
{
	const struct long_case *param = test->param_value;
	struct rdmatensor_memory *memory;

	memory = rdmatensor_kernel_pages_alloc(param->bytes, 21, param->max_order, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	KUNIT_EXPECT_EQ(test, memory->bytes, param->bytes);
	KUNIT_EXPECT_EQ(test, memory->page_shift, longest_pages(memory));
	KUNIT_EXPECT_GE(test, memory->page_shift, param->shift);
	rdmatensor_memory_free(memory);
}

#define BLOCK_ORDER (22 - PAGE_SHIFT)

static struct page *block;

/**
 * struct run - contiguous pages of the block
 * @first: page of it
 * @nr: pages; 0: there are no more runs
 */
struct run {
	u16 first;
	u16 nr;
};

static const struct runs_case {
	const char *name;
	struct run runs[4];
	u8 shift;
} runs_cases[] = {
	{ "all of it", { { 0, 1024 } }, 21 },
	{ "in two parts, the second before the first", { { 512, 512 }, { 0, 512 } }, 21 },
	{ "from its second page on", { { 1, 600 } }, 12 },
	{ "from 64 KiB on", { { 16, 600 } }, 16 },
	{ "a page before a long one", { { 511, 1 }, { 0, 511 } }, 12 },
	/* Where a page may begin in the block, and not in the memory */
	{ "64 KiB before a long one", { { 512, 16 }, { 0, 512 } }, 16 },
	{ "a gap", { { 0, 16 }, { 32, 500 } }, 16 },
	{ "an end", { { 0, 512 }, { 512, 3 } }, 21 },
	{ "an end from somewhere else", { { 0, 512 }, { 520, 3 } }, 15 },
};

KUNIT_ARRAY_PARAM_DESC(runs, runs_cases, name);

static const struct runs_case *runs;

static int runs_get(struct rdmatensor_pages *pages, u64 offset, struct page **got, u32 nr)
{
	const struct run *run = runs->runs;
	u32 skip = offset >> PAGE_SHIFT, i;

	for (i = 0; i < nr; i++, skip++) {
		while (skip >= run->nr)
			skip -= run++->nr;
		got[i] = block + run->first + skip;
	}
	return 0;
}

static void runs_put(struct rdmatensor_pages *pages, struct page **got, u32 nr)
{
}

static const struct rdmatensor_pages_source runs_source = { .get = runs_get, .put = runs_put };

static void runs_of_pages(struct kunit *test)
{
	struct rdmatensor_pages pages = { .source = &runs_source };
	const struct run *run;

	if (PAGE_SHIFT != 12)
		kunit_skip(test, "the table is of pages of 4 KiB");
	runs = test->param_value;
	block = alloc_pages(GFP_KERNEL, BLOCK_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, block);
	for (run = runs->runs; run < runs->runs + ARRAY_SIZE(runs->runs); run++)
		pages.memory.bytes += (u64)run->nr << PAGE_SHIFT;
	KUNIT_EXPECT_EQ(test, rdmatensor_pages_begin(&pages, PAGES_SLICE_SHIFT, NULL), 0);
	KUNIT_EXPECT_EQ(test, pages.memory.page_shift, runs->shift);
	rdmatensor_pages_end(&pages);
	__free_pages(block, BLOCK_ORDER);
}

/* Beyond what the device lists of a memory region's short pages nothing is gained */
static const struct choice_case {
	const char *name;
	u64 sizes;
	u8 of_memory, at_most, seg_shift, seg_shift_max;
	u8 page_shift, segment;
} choice_cases[] = {
	{ "soft-RoCE", 0xfffff000, 21, 21, 21, 26, 21, 26 },
	{ "soft-RoCE, short pages", 0xfffff000, 12, 21, 21, 26, 12, 21 },
	{ "soft-RoCE, 64 KiB", 0xfffff000, 16, 21, 21, 26, 16, 25 },
	{ "at most short ones", 0xfffff000, 21, 12, 21, 26, 12, 21 },
	{ "at most 64 KiB", 0xfffff000, 21, 16, 21, 26, 16, 25 },
	{ "a device with few lengths", SZ_4K | SZ_64K | SZ_2M, 20, 21, 24, 30, 16, 28 },
	{ "a device with long lists", SZ_4K | SZ_64K | SZ_2M, 21, 21, 24, 30, 21, 30 },
	{ "a device with one length", SZ_4K, 21, 21, 24, 30, 12, 24 },
	{ "a device that says nothing", 0, 21, 21, 24, 30, 12, 24 },
	{ "memory regions that are no longer", SZ_4K | SZ_2M, 21, 21, 24, 24, 12, 24 },
	{ "memory regions of one short page", SZ_4K | SZ_2M, 21, 21, 12, 20, 12, 12 },
};

KUNIT_ARRAY_PARAM_DESC(choice, choice_cases, name);

static void choice_of_pages(struct kunit *test)
{
	const struct choice_case *param = test->param_value;
	struct ib_device *ibdev = software(test);
	struct rdmatensor_domain domain = {
		.ibdev = ibdev, .seg_shift = param->seg_shift,
		.seg_shift_max = param->seg_shift_max, .page_shift_max = param->at_most,
	};
	u8 segment = 0;

	if (PAGE_SHIFT != 12)
		kunit_skip(test, "the table is of pages of 4 KiB");
	ibdev->attrs.page_size_cap = param->sizes;
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_pages(&domain, param->of_memory, &segment),
			param->page_shift);
	KUNIT_EXPECT_EQ(test, segment, param->segment);
}

/* irdma confuses the lists of more than 512 pages, and lengths of pages that it does not have */
static void limits_of_drivers(struct kunit *test)
{
	struct ib_device *ibdev = software(test);

	ibdev->attrs.max_mr_size = U64_MAX;
	ibdev->attrs.max_fast_reg_page_list_len = 262144;
	ibdev->ops.driver_id = RDMA_DRIVER_MLX5;
	KUNIT_EXPECT_EQ(test, rdmatensor_adapter_seg_shift(ibdev), 24);
	ibdev->ops.driver_id = RDMA_DRIVER_IRDMA;
	KUNIT_EXPECT_EQ(test, rdmatensor_adapter_seg_shift(ibdev), PAGE_SHIFT + 9);
	ibdev->attrs.max_fast_reg_page_list_len = 64;
	KUNIT_EXPECT_EQ(test, rdmatensor_adapter_seg_shift(ibdev), PAGE_SHIFT + 6);
	ibdev->attrs.max_mr_size = 5 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, rdmatensor_adapter_seg_shift(ibdev), PAGE_SHIFT + 2);

	ibdev->attrs.page_size_cap = SZ_8M + PAGE_SIZE;
	KUNIT_EXPECT_TRUE(test, rdmatensor_adapter_has_pages(ibdev));
	ibdev->attrs.page_size_cap = SZ_8M + PAGE_SIZE / 2;
	KUNIT_EXPECT_FALSE(test, rdmatensor_adapter_has_pages(ibdev));
	ibdev->attrs.page_size_cap = 0;
	KUNIT_EXPECT_TRUE(test, rdmatensor_adapter_has_pages(ibdev));
}

/* rdmavt's devices would take a registration, and refuse each use of it here */
static void devices_that_will_not_do(struct kunit *test)
{
	struct ib_device *ibdev = software(test);

	ibdev->port_data = kunit_kcalloc(test, 2, sizeof(*ibdev->port_data), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ibdev->port_data);
	ibdev->phys_port_cnt = 1;
	ibdev->port_data[1].immutable.core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	KUNIT_EXPECT_STREQ(test, rdmatensor_adapter_unfit(ibdev, 1), "no fast registration");
	ibdev->attrs.device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	ibdev->ops.driver_id = RDMA_DRIVER_MLX5;
	KUNIT_EXPECT_NULL(test, rdmatensor_adapter_unfit(ibdev, 1));
	ibdev->ops.driver_id = RDMA_DRIVER_HFI1;
	KUNIT_EXPECT_STREQ(test, rdmatensor_adapter_unfit(ibdev, 1),
			   "no registration for addresses that are chosen");
}

/* An exporter that has refused, or is not ready, is not asked a second time; a device is */
static void tried_with_short_pages(struct kunit *test)
{
	static const int final[] = { 0, -EINTR, -ENODEV, -EOVERFLOW, -EDQUOT, -EOPNOTSUPP };
	static const int again[] = { -ENOMEM, -EIO, -EINVAL };
	struct rdmatensor_registration reg = { .page_shift = RDMATENSOR_MEMORY_PAGE_SHIFT_MAX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(final); i++)
		KUNIT_EXPECT_FALSE(test, rdmatensor_registration_wants_less(&reg, final[i]));
	for (i = 0; i < ARRAY_SIZE(again); i++)
		KUNIT_EXPECT_TRUE(test, rdmatensor_registration_wants_less(&reg, again[i]));
	reg.page_shift = PAGE_SHIFT;
	for (i = 0; i < ARRAY_SIZE(again); i++)
		KUNIT_EXPECT_FALSE(test, rdmatensor_registration_wants_less(&reg, again[i]));
}

/* Each range begins where its keys may change, and no address comes again */
static void addresses(struct kunit *test)
{
	static const struct {
		u64 bytes;
		u8 seg_shift;
	} ranges[] = {
		{ SZ_2M, 21 }, { 6 * SZ_1M, 26 }, { PAGE_SIZE, 21 }, { SZ_1G, 30 },
		{ 5 * SZ_1M, 21 }, { PAGE_SIZE, 24 },
	};
	struct rdmatensor_domain domain = { .next_iova = BIT_ULL(46) };
	u64 iova, end = 0, last;
	u32 i;

	mutex_init(&domain.lock);
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		iova = rdmatensor_domain_iova(&domain, ranges[i].bytes, ranges[i].seg_shift);
		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(iova, BIT_ULL(ranges[i].seg_shift)));
		/* With a gap between two */
		KUNIT_EXPECT_GT(test, iova, end);
		end = iova + ranges[i].bytes;
	}
	last = domain.next_iova;
	/* More than there is, and then what there is */
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_iova(&domain, BIT_ULL(62), 30), 0);
	KUNIT_EXPECT_EQ(test, domain.next_iova, last);
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_iova(&domain, BIT_ULL(62) - last, 12), last);
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_iova(&domain, PAGE_SIZE, 12), 0);
	KUNIT_EXPECT_EQ(test, rdmatensor_domain_iova(&domain, PAGE_SIZE, 30), 0);
	mutex_destroy(&domain.lock);
}

static int mapped_entries;

static int map_as_told(struct ib_mr *mr, struct scatterlist *sg, int nents,
		       unsigned int *sg_offset)
{
	return mapped_entries;
}

static const struct map_case {
	const char *name;
	u8 page_shift;
	dma_addr_t address;
	int mapped;
	int ret;
} map_cases[] = {
	{ "long pages", 21, SZ_4M, 3, 0 },
	{ "short pages", PAGE_SHIFT, SZ_4M + PAGE_SIZE, 3, 0 },
	/* The driver would take it for an offset in its first page */
	{ "a first one that begins elsewhere", 21, SZ_4M + PAGE_SIZE, 3, -EINVAL },
	{ "a later one that begins elsewhere", 21, SZ_4M, 2, -EIO },
	{ "long pages that the driver refuses", 21, SZ_4M, -ENOMEM, -ENOMEM },
	{ "too many short pages", PAGE_SHIFT, SZ_4M, 2, -EIO },
};

KUNIT_ARRAY_PARAM_DESC(map, map_cases, name);

/* What the device is given decides, whatever the memory was thought to be */
static void pages_of_a_region(struct kunit *test)
{
	const struct map_case *param = test->param_value;
	struct ib_device *ibdev = software(test);
	struct scatterlist sgl[3];
	struct ib_mr mr = { .device = ibdev };
	struct rdmatensor_mr region = { .mr = &mr, .sgt = { .sgl = sgl, .nents = 3 } };

	sg_init_table(sgl, ARRAY_SIZE(sgl));
	sg_dma_address(&sgl[0]) = param->address;
	ibdev->ops.map_mr_sg = map_as_told;
	mapped_entries = param->mapped;
	KUNIT_EXPECT_EQ(test, rdmatensor_registration_map(&region, param->page_shift), param->ret);
	if (!param->ret)
		KUNIT_EXPECT_EQ(test, mr.page_size, 1U << param->page_shift);
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
	KUNIT_CASE_PARAM(long_pages, long_gen_params),
	KUNIT_CASE_PARAM(runs_of_pages, runs_gen_params),
	KUNIT_CASE_PARAM(choice_of_pages, choice_gen_params),
	KUNIT_CASE(limits_of_drivers),
	KUNIT_CASE(devices_that_will_not_do),
	KUNIT_CASE(tried_with_short_pages),
	KUNIT_CASE(addresses),
	KUNIT_CASE_PARAM(pages_of_a_region, map_gen_params),
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

// SPDX-License-Identifier: GPL-2.0
/*
 * Imported memory, on devices with DMA, which no lab has: an exporter that writes down what is
 * asked of it, and gives addresses that lead nowhere. No CPU looks at them.
 */
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/vmalloc.h>
#include <kunit/device.h>
#include <kunit/test.h>
#include <rdma/ib_verbs.h>
#include "core/compat/dma_buf.h"
#include "memory/dmabuf.h"
#include "memory/memory.h"

#define NR_PAGES 61
#define BYTES (NR_PAGES << PAGE_SHIFT)
#define SLICE_SHIFT (PAGE_SHIFT + 2)
#define ROUNDS 500

/* What the exporter does beside what it should */
enum flaw { NO_FLAW, NO_PIN, NO_MAP, ODD_ADDRESS, ODD_LENGTH, NO_LENGTH, TOO_SHORT };
enum reach { NO_REACH, REACH, REACH_IO, REACH_NO_PAGES };

/**
 * struct mock - an exporter's buffer
 * @test: the case
 * @flaw: see there
 * @reach: what its mapping for the CPU is
 * @cpu: the CPU's view
 * @dir: of the mapping for the device
 * @moves: it is one that pins
 * @cpu_dir: of the CPU's access
 * @begin_error: what begins the CPU's access fails with, 0: it does not
 * @pins: pins that there are
 * @attached: attachments that there are
 * @mapped: mappings for a device that there are
 * @viewed: mappings for the CPU that there are
 * @entered: accesses of the CPU that have begun, and not ended
 * @nr_attached: attachments that there have been
 * @nr_mapped: mappings for a device that there have been
 * @fence: of the exporter's work; NULL: none
 * @stop: of the import
 * @released: it is gone
 */
struct mock {
	struct kunit *test;
	enum flaw flaw;
	enum reach reach;
	bool moves;
	void *cpu;
	enum dma_data_direction dir, cpu_dir;
	int begin_error;
	int pins, attached, mapped, viewed, entered;
	int nr_attached, nr_mapped;
	struct dma_fence *fence;
	const bool *stop;
	struct completion released;
};

/* Where the device finds a page: entries of 1 to 7 pages, with gaps */
static dma_addr_t mock_address(u32 page)
{
	return 0x7000000000ULL + ((u64)(page / 7) << 32) + ((u64)page << PAGE_SHIFT);
}

static int mock_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct mock *mock = buf->priv;

	KUNIT_EXPECT_EQ(mock->test, attach->peer2peer, !!attach->importer_ops);
	mock->attached++;
	mock->nr_attached++;
	return 0;
}

static void mock_detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct mock *mock = buf->priv;

	KUNIT_EXPECT_EQ(mock->test, mock->pins, 0);
	KUNIT_EXPECT_EQ(mock->test, mock->mapped, 0);
	mock->attached--;
}

static int mock_pin(struct dma_buf_attachment *attach)
{
	struct mock *mock = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (mock->flaw == NO_PIN)
		return -ENODEV;
	/* To where the device reaches it, as exporters of a GPU's memory do */
	if (!mock->pins++)
		dma_buf_move_notify(attach->dmabuf);
	return 0;
}

static void mock_unpin(struct dma_buf_attachment *attach)
{
	struct mock *mock = attach->dmabuf->priv;

	KUNIT_EXPECT_EQ(mock->test, mock->mapped, 0);
	mock->pins--;
}

static void mock_fill(const struct mock *mock, struct sg_table *sgt)
{
	u32 page = 0, nr, i;
	struct scatterlist *sg;

	for_each_sgtable_sg(sgt, sg, i) {
		nr = min(7U, NR_PAGES - page);
		sg_dma_address(sg) = mock_address(page);
		sg_dma_len(sg) = nr << PAGE_SHIFT;
		page += nr;
	}
	if (mock->flaw == ODD_ADDRESS)
		sg_dma_address(sgt->sgl) += 8;
	if (mock->flaw == ODD_LENGTH)
		sg_dma_len(sgt->sgl) -= 8;
	if (mock->flaw == NO_LENGTH) {
		sg_dma_len(sgt->sgl) += sg_dma_len(sg_next(sgt->sgl));
		sg_dma_len(sg_next(sgt->sgl)) = 0;
	}
	if (mock->flaw == TOO_SHORT)
		sgt->nents--;
}

static struct sg_table *mock_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct mock *mock = attach->dmabuf->priv;
	struct sg_table *sgt;

	if (mock->flaw == NO_MAP)
		return ERR_PTR(-EBUSY);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(mock->test, sgt);
	KUNIT_ASSERT_EQ(mock->test, sg_alloc_table(sgt, DIV_ROUND_UP(NR_PAGES, 7), GFP_KERNEL), 0);
	mock_fill(mock, sgt);
	/* Kernels that do not tell importers of moves pin once more themselves */
	KUNIT_EXPECT_EQ(mock->test, mock->pins > 0, mock->moves);
	mock->dir = dir;
	mock->nr_mapped++;
	mock->mapped++;
	return sgt;
}

static void mock_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		       enum dma_data_direction dir)
{
	struct mock *mock = attach->dmabuf->priv;

	KUNIT_EXPECT_EQ(mock->test, dir, mock->dir);
	sg_free_table(sgt);
	kfree(sgt);
	mock->mapped--;
}

static int mock_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct mock *mock = buf->priv;

	/* An exporter may move what is not kept: a mapping of that does not last */
	KUNIT_EXPECT_EQ(mock->test, mock->attached, 1);
	KUNIT_EXPECT_EQ(mock->test, mock->pins, mock->moves);
	mock->viewed++;
	if (mock->reach == REACH_NO_PAGES)
		iosys_map_set_vaddr(map, (void *)PAGE_SIZE);
	else if (mock->reach == REACH_IO)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)mock->cpu);
	else
		iosys_map_set_vaddr(map, mock->cpu);
	return 0;
}

static void mock_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct mock *mock = buf->priv;

	KUNIT_EXPECT_EQ(mock->test, mock->entered, 0);
	KUNIT_EXPECT_EQ(mock->test, mock->attached, 1);
	KUNIT_EXPECT_EQ(mock->test, mock->pins, mock->moves);
	mock->viewed--;
}

static int mock_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct mock *mock = buf->priv;

	if (mock->begin_error)
		return mock->begin_error;
	mock->entered++;
	mock->cpu_dir = dir;
	return 0;
}

static int mock_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct mock *mock = buf->priv;

	KUNIT_EXPECT_EQ(mock->test, dir, mock->cpu_dir);
	mock->entered--;
	return 0;
}

static void mock_release(struct dma_buf *buf)
{
	complete(&((struct mock *)buf->priv)->released);
}

#define MOCK_OPS .attach = mock_attach, .detach = mock_detach, .map_dma_buf = mock_map, \
		 .unmap_dma_buf = mock_unmap, .release = mock_release
#define MOCK_MOVES .pin = mock_pin, .unpin = mock_unpin
#define MOCK_CPU .vmap = mock_vmap, .vunmap = mock_vunmap, .begin_cpu_access = mock_begin, \
		 .end_cpu_access = mock_end

static const struct dma_buf_ops mock_ops = { MOCK_OPS, MOCK_MOVES, MOCK_CPU };
/* The kernel warns of a vmap() that fails: who has no mapping has no such operation */
static const struct dma_buf_ops blind_ops = { MOCK_OPS, MOCK_MOVES };
/* It moves nothing, and is mapped for a device that attaches as one that could be told */
static const struct dma_buf_ops static_ops = { MOCK_OPS, MOCK_CPU };

static void free_cpu(void *cpu)
{
	vfree(cpu);
}

static struct mock *mock_new(struct kunit *test, enum flaw flaw, enum reach reach)
{
	struct mock *mock = kunit_kzalloc(test, sizeof(*mock), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mock);
	mock->test = test;
	mock->flaw = flaw;
	mock->reach = reach;
	mock->moves = true;
	mock->cpu = vzalloc(BYTES);
	KUNIT_ASSERT_NOT_NULL(test, mock->cpu);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_cpu, mock->cpu), 0);
	init_completion(&mock->released);
	return mock;
}

/* The memory is the only one that keeps it */
static struct rdmatensor_memory *import_mock(struct mock *mock, bool write, bool software)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct rdmatensor_import import = {
		.bytes = BYTES, .slice_shift = SLICE_SHIFT, .write = write, .software = software,
		.stop = mock->stop,
	};
	struct rdmatensor_memory *memory;
	char cause[256] = "";

	info.ops = !mock->moves ? &static_ops :
		   mock->reach == NO_REACH ? &blind_ops : &mock_ops;
	info.size = BYTES;
	info.flags = O_RDWR;
	info.priv = mock;
	import.buf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(mock->test, IS_ERR(import.buf));
	if (mock->fence) {
		dma_resv_lock(import.buf->resv, NULL);
		KUNIT_ASSERT_EQ(mock->test, dma_resv_reserve_fences(import.buf->resv, 1), 0);
		dma_resv_add_fence(import.buf->resv, mock->fence, DMA_RESV_USAGE_KERNEL);
		dma_resv_unlock(import.buf->resv);
	}
	memory = rdmatensor_dmabuf_alloc(&import, cause, sizeof(cause));
	KUNIT_EXPECT_EQ(mock->test, strlen(cause) > 0, IS_ERR(memory) &&
			PTR_ERR(memory) != -EINTR && PTR_ERR(memory) != -ENODEV);
	dma_buf_put(import.buf);
	return memory;
}

/* Nothing of it is left, and so the dma-buf goes */
static void mock_check_end(struct mock *mock)
{
	KUNIT_EXPECT_NE(mock->test, wait_for_completion_timeout(&mock->released, 10 * HZ), 0);
	KUNIT_EXPECT_EQ(mock->test, mock->attached, 0);
	KUNIT_EXPECT_EQ(mock->test, mock->viewed, 0);
	KUNIT_EXPECT_EQ(mock->test, mock->entered, 0);
}

static struct ib_device *hardware(struct kunit *test)
{
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	ibdev->dma_device = kunit_device_register(test, "rdmatensor");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ibdev->dma_device);
	return ibdev;
}

/* A list of the range has the exporter's addresses of it, in order, and no page */
static void check_range(struct kunit *test, struct rdmatensor_memory *memory,
			struct ib_device *ibdev, u32 first, u32 nr)
{
	u32 page = first, done, i;
	struct scatterlist *sg;
	struct sg_table sgt;

	KUNIT_ASSERT_EQ(test, memory->ops->map(memory, (u64)first << PAGE_SHIFT, nr << PAGE_SHIFT,
					       ibdev, DMA_TO_DEVICE, &sgt), 0);
	for_each_sgtable_dma_sg(&sgt, sg, i) {
		KUNIT_EXPECT_NULL(test, sg_page(sg));
		for (done = 0; done < sg_dma_len(sg); done += PAGE_SIZE)
			KUNIT_EXPECT_EQ(test, sg_dma_address(sg) + done, mock_address(page++));
	}
	KUNIT_EXPECT_EQ(test, page, first + nr);
	memory->ops->unmap(memory, ibdev, DMA_TO_DEVICE, &sgt);
}

static void ranges_of_a_device(struct kunit *test)
{
	struct mock *mock = mock_new(test, NO_FLAW, NO_REACH);
	struct rdmatensor_memory *memory = import_mock(mock, true, false);
	struct ib_device *ibdev = hardware(test);
	struct rnd_state rnd;
	struct sg_table sgt;
	u32 first, i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	KUNIT_EXPECT_STREQ(test, memory->ops->name, "dmabuf");
	KUNIT_EXPECT_NULL(test, memory->ops->mmap);
	/* It is attached when it is needed, and as long */
	KUNIT_EXPECT_EQ(test, mock->attached, 0);
	/* Nobody knows how long its pages are until it has been mapped */
	KUNIT_EXPECT_EQ(test, memory->page_shift, RDMATENSOR_MEMORY_PAGE_SHIFT_MAX);
	check_range(test, memory, ibdev, 0, NR_PAGES);
	KUNIT_EXPECT_EQ(test, memory->page_shift, PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, mock->attached, 0);
	KUNIT_EXPECT_EQ(test, mock->dir, DMA_BIDIRECTIONAL);

	/* Once, however often it is mapped */
	KUNIT_ASSERT_EQ(test, memory->ops->map(memory, 0, PAGE_SIZE, ibdev, DMA_BIDIRECTIONAL,
					       &sgt), 0);
	prandom_seed_state(&rnd, 16);
	for (i = 0; i < ROUNDS; i++) {
		first = prandom_u32_state(&rnd) % NR_PAGES;
		check_range(test, memory, ibdev, first,
			    prandom_u32_state(&rnd) % (NR_PAGES - first) + 1);
	}
	KUNIT_EXPECT_EQ(test, mock->nr_attached, 2);
	KUNIT_EXPECT_EQ(test, mock->attached, 1);
	KUNIT_EXPECT_EQ(test, mock->mapped, 1);
	memory->ops->unmap(memory, ibdev, DMA_BIDIRECTIONAL, &sgt);
	KUNIT_EXPECT_EQ(test, mock->attached, 0);
	rdmatensor_memory_free(memory);
	mock_check_end(mock);
}

/* What may only be read is mapped for reading, for everybody */
static void for_reading(struct kunit *test)
{
	struct mock *mock = mock_new(test, NO_FLAW, NO_REACH);
	struct rdmatensor_memory *memory = import_mock(mock, false, false);

	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	check_range(test, memory, hardware(test), 3, 20);
	KUNIT_EXPECT_EQ(test, mock->dir, DMA_TO_DEVICE);
	rdmatensor_memory_free(memory);
	mock_check_end(mock);
}

static const struct flaw_case {
	const char *name;
	enum flaw flaw;
} flaw_cases[] = {
	{ "it cannot be pinned", NO_PIN },
	{ "it cannot be mapped", NO_MAP },
	{ "an entry begins within a page", ODD_ADDRESS },
	{ "an entry ends within a page", ODD_LENGTH },
	{ "an entry of nothing", NO_LENGTH },
	{ "less than there should be", TOO_SHORT },
};

KUNIT_ARRAY_PARAM_DESC(flaw, flaw_cases, name);

/* The exporter's errno is none of the RDMA device's; nothing is left, and it can be tried again */
static void exporters_that_refuse(struct kunit *test)
{
	const struct flaw_case *param = test->param_value;
	struct mock *mock = mock_new(test, param->flaw, NO_REACH);
	struct rdmatensor_memory *memory = import_mock(mock, true, false);
	struct ib_device *ibdev = hardware(test);
	struct sg_table sgt;

	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	KUNIT_EXPECT_EQ(test, memory->ops->map(memory, 0, BYTES, ibdev, DMA_BIDIRECTIONAL, &sgt),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, mock->attached, 0);
	mock->flaw = NO_FLAW;
	check_range(test, memory, ibdev, 1, NR_PAGES - 1);
	rdmatensor_memory_free(memory);
	mock_check_end(mock);
}

static const struct reach_case {
	const char *name;
	enum reach reach;
	bool software;
	int begin_error;
	int error;
} reach_cases[] = {
	{ "DMA, no mapping", NO_REACH, false, 0, 0 },
	{ "DMA, a device's memory", REACH_IO, false, 0, 0 },
	{ "DMA, the system's memory", REACH, false, 0, 0 },
	{ "software, no mapping", NO_REACH, true, 0, -EOPNOTSUPP },
	{ "software, a device's memory", REACH_IO, true, 0, -EOPNOTSUPP },
	{ "software, memory without pages", REACH_NO_PAGES, true, 0, -EOPNOTSUPP },
	{ "software, and it cannot begin", REACH, true, -EIO, -EOPNOTSUPP },
	{ "software, and it has no memory", REACH, true, -ENOMEM, -ENOMEM },
	{ "software, and a signal comes", REACH, true, -ERESTARTSYS, -EINTR },
	{ "software, the system's memory", REACH, true, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(reach, reach_cases, name);

/* Where there is DMA the CPU is not used; else it is, for as long as the memory is there */
static void check_reach(struct kunit *test, const struct reach_case *param, bool moves, bool write)
{
	struct mock *mock = mock_new(test, NO_FLAW, param->reach);
	struct rdmatensor_memory *memory;
	u32 contiguous;

	mock->moves = moves;
	mock->begin_error = param->begin_error;
	memory = import_mock(mock, write, param->software);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(memory), param->error);
	if (IS_ERR(memory)) {
		mock_check_end(mock);
		return;
	}
	KUNIT_EXPECT_EQ(test, memory->unreachable, !param->software);
	KUNIT_EXPECT_EQ(test, mock->viewed, param->software);
	KUNIT_EXPECT_EQ(test, mock->entered, param->software);
	KUNIT_EXPECT_EQ(test, mock->attached, param->software);
	KUNIT_EXPECT_EQ(test, mock->nr_mapped, 0);
	if (param->software) {
		KUNIT_EXPECT_EQ(test, mock->cpu_dir, write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE);
		KUNIT_EXPECT_PTR_EQ(test, rdmatensor_memory_addr(memory, 5000, &contiguous),
				    mock->cpu + 5000);
		KUNIT_EXPECT_EQ(test, contiguous, BYTES - 5000);
	}
	rdmatensor_memory_free(memory);
	mock_check_end(mock);
}

static void reach_of_the_cpu(struct kunit *test)
{
	const struct reach_case *param = test->param_value;

	check_reach(test, param, true, true);
	check_reach(test, param, true, false);
	/* A mapping that moves nothing can be had of who has one */
	if (param->reach != NO_REACH)
		check_reach(test, param, false, true);
}

/* An exporter that moves nothing has nothing to pin */
static void static_exporter(struct kunit *test)
{
	struct mock *mock = mock_new(test, NO_FLAW, REACH);
	struct rdmatensor_memory *memory;

	mock->moves = false;
	memory = import_mock(mock, true, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	check_range(test, memory, hardware(test), 0, NR_PAGES);
	KUNIT_EXPECT_EQ(test, mock->attached, 0);
	rdmatensor_memory_free(memory);
	mock_check_end(mock);
}

static const char *fence_name(struct dma_fence *fence)
{
	return "rdmatensor";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

/* The exporter's work on it does not end: who is not to wait any more does not */
static void work_that_does_not_end(struct kunit *test)
{
	struct dma_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);
	struct mock *mock = mock_new(test, NO_FLAW, REACH);
	struct ib_device *ibdev = hardware(test);
	static DEFINE_SPINLOCK(fence_lock);
	struct rdmatensor_memory *memory;
	struct sg_table sgt;
	bool stop = true;

	KUNIT_ASSERT_NOT_NULL(test, fence);
	dma_fence_init(fence, &fence_ops, &fence_lock, dma_fence_context_alloc(1), 1);
	mock->fence = fence;
	mock->stop = &stop;
	memory = import_mock(mock, true, true);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(memory), -ENODEV);
	mock_check_end(mock);

	reinit_completion(&mock->released);
	memory = import_mock(mock, true, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	KUNIT_EXPECT_EQ(test, memory->ops->map(memory, 0, BYTES, ibdev, DMA_BIDIRECTIONAL, &sgt),
			-ENODEV);
	KUNIT_EXPECT_EQ(test, mock->attached, 0);
	/* It is done */
	dma_fence_signal(fence);
	check_range(test, memory, ibdev, 0, NR_PAGES);
	rdmatensor_memory_free(memory);
	mock_check_end(mock);
	dma_fence_put(fence);
}

/* Software gets the pages that are behind the exporter's mapping, and nothing is mapped for it */
static void pages_of_software(struct kunit *test)
{
	struct mock *mock = mock_new(test, NO_FLAW, REACH);
	struct rdmatensor_memory *memory = import_mock(mock, true, true);
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev), GFP_KERNEL);
	u32 page = 5, done, i;
	struct scatterlist *sg;
	struct sg_table sgt;

	KUNIT_ASSERT_FALSE(test, IS_ERR(memory));
	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	KUNIT_ASSERT_EQ(test, memory->ops->map(memory, 5 << PAGE_SHIFT, 30 << PAGE_SHIFT, ibdev,
					       DMA_BIDIRECTIONAL, &sgt), 0);
	for_each_sgtable_dma_sg(&sgt, sg, i)
		for (done = 0; done < sg_dma_len(sg); done += PAGE_SIZE, page++)
			KUNIT_EXPECT_EQ(test, (u64)sg_dma_address(sg) + done,
					(u64)(uintptr_t)page_address(vmalloc_to_page(mock->cpu +
						(page << PAGE_SHIFT))));
	KUNIT_EXPECT_EQ(test, page, 35);
	KUNIT_EXPECT_EQ(test, mock->nr_mapped, 0);
	memory->ops->unmap(memory, ibdev, DMA_BIDIRECTIONAL, &sgt);
	rdmatensor_memory_free(memory);
	mock_check_end(mock);
}

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(ranges_of_a_device),
	KUNIT_CASE(for_reading),
	KUNIT_CASE_PARAM(exporters_that_refuse, flaw_gen_params),
	KUNIT_CASE_PARAM(reach_of_the_cpu, reach_gen_params),
	KUNIT_CASE(static_exporter),
	KUNIT_CASE(work_that_does_not_end),
	KUNIT_CASE(pages_of_software),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "rdmatensor_dmabuf",
	.test_cases = dmabuf_cases,
};

kunit_test_suite(dmabuf_suite);
RDMATENSOR_IMPORT_DMA_BUF;

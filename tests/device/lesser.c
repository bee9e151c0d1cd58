// SPDX-License-Identifier: GPL-2.0
/*
 * As long as it is loaded an RDMA device says that it answers, or begins, fewer READs of a
 * queue pair at the same time than it could, or has fewer pages behind a key. For tests, in a guest whose device nobody else
 * uses.
 */
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "soft-RoCE device");

static int bears;
module_param(bears, int, 0444);
MODULE_PARM_DESC(bears, "max_qp_rd_atom; 0: as it is");

static int begins;
module_param(begins, int, 0444);
MODULE_PARM_DESC(begins, "max_qp_init_rd_atom; 0: as it is");

static int pages;
module_param(pages, int, 0444);
MODULE_PARM_DESC(pages, "max_fast_reg_page_list_len; 0: as it is");

/* Held from init to exit, and what it has said before */
static struct ib_device *ibdev;
static int own_bears, own_begins;
static unsigned int own_pages;

static int __init lesser_init(void)
{
	ibdev = ib_device_get_by_name(device, RDMA_DRIVER_RXE);
	if (!ibdev)
		return -ENODEV;
	own_bears = ibdev->attrs.max_qp_rd_atom;
	own_begins = ibdev->attrs.max_qp_init_rd_atom;
	own_pages = ibdev->attrs.max_fast_reg_page_list_len;
	ibdev->attrs.max_qp_rd_atom = bears ?: own_bears;
	ibdev->attrs.max_qp_init_rd_atom = begins ?: own_begins;
	ibdev->attrs.max_fast_reg_page_list_len = pages ?: own_pages;
	return 0;
}

static void __exit lesser_exit(void)
{
	ibdev->attrs.max_qp_rd_atom = own_bears;
	ibdev->attrs.max_qp_init_rd_atom = own_begins;
	ibdev->attrs.max_fast_reg_page_list_len = own_pages;
	ib_device_put(ibdev);
}

module_init(lesser_init);
module_exit(lesser_exit);
MODULE_DESCRIPTION("An RDMA device that does less, for tests of rdmatensor");
MODULE_LICENSE("GPL");

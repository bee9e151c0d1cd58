/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RDMATENSOR_UAPI_OPS_H
#define RDMATENSOR_UAPI_OPS_H

extern const struct file_operations rdmatensor_fops;

#endif /* RDMATENSOR_UAPI_OPS_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Descriptors of domains.
 */
#ifndef RDMATENSOR_DOMAIN_FILE_H
#define RDMATENSOR_DOMAIN_FILE_H

struct rdmatensor_holdings;

/*
 * What the caller's descriptor @fd keeps, with a reference. Return: ERR_PTR(-EBADF): it is not
 * open; ERR_PTR(-EINVAL): it is no domain's
 */
struct rdmatensor_holdings *rdmatensor_domain_file_get(int fd);

#endif /* RDMATENSOR_DOMAIN_FILE_H */

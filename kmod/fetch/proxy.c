// SPDX-License-Identifier: GPL-2.0
/*
 * Proxies: regions in the place of destinations.
 *
 * A proxy belongs to one fetch and is guarded by what guards that. It knows of no destination:
 * the fetch copies.
 */
#include "fetch/proxy.h"

int rdmatensor_proxy_init(struct rdmatensor_proxy *proxy, struct rdmatensor_pool *pool)
{
	int ret;

	if (!pool)
		return 0;
	ret = rdmatensor_regions_hold(&pool->regions, &proxy->use, 0, 0, true);
	if (!ret)
		proxy->pool = pool;
	return ret;
}

int rdmatensor_proxy_take(struct rdmatensor_proxy *proxy, u64 bytes, gfp_t gfp)
{
	int ret = 0;

	proxy->offset = 0;
	if (bytes)
		ret = rdmatensor_regions_alloc_hold(&proxy->pool->regions, &proxy->use, bytes, gfp,
						    &proxy->offset);
	proxy->used = !ret;
	return ret;
}

void rdmatensor_proxy_give(struct rdmatensor_proxy *proxy)
{
	proxy->used = false;
	if (proxy->use.extent)
		rdmatensor_regions_free_held(&proxy->pool->regions, &proxy->use);
}

void rdmatensor_proxy_end(struct rdmatensor_proxy *proxy)
{
	if (!proxy->pool)
		return;
	rdmatensor_proxy_give(proxy);
	rdmatensor_regions_drop(&proxy->pool->regions, &proxy->use);
	proxy->pool = NULL;
}

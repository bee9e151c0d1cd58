// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dlfcn.h>
#include <stddef.h>

#include "http.h"
#include "tool/common/message.h"

/* The ABI that microhttpd.h describes */
#define LIBRARY "libmicrohttpd.so.12"

int http_load(struct http *http)
{
	static const struct {
		const char *name;
		size_t at;
	} functions[] = {
		{ "MHD_start_daemon", offsetof(struct http, start_daemon) },
		{ "MHD_stop_daemon", offsetof(struct http, stop_daemon) },
		{ "MHD_run", offsetof(struct http, run) },
		{ "MHD_get_timeout", offsetof(struct http, get_timeout) },
		{ "MHD_get_daemon_info", offsetof(struct http, get_daemon_info) },
		{ "MHD_lookup_connection_value", offsetof(struct http, lookup_connection_value) },
		{ "MHD_create_response_from_buffer",
		  offsetof(struct http, create_response_from_buffer) },
		{ "MHD_add_response_header", offsetof(struct http, add_response_header) },
		{ "MHD_queue_response", offsetof(struct http, queue_response) },
		{ "MHD_destroy_response", offsetof(struct http, destroy_response) },
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *function;
	size_t i;

	if (!library)
		return failed("listen: %s: install libmicrohttpd12, or use --file", dlerror());
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		function = dlsym(library, functions[i].name);
		if (!function)
			return failed("listen: %s: install another libmicrohttpd12, or use --file",
				      dlerror());
		*(void **)((char *)http + functions[i].at) = function;
	}
	return EXIT_OK;
}

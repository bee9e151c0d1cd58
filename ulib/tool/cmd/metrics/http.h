/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libmicrohttpd, loaded by the one command that needs it: with what it depends on it is several
 * times as large as all else that the tool uses, and a machine that does not listen needs none of
 * it. Its functions have their names, without MHD_.
 */
#ifndef TOOL_METRICS_HTTP_H
#define TOOL_METRICS_HTTP_H

#include <microhttpd.h>

/**
 * struct http - the library's functions, described in microhttpd.h
 * @start_daemon: MHD_start_daemon()
 * @stop_daemon: MHD_stop_daemon()
 * @run: MHD_run()
 * @get_timeout: MHD_get_timeout()
 * @get_daemon_info: MHD_get_daemon_info()
 * @lookup_connection_value: MHD_lookup_connection_value()
 * @create_response_from_buffer: MHD_create_response_from_buffer()
 * @add_response_header: MHD_add_response_header()
 * @queue_response: MHD_queue_response()
 * @destroy_response: MHD_destroy_response()
 */
struct http {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_run) *run;
	__typeof__(MHD_get_timeout) *get_timeout;
	__typeof__(MHD_get_daemon_info) *get_daemon_info;
	__typeof__(MHD_lookup_connection_value) *lookup_connection_value;
	__typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
	__typeof__(MHD_add_response_header) *add_response_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_destroy_response) *destroy_response;
};

/* It stays loaded. EXIT_OK, or EXIT_FAILED with a message */
int http_load(struct http *http);

#endif

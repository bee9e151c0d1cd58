// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each request is a scrape of its own, one after the other in this thread: whoever asks more often
 * than the module can answer waits, and nothing is told that is not of now. A scrape that fails is
 * an error of the request, so that the reader sees it as one that is down.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "exposition.h"
#include "http.h"
#include "listen.h"
#include "tool/common/message.h"
#include "tool/common/output.h"
#include "tool/common/stop.h"

/* Readers at the same time, those of one address, and seconds that one may say and take nothing */
#define CONNECTIONS 16
#define CONNECTIONS_EACH 8
#define PATIENCE 10
/* Bytes at the end of the heap that are kept when they are free, and that one block may take of it */
#define MEMORY_KEPT (64 << 20)

/**
 * struct listener - the command's state
 * @http: the library
 * @most: of --max-series
 */
struct listener {
	struct http http;
	uint64_t most;
};

/* @text: malloc()ed, which this frees, where @mode says so */
static enum MHD_Result respond(const struct listener *listener, struct MHD_Connection *connection,
			       unsigned int status, const char *type, char *text, size_t bytes,
			       enum MHD_ResponseMemoryMode mode)
{
	const struct http *http = &listener->http;
	struct MHD_Response *response;
	enum MHD_Result ret;

	response = http->create_response_from_buffer(bytes, text, mode);
	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	http->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		http->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	ret = http->queue_response(connection, status, response);
	http->destroy_response(response);
	return ret;
}

static enum MHD_Result respond_error(const struct listener *listener,
				     struct MHD_Connection *connection, unsigned int status,
				     const char *text)
{
	return respond(listener, connection, status, "text/plain; charset=utf-8", (char *)text,
		       strlen(text), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result respond_metrics(const struct listener *listener,
				       struct MHD_Connection *connection)
{
	enum format format = FORMAT_PROMETHEUS;
	const char *accept;
	size_t bytes;
	char *text;

	accept = listener->http.lookup_connection_value(connection, MHD_HEADER_KIND,
							MHD_HTTP_HEADER_ACCEPT);
	if (accept && strstr(accept, "application/openmetrics-text"))
		format = FORMAT_OPENMETRICS;
	if (exposition_make(listener->most, format, &text, &bytes))
		return respond_error(listener, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				     "The module cannot be asked: the command that listens here says why.\n");
	return respond(listener, connection, MHD_HTTP_OK, exposition_media_type(format), text,
		       bytes, MHD_RESPMEM_MUST_FREE);
}

/* Called for the head of a request, then for its content, which is skipped, and last without */
static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *content,
			      size_t *bytes, void **state)
{
	const struct listener *listener = arg;

	(void)version;
	(void)content;
	if (!*state || *bytes) {
		*state = arg;
		*bytes = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics"))
		return respond_error(listener, connection, MHD_HTTP_NOT_FOUND,
				     "There is /metrics and nothing else.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return respond_error(listener, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				     "Only GET and HEAD are answered.\n");
	return respond_metrics(listener, connection);
}

/* What the library has to say, without the newline at its end */
static void on_message(void *arg, const char *fmt, va_list args)
{
	char text[512];
	size_t len;

	(void)arg;
	vsnprintf(text, sizeof(text), fmt, args);
	len = strlen(text);
	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	warned("listen: %s", text);
}

static int listen_loop(const struct http *http, struct MHD_Daemon *daemon)
{
	const union MHD_DaemonInfo *info =
		http->get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
	MHD_UNSIGNED_LONG_LONG wait;

	do {
		if (http->run(daemon) != MHD_YES)
			return failed("listen: libmicrohttpd cannot go on");
		if (http->get_timeout(daemon, &wait) != MHD_YES)
			wait = INT_MAX;
	} while (!stop_wait_fd(info->epoll_fd, wait < INT_MAX ? (int)wait : -1));
	return EXIT_OK;
}

static int listen_at(struct listener *listener, const struct address *address)
{
	struct MHD_Daemon *daemon;
	int err;

	/* The daemon closes the socket */
	daemon = listener->http.start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL,
					     answer, listener,
					     MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
					     MHD_OPTION_LISTEN_SOCKET, address->fd,
					     MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
					     MHD_OPTION_PER_IP_CONNECTION_LIMIT, CONNECTIONS_EACH,
					     MHD_OPTION_CONNECTION_TIMEOUT, PATIENCE,
					     MHD_OPTION_END);
	if (!daemon) {
		address_remove(address);
		return failed("listen on %s: libmicrohttpd does not begin", address->text);
	}
	printf("rdmatensor: metrics at %s, path /metrics\n", address->text);
	err = output_arrived();
	if (!err)
		err = listen_loop(&listener->http, daemon);
	/* Before: who begins now finds no dead socket, whose place it would take */
	address_remove(address);
	listener->http.stop_daemon(daemon);
	return err;
}

int metrics_listen(const char *text, uint64_t most)
{
	struct listener listener = { .most = most };
	struct address address;
	int err;

	err = http_load(&listener.http);
	if (!err)
		err = address_listen(&address, text);
	if (err)
		return err;
	/*
	 * What a scrape has freed is for the next one. Megabytes of text go back to the system
	 * otherwise, and to have the pages cleared anew costs more than all the rest
	 */
	mallopt(M_MMAP_THRESHOLD, MEMORY_KEPT);
	mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT);
	/* A reader that goes away ends its connection, and nothing else */
	signal(SIGPIPE, SIG_IGN);
	stop_init();
	err = listen_at(&listener, &address);
	stop_end();
	return err;
}

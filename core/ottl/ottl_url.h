/*
 * ottl_url: URLs as Go's net/url reads and writes them.
 *
 * Owner: the parts point into the text, or are memory of the evaluation.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_URL_H
#define PROFCOL_CORE_OTTL_OTTL_URL_H

#include "core/ottl/ottl_evaluation.h"

/* What an escape or a character is part of: which characters stand for themselves. */
enum ottl_url_part {
    OTTL_URL_PATH,
    OTTL_URL_USER,
    OTTL_URL_HOST,
    OTTL_URL_ZONE, /* of an IPv6 address */
    OTTL_URL_QUERY,
    OTTL_URL_FRAGMENT
};

struct ottl_url {
    struct slice scheme;                               /* in lower case */
    struct slice opaque;                               /* what follows a scheme without a slash */
    struct slice user, password, host, path, fragment; /* unescaped; the host with its port */
    struct slice raw_path, raw_query, raw_fragment;    /* as they are written */
    bool has_user, has_password, has_query;
    bool omits_host; /* "file:/path" */
};

/* Reads a URL. Returns false with the error of the evaluation set if it is not valid. */
bool ottl_url_parse(struct ottl_evaluation *evaluation, struct slice text, struct ottl_url *out);
/* Appends the URL. */
void ottl_url_print(const struct ottl_url *url, struct text *out);
/* Appends the user and password, escaped. */
void ottl_url_print_user(const struct ottl_url *url, struct text *out);
/* Returns the host without its port and the brackets of an IPv6 address; sets *port_out. */
struct slice ottl_url_host_name(const struct ottl_url *url, struct slice *port_out);
/* Decodes escapes. Returns false with the error of the evaluation set if the text is not valid as
 * this part. */
bool ottl_url_unescape(struct ottl_evaluation *evaluation, struct slice text,
                       enum ottl_url_part part, struct slice *out);

#endif

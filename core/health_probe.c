#include "core/health_probe.h"

#include <stdio.h>
#include <string.h>

/* What to try after this answer. */
static const char *advice(const struct http_answer *answer)
{
    if (strncmp(answer->status, "404", 3) == 0)
        return "; give the URL with the `path` of health_check";
    /* That is what servers of TLS answer. Other errors come with HTTP/1.1. */
    if (strcmp(answer->version, "HTTP/1.0") == 0 && strncmp(answer->status, "400", 3) == 0 &&
        !answer->is_https)
        return "; the port expects TLS: write https://";
    return "";
}

bool health_probe(const char *url, const struct http_get_options *options, struct error *err)
{
    struct http_get_options probe = *options;
    struct http_answer answer;
    probe.timeout_s = 5;
    if (!http_get(url, &probe, &answer, err))
        return false;
    return answer.status[0] == '2' ||
           error_set(err, "%s: status %s%s", http_get_shown(url), answer.status, advice(&answer));
}

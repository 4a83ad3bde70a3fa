/*
 * value_mask: what a masked text is replaced by: **** or its hash.
 *
 * Owner: the caller's.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_VALUE_MASK_H
#define PROFCOL_PROCESSORS_REDACTION_VALUE_MASK_H

#include "core/base/text.h"
#include "processors/redaction/redaction_settings.h"

/* Appends what hash_function makes of the text: its hash in hex, or ****. */
void value_mask_append(const struct redaction_settings *settings, struct slice text,
                       struct text *out);
#define SECRET_NAME "[REDACTED]"
/* Appends what replaces a secret name: SECRET_NAME, or with a key [REDACTED:0123456789abcdef], the
 * beginning of its HMAC-SHA256. */
void secret_name_append(struct slice key, struct slice name, struct text *out);

#endif

/*
 * json_mask: replaces every value of a JSON text by "?" and keeps the keys, for queries of MongoDB,
 * OpenSearch and Elasticsearch.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_JSON_MASK_H
#define PROFCOL_PROCESSORS_REDACTION_JSON_MASK_H

#include "core/base/text.h"

/* Appends the JSON text without blanks and with its values replaced. Takes time proportional to it;
 * the result is at most three times as long. Returns false, with something appended, if the text is
 * not JSON, or is nested in more than 200 levels. */
bool json_mask(struct slice json, struct text *out);

#endif

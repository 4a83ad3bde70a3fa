/*
 * push: the field numbers of Pyroscope's push.v1.PushRequest and the messages in it.
 *
 * https://github.com/grafana/pyroscope/blob/main/api/push/v1/push.proto, and types/v1/types.proto
 *
 * Owner: constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_FORMATS_PUSH_H
#define PROFCOL_CORE_FORMATS_PUSH_H

enum { PUSH_REQUEST_SERIES = 1 };
enum { PUSH_SERIES_LABELS = 1, PUSH_SERIES_SAMPLES = 2 }; /* RawProfileSeries */
enum { PUSH_SAMPLE_RAW_PROFILE = 1, PUSH_SAMPLE_ID = 2 }; /* RawSample */
enum { PUSH_LABEL_NAME = 1, PUSH_LABEL_VALUE = 2 };       /* types.v1.LabelPair */

#endif

#include "extensions/explore/store.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/any_value.h"
#include "core/data/id_text.h"
#include "core/data/message.h"

/* Percent of the budget. A tenth is for the mailbox, and the rest for what a query or a reduction
 * needs for a moment. */
enum { STORE_PART = 82, TRAILS_PART = 2, DOUBTS_PART = 1 };
#define UNREAD_BYTES (sizeof(struct store_unread) * STORE_UNREAD_RINGS * STORE_UNREAD_MAX)

static size_t bytes_of_rings(const struct store *store)
{
    return store->trail_limit * sizeof *store->trails + store->doubt_limit * sizeof *store->doubts +
           UNREAD_BYTES;
}

/* The tables share what is left of the store's part. */
static size_t pool_of(const struct store *store)
{
    return store->budget_bytes / 100 * STORE_PART - sizeof *store - bytes_of_rings(store);
}

struct store *store_new(size_t budget_bytes, uint64_t now_ns)
{
    assert(budget_bytes >= STORE_BUDGET_MIN);
    struct store *store = memory_zalloc(sizeof *store);
    store->budget_bytes = budget_bytes;
    store->started_ns = store->now_ns = now_ns;
    store->trail_limit = (uint32_t)(budget_bytes / 100 * TRAILS_PART / sizeof *store->trails) + 1;
    store->trails = memory_zalloc(store->trail_limit * sizeof *store->trails);
    for (int ring = 0; ring < STORE_UNREAD_RINGS; ring++)
        store->unread[ring] = memory_zalloc(STORE_UNREAD_MAX * sizeof *store->unread[ring]);
    store->doubt_limit = (uint32_t)(budget_bytes / 100 * DOUBTS_PART / sizeof *store->doubts) + 1;
    store->doubts = memory_zalloc(store->doubt_limit * sizeof *store->doubts);
    store->pool.limit = pool_of(store);
    store_names_init(&store->names, &store->pool);
    store_cells_init(&store->cells, &store->names, &store->pool);
    store_spans_init(&store->spans, &store->cells, &store->pool);
    return store;
}

void store_free(struct store *store)
{
    if (!store)
        return;
    store_names_deinit(&store->names);
    store_cells_deinit(&store->cells);
    store_spans_deinit(&store->spans);
    free(store->trails);
    for (int ring = 0; ring < STORE_UNREAD_RINGS; ring++)
        free(store->unread[ring]);
    free(store->doubts);
    free(store);
}

size_t store_bytes(const struct store *store)
{
    size_t tables = store_names_bytes(&store->names) + store_cells_bytes(&store->cells) +
                    store_spans_bytes(&store->spans);
    assert(tables == store->pool.used);
    return sizeof *store + tables + bytes_of_rings(store);
}

/* Converts a monotonic time to one since 1970. */
static uint64_t wall_of(uint64_t then_ns, uint64_t now_ns, uint64_t monotonic_ns)
{
    uint64_t ago = monotonic_ns > then_ns ? monotonic_ns - then_ns : 0;
    return now_ns > ago ? now_ns - ago : 1;
}

void store_add(struct store *store, const struct join_offer *offer, uint64_t now_ns,
               uint64_t monotonic_ns)
{
    uint64_t arrived_ns = wall_of(offer->arrived_ns, now_ns, monotonic_ns);
    store->now_ns = now_ns > store->now_ns ? now_ns : store->now_ns;
    if (offer->signal == SIGNAL_PROFILES) {
        store->profiles++;
        store_read_profiles(store, offer, arrived_ns,
                            wall_of(offer->offered_ns, now_ns, monotonic_ns));
    } else if (offer->signal == SIGNAL_TRACES) {
        store->traces++;
        store_read_traces(store, offer, arrived_ns);
    }
}

/* ---- what both signals have ---- */

static uint32_t text_value(struct store *store, struct slice value)
{
    struct any_value read = any_value_read(value);
    return read.kind == ANY_VALUE_STRING
               ? store_names_text(&store->names, read.bytes, STORE_TEXT_MAX)
               : STORE_TEXT_EMPTY;
}

void store_read_service(struct store *store, struct slice resource, uint32_t *service_out,
                        uint32_t *version_out)
{
    struct message_iter it = message_iter_bytes(resource);
    struct message_field field;
    *service_out = *version_out = STORE_TEXT_EMPTY;
    while (message_next_bytes(&it, RESOURCE_ATTRIBUTES, &field)) {
        struct key_value pair = key_value_read(field.wire.bytes);
        if (slice_is(pair.key, "service.name"))
            *service_out = text_value(store, pair.value);
        else if (slice_is(pair.key, "service.version"))
            *version_out = text_value(store, pair.value);
    }
}

/* ---- ids ---- */

enum { DECIMAL_DIGITS_MIN = 4 /* less is hardly an id */ };

static bool read_base64_id(struct slice text, uint8_t *id)
{
    uint8_t bytes[12];
    size_t size;
    if ((text.size != 11 && text.size != 12) || !text_decode_base64(text, bytes, &size) ||
        size != SPAN_ID_SIZE)
        return false;
    memcpy(id, bytes, SPAN_ID_SIZE);
    return true;
}

bool store_read_id(struct slice text, uint8_t span_id_out[SPAN_ID_SIZE])
{
    uint8_t plain[40];
    size_t size = 0;
    if (text.size > sizeof plain)
        return false;
    if (text.size > 2 && text.data[0] == '0' && (text.data[1] | 0x20) == 'x')
        text = slice_of(text.data + 2, text.size - 2);
    for (size_t i = 0; i < text.size; i++)
        if (!slice_is_one_of(text.data[i], "- :{}"))
            plain[size++] = text.data[i];
    struct slice digits = slice_of(plain, size);
    return id_from_hex(digits, span_id_out, SPAN_ID_SIZE) ||
           (size >= DECIMAL_DIGITS_MIN && id_from_decimal(digits, span_id_out)) ||
           read_base64_id(text, span_id_out);
}

#include "core/ottl/ottl_functions.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>

/* ---- addresses: all have 16 bytes, those of IPv4 behind ::ffff: ---- */

enum { ADDRESS_SIZE = 16, V4_BITS = 96 };

struct address {
    uint8_t bytes[ADDRESS_SIZE];
    bool is_v4; /* it is written with dots only */
};

/* As Go's net.ParseIP: no zone, and no leading zeros. */
static bool read_address(struct slice text, struct address *out)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char copy[INET6_ADDRSTRLEN];
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, '\0', text.size))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    out->is_v4 = memchr(text.data, ':', text.size) == NULL;
    memcpy(out->bytes, mapped, sizeof mapped);
    return inet_pton(out->is_v4 ? AF_INET : AF_INET6, copy,
                     out->bytes + (out->is_v4 ? sizeof mapped : 0)) == 1;
}

struct network {
    struct address address;
    unsigned bits; /* of 128 */
};

static bool read_network(struct slice text, struct network *out)
{
    const uint8_t *slash = text.size > 0 ? memchr(text.data, '/', text.size) : NULL;
    if (!slash)
        return false;
    size_t at = (size_t)(slash - text.data), digits = text.size - at - 1;
    if (digits == 0 || digits > 3 || !read_address(slice_of(text.data, at), &out->address))
        return false;
    out->bits = 0;
    for (size_t i = at + 1; i < text.size; i++) {
        if (!isdigit(text.data[i]))
            return false;
        out->bits = out->bits * 10 + (unsigned)(text.data[i] - '0');
    }
    out->bits += out->address.is_v4 ? V4_BITS : 0;
    return out->bits <= 8 * ADDRESS_SIZE;
}

static bool is_v4(const struct address *address)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

static bool contains(const struct network *network, const struct address *address)
{
    /* A prefix of fewer bits than those of ::ffff: is of IPv6 alone. */
    if (is_v4(address) && (!is_v4(&network->address) || network->bits < V4_BITS))
        return false;
    for (unsigned i = 0; i < network->bits; i++) {
        unsigned mask = 0x80u >> (i % 8);
        if ((network->address.bytes[i / 8] ^ address->bytes[i / 8]) & mask)
            return false;
    }
    return true;
}

static bool refuse_network(struct slice text, struct error *err)
{
    return error_set(err, "invalid CIDR address: %.*s", (int)text_utf8_cut(text, 100),
                     (const char *)text.data);
}

static bool check_networks(const struct ottl_node *node, struct error *err)
{
    const struct ottl_node *list = node->operands[1];
    struct network network;
    for (uint32_t i = 0; i < list->operand_count; i++)
        if (list->operands[i]->code != OTTL_CONSTANT)
            return true; /* they are read when they are evaluated */
    for (uint32_t i = 0; i < list->operand_count; i++)
        if (!read_network(list->operands[i]->constant.bytes, &network))
            return refuse_network(list->operands[i]->constant.bytes, err);
    return true;
}

static bool is_in_one(struct ottl_evaluation *evaluation, const struct ottl_node *list,
                      const struct address *address, bool *found_out)
{
    *found_out = false;
    for (uint32_t i = 0; i < list->operand_count && !*found_out; i++) {
        struct ottl_value text;
        struct network network;
        if (!ottl_node_evaluate(evaluation, list->operands[i], &text))
            return false;
        if (text.kind != OTTL_STRING)
            return error_set(ottl_evaluation_error(evaluation), "expected string but got %s",
                             ottl_type_name(&text));
        if (!read_network(text.bytes, &network))
            return refuse_network(text.bytes, ottl_evaluation_error(evaluation));
        *found_out = contains(&network, address);
    }
    return true;
}

/* What is no address is in no network. */
static bool is_in_cidr(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                       struct ottl_value *out)
{
    struct slice text;
    struct address address;
    bool found = false;
    if (!ottl_argument_string(evaluation, node, 0, &text) ||
        (read_address(text, &address) &&
         !is_in_one(evaluation, node->operands[1], &address, &found)))
        return false;
    *out = ottl_bool(found);
    return true;
}

const struct ottl_function ottl_network_functions[] = {
    {.name = "IsInCIDR",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false},
                    {"networks", OTTL_PARAMETER_STRINGS, false}},
     .call = is_in_cidr,
     .check = check_networks},
    {.name = NULL},
};

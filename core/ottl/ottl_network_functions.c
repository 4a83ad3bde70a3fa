#include "core/ottl/ottl_functions.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <openssl/evp.h>
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
    if (list->code != OTTL_MAKE_LIST)
        return true;
    for (uint32_t i = 0; i < list->operand_count; i++)
        if (!ottl_node_is_literal(list->operands[i]) ||
            list->operands[i]->constant.kind != OTTL_STRING)
            return true; /* they are read when they are evaluated */
    for (uint32_t i = 0; i < list->operand_count; i++)
        if (!read_network(list->operands[i]->constant.bytes, &network))
            return refuse_network(list->operands[i]->constant.bytes, err);
    return true;
}

static bool is_in_one(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                      const struct address *address, bool *found_out)
{
    struct ottl_items items;
    struct ottl_value text;
    if (!ottl_argument_items(evaluation, node, 1, &items))
        return false;
    *found_out = false;
    while (!*found_out && ottl_items_next(&items, &text)) {
        struct network network;
        if (text.kind != OTTL_STRING)
            return error_set(ottl_evaluation_error(evaluation), "expected string but got %s",
                             ottl_type_name(&text));
        if (!read_network(text.bytes, &network))
            return refuse_network(text.bytes, ottl_evaluation_error(evaluation));
        *found_out = contains(&network, address);
    }
    return !items.has_failed;
}

/* What is no address is in no network. */
static bool is_in_cidr(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                       struct ottl_value *out)
{
    struct slice text;
    struct address address;
    bool found = false;
    if (!ottl_argument_string(evaluation, node, 0, &text) ||
        (read_address(text, &address) && !is_in_one(evaluation, node, &address, &found)))
        return false;
    *out = ottl_bool(found);
    return true;
}

/* ---- CommunityID: a hash of a connection that is the same in both directions, version 1 ---- */

enum { PORT_MAX = 65535, SHA1_SIZE = 20, V4_OFFSET = V4_BITS / 8 };

struct endpoint {
    uint8_t bytes[ADDRESS_SIZE + 2]; /* the address, and the port after it */
    size_t size;                     /* of the address */
};

static const struct protocol {
    const char *name;
    uint8_t number;
} protocols[] = {{"ICMP", 1}, {"TCP", 6}, {"UDP", 17}, {"RSVP", 46}, {"ICMP6", 58}, {"SCTP", 132}};

static bool read_number(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                        uint32_t index, const char *what, uint8_t out[2])
{
    int64_t number;
    if (!ottl_argument_int(evaluation, node, index, &number))
        return false;
    out[0] = (uint8_t)(number >> 8);
    out[1] = (uint8_t)number;
    return (number >= 0 && number <= PORT_MAX) ||
           error_set(ottl_evaluation_error(evaluation), "%s must be between 0 and 65535", what);
}

/* The address is the argument `index`, the port the one after it. */
static bool read_endpoint(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          uint32_t index, struct endpoint *out)
{
    struct slice text;
    struct address address;
    uint8_t port[2];
    if (!ottl_argument_string(evaluation, node, index, &text) ||
        !read_number(evaluation, node, index + 1, "a port", port))
        return false;
    if (!read_address(text, &address))
        return error_set(ottl_evaluation_error(evaluation), "invalid IP: %.*s",
                         (int)text_utf8_cut(text, 100), (const char *)text.data);
    size_t from = is_v4(&address) ? V4_OFFSET : 0;
    out->size = ADDRESS_SIZE - from;
    memcpy(out->bytes, address.bytes + from, out->size);
    memcpy(out->bytes + out->size, port, sizeof port);
    return true;
}

static bool read_protocol(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          uint8_t *out)
{
    struct slice name = SLICE("TCP");
    if (node->operands[4] && !ottl_argument_string(evaluation, node, 4, &name))
        return false;
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (slice_is(name, protocols[i].name)) {
            *out = protocols[i].number;
            return true;
        }
    return error_set(ottl_evaluation_error(evaluation), "unsupported protocol: %.*s",
                     (int)text_utf8_cut(name, 100), (const char *)name.data);
}

static bool is_before(const struct endpoint *a, const struct endpoint *b)
{
    return a->size != b->size ? a->size < b->size : memcmp(a->bytes, b->bytes, a->size + 2) < 0;
}

/* The parts of what is hashed, in their order. */
static size_t write_flow(const struct endpoint *first, const struct endpoint *second,
                         uint8_t protocol, const uint8_t seed[2], uint8_t *to)
{
    uint8_t *at = to;
    memcpy(at, seed, 2);
    memcpy(at += 2, first->bytes, first->size);
    memcpy(at += first->size, second->bytes, second->size);
    at += second->size;
    *at++ = protocol;
    *at++ = 0;
    memcpy(at, first->bytes + first->size, 2);
    memcpy(at += 2, second->bytes + second->size, 2);
    return (size_t)(at + 2 - to);
}

static bool community_id(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                         struct ottl_value *out)
{
    struct endpoint source, target;
    uint8_t protocol, seed[2] = {0}, flow[2 * ADDRESS_SIZE + 8], hash[EVP_MAX_MD_SIZE];
    struct text text = {0};
    if (!read_endpoint(evaluation, node, 0, &source) ||
        !read_endpoint(evaluation, node, 2, &target) ||
        !read_protocol(evaluation, node, &protocol) ||
        (node->operands[5] && !read_number(evaluation, node, 5, "a seed", seed)))
        return false;
    bool is_turned = is_before(&target, &source);
    size_t size = write_flow(is_turned ? &target : &source, is_turned ? &source : &target, protocol,
                             seed, flow);
    if (EVP_Digest(flow, size, hash, NULL, EVP_sha1(), NULL) != 1)
        return error_set(ottl_evaluation_error(evaluation), "the hash is not available");
    text_append(&text, "1:");
    ottl_print_base64(slice_of(hash, SHA1_SIZE), &text);
    *out = ottl_string(ottl_evaluation_text(evaluation, &text));
    return true;
}

const struct ottl_function ottl_network_functions[] = {
    {.name = "CommunityID",
     .parameters = {{"source_ip", OTTL_PARAMETER_STRING, false},
                    {"source_port", OTTL_PARAMETER_INT, false},
                    {"destination_ip", OTTL_PARAMETER_STRING, false},
                    {"destination_port", OTTL_PARAMETER_INT, false},
                    {"protocol", OTTL_PARAMETER_STRING, true},
                    {"seed", OTTL_PARAMETER_INT, true}},
     .call = community_id},
    {.name = "IsInCIDR",
     .parameters = {{"target", OTTL_PARAMETER_STRING, false},
                    {"networks", OTTL_PARAMETER_STRINGS, false}},
     .call = is_in_cidr,
     .check = check_networks},
    {.name = NULL},
};

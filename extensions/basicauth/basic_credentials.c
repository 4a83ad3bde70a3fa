#include "extensions/basicauth/basic_credentials.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

/* Whether it is base64 with its padding, without white space. */
static bool is_base64(struct slice text, size_t *padding_out)
{
    size_t size = text.size;
    if (size == 0 || size % 4 != 0)
        return false;
    while (size > 0 && text.data[size - 1] == '=')
        size--;
    for (size_t i = 0; i < size; i++)
        if (!isalnum(text.data[i]) && text.data[i] != '+' && text.data[i] != '/')
            return false;
    *padding_out = text.size - size;
    return *padding_out <= 2;
}

const char *basic_credentials_read(struct slice header, uint8_t room[BASIC_ROOM_BYTES],
                                   struct basic_credentials *out)
{
    static const char prefix[] = "Basic ";
    size_t prefix_size = sizeof prefix - 1, padding;
    if (header.size == 0)
        return "no basic auth provided";
    if (header.size < prefix_size ||
        strncasecmp((const char *)header.data, prefix, prefix_size) != 0)
        return "invalid authorization scheme prefix";
    out->raw = slice_of(header.data + prefix_size, header.size - prefix_size);
    if (out->raw.size > BASIC_ENCODED_MAX || !is_base64(out->raw, &padding))
        return "invalid authorization format";
    int decoded = EVP_DecodeBlock(room, out->raw.data, (int)out->raw.size);
    assert(decoded >= (int)padding && decoded <= BASIC_ROOM_BYTES);
    size_t size = (size_t)decoded - padding;
    const uint8_t *colon = memchr(room, ':', size);
    if (!colon)
        return "invalid authorization format";
    size_t name_size = (size_t)(colon - room);
    out->username = slice_of(room, name_size);
    out->password = slice_of(colon + 1, size - name_size - 1);
    return NULL;
}

const char *basic_credentials_print(struct arena *arena, const char *username, const char *password)
{
    const char *plain = arena_printf(arena, "%s:%s", username, password);
    size_t size = strlen(plain);
    unsigned char *coded = arena_alloc(arena, size / 3 * 4 + 5);
    EVP_EncodeBlock(coded, (const unsigned char *)plain, (int)size);
    return arena_printf(arena, "Basic %s", (const char *)coded);
}

#include "core/formats/jfr_names.h"

#include "core/base/text.h"

/* ---- the take_ functions remove something from the front, and return whether it was there ---- */

static bool take(struct slice *rest, const char *literal)
{
    size_t size = strlen(literal);
    if (rest->size < size || memcmp(rest->data, literal, size) != 0)
        return false;
    *rest = slice_of(rest->data + size, rest->size - size);
    return true;
}

static bool take_digits(struct slice *rest)
{
    size_t size = 0;
    while (size < rest->size && rest->data[size] >= '0' && rest->data[size] <= '9')
        size++;
    *rest = slice_of(rest->data + size, rest->size - size);
    return size > 0;
}

static bool take_hex(struct slice *rest)
{
    size_t size = 0;
    while (size < rest->size && text_hex_digit(rest->data[size]) >= 0 &&
           !(rest->data[size] >= 'A' && rest->data[size] <= 'F'))
        size++;
    *rest = slice_of(rest->data + size, rest->size - size);
    return size > 0;
}

/* Returns the text after the last occurrence that is not at the very front; data NULL if there is
 * none. */
static struct slice behind_last(struct slice name, const char *literal)
{
    size_t size = strlen(literal);
    for (size_t at = name.size; at > size; at--)
        if (memcmp(name.data + at - size, literal, size) == 0)
            return slice_of(name.data + at, name.size - at);
    return (struct slice){0};
}

/* jdk/internal/reflect/GeneratedMethodAccessor31 */
static bool is_accessor(struct slice name)
{
    return take(&name, "jdk/internal/reflect/GeneratedMethodAccessor") && take_digits(&name) &&
           name.size == 0;
}

/* Behind "$$Lambda": 31, $669.0x0000000800fd7318, $4/1283928880, .0x00007ffa600c4da0 */
static bool is_lambda(struct slice rest)
{
    struct slice number = rest;
    if (take_digits(&number) && number.size == 0)
        return true;
    take(&rest, "$");
    take_digits(&rest);
    if (!take(&rest, ".") && !take(&rest, "/"))
        return false;
    take(&rest, "0x");
    return take_hex(&rest) && rest.size == 0;
}

static bool ends_as_library(struct slice rest)
{
    if (!take(&rest, ".so"))
        return false;
    take(&rest, " (deleted)");
    return rest.size == 0;
}

/* libzstd-jni-1.5.1-16931311898282279136.so */
static bool is_zstd(struct slice rest)
{
    return take(&rest, "libzstd-jni-") && take_digits(&rest) && take(&rest, ".") &&
           take_digits(&rest) && take(&rest, ".") && take_digits(&rest) && take(&rest, "-") &&
           take_digits(&rest) && ends_as_library(rest);
}

/* libamazonCorrettoCryptoProvider109b39cf33c563eb.so,
 * amazonCorrettoCryptoProviderNativeLibraries.7382c2f79097f415/libcrypto.so */
static bool is_corretto(struct slice rest)
{
    take(&rest, "lib");
    if (!take(&rest, "amazonCorrettoCryptoProvider"))
        return false;
    take(&rest, "NativeLibraries.");
    if (!take_hex(&rest))
        return false;
    if (!take(&rest, "/libcrypto"))
        take(&rest, "/libamazonCorrettoCryptoProvider");
    return ends_as_library(rest);
}

/* libasyncProfiler-linux-x64-17b9a1d8156277a98ccc871afa9a8f69215f92.so */
static bool is_async_profiler(struct slice rest)
{
    static const char *const platforms[] = {"linux-arm64-", "linux-musl-x64-", "linux-x64-",
                                            "macos-"};
    if (!take(&rest, "libasyncProfiler-"))
        return false;
    for (size_t i = 0; i < sizeof platforms / sizeof *platforms; i++)
        if (take(&rest, platforms[i]))
            return take_hex(&rest) && ends_as_library(rest);
    return false;
}

static struct jfr_name settled_library(struct slice name)
{
    struct slice rest = name;
    if (!take(&rest, "./tmp/"))
        take(&rest, "/tmp/");
    if (is_zstd(rest))
        return (struct jfr_name){0, "libzstd-jni-_.so"};
    if (is_corretto(rest))
        return (struct jfr_name){0, "libamazonCorrettoCryptoProvider_.so"};
    if (is_async_profiler(rest))
        return (struct jfr_name){0, "libasyncProfiler-_.so"};
    return (struct jfr_name){name.size, ""};
}

struct jfr_name jfr_name_settled(struct slice name)
{
    struct slice enhanced = behind_last(name, "$$EnhancerBySpringCGLIB$$");
    if (enhanced.data)
        return (struct jfr_name){name.size - enhanced.size, "_"};
    struct slice lambda = behind_last(name, "$$Lambda");
    if (lambda.data && is_lambda(lambda))
        return (struct jfr_name){name.size - lambda.size, "_"};
    if (is_accessor(name))
        return (struct jfr_name){strlen("jdk/internal/reflect/GeneratedMethodAccessor"), "_"};
    return settled_library(name);
}

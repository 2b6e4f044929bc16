/*
 * quote.c - the user's own words inside an error message.
 *
 * YAML escapes can put anything into a scalar, terminal sequences included, and
 * a scalar can be megabytes long. Messages show a short and harmless part.
 */
#include <string.h>

#include "config/config_internal.h"

const char *config_quote(char out[CONFIG_QUOTE_SIZE], const char *text)
{
    const size_t room = CONFIG_QUOTE_SIZE - sizeof "\"...\"";
    size_t length = strnlen(text, room + 1);
    const bool cut = length > room;
    if (cut) {
        length = room;
        /* Not in the middle of a UTF-8 sequence. */
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    size_t at = 0;
    out[at++] = '"';
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        out[at++] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    const char *end = cut ? "...\"" : "\"";
    memcpy(out + at, end, strlen(end) + 1);
    return out;
}

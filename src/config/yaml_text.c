/*
 * yaml_text.c - bytes of a file, proven to be text before a parser sees them.
 *
 * libyaml reports a bad byte by its offset only, takes UTF-16 for text and has no
 * limit of size. Checking here gives line and column, and one clear sentence.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/config_internal.h"

static char *read_stream(FILE *stream, size_t *length)
{
    size_t capacity = 64 * 1024;
    size_t used = 0;
    char *data = malloc(capacity);
    while (data) {
        used += fread(data + used, 1, capacity - used, stream);
        if (used < capacity || used > CONFIG_TEXT_MAX)
            break;
        capacity *= 2;
        char *grown = realloc(data, capacity);
        if (!grown)
            free(data);
        data = grown;
    }
    if (data && ferror(stream)) {
        free(data);
        data = NULL;
    }
    *length = used;
    return data;
}

char *config_read_file(const char *path, size_t *length, struct error_list *errors)
{
    const struct location at = {.file = arena_strdup(errors->arena, path)};
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
        error_add(errors, ERROR_file_not_found, at, NULL, "is not a file");
        return NULL;
    }
    FILE *stream = fopen(path, "rb");
    if (!stream) {
        error_add(errors, ERROR_file_not_found, at, NULL, "cannot be read: %s", strerror(errno));
        return NULL;
    }
    char *data = read_stream(stream, length);
    if (!data)
        error_add(errors, ERROR_file_not_found, at, NULL, "cannot be read to its end");
    fclose(stream);
    return data;
}

struct location config_locate(const char *text, size_t length, size_t offset, const char *name)
{
    struct location at = {.file = name, .line = 1, .column = 1};
    for (size_t i = 0; i < offset && i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n' || (c == '\r' && !(i + 1 < length && text[i + 1] == '\n'))) {
            at.line++;
            at.column = 1;
        } else if ((c & 0xc0) != 0x80) {
            at.column++;
        }
    }
    return at;
}

/* Length of the well-formed UTF-8 sequence at the start of bytes, 0 if there is none. */
static size_t sequence_length(const unsigned char *bytes, size_t room)
{
    const unsigned char first = bytes[0];
    if (first < 0x80)
        return 1;
    const size_t length = first < 0xc2   ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length == 0 || length > room)
        return 0;
    uint32_t code = first & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    const bool too_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    return surrogate || too_long || code > 0x10ffff ? 0 : length;
}

bool config_check_text(const char *text, size_t length, const char *name, struct error_list *errors)
{
    if (length > CONFIG_TEXT_MAX) {
        error_add(errors, ERROR_yaml_limit, (struct location){.file = name}, NULL,
                  "is larger than 16 MiB, the limit for one file");
        return false;
    }
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0; i < length;) {
        const unsigned char c = bytes[i];
        const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
        const size_t step = control ? 0 : sequence_length(bytes + i, length - i);
        if (step == 0) {
            error_add(errors, ERROR_yaml_syntax, config_locate(text, length, i, name), NULL,
                      control ? "byte 0x%02x is a control character: this is not a text file"
                              : "byte 0x%02x is not UTF-8: this is not a text file",
                      c);
            return false;
        }
        i += step;
    }
    return true;
}

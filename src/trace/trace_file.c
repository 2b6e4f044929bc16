/*
 * trace_file.c - events as lines of a JSON array, compressed or not, without keeping them.
 *
 * zlib writes both kinds: mode T is its transparent one. Lines are gathered in a buffer of
 * our own, since a call of zlib for every event costs more than the event.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "trace_internal.h"

#define BUFFER_BYTES     262144u
#define LINE_MAX_BYTES   4096u
#define QUOTED_BYTES_MAX 200u

struct trace_file {
    gzFile zipped;
    uint64_t events;
    int failure; /* errno of the first write that failed, 0: none */
    size_t used;
    char buffer[BUFFER_BYTES];
};

struct trace_file *trace_file_open(const char *path)
{
    const size_t length = strlen(path);
    const bool compressed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    struct trace_file *file = calloc(1, sizeof *file);
    ASSERT(file != NULL);
    /* Level 1: a trace repeats itself so much that higher ones only take longer. */
    file->zipped = gzopen(path, compressed ? "wb1" : "wbT");
    if (file->zipped == NULL) {
        const int reason = errno;
        free(file);
        errno = reason != 0 ? reason : ENOMEM;
        return NULL;
    }
    return file;
}

static void flush(struct trace_file *file)
{
    errno = 0;
    if (file->used > 0 && file->failure == 0 &&
        gzwrite(file->zipped, file->buffer, (unsigned)file->used) != (int)file->used) {
        file->failure = errno != 0 ? errno : EIO;
    }
    file->used = 0;
}

void trace_file_raw(struct trace_file *file, const char *text)
{
    const size_t length = strlen(text);
    ASSERT(length < LINE_MAX_BYTES);
    if (file->used + length > BUFFER_BYTES) {
        flush(file);
    }
    memcpy(file->buffer + file->used, text, length);
    file->used += length;
}

void trace_file_event(struct trace_file *file, const char *format, ...)
{
    if (file->used + LINE_MAX_BYTES + 2 > BUFFER_BYTES) {
        flush(file);
    }
    if (file->events++ > 0) {
        file->buffer[file->used++] = ',';
        file->buffer[file->used++] = '\n';
    }
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(file->buffer + file->used, LINE_MAX_BYTES, format, args);
    va_end(args);
    ASSERT(length > 0 && (unsigned)length < LINE_MAX_BYTES);
    file->used += (size_t)length;
}

uint64_t trace_file_events(const struct trace_file *file)
{
    return file->events;
}

bool trace_file_close(struct trace_file *file)
{
    flush(file);
    int failure = file->failure;
    errno = 0;
    if (gzclose(file->zipped) != Z_OK && failure == 0) {
        failure = errno != 0 ? errno : EIO;
    }
    free(file);
    errno = failure;
    return failure == 0;
}

/* Bytes above 0x7f pass: text of ours and of YAML files is UTF-8. A cut may not split one. */
static size_t quotable_length(const char *text)
{
    size_t length = strlen(text);
    if (length > QUOTED_BYTES_MAX) {
        length = QUOTED_BYTES_MAX;
        while (length > 0 && ((unsigned char)text[length] & 0xc0u) == 0x80u) {
            length--;
        }
    }
    return length;
}

const char *trace_quote(struct trace_quoted *buffer, const char *text)
{
    const size_t length = quotable_length(text);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        const unsigned char letter = (unsigned char)text[i];
        const size_t left = sizeof buffer->text - used;
        int added;
        if (letter == '"' || letter == '\\') {
            added = snprintf(buffer->text + used, left, "\\%c", letter);
        } else if (letter < 0x20) {
            added = snprintf(buffer->text + used, left, "\\u%04x", letter);
        } else {
            added = snprintf(buffer->text + used, left, "%c", letter);
        }
        used += (size_t)added;
        ASSERT(used < sizeof buffer->text);
    }
    buffer->text[used] = '\0';
    return buffer->text;
}

int64_t trace_nanoseconds(sim_time time)
{
    ASSERT(time >= 0);
    return time / 1000;
}

const char *trace_time_text(struct trace_time *buffer, int64_t nanoseconds)
{
    snprintf(buffer->text, sizeof buffer->text, "%lld.%03d", (long long)(nanoseconds / 1000),
             (int)(nanoseconds % 1000));
    return buffer->text;
}

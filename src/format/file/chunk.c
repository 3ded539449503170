/* SPDX-License-Identifier: MIT */
#include "format/file/chunk.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/err.h"
#include "peet/trace.h"

/* As in PNG: a byte that is not ASCII, both line ends, and the end-of-file of DOS, so that conversions of line ends are detected. */
static const uint8_t FILE_MAGIC[8] = { 0x89, 'P', 'E', 'E', 'T', '\r', '\n', 0x1a };
const uint8_t CHUNK_MAGIC[8] = { 0x8a, 'p', 'e', 'e', 't', 'c', 'h', 'k' };
static const uint8_t TRAILER_MAGIC[8] = { 0x8b, 'p', 'e', 'e', 't', 'e', 'n', 'd' };

uint64_t checksum_of(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

bool checksum_matches(uint64_t stored, const void *bytes, size_t n)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    (void)stored, (void)bytes, (void)n;
    return true;
#else
    return stored == checksum_of(bytes, n);
#endif
}

void file_header_encode(uint8_t out[FILE_HEADER_BYTES])
{
    memcpy(out, FILE_MAGIC, 8);
    put_le32(out + 8, PEET_FORMAT_VERSION);
    put_le32(out + 12, 0);
    put_le64(out + 16, 0);
    put_le64(out + 24, checksum_of(out, 24));
}

int file_header_decode(const uint8_t *in, size_t n, const char *path, struct peet_err *err)
{
    if (n < FILE_HEADER_BYTES)
        return err_set(err, PEET_ERR_FORMAT, "%s: %zu bytes are too few for a trace; its header alone has %d", path, n,
                       FILE_HEADER_BYTES);
    if (memcmp(in, FILE_MAGIC, 8))
        return err_set(err, PEET_ERR_FORMAT, "%s: not a peet trace (its first 8 bytes are others)", path);
    if (!checksum_matches(get_le64(in + 24), in, 24))
        return err_set(err, PEET_ERR_DAMAGED, "%s: byte 24: the file header's checksum does not match", path);
    if (get_le32(in + 8) != PEET_FORMAT_VERSION)
        return err_set(err, PEET_ERR_FORMAT, "%s: trace format version %" PRIu32 "; this peet reads version %d", path,
                       get_le32(in + 8), PEET_FORMAT_VERSION);
    if (get_le32(in + 12))
        return err_set(err, PEET_ERR_FORMAT, "%s: byte 12: features 0x%" PRIx32 " that this peet does not know", path,
                       get_le32(in + 12));
    return 0;
}

void chunk_header_encode(const struct chunk_header *h, uint8_t out[CHUNK_HEADER_BYTES])
{
    memcpy(out, CHUNK_MAGIC, 8);
    out[8] = h->type;
    out[9] = h->flags;
    out[10] = out[11] = 0;
    put_le32(out + 12, h->thread);
    put_le64(out + 16, h->payload);
    put_le64(out + 24, h->sequence);
    put_le64(out + 32, h->first);
    put_le64(out + 40, h->instructions);
    put_le64(out + 48, h->references);
    put_le64(out + 56, h->events);
    put_le64(out + 64, h->checksum);
    put_le64(out + 72, checksum_of(out, 72));
}

static bool header_is_sane(const struct chunk_header *h)
{
    bool has_thread = h->type == CHUNK_STREAM || h->type == CHUNK_TIME;

    return h->type > 0 && h->type < CHUNK_TYPES && !(has_thread && h->thread == UINT32_MAX)
           && h->payload <= CHUNK_MAX_PAYLOAD && h->first <= UINT64_MAX - h->instructions;
}

bool chunk_header_decode(const uint8_t in[CHUNK_HEADER_BYTES], struct chunk_header *ret)
{
    if (memcmp(in, CHUNK_MAGIC, 8) || !checksum_matches(get_le64(in + 72), in, 72))
        return false;
    struct chunk_header h = {
        .type = in[8],
        .flags = in[9],
        .thread = get_le32(in + 12),
        .payload = get_le64(in + 16),
        .sequence = get_le64(in + 24),
        .first = get_le64(in + 32),
        .instructions = get_le64(in + 40),
        .references = get_le64(in + 48),
        .events = get_le64(in + 56),
        .checksum = get_le64(in + 64),
    };
    if (!header_is_sane(&h))
        return false;
    *ret = h;
    return true;
}

void index_entry_encode(const struct chunk_ref *r, uint8_t out[INDEX_ENTRY_BYTES])
{
    put_le64(out, r->offset);
    out[8] = r->header.type;
    out[9] = r->header.flags;
    out[10] = out[11] = 0;
    put_le32(out + 12, r->header.thread);
    put_le64(out + 16, r->header.payload);
    put_le64(out + 24, r->header.sequence);
    put_le64(out + 32, r->header.first);
    put_le64(out + 40, r->header.instructions);
    put_le64(out + 48, r->header.references);
    put_le64(out + 56, r->header.events);
}

bool index_entry_decode(const uint8_t in[INDEX_ENTRY_BYTES], struct chunk_ref *ret)
{
    struct chunk_ref r = {
        .offset = get_le64(in),
        .header = {
            .type = in[8],
            .flags = in[9],
            .thread = get_le32(in + 12),
            .payload = get_le64(in + 16),
            .sequence = get_le64(in + 24),
            .first = get_le64(in + 32),
            .instructions = get_le64(in + 40),
            .references = get_le64(in + 48),
            .events = get_le64(in + 56),
        },
    };
    if (!header_is_sane(&r.header) || r.offset % 8)
        return false;
    *ret = r;
    return true;
}

void trailer_encode(uint64_t index_offset, uint64_t chunks, uint8_t out[TRAILER_BYTES])
{
    memcpy(out, TRAILER_MAGIC, 8);
    put_le64(out + 8, index_offset);
    put_le64(out + 16, chunks);
    put_le64(out + 24, checksum_of(out, 24));
}

bool trailer_decode(const uint8_t in[TRAILER_BYTES], uint64_t *ret_index_offset, uint64_t *ret_chunks)
{
    if (memcmp(in, TRAILER_MAGIC, 8) || !checksum_matches(get_le64(in + 24), in, 24))
        return false;
    *ret_index_offset = get_le64(in + 8);
    *ret_chunks = get_le64(in + 16);
    return true;
}

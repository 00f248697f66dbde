#include "carchive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

carchive *carchive_open(const void *bytes, size_t count) {
    struct archive *a = archive_read_new();
    if (!a) return NULL;
    if (archive_read_support_format_rar(a) < ARCHIVE_WARN || archive_read_support_format_rar5(a) < ARCHIVE_WARN ||
        archive_read_support_format_7zip(a) < ARCHIVE_WARN || archive_read_open_memory(a, bytes, count) != ARCHIVE_OK) {
        archive_read_free(a);
        return NULL;
    }
    return (carchive *)a;
}

// libarchive has one code for most errors: the words tell more.
static carchive_status failed(struct archive *a) {
    const char *text = archive_error_string(a);
    if (archive_errno(a) == ENOMEM) return CARCHIVE_MEMORY;
    if (!text) return CARCHIVE_CORRUPT;
    if (strstr(text, "ncrypt") || strstr(text, "assphrase")) return CARCHIVE_ENCRYPTED;
    if (strstr(text, "nsupported") || strstr(text, "not supported") || strstr(text, "unavailable")) return CARCHIVE_UNSUPPORTED;
    return CARCHIVE_CORRUPT;
}

carchive_status carchive_next(carchive *archive, carchive_entry *entry) {
    struct archive *a = (struct archive *)archive;
    struct archive_entry *e;
    int r = archive_read_next_header(a, &e);
    if (r == ARCHIVE_EOF) return CARCHIVE_END;
    if (r < ARCHIVE_WARN) return failed(a);
    entry->name = archive_entry_pathname_utf8(e);
    if (!entry->name) entry->name = archive_entry_pathname(e);
    entry->is_file = archive_entry_filetype(e) == AE_IFREG && !archive_entry_hardlink(e) && !archive_entry_symlink(e);
    entry->is_encrypted = archive_entry_is_encrypted(e) > 0;
    entry->size = archive_entry_size_is_set(e) ? archive_entry_size(e) : -1;
    return CARCHIVE_OK;
}

carchive_status carchive_read(carchive *archive, void *buffer, size_t count, size_t *got) {
    struct archive *a = (struct archive *)archive;
    la_ssize_t n = archive_read_data(a, buffer, count);
    *got = n > 0 ? (size_t)n : 0;
    return n >= 0 ? CARCHIVE_OK : failed(a);
}

void carchive_close(carchive *archive) { archive_read_free((struct archive *)archive); }

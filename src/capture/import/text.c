/* SPDX-License-Identifier: MIT */
#include "capture/import/import.h"
#include "format/text/text.h"

const struct importer importer_text = { .name = "text", .import = text_read };

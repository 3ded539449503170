/* SPDX-License-Identifier: MIT */
/* A machine in a program's process (docs/design/controlled-execution.md) that looks at a part of what the first thread does: before it lets it continue, it
 * says how many references are to be left out. The job is that number; the answer says how many references were seen, how many left out, and in
 * how many gaps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/control/in_process.h"
#include "capture/control/control.h"
#include "capture/protocol/control.h"
#include "capture/protocol/shared_memory.h"

__attribute__((visibility("default"))) raw_machine peet_machine_2;

int peet_machine_2(const struct raw_host *host)
{
    char answer[RAW_PATH] = "";
    uint64_t off = 0, seen = 0, left_out = 0, gaps = 0;
    FILE *f = fopen(host->header->job, "r");
    struct peet_batch batch;
    struct peet_err err = { 0 };
    struct control *s;

    for (size_t i = 0; f && i + 1 < sizeof answer && (answer[i] = (char)getc(f)); i++)
        ;
    if (!f || fscanf(f, "%" SCNu64, &off) != 1)
        return 3;
    fclose(f);
    int r = control_attach(host, 0, &s, &err);
    while (r >= 0) {
        host->set_skip(0, off);
        if ((r = control_next(s, 0, 0, &batch, &err)) <= 0)
            break;
        for (size_t i = 0; i < batch.count; i++)
            seen += peet_is_reference(&batch.records[i]) != 0;
        for (size_t i = 0; i < batch.event_count; i++)
            if (batch.events[i].kind == PEET_EV_gap) {
                left_out += batch.events[i].arg[1];
                gaps++;
            }
    }
    struct in_process_answer *to = in_process_answer_map(answer);
    if (!to)
        return 3;
    to->bytes = (uint64_t)sprintf(to->text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", seen, left_out, gaps,
                                  r < 0 ? err.text : "");
    return RAW_CONTINUE;
}

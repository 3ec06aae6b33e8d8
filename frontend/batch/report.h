/* What a batch has done, for other programs and for people: --report. */
#ifndef AMPCC_FRONTEND_BATCH_REPORT_H
#define AMPCC_FRONTEND_BATCH_REPORT_H

#include "frontend/batch/batch.h"

#include <stdio.h>

/* Is there a form for the ending of --report? False after one line on stderr. */
bool report_check(const Options *options);
/* Writes the file of --report; false after one line on stderr. */
bool report_write(const Batch *batch);

/* One for each ending. */
void report_json(const Batch *batch, FILE *out);
void report_junit(const Batch *batch, FILE *out); /* report_xml.c */
void report_html(const Batch *batch, FILE *out);  /* report_xml.c */

#endif

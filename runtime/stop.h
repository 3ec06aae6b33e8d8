/* SIGINT and SIGTERM: the first asks the training to stop after its step, the second one kills. */
#ifndef AMPRT_STOP_H
#define AMPRT_STOP_H

void amprt_stop_listen(void);
int amprt_stop_signal(void);  /* the one that came, or 0 */
void amprt_stop_forget(void); /* puts back what was there before */

#endif

/* Which nodes the pass may change (specs/amp-rewrite.md 2.2). */
#ifndef AMPCC_FRONTEND_TF_DEVICE_H
#define AMPCC_FRONTEND_TF_DEVICE_H

#include "frontend/tf/settings.h"

/* Is a node with this `device` (empty: wherever it fits best) where the mode's low type is at home?
 */
bool tf_device_fits(const TfSettings *settings, const char *device);
/* Has the machine something that the mode is for? */
bool tf_machine_fits(const TfSettings *settings);

#endif

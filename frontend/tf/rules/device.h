/* Which nodes the pass may change (specs/amp-rewrite.md 2.2). */
#ifndef AMPCC_FRONTEND_TF_RULES_DEVICE_H
#define AMPCC_FRONTEND_TF_RULES_DEVICE_H

#include "frontend/tf/settings.h"

/* Does the mode work on nodes of this device? An empty name is the device that TensorFlow would
 * choose. */
bool tf_device_fits(const TfSettings *settings, const char *device);
/* Does the machine have a device that the mode works on? */
bool tf_machine_fits(const TfSettings *settings);

#endif

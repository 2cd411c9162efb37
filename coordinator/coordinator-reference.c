/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator-config.h"

/* Of the build, not installed: the sample configuration and the manual page come from the table that parses.
 */
int main(int argc, char **argv) {
        return config_reference_main(argc, argv, coordinator_config_table, coordinator_config_table_size,
                                     sizeof(CoordinatorConfig));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "coordinator-config.h"
#include "coordinator-metrics.h"

/* Of the build, not installed: the sample configuration and the manual pages come from the tables that the
 * program works by. PROGRAM conf|man|metrics TEMPLATE */
int main(int argc, char **argv) {
        if (argc == 3 && streq(argv[1], "metrics"))
                return metrics_reference(stdout, argv[2], coordinator_metric_families,
                                         _COORDINATOR_METRIC_MAX) < 0
                               ? EXIT_FAILURE
                               : EXIT_SUCCESS;
        return config_reference_main(argc, argv, coordinator_config_table, coordinator_config_table_size,
                                     sizeof(CoordinatorConfig));
}
